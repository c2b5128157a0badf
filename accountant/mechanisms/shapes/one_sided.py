"""Correlated Gaussian noise for sums of records that have no negative entries."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.noise import GaussianNoise
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Positive, Reals
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.release.lattice import LatticeSampler, LinearNoise


@declared
class OneSidedGaussian(GaussianNoise):
    """Release a sum of records in [0, Δ_1] × … × [0, Δ_d] and their number, noise being shared.

    With |Δ| = √(ΣΔ_j²) and S = ΣΔ_j + |Δ|, the number has noise η ~ N(0, S/(|Δ|μ²)) and sum j has
    Δ_j·η/2 + z_j, z_j ~ N(0, Δ_j·S/(4μ²)), all independent.

    Parameters
    ----------
    bounds
        Δ_j > 0: entry j of a record lies in [0, Δ_j].
    mu
        μ > 0: the mechanism is exactly μ-GDP under add/remove.

    Notes
    -----
    Subtracting Δ_j/2 times the noisy number from sum j leaves Σ(x_j − Δ_j/2) + z_j, free of η. So a
    record moves independent outputs by x_j − Δ_j/2 and 1, and μ² = Σ Δ_j²/(4 Var z_j) + 1/Var η at
    every corner, less inside. A replacement leaves the number, and moves sum j by up to ±Δ_j.

    For any variances of z and η with that μ the total variance of the sums is at least
    (ΣΔ_j)²/(4u) + |Δ|²/(4(μ² − u)), u = μ² − 1/Var η, by Cauchy's inequality, and that at least
    S²/(4μ²), which is what this law has. Independent noise of least total variance has (ΣΔ_j)²/μ²
    (`EllipticalGaussian`), which is up to four times as much. Equal bounds are Lebeda's Algorithm 1
    (`CorrelatedGaussian`). `mean_squared_error` averages over all that is released.
    """

    example = "OneSidedGaussian(bounds=[1, 2, 8], mu=1)"

    noise_argument = "mu"
    noise_grows = False

    bounds: Reals = Reals(least=0, strict=True)
    mu: Positive = Positive()

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return N(μ', 1) against N(0, 1) with the exact μ' of the relation."""
        relation = require(adjacency, self)
        why = (
            "in units of μ² every corner of the box has (ΣΔ_j + |Δ|)/S = 1, and what is inside less"
            if relation is Adjacency.ADD_REMOVE
            else "the number stays, and a difference with entries ±Δ_j has 4ΣΔ_j/S in units of μ²"
        )
        return WorstCase.symmetric(
            GaussianPair(self, relation), f"The squared Mahalanobis norm is convex: {why}."
        )

    @property
    def dimension(self) -> int:
        """Number of sums."""
        return len(self.bounds)

    def gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return μ under add/remove, and 2μ√(ΣΔ_j/S) when a record is replaced."""
        if require(adjacency, self) is Adjacency.ADD_REMOVE:
            return self.mu.ball()
        total, norm = self._norms()
        return 2 * self.mu.ball() * (total / (total + norm)).sqrt()

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return μ under add/remove; else it is known where |Δ| is rational only."""
        if require(adjacency, self) is Adjacency.ADD_REMOVE:
            return self.mu
        rationals = [entry.rational for entry in self.bounds]
        entries = [entry for entry in rationals if entry is not None]
        norm = ExactReal.of_root(sum((entry**2 for entry in entries), Fraction(0))).rational
        if norm is None or len(entries) < len(rationals):
            return None
        total = sum(entries, Fraction(0))
        return self.mu * ExactReal.of_root(4 * total / (total + norm))

    def lattice_sampler(self) -> LatticeSampler:
        """Return the noise, each coordinate on a lattice of its own step."""

        def rows() -> list[list[tuple[int, arb]]]:
            shared, own = self._parts()
            eta = shared.sqrt()
            counted = [
                [(0, bound.ball() * eta / 2), (j, variance.sqrt())]
                for j, (bound, variance) in enumerate(zip(self.bounds, own, strict=True), start=1)
            ]
            return [*counted, [(0, eta)]]

        return LatticeSampler(LinearNoise(rows, self.dimension + 1))

    def worst_shift(self) -> Any:
        """Return what a record at the far corner adds."""
        return np.array([*(float(entry) for entry in self.bounds), 1.0])

    def variances(self) -> list[arb]:
        """Return S(Δ_j + Δ_j²/|Δ|)/(4μ²) for the sums, then S/(|Δ|μ²) for their number."""
        shared, own = self._parts()
        sums = [
            variance + bound.ball() ** 2 * shared / 4
            for bound, variance in zip(self.bounds, own, strict=True)
        ]
        return [*sums, shared]

    def mean_squared_error(self) -> arb:
        """Return the average over the d sums and the number."""
        total, norm = self._norms()
        shared, _ = self._parts()
        sums = ((total + norm) / self.mu.ball()) ** 2 / 4
        return (sums + shared) / (self.dimension + 1)

    def covariance_matrix(self) -> list[list[arb]]:
        """Return the covariance of the sums and, last, of their number."""
        shared, own = self._parts()
        halves = [bound.ball() / 2 for bound in self.bounds]
        rows = [
            [a * b * shared + (own[i] if i == j else 0) for j, b in enumerate(halves)]
            + [a * shared]
            for i, a in enumerate(halves)
        ]
        return [*rows, [*(a * shared for a in halves), shared]]

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, one row each, that of the number last."""
        shared, own = self._parts()
        eta = rng.normal(0.0, math.sqrt(float(shared)), (size, 1))
        halves = np.array([float(entry) / 2 for entry in self.bounds])
        alone = rng.normal(0.0, [math.sqrt(float(each)) for each in own], (size, self.dimension))
        return np.hstack([eta * halves + alone, eta])

    def _norms(self) -> tuple[arb, arb]:
        """Return ΣΔ_j and |Δ|."""
        entries = [entry.ball() for entry in self.bounds]
        squares = sum((ExactReal.ball(entry * entry) for entry in self.bounds), start=arb(0))
        return sum(entries, start=arb(0)), squares.sqrt()

    def _parts(self) -> tuple[arb, list[arb]]:
        """Return the variances of η and of every z_j."""
        total, norm = self._norms()
        scale = (total + norm) / self.mu.ball() ** 2
        return scale / norm, [scale * entry.ball() / 4 for entry in self.bounds]
