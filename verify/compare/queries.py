"""Gaussian noise for linear queries: on the data vector, and of the best shape."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.geometry.ellipse import Isotropic, Matrix
from dpassay.accountant.geometry.spaces import FiniteSet
from dpassay.accountant.geometry.workload import LinearQueries
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.shapes.general_gaussian import GeneralGaussian
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval
from dpassay.verifier.compare.budget import Budget
from dpassay.verifier.compare.candidate import Calibrated, Layout, calibrated
from dpassay.verifier.compare.sensitivity import Image


def rank_of(moves: Sequence[Image]) -> int:
    """Return in how many dimensions the answers move."""
    from flint import fmpq, fmpq_mat

    rows = [[fmpq(y.numerator, y.denominator) for y in image] for _, image in moves]
    return int(fmpq_mat(rows).rref()[1])


def _space(moves: Sequence[Image]) -> FiniteSet:
    return FiniteSet(
        [
            [ExactReal.of_root(square) * ExactReal.of_rational(y) for y in image]
            for square, image in moves
        ]
    )


def _unit(budget: Budget) -> tuple[Fraction, Fraction]:
    """Return σ² of Gaussian noise at ℓ2 sensitivity 1: enough for the budget, and a lower bound."""
    if budget.schedule:
        raise NotApplicableError("It is offered for releases of equal noise.")
    found = calibrated("Gaussian", budget)
    assert isinstance(found.mechanism, Gaussian)
    assert found.least is not None
    return found.mechanism.standard_deviation.square, Fraction(found.least.lower) ** 2


def on_the_data(budget: Budget, *, workload: LinearQueries, moves: Sequence[Image]) -> Calibrated:
    """Return W z for z ~ N(0, σ²I) on the data vector."""
    largest = workload.space.largest_norm(Isotropic(workload.space.dimension, 1)).exact
    if largest is None:
        raise NotApplicableError("The largest difference of the data vector has no exact norm.")
    variance = largest.square * _unit(budget)[0]
    rows = workload.matrix
    products = [
        [
            variance * sum((a * b for a, b in zip(r, s, strict=True)), start=Fraction(0))
            for s in rows
        ]
        for r in rows
    ]
    mechanism = GeneralGaussian(Matrix(products), _space(moves))
    return Calibrated(mechanism, budget.whole(mechanism), Layout.JOINT)


def shape(budget: Budget, *, moves: Sequence[Image]) -> Calibrated:
    """Scale the covariance of least variance to the budget."""
    from dpassay.lp.shapes import GaussianShapeProblem, optimal_gaussian_shape

    space = _space(moves)
    solution = optimal_gaussian_shape(GaussianShapeProblem(space))
    factor, least = _unit(budget)
    unit = solution.mechanism.covariance.matrix()
    mechanism = GeneralGaussian(Matrix([[entry * factor for entry in row] for row in unit]), space)
    bound = Interval.of_exact(least * Fraction(solution.value.lower) / len(unit))
    return Calibrated(
        mechanism,
        budget.whole(mechanism),
        Layout.JOINT,
        bound=bound,
        bound_for="Gaussian noise, on average over the answers",
    )
