"""Two-sided discretisation: it contains the exact value wherever another engine knows it."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb, ctx

from accountant import profile
from accountant.adjacency import Adjacency, Direction
from accountant.composition import engines
from accountant.composition.discretised import discretise, reach
from accountant.composition.grid import CELLS, GridPair, _refuse_early, memory
from accountant.errors import InvalidInputError, NotApplicableError, UndecidedError
from accountant.interval import ball
from accountant.mechanism import Mechanism
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
from accountant.number import exact

STAIRCASE = Staircase(epsilon=1, gamma="1/3")
EXACT: list[tuple[Mechanism, str, float]] = [
    (Composed(Laplace(scale=10), 100), "1", 2e-3),
    (Composed(Laplace(scale=10), 100), "8", 1e-2),
    (Composed(Laplace(scale=10), 10), "-1/2", 2e-3),
    (Composed(Gaussian(standard_deviation=10), 100), "1", 1e-2),
    (Composed(RandomizedResponse(epsilon="0.1"), 1000), "10", 1e-9),
    (Composed(RandomizedResponse(epsilon="0.1"), 1000), "99", 1e-9),
    (Composed(DiscreteLaplace(scale=10, sensitivity=3), 50), "2", 0.5),
    (Composed(STAIRCASE, 20), "10", 1e-2),
    (Composed([Laplace(scale=4), RandomizedResponse(epsilon="0.3")], 5), "1", 0.5),
]


def contains(lower: arb, upper: arb, value: arb) -> bool:
    return bool(lower.lower() <= value.upper() and value.lower() <= upper.upper())


@pytest.mark.parametrize(("mechanism", "epsilon", "width"), EXACT)
def test_contains_the_exact_value(mechanism: Mechanism, epsilon: str, width: float) -> None:
    (pair,) = engines.pairs_of(mechanism, "grid", None)
    assert isinstance(pair, GridPair)
    lower, upper = pair.bounds(exact(epsilon), CELLS[0])
    true = profile.delta(mechanism, epsilon)
    assert contains(lower, upper, true.ball())
    assert float((upper - lower) / lower) < width


@pytest.mark.parametrize("mechanism", [EXACT[0][0], EXACT[6][0]])
def test_both_engines_find_the_same_epsilon(mechanism: Mechanism) -> None:
    for delta in ("0.2", "1e-6", "1e-40"):
        by_grid = profile.epsilon(mechanism, delta, method="grid", relative_width=Fraction(1, 5))
        by_sum = profile.epsilon(mechanism, delta, method="exact")
        assert by_grid.lower <= by_sum.upper
        assert by_sum.lower <= by_grid.upper


def test_the_width_falls_with_the_square_of_the_grid() -> None:
    (pair,) = engines.pairs_of(EXACT[0][0], "grid", None)
    assert isinstance(pair, GridPair)
    widths = []
    for cells in (1 << 10, 1 << 12):
        lower, upper = pair.bounds(exact(1), cells)
        widths.append(float(upper - lower))
    assert widths[1] < widths[0] / 10


def test_one_release_is_bracketed_everywhere() -> None:
    (pair,) = STAIRCASE.worst_case(None).remove
    low, high = reach(pair, -60)
    laws = discretise(pair, high, (high - low) / 64, -64, 0)
    for law in (laws.above, laws.below):
        assert not sum(law.masses, start=arb(0)) + law.infinity > 1
    for eps in ("-1/2", "0", "1/3", "9/10"):
        sums = []
        for law in (laws.above, laws.below):
            total = law.infinity
            for i, mass in enumerate(law.masses):
                loss = arb(str(float(high))) + (law.first + i) * float((high - low) / 64)
                total += mass * (1 - (exact(eps).ball() - loss - law.shift).exp()).max(arb(0))
            sums.append(float(total))
        true = float(pair.hockey_stick(exact(eps)))
        assert sums[1] - 1e-9 <= true <= sums[0] + 1e-9
        assert sums[0] - sums[1] < 1e-2


@pytest.mark.slow
def test_subsampled_gaussians_in_both_directions() -> None:
    step = PoissonSubsampled(Gaussian(standard_deviation=1), "1/50")
    whole = Composed(step, 200)
    for pair, direction in zip(
        engines.pairs_of(whole, "grid", Adjacency.ADD_REMOVE),
        (Direction.REMOVE, Direction.ADD),
        strict=True,
    ):
        assert isinstance(pair, GridPair)
        lower, upper = pair.bounds(exact("1/2"), CELLS[1])
        true = profile.delta(
            whole, "1/2", adjacency="add-remove", direction=direction,
            relative_width=Fraction(1, 10**9),
        )  # fmt: skip
        assert contains(lower, upper, true.ball())
        assert upper < 2 * lower
    # one release has an exact profile: the grid encloses it too
    pairs = engines.pairs_of(step, "grid", Adjacency.ADD_REMOVE)
    for pair, direction in zip(pairs, (Direction.REMOVE, Direction.ADD), strict=True):
        assert isinstance(pair, GridPair)
        lower, upper = pair.bounds(exact("0.05"), CELLS[1])
        true = profile.delta(step, "0.05", adjacency="add-remove", direction=direction)
        assert contains(lower, upper, true.ball())


def test_the_contour_integral_lies_within_the_grid() -> None:
    whole = Composed(PoissonSubsampled(Gaussian(standard_deviation=1), "1/4"), 8)
    for epsilon in ("1/2", "2"):
        by_contour = profile.delta(whole, epsilon, method="saddle", adjacency="add-remove")
        pairs = engines.pairs_of(whole, "grid", Adjacency.ADD_REMOVE)
        bounds = []
        for pair in pairs:
            assert isinstance(pair, GridPair)
            bounds.append(pair.bounds(exact(epsilon), CELLS[0]))
        lower = max((low for low, _ in bounds), key=float)
        upper = max((high for _, high in bounds), key=float)
        assert contains(lower, upper, by_contour.ball())
    with pytest.raises(NotApplicableError, match="'saddle'"):
        profile.delta(whole, 1, method="exact", adjacency="add-remove")


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
    (pair,) = engines.pairs_of(whole, "grid", None)[:1]
    assert isinstance(pair, GridPair)
    true = profile.delta(whole, "1/10", direction=Direction.REMOVE).ball()
    lower, upper = pair.bounds(exact("1/10"), CELLS[0])
    assert contains(lower, upper, true)
    assert lower > 1 - arb("0.9") ** 3 - arb("1e-6")


def test_refusals_say_what_was_reached_and_what_more_would_take() -> None:
    sampled = Composed(PoissonSubsampled(Laplace(scale=5), "0.1"), 3)
    with pytest.raises(UndecidedError, match=r"Reached delta in .* GiB") as caught:
        profile.delta(sampled, "0.03", adjacency="add-remove", method="grid")
    mixed = Composed([Laplace(scale=5), Gaussian(standard_deviation=4)], 3)
    assert "larger relative_width" in str(caught.value)
    with pytest.raises(NotApplicableError, match="'saddle' or 'atoms' or 'grid'"):
        profile.delta(mixed, 1, method="exact")
    with pytest.raises(NotApplicableError, match="partial sums"):
        profile.delta(mixed, 1, method="lists")
    with pytest.raises(InvalidInputError, match="method='fourier'"):
        profile.delta(mixed, 1, method="fourier")
    assert str(profile.epsilon(mixed, 0, method="grid")) == "Infinity"
    assert memory(1 << 20) > 1 << 28


def test_a_lower_end_of_zero_is_refused_with_what_was_reached() -> None:
    widths = [math.inf] * len(CELLS)
    with pytest.raises(UndecidedError, match=r"Reached delta in \[0, 1\].*larger relative_width"):
        _refuse_early(widths, 1e-9, "delta in [0, 1]")


@pytest.mark.parametrize("last", [(1e200, 1e200, 1e-2), (1e-3, math.inf, 1e-9), (0.5, 0.4, 0.0)])
def test_widths_beyond_floats_are_refused_with_what_was_reached(
    last: tuple[float, float, float],
) -> None:
    *widths, wanted = last
    padded = [widths[0]] * (len(CELLS) - 2) + widths
    with pytest.raises(UndecidedError, match=r"Reached delta in \[0, 1\].*larger relative_width"):
        _refuse_early(padded, wanted, "delta in [0, 1]")


def test_a_width_far_out_of_reach_is_refused_after_one_grid() -> None:
    with pytest.raises(UndecidedError, match=rf"of {CELLS[0]} points; 1\.0e-12 would take about"):
        _refuse_early([1e-3], 1e-12, "something")
    _refuse_early([1e-3], 1e-7, "something")  # the finest grid may reach it
    _refuse_early([math.inf], 1e-12, "something")  # nothing is known yet


def test_points_of_an_inverse_are_on_their_sides_of_the_root() -> None:
    # H(ε) = 2/3 − 2e^ε/7 or 5/7 − e^ε/3: 1/3 is passed at ln(7/6), where both bounds are exact
    mechanism = Composed(Tabulated(["2/3", "1/3"], ["2/7", "5/7"]))
    found = profile.epsilon(mechanism, "1/3", method="grid", relative_width=Fraction(1, 2))
    with ctx.workprec(200):
        assert ball(Fraction(found.lower)) < (arb(7) / 6).log() < ball(Fraction(found.upper))


def test_losses_that_nearly_coincide_have_a_grid() -> None:
    tiny = Fraction(1, 10**80)
    mechanism = Composed(Tabulated([tiny, 1 - tiny], [0, 1]), 2)
    found = profile.delta(mechanism, "-1/7", method="grid", relative_width=Fraction(1, 2))
    with ctx.workprec(200):
        assert found.ball().overlaps(-(arb(-1) / 7).expm1())
    assert found.relative_width is not None
    assert found.relative_width < Fraction(1, 10**5)


def test_losses_that_are_surely_infinite() -> None:
    mechanism = Composed(Tabulated([1, 0], [0, 1]), 2)
    found = profile.delta(mechanism, "1/7", method="grid", relative_width=Fraction(1, 2))
    assert found.lower == found.upper == 1
