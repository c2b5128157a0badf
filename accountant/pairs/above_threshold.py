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

*A stream of m answers.* Of an output with n answers below and c above, n + c ≤ m, the loss is at
most (n + c)/r if the threshold stays where it is, 1/s + 2c/r if it is moved by 1, and 1/s + 2n/r if
it is moved by −1; or n/r and 1/s + c/r where all answers rise, c/r and 1/s + n/r where they fall.
The least of these is come near to: as a grows and b falls, n answers at a below and c at b above
are exponentials between b and a, where the integrand is e^{−|z|/s + (n − c)z/r} up to a factor.
Its mass is near 0 if |n − c| < r/s; else it is near a or b, as above. One answer is X − Y, noise of
both scales, added to it: a log-concave density, of which half-lines are the best events.

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

from accountant.core.pair import MirroredPair, Tails
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import START_PRECISION, Interval, ball, enclose
from accountant.numbers.precision import ctx
from accountant.pairs.two_candidates import TwoCandidates
from accountant.pairs.two_ends import inverse_between, narrow_enough

Terms = list[tuple[arb, int]]
"""Sums of c e^{λz}, as (c, λ)."""
_PLACES = (0, 1, 2, 4, 8, 16, 32, 64)
"""Places a of the answers below that are tried, in units of r."""
_MOST_ABOVE = 16
"""Answers above in an output that is tried."""


def _power(n: int, rate: int, at: Fraction, sign: int) -> tuple[Terms, Terms]:
    """Return F(z − at)^n (sign 1) or F(at − z)^n (−1), where z is below `at` and above it."""
    half, place = arb("0.5"), ball(at)
    tail: Terms = [(half**n * (-sign * n * rate * place).exp(), sign * n * rate)]
    most: Terms = [
        (math.comb(n, i) * (-half) ** i * (sign * i * rate * place).exp(), -sign * i * rate)
        for i in range(n + 1)
    ]
    return (tail, most) if sign > 0 else (most, tail)


def _chance(
    scales: tuple[Fraction, Fraction], below: tuple[int, Fraction], above: tuple[int, Fraction]
) -> arb:
    """Return P(m answers at a are below, and c answers at b above), (m, a) and (c, b) given.

    In a unit of z of which both rates are multiples the integrand is a sum of exponentials with
    integer rates between 0, a and b.
    """
    (a, b), (c, d) = (rate.as_integer_ratio() for rate in (1 / scales[0], 1 / scales[1]))
    unit = Fraction(math.gcd(a * d, c * b), b * d)
    s, r = (int(1 / (scale * unit)) for scale in scales)
    low_at, high_at = below[1] * unit, above[1] * unit
    factors = [
        (Fraction(0), ([(arb(s) / 2, s)], [(arb(s) / 2, -s)])),
        (low_at, _power(below[0], r, low_at, 1)),
        (high_at, _power(above[0], r, high_at, -1)),
    ]
    ends = sorted({at for at, _ in factors})
    found = arb(0)
    for low, high in zip([None, *ends], [*ends, None], strict=True):
        terms: Terms = [(arb(1), 0)]
        for at, sides in factors:
            side = sides[low is not None and low >= at]
            terms = [(x * y, rate + also) for x, rate in terms for y, also in side]
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
    "noisy-values"; `steps` is the number of answers of the standard one, None for any.
    Neighbours change places.
    """

    threshold: Fraction
    query: Fraction
    count: int
    monotone: bool
    variant: str
    steps: int | None = None

    only_bounded: ClassVar = True
    """Which streams are worst is not known."""

    def exact_max_loss(self) -> ExactReal | None:
        """Return the supremum of the losses where it is finite."""
        if self.variant == "noisy-values":
            return None
        part = (1 if self.monotone else 2) / self.query
        if self.variant == "fresh-threshold":
            return ExactReal.of_rational(self.count * (1 / self.threshold + part))
        if self.steps is not None:
            return ExactReal.of_rational(self._most_of(*self._numbers))
        return ExactReal.of_rational(1 / self.threshold + self._above * part)

    @property
    def _above(self) -> int:
        """The most answers above."""
        return self.count if self.steps is None else min(self.count, self.steps)

    def _most_of(self, n: int, c: int) -> Fraction:
        """Return the largest loss of outputs with n answers below and c above."""
        s, r = 1 / self.threshold, 1 / self.query
        if self.monotone:
            return max(min(n * r, s + c * r), min(c * r, s + n * r))
        return min((n + c) * r, s + 2 * min(n, c) * r)

    @property
    def _numbers(self) -> tuple[int, int]:
        """How many answers are below and above in the output of a short stream that loses most.

        The loss grows with both, so that no answer is missing; of m answers it is largest where
        both sides are as equal as may be, or, where monotone, near where two lines cross.
        """
        assert self.steps is not None
        m, ratio = self.steps, self.query / self.threshold
        near = {math.floor((m + side * ratio) / 2) + off for side in (-1, 0, 1) for off in (0, 1)}
        tried = sorted({min(max(c, 0), self._above) for c in near})
        return max(((m - c, c) for c in tried), key=lambda pair: self._most_of(*pair))

    @property
    def one_answer(self) -> TwoCandidates:
        """Whether one answer is above, which moves by 1, in units of r."""
        unit, ratio = map(ExactReal.of_rational, (1 / self.query, self.threshold / self.query))
        return TwoCandidates("Laplace", unit, ratio)

    def _outputs(self, epsilon: ExactReal) -> Iterator[tuple[arb, arb, str]]:
        """Yield P and Q of outputs whose loss is large, and which streams and output these are."""
        if self.variant == "noisy-values":  # ∫ f(v) ∫_{z ≤ v} f(z/s)/s F(z)^m dz dv over v ≤ 0
            s, r = 1 / self.threshold, 1 / self.query
            m = max(1, math.floor(float(epsilon) / float(r)) + 1)
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
        fresh, most = self.variant == "fresh-threshold", min(self._above, _MOST_ABOVE)
        times = self.count if fresh else 1
        for c in (1,) if fresh else dict.fromkeys((1, most)):
            yield from self._of_streams(c, times)

    def _of_streams(self, c: int, times: int) -> Iterator[tuple[arb, arb, str]]:
        """Yield those of answers that are below, and then c above."""
        m = c + math.floor(self.query / self.threshold) + 2
        if self.steps is not None:
            c = min(c, self.steps // 2)
            m = min(m, self.steps - c)
        scales, raised = (self.threshold, self.query), Fraction(0 if self.monotone else 1)
        again = f", {times} times" if times > 1 else ""
        for place in _PLACES:
            a = place * self.query
            for b in dict.fromkeys((Fraction(0), -a)) if self.steps else (Fraction(0),):
                p = _chance(scales, (m, a), (c, b + raised))
                q = _chance(scales, (m, a + 1), (c, b))
                yield (
                    p**times,
                    q**times,
                    f"{m} answers at {a} under P, {a + 1} under Q, are below, and then {c} at "
                    f"{b + raised} under P, {b} under Q, above{again}",
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
            t, e = largest.ball(), epsilon.ball()
            return low.union(self._of_threshold(e).min((t.exp() - e.exp()) / (t.exp() + 1)))

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
        paid = ball(self._above * (1 if self.monotone else 2) / self.query)
        left = (distance + paid - epsilon).max(arb(0))
        return -(-(left / 2).max(left - distance)).expm1()

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) by where both bounds pass δ; UndecidedError where that is too wide."""
        why = "no profile of the sparse vector technique is known"
        if self.exact_max_loss() is None:
            least = enclose(lambda: arb.log1p(-delta.ball())).lower
            found = Interval(least, Interval.of_ball(arb.pos_inf()).upper)
            return narrow_enough(found, relative_width, why)
        step = Fraction(float(self.max_loss())) / 4
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
        """Return the scales, the count, and the variant or the steps."""
        found: dict[str, object] = {
            "law": "above-threshold" if self.steps is None else "short-stream",
            "threshold": str(ExactReal.of_rational(self.threshold)),
            "query": str(ExactReal.of_rational(self.query)),
            "count": self.count,
            "monotone": self.monotone,
        }
        if self.steps is not None:
            return {**found, "steps": self.steps}
        fresh, values = self.variant == "fresh-threshold", self.variant == "noisy-values"
        return {**found, "fresh": fresh, "values": values}

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the streams and the output that show most."""
        return f"{self._best(epsilon)[2]}; in units of the sensitivity, from the threshold on"
