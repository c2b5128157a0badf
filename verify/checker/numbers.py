"""Arithmetic of arguments in the numbers of the checker: exact where it can be, else balls.

An undecided sign or comparison raises UnknownError.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from flint import arb

from accountant.numbers.precision import ctx
from verify.checker.arithmetic import UnknownError, hull
from verify.checker.arithmetic import largest as largest_of
from verify.checker.masses import total
from verify.checker.reals import INFINITE, Real, apply, ball, exp, log
from verify.checker.reals import sqrt as root

__all__ = [
    "at_most",
    "between",
    "bits",
    "exp",
    "infinite",
    "infinity",
    "largest",
    "least",
    "log",
    "over",
    "plus",
    "root",
    "score",
    "sign",
    "sum_of_squares",
    "times",
]

_MOST_TERMS: Final = 1 << 17
"""Of a sum over the integers."""
_SPARE_BITS: Final = 40


def times(*factors: Any) -> Any:
    """Return a product."""
    return math.prod(factors, start=Fraction(1))


def plus(*terms: Any) -> Any:
    """Return a sum."""
    return total(terms)


def over(numerator: Any, denominator: Any) -> Any:
    """Return a quotient."""
    one, other = (Fraction(x) if isinstance(x, int) else x for x in (numerator, denominator))
    return one / other


def score(probability: Any) -> Any:
    """Return Φ⁻¹(p)."""
    return Fraction(0) if probability == Fraction(1, 2) else apply("Phi_inverse", probability)


def infinity() -> Any:
    """Return ∞."""
    return INFINITE


def infinite(value: Any) -> bool:
    """Whether a number is ∞."""
    return isinstance(value, Real) and value.terms is None and value.ball == arb.pos_inf()


def sum_of_squares(parameter: Any) -> Any:
    """Return Σ z² e^{−z²/2v} over all integers z."""
    return _sum_of_squares(parameter, ctx.prec)


@lru_cache(maxsize=64)
def _sum_of_squares(parameter: Any, precision: int) -> Real:
    """Add up terms whose ratio falls; the rest is at most a geometric series.

    Of z and z + 1 the ratio is (1 + 1/z)² e^{−(2z + 1)/2v}: both factors fall with z.
    """
    with ctx.workprec(precision + _SPARE_BITS):
        rate, whole = ball(1 / (2 * parameter)), arb(0)
        share = arb(2) ** -(precision + 2)
        for z in range(1, _MOST_TERMS):
            term = z * z * (-z * z * rate).exp()
            ratio = (1 + 1 / arb(z)) ** 2 * (-(2 * z + 1) * rate).exp()
            if ratio < 1:
                rest = term / (1 - ratio)
                if rest < whole * share:
                    return Real(2 * (whole + arb(0).union(rest)))
            whole += term
    raise UnknownError("the variance of so wide a discrete Gaussian")


def at_most(one: Any, other: Any) -> bool:
    """Whether one number is at most another."""
    return bool(one <= other)


def largest(values: list[Any]) -> Any:
    """Return the maximum of numbers."""
    return largest_of(values)


def least(values: list[Any]) -> Any:
    """Return the minimum of numbers."""
    return -largest_of([-value for value in values])


def sign(value: Any) -> int:
    """Return −1, 0 or 1."""
    return 1 if value > 0 else -1 if value < 0 else 0


def between(low: Fraction, high: Fraction) -> Any:
    """Return the number of which two rationals are bounds."""
    return hull(low, high)


def bits() -> int:
    """Return the working precision."""
    return int(ctx.prec)
