"""The values that expressions are made of: exact numbers, balls, mechanisms, texts, lists."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from flint import arb

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import ball

RealValue: TypeAlias = Fraction | ExactReal | arb
Value: TypeAlias = object
"""A RealValue, a mechanism or another description, a text, a truth value, or a list of values."""


def number(value: Value, source: str = "expression") -> RealValue:
    """Return a rational as a Fraction, an irrational exact number or a ball as it is."""
    if isinstance(value, ExactReal):
        return value if value.rational is None else value.rational
    if isinstance(value, (Fraction, arb)):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    if isinstance(value, str):
        return number(exact(value), source)
    raise InvalidInputError(f"Expected numbers in {source[:80]!r}, not {value!r}.")


def to_ball(value: Value, source: str = "expression") -> arb:
    """Return a ball around a number."""
    real = number(value, source)
    if isinstance(real, arb):
        return real
    return ball(real) if isinstance(real, Fraction) else real.ball()


def to_exact(value: Value, source: str = "expression") -> ExactReal:
    """Return an exact number, or raise InvalidInputError for a ball."""
    real = number(value, source)
    if isinstance(real, arb):
        raise InvalidInputError(
            f"Expected {source[:80]!r} to be exact, not a ball. "
            "Wrap it in round_up(…) or round_down(…)."
        )
    return ExactReal.of_rational(real) if isinstance(real, Fraction) else real


def to_integer(value: Value, source: str = "expression") -> int:
    """Return an integer, or raise InvalidInputError."""
    real = number(value, source)
    if not isinstance(real, Fraction) or real.denominator != 1:
        raise InvalidInputError(f"Expected {source[:80]!r} to be an integer.")
    return real.numerator
