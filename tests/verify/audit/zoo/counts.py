"""Histograms, votes and reports of categories."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpassay.accountant.mechanisms import RandomizedResponse
from tests.verify.audit.zoo.case import EPSILON, broken, control
from tests.verify.audit.zoo.draws import Array, geometric, laplace

_WARNER = "Warner 1965"
_KEYS = "Korolova, Kenthapadi, Mishra, Ntoulas, WWW 2009"


@control("randomized-response", EPSILON, (0, 1), true=EPSILON, source=_WARNER)
def randomized_response(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Report a bit, true with probability e^ε/(1 + e^ε)."""
    return RandomizedResponse(1).release(np.full(size, dataset), rng=rng)


@control("randomized-response-many", EPSILON, (0, 1), (3, 9), true=EPSILON, source=_WARNER)
def randomized_response_many(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """One of ten categories, true with probability e^ε/(9 + e^ε)."""
    return RandomizedResponse(1, 10).release(np.full(size, dataset), rng=rng)


@broken("randomized-response-linear", "0.8", (0, 1), true=math.log(0.9 / 0.1), source="folklore")
def randomized_response_linear(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Report a bit, true with probability (1 + ε)/2."""
    lie = rng.random(size) >= (1 + 0.8) / 2
    return np.where(lie, 1 - dataset, dataset)


@broken(
    "randomized-response-binary-formula",
    EPSILON,
    (0, 1),
    true=EPSILON + math.log(9),
    source="folklore",
)
def randomized_response_binary(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Ten categories with the probability e^ε/(1 + e^ε) of two."""
    lie = rng.random(size) >= math.exp(EPSILON) / (1 + math.exp(EPSILON))
    return np.where(lie, (dataset + rng.integers(1, 10, size)) % 10, dataset)


@broken("unary-encoding-whole-epsilon", EPSILON, (0, 1), true=2 * EPSILON, source="folklore")
def unary_encoding_whole(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Each bit flipped as for ε."""
    return _unary(dataset, EPSILON, size, rng)


def _unary(category: int, epsilon: float, size: int, rng: np.random.Generator) -> Array:
    truth = np.arange(4) == category
    flip = rng.random((size, 4)) >= math.exp(epsilon) / (1 + math.exp(epsilon))
    bits: Array = (truth ^ flip).astype(np.int8)
    return bits


@broken("histogram-keys-present", EPSILON, (("a",), ("a", "b")), true=math.inf, source=_KEYS)
def histogram_keys_present(dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
    """Noisy counts of the keys that occur: which occur is exact."""
    keys = sorted(set(dataset))
    noise = geometric(rng, 1 / EPSILON, size * len(keys)).reshape(size, -1)
    counts = [dataset.count(key) for key in keys]
    return [tuple(zip(keys, (counts + row).tolist(), strict=True)) for row in noise]


@control(
    "histogram-threshold",
    (EPSILON, math.exp(-4.0)),
    (("a",) * 5, ("a",) * 5 + ("b",)),
    (("a",) * 5, ("a",) * 6),
    source=_KEYS,
)
def histogram_threshold(dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
    """Publish keys with noisy counts ≥ 6: a new one passes with probability e^{−5}/(1 + e^{−1})."""
    return _thresholded(dataset, 6, size, rng)


@broken(
    "histogram-low-threshold",
    (EPSILON, "0.01"),
    (("a",) * 5, ("a",) * 5 + ("b",)),
    true=math.inf,
    source=_KEYS,
)
def histogram_low_threshold(dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
    """Threshold 3 for δ = 0.01: a new key passes with probability e^{−2ε}/(1+e^{−ε}) = 0.099."""
    return _thresholded(dataset, 3, size, rng)


def _thresholded(dataset: Any, threshold: int, size: int, rng: np.random.Generator) -> list[Any]:
    keys = sorted(set(dataset))
    noise = geometric(rng, 1 / EPSILON, size * len(keys)).reshape(size, -1)
    noisy = noise + [dataset.count(key) for key in keys]
    return [
        tuple((key, int(n)) for key, n in zip(keys, row, strict=True) if n >= threshold)
        for row in noisy
    ]


@broken("output-length-from-data", EPSILON, ((1, 1), (1, 1, 1)), true=math.inf, source="folklore")
def output_length(dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
    """One noisy number per record: their number is the number of records."""
    noise = laplace(rng, 1 / EPSILON, (size, len(dataset)))
    return list(np.asarray(dataset) + noise)
