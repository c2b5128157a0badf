"""The saddle of M(s) e^{−sε} |κ(s)| on the real axis: the minimum of a convex function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, final

from accountant.errors import UndecidedError

_MOST_STEPS = 200
_CLOSE = 1e-3
_MOST_MOVES = 24
_FLAT = 0.8
_CLOSE_MOVES = 0.75
_STEEPEST = 0.1
_BACK = 0.6
_LEAP = 2.0
_TINY = 1e-13
_MOST_RETREATS, _RETREAT = 10, 0.25


class Cumulants(Protocol):
    """What the search needs to know of a loss."""

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln M(c) and its first two derivatives."""


@final
@dataclass(frozen=True)
class Strip:
    """An interval between two neighbouring poles of a kernel, either end possibly infinite."""

    low: float
    high: float
    poles: tuple[float, ...]


@final
@dataclass(frozen=True)
class Saddle:
    """The minimum and the second derivative of the logarithm there."""

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
    """Find the zero of the increasing function K'(s) − ε − Σ 1/(s − pole) in a strip.

    Newton steps are taken only inside a bracket that shrinks; `close` is the error allowed, in
    units of the width of the saddle; the search begins at `start`, if that is in the strip.

    A point with no known moment is not passed. Raises ArithmeticError where no bracket is found, as
    for an ε beyond every loss, and UndecidedError where the moments stay unknown.
    """

    def slope(s: float) -> tuple[float, float]:
        _, first, second = loss.cumulants(s)
        terms = [1 / (s - pole) for pole in strip.poles]
        return first - epsilon - sum(terms), second + sum(term * term for term in terms)

    low, high = strip.low, strip.high
    s = start if start is not None and strip.low < start < strip.high else _start(strip)
    slow, wall, retreats = False, math.inf, 0
    for _ in range(_MOST_STEPS):
        try:
            value, curvature = slope(s)
        except UndecidedError:
            if retreats == _MOST_RETREATS or not math.isfinite(low):
                raise
            wall, s, retreats = s, low + _RETREAT * (s - low), retreats + 1
            continue
        width = high - low
        if value > 0:
            high = s
        else:
            low = s
        move = -value / curvature
        if abs(move) * math.sqrt(curvature) < close or high - low <= _TINY * abs(s):
            return Saddle(s, curvature)
        s = 0.5 * (low + high) if slow else _inside(s + move, s, low, high, strip)
        s = s if s < wall else 0.5 * (low + wall)
        slow = math.isfinite(high - low) and high - low > 0.5 * width and not slow
    raise ArithmeticError(f"no saddle for epsilon={epsilon}")


def _start(strip: Strip) -> float:
    if math.isinf(strip.high):
        return strip.low + 1.0
    if math.isinf(strip.low):
        return strip.high - 1.0
    return 0.5 * (strip.low + strip.high)


def _inside(wanted: float, s: float, low: float, high: float, strip: Strip) -> float:
    """Return the wanted point, or one well inside the bracket where it lies outside."""
    if low == strip.low and wanted <= low + 0.1 * (s - low):
        return s - 2 * (high - s) - 2 * abs(s) - 1 if math.isinf(low) else low + 0.1 * (s - low)
    if high == strip.high and wanted >= high - 0.1 * (high - s):
        return s + 2 * (s - low) if math.isinf(high) else high - 0.1 * (high - s)
    if math.isinf(low) or math.isinf(high):
        far = 8 * max(abs(s - strip.low) if math.isinf(high) else abs(strip.high - s), 1e-300)
        return min(max(wanted, s - far), s + far)
    if low < wanted < high and wanted != s:
        return wanted
    return 0.5 * (low + high)


def nearest_bound(  # noqa: PLR0917
    loss: Cumulants,
    strip: Strip,
    epsilon: float,
    c: float,
    side: int,
    log_value: float,
    target: float,
) -> tuple[float, float]:
    """Return the least period B that makes the aliasing bound small, and the s that shows it.

    The bound E(s)/(e^{|s − c|B} − 1) on one side of c shall be e^−target relative to
    e^log_value; at a pole E is 1 or e^ε.
    """
    limit = strip.low if side < 0 else strip.high
    room = abs(limit - c)
    move = min(0.9 * math.sqrt(2 * target / loss.cumulants(c)[2]), 0.9 * room)
    best = (math.inf, 0.0)
    if math.isfinite(room):
        best = (max((epsilon if limit else 0.0) - log_value, 0.0) + target) / room, limit
    low, high = 0.0, math.inf  # size/move is least where its logarithms rise alike: steep is 1
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
