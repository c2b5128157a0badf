r"""The exact test of H₀: p ≤ e^ε q + δ from independent a ~ Bin(n, p) and b ~ Bin(m, q).

Statistic. With c = e^ε, u = a − nδ, v = c(n/m) b the score u − v has mean ≤ 0 under H₀. On the
boundary p = cq + δ its variance is V(s) = nδ(1 − δ) + (1 + cn/m − 2δ)s − (1/n + 1/m)s² at
s = n c q.
The statistic is T = (u − v)/√V((u + v)/2), whose law hardly depends on q. The region {T ≥ t} is
{a ≥ k(b)}; on its edge d = u − v solves the quadratic d² = t² V(v + d/2). V is concave and
non-negative for 0 ≤ s ≤ n(1 − δ), so V′(s) ≤ V(s)/s and T grows with u; for ε ≥ 0 also
V + (u − v)V′/4 ≥ 0 there, so T falls as v grows: k does not decrease.

Nuisance. F(q) = P(a ≥ k(b)) is maximised over the boundary by cells of q. On [q₁, q₂] the counts
can be coupled so that a only grows and b only falls: F is at most its value with p = c q₂ + δ and
b ~ Bin(m, q₁).
No grid point and no derivative is trusted, so that the p-value is an upper bound of the supremum,
some percent above it. It runs over the exact confidence interval of q from b alone, of confidence
1 − `spared`, and `spared` is added (Berger and Boos, "P values maximized over a confidence set for
the nuisance parameter", 1994). Lowering p lowers the probability: the interior of H₀ is covered.

Tails. Small counts: tables of the binomial laws. Large ones: for r(k) = ±√(2n KL(k/n ‖ p)) with the
sign of k/n − p, Φ(r(k)) ≤ P(Bin(n, p) ≤ k) ≤ Φ(r(k + 1)) (Zubkov and Serov, "A complete proof of
universal inequalities for the distribution function of the binomial law", 2013, Theorem 1): bounds
that are one count apart, at any n.
"""

from __future__ import annotations

import functools
import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpassay.verifier.audit.statistics import binomial

Array: TypeAlias = NDArray[Any]
Quadruple: TypeAlias = tuple[int, int, int, int]
"""a of n, and b of m."""

_REACH = 6.5
"""How many standard deviations are summed finely; what is beyond is bounded."""
_WIDEST_TABLE = 2000
"""Counts of both sides that are tabulated; beyond, bounds of the tails are faster."""
_MOST_Q = 144
"""Cells of the nuisance: with fewer the p-value is larger, with more it takes longer."""
_LEAST_WIDTH = 0.04
"""No cell of q is narrower than this many standard deviations of b."""
_MOST_B = 240
"""Cells of b in a sum by parts: with fewer the p-value is larger, with more it takes longer."""


def p_value(counts: Quadruple, epsilon: float, delta: float, spared: float) -> float:
    """Return an upper bound of the p-value of H₀ (see the module), at least `spared`."""
    _, n, b, m = counts
    factor = math.exp(epsilon)
    t = statistic(counts, factor, delta)
    if t <= 0:
        return 1.0
    low, high = _interval(b, m, spared)
    top = (1 - delta) / factor
    if low >= top:  # every p is allowed there
        return 1.0
    cuts = _cells(low, min(high, top), m)
    q, p = cuts[:-1], np.minimum(factor * cuts[1:] + delta, 1.0)
    region = (t, n, m, factor, delta)
    windows = _window(q[0], q[-1], m), _window(p[0], p[-1], n)
    width = sum(stop - start for start, stop in windows)
    tail = (_by_tables if width < _WIDEST_TABLE else _by_bounds)(region, p, q)
    return min(1.0, (float(tail.max()) + spared) * (1 + binomial.ROUNDING))


def statistic(counts: Quadruple, factor: float, delta: float) -> float:
    """Return T, 0 where the score is not positive."""
    a, n, b, m = counts
    u, v = a - n * delta, factor * n / m * b
    c0, c1, c2 = _variance(n, m, factor, delta)
    s = (u + v) / 2
    spread = c0 + s * (c1 + s * c2)
    return (u - v) / math.sqrt(spread) if u > v and spread > 0 else 0.0


_Region: TypeAlias = "tuple[float, int, int, float, float]"


def _variance(n: int, m: int, factor: float, delta: float) -> tuple[float, float, float]:
    """Return the coefficients of V(s)."""
    return n * delta * (1 - delta), 1 + factor * n / m - 2 * delta, -(1 / n + 1 / m)


def _edge(region: _Region, b: Array) -> Array:
    """Return k(b); n + 1 where no a is in the region."""
    t, n, m, factor, delta = region
    c0, c1, c2 = _variance(n, m, factor, delta)
    v = factor * n / m * b
    half = t * t * (c1 / 2 + c2 * v) / 2
    lead = 1 - t * t * c2 / 4
    spread = c0 + v * (c1 + v * c2)
    root = np.sqrt(np.maximum(half * half + lead * t * t * spread, 0.0))
    least = n * delta + v + (half + root) / lead
    # The observed counts lie on the edge: rounding must not move them out of the region.
    k: Array = np.ceil(least - 1e-9 * (1 + least))
    return np.where((v >= n * (1 - delta)) | (k > n), n + 1.0, k)  # T ≤ 0 on the left


def _by_tables(region: _Region, p: Array, q: Array) -> Array:
    """Sum over every b in reach, with the laws tabulated."""
    _, n, m, _, _ = region
    bs = np.arange(*_window(q[0], q[-1], m))
    k = _edge(region, bs)
    first, last = _window(p[0], p[-1], n)
    ks = np.arange(first, last)
    survival = np.cumsum(binomial.masses(ks, n, p)[:, ::-1], axis=1)[:, ::-1]
    beyond = binomial.at_least(last, n, p)
    survival = np.hstack([survival + beyond[:, np.newaxis], np.zeros((len(p), 1))])
    place = np.clip(k - first, 0, last - first).astype(np.intp)
    tail = np.where(k < first, 1.0, survival[:, place])
    tail = np.where((k >= last) & (k <= n), beyond[:, np.newaxis], tail)
    inside = np.sum(binomial.masses(bs, m, q) * tail, axis=1)
    left = binomial.at_most(bs[0] - 1, m, q)
    right = binomial.at_least(bs[-1] + 1, m, q) * tail[:, -1]
    total: Array = inside + left + right
    return total


def _window(low: float, high: float, n: int) -> tuple[int, int]:
    """Return the counts within reach under every probability of [low, high]."""
    start = n * low - _REACH * math.sqrt(n * low * (1 - low)) - 4
    stop = n * high + _REACH * math.sqrt(n * high * (1 - high)) + 14
    return max(0, math.floor(start)), min(n + 1, math.ceil(stop))


def _by_bounds(region: _Region, p: Array, q: Array) -> Array:
    """Sum over cells of b by parts, with the tails bounded.

    With b_0 = 0 < b_1 < … and tails t_i ≥ P(a ≥ k(b_i)) that do not grow, the probability is at
    most Σ P(b < b_{i+1}) (t_i − t_{i+1}), the last factor being 1.
    """
    _, n, m, _, _ = region
    centre, spread = (m * q)[:, np.newaxis], np.sqrt(m * q * (1 - q))[:, np.newaxis]
    steps = np.linspace(-_REACH, _REACH, _MOST_B)
    cuts = np.clip(np.floor(centre + spread * steps), 0, m)
    cuts[:, 0] = 0
    tail = np.minimum.accumulate(_survival(_edge(region, cuts), n, p[:, np.newaxis]), axis=1)
    below = np.ones_like(cuts)
    below[:, :-1] = _phi(cuts[:, 1:], m, q[:, np.newaxis])
    drop = -np.diff(tail, axis=1, append=0.0)
    total: Array = np.sum(below * drop, axis=1)
    return total


def _survival(k: Array, n: int, p: Array) -> Array:
    """Return Φ(−r(k − 1)) ≥ P(Bin(n, p) ≥ k)."""
    inside = special.ndtr(-_root(np.clip(k - 1, 0, n), n, p))
    return np.where(k > n, 0.0, np.where(k <= 1, 1.0, inside))


def _phi(k: Array, n: int, p: Array) -> Array:
    """Return Φ(r(k)) ≥ P(Bin(n, p) < k)."""
    bound: Array = np.where(k >= n, 1.0, special.ndtr(_root(k, n, p)))
    return bound


def _root(k: Array, n: int, p: Array) -> Array:
    """Return ±√(2n KL(k/n ‖ p)), with the sign of k/n − p."""
    exponent = 2 * binomial.divergence(k, n, p)
    root: Array = np.copysign(np.sqrt(np.maximum(exponent, 0.0)), k - n * p)
    return np.where(np.isnan(root), np.inf, root)


@functools.lru_cache(maxsize=64)
def _interval(b: int, m: int, spared: float) -> tuple[float, float]:
    """Return the exact interval of q of confidence 1 − spared (Clopper and Pearson)."""
    low = float(binomial.least_rate(b, m, spared / 2))
    return low, float(binomial.largest_rate(b, m, spared / 2))


def _cells(low: float, high: float, m: int) -> Array:
    """Cut [low, high] by equal steps of arcsin √q, which are steps of equal information."""
    first, last = math.asin(math.sqrt(low)), math.asin(math.sqrt(high))
    count = min(_MOST_Q, 1 + math.ceil((last - first) * 2 * math.sqrt(m) / _LEAST_WIDTH))
    cuts: Array = np.sin(np.linspace(first, last, count + 1)) ** 2
    cuts[0], cuts[-1] = min(low, cuts[0]), max(high, cuts[-1])
    return cuts
