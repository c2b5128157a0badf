"""Workloads: what has to be released, and by how much one person can change it.

A workload is a description with the notation of mechanisms. Its sensitivities are those for the
neighbouring relation of the budget that it is combined with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from accountant.core.description import Description
from accountant.core.validate import (
    Field,
    Integer,
    OptionalPositive,
    Positive,
    Rationals,
    exact_list,
    rational,
)
from accountant.errors import InvalidInputError, expected
from accountant.geometry.spaces import SpaceField
from accountant.numbers.exact import Number


class Workload(Description, ABC):
    """A query whose true answer is a vector."""

    noun: ClassVar[str]
    """What one answer is called."""

    @property
    @abstractmethod
    def answers(self) -> int:
        """Number of answers."""


@final
@dataclass(frozen=True, repr=False)
class Count(Workload):
    """One integer that one person changes by at most `sensitivity`, an integer ≥ 1."""

    noun = "count"

    sensitivity: Integer = Integer(1, least=1)

    @property
    def answers(self) -> int:
        """One."""
        return 1


@final
@dataclass(frozen=True, repr=False)
class Counts(Workload):
    """d counts of 0/1 attributes, of which a person has at most k.

    Parameters
    ----------
    dimension
        d ≥ 1.
    sparsity
        k in 1..d. Under add/remove the answers change by a 0/1 vector with at most k ones; under
        replace-one by the difference of two such vectors.
    """

    noun = "count"

    dimension: Integer = Integer(least=1)
    sparsity: Integer = Integer(least=1)

    def __post_init__(self) -> None:
        """Reject k > d."""
        if self.sparsity > self.dimension:
            raise expected("sparsity", self.sparsity, f"≤ dimension={self.dimension}")

    @property
    def answers(self) -> int:
        """Return d."""
        return self.dimension


@final
@dataclass(frozen=True, repr=False)
class GroupedCounts(Workload):
    """d counts in each of m disjoint groups; a person is in one group, with any 0/1 vector."""

    noun = "count"

    groups: Integer = Integer(least=1)
    dimension: Integer = Integer(least=1)

    @property
    def answers(self) -> int:
        """Return m·d."""
        return self.groups * self.dimension


@final
@dataclass(frozen=True, repr=False)
class BoundedSum(Workload):
    """A sum of real vectors; one person changes coordinate j by at most bounds[j] > 0."""

    noun = "coordinate"

    bounds: Rationals = Rationals(least=0, strict=True)

    @property
    def answers(self) -> int:
        """Number of bounds."""
        return len(self.bounds)


@final
@dataclass(frozen=True, repr=False)
class VectorSum(Workload):
    """A sum of d-dimensional real vectors; one person changes it by a vector of bounded norm.

    Parameters
    ----------
    dimension
        d ≥ 1.
    l1_sensitivity, l2_sensitivity, linf_sensitivity
        The norms are at most these. At least one has to be given.
    """

    noun = "coordinate"

    dimension: Integer = Integer(least=1)
    l1_sensitivity: OptionalPositive = OptionalPositive()
    l2_sensitivity: OptionalPositive = OptionalPositive()
    linf_sensitivity: OptionalPositive = OptionalPositive()

    def __post_init__(self) -> None:
        """Require a bound."""
        if not any((self.l1_sensitivity, self.l2_sensitivity, self.linf_sensitivity)):
            raise InvalidInputError(
                "Expected at least one of l1_sensitivity, l2_sensitivity and linf_sensitivity of "
                "VectorSum: without one, a person can change the sum without bound."
            )

    @property
    def answers(self) -> int:
        """Return d."""
        return self.dimension


@final
@dataclass(frozen=True, repr=False)
class MatrixRelease(Workload):
    """A real matrix that one person changes by at most l2_sensitivity in Frobenius norm."""

    noun = "entry"

    rows: Integer = Integer(least=1)
    columns: Integer = Integer(least=1)
    l2_sensitivity: Positive = Positive(1)

    @property
    def answers(self) -> int:
        """Number of entries."""
        return self.rows * self.columns


@final
@dataclass(frozen=True, repr=False)
class PrefixSums(Workload):
    """The n prefix sums of a stream in [0, 1]ⁿ, each when its input arrives.

    One person changes one input by at most 1.
    """

    noun = "prefix sum"

    steps: Integer = Integer(least=1)

    @property
    def answers(self) -> int:
        """Return n."""
        return self.steps


@final
class RationalMatrix(Field[tuple[tuple[Fraction, ...], ...], Sequence[Sequence[Number]]]):
    """A matrix of rational numbers, as a list of rows of one length."""

    def read(self, value: Sequence[Sequence[Number]]) -> tuple[tuple[Fraction, ...], ...]:
        """Convert every entry, naming the one that is wrong."""
        if not isinstance(value, (list, tuple)) or not value:
            raise expected(self._name, value, "to be a list of rows", "Write [[1, 0], [1, 1]].")
        rows = tuple(
            tuple(
                rational(f"{self._name}[{i}][{j}]", entry)
                for j, entry in enumerate(exact_list(f"{self._name}[{i}]", row))
            )
            for i, row in enumerate(value)
        )
        if len({len(row) for row in rows}) > 1:
            raise expected(self._name, [len(row) for row in rows], "to have rows of one length")
        return rows


@final
@dataclass(frozen=True, repr=False)
class LinearQueries(Workload):
    """The answers W x, for a public matrix W and a data vector x.

    Parameters
    ----------
    matrix
        W, rational, one row for each answer.
    space
        By what one person changes x: `Box`, `SparseBox` or `FiniteSet` of as many coordinates as
        W has columns.
    """

    noun = "query"

    matrix: RationalMatrix = RationalMatrix()
    space: SpaceField = SpaceField()

    def __post_init__(self) -> None:
        """Require that W and x fit."""
        columns = len(self.matrix[0])
        if columns != self.space.dimension:
            raise InvalidInputError(
                f"Expected a matrix with {self.space.dimension} columns, as many as the space has "
                f"coordinates, not {columns}."
            )

    @property
    def answers(self) -> int:
        """Number of rows."""
        return len(self.matrix)


WORKLOADS: dict[str, type[Workload]] = {
    kind.__name__: kind
    for kind in (
        Count,
        Counts,
        GroupedCounts,
        BoundedSum,
        VectorSum,
        MatrixRelease,
        PrefixSums,
        LinearQueries,
    )
}
"""Every workload by its name in the notation."""
