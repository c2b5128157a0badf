"""The Gaussian of least variance for sparse counts, exactly.

Each record is a vector in {0,1}^d (or [0,1]^d) with at most k non-zero entries, and neighbours
differ by one added or removed record. Releasing the sum plus N(0, Σ) is exactly 1-GDP when the
largest v'Σ⁻¹v over the records v is 1; on [0,1]^d the largest is at a {0,1} vector, since
v ↦ v'Σ⁻¹v is convex and the records are a union of boxes. For μ-GDP divide Σ by μ².

Averaging over permutations of the coordinates keeps Σ feasible (v'Σ⁻¹v is jointly convex) and
keeps its trace, so an optimal Σ has one axis along the all-ones vector 1 and the others equal.
With j ones in v,

    v'Σ⁻¹v = (j²/d)/axis_ones + (j − j²/d)/axis_rest.

The least variance of one query is, with V(j) = (j + √((d−1) j (d−j)))²/d²,

* where d = s² ± 1 for an integer s, d ≥ 2 and 2k ≥ d + s + 1: two constraints bind,
  j = (d+s−1)/2 and the next; axis_ones = ((d+s)²−1)/(4s), axis_rest = ((d+s)²−1)/(4(d+s));
* otherwise V(min(k, J)), J the integer nearest to (d + √d)/2.

This answers the open problem after Lemma 4.4 of Lebeda, "Better Gaussian Mechanism using
Correlated Noise"; for k ≤ d/2 it is the Count ellipse of Joseph and Yu.
`dpassay.accountant.geometry.dual` proves optimality among *all* covariances, for every ellipse that
is returned here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Final, final

from flint import fmpq

from dpassay.accountant.errors import expected
from dpassay.accountant.numbers.surd import Surd

_ONE: Final = fmpq(1)


@final
@dataclass(frozen=True, slots=True)
class Ellipse:
    """The covariance axis_rest·I + ((axis_ones − axis_rest)/d)·11', for μ = 1, and dual weights.

    Parameters
    ----------
    dimension, sparsity
        d and k of the records.
    axis_ones
        Variance along 1/√d, a₁² in the paper.
    axis_rest
        Variance in every direction orthogonal to 1, a₂²; it plays no part where d = 1.
    weights
        The claim of optimality: pairs (number of ones j, probability), each j standing for the
        uniform law on the 0/1 vectors with j ones. `dpassay.accountant.geometry.dual.defects`
        checks it.
    """

    dimension: int
    sparsity: int
    axis_ones: Surd
    axis_rest: Surd
    weights: tuple[tuple[int, fmpq], ...]

    @property
    def trace(self) -> Surd:
        """Sum of the variances of the d queries."""
        return self.axis_ones + self.axis_rest.times(self.dimension - 1)

    @property
    def query_variance(self) -> Surd:
        """Variance of each query."""
        return self.trace.times(fmpq(1, self.dimension))

    @property
    def correlated_variance(self) -> Surd:
        """Covariance of two queries: the variance of the noise that all of them share."""
        return (self.axis_ones - self.axis_rest).times(fmpq(1, self.dimension))

    def squared_norm(self, nonzero: int, total: int) -> Surd:
        """Return w'Σ⁻¹w for w in {−1,0,1}^d with `nonzero` non-zero entries that sum to `total`."""
        along = fmpq(total * total, self.dimension)
        ones = self.axis_ones.reciprocal().times(along)
        return ones + self.axis_rest.reciprocal().times(nonzero - along)


def optimal_ellipse(dimension: int, sparsity: int) -> Ellipse:
    """Return the covariance of least trace for k-sparse records, with its dual weights.

    Raises
    ------
    InvalidInputError
        Unless 1 ≤ sparsity ≤ dimension.
    """
    require_sparsity(dimension, sparsity)
    root = _neighbouring_root(dimension)
    if root is not None and 2 * sparsity >= dimension + root + 1:
        return _two_binding(dimension, sparsity, root)
    # the integer nearest to (d + √d)/2 is ⌊(d + 1 + √d)/2⌋; there are no ties
    nearest = (dimension + 1 + isqrt(dimension)) // 2
    return _one_binding(dimension, sparsity, min(sparsity, nearest))


def count_ellipse(dimension: int, sparsity: int) -> Ellipse:
    """Return the Count ellipse of Joseph and Yu: the constraint at j = sparsity binds alone.

    Raises
    ------
    InvalidInputError
        Unless 1 ≤ sparsity ≤ max(1, dimension/2): beyond, the ellipse through j = sparsity is
        not optimal in general, nor private for every sparsity.
    """
    require_sparsity(dimension, sparsity)
    if 2 * sparsity > dimension > 1:
        raise expected(
            "sparsity",
            sparsity,
            f"≤ dimension/2 = {dimension / 2:g}",
            "The Count ellipse ends there; OptimalEllipse serves every sparsity up to dimension.",
        )
    return _one_binding(dimension, sparsity, sparsity)


def require_sparsity(dimension: int, sparsity: int) -> None:
    """Raise InvalidInputError unless 1 ≤ sparsity ≤ dimension."""
    if dimension < 1:
        raise expected("dimension", dimension, "≥ 1")
    if not 1 <= sparsity <= dimension:
        raise expected(
            "sparsity",
            sparsity,
            f"between 1 and dimension={dimension}",
            "A record has at least one and at most dimension non-zero entries.",
        )


def _one_binding(dimension: int, sparsity: int, ones: int) -> Ellipse:
    """Return the ellipse of least trace through the vectors with `ones` ones."""
    d, j = dimension, ones
    if d == 1:
        return Ellipse(1, 1, Surd.of(1), Surd.of(1), ((1, _ONE),))
    radicand = (d - 1) * j * (d - j)
    axis_ones = Surd.of(fmpq(j * j, d), fmpq(j, d), radicand)
    axis_rest = Surd.of(fmpq(j * (d - j), d), fmpq(j, d * (d - 1)), radicand)
    return Ellipse(d, sparsity, axis_ones, axis_rest, ((j, _ONE),))


def _two_binding(dimension: int, sparsity: int, root: int) -> Ellipse:
    """Return the ellipse for d = root² ± 1: (d+root−1)/2 ones bind, and one more."""
    d, s = dimension, root
    low = (d + s - 1) // 2
    product = low * (low + 1)
    offset = d - s * s
    upper_weight = fmpq((2 + offset) * s * (s + 1) + 2 * offset, 4 * (d + s))
    return Ellipse(
        d,
        sparsity,
        Surd.of(fmpq(product, s)),
        Surd.of(fmpq(product, d + s)),
        ((low, 1 - upper_weight), (low + 1, upper_weight)),
    )


def _neighbouring_root(dimension: int) -> int | None:
    """Return s ≥ 1 with dimension = s² ± 1, for dimension ≥ 2; None where there is none."""
    root = isqrt(dimension)
    if dimension >= 2 and dimension == root * root + 1:
        return root
    if dimension >= 2 and dimension + 1 == (root + 1) ** 2:
        return root + 1
    return None
