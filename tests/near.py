"""Enclosures beside numbers: whether they are narrow, and their middles."""

from __future__ import annotations

from fractions import Fraction

import mpmath

from dpassay.accountant.numbers.interval import Interval


def narrow(value: Interval, width: Fraction | float) -> bool:
    """Whether an enclosure has no more than this relative width."""
    return value.relative_width is not None and value.relative_width <= width


def mpf(value: Interval) -> mpmath.mpf:
    """Return the middle, in the precision of mpmath."""
    return (mpmath.mpf(str(value.lower)) + mpmath.mpf(str(value.upper))) / 2
