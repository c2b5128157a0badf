"""The two-sided grid: against exact values, and the laws that are listed for it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

import dpassay
from dpassay.accountant.composition import tails as survival
from dpassay.accountant.composition.lattice import GRID, POINTS, Place, below, bracket_bounds
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Logistic,
    PoissonSubsampled,
    RandomizedResponse,
    Staircase,
    Tabulated,
    TruncatedLaplace,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.discrete import DiscreteGaussianPair
from dpassay.accountant.questions import profile
from dpassay.accountant.questions import profile as methods
from tests.near import narrow
from tests.quick import slow

STAIRCASE = Staircase(epsilon=1, gamma="1/3")
UNEVEN = Tabulated(
    p=["257/1341", "280/1341", "405/1341", "399/1341"],
    q=["293/1353", "461/1353", "263/1353", "336/1353"],
)
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
    lower, upper = bracket_bounds(pair, exact(epsilon), POINTS[0])
    true = profile.delta(mechanism, epsilon)
    assert contains(lower, upper, true.ball())
    assert float((upper - lower) / lower) < width
    without_a_width = pair.hockey_stick(exact(epsilon))
    assert contains(without_a_width, without_a_width, true.ball())


def test_the_line_of_all_losses_lowers_no_value_behind_it_much() -> None:
    """Of rare records nearly all mass is in one cell, and H is small from there on."""
    law = survival.sampled_gaussian(1.6, 1e-6, 1 - 1e-6, mixed_first=True)
    found = below(law, Place(2.5e-7, 4e-7, np.arange(-4, 4000)), 0.0)
    assert found is not None
    losses = found.origin + found.index * 4e-7
    shares = np.maximum(-np.expm1(-losses), 0.0)
    tail = law(np.zeros(1))
    assert found.masses @ shares > 0.99 * float(tail.above_p[0] - tail.above_q[0])


@pytest.mark.parametrize("mechanism", [EXACT[0][0], EXACT[6][0]])
def test_both_engines_find_the_same_epsilon(mechanism: Mechanism) -> None:
    for delta in ("0.2", "1e-6", "1e-40"):
        by_grid = profile.epsilon(mechanism, delta, method="grid", relative_width=Fraction(1, 5))
        by_sum = profile.epsilon(mechanism, delta, method="exact")
        assert by_grid.lower <= by_sum.upper
        assert by_sum.lower <= by_grid.upper


@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [
        (Composed([Composed(Laplace(scale=11), 2), Composed(Logistic(scale=26), 20)]), "0.12"),
        (Composed(TruncatedLaplace(scale=291, bound=9400), 100_000), "0"),
        slow(Composed([RandomizedResponse(epsilon="1e-9"), Laplace(scale=1)]), "0.5"),
        slow(
            Composed([Composed(RandomizedResponse(epsilon="0.3183"), 5), Composed(UNEVEN, 2)]),
            "0.3",
        ),
    ],
)
def test_widths_where_atoms_lie_between_points_or_releases_are_many(
    mechanism: Mechanism, epsilon: str
) -> None:
    width = Fraction(1, 10**6)
    found = profile.delta(mechanism, epsilon, method="grid", relative_width=width)
    assert (found.relative_width or 1) <= width


@pytest.mark.parametrize(("delta", "epsilon"), [("1e-4", "0.125924"), ("1e-6", "0.386332")])
def test_cells_are_joined_by_the_losses_that_are_not_cut_off(delta: str, epsilon: str) -> None:
    """Thirty different samples, of which one large loss is enough: all larger ones are cut off."""
    releases = [
        PoissonSubsampled(Gaussian(standard_deviation=Fraction(10 + i, 10)), "0.01")
        for i in range(30)
    ]
    pair = Composed(releases).worst_case(Adjacency.ADD_REMOVE).pairs(Direction.REMOVE)[0]
    assert isinstance(pair, Product)
    lower, upper = bracket_bounds(pair, exact(epsilon), POINTS[1])
    assert lower < upper < 1.0003 * lower
    assert float(upper) == pytest.approx(float(delta), rel=1e-3, abs=0)


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
    lower, upper = bracket_bounds(pair, exact("1/10"), POINTS[0])
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
    with pytest.raises(NotApplicableError, match="'auto' or 'fourier' or 'grid'"):
        profile.delta(mixed, 1, method="exact")
    with pytest.raises(InvalidInputError, match="fourier"):
        profile.delta(mixed, 1, method="saddle")
    assert str(profile.epsilon(mixed, 0, method="grid")) == "Infinity"


@pytest.mark.parametrize("count", [slow(100), 10**4])
def test_losses_beyond_all_grids_are_refused(count: int) -> None:
    """They were a NaN."""
    many = Composed(Gaussian(standard_deviation="0.3"), count)
    for ask, at in ((profile.delta, "0.2"), (profile.epsilon, "1e-5")):
        with pytest.raises(UndecidedError):
            ask(many, at, method="grid", relative_width="1e-3")


LOSSES = np.array([-40.0, -3.0, -0.26, -0.25, 0.0, 0.1, 0.25, 1.0, 1.75, 7.0, 60.0, 500.0])


@pytest.mark.parametrize(("parameter", "shift"), [("1/3", 1), ("2", 1), ("20", 3), ("90000", 1)])
def test_tails_are_those_of_balls(parameter: str, shift: int) -> None:
    pair = DiscreteGaussianPair(exact(parameter), shift)
    known = survival.discrete_gaussian(float(Fraction(parameter)), shift)
    assert known is not None
    tail = known(LOSSES)
    with ctx.workprec(256):
        for i, loss in enumerate(LOSSES):
            at = exact(Fraction(float(loss)))
            true = pair.tails(at)
            above_q = true.q_above * at.ball().exp()
            assert abs(true.p_above - tail.above_p[i]) <= tail.error_p[i]
            assert abs(above_q - tail.above_q[i]) <= tail.error_q[i]
            gap = true.p_above - above_q
            assert gap <= tail.above_p[i] - tail.above_q[i] + tail.error_p[i] + tail.error_q[i]
    body = (tail.above_p > 1e-9) & (LOSSES > -5)
    assert np.all(tail.error_p[body] <= 1e-11 * tail.above_p[body])


def test_a_law_too_wide_for_a_table_is_left_to_balls() -> None:
    assert survival.discrete_gaussian(1e9, 1) is None


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
    low, high = bracket_bounds(Product(tuple(factors.items()), GRID), exact(epsilon), 4096)
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
        pytest.param(
            [table("1/3 2/3", "1 0"), table("0 1", "2/3 1/3")] * 2, "-5/8", marks=pytest.mark.slow
        ),
        ([table("1 0", "1/2 1/2")] * 2, "5/8"),
    ],
)
def test_a_short_window_bounds_what_it_leaves_out(tables: list[Masses], epsilon: str) -> None:
    assert_bounded(tables, Fraction(epsilon))


laws = st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any)


@pytest.mark.slow
@given(st.lists(st.tuples(laws, laws), min_size=1, max_size=2), st.fractions(-1, 3))
def test_bounds_contain_the_sum(weights: list[tuple[list[int], list[int]]], eps: Fraction) -> None:
    tables = [
        ([Fraction(x, sum(p)) for x in p], [Fraction(x, sum(q)) for x in q]) for p, q in weights
    ]
    assert_bounded(tables * 2, eps)


@pytest.mark.slow
def test_ends_without_a_mass_of_their_own_place_no_points() -> None:
    """Losses near their bounds are so rare that floats see none: 0/0 would warn."""
    noise = dpassay.AdditiveNoise("1/cosh(sqrt(2)*x)", scale="2.671")
    found = dpassay.beta(Composed(noise, 3), "0.0132")
    assert narrow(found, 1e-5)
