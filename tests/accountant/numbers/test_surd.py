from __future__ import annotations

from fractions import Fraction
from math import isqrt

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from accountant.errors import InvalidInputError
from accountant.numbers.surd import Surd, to_fmpq

RATIONALS = st.fractions(min_value=-50, max_value=50, max_denominator=30)
RADICANDS = st.fractions(min_value=0, max_value=60, max_denominator=12)


def surd(a: Fraction, b: Fraction, r: Fraction) -> Surd:
    return Surd.of(to_fmpq(a), to_fmpq(b), to_fmpq(r))


@given(RATIONALS, RATIONALS, RADICANDS)
def test_the_sign_agrees_with_the_enclosure(a: Fraction, b: Fraction, r: Fraction) -> None:
    number = surd(a, b, r)
    with ctx.workprec(400):
        ball = number.ball()
    assert number.sign() == (ball > 0) - (ball < 0)
    assert (number.sign() == 0) == (ball.contains(0))


@given(RATIONALS, RATIONALS, RATIONALS, RATIONALS, RADICANDS)
def test_sums_within_one_field(
    a: Fraction, b: Fraction, c: Fraction, d: Fraction, r: Fraction
) -> None:
    left, right = surd(a, b, r), surd(c, d, r)
    total = left + right
    assert total.equals(surd(a + c, b + d, r))
    assert (total - right).equals(left)


@given(RATIONALS, RATIONALS, RADICANDS)
def test_reciprocal_twice_is_the_number(a: Fraction, b: Fraction, r: Fraction) -> None:
    number = surd(a, b, r)
    if number.sign() == 0:
        with pytest.raises(ZeroDivisionError):
            number.reciprocal()
        return
    assert number.reciprocal().reciprocal().equals(number)
    with ctx.workprec(300):
        assert (number.ball() * number.reciprocal().ball()).contains(1)


def test_rational_roots_become_rational() -> None:
    assert Surd.of(1, 2, fmpq(9, 4)) == Surd.of(4)
    assert Surd.of(0, fmpq(1, 2), 8).equals(Surd.of(0, 1, 2))
    assert str(Surd.of(fmpq(1, 2), 3, 7)) == "1/2 + 3*sqrt(7)"
    assert str(Surd.of(5)) == "5"


@pytest.mark.parametrize("radicand", [2, 3, 10**30 + 1])
def test_enclosures_are_narrow(radicand: int) -> None:
    assert isqrt(radicand) ** 2 != radicand
    with ctx.workprec(200):
        ball = Surd.of(-isqrt(radicand), 1, radicand).ball()
        assert ball > 0
        assert ball.contains(arb(radicand).sqrt() - isqrt(radicand))
        assert ball.rel_accuracy_bits() > 80


def test_bad_input() -> None:
    with pytest.raises(InvalidInputError, match=r"Expected radicand=-2 ≥ 0"):
        Surd.of(1, 1, -2)
    with pytest.raises(InvalidInputError, match="one radicand, not 2 and 3"):
        _ = Surd.of(0, 1, 2) + Surd.of(0, 1, 3)
