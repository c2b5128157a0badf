from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import ctx
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.exact import ExactReal, Number, exact

fractions = st.fractions(-(10**6), 10**6, max_denominator=10**6)
numbers = st.one_of(fractions.map(ExactReal.of_rational), fractions.map(ExactReal.of_root))


@pytest.mark.parametrize(
    ("given_as", "value"),
    [
        (3, Fraction(3)),
        ("-7", Fraction(-7)),
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("+1E3", Fraction(1000)),
        ("1e-300", Fraction(1, 10**300)),
        ("256/60000", Fraction(256, 60000)),
        (" 1e-3 / 0.5 ", Fraction(1, 500)),
        ("sqrt(0.25)", Fraction(1, 2)),
        ("-sqrt(4/9)", Fraction(-2, 3)),
        (0.1, Fraction(0.1)),  # the binary number that it is
        (5e-324, Fraction(1, 2**1074)),
        (Decimal("1.10"), Fraction(11, 10)),
        (Fraction(-2, 6), Fraction(-1, 3)),
    ],
)
def test_reads_exactly(given_as: Number, value: Fraction) -> None:
    assert exact(given_as).rational == value


def test_roots_stay_exact() -> None:
    root = exact("sqrt(2)")
    assert root.rational is None
    assert (root * root).rational == 2
    assert (root / exact("sqrt(8)")).rational == Fraction(1, 2)
    assert root * exact(3) == exact("sqrt(18)")
    assert -root == exact("-sqrt(2)") == exact(" - sqrt( 2 ) ")
    assert root.square == 2
    assert exact("sqrt(0)").rational == 0


@pytest.mark.parametrize(
    "text",
    [
        "1e-3x",
        "",
        " ",
        "1e",
        "1_000",
        "0x10",
        "1,5",
        "inf",
        "nan",
        "½",
        "١",
        "sqrt(2",
        "exp()",
        "__import__('os')",
    ],
)
def test_refuses_what_is_not_a_number(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"Expected scale=.* to be a number"):
        exact(text, "scale")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (True, "not a truth value"),
        (math.nan, "Expected scale=nan to be finite"),
        (math.inf, "Expected scale=inf to be finite"),
        (Decimal("NaN"), "to be finite"),
        (Decimal("-Infinity"), "to be finite"),
        ("1/0", "denominator other than 0"),
        ("1/0.0", "denominator other than 0"),
        ("sqrt(-1)", "root of a number ≥ 0"),
        ("1" * 30_000, r"at most 20000 characters"),
        (None, "to be a number, not NoneType"),
        (1j, "to be a number, not complex"),
        ([1], "to be a number, not list"),
        (b"1", "to be a number, not bytes"),
    ],
)
def test_errors_name_argument_and_range(value: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        exact(value, "scale")  # type: ignore[arg-type]  # wrong on purpose


@given(numbers)
def test_text_reads_back(number: ExactReal) -> None:
    assert exact(str(number)) == number


@given(numbers, numbers)
def test_order_is_that_of_the_reals(a: ExactReal, b: ExactReal) -> None:
    with mpmath.workdps(60):
        if a != b:
            assert (a < b) == (a.mpf() < b.mpf())
        else:
            assert not a < b
    assert (a <= b) == (not b < a)
    assert (-a < -b) == (b < a)
    assert hash(exact(str(a))) == hash(a)


@given(numbers, numbers)
def test_products_and_quotients_are_enclosed(a: ExactReal, b: ExactReal) -> None:
    with ctx.workprec(200):
        assert (a * b).ball().overlaps(a.ball() * b.ball())
        if b.sign:
            quotient = (a / b).ball()
            assert quotient.overlaps(a.ball() / b.ball())
            assert quotient.rel_accuracy_bits() >= 195


def test_an_exponent_that_is_too_long_is_named() -> None:
    with pytest.raises(InvalidInputError, match="exponents of at most five digits"):
        exact("1e999999", "scale")


def test_numbers_of_numpy_are_the_binary_numbers_that_they_are() -> None:
    values: list[Any] = [np.float32(1.1), np.float16(1.1), np.float64(1.1), np.int32(3)]
    for value in values:
        assert exact(value) == exact(value.item()) == exact(Fraction(float(value)))
    others: list[Any] = [np.float32("nan"), np.array([1.1])]
    for other in others:
        with pytest.raises(InvalidInputError):
            exact(other)
