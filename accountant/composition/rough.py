"""Roots of profiles, by Newton's method on enclosures of few bits: a place to begin a proof at."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from accountant.errors import UndecidedError
from accountant.interval import narrowed
from accountant.number import ExactReal
from accountant.precision import ctx

_MOST_STEPS = 30
_ROUGH = 64
_ASIDE = Fraction(1, 1 << 17)


def rough_root(
    profile: Callable[[ExactReal], arb],
    log_delta: float,
    start: float,
    width: Fraction,
    close: float,
) -> float | None:
    """Return the root of ln H(ε) − log_delta, from a point right of it; None if none is found.

    Values are asked for with the relative `width`; a step of relative size `close` is the last.

    Raises UndecidedError where H is not known, and ArithmeticError where it is constant.
    """
    low, high, point = -math.inf, math.inf, start
    for _ in range(_MOST_STEPS):
        value, slope = _rough(profile, point, width)
        low, high = (point, high) if value > log_delta else (low, point)
        move = (log_delta - value) / slope
        point, last = point + move, point
        if not low < point < high:
            point = 0.5 * (low + high)
        if abs(move) < close * abs(last):
            return last + move
    return None


def _rough(
    profile: Callable[[ExactReal], arb], epsilon: float, width: Fraction
) -> tuple[float, float]:
    """Return ln H(ε) to a few digits, and its slope."""
    near = Fraction(epsilon)
    aside = near + abs(near) * _ASIDE
    with ctx.workprec(_ROUGH), narrowed(width):
        ends = [profile(ExactReal.of_rational(at)).log() for at in (near, aside)]
    if not all(end.is_finite() for end in ends):
        raise UndecidedError(f"No value was found at epsilon={epsilon:.6g}.")
    first, second = (float(end.mid()) for end in ends)
    return first, (second - first) / float(aside - near)
