"""PPCA: the Bingham laws against integrals, orthonormality, the limits of ε."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erfi

from figures.baselines import bingham


def rng() -> np.random.Generator:
    return np.random.default_rng(8)


@pytest.mark.parametrize("kappa", [0.5, 4.0, 30.0])
def test_the_vector_law_in_three_dimensions(kappa: float) -> None:
    """E x₃² for exp(κx₃²) on the sphere, 4000 draws; 5.5 standard errors."""
    generator = rng()
    draws = np.array(
        [bingham.vector_bingham(np.array([0, 0, kappa]), generator) for _ in range(4000)]
    )
    assert np.allclose(np.linalg.norm(draws, axis=1), 1, rtol=0, atol=1e-12)
    root = math.sqrt(kappa)
    total = math.sqrt(math.pi) * erfi(root) / (2 * root)
    expected = quad(lambda t: t * t * math.exp(kappa * t * t) / total, 0, 1)[0]
    squares = draws[:, 2] ** 2
    assert abs(squares.mean() - expected) < 5.5 * squares.std() / math.sqrt(4000)
    assert abs(draws[:, 2].mean()) < 5.5 / math.sqrt(4000)


def test_the_vector_law_on_the_circle() -> None:
    """On the circle E x₁² = (1 + I₁(a)/I₀(a))/2, a half the difference of the parameters."""
    from scipy.special import iv

    generator = rng()
    draws = np.array([bingham.vector_bingham(np.array([3.0, 1]), generator) for _ in range(4000)])
    expected = (1 + iv(1, 1.0) / iv(0, 1.0)) / 2
    assert abs((draws[:, 0] ** 2).mean() - expected) < 5.5 * 0.36 / math.sqrt(4000)


def test_the_columns_are_orthonormal() -> None:
    found = bingham.matrix_bingham(np.diag([5.0, 3, 1, 0, 0]), 3, sweeps=3, rng=rng())
    assert np.allclose(found.T @ found, np.eye(3), rtol=0, atol=1e-12)
    whole = bingham.completed(found, rng())
    assert np.allclose(whole.T @ whole, np.eye(5), rtol=0, atol=1e-12)
    assert np.array_equal(whole[:, :3], found)


@pytest.mark.slow
def test_two_columns_in_three_dimensions_are_the_complement_of_one() -> None:
    """tr(V'BV) = tr(B) − w'Bw: the third direction has the vector law of −B."""
    b = np.array([4.0, 1, 0])
    generator = rng()
    values = []
    for _ in range(600):
        v = bingham.matrix_bingham(np.diag(b), 2, sweeps=4, rng=generator)
        values.append(np.cross(v[:, 0], v[:, 1])[0] ** 2)
    expected = np.mean([bingham.vector_bingham(-b, generator)[0] ** 2 for _ in range(6000)])
    assert abs(np.mean(values) - expected) < 5.5 * np.std(values) / math.sqrt(600) + 0.01


def test_a_large_epsilon_gives_the_principal_components() -> None:
    found = bingham.components(
        np.diag([0.5, 0.3, 0.1, 0.1]), 2, records=10**6, epsilon=10, sweeps=30, rng=rng()
    )
    assert np.linalg.norm(found[:2]) ** 2 == pytest.approx(2, abs=1e-4)


def test_the_score_changes_by_at_most_one() -> None:
    generator = rng()
    for _ in range(50):
        v, _ = np.linalg.qr(generator.standard_normal((6, 3)))
        x, y = (u / np.linalg.norm(u) for u in generator.standard_normal((2, 6)))
        assert abs(np.trace(v.T @ (np.outer(x, x) - np.outer(y, y)) @ v)) <= 1
