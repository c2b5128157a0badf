"""Workloads: the query to be released, and how much one person can change its answer.

A workload is a description with the notation of mechanisms. Its sensitivities hold for the
neighbouring relation of the budget that it is combined with.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.validate import (
    Description,
    Instance,
    Integer,
    OptionalPositive,
    Positive,
    Probability,
    Rational,
    Rationals,
    Read,
    Switch,
    declared,
    rational_rows,
)
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected
from dpassay.accountant.geometry.spaces import Space, space_field
from dpassay.accountant.numbers.exact import Number


class Workload(Description, ABC):
    """A query whose true answer is a vector."""

    noun: ClassVar[str]
    """The name of one answer, such as "count"."""
    sizes: ClassVar[tuple[str, ...]] = ()
    """Names of arguments whose product is the number of answers; a list counts as its length."""
    input: ClassVar[str] = "answers"
    """The name of a mechanism's input, such as "answers" or "scores"."""

    @property
    def answers(self) -> int:
        """Number of answers."""
        found = (getattr(self, name) for name in self.sizes)
        return math.prod(size if isinstance(size, int) else len(size) for size in found)

    def plain(self, adjacency: Adjacency) -> Workload:
        """Return an equivalent workload of a basic kind, for a neighbouring relation."""
        return self


@declared
class Count(Workload):
    """One integer; one person changes it by at most `sensitivity`, an integer ≥ 1."""

    noun = "count"

    sensitivity: Integer = Integer(1, least=1)


@declared
class Counts(Workload):
    """d counts of 0/1 attributes; a person has at most k of the attributes.

    Parameters
    ----------
    dimension
        d ≥ 1.
    sparsity
        k in 1..d. Under add/remove, neighbouring answers differ by a 0/1 vector with at most k
        ones; under replace-one, by the difference of two such vectors.
    """

    noun = "count"
    sizes = ("dimension",)

    dimension: Integer = Integer(least=1)
    sparsity: Integer = Integer(least=1)

    def __post_init__(self) -> None:
        if self.sparsity > self.dimension:
            raise expected("sparsity", self.sparsity, f"≤ dimension={self.dimension}")


@declared
class Histogram(Workload):
    """The number of people in each of some known bins; each person is in one bin.

    It is `Counts` with exactly one attribute per person.
    """

    noun = "count"
    sizes = ("bins",)

    bins: Integer = Integer(least=1)

    def plain(self, adjacency: Adjacency) -> Workload:
        """Return the equivalent `Counts`."""
        return Counts(dimension=self.bins, sparsity=1)


@declared
class Mean(Workload):
    """The mean of one number per person, clipped to [lower, upper]; the number of people is public.

    Replacing a person's number changes the mean by at most (upper − lower)/records. The noise is
    calibrated to the clipped mean; the bias from clipping depends on the data.

    Parameters
    ----------
    lower, upper
        The clipping range, lower < upper.
    records
        The number of people, ≥ 1.
    """

    noun = "mean"

    lower: Rational = Rational()
    upper: Rational = Rational()
    records: Integer = Integer(least=1)

    def __post_init__(self) -> None:
        if self.lower >= self.upper:
            raise expected("lower", self.lower, f"< upper={self.upper}")

    def plain(self, adjacency: Adjacency) -> Workload:
        """Return a sum with the sensitivity of the mean, for replace-one neighbours only."""
        if adjacency is not Adjacency.REPLACE_ONE:
            raise NotApplicableError(
                f"Mean(records={self.records}) states how many records there are, so neighbours "
                'have the same number: give adjacency="replace-one" (--adjacency replace-one). '
                f"If that number is private, release the sum and the count: "
                f"BoundedSum(bounds=[{max(abs(self.lower), abs(self.upper))}, 1])."
            )
        return BoundedSum(bounds=[(self.upper - self.lower) / self.records])


@declared
class GroupedCounts(Workload):
    """d counts in each of m disjoint groups; a person is in one group and has any 0/1 vector."""

    noun = "count"
    sizes = ("groups", "dimension")

    groups: Integer = Integer(least=1)
    dimension: Integer = Integer(least=1)


@declared
class BoundedSum(Workload):
    """A sum of real vectors; one person changes coordinate j by at most bounds[j] > 0.

    Parameters
    ----------
    bounds
        The largest change of each coordinate.
    signed
        Whether a record may have negative entries; otherwise entry j lies in [0, bounds[j]].
    """

    noun = "coordinate"
    sizes = ("bounds",)

    bounds: Rationals = Rationals(least=0, strict=True)
    signed: Switch = Switch(True)


@declared
class VectorSum(Workload):
    """A sum of d-dimensional real vectors; one person changes it by a vector of bounded norm.

    Parameters
    ----------
    dimension
        d ≥ 1.
    l1_sensitivity, l2_sensitivity, linf_sensitivity
        Upper bounds on the norms of the change. At least one is required.
    """

    noun = "coordinate"
    sizes = ("dimension",)

    dimension: Integer = Integer(least=1)
    l1_sensitivity: OptionalPositive = OptionalPositive()
    l2_sensitivity: OptionalPositive = OptionalPositive()
    linf_sensitivity: OptionalPositive = OptionalPositive()

    def __post_init__(self) -> None:
        if not any((self.l1_sensitivity, self.l2_sensitivity, self.linf_sensitivity)):
            raise InvalidInputError(
                "Expected at least one of l1_sensitivity, l2_sensitivity and linf_sensitivity of "
                "VectorSum: without one, a person can change the sum without bound."
            )


@declared
class MatrixRelease(Workload):
    """A real matrix; one person changes it by at most `l2_sensitivity` in Frobenius norm."""

    noun = "entry"
    sizes = ("rows", "columns")

    rows: Integer = Integer(least=1)
    columns: Integer = Integer(least=1)
    l2_sensitivity: Positive = Positive(1)


@declared
class PrefixSums(Workload):
    """The n prefix sums of a stream in [0, 1]ⁿ, each released when its input arrives.

    One person changes one input by at most 1.
    """

    noun = "prefix sum"
    sizes = ("steps",)

    steps: Integer = Integer(least=1)


@declared
class Training(Workload):
    """The sums of clipped gradients of a training run, in units of the clipping norm.

    Parameters
    ----------
    batch_size, dataset_size
        The number of records in a batch (its mean if batches are sampled) and in the dataset.
    epochs
        The run has ⌈epochs · dataset_size/batch_size⌉ steps.
    runs
        The number of training runs among which settings are selected.
    """

    noun = "gradient"

    batch_size: Integer = Integer(least=1)
    dataset_size: Integer = Integer(least=1)
    epochs: Integer = Integer(least=1)
    runs: Integer = Integer(1, least=1)

    def __post_init__(self) -> None:
        if self.batch_size > self.dataset_size:
            raise expected("batch_size", self.batch_size, f"≤ dataset_size={self.dataset_size}")


@declared
class LinearQueries(Workload):
    """The answers W x, for a public matrix W and a data vector x.

    Parameters
    ----------
    matrix
        W, rational, with one row per answer.
    space
        The set of changes of x that one person can make: a `Box`, `SparseBox` or `FiniteSet` with
        as many coordinates as W has columns.
    """

    noun = "query"
    sizes = ("matrix",)

    matrix: Read[tuple[tuple[Fraction, ...], ...], Sequence[Sequence[Number]]] = Read(rational_rows)
    space: Instance[Space] = space_field()

    def __post_init__(self) -> None:
        columns = len(self.matrix[0])
        if columns != self.space.dimension:
            raise InvalidInputError(
                f"Expected a matrix with {self.space.dimension} columns, as many as the space has "
                f"coordinates, not {columns}."
            )


@declared
class Selection(Workload):
    """The choice of one of several candidates by their scores.

    Parameters
    ----------
    candidates
        The number of candidates, ≥ 2. The candidates do not depend on the data.
    sensitivity
        The largest change of a score that one person can cause.
    monotone
        Whether a person changes all scores in the same direction.
    """

    noun = "choice"
    input = "scores"

    candidates: Integer = Integer(least=2)
    sensitivity: Positive = Positive(1)
    monotone: Switch = Switch(False)


@declared
class Quantile(Workload):
    """A quantile of one number per person, chosen among fixed values.

    The score of the value c is −|#{x ≤ c} − p·n|, minus the number of people by which c misses the
    quantile. An added person changes #{x ≤ c} by 0 or 1 and p·n by p; a replaced person changes
    #{x ≤ c} by at most 1.

    Parameters
    ----------
    candidates
        The number of values that may be the answer, ≥ 2.
    probability
        p in (0, 1); 1/2 is the median.
    """

    noun = "quantile"
    input = "scores"

    candidates: Integer = Integer(least=2)
    probability: Probability = Probability("1/2", interior=True)

    def __post_init__(self) -> None:
        if self.probability.rational is None:
            raise expected("probability", self.probability, "to be rational", "Write 9/10.")

    def plain(self, adjacency: Adjacency) -> Workload:
        """Return the selection by these scores, with their sensitivity."""
        p = self.probability.rational
        assert p is not None
        moved = max(p, 1 - p) if adjacency is Adjacency.ADD_REMOVE else 1
        return Selection(candidates=self.candidates, sensitivity=moved)


WORKLOADS: dict[str, type[Workload]] = {
    kind.__name__: kind
    for kind in (
        Count,
        Counts,
        Histogram,
        Mean,
        GroupedCounts,
        BoundedSum,
        VectorSum,
        MatrixRelease,
        PrefixSums,
        Training,
        LinearQueries,
        Selection,
        Quantile,
    )
}
"""All workloads by their names in the notation."""
