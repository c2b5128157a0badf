"""Randomness of the operating system, and exact samplers: their laws, digits and ties."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from numpy.typing import NDArray
from scipy import stats

from dpassay.accountant.core.randomness import SECURE
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import DiscreteLaplace, Gaussian, KaryTree, RandomizedResponse
from dpassay.accountant.mechanisms.additive.integers import DiscreteGaussian, IntegerNoise
from dpassay.accountant.release import sampling
from dpassay.accountant.release import sampling as lazy_reals
from dpassay.accountant.release.sampling import LazyReals, normal
from tests.quick import slow


@pytest.mark.parametrize("bound", [2, 3, 7, 16, 17, 200, 2**24, 2**24 + 1, 2**52, 3 * 2**52])
def test_integers_are_uniform(bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chi-square test over at most 16 classes of equal size: false alarm 1e-7 for each bound."""
    monkeypatch.setattr(os, "urandom", np.random.default_rng(1).bytes)
    drawn = SECURE.integers(0, bound, 20_000)
    assert drawn.dtype == np.int64
    assert drawn.min() >= 0
    assert drawn.max() < bound
    classes = min(bound, 16)
    observed = np.bincount([int(d) * classes // bound for d in drawn], minlength=classes)
    edges = [-(-i * bound // classes) for i in range(classes + 1)]
    sizes = np.diff(edges)
    assert stats.chisquare(observed, sizes / bound * len(drawn)).pvalue > 1e-7


def test_every_remainder_has_as_many_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all 256 words of one byte, those that are kept fall evenly on the remainders."""
    for bound in (3, 5, 7, 11, 13, 15, 16):
        words = iter([bytes(range(256)), *[bytes(256)] * 9])
        monkeypatch.setattr(os, "urandom", lambda n, words=words: next(words)[:n])
        kept = 256 // bound * bound if bound != 16 else 256
        counts = np.bincount(SECURE.integers(0, bound, 256)[:kept], minlength=bound)
        assert (counts == kept // bound).all()


def test_shapes_types_and_bounds() -> None:
    assert SECURE.integers(5, 6) == 5
    assert type(SECURE.integers(0, 1 << 64)) is int
    assert SECURE.integers(0, 1 << 64, 3, dtype=np.uint64).dtype == np.uint64
    assert SECURE.integers(-3, 4, (2, 5)).shape == (2, 5)
    assert set(SECURE.integers(-1, 2, 200).tolist()) == {-1, 0, 1}
    assert SECURE.integers(0, 9, 0).shape == (0,)
    for low, high, size in ((0, 0, 1), (2, 1, 1), (0, (1 << 63) + 1, 1), (0, (1 << 64) + 1, None)):
        with pytest.raises(InvalidInputError, match="high="):
            SECURE.integers(low, high, size)


def test_a_fork_shares_nothing() -> None:
    """There is no state to copy: draws around a fork are independent (equal: 2^−128)."""
    first = SECURE.integers(0, 1 << 64, 2, dtype=np.uint64).tolist()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, SECURE.integers(0, 1 << 64, 2, dtype=np.uint64).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    second = np.frombuffer(os.read(read, 16), dtype=np.uint64).tolist()
    third = SECURE.integers(0, 1 << 64, 2, dtype=np.uint64).tolist()
    os.close(read)
    os.close(write)
    assert len({*first, *second, *third}) == 6


# ---------------------------------------------------------------- what is built on it

SAMPLES = 40_000


def rounded(law: str) -> Callable[[Any], Any]:
    sampler = lazy_reals.laplace if law == "laplace" else lazy_reals.normal
    return lambda rng: np.floor(sampler(SAMPLES, rng=rng).floats() * 4 + 0.5)


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize(
    ("draw", "mass"),
    [
        (
            lambda rng: sampling.discrete_laplace(Fraction(7, 3), SAMPLES, rng=rng),
            lambda z: math.exp(-abs(z) * 3 / 7) * math.tanh(3 / 14),
        ),
        (
            lambda rng: sampling.discrete_gaussian(Fraction(29, 4), SAMPLES, rng=rng),
            lambda z: (
                math.exp(-z * z * 2 / 29)
                / sum(math.exp(-k * k * 2 / 29) for k in range(-60, 61))
            ),
        ),
        (rounded("laplace"), lambda z: stats.laplace.cdf((z + 0.5) / 4)
            - stats.laplace.cdf((z - 0.5) / 4)),
        (rounded("normal"), lambda z: stats.norm.cdf((z + 0.5) / 4)
            - stats.norm.cdf((z - 0.5) / 4)),
    ],
    ids=["discrete Laplace", "discrete Gaussian", "rounded Laplace", "rounded normal"],
)  # fmt: skip
def test_laws_of_the_samplers(
    draw: Callable[[Any], Any],
    mass: Callable[[int], float],
    secure: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A chi-square test against the exact masses, tails pooled; false alarm 1e-7 for each of 8.

    The bytes of the secure generator are those of a seed here, so that the outcome is fixed.
    """
    monkeypatch.setattr(os, "urandom", np.random.default_rng(2).bytes)
    drawn = draw(SECURE if secure else np.random.default_rng(3))
    inside = next(k for k in range(1, 100) if mass(k) * SAMPLES < 25)
    masses = [mass(z) for z in range(-inside, inside + 1)]
    tail = (1 - sum(masses)) / 2
    masses[0] += tail
    masses[-1] += tail
    observed = np.bincount((np.clip(drawn, -inside, inside) + inside).astype(int))
    assert stats.chisquare(observed, np.array(masses) * SAMPLES).pvalue > 1e-7


def test_releases_are_secure_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a generator the operating system's is used, and there is no other source."""
    for mechanism, value in (
        (Gaussian(1), 3),
        (DiscreteLaplace(4), 3),
        (RandomizedResponse(1, 5), 3),
        (KaryTree(3, 2, 1), [0, 1, 1]),
    ):
        results = []
        for _ in range(2):
            monkeypatch.setattr(os, "urandom", np.random.default_rng(4).bytes)
            results.append(np.asarray(mechanism.release(value, 20)).tolist())
        assert results[0] == results[1]
        monkeypatch.undo()
        assert np.asarray(mechanism.release(value, 20)).tolist() != results[0]


# Real random numbers by their digits: laws, ties, tails, refinement.


FALSE_ALARM = 1e-6


def margin(size: int) -> float:
    """Dvoretzky–Kiefer–Wolfowitz–Massart: sup |F_n − F| exceeds this with FALSE_ALARM at most."""
    return math.sqrt(math.log(2 / FALSE_ALARM) / (2 * size))


def distance(values: NDArray[np.float64], cdf: Callable[[Any], Any]) -> float:
    return float(stats.kstest(values, cdf).statistic)


LAWS = [(sampling.normal, stats.norm.cdf), (sampling.laplace, stats.laplace.cdf)]


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
    [
        slow("normal", 2, lambda j: math.exp(-2 * j - j * j / 2)),
        slow("normal", 1, lambda j: math.exp(-j - j * j / 2)),
        ("exponential", 40, lambda j: math.exp(-j)),
    ],
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


# Chi-square tests of the exact samplers against masses computed apart from them.


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


@pytest.mark.parametrize("scale", ["1/3", 2, 0.3, "12345/7", "1e9", slow("1e25")])
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
