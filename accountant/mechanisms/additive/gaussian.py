"""The Gaussian mechanism."""

from __future__ import annotations

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.mechanism import GaussianNoise
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Positive, declared
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.release.lattice import LatticeSampler, independent


@declared
class Gaussian(GaussianNoise):
    """Release the true answer plus N(0, σ²) noise, independent in each coordinate.

    Parameters
    ----------
    standard_deviation
        σ > 0, per coordinate.
    l2_sensitivity
        The largest ℓ2 distance between the true answers on two neighbours, for whichever relation
        it was computed. The noise is isotropic, so the number of coordinates does not matter: the
        mechanism is exactly μ-GDP with μ = l2_sensitivity/σ.
    """

    example = "Gaussian(standard_deviation=3)"

    noise_argument = "standard_deviation"

    standard_deviation: Positive = Positive()
    l2_sensitivity: Positive = Positive(1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair N(μ, 1) and N(0, 1)."""
        return WorstCase.symmetric(
            GaussianPair(self, None),
            "The noise is rotation invariant, so only the distance of the true answers matters, "
            "and the profile increases with it: the worst pair is at distance l2_sensitivity.",
        )

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal:
        """Return l2_sensitivity/σ."""
        return self.l2_sensitivity / self.standard_deviation

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of one coordinate for `size` releases."""
        return rng.normal(0.0, float(self.standard_deviation), size)

    def lattice_sampler(self) -> LatticeSampler:
        """Return a sampler of N(0, σ²) noise on a lattice, for every entry of an answer."""
        noise = independent(lambda: [self.standard_deviation.ball()])
        return LatticeSampler(noise, repeated=True)

    def variances(self) -> list[arb]:
        """Return [σ²]."""
        return [self.standard_deviation.ball() ** 2]

    def quantile(self, probability: ExactReal) -> arb:
        """Return σ Φ⁻¹(probability)."""
        return normal_quantile(probability) * self.standard_deviation.ball()


def normal_quantile(probability: ExactReal) -> arb:
    """Return Φ⁻¹(p) for p in [0, 1]; −∞ at 0 and +∞ at 1."""
    if probability.sign == 0:
        return arb.neg_inf()
    twice = 2 * probability.ball()
    if probability.rational == 1:
        return arb.pos_inf()
    return -arb(2).sqrt() * twice.erfcinv()
