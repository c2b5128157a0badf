"""Selection: the largest of some scores. A dataset is the list of scores, of sensitivity 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.verify.audit.zoo.case import EPSILON, broken, control
from tests.verify.audit.zoo.draws import Array, geometric, laplace, row

_PAIRS = (((1, 1, 1, 1, 1), (2, 0, 0, 0, 0)), ((2, 0, 0, 0, 0), (1, 1, 1, 1, 1)))
_CROSS = ((0, 1, 0, 0, 0), (1, 0, 1, 1, 1))
_STATDP = "Ding, Wang, Wang, Zhang, Kifer, Detecting violations of differential privacy, CCS 2018"
_DPBOOK = "Dwork, Roth 2014, Section 3.3"


def _spread(dataset: Any, size: int) -> Array:
    scores = row(dataset)
    return np.broadcast_to(scores, (size, len(scores)))


@control("noisy-max", EPSILON, *_PAIRS, _CROSS, source=_DPBOOK)
def noisy_max(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Place of the largest score with Lap(2/ε)."""
    scores = _spread(dataset, size)
    return np.argmax(scores + laplace(rng, 2 / EPSILON, scores.shape), axis=1)


@control(
    "noisy-max-with-gap",
    EPSILON,
    *_PAIRS,
    _CROSS,
    source="Ding, Wang, Xiao, Kifer, Free gap information from noisy max, VLDB 2019",
)
def noisy_max_with_gap(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Place of the largest score with Lap(2/ε), and its lead over the second: the lead is free."""
    scores = _spread(dataset, size)
    noisy = scores + laplace(rng, 2 / EPSILON, scores.shape)
    ordered = np.sort(noisy, axis=1)
    return np.column_stack([np.argmax(noisy, axis=1), ordered[:, -1] - ordered[:, -2]])


@broken("noisy-max-value", EPSILON, ((0,) * 5, (1,) * 5), true=None, source=_STATDP)
def noisy_max_value(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Return the noisy value of the largest score instead of its place. Up to 5ε/2."""
    scores = _spread(dataset, size)
    return np.max(scores + laplace(rng, 2 / EPSILON, scores.shape), axis=1)


@broken("tie-break-by-truth", EPSILON, (5, 4), true=2 * EPSILON, source="folklore")
def tie_break_by_truth(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Whether a count with integer noise reaches 5; a tie goes to the true answer. e^{2ε}."""
    noisy = dataset + geometric(rng, 1 / EPSILON, size)
    return ((noisy > 5) | ((noisy == 5) & (dataset >= 5))).astype(np.int8)


@control("tie-break-by-rule", EPSILON, (5, 4), (4, 5), (6, 5), true=EPSILON, source="folklore")
def tie_break_by_rule(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Whether a count with integer noise reaches 5."""
    return (dataset + geometric(rng, 1 / EPSILON, size) >= 5).astype(np.int8)


@control("exponential-mechanism", EPSILON, *_PAIRS, _CROSS, source="McSherry, Talwar, FOCS 2007")
def exponential_mechanism(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Choose i with probability ∝ e^{ε u_i/2}."""
    return _weighted(np.exp(EPSILON * row(dataset) / 2), size, rng)


@broken(
    "exponential-mechanism-no-half",
    EPSILON,
    _CROSS,
    true=math.log(math.e * (1 + 4 * math.e) / (math.e + 4)),
    source="folklore",
)
def exponential_mechanism_no_half(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Choose i with probability ∝ e^{ε u_i}: the factor 2 of the normaliser is missing."""
    return _weighted(np.exp(EPSILON * row(dataset)), size, rng)


@control("permute-and-flip", EPSILON, *_PAIRS, _CROSS, source="McKenna, Sheldon, NeurIPS 2020")
def permute_and_flip(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """In random order, accept i with probability e^{ε(u_i − max u)/2}."""
    scores = row(dataset)
    accepted = rng.random((size, len(scores))) < np.exp(EPSILON * (scores - scores.max()) / 2)
    order = np.argsort(rng.random((size, len(scores))), axis=1)
    first = np.argmax(np.take_along_axis(accepted, order, axis=1), axis=1)
    chosen: Array = np.take_along_axis(order, first[:, np.newaxis], axis=1)[:, 0]
    return chosen


def _weighted(weights: Array, size: int, rng: np.random.Generator) -> Array:
    limits = np.cumsum(weights) / weights.sum()
    return np.searchsorted(limits[:-1], rng.random(size), side="right")
