"""Real random numbers by their digits: laws, ties, tails, refinement."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from numpy.typing import NDArray
from scipy import stats

from dpassay.accountant.release import sampling
from dpassay.accountant.release.sampling import WORD, LazyReals, normal
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


@pytest.mark.parametrize("bits", [6, WORD])
@pytest.mark.parametrize("refined", [[], [4], range(33)])
def test_sums_of_squares_hold_the_sum_of_the_balls(bits: int, refined: Sequence[int]) -> None:
    """Both enclosures hold the number, so they meet; neither is wider, by digits that all have."""
    rng = np.random.default_rng(7)
    drawn = normal(40, rng=rng, bits=bits)
    numbers = drawn.numbers(3)

    def slowly() -> arb:
        return sum((numbers(index) ** 2 for index in range(30)), start=arb(0))

    with ctx.workprec(256):
        widest = slowly().rad()
        assert numbers.squares(30).rad() <= widest * (1 + 2.0**-20)
        for index in refined:
            drawn.refine(index, rng=rng)
        if len(refined) > 1:
            widest = slowly().rad()
        quickly = numbers.squares(30)
        assert quickly.overlaps(slowly())
        assert quickly.rad() <= widest * (1 + 2.0**-20)
        assert slowly().rad() <= 2 * quickly.rad()


def test_sums_are_made_once_for_the_digits_that_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many coordinates of a wide row ask for its norm: only new digits change the sums."""
    made, exact_sums = [], LazyReals.exact_sums

    def counted(reals: LazyReals, part: slice) -> tuple[int, int, int]:
        made.append(part)
        return exact_sums(reals, part)

    monkeypatch.setattr(LazyReals, "exact_sums", counted)
    rng = np.random.default_rng(7)
    numbers = normal(40, rng=rng).numbers(0)
    with ctx.workprec(256):
        first = [numbers.squares(30) for _ in range(5)][-1]
        numbers.reals.refine(*range(30), rng=rng)
        second = [numbers.squares(30) for _ in range(5)][-1]
    assert len(made) == 2
    assert second.rad() < first.rad() / 2**40
