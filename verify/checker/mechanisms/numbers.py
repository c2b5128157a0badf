"""Arithmetic of arguments: exact where all numbers are rational, else at the working precision."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from mpmath import mp

from verify.checker.arithmetic import UnknownError

_MOST_TERMS = 1 << 17
"""Of a sum over the integers."""


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


def log(value: Any) -> Any:
    """Return ln value, 0 exactly for value 1."""
    return Fraction(0) if value == 1 else mp.log(real(value))


def score(probability: Any) -> Any:
    """Return Φ⁻¹(p)."""
    return mp.sqrt(2) * mp.erfinv(2 * real(probability) - 1)


def infinity() -> Any:
    """Return ∞."""
    return mp.inf


def sum_of_squares(parameter: Any) -> Any:
    """Return Σ z² e^{−z²/2v} over all integers z."""
    v, total, z = real(parameter), mp.zero, 1
    while z < _MOST_TERMS:
        term = z * z * mp.exp(-mp.mpf(z * z) / (2 * v))
        total += term
        if z * z > 4 * v and term <= total * mp.eps / (z + 1):
            return 2 * total
        z += 1
    raise UnknownError("the variance of so wide a discrete Gaussian")


def at_most(one: Any, other: Any) -> bool:
    """Whether one number is at most another; UnknownError where the digits do not tell."""
    gap = plus(one, times(-1, other))
    if not isinstance(gap, Fraction) and abs(gap) < mp.mpf(10) ** (-mp.dps // 2) * abs(other):
        raise UnknownError("which of two numbers is the larger")
    return bool(gap <= 0)


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
