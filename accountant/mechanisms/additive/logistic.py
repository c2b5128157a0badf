"""The logistic mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, NDArray, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.inverse_noise import InverseNoise
from dpassay.accountant.core.noise import SymmetricDensity
from dpassay.accountant.core.pair import ReflectedPair, Tails, WorstCase
from dpassay.accountant.core.validate import Positive
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball


@final
@dataclass(frozen=True)
class LogisticPair(ReflectedPair):
    """Two logistic laws of scale 1, P at t > 0 and Q at 0, densities f(x − t) and f(x).

    With u = 1/(1 + e^{−x}), the distribution function of Q, f(x) = u(1 − u), and the ratio of the
    densities is e^t/V², V = u + e^t(1 − u). Under Q u is uniform on [0, 1], so V is uniform on
    [1, e^t], and L = t − 2 ln V has on [−t, t] the density e^{−l/2}/(4 sinh(t/2)); under P it has
    the density e^{l/2}/(4 sinh(t/2)). All that is asked follows by integration:
    H(ε) = (1 − e^{(ε−t)/2})²/(1 − e^{−t}) for |ε| ≤ t.
    Reflection x → t − x exchanges P and Q.
    """

    law_name = "logistic"

    distance: ExactReal

    def excess(self, epsilon: ExactReal) -> arb:
        """Return (1 − e^{(ε−t)/2})²/(1 − e^{−t})."""
        t = self.distance.ball()
        return ((epsilon.ball() - t) / 2).expm1() ** 2 / -(-t).expm1()

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return (1 − r)/N, (1 − s)r/N, (1 − r)s/N and (1 − s)/N with N = 1 − e^{−t}.

        r = e^{(ε−t)/2} and s = e^{−(ε+t)/2} are exchanged by reflection.
        """
        if epsilon >= self.distance:
            return Tails(arb(0), arb(1), arb(0), arb(1))
        if epsilon <= -self.distance:
            return Tails(arb(1), arb(0), arb(1), arb(0))
        t, eps = self.distance.ball(), epsilon.ball()
        high, low, whole = (eps - t) / 2, -(eps + t) / 2, -(-t).expm1()
        upper, lower = -high.expm1() / whole, -low.expm1() / whole
        return Tails(upper, lower * high.exp(), upper * low.exp(), lower)

    def renyi(self, order: arb) -> arb:
        """Return ln M/(a − 1), M = E_Q[e^{aL}] = sinh((a − ½)t)/((2a − 1) sinh(t/2))."""
        t, twice = self.distance.ball(), 2 * order - 1
        shape = (-(-twice * t).expm1()).log() - twice.log() - (-(-t).expm1()).log()
        return t + shape / (order - 1)

    def kullback_leibler(self) -> arb:
        """Return t coth(t/2) − 2, the derivative of ln M at a = 1."""
        t = self.distance.ball()
        return t * (t / 2).coth() - 2

    def exact_max_loss(self) -> ExactReal:
        """Return t."""
        return self.distance

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-line {L > ε}."""
        return (
            "outcomes beyond the point where the density around the true answer under P, which is "
            f"{self.distance} scales higher, exceeds e^{epsilon} times that under Q"
        )


@declared
class Logistic(SymmetricDensity):
    """Release the true scalar answer plus logistic noise, density e^{−x/s}/(s(1 + e^{−x/s})²).

    Exactly sensitivity/s-DP. Its loss is bounded like that of Laplace noise but has no atoms, so δ
    falls to 0 quadratically where ε nears the largest loss.

    Parameters
    ----------
    scale
        s > 0; the standard deviation is πs/√3.
    sensitivity
        The largest distance between the true answers on two neighbours (for whichever relation it
        was computed).

    Notes
    -----
    The full shift is worst. The density is log-concave, so f(x − d)/f(x) increases with x for every
    d > 0, and the best event against the shift d is a half-line:
    H_d(ε) = max over c of P(Z ≥ c − d) − e^ε P(Z ≥ c), where each term increases with d. A shift by
    −d is the mirror image of a shift by d.
    """

    example = "Logistic(scale=2)"
    noise_argument = "scale"

    scale: Positive = Positive()
    sensitivity: Positive = Positive(1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return two logistic laws at the full distance."""
        return WorstCase.symmetric(
            LogisticPair(self.sensitivity / self.scale),
            "The density is log-concave, so the best event is a half-line, whose probability "
            "increases with the shift: the worst pair is at distance sensitivity.",
        )

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases."""
        return rng.logistic(0.0, float(self.scale), size)

    def inverse_noise(self) -> InverseNoise:
        """Return |noise| = s(E + ln(2 − e^{−E})), of slope at most 2: P(noise ≥ x) = 1/(1 + e^x).

        ln(2e^y − 1) is the x with 1/(1 + e^x) = e^{−y}/2.
        """
        return InverseNoise(self.scale, _magnitude, _magnitude_ball, 2.0, _survival)

    def variances(self) -> list[arb]:
        """Return [π²s²/3]."""
        return [(arb.pi() * self.scale.ball()) ** 2 / 3]

    def mean_absolute_error(self) -> arb:
        """Return 2s ln 2."""
        return 2 * self.scale.ball() * arb(2).log()

    def quantile(self, probability: ExactReal) -> arb:
        """Return s ln(p/(1 − p)), −∞ at 0 and +∞ at 1."""
        p = probability.rational
        if p in (0, 1):
            return arb.pos_inf() if p else arb.neg_inf()
        odds = probability.ball() / (1 - probability.ball()) if p is None else ball(p / (1 - p))
        return self.scale.ball() * odds.log()


def _magnitude(xp: Any, y: Any) -> Any:
    return y + xp.log1p(-xp.expm1(-y))


def _magnitude_ball(y: arb) -> arb:
    return y + (-(-y).expm1()).log1p()


def _survival(x: NDArray[np.float64]) -> NDArray[np.float64]:
    decay = np.exp(-x)
    tail: NDArray[np.float64] = decay / (1 + decay)
    return tail
