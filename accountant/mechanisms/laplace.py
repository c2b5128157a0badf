"""The Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from flint import arb

from accountant._validate import Positive
from accountant.adjacency import Adjacency
from accountant.interval import ball
from accountant.mechanism import Mechanism
from accountant.number import ExactReal
from accountant.pair import Pair, Tails, WorstCase

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from accountant.lattice import LatticeSampler
    from accountant.reference import Reference


@final
@dataclass(frozen=True)
class LaplacePair(Pair):
    """P = Lap(t, 1), Q = Lap(0, 1) at distance t > 0.

    L = |x| − |x − t| has atoms ±t and a density between; H(ε) = 1 − e^{(ε−t)/2} for |ε| ≤ t.
    """

    distance: ExactReal

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε) for any real ε."""
        if epsilon >= self.distance:
            return arb(0)
        if epsilon <= -self.distance:
            return -epsilon.ball().expm1()
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

    def renyi(self, order: arb) -> arb:
        """Return ln((a e^{(a−1)t} + (a−1) e^{−at})/(2a − 1))/(a − 1)."""
        t, less = self.distance.ball(), order - 1
        moment = order * (less * t).exp() + less * (-order * t).exp()
        return (moment / (2 * order - 1)).log() / less

    def kullback_leibler(self) -> arb:
        """Return t + e^{−t} − 1."""
        t = self.distance.ball()
        return t + (-t).expm1()

    def max_loss(self) -> arb:
        """Return t."""
        return self.distance.ball()

    def exact_max_loss(self) -> ExactReal:
        """Return t."""
        return self.distance

    def reverse(self) -> LaplacePair:
        """Return the pair itself: reflection x → t − x exchanges P and Q."""
        return self

    def law(self) -> dict[str, object]:
        """Return {"law": "laplace", "distance": t}."""
        return {"law": "laplace", "distance": str(self.distance)}

    def reference(self) -> Reference:
        """Return the two Laplace densities."""
        from accountant.reference import Continuous

        return Continuous(
            log_p=lambda x: -abs(x - self.distance.mpf()),
            log_q=lambda x: -abs(x),
            log_normaliser=lambda mp: -mp.log(2),
            knots=lambda: [0 * self.distance.mpf(), self.distance.mpf()],
        )

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-line {L > ε}."""
        return (
            f"outcomes above ({self.distance} + {epsilon})/2 scales past the true answer under Q "
            f"(the true answer under P is {self.distance} scales higher)"
        )


@final
@dataclass(frozen=True, repr=False)
class Laplace(Mechanism):
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

    noise_argument = "scale"

    scale: Positive = Positive()
    l1_sensitivity: Positive = Positive(1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return two Laplace laws at the full distance."""
        return WorstCase.symmetric(
            LaplacePair(self.l1_sensitivity / self.scale),
            "H(ε) = 1 − e^{(ε−t)/2} increases with the distance t of the true answers, so the "
            "worst pair is at distance l1_sensitivity.",
        )

    @property
    def dimension(self) -> int:
        """One."""
        return 1

    def sample(self, size: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw the noise of `size` releases."""
        return rng.laplace(0.0, float(self.scale), size)

    def lattice_sampler(self) -> LatticeSampler:
        """Return Laplace noise for every entry of an answer, on a lattice."""
        from accountant.lattice import LatticeSampler
        from accountant.lattice_noise import independent

        noise = independent(lambda: [self.scale.ball()], "laplace")
        return LatticeSampler(noise, repeated=True)

    def variances(self) -> list[arb]:
        """Return [2b²]."""
        return [2 * self.scale.ball() ** 2]

    def quantile(self, probability: ExactReal) -> arb:
        """Return b ln(2p) up to the median, −b ln(2(1 − p)) above."""
        return self.scale.ball() * laplace_quantile(probability)


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
