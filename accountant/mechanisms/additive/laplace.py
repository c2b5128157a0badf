"""The Laplace mechanism."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from fractions import Fraction
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
from dpassay.accountant.numbers.interval import Interval, ball, enclose


@final
@dataclass(frozen=True)
class LaplacePair(ReflectedPair):
    """P = Lap(t, 1), Q = Lap(0, 1) at distance t > 0.

    L = |x| − |x − t| has atoms ±t and a density between; H(ε) = 1 − e^{(ε−t)/2} for |ε| ≤ t.
    Reflection x → t − x exchanges P and Q.
    """

    law_name = "laplace"

    distance: ExactReal

    def excess(self, epsilon: ExactReal) -> arb:
        """Return 1 − e^{(ε−t)/2}."""
        return -((epsilon.ball() - self.distance.ball()) / 2).expm1()

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return both tails, the atoms at ±t counted on the side ≤."""
        t = self.distance.ball()
        if epsilon >= self.distance:
            return Tails(arb(0), arb(1), arb(0), arb(1))
        if epsilon < -self.distance:
            return Tails(arb(1), arb(0), arb(1), arb(0))
        # L > ε is x > c with c = (t + ε)/2 in [0, t)
        c = (t + epsilon.ball()) / 2
        left_p, right_q = (c - t).exp() / 2, (-c).exp() / 2
        return Tails(p_above=1 - left_p, p_below=left_p, q_above=right_q, q_below=1 - right_q)

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose the ε with H(ε) = δ: the larger one of t + 2 ln(1 − δ) and ln(1 − δ).

        The first is the root of 1 − e^{(ε−t)/2} and lies above −t where it is the larger one; the
        second is that of 1 − e^ε, the H of ε ≤ −t.
        """

        def epsilon() -> arb:
            rest = (-delta.ball()).log1p()
            return (self.distance.ball() + 2 * rest).max(rest)

        return enclose(epsilon, relative_width=relative_width)

    def renyi(self, order: arb) -> arb:
        """Return ln((a e^{(a−1)t} + (a−1) e^{−at})/(2a − 1))/(a − 1)."""
        t, less = self.distance.ball(), order - 1
        moment = order * (less * t).exp() + less * (-order * t).exp()
        return (moment / (2 * order - 1)).log() / less

    def kullback_leibler(self) -> arb:
        """Return t + e^{−t} − 1."""
        t = self.distance.ball()
        return t + (-t).expm1()

    def rho_bound(self) -> arb:
        """Return D_1, which is the least ρ.

        With u = a − ½, e^{t/2 + (a−1)D_a} = cosh(ut) + sinh(ut)/(2u) is an entire function of
        v = u² of order ½. Its zeros are −λ, λ the eigenvalues of −y″ = λy on [0, t], y(0) = 0,
        y′(t) = −y(t)/2: so all are < 0, its logarithm is concave for v > 0, and as (a − 1)D_a = 0
        at v = ¼ it is at most (v − ¼)D_1 = a(a − 1)D_1.
        """
        return self.kullback_leibler()

    def exact_max_loss(self) -> ExactReal:
        """Return t."""
        return self.distance

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-line {L > ε}."""
        return (
            f"outcomes above ({self.distance} + {epsilon})/2 scales past the true answer under Q "
            f"(the true answer under P is {self.distance} scales higher)"
        )


class LaplaceNoise(SymmetricDensity, ABC):
    """Every coordinate of the noise is Lap(b)."""

    noise_argument = "scale"

    scale: Positive

    def mean_absolute_error(self) -> arb:
        """Return b."""
        return self.scale.ball()

    def variances(self) -> list[arb]:
        """Return [2b²]."""
        return [2 * self.scale.ball() ** 2]

    def quantile(self, probability: ExactReal) -> arb:
        """Return b ln(2p) up to the median, −b ln(2(1 − p)) above."""
        return self.scale.ball() * laplace_quantile(probability)


@declared
class Laplace(LaplaceNoise):
    """Release the true scalar answer plus Lap(b) noise, density e^{−|x|/b}/(2b).

    Parameters
    ----------
    scale
        b > 0; the standard deviation is √2·b.
    l1_sensitivity
        The largest distance between the true answers on two neighbours (for whichever relation
        it was computed). Exactly l1_sensitivity/b-DP. A vector of answers whose neighbours may
        differ by a given vector is `LaplaceVector`.
    """

    example = "Laplace(scale=2)"

    scale: Positive = Positive()
    l1_sensitivity: Positive = Positive(1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return two Laplace laws at the full distance."""
        return WorstCase.symmetric(
            LaplacePair(self.l1_sensitivity / self.scale),
            "H(ε) = 1 − e^{(ε−t)/2} increases with the distance t of the true answers, so the "
            "worst pair is at distance l1_sensitivity.",
        )

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases."""
        return rng.laplace(0.0, float(self.scale), size)

    def inverse_noise(self) -> InverseNoise:
        """Return |noise| = bE and P(noise ≥ bx) = e^{−x}/2."""
        return InverseNoise(self.scale, _same, _same_ball, 1.0, _survival)


def laplace_quantile(probability: ExactReal) -> arb:
    """Return the quantile of Lap(1), −∞ at 0 and +∞ at 1."""
    if probability.rational is None:
        p = probability.ball()
        half = ExactReal.of_rational(Fraction(1, 2))
        return (2 * p).log() if probability < half else -(2 - 2 * p).log()
    rest = 1 - probability.rational
    if probability.rational <= rest:
        return (2 * probability.ball()).log() if probability.sign else arb.neg_inf()
    return -ball(2 * rest).log() if rest else arb.pos_inf()


def _same(xp: Any, y: Any) -> Any:
    return y


def _same_ball(y: arb) -> arb:
    return y


def _survival(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(-x) / 2
