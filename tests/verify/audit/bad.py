"""Mechanisms that do what none should, where worker processes can import them."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

Generator = np.random.Generator
_TESTED = range(150, 301)
"""Runs that a block of a test on 9000 fresh runs makes on one dataset, and nothing else does."""


def raises(dataset: float, rng: Generator) -> float:
    raise ZeroDivisionError("no such record")


def sometimes_raises(dataset: float, size: int, rng: Generator) -> Any:
    """Raise in some blocks of a test on 9000 fresh runs; which ones follows from the seed."""
    if size in _TESTED and rng.random() < 1 / 40:
        raise ValueError("lost the connection")
    return dataset + rng.integers(0, 10, size)


def hangs(dataset: float, rng: Generator) -> float:
    time.sleep(60)
    return 0.0


def hangs_later(dataset: float, size: int, rng: Generator) -> Any:
    """Hang in the test, not in training."""
    if size in _TESTED:
        time.sleep(1.5)
    return dataset + rng.integers(0, 10, size)


def dies(dataset: float, size: int, rng: Generator) -> Any:
    """End the process of a worker, as the system does where memory is short."""
    if size in _TESTED and os.environ.get("DPASSAY_TEST_WORKER"):
        os._exit(1)
    return dataset + rng.integers(0, 10, size)


def changes_shape(dataset: float, size: int, rng: Generator) -> Any:
    lengths = rng.integers(1, 4, size)
    return [[float(dataset)] * int(length) for length in lengths]


def returns_nan(dataset: float, size: int, rng: Generator) -> Any:
    return np.where(rng.random(size) < 0.1 + 0.5 * dataset, np.nan, 1.0)


def ignores_rng(dataset: float, size: int, rng: Generator) -> Any:
    return dataset + np.random.default_rng().integers(0, 10, size)


def reseeds(dataset: float, size: int, rng: Generator) -> Any:
    return dataset + np.random.default_rng(1).integers(0, 10, size)


def is_deterministic(dataset: float, rng: Generator) -> float:
    return 3.0


def is_deterministic_and_leaks(dataset: float, rng: Generator) -> float:
    return float(dataset)


def returns_too_few(dataset: float, size: int, rng: Generator) -> Any:
    return np.zeros(size - 1)


def returns_one_number(dataset: float, size: int, rng: Generator) -> Any:
    return 1.0


class HasGenerator:
    """Private in one process; a copy that is sent to others draws the same noise again."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)

    def __call__(self, dataset: float, size: int) -> Any:
        return dataset + np.rint(self.rng.laplace(size=size))


def uses_global_state(dataset: float, size: int) -> Any:
    """Private in one process; forked ones begin with the state of their parent."""
    return dataset + np.rint(np.random.laplace(size=size))  # noqa: NPY002 (as people write it)


def is_rarely_one(dataset: float, size: int, rng: Generator) -> Any:
    """Blocks of it often begin alike, which tells nothing."""
    return rng.random(size) < 0.01


class Reseeds:
    """One seed for all runs, of an answer that may be rare."""

    def __init__(self, rare: float) -> None:
        self.rare = rare

    def __call__(self, dataset: float, size: int, rng: Generator) -> Any:
        return np.random.default_rng(3).random(size) < self.rare


class OnAnotherDevice:
    """As tensors there, or those that want a gradient."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


def ignores_data(dataset: Any, rng: Generator) -> int:
    return int(rng.integers(4))


class Answer:
    """An object whose copies need to know more."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"Answer({self.number})"

    def copy(self, number: int) -> Answer:
        return Answer(number)


def returns_an_object(dataset: Any, rng: Generator) -> Answer:
    return Answer(int(rng.integers(4)))


class SeedsSometimes:
    """Independent blocks while the auditor looks, and the same seed in all of the test."""

    def __call__(self, dataset: float, size: int, rng: Generator) -> Any:
        own = np.random.default_rng(1) if size in _TESTED else rng
        return dataset + np.rint(own.laplace(size=size))


_BUFFER = np.zeros(1)


def reuses_its_output(dataset: float, rng: Generator) -> Any:
    """Every run is written over the one before."""
    _BUFFER[:] = dataset + np.rint(rng.laplace())
    return _BUFFER


def adds_in_place(dataset: Any, rng: Generator) -> Any:
    """Noise piles up in the dataset."""
    dataset += np.rint(rng.laplace(size=len(dataset)))
    return dataset.copy()


def adds_to_features(dataset: Any, rng: Generator) -> Any:
    return adds_in_place(dataset[0], rng)


def takes_a_record(dataset: list[float], rng: Generator) -> Any:
    count = len(dataset)
    if dataset:
        dataset.pop()
    return count + np.rint(rng.laplace())
