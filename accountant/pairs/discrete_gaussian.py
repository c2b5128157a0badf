"""Two discrete Gaussian laws at an integer distance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from flint import arb

from accountant.core.pair import MirroredPair, Tails
from accountant.numbers.exact import ExactReal
from accountant.numbers.precision import ctx
from accountant.numbers.theta import log_theta_ratio, upper_tail

if TYPE_CHECKING:
    from accountant.numbers.reference import Reference


@final
@dataclass(frozen=True)
class DiscreteGaussianPair(MirroredPair):
    """P = the law of Z + s, Q = the law of Z, P(Z = z) ∝ e^{−z²/2v}, for an integer s ≥ 1.

    L(z) = (2zs − s²)/2v, so that {L > ε} = {z ≥ m} with the least integer m > εv/s + s/2, found
    exactly, and H(ε) = P(Z ≥ m − s) − e^ε P(Z ≥ m) (Canonne, Kamath and Steinke 2020, Theorem 7).
    Reflection z → s − z exchanges P and Q.
    """

    law_name = "discrete-gaussian"

    parameter: ExactReal
    shift: int

    def _cut(self, epsilon: ExactReal) -> int:
        """Return the least integer m > εv/s + s/2."""
        twice = ExactReal.of_rational(2) * epsilon * self.parameter
        return (math.floor(twice / ExactReal.of_rational(self.shift)) + self.shift) // 2 + 1

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return P(Z ≥ m − s) − e^ε P(Z ≥ m).

        The difference is smaller than either term by a factor of about √v at most where ε is
        small, and of about v far in the tail, where consecutive losses differ by s/v.
        """
        m = self._cut(epsilon)
        guard = 2 * math.floor(self.parameter).bit_length() + 8
        with ctx.workprec(ctx.prec + guard + abs(math.floor(epsilon)).bit_length()):
            high, low = upper_tail(self.parameter, m - self.shift), upper_tail(self.parameter, m)
            value = high - epsilon.ball().exp() * low
        return +value

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the masses on both sides of m, each a sum of its own."""
        m, s, v = self._cut(epsilon), self.shift, self.parameter
        return Tails(
            p_above=upper_tail(v, m - s),
            p_below=upper_tail(v, s + 1 - m),
            q_above=upper_tail(v, m),
            q_below=upper_tail(v, 1 - m),
        )

    def renyi(self, order: arb) -> arb:
        """Return a·s²/2v + ln(θ(as)/θ(0))/(a − 1), where θ(c) = Σ e^{−(z−c)²/2v}.

        Completing the square in Σ p(z − s)^a p(z)^{1−a}; θ(c) ≤ θ(0), with equality at integers.
        """
        ratio = log_theta_ratio(self.parameter, order * self.shift)
        return order * self.kullback_leibler() + ratio / (order - 1)

    def kullback_leibler(self) -> arb:
        """Return s²/2v: E_P[2Zs − s²]/2v with E_P[Z] = s."""
        return self._rho().ball()

    def closed_rho(self) -> arb:
        """Return s²/2v: D_a ≤ a·s²/2v, with equality where a·s is an integer, as at a = 2."""
        return self._rho().ball()

    def _rho(self) -> ExactReal:
        return ExactReal.of_rational(self.shift**2) / (ExactReal.of_rational(2) * self.parameter)

    def reference(self) -> Reference:
        """Return the two mass functions, normalised by a plain sum."""
        import mpmath

        from accountant.numbers.reference import Discrete

        normalisers: dict[int, Any] = {}

        def weight(z: int) -> Any:
            return mpmath.exp(-(z**2) / (2 * self.parameter.mpf()))

        def normaliser() -> Any:
            total, z, term = mpmath.mpf(1), 1, mpmath.mpf(1)
            while term > mpmath.mpf(2) ** (-mpmath.mp.prec - 20):
                term = 2 * weight(z)
                total, z = total + term, z + 1
            return total

        def mass(z: int) -> Any:
            precision = mpmath.mp.prec
            if precision not in normalisers:
                normalisers[precision] = normaliser()
            return weight(z) / normalisers[precision]

        return Discrete(lambda z: (mass(z - self.shift), mass(z)), None, None)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-line {L > ε}."""
        return (
            f"outcomes at least {self._cut(epsilon)} above the true answer under Q "
            f"(the true answer under P is {self.shift} higher)"
        )
