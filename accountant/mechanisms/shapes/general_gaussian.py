"""Gaussian noise of any covariance over any sensitivity space."""

from __future__ import annotations

import functools

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.noise import GaussianNoise
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Instance
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.geometry.covariances import Covariance, covariance_field
from dpassay.accountant.geometry.spaces import Norm, Space, space_field
from dpassay.accountant.mechanisms.additive.gaussian import normal_quantile
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.release.lattice import LatticeSampler
from dpassay.accountant.release.lattice_noise import coloured


@declared
class GeneralGaussian(GaussianNoise):
    """Release the true answer plus N(0, Σ) noise; exactly μ-GDP with μ = max √(v'Σ⁻¹v).

    Parameters
    ----------
    covariance
        Σ: `Isotropic`, `Diagonal`, `Exchangeable` or `Matrix`. It may be singular where no
        difference leaves its range.
    space
        The differences v of the true answers on two neighbours, for whichever relation they
        were computed: `L2Ball`, `Box`, `SparseBox`, `FiniteSet` or `DisjointGroups`. μ is exact
        where every element of the space occurs, and an upper bound where some do not.
    """

    example = "GeneralGaussian(covariance=Diagonal(variances=[1, 4]), space=Box(bounds=[1, 2]))"

    covariance: Instance[Covariance] = covariance_field()
    space: Instance[Space] = space_field()

    def __post_init__(self) -> None:
        noise, answers = self.covariance.dimension, self.space.dimension
        if noise != answers:
            raise InvalidInputError(
                f"Expected one dimension: the covariance has {noise}, the space has {answers}. "
                "Give both the same dimension."
            )

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return N(μ, 1) against N(0, 1)."""
        return WorstCase.symmetric(
            GaussianPair(self, None),
            "N(v, Σ) against N(0, Σ) is the Gaussian pair with μ² = v'Σ⁻¹v, and the profile "
            f"increases with μ; the norm is largest {self.space.worst}.",
        )

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.space.dimension

    def gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return the largest Mahalanobis norm over the space."""
        return _largest_norm(self.space, self.covariance).ball()

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the same where its square is rational (None for a ball and a Matrix)."""
        return _largest_norm(self.space, self.covariance).exact

    def lattice_sampler(self) -> LatticeSampler:
        """Return N(0, Σ) noise, each coordinate on a lattice of its own step."""
        return LatticeSampler(coloured(self.covariance))

    def variances(self) -> list[arb]:
        """Return the diagonal of Σ."""
        known = functools.cache(ball)  # equal entries are one ball
        return [known(entry) for entry in self.covariance.diagonal_entries()]

    def covariance_matrix(self) -> list[list[arb]]:
        """Return Σ."""
        known = functools.cache(ball)
        return [[known(entry) for entry in row] for row in self.covariance.matrix()]

    def quantile(self, probability: ExactReal) -> arb:
        """Return the quantile of one coordinate, where all variances are equal."""
        entries = set(self.covariance.diagonal_entries())
        if len(entries) > 1:
            raise NotApplicableError(
                "GeneralGaussian has no common quantile: its coordinates have different variances. "
                "Ask for the variances, which are listed by coordinate."
            )
        return ball(entries.pop()).sqrt() * normal_quantile(probability)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, one row each."""
        return self.covariance.sample(size, rng=rng)


@functools.lru_cache(maxsize=64)
def _largest_norm(space: Space, covariance: Covariance) -> Norm:
    """Find the worst difference once; its norm is then enclosed at any precision."""
    return space.largest_norm(covariance)
