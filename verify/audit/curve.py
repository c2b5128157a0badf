"""Estimates from histograms: δ(ε), ε(δ) and the trade-off function, each with a band.

With every cell's count under both laws bounded at once, everything that follows is simultaneous:
one event of probability ≥ 1 − significance makes the whole curve, at every ε and in both orders,
lie in its band.

- Below: for the events {cell ≥ k} and {cell < k} of an ordered partition, or the ranked sets of a
  discrete one (ranked by the training runs), δ(ε) ≥ P(E) − e^ε Q(E), each probability bounded
  exactly (Clopper and Pearson) with the significance divided by their number.
- Above: the partition itself is a mechanism after post-processing, with δ(ε) = Σ (p_i − e^ε q_i)⁺.
  It is at most Σ (p̄_i − e^ε q̲_i)⁺. For outputs that are the cells (integers, categories) that
  bounds the mechanism on this pair; in general it bounds what the histogram can see, no more.
- The plug-in Σ (p̂_i − e^ε q̂_i)⁺ is biased upwards, by at most half the sum of the standard
  deviations: E[(x + Z)⁺] − x⁺ ≤ E|Z|/2 for EZ = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from verify.audit import binomial
from verify.audit.rule import Histogram, Rule

Array: TypeAlias = NDArray[Any]


@final
@dataclass(frozen=True)
class DeltaEstimate:
    """δ at one ε, in the worse order of the pair."""

    epsilon: float
    lower: float
    plug_in: float
    bias: float
    """The plug-in exceeds what it estimates by at most this, on average."""
    upper: float
    """Of what the histogram can see."""


@final
@dataclass(frozen=True, eq=False)
class Curve:
    """Both histograms with their simultaneous bounds."""

    histogram: Histogram
    significance: float
    events: tuple[tuple[Array, Array], tuple[Array, Array]]
    """For each order: lower bounds of P and upper bounds of Q of the events."""
    cells: tuple[Array, Array]
    """Lower and upper bounds of the cells, shape (2, cells)."""

    @staticmethod
    def of(rule: Rule, histogram: Histogram, significance: float) -> Curve:
        """Bound everything at once: half of the significance for events, half for cells."""
        rank = np.argsort(rule.marks, kind="stable") if rule.feature.discrete else slice(None)
        ordered = histogram[:, rank]
        below = np.cumsum(ordered, axis=1)[:, :-1]
        total = histogram.sum(axis=1, keepdims=True)
        sets = np.hstack([below, total - below])
        # each probability is bounded on the one side that each order of the pair needs
        share = significance / 2 / max(1, 2 * sets.size)
        lower, upper = _bounds(sets, total, share)
        cells = _bounds(histogram, total, significance / 4 / max(1, histogram.size))
        return Curve(
            histogram,
            significance,
            ((lower[0], upper[1]), (lower[1], upper[0])),
            cells,
        )

    def delta(self, epsilon: float) -> DeltaEstimate:
        """Return δ at ε."""
        factor = float(np.exp(epsilon))
        below = max(float(np.max(p - factor * q, initial=0.0)) for p, q in self.events)
        low, high = self.cells
        total = self.histogram.sum(axis=1, keepdims=True)
        shares = self.histogram / np.maximum(total, 1)
        noise = shares * (1 - shares) / np.maximum(total, 1)
        plug_in, bias, above = 0.0, 0.0, 0.0
        for i, j in ((0, 1), (1, 0)):
            value = float(np.maximum(shares[i] - factor * shares[j], 0).sum())
            if value >= plug_in:
                plug_in = value
                bias = 0.5 * float(np.sqrt(noise[i] + factor**2 * noise[j]).sum())
            above = max(above, float(np.maximum(high[i] - factor * low[j], 0).sum()))
        return DeltaEstimate(epsilon, below, plug_in, bias, min(1.0, above))

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


def _bounds(counts: Array, total: Array, significance: float) -> tuple[Array, Array]:
    """Return exact one-sided bounds of probabilities, each at the significance."""
    return (
        binomial.least_rate(counts, total, significance),
        binomial.largest_rate(counts, total, significance),
    )
