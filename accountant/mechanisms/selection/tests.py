"""Tests against a threshold, and what is released where they pass."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Known, MirroredPair, Pair, Tails, WorstCase, rho_bound
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import (
    Integer,
    OneOf,
    Positive,
    Probability,
    Rational,
    Switch,
    declared,
    exact_list,
)
from dpassay.accountant.errors import AdjacencyError, NotApplicableError, expected
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.integers import DiscreteLaplace
from dpassay.accountant.mechanisms.additive.laplace import Laplace
from dpassay.accountant.mechanisms.selection.candidates import WITHIN, TwoCandidates
from dpassay.accountant.mechanisms.wrappers.channel import Tabulated
from dpassay.accountant.mechanisms.wrappers.composed import Composed, Guaranteed
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import START_PRECISION, Interval, ball, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.between import inverse_between, narrow_enough
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair
from dpassay.accountant.pairs.gaussian import normal_cdf
from dpassay.accountant.release import sampling
from dpassay.accountant.release.comparisons import stream

# --- The sparse vector technique: which answers of a stream are above a noisy threshold -----------
# The threshold, 0 with Laplace noise of scale s, is compared with every answer, with Laplace noise
# of scale r; the stream ends after c answers above. Lengths are in units of the sensitivity: each
# answer moves by at most 1. The loss is at most 1/s + 2c/r, or 1/s + c/r where all answers move in
# the same direction (Lyu, Su and Li 2017): with the threshold moved by 1 no answer becomes less
# probable to be below, and c answers above do by a factor of at most e^{2/r} or e^{1/r} each.
#
# It comes as near to that as one likes. Let m > c + r/s answers come first, at a under P and at a +
# 1 under Q, and then c answers at 1 under P (0 where monotone) and at 0 under Q; the output is that
# the m are below and the c above. As a grows, the integral over the noisy threshold
#
#     P(output) = ∫ f(z/s)/s F((z − a)/r)^m (1 − F((z − 1)/r))^c dz
#
# has its mass near a, where the first and the last factor are exponentials. So there Q(output), at
# z + 1, is e^{−1/s − 2c/r} or e^{−1/s − c/r} times as large.
#
# At other ε, for one threshold: let it be z under P and z + 1 under Q, which is Laplace noise at
# distance 1/s. Given z, what is said has under P at most e^u times its probability under Q, u =
# 2c/r or c/r. So both together are dominated by that noise and by a pair of the loss u for sure,
# (1, 0) and (e^{−u}, 1 − e^{−u}): H(ε) ≤ H_Laplace(ε − u). That is less than what a loss of at most
# t allows where ε is near t, by half.
#
# With a fresh threshold after each answer above the parts between them are independent, and the
# loss is c times that for c = 1. If the noisy value of an answer above is shown, a value v ≤ 0 says
# that the noisy threshold is below v, where F((z − a)/r) is an exponential for a ≥ 0: m answers
# below, at 0 under P and at 1 under Q, have a loss of exactly m/r, for any m.

Terms = list[tuple[arb, int]]
"""Sums of c e^{λz}, as (c, λ)."""
_PLACES = (0, 1, 2, 4, 8, 16, 32, 64)
"""Places a of the answers below that are tried, in units of r."""
_MOST_ABOVE = 16
"""Answers above in an output that is tried."""
_MOST_BELOW = 100
"""Answers below besides, at most: an output of more is less probable, and its sum is long."""
_LEAST_STEP = Fraction(1, 1 << 10)
"""The first step towards an ε, at least: that of a tiny loss would never reach an ε < 0."""
_TOO_LARGE = 1 << 64
"""A loss from which on no ε is looked for: it hides nothing, and a bracket is long."""


def _power(n: int, rate: int, at: Fraction, sign: int) -> tuple[Terms, Terms]:
    """Return F(z − at)^n (sign 1) or F(at − z)^n (−1), where z is below `at` and above it."""
    half, place = arb("0.5"), ball(at)
    tail: Terms = [(half**n * (-sign * n * rate * place).exp(), sign * n * rate)]
    most: Terms = [
        (math.comb(n, i) * (-half) ** i * (sign * i * rate * place).exp(), -sign * i * rate)
        for i in range(n + 1)
    ]
    return (tail, most) if sign > 0 else (most, tail)


def _chance(scales: tuple[Fraction, Fraction], *sides: tuple[int, Fraction, int]) -> arb:
    """Return P(n answers at a are below, or above), (n, a, 1) or (n, a, −1) given for each a.

    In a unit of z of which both rates are multiples the integrand is a sum of exponentials with
    integer rates between 0 and all a.
    """
    (a, b), (c, d) = (rate.as_integer_ratio() for rate in (1 / scales[0], 1 / scales[1]))
    unit = Fraction(math.gcd(a * d, c * b), b * d)
    s, r = (int(1 / (scale * unit)) for scale in scales)
    factors = [(Fraction(0), ([(arb(s) / 2, s)], [(arb(s) / 2, -s)]))]
    factors += [(at * unit, _power(n, r, at * unit, sign)) for n, at, sign in sides]
    ends = sorted({at for at, _ in factors})
    found = arb(0)
    for low, high in zip([None, *ends], [*ends, None], strict=True):
        terms: Terms = [(arb(1), 0)]
        for at, parts in factors:
            part = parts[low is not None and low >= at]
            terms = [(x * y, rate + also) for x, rate in terms for y, also in part]
        for x, rate in terms:
            found += x * (_primitive(high, rate) - _primitive(low, rate))
    return found


def _primitive(x: Fraction | None, rate: int) -> arb:
    """Return a primitive of e^{λx}, 0 at the infinite end where it is integrable."""
    if x is None:
        return arb(0)
    return (rate * ball(x)).exp() / rate if rate else ball(x)


@final
@dataclass(frozen=True)
class AboveThresholdPair(MirroredPair):
    """All pairs of streams: their largest loss, and outputs that bound H(ε) from below.

    The scales are in units of the sensitivity; `variant` is "standard", "fresh-threshold" or
    "noisy-values". Neighbours change places.
    """

    threshold: Fraction
    query: Fraction
    count: int
    monotone: bool
    variant: str

    @property
    def known(self) -> Known:
        """Return closed forms, and where a search may start."""
        return Known(
            upper=self._upper,
            attained=lambda _: self,
            max_loss=self._exact_max_loss,
            inverse=self._inverse,
            rho=lambda: self.renyi(arb(1)),
            # a loss in [−t, t]
            rho_bound=lambda: self.max_loss() ** 2 / 2,
        )

    def _exact_max_loss(self) -> ExactReal | None:
        """Return the supremum of the losses where it is finite."""
        return None if self.variant == "noisy-values" else ExactReal.of_rational(self._largest)

    @property
    def _largest(self) -> Fraction:
        part = (1 if self.monotone else 2) / self.query
        if self.variant == "fresh-threshold":
            return self.count * (1 / self.threshold + part)
        return 1 / self.threshold + self.count * part

    @property
    def one_answer(self) -> TwoCandidates:
        """Whether one answer is above, which moves by 1, in units of r."""
        unit, ratio = map(ExactReal.of_rational, (1 / self.query, self.threshold / self.query))
        return TwoCandidates("Laplace", unit, ratio)

    def _outputs(self, epsilon: ExactReal) -> Iterator[tuple[arb, arb, str]]:
        """Yield P and Q of outputs whose loss is large, and which streams and output these are."""
        if self.variant == "noisy-values":  # ∫ f(v) ∫_{z ≤ v} f(z/s)/s F(z)^m dz dv over v ≤ 0
            s, r = 1 / self.threshold, 1 / self.query
            m = max(1, math.floor(epsilon / ExactReal.of_rational(r)) + 1)
            p = ball(s * r / ((s + m * r) * (s + (m + 1) * r))) / arb(2) ** (m + 2)
            yield (
                p,
                p * ball(-m * r).exp(),
                f"{m} answers, 0 under P and 1 under Q, are below, and one at 0 is shown as v ≤ 0",
            )
            return
        for i, pair in enumerate(self.one_answer.pairs):
            (p, _), (q, _) = pair.source.masses(pair.index)
            yield p, q, f"one answer, {i}/8 lower than the threshold under Q, is above"
        fresh, most = self.variant == "fresh-threshold", min(self.count, _MOST_ABOVE)
        times = self.count if fresh else 1
        for c in (1,) if fresh else dict.fromkeys((1, most)):
            yield from self._of_streams(c, times)

    def _of_streams(self, c: int, times: int) -> Iterator[tuple[arb, arb, str]]:
        """Yield those of answers that are below, and then c above."""
        m = c + min(math.floor(self.query / self.threshold), _MOST_BELOW) + 2
        scales, raised = (self.threshold, self.query), Fraction(0 if self.monotone else 1)
        again = f", {times} times" if times > 1 else ""
        for place in _PLACES:
            a = place * self.query
            p = _chance(scales, (m, a, 1), (c, raised, -1))
            q = _chance(scales, (m, a + 1, 1), (c, Fraction(0), -1))
            yield (
                p**times,
                q**times,
                f"{m} answers at {a} under P, {a + 1} under Q, are below, and then {c} at "
                f"{raised} under P, 0 under Q, above{again}",
            )

    def _best(self, epsilon: ExactReal) -> tuple[arb, arb, str]:
        """Return P and Q of the output that shows the largest H(ε), and which it is."""
        factor = epsilon.ball().exp()
        return max(
            self._outputs(epsilon), key=lambda each: float((each[0] - factor * each[1]).mid())
        )

    def excess(self, epsilon: ExactReal) -> arb:
        """Return a ball from the best output up to what the largest loss allows."""
        low = self._lower(epsilon)
        if self.variant == "noisy-values":
            return low.union(arb(1))
        with ctx.workprec(START_PRECISION):  # more digits of bounds that are apart help nobody
            return low.union(self._most(epsilon))

    def _upper(self, epsilon: ExactReal) -> arb:
        """Return the larger end: a ball around both has a radius of 30 bits."""
        largest = self.known.max_loss()
        if largest is None or not -largest < epsilon < largest:
            return self.hockey_stick(epsilon).upper()
        with ctx.workprec(START_PRECISION):
            return self._most(epsilon).upper()

    def _most(self, epsilon: ExactReal) -> arb:
        """Return the least of the bounds in closed form."""
        largest = self.known.max_loss()
        assert largest is not None
        t, e = largest.ball(), epsilon.ball()
        return self._of_threshold(e).min((t.exp() - e.exp()) / (t.exp() + 1))

    def _lower(self, epsilon: ExactReal) -> arb:
        """Return what the best output shows, or all of them."""
        with ctx.workprec(START_PRECISION):
            factor, (p, q, _) = epsilon.ball().exp(), self._best(epsilon)
            return (p - factor * q).max(-epsilon.ball().expm1()).max(arb(0))

    def _of_threshold(self, epsilon: arb) -> arb:
        """Return H_Laplace(ε − u), 0 from 1/s on; 1 for several thresholds.

        At d = 1/s it is 1 − e^{−x/2}, x = d + u − ε, for 0 ≤ x ≤ 2d, and 1 − e^{d − x} beyond.
        """
        if self.variant != "standard" and self.count > 1:
            return arb(1)
        distance = ball(1 / self.threshold)
        paid = ball(self.count * (1 if self.monotone else 2) / self.query)
        left = (distance + paid - epsilon).max(arb(0))
        return -(-(left / 2).max(left - distance)).expm1()

    def _inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) by where both bounds pass δ; UndecidedError where that is too wide."""
        why = "no profile of the sparse vector technique is known"
        if self.known.max_loss() is None:
            least_end = enclose(lambda: arb.log1p(-delta.ball())).lower
            found = Interval(least_end, Interval.of_ball(arb.pos_inf()).upper)
            return narrow_enough(found, relative_width, why)
        if self._largest > _TOO_LARGE:
            least = enclose(lambda: arb.log1p(-delta.ball()))
            return narrow_enough(least.hull(Interval.of_exact(self._largest)), relative_width, why)
        step = max(self._largest / 4, _LEAST_STEP)
        ends = self._lower, lambda at: self.hockey_stick(at).upper()
        return inverse_between(ends, delta, step, relative_width, why)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of the best output against all others."""
        p, q, _ = self._best(epsilon)
        return Tails(p, 1 - p, q, 1 - q)

    def renyi(self, order: arb) -> arb:
        """Return a wide ball: from 0 up to what a loss in [−t, t] allows."""
        return arb(0).union(order * rho_bound(self))

    def law(self) -> dict[str, object]:
        """Return the scales, the count and the variant."""
        return {
            "law": "above-threshold",
            "threshold": str(ExactReal.of_rational(self.threshold)),
            "query": str(ExactReal.of_rational(self.query)),
            "count": self.count,
            "monotone": self.monotone,
            "fresh": self.variant == "fresh-threshold",
            "values": self.variant == "noisy-values",
        }

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the streams and the output that show most."""
        return f"{self._best(epsilon)[2]}; in units of the sensitivity, from the threshold on"


_CERTAIN = Tabulated([1, 0], [0, 1])
"""What distinguishes neighbours with certainty."""


@declared
class AboveThreshold(Mechanism):
    """Report for each answer of a stream whether it is above a noisy threshold, and stop after c.

    The six algorithms of Lyu, Su and Li (2017, Figure 1) for ε, with Δ the sensitivity: theirs has
    the scales 2Δ/ε and 4cΔ/ε; that of Dwork and Roth (2014) 2cΔ/ε and 4cΔ/ε with a fresh threshold;
    Roth's lecture 2Δ/ε and 2cΔ/ε with noisy values; Lee and Clifton's (2014) 4Δ/ε and 4Δ/(3ε);
    Stoddard et al.'s (2014) 2Δ/ε and 0, endless; Chen et al.'s (2015) 2Δ/ε and 2Δ/ε, endless. The
    largest loss of the standard algorithm is Δ/s + 2cΔ/r, or Δ/s + cΔ/r where monotone, exactly.

    Parameters
    ----------
    threshold_scale
        s > 0, the scale of the Laplace noise of the threshold.
    query_scale
        r ≥ 0, that of the noise of every answer.
    count
        c ≥ 1: the stream ends after so many answers above the threshold.
    sensitivity
        Δ > 0: no answer differs by more between neighbours.
    monotone
        Whether all answers change in the same direction.
    variant
        "standard"; "fresh-threshold", with new noise of the threshold after each answer above;
        "noisy-values", which shows the noisy value of an answer above; "endless", which ignores
        the count.

    Notes
    -----
    An endless stream distinguishes neighbours with certainty, δ(ε) = 1 for every ε: of very many
    equal answers let every second one rise and the others fall (or stay, where monotone); the
    shares of the two halves that are above the threshold then differ as the laws of the noise do. A
    stream without noise on its answers does the same for any count: let the answers rise slowly,
    and neighbours differ in which half of them first exceeds any threshold. The other proofs are in
    this file, where the sparse vector technique begins.
    """

    example = "AboveThreshold(threshold_scale=2, query_scale=4)"
    no_variance = "AboveThreshold says above or below: it has no variance."
    noise_argument = "query_scale"

    threshold_scale: Rational = Rational(least=0, strict=True)
    query_scale: Rational = Rational(least=0)
    count: Integer = Integer(1, least=1)
    sensitivity: Rational = Rational(1, least=0, strict=True)
    monotone: Switch = Switch(False)
    variant: OneOf = OneOf(
        "standard", "fresh-threshold", "noisy-values", "endless", default="standard"
    )

    @property
    def _tells_all(self) -> bool:
        return self.variant == "endless" or not self.query_scale

    @property
    def _pair(self) -> AboveThresholdPair:
        return AboveThresholdPair(
            self.threshold_scale / self.sensitivity,
            self.query_scale / self.sensitivity,
            self.count,
            self.monotone,
            self.variant,
        )

    @property
    def dominated_by(self) -> Mechanism | None:
        """Whatever has the same largest loss; certainty where there is none."""
        if self._tells_all:
            return None
        largest = self._pair.known.max_loss()
        return _CERTAIN if largest is None else Guaranteed(largest)

    def attained(self) -> tuple[Pair, ...]:
        """Return those of one answer, which passes the threshold or not."""
        return self._pair.one_answer.pairs

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return all pairs of streams at once."""
        if self._tells_all:
            (certain,) = _CERTAIN.worst_case(adjacency).remove
            return WorstCase.symmetric(
                certain, "Some streams distinguish neighbours with certainty."
            )
        return WorstCase.symmetric(
            self._pair,
            "The largest loss is that of outputs whose answers are first below the threshold, and "
            "move against it, and then above.",
        )

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Say of each answer whether it is above: 1, 0, or −1 after the end; exactly.

        The value: the answers in their order, each less its threshold.
        """
        if self.variant == "noisy-values":
            raise NotApplicableError("Noisy values are not released: they are not private.")
        answers = exact_list("value", np.asarray(value).tolist() if np.ndim(value) else [value])
        found = np.array(
            [
                stream(
                    [answer.ball for answer in answers],
                    lambda: (ball(self.threshold_scale), ball(self.query_scale)),
                    None if self.variant == "endless" else self.count,
                    fresh=self.variant == "fresh-threshold",
                    rng=rng,
                )
                for _ in range(times)
            ]
        )
        return found

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw what is said of one answer at the threshold."""
        return self.release([0], size, rng=rng)[:, 0]

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return answers of which some are below, and move, and others above."""
        move, c = WITHIN * float(self.sensitivity), self.count
        up = 0.0 if self.monotone else move
        return [([move] * (c + 2) + [0.0] * c, [0.0] * (c + 2) + [up] * c)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw what is said of some answers."""
        return self.release(answer, size, rng=rng)


# --- The optimal way to keep or drop one key by the number of its users ---------------------------

_MOST = 10**15
"""Users up to which a float tells where the curve bends, to within one."""


def add_remove(adjacency: Adjacency | None, mechanism: object) -> None:
    """Raise AdjacencyError unless add/remove is named."""
    if require(adjacency, mechanism) is Adjacency.REPLACE_ONE:
        raise AdjacencyError(
            f"{type(mechanism).__name__} is known for a user who is added or removed. Name "
            "adjacency='add-remove'; a replaced user is one who leaves and one who comes."
        )


@declared
class PartitionSelection(Mechanism, FiniteLaws):
    """Keep a key that n users hold with the largest probability that (ε, δ)-DP allows.

    Desfontaines, Voss, Gipson and Mandayam (2022), Theorem 1: π(0) = 0 and
    π(n + 1) = min(e^ε π(n) + δ, 1 − e^{−ε}(1 − π(n) − δ), 1), at every n the most of all
    mechanisms. A user has at most one key.

    Parameters
    ----------
    epsilon
        ε > 0.
    delta
        0 < δ < 1: the probability that a key of one user is kept.

    Notes
    -----
    The first bound is the smaller one while π(n) ≤ (1 − δ)/(1 + e^ε), then the second one. Of the
    pairs (π(n + 1), π(n)) few are ever worst: on each of the two branches π(n + 1) is affine in
    π(n), and so is P(S) − e^x Q(S) for each of the four events S and every x, in both directions.
    So its maximum over n is at an end of a branch: n = 0, the n next to the bend, the last two.
    Which end is worst depends on x: at one α the trade-off function of another n may be below
    those of all ends, so that β is known between theirs and that of the largest profile.
    """

    example = "PartitionSelection(epsilon=1, delta='1e-5')"
    no_variance = (
        "PartitionSelection keeps a key or drops it: it has no variance. Ask for keeps(users)."
    )
    noise_argument = "epsilon"
    noise_grows = False

    epsilon: Positive = Positive()
    delta: Probability = Probability(interior=True)

    def __post_init__(self) -> None:
        if self._bend() > _MOST:
            raise expected("epsilon", self.epsilon, "and delta to keep a key of 1e15 users")

    @property
    def dominated_by(self) -> Mechanism:
        """Whatever is (ε, δ)-DP."""
        return Guaranteed(self.epsilon, self.delta)

    def attained(self) -> tuple[Pair, ...]:
        """Return the pairs of the first user, next to the bend, and of the last user but one."""
        ends = {0, max(0, self._bend() - 1), self._bend() + 1, max(0, self._last() - 4)}
        return tuple(FinitePair(self, n) for n in sorted(ends))

    def _bend(self) -> int:
        """Return the n, to within one, from which the second bound is the smaller one."""
        epsilon, delta = self.epsilon.ball(), self.delta.ball()
        return math.floor(float(((epsilon / 2).tanh() * (1 - delta) / delta).log1p() / epsilon))

    def keeps(self, users: int) -> tuple[arb, arb]:
        """Return π(n) and 1 − π(n), each without cancellation, for n users.

        Up to the bend π(n) = δ(e^{nε} − 1)/(e^ε − 1); from there on
        1 − π(n + j) = (1 − π(n) + c)e^{−jε} − c, c = δ/(e^ε − 1), until that is 0.
        """
        epsilon, delta = self.epsilon.ball(), self.delta.ball()
        rise = epsilon.exp()
        early = max(0, self._bend() - 2)
        n = min(users, early)
        kept = delta * (n * epsilon).expm1() / epsilon.expm1()
        lost = 1 - kept
        while n < min(users, early + 5):
            kept, lost = (
                (rise * kept + delta).min(1 - (lost - delta).max(arb(0)) / rise),
                (1 - rise * kept - delta).max((lost - delta) / rise).max(arb(0)),
            )
            n += 1
        c = delta / epsilon.expm1()
        if users > n:
            lost = ((lost + c) * (-(users - n) * epsilon).exp() - c).max(arb(0))
            kept = 1 - lost
        return kept, lost

    def needed(self, probability: ExactReal) -> int:
        """Return the least number of users whose key is kept with at least this probability.

        Raises UndecidedError where a probability π(n) cannot be told from it.
        """

        def enough(users: int) -> bool:
            return bool(enclose(lambda: self.keeps(users)[0]) >= probability)

        return 1 + bisect_left(range(1, self._last() + 1), True, key=enough)

    def _last(self) -> int:
        """Return a number of users, at most two above the least that is always kept."""
        start = max(0, self._bend() + 3)
        _, lost = self.keeps(start)
        c = self.delta.ball() / self.epsilon.ball().expm1()
        return start + max(0, math.ceil(float(((lost / c).log1p() / self.epsilon.ball()).upper())))

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pairs at the ends of both branches; raise AdjacencyError for replaced users.

        A few more are listed, as both ends are known to within two users, but none of users whose
        key is always kept.
        """
        add_remove(adjacency, self)
        bend, last = self._bend(), self._last()
        ends = {0, *range(bend - 3, bend + 4), *range(last - 5, last)}
        pairs = tuple(
            FinitePair(self, n) for n in sorted(ends) if n >= 0 and not self.keeps(n)[1].is_zero()
        )
        return WorstCase(
            pairs,
            tuple(pair.reverse() for pair in pairs),
            "On either side of the bend the probability of a key with one more user is an affine "
            "function of that without, so the worst number of users is at an end.",
            enveloped=True,
        )

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the two outcomes."""
        return "the key is kept", "the key is dropped"

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return those of index + 1 and of index users."""
        return list(self.keeps(index + 1)), list(self.keeps(index))

    def exact_bound(self, index: int, epsilon: ExactReal) -> ExactReal | None:
        """Return δ at ε: the curve is the largest one that keeps to it."""
        return self.delta if epsilon == self.epsilon else None

    def exact_infinity_masses(self, index: int) -> tuple[ExactReal, ExactReal] | None:
        """Return δ and 0 for the first user."""
        if index or self.keeps(1)[1].contains(0):
            return None
        return self.delta, ExactReal.of_rational(0)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Say which keys are kept, exactly.

        The value: how many users hold each key.
        """
        counts = np.asarray(value)
        if counts.dtype.kind not in "iu" or (counts < 0).any():
            raise expected("value", value, "to be numbers of users")
        kept = np.empty((times, *counts.shape), bool)

        def drawn(users: int, number: int) -> Array:
            return sampling.indices_by_inversion(lambda: [self.keeps(users)[1]], number, rng=rng)

        for users in np.unique(counts):
            where = counts == users
            kept[:, where] = drawn(int(users), times * int(where.sum())).reshape(times, -1) == 1
        return kept

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw whether the key of one user is kept."""
        return self.release(1, size, rng=rng)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return no user and one, and the two ends at the bend."""
        bend = max(1, self._bend())
        return [(0, 1), (bend - 1, bend), (bend, bend + 1), (bend + 1, bend + 2)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw whether the key of so many users is kept."""
        return self.release(int(answer), size, rng=rng).astype(int)


# --- Noisy counts of keys that are released where they reach a threshold --------------------------

_DIGITS = 15
"""Digits to which the chance of a new key is rounded up for compositions."""
_ROUNDING = 1 + 2.0**-50
"""More than what rounding a threshold and a released count to doubles takes."""


class _Threshold(Mechanism, FiniteLaws):
    """Of every key that someone holds, release the key and its noisy count if it is ≥ τ.

    A user adds up to Δ to each of up to k counts. Let j of these keys be nobody else's. Without
    the user they cannot appear; with the user each does with a probability of at most
    m = P(Δ + noise ≥ τ). The other k − j counts move by at most Δ, and leaving out small values is
    post-processing. So the user's pair is dominated by j copies of (m, 1 − m) against (0, 1)
    together with k − j noises moved by Δ, which is attained by counts of Δ and, in the limit, of
    very frequent keys. The profile is the largest over j = 0, …, k.
    """

    noise_grows: ClassVar[bool] = True

    threshold: Positive
    partitions: Integer
    sensitivity: Positive

    @property
    def dominated_by(self) -> Mechanism:
        """Noise on all counts of a user, and a mass for new keys that is rounded up."""
        appears = Interval.of_ball(self.masses(self.partitions)[0][0], _DIGITS).upper
        new = Guaranteed(0, min(ExactReal.of_rational(Fraction(appears)), ExactReal.of_rational(1)))
        return Composed((Composed(self.count_noise(), self.partitions), new))

    def attained(self) -> tuple[Pair, ...]:
        """Return the pairs of all numbers of new keys."""
        return tuple(self._pair(new) for new in range(self.partitions, -1, -1))

    @abstractmethod
    def count_noise(self) -> Mechanism:
        """Return the noise of one count."""

    @abstractmethod
    def new_key(self) -> tuple[arb, arb]:
        """Return m, the probability that a key of one user appears, and 1 − m."""

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return a pair for every number of new keys; raise AdjacencyError for replaced users."""
        add_remove(adjacency, self)
        pairs = self.attained()
        return WorstCase(
            pairs,
            tuple(pair.reverse() for pair in pairs),
            "Some of the user's keys belong to nobody else, and appear or not; the others are so "
            "frequent that their noisy counts are always released.",
        )

    def _pair(self, new: int) -> Pair:
        fresh, old = FinitePair(self, new), self.partitions - new
        if old == 0:
            return fresh
        noise = Composed(self.count_noise(), old).worst_case(None).remove[0]
        if new == 0:
            return noise
        from dpassay.accountant.composition.choose import (
            product,  # takes NumPy and SciPy, and a second
        )

        return product([(noise, 1), (fresh, 1)])

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the two outcomes."""
        return "a key of this user alone appears", "none of them appears"

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return 1 − (1 − m)^j and (1 − m)^j, and 0 and 1."""
        appears, hidden = self.new_key()
        some = -(index * (-appears).log1p()).expm1() if index > 1 else appears
        return [some, hidden**index], [arb(0), arb(1)]

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release noisy counts on a lattice, and −1 for the keys that do not appear.

        A lattice count differs from the real one by at most half a step, and is shown where it is
        at least τ and a step. So it is a function of what the mechanism releases, and as private.

        The value: the count of each key that someone holds; a key with the count 0 never appears.
        """
        counts = np.asarray(value, float)
        if (counts < 0).any():
            raise expected("value", value, "to be counts ≥ 0")
        sampler = self.count_noise().lattice_sampler()
        noisy = sampler.release(counts, times, rng=rng)
        least = (float(self.threshold) + float(max(sampler.lattice))) * _ROUNDING
        released: Array = np.where((counts > 0) & (noisy >= least), noisy, -1.0)
        return released

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of the counts."""
        drawn = self.count_noise().sample(size * self.partitions, rng=rng)
        return drawn if self.partitions == 1 else drawn.reshape(size, -1)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return keys that nobody holds, and that one user holds; and frequent ones."""
        none, each = np.zeros(self.partitions), np.full(self.partitions, float(self.sensitivity))
        many = np.full(self.partitions, 2 * float(self.threshold))
        return [(none, each), (many, many + each)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw noisy counts, −1 for keys that do not appear."""
        counts = np.asarray(answer, float)
        noisy = counts + self.sample(size, rng=rng).reshape(size, -1)
        shown = (counts > 0) & (noisy >= float(self.threshold))
        released: Array = np.where(shown, noisy, -1.0)
        return released

    def variances(self) -> list[arb]:
        """Raise NotApplicableError: what is left out has no error."""
        raise NotApplicableError(
            f"{type(self).__name__} leaves keys out: it has no variance. That of a released count "
            f"is the variance of {self.count_noise()!r}, given that the threshold is reached."
        )


@declared
class LaplaceThreshold(_Threshold):
    """Release keys with counts plus Laplace noise of at least a threshold, and no other key.

    Korolova, Kenthapadi, Mishra and Ntoulas (2009). A key without users is never released.

    Parameters
    ----------
    scale
        b > 0 of each count.
    threshold
        τ > 0: a key is released if its noisy count reaches τ.
    partitions
        k ≥ 1, how many keys a user has at most.
    sensitivity
        Δ, what a user adds at most to a count.
    """

    example = "LaplaceThreshold(scale=1, threshold=12)"
    noise_argument = "scale"

    scale: Positive = Positive()
    threshold: Positive = Positive()
    partitions: Integer = Integer(1, least=1)
    sensitivity: Positive = Positive(1)

    def count_noise(self) -> Mechanism:
        """Return Laplace noise."""
        return Laplace(self.scale, self.sensitivity)

    def new_key(self) -> tuple[arb, arb]:
        """Return e^{−(τ − Δ)/b}/2 and the rest, the other way round where τ < Δ."""
        away = abs(self.threshold.ball() - self.sensitivity.ball()) / self.scale.ball()
        tail = (-away).exp() / 2
        return (tail, 1 - tail) if self.threshold >= self.sensitivity else (1 - tail, tail)


@declared
class DiscreteLaplaceThreshold(_Threshold):
    """Release keys with counts plus discrete Laplace noise of at least a threshold, and no others.

    A key without users is never released. A count of Δ reaches τ where the noise is at least
    k = ⌈τ⌉ − Δ: with the probability r^k/(1 + r) for k ≥ 0, r = e^{−1/b}. (At least, not more: the
    privacy map of OpenDP 0.16 has r^{k+1}/(1 + r).)

    Parameters
    ----------
    scale
        b > 0 of each count.
    threshold
        τ > 0: a key is released if its noisy count reaches τ.
    partitions
        k ≥ 1, how many keys a user has at most.
    sensitivity
        Δ, what a user adds at most to a count.
    """

    example = "DiscreteLaplaceThreshold(scale=1, threshold=12)"
    noise_argument = "scale"

    scale: Positive = Positive()
    threshold: Positive = Positive()
    partitions: Integer = Integer(1, least=1)
    sensitivity: Positive = Positive(1)

    def count_noise(self) -> Mechanism:
        """Return discrete Laplace noise."""
        return DiscreteLaplace(self.scale, self._whole)

    @property
    def _whole(self) -> int:
        """Δ; raise InvalidInputError unless it is an integer."""
        found = self.sensitivity.rational
        if found is None or found.denominator != 1:
            raise expected("sensitivity", self.sensitivity, "to be an integer, as counts are")
        return int(found)

    def new_key(self) -> tuple[arb, arb]:
        """Return r^k/(1 + r) and the rest; by symmetry 1 − r^{1−k}/(1 + r) for k < 0."""
        if self.threshold.rational is None:
            raise expected("threshold", self.threshold, "to be rational")
        away = math.ceil(self.threshold.rational) - self._whole
        r = (-1 / self.scale.ball()).exp()
        tail = r ** (away if away >= 0 else 1 - away) / (1 + r)
        return (tail, 1 - tail) if away >= 0 else (1 - tail, tail)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release noisy counts, exactly, and −1 for the keys that do not appear.

        The value: the count of each key that someone holds, integers; a key with the count 0 never
        appears.
        """
        counts = np.asarray(value)
        if (counts < 0).any():
            raise expected("value", value, "to be counts ≥ 0")
        noisy = self.count_noise().releases(counts, times, rng)
        released: Array = np.where((counts > 0) & (noisy >= float(self.threshold)), noisy, -1)
        return released


@declared
class GaussianThreshold(_Threshold):
    """Release keys with counts plus Gaussian noise of at least a threshold, and no other key.

    A key without users is never released.

    Parameters
    ----------
    standard_deviation
        σ > 0 of each count.
    threshold
        τ > 0: a key is released if its noisy count reaches τ.
    partitions
        k ≥ 1, how many keys a user has at most.
    sensitivity
        Δ, what a user adds at most to a count.
    """

    example = "GaussianThreshold(standard_deviation=2, threshold=10)"
    noise_argument = "standard_deviation"

    standard_deviation: Positive = Positive()
    threshold: Positive = Positive()
    partitions: Integer = Integer(1, least=1)
    sensitivity: Positive = Positive(1)

    def count_noise(self) -> Mechanism:
        """Return Gaussian noise."""
        return Gaussian(self.standard_deviation, self.sensitivity)

    def new_key(self) -> tuple[arb, arb]:
        """Return Φ(−(τ − Δ)/σ) and Φ((τ − Δ)/σ)."""
        away = self.threshold.ball() - self.sensitivity.ball()
        away /= self.standard_deviation.ball()
        return normal_cdf(-away), normal_cdf(away)
