"""Laws of few outcomes: tables, randomised response, channels, guarantees."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant import notation
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import (
    Channel,
    Composed,
    Guaranteed,
    RandomizedResponse,
    Tabulated,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.questions import profile, tradeoff
from tests.near import mpf, narrow

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
        assert narrow(value, Fraction(1, 10**30))
    else:
        assert value.upper == 0
    assert power in tradeoff.power(Tabulated(p, q), alpha, direction=Direction.REMOVE)


@pytest.mark.parametrize("epsilon", ["0.2", "1", "30"])
@pytest.mark.parametrize("categories", [2, 3, 10**9])
def test_profile_is_the_sum_over_the_reports(epsilon: str, categories: int) -> None:
    mechanism = RandomizedResponse(epsilon, categories)
    for at in ("-40", "-0.1", "0", "0.1", "0.19"):
        delta = profile.delta(mechanism, at)
        with mpmath.workdps(60):
            odds, factor = mpmath.exp(exact(epsilon).mpf()), mpmath.exp(exact(at).mpf())
            p = [odds, mpmath.mpf(1), mpmath.mpf(categories - 2)]
            q = [mpmath.mpf(1), odds, mpmath.mpf(categories - 2)]
            terms = [max(a - factor * b, mpmath.mpf(0)) for a, b in zip(p, q, strict=True)]
            expected = sum(terms) / (odds + categories - 1)
            assert abs(mpf(delta) - expected) <= mpmath.mpf("1e-30") * expected
        assert narrow(delta, Fraction(1, 10**30))


THREE = Channel([["3/4", "1/4", 0], ["1/4", "1/2", "1/4"], [0, "1/4", "3/4"]])
matrices = st.integers(2, 4).flatmap(
    lambda columns: st.lists(
        st.lists(st.integers(0, 9), min_size=columns, max_size=columns).filter(any),
        min_size=2,
        max_size=4,
    )
)


def channel(weights: list[list[int]]) -> Channel:
    return Channel([[Fraction(entry, sum(row)) for entry in row] for row in weights])


@given(matrices, st.fractions(0, 3))
def test_the_profile_is_the_largest_of_all_ordered_pairs_of_rows(
    weights: list[list[int]], epsilon: Fraction
) -> None:
    made = channel(weights)
    pairs = [Tabulated(p, q) for p, q in itertools.permutations(made.matrix, 2)]
    each = [profile.delta(pair, epsilon) for pair in pairs]
    found = profile.delta(made, epsilon)
    assert found.lower == max(one.lower for one in each)
    assert found.upper == max(one.upper for one in each)


@pytest.mark.slow
def test_several_worst_pairs_compose_to_an_enclosure_of_every_choice() -> None:
    made = Channel([["1/2", "1/2"], ["1/4", "3/4"], ["1/3", "2/3"]])
    found = profile.delta(Composed(made, 10), "1/2")
    for p, q in itertools.permutations(made.matrix, 2):
        assert profile.delta(Composed(Tabulated(p, q), 10), "1/2").lower <= found.upper
    pair = profile.delta(Composed(Tabulated(made.matrix[0], made.matrix[1]), 10), "1/2")
    assert Fraction(found.lower) >= Fraction(pair.lower) * Fraction(99, 100)
    assert Fraction(found.upper) <= Fraction(pair.upper) * Fraction(5, 4)


def test_reports_have_the_row_of_their_input() -> None:
    rng = np.random.default_rng(5)
    inputs = np.repeat([0, 2], 40_000)
    reports = THREE.release(inputs, rng=rng)
    assert reports.shape == inputs.shape
    for entry, law in ((0, [30_000, 10_000, 0]), (2, [0, 10_000, 30_000])):
        counted = np.bincount(reports[inputs == entry], minlength=3)
        # six standard deviations, 6 sqrt(40000·3/16) < 520: a false alarm below 1e-6
        assert (np.abs(counted - law) < 520).all()
    assert THREE.release([1, 0, 2], 3).shape == (3, 3)
    with pytest.raises(InvalidInputError, match=r"value\[1\]=3 in 0\.\.2"):
        THREE.release([0, 3])


def test_notation_and_arrays() -> None:
    assert notation.parse(repr(THREE)) == THREE
    assert Channel(np.array([[0.5, 0.5], [0.25, 0.75]])).matrix[1] == (
        Fraction(1, 4),
        Fraction(3, 4),
    )


def test_a_graph_lists_the_neighbours() -> None:
    """A path: only rows that are next to each other count, in both orders."""
    path = Channel(THREE.matrix, [[2, 1], [0, 1], [0, 1]])
    assert notation.parse(repr(path)) == path
    pairs = [Tabulated(*rows) for rows in itertools.pairwise(THREE.matrix)]
    for epsilon in ("0", "1/2", "1"):
        assert profile.delta(path, epsilon) == profile.delta(pairs[0], epsilon)
    assert profile.delta(THREE, 1).lower > profile.delta(path, 1).upper
    assert path.worst_case(Adjacency.ADD_REMOVE) == path.worst_case(None)
    assert set(path.worst_answers()) <= {(0, 1), (1, 0), (1, 2), (2, 1)}


def test_it_has_the_guarantee_and_no_better_one() -> None:
    one = Guaranteed(epsilon="1.5", delta="1e-3")
    with ctx.workprec(128):  # below −ε all outcomes but those of P alone count against P
        assert profile.delta(one, -2).ball().overlaps(1 - arb(-2).exp() * (1 - arb(1) / 1000))
    assert Fraction(1, 1000) in profile.delta(one, "1.5")
    assert profile.delta(one, "1.499").lower > Fraction(1, 1000)
    assert str(profile.epsilon(one, "1e-3")) == "1.5"
    assert profile.epsilon(one, "0.999e-3").lower == float("inf")
