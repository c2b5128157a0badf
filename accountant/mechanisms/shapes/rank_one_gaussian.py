"""The rank-one Gaussian mechanism (R1SMG)."""

from __future__ import annotations

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.noise import SymmetricDensity
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Integer, Positive, Rational
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.rank_one.pair import RankOnePair
from dpassay.accountant.release.lattice import LatticeSampler
from dpassay.accountant.release.lattice_noise import RankOneNoise

_LARGEST_MATRIX = 1000
"""Dimension of a covariance that is written out: a million numbers."""
_REASON = (
    "The density of the noise falls with its norm only, from its centre on. Hence "
    "1 − H(ε) = ∫ min(p, e^ε q) is a mixture of volumes common to two balls of fixed radii round "
    "the two true answers, and such a volume never grows with the distance of the centres "
    "(Anderson 1955; Brunn–Minkowski): H(ε) is largest, for every real ε, at distance "
    "l2_sensitivity. The point reflection that exchanges the two true answers exchanges P and Q, "
    "so both directions agree."
)


@declared
class RankOneGaussian(SymmetricDensity):
    """Release the true answer plus √σ_* z v, z ~ N(0, 1), v uniform on the sphere of R^M.

    Given v the noise is N(0, σ_* v vᵀ), a Gaussian of rank one (Ji and Li, "Less is More",
    Definition 8). Its norm is half-normal and its direction uniform: its density
    ∝ ‖n‖^{−(M−1)} e^{−‖n‖²/(2σ_*)} is infinite at 0. So the privacy loss is unbounded at every
    amount of noise, P(L > ε) decays only as e^{−ε/(M−1)}, no Rényi divergence of order
    ≥ M/(M−1) is finite, and (ε, δ)-DP with a small δ needs σ_* ∝ 1/δ².

    Parameters
    ----------
    dimension
        M > 2: fewer dimensions are for `Gaussian`.
    sigma_star
        σ_* > 0, rational: the eigenvalue of the conditional covariance, and E‖n‖².
    l2_sensitivity
        Δ, the largest ℓ2 distance between the true answers on two neighbours (for whichever
        relation it was computed).
    """

    example = "RankOneGaussian(dimension=5, sigma_star=400)"

    noise_argument = "sigma_star"

    dimension: Integer = Integer(least=3)
    sigma_star: Rational = Rational(least=0, strict=True)
    l2_sensitivity: Positive = Positive(1)

    @property
    def ratio(self) -> ExactReal:
        """κ = Δ/√σ_*, exactly."""
        return self.l2_sensitivity / ExactReal.of_root(self.sigma_star)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return two rank-one Gaussian laws at distance Δ."""
        return WorstCase.symmetric(RankOnePair(self.dimension, self.ratio), _REASON)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, one row of M numbers each."""
        noise: Array = rng.standard_normal((size, self.dimension))
        length = float(self.sigma_star) ** 0.5 * rng.standard_normal(size)
        noise *= (length / np.linalg.norm(noise, axis=1))[:, np.newaxis]
        return noise

    def lattice_sampler(self) -> LatticeSampler:
        """Return the noise ℓ·h/‖h‖ of one random direction, on a lattice."""
        noise = RankOneNoise(
            lambda: ExactReal.of_rational(self.sigma_star).ball().sqrt(), self.dimension
        )
        return LatticeSampler(noise)

    def mean_absolute_error(self) -> arb:
        """Return E|z| E|v_1| √σ_*, E|v_1| = Γ(M/2)/(√π Γ((M + 1)/2))."""
        m = arb(self.dimension)
        direction = ((m / 2).lgamma() - ((m + 1) / 2).lgamma()).exp() / arb.pi().sqrt()
        return direction * (2 * ball(self.sigma_star) / arb.pi()).sqrt()

    def variances(self) -> list[arb]:
        """Return [σ_*/M]: the covariance is (σ_*/M) I."""
        return [ball(self.sigma_star) / self.dimension]

    def covariance_matrix(self) -> list[list[arb]]:
        """Return (σ_*/M) I, in dimensions where it can be written out."""
        if self.dimension > _LARGEST_MATRIX:
            raise NotApplicableError(
                f"The covariance is (sigma_star/dimension)·I; at dimension={self.dimension} it is "
                "not written out. Ask for the variance: all coordinates share it."
            )
        return super().covariance_matrix()
