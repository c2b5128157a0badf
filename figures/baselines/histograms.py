"""Histograms of counts by the mechanisms that Less is More compares with: DAWA and H_b.

**DAWA, simplified** (Li, Hay, Miklau and Wang 2014), partitions the cells privately and releases
noisy totals. Simplifications: the buckets are dyadic, and the second stage, which fits the totals
to a workload, is omitted. Along a Hilbert curve, a bucket b has the cost dev(b) + 1/ε₂, dev(b) =
Σ|xⱼ − mean(b)|. The costs of all dyadic intervals (their length is a power of 2, and they start at
a multiple of it) get Laplace noise of scale 2Δ_c/ε₁. Dynamic programming finds the partition of
least noisy cost. Each total is released with Laplace noise of scale 1/ε₂ and spread evenly over its
bucket.

Adding or removing a record changes one cell by 1, hence one total by 1, and the cost of a bucket
with this cell by at most Δ_c = 2. Claimed guarantee: (ε₁ + ε₂)-DP for adding or removing a record.
Exactly one bucket of a partition contains the cell, so lowering its noise by 2Δ_c keeps the
partition optimal; as for report-noisy-max this gives ε₁. Moving a record: 2(ε₁ + ε₂).

**H_b** (Qardaji, Yang and Li 2013) releases a hierarchy of noisy counts. A square is divided into
b×b squares, and these recursively down to the cells. All counts except that of the root are
released with Laplace noise of scale h/ε, where h is the number of levels below the root. The
released cells are the weighted least-squares fit to all noisy counts. Adding or removing a record
changes one count per level by 1, so the ℓ1 sensitivity is h. Claimed guarantee: ε-DP for adding or
removing a record, and 2ε for moving one. The branching b minimises b(N − 1)h², h = ⌈log_b N⌉, where
N is the side of the square; the average variance of rectangles is proportional to it (their Section
5.1).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

COST_SENSITIVITY = 2.0
"""Sensitivity Δ_c of the cost of an interval."""
PARTITION_SHARE = 0.25
"""ε₁/(ε₁ + ε₂), as in the authors' experiments."""


Ends: TypeAlias = tuple[int, ...]
"""Ends of buckets: bucket i has the cells from ends[i] to ends[i + 1] − 1."""


def release_dawa(
    counts: NDArray[np.int64], epsilon: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Release a square of counts by DAWA, simplified."""
    order = hilbert_order(len(counts))
    line = counts[order[:, 0], order[:, 1]].astype(float)
    first, second = PARTITION_SHARE * epsilon, (1 - PARTITION_SHARE) * epsilon
    buckets = partition(line, first, second, rng)
    released = np.empty(counts.shape)
    released[order[:, 0], order[:, 1]] = estimate(line, buckets, second, rng)
    return released


def partition(
    line: NDArray[np.float64], epsilon: float, cost_epsilon: float, rng: np.random.Generator
) -> Ends:
    """Return the partition into dyadic intervals of least noisy cost.

    An interval has the cells from i·2^k to (i + 1)·2^k − 1, as far as they exist. An infinite
    `epsilon` means no noise.
    """
    size = len(line)
    scale = 2 * COST_SENSITIVITY / epsilon
    levels = (size - 1).bit_length()
    costs = []
    for level in range(levels + 1):
        width = 1 << level
        starts = range(0, size, width)
        exact = np.array([_deviation(line[s : s + width]) for s in starts]) + 1 / cost_epsilon
        noise = rng.laplace(0, scale, len(exact)) if scale > 0 else np.zeros(len(exact))
        costs.append(exact + noise)
    # Dyadic intervals nest: the best partition of one is itself or the best of its halves.
    best = costs[0]
    cuts: list[NDArray[np.bool_]] = [np.zeros(size, dtype=bool)]
    for level in range(1, levels + 1):
        halves = np.append(best, np.zeros(len(best) % 2)).reshape(-1, 2).sum(axis=1)
        cut = halves < costs[level]
        best = np.where(cut, halves, costs[level])
        cuts.append(cut)
    ends = [0]
    pending = [(levels, 0)]
    while pending:
        level, index = pending.pop()
        if level > 0 and cuts[level][index]:
            right = 2 * index + 1
            if right < len(cuts[level - 1]):
                pending.append((level - 1, right))
            pending.append((level - 1, 2 * index))
        else:
            ends.append(min(size, (index + 1) << level))
    return tuple(ends)


def estimate(
    line: NDArray[np.float64], ends: Ends, epsilon: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Release the totals of buckets, spread over their cells; an infinite ε adds no noise."""
    widths = np.diff(ends)
    totals = np.add.reduceat(line, ends[:-1])
    if np.isfinite(epsilon):
        totals = totals + rng.laplace(0, 1 / epsilon, len(totals))
    return np.repeat(totals / widths, widths)


def _deviation(cells: NDArray[np.float64]) -> float:
    return float(np.abs(cells - cells.mean()).sum())


def hilbert_order(side: int) -> NDArray[np.int64]:
    """Return rows and columns of a square along the Hilbert curve of the enclosing 2^k square."""
    length = 1 << (side - 1).bit_length()
    places = np.arange(length * length)
    x, y = np.zeros_like(places), np.zeros_like(places)
    step = 1
    while step < length:
        right = (places // 2) % 2
        up = (places ^ right) % 2
        # Turn the curve so far, then move it into its quarter.
        flip = (up == 0) & (right == 1)
        x, y = np.where(flip, step - 1 - x, x), np.where(flip, step - 1 - y, y)
        x, y = np.where(up == 0, y, x), np.where(up == 0, x, y)
        x, y = x + step * right, y + step * up
        places = places // 4
        step *= 2
    inside = (x < side) & (y < side)
    return np.stack([x[inside], y[inside]], axis=1)


def best_branching(size: int) -> int:
    """Return the branching b of least average variance for a square with side `size`."""
    return min(range(2, size + 1), key=lambda b: average_variance(size, b))


def height(size: int, branching: int) -> int:
    """Return ⌈log_b N⌉."""
    return next(levels for levels in range(size) if branching**levels >= size)


def average_variance(size: int, branching: int) -> float:
    """Return b(N − 1)h², to which the average variance of rectangles is proportional."""
    return float(branching * (size - 1) * height(size, branching) ** 2)


def release_hierarchy(
    counts: NDArray[np.int64],
    epsilon: float,
    rng: np.random.Generator,
    *,
    branching: int | None = None,
) -> NDArray[np.float64]:
    """Release a square of counts by H_b; an infinite ε adds no noise."""
    b = best_branching(len(counts)) if branching is None else branching
    levels = height(len(counts), b)
    side = b**levels
    cells = np.zeros((side, side))
    cells[: len(counts), : len(counts)] = counts
    scale = levels / epsilon
    noisy: list[NDArray[np.float64]] = []
    present = np.zeros((side, side))
    present[: len(counts), : len(counts)] = 1
    real: list[NDArray[np.bool_]] = []
    for level in range(levels):
        exact = blocks(cells, b**level)
        noise = rng.laplace(0, scale, exact.shape) if scale > 0 else np.zeros(exact.shape)
        noisy.append(exact + noise)
        real.append(blocks(present, b**level) > 0)
    return consistent(noisy, real, b)[: len(counts), : len(counts)]


def blocks(cells: NDArray[Any], width: int) -> NDArray[Any]:
    """Return the sums over squares of width×width cells."""
    side = len(cells) // width
    return np.asarray(cells.reshape(side, width, side, width).sum(axis=(1, 3)))


def consistent(
    noisy: list[NDArray[np.float64]], real: list[NDArray[np.bool_]], branching: int
) -> NDArray[np.float64]:
    """Return the cells of the least-squares fit to counts of equal variance on all levels.

    `noisy` lists the levels from the cells to the b×b squares of the top. Squares that are not
    `real` are outside the data; they are 0 and not measured. In the upward pass each count is
    averaged with the sum of its parts, weighted by inverse variances. In the downward pass the
    difference is distributed among the parts in proportion to their variances (Hay et al., for
    irregular trees).
    """
    best, variances = [np.where(real[0], noisy[0], 0)], [real[0].astype(float)]
    for own, there in zip(noisy[1:], real[1:], strict=True):
        below, spread = blocks(best[-1], branching), blocks(variances[-1], branching)
        variance = np.where(there, spread / (1 + spread), 0)
        best.append(np.where(there, variance * own + (1 - variance) * below, 0))
        variances.append(variance)
    fitted = best[-1]
    for level in range(len(noisy) - 2, -1, -1):
        below, spread = blocks(best[level], branching), blocks(variances[level], branching)
        excess = (fitted - below) / np.where(spread > 0, spread, 1)
        fitted = best[level] + variances[level] * np.kron(excess, np.ones((branching, branching)))
    return np.asarray(fitted)
