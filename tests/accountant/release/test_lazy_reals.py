"""Real random numbers by their digits: laws, ties, tails, refinement."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from numpy.typing import NDArray
from scipy import stats

from dpassay.accountant.release import sampling
from dpassay.accountant.release.sampling import LazyReals, normal
from tests.quick import quick

FALSE_ALARM = 1e-6


def margin(size: int) -> float:
    """Dvoretzky–Kiefer–Wolfowitz–Massart: sup |F_n − F| exceeds this with FALSE_ALARM at most."""
    return math.sqrt(math.log(2 / FALSE_ALARM) / (2 * size))


def distance(values: NDArray[np.float64], cdf: Callable[[Any], Any]) -> float:
    return float(stats.kstest(values, cdf).statistic)


LAWS = [(sampling.normal, stats.norm.cdf), (sampling.laplace, stats.laplace.cdf)]


@pytest.mark.parametrize(("draw", "cdf"), LAWS)
def test_law(draw: Callable[..., LazyReals], cdf: Callable[[Any], Any]) -> None:
    values = draw(300_000, rng=np.random.default_rng(1)).floats()
    assert distance(values, cdf) < margin(len(values))


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "cdf"), LAWS)
@pytest.mark.parametrize("bits", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_ties_keep_the_law(
    draw: Callable[..., LazyReals], cdf: Callable[[Any], Any], bits: int
) -> None:
    """With one or two digits at once nearly every comparison ties, and draws further ones."""
    rng = np.random.default_rng(2)
    reals = draw(20_000, rng=rng, bits=bits)
    assert len(reals.further) > 3000
    for index in range(len(reals)):
        for _ in range(24 // bits):
            reals.refine(index, rng=rng)
    values = np.array([float(reals.ball(index).mid()) for index in range(len(reals))])
    assert distance(values, cdf) < margin(len(values))


@pytest.mark.parametrize(
    ("law", "start", "mass"),
    quick(
        [
            ("normal", 2, lambda j: math.exp(-2 * j - j * j / 2)),
            ("normal", 1, lambda j: math.exp(-j - j * j / 2)),
            ("exponential", 40, lambda j: math.exp(-j)),
        ],
        2,
    ),
)
def test_tail(law: str, start: int, mass: Callable[[int], float]) -> None:
    rng, size = np.random.default_rng(3), 4000
    drawn = np.array([sampling.tail(law, start, rng=rng) for _ in range(size)])
    total = sum(mass(j) for j in range(100))
    for j in range(3):
        below = sum(mass(i) for i in range(j + 1)) / total
        assert abs(float(np.mean(drawn <= j)) - below) < margin(size)


def test_balls_hold_the_doubles_and_shrink() -> None:
    rng = np.random.default_rng(4)
    reals = sampling.normal(50, rng=rng)
    with ctx.workprec(300):
        for index, value in enumerate(reals.floats()):
            first = reals.ball(index)
            assert abs(first.mid() - arb(float(value))) <= arb(2) ** -51 * (1 + abs(value))
            reals.refine(index, rng=rng)
            second = reals.ball(index)
            assert first.contains(second)
            assert second.rad() < arb(2) ** -100


def test_kept_and_joined_numbers_keep_their_digits() -> None:
    rng = np.random.default_rng(5)
    reals = normal(4, rng=rng)
    reals.refine(2, rng=rng)
    kept = reals.keep(np.array([False, True, True, False]))
    both = sampling.join([normal(3, rng=rng), kept])
    with ctx.workprec(200):
        assert both.ball(4).mid() == reals.ball(2).mid()
        assert both.ball(3).mid() == reals.ball(1).mid()
