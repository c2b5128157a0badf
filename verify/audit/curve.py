"""Simultaneous bounds of δ(ε), ε(δ) and the trade-off function from counts in ordered cells.

*Lower bounds.* The probabilities of the events {cell ≥ k} and {cell < k} are bounded exactly
(Clopper and Pearson), each with the significance divided by their number. The lower bound of E
fails exactly if the upper bound of its complement does, so that the two count once. With
probability ≥ 1 − significance all bounds hold, and then δ(ε) ≥ P(E) − e^ε Q(E) for every event,
every ε and both orders.

*Upper bounds* are of the binned mechanism, whose output is the cell. Binning processes the output
and so can only lower δ(ε): they bound the mechanism itself only if its outputs are the cells. Its δ
is H = Σ (p_i − e^ε q_i)⁺, a convex function, so that the same sum of frequencies is H or more on
average (Jensen). One run on P moves it by 1/n at most and one on Q by e^ε/m, so H exceeds it by t
with probability at most exp(−2t²/(1/n + e^{2ε}/m)) (McDiarmid 1989). For large ε the sum over cells
of exact bounds is smaller. H is convex in e^ε: between two points of a grid the chord is above it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.verifier.audit import exact_test
from dpassay.verifier.audit.exact_test import mu_lower_bound

Array: TypeAlias = NDArray[Any]

EPSILONS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""The ε at which δ(ε) is reported and upper bounds are computed."""
_LARGEST = 700.0
"""Largest ε whose e^ε is a double."""
DELTAS = (0.0, 1e-5, 1e-3, 1e-2, 0.1)
"""The δ at which ε(δ) is reported."""


@final
@dataclass(frozen=True, eq=False)
class Curve:
    """Bounds from counts of both sides in cells, of which the last favours the first side most."""

    counts: Array
    """Shape (2, cells)."""
    below: float
    """Significance of all lower bounds together."""
    above: float
    """Significance of all upper bounds together."""

    def delta(self, epsilon: float) -> float:
        """Return a lower bound of δ(ε), in the worse order of the pair."""
        factor = math.exp(min(epsilon, _LARGEST))  # beyond, every bound is 0
        return max(float(np.max(p - factor * q, initial=0.0)) for p, q in self._bounds)

    def delta_estimate(self, epsilon: float) -> float:
        """Return P̂(E) − e^ε Q̂(E) of the event with the largest lower bound, at least 0."""
        factor = math.exp(min(epsilon, _LARGEST))
        found = []
        for (p, q), (low, high) in zip(self._rates, self._bounds, strict=True):
            place = int(np.argmax(low - factor * high))
            found.append((low[place] - factor * high[place], p[place] - factor * q[place]))
        return max(0.0, float(max(found)[1]))

    def delta_upper(self, epsilon: float) -> float:
        """Return an upper bound of δ(ε) of the binned mechanism."""
        factors = np.exp(EPSILONS)
        return float(np.interp(math.exp(min(epsilon, _LARGEST)), factors, self._uppers))

    def epsilon(self, delta: float) -> float:
        """Return a lower bound of ε(δ): the largest ε with δ̲(ε) > δ; 0 where there is none."""
        best = 0.0
        for p, q in self._bounds:
            excess = p - delta
            with np.errstate(divide="ignore"):
                found = np.log(np.maximum(excess, 0) / q)
            best = max(best, float(np.max(found[excess > 0], initial=0.0)))
        return best

    def epsilon_estimate(self, delta: float) -> float | None:
        """Return ln((P̂(E) − δ)/Q̂(E)) of the event with the largest lower bound, if there is one."""
        best, found = 0.0, None
        for (p, q), (low, high) in zip(self._rates, self._bounds, strict=True):
            with np.errstate(divide="ignore"):
                bounds = np.log(np.maximum(low - delta, 0) / high)
                place = int(np.argmax(bounds))
                if bounds[place] > best:
                    best = float(bounds[place])
                    found = float(np.log((p[place] - delta) / q[place]))
        return found

    def epsilon_upper(self, delta: float) -> float | None:
        """Return an ε at which the binned mechanism is (ε, δ)-DP; None where the grid has none."""
        uppers = self._uppers
        place = int(np.argmax(uppers <= delta))
        if uppers[place] > delta:
            return None
        if place == 0:
            return 0.0
        low, high = np.exp(EPSILONS[place - 1 : place + 1])
        share = (uppers[place - 1] - delta) / (uppers[place - 1] - uppers[place])
        return math.log(low + share * (high - low)) * (1 + 1e-12)

    def mu(self) -> float:
        """Return a lower bound of μ from the reported points of δ̲."""
        return max(mu_lower_bound(epsilon, self.delta(epsilon)) for epsilon in EPSILONS)

    def tradeoff(self) -> list[tuple[float, float]]:
        """Return points (α, β) that the trade-off function of the pair lies on or below."""
        return _tradeoff(self._bounds)

    def tradeoff_estimate(self) -> list[tuple[float, float]]:
        """Return points (α, β) of the trade-off function of the frequencies."""
        return _tradeoff(self._rates)

    @property
    def _rates(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Return for each order the frequencies of the events."""
        p, q = self._sets / self._totals
        return (p, q), (q, p)

    @property
    def _totals(self) -> Array:
        return np.asarray(self.counts.sum(axis=1, keepdims=True))

    @property
    def _sets(self) -> Array:
        """Return the runs of both sides in every event."""
        below = np.cumsum(self.counts, axis=1)[:, :-1]
        return np.hstack([below, self._totals - below])

    @cached_property
    def _bounds(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Return for each order lower bounds of P and upper bounds of Q of the events."""
        share = self.below / max(1, self._sets.size)
        lower = exact_test.least_rate(self._sets, self._totals, share)
        upper = exact_test.largest_rate(self._sets, self._totals, share)
        return (lower[0], upper[1]), (lower[1], upper[0])

    @cached_property
    def _uppers(self) -> Array:
        """Return upper bounds at the points of the grid, which do not increase."""
        cells = self.above / 2 / (2 * self.counts.size)
        least = exact_test.least_rate(self.counts, self._totals, cells)
        most = exact_test.largest_rate(self.counts, self._totals, cells)
        rates = self.counts / self._totals
        logarithm = math.log(2 * 2 * len(EPSILONS) / self.above)
        found = np.zeros(len(EPSILONS))
        for first, second in ((0, 1), (1, 0)):
            for place, factor in enumerate(np.exp(EPSILONS)):
                seen = float(np.maximum(rates[first] - factor * rates[second], 0).sum())
                spread = 1 / self._totals[first, 0] + factor**2 / self._totals[second, 0]
                summed = float(np.maximum(most[first] - factor * least[second], 0).sum())
                bound = min(1.0, seen + math.sqrt(logarithm * spread / 2), summed)
                found[place] = max(found[place], bound * (1 + 1e-9))
        return np.minimum.accumulate(np.minimum(found, 1.0))


def _tradeoff(orders: Sequence[tuple[Array, Array]]) -> list[tuple[float, float]]:
    points = {(0.0, 1.0), (1.0, 0.0)}
    for p, q in orders:
        points |= {(float(a), float(1 - b)) for a, b in zip(q, p, strict=True)}
    return lower_hull(sorted(points))


def lower_hull(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the corners of the lower convex hull of points sorted by their abscissa."""
    hull: list[tuple[float, float]] = []
    for x, y in points:
        while len(hull) > 1:
            (x1, y1), (x2, y2) = hull[-2], hull[-1]
            if (x2 - x1) * (y - y1) <= (y2 - y1) * (x - x1):
                hull.pop()
            else:
                break
        if not hull or y < hull[-1][1]:
            hull.append((x, y))
    return hull
