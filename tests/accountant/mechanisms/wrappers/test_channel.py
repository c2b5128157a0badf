from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant import notation
from accountant.core.adjacency import Adjacency
from accountant.errors import AdjacencyError, InvalidInputError, NotApplicableError
from accountant.mechanisms import Channel, Composed, RandomizedResponse, Tabulated
from accountant.numbers.exact import exact
from accountant.questions import profile

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


def test_random_responses_are_one_pair_and_compose_exactly() -> None:
    made = Channel([[Fraction(1 + 2 * (i == j), 6) for j in range(4)] for i in range(4)])
    assert len(made.worst_case(None).remove) == 1
    found = profile.delta(Composed(made, 10), 1)
    # odds 3 : 1 of the true category: e^epsilon = 3, which is not rational
    near = profile.delta(Composed(RandomizedResponse(exact("1.0986122886681098"), 4), 10), 1)
    assert abs(Fraction(found.lower) - Fraction(near.lower)) < Fraction(1, 10**14)
    assert found.relative_width is not None
    assert found.relative_width < Fraction(1, 10**9)


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
    assert Channel(np.array([[0.5, 0.5], [0.25, 0.75]])).matrix[1] == (  # type: ignore[arg-type]
        Fraction(1, 4),
        Fraction(3, 4),
    )
    with pytest.raises(AdjacencyError, match="one record"):
        THREE.worst_case(Adjacency.ADD_REMOVE)
    with pytest.raises(NotApplicableError, match="names"):
        THREE.variances()
