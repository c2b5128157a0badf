"""Algorithms 2 and 3 of "Count on Your Elders" have one joint law: covariances and samples."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from accountant.counting.streams import TreeCounter
from accountant.mechanisms import KaryTree
from tests.quick import quick

MECHANISM = KaryTree(steps=40, arity=3, epsilon=1)
STREAMS = 4000


def by_vertices(mechanism: KaryTree, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Algorithm 3: every output adds the noise of some vertices and subtracts that of others."""
    variables = mechanism.tree.noise_variables()
    noise = rng.laplace(0.0, float(mechanism.scale), (size, len(variables)))
    signs = np.zeros((mechanism.steps, len(variables)))
    index = {(v.first, v.last): place for place, v in enumerate(variables)}
    for step, before, after in mechanism.tree.moves():
        first, last = sorted((before, after))
        signs[step - 1, index[first, last]] += 1 if after > before else -1
    return noise @ signs.T


def test_covariances_are_equal() -> None:
    """Exactly, up to the signs of noise variables: |L| |L|ᵀ is that of Algorithm 2.

    In Algorithm 3 a vertex has one sign in all outputs, so signs cancel in every product.
    """
    variables = MECHANISM.tree.noise_variables()
    shared = np.zeros((40, 40))
    for variable in variables:
        users = np.array(variable.outputs) - 1
        shared[np.ix_(users, users)] += 1
    unit = 2 * float(MECHANISM.scale) ** 2
    exact = np.array(
        [[float(entry.mid()) for entry in row] for row in MECHANISM.covariance_matrix()]
    )
    np.testing.assert_allclose(shared * unit, exact, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", quick([1, 2], 0))
def test_samples_are_of_one_law(seed: int) -> None:
    """Random projections of whole streams, outputs and increments: ten tests, false alarm 1e-6."""
    rng = np.random.default_rng(seed)
    zeros = np.zeros(40)
    second = np.array(
        [
            TreeCounter(MECHANISM, rng=rng, insecure_floats=True).extend(zeros)
            for _ in range(STREAMS // 2)
        ]
    )
    third = by_vertices(MECHANISM, STREAMS, rng)
    directions = [*rng.normal(size=(6, 40)), np.eye(40)[12], np.eye(40)[39]]
    directions += [np.eye(40)[j] - np.eye(40)[i] for i, j in pairwise((3, 13, 30))]
    for direction in directions:
        test = stats.ks_2samp(second @ direction, third @ direction)
        assert test.pvalue > 1e-7
