"""Selections whose scores are fixed before the first one: no product of pairs is worse."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import Composed, ExponentialMechanism, Gaussian, Laplace
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import START_PRECISION
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.fixed_selections import FixedSelections
from dpassay.accountant.questions import guarantees, profile, tradeoff

ROUNDING = 1e-12
"""Of sums of a few products in floats, absolute."""


def fixed(t: object, count: int) -> Composed:
    return Composed(ExponentialMechanism(t), count, adaptive=False)  # type: ignore[arg-type]


def largest_on_grid(t: float, k: int, epsilon: float, points: int) -> float:
    """Return the largest H of all s_1, …, s_k on a grid."""
    s = np.linspace(0, t, points)
    p = np.expm1(s - t) / np.expm1(-t)
    axes = [np.ix_(*[range(points)] * k)[i] for i in range(k)]
    total = np.zeros([points] * k)
    for rising in itertools.product([True, False], repeat=k):
        chance, loss = np.ones_like(total), np.zeros_like(total)
        for up, axis in zip(rising, axes, strict=True):
            chance = chance * (p[axis] if up else 1 - p[axis])
            loss = loss + (s[axis] if up else s[axis] - t)
        total += chance * np.maximum(-np.expm1(epsilon - loss), 0)
    return float(total.max())


@pytest.mark.parametrize("share", ["-0.3", "0", "0.1", "0.35", "0.6", "0.9"])
@pytest.mark.parametrize(("t", "k", "points"), [("1", 2, 301), ("4", 2, 301), ("1", 3, 81)])
def test_no_scores_on_a_grid_are_worse(t: str, k: int, points: int, share: str) -> None:
    epsilon = Fraction(share) * k * Fraction(t)
    found = profile.delta(fixed(t, k), epsilon)
    reached = largest_on_grid(float(t), k, float(epsilon), points)
    assert reached <= float(found.upper) + ROUNDING
    assert reached == pytest.approx(float(found.lower), rel=1e-2)


@settings(max_examples=60)
@given(st.data())
def test_no_other_pairs_are_worse(data: st.DataObject) -> None:
    t, k = data.draw(st.sampled_from([0.5, 3.0])), 2
    epsilon = data.draw(st.floats(-0.9, 0.9)) * k * t
    p, q = np.ones(1), np.ones(1)
    for _ in range(k):  # three outcomes, whose exponents rise by amounts in [0, t]
        weights = np.array(data.draw(st.lists(st.floats(1e-3, 1), min_size=3, max_size=3)))
        rises = np.array(data.draw(st.lists(st.floats(0, t), min_size=3, max_size=3)))
        other = weights * np.exp(rises)
        p = np.outer(p, other / other.sum()).ravel()
        q = np.outer(q, weights / weights.sum()).ravel()
    value = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
    assert value <= float(profile.delta(fixed(t, k), epsilon).upper) * (1 + 1e-9) + ROUNDING


@pytest.mark.parametrize("epsilon", ["-0.7", "0", "0.3", "0.99", "1", "-1", "2"])
def test_one_selection_is_that_of_the_mechanism(epsilon: str) -> None:
    single, at = ExponentialMechanism(1), exact(epsilon)
    assert profile.delta(Composed(single, 1, adaptive=False), at) == profile.delta(single, at)
    pair = single.worst_case(None).remove[0]
    with ctx.workprec(START_PRECISION):
        assert FixedSelections(exact(1), 1).hockey_stick(at).overlaps(pair.hockey_stick(at))


@pytest.mark.parametrize(("t", "k"), [("1", 2), ("1/3", 7), ("2", 40), ("sqrt(2)", 3)])
@pytest.mark.parametrize("share", ["-1/2", "0", "1/5", "1/2", "19/20"])
def test_adaptive_scores_are_at_least_as_bad(t: str, k: int, share: str) -> None:
    at = exact(Fraction(share) * k) * exact(t)
    adaptive = profile.delta(Composed(ExponentialMechanism(t), k), at)
    assert profile.delta(fixed(t, k), at).lower <= adaptive.upper


def test_epsilons_are_below_those_of_adaptive_scores() -> None:
    for k, least, width in ((10, 7.71331634, 5e-4), (100, 34.7683690, 4e-3)):
        found = profile.epsilon(fixed(1, k), "1e-6")
        assert float(found.lower) == pytest.approx(least, rel=1e-8)
        adaptive = profile.epsilon(Composed(ExponentialMechanism(1), k), "1e-6")
        assert found.upper < adaptive.upper < float(found.upper) * (1 + width)
    assert float(profile.epsilon(fixed(1, 1000), "1e-6").lower) == pytest.approx(196.310577882)


@pytest.mark.parametrize("t", ["1/1000", "1", "20"])
@pytest.mark.parametrize("k", [2, 13, 150])
@pytest.mark.parametrize("delta", ["1e-300", "1e-6", "0.2", "0.999"])
def test_epsilon_is_the_inverse_of_delta(t: str, k: int, delta: str) -> None:
    found = profile.epsilon(fixed(t, k), delta)
    for end, sign in ((found.lower, -1), (found.upper, 1)):
        beyond = Fraction(end) + sign * abs(Fraction(end)) / 10**6
        at = profile.delta(fixed(t, k), beyond)
        assert (at.lower > Fraction(delta)) if sign < 0 else (at.upper < Fraction(delta))


def test_the_ends_of_the_profile() -> None:
    several, z = fixed("1/3", 30), math.exp(-10)
    assert profile.delta(several, 10) == profile.delta(several, 11) == 0
    assert float(profile.delta(several, -10).lower) == pytest.approx(1 - z)
    assert profile.epsilon(several, 0) == 10
    eta = Fraction(1, 10**40)  # all thirty have the loss t − η/31
    one = -math.expm1(-1 / 3)
    found = profile.delta(several, 10 - eta)
    log = 31 * (math.log(1e-40) - math.log(31)) - 30 * math.log(one)
    assert float(found.lower.ln()) == pytest.approx(log, rel=1e-12)


@pytest.mark.parametrize("epsilon", ["-2", "0", "1", "5", "12"])
def test_the_event_has_the_delta(epsilon: str) -> None:
    pair, at = FixedSelections(exact(1), 13), exact(epsilon)
    with ctx.workprec(START_PRECISION):
        tails = pair.tails(at)
        assert (tails.p_above - at.ball().exp() * tails.q_above).overlaps(pair.hockey_stick(at))
        assert (tails.p_above + tails.p_below).overlaps(tails.q_above + tails.q_below)


def test_divergences_are_those_of_adaptive_scores() -> None:
    one, ten = ExponentialMechanism(1), fixed(1, 10)
    adaptive = Composed(one, 10)
    assert guarantees.rho(ten) == guarantees.rho(adaptive)
    assert guarantees.renyi(ten, 3) == guarantees.renyi(adaptive, 3)
    beta = tradeoff.beta(ten, "1/100")
    assert tradeoff.beta(adaptive, "1/100").lower <= beta.upper
    assert beta.lower < beta.upper


def test_compositions_of_both_kinds_and_of_several_epsilons_have_two_ends() -> None:
    one = ExponentialMechanism(1)
    fixed_four, adaptive = (Composed(one, 4, adaptive=kind) for kind in (False, True))
    low, high = (profile.delta(each, 2) for each in (fixed_four, adaptive))
    for outer, inner in ((True, False), (False, True)):
        both = Composed(Composed(one, 2, adaptive=inner), 2, adaptive=outer)
        found = profile.delta(both, 2)
        assert found.lower <= low.upper
        assert found.upper >= high.lower
        assert float(found.lower) == pytest.approx(float(low.lower), rel=1e-6)
    inner_fixed = Composed(Composed(one, 2, adaptive=False), 2, adaptive=False)
    assert profile.delta(inner_fixed, 2) == low
    alone = Composed([Composed(one, 4, adaptive=False)])  # one part: nothing is adaptive outside
    assert profile.delta(alone, 2) == low
    several = [one, ExponentialMechanism(2)]
    for kind in (False, True):
        found = profile.delta(Composed(several, 2, adaptive=kind), 2)
        assert found.lower < found.upper
        assert found.lower > profile.delta(Composed(one, 2), 2).upper


@pytest.mark.parametrize("inside", [Gaussian(2), [Laplace(3), Gaussian(2)]])
def test_where_one_pair_is_worst_nothing_changes(inside: object) -> None:
    one, other = (Composed(inside, 3, adaptive=kind) for kind in (False, True))  # type: ignore[arg-type]
    assert profile.delta(one, 1) == profile.delta(other, 1)


def test_the_notation_has_the_switch() -> None:
    text = "Composed(mechanism=ExponentialMechanism(epsilon=1), count=10, adaptive=False)"
    assert repr(fixed(1, 10)) == text
    assert parse(text) == fixed(1, 10)
    assert parse(text) != Composed(ExponentialMechanism(1), 10)
    with pytest.raises(InvalidInputError, match="adaptive=0 to be True or False"):
        Composed(ExponentialMechanism(1), 10, adaptive=0)  # type: ignore[arg-type]  # it is refused
