"""Trees, composition and subsampling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpassay.accountant.mechanisms import KaryTree
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


@broken("tree-shared-noise", EPSILON, ((0, 0, 0, 0), (0, 0, 1, 0)), true=math.inf, source=_TREE)
def tree_shared_noise(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Share one draw of noise between the leaves."""
    x = row(dataset)
    leaves = x + laplace(rng, 3 / EPSILON, (size, 1))
    pairs = x[0::2] + x[1::2] + laplace(rng, 3 / EPSILON, (size, 2))
    return np.hstack([leaves, pairs])


@control("kary-tree", EPSILON, (tuple([0] * 9), tuple([1] + [0] * 8)), source=_TREE)
def kary_tree(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Release the estimates of a ternary tree with subtraction."""
    return KaryTree(9, 3, 1).release(dataset, size, rng=rng)


@broken("prefix-sums-noised-once", EPSILON, _STREAMS, true=4 * EPSILON, source=_TREE)
def prefix_sums(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Every prefix sum with Lap(1/ε): the first input moves all four."""
    return np.cumsum(row(dataset)) + laplace(rng, 1 / EPSILON, (size, 4))


def _tree(dataset: Any, levels: int, size: int, rng: np.random.Generator) -> Array:
    x = row(dataset)
    sums = np.concatenate([x, x[0::2] + x[1::2], [x.sum()]])
    return sums + laplace(rng, levels / EPSILON, (size, len(sums)))


@control("composed", EPSILON, (5, 6), true=EPSILON, source="composition")
def composed(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Two releases of a count with ε/2 each."""
    return dataset + laplace(rng, 2 / EPSILON, (size, 2))


@broken("composed-not-counted", EPSILON, (5, 6), true=2 * EPSILON, source="composition")
def composed_not_counted(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Two releases with ε each, counted once."""
    return dataset + laplace(rng, 1 / EPSILON, (size, 2))


_AMPLIFIED = math.log1p(0.2 * math.expm1(2.0))
_HALF = math.log1p(0.5 * math.expm1(2.0))
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


@broken(
    "subsampled-with-replacement", _HALF, _RECORDS, true=None, source="Balle, Barthe, Gaboardi 2018"
)
def subsampled_with_replacement(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Draw five of ten records with replacement, claimed as the rate 1/2: one may come twice."""
    times = rng.binomial(5, 0.1, size)
    return times * dataset[0] + geometric(rng, 0.5, size)


@broken("clip-the-sum", EPSILON, ((4, 4, 0), (4, 4, 4)), true=4.0, source="folklore on DP-SGD")
def clip_the_sum(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Clip the sum of a batch to 12 and not each record to 1, with Lap(1/ε)."""
    return min(float(sum(dataset)), 12.0) + laplace(rng, 1 / EPSILON, size)


@control(
    "clip-each", EPSILON, ((4, 4, 0, 0), (4, 4, 4, 0)), true=EPSILON, source="Abadi et al. 2016"
)
def clip_each(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Each record clipped to 1 before the sum."""
    return np.minimum(row(dataset), 1).sum() + laplace(rng, 1 / EPSILON, size)
