"""The optimal ellipse against a semidefinite program over all covariances."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest

from accountant.mechanisms.shapes.optimal_ellipse import OptimalEllipse
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
    variance = float(utility.variance(OptimalEllipse(dimension, sparsity, 1))[0].lower)
    assert abs(found - variance) <= TOLERANCE * variance
    halved = utility.variance(OptimalEllipse(dimension, sparsity, "sqrt(2)"))[0]
    assert abs(2 * float(halved.lower) - variance) <= 1e-15 * variance
