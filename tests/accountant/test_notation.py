from __future__ import annotations

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


@pytest.mark.parametrize("text", ["Gaussian(standard_deviation=1)\n", "Gaussian(1)"])
def test_names_of_arguments_and_ends_of_lines_may_be_left_out(text: str) -> None:
    assert parse(text) == Gaussian(1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Gaussian(standard_deviation='\0')", "Expected"),
        ("Laplace(scale=" + "[" * 5000 + "]" * 5000 + ")", "Expected a mechanism, not"),
        ("Laplace(scale=" + "-" * 100_000 + "1)", "Expected"),
        ("Laplace(scale=" + "9" * 1_000_001 + ")", "at most 1000000 characters"),
    ],
    ids=["zero byte", "brackets", "signs", "digits"],
)
def test_refuses_long_texts_in_few_words(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        parse(text)
    assert len(str(caught.value)) < 1000


def test_every_description_states_its_arguments() -> None:
    for name in DESCRIPTIONS:
        arguments = notation.argument_names(name)
        assert arguments
        assert all(argument.islower() for argument in arguments)
