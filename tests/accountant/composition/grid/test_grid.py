"""Two-sided discretisation: it contains the exact value wherever another engine knows it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb

from accountant.composition.grid.bracket import POINTS, bounds
from accountant.composition.product import Product
from accountant.core.adjacency import Direction
from accountant.core.mechanism import Mechanism
from accountant.errors import InvalidInputError, NotApplicableError, UndecidedError
from accountant.mechanisms import (
    Composed,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
    Staircase,
    Tabulated,
)
from accountant.numbers.exact import exact
from accountant.questions import methods, profile
from tests.quick import quick

STAIRCASE = Staircase(epsilon=1, gamma="1/3")
EXACT: list[tuple[Mechanism, str, float]] = [
    (Composed(Laplace(scale=10), 100), "1", 2e-3),
    (Composed(Laplace(scale=10), 100), "8", 1e-2),
    (Composed(Laplace(scale=10), 10), "-1/2", 2e-3),
    (Composed(Gaussian(standard_deviation=10), 100), "1", 1e-2),
    (Composed(RandomizedResponse(epsilon="0.1"), 1000), "10", 1e-8),
    (Composed(RandomizedResponse(epsilon="0.1"), 1000), "99", 1e-6),
    (Composed(DiscreteLaplace(scale=10, sensitivity=3), 50), "2", 0.5),
    (Composed(STAIRCASE, 20), "10", 1e-2),
    (Composed([Laplace(scale=4), RandomizedResponse(epsilon="0.3")], 5), "1", 0.5),
]


def contains(lower: arb, upper: arb, value: arb) -> bool:
    return bool(lower.lower() <= value.upper() and value.lower() <= upper.upper())


@pytest.mark.parametrize(("mechanism", "epsilon", "width"), EXACT)
def test_contains_the_exact_value(mechanism: Mechanism, epsilon: str, width: float) -> None:
    (pair,) = methods.pairs_of(mechanism, "grid", None)
    assert isinstance(pair, Product)
    lower, upper = bounds(pair, exact(epsilon), POINTS[0])
    true = profile.delta(mechanism, epsilon)
    assert contains(lower, upper, true.ball())
    assert float((upper - lower) / lower) < width
    without_a_width = pair.hockey_stick(exact(epsilon))
    assert contains(without_a_width, without_a_width, true.ball())


@pytest.mark.parametrize("mechanism", [EXACT[0][0], EXACT[6][0]])
def test_both_engines_find_the_same_epsilon(mechanism: Mechanism) -> None:
    for delta in ("0.2", "1e-6", "1e-40"):
        by_grid = profile.epsilon(mechanism, delta, method="grid", relative_width=Fraction(1, 5))
        by_sum = profile.epsilon(mechanism, delta, method="exact")
        assert by_grid.lower <= by_sum.upper
        assert by_sum.lower <= by_grid.upper


def test_composed_asks_the_grid_where_no_formula_is_known() -> None:
    mixed = Composed([Laplace(scale=5), Gaussian(standard_deviation=4)], 3)
    value = profile.delta(mixed, 1, relative_width=Fraction(1, 1000))
    assert value.relative_width is not None
    assert 0 < value.relative_width <= Fraction(1, 1000)
    epsilon = profile.epsilon(mixed, value.upper, relative_width=Fraction(1, 1000))
    assert epsilon.lower <= 1
    assert abs(float(epsilon.upper) - 1) < 2e-3
    beyond = Composed([Laplace(scale=5), PoissonSubsampled(Laplace(scale=2), "1/2")], 2)
    assert str(profile.delta(beyond, 3, adjacency="add-remove")) == "0"
    tails = mixed.worst_case(None).remove[0].tails(exact(1))
    assert tails.p_above > tails.q_above
    assert tails.p_above - arb(1).exp() * tails.q_above < value.ball() + arb("0.01")


def test_masses_at_infinity_stay_there() -> None:
    leaky = Tabulated(p=["1/2", "2/5", "1/10"], q=["3/5", "2/5", 0])
    whole = Composed(leaky, 3)
    (pair,) = methods.pairs_of(whole, "grid", None)[:1]
    assert isinstance(pair, Product)
    true = profile.delta(whole, "1/10", direction=Direction.REMOVE).ball()
    lower, upper = bounds(pair, exact("1/10"), POINTS[0])
    assert contains(lower, upper, true)
    assert lower > 1 - arb("0.9") ** 3 - arb("1e-6")


def test_refusals_say_what_was_reached_and_what_more_would_take() -> None:
    sampled = Composed(PoissonSubsampled(Laplace(scale=5), "0.1"), 3)
    with pytest.raises(UndecidedError, match=r"Reached delta in .* points are the most") as caught:
        profile.delta(
            sampled, "0.03", adjacency="add-remove", method="grid", relative_width="1e-30"
        )
    mixed = Composed([Laplace(scale=5), Gaussian(standard_deviation=4)], 3)
    assert "larger relative_width" in str(caught.value)
    with pytest.raises(NotApplicableError, match="'fourier' or 'grid'"):
        profile.delta(mixed, 1, method="exact")
    with pytest.raises(InvalidInputError, match="fourier"):
        profile.delta(mixed, 1, method="saddle")
    assert str(profile.epsilon(mixed, 0, method="grid")) == "Infinity"


def test_losses_that_are_surely_infinite() -> None:
    mechanism = Composed(Tabulated([1, 0], [0, 1]), 2)
    found = profile.delta(mechanism, "1/7", method="grid", relative_width=Fraction(1, 2))
    assert found.lower == found.upper == 1


@pytest.mark.parametrize("count", quick([100, 10**4], 1))
def test_losses_beyond_all_grids_are_refused(count: int) -> None:
    """They were a NaN."""
    many = Composed(Gaussian(standard_deviation="0.3"), count)
    for ask, at in ((profile.delta, "0.2"), (profile.epsilon, "1e-5")):
        with pytest.raises(UndecidedError):
            ask(many, at, method="grid", relative_width="1e-3")
