"""What histograms certify of δ(ε), ε(δ) and the trade-off function, at all points at once.

For the events {cell ≥ k} and {cell < k} of an ordered partition, or the ranked sets of a discrete
one (ranked by the training runs), each probability is bounded exactly (Clopper and Pearson) with
the significance divided by their number; the lower bound of E fails where the upper one of its
complement does, so that the two count once. With probability ≥ 1 − significance all bounds hold,
and with them δ(ε) ≥ P(E) − e^ε Q(E) for every event, every ε and both orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from verify.audit.learning.rule import Histogram, Rule
from verify.audit.statistics import binomial

Array: TypeAlias = NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class Curve:
    """Bounds of the probabilities of events."""

    events: tuple[tuple[Array, Array], tuple[Array, Array]]
    """For each order: lower bounds of P and upper bounds of Q of the events."""

    @staticmethod
    def of(rule: Rule, histogram: Histogram, significance: float) -> Curve:
        """Bound all events, each on the one side that each order of the pair needs."""
        rank = np.argsort(rule.marks, kind="stable") if rule.feature.discrete else slice(None)
        below = np.cumsum(histogram[:, rank], axis=1)[:, :-1]
        total = histogram.sum(axis=1, keepdims=True)
        sets = np.hstack([below, total - below])
        share = significance / max(1, sets.size)
        lower = binomial.least_rate(sets, total, share)
        upper = binomial.largest_rate(sets, total, share)
        return Curve(((lower[0], upper[1]), (lower[1], upper[0])))

    def delta(self, epsilon: float) -> float:
        """Return a lower bound of δ(ε), in the worse order of the pair."""
        factor = float(np.exp(epsilon))
        return max(float(np.max(p - factor * q, initial=0.0)) for p, q in self.events)

    def epsilon(self, delta: float) -> float:
        """Return a lower bound of ε(δ): the largest ε with δ̲(ε) > δ; 0 where there is none."""
        best = 0.0
        for p, q in self.events:
            excess = p - delta
            with np.errstate(divide="ignore"):
                found = np.log(np.maximum(excess, 0) / q)
            best = max(best, float(np.max(found[excess > 0], initial=0.0)))
        return best

    def tradeoff(self) -> list[tuple[float, float]]:
        """Return points (α, β) that the trade-off function of the pair lies on or below."""
        points = {(0.0, 1.0), (1.0, 0.0)}
        for p, q in self.events:
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
