"""Searches by a property: both ends keep their sides, and integers are found exactly."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant.numbers.solve import first, halved


@given(st.fractions(0, 1), st.integers(1, 40))
def test_halved_keeps_the_change_between_its_ends(change: Fraction, steps: int) -> None:
    low, high = halved(lambda at: at < change, Fraction(-1), Fraction(2), steps)
    assert low <= change <= high
    assert high - low == Fraction(3, 2**steps)


def test_halved_floats_end_next_to_each_other_or_at_a_relative_width() -> None:
    low, high = halved(lambda at: at * at < 2, 0.0, 2.0)
    assert low <= 2**0.5 <= high
    assert high - low < 1e-15
    low, high = halved(lambda at: at * at < 2, 0.0, 2.0, width=1e-3)
    assert 1e-4 * high < high - low <= 1e-3 * high


@given(st.integers(-(10**9), 10**9), st.integers(-100, 100))
def test_first_is_the_least(least: int, start: int) -> None:
    assert first(lambda n: n >= least, start) == least
