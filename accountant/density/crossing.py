"""Where an increasing function changes its sign, between points at which that is certain."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

_GROWTH = 8
"""Factor of the steps out of a crossing to where the side is certain."""
_MISSES = 3
"""Steps of the chord that do not halve the bracket before it is halved."""
_MOST_STEPS = 400
"""Of the search: bisection alone takes as many as bits."""

Rise = Callable[[Fraction], arb]


def crossing(rise: Rise, a: Fraction, b: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Return points that the change of sign lies between, about 2^-bits of their size apart.

    The sign is certain at each, unless it is an end of the interval that is searched. Chords whose
    older end is halved (Illinois), guarded by bisection, find where; steps outward prove it.
    """
    low, high = _finite(rise(a)), _finite(rise(b))
    fine = Fraction(1, 1 << bits)
    last: Fraction | None = None
    misses = side = 0
    for _ in range(_MOST_STEPS):
        width = b - a
        x = _chord(a, b, low, high) if misses < _MISSES else None
        x, misses = ((a + b) / 2, 0) if x is None else (x, misses)
        grain = fine * max(abs(x), width)
        x = _rounded(x, grain)
        if not a < x < b or (last is not None and abs(x - last) <= 4 * grain):
            return _around(rise, x, 4 * grain, a, b)
        value = rise(x)
        if value > 0:
            low = low / 2 if low is not None and side > 0 else low
            b, high, side = x, _finite(value), 1
        elif value < 0:
            high = high / 2 if high is not None and side < 0 else high
            a, low, side = x, _finite(value), -1
        else:
            return _around(rise, x, 4 * grain, a, b)
        last, misses = x, misses + 1 if 2 * (b - a) > width else 0
    return a, b


def _around(
    rise: Rise, x: Fraction, near: Fraction, a: Fraction, b: Fraction
) -> tuple[Fraction, Fraction]:
    """Return points on both sides of x, at steps that grow, at which the signs are certain."""
    low, high = a, b
    step = near
    while low == a and x - step > a:
        if rise(x - step) < 0:
            low = x - step
        step *= _GROWTH
    step = near
    while high == b and x + step < b:
        if rise(x + step) > 0:
            high = x + step
        step *= _GROWTH
    return low, high


def _finite(value: arb) -> arb | None:
    return value.mid() if value.is_finite() else None


def _chord(a: Fraction, b: Fraction, low: arb | None, high: arb | None) -> Fraction | None:
    """Return where the chord of two values crosses 0, None where there is none."""
    if low is None or high is None or not low < 0 < high:
        return None
    mantissa, exponent = (low / (low - high)).mid().man_exp()
    return a + (b - a) * Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _rounded(x: Fraction, grain: Fraction) -> Fraction:
    """Return a multiple of a power of 2 near x: points stay short."""
    unit = power_of_two(grain)
    return round(x / unit) * unit


def power_of_two(value: Fraction) -> Fraction:
    """Return the least power of 2 that is not below about half of the value, and at least it."""
    found = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length())
    return found if found >= value else 2 * found
