"""Bounds of numbers: Chernoff's factor, one profile below another, Landau's constants, surds."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant.mechanisms import SquareRootFactorization
from dpassay.accountant.numbers.dominance import proved_below
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.solve import log_peak, rough_log_peak
from dpassay.accountant.numbers.theta import coefficients, landau
from dpassay.accountant.questions import accuracy


@pytest.mark.parametrize("c", ["1e-30", "1e-3", "0.5", "1", "40", "1e9"])
def test_it_is_the_value_at_the_peak_and_no_other_value_is_larger(c: str) -> None:
    with ctx.workprec(256), mpmath.workdps(60):
        found = log_peak(arb(c))
        assert float(found.rad()) < 1e-25 * abs(float(found.mid()))
        at = mpmath.mpf(c)

        def log_value(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.log(-mpmath.expm1(-x)) - at * x

        peak = mpmath.log1p(1 / at)
        upper = mpmath.mpf(found.upper().str(50, radius=False))
        assert mpmath.almosteq(log_value(peak), upper, 1e-20, 0)
        assert all(log_value(peak * share) < upper for share in (0.01, 0.9, 0.999, 1.001, 3))
    assert rough_log_peak(float(c)) == pytest.approx(float(found.mid()), rel=1e-6, abs=0)


def test_a_limit_that_ends_first_is_not_kept() -> None:
    """On (1, 1.001) the limit is 0 and the value is not, although both are 0 at the end."""

    def value(at: ExactReal) -> arb:
        return ((1 - (at.ball() - arb("1.001")).exp()) / 10).max(arb(0))

    def limit(at: ExactReal) -> arb:
        return (1 - (at.ball() - 1).exp()).max(arb(0))

    with ctx.workprec(128):
        assert not proved_below(value, limit, Fraction(101, 100))
        assert proved_below(value, limit, Fraction(99, 100))
        assert proved_below(lambda at: limit(at) / 2, value_later, Fraction(101, 100))


def value_later(at: ExactReal) -> arb:
    """A limit that ends at 1.005, above half of one that ends at 1."""
    return (1 - (at.ball() - arb("1.005")).exp()).max(arb(0))


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 200, 257, 1000, 3000])
def test_against_the_exact_sum(count: int) -> None:
    """The ball contains the rational sum and is narrow, at two precisions."""
    exact = sum((entry**2 for entry in coefficients(count)), Fraction(0))
    for precision in (128, 256):
        with ctx.workprec(precision):
            ball = landau(count)
            assert ball.contains(fmpq(exact.numerator, exact.denominator))
            assert ball.rad() < arb(2) ** (20 - precision)


@pytest.mark.parametrize("steps", [1, 7, 300, 1500])
def test_two_routes_to_the_error(steps: int) -> None:
    """The enclosed error contains the rational one."""
    for counter in (
        SquareRootFactorization(steps, mu="1/3", contributions=2),
        SquareRootFactorization(steps, epsilon=2),
    ):
        exact = counter.exact_mean_squared_error().rational
        assert exact is not None
        found = accuracy.mean_squared_error(counter)
        assert exact in found
        width = found.relative_width
        assert width is not None
        assert width < Fraction(1, 10**29)


RATIONALS = st.fractions(min_value=-50, max_value=50, max_denominator=30)
RADICANDS = st.fractions(min_value=0, max_value=60, max_denominator=12)


def surd(a: Fraction, b: Fraction, r: Fraction) -> ExactReal:
    return exact(a) + ExactReal.of_root(r).times(b)


@given(RATIONALS, RATIONALS, RADICANDS)
def test_the_sign_of_a_surd(a: Fraction, b: Fraction, r: Fraction) -> None:
    number = surd(a, b, r)
    with ctx.workprec(400):
        ball = number.ball()
    assert number.sign == (ball > 0) - (ball < 0)
    assert (number.sign == 0) == (ball.contains(0))


@given(RATIONALS, RATIONALS, RATIONALS, RATIONALS, RADICANDS)
def test_surds_of_one_field(
    a: Fraction, b: Fraction, c: Fraction, d: Fraction, r: Fraction
) -> None:
    left, right = surd(a, b, r), surd(c, d, r)
    total = left + right
    assert total == surd(a + c, b + d, r)
    assert total - right == left
    if left.sign:
        assert exact(1) / (exact(1) / left) == left
        assert left * right / left == right
