"""Several Gaussian steps of a random allocation: what the mean of the likelihood ratios tells.

P adds μ to k of t normal coordinates, all sets being equally likely; Q to none. W is the mean of
the e^{μZ_j − μ²/2}. For every c the event A = {W > c} has P(A) − e^ε Q(A) ≤ H(ε), and for (Q, P)
{W ≤ c} has. The best c gives what is seen of the outputs through W alone, nearly all where t is
large: there dP/dQ is about W^k.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from flint import arb

from accountant.core.pair import ProfileOnly, Tails
from accountant.numbers.exact import ExactReal
from accountant.numbers.precision import ctx
from accountant.numbers.solve import shortened
from accountant.pairs.allocation_sum import LEAST_BITS, AllocationSum, root_of_log
from accountant.pairs.mean_lognormal import MeanLognormal

_ENOUGH = 40
"""Relative bits of a difference that are enough: the ends differ by far more."""
_MOST_BITS = 640
"""Bits of probabilities at most: those of a δ of 1e-180."""
_SHARED = 7
"""Bits of the ε by which c is chosen: those near it share the event, which is nearly the best."""
_STEPS = 12
"""Steps of the search for ln c: its ends come nearer by a factor of three hundred."""
_GOLDEN = (math.sqrt(5) - 1) / 2
"""Share of the golden section: each step asks for one value."""
_DIGITS = 7
"""Of ln c."""


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
    chosen: ExactReal | None = None
    """ln c, where it is the same for all ε."""

    def hockey_stick(self, epsilon: ExactReal, floor: float = 0.0) -> arb:
        """Return P(A) − e^ε Q(A), or 0 if that is more: not more than H(ε).

        What is below a floor is only bounded.
        """
        at, bits = self.log_threshold(epsilon), LEAST_BITS
        while True:
            with ctx.workprec(bits + _ENOUGH):
                p, q = self._event(at, bits)
                found = p - epsilon.ball().exp() * q
            if found.rel_accuracy_bits() >= _ENOUGH or found < floor or bits > _MOST_BITS:
                return found.max(arb(0))
            bits *= 2

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return the ε ≥ 0 with ln H(ε) = log_delta from few bits."""
        largest = self.participations * self._single.largest_epsilon(log_delta)
        return root_of_log(self.hockey_stick, log_delta, largest)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the probabilities of A and of its complement."""
        p, q = self._event(self.log_threshold(epsilon), max(ctx.prec, LEAST_BITS))
        return Tails(p, 1 - p, q, 1 - q)

    def log_threshold(self, epsilon: ExactReal) -> ExactReal:
        """Return ln c."""
        if self.chosen is not None:
            return self.chosen
        return _log_threshold(self, shortened(float(epsilon), _SHARED))

    def attained(self, epsilon: ExactReal) -> AllocationEvent:
        """Return the event for one ε."""
        return replace(self, chosen=self.log_threshold(epsilon))

    def _event(self, at: ExactReal, bits: int) -> tuple[arb, arb]:
        """Return P(A) and Q(A) with errors of about 2^−bits, of the laws in the order of the pair.

        W exceeds e^at in A, or does not with the mixture last.
        """
        several = AllocationSum(((MeanLognormal(self.mu, self.steps, self.participations), 1),))
        p_below, _ = several.below_and_above(at, bits)
        _, q_above = self._single.below_and_above(at, bits)
        return (1 - p_below, q_above) if self.mixed_first else (1 - q_above, p_below)

    @property
    def _single(self) -> AllocationSum:
        return AllocationSum(((MeanLognormal(self.mu, self.steps), 1),))

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
        """Return the pair, and "log_threshold" of one event."""
        found = super().law()
        chosen = found.pop("chosen")
        return found if self.chosen is None else {**found, "log_threshold": chosen}

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe A."""
        sign = ">" if self.mixed_first else "<="
        mean = f"(1/{self.steps})*sum(exp(mu*z_j - mu^2/2))"
        return f"the outputs with {mean} {sign} exp({self.log_threshold(epsilon)})"


@functools.lru_cache(maxsize=4096)
def _log_threshold(pair: AllocationEvent, epsilon: float) -> ExactReal:
    """Return nearly the best ln c, by a golden section: P(A) − e^ε Q(A) has one maximum in c.

    It lies near where W^k, or the density with one large coordinate, is e^{±ε}.
    """
    sign, k = (1 if pair.mixed_first else -1), pair.participations
    ends = [sign * epsilon / k, math.log1p(max(math.expm1(sign * epsilon) / k, _GOLDEN - 1))]
    reach = float(pair.mu) * math.sqrt((k * k + abs(epsilon)) / pair.steps)
    low, high = min(ends) - reach, max(ends) + reach

    def value(at: float) -> float:
        with ctx.workprec(LEAST_BITS):
            p, q = pair._event(_exact(at), LEAST_BITS)
            return float((p - arb(epsilon).exp() * q).mid())

    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [value(at) for at in inner]
    for _ in range(_STEPS):
        if values[0] < values[1]:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + _GOLDEN * (high - low)
            values[1] = value(inner[1])
        else:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - _GOLDEN * (high - low)
            values[0] = value(inner[0])
    return _exact(inner[0])


def _exact(at: float) -> ExactReal:
    return ExactReal.of_rational(Fraction(f"{at:.{_DIGITS}g}"))
