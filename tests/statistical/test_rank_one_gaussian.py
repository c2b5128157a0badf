"""The rank-one Gaussian mechanism against samples, at 7921 dimensions and at few.

Every deviation is bounded by Hoeffding's inequality (or tested by Kolmogorov and Smirnov) at
significance 1e-7, so that all of them together raise a false alarm with probability below 1e-6;
the seeds are fixed, so that a run is a function of the code alone.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from accountant.mechanisms.shapes.rank_one_gaussian import RankOneGaussian
from accountant.questions import guarantees, profile

SIGNIFICANCE = 1e-7
NARROW = Fraction(1, 10**12)
EPSILON = 1e-5
MECHANISM = RankOneGaussian(7921, "402110.10", "sqrt(2)")


def assert_mean(values: NDArray[np.float64], expected: float) -> None:
    """Compare the mean of values in [0, 1] with its expectation."""
    allowance = math.sqrt(math.log(2 / SIGNIFICANCE) / (2 * len(values)))
    assert abs(values.mean() - expected) <= allowance


def assert_losses(losses: NDArray[np.float64]) -> None:
    """Compare P(L > ε) and δ(ε) = E[(1 − e^{ε−L})⁺] with their enclosures."""
    above = guarantees.loss_survival(MECHANISM, EPSILON, relative_width=NARROW)
    delta = profile.delta(MECHANISM, EPSILON, relative_width=NARROW)
    assert_mean((losses > EPSILON).astype(np.float64), float(above.lower))
    assert_mean(np.maximum(0.0, -np.expm1(EPSILON - losses)), float(delta.lower))


def test_likelihood_ratios_of_sampled_vectors() -> None:
    rng = np.random.default_rng(20240607)
    m, sigma, shift = MECHANISM.dimension, float(MECHANISM.sigma_star), math.sqrt(2)
    losses = []
    for _ in range(16):
        noise = MECHANISM.sample(250, rng=rng)
        other = noise.copy()
        other[:, 0] += shift  # the same output, seen from the other true answer
        near, far = (np.einsum("ij,ij->i", x, x) for x in (noise, other))
        losses.append((m - 1) / 2 * np.log(far / near) + (far - near) / (2 * sigma))
    assert_losses(np.concatenate(losses))


def test_likelihood_ratios_of_sampled_distances_and_angles() -> None:
    rng = np.random.default_rng(20240608)
    size, m, kappa = 2_000_000, MECHANISM.dimension, float(MECHANISM.ratio)
    rho, along = np.abs(rng.standard_normal(size)), rng.standard_normal(size)
    cosine = along / np.sqrt(along**2 + rng.chisquare(m - 1, size))
    growth = 2 * kappa * cosine / rho + (kappa / rho) ** 2
    assert_losses((m - 1) / 2 * np.log1p(growth) + kappa * rho * cosine + kappa**2 / 2)


@pytest.mark.parametrize("dimension", [3, 10])
def test_samples_have_a_half_normal_norm_and_a_uniform_direction(dimension: int) -> None:
    rng = np.random.default_rng(20240609 + dimension)
    noise = RankOneGaussian(dimension, 9).sample(100_000, rng=rng)
    assert noise.shape == (100_000, dimension)
    norms = np.linalg.norm(noise, axis=1)
    assert stats.kstest(norms, stats.halfnorm(scale=3).cdf).pvalue > SIGNIFICANCE
    # a coordinate of a uniform direction: (1 + t)/2 ~ Beta((M−1)/2, (M−1)/2)
    half = (dimension - 1) / 2
    share = (1 + noise[:, 1] / norms) / 2
    assert stats.kstest(share, stats.beta(half, half).cdf).pvalue > SIGNIFICANCE
