"""Histograms of others: DAWA and hierarchies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from dpassay.figures.baselines import histograms


def rng(seed: int = 5) -> np.random.Generator:
    return np.random.default_rng(seed)


def dyadic_partitions(start: int, stop: int) -> Iterator[list[int]]:
    """Yield the ends of all partitions of [start, stop) into dyadic intervals."""
    yield [stop]
    if stop - start > 1:
        middle = (start + stop) // 2
        for first in dyadic_partitions(start, middle):
            for second in dyadic_partitions(middle, stop):
                yield first + second


def cost(line: NDArray[np.float64], ends: list[int], epsilon: float) -> float:
    starts = [0, *ends[:-1]]
    buckets = [line[a:b] for a, b in zip(starts, ends, strict=True)]
    return sum(float(abs(b - b.mean()).sum()) + 1 / epsilon for b in buckets)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_partition_without_noise_is_the_cheapest_of_all(epsilon: float) -> None:
    line = np.array([5, 5, 6, 5, 0, 0, 0, 9, 1, 1, 1, 1, 2, 30, 1, 2], float)
    found = histograms.partition(line, math.inf, epsilon, rng())
    least = min(cost(line, ends, epsilon) for ends in dyadic_partitions(0, 16))
    assert cost(line, list(found[1:]), epsilon) == pytest.approx(least, rel=1e-12, abs=0)


@pytest.mark.parametrize("size", [1, 2, 5, 13, 89 * 89])
def test_a_partition_covers_every_cell_once(size: int) -> None:
    line = rng().poisson(3, size).astype(float)
    ends = histograms.partition(line, 0.1, 0.4, rng())
    assert ends[0] == 0
    assert ends[-1] == size
    assert all(a < b for a, b in itertools.pairwise(ends))


@pytest.mark.parametrize("side", [1, 2, 8, 16, 89])
def test_the_curve_visits_every_cell(side: int) -> None:
    order = histograms.hilbert_order(side)
    assert len({tuple(cell) for cell in order.tolist()}) == side * side
    steps = np.abs(np.diff(order, axis=0)).sum(axis=1)
    if side & (side - 1) == 0:
        assert (steps == 1).all()


def test_without_noise_the_counts_come_back() -> None:
    counts = rng(6).poisson(4, (89, 89))
    assert np.allclose(
        histograms.release_hierarchy(counts, math.inf, rng(6)), counts, rtol=0, atol=1e-9
    )


@pytest.mark.parametrize(("size", "branching"), [(4, 2), (3, 2), (5, 3), (7, 2)])
def test_the_fit_is_that_of_dense_least_squares(size: int, branching: int) -> None:
    levels = histograms.height(size, branching)
    side = branching**levels
    inside = np.zeros((side, side))
    inside[:size, :size] = 1
    noisy, real, rows, values = [], [], [], []
    for level in range(levels):
        there = histograms.blocks(inside, branching**level) > 0
        found = rng(6).normal(size=there.shape) + level
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
    fitted = histograms.consistent(noisy, real, branching)
    assert np.allclose(fitted[:size, :size].ravel(), expected, rtol=0, atol=1e-9)
    assert not fitted[size:].any()


def test_the_noise_is_laplace_of_scale_levels_over_epsilon() -> None:
    """With one level the release is the noisy cells: E|noise| = 1/ε, within 5 % of it."""
    found = histograms.release_hierarchy(np.zeros((100, 100), np.int64), 0.5, rng(6), branching=100)
    assert abs(found).mean() == pytest.approx(2, rel=0.06, abs=0)
    two = histograms.release_hierarchy(np.zeros((100, 100), np.int64), 0.5, rng(6), branching=10)
    assert two.std() < math.sqrt(2) * 2 / 0.5
    assert two.std() > found.std()
