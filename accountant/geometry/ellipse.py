"""Rational covariance matrices, and the Gaussian noise of least variance for sparse counts.

Each record is a vector in {0,1}^d (or [0,1]^d) with at most k non-zero entries; neighbours differ
by one added or removed record. Releasing the sum plus N(0, Σ) is exactly 1-GDP if the maximum of
v'Σ⁻¹v over the records v is 1. On [0,1]^d the maximum is attained at a {0,1} vector, since
v ↦ v'Σ⁻¹v is convex and the records form a union of boxes. For μ-GDP divide Σ by μ².

Averaging over permutations of the coordinates keeps Σ feasible (v'Σ⁻¹v is jointly convex) and keeps
its trace. An optimal Σ therefore has one axis along the all-ones vector 1, and equal axes in all
orthogonal directions. For v with j ones,

    v'Σ⁻¹v = (j²/d)/axis_ones + (j − j²/d)/axis_rest.

Put V(j) = (j + √((d−1) j (d−j)))²/d². The least variance of one query is as follows.

* If d = s² ± 1 for an integer s, d ≥ 2 and 2k ≥ d + s + 1, two constraints are tight,
  j = (d+s−1)/2 and j + 1; axis_ones = ((d+s)²−1)/(4s) and axis_rest = ((d+s)²−1)/(4(d+s)).
* Otherwise it is V(min(k, J)), where J is the integer nearest to (d + √d)/2.

This answers the open problem after Lemma 4.4 of Lebeda, "Better Gaussian Mechanism using
Correlated Noise"; for k ≤ d/2 it is the Count ellipse of Joseph and Yu.
`dpassay.accountant.geometry.spaces` proves, for every ellipse returned here, that it is optimal
among *all* covariances.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import final

from flint import arb

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.validate import (
    Description,
    Instance,
    Integer,
    Rational,
    Rationals,
    Read,
    declared,
    rational_rows,
)
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.numbers.exact import (
    ExactReal,
    Number,
    Rows,
    exact,
    factor,
    least_eigenvalue,
)
from dpassay.accountant.numbers.interval import ball

# --- Exact rational covariance matrices -----------------------------------------------------------


class Covariance(Description, ABC):
    """A positive semidefinite rational matrix Σ, with the norm v'Σ⁺v on its range."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of coordinates."""

    @abstractmethod
    def matrix(self) -> Rows:
        """Return Σ as rows of entries."""

    @abstractmethod
    def diagonal_entries(self) -> tuple[Fraction, ...]:
        """Return the diagonal; a single entry if all are equal."""

    @abstractmethod
    def colour(self, normal: Array) -> Array:
        """Transform vectors of N(0, I), one per row, to vectors of N(0, Σ)."""

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` vectors of N(0, Σ), one per row."""
        return self.colour(rng.normal(0.0, 1.0, (size, self.dimension)))

    @abstractmethod
    def exact_least_eigenvalue(self) -> Fraction | None:
        """Return the least eigenvalue if it is known to be rational, else None."""

    def least_eigenvalue(self) -> arb:
        """Enclose the least eigenvalue, at flint's current precision."""
        known = self.exact_least_eigenvalue()
        return least_eigenvalue(self.matrix()) if known is None else ball(known)

    @abstractmethod
    def squared_norm(self, vector: Sequence[Fraction]) -> Fraction | None:
        """Return v'Σ⁺v, or None if v is not in the range of Σ."""

    @property
    def independent(self) -> tuple[Fraction, ...] | None:
        """The variances of the coordinates if the matrix is diagonal, else None."""
        return None

    @property
    def axes(self) -> tuple[Fraction, Fraction] | None:
        """The eigenvalues on span(1, …, 1) and its complement if these are eigenspaces, or None."""
        return None

    def precision(self, active: Sequence[int]) -> Rows:
        """Return the rows and columns `active` of the (pseudo-)inverse of Σ.

        Raises
        ------
        InvalidInputError
            If the unit vector of an active coordinate is not in the range of Σ.
        """
        factors = factor(self.matrix())
        whitened = []
        for index in active:
            unit = [Fraction(index == j) for j in range(self.dimension)]
            y = factors.whiten(unit)
            if y is None:
                raise outside_range(f"the unit vector of coordinate {index}")
            whitened.append(y)
        return tuple(tuple(factors.product(a, b) for b in whitened) for a in whitened)


def outside_range(difference: str) -> InvalidInputError:
    """Build the error for a difference along which singular noise has no variance."""
    return InvalidInputError(
        f"Expected every difference of the space to lie in the range of the covariance, but "
        f"{difference} does not: the covariance is singular there, and no finite mu holds. Add "
        "noise in that direction, or leave it out of the space."
    )


@declared
class Exchangeable(Covariance):
    """Equal variances and equal covariances: (diagonal − off_diagonal)·I + off_diagonal·11'.

    The eigenvalues are diagonal + (d − 1)·off_diagonal on (1, …, 1), and diagonal − off_diagonal on
    the complement.
    """

    dimension: Integer = Integer(least=1)
    diagonal: Rational = Rational(least=0)
    off_diagonal: Rational = Rational()

    def __post_init__(self) -> None:
        along, across = self.axes
        if along < 0 or across < 0:
            d, a = self.dimension, self.diagonal
            low = -a / (d - 1) if d > 1 else None
            raise expected(
                "off_diagonal",
                self.off_diagonal,
                f"between -diagonal/(dimension - 1) = {low} and diagonal = {a}",
                "Otherwise the matrix is not positive semidefinite.",
            )

    @property
    def axes(self) -> tuple[Fraction, Fraction]:
        """The eigenvalues on (1, …, 1) and on its complement; the variance twice if d = 1."""
        if self.dimension == 1:
            return self.diagonal, self.diagonal
        along = self.diagonal + (self.dimension - 1) * self.off_diagonal
        return along, self.diagonal - self.off_diagonal

    def matrix(self) -> Rows:
        """Return Σ as rows of entries."""
        a, b, d = self.diagonal, self.off_diagonal, self.dimension
        return tuple(tuple(a if i == j else b for j in range(d)) for i in range(d))

    def diagonal_entries(self) -> tuple[Fraction, ...]:
        """Return the common variance."""
        return (self.diagonal,)

    def exact_least_eigenvalue(self) -> Fraction:
        """Return the smaller of the two eigenvalues."""
        return min(self.axes)

    def squared_norm(self, vector: Sequence[Fraction]) -> Fraction | None:
        """Return (Σ_j v_j)²/(d·axis_ones) + (‖v‖² − (Σ_j v_j)²/d)/axis_rest."""
        along = sum(vector, Fraction(0)) ** 2 / self.dimension
        across = sum((entry * entry for entry in vector), Fraction(0)) - along
        total = Fraction(0)
        for part, axis in zip((along, across), self.axes, strict=True):
            if part and not axis:
                return None
            total += part / axis if part else 0
        return total

    def colour(self, normal: Array) -> Array:
        """Scale the mean and the deviations from it to their standard deviations."""
        along, across = (math.sqrt(axis) for axis in self.axes)
        mean = normal.mean(axis=1, keepdims=True)
        result: Array = across * (normal - mean) + along * mean
        return result


class _Independent(Covariance, ABC):
    """A diagonal matrix."""

    @property
    def independent(self) -> tuple[Fraction, ...]:
        """The variances of the coordinates."""
        entries = self.diagonal_entries()
        return entries * self.dimension if len(entries) == 1 else entries

    def matrix(self) -> Rows:
        """Return Σ as rows of entries."""
        zero, entries = Fraction(0), enumerate(self.independent)
        return tuple(
            tuple(v if i == j else zero for j in range(self.dimension)) for i, v in entries
        )

    def exact_least_eigenvalue(self) -> Fraction:
        """Return the least variance."""
        return min(self.diagonal_entries())

    def squared_norm(self, vector: Sequence[Fraction]) -> Fraction | None:
        """Return Σ v_i²/variance_i."""
        total = Fraction(0)
        for entry, variance in zip(vector, self.independent, strict=True):
            if entry and not variance:
                return None
            total += entry * entry / variance if entry else 0
        return total

    def colour(self, normal: Array) -> Array:
        """Scale each coordinate to its standard deviation."""
        deviations = [math.sqrt(variance) for variance in self.diagonal_entries()]
        return np.asarray(normal * np.array(deviations))


@declared
class Isotropic(_Independent):
    """variance·I."""

    dimension: Integer = Integer(least=1)
    variance: Rational = Rational(least=0, strict=True)

    @property
    def axes(self) -> tuple[Fraction, Fraction]:
        """The variance, twice."""
        return self.variance, self.variance

    def diagonal_entries(self) -> tuple[Fraction, ...]:
        """Return the common variance."""
        return (self.variance,)


@declared
class Diagonal(_Independent):
    """Independent coordinates with the given variances ≥ 0."""

    variances: Rationals = Rationals(least=0)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.variances)

    def diagonal_entries(self) -> tuple[Fraction, ...]:
        """Return the diagonal."""
        return self.variances


def _symmetric(name: str, value: Sequence[Sequence[Number]]) -> Rows:
    """Return a symmetric matrix of rational numbers, or raise InvalidInputError."""
    rows = rational_rows(name, value)
    if len(rows[0]) != len(rows):
        raise expected(f"{name}[0]", list(value[0]), f"to have {len(rows)} entries")
    for i, row in enumerate(rows):
        for j in range(i):
            if row[j] != rows[j][i]:
                raise expected(
                    f"{name}[{i}][{j}]",
                    row[j],
                    f"to equal {name}[{j}][{i}]={rows[j][i]}",
                    "A covariance matrix is symmetric.",
                )
    return rows


@declared
class Matrix(Covariance):
    """A symmetric positive semidefinite matrix, given by its rows.

    The entries are rational, so semidefiniteness, ranges and norms are decided exactly.
    """

    rows: Read[Rows, Sequence[Sequence[Number]]] = Read(_symmetric)

    def __post_init__(self) -> None:
        factor(self.rows)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.rows)

    def matrix(self) -> Rows:
        """Return the rows."""
        return self.rows

    def diagonal_entries(self) -> tuple[Fraction, ...]:
        """Return the diagonal."""
        return tuple(row[i] for i, row in enumerate(self.rows))

    def exact_least_eigenvalue(self) -> Fraction | None:
        """Return 0 if the matrix is singular, else None: other eigenvalues are seldom rational."""
        return Fraction(0) if 0 in factor(self.rows).pivots else None

    def squared_norm(self, vector: Sequence[Fraction]) -> Fraction | None:
        """Return v'Σ⁺v, using Σ = L D L'."""
        factors = factor(self.rows)
        y = factors.whiten(vector)
        return None if y is None else factors.product(y, y)

    def colour(self, normal: Array) -> Array:
        """Multiply by L√D, where Σ = L D L'."""
        factors = factor(self.rows)
        root = np.array(factors.lower, dtype=float) * np.sqrt(np.array(factors.pivots, dtype=float))
        result: Array = normal @ root.T
        return result


def covariance_field() -> Instance[Covariance]:
    """Return a field that accepts a covariance."""
    return Instance(
        Covariance,
        "covariance",
        "Write Isotropic(…), Diagonal(…), Exchangeable(…) or Matrix(…).",
    )


@final
@dataclass(frozen=True, slots=True)
class Ellipse:
    """The covariance axis_rest·I + ((axis_ones − axis_rest)/d)·11' for μ = 1, with dual weights.

    Parameters
    ----------
    dimension, sparsity
        d and k of the records.
    axis_ones
        Variance along 1/√d; a₁² in the paper.
    axis_rest
        Variance in every direction orthogonal to 1; a₂² in the paper. Irrelevant if d = 1.
    weights
        A certificate of optimality: pairs (number of ones j, probability), where j stands for the
        uniform law on the 0/1 vectors with j ones. `dpassay.accountant.geometry.spaces.defects`
        checks it.
    """

    dimension: int
    sparsity: int
    axis_ones: ExactReal
    axis_rest: ExactReal
    weights: tuple[tuple[int, Fraction], ...]

    @property
    def trace(self) -> ExactReal:
        """Sum of the variances of the d queries."""
        return self.axis_ones + self.axis_rest.times(self.dimension - 1)

    @property
    def query_variance(self) -> ExactReal:
        """Variance of each query."""
        return self.trace.times(Fraction(1, self.dimension))

    @property
    def correlated_variance(self) -> ExactReal:
        """Covariance of two queries; if positive, the variance of their shared noise."""
        return (self.axis_ones - self.axis_rest).times(Fraction(1, self.dimension))

    def squared_norm(self, nonzero: int, total: int) -> ExactReal:
        """Return w'Σ⁻¹w for w in {−1,0,1}^d with `nonzero` non-zero entries that sum to `total`."""
        along = Fraction(total * total, self.dimension)
        across = nonzero - along
        return exact(along) / self.axis_ones + exact(across) / self.axis_rest


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
    # the integer nearest to (d + √d)/2 is ⌊(d + 1 + √d)/2⌋; ties do not occur
    nearest = (dimension + 1 + isqrt(dimension)) // 2
    return _one_binding(dimension, sparsity, min(sparsity, nearest))


def count_ellipse(dimension: int, sparsity: int) -> Ellipse:
    """Return the Count ellipse of Joseph and Yu: only the constraint at j = sparsity is tight.

    Raises
    ------
    InvalidInputError
        Unless 1 ≤ sparsity ≤ max(1, dimension/2). For a larger sparsity this ellipse is not optimal
        in general, and not always private.
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
    """Return the ellipse of least trace for which the constraint at j = `ones` is tight."""
    d, j = dimension, ones
    if d == 1:
        return Ellipse(1, 1, exact(1), exact(1), ((1, Fraction(1)),))
    root = ExactReal.of_root(Fraction((d - 1) * j * (d - j)))
    axis_ones = exact(j * j) + root.times(j)
    axis_rest = exact(j * (d - j)) + root.times(Fraction(j, d - 1))
    return Ellipse(
        d,
        sparsity,
        axis_ones.times(Fraction(1, d)),
        axis_rest.times(Fraction(1, d)),
        ((j, Fraction(1)),),
    )


def _two_binding(dimension: int, sparsity: int, root: int) -> Ellipse:
    """Return the ellipse for d = root² ± 1, with tight constraints at j = (d+root−1)/2 and j+1."""
    d, s = dimension, root
    low = (d + s - 1) // 2
    product = low * (low + 1)
    offset = d - s * s
    upper_weight = Fraction((2 + offset) * s * (s + 1) + 2 * offset, 4 * (d + s))
    return Ellipse(
        d,
        sparsity,
        exact(Fraction(product, s)),
        exact(Fraction(product, d + s)),
        ((low, 1 - upper_weight), (low + 1, upper_weight)),
    )


def _neighbouring_root(dimension: int) -> int | None:
    """Return s ≥ 1 with dimension = s² ± 1 ≥ 2, or None if there is none."""
    root = isqrt(dimension)
    if dimension >= 2 and dimension == root * root + 1:
        return root
    if dimension >= 2 and dimension + 1 == (root + 1) ** 2:
        return root + 1
    return None
