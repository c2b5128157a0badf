"""Releases on a lattice: membership, exact law, exact decisions, bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import ctx
from scipy import stats

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.counting.counters import LinearCounter
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.geometry.ellipse import Exchangeable, Matrix
from dpassay.accountant.geometry.spaces import L2Ball
from dpassay.accountant.mechanisms import (
    BinaryTree,
    CorrelatedGaussian,
    CountEllipse,
    DiscreteCorrelatedGaussian,
    DiscreteGaussian,
    DiscreteLaplace,
    DisjointGroupsGaussian,
    EllipticalGaussian,
    Gaussian,
    GeneralGaussian,
    KaryTree,
    KnownSizeGaussian,
    Laplace,
    LaplaceVector,
    OptimalGroups,
    RandomizedResponse,
    SquareRootFactorization,
    Staircase,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.release.lattice import LatticeSampler, StaircaseNoise, independent

FALSE_ALARM = 1e-6

CONTINUOUS: list[Mechanism] = [
    Gaussian("1.3"),
    Laplace("sqrt(2)"),
    Staircase(1, "0.3"),
    Staircase("0.01", 1),
    LaplaceVector(2, [1, 1, "0.5"]),
    EllipticalGaussian(["1", "0.01", "1000"], 1),
    GeneralGaussian(Exchangeable(3, 2, "-1/2"), L2Ball(3, 1)),
    GeneralGaussian(Matrix([[2, 1], [1, 3]]), L2Ball(2, 1)),
    CountEllipse(4, 1, 1),
    CountEllipse(1, 1, 1),
    CorrelatedGaussian(5, 1),
    CorrelatedGaussian(5, 1, release_size=False),
    DisjointGroupsGaussian(2, 3, 1, "add-remove"),
    OptimalGroups(2, 3, 1, "replace-one"),
    KnownSizeGaussian(3, 1),
    KnownSizeGaussian(3, 1, 2),
    KaryTree(13, 3, 1),
    BinaryTree(6, 1),
    SquareRootFactorization(5, mu=1),
]
STREAMS = (KaryTree, LinearCounter)


def steps_of(values: Any, lattice: tuple[Fraction, ...]) -> list[list[Fraction]]:
    rows = np.asarray(values, dtype=float).reshape(-1, len(lattice))
    return [[Fraction(x) / g for x, g in zip(row, lattice, strict=True)] for row in rows.tolist()]


@pytest.mark.parametrize("mechanism", CONTINUOUS, ids=repr)
def test_every_output_lies_on_one_lattice(mechanism: Mechanism) -> None:
    sampler = mechanism.lattice_sampler()
    rng = np.random.default_rng(1)
    values = [0.0, 0.1] if isinstance(mechanism, STREAMS) else [0.0, 0.1, -1 / 3, 2e5 + 0.7, 1e22]
    for value in values:
        count = len(sampler.lattice)
        answer = value if mechanism.dimension == 1 and count == 1 else np.full(count, value)
        released = mechanism.release(answer, 20, rng=rng)
        assert released.shape == (20, *np.shape(answer))
        for row in steps_of(released, sampler.lattice):
            assert all(step.denominator == 1 for step in row)
    for step in sampler.lattice:
        assert step.numerator == 1 or step.denominator == 1
        assert (step.numerator * step.denominator).bit_count() == 1
    assert mechanism.release(answer, rng=rng).shape == np.shape(answer)


@pytest.mark.parametrize("mechanism", CONTINUOUS, ids=repr)
def test_fast_decisions_are_the_exact_ones(mechanism: Mechanism) -> None:
    """Every coordinate that double precision decided is decided the same by ball arithmetic."""
    sampler = mechanism.lattice_sampler()
    noise, rng = sampler.real_noise, np.random.default_rng(3)
    rows = np.full((12, noise.dimension), 0.1)
    whole = sampler.whole_steps(rows, rng=np.random.default_rng(2))
    drawn = noise.draw(12 * noise.inputs, rng=np.random.default_rng(2))
    drawn.refine(*range(12 * noise.inputs), rng=rng)
    for row in range(12):
        for coordinate, step in enumerate(sampler.lattice):
            with ctx.workprec(192):
                value = noise.ball(coordinate, drawn.numbers(row * noise.inputs)) + ball(
                    Fraction(0.1)
                )
                exactly = (value / ball(step) + ball(Fraction(1, 2))).floor().unique_fmpz()
            assert exactly == whole[row, coordinate]


@pytest.mark.parametrize("mechanism", CONTINUOUS, ids=repr)
def test_bound_holds_the_error_and_is_small(mechanism: Mechanism) -> None:
    sampler = mechanism.lattice_sampler()
    noise, rng = sampler.real_noise, np.random.default_rng(4)
    drawn = noise.draw(3 * noise.inputs, rng=rng)
    steps = np.array(sampler.lattice, dtype=float)
    found, bound = noise.floats(drawn.floats().reshape(3, -1), steps)
    assert float(bound.max()) < 0.01
    for index in range(len(drawn)):
        drawn.refine(index, rng=rng)
    for row in range(3):
        start = row * noise.inputs
        for coordinate in range(noise.dimension):
            value = noise.ball(coordinate, drawn.numbers(start))
            true = float((value / float(sampler.lattice[coordinate])).mid())
            assert abs(found[row, coordinate] - true) <= bound[row, coordinate]


def law_distance(drawn: Any, at_most: Callable[[Any], Any]) -> float:
    """Return the largest |F_n − F| over the integers drawn."""
    values, counts = np.unique(drawn, return_counts=True)
    return float(np.abs(np.cumsum(counts) / len(drawn) - at_most(values)).max())


def staircase_cdf(x: Any) -> Any:
    """Of epsilon 1, gamma 0.3, sensitivity 1, from the density."""
    b, gamma = math.exp(-1), 0.3
    height = (1 - b) / (2 * (gamma + b * (1 - gamma)))
    size, whole = np.abs(x), np.floor(np.abs(x))
    place = size - whole
    part = np.minimum(place, gamma) + b * np.maximum(place - gamma, 0)
    inside = (1 - b**whole) / 2 + height * b**whole * part
    return np.where(x < 0, 0.5 - inside, 0.5 + inside)


@pytest.mark.parametrize(
    ("sampler", "cdf"),
    [
        (LatticeSampler(independent(lambda: [exact(1).ball()]), resolution=1), stats.norm.cdf),
        (
            LatticeSampler(independent(lambda: [exact(1).ball()], "laplace"), resolution=1),
            stats.laplace.cdf,
        ),
        (
            LatticeSampler(
                StaircaseNoise(exact(1).ball, exact("0.3").ball, exact(1).ball), resolution=1
            ),
            staircase_cdf,
        ),
    ],
    ids=["normal", "laplace", "staircase"],
)
def test_law_is_that_of_the_rounded_noise(
    sampler: LatticeSampler, cdf: Callable[[Any], Any]
) -> None:
    """On a coarse lattice: the mass of every cell, for a value between two lattice points."""
    value, size = 0.2, 200_000
    step = float(sampler.lattice[0])
    assert 0.1 <= step <= 0.5
    released = sampler.release([value], size, rng=np.random.default_rng(5))[:, 0] / step

    def at_most(k: Any) -> Any:
        return cdf((np.asarray(k) + 0.5) * step - value)

    assert law_distance(released, at_most) < math.sqrt(math.log(2 / FALSE_ALARM) / (2 * size))
    cells = np.arange(round(-2 / step), round(2 / step))
    counts = np.array([np.sum(released == cell) for cell in cells])
    masses = at_most(cells) - at_most(cells - 1)
    observed = np.append(counts, size - counts.sum())
    wanted = size * np.append(masses, 1 - masses.sum())
    assert stats.chisquare(observed, wanted, sum_check=False).pvalue > FALSE_ALARM


@pytest.mark.parametrize("noise", [Laplace(1), DiscreteLaplace(1)], ids=repr)
@pytest.mark.parametrize(
    "value", [2**53 + 1, np.longdouble(1) + np.longdouble(2) ** -60, 1j, "1", np.inf]
)
def test_values_that_doubles_do_not_hold_are_refused(noise: Mechanism, value: Any) -> None:
    if isinstance(value, np.longdouble) and value.dtype.itemsize == 8:
        pytest.skip("no wider float here")
    with pytest.raises(InvalidInputError, match="Expected value"):
        noise.release(value)


def test_integers_are_released_exactly() -> None:
    rng = np.random.default_rng(9)
    for mechanism in (DiscreteGaussian(2), DiscreteLaplace(3)):
        released = mechanism.release([[5, 7]], 4, rng=rng)
        assert released.shape == (4, 1, 2)
        assert released.dtype == np.int64
    assert DiscreteLaplace(2**70).release(1, 3, rng=rng).dtype == object
    reports = RandomizedResponse(1, 3).release([0, 1, 2], 50, rng=rng)
    assert set(np.unique(reports).tolist()) <= {0, 1, 2}
    released = DiscreteCorrelatedGaussian(2, 1, "3/2").release([10, 20, 30], 500, rng=rng)
    assert np.abs(released.mean(axis=0) - [10, 20, 30]).max() < 1
    assert (released * 6 == np.round(released * 6)).all()


@pytest.mark.parametrize("mechanism", [KaryTree(9, 3, 100), BinaryTree(6, 1)], ids=repr)
def test_streams_are_counted_exactly(mechanism: Mechanism) -> None:
    stream = np.array([0.1, 1, 0, 1, 0.75, 1, 0, 0, 1][: mechanism.dimension])
    first, second = (
        mechanism.release(inputs, 3, rng=np.random.default_rng(14))
        for inputs in (stream, np.zeros_like(stream))
    )
    step = mechanism.lattice_sampler().lattice[0]
    rounded = [math.floor(Fraction(x) / step + Fraction(1, 2)) * step for x in stream]
    sums = [float(sum(rounded[: index + 1])) for index in range(len(stream))]
    assert (first - second == sums).all()
    assert step <= 1
