"""Numbers as people write them, computed with and compared exactly; never evaluated by Python."""

from __future__ import annotations

import functools
import math
import operator
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

import dpassay
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from tests.tables import rows

# exact


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


def test_numbers_of_numpy_are_the_binary_numbers_that_they_are() -> None:
    values: list[Any] = [np.float32(1.1), np.float16(1.1), np.float64(1.1), np.int32(3)]
    for value in values:
        assert exact(value) == exact(value.item()) == exact(Fraction(float(value)))
    others: list[Any] = [np.float32("nan"), np.array([1.1])]
    for other in others:
        with pytest.raises(InvalidInputError):
            exact(other)


# Numbers as people write them: read exactly, never evaluated by Python


WRITTEN = rows(Path(__file__).with_name("written.txt"))


def written(about: str) -> list[list[str]]:
    return [row for kind, *row in WRITTEN if kind == about]


@pytest.mark.parametrize(("text", "square"), written("root"))
def test_a_formula_is_the_root_of_its_square(text: str, square: str) -> None:
    number = exact(text)
    assert number == ExactReal.of_root(Fraction(square))
    assert exact(str(number)) == number


@pytest.mark.parametrize(
    "text", ["-sqrt(2)/10", "-(2**0.5)", "-2**0.5", "(-2)**3", "1 - sqrt(2)*sqrt(2)"]
)
def test_signs_bind_as_in_python(text: str) -> None:
    expected = eval(text, {"sqrt": math.sqrt})
    assert float(exact(text)) == pytest.approx(expected, rel=1e-15, abs=0)


@pytest.mark.parametrize(("text", "value"), written("value"))
def test_irrational_constants_have_balls_of_any_precision(text: str, value: str) -> None:
    number = exact(text)
    with mpmath.workdps(160):
        near = eval(value, vars(mpmath).copy())  # mpmath has every name
        for digits in (30, 120):
            with ctx.workprec(int(3.4 * digits)):
                ball = number.ball()
                assert ball.rel_accuracy_bits() > 3 * digits
                lower, upper = (
                    mpmath.mpf(end.str(150, radius=False)) for end in (ball.lower(), ball.upper())
                )
                assert lower <= near <= upper
        assert float(number) == pytest.approx(float(near), rel=1e-15, abs=0)
        assert math.floor(number) == math.floor(near)
    assert number.rational is None
    assert exact(str(number)) == number
    assert hash(number) == hash(number * exact(2) / exact(2))
    assert exact(str(number + exact(1))) - exact(1) == number
    assert pickle.loads(pickle.dumps(number)) == number


@pytest.mark.parametrize(("one", "other"), written("equal"))
def test_equal_numbers_are_equal_however_they_are_written(one: str, other: str) -> None:
    assert exact(one) == exact(other)
    assert hash(exact(one) + exact("pi")) == hash(exact(other) + exact("pi"))
    assert not exact(one) < exact(other)
    assert exact(other) < exact(f"{one} + 1e-200*exp(1)")
    assert exact(f"({one}) - ({other})").rational == 0


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 30)), min_size=1, max_size=4))
def test_sums_and_products_are_those_of_the_reals(terms: list[tuple[int, int]]) -> None:
    parts = [exact(f"{a}*exp({a}/{b})*log({b}+1)*sqrt({b}) + 2**({a}/{b})") for a, b in terms]
    total = functools.reduce(operator.add, parts)
    product = functools.reduce(operator.mul, parts)
    with ctx.workprec(300):
        assert total.ball().overlaps(sum((part.ball() for part in parts), start=arb(0)))
        assert product.ball().overlaps(functools.reduce(operator.mul, [x.ball() for x in parts]))
    assert total - total == exact(0)
    if product.sign:
        assert product / product == exact(1)


@pytest.mark.parametrize(("claim", "verdict"), written("claim"))
def test_claims_with_irrational_constants_are_decided_at_equality(claim: str, verdict: str) -> None:
    assert dpassay.verify(claim).verdict == verdict


def test_equal_arguments_give_equal_answers() -> None:
    pairs = [
        ('Gaussian("exp(log(3))")', "Gaussian(3)"),
        ("GeneralGaussian(Isotropic(3, 1), L2Ball(3, 'exp(-1)'))", "Gaussian(1, 'exp(-1)')"),
        ("ReportNoisyMax('Gaussian', 'pi', 2)", "Gaussian('pi', 'sqrt(2)')"),
        ("Composed(Gaussian('exp(1)'), 4)", "Gaussian('exp(1)', 2)"),
        ("LaplaceVector('exp(1)', ['log(2)', 'log(4)'])", "LaplaceVector('exp(1)/log(2)', [1, 2])"),
    ]
    for one, other in pairs:
        found, known = (dpassay.delta(each, "log(2)/9") for each in (one, other))
        assert found.overlaps(known)
        assert min(found.digits, known.digits) > 30
    found = dpassay.delta("Composed(RandomizedResponse('log(3)'), 5)", "3*log(3)")
    assert Fraction(27, 128) in found  # (p − e^ε q)⁺ of 5 and 4 of 5 true answers, p = 3/4


def test_the_divergence_of_infinite_order_is_the_largest_loss() -> None:
    for order in ("inf", math.inf, "∞"):
        assert dpassay.renyi("Laplace(1)", order) == 1
        assert dpassay.renyi("Gaussian(1)", order).lower == math.inf
    assert dpassay.renyi("RandomizedResponse(2)", "inf") == 2
