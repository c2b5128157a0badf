"""MOD-SULQ and the Wishart mechanism: laws, sensitivity, and the guarantee of each."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from accountant.mechanisms.additive.gaussian import Gaussian
from accountant.mechanisms.wrappers.tabulated import Tabulated
from accountant.questions import profile
from figures.baselines import mod_sulq, wishart


def rng() -> np.random.Generator:
    return np.random.default_rng(9)


def test_mod_sulq_noise_is_symmetric_and_normal() -> None:
    """For 500 500 entries a sample deviation is within 0.6 % but for odds below 1e-6."""
    found = mod_sulq.noise(1000, 2.0, rng())
    assert np.array_equal(found, found.T)
    assert found[np.triu_indices(1000)].std() == pytest.approx(2, rel=0.006)
    assert np.diag(found).std() == pytest.approx(2, rel=0.12)


def test_the_sensitivity_of_the_upper_triangle() -> None:
    generator = rng()
    upper = np.triu_indices(4)
    for _ in range(200):
        x, y = (u / np.linalg.norm(u) for u in generator.standard_normal((2, 4)))
        change = np.outer(x, x) - np.outer(y, y)
        assert np.linalg.norm(change[upper]) <= math.sqrt(2) + 1e-12
    assert np.linalg.norm((np.diag([1, -1, 0, 0]))[upper]) == math.sqrt(2)


def test_the_claimed_deviation_is_private_and_more_than_exact() -> None:
    for size, records, epsilon in ((2, 100, "1.6"), (240, 2402, "0.2"), (2400, 24016, "1.6")):
        claimed = mod_sulq.claimed_deviation(size, records, float(epsilon), 1e-7)
        mechanism = Gaussian(standard_deviation=claimed * records / math.sqrt(2))
        assert profile.delta(mechanism, epsilon).upper < 1e-7
        assert claimed > mod_sulq.exact_deviation(records, epsilon, "1e-7")


def test_the_claimed_deviation_by_hand() -> None:
    expected = 3 / 5 * math.sqrt(2 * math.log(6 / (1e-3 * 2 * math.sqrt(2 * math.pi))))
    found = mod_sulq.claimed_deviation(2, 10, 0.5, 1e-3)
    assert found == pytest.approx(expected + 1 / (10 * math.sqrt(0.5)), rel=1e-12)


def test_the_exact_deviation_meets_delta() -> None:
    mu = math.sqrt(2) / (50 * mod_sulq.exact_deviation(50, "0.5", "1e-5"))
    found = norm.cdf(mu / 2 - 0.5 / mu) - math.exp(0.5) * norm.cdf(-mu / 2 - 0.5 / mu)
    assert found == pytest.approx(1e-5, rel=1e-8)


def test_the_wishart_noise_has_its_mean() -> None:
    """4000 draws of c·W(d + 1): the mean is c(d + 1) on the diagonal, 0 beside it."""
    generator = rng()
    draws = np.array([wishart.noise(3, 0.5, generator) for _ in range(4000)])
    assert np.allclose(draws.mean(axis=0), 2 * np.eye(3), rtol=0, atol=0.15)
    assert (np.linalg.eigvalsh(draws) > 0).all()


def test_the_impossible_releases_by_simulation() -> None:
    """W − xx'/n is not positive definite with the probability of the formula: 4000 draws."""
    records, epsilon = 10, 1.5
    scale = wishart.claimed_scale(records, epsilon)
    expected = wishart.impossible_mass(records, scale)
    assert expected == pytest.approx(1 - math.exp(-epsilon / 3), rel=1e-12)
    generator = rng()
    x = np.array([0.6, 0.8, 0, 0])
    change = np.outer(x, x) / records
    fails = [
        np.linalg.eigvalsh(wishart.noise(4, scale, generator) - change)[0] < 0 for _ in range(4000)
    ]
    assert abs(np.mean(fails) - expected) < 5.5 * math.sqrt(expected * (1 - expected) / 4000)


def test_the_claim_of_pure_privacy_is_refuted() -> None:
    """The two masses that the ratio of the densities takes determine the whole profile."""
    both = math.exp(-0.5)  # ε = 1.5: t = 1/2
    mechanism = Tabulated(p=[both, 1 - both], q=[1, 0])
    assert profile.delta(mechanism, "10").lower > 0.39


def test_the_exact_scale_meets_delta() -> None:
    scale = wishart.exact_scale(2402, 1e-7)
    t = 1 / (2 * scale * 2402)
    assert math.expm1(t) == pytest.approx(1e-7, rel=1e-12)
    assert wishart.impossible_mass(2402, scale) < 1e-7
