"""Where an increasing function changes its sign, between points at which that is certain."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal

_GROWTH = 8
"""Factor of the steps out of a crossing to where the side is certain."""

Rise = Callable[[Fraction], arb]


def crossing(rise: Rise, a: Fraction, b: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Return points that the change of sign lies between, about 2^-bits of their size apart.

    The sign is certain at each, unless it is an end of the interval that is searched. Steps that
    grow, out of where a search without proof finds it, prove it.
    """

    def falls(x: ExactReal) -> arb:
        known = x.rational
        assert known is not None
        return -rise(known)

    x = solve.approximate(falls, a, b, bits)
    unit = power_of_two(max(abs(x), (b - a) / (1 << bits)) / (1 << bits))
    x = round(x / unit) * unit  # points stay short
    low, high = a, b
    step = 4 * unit
    while low == a and x - step > a:
        if rise(x - step) < 0:
            low = x - step
        step *= _GROWTH
    step = 4 * unit
    while high == b and x + step < b:
        if rise(x + step) > 0:
            high = x + step
        step *= _GROWTH
    return low, high


def power_of_two(value: Fraction) -> Fraction:
    """Return the least power of 2 that is not below about half of the value, and at least it."""
    found = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length())
    return found if found >= value else 2 * found
