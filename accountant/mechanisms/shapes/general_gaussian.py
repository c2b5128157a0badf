"""Gaussian noise of any covariance, for any sensitivity space."""

from __future__ import annotations

import functools

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.mechanism import GaussianNoise, SymmetricDensity
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Instance, Integer, Positive, Rational, declared
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.geometry.ellipse import Covariance, covariance_field
from dpassay.accountant.geometry.spaces import Norm, Space, space_field
from dpassay.accountant.mechanisms.additive.gaussian import normal_quantile
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.rank_one import RankOnePair
from dpassay.accountant.release.lattice import LatticeSampler, coloured


@declared
class GeneralGaussian(GaussianNoise):
    """Release the true answer plus N(0, Σ) noise; exactly μ-GDP with μ = max √(v'Σ⁻¹v).

    Parameters
    ----------
    covariance
        Σ: `Isotropic`, `Diagonal`, `Exchangeable` or `Matrix`. It may be singular if its range
        contains the whole space.
    space
        The set of differences v of the true answers on two neighbours, for whichever relation they
        were computed: `L2Ball`, `Box`, `SparseBox`, `FiniteSet` or `DisjointGroups`. μ is exact if
        every element of the space occurs, and otherwise an upper bound.
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
        """Return the pair N(μ, 1) and N(0, 1)."""
        return WorstCase.symmetric(
            GaussianPair(self, None),
            "N(v, Σ) against N(0, Σ) is the Gaussian pair with μ² = v'Σ⁻¹v, and the profile "
            f"increases with μ; the norm is largest {self.space.worst}.",
        )

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return self.space.dimension

    def gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return μ, the largest Mahalanobis norm √(v'Σ⁻¹v) over the space."""
        return _largest_norm(self.space, self.covariance).ball()

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return μ if its square is rational, else None (as for a ball with a Matrix)."""
        return _largest_norm(self.space, self.covariance).exact

    def lattice_sampler(self) -> LatticeSampler:
        """Return a sampler of N(0, Σ) noise, each coordinate on a lattice with its own step."""
        return LatticeSampler(coloured(self.covariance))

    def variances(self) -> list[arb]:
        """Return the diagonal of Σ."""
        known = functools.cache(ball)  # equal entries share a ball
        return [known(entry) for entry in self.covariance.diagonal_entries()]

    def covariance_matrix(self) -> list[list[arb]]:
        """Return Σ."""
        known = functools.cache(ball)
        return [[known(entry) for entry in row] for row in self.covariance.matrix()]

    def quantile(self, probability: ExactReal) -> arb:
        """Return the quantile of one coordinate if all variances are equal, else raise."""
        entries = set(self.covariance.diagonal_entries())
        if len(entries) > 1:
            raise NotApplicableError(
                "GeneralGaussian has no common quantile: its coordinates have different variances. "
                "Ask for the variances, which are listed by coordinate."
            )
        return ball(entries.pop()).sqrt() * normal_quantile(probability)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, one row per release."""
        return self.covariance.sample(size, rng=rng)


@functools.lru_cache(maxsize=64)
def _largest_norm(space: Space, covariance: Covariance) -> Norm:
    """Return the norm of the worst difference, which can be enclosed at any precision."""
    return space.largest_norm(covariance)


# --- Matrix-variate Gaussian noise (MVG) ----------------------------------------------------------


@declared
class MatrixVariateGaussian(GaussianNoise):
    """Release an M×N matrix plus noise Σ^{1/2} Z Ψ^{1/2}, where Z has independent N(0, 1) entries.

    Entries (i, j) and (k, l) of the noise have covariance Σ_ik Ψ_jl. If the answers on two
    neighbours differ by D, the loss is N(μ²/2, μ²) with μ² = tr(Ψ⁻¹D'Σ⁻¹D) ≤ ‖D‖²/(λ(Σ) λ(Ψ)),
    where λ is the least eigenvalue. Equality holds for D = Δuv' with the corresponding unit
    eigenvectors u and v. So the mechanism is exactly μ-GDP with μ = Δ/√(λ(Σ) λ(Ψ)). The sufficient
    condition of Chanyaswad et al. (Theorem 3 in Ji and Li) requires far more noise.

    Parameters
    ----------
    row_covariance
        Σ, M×M and positive definite.
    column_covariance
        Ψ, N×N and positive definite.
    l2_sensitivity
        Δ > 0, the largest Frobenius norm of the difference of the answers on two neighbours, for
        whichever relation it was computed. Differences of this norm occur in every direction.
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
        """Return the pair N(μ, 1) and N(0, 1)."""
        return WorstCase.symmetric(
            GaussianPair(self, None),
            "A difference D of the answers has μ² = tr(Ψ⁻¹D'Σ⁻¹D), at most Δ²/(λ(Σ) λ(Ψ)) with "
            "the least eigenvalues λ, and D = Δuv' along their eigenvectors attains it.",
        )

    @property
    def dimension(self) -> int:
        """The number of entries, M·N."""
        return int(self.row_covariance.dimension * self.column_covariance.dimension)

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return Δ/√(λ(Σ) λ(Ψ))."""
        least = self.row_covariance.least_eigenvalue() * self.column_covariance.least_eigenvalue()
        return self.l2_sensitivity.ball() / least.sqrt()

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return μ if both least eigenvalues are known to be rational, else None."""
        row = self.row_covariance.exact_least_eigenvalue()
        column = self.column_covariance.exact_least_eigenvalue()
        if row is None or column is None:
            return None
        return self.l2_sensitivity / ExactReal.of_root(row * column)

    def variances(self) -> list[arb]:
        """Return Σ_ii Ψ_jj row by row, or one entry if all are known to be equal."""
        rows = self.row_covariance.diagonal_entries()
        columns = self.column_covariance.diagonal_entries()
        if len(rows) > 1 or len(columns) > 1:  # one entry stands for all if they are equal
            rows *= self.row_covariance.dimension // len(rows)
            columns *= self.column_covariance.dimension // len(columns)
        return [ball(a * b) for a in rows for b in columns]

    def covariance_matrix(self) -> list[list[arb]]:
        """Return the Kronecker product Σ ⊗ Ψ; the entries of the matrix are numbered row by row."""
        rows, columns = self.row_covariance.matrix(), self.column_covariance.matrix()
        return [[ball(a * b) for a in row for b in column] for row in rows for column in columns]

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, each matrix flattened row by row."""
        m, n = self.row_covariance.dimension, self.column_covariance.dimension
        columns = self.row_covariance.colour(rng.normal(0.0, 1.0, (size * n, m)))
        rows = columns.reshape(size, n, m).swapaxes(1, 2).reshape(size * m, n)
        return self.column_covariance.colour(rows).reshape(size, m * n)


# --- The rank-one Gaussian mechanism (R1SMG) ------------------------------------------------------

_LARGEST_MATRIX = 1000
"""Limit on the dimension of a covariance that is written out: a million numbers."""
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
    """Release the true answer plus √σ_* z v, where z ~ N(0, 1) and v is uniform on the unit sphere.

    Given v, the noise is N(0, σ_* v vᵀ), a Gaussian of rank one (Ji and Li, "Less is More",
    Definition 8). Its norm is half-normal and its direction uniform. Its density in R^M,
    ∝ ‖n‖^{−(M−1)} e^{−‖n‖²/(2σ_*)}, is infinite at 0. Therefore, for any σ_*, the privacy loss is
    unbounded and P(L > ε) decays only as e^{−ε/(M−1)}. Rényi divergences of order ≥ M/(M−1) are
    infinite, and (ε, δ)-DP with a small δ requires σ_* ∝ 1/δ².

    Parameters
    ----------
    dimension
        M > 2; use `Gaussian` for fewer dimensions.
    sigma_star
        σ_* > 0, rational: the non-zero eigenvalue of the conditional covariance, and E‖n‖².
    l2_sensitivity
        Δ, the largest ℓ2 distance between the true answers on two neighbours, for whichever
        relation it was computed.
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
        """Return the pair of rank-one Gaussian laws at distance Δ."""
        return WorstCase.symmetric(RankOnePair(self.dimension, self.ratio), _REASON)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, an array of shape (size, M)."""
        noise: Array = rng.standard_normal((size, self.dimension))
        length = float(self.sigma_star) ** 0.5 * rng.standard_normal(size)
        noise *= (length / np.linalg.norm(noise, axis=1))[:, np.newaxis]
        return noise

    def mean_absolute_error(self) -> arb:
        """Return E|z| E|v_1| √σ_*, where E|v_1| = Γ(M/2)/(√π Γ((M + 1)/2))."""
        m = arb(self.dimension)
        direction = ((m / 2).lgamma() - ((m + 1) / 2).lgamma()).exp() / arb.pi().sqrt()
        return direction * (2 * ball(self.sigma_star) / arb.pi()).sqrt()

    def variances(self) -> list[arb]:
        """Return [σ_*/M], since the covariance is (σ_*/M) I."""
        return [ball(self.sigma_star) / self.dimension]

    def covariance_matrix(self) -> list[list[arb]]:
        """Return (σ_*/M) I; raise NotApplicableError if M is too large to write it out."""
        if self.dimension > _LARGEST_MATRIX:
            raise NotApplicableError(
                f"The covariance is (sigma_star/dimension)·I; at dimension={self.dimension} it is "
                "not written out. Ask for the variance: all coordinates share it."
            )
        return super().covariance_matrix()
