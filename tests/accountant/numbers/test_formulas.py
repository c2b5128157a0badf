"""Numbers as people write them: read exactly, never evaluated by Python."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import dpassay
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal, exact

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
    "text",
    ["-sqrt(2)/10", "-(2**0.5)", "-2**0.5", "(-2)**3", "1 - sqrt(2)*sqrt(2)"],
)
def test_signs_bind_as_in_python(text: str) -> None:
    expected = eval(text, {"sqrt": math.sqrt})
    assert float(exact(text)) == pytest.approx(expected, rel=1e-15, abs=0)


@pytest.mark.parametrize(
    "text",
    [
        "1 + sqrt(2)",
        "sqrt(2) + sqrt(3)",
        "2**sqrt(2)",
        "sqrt(sqrt(2))",
        "2**(1/3)",
        "sqrt(-1)",
        "(-2)**0.5",
        "1/0",
        "0**-1",
        "1/(sqrt(2) - sqrt(2))",
        "9**9**9**9",
        "10**1000000",
        "(10**99999)**99999",
        "*".join(["9" * 400] * 3) * 2,
        "(" * 400 + "1" + ")" * 400,
        "sqrt" * 50 + "(2)",
        "sqrt(2",
        "2 2",
        "1_000",
        "0x10",
        "1j",
        "1e5j",
        "sqrt(2, 3)",
        "__import__('os')",
        "().__class__",
        "1;2",
        "1\n2",
        "[1]",
        "e",
        "1e",
        "1/e",
        "x*2",
        "10**99999*10**99999*10**99999*10**99999*10**99999*10**99999",
    ],
)
def test_what_has_no_exact_form_or_is_none_is_one_clear_line(text: str) -> None:
    with pytest.raises(InvalidInputError, match="Expected number=") as caught:
        exact(text)
    assert "\n" not in str(caught.value)


def test_mechanisms_take_formulas_and_print_what_reads_back() -> None:
    noise = dpassay.Gaussian("1/sqrt(1/1.44+0.01)")
    assert dpassay.parse(repr(noise)) == noise
    assert noise == dpassay.parse('Gaussian("1/sqrt(1/1.44+0.01)")')
    both = dpassay.parse('Composed([Gaussian("1.2"), Gaussian(10)])')
    # 1/σ² = 1/1.44 + 1/100: one release of the two
    assert dpassay.delta(noise, 1, relative_width="1e-9").lower == pytest.approx(
        dpassay.delta(both, 1, relative_width="1e-9").lower
    )
    assert dpassay.verify('Gaussian("sqrt(2)*3") is (1, 1e-5)-DP').holds


def test_the_divergence_of_infinite_order_is_the_largest_loss() -> None:
    for order in ("inf", math.inf, "∞"):
        assert dpassay.renyi("Laplace(1)", order) == 1
        assert dpassay.renyi("Gaussian(1)", order).lower == math.inf
    assert dpassay.renyi("RandomizedResponse(2)", "inf") == 2


def test_an_order_below_one_is_known_for_gaussian_noise() -> None:
    assert dpassay.renyi("Gaussian(1)", "1/2") == Fraction(1, 4)
    assert dpassay.renyi("Gaussian(2)", "1/4") == Fraction(1, 32)
    with pytest.raises(NotApplicableError, match="Gaussian noise alone"):
        dpassay.renyi("Laplace(1)", "1/2")
    for order in (0, -1, "-inf"):
        with pytest.raises(InvalidInputError):
            dpassay.renyi("Gaussian(1)", order)
