"""Threshold mechanisms: sparse vector technique, partition selection, thresholded counts."""

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
# The threshold is 0 plus Laplace noise of scale s. Each answer plus Laplace noise of scale r is
# compared with it, and the stream ends after c answers above. Lengths are in units of the
# sensitivity, so each answer moves by at most 1.
#
# Upper bound on the loss: 1/s + 2c/r, or 1/s + c/r if all answers move in the same direction (Lyu,
# Su and Li 2017). *Proof.* Compare the noisy threshold z under P with z + 1 under Q, which costs
# 1/s. An answer that is below is then at least as probable under Q. Each of the c answers above is
# less probable by a factor of at most e^{2/r}, or e^{1/r} if monotone.
#
# The bound is the supremum of the losses. Let m > c + r/s answers come first, at a under P and at
# a + 1 under Q, followed by c answers at 1 under P (0 if monotone) and at 0 under Q. The output is
# that the m answers are below and the c answers above. As a grows, the integral over the noisy
# threshold
#
#     P(output) = ∫ f(z/s)/s F((z − a)/r)^m (1 − F((z − 1)/r))^c dz
#
# is concentrated near z = a, where the first and the last factor are exponentials. The integrand of
# Q(output) at z + 1 is there e^{−1/s − 2c/r} times as large, or e^{−1/s − c/r} if monotone.
#
# Upper bound on H(ε) for a single threshold. Let the noisy threshold be z under P and z + 1 under
# Q, which is Laplace noise at distance 1/s. Given z, the output is at most e^u times as probable
# under P as under Q, with u = 2c/r or c/r. So threshold and output together are dominated by the
# product of that Laplace pair and the pair (1, 0), (e^{−u}, 1 − e^{−u}), whose loss is u with
# certainty under P. Hence H(ε) ≤ H_Laplace(ε − u). For ε near the largest loss t this is smaller
# than the bound for an arbitrary loss of at most t, by up to a factor of two.
#
# With a fresh threshold after each answer above, the parts of the stream are independent, and the
# largest loss is c times that for c = 1. If the noisy value of an answer above is released, a value
# v ≤ 0 reveals that the noisy threshold is below v, where F((z − a)/r) is an exponential for a ≥ 0.
# Then m answers below, at 0 under P and at 1 under Q, have a loss of exactly m/r, for any m.

Terms = list[tuple[arb, int]]
"""A sum of terms c e^{λz}, as a list of (c, λ)."""
_PLACES = (0, 1, 2, 4, 8, 16, 32, 64)
"""Values of a that are tried for lower bounds, in units of r."""
_MOST_ABOVE = 16
"""Limit on the number of answers above in outputs that are tried."""
_MOST_BELOW = 100
"""Limit on further answers below: more make an output less probable and its sum longer."""
_LEAST_STEP = Fraction(1, 1 << 10)
"""Smallest first step of the search for ε: steps of a tiny loss would never reach an ε < 0."""
_TOO_LARGE = 1 << 64
"""Largest loss for which ε is searched: a larger one gives no privacy, and the search is long."""


def _power(n: int, rate: int, at: Fraction, sign: int) -> tuple[Terms, Terms]:
    """Return F(z − at)^n (sign 1) or F(at − z)^n (sign −1), as terms for z < at and for z > at."""
    half, place = arb("0.5"), ball(at)
    tail: Terms = [(half**n * (-sign * n * rate * place).exp(), sign * n * rate)]
    most: Terms = [
        (math.comb(n, i) * (-half) ** i * (sign * i * rate * place).exp(), -sign * i * rate)
        for i in range(n + 1)
    ]
    return (tail, most) if sign > 0 else (most, tail)


def _chance(scales: tuple[Fraction, Fraction], *sides: tuple[int, Fraction, int]) -> arb:
    """Return the probability of an output.

    Each side (n, a, 1) means that n answers at a are below the threshold, and (n, a, −1) that they
    are above. z is scaled so that both rates 1/s and 1/r are integers. Between consecutive
    breakpoints, which are 0 and all a, the integrand is a sum of exponentials with integer rates.
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
    """Return a primitive of e^{λx} at x; None is the infinite end, where it is 0."""
    if x is None:
        return arb(0)
    return (rate * ball(x)).exp() / rate if rate else ball(x)


@final
@dataclass(frozen=True)
class AboveThresholdPair(MirroredPair):
    """The supremum over all pairs of streams; H(ε) is enclosed by two bounds.

    The upper bound follows from the largest loss, the lower bound from outputs of given streams.
    Scales are in units of the sensitivity. `variant` is "standard", "fresh-threshold" or
    "noisy-values". Exchanging the neighbours exchanges P and Q.
    """

    threshold: Fraction
    query: Fraction
    count: int
    monotone: bool
    variant: str

    @property
    def known(self) -> Known:
        """Return bounds of H, ε and ρ, and the largest loss."""
        return Known(
            upper=self._upper,
            attained=lambda _: self,
            max_loss=lambda: (
                None if self.variant == "noisy-values" else ExactReal.of_rational(self._largest)
            ),
            inverse=self._inverse,
            rho=lambda: self.renyi(arb(1)),
            # because the loss lies in [−t, t]
            rho_bound=lambda: self.max_loss() ** 2 / 2,
        )

    @property
    def _largest(self) -> Fraction:
        """The supremum of the losses, which is infinite if noisy values are released."""
        part = (1 if self.monotone else 2) / self.query
        if self.variant == "fresh-threshold":
            return self.count * (1 / self.threshold + part)
        return 1 / self.threshold + self.count * part

    @property
    def one_answer(self) -> TwoCandidates:
        """The pairs of laws of one comparison, where the answer moves by 1, in units of r."""
        unit, ratio = map(ExactReal.of_rational, (1 / self.query, self.threshold / self.query))
        return TwoCandidates("Laplace", unit, ratio)

    def _outputs(self, epsilon: ExactReal) -> Iterator[tuple[arb, arb, str]]:
        """Yield (P, Q, description) for outputs with a large loss."""
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
        """Yield (P, Q, description) for outputs with m answers below, followed by c above."""
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
        """Return (P, Q, description) of the output with the largest P − e^ε Q."""
        factor = epsilon.ball().exp()
        return max(
            self._outputs(epsilon), key=lambda each: float((each[0] - factor * each[1]).mid())
        )

    def excess(self, epsilon: ExactReal) -> arb:
        """Return a ball from the lower bound (the best output) to the upper bound."""
        low = self._lower(epsilon)
        if self.variant == "noisy-values":
            return low.union(arb(1))
        with ctx.workprec(START_PRECISION):  # the gap between the bounds exceeds rounding errors
            return low.union(self._most(epsilon))

    def _upper(self, epsilon: ExactReal) -> arb:
        """Return the upper bound itself, since the radius of a ball has only 30 bits."""
        largest = self.known.max_loss()
        if largest is None or not -largest < epsilon < largest:
            return self.hockey_stick(epsilon).upper()
        with ctx.workprec(START_PRECISION):
            return self._most(epsilon).upper()

    def _most(self, epsilon: ExactReal) -> arb:
        """Return the smaller one of the two upper bounds."""
        largest = self.known.max_loss()
        assert largest is not None
        t, e = largest.ball(), epsilon.ball()
        return self._of_threshold(e).min((t.exp() - e.exp()) / (t.exp() + 1))

    def _lower(self, epsilon: ExactReal) -> arb:
        """Return the lower bound max(P − e^ε Q, 1 − e^ε, 0), for the best output."""
        with ctx.workprec(START_PRECISION):
            factor, (p, q, _) = epsilon.ball().exp(), self._best(epsilon)
            return (p - factor * q).max(-epsilon.ball().expm1()).max(arb(0))

    def _of_threshold(self, epsilon: arb) -> arb:
        """Return H_Laplace(ε − u), or 1 for several thresholds.

        With d = 1/s and x = d + u − ε it is 0 for x ≤ 0, 1 − e^{−x/2} for 0 ≤ x ≤ 2d, and
        1 − e^{d − x} for larger x.
        """
        if self.variant != "standard" and self.count > 1:
            return arb(1)
        distance = ball(1 / self.threshold)
        paid = ball(self.count * (1 if self.monotone else 2) / self.query)
        left = (distance + paid - epsilon).max(arb(0))
        return -(-(left / 2).max(left - distance)).expm1()

    def _inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) between the values where the two bounds equal δ.

        Raises UndecidedError if the enclosure is too wide.
        """
        why = "no profile of the sparse vector technique is known"
        largest = self.known.max_loss()
        if largest is None or self._largest > _TOO_LARGE:
            least = enclose(lambda: arb.log1p(-delta.ball()))
            unknown = Interval.of_ball(arb.pos_inf())
            most = unknown if largest is None else Interval.of_exact(self._largest)
            return narrow_enough(least.hull(most), relative_width, why)
        step = max(self._largest / 4, _LEAST_STEP)
        ends = self._lower, lambda at: self.hockey_stick(at).upper()
        return inverse_between(ends, delta, step, relative_width, why)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails of the event that consists of the best output."""
        p, q, _ = self._best(epsilon)
        return Tails(p, 1 - p, q, 1 - q)

    def renyi(self, order: arb) -> arb:
        """Return a wide ball from 0 to the bound for a loss in [−t, t]."""
        return arb(0).union(order * rho_bound(self))

    def law(self) -> dict[str, object]:
        """Return the law as JSON: the scales, the count and the variant."""
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
        """Describe the streams and the output with the largest P − e^ε Q."""
        return f"{self._best(epsilon)[2]}; in units of the sensitivity, from the threshold on"


_CERTAIN = Tabulated([1, 0], [0, 1])
"""A pair of laws that are distinguished with certainty."""


@declared
class AboveThreshold(Mechanism):
    """Report for each answer of a stream whether it is above a noisy threshold; stop after c.

    The largest loss of the standard algorithm is exactly Δ/s + 2cΔ/r, or Δ/s + cΔ/r if monotone,
    where Δ is the sensitivity. The six algorithms of Lyu, Su and Li (2017, Figure 1) for a nominal
    ε have these scales (s, r): their own (2Δ/ε, 4cΔ/ε); Dwork and Roth (2014) (2cΔ/ε, 4cΔ/ε) with a
    fresh threshold; Roth's lecture (2Δ/ε, 2cΔ/ε) with noisy values; Lee and Clifton (2014)
    (4Δ/ε, 4Δ/(3ε)); Stoddard et al. (2014) (2Δ/ε, 0), endless; Chen et al. (2015) (2Δ/ε, 2Δ/ε),
    endless.

    Parameters
    ----------
    threshold_scale
        s > 0, the scale of the Laplace noise on the threshold.
    query_scale
        r ≥ 0, the scale of the Laplace noise on each answer.
    count
        c ≥ 1, the number of answers above the threshold after which the stream ends.
    sensitivity
        Δ > 0, the largest change of an answer between neighbours.
    monotone
        Whether all answers change in the same direction.
    variant
        "standard"; "fresh-threshold", which draws new threshold noise after each answer above;
        "noisy-values", which releases the noisy value of each answer above; or "endless", which
        ignores the count.

    Notes
    -----
    An endless stream distinguishes neighbours with certainty: δ(ε) = 1 for every ε. Take very many
    equal answers, and let every second one rise and the others fall, or stay if monotone. The
    shares of the two halves that are above the threshold then differ as the laws of the noise do. A
    stream without noise on its answers does the same for any count: if the answers rise slowly,
    neighbours differ in which half first exceeds the threshold. The other proofs are comments in
    `dpassay.accountant.mechanisms.selection.thresholds`.
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
    def _is_unbounded(self) -> bool:
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
        """An ε-DP mechanism with ε the largest loss; no privacy if it is infinite."""
        if self._is_unbounded:
            return None
        largest = self._pair.known.max_loss()
        return _CERTAIN if largest is None else Guaranteed(largest)

    def attained(self) -> tuple[Pair, ...]:
        """Return the pairs of laws of one comparison with the threshold."""
        return self._pair.one_answer.pairs

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return one pair that stands for all pairs of streams."""
        if self._is_unbounded:
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
        """Draw `times` outputs exactly: per answer 1 (above), 0 (below) or −1 (after the end).

        `value` lists the answers in their order, each minus its threshold.
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
        """Draw outputs for one answer that equals the threshold."""
        return self.release([0], size, rng=rng)[:, 0]

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return one pair of streams: c + 2 answers fall by Δ, then c rise by Δ (0 if monotone)."""
        move, c = WITHIN * float(self.sensitivity), self.count
        up = 0.0 if self.monotone else move
        return [([move] * (c + 2) + [0.0] * c, [0.0] * (c + 2) + [up] * c)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` outputs for the answers `answer`."""
        return self.release(answer, size, rng=rng)


# --- Optimal partition selection: keep or drop a key by the number of its users -------------------

_MOST = 10**15
"""Limit on the users at the bend of π: up to it, floats locate the bend to within one user."""


def add_remove(adjacency: Adjacency | None, mechanism: object) -> None:
    """Raise AdjacencyError unless the relation is add/remove."""
    if require(adjacency, mechanism) is Adjacency.REPLACE_ONE:
        raise AdjacencyError(
            f"{type(mechanism).__name__} is known for a user who is added or removed. Name "
            "adjacency='add-remove'; a replaced user is one who leaves and one who comes."
        )


@declared
class PartitionSelection(Mechanism, FiniteLaws):
    """Keep a key that n users hold with the largest probability that (ε, δ)-DP allows.

    The probability π(n) of keeping a key is optimal for every n (Desfontaines, Voss, Gipson and
    Mandayam 2022, Theorem 1): π(0) = 0 and
    π(n + 1) = min(e^ε π(n) + δ, 1 − e^{−ε}(1 − π(n) − δ), 1). A user has at most one key.

    Parameters
    ----------
    epsilon
        ε > 0.
    delta
        0 < δ < 1, the probability that a key of one user is kept.

    Notes
    -----
    The first bound is the smaller one for π(n) ≤ (1 − δ)/(1 + e^ε), and the second one for larger
    π(n). Few of the pairs (π(n + 1), π(n)) can be worst. On each of the two branches π(n + 1) is
    affine in π(n), and so is P(S) − e^x Q(S) for each of the four events S, every x and both
    directions. So the maximum over n is at an end of a branch: n = 0, the values of n next to the
    bend, and the last two. The worst end depends on x. Therefore the trade-off function of another
    n may be below those of all ends at some α; β is enclosed between theirs and that of the largest
    profile.
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
        """An arbitrary (ε, δ)-DP mechanism."""
        return Guaranteed(self.epsilon, self.delta)

    def attained(self) -> tuple[Pair, ...]:
        """Return the pairs of n = 0, of values of n next to the bend, and of one near the end."""
        ends = {0, max(0, self._bend() - 1), self._bend() + 1, max(0, self._last() - 4)}
        return tuple(FinitePair(self, n) for n in sorted(ends))

    def _bend(self) -> int:
        """Return the n, to within one, from which on the second bound is the smaller one."""
        epsilon, delta = self.epsilon.ball(), self.delta.ball()
        return math.floor(float(((epsilon / 2).tanh() * (1 - delta) / delta).log1p() / epsilon))

    def keeps(self, users: int) -> tuple[arb, arb]:
        """Return π(n) and 1 − π(n), each without cancellation, for n users.

        Up to the bend, π(n) = δ(e^{nε} − 1)/(e^ε − 1). Beyond it,
        1 − π(n + j) = max((1 − π(n) + c)e^{−jε} − c, 0) with c = δ/(e^ε − 1).
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

        Raises UndecidedError if the precision does not decide whether some π(n) reaches it.
        """

        def enough(users: int) -> bool:
            return bool(enclose(lambda: self.keeps(users)[0]) >= probability)

        return 1 + bisect_left(range(1, self._last() + 1), True, key=enough)

    def _last(self) -> int:
        """Return an upper bound on the least n with π(n) = 1, larger by at most two."""
        start = max(0, self._bend() + 3)
        _, lost = self.keeps(start)
        c = self.delta.ball() / self.epsilon.ball().expm1()
        return start + max(0, math.ceil(float(((lost / c).log1p() / self.epsilon.ball()).upper())))

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pairs at the ends of both branches.

        The ends are known to within two users, so neighbouring n are listed too, except those with
        π(n) = 1. Raises AdjacencyError unless the relation is add/remove.
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
        """Return the names of the two outcomes."""
        return "the key is kept", "the key is dropped"

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return the probabilities of both outcomes, for index + 1 users and for index users."""
        return list(self.keeps(index + 1)), list(self.keeps(index))

    def exact_bound(self, index: int, epsilon: ExactReal) -> ExactReal | None:
        """Return δ at the mechanism's own ε, because π satisfies (ε, δ)-DP; else None."""
        return self.delta if epsilon == self.epsilon else None

    def exact_infinity_masses(self, index: int) -> tuple[ExactReal, ExactReal] | None:
        """Return (δ, 0) for n = 0 if π(1) < 1, else None."""
        if index or self.keeps(1)[1].contains(0):
            return None
        return self.delta, ExactReal.of_rational(0)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` arrays of booleans, exactly: whether each key is kept.

        `value` is an array of the number of users of each key.
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
        """Return 0 and 1 users, and consecutive numbers of users around the bend."""
        bend = max(1, self._bend())
        return [(0, 1), (bend - 1, bend), (bend, bend + 1), (bend + 1, bend + 2)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw 1 if the key of `answer` users is kept, else 0."""
        return self.release(int(answer), size, rng=rng).astype(int)


# --- Noisy counts of keys, released if they reach a threshold -------------------------------------

_DIGITS = 15
"""Digits to which the probability of a new key is rounded up for compositions."""
_MOST_PARTITIONS = 1000
"""Largest number of keys of a user; each has a product of its own, which may take a second."""
_ROUNDING = 1 + 2.0**-50
"""A factor that covers the rounding of a threshold and of a released count to doubles."""


class _Threshold(Mechanism, FiniteLaws):
    """Release each key that someone holds with its noisy count, if this count is ≥ τ.

    A user adds up to Δ to each of up to k counts. Suppose that j of these keys belong to nobody
    else. Without the user they cannot appear; with the user each appears with probability at most
    m = P(Δ + noise ≥ τ). The other k − j counts move by at most Δ, and suppressing small values is
    post-processing. So the pair is dominated by the product of j copies of ((m, 1 − m), (0, 1)) and
    k − j noise pairs at distance Δ. It is attained by counts of Δ and, in the limit, very frequent
    keys. The profile is the maximum over j = 0, …, k.
    """

    noise_grows: ClassVar[bool] = True

    threshold: Positive
    partitions: Integer
    sensitivity: Positive

    @property
    def dominated_by(self) -> Mechanism:
        """The noise on all k counts, composed with the rounded-up probability of a new key."""
        appears = Interval.of_ball(self.masses(self.partitions)[0][0], _DIGITS).upper
        new = Guaranteed(0, min(ExactReal.of_rational(Fraction(appears)), ExactReal.of_rational(1)))
        return Composed((Composed(self.count_noise(), self.partitions), new))

    def attained(self) -> tuple[Pair, ...]:
        """Return the pairs for all numbers j of new keys."""
        return tuple(self._pair(new) for new in range(self.partitions, -1, -1))

    @abstractmethod
    def count_noise(self) -> Mechanism:
        """Return the mechanism that adds noise to one count."""

    @abstractmethod
    def new_key(self) -> tuple[arb, arb]:
        """Return (m, 1 − m), where m is the probability that a key of one user appears."""

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pairs for all numbers j of new keys.

        Raises AdjacencyError unless the relation is add/remove.
        """
        add_remove(adjacency, self)
        if self.partitions > _MOST_PARTITIONS:
            raise NotApplicableError(
                f"Expected partitions={self.partitions} ≤ {_MOST_PARTITIONS}: each number of new "
                f"keys has its own pair. Ask about {self.dominated_by!r}, which is no more private."
            )
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
            product,  # imports NumPy and SciPy, which takes a second
        )

        return product([(noise, 1), (fresh, 1)])

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the names of the two outcomes."""
        return "a key of this user alone appears", "none of them appears"

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return P = (1 − (1 − m)^j, (1 − m)^j) and Q = (0, 1), for j = index."""
        appears, hidden = self.new_key()
        some = -(index * (-appears).log1p()).expm1() if index > 1 else appears
        return [some, hidden**index], [arb(0), arb(1)]

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` arrays of noisy counts on a lattice, with −1 for keys that do not appear.

        A lattice count differs from the exact noisy count by at most half a step, and is released
        if it is at least τ plus one step. So it is a post-processing of the mechanism's output.

        `value` is an array of the count of each key. A key with count 0 never appears.
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
        """Draw the noise of the k counts of a user, for `size` releases."""
        drawn = self.count_noise().sample(size * self.partitions, rng=rng)
        return drawn if self.partitions == 1 else drawn.reshape(size, -1)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return two pairs of counts: keys of nobody or of one user, and frequent keys."""
        none, each = np.zeros(self.partitions), np.full(self.partitions, float(self.sensitivity))
        many = np.full(self.partitions, 2 * float(self.threshold))
        return [(none, each), (many, many + each)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` arrays of noisy counts, in floats, with −1 for keys that do not appear."""
        counts = np.asarray(answer, float)
        noisy = counts + self.sample(size, rng=rng).reshape(size, -1)
        shown = (counts > 0) & (noisy >= float(self.threshold))
        released: Array = np.where(shown, noisy, -1.0)
        return released

    def variances(self) -> list[arb]:
        """Raise NotApplicableError, because suppressed counts have no error."""
        raise NotApplicableError(
            f"{type(self).__name__} leaves keys out: it has no variance. That of a released count "
            f"is the variance of {self.count_noise()!r}, given that the threshold is reached."
        )


@declared
class LaplaceThreshold(_Threshold):
    """Release keys with Laplace-noised counts, if the noisy count reaches a threshold.

    Korolova, Kenthapadi, Mishra and Ntoulas (2009). A key without users is never released.

    Parameters
    ----------
    scale
        b > 0, the scale of the noise of each count.
    threshold
        τ > 0; a key is released if its noisy count is ≥ τ.
    partitions
        k ≥ 1, the largest number of keys of one user.
    sensitivity
        Δ, the most that one user adds to a count.
    """

    example = "LaplaceThreshold(scale=1, threshold=12)"
    noise_argument = "scale"

    scale: Positive = Positive()
    threshold: Positive = Positive()
    partitions: Integer = Integer(1, least=1)
    sensitivity: Positive = Positive(1)

    def count_noise(self) -> Mechanism:
        """Return the Laplace mechanism of scale b and sensitivity Δ."""
        return Laplace(self.scale, self.sensitivity)

    def new_key(self) -> tuple[arb, arb]:
        """Return (m, 1 − m): m is e^{−(τ − Δ)/b}/2 if τ ≥ Δ, and 1 − e^{−(Δ − τ)/b}/2 if τ < Δ."""
        away = abs(self.threshold.ball() - self.sensitivity.ball()) / self.scale.ball()
        tail = (-away).exp() / 2
        return (tail, 1 - tail) if self.threshold >= self.sensitivity else (1 - tail, tail)


@declared
class DiscreteLaplaceThreshold(_Threshold):
    """Release keys with discrete-Laplace-noised counts, if the noisy count reaches a threshold.

    A key without users is never released. Let r = e^{−1/b}. A count of Δ reaches τ if the noise is
    at least j = ⌈τ⌉ − Δ, which has probability r^j/(1 + r) for j ≥ 0. (The privacy map of OpenDP
    0.16 has r^{j+1}/(1 + r), the probability that the noise exceeds j.)

    Parameters
    ----------
    scale
        b > 0, the scale of the noise of each count.
    threshold
        τ > 0; a key is released if its noisy count is ≥ τ.
    partitions
        k ≥ 1, the largest number of keys of one user.
    sensitivity
        Δ, an integer, the most that one user adds to a count.
    """

    example = "DiscreteLaplaceThreshold(scale=1, threshold=12)"
    noise_argument = "scale"

    scale: Positive = Positive()
    threshold: Positive = Positive()
    partitions: Integer = Integer(1, least=1)
    sensitivity: Positive = Positive(1)

    def count_noise(self) -> Mechanism:
        """Return the discrete Laplace mechanism of scale b and sensitivity Δ."""
        return DiscreteLaplace(self.scale, self._whole)

    @property
    def _whole(self) -> int:
        """Δ; raise InvalidInputError unless it is an integer."""
        found = self.sensitivity.rational
        if found is None or found.denominator != 1:
            raise expected("sensitivity", self.sensitivity, "to be an integer, as counts are")
        return int(found)

    def new_key(self) -> tuple[arb, arb]:
        """Return (m, 1 − m): m is r^j/(1 + r) if j ≥ 0, and 1 − r^{1−j}/(1 + r) if j < 0."""
        if self.threshold.rational is None:
            raise expected("threshold", self.threshold, "to be rational")
        away = math.ceil(self.threshold.rational) - self._whole
        r = (-1 / self.scale.ball()).exp()
        tail = r ** (away if away >= 0 else 1 - away) / (1 + r)
        return (tail, 1 - tail) if away >= 0 else (1 - tail, tail)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` arrays of noisy counts, exactly, with −1 for keys that do not appear.

        `value` is an array of the integer count of each key. A key with count 0 never appears.
        """
        counts = np.asarray(value)
        if (counts < 0).any():
            raise expected("value", value, "to be counts ≥ 0")
        noisy = self.count_noise().releases(counts, times, rng)
        released: Array = np.where((counts > 0) & (noisy >= float(self.threshold)), noisy, -1)
        return released


@declared
class GaussianThreshold(_Threshold):
    """Release keys with Gaussian-noised counts, if the noisy count reaches a threshold.

    A key without users is never released.

    Parameters
    ----------
    standard_deviation
        σ > 0, the standard deviation of the noise of each count.
    threshold
        τ > 0; a key is released if its noisy count is ≥ τ.
    partitions
        k ≥ 1, the largest number of keys of one user.
    sensitivity
        Δ, the most that one user adds to a count.
    """

    example = "GaussianThreshold(standard_deviation=2, threshold=10)"
    noise_argument = "standard_deviation"

    standard_deviation: Positive = Positive()
    threshold: Positive = Positive()
    partitions: Integer = Integer(1, least=1)
    sensitivity: Positive = Positive(1)

    def count_noise(self) -> Mechanism:
        """Return the Gaussian mechanism of standard deviation σ and sensitivity Δ."""
        return Gaussian(self.standard_deviation, self.sensitivity)

    def new_key(self) -> tuple[arb, arb]:
        """Return (m, 1 − m) = (Φ(−(τ − Δ)/σ), Φ((τ − Δ)/σ))."""
        away = self.threshold.ball() - self.sensitivity.ball()
        away /= self.standard_deviation.ball()
        return normal_cdf(-away), normal_cdf(away)
