r"""Counts of an event, the exact p-value of a guarantee, and the exact bounds that it gives.

Two designs, `sides` and `guesses`; no limit theorem enters.

*Sides.* The exact test of H₀: p ≤ e^ε q + δ from independent a ~ Bin(n, p) and b ~ Bin(m, q).

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

*Guesses.* The exact test of (ε, δ)-DP from right and wrong guesses, both orders of a pair at once.

Each of N runs is made on one of two datasets that a fair coin chooses. An event E is a guess of the
first dataset, a disjoint event F one of the second. With P and Q the laws of the output, a guess is
right with probability P(E)/2 + Q(F)/2 and wrong with probability w = Q(E)/2 + P(F)/2, and
(ε, δ)-DP in both orders says

    P(right) ≤ e^ε w + δ.

Given the number G of guesses, the right ones are Bin(G, π) with

    π ≤ (e^ε w + δ)/((e^ε + 1) w + δ),

which for δ = 0 is e^ε/(1 + e^ε) whatever w is: the nuisance is gone. For δ > 0 the bound falls as w
grows, and the rate g of guesses is at most (e^ε + 1)w + δ, so w ≥ (g − δ)/(e^ε + 1); g is bounded
from below from G with confidence 1 − `spared`, and `spared` is added to the p-value (Berger and
Boos 1994). Where both orders leak alike the counts of both are used at no charge.

*Tails.* Binomial probabilities that keep their relative accuracy up to 10¹⁵ runs.

Masses are scipy's; tails are the regularised incomplete beta function. (The difference of ln n!,
ln k! and ln (n − k)! is off by a few thousandths at n = 10¹².) Rates: the ends of the exact
intervals of Clopper and Pearson. The library's inverse of the beta function is only a first guess
(at 10¹² runs it can be wrong by a factor of ten); what is returned has been put into the tail.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import Enum
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from dpassay.accountant.errors import expected
from dpassay.accountant.numbers.solve import halved

Array: TypeAlias = NDArray[Any]

MOST_RUNS = 10**15
"""Counts up to here are exact in floating point, with room for products."""
ROUNDING = 1e-6
"""Relative allowance for rounding in masses, tails and the probabilities put into them.

A relative error of 2⁻⁵³ in p is one of z√n 2⁻⁵³ in the tail z standard deviations out: 4e-7 for
z = 38, where tails leave the range of floats, and n = 10¹⁵. (Against 50 digits: below 2e-7 there,
and below 3e-9 up to 10¹² runs.)
"""
_HALVINGS = 80
"""Halvings of the whole range, in a logarithmic scale, that find a rate."""
_NEARLY = 1e-9
"""Relative step by which the library's guess is moved to the safe side, where it usually holds."""
_TIGHT = 0.99
"""A guess is kept if its tail is at least this share of the level, so that bounds lose 1 %."""


class Design(Enum):
    """How two counts arise."""

    SIDES = "sides"
    """Independent binomials: runs on one dataset and runs on the other, in one event."""
    GUESSES = "guesses"
    """Right and wrong guesses among runs on datasets that fair coins chose."""


LEAST_P_VALUE = {Design.SIDES: 2e-10, Design.GUESSES: 1e-280}
"""The least p-value that is reported. Sums for two sides end at 6.5 standard deviations, and the
rest is below 1e-10; tails of guesses end where doubles underflow."""


@final
@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted: `hits` of `runs` for a violation, `misses` of `other_runs` against it."""

    hits: int
    runs: int
    misses: int
    other_runs: int
    design: Design = Design.SIDES

    def __post_init__(self) -> None:
        if min(self.runs, self.other_runs) < 1:
            raise expected("runs", min(self.runs, self.other_runs), "≥ 1")
        if max(self.runs, self.other_runs) > MOST_RUNS:
            raise expected(
                "runs",
                max(self.runs, self.other_runs),
                f"≤ {MOST_RUNS:.0e}",
                "Beyond, counts are not exact in floating point.",
            )
        if not 0 <= self.hits <= self.runs:
            raise expected("hits", self.hits, f"in [0, {self.runs}]")
        if not 0 <= self.misses <= self.other_runs:
            raise expected("misses", self.misses, f"in [0, {self.other_runs}]")
        if self.design is Design.GUESSES and self.hits + self.misses > self.runs:
            raise expected("hits + misses", self.hits + self.misses, f"≤ {self.runs} runs")

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "design": self.design.value}


def masses(k: Array, n: int, p: Array) -> Array:
    """Return P(Bin(n, p) = k), one row per p."""
    return np.asarray(stats.binom.pmf(k, n, np.asarray(p)[:, np.newaxis]))


def divergence(k: Array, n: int, p: Array) -> Array:
    """Return n KL(k/n ‖ p), the exponent of the probability of k."""
    shift = k - n * p
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = special.xlog1py(k, shift / (n * p)) + special.xlog1py(
            n - k, -shift / (n * (1 - p))
        )
    return found


def at_least(k: ArrayLike, n: ArrayLike, p: Array | float) -> Array:
    """Return P(Bin(n, p) ≥ k)."""
    k, n = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    inside = (k >= 1) & (k <= n)
    a = np.where(inside, k, 1.0)
    found: Array = special.betainc(a, np.where(inside, n - a + 1, 1.0), p)
    return np.where(inside, found, np.where(k < 1, 1.0, 0.0))


def at_most(k: ArrayLike, n: ArrayLike, p: Array | float) -> Array:
    """Return P(Bin(n, p) ≤ k)."""
    k, n = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    inside = (k >= 0) & (k <= n - 1)
    a = np.where(inside, k + 1, 1.0)
    found: Array = special.betaincc(a, np.where(inside, n - a + 1, 1.0), p)
    return np.where(inside, found, np.where(k < 0, 0.0, 1.0))


def least_rate(hits: ArrayLike, runs: ArrayLike, level: float) -> Array:
    """Return rates at which P(Bin(runs, rate) ≥ hits) ≤ level, close to the largest ones."""
    k, n = (np.asarray(entry, dtype=np.float64) for entry in (hits, runs))
    k, n = np.broadcast_arrays(k, n)
    some = np.maximum(k, 1.0)
    guess = special.betaincinv(some, n - some + 1, level) * (1 - _NEARLY)
    rate = _halved_to_level(
        lambda x: at_least(some, n, x), guess, np.zeros(k.shape), some / n, level
    )
    return np.where(k > 0, rate, 0.0)


def largest_rate(hits: ArrayLike, runs: ArrayLike, level: float) -> Array:
    """Return rates at which P(Bin(runs, rate) ≤ hits) ≤ level, close to the smallest ones."""
    k, n = (np.asarray(entry, dtype=np.float64) for entry in (hits, runs))
    k, n = np.broadcast_arrays(k, n)
    some = np.minimum(k, n - 1)
    guess = np.minimum(special.betainccinv(some + 1, n - some, level) * (1 + _NEARLY), 1.0)
    rate = _halved_to_level(lambda x: at_most(some, n, x), guess, np.ones(k.shape), some / n, level)
    return np.where(k < n, rate, 1.0)


def _halved_to_level(
    tail: Callable[[Array], Array], guess: Array, safe: Array, bold: Array, level: float
) -> Array:
    """Return the guesses that are just on the safe side of the level; find the others by halving.

    The tail is at most the level at `safe`, and is monotone from there to `bold`.
    """
    found = tail(guess)
    good = (found <= level) & (found >= _TIGHT * level)
    if good.all():
        return guess
    low, high = safe.astype(np.float64), bold.astype(np.float64)
    for _ in range(_HALVINGS):
        middle = np.where(np.minimum(low, high) > 0, np.sqrt(low * high), (low + high) / 2)
        inside = tail(middle) <= level
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.where(good, guess, low)


_LEAST = 1e-300
"""Replaces a tail that underflows."""


def p_value_of_guesses(counts: Counts, epsilon: float, delta: float, spared: float) -> float:
    """Return the exact p-value (with `spared` added where δ > 0).

    The tail is that of the wrong guesses: 1 − π keeps its relative accuracy where π is near 1.
    """
    wrong, guesses = counts.misses, counts.hits + counts.misses
    chance = least_chance_of_error(guesses, counts.runs, epsilon, delta, spared)
    if wrong >= guesses * chance:
        return 1.0
    tail = max(float(at_most(wrong, guesses, chance)), _LEAST)
    return min(1.0, (tail + (spared if delta > 0 else 0.0)) * (1 + ROUNDING))


def least_chance_of_error(
    guesses: int, runs: int, epsilon: float, delta: float, spared: float
) -> float:
    """Return the lower bound of 1 − π."""
    pure = math.exp(-epsilon) / (1 + math.exp(-epsilon))
    if delta == 0:
        return pure
    if guesses == 0:
        return 0.0
    least = float(least_rate(guesses, runs, spared))
    return pure * (1 - delta / least) if least > delta else 0.0


_REACH = 6.5
"""Standard deviations that are summed finely; the rest is bounded."""
_WIDEST_TABLE = 2000
"""Most counts of both sides that are tabulated: for more, bounds of the tails are faster."""
_MOST_Q = 144
"""Cells of the nuisance parameter: fewer enlarge the p-value, more take longer."""
_LEAST_WIDTH = 0.04
"""Least width of a cell of q, in standard deviations of b."""
_MOST_B = 240
"""Cells of b in a sum by parts: fewer enlarge the p-value, more take longer."""


def p_value_of_sides(counts: Counts, epsilon: float, delta: float, spared: float) -> float:
    """Return an upper bound of the p-value of H₀ (see the module), at least `spared`."""
    n, b, m = counts.runs, counts.misses, counts.other_runs
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
    return min(1.0, (float(tail.max()) + spared) * (1 + ROUNDING))


def statistic(counts: Counts, factor: float, delta: float) -> float:
    """Return T, 0 where the score is not positive."""
    n, m = counts.runs, counts.other_runs
    u, v = counts.hits - n * delta, factor * n / m * counts.misses
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
    survival = np.cumsum(masses(ks, n, p)[:, ::-1], axis=1)[:, ::-1]
    beyond = at_least(last, n, p)
    survival = np.hstack([survival + beyond[:, np.newaxis], np.zeros((len(p), 1))])
    place = np.clip(k - first, 0, last - first).astype(np.intp)
    tail = np.where(k < first, 1.0, survival[:, place])
    tail = np.where((k >= last) & (k <= n), beyond[:, np.newaxis], tail)
    inside = np.sum(masses(bs, m, q) * tail, axis=1)
    left = at_most(bs[0] - 1, m, q)
    right = at_least(bs[-1] + 1, m, q) * tail[:, -1]
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
    exponent = 2 * divergence(k, n, p)
    root: Array = np.copysign(np.sqrt(np.maximum(exponent, 0.0)), k - n * p)
    return np.where(np.isnan(root), np.inf, root)


@functools.lru_cache(maxsize=64)
def _interval(b: int, m: int, spared: float) -> tuple[float, float]:
    """Return the exact interval of q of confidence 1 − spared (Clopper and Pearson)."""
    low = float(least_rate(b, m, spared / 2))
    return low, float(largest_rate(b, m, spared / 2))


def _cells(low: float, high: float, m: int) -> Array:
    """Cut [low, high] by equal steps of arcsin √q, which are steps of equal information."""
    first, last = math.asin(math.sqrt(low)), math.asin(math.sqrt(high))
    count = min(_MOST_Q, 1 + math.ceil((last - first) * 2 * math.sqrt(m) / _LEAST_WIDTH))
    cuts: Array = np.sin(np.linspace(first, last, count + 1)) ** 2
    cuts[0], cuts[-1] = min(low, cuts[0]), max(high, cuts[-1])
    return cuts


_STEPS = 60
"""Most corrections of a level: 3 to 6 are usual."""
LARGEST_MU = 60.0
"""Largest bound of μ: no run can distinguish such a mechanism from one without privacy."""
_SLACK = 1e-10
"""Relative, and more than the rounding error of a normal distribution function."""
SPARED = 0.01
"""The share of the significance that the nuisance parameter's interval may cost."""


def p_value(counts: Counts, epsilon: float, delta: float, *, spared: float = 1e-4) -> float:
    """Return an upper bound of the exact p-value of P(E) ≤ e^ε Q(E) + δ.

    Parameters
    ----------
    counts
        What was counted on runs that had no part in choosing the event.
    epsilon, delta
        The guarantee: ε ≥ 0, 0 ≤ δ < 1.
    spared
        What the interval of the nuisance parameter may cost: fixed before the counts are seen,
        small against the level of the test.
    """
    if not 0 <= delta < 1:
        raise expected("delta", delta, "in [0, 1)")
    if epsilon < 0:
        raise expected("epsilon", epsilon, "≥ 0")
    if epsilon > math.log(counts.other_runs) + 40:  # no number of runs tells it from infinity
        return 1.0
    of = p_value_of_guesses if counts.design is Design.GUESSES else p_value_of_sides
    return of(counts, epsilon, delta, spared)


def nested_p_value(counts: Counts, epsilon: float, delta: float, level: float) -> float:
    """Return a p-value for a test at a level, which may be below what that test spares.

    Let F_s be the supremum over the nuisance parameter's interval of confidence 1 − s. The test at
    t < `level` rejects where F_{ct} + ct ≤ t, c = `SPARED`; at t ≥ `level` where F_s + s ≤ t for
    s = c `level`. F_s falls as s grows, so that what is rejected at t is rejected at every larger
    t: any t that rejects is a p-value. If t does not, v = F_{ct} + ct > t, then (1 + 2c)v does:
    F at most v − ct there, and ct + c(1 + 2c)v is less than 2cv more.
    """
    found = p_value(counts, epsilon, delta, spared=SPARED * level)
    if found > level or (counts.design is Design.GUESSES and delta == 0):
        return found
    least, t = LEAST_P_VALUE[counts.design], level
    while t > least:
        smaller = max(least, (found - SPARED * t) / (1 - SPARED))
        found = p_value(counts, epsilon, delta, spared=SPARED * smaller)
        if found > smaller:
            return min(t, found * (1 + 2 * SPARED))
        if smaller > t / 2:
            return smaller
        t = smaller
    return t


def epsilon_lower_bound(counts: Counts, delta: float, significance: float) -> float:
    """Return about the largest ε̲ at which H₀ is refuted at `significance`; 0 if there is none.

    With confidence 1 − significance, ε(δ) ≥ ε̲: refuting at ε̲ refutes at every smaller ε.
    """
    top = math.log(2 * counts.other_runs) + 1
    return _crossing(lambda eps: (counts, eps, delta), top, significance)


def delta_lower_bound(counts: Counts, epsilon: float, significance: float) -> float:
    """Return about the largest δ̲ at which H₀ is refuted at `significance`; 0 if there is none.

    With confidence 1 − significance, δ(ε) ≥ δ̲.
    """
    top = min(counts.hits / counts.runs, 1 - 1e-12)
    return _crossing(lambda delta: (counts, epsilon, delta), top, significance)


def gaussian_delta(mu: float, epsilons: ArrayLike) -> NDArray[np.float64]:
    """Return δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), rounded up."""
    eps = np.asarray(epsilons, dtype=np.float64)
    first = special.ndtr(mu / 2 - eps / mu)
    second = np.exp(eps + special.log_ndtr(-mu / 2 - eps / mu))
    found: NDArray[np.float64] = np.clip(first - second + _SLACK * first, 0.0, 1.0)
    return found


def mu_lower_bound(epsilon: float, delta: float) -> float:
    """Return μ̲ just below the μ with δ_μ(ε) = δ: δ(ε) ≥ δ implies μ ≥ μ̲."""
    if delta <= 0:  # δ_μ(ε) > 0 for every μ > 0, though floats underflow
        return 0.0
    return halved(lambda mu: bool(gaussian_delta(mu, epsilon) <= delta), 0.0, LARGEST_MU)[0]


def least(enough: Callable[[int], bool], most: int) -> int | None:
    """Return the least number that is enough; None if none up to `most` is.

    The search goes up by eighths, since a number may be enough where twice as many are not, and
    then halves its last step.
    """
    low, high = 0, 1
    while not enough(high):
        if high >= most:
            return None
        low, high = high, min(high + 1 + high // 8, most)
    return low + 1 + bisect_left(range(low + 1, high), True, key=enough)


def _score(counts: Counts, epsilon: float, delta: float) -> float:
    """Return the standardised excess of the counts, which guides the search for a bound."""
    n, factor = counts.runs, math.exp(epsilon)
    if counts.design is Design.SIDES:
        return statistic(counts, factor, delta) or -1.0
    excess = counts.hits - factor * counts.misses - n * delta
    spread = max((counts.hits + factor * counts.misses + n * delta) / 2 * (1 + factor), 1e-9)
    return excess / math.sqrt(spread)


def _crossing(
    at: Callable[[float], tuple[Counts, float, float]], top: float, significance: float
) -> float:
    """Return about the largest x in [0, top] that is refuted at a significance.

    The score is close to the normal quantile of the tail: where it crosses is nearly the answer,
    and each exact tail corrects the level that it is asked to cross.
    """
    goal = -float(special.ndtri(significance))
    level, best, worst = goal, 0.0, top
    for _ in range(_STEPS):
        guess, _ = halved(partial(_above, at, level), best, worst, width=1e-7)
        value = p_value(*at(guess), spared=SPARED * significance)
        if value <= significance:
            best = max(best, guess)
        else:
            worst = min(worst, guess)
        reached = -float(special.ndtri(min(max(value, 1e-300), 1 - 1e-12)))
        error = goal - reached  # positive where the tail is still too large
        if (0 >= error > -0.02 and best > 0) or worst - best <= 1e-9 * top or guess <= 0:
            break
        level += error + (0.005 if error > 0 else 0.0)
    return best


def _above(at: Callable[[float], tuple[Counts, float, float]], level: float, x: float) -> bool:
    return _score(*at(x)) > level
