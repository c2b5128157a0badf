from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest

from accountant.core.mechanism import Mechanism
from accountant.errors import InvalidInputError, NotApplicableError
from accountant.mechanisms import (
    DiscreteLaplace,
    Gaussian,
    IntegerNoise,
    Laplace,
    LaplaceVector,
    RandomizedResponse,
    Staircase,
)
from accountant.numbers.exact import Number
from accountant.numbers.interval import Interval
from accountant.questions import utility


def test_variances() -> None:
    assert utility.variance(Gaussian("1.5")) == [Interval.of_exact(Fraction(9, 4), 40)]
    (variance,) = utility.variance(Laplace("0.1"))
    assert Fraction(1, 50) in variance
    assert utility.mean_squared_error(Laplace("0.1")) == variance


def test_mean_squared_error_counts_the_bias() -> None:
    biased = IntegerNoise(["1/2", "1/2"], 1)
    assert Fraction(1, 4) in utility.variance(biased)[0]
    assert Fraction(5, 2) in utility.mean_squared_error(biased)


def test_covariance_is_diagonal_for_independent_coordinates() -> None:
    matrix = utility.covariance(LaplaceVector(3, [1, 2]))
    assert [[18 in entry for entry in row] for row in matrix] == [[True, False], [False, True]]
    assert matrix[0][1] == Interval.of_exact(0)


SCALAR: list[Mechanism] = [
    Gaussian("0.3"),
    Laplace(7),
    Staircase("1", "0.2", 3),
    LaplaceVector("1/7", [1, 1]),
]


@pytest.mark.parametrize("mechanism", SCALAR, ids=str)
def test_quantiles_of_symmetric_noise(mechanism: Mechanism) -> None:
    levels: list[Number] = ["1e-300", "0.01", "0.3", "1/2", "0.7", "0.99", 1 - Fraction(1, 10**300)]
    values = [utility.quantile(mechanism, level) for level in levels]
    assert all(a.upper < b.lower for a, b in pairwise(values))
    for low, high in zip(values, reversed(values), strict=True):
        assert low.overlaps(Interval(high.upper.copy_negate(), high.lower.copy_negate()))
    assert utility.quantile(mechanism, 0).lower == Decimal("-Infinity")
    assert utility.quantile(mechanism, 1).upper == Decimal("Infinity")


def test_quantile_of_an_irrational_level() -> None:
    for mechanism in (Laplace(1), Staircase(1, "0.3"), Gaussian(1)):
        for level, rational in (
            ("sqrt(0.2)", "0.447213595499957939281834733746"),
            ("sqrt(0.8)", "0.894427190999915878563669467492"),
        ):
            irrational = utility.quantile(mechanism, level)
            nearby = utility.quantile(mechanism, rational)
            assert abs(irrational.lower - nearby.lower) < Decimal("1e-28")


def test_discrete_quantile_is_the_least_point_that_reaches_the_level() -> None:
    noise = IntegerNoise(["1/4", "1/2", "1/4"], -1)
    assert [int(utility.quantile(noise, p).lower) for p in ("1/4", "0.26", "3/4", "0.76")] == [
        -1,
        0,
        0,
        1,
    ]
    assert utility.quantile(DiscreteLaplace(2), "1/2") == Interval.of_exact(0)


def test_what_has_no_quantile_says_so() -> None:
    with pytest.raises(NotApplicableError, match="RandomizedResponse has no quantile"):
        utility.quantile(RandomizedResponse(1), "0.5")
    with pytest.raises(InvalidInputError, match=r"Expected level=1\.5 in \[0, 1\]"):
        utility.quantile(Laplace(1), 1.5)
