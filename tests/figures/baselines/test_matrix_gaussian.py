"""MVG and MGM: their conditions by other routes, and the law of their noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from accountant.geometry.covariances import Matrix
from accountant.mechanisms.shapes.matrix_variate import MatrixVariateGaussian
from accountant.questions import profile
from figures.baselines import matrix_gaussian


def test_the_bound_of_theorem_3_is_that_of_the_ledger() -> None:
    sensitivity = 2400 * math.sqrt(2) / 24016
    found = matrix_gaussian.bound_of_theorem_3(
        2400, 2400, sensitivity=sensitivity, largest_norm=sensitivity / 2, epsilon=1.6, delta=1e-7
    )
    assert found == pytest.approx(2.287e-17, rel=3e-4)


def test_the_bound_solves_its_quadratic() -> None:
    bound = matrix_gaussian.bound_of_theorem_3(
        3, 5, sensitivity=2.0, largest_norm=1.5, epsilon=0.7, delta=1e-3
    )
    harmonic, half = 1 + 1 / 2 + 1 / 3, 1 + 2**-0.5 + 3**-0.5
    alpha = 2 * harmonic * 1.5 * 2 + (harmonic + half) * 1.5**2
    tau = 2 * math.sqrt(-15 * math.log(1e-3)) - 2 * math.log(1e-3) + 15
    beta = 2 * 15**0.25 * harmonic * 2 * tau
    assert alpha * bound + beta * math.sqrt(bound) == pytest.approx(2 * 0.7, rel=1e-12)


def test_mvg_noise_is_more_than_private() -> None:
    deviation = matrix_gaussian.mvg_deviation(2, 2, 1.0, 0.5, 1e-5)
    entry = f"{deviation:.6f}"
    covariance = Matrix([[entry, 0], [0, entry]])
    found = profile.delta(MatrixVariateGaussian(covariance, covariance), "0.5")
    assert found.upper < 1e-5


def test_mgm_bounds_the_tail_of_the_loss() -> None:
    deviation = matrix_gaussian.mgm_deviation(math.sqrt(2), 0.5, 1e-7)
    mu = math.sqrt(2) / deviation
    assert norm.sf((0.5 - mu * mu / 2) / mu) == pytest.approx(1e-7, rel=1e-9)


def test_the_covariance_of_the_noise() -> None:
    """20000 draws: a sample covariance is off by 0.2 with probability below 1e-6 per entry."""
    rng = np.random.default_rng(4)
    rows, columns = np.array([[1.0, 0], [0.5, 1]]), np.array([[1.0, 0, 0], [0, 2, 0], [0, 1, 1]])
    draws = np.array([matrix_gaussian.noise(rows, columns, rng).ravel() for _ in range(20000)])
    expected = np.kron(rows @ rows.T, columns @ columns.T)
    assert np.allclose(np.cov(draws.T), expected, rtol=0, atol=0.35)
