from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.core.adjacency import Direction
from accountant.mechanisms.wrappers.tabulated import Tabulated
from accountant.numbers.interval import Interval
from accountant.questions import guarantees, tradeoff

SKEWED = Tabulated(["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"])
WITH_ZEROS = Tabulated(["1/3", "2/3", 0], [0, "1/3", "2/3"])


def test_total_variation_is_exact() -> None:
    assert Fraction(1, 3) in guarantees.total_variation(SKEWED)
    width = guarantees.total_variation(SKEWED).relative_width
    assert width is not None
    assert width <= Fraction(1, 10**30)


@pytest.mark.parametrize("alpha", ["1/3", "1/2", "0.999"])
def test_no_type_two_error_once_all_of_p_can_be_rejected(alpha: str) -> None:
    assert tradeoff.beta(WITH_ZEROS, alpha, direction=Direction.REMOVE) == Interval.of_exact(0)
    assert tradeoff.power(WITH_ZEROS, alpha, direction=Direction.REMOVE) == Interval.of_exact(1)


masses = st.lists(st.integers(0, 20), min_size=2, max_size=6)


def law(weights: list[int]) -> list[Fraction]:
    return [Fraction(weight, sum(weights)) for weight in weights]


@given(masses, st.data())
def test_trade_off_is_the_exact_linear_program(first: list[int], data: st.DataObject) -> None:
    """Neyman–Pearson in fractions: reject outcomes by falling p/q until the level is spent."""
    second = data.draw(st.lists(st.integers(0, 20), min_size=len(first), max_size=len(first)))
    if not sum(first) or not sum(second):
        return
    p, q = law(first), law(second)
    corners = [sum(q[:i], start=Fraction(0)) for i in range(len(q) + 1)]
    alpha = data.draw(st.one_of(st.sampled_from(corners), st.fractions(0, 1, max_denominator=50)))
    left, power = alpha, Fraction(0)
    order = sorted(
        range(len(p)), key=lambda i: (q[i] == 0, p[i] / q[i] if q[i] else 0), reverse=True
    )
    for i in order:
        share = min(Fraction(1), left / q[i]) if q[i] else Fraction(1)
        power += share * p[i]
        left -= share * q[i]
    value = tradeoff.beta(Tabulated(p, q), alpha, direction=Direction.REMOVE)
    assert 1 - power in value
    if power != 1:
        assert value.relative_width is not None
        assert value.relative_width <= Fraction(1, 10**30)
    else:
        assert value.upper == 0
    assert power in tradeoff.power(Tabulated(p, q), alpha, direction=Direction.REMOVE)
