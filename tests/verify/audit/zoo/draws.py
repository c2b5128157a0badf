"""Noise of the zoo: exact, on a lattice, so that a case shows its own flaw and no other."""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.mechanisms import DiscreteLaplace, Gaussian, Laplace
from dpassay.accountant.release.lattice import LatticeSampler

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = "int | tuple[int, ...]"


@functools.lru_cache(maxsize=64)
def _sampler(kind: str, scale: float) -> LatticeSampler:
    noise = Laplace(scale) if kind == "laplace" else Gaussian(scale)
    return noise.lattice_sampler()


def laplace(rng: np.random.Generator, scale: float, shape: Shape) -> Array:
    """Draw Laplace noise of a scale: multiples of a power of two."""
    return _drawn("laplace", rng, scale, shape)


def normal(rng: np.random.Generator, scale: float, shape: Shape) -> Array:
    """Draw normal noise of a standard deviation: multiples of a power of two."""
    return _drawn("normal", rng, scale, shape)


def _drawn(kind: str, rng: np.random.Generator, scale: float, shape: Shape) -> Array:
    size = int(np.prod(shape))
    return _sampler(kind, scale).noise(size, rng=rng).reshape(shape)


def exponential(rng: np.random.Generator, scale: float, shape: Shape) -> Array:
    """Draw exponential noise of a scale."""
    return np.abs(laplace(rng, scale, shape))


def geometric(rng: np.random.Generator, scale: float, size: int) -> Array:
    """Draw integers with P(z) ∝ e^{−|z|/scale}."""
    return DiscreteLaplace(scale).sample(size, rng=rng)


def row(dataset: Any) -> Array:
    """Return a dataset that is a list of numbers."""
    return np.asarray(dataset, dtype=np.float64)
