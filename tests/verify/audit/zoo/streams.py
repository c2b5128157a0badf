"""Trees, composition and subsampling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.verify.audit.zoo.case import EPSILON, broken, control
from tests.verify.audit.zoo.draws import Array, geometric, laplace, row

_TREE = "Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011"
_STREAMS = ((0, 0, 0, 0), (1, 0, 0, 0))


@control("tree", EPSILON, _STREAMS, ((0, 0, 0, 0), (0, 0, 1, 0)), true=EPSILON, source=_TREE)
def tree(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Every sum of a binary tree above four inputs, with three levels' share of the noise."""
    return _tree(dataset, 3, size, rng)


@broken("tree-off-by-one", EPSILON, _STREAMS, true=1.5 * EPSILON, source=_TREE)
def tree_off_by_one(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """log2 of the inputs for the number of levels: the root, or the leaves, are forgotten."""
    return _tree(dataset, 2, size, rng)


def _tree(dataset: Any, levels: int, size: int, rng: np.random.Generator) -> Array:
    x = row(dataset)
    sums = np.concatenate([x, x[0::2] + x[1::2], [x.sum()]])
    return sums + laplace(rng, levels / EPSILON, (size, len(sums)))


@control("composed", EPSILON, (5, 6), true=EPSILON, source="composition")
def composed(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Two releases of a count with ε/2 each."""
    return dataset + laplace(rng, 2 / EPSILON, (size, 2))


_AMPLIFIED = math.log1p(0.2 * math.expm1(2.0))
_RECORDS = ((0,) * 10, (1,) + (0,) * 9)


@control("subsampled", _AMPLIFIED, _RECORDS, true=_AMPLIFIED, source="Balle, Barthe, Gaboardi 2018")
def subsampled(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Each record taken with probability 0.2, then 2-DP noise: ln(1 + 0.2(e² − 1))-DP."""
    taken = rng.random((size, len(dataset))) < 0.2
    return (taken * row(dataset)).sum(axis=1) + geometric(rng, 0.5, size)


@broken("subsampled-first-records", _AMPLIFIED, _RECORDS, true=2.0, source="folklore")
def subsampled_first(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Take the first fifth of the records: no chance, no amplification."""
    return row(dataset)[:2].sum() + geometric(rng, 0.5, size)


@broken("clip-the-sum", EPSILON, ((4, 4, 0), (4, 4, 4)), true=4.0, source="folklore on DP-SGD")
def clip_the_sum(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Clip the sum of a batch to 12 and not each record to 1, with Lap(1/ε)."""
    return min(float(sum(dataset)), 12.0) + laplace(rng, 1 / EPSILON, size)
