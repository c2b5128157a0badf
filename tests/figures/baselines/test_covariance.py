"""Covariances of others: PPCA, MOD-SULQ, Wishart and matrix noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erfi
from scipy.stats import norm

from dpassay.accountant.geometry.ellipse import Matrix
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.shapes.general_gaussian import MatrixVariateGaussian
from dpassay.accountant.questions import profile
from dpassay.figures.baselines import spectra
from tests.quick import slow


def rng(seed: int = 8) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("kappa", [0.5, slow(4.0), slow(30.0)])
def test_the_vector_law_in_three_dimensions(kappa: float) -> None:
    """E x₃² for exp(κx₃²) on the sphere, 4000 draws; 5.5 standard errors."""
    generator = rng()
    draws = np.array(
        [spectra.vector_bingham(np.diag([0, 0, kappa]), generator) for _ in range(4000)]
    )
    assert np.allclose(np.linalg.norm(draws, axis=1), 1, rtol=0, atol=1e-12)
    root = math.sqrt(kappa)
    total = math.sqrt(math.pi) * erfi(root) / (2 * root)
    expected = quad(lambda t: t * t * math.exp(kappa * t * t) / total, 0, 1)[0]
    squares = draws[:, 2] ** 2
    assert abs(squares.mean() - expected) < 5.5 * squares.std() / math.sqrt(4000)
    assert abs(draws[:, 2].mean()) < 5.5 / math.sqrt(4000)


def test_rounding_does_not_choose_the_columns() -> None:
    """Equal eigenvalues have no eigenvectors of their own: 1e-14 in B moves V by less than 1e-9."""
    turn, _ = np.linalg.qr(rng().standard_normal((8, 8)))
    parameter = turn @ np.diag([5.0, 3, 1, 0, 0, 0, 0, 0]) @ turn.T
    noise = 1e-14 * rng().standard_normal((8, 8))
    found, beside = (
        spectra.matrix_bingham(each + each.T, 3, sweeps=20, rng=rng())
        for each in (parameter, parameter + noise)
    )
    assert np.allclose(found, beside, rtol=0, atol=1e-9)


def test_a_large_epsilon_gives_the_principal_components() -> None:
    found = spectra.components(
        np.diag([0.5, 0.3, 0.1, 0.1]), 2, records=10**6, epsilon=10, sweeps=30, rng=rng()
    )
    assert np.linalg.norm(found[:2]) ** 2 == pytest.approx(2, abs=1e-4)


def test_the_claimed_deviation_is_private_and_more_than_exact() -> None:
    for size, records, epsilon in ((2, 100, "1.6"), (240, 2402, "0.2"), (2400, 24016, "1.6")):
        claimed = spectra.claimed_deviation(size, records, float(epsilon), 1e-7)
        mechanism = Gaussian(standard_deviation=claimed * records / math.sqrt(2))
        assert profile.delta(mechanism, epsilon).upper < 1e-7
        assert claimed > spectra.exact_deviation(records, epsilon, "1e-7")


def test_the_exact_deviation_meets_delta() -> None:
    mu = math.sqrt(2) / (50 * spectra.exact_deviation(50, "0.5", "1e-5"))
    found = norm.cdf(mu / 2 - 0.5 / mu) - math.exp(0.5) * norm.cdf(-mu / 2 - 0.5 / mu)
    assert found == pytest.approx(1e-5, rel=1e-8, abs=0)


def test_the_wishart_noise_has_its_mean() -> None:
    """4000 draws of c·W(d + 1): the mean is c(d + 1) on the diagonal, 0 beside it."""
    generator = rng(9)
    draws = np.array([spectra.wishart_noise(3, 0.5, generator) for _ in range(4000)])
    assert np.allclose(draws.mean(axis=0), 2 * np.eye(3), rtol=0, atol=0.15)
    assert (np.linalg.eigvalsh(draws) > 0).all()


def test_the_impossible_releases_by_simulation() -> None:
    """W − xx'/n is not positive definite with the probability of the formula: 4000 draws."""
    records, epsilon = 10, 1.5
    scale = spectra.claimed_scale(records, epsilon)
    expected = 1 - math.exp(-epsilon / 3)
    generator = rng(9)
    x = np.array([0.6, 0.8, 0, 0])
    change = np.outer(x, x) / records
    fails = [
        np.linalg.eigvalsh(spectra.wishart_noise(4, scale, generator) - change)[0] < 0
        for _ in range(4000)
    ]
    assert abs(np.mean(fails) - expected) < 5.5 * math.sqrt(expected * (1 - expected) / 4000)


def test_mvg_noise_is_more_than_private() -> None:
    deviation = spectra.mvg_deviation(2, 1.0, 0.5, 1e-5)
    entry = f"{deviation:.6f}"
    covariance = Matrix([[entry, 0], [0, entry]])
    found = profile.delta(MatrixVariateGaussian(covariance, covariance), "0.5")
    assert found.upper < 1e-5
