"""Batches that are cut, and batches drawn with replacement."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import accumulate, pairwise
from typing import final

from dpassay.accountant import ask
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.sampling import MixtureOfGaussians, PoissonSubsampled
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.training.groups import times
from dpassay.accountant.training.loops import enclosed, least_epsilon, rational_below

"""Poisson batches that are cut to B records: between which untruncated runs they are.

Each record is in the sample of a step with probability q, independently; of a sample of more than
B records, B are kept, all subsets equally likely. One neighbour has N records, the other one more.
Let J ~ Bin(N, q) be how many of the N common records are in the sample of a step.

**Above.** Where J < B no batch is cut: the step is a Poisson sample of sensitivity 1. Where J ≥ B,
given the sample of the common records and the order in which records are cut, the new record is
away, or added, or takes the place of another one, which moves the sum of clipped gradients by at
most 2: by joint convexity the step is no worse than a Poisson sample of sensitivity 2. The number K
of the latter among T steps is Bin(T, P(J ≥ B)) for both neighbours, whatever was released before.
So, with δ_k the profile of T − k steps of sensitivity 1 and k of sensitivity 2, which increases
with k, for all m_0 < … < m_l,

    δ(ε) ≤ Σ_k P(K = k) δ_k(ε) ≤ Σ_i (t_{i−1} − t_i) δ_{m_i}(ε) + t_l,

where t_i = P(K > m_i) and t_{−1} = 1. The last sum increases with every t_i, so that upper bounds
may stand for them.

A person with k records: batches are cut at most where J > B − k, and i records of the sample, of
which Bin(k, q) are, then move the sum by at most 2i. (A step of which i records move the sum by at
most s_i is no worse where they do so on a line, and H grows with every s_i: the best events are
half-lines.)

**Below.** Let the common records have the gradient 0. Then one neighbour releases noise alone, the
other noise plus the new record's gradient in the steps where it is kept, which has probability
q' ≥ q · P(J < B), independently: an untruncated run with q' for q. Its δ increases with q', as the
pair of a smaller one is that of the larger one after each step is replaced by noise alone with
probability 1 − q'/q. With k records on a line, as many as are in the sample are kept where
J ≤ B − k; that none is kept elsewhere makes half-lines tell less.
"""

_PRECISION = 128
"""Bits of binomial tails: ten digits remain of them for N up to 1e9."""
_SHARE = 1000
"""The part 1/_SHARE of δ is what P(K > m_l) may take: more would make ε larger."""
_LEVELS = 5
"""Values m_i at most: each costs one profile, and more of them make the bound little smaller."""
_USUAL = Fraction(1, 4)
"""The first m_0 is exceeded with at most this probability: what usually happens weighs most."""
_WIDTH = Fraction(1, 10**5)
"""Relative width of the profiles δ_m: they are of mixed releases, and ten digits take long."""
_NEAR = 1e-6
"""Relative distance from the root at which floats stop."""
_SLACKS = (Fraction(1, 50_000), Fraction(1, 10**3))
"""Relative distances from the root that floats find at which an ε is tried."""


@final
@dataclass(frozen=True)
class TruncatedBatches:
    """T steps of Poisson samples, with probability q, of N records or one more, cut to B."""

    sigma: ExactReal
    size: int
    share: Fraction
    most: int
    steps: int
    group: int = 1

    def run(self, crowded: int, kept: Fraction = Fraction(1)) -> Mechanism:
        """Return an untruncated run in which some of the steps have sensitivity 2.

        Of a step nothing but noise is left with probability 1 − `kept`.
        """
        parts: list[Mechanism] = [
            Composed(sampled(self.sigma, self.share, self.group, sensitivity, kept), count)
            for sensitivity, count in ((1, self.steps - crowded), (2, crowded))
            if count
        ]
        return parts[0] if len(parts) == 1 else Composed(parts)

    def worst(self) -> Mechanism:
        """Return an untruncated run that is no better at any δ."""
        return self.run(self.steps if self.crowded else 0)

    def lower(self, delta: ExactReal) -> Decimal:
        """Return a lower bound of ε(δ)."""
        kept = 1 - self.crowded
        return (
            enclosed(self.run(0, kept), Adjacency.ADD_REMOVE, delta).lower
            if kept
            else least_epsilon(delta)
        )

    def upper(self, delta: ExactReal) -> tuple[Decimal, int]:
        """Return an upper bound of ε(δ), and m_l."""
        levels = self._levels(delta)
        runs = [self.run(m) for m, _ in levels]
        last, beyond = levels[-1]
        left = ExactReal.of_rational(rational_below(delta) - beyond)
        bound = enclosed(runs[-1], Adjacency.ADD_REMOVE, delta if beyond == 0 else left).upper
        if len(levels) > 1:
            falling = list(accumulate((tail for _, tail in reversed(levels)), max))
            tails = [Fraction(1), *reversed(falling)]  # bounds, of which each is at least the next
            weights = [before - after for before, after in pairwise(tails)]
            for at in self._candidates(runs, weights, left, bound):
                if at >= bound:
                    break
                proved = beyond + sum(
                    w * _delta(run, at) for w, run in zip(weights, runs, strict=True)
                )
                with ctx.workprec(_PRECISION):
                    if ball(proved) <= delta.ball():
                        return at, last
        return bound, last

    @property
    def crowded(self) -> Fraction:
        """An upper bound of P(J > B − k)."""
        return binomial_tail(self.size, self.share, self.most - self.group + 1)

    def _levels(self, delta: ExactReal) -> list[tuple[int, Fraction]]:
        """Return m_i and upper bounds of t_i, the last one at most δ/_SHARE."""
        room = rational_below(delta) / _SHARE
        found: dict[int, Fraction] = {}
        tail = partial(binomial_tail, self.steps, self.crowded)
        for level in range(_LEVELS if room else 1):
            most = _USUAL * (room / _USUAL) ** Fraction(level, _LEVELS - 1) if room else room
            least = bisect_left(range(self.steps), -most, key=lambda m: -tail(m + 1))
            found[least] = tail(least + 1)
        return sorted(found.items())

    def _candidates(
        self, runs: list[Mechanism], weights: list[Fraction], left: ExactReal, most: Decimal
    ) -> list[Decimal]:
        """Return what may be an ε that is little above the least one, from floats.

        Estimates of mixtures of several shifts take longer than bounds of their profiles.
        """
        from scipy.optimize import brentq

        relation = Adjacency.ADD_REMOVE
        aim = math.log(float(left.ball().mid()))

        def excess(epsilon: float) -> float:
            total = sum(
                float(w)
                * float(
                    ask.estimate_delta(run, epsilon, adjacency=relation)
                    if self.group == 1
                    else _delta(run, Decimal(epsilon))
                )
                for w, run in zip(weights, runs, strict=True)
            )
            return math.log(total) - aim if total else -math.inf

        least, highest = float(enclosed(runs[0], Adjacency.ADD_REMOVE, left).lower), float(most)
        if not excess(least) > 0 > excess(highest) > -math.inf:
            return []
        root = Fraction(float(brentq(excess, least, highest, rtol=_NEAR)))
        return [Interval.of_exact(root * (1 + slack)).upper for slack in _SLACKS]


def sampled(
    sigma: ExactReal, q: Fraction, group: int, moves: int = 1, kept: Fraction = Fraction(1)
) -> Mechanism:
    """Return a step to which each of k records adds up to `moves` if it is in a Poisson sample."""
    if group == 1:
        return PoissonSubsampled(Gaussian(sigma, moves), ExactReal.of_rational(q * kept))
    law = [kept * math.comb(group, i) * q**i * (1 - q) ** (group - i) for i in range(group + 1)]
    law[0] += 1 - kept
    return MixtureOfGaussians(sigma, [moves * i for i in range(group + 1)], law)


def _delta(mechanism: Mechanism, epsilon: Decimal) -> Fraction:
    """Return an upper bound of δ(ε), which is 1 where none is known soon."""
    try:
        found: Interval = ask.delta(
            mechanism, epsilon, adjacency=Adjacency.ADD_REMOVE, relative_width=_WIDTH
        )
    except UndecidedError as error:
        return Fraction(1) if error.interval is None else Fraction(error.interval.upper)
    return Fraction(found.upper)


def binomial_tail(trials: int, probability: Fraction, least: int) -> Fraction:
    """Return an upper bound of P(Bin(trials, probability) ≥ least)."""
    if least > trials or (probability == 0 and least > 0):
        return Fraction(0)
    if least <= 0 or probability == 1:
        return Fraction(1)
    with ctx.workprec(_PRECISION):
        found = ball(probability).beta_lower(least, trials - least + 1, regularized=True)
        return (
            min(Fraction(1), Fraction(Interval.of_ball(found).upper))
            if found.is_finite()
            else Fraction(1)
        )


"""Batches of B draws with replacement: how often a record is in a batch, and what that shows.

Each of the B places of a batch takes one of N records, uniformly, independently. A person with k
of them has J ~ Bin(B, p) places, p = k/N; T batches are independent. Gradients have norm at most 1.
Given what stands at each place where it is none of these k records, let A_0 be the law of the noisy
sum without them, A_j (j ≥ 1) that with them at some j places, w_j = P(J = j), η = P(J ≥ 1).

**Add-remove, exactly.** Without the person a batch has the law A_0, with it Σ w_j A_j, whose means
are at distance at most 2j from that of A_0: a `MixtureOfGaussians` of sensitivities 2j, for both
orders. All others −u, the person's u attain it. J is cut at m: that it is larger in any step costs
T P(J > m) of δ, and J given J ≤ m is stochastically no larger. Tails of J are rounded to few digits
up, or down: a larger J is no more private, as every shift may be made longer.

**Replace-one, above.** Let A'_j be the laws with the other records: both A_j and A'_j are at
distance at most 2j from A_0, so that this is a `MixtureOfGaussians` where records are replaced.
**Below**: all others and the new records −u, the old ones u, which is the pair of add-remove.

**Zero-out** is a replacement by the gradient 0: above as before; below the sensitivities are j,
where all others are 0.
"""

_BITS = 96
"""Leading bits to which tails are rounded: far more than answers have digits."""
_CUT = Fraction(1, 10**12)
"""The part of δ that P(J > m) in any step may take: answers have about ten digits."""

_WITH_REPLACEMENT_USUAL = Fraction(1, 10**9)
"""A usual δ."""


@final
@dataclass(frozen=True)
class WithReplacement:
    """T batches of B places; a person has each place with probability p, 0 < p < 1."""

    sigma: ExactReal
    batch: int
    share: Fraction
    steps: int

    def tail(self, j: int) -> Fraction:
        """Return an upper bound of P(J ≥ j)."""
        return _rounded(binomial_tail(self.batch, self.share, j), up=True)

    def cut(self, delta: ExactReal) -> tuple[int, Fraction]:
        """Return m, and an upper bound of the probability that J is larger in any step."""
        room = rational_below(delta) * _CUT / self.steps
        m = 1
        while binomial_tail(self.batch, self.share, m + 1) > room:
            m += 1
        return m, self.steps * self.tail(m + 1)

    @property
    def usual(self) -> int:
        """Where J is cut for δ of 1e-9 or so."""
        return self.cut(ExactReal.of_rational(_WITH_REPLACEMENT_USUAL))[0]

    def mixed(self, moves: int, most: int, *, up: bool) -> Mechanism:
        """Return T mixtures of sensitivities `moves`·j, j ≤ most, with tails of J rounded."""
        return self._mixture([moves * j for j in range(most + 1)], up=up)

    def _mixture(self, moves: list[int], *, up: bool) -> Mechanism:
        """Return T mixtures that move by entry j of a list where J is j, or more for the last."""
        tails = [Fraction(1)]
        for j in range(1, len(moves)):
            tails.append(min(tails[-1], self.tail(j) if up else self._least(j)))
        law = [a - b for a, b in pairwise([*tails, Fraction(0)])]
        return times(MixtureOfGaussians(self.sigma, moves, law), self.steps)

    @property
    def whole(self) -> Mechanism:
        """Return T mixtures that are no better at any δ: J counts as B where it is large."""
        most = min(self.usual, self.batch - 1)
        return self._mixture([*range(0, 2 * most + 1, 2), 2 * self.batch], up=True)

    def _least(self, j: int) -> Fraction:
        """Return a lower bound of P(J ≥ j)."""
        with ctx.workprec(_BITS):
            found = ball(self.share).beta_lower(j, self.batch - j + 1, regularized=True)
            low = Interval.of_ball(found).lower if found.is_finite() else Decimal(0)
        return _rounded(max(Fraction(low), Fraction(0)), up=False)

    def lower(
        self, delta: ExactReal, moves: int = 2, relative_width: Fraction | None = None
    ) -> Decimal:
        """Return a lower bound of ε(δ): that of sensitivities `moves`·j."""
        if delta.sign == 0:
            return Decimal("Infinity")
        run = self.mixed(moves, self.cut(delta)[0], up=False)
        return enclosed(run, Adjacency.ADD_REMOVE, delta, relative_width).lower

    def upper(
        self, delta: ExactReal, relation: Adjacency, relative_width: Fraction | None = None
    ) -> Decimal:
        """Return an upper bound of ε(δ) for records that are added or removed, or replaced."""
        if delta.sign == 0:
            return Decimal("Infinity")
        most, beyond = self.cut(delta)
        left = ExactReal.of_rational(rational_below(delta) - beyond)
        return enclosed(self.mixed(2, most, up=True), relation, left, relative_width).upper


def _rounded(value: Fraction, *, up: bool) -> Fraction:
    """Return a fraction of few bits that is not less, or not more."""
    if value in {0, 1}:
        return value
    unit = 1 << (_BITS + value.denominator.bit_length() - value.numerator.bit_length())
    return Fraction(math.ceil(value * unit) if up else math.floor(value * unit), unit)
