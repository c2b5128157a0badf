"""Chi-square tests of the exact samplers against masses computed apart from them.

Each test rejects at significance 1e-8, so that all of them together raise a false alarm with
probability below 1e-6; the seeds are fixed, so that a run is a function of the code alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray
from scipy import stats

from dpassay.accountant.mechanisms.additive.integers import (
    DiscreteGaussian,
    DiscreteLaplace,
    IntegerNoise,
)
from dpassay.accountant.release import sampling
from tests.quick import quick

SIGNIFICANCE = 1e-8
SIZE = 100_000
LEAST_EXPECTED = 25


def assert_fits(values: NDArray[Any], at_most: Callable[[int], float], edges: list[int]) -> None:
    """Test the counts of the cells (edge, next edge] and of both ends, small cells merged."""
    cumulative = np.array([0.0, *(at_most(edge) for edge in edges), 1.0])
    expected = len(values) * np.diff(cumulative)
    ordered = np.sort(values)
    inner = [int(np.searchsorted(ordered, edge, side="right")) for edge in edges]
    observed: NDArray[Any] = np.diff(np.array([0, *inner, len(values)]))
    assert observed[expected == 0].sum() == 0
    order = np.argsort(expected)
    expected, observed = expected[order], observed[order]
    merged = 1 + int(np.searchsorted(np.cumsum(expected), LEAST_EXPECTED))
    expected = np.array([expected[:merged].sum(), *expected[merged:]])
    observed = np.array([observed[:merged].sum(), *observed[merged:]])
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, len(expected) - 1) > SIGNIFICANCE


def geometric(scale: float) -> Callable[[int], float]:
    r = math.exp(-1 / scale)

    def at_most(z: int) -> float:
        tail = math.exp(-(-z if z < 0 else z + 1) / scale) / (1 + r)
        return tail if z < 0 else 1 - tail

    return at_most


def bell(parameter: float) -> Callable[[int], float]:
    reach = int(12 * math.sqrt(parameter)) + 3
    z = np.arange(-reach, reach + 1)
    weight = np.exp(-(z.astype(float) ** 2) / (2 * parameter))
    cumulative = np.cumsum(weight) / weight.sum()
    return lambda x: float(cumulative[min(max(x, -reach), reach) + reach])


def grid(spread: float) -> list[int]:
    step = max(1, round(spread / 8))
    return [step * k for k in range(-40, 41)]


@pytest.mark.parametrize("scale", quick(["1/3", 2, 0.3, "12345/7", "1e9", "1e25"], *range(5)))
def test_discrete_laplace(scale: Any) -> None:
    mechanism = DiscreteLaplace(scale)
    values = mechanism.sample(SIZE, rng=np.random.default_rng(101))
    width = float(mechanism.scale)
    assert values.dtype == (object if width > 1e18 else np.int64)
    assert_fits(values, geometric(width), grid(width))


@pytest.mark.parametrize("parameter", ["1/10", 0.3, 1, "7/2", 144, 1e4])
def test_discrete_gaussian(parameter: Any) -> None:
    mechanism = DiscreteGaussian(parameter)
    values = mechanism.sample(SIZE, rng=np.random.default_rng(102))
    v = float(mechanism.parameter)
    assert_fits(values, bell(v), grid(math.sqrt(v)))


def test_integer_noise() -> None:
    law = [Fraction(k, 28) for k in (1, 0, 7, 6, 5, 9)]
    values = IntegerNoise(law, -2).sample(SIZE, rng=np.random.default_rng(105))
    assert_fits(values, lambda z: float(sum(law[: z + 3])), list(range(-2, 3)))


def test_undecided_words_draw_further_digits() -> None:
    # balls of radius 2⁻³ at first: nearly every word needs refinement, and the law is unchanged
    calls = 0

    def cumulative() -> list[arb]:
        nonlocal calls
        calls += 1
        return [arb(1) / 3 + (arb("0 +/- 0.125") if calls == 1 else 0)]

    values = sampling.indices_by_inversion(cumulative, 3000, rng=np.random.default_rng(107))
    assert calls > 100
    assert_fits(values, lambda _: 1 / 3, [0])


def test_machine_and_long_integers_give_the_same_law() -> None:
    # the same ratio written so that every product leaves int64
    rng = np.random.default_rng(108)
    numerators = np.array([2**70] * SIZE, dtype=object)
    success = sampling.exponential_trial(numerators, 2**71, rng)
    assert_fits(success.astype(np.int64), lambda _: 1 - math.exp(-0.5), [0])
