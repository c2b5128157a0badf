"""The optimal ellipse against a semidefinite program over all covariances."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest

from accountant.geometry.size_release import optimal_size_release
from accountant.mechanisms.shapes.optimal_ellipse import OptimalEllipse, optimal_ellipse_variance
from accountant.questions import utility

# Clarabel stops at a relative gap of 1e-8; a tenfold margin covers its feasibility tolerance.
TOLERANCE = 1e-7


def least_weighted_trace(records: list[tuple[int, ...]], weights: list[float]) -> float:
    """Minimise Σ weights_i S_ii over S with v'S⁻¹v ≤ 1 for every record (Schur complement)."""
    size = len(weights)
    covariance = cp.Variable((size, size), symmetric=True)
    constraints = []
    for record in records:
        column = np.array(record, dtype=float).reshape(size, 1)
        block = cp.bmat([[covariance, column], [column.T, np.ones((1, 1))]])
        constraints.append(block >> 0)
    problem = cp.Problem(cp.Minimize(cp.diag(covariance) @ np.array(weights)), constraints)
    return float(problem.solve(solver=cp.CLARABEL))


@pytest.mark.parametrize(
    ("dimension", "sparsity"), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (4, 4), (5, 3), (5, 5)]
)
def test_no_covariance_has_a_smaller_trace(dimension: int, sparsity: int) -> None:
    records = [v for v in itertools.product((0, 1), repeat=dimension) if 1 <= sum(v) <= sparsity]
    found = least_weighted_trace(records, [1.0] * dimension) / dimension
    variance = float(optimal_ellipse_variance(dimension, sparsity).lower)
    assert abs(found - variance) <= TOLERANCE * variance
    halved = optimal_ellipse_variance(dimension, sparsity, "sqrt(2)")
    assert abs(2 * float(halved.lower) - variance) <= 1e-15 * variance
    mechanism = OptimalEllipse(dimension, sparsity, 1)
    assert utility.variance(mechanism) == [optimal_ellipse_variance(dimension, sparsity)]


@pytest.mark.parametrize(
    ("dimension", "weight", "covered"),
    [(2, 1, True), (3, "1/50", False), (3, 1, True), (4, "1/50", True)],
)
def test_the_joint_release_of_counts_and_size(
    dimension: int, weight: int | str, covered: bool
) -> None:
    records = [(*v, 1) for v in itertools.product((0, 1), repeat=dimension)]
    factor = 0.02 if weight == "1/50" else 1.0
    found = least_weighted_trace(records, [1.0] * dimension + [factor])
    root = (dimension + 4 * factor) ** 0.5  # C² of the family
    family = dimension * (dimension + root + dimension / root + 1) / 4
    family += factor * (dimension / root + 1)
    release = optimal_size_release(dimension, dimension, weight)
    assert (release is not None) == covered
    if release is None:
        assert found < family * (1 - 1e-6)
    else:
        assert abs(found - family) <= TOLERANCE * family
