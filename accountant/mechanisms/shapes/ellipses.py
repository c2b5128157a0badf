"""Gaussian noise for sparse counts: the Count ellipse of Joseph and Yu, and the least variance."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Integer, Positive
from dpassay.accountant.geometry.ellipse import Ellipse, count_ellipse, optimal_ellipse
from dpassay.accountant.mechanisms.shapes.shared_noise import SharedNoise
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.surd import Surd
from dpassay.accountant.pairs.gaussian import GaussianPair


@dataclass(frozen=True, repr=False)
class EllipseMechanism(SharedNoise):
    """Release the sum of k-sparse records plus N(0, Σ/μ²), Σ the covariance of an ellipse.

    Records have at most k non-zero entries, in {0,1} or [0,1].
    """

    dimension: Integer = Integer(least=1)
    sparsity: Integer = Integer(least=1)
    mu: Positive = Positive()

    def __post_init__(self) -> None:
        _ = self.ellipse

    @property
    @abstractmethod
    def ellipse(self) -> Ellipse:
        """The covariance for μ = 1, with its dual weights."""

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return N(μ', 1) against N(0, 1) with the exact μ' of the relation."""
        relation = require(adjacency, self)
        if relation is Adjacency.ADD_REMOVE:
            bound = ", ".join(str(j) for j, _ in self.ellipse.weights)
            why = f"over {{0,1}} vectors with at most k ones it is μ², at {bound} ones"
        else:
            why = (
                "over differences of two such vectors it is largest with min(2k, d) non-zero "
                "entries that sum to 0 or 1, since the noise along (1, …, 1) is the larger one"
            )
        return WorstCase.symmetric(
            GaussianPair(self, relation),
            "The squared Mahalanobis norm is convex, so the worst records have entries 0 or 1; "
            f"{why}.",
        )

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return μ under add/remove; under replace-one the norm of the worst difference.

        A difference with n non-zero entries of sum t has n/a₂² + (t²/d)(1/a₁² − 1/a₂²), and
        a₁ ≥ a₂ for every ellipse here, so n = min(2k, d) and t = n mod 2 are worst.
        """
        return self.mu.ball() * self._worst_difference().ball().sqrt()

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the same where its square is rational."""
        if require(adjacency, self) is Adjacency.ADD_REMOVE:
            return self.mu
        square = self._worst_difference()
        if square.coefficient != 0:
            return None
        rational = Fraction(int(square.rational.p), int(square.rational.q))
        return self.mu * ExactReal.of_root(rational)

    def _worst_difference(self) -> Surd:
        nonzero = min(2 * self.sparsity, self.dimension)
        return self.ellipse.squared_norm(nonzero, nonzero % 2)

    def _over_mu_squared(self, value: Surd) -> arb:
        square = self.mu.square
        return value.times(fmpq(square.denominator, square.numerator)).ball()

    def worst_shift(self) -> Any:
        """Return a record with as many ones as it may have."""
        shift = np.zeros(self.dimension)
        shift[: self.sparsity] = 1
        return shift

    def parts(self) -> tuple[arb, arb]:
        """Return what the axes leave to every count, and to each alone; one axis is all its own."""
        if self.dimension == 1:
            return arb(0), self.variances()[0]
        shared = self._over_mu_squared(self.ellipse.correlated_variance)
        return shared, self._over_mu_squared(self.ellipse.axis_rest)

    def variances(self) -> list[arb]:
        """Return the variance of each query, which is often rational."""
        return [self._over_mu_squared(self.ellipse.query_variance)]


@declared
class CountEllipse(EllipseMechanism):
    """Release k-sparse counts with the noise that fits the records with exactly k ones.

    Query variance (k + √((d−1) k (d−k)))²/(d²μ²); at k = d/2 it is (d + 2√(d−1))/(4μ²)
    (Lebeda, Lemma 4.3). Optimal among all Gaussians for these k.

    Parameters
    ----------
    dimension
        d ≥ 1, the number of counts.
    sparsity
        k, at most max(1, d/2); `OptimalEllipse` goes on from there.
    mu
        μ > 0: exactly μ-GDP under add/remove.
    """

    example = "CountEllipse(dimension=10, sparsity=3, mu=1)"

    @property
    def ellipse(self) -> Ellipse:
        """The covariance for μ = 1, with its dual weights."""
        return count_ellipse(self.dimension, self.sparsity)


@declared
class OptimalEllipse(EllipseMechanism):
    """Release k-sparse counts with the least query variance that any Gaussian can have.

    `dpassay.accountant.geometry.ellipse` has the covariance and
    `dpassay.accountant.geometry.dual.defects` the exact proof that no covariance is better. For k ≤
    d/2 this is `CountEllipse`; for k = d it is Algorithm 1 of Lebeda without the size exactly where
    d is a perfect square, and strictly better elsewhere.

    Parameters
    ----------
    dimension
        d ≥ 1, the number of counts.
    sparsity
        k, from 1 to d.
    mu
        μ > 0: exactly μ-GDP under add/remove.
    """

    example = "OptimalEllipse(dimension=10, sparsity=3, mu=1)"

    @property
    def ellipse(self) -> Ellipse:
        """The covariance for μ = 1, with its dual weights."""
        return optimal_ellipse(self.dimension, self.sparsity)
