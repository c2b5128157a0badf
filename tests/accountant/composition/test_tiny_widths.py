"""Widths far below what anyone needs: answered, or refused soon with what was reached."""

from __future__ import annotations

from fractions import Fraction

import pytest

import dpassay
from accountant.errors import UndecidedError
from tests.quick import quick

STEP = dpassay.PoissonSubsampled(dpassay.Gaussian(standard_deviation="1.1"), "256/60000")


@pytest.mark.slow
@pytest.mark.parametrize("count", quick([2, 7032], 1))
@pytest.mark.parametrize(
    ("question", "at"), quick([(dpassay.delta, "1"), (dpassay.epsilon, "1e-5")], 0)
)
def test_three_hundred_digits_are_refused(count: int, question: object, at: str) -> None:
    """They took more than a hundred seconds, without an end."""
    assert callable(question)
    releases = dpassay.Composed(STEP, count)
    near = question(releases, at, adjacency="add-remove")
    with pytest.raises(UndecidedError, match="Reached ") as refusal:
        question(releases, at, adjacency="add-remove", relative_width=Fraction(1, 10**300))
    found = refusal.value.interval
    assert found is not None
    assert near.overlaps(dpassay.Interval(found.lower, found.upper))
    assert f"Reached {dpassay.Interval(found.lower, found.upper)}" in str(refusal.value)


@pytest.mark.slow
def test_thirty_digits_of_epsilon() -> None:
    releases = dpassay.Composed(STEP, 7032)
    width = Fraction(1, 10**30)
    epsilon = dpassay.epsilon(releases, "1e-5", adjacency="add-remove", relative_width=width)
    assert epsilon.relative_width is not None
    assert 0 < epsilon.relative_width <= width
    assert epsilon.overlaps(dpassay.epsilon(releases, "1e-5", adjacency="add-remove"))
    for end in (epsilon.lower, epsilon.upper):
        delta = dpassay.delta(releases, end, adjacency="add-remove", relative_width=width)
        assert abs(Fraction(delta.lower) - Fraction(1, 10**5)) < Fraction(1, 10**33)
