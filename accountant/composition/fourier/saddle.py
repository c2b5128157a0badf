"""The saddle point of M(s) e^{−sε} |κ(s)| on the real axis: the minimum of a convex function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, final

from dpassay.accountant.errors import UndecidedError

_MOST_STEPS = 200
"""Limit on the steps of the search: each bisects a bracket at worst, and floats allow fewer."""
_CLOSE = 1e-3
"""Error of the saddle point in its widths: a line this close has as few nodes as the exact one."""
_MOST_MOVES = 24
"""Number of tilts that are tried for a period, which is flat near the best tilt."""
_FLAT = 0.8
"""Logarithmic slope of the size of a bound from which the tilt is near its best; there it is 1."""
_CLOSE_MOVES = 0.75
"""Ratio of the ends of a bracket of tilts from which it is narrow enough."""
_STEEPEST = 0.1
"""Least slope from which the next tilt is extrapolated; smaller ones would lead too far."""
_BACK = 0.6
"""Factor for a tilt that is too large."""
_LEAP = 2.0
"""Largest factor for a tilt that is too small: further out the moments may be unknown."""
_FIRST_STEPS = 8
"""Number of steps before which a bracket with an end not yet evaluated is not bisected; from a good
start two suffice."""
_TINY = 1e-13
"""Relative width of a bracket below which floats have no information."""
_HALVINGS = 24
"""Bisections between two parabolas, whose result is only a guess."""
_CREEPING, _FAST = 0.2, 0.1
"""Ratios of f′ after a step to f′ before it. Above the first, Newton's method converges slowly, as
for an exponential. Above the second, a slow search continues where two parabolas meet."""
_MOST_RETREATS, _RETREAT = 10, 0.25
"""How often a tilt with unknown moments is given up; and the share of the step that is kept."""


class Cumulants(Protocol):
    """The information about a loss that the search needs."""

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln M(c) and its first two derivatives."""


@final
@dataclass(frozen=True)
class Strip:
    """An interval between two adjacent poles of a kernel; its ends may be infinite."""

    low: float
    high: float
    poles: tuple[float, ...]


@final
@dataclass(frozen=True)
class Saddle:
    """The minimum point, and the second derivative of the logarithm there."""

    c: float
    curvature: float


def saddle(
    loss: Cumulants,
    strip: Strip,
    epsilon: float,
    *,
    close: float = _CLOSE,
    start: float | None = None,
) -> Saddle:
    """Find the minimum of the convex function f(s) = K(s) − sε − Σ ln|s − pole|, K = ln M.

    Newton's method finds the zero of f′ inside a shrinking bracket. It is slow if a few large
    losses dominate M beyond some s; then e^f is modelled as a sum of two exponentials of parabolas.
    `close` is the allowed error, in units of the width of the saddle point. The search begins at
    `start` if that is in the strip. It does not go beyond a point with unknown moments.

    Raises ArithmeticError if no bracket is found, as for an ε beyond every loss, or if f has no
    curvature; raises UndecidedError if the moments remain unknown.
    """
    low, high = _End(strip.low), _End(strip.high)
    s = start if start is not None and strip.low < start < strip.high else _start(strip)
    slow, wall, retreats, last = False, math.inf, 0, math.nan
    for steps in range(_MOST_STEPS):
        try:
            size, first, second = loss.cumulants(s)
        except UndecidedError:
            if retreats == _MOST_RETREATS or not math.isfinite(low.s):
                raise
            wall, s, retreats = s, low.s + _RETREAT * (s - low.s), retreats + 1
            continue
        value = first - epsilon - sum(1 / (s - pole) for pole in strip.poles)
        curvature = second + sum((s - pole) ** -2 for pole in strip.poles)
        if not curvature > 0:  # beyond all losses but one
            break
        height = size - s * epsilon - sum(math.log(abs(s - pole)) for pole in strip.poles)
        width = high.s - low.s
        here = _End(s, height, value, curvature)
        low, high = (low, here) if value > 0 else (here, high)
        move = -value / curvature
        if abs(move) * math.sqrt(curvature) < close or high.s - low.s <= _TINY * abs(s):
            return Saddle(s, curvature)
        if slow and abs(value) > _FAST * abs(last):
            s = _meeting(low, high)
        else:
            if value / last > _CREEPING:
                move = _as_exponential(here, low if value > 0 else high)
            s = _inside(s + _past_pole(move, here, strip), s, low, high, strip)
        last = value
        s = s if s < wall else 0.5 * (low.s + wall)
        known = steps >= _FIRST_STEPS or not math.isnan(low.slope + high.slope)
        slow = known and math.isfinite(width) and high.s - low.s > 0.5 * width and not slow
    raise ArithmeticError(f"there is no saddle point at epsilon={epsilon:.6g}")


@final
@dataclass(frozen=True, slots=True)
class _End:
    """An end of the bracket, with f, f′ and f″ if they are known there."""

    s: float
    value: float = math.nan
    slope: float = math.nan
    curvature: float = math.nan

    def parabola(self, s: float) -> tuple[float, float]:
        """Return f and f′ of the Taylor parabola at s."""
        away = s - self.s
        slope = self.slope + self.curvature * away
        return self.value + 0.5 * (self.slope + slope) * away, slope


def _meeting(low: _End, high: _End) -> float:
    """Return the minimum of e^l + e^h for the parabolas l and h at the ends, or else the middle.

    At the minimum l + ln(−l′) = h + ln h′.
    """
    left, right = low.s, high.s
    for _ in range(_HALVINGS):
        s = 0.5 * (left + right)
        (one, fall), (other, rise) = low.parabola(s), high.parabola(s)
        if rise > 0 and (fall >= 0 or other + math.log(rise) > one + math.log(-fall)):
            right = s
        else:
            left = s
    return s if low.s < left and right < high.s else 0.5 * (low.s + high.s)


def _as_exponential(here: _End, other: _End) -> float:
    """Return the step to the zero of f′ = a + b e^{rs}, with a from the parabola at the other end.

    Where f′ grows exponentially, all steps of Newton's method are about equally short.
    """
    value, flat = here.slope, other.parabola(here.s)[1]
    if not value * flat < 0:
        return -value / here.curvature
    return -math.log1p(-value / flat) * (value - flat) / here.curvature


def _past_pole(move: float, here: _End, strip: Strip) -> float:
    """Return a Newton step for f′; on the way from a pole to an infinite end, for (s − pole) f′.

    Near the pole |f′| is large, and it is flat further out; there Newton's method for f′ only
    doubles the distance.
    """
    if math.isfinite(strip.low) == math.isfinite(strip.high):
        return move
    away = here.s - (strip.low if math.isfinite(strip.low) else strip.high)
    if away * here.slope >= 0:
        return move
    steep = here.slope + away * here.curvature
    return -away * here.slope / steep if steep * away > 0 else math.copysign(math.inf, away)


def _start(strip: Strip) -> float:
    if math.isinf(strip.high):
        return strip.low + 1.0
    if math.isinf(strip.low):
        return strip.high - 1.0
    return 0.5 * (strip.low + strip.high)


def _inside(wanted: float, s: float, low: _End, high: _End, strip: Strip) -> float:
    """Return the wanted point, or one well inside the bracket if it lies outside."""
    left, right = low.s, high.s
    if left == strip.low and wanted <= left + 0.1 * (s - left):
        return s - 2 * (right - s) - 2 * abs(s) - 1 if math.isinf(left) else left + 0.1 * (s - left)
    if right == strip.high and wanted >= right - 0.1 * (right - s):
        return s + 2 * (s - left) if math.isinf(right) else right - 0.1 * (right - s)
    if math.isinf(left) or math.isinf(right):
        far = 8 * max(abs(s - strip.low) if math.isinf(right) else abs(strip.high - s), 1e-300)
        return min(max(wanted, s - far), s + far)
    if left < wanted < right and wanted != s:
        return wanted
    return _meeting(low, high)


def nearest_bound(  # noqa: PLR0917
    loss: Cumulants,
    strip: Strip,
    epsilon: float,
    c: float,
    side: int,
    log_value: float,
    target: float,
    start: float | None = None,
) -> tuple[float, float]:
    """Return the least period B for which the aliasing bound is small, and the s of that bound.

    On one side of c, the bound E(s)/(e^{|s − c|B} − 1) must be at most e^{log_value − target}. At a
    pole E is 1 or e^ε. The search begins at `start` if that is on this side.
    """
    limit = strip.low if side < 0 else strip.high
    room = abs(limit - c)
    move = min(0.9 * math.sqrt(2 * target / loss.cumulants(c)[2]), 0.9 * room)
    if start is not None and side * (start - c) > 0 and start != limit:
        move = min(abs(start - c), 0.9 * room)
    best = (math.inf, 0.0)
    if math.isfinite(room):
        best = (max((epsilon if limit else 0.0) - log_value, 0.0) + target) / room, limit
    low, high = 0.0, math.inf  # size/move is least where ln size and ln move rise alike: steep is 1
    for _ in range(_MOST_MOVES):
        s = c + side * move
        value, mean, _ = loss.cumulants(s)
        size = max(value - s * epsilon - log_value, 0.0) + target
        best = min(best, (size / move, s))
        steep = side * (mean - epsilon) * move / size if size < math.inf else math.inf
        low, high = (move, high) if steep < 1 else (low, move)
        if _FLAT < steep <= 1 or low > _CLOSE_MOVES * min(high, room):
            break
        guess = move * min(max(steep, _STEEPEST) ** -0.5, _LEAP) if steep < 1 else _BACK * move
        move = min(guess if low < guess < high else math.sqrt(low * high), 0.9 * room)
    return best
