"""Elliptical Gaussian noise: least total variance under given sensitivities."""

from __future__ import annotations

import math
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.noise import GaussianNoise
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Positive, Reals
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.additive.gaussian import normal_quantile
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.release.lattice import LatticeSampler
from dpassay.accountant.release.lattice_noise import independent


@declared
class EllipticalGaussian(GaussianNoise):
    """Release d answers with independent noise N(0, σ_j²), σ_j² = Δ_j·ΣΔ_i/μ².

    Among all covariances Σ that are μ-GDP for the box |v_j| ≤ Δ_j this has the least trace,
    (ΣΔ_j)²/μ²: averaged over the signs of the corners, v'Σ⁻¹v is Σ Δ_j²(Σ⁻¹)_jj ≥ Σ Δ_j²/Σ_jj, so
    (ΣΔ_j)² = (Σ (Δ_j/√Σ_jj)·√Σ_jj)² ≤ μ² tr Σ. Isotropic noise needs d·ΣΔ_j²/(ΣΔ_j)² times as
    much (Poulsen; Pagh and Lebeda).

    Parameters
    ----------
    sensitivities
        Δ_j > 0: coordinate j of the true answers of two neighbours differs by at most Δ_j, for
        whichever relation they were computed. For sums of vectors with |x_j| ≤ Δ_j/2 that is
        replace-one; under add/remove the same data have the sensitivities Δ_j/2.
    mu
        μ > 0: exactly μ-GDP where the differences fill the box.
    """

    example = "EllipticalGaussian(sensitivities=[1, 2, 8], mu=1)"

    noise_argument = "mu"
    noise_grows = False

    sensitivities: Reals = Reals(least=0, strict=True)
    mu: Positive = Positive()

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return N(μ, 1) against N(0, 1)."""
        return WorstCase.symmetric(
            GaussianPair(self, None),
            "ΣΔ_j²/σ_j² = μ² at the corners of the box of differences, and less inside.",
        )

    @property
    def dimension(self) -> int:
        """Number of answers."""
        return len(self.sensitivities)

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal:
        """Return μ."""
        return self.mu

    def lattice_sampler(self) -> LatticeSampler:
        """Return independent noise, each coordinate on a lattice of its own step."""
        return LatticeSampler(independent(lambda: [entry.sqrt() for entry in self.variances()]))

    def worst_shift(self) -> Any:
        """Return the sensitivities."""
        return np.array([float(entry) for entry in self.sensitivities])

    def variances(self) -> list[arb]:
        """Return σ_j² = Δ_j·ΣΔ_i/μ²."""
        factor = self._total() / self.mu.ball() ** 2
        return [factor * entry.ball() for entry in self.sensitivities]

    def mean_squared_error(self) -> arb:
        """Return (ΣΔ_j)²/(dμ²)."""
        return (self._total() / self.mu.ball()) ** 2 / self.dimension

    def quantile(self, probability: ExactReal) -> arb:
        """Return the quantile of one coordinate, where all sensitivities are equal."""
        if len(set(self.sensitivities)) > 1:
            raise NotApplicableError(
                "EllipticalGaussian has no common quantile: its coordinates have different laws. "
                "Ask for the variances, which are listed by coordinate."
            )
        return self.variances()[0].sqrt() * normal_quantile(probability)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, one row each."""
        deviations = [math.sqrt(float(entry)) for entry in self.variances()]
        return rng.normal(0.0, deviations, (size, self.dimension))

    def _total(self) -> arb:
        return sum((entry.ball() for entry in self.sensitivities), start=arb(0))
