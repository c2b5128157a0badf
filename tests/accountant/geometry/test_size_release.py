from __future__ import annotations

from fractions import Fraction

import pytest
from flint import ctx, fmpq

from accountant.errors import InvalidInputError
from accountant.geometry.size_release import optimal_size_release
from accountant.mechanisms.shapes.correlated import CorrelatedGaussian
from accountant.numbers.surd import Surd


@pytest.mark.parametrize("dimension", [4, 9, 16, 25])
def test_algorithm_1_is_pareto_optimal_at_perfect_squares(dimension: int) -> None:
    release = optimal_size_release(dimension, dimension, 0)
    assert release is not None
    assert release.c_squared.equals(Surd.of(0, 1, dimension))


@pytest.mark.parametrize("dimension", [2, 3, 7, 10, 30])
def test_a_size_of_some_weight_makes_the_family_optimal(dimension: int) -> None:
    least = Fraction(dimension, 4 * (dimension - 1))
    for weight in (least, 1, dimension, Fraction(dimension * (dimension - 1), 4)):
        release = optimal_size_release(dimension, dimension, weight)
        assert release is not None
        fourth_power = dimension + 4 * Fraction(weight)
        square = fmpq(fourth_power.numerator, fourth_power.denominator)
        assert release.c_squared.equals(Surd.of(0, 1, square))


def test_the_release_is_the_correlated_gaussian() -> None:
    release = optimal_size_release(12, 12, 33)  # C⁴ = 144, C = √12
    assert release is not None
    entries = CorrelatedGaussian(12, 1, "sqrt(12)").variances()
    with ctx.workprec(128):
        assert entries[0].overlaps(release.query_variance.ball())
        assert entries[-1].overlaps(release.size_variance.ball())


@pytest.mark.parametrize("weight", [-1, "sqrt(2)"])
def test_bad_weight(weight: int | str) -> None:
    with pytest.raises(InvalidInputError, match="size_weight"):
        optimal_size_release(3, 3, weight)


def test_bad_sparsity() -> None:
    with pytest.raises(InvalidInputError, match="Expected sparsity=4 between 1 and dimension=3"):
        optimal_size_release(3, 4, 1)
