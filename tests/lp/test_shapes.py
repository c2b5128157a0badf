"""Optimal Gaussian shapes: certified, exactly private, and equal to the known closed forms."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant.covariances import Matrix
from accountant.errors import InvalidInputError, NotApplicableError
from accountant.interval import enclose
from accountant.mechanisms.elliptical import EllipticalGaussian
from accountant.mechanisms.general_gaussian import GeneralGaussian
from accountant.mechanisms.optimal_ellipse import optimal_ellipse_variance
from accountant.number import ExactReal
from accountant.spaces import Box, FiniteSet, L2Ball, Space, SparseBox
from lp.shape_problem import GaussianShapeProblem, vertices
from lp.shapes import GaussianShape, optimal_gaussian_shape, shape_bound
from verify.cli import main

ONE = ExactReal.of_rational(1)


def _solve(space: Space, objective: str = "total", weights: Any = None) -> GaussianShape:
    found = optimal_gaussian_shape(GaussianShapeProblem(space, objective, weights))
    assert found.mechanism.exact_gaussian_mu(None) == ONE
    assert sum(found.law) == 1
    return found


def _is_narrow(found: GaussianShape, width: str) -> bool:
    reached = found.value.relative_width
    return reached is not None and reached < Fraction(width)


@pytest.mark.parametrize(
    ("dimension", "sparsity"), [(1, 1), (3, 1), (4, 2), (4, 4), (5, 5), (6, 4), (7, 3)]
)
def test_sparse_counts_reproduce_the_optimal_ellipse(dimension: int, sparsity: int) -> None:
    found = _solve(SparseBox(dimension, sparsity))
    query = optimal_ellipse_variance(dimension, sparsity)
    low, high = Fraction(query.lower) * dimension, Fraction(query.upper) * dimension
    assert Fraction(found.value.lower) <= high
    assert low <= Fraction(found.value.upper)
    assert _is_narrow(found, "1e-12")


@pytest.mark.parametrize("bounds", [[1], [1, 2, 3], ["sqrt(2)", "sqrt(8)"], ["1e-3", 1, 50]])
def test_boxes_reproduce_the_elliptical_gaussian(bounds: list[Any]) -> None:
    found = _solve(Box(bounds))
    mechanism = EllipticalGaussian(bounds, 1)
    total = enclose(lambda: mechanism.mean_squared_error() * mechanism.dimension)
    assert found.value.overlaps(total)
    assert _is_narrow(found, "1e-12")


def test_signed_sparse_box_and_finite_sets() -> None:
    assert Decimal(8) in _solve(SparseBox(4, 2, 1, True)).value
    corners = FiniteSet([[1, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1]])
    assert _solve(corners).value.overlaps(_solve(Box([1, 1, 1])).value)
    assert _is_narrow(_solve(FiniteSet([[1, 0], [1, 1], [3, 2]])), "1e-12")


def test_weights_are_a_change_of_units() -> None:
    """Weights 4 on a coordinate count its error as if it were measured in halves."""
    weighted = _solve(Box([1, 2, 3]), weights=[4, 1, 1])
    rescaled = _solve(Box([2, 2, 3]))
    assert weighted.value.overlaps(rescaled.value)
    assert Decimal(49) in weighted.value


def test_worst_coordinate() -> None:
    """For a box the worst variance is that of independent equal noise, Σ Δ²."""
    found = _solve(Box([1, 2, 3]), "worst")
    assert Decimal(14) in found.value
    assert _is_narrow(found, "1e-6")
    query = optimal_ellipse_variance(5, 5)
    assert _solve(SparseBox(5, 5), "worst").value.overlaps(query)


def test_any_law_gives_a_valid_bound() -> None:
    space = SparseBox(4, 3)
    found = _solve(space)
    every = vertices(space)
    uniform = [Fraction(1, len(every))] * len(every)
    assert shape_bound(every, uniform, [Fraction(1)] * 4).upper < found.value.lower
    first = shape_bound(every[:1], [Fraction(1)], [Fraction(1)] * 4)  # one axis: the norm squared
    assert first.lower <= 1 <= first.upper


def test_other_noise_is_no_better() -> None:
    space = FiniteSet([[1, 0], [1, 1], [3, 2]])
    found = _solve(space)
    rows = found.mechanism.covariance.matrix()
    other = [[rows[0][0] * Fraction(9, 10), rows[0][1]], [rows[1][0], rows[1][1]]]
    mechanism = GeneralGaussian(Matrix(other), space)
    norm = mechanism.exact_gaussian_mu(None)
    assert norm is not None
    total = sum(mechanism.covariance.diagonal_entries()) * norm.square
    assert total > Fraction(found.value.upper)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((Box([1, 0]),), InvalidInputError, "span all 2 coordinates, not 1"),
        ((FiniteSet([[1, 1], [2, 2]]),), InvalidInputError, "not 1"),
        ((Box([1] * 14),), InvalidInputError, "at most 4096 vertices"),
        ((L2Ball(3),), NotApplicableError, "L2Ball has no list of vertices"),
        ((Box([1, "sqrt(2)"]),), InvalidInputError, "rational multiple"),
        ((Box([1, 1]), "totl"), InvalidInputError, "Did you mean 'total'"),
        ((Box([1, 1]), "total", [1]), InvalidInputError, "weights=1 entries to be 2"),
        ((Box([1, 1]), "total", [1, 0]), InvalidInputError, r"weights\[1\]=0 > 0"),
        ((3,), InvalidInputError, "sensitivity space"),
    ],
)
def test_bad_problems(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        GaussianShapeProblem(*arguments)


def test_unknown_solver() -> None:
    with pytest.raises(InvalidInputError, match="Did you mean 'CLARABEL'"):
        optimal_gaussian_shape(GaussianShapeProblem(Box([1, 1])), solver="CLARABELL")


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["optimal", "gaussian-shape", "Box(bounds=[1, 2, 3])", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert Decimal(printed["optimum"]["lower"]) <= 36 <= Decimal(printed["optimum"]["upper"])
    proof = tmp_path / "proof.json"
    space = "SparseBox(dimension=4, sparsity=2)"
    assert main(["optimal", "gaussian-shape", space, "--certificate", str(proof)]) == 0
    assert "7.464101615" in capsys.readouterr().out
    written = json.loads(proof.read_text(encoding="utf-8"))
    assert sum(Fraction(mass) for mass in written["law"]) == 1
    assert main(["optimal", "gaussian-shape", space, "--quiet", "--weights", "1,1,1,1"]) == 0
    assert capsys.readouterr().out.startswith("GeneralGaussian(covariance=Matrix(")
    assert main(["optimal", "gaussian-shape", "Gaussian(standard_deviation=1)"]) == 2
    assert "sensitivity space" in capsys.readouterr().err
