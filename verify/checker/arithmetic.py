"""Numbers of the checker: agreement of digits, rising precision, comparison in intervals.

A number is a Fraction where it is rational, an mpmath real at the working precision elsewhere, or
an interval of mpmath.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, TypeVar

from mpmath import iv, mp

Numbers = TypeVar("Numbers", list[Any], dict[str, Any])
AGREEMENT = Fraction(1, 10**38)
"""Relative distance below which two numbers count as the same number."""

_PRECISIONS = (45, 60, 120, 240, 480, 960)


class UnknownError(Exception):
    """A quantity that the checker cannot recompute; the message names it."""


class FewDigitsError(UnknownError):
    """A quantity that takes numbers of more digits than there are."""


def settle(compute: Callable[[], Numbers]) -> Numbers:
    """Evaluate at rising precision until all numbers agree twice to 38 digits (or are exact)."""
    before: list[Any] | None = None
    near = False
    for digits in _PRECISIONS:
        with mp.workdps(digits):
            try:
                values = compute()
            except FewDigitsError:
                continue
            flat = list(values.values() if isinstance(values, dict) else values)
            if all(isinstance(value, (Fraction, iv.mpf)) for value in flat):
                return values
            if before is not None and all(map(agree, flat, before)):
                return values
        near = before is not None and all(map(_near, flat, before))
        before = flat
    if near:  # a difference of equal numbers, say
        raise UnknownError("a number that does not settle")
    raise ValueError("no number, or one that does not settle")


def agree(one: Any, other: Any) -> bool:
    """Whether two numbers are equal to 38 digits; an interval is what it is."""
    if isinstance(one, iv.mpf) or isinstance(other, iv.mpf):
        return True
    return bool(one == other or abs(one - other) <= AGREEMENT * max(abs(one), abs(other)))


@contextmanager
def interval_digits(digits: int) -> Iterator[None]:
    """Set the precision of mpmath's intervals within a block."""
    before = iv.prec
    iv.dps = digits
    try:
        yield
    finally:
        iv.prec = before


def _near(one: Any, other: Any) -> bool:
    if isinstance(one, iv.mpf) or isinstance(other, iv.mpf):
        return True
    return bool(one == other or abs(one - other) <= AGREEMENT)


def interval(value: Any) -> Any:
    """Return an interval around a number: exact for a rational, 38 digits wide otherwise."""
    if isinstance(value, Fraction):
        return iv.mpf(value.numerator) / iv.mpf(value.denominator)
    return value if isinstance(value, iv.mpf) else iv.mpf(value) * (1 + iv.mpf([-1, 1]) / 10**38)


def hull(low: Fraction, high: Fraction) -> Any:
    """Return an interval around two rationals and everything between them."""
    return iv.mpf([interval(low).a, interval(high).b])


def compare(left: Any, relation: str, right: Any) -> bool | None:
    """Decide a comparison; None where the two sides cannot be told apart."""
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        low = high = left - right
    else:
        difference = interval(left) - interval(right)
        low, high = mp.mpf(difference.a), mp.mpf(difference.b)
    yes, no = {
        "<": (high < 0, low >= 0),
        "<=": (high <= 0, low > 0),
        ">": (low > 0, high <= 0),
        ">=": (low >= 0, high < 0),
        "==": (low == high == 0, low > 0 or high < 0),
        "!=": (low > 0 or high < 0, low == high == 0),
    }[relation]
    return True if yes else False if no else None
