"""How batches are sampled, and what is known of each way: loops, groups of records, schemes."""

from __future__ import annotations

import contextlib
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import accumulate, pairwise
from typing import TypeAlias, final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import integer
from dpassay.accountant.errors import InvalidInputError, UndecidedError, expected, suggestion
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.sampling import (
    MixtureOfGaussians,
    PoissonSubsampled,
    RandomAllocation,
    SampledWithoutReplacement,
)
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import Interval, ball, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import first, halved
from dpassay.accountant.pairs.gaussian import gaussian_tails
from dpassay.accountant.pairs.shuffling import ShuffledBatches
from dpassay.accountant.questions import profile

# --- The settings of a training loop, and what a run releases -------------------------------------

_PRECISION = 128
"""Bits of what is left of δ."""
_LARGE, _FEW = ExactReal.of_rational(Fraction(1, 2)), Fraction(1, 10**5)
"""A large δ, and the relative width of ε above it, hardly more than ln(1 − δ): ten digits take ten
seconds."""


@final
@dataclass(frozen=True, slots=True)
class Loop:
    """How long a training loop runs, on what."""

    batch: int
    size: int
    epochs: Fraction | None
    """None where the steps are counted."""
    given_steps: int | None
    group: int
    most: int | None = None
    """Records that a Poisson batch may have; None where there is no limit."""

    @classmethod
    def of(
        cls,
        batch_size: int,
        dataset_size: int,
        epochs: Number | None,
        steps: int | None,
        group: int = 1,
        *,
        most: int | None = None,
    ) -> Loop:
        """Return the loop of checked settings."""
        batch = integer("batch_size", batch_size, least=1)
        size = integer("dataset_size", dataset_size, least=1)
        people = integer("group", group, least=1)
        if people > size:
            raise expected("group", people, f"≤ dataset_size={size}", "Count the records.")
        if most is not None:
            most = integer("truncated_batch_size", most, least=1)
        if batch > size:
            raise expected("batch_size", batch, f"≤ dataset_size={size}", "Are the two swapped?")
        if (epochs is None) == (steps is None):
            raise InvalidInputError(
                "Expected the length of the run: epochs=30 or steps=7032, one of them."
            )
        if steps is not None:
            return cls(batch, size, None, integer("steps", steps, least=1), people, most)
        number = exact(epochs, "epochs").rational  # type: ignore[arg-type]  # it is given
        if number is None or number <= 0:
            raise expected("epochs", epochs, "to be a positive rational number")
        return cls(batch, size, number, None, people, most)

    @property
    def share(self) -> Fraction:
        """Share of the records in a batch."""
        return Fraction(self.batch, self.size)

    @property
    def share_in_words(self) -> str:
        """The share as both sizes; as a float where it was given as one."""
        nearest = float(self.share)
        is_float = self.size >= 1 << 32 and Fraction(nearest) == self.share
        return repr(nearest) if is_float else f"{self.batch}/{self.size}"

    @property
    def steps(self) -> int:
        """Steps of batches that are sampled anew."""
        if self.epochs is None:
            return self.given_steps or 0
        return math.ceil(self.epochs / self.share)

    @property
    def steps_in_words(self) -> str:
        """Where the number of steps comes from."""
        if self.epochs is None:
            return f"The run has {self.steps} step{'s' if self.steps > 1 else ''}."
        said = "One epoch is" if self.epochs == 1 else f"{self.epochs} epochs are"
        return f"{said} {self.steps} step{'s' * (self.steps > 1)} (rounded up)."

    @property
    def full_batches(self) -> int:
        """Batches of an epoch that are full: its least number of steps."""
        return self.size // self.batch

    @property
    def whole_epochs(self) -> tuple[int, int]:
        """How many epochs are complete, and at most how many are begun."""
        if self.epochs is None:
            done = self.steps // math.ceil(1 / self.share)
            return done, math.ceil(Fraction(self.steps, self.full_batches))
        return math.floor(self.epochs), math.ceil(self.epochs)

    @property
    def epochs_in_words(self) -> str:
        """How epochs are counted, and batches in them."""
        (done, begun), full = self.whole_epochs, self.full_batches
        counted = "" if done == begun else ", parts counted as whole ones"
        words = f"The run has {begun} epoch{'s' if begun > 1 else ''}{counted}"
        if self.size % self.batch == 0:
            return f"{words}, of {full} step{'s' if full > 1 else ''} each."
        return f"{words}, of {full} steps or more each ({self.size}/{self.batch} is not whole)."


@final
@dataclass(frozen=True, slots=True)
class Scheme:
    """What a run releases under one sampling."""

    mechanism: Mechanism
    """All steps, or a mechanism with no smaller δ at any ε."""
    adjacency: Adjacency
    assumptions: tuple[str, ...]
    steps: int
    share: Fraction
    ends: Callable[[ExactReal], tuple[Interval, str]] | None = None
    """An enclosure of ε(δ) and what its ends rest on, where it is not that of the mechanism."""

    def epsilon(self, delta: ExactReal) -> tuple[Interval, str]:
        """Enclose ε(δ), and say what its ends rest on where they differ in kind."""
        if self.ends is not None:
            return self.ends(delta)
        return enclosed(self.mechanism, self.adjacency, delta), ""


def rational_below(delta: ExactReal) -> Fraction:
    """Return a rational number that is at most δ, and hardly less."""
    with ctx.workprec(_PRECISION):
        return Fraction(Interval.of_ball(delta.ball()).lower)


def least_epsilon(delta: ExactReal) -> Decimal:
    """Return a lower bound of every ε(δ): ln(1 − δ), as H(ε) ≥ 1 − e^ε for all P and Q."""
    if delta >= ExactReal.of_rational(1):
        return Decimal("-Infinity")
    return enclose(lambda: arb.log1p(-delta.ball())).lower


def enclosed(
    mechanism: Mechanism,
    adjacency: Adjacency,
    delta: ExactReal,
    relative_width: Fraction | None = None,
) -> Interval:
    """Return ε(δ) to a relative width, or to what is reached quickly."""
    if relative_width is None and delta > _LARGE:
        relative_width = _FEW
    with contextlib.suppress(UndecidedError):
        return profile.epsilon(mechanism, delta, adjacency=adjacency, relative_width=relative_width)
    return profile.epsilon(mechanism, delta, adjacency=adjacency)


# --- Bounds for k records of one person together, where nothing exact is known --------------------
# **The rule.** If ε is enough for one record at δ₁, then kε is for k records at δ₁ Σ_{i<k} e^{iε}
# (change them one after the other). Every δ₁ whose sum is at most δ gives an upper bound.
#
# **Random allocation, above.** The noise of a step is the sum of k independent parts of variance
# σ²/k: a step is a function of k releases, one of each record with a part of its own. So k records
# are no worse than k allocations of one record, with √k times its sensitivity.
#
# **Random allocation, below.** Gradients of the k records in orthogonal directions are k
# independent allocations. With one direction, and with other gradients 0, the sum of all noisy sums
# of E epochs of t steps is N(kE, Etσ²) against N(0, Etσ²), whatever the steps of the records: so
# for shuffled batches too.
#
# **Shuffled batches, above.** Let the records of the person be in different batches in all but K of
# E epochs. Given the order, an epoch is a Gaussian release of sensitivity √k, or of at most k. Two
# given records are in one batch with probability at most p = (B − 1)/(N − 1), so that
# P(K > m) is at most that of Bin(E, min(1, k(k − 1)p/2)), and by joint convexity
#
#     δ(ε) ≤ Σ_m P(K = m) δ_μ(ε),   μ = √(kE + (k² − k)m)/σ.
#
# δ_μ increases with m, so the binomial law may replace that of K.
#
# **Batches without replacement, below.** Let the k records have gradients u, all others −u. Against
# k records −u more, the sum of a batch moves by 2i, i of k records of N being in a batch of B.
#
# **Batches without replacement, and Poisson ones that are cut, above.** With probability η ≤ kB/N
# some of the k records are drawn. Where none is, and where those that are drawn are put in the
# place of others or are replaced, sums are at most 2k apart: by advanced joint convexity the
# profile is at most that of a sample, with probability η, of sensitivity 2k
# (`SampledWithoutReplacement`).

_TRIES = 8
"""Values of δ₁ that are tried: after five the bound hardly falls."""
_SETTLED = 1e-2
"""How near to δ, relatively, the sum of the rule comes: ε changes by a tenth of that."""
_GROUP_PRECISION = 96
"""Bits of sums of profiles, which have twelve digits."""
_HALVINGS = 40
"""Steps of the search for an ε: about twelve digits."""


def one_is_drawn(sigma: ExactReal, batch: int, size: int, steps: int, group: int) -> Mechanism:
    """Return a release that is no better than batches in which k records are replaced."""
    whole = SampledWithoutReplacement(Gaussian(sigma, 2 * group), min(group * batch, size), size)
    return times(whole, steps)


def times(release: Mechanism, count: int) -> Mechanism:
    """Return a release that is repeated so often."""
    return release if count == 1 else Composed(release, count)


def by_rule(epsilon: Callable[[ExactReal], Interval], group: int, delta: ExactReal) -> Decimal:
    """Return an upper bound of ε(δ) of a group from ε(δ) of one record: see *The rule*."""
    best = Decimal("Infinity")
    if delta.sign == 0:
        return best
    whole = float(delta)
    low, high = -math.inf, math.log(whole)  # ln δ₁ with a sum below δ, and above
    at = high - math.log(group)
    for _ in range(_TRIES):
        first = ExactReal.of_rational(Fraction(math.exp(at)))
        each = epsilon(first).upper
        if not each.is_finite():  # as at a level below the smallest float
            break
        with ctx.workprec(_GROUP_PRECISION):
            terms = ((i * ball(Fraction(each))).exp() for i in range(group))
            total = first.ball() * sum(terms, start=arb(0))
            short = float((delta.ball() / total).log().mid())
            if total <= delta.ball():
                low, best = max(low, at), min(best, group * each)
            else:
                high = min(high, at)
        if 0 <= short <= _SETTLED:
            break
        at += short - _SETTLED / 2
        if not low < at < high:
            at = (low + high) / 2 if math.isfinite(low) else high - 2 * abs(short)
    return best


def gathered(sigma: ExactReal, steps: int, epochs: int, group: int) -> list[Mechanism]:
    """Return releases that are no worse than random allocation of a group; some are the worst."""
    direction = Gaussian(sigma * ExactReal.of_root(Fraction(epochs * steps)), group * epochs)
    return [times(RandomAllocation(Gaussian(sigma), steps), group * epochs), direction]


def shared_noise(sigma: ExactReal, steps: int, epochs: int, group: int) -> Mechanism:
    """Return a release that is no better than random allocation of a group."""
    alone = Gaussian(sigma, ExactReal.of_root(Fraction(group)))
    return times(RandomAllocation(alone, steps), group * epochs)


def shuffled(
    sigma: ExactReal, epochs: int, group: int, together: Fraction, delta: ExactReal
) -> Decimal:
    """Return an upper bound of ε(δ) of shuffled batches, `together` being p."""
    if delta.sign == 0:
        return Decimal("Infinity")
    with ctx.workprec(_GROUP_PRECISION):
        chance, choose = ball(min(Fraction(1), together * math.comb(group, 2))), arb(1)
        runs = []
        for m in range(epochs + 1):
            square = ball(Fraction(group * epochs + (group**2 - group) * m))
            weight = choose * chance**m * (1 - chance) ** (epochs - m)
            runs.append((weight, square.sqrt() / sigma.ball()))
            choose = choose * (epochs - m) / (m + 1)

    def enough(epsilon: Fraction) -> bool:
        at, total = ExactReal.of_rational(epsilon), arb(0)
        with ctx.workprec(_GROUP_PRECISION):
            for weight, mu in runs:
                tails = gaussian_tails(mu, at)
                total += weight * (tails.p_above - at.ball().exp() * tails.q_above)
            return bool(total <= delta.ball())

    whole = Fraction(first(lambda n: n > 0 and enough(Fraction(n))))
    _, least = halved(lambda at: not enough(at), whole - 1, whole, _HALVINGS)
    return Interval.of_exact(least).upper


def drawn(
    sigma: ExactReal, batch: int, size: int, steps: int, group: int, *, moves: int = 2
) -> Mechanism:
    """Return a release that a group has with batches without replacement."""
    ways = range(max(0, batch - size + group), min(batch, group) + 1)
    law = [
        Fraction(math.comb(group, i) * math.comb(size - group, batch - i), math.comb(size, batch))
        for i in ways
    ]
    return times(MixtureOfGaussians(sigma, [moves * i for i in ways], law), steps)


# --- Poisson batches that are cut to B records: the untruncated runs that bound them --------------
# Each record is in the sample of a step with probability q, independently; of a sample of more than
# B records, B are kept, all subsets equally likely. One neighbour has N records, the other one
# more. Let J ~ Bin(N, q) be how many of the N common records are in the sample of a step.
#
# **Above.** Where J < B no batch is cut: the step is a Poisson sample of sensitivity 1. Where J ≥
# B, given the sample of the common records and the order in which records are cut, the new record
# is away, or added, or takes the place of another one, which moves the sum of clipped gradients by
# at most 2: by joint convexity the step is no worse than a Poisson sample of sensitivity 2. The
# number K of the latter among T steps is Bin(T, P(J ≥ B)) for both neighbours, whatever was
# released before. So, with δ_k the profile of T − k steps of sensitivity 1 and k of sensitivity 2,
# which increases with k, for all m_0 < … < m_l,
#
#     δ(ε) ≤ Σ_k P(K = k) δ_k(ε) ≤ Σ_i (t_{i−1} − t_i) δ_{m_i}(ε) + t_l,
#
# where t_i = P(K > m_i) and t_{−1} = 1. The last sum increases with every t_i, so that upper bounds
# may replace them.
#
# A person with k records: batches are cut at most where J > B − k, and i records of the sample, of
# which Bin(k, q) are, then move the sum by at most 2i. (A step of which i records move the sum by
# at most s_i is no worse where they do so on a line, and H grows with every s_i: the best events
# are half-lines.)
#
# **Below.** Let the common records have the gradient 0. Then one neighbour releases noise alone,
# the other noise plus the new record's gradient in the steps where it is kept, which has
# probability q' ≥ q · P(J < B), independently: an untruncated run with q' for q. Its δ increases
# with q', as the pair of a smaller one is that of the larger one after each step is replaced by
# noise alone with probability 1 − q'/q. With k records on a line, as many as are in the sample are
# kept where J ≤ B − k; that none is kept elsewhere makes half-lines tell less.

_BATCH_PRECISION = 128
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
                with ctx.workprec(_BATCH_PRECISION):
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

        from dpassay.accountant.questions.estimate import estimate_delta

        relation = Adjacency.ADD_REMOVE
        aim = math.log(float(left.ball().mid()))

        def excess(epsilon: float) -> float:
            total = sum(
                float(w)
                * float(
                    estimate_delta(run, epsilon, adjacency=relation)
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
    """Return an upper bound of δ(ε), 1 where none is found quickly."""
    try:
        found = profile.delta(
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
    with ctx.workprec(_BATCH_PRECISION):
        found = ball(probability).beta_lower(least, trials - least + 1, regularized=True)
        return (
            min(Fraction(1), Fraction(Interval.of_ball(found).upper))
            if found.is_finite()
            else Fraction(1)
        )


# --- Batches of B draws with replacement: how often a record is in a batch, and what follows ------
# Each of the B places of a batch takes one of N records, uniformly, independently. A person with k
# of them has J ~ Bin(B, p) places, p = k/N; T batches are independent. Gradients have norm at most
# 1. Given what stands at each place where it is none of these k records, let A_0 be the law of the
# noisy sum without them, A_j (j ≥ 1) that with them at some j places, w_j = P(J = j), η = P(J ≥ 1).
#
# **Add-remove, exactly.** Without the person a batch has the law A_0, with it Σ w_j A_j, whose
# means are at distance at most 2j from that of A_0: a `MixtureOfGaussians` of sensitivities 2j, for
# both orders. All others −u, the person's u attain it. J is cut at m: that it is larger in any step
# costs T P(J > m) of δ, and J given J ≤ m is stochastically no larger. Tails of J are rounded to
# few digits up, or down: a larger J is no more private, as every shift may be made longer.
#
# **Replace-one, above.** Let A'_j be the laws with the other records: both A_j and A'_j are at
# distance at most 2j from A_0, so that this is a `MixtureOfGaussians` where records are replaced.
# **Below**: all others and the new records −u, the old ones u, which is the pair of add-remove.
#
# **Zero-out** is a replacement by the gradient 0: above as before; below the sensitivities are j,
# where all others are 0.

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


# --- How batches are made, and what a whole training run then releases ----------------------------
# A run adds N(0, (noise_multiplier · C)²) noise to the sum of gradients that are clipped to norm C,
# in every step; all is in units of C. What a step sees of the data is the sampling, and each
# sampling comes with its own neighbouring relation:
#
# * "poisson": every record is in a batch with probability q = batch_size/dataset_size,
#   independently of all else; neighbours by add-remove. One step is
#   `PoissonSubsampled(Gaussian(noise_multiplier), q)`; with `group=k` neighbours differ in k
#   records, of which Binomial(k, q) are in a batch, and a step is a `MixtureOfGaussians`. Its pair
#   is worst for adaptively chosen steps too. (Other schemes have bounds for groups: the rule
#   above.)
# * "truncated-poisson": Poisson samples of which truncated_batch_size records are kept, at random,
#   where there are more; neighbours by add-remove. ε has two bounds, which nearly agree where
#   hardly any batch is cut (`TruncatedBatches`).
# * "without-replacement": every batch is a uniform subset of batch_size records, drawn anew;
#   neighbours by replace-one. Replacing a clipped gradient moves the sum by at most 2C, so a step
#   is `SampledWithoutReplacement(Gaussian(noise_multiplier, l2_sensitivity=2), …)`.
# * "with-replacement": each of the batch_size places of a batch takes one of the records,
#   uniformly, drawn anew; neighbours by replace-one, with two bounds; add-remove is exact
#   (`WithReplacement`).
# * "random-allocation": every record is in one step of each epoch, chosen uniformly, independently
#   of all else; neighbours by add-remove. An epoch is `RandomAllocation(Gaussian(…), steps=t)`, t =
#   ⌊dataset_size/batch_size⌋. More steps are no worse: one of t' > t is one of a random set of t,
#   and hockey-stick divergences are jointly convex.
# * "shuffle": the records are put into a random order in each epoch and cut into batches.
#   Neighbours differ in a record whose gradient is 0 in one of them ("add-remove" in the answers:
#   batches stay). Given the order, which does not depend on gradients, a record is in one batch of
#   an epoch, so that an epoch is a Gaussian release of it, and by joint convexity no worse for a
#   random order: that is the upper end. The lower one is that of a dataset and an event
#   (`dpassay.accountant.pairs.shuffling`), or for one epoch, if larger, that of the dataset where
#   all other gradients are 0. There only the batch of the record matters, and with ⌈N/B⌉ batches
#   its law w is that of a random allocation, or less even; the uniform law is the mean of w over
#   permutations of the steps, which leave hockey-stick divergences alone, so that by joint
#   convexity the allocation is no worse.
#
# The other neighbouring relations are below.
#
# A guarantee for Poisson batches does not hold for shuffled ones.

# --- Training under another neighbouring relation than that of the sampling: bounds of ε ----------
# Neighbours differ in one record, added or removed, replaced by another ("replace-one"), or with
# the gradient 0 in one of them ("zero-out"); the number of steps stays. A replacement by a record
# whose gradient is 0 is a zero-out, so that what is proved above of replace-one holds for it, and
# what is attained by zero-out is attained by replace-one. Gradients have norm at most 1, u is a
# unit vector.
#
# * *Poisson*: zero-out is add-remove. Replace-one is exact (`MixtureOfGaussians`), for k records
#   too.
# * *Random allocation*: zero-out is add-remove. Replace-one, above: given the steps, an epoch is a
#   Gaussian release of sensitivity 2; or the record is zeroed out, and the other one put in (the
#   rule above, for two). Below: zero-out, or −u for u, and the sum of all noisy sums, N(2E, Etσ²)
#   against N(0, Etσ²).
# * *Shuffled batches*, replace-one: sensitivity 2 in each epoch; below u is replaced by −u where
#   all others are −u. Add-remove: a random order of N records is one of N − 1 of which that at a
#   random place makes room for the record and moves to the end. So one batch moves by at most 2 and
#   the last one by at most 1, together by √5; below the record is u, all others −u, and the batches
#   that are full with and without it are looked at.
# * *Truncated Poisson batches*: whatever is drawn, a record that is kept moves the sum by at most
#   2, as does the other one in its place: no worse than a sample of sensitivity 2 without
#   replacement with the same probability. And δ is at most that of batches that are not cut, plus T
#   P(J ≥ B). Below all other gradients are 0, and the record is kept with probability q P(J < B) at
#   least.
# * *Without replacement*, add-remove: a sample of B others, one of which makes room for the record
#   with probability B/N, which moves the sum by at most 2. So it is exactly a Poisson sample of
#   sensitivity 2, attained where all others are −u. Zero-out: above replace-one, below all others
#   0.
#
# Of k records. *Without replacement*, add-remove: a sample of N − k others, of which J make room, J
# of the k being in a batch of B of N: exactly a mixture. *Shuffled batches*: k times as far, and
# the bounds above with moves twice as long. *Random allocation*: all k are zeroed out, and the
# others put in. Elsewhere the upper ends are those of the rule for groups, or of `one_is_drawn`,
# and no lower end is below that of one record.

RELATIONS = ("add-remove", "replace-one", "zero-out")

Asked: TypeAlias = tuple[Mechanism, Adjacency]
Bound: TypeAlias = Callable[[ExactReal], Decimal]


@final
@dataclass(frozen=True)
class _Ends:
    """Releases that are no worse, and releases that are no better, each under a relation."""

    most: tuple[Asked, ...]
    least: tuple[Asked, ...] = ()
    below: Bound | None = None
    """A lower bound of another kind."""
    rare: tuple[Asked, Fraction] | None = None
    """A release that is no better but with a probability."""
    twice: Asked | None = None
    """A release that is no better where it is changed twice."""
    above: Bound | None = None
    """An upper bound of another kind."""

    def upper(self, delta: ExactReal) -> Interval:
        """Return the least upper bound, as an interval from 0, or from it where it is negative."""
        found = [enclosed(*each, delta).upper for each in self.most]
        if self.rare is not None:
            rare, chance = self.rare
            left = rational_below(delta) - chance
            if left > 0:
                found.append(enclosed(*rare, ExactReal.of_rational(left)).upper)
        if self.twice is not None:
            run, relation = self.twice
            found.append(by_rule(lambda each: enclosed(run, relation, each), 2, delta))
        if self.above is not None:
            found.append(self.above(delta))
        return Interval(min(Decimal(0), *found), min(found))

    def lower(self, delta: ExactReal) -> Decimal:
        """Return the largest lower bound."""
        found = [enclosed(*each, delta).lower for each in self.least]
        if self.below is not None:
            found.append(self.below(delta))
        return max(found, default=least_epsilon(delta))


def in_words(relation: str, group: int) -> str:
    """Say in what neighbours differ."""
    one = group == 1
    who, is_, has = ("one record", "is", "has") if one else (f"{group} records", "are", "have")
    return {
        "add-remove": f"Neighbours: {who} {is_} added or removed; the number of steps and what "
        "sums are divided by stay.",
        "replace-one": f"Neighbours: {who} {is_} replaced by {'another' if one else 'others'}, "
        "which moves a sum by up to 2C each.",
        "zero-out": f"Neighbours: {who} {has} the gradient 0 in one of them.",
    }[relation]


def with_neighbours(assumptions: Sequence[str], relation: str, group: int) -> tuple[str, ...]:
    """Return the assumptions of a run with other words for its neighbours."""
    words = in_words(relation, group)
    return tuple(words if text.startswith("Neighbours:") else text for text in assumptions)


def lower_end(low: Decimal, delta: ExactReal, otherwise: str) -> str:
    """Say what a lower end rests on: `otherwise`, unless every mechanism has it."""
    every = low == least_epsilon(delta)
    return f"Lower end: {'ln(1 - delta), which every mechanism has' if every else otherwise}."


def other(base: Scheme, sampling: str, relation: str, sigma: ExactReal, loop: Loop) -> Scheme:
    """Return a scheme under a relation that is not its own."""
    k = loop.group
    known = _KNOWN[sampling, relation](sigma, loop)
    alone = _KNOWN[sampling, relation](sigma, replace(loop, group=1))
    run, adjacency = known.most[0]
    exact = known.least == known.most
    if k > 1 and not exact:  # in every step each of them moves the sum by up to 2C
        run = times(Gaussian(sigma, 2 * k), loop.steps)

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        upper, low = known.upper(delta).upper, known.lower(delta)
        if k > 1:
            always = enclosed(run, adjacency, delta).upper
            upper = min(upper, by_rule(alone.upper, k, delta), always)
            low = max(low, alone.lower(delta))
        least = lower_end(low, delta, "a dataset whose other gradients are 0, or all the same")
        return Interval(min(low, upper), upper), f"{least} Upper end: proved for every dataset."

    return replace(
        base,
        mechanism=run,
        adjacency=adjacency,
        assumptions=with_neighbours(base.assumptions, relation, k),
        ends=None if exact else ends,
    )


def _allocation(sigma: ExactReal, loop: Loop) -> _Ends:
    (_, epochs), t, k = loop.whole_epochs, loop.full_batches, loop.group
    zeroed = shared_noise(sigma, t, epochs, k), Adjacency.ADD_REMOVE
    moved = times(Gaussian(sigma, 2 * k), epochs), Adjacency.REPLACE_ONE
    attained = [*gathered(sigma, t, epochs, k), _added_up(sigma, t * epochs, 2 * k * epochs)]
    return _Ends((moved,), tuple((each, Adjacency.ADD_REMOVE) for each in attained), twice=zeroed)


def _added_up(sigma: ExactReal, steps: int, moves: int) -> Mechanism:
    """Return the release of the sum of all noisy sums."""
    return Gaussian(sigma * ExactReal.of_root(Fraction(steps)), moves)


def _shuffled(sigma: ExactReal, loop: Loop, *, added: bool) -> _Ends:
    (done, begun), k = loop.whole_epochs, loop.group
    moves = ExactReal.of_root(Fraction(5 * k**2)) if added else ExactReal.of_rational(2 * k)
    relation = Adjacency.ADD_REMOVE if added else Adjacency.REPLACE_ONE
    full = (loop.size - 1 if added else loop.size) // loop.batch
    least: tuple[Asked, ...] = ()
    if k > 1 and done:
        steps = done * math.ceil(1 / loop.share)
        least = ((_added_up(sigma, steps, (1 if added else 2) * k * done), Adjacency.ADD_REMOVE),)

    def below(delta: ExactReal) -> Decimal:
        if not done or not full or delta.sign == 0 or k > 1:
            return least_epsilon(delta)
        found, _ = ShuffledBatches(sigma, loop.batch, loop.size, done, full, (2, 0)).lower(delta)
        return Interval.of_ball(found).lower

    def above(delta: ExactReal) -> Decimal:
        together = Fraction(loop.batch - 1, max(1, loop.size - 1))
        return shuffled(sigma / ExactReal.of_rational(2), begun, k, together, delta)

    return _Ends(
        ((times(Gaussian(sigma, moves), begun), relation),),
        least,
        below=below,
        above=None if added or k == 1 else above,
    )


def _truncated(sigma: ExactReal, loop: Loop, *, zero: bool) -> _Ends:
    assert loop.most is not None
    k = loop.group
    cut = TruncatedBatches(sigma, loop.size, loop.share, loop.most, loop.steps, k)
    relation = Adjacency.ADD_REMOVE if zero else Adjacency.REPLACE_ONE
    kept = 1 - cut.crowded
    whole = one_is_drawn(sigma, loop.batch, loop.size, loop.steps, k)
    return _Ends(
        ((whole, Adjacency.REPLACE_ONE),),
        ((cut.run(0, kept), relation),) if kept else (),
        rare=((cut.run(0), relation), loop.steps * cut.crowded),
    )


def _subset(sigma: ExactReal, loop: Loop, *, zero: bool) -> _Ends:
    k = loop.group
    if not zero and loop.batch > loop.size - k:
        raise expected(
            "batch_size",
            loop.batch,
            f"< dataset_size={loop.size}"
            + (f" - {k - 1}" if k > 1 else "")
            + f" where {'a record is' if k == 1 else f'{k} records are'} removed",
            "A batch has as many records without it." if k == 1 else "Batches keep their size.",
        )
    moves = 1 if zero else 2
    run = (
        times(PoissonSubsampled(Gaussian(sigma, moves), _share(loop)), loop.steps)
        if k == 1
        else drawn(sigma, loop.batch, loop.size, loop.steps, k, moves=moves)
    )
    least = ((run, Adjacency.ADD_REMOVE),)
    if not zero:
        return _Ends(least, least)
    whole = one_is_drawn(sigma, loop.batch, loop.size, loop.steps, k)
    return _Ends(((whole, Adjacency.REPLACE_ONE),), least)


def _share(loop: Loop) -> ExactReal:
    return ExactReal.of_rational(loop.share)


_KNOWN: dict[tuple[str, str], Callable[[ExactReal, Loop], _Ends]] = {
    ("random-allocation", "replace-one"): _allocation,
    ("shuffle", "add-remove"): lambda sigma, loop: _shuffled(sigma, loop, added=True),
    ("shuffle", "replace-one"): lambda sigma, loop: _shuffled(sigma, loop, added=False),
    ("truncated-poisson", "replace-one"): lambda sigma, loop: _truncated(sigma, loop, zero=False),
    ("truncated-poisson", "zero-out"): lambda sigma, loop: _truncated(sigma, loop, zero=True),
    ("without-replacement", "add-remove"): lambda sigma, loop: _subset(sigma, loop, zero=False),
    ("without-replacement", "zero-out"): lambda sigma, loop: _subset(sigma, loop, zero=True),
}
"""What is known of a sampling under another relation than its own."""


_APART = Fraction(1, 1000)
"""Relative width of bounds that differ by some percent: more digits take many times as long."""
TRUNCATED, REPLACED = "truncated-poisson", "with-replacement"
"""The sampling that needs a limit of its batches, and one that is named in several places."""


def scheme(sampling: str, sigma: ExactReal, loop: Loop, neighbours: str | None = None) -> Scheme:
    """Return what a run releases, for the neighbours that a sampling comes with, or for others.

    Raises InvalidInputError for an unknown sampling or relation, or a limit of batches that does
    not fit it.
    """
    if sampling not in SCHEMES:
        raise InvalidInputError(
            f"Expected sampling to be one of {', '.join(SCHEMES)}, not {sampling!r}. "
            f"{suggestion(str(sampling), SCHEMES, listed=False)}".rstrip()
        )
    if (loop.most is None) == (sampling == TRUNCATED):
        raise InvalidInputError(
            f"Expected truncated_batch_size with sampling={TRUNCATED!r}: the records that are kept "
            "of a larger batch."
            if loop.most is None
            else f"Expected sampling={TRUNCATED!r} with truncated_batch_size={loop.most}, not "
            f"{sampling!r}."
        )
    if neighbours is None or neighbours == OWN[sampling]:
        return SCHEMES[sampling](sigma, loop)
    if neighbours not in RELATIONS:
        raise InvalidInputError(
            f"Expected neighbours to be one of {', '.join(RELATIONS)}, not {neighbours!r}. "
            f"{suggestion(str(neighbours), RELATIONS, listed=False)}".rstrip()
        )
    if sampling == REPLACED:
        return _with_replacement(sigma, loop, neighbours)
    replaced = neighbours == "replace-one"
    if sampling == "poisson" or (sampling == "random-allocation" and not replaced):
        own = SCHEMES[sampling](sigma, loop)  # a record adds its gradient or not
        words = with_neighbours(own.assumptions, neighbours, loop.group)
        relation = Adjacency.REPLACE_ONE if replaced else Adjacency.ADD_REMOVE
        return replace(own, adjacency=relation, assumptions=words)
    one = SCHEMES[sampling](sigma, replace(loop, group=1))
    return other(one, sampling, neighbours, sigma, loop)


def _poisson(sigma: ExactReal, loop: Loop) -> Scheme:
    """Each of a person's records is in each step with probability q."""
    q, group = loop.share, loop.group
    records = "one record is" if group == 1 else f"{group} records are"
    return Scheme(
        times(sampled(sigma, q, group), loop.steps),
        Adjacency.ADD_REMOVE,
        (
            f"Every step takes each record with probability {loop.share_in_words}, "
            "independently: batches differ in size, and none is cut or filled up.",
            f"Neighbours: {records} added or removed.",
            loop.steps_in_words,
        ),
        loop.steps,
        q,
    )


def _truncated_poisson(sigma: ExactReal, loop: Loop) -> Scheme:
    """Where batches are cut, a record that is kept may take the place of another one."""
    assert loop.most is not None
    cut = TruncatedBatches(sigma, loop.size, loop.share, loop.most, loop.steps, loop.group)
    whole = _poisson(sigma, loop)

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        upper, crowded = cut.upper(delta)
        how = (
            f"in up to {crowded} steps a record may take another one's place, which moves the sum "
            "by 2C"
            if crowded
            else "no batch is cut"
        )
        low = cut.lower(delta)
        least = lower_end(low, delta, "all other gradients are 0")
        return Interval(low, upper), (
            f"{least} Upper end: {how}; the probability of worse is charged to delta."
        )

    assumption, *rest = whole.assumptions
    limited = assumption.replace(
        "and none is cut or filled up.",
        f"none is filled up, and of more than {loop.most} records {loop.most} are kept, all "
        "subsets equally likely.",
    )
    return replace(whole, mechanism=cut.worst(), assumptions=(limited, *rest), ends=ends)


def _without_replacement(sigma: ExactReal, loop: Loop) -> Scheme:
    k = loop.group
    release = SampledWithoutReplacement(Gaussian(sigma, 2), loop.batch, loop.size)
    alone, always = times(release, loop.steps), times(Gaussian(sigma, 2 * k), loop.steps)
    together = one_is_drawn(sigma, loop.batch, loop.size, loop.steps, k)

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        least = drawn(sigma, loop.batch, loop.size, loop.steps, k)
        found = profile.epsilon(least, delta, adjacency=Adjacency.ADD_REMOVE)
        rule = by_rule(partial(enclosed, alone, Adjacency.REPLACE_ONE), k, delta)
        both = (enclosed(run, Adjacency.REPLACE_ONE, delta).upper for run in (always, together))
        return Interval(found.lower, min(rule, *both)), (
            f"Lower end: all other gradients are -C*u for one direction u, those of the {k} "
            "records C*u. Upper end: they are replaced one after the other, are in a batch all or "
            "none, or in all batches."
        )

    records = "one record is replaced" if k == 1 else f"{k} records are replaced, each"
    return Scheme(
        alone if k == 1 else always,
        Adjacency.REPLACE_ONE,
        (
            f"Every step draws {loop.batch} of the {loop.size} records, all subsets equally "
            "likely, independently of the steps before.",
            f"Neighbours: {records} by another, which moves a sum by up to 2C.",
            loop.steps_in_words,
        ),
        loop.steps,
        loop.share,
        None if k == 1 else ends,
    )


def _with_replacement(sigma: ExactReal, loop: Loop, neighbours: str = "replace-one") -> Scheme:
    k, added = loop.group, neighbours == "add-remove"
    if k >= loop.size:
        raise expected("group", k, f"< dataset_size={loop.size}", "Others must be there.")
    run = WithReplacement(sigma, loop.batch, Fraction(k, loop.size), loop.steps)
    relation = Adjacency.ADD_REMOVE if added else Adjacency.REPLACE_ONE

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        width = None if added else _APART
        upper = run.upper(delta, relation, width)
        lower = run.lower(delta, 1 if neighbours == "zero-out" else 2, width)
        reason = (
            "Both ends: by how many places of a batch a person's records take, up to a number that "
            "is exceeded so rarely that the probability is charged to delta."
            if added
            else "Lower end: all other gradients are 0, or the opposite of the person's. Upper "
            "end: wherever a person's records are, they and what replaces them move a sum in "
            "opposite directions by 2C."
        )
        return Interval(min(lower, upper), upper), reason

    return Scheme(
        run.whole,
        relation,
        (
            f"Every step fills {loop.batch} places with one of the {loop.size} records each, all "
            "equally likely, independently: a record may be in a batch more than once.",
            in_words(neighbours, k),
            loop.steps_in_words,
        ),
        loop.steps,
        loop.share,
        ends,
    )


def _allocated(sigma: ExactReal, steps: int, epochs: int) -> Mechanism:
    return times(RandomAllocation(Gaussian(sigma), steps), epochs)


def _random_allocation(sigma: ExactReal, loop: Loop) -> Scheme:
    (_, epochs), t, k = loop.whole_epochs, loop.full_batches, loop.group
    alone = _allocated(sigma, t, epochs)
    shared = shared_noise(sigma, t, epochs, k)

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        of = partial(enclosed, adjacency=Adjacency.ADD_REMOVE, delta=delta)
        below = [of(each).lower for each in gathered(sigma, t, epochs, k)]
        rule = by_rule(partial(enclosed, alone, Adjacency.ADD_REMOVE), k, delta)
        return Interval(max(below), min(rule, of(shared).upper)), (
            "Lower end: the gradients of the records are orthogonal or equal, and all others 0. "
            "Upper end: each record has its share of the noise, or the records are left out one "
            "after the other."
        )

    return Scheme(
        alone if k == 1 else shared,
        Adjacency.ADD_REMOVE,
        (
            "In every epoch each record is in one step, each step equally likely, independently "
            "of the other records and epochs: batches differ in size, and none is cut or filled "
            "up.",
            f"Neighbours: {_zeroed(k, 'added or removed')}; the number of steps and what sums "
            "are divided by stay.",
            loop.epochs_in_words,
        ),
        loop.given_steps or epochs * t,
        Fraction(1, t),
        None if k == 1 else ends,
    )


def _zeroed(group: int, changed: str = "") -> str:
    """Say in which records neighbours differ."""
    if group == 1:
        who, is_, has = "one record", "is", "has"
    else:
        who, is_, has = f"{group} records", "are", "have"
    first = f"{who} {is_} {changed}, or" if changed else who
    return f"{first} {has} the gradient 0"


def _shuffle(sigma: ExactReal, loop: Loop) -> Scheme:
    (done, begun), k = loop.whole_epochs, loop.group
    most = math.ceil(1 / loop.share)
    whole = times(Gaussian(sigma, k), begun)

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        if k == 1:
            upper = enclosed(whole, Adjacency.ADD_REMOVE, delta).upper
        else:
            together = Fraction(loop.batch - 1, max(1, loop.size - 1))
            upper = shuffled(sigma, begun, k, together, delta)
        lower, reason = below(delta)
        return Interval(min(lower, upper), upper), reason

    def below(delta: ExactReal) -> tuple[Decimal, str]:
        if done == 0 or delta.sign == 0:
            return least_epsilon(delta), "Lower end: ln(1 - delta), as no epoch is whole."
        found, event = ShuffledBatches(sigma, loop.batch, loop.size, done).lower(delta)
        first = Interval.of_ball(found).lower
        reason = (
            "Lower end: all other gradients are -C*u for one direction u, the record's is C*u; "
            f"the event: {event} along u."
        )
        others: list[Mechanism] = [
            Gaussian(sigma * ExactReal.of_root(Fraction(done * most)), k * done)
        ]
        if done == 1:
            others.append(_allocated(sigma, most, 1))
        even = max(enclosed(each, Adjacency.ADD_REMOVE, delta).lower for each in others)
        if even > first:
            return even, (
                "Lower end: all other gradients are 0, and a test tells in which batches a record "
                "is, as for random allocation, or adds up all sums."
            )
        return first, reason

    smaller = "" if loop.size % loop.batch == 0 else ", the last batch being smaller"
    return Scheme(
        whole,
        Adjacency.ADD_REMOVE,
        (
            "In every epoch the records are put into a random order and cut into batches of "
            f"{loop.batch}{smaller}; the order does not depend on the gradients.",
            f"Neighbours: {_zeroed(k)} in one of them; batches and what sums are divided by stay.",
            loop.epochs_in_words,
        ),
        loop.given_steps or begun * most,
        loop.share,
        ends,
    )


SCHEMES: dict[str, Callable[[ExactReal, Loop], Scheme]] = {
    "poisson": _poisson,
    "random-allocation": _random_allocation,
    "shuffle": _shuffle,
    TRUNCATED: _truncated_poisson,
    "without-replacement": _without_replacement,
    REPLACED: _with_replacement,
}
"""How batches are made, by name."""

OWN = {
    "poisson": "add-remove",
    "random-allocation": "add-remove",
    "shuffle": "zero-out",
    TRUNCATED: "add-remove",
    "without-replacement": "replace-one",
    REPLACED: "replace-one",
}
"""The neighbours that each comes with."""
