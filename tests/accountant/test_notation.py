from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant import notation
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import (
    DESCRIPTIONS,
    Gaussian,
    IntegerNoise,
    Laplace,
    LaplaceVector,
    PoissonSubsampled,
    RandomizedResponse,
    Staircase,
    Tabulated,
)
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.exact import ExactReal, exact

positive = st.one_of(
    st.fractions("1/1000000", 10**6).map(ExactReal.of_rational),
    st.fractions("1/1000", 1000, max_denominator=1000).map(ExactReal.of_root),
    st.floats(5e-324, 1e300).map(exact),
    st.integers(1, 10**60).map(exact),
)


@st.composite
def mechanisms(draw: st.DrawFn) -> Mechanism:
    probability = st.fractions(0, 1, max_denominator=1000)
    weights = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    law = [ExactReal.of_rational(w) / ExactReal.of_rational(sum(weights)) for w in weights]
    kinds: list[st.SearchStrategy[Mechanism]] = [
        st.builds(Gaussian, positive, positive),
        st.builds(Laplace, positive),
        st.builds(LaplaceVector, positive, st.lists(st.fractions(), min_size=1, max_size=4)),
        st.builds(Staircase, positive, probability, positive),
        st.builds(RandomizedResponse, positive, st.integers(2, 10**30)),
        st.builds(Tabulated, st.just(law), st.just(law[::-1])),
        st.builds(IntegerNoise, st.just(law), st.integers(-9, 9), st.integers(1, 5)),
    ]
    return draw(st.one_of(kinds))


@given(mechanisms())
def test_repr_reads_back(mechanism: Mechanism) -> None:
    assert parse(repr(mechanism)) == mechanism


@pytest.mark.parametrize(
    ("text", "mechanism"),
    [
        ("Gaussian(standard_deviation=1.1)", Gaussian("1.1")),  # as written, not the binary float
        ("Gaussian(standard_deviation='256/60000')", Gaussian("256/60000")),
        ('Gaussian(standard_deviation="1e-300", l2_sensitivity=2)', Gaussian("1e-300", 2)),
        (" Gaussian( standard_deviation = 'sqrt(2)' ) ", Gaussian("sqrt(2)")),
        ("Laplace(scale=1e400)", Laplace("1e400")),  # no float has this value
        ("LaplaceVector(scale=1, shifts=[1, -2, '1/3'])", LaplaceVector(1, [1, -2, "1/3"])),
        (
            "PoissonSubsampled(Gaussian(1.1), 256 / 60000)",
            PoissonSubsampled(Gaussian("1.1"), "256/60000"),
        ),
        ("Gaussian(float(1.1), float(0.1))", Gaussian(1.1, 0.1)),
        ("Gaussian('float(1.1)')", Gaussian(1.1)),
        ("LaplaceVector(1, [float(-0.1), 'float(1/3)'])", LaplaceVector(1, [-0.1, 1 / 3])),
        ("LaplaceVector(1, [-1/3, 0.5/2])", LaplaceVector(1, ["-1/3", "1/4"])),
        ("LaplaceVector(\n  scale=1,\n  shifts=[1],\n)", LaplaceVector(1, [1])),
    ],
)
def test_parses(text: str, mechanism: Mechanism) -> None:
    assert parse(text) == mechanism


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expected a mechanism, not ''"),
        ("Gaussian", "Gaussian needs standard_deviation"),
        ("Gaussian(", "Expected a mechanism, not"),
        ("Gaussian(standard_deviation=1e-3x)", "Expected a mechanism, not"),
        ("Gaussian(standard_deviation=1)\n", None),
        ("Gaussian(standard_deviation=1); Laplace(scale=1)", "Expected a mechanism, not"),
        ("Gausian(standard_deviation=1)", "Unknown mechanism 'Gausian'. Did you mean 'Gaussian'?"),
        ("gaussian(standard_deviation=1)", "Did you mean 'Gaussian'?"),
        ("Gaussian(sigma=1)", "no argument 'sigma'. Did you mean 'standard_deviation'?"),
        ("Gaussian(standard_dev=1)", "Did you mean 'standard_deviation'?"),
        ("DiscreteGaussian(sigma=1)", "Did you mean 'parameter', the square of sigma?"),
        ("GaussianMechanism(1)", "Did you mean 'Gaussian'?"),
        ("SVT(1, 1)", "Did you mean 'AboveThreshold'?"),
        ("Gaussian()", "Gaussian needs standard_deviation. Arguments: standard_deviation, l2_"),
        ("Gaussian(1, 2, 3)", "Gaussian has 2 arguments, not 3. Arguments: standard_deviation, l2"),
        ("Gaussian(1, standard_deviation=2)", "Argument 'standard_deviation' of Gaussian is given"),
        ("Gaussian(1)", None),
        ("Gaussian(standard_deviation=1, standard_deviation=2)", "twice|Expected a mechanism"),
        ("Gaussian(**{'standard_deviation': 1})", "Expected a number, a string, a list"),
        ("Gaussian(*[1])", "not '*[1]'"),
        ("Gaussian(standard_deviation=1+1)", "not '1+1'. The notation is never evaluated"),
        ("Gaussian(standard_deviation=2**9999999999)", "never evaluated"),
        (
            "Gaussian(standard_deviation=__import__('os').system('true'))",
            "The notation is never evaluated",
        ),
        ("Gaussian(standard_deviation=1/2/3)", "not '1/2/3'. The notation is never evaluated"),
        ("Gaussian(standard_deviation=1/(2+3))", "never evaluated"),
        ("Gaussian(standard_deviation='1'/2)", "never evaluated"),
        ("Gaussian(standard_deviation=True/2)", "'True/2' to be a number"),
        ("Gaussian(standard_deviation=1/0)", "a denominator other than 0"),
        ("Gaussian(standard_deviation=exp(1))", "text in quotes"),
        ("Gaussian(float(1e400))", "to be finite"),
        ("Gaussian(float(x))", "Unknown mechanism 'float'"),
        ("Gaussian(float(sqrt(2)))", "Unknown mechanism 'float'"),
        ("Gaussian('float(sqrt(2))')", "to be a number"),
        ("Gaussian(standard_deviation=x)", "not 'x'. The notation is never evaluated"),
        ("Gaussian(standard_deviation=f'{1}')", "never evaluated"),
        ("Gaussian(standard_deviation=[x for x in [1]])", "never evaluated"),
        ("Gaussian(standard_deviation={1})", "never evaluated"),
        ("Gaussian(standard_deviation=1j)", "never evaluated"),
        ("Gaussian(standard_deviation=--1)", "never evaluated"),
        ("Gaussian(standard_deviation=0x10)", "standard_deviation='0x10' to be a number"),
        ("Gaussian(standard_deviation=1_000)", "standard_deviation='1_000' to be a number"),
        ("Gaussian(standard_deviation=True)", "not a truth value"),
        ("Gaussian(standard_deviation=None)", "not NoneType"),
        ("Gaussian(standard_deviation='1e-3x')", "standard_deviation='1e-3x' to be a number"),
        ("Gaussian(standard_deviation=-1)", "Expected standard_deviation='-1' > 0"),
        ("Gaussian(standard_deviation=[1])", "to be a number, not list"),
        ("Gaussian(standard_deviation=Laplace(scale=1))", "to be a number, not Laplace"),
        ("a.Gaussian(standard_deviation=1)", "not 'a.Gaussian'"),
        ("(lambda: 0)()", "never evaluated"),
        ("Gaussian(standard_deviation='\0')", "Expected"),
        ("Laplace(scale=" + "[" * 5000 + "]" * 5000 + ")", "Expected a mechanism, not"),
        ("Laplace(scale=" + "-" * 100_000 + "1)", "Expected"),
        ("Laplace(scale=" + "9" * 1_000_001 + ")", "at most 1000000 characters"),
    ],
)
def test_refuses(text: str, message: str | None) -> None:
    if message is None:
        assert parse(text) == Gaussian(1)
        return
    pattern = message if "|" in message else re.escape(message)
    with pytest.raises(InvalidInputError, match=pattern) as caught:
        parse(text)
    assert len(str(caught.value)) < 1000


def test_every_description_states_its_arguments() -> None:
    for name in DESCRIPTIONS:
        arguments = notation.argument_names(name)
        assert arguments
        assert all(argument.islower() for argument in arguments)
