"""The positive certificate: our samplers get it, naive ones do not."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import (
    CorrelatedGaussian,
    DiscreteLaplace,
    EllipticalGaussian,
    Gaussian,
    Laplace,
    RankOneGaussian,
    Staircase,
)
from dpassay.verifier.audit.kinds.one_lattice import NASTY, one_lattice

Draw = Callable[[Any, int, np.random.Generator], Any]


def released(mechanism: Mechanism) -> Draw:
    count = len(mechanism.lattice_sampler().lattice)

    def draw(value: float, size: int, rng: np.random.Generator) -> Any:
        answer = value if count == 1 else np.full(count, value)
        return mechanism.release(answer, size, rng=rng)

    return draw


@pytest.mark.parametrize(
    "mechanism",
    [
        Gaussian("0.7"),
        Laplace(2),
        Staircase(1, "0.4"),
        EllipticalGaussian([1, "0.1"], 1),
        CorrelatedGaussian(4, 1),
        RankOneGaussian(5, 4),
    ],
    ids=repr,
)
def test_our_samplers_are_certified(mechanism: Mechanism) -> None:
    finding = one_lattice(released(mechanism), runs=1000, seed=1)
    assert finding.certified
    assert finding.steps == tuple(map(str, mechanism.lattice_sampler().lattice))
    assert finding.off_lattice == pytest.approx(math.log(1e6 * len(NASTY)) / 1000, rel=0.01)
    assert finding.to_json()["verdict"] == "CERTIFIED"
    assert str(finding).startswith("CERTIFIED: all 1000")


def naive(value: float, size: int, rng: np.random.Generator) -> Any:
    return value + rng.normal(0, 1, size)


def single(value: float, size: int, rng: np.random.Generator) -> Any:
    return np.float32(value) + rng.standard_normal(size, dtype=np.float32)


def lattice_noise_on_a_raw_answer(value: float, size: int, rng: np.random.Generator) -> Any:
    return value + rng.integers(-1000, 1000, size) / 8


def coarser_for_large(value: float, size: int, rng: np.random.Generator) -> Any:
    return rng.integers(-1000, 1000, size) / (4 if value > 100 else 8)


def sometimes_infinite(value: float, size: int, rng: np.random.Generator) -> Any:
    return np.where(rng.random(size) < 0.01, math.inf, rng.integers(0, 100, size) / 4)


def longer(value: float, size: int, rng: np.random.Generator) -> Any:
    return np.zeros((size, 1 + int(value > 0.5)))


@pytest.mark.parametrize(
    ("draw", "reason"),
    [
        (naive, "uses every bit"),
        (single, "uses every bit"),
        (lattice_noise_on_a_raw_answer, "uses every bit"),
        (coarser_for_large, "twice the step 1/8"),
        (sometimes_infinite, "not always finite"),
        (longer, "number of coordinates"),
    ],
)
def test_others_are_not(draw: Draw, reason: str) -> None:
    finding = one_lattice(draw, runs=1000, seed=2)
    assert not finding.certified
    assert reason in str(finding)
    assert finding.off_lattice == 1


def test_integers_decimals_and_known_steps() -> None:
    integers = one_lattice(DiscreteLaplace(3), (0, 5, -1), runs=500, seed=3)
    assert integers.steps == ("1",)
    assert integers.certified

    def cents(value: float, size: int, rng: np.random.Generator) -> Any:
        return np.round(value + rng.laplace(0, 3, size), 2)

    decimal = one_lattice(cents, runs=500, seed=4)
    assert decimal.certified
    assert decimal.steps == ("1/100",)
    known = one_lattice(released(Laplace(2)), runs=500, seed=5, steps=[Fraction(1, 2**31)])
    assert known.certified
    wrong = one_lattice(released(Laplace(2)), runs=500, seed=5, steps=[Fraction(1, 2**30)])
    assert "is no multiple of 1/1073741824" in wrong.reason


def test_constant_outputs_are_on_a_lattice() -> None:
    finding = one_lattice(lambda value, size, rng: np.zeros(size), runs=200, seed=6)
    assert finding.certified


@pytest.mark.parametrize(
    ("arguments", "message"), [({"datasets": [1]}, "at least 2"), ({"runs": 10}, "≥ 100")]
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        one_lattice(naive, **{"seed": 7, **arguments})


def test_outputs_that_are_no_numbers() -> None:
    with pytest.raises(InvalidInputError, match="numbers"):
        one_lattice(lambda value, size, rng: ["a"] * size, seed=8)
