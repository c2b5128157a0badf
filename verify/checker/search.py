"""Choosing the line of an integral in floats: nothing here proves anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from verify.checker.moments import Factor

Factors: TypeAlias = Sequence[tuple[Factor, int]]
"""Losses, and how often each is released."""

LN10 = math.log(10)
STRETCHES = (1.0, 1.4, 2.0, 3.0, 4.5)
"""Lines to try, in units of the saddle."""
_SHARES = (0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.5, 5.0, 20.0)
_LEAST, _MOST = math.log(1e-8), math.log(1e5)


def log_moment(factors: Factors, line: float) -> float:
    """Estimate ln M(c)."""
    return sum(count * factor.estimate(line) for factor, count in factors)


def saddle(factors: Factors, eps: float) -> tuple[float, float]:
    """Return c > 0 with the least ln M(c) − cε − ln(c(c + 1)), and an estimate of ln H(ε)."""

    def height(log_c: float) -> float:
        c = math.exp(log_c)
        return log_moment(factors, c) - c * eps - math.log(c * (c + 1))

    low = high = _LEAST
    while high < _MOST and height(high + 1) < height(high):
        low, high = high, high + 1
    low, high = low - 1, high + 1
    for _ in range(24):
        one, two = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, two) if height(one) < height(two) else (one, high)
    c, side = math.exp(low), 0.01
    bend = (height(low + side) - 2 * height(low) + height(low - side)) / (side * c) ** 2
    return c, height(low) - math.log(2 * math.pi * max(bend, 1e-12)) / 2


def period(factors: Factors, eps: float, c: float, wanted: float) -> tuple[float, float]:
    """Return B with aliases below e^wanted, and the s of their Chernoff bound."""
    points = [c * (1 + share) for share in _SHARES]
    ahead = [(log_moment(factors, s) - s * eps - wanted) / (s - c) for s in points]
    needed, beyond = min(zip(ahead, points, strict=True))
    return max(needed, -wanted / c, 1e-3), beyond
