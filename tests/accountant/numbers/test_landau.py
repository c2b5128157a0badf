"""Landau's constants: enclosed at any index, and equal to the sums where these are written out."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from accountant.mechanisms import SquareRootFactorization
from accountant.numbers.landau import central, coefficients, landau
from accountant.questions import utility


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 200, 257, 1000, 3000])
def test_against_the_exact_sum(count: int) -> None:
    """The ball contains the rational sum and is narrow, at two precisions."""
    exact = sum((entry**2 for entry in coefficients(count)), Fraction(0))
    for precision in (128, 256):
        with ctx.workprec(precision):
            ball = landau(count)
            assert ball.contains(fmpq(exact.numerator, exact.denominator))
            assert ball.rad() < arb(2) ** (20 - precision)


def test_squares_of_entries() -> None:
    """f_j as a binomial number and through the gamma function agree."""
    for index in (0, 1, 10, 1000):
        exact = central(index)
        ball = central(index, exact=False)
        assert ball.contains(fmpq(exact.numerator, exact.denominator)) or index == 0
        assert abs(ball - arb(fmpq(exact.numerator, exact.denominator))) < 1e-10


@pytest.mark.parametrize("steps", [1, 7, 300, 1500])
def test_two_routes_to_the_error(steps: int) -> None:
    """The enclosed error contains the rational one."""
    for counter in (
        SquareRootFactorization(steps, mu="1/3", contributions=2),
        SquareRootFactorization(steps, epsilon=2),
    ):
        exact = counter.exact_mean_squared_error().rational
        assert exact is not None
        found = utility.mean_squared_error(counter)
        assert exact in found
        width = found.relative_width
        assert width is not None
        assert width < Fraction(1, 10**29)
