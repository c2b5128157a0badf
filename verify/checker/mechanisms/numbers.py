"""Arithmetic of arguments: exact where all numbers are rational, else at the working precision."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from mpmath import mp

from verify.checker.arithmetic import UnknownError


def real(value: Any) -> Any:
    """Return a number as a real at the working precision."""
    if isinstance(value, int):
        return mp.mpf(value)
    if isinstance(value, Fraction):
        return mp.mpf(value.numerator) / value.denominator
    return value


def times(*factors: Any) -> Any:
    """Return a product, a Fraction where all factors are rational."""
    return math.prod(_alike(factors), start=Fraction(1))


def plus(*terms: Any) -> Any:
    """Return a sum, a Fraction where all terms are rational."""
    return sum(_alike(terms), start=Fraction(0))


def over(numerator: Any, denominator: Any) -> Any:
    """Return a quotient, a Fraction where both numbers are rational."""
    one, other = _alike((numerator, denominator))
    return one / other


def root(square: Any) -> Any:
    """Return √square, a Fraction where it is rational."""
    if isinstance(square, Fraction) and square >= 0:
        found = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
        return found if found**2 == square else mp.sqrt(real(square))
    return mp.sqrt(real(square))


def exp(power: Any) -> Any:
    """Return e^power, 1 exactly for power 0."""
    if isinstance(power, Fraction) and power == 0:
        return Fraction(1)
    return mp.exp(real(power))


def largest(values: list[Any]) -> Any:
    """Return the maximum of numbers."""
    return max(values) if all(isinstance(v, Fraction) for v in values) else max(map(real, values))


def least(values: list[Any]) -> Any:
    """Return the minimum of numbers."""
    return times(-1, largest([times(-1, value) for value in values]))


def sign(value: Any) -> int:
    """Return −1, 0 or 1; raise UnknownError where the digits do not tell."""
    if value > 0:
        return 1
    if value < 0:
        return -1
    if value == 0:
        return 0
    raise UnknownError("the sign of an argument")


def between(low: Fraction, high: Fraction) -> Any:
    """Return the number of which two rationals, equal to the working precision, are bounds."""
    return real((low + high) / 2)


def bits() -> int:
    """Return the working precision."""
    return int(mp.prec)


def _alike(values: tuple[Any, ...]) -> list[Any]:
    exact = [Fraction(value) if isinstance(value, int) else value for value in values]
    return exact if all(isinstance(value, Fraction) for value in exact) else list(map(real, exact))
