"""Laplace noise that is cut off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.noise import SymmetricDensity
from dpassay.accountant.core.pair import MirroredPair, Tails, WorstCase
from dpassay.accountant.core.validate import Positive
from dpassay.accountant.errors import expected
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball


@final
@dataclass(frozen=True)
class TruncatedLaplacePair(MirroredPair):
    """Densities e^{−|x|}/N on [−a, a], N = 2(1 − e^{−a}), of P at 0 and of Q at d, 0 < d ≤ a.

    The loss is ∞ on [−a, d − a), where Q has no mass, d up to 0, d − 2x up to d, and −d up to a.
    So {L > ε} is [−a, t), t = (d − ε)/2, for −d ≤ ε < d, and [−a, d − a) for ε ≥ d, of mass
    m = e^{−a}(e^d − 1)/N.
    Reflection x → d − x exchanges P and Q.
    """

    law_name = "truncated-laplace"

    distance: ExactReal
    end: ExactReal

    def _constants(self) -> tuple[arb, arb, arb]:
        """Return e^{−a}, N and m."""
        end = (-self.end.ball()).exp()
        whole = -2 * (-self.end.ball()).expm1()
        return end, whole, end * self.distance.ball().expm1() / whole

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return (2(1 − e^{−t}) + e^{−a}(e^ε − 1))/N for |ε| ≤ d."""
        end, whole, m = self._constants()
        if epsilon >= self.distance:
            return m
        rise = epsilon.ball().expm1()
        if epsilon < -self.distance:
            return m * epsilon.ball().exp() - rise
        t = (self.distance.ball() - epsilon.ball()) / 2
        return (end * rise - 2 * (-t).expm1()) / whole

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the masses of both sides of t."""
        end, whole, m = self._constants()
        if epsilon >= self.distance:
            return Tails(m, 1 - m, arb(0), arb(1))
        if epsilon < -self.distance:
            return Tails(arb(1), arb(0), 1 - m, m)
        d, a = self.distance.ball(), self.end.ball()
        t = (d - epsilon.ball()) / 2
        half = -(-a).expm1()
        return Tails(
            (half - (-t).expm1()) / whole,
            end * (a - t).expm1() / whole,
            end * (a - d + t).expm1() / whole,
            (half - (t - d).expm1()) / whole,
        )

    def renyi(self, order: arb) -> arb:
        """Return ∞."""
        return arb.pos_inf()

    def kullback_leibler(self) -> arb:
        """Return ∞."""
        return arb.pos_inf()

    def closed_rho(self) -> arb:
        """Return ∞."""
        return arb.pos_inf()

    def infinity_mass(self) -> arb:
        """Return m."""
        return self._constants()[2]

    def max_finite_loss(self) -> arb:
        """Return d."""
        return self.distance.ball()

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-line {L > ε}."""
        return (
            "outcomes below the point where the density under P exceeds "
            f"e^{epsilon} times that under Q, which is {self.distance} scales higher"
        )


@declared
class TruncatedLaplace(SymmetricDensity):
    """Release the true scalar answer plus noise of density ∝ e^{−|x|/b} on [−A, A].

    Geng, Ding, Guo and Kumar (2020). The error is never above A, and the price is a δ: with
    b = Δ/ε it is exactly (ε, δ)-DP for A = b ln(1 + (e^ε − 1)/(2δ)).

    Parameters
    ----------
    scale
        b > 0.
    bound
        A ≥ sensitivity.
    sensitivity
        Δ, the largest distance between the true answers on two neighbours.

    Notes
    -----
    The full shift is worst, as for every log-concave density: f(x − d)/f(x) increases with x where
    it is defined, so the best event is a half-line, whose probability grows with the shift.
    """

    example = "TruncatedLaplace(scale=2, bound=20)"
    noise_argument = None

    scale: Positive = Positive()
    bound: Positive = Positive()
    sensitivity: Positive = Positive(1)

    def __post_init__(self) -> None:
        if self.bound < self.sensitivity:
            raise expected("bound", self.bound, f"≥ sensitivity={self.sensitivity}")

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return two laws at the full distance."""
        return WorstCase.symmetric(
            TruncatedLaplacePair(self.sensitivity / self.scale, self.bound / self.scale),
            "The density is log-concave, so the best event is a half-line, whose probability "
            "increases with the shift: the worst pair is at distance sensitivity.",
        )

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases."""
        ends = -np.expm1(-float(self.bound / self.scale))
        magnitude = -np.log1p(-ends * rng.random(size)) * float(self.scale)
        drawn: Array = magnitude * rng.choice([-1.0, 1.0], size)
        return drawn

    def _rest(self) -> arb:
        """Return 1/(e^a − 1), a = A/b."""
        return 1 / (self.bound / self.scale).ball().expm1()

    def variances(self) -> list[arb]:
        """Return [2b² − (A² + 2Ab)/(e^a − 1)]."""
        b, most = self.scale.ball(), self.bound.ball()
        return [2 * b * b - (most * most + 2 * most * b) * self._rest()]

    def mean_absolute_error(self) -> arb:
        """Return b − A/(e^a − 1)."""
        return self.scale.ball() - self.bound.ball() * self._rest()

    def quantile(self, probability: ExactReal) -> arb:
        """Return ±b ln(1 − (1 − e^{−a})|2p − 1|), −A at 0 and A at 1."""
        p = probability.rational
        if p in (0, 1):
            return self.bound.ball() if p else -self.bound.ball()
        away = 2 * probability.ball() - 1 if p is None else ball(2 * p - 1)
        lost = abs(away) * (-(self.bound / self.scale).ball()).expm1()
        return -away.sgn() * self.scale.ball() * lost.log1p()
