"""Two discrete Gaussian laws at an integer distance."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.core.pair import MirroredPair, Tails
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.theta import log_theta_ratio, upper_tail


class HalfLinePair(MirroredPair, ABC):
    """U₀ + D against U₀ for a symmetric U₀ on the integers, where {L > ε} is {U ≥ m}."""

    parameter: ExactReal | Fraction
    """v of a coordinate: far in the tail consecutive losses differ by s/v."""

    @property
    @abstractmethod
    def distance(self) -> int:
        """D."""

    @abstractmethod
    def cut(self, epsilon: ExactReal) -> int:
        """Return m, exactly."""

    @abstractmethod
    def upper(self, start: int) -> arb:
        """Return P(U₀ ≥ start)."""

    @abstractmethod
    def exact_closed_rho(self) -> ExactReal:
        """Return ρ: D_a ≤ aρ, with equality at integers a, as at a = 2."""

    def closed_rho(self) -> arb:
        """Return ρ."""
        return self.exact_closed_rho().ball()

    def kullback_leibler(self) -> arb:
        """Return ρ: the noise has mean 0."""
        return self.closed_rho()

    def lost_bits(self) -> int:
        """Return the bits by which H may be smaller than its two terms, at ε = 0: those of v."""
        return 2 * math.floor(self.parameter).bit_length() + 8

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return P(U₀ ≥ m − D) − e^ε P(U₀ ≥ m), with guard bits for the difference."""
        m, guard = self.cut(epsilon), self.lost_bits() + abs(math.floor(epsilon)).bit_length()
        with ctx.workprec(ctx.prec + guard):
            value = self.upper(m - self.distance) - epsilon.ball().exp() * self.upper(m)
        return +value

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the masses on both sides of m, each a sum of its own."""
        m, d = self.cut(epsilon), self.distance
        return Tails(*map(self.upper, (m - d, d + 1 - m, m, 1 - m)))


@final
@dataclass(frozen=True)
class DiscreteGaussianPair(HalfLinePair):
    """P = the law of Z + s, Q = the law of Z, P(Z = z) ∝ e^{−z²/2v}, for an integer s ≥ 1.

    L(z) = (2zs − s²)/2v, so that {L > ε} = {z ≥ m} with the least integer m > εv/s + s/2, found
    exactly, and H(ε) = P(Z ≥ m − s) − e^ε P(Z ≥ m) (Canonne, Kamath and Steinke 2020, Theorem 7).
    Reflection z → s − z exchanges P and Q.
    """

    law_name = "discrete-gaussian"

    parameter: ExactReal
    shift: int

    def cut(self, epsilon: ExactReal) -> int:
        """Return the least integer m > εv/s + s/2."""
        twice = ExactReal.of_rational(2) * epsilon * self.parameter
        return (math.floor(twice / ExactReal.of_rational(self.shift)) + self.shift) // 2 + 1

    @property
    def distance(self) -> int:
        """The shift."""
        return self.shift

    def upper(self, start: int) -> arb:
        """Return P(Z ≥ start)."""
        return upper_tail(self.parameter, start)

    def renyi(self, order: arb) -> arb:
        """Return a·s²/2v + ln(θ(as)/θ(0))/(a − 1), where θ(c) = Σ e^{−(z−c)²/2v}.

        Completing the square in Σ p(z − s)^a p(z)^{1−a}; θ(c) ≤ θ(0), with equality at integers.
        """
        ratio = log_theta_ratio(self.parameter, order * self.shift)
        return order * self.closed_rho() + ratio / (order - 1)

    def exact_closed_rho(self) -> ExactReal:
        """Return s²/2v, which is E_P[2Zs − s²]/2v too, as E_P[Z] = s."""
        return ExactReal.of_rational(self.shift**2) / (ExactReal.of_rational(2) * self.parameter)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-line {L > ε}."""
        return (
            f"outcomes at least {self.cut(epsilon)} above the true answer under Q "
            f"(the true answer under P is {self.shift} higher)"
        )
