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

Also, all noisy answers less the noisy threshold tell no less than what is said. With the threshold
moved by τ it is Laplace noise moved by |τ|/s, and answers by |d_i − τ|/r: with τ = 0 all by at most
1/r, with τ = 1/2, where all rise, by 1/(2r). The event of a shorter stream, or of the first answer
above, is one of a longer one, or of more answers above. The head of `first_above` bounds δ of two
and three answers, of which one is above.

With a fresh threshold after each answer above the parts between them are independent, and the loss
is c times that for c = 1. If the noisy value of an answer above is shown, a value v ≤ 0 says that
the noisy threshold is below v, where F((z − a)/r) is an exponential for a ≥ 0: m answers below, at
0 under P and at 1 under Q, have a loss of exactly m/r, for any m.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import zip_longest
from typing import ClassVar, final

from flint import arb

from dpassay.accountant.composition.exact.laplace_product import of_distances
from dpassay.accountant.core.pair import MirroredPair, Tails
from dpassay.accountant.numbers import ledger
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import (
    RELATIVE_WIDTH,
    START_PRECISION,
    Interval,
    ball,
    enclose,
)
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.first_above import (
    MOST_STEPS,
    FirstAbove,
    best_stream,
    most_of_streams,
)
from dpassay.accountant.pairs.two_candidates import TwoCandidates
from dpassay.accountant.pairs.two_ends import inverse_between, narrow_enough, passes

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
_FLOATS = Fraction(1, 1 << 30), 8, 64
"""Of streams that are searched: the least and the largest move, in units of r, and the largest
ratio of both scales. Beyond, exponentials of floats have few digits or a search is long."""
_JOINT = 8
"""Answers up to which all noisy ones together bound a short stream: sums of more are long."""
_WIDTH, _STEPS, _DIGITS = Fraction(1, 10**5), 40, Fraction(1, 10**7)
"""Relative width of an ε from a search; steps towards it, and the last and smallest of them."""


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


def _of_first(scales: tuple[Fraction, Fraction], inside: str, at: Sequence[Fraction]) -> arb:
    """Return P(the first answer above has a place in S), or the same of none, as a last place."""
    found = arb(0)
    before: list[tuple[int, Fraction, int]] = []
    for place, answer in zip_longest(inside, at):
        if place == "x":
            above = [] if answer is None else [(1, answer, -1)]
            found += _chance(scales, *before, *above)
        before.append((1, answer, 1))
    return found


def _primitive(x: Fraction | None, rate: int) -> arb:
    """Return a primitive of e^{λx}, 0 at the infinite end where it is integrable."""
    if x is None:
        return arb(0)
    return (rate * ball(x)).exp() / rate if rate else ball(x)


_TURNED = str.maketrans("xo", "ox")
"""S and what is outside it change places."""


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
    event: str | None = None
    """An event of one stream, of which H then is: S, how answers move, and where they are."""

    only_bounded: ClassVar = True
    """Which streams are worst is not known, or not exactly."""

    @property
    def usual_width(self) -> Fraction:
        """Relative width of answers: that of a search."""
        return RELATIVE_WIDTH if self._first_above is None else _WIDTH

    def exact_max_loss(self) -> ExactReal | None:
        """Return the supremum of the losses where it is finite."""
        return None if self.variant == "noisy-values" else ExactReal.of_rational(self._largest)

    @property
    def _largest(self) -> Fraction:
        part = (1 if self.monotone else 2) / self.query
        if self.variant == "fresh-threshold":
            return self.count * (1 / self.threshold + part)
        if self.steps is not None:
            return self._most_of(*self._numbers)
        return 1 / self.threshold + self._above * part

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
        if self.event is not None:
            yield self._chances(self.event)
            return
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
        event = self._event(epsilon)
        if event is not None:
            yield self._chances(event)
        for i, pair in enumerate(self.one_answer.pairs):
            (p, _), (q, _) = pair.source.masses(pair.index)
            yield p, q, f"one answer, {i}/8 lower than the threshold under Q, is above"
        fresh, most = self.variant == "fresh-threshold", min(self._above, _MOST_ABOVE)
        times = self.count if fresh else 1
        for c in (1,) if fresh else dict.fromkeys((1, most)):
            yield from self._of_streams(c, times)

    @property
    def _first_above(self) -> FirstAbove | None:
        """What finds the worst event of the first answer above, where floats have the digits."""
        move, ratio = 1 / self.query, self.threshold / self.query
        least, most, far = _FLOATS
        if self.steps is None or not (least <= move <= most and 1 <= far * ratio <= far**2):
            return None
        return FirstAbove(float(ratio), float(move), self.monotone)

    def _event(self, epsilon: ExactReal) -> str | None:
        """Return the best event of a first answer above that is found; at ε < 0 a complement."""
        search, largest = self._first_above, self.exact_max_loss()
        if search is None or largest is None or not -largest < epsilon < largest:
            return None
        assert self.steps is not None
        inside, (rise, other), places = best_stream(search, self.steps, abs(float(epsilon)))
        at = [place * self.query for place in places]
        if epsilon.sign < 0:  # outside S, and neighbours change places
            at = [x + (rise if i == "x" else other) for x, i in zip(at, inside, strict=False)]
            inside, rise, other = inside.translate(_TURNED), -other, -rise
        return " ".join([inside, str(rise), str(other), *map(str, at)])

    def _chances(self, event: str) -> tuple[arb, arb, str]:
        """Return P and Q of an event, and its words."""
        inside, *numbers = event.split()
        rise, other, *at = map(Fraction, numbers)
        after = [x + (rise if i == "x" else other) for x, i in zip(at, inside, strict=False)]
        scales = self.threshold, self.query
        names = [*map(str, range(1, len(at) + 1)), "none"]
        places = " or ".join(name for name, i in zip(names, inside, strict=True) if i == "x")
        shown = [", ".join(f"{float(x):.7g}" for x in each) for each in (at, after)]
        words = f"the first answer above is {places}, answers at {shown[0]} under P, {shown[1]} "
        p, q = (_of_first(scales, inside, each) for each in (at, after))
        return p, q, words + "under Q"

    def attained(self, epsilon: ExactReal) -> AboveThresholdPair:
        """Return this pair with its best event, where that is from a search."""
        event = self._event(epsilon)
        if event is None or self.event is not None:
            return self
        return (
            replace(self, event=event)
            if self._best(epsilon)[2] == self._chances(event)[2]
            else self
        )

    def _of_streams(self, c: int, times: int) -> Iterator[tuple[arb, arb, str]]:
        """Yield those of answers that are below, and then c above."""
        m = c + min(math.floor(self.query / self.threshold), _MOST_BELOW) + 2
        if self.steps is not None:
            c = min(c, self.steps // 2)
            m = min(m, self.steps - c)
        scales, raised = (self.threshold, self.query), Fraction(0 if self.monotone else 1)
        again = f", {times} times" if times > 1 else ""
        for place in _PLACES:
            a = place * self.query
            for b in dict.fromkeys((Fraction(0), -a)) if self.steps else (Fraction(0),):
                p = _chance(scales, (m, a, 1), (c, b + raised, -1))
                q = _chance(scales, (m, a + 1, 1), (c, b, -1))
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
        if self.event is not None:
            return low
        if largest is None:
            return low.union(arb(1))
        with ctx.workprec(START_PRECISION):  # more digits of bounds that are apart help nobody
            return low.union(self._most(epsilon).min(self._most_found(epsilon, low)))

    def at_most(self, epsilon: ExactReal) -> arb:
        """Return the larger end: a ball around both has a radius of 30 bits."""
        largest = self.exact_max_loss()
        if largest is None or not -largest < epsilon < largest:
            return self.hockey_stick(epsilon).upper()
        with ctx.workprec(START_PRECISION):
            return self._most(epsilon).min(self._most_found(epsilon, self._lower(epsilon))).upper()

    def _most_found(self, epsilon: ExactReal, known: arb) -> arb:
        """Return what no stream exceeds by a search that ends, in floats; 1 where none is known."""
        search = self._first_above
        if search is None or self.steps is None or self.steps > MOST_STEPS or self.count > 1:
            return arb(1)
        e, known = epsilon.ball(), known.mid()
        if epsilon.sign < 0:  # H(−ε) = 1 − e^{−ε} + e^{−ε} H(ε)
            known = (known + e.expm1()) * (-e).exp()
        size = abs(float(epsilon))
        ledger.note("streams")
        found = arb(most_of_streams(search, self.steps, size, max(0.0, float(known))))
        return found if epsilon.sign >= 0 else e.exp() * found - e.expm1()

    def _most(self, epsilon: ExactReal) -> arb:
        """Return the least of the bounds in closed form."""
        largest = self.exact_max_loss()
        assert largest is not None
        t, e = largest.ball(), epsilon.ball()
        found = self._of_threshold(e).min((t.exp() - e.exp()) / (t.exp() + 1))
        if self.steps is None or self.steps > _JOINT:
            return found
        s, r = 1 / self.threshold, 1 / self.query
        joint = [[r] * self.steps, [s / 2] + [r / 2] * self.steps][: 1 + self.monotone]
        for distances in joint:
            pair = of_distances([ExactReal.of_rational(x) for x in distances])
            found = found.min(pair.hockey_stick(epsilon))
        return found

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
            least_end = enclose(lambda: arb.log1p(-delta.ball())).lower
            found = Interval(least_end, Interval.of_ball(arb.pos_inf()).upper)
            return narrow_enough(found, relative_width, why)
        if self._largest > _TOO_LARGE:
            least = enclose(lambda: arb.log1p(-delta.ball()))
            return narrow_enough(least.hull(Interval.of_exact(self._largest)), relative_width, why)
        step = max(self._largest / 4, _LEAST_STEP)
        low = self._from_below(delta)
        if low is None:
            ends = self._lower, lambda at: self.hockey_stick(at).upper()
            return inverse_between(ends, delta, step, relative_width, why)
        high = low + max(abs(low), _DIGITS) * _WIDTH / 4
        if not self.at_most(ExactReal.of_rational(high)) <= delta.ball():
            found = passes(lambda at: self._most(at).upper(), delta, step)
            return narrow_enough(found.hull(Interval.of_exact(low)), relative_width, why)
        return narrow_enough(
            Interval.of_exact(low).hull(Interval.of_exact(high)), relative_width, why
        )

    def _from_below(self, delta: ExactReal) -> Fraction | None:
        """Return an ε at which an event still shows δ, nearly the last one that is found.

        An event shows δ up to ln((P − δ)/Q), where another one shows more.
        """
        low, found = Fraction(0), None
        for _ in range(_STEPS if self._first_above is not None else 0):
            p, q, _ = self._best(ExactReal.of_rational(low))
            with ctx.workprec(START_PRECISION):
                share = (p - delta.ball()) / q
                if not share > 0:
                    break
                at = Fraction(math.nextafter(float(share.log().lower()), -math.inf))
            if found is not None and at <= found + abs(found) * _DIGITS:
                break
            low = found = at
        return found

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
            event = {} if self.event is None else {"event": self.event}
            return {**found, "steps": self.steps, **event}
        fresh, values = self.variant == "fresh-threshold", self.variant == "noisy-values"
        return {**found, "fresh": fresh, "values": values}

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the streams and the output that show most."""
        return f"{self._best(epsilon)[2]}; in units of the sensitivity, from the threshold on"
