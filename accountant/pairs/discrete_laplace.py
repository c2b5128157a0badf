"""Two discrete Laplace laws at an integer distance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from flint import arb

from dpassay.accountant.core.pair import ReflectedPair, Tails
from dpassay.accountant.numbers.exact import ExactReal


@final
@dataclass(frozen=True)
class DiscreteLaplacePair(ReflectedPair):
    """P = the law of Z + s, Q = the law of Z, for P(Z = z) ∝ e^{−|z|/b} and an integer s ≥ 1.

    The loss is L(z) = (2·min(max(z, 0), s) − s)/b: it takes the s + 1 values (2j − s)/b, and
    whether it exceeds ε is decided exactly, by comparing 2j − s with the exact number ε·b. With
    r = e^{−1/b}, P(Z ≥ m) = r^m/(1 + r) for m ≥ 0, so that the event {L > ε} = {z ≥ j} has
    Q(z ≥ j) = r^j/(1 + r) and P(z < j) = r^{s+1−j}/(1 + r) for 1 ≤ j ≤ s.
    Reflection z → s − z exchanges P and Q.
    """

    law_name = "discrete-laplace"

    scale: ExactReal
    shift: int

    def _cut(self, epsilon: ExactReal) -> int:
        """Return the least j in 0..s with 2j − s > ε·b, or s + 1 where there is none."""
        cut = (math.floor(epsilon * self.scale) + self.shift) // 2 + 1
        return min(max(cut, 0), self.shift + 1)

    def excess(self, epsilon: ExactReal) -> arb:
        """Return H(ε) = (1 − e^{ε−s/b} + Σ_{j ≤ z < s} (1 − r)(r^{s−z} − e^ε r^z))/(1 + r).

        Summed in closed form; every term of the sum is positive.
        """
        j, s, eps = self._cut(epsilon), self.shift, epsilon.ball()
        rate = 1 / self.scale.ball()
        r = (-rate).exp()
        inner = r * -(rate * (j - s)).expm1() + (eps - rate * j).exp() * (rate * (j - s)).expm1()
        return (-(eps - rate * s).expm1() + inner) / (1 + r)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return both tails, cut at the integer j."""
        j, s = self._cut(epsilon), self.shift
        if j > s:
            return Tails(arb(0), arb(1), arb(0), arb(1))
        if j == 0:
            return Tails(arb(1), arb(0), arb(1), arb(0))
        r = (-1 / self.scale.ball()).exp()
        p_below, q_above = r ** (s + 1 - j) / (1 + r), r**j / (1 + r)
        return Tails(p_above=1 - p_below, p_below=p_below, q_above=q_above, q_below=1 - q_above)

    def renyi(self, order: arb) -> arb:
        """Return ln(M)/(a − 1), where M = E_P[e^{(a−1)L}] is a sum of three geometric pieces.

        M = (e^{(a−1)s/b} + e^{−as/b})/(1 + r) + tanh(1/2b) e^{−as/b} Σ_{0<z<s} e^{(2a−1)z/b}.
        """
        rate, s = 1 / self.scale.ball(), self.shift
        less, low = order - 1, (-order * rate * s).exp()
        moment = ((less * rate * s).exp() + low) / (1 + (-rate).exp())
        growth = (2 * order - 1) * rate
        inner = growth.exp() * (growth * (s - 1)).expm1() / growth.expm1()
        return (moment + (rate / 2).tanh() * low * inner).log() / less

    def kullback_leibler(self) -> arb:
        """Return E_P[L] = (s(1 − r^s)/(1 + r) + tanh(1/2b) Σ_{0<k<s} (s − 2k) r^k)/b."""
        rate, s = 1 / self.scale.ball(), self.shift
        r = (-rate).exp()
        less = -(-rate).expm1()
        plain = (r - r**s) / less
        weighted = r * (1 - s * r ** (s - 1) + (s - 1) * r**s) / less**2
        ends = -s * (-rate * s).expm1() / (1 + r)
        return rate * (ends + (rate / 2).tanh() * (s * plain - 2 * weighted))

    def exact_max_loss(self) -> ExactReal:
        """Return s/b."""
        return ExactReal.of_rational(self.shift) / self.scale

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-line {L > ε}."""
        j = self._cut(epsilon)
        if j == 0:
            return "every outcome"
        if j > self.shift:
            return "the empty event"
        return (
            f"outcomes at least {j} above the true answer under Q "
            f"(the true answer under P is {self.shift} higher)"
        )
