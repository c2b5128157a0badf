"""Private quantiles of numbers in a range, by the exponential mechanism on intervals of a line.

For n numbers in [L, U] let N(y) be the number of those ≤ y. The p-quantile is the point where
N(y) − pn changes sign. The mechanism draws y in [L, U] with density proportional to
e^{−r|N(y) − pn|}, r = ε/(2Δ). This is the exponential mechanism with score −|N(y) − pn| and
Lebesgue base measure (Smith 2011; `quantile` of diffprivlib, with Δ = 1). Δ is the sensitivity of
the score: 1 under replace-one, max(p, 1 − p) under add/remove.

*The profile is exactly that of all pairs of bounded range ε* (`ChoicePair`), for any range [L, U]
and any p in (0, 1).

*Upper bound.* Let m = N(y) − pn. Adding a record at x changes |m| to |m − p| if y < x, else to
|m + 1 − p|. Replacing a record changes |m| to |m + 1| or |m − 1| on an interval and nowhere else.
So no score changes by more than Δ, and the exponents change by amounts in [−ε/2, ε/2], an interval
of length ε. The proof of `ChoicePair` applies to densities too.

*Lower bound.* The following neighbours change the exponents by two constants that differ by ε, one
on {y < c} and one on {y > c}, for any c in (L, U).

- Replace-one, n ≥ 1/min(p, 1 − p): n − 1 records are at c, and one moves from L to U. Below c, N
  changes from 1 to 0 and |m| from pn − 1 to pn. Above c, N changes from n to n − 1 and |m| from
  (1 − p)n to (1 − p)n − 1. So one score decreases by 1 and the other increases by 1.
- Add/remove, p ≥ 1/2, n ≥ p/(1 − p): n records are at c, and one is added at U. N is unchanged, and
  pn increases by p. Below c, |m| = pn increases by p; above c, m = (1 − p)n ≥ p decreases by p.
- Add/remove, p < 1/2, n ≥ (1 − p)/p: n records are at c, and one is added at L. m increases by
  1 − p. Below c it was −pn ≤ −(1 − p), so |m| decreases by 1 − p; above c it was (1 − p)n, so |m|
  increases by 1 − p.

In each case the ratio of lengths (c − L)/(U − c) can be any positive number, and so can the odds of
the two events. If n is public and smaller than required here, the profile may be smaller.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Positive, Rational, Real, Relation, declared
from dpassay.accountant.errors import AdjacencyError, expected
from dpassay.accountant.mechanisms.additive.laplace import Logistic
from dpassay.accountant.mechanisms.selection.candidates import RARER, ChoicePair, TwoCandidates
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball, enclose
from dpassay.accountant.release import sampling

_CELLS = 1 << 32
"""Number of cells of the range to which records and outputs are rounded."""
_MOST_RECORDS = 10**6
"""Limit on the records of a worst dataset; an extreme quantile needs about 1/p of them."""


@declared
class PrivateQuantile(Mechanism):
    """Release a quantile of numbers in a range by the exponential mechanism.

    The density of the output y is proportional to e^{−ε|k − pn|/(2Δ)}, where k of the n records are
    ≤ y. Δ is 1 under replace-one and max(p, 1 − p) under add/remove. The mechanism is exactly ε-DP,
    and its profile is that of `ExponentialMechanism(epsilon)`.

    Parameters
    ----------
    epsilon
        ε > 0.
    lower, upper
        The range, lower < upper, which must not depend on the data. Records outside are moved to
        the nearer end.
    adjacency
        The relation for which ε holds: "add-remove" or "replace-one".
    probability
        p in (0, 1), rational. The default, 1/2, is the median.

    Notes
    -----
    The proof, with neighbours that attain the profile, is in
    `dpassay.accountant.mechanisms.selection.quantile`. The number of records is not public; the
    worst datasets have 1/min(p, 1 − p) records or one less.

    `release` rounds each record down to one of 2³² equal cells of the range. It draws the interval
    between two records by inversion of the exact distribution function, and then a cell of this
    interval uniformly. So the output has exactly the law of the mechanism on the rounded records,
    rounded to the middles of cells.
    """

    example = "PrivateQuantile(epsilon=1, lower=0, upper=100, adjacency='add-remove')"
    noise_argument = "epsilon"
    noise_grows = False
    no_variance = (
        "The error of a private quantile depends on the data. Ask mean_rank_error(data) of it, or "
        "simulate outputs(data, size, rng=…)."
    )

    epsilon: Positive = Positive()
    lower: Real = Real()
    upper: Real = Real()
    adjacency: Relation = Relation()
    probability: Rational = Rational("1/2")

    def __post_init__(self) -> None:
        if not 0 < self.probability < 1:
            raise expected("probability", self.probability, "in (0, 1)", "1/2 is the median.")
        if not self.lower < self.upper:
            raise expected("lower", self.lower, f"< upper={self.upper}")
        if not 0 < float(self.upper) - float(self.lower) < math.inf:
            raise expected("upper", self.upper, "to differ from lower by a float")

    @property
    def sensitivity(self) -> Fraction:
        """Δ, the largest change of a score between neighbours."""
        p = self.probability
        return max(p, 1 - p) if self.adjacency is Adjacency.ADD_REMOVE else Fraction(1)

    @property
    def dominated_by(self) -> Mechanism:
        """Logistic noise of scale 1/ε, which has the same profile."""
        return Logistic(ExactReal.of_rational(1) / self.epsilon)

    def attained(self) -> tuple[Pair, ...]:
        """Return the pairs in which the exponents change by two constants, ε apart."""
        return TwoCandidates("Gumbel", self.epsilon).pairs

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the supremum over all pairs of bounded range ε.

        Raises AdjacencyError unless the relation is that of the mechanism.
        """
        if require(adjacency, self) is not self.adjacency:
            raise AdjacencyError(
                f"This PrivateQuantile has its epsilon for {self.adjacency.value}, not for "
                f"{adjacency.value if adjacency else None}. Name the same relation in both places."
            )
        return WorstCase.symmetric(
            ChoicePair("Gumbel", self.epsilon),
            "The exponents of neighbours differ by amounts in an interval of length epsilon. All "
            "other records at one point, and one at an end of the range, give two levels of any "
            "probability.",
        )

    def intervals(self, data: ArrayLike) -> tuple[Array, Array, Array]:
        """Return the first cell, the number of cells and the rank of each interval.

        `data` is a list of finite numbers, which may be empty. The interval of rank k has k records
        below it. Raises InvalidInputError for other data.
        """
        try:
            records = np.asarray(data, dtype=np.float64)
        except (TypeError, ValueError):
            raise expected("data", data, "to be a list of numbers") from None
        if records.ndim != 1 or not np.isfinite(records).all():
            raise expected("data", data, "to be a list of finite numbers")
        low, high = float(self.lower), float(self.upper)
        share = (np.clip(records, low, high) - low) / (high - low)
        cells, counts = np.unique(np.floor(share * _CELLS).astype(np.int64), return_counts=True)
        edges = np.concatenate([[0], cells, [_CELLS]])
        ranks, lengths = np.concatenate([[0], np.cumsum(counts)]), np.diff(edges)
        kept = lengths > 0
        return edges[:-1][kept], lengths[kept], ranks[kept]

    def probabilities(self, data: ArrayLike) -> list[arb]:
        """Return the probability of each of the `intervals`, at flint's current precision."""
        _, lengths, ranks = self.intervals(data)
        sums = self._cumulative(lengths, self._misses(ranks, data))
        return [b - a for a, b in pairwise([arb(0), *sums, arb(1)])]

    def mean_rank_error(self, data: ArrayLike) -> Interval:
        """Enclose E|k − pn|, the mean absolute rank error in records.

        The result is not private: use public or synthetic data.
        """
        misses = self._misses(self.intervals(data)[2], data)

        def mean() -> arb:
            chances = zip(misses, self.probabilities(data), strict=True)
            total = sum((miss * chance for miss, chance in chances), start=arb(0))
            return total / self.probability.denominator

        return enclose(mean)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` quantiles of a list of numbers: an interval by inversion, then a cell."""
        starts, lengths, ranks = self.intervals(value)
        misses = self._misses(ranks, value)
        drawn = sampling.indices_by_inversion(
            lambda: self._cumulative(lengths, misses), times, rng=rng
        )
        cells = starts[drawn]
        for index in np.unique(drawn):
            chosen = drawn == index
            cells[chosen] += sampling.below(int(lengths[index]), int(chosen.sum()), rng)
        low, high = float(self.lower), float(self.upper)
        middles: Array = low + (high - low) * ((cells + 0.5) / _CELLS)
        return middles

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw quantiles of an empty list, which are uniform in the range."""
        return self.release([], size, rng=rng)

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` quantiles of the records `answer`."""
        return self.release(answer, size, rng=rng)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return neighbours that are worst at ε = 0, and neighbours that are worse at larger ε.

        As many of the other records as the proof allows are at L (`below`) and at U (all but
        `upto`), so few are at c and the scores on both sides of c are close. The odds of {y < c}
        are e^{ε/2} and e^{−ε/2} in the first pair, and e^`RARER` times smaller in the second. The
        list is empty if the datasets would have more than `_MOST_RECORDS` records.
        """
        p, low, high = self.probability, float(self.lower), float(self.upper)
        others = math.ceil(1 / min(p, 1 - p)) - 1
        if others >= _MOST_RECORDS:
            return []
        n = p * others
        if self.adjacency is Adjacency.REPLACE_ONE:
            ends: tuple[list[float], list[float]] = [low], [high]
            below, upto = math.floor(n + p) - 1, math.ceil(n + p)
        elif p >= Fraction(1, 2):
            ends = [], [high]
            below, upto = math.floor(n), math.ceil(n + p)
        else:
            ends = [], [low]
            below, upto = math.floor(n + p) - 1, math.ceil(n)
        gaps = Fraction(0)
        for end in ends:
            first, middle = end.count(low), p * (others + len(end))
            gaps += abs(upto + first - middle) - abs(below + first - middle)
        rate = float(self.epsilon) / (2 * float(self.sensitivity))
        found: list[tuple[Any, Any]] = []
        for rarer in (0, RARER):
            share = (1 - math.tanh(rate * float(gaps) / 4 + rarer / 2)) / 2  # (c − L)/(U − L)
            c = low + (high - low) * share
            known = [low] * below + [c] * (upto - below) + [high] * (others - upto)
            found.append((known + ends[0], known + ends[1]))
        return found

    def _misses(self, ranks: Array, data: ArrayLike) -> list[int]:
        """Return |k − pn| for each rank k, multiplied by the denominator of p."""
        p, n = self.probability, len(np.asarray(data))
        return [abs(rank * p.denominator - p.numerator * n) for rank in ranks.tolist()]

    def _cumulative(self, lengths: Array, misses: list[int]) -> list[arb]:
        """Return the distribution function at the right ends of all intervals but the last."""
        unit = ball(2 * self.sensitivity * self.probability.denominator)
        rate, least = self.epsilon.ball() / unit, min(misses)
        weights = (
            length * (rate * (least - miss)).exp()
            for length, miss in zip(lengths.tolist(), misses, strict=True)
        )
        sums = list(accumulate(weights))
        return [part / sums[-1] for part in sums[:-1]]
