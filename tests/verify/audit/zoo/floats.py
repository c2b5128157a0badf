"""Leaks of floating-point arithmetic, and the samplers that have none. A dataset is an answer.

Neighbours lie one apart, and the claim is that of the real law.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpassay.accountant.mechanisms import Gaussian, Laplace
from tests.verify.audit.zoo.case import EPSILON, broken, control

_ZERO = (0.0, 1.0)
_TENTH = (0.1, 1.1)
_MIRONOV = "Mironov, CCS 2012"
_JIN = "Jin, McMurtry, Rubinstein, Ohrimenko, S&P 2022"


@broken("float-laplace", EPSILON, _ZERO, _TENTH, true=math.inf, source=_MIRONOV)
def float_laplace(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Add numpy's Laplace noise in doubles."""
    return dataset + rng.laplace(0.0, 1 / EPSILON, size)


@broken("float-laplace-inverse", EPSILON, _ZERO, _TENTH, true=math.inf, source=_MIRONOV)
def float_laplace_inverse(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Textbook inversion: −sign(u) ln(1 − 2|u|)."""
    u = rng.random(size) - 0.5
    return dataset - np.sign(u) * np.log1p(-2 * np.abs(u)) / EPSILON


@broken(
    "mean-of-naive-sum",
    {"mu": 1},
    _TENTH,
    _ZERO,
    true=None,
    source="after Mironov 2012",
    samples=60_000,
)
def mean_of_naive_sum(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Divide a naive sum by the number of records, seven."""
    return (dataset + rng.normal(0.0, 1.0, size)) / 7


@broken(
    "noise-in-two-steps",
    EPSILON,
    (1.0, 2.0),
    (1 / 3, 4 / 3),
    true=None,
    source="after Mironov 2012",
    samples=40_000,
)
def noise_in_two_steps(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Add one Gumbel variate, then subtract another: the second step hides much of the first."""
    return (dataset + rng.gumbel(0.0, 1.0, size)) - rng.gumbel(0.0, 1.0, size)


@broken("float-normal", {"mu": 1}, _ZERO, _TENTH, true=None, source=_JIN)
def float_normal(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Add numpy's normal noise (a ziggurat) in doubles."""
    return dataset + rng.normal(0.0, 1.0, size)


@broken("float-normal-polar", {"mu": 1}, _ZERO, _TENTH, true=None, source=_JIN)
def float_normal_polar(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Box and Muller."""
    radius = np.sqrt(-2 * np.log1p(-rng.random(size)))
    return dataset + radius * np.cos(2 * np.pi * rng.random(size))


@broken("integer-noise-on-a-fraction", EPSILON, (0.0, 0.5), true=math.inf, source="folklore")
def integer_noise_on_a_fraction(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Integer noise on an answer that is no integer: its fraction stays."""
    return dataset + rng.geometric(1 - math.exp(-1), size) - rng.geometric(1 - math.exp(-1), size)


@broken("coarse-generator", EPSILON, _ZERO, true=math.inf, source=_MIRONOV)
def coarse_generator(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Inversion of 10-bit uniform numbers: the noise has 2048 values."""
    u = (rng.integers(0, 1024, size) + 0.5) / 1024
    return dataset + np.where(rng.random(size) < 0.5, np.log(u), -np.log(u)) / EPSILON


@control(
    "lattice-laplace",
    EPSILON,
    _ZERO,
    _TENTH,
    (1 / 3, 4 / 3),
    true=EPSILON,
    source="dpassay.accountant.release.lattice",
)
def lattice_laplace(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Real Laplace noise rounded to a fixed lattice."""
    return Laplace(1).release(dataset, size, rng=rng)


@control(
    "lattice-normal",
    {"mu": 1},
    _ZERO,
    _TENTH,
    (1 / 3, 4 / 3),
    source="dpassay.accountant.release.lattice",
)
def lattice_normal(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Real normal noise rounded to a fixed lattice."""
    return Gaussian(1).release(dataset, size, rng=rng)


@control("snapping", ("1.3", 0), _ZERO, _TENTH, source="Mironov 2012, Section 5.2")
def snapping(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Clamp to ±50, add noise by inversion, round to the power of two Λ = 1 ≥ 1/ε, clamp."""
    sign = 2 * rng.integers(0, 2, size) - 1
    noisy = np.clip(dataset, -50.0, 50.0) + sign * np.log1p(-rng.random(size)) / EPSILON
    return np.clip(np.round(noisy), -50.0, 50.0)
