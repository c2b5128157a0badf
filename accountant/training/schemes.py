"""The sampling schemes of DP-SGD, and the bounds on ε that hold for each.

The file has five parts: the length of a run (`Loop`), groups of records, truncated Poisson batches,
batches with replacement, and the table of schemes with their neighbouring relations. A comment
at the head of each part has its proofs.
"""

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
from dpassay.accountant.numbers.solve import first, fraction, halved
from dpassay.accountant.pairs.gaussian import gaussian_tails
from dpassay.accountant.pairs.shuffling import ShuffledBatches
from dpassay.accountant.questions import profile

# --- The settings of a training loop --------------------------------------------------------------

_PRECISION = 128
"""Bits of the rational lower bound on δ."""
_LARGE, _FEW = ExactReal.of_rational(Fraction(1, 2)), Fraction(1, 10**5)
"""For δ above the first number ε is enclosed to the second as relative width: there ε is hardly
above ln(1 − δ), and the usual ten digits take ten seconds."""


@final
@dataclass(frozen=True, slots=True)
class Loop:
    """The sizes and the length of a training run."""

    batch: int
    size: int
    epochs: Fraction | None
    """None if the length was given as a number of steps."""
    given_steps: int | None
    group: int
    most: int | None = None
    """Maximal size of a truncated Poisson batch, else None."""

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
        """Validate the settings and return the loop."""
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
        """The fraction of the records in a batch, batch/size."""
        return Fraction(self.batch, self.size)

    @property
    def share_in_words(self) -> str:
        """`share` as text: batch/size, or the float from which both sizes were derived."""
        nearest = float(self.share)
        is_float = self.size >= 1 << 32 and Fraction(nearest) == self.share
        return repr(nearest) if is_float else f"{self.batch}/{self.size}"

    @property
    def steps(self) -> int:
        """The number of steps, if batches are sampled independently."""
        if self.epochs is None:
            return self.given_steps or 0
        return math.ceil(self.epochs / self.share)

    @property
    def steps_in_words(self) -> str:
        """A sentence on the number of steps."""
        if self.epochs is None:
            return f"The run has {self.steps} step{'s' if self.steps > 1 else ''}."
        said = "One epoch is" if self.epochs == 1 else f"{self.epochs} epochs are"
        return f"{said} {self.steps} step{'s' * (self.steps > 1)} (rounded up)."

    @property
    def full_batches(self) -> int:
        """The number ⌊size/batch⌋ of full batches in an epoch, its least number of steps."""
        return self.size // self.batch

    @property
    def whole_epochs(self) -> tuple[int, int]:
        """The number of complete epochs, and an upper bound on the number of epochs begun."""
        if self.epochs is None:
            done = self.steps // math.ceil(1 / self.share)
            return done, math.ceil(Fraction(self.steps, self.full_batches))
        return math.floor(self.epochs), math.ceil(self.epochs)

    @property
    def epochs_in_words(self) -> str:
        """A sentence on the numbers of epochs and of steps per epoch."""
        (done, begun), full = self.whole_epochs, self.full_batches
        counted = "" if done == begun else " (an unfinished one counts in full)"
        words = f"The run has {begun} epoch{'s' if begun > 1 else ''}{counted}"
        if self.size % self.batch == 0:
            return f"{words}, of {full} step{'s' if full > 1 else ''} each."
        return f"{words}, of {full} steps or more each ({self.size}/{self.batch} is not whole)."


@final
@dataclass(frozen=True, slots=True)
class Scheme:
    """A run under one sampling scheme."""

    mechanism: Mechanism
    """The composition of all steps, or a mechanism whose δ(ε) is an upper bound."""
    adjacency: Adjacency
    assumptions: tuple[str, ...]
    steps: int
    share: Fraction
    ends: Callable[[ExactReal], tuple[Interval, str]] | None = None
    """Maps δ to an enclosure of ε(δ) and a text on what proves its ends. None: ε(δ) of the
    mechanism is exact."""

    def epsilon(self, delta: ExactReal) -> tuple[Interval, str]:
        """Enclose ε(δ); the text says what proves each end, "" if the mechanism is exact."""
        if self.ends is not None:
            return self.ends(delta)
        return enclosed(self.mechanism, self.adjacency, delta), ""


def rational_below(delta: ExactReal) -> Fraction:
    """Return a rational lower bound on δ, accurate to 128 bits."""
    with ctx.workprec(_PRECISION):
        return Fraction(Interval.of_ball(delta.ball()).lower)


def least_epsilon(delta: ExactReal) -> Decimal:
    """Return a lower bound on ln(1 − δ), hence on ε(δ) of every mechanism.

    The event of all outcomes shows that δ(ε) ≥ 1 − e^ε for all P and Q.
    """
    if delta >= ExactReal.of_rational(1):
        return Decimal("-Infinity")
    return enclose(lambda: arb.log1p(-delta.ball())).lower


def enclosed(
    mechanism: Mechanism,
    adjacency: Adjacency,
    delta: ExactReal,
    relative_width: Fraction | None = None,
) -> Interval:
    """Enclose ε(δ) to a relative width, or as narrowly as the default search reaches."""
    if relative_width is None and delta > _LARGE:
        relative_width = _FEW
    with contextlib.suppress(UndecidedError):
        return profile.epsilon(mechanism, delta, adjacency=adjacency, relative_width=relative_width)
    return profile.epsilon(mechanism, delta, adjacency=adjacency)


# --- Bounds on ε for a person with k records (group privacy) --------------------------------------
# Notation: N records, batches of B, E epochs of t steps, noise N(0, σ²), gradients of norm at most
# 1.
#
# **Group privacy rule.** Changing the records one after the other, (ε, δ₁)-DP for one record
# implies (kε, δ₁ Σ_{i<k} e^{iε})-DP for k records. Every δ₁ for which the second number is at most
# δ gives an upper bound on ε(δ).
#
# **Random allocation, upper bound.** Split the noise of a step into k independent parts of variance
# σ²/k. The step is then a function of k releases, each of one record with its own part of the
# noise. So k records are no worse than k allocations of one record with sensitivity √k.
#
# **Random allocation, lower bounds.** If the gradients of the k records are orthogonal, the run is
# k independent allocations. If they are equal and all other gradients are 0, the sum of all noisy
# sums is N(kE, Etσ²) against N(0, Etσ²) in whatever steps the records are; this holds for shuffled
# batches as well.
#
# **Shuffled batches, upper bound.** Let K be the number of epochs in which two of the person's
# records share a batch. Given the order, an epoch is a Gaussian release, of sensitivity √k if no
# two records share a batch and of sensitivity at most k otherwise. Two given records share a batch
# with probability at most p = (B − 1)/(N − 1), so K is stochastically at most Bin(E, min(1, k(k −
# 1)p/2)). By joint convexity
#
#     δ(ε) ≤ Σ_m P(K = m) δ_μ(ε),   μ = √(kE + (k² − k)m)/σ,
#
# where δ_μ is the profile of μ-Gaussian DP. It increases with m, so the binomial law may replace
# the law of K.
#
# **Batches without replacement, lower bound.** Let the k records have gradient u and all others −u,
# and replace the k records by others with gradient −u. A batch that contains i of the k records
# then moves by 2i, where i is hypergeometric.
#
# **Batches without replacement and truncated Poisson batches, upper bound.** At least one of the k
# records is drawn with probability η ≤ kB/N. Consider the batch given that none is drawn, the one
# in which the drawn records take the place of others, and the one in which they are replaced: any
# two of these sums differ by at most 2k. By advanced joint convexity the profile is at most that of
# sampling, with probability η, a release of sensitivity 2k (`SampledWithoutReplacement`).

_TRIES = 8
"""Maximal number of values of δ₁; after five the bound hardly improves."""
_SETTLED = 1e-2
"""Relative distance from δ at which the search for δ₁ stops; it changes ε by a tenth of this."""
_GROUP_PRECISION = 96
"""Bits of sums of profiles, which themselves have twelve digits."""
_HALVINGS = 40
"""Bisection steps for ε, which leave about twelve digits."""


def one_is_drawn(sigma: ExactReal, batch: int, size: int, steps: int, group: int) -> Mechanism:
    """Return an upper bound for batches in which k records are replaced (η = kB/N above)."""
    whole = SampledWithoutReplacement(Gaussian(sigma, 2 * group), min(group * batch, size), size)
    return times(whole, steps)


def times(release: Mechanism, count: int) -> Mechanism:
    """Return the composition of `count` releases, without a wrapper if there is only one."""
    return release if count == 1 else Composed(release, count)


def _log(number: ExactReal) -> float:
    """Return about ln x, also for an x below all floats."""
    with ctx.workprec(_GROUP_PRECISION):
        return float(number.ball().log().mid())


def by_rule(epsilon: Callable[[ExactReal], Interval], group: int, delta: ExactReal) -> Decimal:
    """Return an upper bound on ε(δ) of a group by the group privacy rule.

    `epsilon` maps δ₁ to an enclosure of ε(δ₁) for one record. The search for δ₁ is in floats; only
    values that satisfy the rule in ball arithmetic count.
    """
    best = Decimal("Infinity")
    low, high = -math.inf, _log(delta)  # ln δ₁: satisfies the rule, violates it
    at = high - math.log(group)
    for _ in range(_TRIES):
        first = ExactReal.of_rational(fraction(arb(at).exp().mid()))
        try:
            each = epsilon(first).upper
        except UndecidedError:  # δ₁ is too small
            break
        if not each.is_finite():
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
    """Return lower bounds for random allocation of a group, which some datasets attain."""
    direction = Gaussian(sigma * ExactReal.of_root(Fraction(epochs * steps)), group * epochs)
    return [times(RandomAllocation(Gaussian(sigma), steps), group * epochs), direction]


def shared_noise(sigma: ExactReal, steps: int, epochs: int, group: int) -> Mechanism:
    """Return an upper bound for random allocation of a group."""
    alone = Gaussian(sigma, ExactReal.of_root(Fraction(group)))
    return times(RandomAllocation(alone, steps), group * epochs)


def shuffled(
    sigma: ExactReal, epochs: int, group: int, together: Fraction, delta: ExactReal
) -> Decimal:
    """Return an upper bound on ε(δ) for a group in shuffled batches; `together` is p above."""
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
    """Return the mixture by which batches without replacement move: 2i with hypergeometric i.

    `moves` is the shift of one record. It is a lower bound for replaced records, and exact for
    added or removed ones.
    """
    ways = range(max(0, batch - size + group), min(batch, group) + 1)
    law = [
        Fraction(math.comb(group, i) * math.comb(size - group, batch - i), math.comb(size, batch))
        for i in ways
    ]
    return times(MixtureOfGaussians(sigma, [moves * i for i in ways], law), steps)


# --- Truncated Poisson batches: untruncated runs that bound them ----------------------------------
# Each step samples each record independently with probability q. If the sample has more than B
# records, a uniformly random subset of B is kept. One neighbour has N records, the other one more.
# Let J ~ Bin(N, q) be the number of the N common records in the sample of a step.
#
# **Upper bound.** If J < B, the batch is not cut, and the step is a Poisson-sampled release of
# sensitivity 1. If J ≥ B, then given the sample of common records and the order in which records
# are dropped, the new record is absent, or is added, or displaces another record. This moves the
# sum of clipped gradients by at most 2, so by joint convexity the step is no worse than a
# Poisson-sampled release of sensitivity 2. The number K of steps with J ≥ B is Bin(T, P(J ≥ B))
# under both neighbours, independently of the outputs. Let δ_k be the profile of T − k steps of
# sensitivity 1 and k steps of sensitivity 2; it increases with k. For all m_0 < … < m_l,
#
#     δ(ε) ≤ Σ_k P(K = k) δ_k(ε) ≤ Σ_i (t_{i−1} − t_i) δ_{m_i}(ε) + t_l,
#
# where t_i = P(K > m_i) and t_{−1} = 1. The last expression increases with every t_i, so upper
# bounds may be inserted for them.
#
# For a person with k records, a batch can be cut only if J > B − k. The sample contains Bin(k, q)
# of the records, and i of them then move the sum by at most 2i. (If i records move the sum by at
# most s_i, the worst case is a move by exactly s_i along one line: there the best events are
# half-lines, and the hockey-stick divergence increases with every s_i.)
#
# **Lower bound.** Let the common records have gradient 0. One neighbour then releases noise alone;
# the other adds the new record's gradient in the steps that keep it, independently with probability
# q' ≥ q · P(J < B). This is an untruncated run with q' in place of q. Its δ increases with q': the
# pair for a smaller probability arises from the pair for a larger one by replacing each step with
# noise alone, independently with suitable probability. With k records of equal gradient, all
# records in the sample are kept if J ≤ B − k; assuming that none is kept otherwise only shrinks the
# divergence.

_BATCH_PRECISION = 128
"""Bits of binomial tails; for N up to 1e9 ten digits of them are certain."""
_SHARE = 1000
"""P(K > m_l) may use the fraction 1/_SHARE of δ; a larger part would increase ε."""
_LEVELS = 5
"""Maximal number of values m_i. Each costs one profile, and more hardly improve the bound."""
_USUAL = Fraction(1, 4)
"""Upper bound on P(K > m_0): the typical number of cut batches gets the largest weight."""
_WIDTH = Fraction(1, 10**5)
"""Relative width of the profiles δ_m; ten digits of such mixed compositions would take long."""
_NEAR = 1e-6
"""Relative tolerance of the search in floats."""
_SLACKS = (Fraction(1, 50_000), Fraction(1, 10**3))
"""Relative excesses over the root found in floats at which a proof is attempted."""


@final
@dataclass(frozen=True)
class TruncatedBatches:
    """T steps with Poisson samples of probability q, from N or N + k records, cut to B records."""

    sigma: ExactReal
    size: int
    share: Fraction
    most: int
    steps: int
    group: int = 1

    def run(self, crowded: int, kept: Fraction = Fraction(1)) -> Mechanism:
        """Return an untruncated run with `crowded` steps of sensitivity 2, the others 1.

        Each step is replaced by noise alone with probability 1 − `kept`.
        """
        parts: list[Mechanism] = [
            Composed(sampled(self.sigma, self.share, self.group, sensitivity, kept), count)
            for sensitivity, count in ((1, self.steps - crowded), (2, crowded))
            if count
        ]
        return parts[0] if len(parts) == 1 else Composed(parts)

    def worst(self) -> Mechanism:
        """Return an untruncated run whose δ(ε) is an upper bound for all ε."""
        return self.run(self.steps if self.crowded else 0)

    def lower(self, delta: ExactReal) -> Decimal:
        """Return a lower bound on ε(δ)."""
        kept = 1 - self.crowded
        return (
            enclosed(self.run(0, kept), Adjacency.ADD_REMOVE, delta).lower
            if kept
            else least_epsilon(delta)
        )

    def upper(self, delta: ExactReal) -> tuple[Decimal, int]:
        """Return an upper bound on ε(δ), and m_l."""
        levels = self._levels(delta)
        runs = [self.run(m) for m, _ in levels]
        last, beyond = levels[-1]
        left = ExactReal.of_rational(rational_below(delta) - beyond)
        bound = enclosed(runs[-1], Adjacency.ADD_REMOVE, delta if beyond == 0 else left).upper
        if len(levels) > 1:
            falling = list(accumulate((tail for _, tail in reversed(levels)), max))
            tails = [Fraction(1), *reversed(falling)]  # upper bounds, made non-increasing
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
        """An upper bound on P(J > B − k)."""
        return binomial_tail(self.size, self.share, self.most - self.group + 1)

    def _levels(self, delta: ExactReal) -> list[tuple[int, Fraction]]:
        """Return pairs of m_i and an upper bound on t_i, the last bound at most δ/_SHARE."""
        room = rational_below(delta) / _SHARE
        found: dict[int, Fraction] = {}
        tail = partial(binomial_tail, self.steps, self.crowded)
        for level in range(_LEVELS):
            most = _USUAL * (room / _USUAL) ** Fraction(level, _LEVELS - 1)
            least = bisect_left(range(self.steps), True, key=lambda m: tail(m + 1) <= most)
            found[least] = tail(least + 1)
        return sorted(found.items())

    def _candidates(
        self, runs: list[Mechanism], weights: list[Fraction], left: ExactReal, most: Decimal
    ) -> list[Decimal]:
        """Return candidates for an upper bound slightly above the root, which is found in floats.

        For groups it evaluates proved profiles, because estimating mixtures of several shifts takes
        longer.
        """
        from scipy.optimize import brentq

        from dpassay.accountant.questions.estimate import estimate_delta

        relation = Adjacency.ADD_REMOVE
        aim = _log(left)

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
    """Return a step in which each of k records, if Poisson sampled, shifts the sum by `moves`.

    The step is replaced by noise alone with probability 1 − `kept`.
    """
    if group == 1:
        return PoissonSubsampled(Gaussian(sigma, moves), ExactReal.of_rational(q * kept))
    law = [kept * math.comb(group, i) * q**i * (1 - q) ** (group - i) for i in range(group + 1)]
    law[0] += 1 - kept
    return MixtureOfGaussians(sigma, [moves * i for i in range(group + 1)], law)


def _delta(mechanism: Mechanism, epsilon: Decimal) -> Fraction:
    """Return an upper bound on δ(ε); 1 if none was found."""
    try:
        found = profile.delta(
            mechanism, epsilon, adjacency=Adjacency.ADD_REMOVE, relative_width=_WIDTH
        )
    except UndecidedError as error:
        return Fraction(1) if error.interval is None else Fraction(error.interval.upper)
    return Fraction(found.upper)


def binomial_tail(trials: int, probability: Fraction, least: int) -> Fraction:
    """Return an upper bound on P(Bin(trials, probability) ≥ least)."""
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


# --- Batches of B draws with replacement ----------------------------------------------------------
# Each of the B places of a batch takes one of the N records, uniformly and independently. A person
# with k records has J ~ Bin(B, p) of the places, p = k/N. The T batches are independent, and
# gradients have norm at most 1. Fix, for each place, the record it takes if it takes none of the
# person's. Let A_0 be the law of the noisy sum without the person's records, A_j (j ≥ 1) the law
# with them at some j places, and w_j = P(J = j).
#
# **Add-remove, exact.** Without the person a batch has the law A_0. With the person it has the law
# Σ w_j A_j, where the mean of A_j is at distance at most 2j from that of A_0. In both directions
# this is a `MixtureOfGaussians` with sensitivities 2j. It is attained if the person's gradients are
# u and all others −u. The law of J is cut at m: the event that J > m in some step costs T P(J > m)
# of δ, and J given J ≤ m is stochastically at most J. The tails of J are rounded to a few digits,
# up for an upper bound and down for a lower one; a stochastically larger J is no more private,
# because every shift can be enlarged.
#
# **Replace-one.** Upper bound: let A'_j be the laws with the new records. Both A_j and A'_j are at
# distance at most 2j from A_0, so this is a `MixtureOfGaussians` under replacement. Lower bound: if
# the old records have gradient u, the new ones and all others −u, the pair is that of add-remove.
#
# **Zero-out** is replacement by a record with gradient 0. The upper bound is that of replace-one.
# For the lower bound all other gradients are 0, and the sensitivities are j.

_BITS = 96
"""Leading bits of rounded tails, far more than the digits of an answer."""
_CUT = Fraction(1, 10**12)
"""The fraction of δ that T P(J > m) may use; answers have about ten digits."""

_WITH_REPLACEMENT_USUAL = Fraction(1, 10**9)
"""The δ for which `WithReplacement.usual` cuts the law of J."""


@final
@dataclass(frozen=True)
class WithReplacement:
    """T batches of B places; a person takes each place with probability p, 0 < p < 1."""

    sigma: ExactReal
    batch: int
    share: Fraction
    steps: int

    def tail(self, j: int) -> Fraction:
        """Return an upper bound on P(J ≥ j)."""
        return _rounded(binomial_tail(self.batch, self.share, j), up=True)

    def cut(self, delta: ExactReal) -> tuple[int, Fraction]:
        """Return m, and an upper bound on the probability that J > m in some step."""
        room = rational_below(delta) * _CUT / self.steps
        m = 1
        while binomial_tail(self.batch, self.share, m + 1) > room:
            m += 1
        return m, self.steps * self.tail(m + 1)

    @property
    def usual(self) -> int:
        """The cut m for δ = 1e-9."""
        return self.cut(ExactReal.of_rational(_WITH_REPLACEMENT_USUAL))[0]

    def mixed(self, moves: int, most: int, *, up: bool) -> Mechanism:
        """Return T mixtures with sensitivities moves·j, j ≤ most, and rounded tails of J."""
        return self._mixture([moves * j for j in range(most + 1)], up=up)

    def _mixture(self, moves: list[int], *, up: bool) -> Mechanism:
        """Return T mixtures with sensitivity moves[j] if J = j, moves[-1] if J is larger."""
        tails = [Fraction(1)]
        for j in range(1, len(moves)):
            tails.append(min(tails[-1], self.tail(j) if up else self._least(j)))
        law = [a - b for a, b in pairwise([*tails, Fraction(0)])]
        return times(MixtureOfGaussians(self.sigma, moves, law), self.steps)

    @property
    def whole(self) -> Mechanism:
        """Return T mixtures whose δ(ε) is an upper bound for all ε: a large J counts as B."""
        most = min(self.usual, self.batch - 1)
        return self._mixture([*range(0, 2 * most + 1, 2), 2 * self.batch], up=True)

    def _least(self, j: int) -> Fraction:
        """Return a lower bound on P(J ≥ j)."""
        with ctx.workprec(_BITS):
            found = ball(self.share).beta_lower(j, self.batch - j + 1, regularized=True)
            low = Interval.of_ball(found).lower if found.is_finite() else Decimal(0)
        return _rounded(max(Fraction(low), Fraction(0)), up=False)

    def lower(
        self, delta: ExactReal, moves: int = 2, relative_width: Fraction | None = None
    ) -> Decimal:
        """Return a lower bound on ε(δ), attained with sensitivities moves·j."""
        run = self.mixed(moves, self.cut(delta)[0], up=False)
        return enclosed(run, Adjacency.ADD_REMOVE, delta, relative_width).lower

    def upper(
        self, delta: ExactReal, relation: Adjacency, relative_width: Fraction | None = None
    ) -> Decimal:
        """Return an upper bound on ε(δ) under add-remove or replace-one."""
        most, beyond = self.cut(delta)
        left = ExactReal.of_rational(rational_below(delta) - beyond)
        return enclosed(self.mixed(2, most, up=True), relation, left, relative_width).upper


def _rounded(value: Fraction, *, up: bool) -> Fraction:
    """Round a nonnegative fraction to _BITS leading bits, up or down."""
    if value in {0, 1}:
        return value
    unit = 1 << (_BITS + value.denominator.bit_length() - value.numerator.bit_length())
    return Fraction(math.ceil(value * unit) if up else math.floor(value * unit), unit)


# --- The sampling schemes -------------------------------------------------------------------------
# Every step adds N(0, (noise_multiplier · C)²) noise to the sum of gradients clipped to norm C; all
# quantities are in units of C. Each scheme has its own neighbouring relation:
#
# * "poisson": each record is in a batch independently with probability q = batch_size/dataset_size;
#   add-remove neighbours. One step is `PoissonSubsampled(Gaussian(noise_multiplier), q)`. With
#   `group=k` neighbours differ in k records, of which Binomial(k, q) are in a batch, and a step is
#   a `MixtureOfGaussians`. Its pair also dominates adaptively chosen steps.
# * "truncated-poisson": Poisson samples; of a larger one truncated_batch_size random records are
#   kept; add-remove neighbours. The two bounds on ε nearly agree if batches are rarely cut
#   (`TruncatedBatches`).
# * "without-replacement": each batch is a fresh uniform subset of batch_size records; replace-one
#   neighbours. Replacing a clipped gradient moves the sum by at most 2C, so a step is
#   `SampledWithoutReplacement(Gaussian(noise_multiplier, l2_sensitivity=2), …)`.
# * "with-replacement": each of the batch_size places of a batch takes a uniformly random record;
#   replace-one neighbours, with two bounds. Add-remove is exact (`WithReplacement`).
# * "random-allocation": each record is in one step of each epoch, chosen uniformly and
#   independently; add-remove neighbours. An epoch is `RandomAllocation(Gaussian(…), steps=t)` with
#   t = ⌊dataset_size/batch_size⌋. More steps are no worse: a uniform choice among t' > t steps is a
#   uniform choice among the steps of a random subset of size t, and hockey-stick divergences are
#   jointly convex.
# * "shuffle": each epoch puts the records into a random order and cuts it into batches; zero-out
#   neighbours. Upper bound: given the order, which does not depend on gradients, a record is in one
#   batch of an epoch, so an epoch is a Gaussian release; by joint convexity a random order is no
#   worse. Lower bound: a dataset and an event (`dpassay.accountant.pairs.shuffling`), or, for one
#   epoch and if larger, the dataset whose other gradients are 0. There only the batch of the record
#   matters. With ⌈N/B⌉ batches its law w is uniform or, if the last batch is smaller, not quite.
#   The uniform law is the mean of w over permutations of the steps, which preserve hockey-stick
#   divergences, so by joint convexity random allocation is no worse.
#
# A guarantee for Poisson batches does not hold for shuffled ones.

# --- Bounds on ε under a neighbouring relation other than that of the scheme ----------------------
# Neighbours differ in one record, which is added or removed, replaced by another ("replace-one"),
# or has gradient 0 in one of the two datasets ("zero-out"); the number of steps is the same.
# Zero-out is the special case of replacement by a record with gradient 0. So upper bounds for
# replace-one hold for zero-out, and lower bounds for zero-out hold for replace-one. Gradients have
# norm at most 1; u is a unit vector.
#
# * *Poisson*. Zero-out equals add-remove. Replace-one is exact (`MixtureOfGaussians`), also for k
#   records.
# * *Random allocation*. Zero-out equals add-remove. Replace-one, upper bounds: given the steps, an
#   epoch is a Gaussian release of sensitivity 2; or the group privacy rule for two changes, zeroing
#   out the old record and putting in the new one. Lower bounds: zero-out; or u replaced by −u and
#   the sum of all noisy sums, N(2E, Etσ²) against N(0, Etσ²).
# * *Shuffled batches*, replace-one. Upper bound: sensitivity 2 in each epoch. Lower bound: u
#   replaced by −u, all others −u. Add-remove. Upper bound: a random order of N records is a random
#   order of N − 1 records in which the record takes a random place, and the one that was there
#   moves to the end. One batch moves by at most 2 and the last one by at most 1, together by √5.
#   Lower bound: the record is u and all others −u, and only the batches that are full in both
#   datasets are used.
# * *Truncated Poisson batches*. Upper bounds: whatever else is drawn, the record, if kept, moves
#   the sum by at most 2, and so does its replacement; this is no worse than sampling without
#   replacement with sensitivity 2 and the same probability. Moreover δ is at most that of
#   untruncated batches plus T P(J ≥ B). Lower bound: all other gradients are 0, and the record is
#   kept with probability at least q P(J < B).
# * *Without replacement*. Add-remove is exact: in a batch of B others, one is displaced by the
#   record with probability B/N, which moves the sum by at most 2. This is a Poisson sample of
#   sensitivity 2, attained if all others are −u. Zero-out: the upper bound of replace-one; for the
#   lower bound all others are 0.
#
# For k records. *Without replacement*, add-remove is exactly a mixture: of a batch of B out of the
# N − k others, J are displaced, where J is the hypergeometric number of the k records in a batch.
# *Shuffled batches*: sensitivities are k times as large, and the group bound above is used with
# moves twice as long. *Random allocation*: all k records are zeroed out, then the others put in. In
# all other cases the upper bounds are those of the group privacy rule or of `one_is_drawn`; a lower
# bound for one record always remains valid.

RELATIONS = ("add-remove", "replace-one", "zero-out")

Asked: TypeAlias = tuple[Mechanism, Adjacency]
Bound: TypeAlias = Callable[[ExactReal], Decimal]


@final
@dataclass(frozen=True)
class _Ends:
    """Mechanisms that bound a run from above (`most`) and below (`least`), each with a relation."""

    most: tuple[Asked, ...]
    least: tuple[Asked, ...] = ()
    below: Bound | None = None
    """A further lower bound on ε(δ)."""
    rare: tuple[Asked, Fraction] | None = None
    """A mechanism that is an upper bound except on an event of at most this probability, which is
    charged to δ."""
    twice: Asked | None = None
    """A mechanism that bounds each of two successive changes (group privacy rule)."""
    above: Bound | None = None
    """A further upper bound on ε(δ)."""

    def upper(self, delta: ExactReal) -> Interval:
        """Return [min(0, u), u], where u is the least of the upper bounds on ε(δ)."""
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
    """Return a sentence on how neighbours differ."""
    one = group == 1
    who, is_, has = ("one record", "is", "has") if one else (f"{group} records", "are", "have")
    return {
        "add-remove": f"Neighbours: {who} {is_} added or removed; the number of steps and the "
        "divisor of the sums stay the same.",
        "replace-one": f"Neighbours: {who} {is_} replaced by {'another' if one else 'others'}, "
        f"which moves a sum by up to 2C{'' if one else ' each'}.",
        "zero-out": f"Neighbours: {who} {has} the gradient 0 in one of them.",
    }[relation]


def with_neighbours(assumptions: Sequence[str], relation: str, group: int) -> tuple[str, ...]:
    """Replace the sentence on neighbours in the assumptions of a run."""
    words = in_words(relation, group)
    return tuple(words if text.startswith("Neighbours:") else text for text in assumptions)


def lower_end(low: Decimal, delta: ExactReal, otherwise: str) -> str:
    """Return a sentence on the lower end: `otherwise`, unless it is the trivial ln(1 − δ)."""
    every = low == least_epsilon(delta)
    return f"Lower end: {'ln(1 - delta), which every mechanism has' if every else otherwise}."


def other(base: Scheme, sampling: str, relation: str, sigma: ExactReal, loop: Loop) -> Scheme:
    """Return a scheme under a relation other than its own."""
    k = loop.group
    known = _KNOWN[sampling, relation](sigma, loop)
    alone = _KNOWN[sampling, relation](sigma, replace(loop, group=1))
    run, adjacency = known.most[0]
    exact = known.least == known.most
    if k > 1 and not exact:  # each record moves the sum by up to 2C in every step
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
    attained = [*gathered(sigma, t, epochs, k), _sum_of_steps(sigma, t * epochs, 2 * k * epochs)]
    return _Ends((moved,), tuple((each, Adjacency.ADD_REMOVE) for each in attained), twice=zeroed)


def _sum_of_steps(sigma: ExactReal, steps: int, moves: int) -> Mechanism:
    """Return the Gaussian release that the sum of all noisy sums is."""
    return Gaussian(sigma * ExactReal.of_root(Fraction(steps)), moves)


def _shuffled(sigma: ExactReal, loop: Loop, *, added: bool) -> _Ends:
    (done, begun), k = loop.whole_epochs, loop.group
    moves = ExactReal.of_root(Fraction(5 * k**2)) if added else ExactReal.of_rational(2 * k)
    relation = Adjacency.ADD_REMOVE if added else Adjacency.REPLACE_ONE
    full = (loop.size - 1 if added else loop.size) // loop.batch
    least: tuple[Asked, ...] = ()
    if k > 1 and done:
        steps = done * math.ceil(1 / loop.share)
        least = (
            (_sum_of_steps(sigma, steps, (1 if added else 2) * k * done), Adjacency.ADD_REMOVE),
        )

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
"""Bounds for a scheme under a relation other than its own, by scheme and relation."""


_BOUNDS_WIDTH = Fraction(1, 1000)
"""Relative width of each of two bounds that are several percent apart; more digits take long."""
TRUNCATED, REPLACED = "truncated-poisson", "with-replacement"
"""Names of the schemes that are referred to in several places."""


def scheme(sampling: str, sigma: ExactReal, loop: Loop, neighbours: str | None = None) -> Scheme:
    """Return a run under a sampling scheme, by default with the scheme's own neighbours.

    Raises InvalidInputError if the scheme or the relation is unknown, or if a truncated batch size
    is missing or given for a scheme that has none.
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
        own = SCHEMES[sampling](sigma, loop)  # zero-out equals add-remove; replace-one is exact
        words = with_neighbours(own.assumptions, neighbours, loop.group)
        relation = Adjacency.REPLACE_ONE if replaced else Adjacency.ADD_REMOVE
        return replace(own, adjacency=relation, assumptions=words)
    one = SCHEMES[sampling](sigma, replace(loop, group=1))
    return other(one, sampling, neighbours, sigma, loop)


def _poisson(sigma: ExactReal, loop: Loop) -> Scheme:
    """Return the scheme of Poisson batches, exact also for groups."""
    q, group = loop.share, loop.group
    records = "one record is" if group == 1 else f"{group} records are"
    return Scheme(
        times(sampled(sigma, q, group), loop.steps),
        Adjacency.ADD_REMOVE,
        (
            f"Every step takes each record with probability {loop.share_in_words}, "
            "independently: batches vary in size, and none is cut or filled up.",
            f"Neighbours: {records} added or removed.",
            loop.steps_in_words,
        ),
        loop.steps,
        q,
    )


def _truncated_poisson(sigma: ExactReal, loop: Loop) -> Scheme:
    """Return the scheme of truncated Poisson batches, with the bounds of `TruncatedBatches`."""
    assert loop.most is not None
    cut = TruncatedBatches(sigma, loop.size, loop.share, loop.most, loop.steps, loop.group)
    whole = _poisson(sigma, loop)

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        upper, crowded = cut.upper(delta)
        how = (
            f"in up to {crowded} steps a record may displace another one, which moves the sum by 2C"
            if crowded
            else "no batch is cut"
        )
        low = cut.lower(delta)
        least = lower_end(low, delta, "a dataset whose other gradients are 0")
        return Interval(low, upper), (
            f"{least} Upper end: {how}; the probability of more is charged to delta."
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
            f"Lower end: a dataset in which the {k} records have gradient C*u for one direction u, "
            "and all others -C*u. Upper end: the least of three bounds: the records are replaced "
            "one after the other; a batch has all or none of them; every batch has all of them."
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
        width = None if added else _BOUNDS_WIDTH
        upper = run.upper(delta, relation, width)
        lower = run.lower(delta, 1 if neighbours == "zero-out" else 2, width)
        reason = (
            "Both ends: the exact law of the number of places that a person's records take in a "
            "batch, cut off where the probability of more is negligible and charged to delta."
            if added
            else "Lower end: a dataset whose other gradients are 0, or the opposite of the "
            "person's. Upper end: at every place the person's records and their replacements move "
            "a sum by 2C in opposite directions."
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
            "Lower end: a dataset in which the records' gradients are orthogonal or equal, and all "
            "others 0. Upper end: the noise is split among the records, or the records are removed "
            "one after the other."
        )

    return Scheme(
        alone if k == 1 else shared,
        Adjacency.ADD_REMOVE,
        (
            "In every epoch each record is in one step, each step equally likely, independently "
            "of the other records and epochs: batches vary in size, and none is cut or filled up.",
            f"Neighbours: {_zeroed(k, 'added or removed')}; the number of steps and the divisor "
            "of the sums stay the same.",
            loop.epochs_in_words,
        ),
        loop.given_steps or epochs * t,
        Fraction(1, t),
        None if k == 1 else ends,
    )


def _zeroed(group: int, changed: str = "") -> str:
    """Return a phrase on how neighbours differ."""
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
            return least_epsilon(delta), "Lower end: ln(1 - delta), as no epoch is complete."
        found, event = ShuffledBatches(sigma, loop.batch, loop.size, done).lower(delta)
        first = Interval.of_ball(found).lower
        reason = (
            "Lower end: a dataset in which the record has gradient C*u for one direction u, and "
            f"all others -C*u; the event: {event} along u."
        )
        others: list[Mechanism] = [
            Gaussian(sigma * ExactReal.of_root(Fraction(done * most)), k * done)
        ]
        if done == 1:
            others.append(_allocated(sigma, most, 1))
        even = max(enclosed(each, Adjacency.ADD_REMOVE, delta).lower for each in others)
        if even > first:
            return even, (
                "Lower end: a dataset whose other gradients are 0, tested as for random "
                "allocation, or by the sum of all noisy sums."
            )
        return first, reason

    smaller = "" if loop.size % loop.batch == 0 else ", the last batch being smaller"
    return Scheme(
        whole,
        Adjacency.ADD_REMOVE,
        (
            "In every epoch the records are put into a random order and cut into batches of "
            f"{loop.batch}{smaller}; the order does not depend on the gradients.",
            f"Neighbours: {_zeroed(k)} in one of them; the batches and the divisor of the sums "
            "stay the same.",
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
"""The sampling schemes by name."""

OWN = {
    "poisson": "add-remove",
    "random-allocation": "add-remove",
    "shuffle": "zero-out",
    TRUNCATED: "add-remove",
    "without-replacement": "replace-one",
    REPLACED: "replace-one",
}
"""The neighbouring relation of each scheme."""
