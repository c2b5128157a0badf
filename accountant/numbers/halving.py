"""Where what holds on one side of a point alone changes: among reals, and among integers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

Real = TypeVar("Real", float, Fraction)
_BITS = 60
"""Halvings where no number is named: all bits of a double."""


def halved(
    is_before: Callable[[Real], bool],
    low: Real,
    high: Real,
    steps: int = _BITS,
    *,
    width: float = 0,
) -> tuple[Real, Real]:
    """Return points before and behind the change, or the ends, by so many halvings at most.

    The last bracket may have a width relative to its upper end.
    """
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if is_before(middle) else (low, middle)
        if high - low <= width * high:
            break
    return low, high


def first(holds: Callable[[int], bool], start: int = 0) -> int:
    """Return the least integer at which something holds that holds from there on.

    Steps that double lead away from `start`; bisection follows.
    """
    step = 1
    if holds(start):
        low, high = start - step, start
        while holds(low):
            low, high, step = low - 2 * step, low, 2 * step
    else:
        low, high = start, start + step
        while not holds(high):
            low, high, step = high, high + 2 * step, 2 * step
    return low + 1 + bisect_left(range(low + 1, high), True, key=holds)
