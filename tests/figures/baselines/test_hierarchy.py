"""H_b: least squares by a dense solver, the noise's scale, exactness, the optimal branching."""

from __future__ import annotations

import math

import numpy as np
import pytest

from figures.baselines import hierarchy


def rng() -> np.random.Generator:
    return np.random.default_rng(6)


def test_without_noise_the_counts_come_back() -> None:
    counts = rng().poisson(4, (89, 89))
    assert np.allclose(hierarchy.release(counts, math.inf, rng()), counts, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("size", "branching"), [(4, 2), (3, 2), (5, 3), (7, 2)])
def test_the_fit_is_that_of_dense_least_squares(size: int, branching: int) -> None:
    levels = hierarchy.height(size, branching)
    side = branching**levels
    inside = np.zeros((side, side))
    inside[:size, :size] = 1
    noisy, real, rows, values = [], [], [], []
    for level in range(levels):
        there = hierarchy.blocks(inside, branching**level) > 0
        found = rng().normal(size=there.shape) + level
        noisy.append(found)
        real.append(there)
        for place in zip(*np.nonzero(there), strict=True):
            block = np.zeros(there.shape)
            block[place] = 1
            width = branching**level
            row = np.kron(block, np.ones((width, width)))[:size, :size]
            rows.append(row.ravel())
            values.append(found[place])
    expected = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0]
    fitted = hierarchy.consistent(noisy, real, branching)
    assert np.allclose(fitted[:size, :size].ravel(), expected, rtol=0, atol=1e-9)
    assert not fitted[size:].any()


def test_the_optimal_branching() -> None:
    assert hierarchy.height(89, 9) == 3
    assert hierarchy.height(81, 9) == 2
    assert hierarchy.height(89, 10) == 2
    values = {b: b * 88 * hierarchy.height(89, b) ** 2 for b in range(2, 90)}
    assert hierarchy.best_branching(89) == min(values, key=lambda b: values[b]) == 10


def test_the_noise_is_laplace_of_scale_levels_over_epsilon() -> None:
    """With one level the release is the noisy cells: E|noise| = 1/ε, within 5 % of it."""
    found = hierarchy.release(np.zeros((100, 100), np.int64), 0.5, rng(), branching=100)
    assert abs(found).mean() == pytest.approx(2, rel=0.06)
    two = hierarchy.release(np.zeros((100, 100), np.int64), 0.5, rng(), branching=10)
    assert two.std() < math.sqrt(2) * 2 / 0.5
    assert two.std() > found.std()
