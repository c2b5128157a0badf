"""Tables with zeros, with losses of one sign or of one size: where a grid's window is short."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from accountant.composition.grid.bracket import bounds
from accountant.composition.grid.product import GRID
from accountant.composition.product import Product
from accountant.core.pair import Pair
from accountant.mechanisms import Tabulated
from accountant.numbers.exact import exact

Masses = tuple[list[Fraction], list[Fraction]]


def table(p: str, q: str) -> Masses:
    return [Fraction(each) for each in p.split()], [Fraction(each) for each in q.split()]


def hockey_stick(tables: list[Masses], epsilon: Fraction) -> float:
    """Sum over all joint outcomes."""
    factor, found = math.exp(epsilon), 0.0
    for outcome in itertools.product(*[list(zip(*each, strict=True)) for each in tables]):
        p, q = (math.prod(side) for side in zip(*outcome, strict=True))
        found += max(float(p) - factor * float(q), 0.0)
    return found


def assert_bounded(tables: list[Masses], epsilon: Fraction) -> None:
    factors: dict[Pair, int] = {}
    for each in tables:
        pair = Tabulated(*each).worst_case(None).remove[0]
        factors[pair] = factors.get(pair, 0) + 1
    low, high = bounds(Product(tuple(factors.items()), GRID), exact(epsilon), 4096)
    slack = arb("1e-12")  # of the sum in doubles
    truth = arb(hockey_stick(tables, epsilon))
    assert low - slack <= truth <= high + slack


@pytest.mark.parametrize(
    ("tables", "epsilon"),
    [
        # Q alone has an outcome: a large loss is no sign of a large sum
        ([table("2/3 1/3 0", "1/9 4/9 4/9")] * 2, "-3/8"),
        # all losses are positive: that of the large one itself counts once
        ([table("2/3 0 1/3", "2/5 1/2 1/10")] * 2, "9/8"),
        # the window begins above epsilon
        ([table("1/3 2/3", "6/11 5/11")] * 2, "-1"),
        # all sums are 0, the losses are not
        ([table("1/2 1/2 0", "1/4 1/2 1/4")] * 3, "1/4"),
        ([table("1/3 2/3", "1 0"), table("0 1", "2/3 1/3")] * 2, "-5/8"),
        ([table("1 0", "1/2 1/2")] * 2, "5/8"),
    ],
)
def test_a_short_window_bounds_what_it_leaves_out(tables: list[Masses], epsilon: str) -> None:
    assert_bounded(tables, Fraction(epsilon))


laws = st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any)


@given(st.lists(st.tuples(laws, laws), min_size=1, max_size=2), st.fractions(-1, 3))
def test_bounds_contain_the_sum(weights: list[tuple[list[int], list[int]]], eps: Fraction) -> None:
    tables = [
        ([Fraction(x, sum(p)) for x in p], [Fraction(x, sum(q)) for x in q]) for p, q in weights
    ]
    assert_bounded(tables * 2, eps)
