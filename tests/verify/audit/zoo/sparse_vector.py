"""Sparse vector: the six algorithms compared by Lyu, Su and Li.

M. Lyu, D. Su, N. Li, "Understanding the Sparse Vector Technique for Differential Privacy", PVLDB
10(6), 2017: Algorithms 1 and 2 are private, 3 to 6 are not. A dataset is the list of query
answers (sensitivity 1), the threshold is 0; an output is one entry per query, 1 for above, 0 for
below and −1 for not answered.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.verify.audit.zoo.case import EPSILON, broken, control
from tests.verify.audit.zoo.draws import Array, laplace, row

_SOURCE = "Lyu, Su, Li 2017, Figure 1, Algorithm {}"
_UP = (tuple([0] * 6), tuple([1] * 6))
_CROSSED = ((1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1))
_LAST = ((0, 0, 0, 0, 0, 1), (1, 1, 1, 1, 1, 0))


def _answers(above: Array, limit: int | None) -> Array:
    """Return 1 and 0, and −1 after the limit-th answer above."""
    found = above.astype(np.int8)
    if limit is not None:
        before = np.cumsum(above, axis=1) - above
        found[before >= limit] = -1
    return found


@control("sparse-vector-1", EPSILON, _CROSSED, _UP, _LAST, source=_SOURCE.format(1))
def algorithm_1(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Threshold noise Lap(2/ε), query noise Lap(4c/ε), stop after c = 2 answers above."""
    queries, limit = row(dataset), 2
    threshold = laplace(rng, 2 / EPSILON, (size, 1))
    noisy = queries + laplace(rng, 4 * limit / EPSILON, (size, len(queries)))
    return _answers(noisy >= threshold, limit)


@broken(
    "sparse-vector-3",
    2,
    ((0, 0, 0, 1), (1, 1, 1, 0)),
    true=None,
    source=_SOURCE.format(3),
    samples=80_000,
)
def algorithm_3(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Return the noisy value of an answer above, which bounds the threshold's noise (c = 1, ε = 2).

    Roth's notes. The loss is unbounded with the number of queries, but in rare outputs.
    """
    queries = row(dataset)
    threshold = laplace(rng, 1.0, (size, 1))
    noisy = queries + laplace(rng, 1.0, (size, len(queries)))
    answers = _answers(noisy >= threshold, 1)
    return np.where(answers == 1, noisy, np.where(answers == 0, -1000.0, -2000.0))


@broken("sparse-vector-5", EPSILON, _CROSSED, true=np.inf, source=_SOURCE.format(5))
def algorithm_5(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Stoddard et al.: no noise on the queries, no stop."""
    queries = row(dataset)
    threshold = laplace(rng, 2 / EPSILON, (size, 1))
    return _answers(np.broadcast_to(queries, (size, len(queries))) >= threshold, None)


@broken("sparse-vector-6", EPSILON, _CROSSED, true=None, source=_SOURCE.format(6))
def algorithm_6(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Chen et al.: query noise Lap(2/ε), no stop. Unbounded with the number of queries."""
    queries = row(dataset)
    threshold = laplace(rng, 2 / EPSILON, (size, 1))
    noisy = queries + laplace(rng, 2 / EPSILON, (size, len(queries)))
    return _answers(noisy >= threshold, None)


@broken("sparse-vector-no-threshold-noise", EPSILON, _UP, true=None, source="folklore")
def no_threshold_noise(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Threshold without noise: every query pays. Six queries of ε/2 each: up to 3ε."""
    queries = row(dataset)
    noisy = queries + laplace(rng, 2 / EPSILON, (size, len(queries)))
    return _answers(noisy >= 0.5, None)
