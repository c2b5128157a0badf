"""Matrix-variate Gaussian noise (MVG)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.noise import GaussianNoise
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Instance, Positive
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.geometry.covariances import Covariance, covariance_field
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.release.lattice import LatticeSampler
from dpassay.accountant.release.lattice_noise import KroneckerNoise, square_root


@declared
class MatrixVariateGaussian(GaussianNoise):
    """Release an M×N matrix plus noise Σ^{1/2} Z Ψ^{1/2}, Z of independent N(0, 1) entries.

    Entries (i, j) and (k, l) of the noise have covariance Σ_ik Ψ_jl. On matrices that differ by
    D the loss is N(μ²/2, μ²) with μ² = tr(Ψ⁻¹D'Σ⁻¹D) ≤ ‖D‖²/(λ(Σ) λ(Ψ)), λ the least
    eigenvalue, with equality for D = Δuv' along the two eigenvectors. So the mechanism is exactly
    μ-GDP with μ = Δ/√(λ(Σ) λ(Ψ)); the sufficient condition of Chanyaswad et al. (Theorem 3 in
    Ji and Li) needs far more noise than that.

    Parameters
    ----------
    row_covariance
        Σ, M×M and positive definite.
    column_covariance
        Ψ, N×N and positive definite.
    l2_sensitivity
        Δ > 0, the largest Frobenius norm of the difference of the answers on two neighbours (for
        whichever relation it was computed), attained in every direction.
    """

    example = (
        "MatrixVariateGaussian(row_covariance=Diagonal(variances=[4, 9]), "
        "column_covariance=Isotropic(dimension=2, variance=1))"
    )

    row_covariance: Instance[Covariance] = covariance_field()
    column_covariance: Instance[Covariance] = covariance_field()
    l2_sensitivity: Positive = Positive(1)

    def __post_init__(self) -> None:
        for name in ("row_covariance", "column_covariance"):
            if getattr(self, name).exact_least_eigenvalue() == 0:
                raise InvalidInputError(
                    f"Expected {name} to be positive definite: it is singular, and differences "
                    "of the answers may lie in the direction without noise. Give a covariance of "
                    "full rank."
                )

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return N(μ, 1) against N(0, 1)."""
        return WorstCase.symmetric(
            GaussianPair(self, None),
            "A difference D of the answers has μ² = tr(Ψ⁻¹D'Σ⁻¹D), at most Δ²/(λ(Σ) λ(Ψ)) with "
            "the least eigenvalues λ, and D = Δuv' along their eigenvectors attains it.",
        )

    @property
    def dimension(self) -> int:
        """Number of entries, M·N."""
        return int(self.row_covariance.dimension * self.column_covariance.dimension)

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return Δ/√(λ(Σ) λ(Ψ))."""
        least = self.row_covariance.least_eigenvalue() * self.column_covariance.least_eigenvalue()
        return self.l2_sensitivity.ball() / least.sqrt()

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the same where both least eigenvalues are known to be rational."""
        row = self.row_covariance.exact_least_eigenvalue()
        column = self.column_covariance.exact_least_eigenvalue()
        if row is None or column is None:
            return None
        return self.l2_sensitivity / ExactReal.of_root(row * column)

    def lattice_sampler(self) -> LatticeSampler:
        """Return the noise of every entry, flattened row by row, on lattices."""
        noise = KroneckerNoise(
            lambda: square_root(self.row_covariance), lambda: square_root(self.column_covariance)
        )
        return LatticeSampler(noise)

    def variances(self) -> list[arb]:
        """Return Σ_ii Ψ_jj row by row; one entry if they are all equal."""
        rows = self.row_covariance.diagonal_entries()
        columns = self.column_covariance.diagonal_entries()
        if len(rows) > 1:
            columns = self._all(columns, self.column_covariance.dimension)
        elif len(columns) > 1:
            rows = self._all(rows, self.row_covariance.dimension)
        return [ball(a * b) for a in rows for b in columns]

    @staticmethod
    def _all(entries: tuple[Any, ...], count: int) -> tuple[Any, ...]:
        return entries * count if len(entries) == 1 else entries

    def mean_squared_error(self) -> arb:
        """Return tr Σ · tr Ψ/(MN)."""
        rows = self.row_covariance.diagonal_entries()
        columns = self.column_covariance.diagonal_entries()
        total = sum(rows, Fraction(0)) * sum(columns, Fraction(0))
        return ball(total / (len(rows) * len(columns)))

    def covariance_matrix(self) -> list[list[arb]]:
        """Return the Kronecker product Σ ⊗ Ψ: entries are numbered row by row."""
        rows, columns = self.row_covariance.matrix(), self.column_covariance.matrix()
        return [[ball(a * b) for a in row for b in column] for row in rows for column in columns]

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, each matrix flattened row by row."""
        m, n = self.row_covariance.dimension, self.column_covariance.dimension
        columns = self.row_covariance.colour(rng.normal(0.0, 1.0, (size * n, m)))
        rows = columns.reshape(size, n, m).swapaxes(1, 2).reshape(size * m, n)
        return self.column_covariance.colour(rows).reshape(size, m * n)
