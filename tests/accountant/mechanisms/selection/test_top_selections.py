"""The best few candidates against all orders of few ones."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import dpassay
from accountant.errors import InvalidInputError
from accountant.mechanisms import Composed, ExponentialMechanism, TopSelections
from accountant.questions import guarantees, profile

FALSE_ALARM = 1e-6
SPARE = 1e-9
"""Relative: for sums in floats."""
scores = st.floats(-8, 8)


def law(values: list[float], factor: float, selected: int) -> dict[tuple[int, ...], float]:
    """Return the probability of every order, by selections one after the other."""
    weights = np.exp(factor * (np.array(values) - max(values)))
    found = {}
    for order in itertools.permutations(range(len(values)), selected):
        p, left = 1.0, float(weights.sum())
        for i in order:
            p *= weights[i] / left
            left -= weights[i]
        found[order] = p
    return found


@functools.cache
def upper_ends(epsilon: float, monotone: bool) -> tuple[float, float]:
    """Return the upper ends of δ(ε) and of the divergence of order 3."""
    about = TopSelections(1, 2, monotone=monotone)
    return float(profile.delta(about, epsilon).upper), float(guarantees.renyi(about, 3).upper)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(scores, st.floats(-1, 1), st.floats(0, 1)), min_size=3, max_size=5),
    st.sampled_from([-0.7, 0.0, 0.4]),
    st.booleans(),
)
def test_no_neighbouring_scores_are_worse(
    candidates: list[tuple[float, float, float]], share: float, monotone: bool
) -> None:
    before = [score for score, _, _ in candidates]
    after = [score + (up if monotone else move) for score, move, up in candidates]
    factor = 1.0 if monotone else 0.5
    p, q = (np.array([*law(side, factor, 2).values()]) for side in (after, before))
    delta, renyi = upper_ends(2 * share, monotone)
    most = float(np.maximum(p - math.exp(2 * share) * q, 0).sum())
    assert most <= delta * (1 + SPARE)
    divergence = math.log(float(np.sum(p**3 / q**2))) / 2
    assert divergence <= renyi * (1 + SPARE)


def test_many_candidates_of_two_scores_are_about_as_bad_as_independent_selections() -> None:
    about, n = TopSelections(1, 2), 2000
    for odds in (0.3, 1.0, 3.0):  # of the candidates that rise, under Q
        sides = []
        for weight in (odds * math.e, odds):
            found = {}
            for first, second in itertools.product((0, 1), repeat=2):
                each = np.array([1.0, weight]) / n  # n candidates of each score
                left = np.array([1.0, weight])
                chance = left[first] / left.sum()
                left[first] -= each[first]
                found[first, second] = chance * left[second] / left.sum()
            sides.append(np.array([*found.values()]))
        attained = float(np.maximum(sides[0] - math.exp(0.5) * sides[1], 0).sum())
        assert attained <= float(profile.delta(about, "1/2").upper)
        if odds == 0.3:
            assert attained > 0.7 * float(profile.delta(about, "1/2").lower)


def test_selections_have_their_probabilities() -> None:
    about, given_scores, size = TopSelections(2, 2), [0.0, 1.0, -1.0, 0.5], 3000
    drawn = about.release(given_scores, size, rng=np.random.default_rng(3))
    assert drawn.shape == (size, 2)
    expected = law(given_scores, 1.0, 2)
    counts = [int((drawn == order).all(axis=1).sum()) for order in expected]
    assert chisquare(counts, np.array([*expected.values()]) * size).pvalue > FALSE_ALARM
    assert [int(i) for i in about.release([0, 10**6, 5 * 10**5])] == [1, 2]


def test_several_selections_compose() -> None:
    twice = profile.delta(Composed(TopSelections(1, 2), 2), 1)
    four = profile.delta(Composed(ExponentialMechanism(1), 4), 1)
    assert 0.9 * float(four.lower) < twice.lower < twice.upper <= float(four.upper) * (1 + SPARE)
    assert dpassay.verify(TopSelections("1/2", 3), epsilon="3/2").verdict.value == "HOLDS"


@pytest.mark.parametrize(("selected", "bad"), [(2, [1, 2]), (1, [3]), (3, [1, 2, 3])])
def test_too_few_scores_are_named(selected: int, bad: list[float]) -> None:
    with pytest.raises(InvalidInputError, match=r"value|scores"):
        TopSelections(1, selected).release(bad)
    with pytest.raises(InvalidInputError, match="selected"):
        TopSelections(1, 10**6)
