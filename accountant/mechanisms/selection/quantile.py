"""A quantile of numbers in a range: the exponential mechanism on intervals of a line.

Of n numbers in [L, U] let N(y) be how many are at most y. The p-quantile is where N(y) − pn changes
sign. The mechanism draws y in [L, U] with the density in proportion to e^{−r|N(y) − pn|},
r = ε/(2Δ): the exponential mechanism with the score −|N(y) − pn| and the lengths of intervals as
its base measure (Smith 2011; diffprivlib's `quantile`, with Δ = 1). Δ is the most by which a score
changes: 1 if a record is replaced, and max(p, 1 − p) if it is added or removed.

*Its profile is exactly that of all pairs of bounded range ε* (`ChoicePair`), for any range
[L, U] and any p in (0, 1). At most: no score changes by more than Δ, so the exponents change by
amounts in [−ε/2, ε/2], an interval of length ε. With m = N(y) − pn, a record more at x turns |m|
into |m − p| where y < x and into |m + 1 − p| elsewhere; one replaced turns it into |m|, or on an
interval into |m + 1| or |m − 1|. The proof of
`ChoicePair` holds for densities too.

At least: here are neighbours with two levels of the exponents, ε apart, and any probability of the
first level, which is that of y < c, c in (L, U).

- Replace one, n ≥ 1/min(p, 1 − p): n − 1 records at c, and one that moves from L to U. Below c,
  N goes from 1 to 0, and |1 − pn| = pn − 1 to pn; above, from n to n − 1, and (1 − p)n to
  (1 − p)n − 1. So one score falls by 1, and the other rises by 1.
- Add one, p ≥ 1/2, n ≥ p/(1 − p): n records at c, and one more at U. N stays, and pn grows by p:
  below c |m| = pn grows by p, above m = (1 − p)n ≥ p falls by p.
- Add one, p < 1/2, n ≥ (1 − p)/p: n records at c, and one more at L. m grows by 1 − p: below c
  from −pn ≤ −(1 − p), so |m| falls by 1 − p; above from (1 − p)n, so it grows by as much.

In each case the ratio of both lengths, (c − L)/(U − c), is any positive number, and so are the odds
of both levels. With fewer records than that, known to everybody, the profile may be smaller.
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
"""Cells of the range: the records and the output are rounded to them."""
_MOST_RECORDS = 10**6
"""Records of a worst dataset, at most: of an extreme quantile it has as many as 1/p."""


@declared
class PrivateQuantile(Mechanism):
    """Release a quantile of numbers in a range, as near in rank as ε allows.

    A number y between two neighbouring records has a density in proportion to e^{−ε|k − pn|/(2Δ)},
    where k of the n records are at most y: the exponential mechanism with the base measure of
    lengths. Δ is 1 for a record that is replaced, and max(p, 1 − p) for one that is added or
    removed. It is exactly ε-DP, and its profile is that of `ExponentialMechanism(epsilon)`.

    Parameters
    ----------
    epsilon
        ε > 0.
    lower, upper
        The range, lower < upper; it must not depend on the data. Records outside count as at its
        nearer end.
    adjacency
        The relation that ε is for: "add-remove" or "replace-one".
    probability
        p in (0, 1), rational; 1/2, the default, is the median.

    Notes
    -----
    The proof, with the neighbours that attain the profile, heads the source file. The number of
    records is not public: the worst datasets have 1/min(p, 1 − p) records or one less.

    `release` rounds each record down to one of 2³² cells of the range, draws the interval between
    two of them by inversion of its exact distribution function, and a cell in it at random. So it
    has exactly the law of the mechanism on the rounded records, rounded to the middles of cells.
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
        """Δ, the most by which a score changes."""
        p = self.probability
        return max(p, 1 - p) if self.adjacency is Adjacency.ADD_REMOVE else Fraction(1)

    @property
    def dominated_by(self) -> Mechanism:
        """Logistic noise."""
        return Logistic(ExactReal.of_rational(1) / self.epsilon)

    def attained(self) -> tuple[Pair, ...]:
        """Return those of two levels."""
        return TwoCandidates("Gumbel", self.epsilon).pairs

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return all pairs of bounded range ε; raise AdjacencyError for the other relation."""
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
        """Return the first cell, the number of cells, and the rank of each interval of a law.

        `data` is a list of finite numbers, which may be empty; the interval of rank k has k records
        below it. Raises InvalidInputError for anything else.
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
        """Enclose E|k − pn|: by how many records a release misses the quantile on average.

        It is for planning, with data that are public or made up: the number itself is not private.
        """
        misses = self._misses(self.intervals(data)[2], data)

        def mean() -> arb:
            chances = zip(misses, self.probabilities(data), strict=True)
            total = sum((miss * chance for miss, chance in chances), start=arb(0))
            return total / self.probability.denominator

        return enclose(mean)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw an interval by inversion, and one of its cells; the value: a list of numbers."""
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
        """Draw what no records give: uniform numbers."""
        return self.release([], size, rng=rng)

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw quantiles of some records."""
        return self.release(answer, size, rng=rng)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return neighbours that are worst at ε = 0, and others above it; none of very long lists.

        As many others as the proof allows are at L (`below`) and at U (all but `upto`), so that few
        are at c and the two levels are close. The odds of these are e^{ε/2} and e^{−ε/2}, and with
        the first level e^`RARER` times rarer.
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
        """Return |k − pn| for ranks k, times the denominator of p."""
        p, n = self.probability, len(np.asarray(data))
        return [abs(rank * p.denominator - p.numerator * n) for rank in ranks.tolist()]

    def _cumulative(self, lengths: Array, misses: list[int]) -> list[arb]:
        """Return the distribution function at the ends of intervals, without the last one, 1."""
        unit = ball(2 * self.sensitivity * self.probability.denominator)
        rate, least = self.epsilon.ball() / unit, min(misses)
        weights = (
            length * (rate * (least - miss)).exp()
            for length, miss in zip(lengths.tolist(), misses, strict=True)
        )
        sums = list(accumulate(weights))
        return [part / sums[-1] for part in sums[:-1]]
