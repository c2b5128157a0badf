"""H_b (Qardaji, Yang and Li, 2013): a hierarchy of noisy counts, made consistent.

Law: a square is divided into b×b squares, these again, down to the cells; every count but the
whole one is released with Laplace noise of scale h/ε, h the number of levels below the root.
The released cells are the weighted least-squares fit to all noisy counts.

Sensitivity: a record more or less changes one count of each level by 1, in all h.

Claimed guarantee: ε-DP for adding or removing a record (Laplace noise, ℓ1 sensitivity h); moving a
record changes two counts of each level: 2ε.

b minimises b(N − 1)h², h = ⌈log_b N⌉, N the side of the square: what the average variance of a
rectangle of cells grows with (their Section 5.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def best_branching(size: int) -> int:
    """Return the b of least average variance for `size` cells to a side."""
    return min(range(2, size + 1), key=lambda b: average_variance(size, b))


def height(size: int, branching: int) -> int:
    """Return ⌈log_b N⌉."""
    levels, reach = 0, 1
    while reach < size:
        levels, reach = levels + 1, reach * branching
    return levels


def average_variance(size: int, branching: int) -> float:
    """Return b(N − 1)h², what the average variance of a rectangle is proportional to."""
    return float(branching * (size - 1) * height(size, branching) ** 2)


def release(
    counts: NDArray[np.int64],
    epsilon: float,
    rng: np.random.Generator,
    *,
    branching: int | None = None,
) -> NDArray[np.float64]:
    """Release a square of counts; an infinite ε gives them back."""
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

    `noisy` has the cells first and the b×b squares of the top last; squares that are not `real`
    are beyond the data, hence 0 and not measured. Upwards each square's count is averaged with the
    sum of its parts, weighted by the inverse variances; downwards what a square has too much is
    shared among its parts in proportion to their variances (Hay et al., for uneven trees).
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
