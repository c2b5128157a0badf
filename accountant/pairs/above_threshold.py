"""The sparse vector technique: which answers of a stream are above a noisy threshold.

The threshold, 0 with Laplace noise of scale s, is compared with every answer, with Laplace noise of
scale r; the stream ends after c answers above. Lengths are in units of the sensitivity: each answer
moves by at most 1. The loss is at most 1/s + 2c/r, or 1/s + c/r where all answers move in the same
direction (Lyu, Su and Li 2017): with the threshold moved by 1 no answer becomes less probable to be
below, and c answers above do by a factor of at most e^{2/r} or e^{1/r} each.

It comes as near to that as one likes. Let m > c + r/s answers come first, at a under P and at a + 1
under Q, and then c answers at 1 under P (0 where monotone) and at 0 under Q; the output is that the
m are below and the c above. As a grows, the integral over the noisy threshold

    P(output) = ∫ f(z/s)/s F((z − a)/r)^m (1 − F((z − 1)/r))^c dz

has its mass near a, where the first and the last factor are exponentials. So there Q(output), at
z + 1, is e^{−1/s − 2c/r} or e^{−1/s − c/r} times as large.

At other ε, for one threshold: let it be z under P and z + 1 under Q, which is Laplace noise at
distance 1/s. Given z, what is said has under P at most e^u times its probability under Q, u = 2c/r
or c/r. So both together are dominated by that noise and by a pair of the loss u for sure, (1, 0)
and (e^{−u}, 1 − e^{−u}): H(ε) ≤ H_Laplace(ε − u). That is less than what a loss of at most t allows
where ε is near t, by half.

With a fresh threshold after each answer above the parts between them are independent, and the loss
is c times that for c = 1. If the noisy value of an answer above is shown, a value v ≤ 0 says that
the noisy threshold is below v, where F((z − a)/r) is an exponential for a ≥ 0: m answers below, at
0 under P and at 1 under Q, have a loss of exactly m/r, for any m.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from flint import arb

from dpassay.accountant.core.pair import MirroredPair, Tails
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import (
    START_PRECISION,
    Interval,
    ball,
    enclose,
)
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.two_candidates import TwoCandidates
from dpassay.accountant.pairs.two_ends import inverse_between, narrow_enough

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

    only_bounded: ClassVar = True
    """Which streams are worst is not known, or not exactly."""

    def exact_max_loss(self) -> ExactReal | None:
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

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball from the best output up to what the largest loss allows."""
        least, largest = -epsilon.ball().expm1(), self.exact_max_loss()
        if largest is not None and epsilon >= largest:
            return arb(0)
        if largest is not None and epsilon <= -largest:
            return least
        low = self._lower(epsilon)
        if largest is None:
            return low.union(arb(1))
        with ctx.workprec(START_PRECISION):  # more digits of bounds that are apart help nobody
            return low.union(self._most(epsilon))

    def at_most(self, epsilon: ExactReal) -> arb:
        """Return the larger end: a ball around both has a radius of 30 bits."""
        largest = self.exact_max_loss()
        if largest is None or not -largest < epsilon < largest:
            return self.hockey_stick(epsilon).upper()
        with ctx.workprec(START_PRECISION):
            return self._most(epsilon).upper()

    def _most(self, epsilon: ExactReal) -> arb:
        """Return the least of the bounds in closed form."""
        largest = self.exact_max_loss()
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

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) by where both bounds pass δ; UndecidedError where that is too wide."""
        why = "no profile of the sparse vector technique is known"
        if self.exact_max_loss() is None:
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
        return arb(0).union(order * self.rho_bound())

    def kullback_leibler(self) -> arb:
        """Return a wide ball: from 0 up to what a loss in [−t, t] allows."""
        return arb(0).union(self.rho_bound())

    def closed_rho(self) -> arb:
        """Return the same wide ball."""
        return self.kullback_leibler()

    def rho_bound(self) -> arb:
        """Return t²/2, for a loss in [−t, t]."""
        return self.max_loss() ** 2 / 2

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
