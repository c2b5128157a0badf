"""Several Gaussian steps of a random allocation: what a mean of powers of likelihood ratios tells.

P adds μ to k of t normal coordinates, all sets being equally likely; Q to none. For 0 < θ ≤ 1 let W
be the mean of the e^{θμZ_j − θ²μ²/2}. For every c the event A = {W > c} has P(A) − e^ε Q(A) ≤ H(ε),
and for (Q, P) {W ≤ c} has. θ = 1 is nearly best where t is large: dP/dQ is about W^k. Elsewhere one
large coordinate is less than k of them, which a smaller θ sees.

*What is open.* With p_i = Σ_j X_j^i, X the likelihood ratio of a step, dP/dQ of k = 2 is
(p₁² − p₂)/(t(t − 1)). As e^{−sp₁²} = E e^{ayp₁} for normal y, a² = −2s, E e^{−s(p₁² − p₂)} is the
mean over y of (E e^{ayX + sX²})^t. For s = ir and a line of y where ayX is imaginary this power is
at most 1, but its integral is one of e^{iy²/2} with about t/r turns that count; on every other line
Re ayX grows with X at one end of it, and for a lognormal X the mean is infinite there. Turning the
line of X as well makes sX² grow, or ayX at the other end: only p₁² ≥ p₂ of all X together bounds
them. A proof would have to treat steps with large X apart, by their number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, final

from flint import arb

from dpassay.accountant.core.pair import ProfileOnly, Tails
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import shortened
from dpassay.accountant.pairs.allocation_sum import LEAST_BITS, AllocationSum
from dpassay.accountant.pairs.mean_lognormal import MeanLognormal

_ENOUGH = 40
"""Relative bits of a difference that are enough: the ends differ by far more."""
_MOST_BITS = 640
"""Bits of probabilities at most: those of a δ of 1e-180."""
_SHARED = 7
"""Bits of the ε by which an event is chosen: those near it share one, which is nearly the best."""
_NEAR = 0.5
"""Length of the range of ln c, in standard deviations of ln W, from which parabolas go on."""
_GOLDEN = (math.sqrt(5) - 1) / 2
"""Share of the golden section: each step asks for one value."""
_DIGITS = 7
"""Of ln c."""
_EIGHTHS = (8, 6, 4, 3, 2)
"""The 8θ that are tried, as long as they help."""
_HELPS = 0.01
"""Growth of ln δ, or of ε, from which on a smaller θ helps."""
_VARIES = 1 / 1024
"""The variance of W under Q up to which no large coordinate shows, and θ = 1 is nearly best."""
_NEARLY_ALL = 3 / 4
"""Share of the steps from which on their sum tells nearly all, and θ = 1 is not improved."""
_NEVER = -1e9
"""Less than every ε, and than every logarithm of a probability that is seen."""
_UNSEEN = 2.0 ** (16 - LEAST_BITS)
"""Probabilities below that are rounding."""
_LARGEST = 700.0
"""The largest ε for which an event is chosen, and so on: floats hold its exponential."""
_ROUNDS = 8
"""Events of an estimate after the first, at most: each is that of the ε before."""


Gain = Callable[[float, float], float]
"""What is gained by an event, of P(A) and Q(A)."""


class Event(NamedTuple):
    """A, by θ and ln c."""

    power: ExactReal
    log_threshold: ExactReal


@final
@dataclass(frozen=True)
class AllocationEvent(ProfileOnly):
    """(P, Q), or (Q, P) with the mixture last, at one event for each ε; 1 ≤ k < t.

    H of the pair is at least `hockey_stick`, which is that of the event.
    """

    law_name = "allocation-event"

    mu: ExactReal
    steps: int
    participations: int
    mixed_first: bool = True
    chosen: Event | None = None
    """That of all ε, where it is the same."""

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return P(A) − e^ε Q(A), or 0 if that is more: not more than H(ε)."""
        event, bits = self.event(epsilon), LEAST_BITS
        while True:
            with ctx.workprec(bits + _ENOUGH):
                p, q = self._probabilities(event, bits)
                found = p - epsilon.ball().exp() * q
            if found.rel_accuracy_bits() >= _ENOUGH or found < 0 or bits > _MOST_BITS:
                return found.max(arb(0))
            bits *= 2

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return the ε with ln H(ε) = log_delta from few bits: ln (P(A) − δ)/Q(A) at the best A.

        None where floats do not tell δ from 1.
        """
        delta = math.exp(log_delta)
        if not delta < 1:
            return None
        largest = self.participations * _sum(self.mu, self.steps).largest_epsilon(log_delta)

        def gain(p: float, q: float) -> float:
            return math.log((p - delta) / q) if p > delta and q > _UNSEEN else _NEVER + p

        _, found = self._best(gain, (math.log1p(-delta), min(largest, _LARGEST)))
        for _ in range(_ROUNDS):
            event = self.event(ExactReal.of_rational(Fraction(found)))
            last, found = found, gain(*self._rough(event))
            if found in {last, _NEVER}:
                break
        return found

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the probabilities of A and of its complement."""
        p, q = self._probabilities(self.event(epsilon), max(ctx.prec, LEAST_BITS))
        return Tails(p, 1 - p, q, 1 - q)

    def event(self, epsilon: ExactReal) -> Event:
        """Return A."""
        at = max(-_LARGEST, min(float(epsilon), _LARGEST))
        return self.chosen or _event(self, shortened(at, _SHARED))

    def attained(self, epsilon: ExactReal) -> AllocationEvent:
        """Return the event for one ε."""
        return replace(self, chosen=self.event(epsilon))

    def _best(self, gain: Gain, losses: tuple[float, float]) -> tuple[Event, float]:
        """Return A with nearly the largest gain in P(A) and Q(A), and that, for ε in a range.

        Where nothing is seen of A the gain is the same everywhere, and A should be larger.
        """
        best: tuple[Event, float] | None = None
        for power in (Fraction(n, 8) for n in _EIGHTHS[: 1 if self._is_plain else None]):
            theta = ExactReal.of_rational(power)

            def value(at: float, theta: ExactReal = theta) -> float:
                return gain(*self._rough(self._at(theta, at)))

            between = self._range(float(power), losses)
            at, found = _largest(value, between, _NEAR * float(power) * self._deviation)
            if best is not None and found < best[1] + _HELPS and best[1] > _NEVER / 2:
                break
            if best is None or found > best[1]:
                best = self._at(theta, at), found
        assert best is not None
        return best

    @property
    def _is_plain(self) -> bool:
        """Whether θ = 1 is enough."""
        variance = math.expm1(min(float(self.mu) ** 2, _LARGEST)) / self.steps
        return variance <= _VARIES or self.participations > _NEARLY_ALL * self.steps

    def _at(self, theta: ExactReal, at: float) -> Event:
        """Return A with ±ln c for which it falls."""
        log_threshold = at if self.mixed_first else -at
        return Event(theta, ExactReal.of_rational(Fraction(f"{log_threshold:.{_DIGITS}g}")))

    def _rough(self, event: Event) -> tuple[float, float]:
        with ctx.workprec(LEAST_BITS):
            p, q = self._probabilities(event, LEAST_BITS)
            found_p, found_q = (float(x.mid()) if x.is_finite() else 0.0 for x in (p, q))
            return found_p, found_q

    @property
    def _deviation(self) -> float:
        """About that of the logarithm of the mean of the likelihood ratios."""
        return float(self.mu) / math.sqrt(self.steps)

    def _range(self, power: float, losses: tuple[float, float]) -> tuple[float, float]:
        """Return where ln c may be, or −ln c with the mixture last.

        dP/dQ is e^ε, or e^{−ε}, where all coordinates are somewhat larger, or k are large, or one.
        """
        t, k, ends = self.steps, self.participations, []
        grown = math.exp(power * (1 - power) * float(self.mu) ** 2 / 2)
        for epsilon in losses:
            level = epsilon if self.mixed_first else -epsilon
            one = math.expm1(level) / k
            if level <= 0 or not self.mixed_first or self._is_plain:
                ends += [power * level / k, power * math.log1p(max(one, _GOLDEN - 1))]
                continue
            several = math.exp((level + math.log(math.comb(t, k))) / k)
            ends += [
                power * level / k,
                math.log1p(k / t * (several**power * grown - 1)),
                math.log1p(((1 + t * one) ** power * grown - 1) / t),
            ]
        reach = self._deviation * math.sqrt(k * k + abs(losses[1]))
        low, high = min(ends) - reach, max(ends) + reach
        return (low, high) if self.mixed_first else (-high, -low)

    def _probabilities(self, event: Event, bits: int) -> tuple[arb, arb]:
        """Return P(A) and Q(A) with errors of about 2^−bits, of the laws in the order of the pair.

        W exceeds c in A, or does not with the mixture last.
        """
        mu, at = event.power * self.mu, event.log_threshold
        p_below, _ = _sum(mu, self.steps, self.participations, self.mu).below_and_above(at, bits)
        _, q_above = _sum(mu, self.steps).below_and_above(at, bits)
        return (1 - p_below, q_above) if self.mixed_first else (1 - q_above, p_below)

    @property
    def refusal(self) -> str:
        """Say what is known."""
        return "A Rényi divergence of several steps is not known. Ask for delta or epsilon."

    def max_loss(self) -> arb:
        """Return infinity: dP/dQ takes all positive values."""
        return arb.pos_inf()

    def reverse(self) -> AllocationEvent:
        """Return the other order."""
        return replace(self, mixed_first=not self.mixed_first)

    def law(self) -> dict[str, object]:
        """Return the pair, and "power" and "log_threshold" of one event."""
        found = super().law()
        found.pop("chosen")
        chosen = {} if self.chosen is None else self.chosen._asdict()
        return {**found, **{name: str(number) for name, number in chosen.items()}}

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe A."""
        sign, event = ">" if self.mixed_first else "<=", self.event(epsilon)
        mean = f"(1/{self.steps})*sum(exp(m*z_j - m^2/2))"
        return f"the outputs with {mean} {sign} exp({event.log_threshold}), m = {event.power}*mu"


def _largest(
    function: Callable[[float], float], between: tuple[float, float], near: float
) -> tuple[float, float]:
    """Return where a function with one maximum is nearly the largest, and its value there.

    By a golden section down to a length, and two parabolas.
    """
    seen: dict[float, float] = {}

    def value(at: float) -> float:
        seen[at] = function(at)
        return seen[at]

    low, high = between
    lower, higher = (high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
    rises = value(lower) < value(higher)
    while high - low > near:
        if rises:
            low, lower, higher = lower, higher, lower + _GOLDEN * (high - lower)
            rises = seen[lower] < value(higher)
        else:
            high, lower, higher = higher, higher - _GOLDEN * (higher - low), lower
            rises = value(lower) < seen[higher]
    for _ in range(2):
        value(_vertex(seen))
    at = max(seen, key=lambda at: seen[at])
    return at, seen[at]


def _vertex(seen: Mapping[float, float]) -> float:
    """Return where a parabola through the largest value and those beside it is largest."""
    order = sorted(seen)
    best = order.index(max(seen, key=lambda at: seen[at]))
    if not 0 < best < len(order) - 1:
        return order[best]
    left, at, right = order[best - 1 : best + 2]
    before, behind = (seen[at] - seen[left]) / (at - left), (seen[right] - seen[at]) / (right - at)
    if not before > behind:
        return at
    return (left + at) / 2 + (right - left) / 2 * before / (before - behind)


@functools.lru_cache(maxsize=64)
def _sum(
    mu: ExactReal, steps: int, taken: int = 1, moved: ExactReal | None = None
) -> AllocationSum:
    """Return ln W, a law that is made once, with what it has computed."""
    return AllocationSum(((MeanLognormal(mu, steps, taken, moved), 1),))


@functools.lru_cache(maxsize=4096)
def _event(pair: AllocationEvent, epsilon: float) -> Event:
    """Return nearly the best A for one ε."""
    growth = math.exp(epsilon)

    def gain(p: float, q: float) -> float:
        more = p - growth * q
        if more <= 0:
            return _NEVER + max(more, -1.0)
        return math.log(more) if more > _UNSEEN else _NEVER

    found, _ = pair._best(gain, (epsilon, epsilon))
    return found
