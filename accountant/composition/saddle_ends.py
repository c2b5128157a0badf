"""How fast the integrands of moments fall outside an interval, seen as chords.

With f the integrand φχ|w|^s e^{τ arg w} of `saddle_bounds` on a contour of constant height, at
angles θ = μy ≤ π/2, a rate r at the right end b says f(x) ≤ f(b) e^{−r(x − b)} for all x ≥ b: it is
a lower bound of the slopes of the chords of −ln f. Slopes are bounded on cells and integrated up to
where they are steep enough for good. In floats, with a slack.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

LEAST_RATE = 1.0
GUARD_WIDTH = 2.0**-12
_CHORDS = 256
_BEFORE = 12.0
_SLACK = 1 - 1e-9


class Law(Protocol):
    """What is asked of a mixture (`saddle_bounds.Mixture`)."""

    @property
    def mu(self) -> float:
        """The shift."""

    @property
    def cut(self) -> float:
        """Where the normal law is cut off."""

    @property
    def width(self) -> float:
        """How smoothly."""

    @property
    def guard(self) -> float:
        """Where it is cut off sharply."""

    def share(self, x: Floats) -> Floats:
        """Return p(x) = q e^l/w."""


def chord_right(law: Law, high: float, s: float, tau: float) -> float:
    """Return a lower bound of −(ln f(x) − ln f(high))/(x − high) for all x > high.

    In a cell the fall is least at its left end, and the rise at its right end.
    """
    sharp = law.width**-2
    pull = s * law.mu + 0.5 * tau * law.mu + 2 * LEAST_RATE
    last = max((pull + sharp * law.cut) / (1 + sharp), law.cut, high) + 1.0
    if math.isfinite(law.guard):
        guarded = (pull + law.guard * GUARD_WIDTH**-2) / (1 + GUARD_WIDTH**-2)
        last = min(last, max(guarded, law.guard, high) + 1.0)
    x = high + (last - high) * np.linspace(0.0, 1.0, _CHORDS + 1) ** 2
    size = np.minimum(1.0, 2 * law.share(x[1:]))
    rise = s * law.mu * size + tau * law.mu * np.minimum(0.5, size)
    fall = x[:-1] + sharp * np.maximum(x[:-1] - law.cut, 0.0)
    if math.isfinite(law.guard):
        fall += np.maximum(x[:-1] - law.guard, 0.0) * GUARD_WIDTH**-2
    chords = np.cumsum((fall - rise) * np.diff(x)) / (x[1:] - high)
    return min(float(chords.min()), 2 * LEAST_RATE) * _SLACK


def chord_left(law: Law, low: float, s: float, tau: float) -> float:
    """Return a lower bound of (ln f(low) − ln f(x))/(low − x) for all x < low, s > 0 and low > 0.

    At an angle of at most π/2, d ln|w|/dx is at least μ min(v²/(1 + v²), v/(1 + v)) with
    v = q e^l/(1 − q), and |d arg w/dx| at most 2μp(1 − p). Far below the cuts χ hardly falls. −∞
    where nothing is known.
    """
    if not 0 < low < min(law.cut - _BEFORE * law.width, law.guard - _BEFORE * GUARD_WIDTH):
        return -math.inf
    x = low - (low + 2 * LEAST_RATE) * np.linspace(0.0, 1.0, _CHORDS + 1) ** 2
    p = law.share(x)
    pull = s * law.mu * np.minimum(p * p / (p * p + (1 - p) ** 2), p)[1:]
    turned = 2 * law.mu * max(-tau, 0.0)
    lost = turned * np.minimum(np.minimum(p[:-1], 1 - p[1:]), 0.25)
    chords = np.cumsum((pull - x[:-1] - lost) * -np.diff(x)) / (low - x[1:])
    beyond = 2 * LEAST_RATE - turned * min(float(p[-1]), 0.25)
    return min(float(chords.min()), beyond) * _SLACK
