"""Numbers as people write them, computed with and compared exactly; never evaluated by Python."""

from __future__ import annotations

import functools
import math
import operator
import pickle
from decimal import Decimal
from fractions import Fraction
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


SQUARES = {
    "sqrt(2)/10": "1/50",
    "2**0.5": "2",
    "2**(1/2)": "2",
    "2**-0.5": "1/2",
    "2**1.5": "8",
    "1/sqrt(1/1.44+0.01)": "3600/2536",
    "sqrt(2)*sqrt(3)": "6",
    "sqrt(2) + 3*sqrt(2)": "32",
    "sqrt(8) - sqrt(2)": "2",
    "sqrt(sqrt(16))": "4",
    "sqrt(2)**4": "16",
    "3*(1 + 1/2)": "81/4",
    "10**-5": "1e-10",
    " ( 0.1 ) ": "0.01",
    "+2": "4",
    "sqrt(1/2)/(2*sqrt(2))": "1/16",
}


@pytest.mark.parametrize(("text", "square"), SQUARES.items())
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


VALUES = {
    "exp(1)": "exp(1)",
    "log(3)": "log(3)",
    "ln(3)": "log(3)",
    "1+sqrt(2)": "1+sqrt(2)",
    "2**(1/3)": "root(2, 3)",
    "2**sqrt(2)": "2**sqrt(2)",
    "sqrt(sqrt(2))": "root(2, 4)",
    "sqrt(2*log(1.25/1e-5))": "sqrt(2*log(125000))",
    "exp(1/(1+exp(1)))": "exp(1/(1+e))",
    "1/sqrt(2*pi)": "1/sqrt(2*pi)",
    "log(log(3))": "log(log(3))",
    "exp(pi*sqrt(163)) - 262537412640768744": "exp(pi*sqrt(163)) - 262537412640768744",
    "-exp(-700)/7": "-exp(-700)/7",
    "exp(exp(1))": "exp(e)",
}


@pytest.mark.parametrize(("text", "value"), VALUES.items())
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("log(9)/log(3)", "2"),
        ("log(8, 2)", "3"),
        ("exp(2*log(1+sqrt(2)))", "3+2*sqrt(2)"),
        ("(2**(1/3))**3", "2"),
        ("log(6)", "log(2)+log(3)"),
        ("exp(2)*exp(1)", "exp(3)"),
        ("sqrt(2*log(5))**2/2", "log(5)"),
        ("1/(1+sqrt(2))", "sqrt(2)-1"),
        ("sqrt(3+2*sqrt(2))", "1+sqrt(2)"),
        ("sqrt(5+2*sqrt(6))", "sqrt(2)+sqrt(3)"),
        ("(2+sqrt(5))**(1/3) - (sqrt(5)-2)**(1/3)", "1"),
        ("sqrt(pi)**2/pi", "1"),
        ("2**log(3)", "3**log(2)"),
        ("exp(log(log(3)))", "log(3)"),
        ("exp(1)*sqrt(2)/exp(1)", "sqrt(2)"),
        ("log((1+sqrt(2))/2)", "log(1+sqrt(2))-log(2)"),
    ],
)
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


CLAIMS = {
    'RandomizedResponse("log(3)") is (log(3), 0)-DP': True,
    "RandomizedResponse(log(3)) is ln(3)-DP": True,
    'RandomizedResponse("log(3)") is (1.0986, 0)-DP': False,
    'Laplace("1/log(3)") is log(3)-DP': True,
    'Tabulated(["3/4", "1/4"], ["1/4", "3/4"]) is log(3)-DP': True,
    'Composed(Laplace("1/log(3)"), 10) is 10*log(3)-DP': True,
    'Composed([Laplace(1), Laplace("1/sqrt(2)")]) is (1+sqrt(2), 0)-DP': True,
    'Gaussian("exp(1)") is (1, exp(-2))-DP': True,
    'Gaussian("2/exp(1)") is exp(1)/2-GDP': True,
    'Composed(Gaussian("1+sqrt(2)"), 4) is 2/(1+sqrt(2))-GDP': True,
    'Gaussian("sqrt(2)*log(3)") is 1/(4*log(3)**2)-zCDP': True,
    "Gaussian(1) is (exp(1), exp(1)/2)-RDP": True,
}


@pytest.mark.parametrize(("claim", "holds"), CLAIMS.items())
def test_claims_with_irrational_constants_are_decided_at_equality(claim: str, holds: bool) -> None:
    assert dpassay.verify(claim).verdict == ("HOLDS" if holds else "REFUTED")


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
