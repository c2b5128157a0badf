from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.accountant import notation
from dpassay.accountant.density.balls import real
from dpassay.accountant.density.distribution import density_of, written
from dpassay.accountant.density.text import read
from dpassay.accountant.density.tree import Node, derivative, replaced
from dpassay.accountant.mechanisms import AdditiveNoise, Laplace
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.questions import accuracy, profile

SAME = [
    ("1/(1+exp(-x))", "exp(-x)/(1+exp(-x))**2"),
    ("1/2+tanh(x/2)/2", "1/cosh(x/2)**2"),
    ("1/2+x/(2*sqrt(1+x**2))", "(1+x**2)**-1.5"),
    ("min(max((x+1)/2,0),1)", "abs(x)<1"),
    ("exp(-exp(-x))", "exp(-x-exp(-x))"),
    ("1-1/x**2 if x>1 else 0", "x**-3 if x>1 else 0"),
]


@pytest.mark.parametrize(("cdf", "density"), SAME)
def test_the_noise_is_that_of_the_derivative(cdf: str, density: str) -> None:
    noise, known = AdditiveNoise(cdf=cdf, scale=2), AdditiveNoise(density, scale=2)
    assert notation.parse(repr(noise)) == noise
    for epsilon in ("1/4", "-1"):
        ours, other = (profile.delta(each, epsilon) for each in (noise, known))
        assert ours.overlaps(other)
        width = ours.relative_width
        assert width is not None
        assert width <= Fraction(1, 10**12)


def test_quantiles_invert_the_function() -> None:
    noise = AdditiveNoise(cdf="1/2+x/(2*sqrt(1+x**2))")
    found = accuracy.quantile(noise, "9/10")
    with mpmath.workdps(20):
        x = mpmath.mpf(str(found.lower))
        assert abs(x / (2 * mpmath.sqrt(1 + x * x)) - mpmath.mpf(4) / 10) < 1e-14


def test_a_known_law_by_its_function() -> None:
    noise = AdditiveNoise(cdf="exp(x)/2 if x < 0 else 1-exp(-x)/2", scale=2)
    assert profile.epsilon(noise, 0) == profile.epsilon(Laplace(2), 0)


FORMULAS = st.recursive(
    st.sampled_from(["x", "pi", "1/3", "2", "1.5"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
        inner.map(lambda a: f"exp({a})"),
        inner.map(lambda a: f"abs({a})"),
        inner.map(lambda a: f"1/(1+exp({a}))**2"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]}<1 else {t[2]})"),
    ),
    max_leaves=6,
)


@given(FORMULAS, st.sampled_from(["1/7", "-3/5", "13/11"]))
@settings(max_examples=60)
def test_a_formula_that_is_written_is_read_as_the_same(formula: str, at: str) -> None:
    for tree in (read(formula, "f"), derivative(read(formula, "f"), quotients=True)):
        again = read(written(tree), "f")
        ours, other = (_value(each, Fraction(at)) for each in (tree, again))
        assert ours.overlaps(other) or not (ours.is_finite() and other.is_finite())


def _value(tree: Node, x: Fraction) -> Any:
    """Return the value at a point, branches chosen there."""

    def chosen(node: Node) -> Node | None:
        if node.op not in ("if", "join"):
            return None
        side = 1 if _value(node.parts[0], x) > 0 else 2
        return replaced(node.parts[side], chosen)

    return real(replaced(tree, chosen), ball(x))


def test_the_derivative_is_kept_short() -> None:
    assert density_of("1/2+x/(2*sqrt(1+x**2))", "cdf") == "(1/2)*(1 + x**2)**(-3/2)"
