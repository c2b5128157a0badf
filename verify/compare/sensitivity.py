"""By how much one person changes the answers of a workload, in the ℓ1 and ℓ2 norms."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.geometry.workload import (
    BoundedSum,
    Count,
    Counts,
    GroupedCounts,
    LinearQueries,
    MatrixRelease,
    PrefixSums,
    VectorSum,
    Workload,
)
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.verifier.compare.candidate import Budget

Image = tuple[Fraction, Sequence[Fraction]]
"""The vector √square·entries."""


def moved(workload: Counts | GroupedCounts, budget: Budget) -> int:
    """Return how many counts change by 1 at once.

    Under add/remove the ones of a record. Under replace-one those of two records, which in dense
    counts can be no more than all of them, and in groups may lie in two groups.
    """
    if isinstance(workload, Counts):
        ones = workload.sparsity
        both = min(2 * ones, workload.dimension)
    else:
        ones, both = workload.dimension, min(2 * workload.dimension, workload.answers)
    return ones if budget.adjacency is Adjacency.ADD_REMOVE else both


def images(workload: LinearQueries) -> list[Image]:
    """Return W v for the vertices v of the space, those that are not 0."""
    from dpassay.lp.shapes import vertices

    found: list[Image] = []
    for vertex in vertices(workload.space):
        image = [
            sum((w * x for w, x in zip(row, vertex.entries, strict=True)), start=Fraction(0))
            for row in workload.matrix
        ]
        if any(image):
            found.append((vertex.square, image))
    return found


def l2_sensitivity(workload: Workload, budget: Budget) -> ExactReal:
    """Return the largest ℓ2 norm of a change, or the least bound of it that follows."""
    match workload:
        case Count(sensitivity=sensitivity):
            return ExactReal.of_rational(sensitivity)
        case Counts() | GroupedCounts():
            return ExactReal.of_root(Fraction(moved(workload, budget)))
        case BoundedSum(bounds=bounds):
            return ExactReal.of_root(_total(b * b for b in bounds))
        case VectorSum():
            return _l2_bound(workload)
        case MatrixRelease(l2_sensitivity=norm):
            return norm
        case PrefixSums(steps=steps):
            return ExactReal.of_root(Fraction(steps))
        case LinearQueries():
            found = images(workload)
            return ExactReal.of_root(max(square * _total(y * y for y in i) for square, i in found))
    raise TypeError(type(workload).__name__)


def l1_sensitivity(workload: Workload, budget: Budget) -> ExactReal | None:
    """Return the largest ℓ1 norm of a change, or the least bound that follows; None without one.

    Laplace noise of one scale on every answer is no worse for a change of ℓ1 norm T than for one
    answer that moves by T: with f_t the trade-off function of Lap(t) and Lap(0), moving the
    coordinates one after the other gives at least f_s(1 − f_t) (group privacy), and for a location
    family of log-concave density, F(F⁻¹(1 − α) − t), that is f_{s+t}.
    """
    match workload:
        case Count(sensitivity=sensitivity):
            return ExactReal.of_rational(sensitivity)
        case Counts() | GroupedCounts():
            return ExactReal.of_rational(moved(workload, budget))
        case BoundedSum(bounds=bounds):
            return ExactReal.of_rational(_total(bounds))
        case VectorSum():
            return _l1_bound(workload)
        case PrefixSums(steps=steps):
            return ExactReal.of_rational(steps)
        case LinearQueries():
            return max(
                ExactReal.of_root(square) * ExactReal.of_rational(_total(abs(y) for y in image))
                for square, image in images(workload)
            )
    return None


def _l2_bound(workload: VectorSum) -> ExactReal:
    """Return the least of ‖v‖₁, ‖v‖₂, √d‖v‖_∞ and √(‖v‖₁‖v‖_∞)."""
    bounds = [workload.l1_sensitivity, workload.l2_sensitivity]
    if workload.linf_sensitivity is not None:
        bounds.append(workload.linf_sensitivity * ExactReal.of_root(Fraction(workload.dimension)))
        if workload.l1_sensitivity is not None:
            product = workload.l1_sensitivity * workload.linf_sensitivity
            if product.rational is not None:
                bounds.append(ExactReal.of_root(product.rational))
    return min(bound for bound in bounds if bound is not None)


def _l1_bound(workload: VectorSum) -> ExactReal:
    """Return the least of ‖v‖₁, √d‖v‖₂ and d‖v‖_∞."""
    bounds = [workload.l1_sensitivity]
    if workload.l2_sensitivity is not None:
        bounds.append(workload.l2_sensitivity * ExactReal.of_root(Fraction(workload.dimension)))
    if workload.linf_sensitivity is not None:
        bounds.append(workload.linf_sensitivity * ExactReal.of_rational(workload.dimension))
    return min(bound for bound in bounds if bound is not None)


def _total(values: object) -> Fraction:
    return sum(values, start=Fraction(0))  # type: ignore[call-overload,no-any-return]
