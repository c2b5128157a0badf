"""Sampling without replacement: every pair of neighbours by brute force, closed forms, refusals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from accountant import profile
from accountant.errors import AdjacencyError, InvalidInputError
from accountant.mechanisms import (
    Gaussian,
    Laplace,
    RandomizedResponse,
    SampledWithoutReplacement,
)


def test_closed_form() -> None:
    # δ(ε) = γ δ_M(ln(1 + (e^ε − 1)/γ)) for ε ≥ 0
    step = SampledWithoutReplacement(Laplace(scale=1), 1, 4)
    for epsilon in (0.1, 0.3):
        inner = math.log1p(math.expm1(epsilon) * 4)
        expected = -math.expm1((inner - 1) / 2) / 4
        found = profile.delta(step, epsilon)
        assert abs(float(found.lower) - expected) < 1e-15
    assert str(profile.delta(step, epsilon=math.log1p(math.expm1(1) / 4) + 1e-9)) == "0"


def test_every_pair_of_neighbours_by_brute_force() -> None:
    # one randomised bit of the sampled record (m = 1) of n = 3: all databases of bits
    odds = math.e
    keep = odds / (1 + odds)
    step = SampledWithoutReplacement(RandomizedResponse(epsilon=1), 1, 3)

    def law(bits: tuple[int, ...]) -> float:
        return sum(keep if bit else 1 - keep for bit in bits) / 3

    for epsilon in (-0.3, 0.0, 0.1, 0.25):
        worst = 0.0
        for bits in itertools.product((0, 1), repeat=3):
            other = (1 - bits[0], *bits[1:])
            p, q = law(bits), law(other)
            factor = math.exp(epsilon)
            value = max(p - factor * q, 0) + max(1 - p - factor * (1 - q), 0)
            worst = max(worst, value)
        found = profile.delta(step, epsilon, adjacency="replace-one")
        assert abs(float(found.upper) - worst) < 1e-14


def test_everything_sampled_changes_nothing() -> None:
    step = SampledWithoutReplacement(Gaussian(standard_deviation=2), 5, 5)
    assert profile.delta(step, 1) == profile.delta(Gaussian(standard_deviation=2), 1)
    assert step.exact_gaussian_mu(None) == Gaussian(standard_deviation=2).exact_gaussian_mu(None)


def test_less_is_sampled_less_is_shown() -> None:
    values = [
        profile.delta(
            SampledWithoutReplacement(Gaussian(standard_deviation=1), m, 10),
            "1/2",
            relative_width=Fraction(1, 10**9),
        ).lower
        for m in (1, 3, 9, 10)
    ]
    assert values == sorted(values)


def test_refusals() -> None:
    step = SampledWithoutReplacement(Gaussian(standard_deviation=1), 1, 10)
    with pytest.raises(AdjacencyError, match="replace-one"):
        profile.delta(step, 1, adjacency="add-remove")
    with pytest.raises(InvalidInputError, match="sample_size=3 ≤ population=2"):
        SampledWithoutReplacement(Gaussian(standard_deviation=1), 3, 2)
    with pytest.raises(InvalidInputError, match="sample_size=0 ≥ 1"):
        SampledWithoutReplacement(Gaussian(standard_deviation=1), 0, 2)
    assert repr(step).startswith("SampledWithoutReplacement(")
