"""Laws that hold for every mechanism, every pair of laws and every notion."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.accountant.core.adjacency import Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Guaranteed,
    IntegerNoise,
    Laplace,
    LaplaceVector,
    RandomizedResponse,
    Staircase,
    Tabulated,
)
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.questions import guarantees, notions, profile, tradeoff

scales = st.fractions(Fraction(1, 5), 8, max_denominator=60)
epsilons = st.fractions(-4, 4, max_denominator=40)
levels = st.fractions(Fraction(1, 10**6), 1 - Fraction(1, 10**6), max_denominator=10**6)
orders = st.fractions(1, 30, max_denominator=50)


@st.composite
def tables(draw: st.DrawFn) -> Tabulated:
    size = draw(st.integers(2, 5))
    weights = st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any)
    p, q = draw(weights), draw(weights)
    return Tabulated([Fraction(w, sum(p)) for w in p], [Fraction(w, sum(q)) for w in q])


laws = (
    st.lists(st.integers(0, 9), min_size=1, max_size=5)
    .filter(any)
    .map(lambda counts: [Fraction(count, sum(counts)) for count in counts])
)
kinds: list[st.SearchStrategy[Mechanism]] = [
    st.builds(Gaussian, scales, scales),
    st.builds(Laplace, scales),
    st.builds(DiscreteLaplace, scales, st.integers(1, 4)),
    st.builds(DiscreteGaussian, scales, st.integers(1, 4)),
    laws.flatmap(lambda law: st.builds(IntegerNoise, st.just(law), st.just(0), st.integers(1, 3))),
    st.builds(Staircase, scales, st.fractions(0, 1, max_denominator=20)),
    st.builds(RandomizedResponse, scales, st.integers(2, 9)),
    st.builds(LaplaceVector, scales, st.lists(st.integers(0, 3), min_size=1, max_size=4)),
    tables(),
]
mechanisms = st.one_of(kinds)


def pairs_of(mechanism: Mechanism) -> list[Pair]:
    return list(mechanism.worst_case(None).pairs(None))


@given(mechanisms, epsilons, epsilons)
def test_delta_does_not_increase_in_epsilon(
    mechanism: Mechanism, first: Fraction, second: Fraction
) -> None:
    low, high = sorted([first, second])
    assert profile.delta(mechanism, low).upper >= profile.delta(mechanism, high).lower


@given(mechanisms, epsilons, epsilons, st.fractions(0, 1, max_denominator=9))
def test_delta_is_convex_in_the_exponential_of_epsilon(
    mechanism: Mechanism, first: Fraction, second: Fraction, share: Fraction
) -> None:
    """H is a supremum of functions linear in e^ε; a point near the mean of e^ε will do."""
    with ctx.workprec(300):
        one, two = ExactReal.of_rational(first), ExactReal.of_rational(second)
        weight = ExactReal.of_rational(share).ball()
        mean = one.ball().exp() * (1 - weight) + two.ball().exp() * weight
        # δ falls, so a point above the logarithm of the mean can only help the inequality
        above = ExactReal.of_rational(_fraction_above(mean.log()))
        for pair in pairs_of(mechanism):
            chord = pair.hockey_stick(one) * (1 - weight) + pair.hockey_stick(two) * weight
            assert not pair.hockey_stick(above) > chord


def _fraction_above(ball: arb) -> Fraction:
    upper = Interval.of_ball(ball, 60).upper
    return Fraction(upper)


@given(mechanisms, epsilons)
def test_delta_stays_between_its_bounds(mechanism: Mechanism, epsilon: Fraction) -> None:
    """(1 − e^ε)⁺ ≤ H(ε) ≤ 1, and H(ε) = P(L > ε) − e^ε Q(L > ε)."""
    with ctx.workprec(200):
        eps = ExactReal.of_rational(epsilon)
        for pair in pairs_of(mechanism):
            value, tails = pair.hockey_stick(eps), pair.tails(eps)
            assert not value > 1
            assert not value < 1 - eps.ball().exp()
            assert value.overlaps(tails.p_above - eps.ball().exp() * tails.q_above)
            assert (tails.p_above + tails.p_below).contains(1)
            assert (tails.q_above + tails.q_below).contains(1)


@given(mechanisms, epsilons)
def test_the_reverse_pair_reflects_the_profile(mechanism: Mechanism, epsilon: Fraction) -> None:
    """H of (Q, P) at −ε is 1 − e^{−ε} + e^{−ε} H of (P, Q) at ε."""
    with ctx.workprec(200):
        eps = ExactReal.of_rational(epsilon)
        for pair in pairs_of(mechanism):
            shrink = (-eps.ball()).exp()
            expected = 1 - shrink + shrink * pair.hockey_stick(eps)
            assert pair.reverse().hockey_stick(-eps).overlaps(expected)


@given(mechanisms, st.fractions(Fraction(1, 10**9), Fraction(999, 1000)))
def test_epsilon_inverts_delta(mechanism: Mechanism, delta: Fraction) -> None:
    epsilon = profile.signed_epsilon(mechanism, delta)
    if not epsilon.upper.is_finite():
        assert profile.delta(mechanism, 50).upper > 0
        return
    assert Fraction(profile.delta(mechanism, epsilon.upper).lower) <= delta
    assert Fraction(profile.delta(mechanism, epsilon.lower).upper) >= delta


@given(mechanisms, levels, levels, st.fractions(0, 1, max_denominator=9))
def test_beta_decreases_and_is_convex_pair_by_pair(
    mechanism: Mechanism, first: Fraction, second: Fraction, share: Fraction
) -> None:
    low, high = sorted([first, second])
    middle = low + (high - low) * share
    direction = Direction.REMOVE
    at = [tradeoff.beta(mechanism, a, direction=direction) for a in (low, middle, high)]
    assert at[0].upper >= at[1].lower
    assert at[1].upper >= at[2].lower
    chord = Fraction(at[0].upper) * (1 - share) + Fraction(at[2].upper) * share
    assert Fraction(at[1].lower) <= chord
    assert Fraction(at[0].lower) <= 1 - low


@given(mechanisms, levels, epsilons)
def test_beta_is_dual_to_delta(mechanism: Mechanism, alpha: Fraction, epsilon: Fraction) -> None:
    """β(α) ≥ 1 − δ(ε) − e^ε α at every ε."""
    beta, delta = tradeoff.beta(mechanism, alpha), profile.delta(mechanism, epsilon)
    with ctx.workprec(200):
        slope = ExactReal.of_rational(epsilon).ball().exp()
        line = 1 - delta.ball() - slope * ExactReal.of_rational(alpha).ball()
        assert not beta.ball() < line


@given(mechanisms, levels)
def test_the_reverse_pair_has_the_inverse_trade_off(mechanism: Mechanism, alpha: Fraction) -> None:
    """f of (Q, P) inverts f of (P, Q), where f is strictly decreasing."""
    beta = tradeoff.beta(mechanism, alpha, direction=Direction.REMOVE)
    if not 0 < beta.lower < 1:
        return
    back = tradeoff.beta(mechanism, beta.upper, direction=Direction.ADD)
    assert Fraction(back.lower) <= alpha
    forth = tradeoff.beta(mechanism, beta.lower, direction=Direction.ADD)
    assert Fraction(forth.upper) >= alpha * (1 - Fraction(1, 10**25))


@given(mechanisms, orders, orders)
def test_renyi_does_not_decrease_in_order(
    mechanism: Mechanism, first: Fraction, second: Fraction
) -> None:
    low, high = sorted([first, second])
    assert guarantees.renyi(mechanism, low).lower <= guarantees.renyi(mechanism, high).upper


@given(mechanisms, epsilons)
def test_narrower_answers_lie_in_wider_ones(mechanism: Mechanism, epsilon: Fraction) -> None:
    wide = profile.delta(mechanism, epsilon, relative_width=Fraction(1, 10**3))
    narrow = profile.delta(mechanism, epsilon, relative_width=Fraction(1, 10**60))
    assert wide.lower <= narrow.lower <= narrow.upper <= wide.upper


ORDERS = st.fractions(Fraction(11, 10), 64, max_denominator=10)
EPSILONS = st.fractions(0, 8, max_denominator=16)
EXPONENTS = st.integers(2, 40)
CLOSE = Decimal("1e-15")


@pytest.mark.slow
@settings(max_examples=12)
@given(ORDERS, EPSILONS, EXPONENTS)
def test_renyi_to_delta_and_back(order: Fraction, epsilon: Fraction, exponent: int) -> None:
    delta = Fraction(1, 10**exponent)
    a, e, d = (ExactReal.of_rational(each) for each in (order, epsilon, delta))
    budget = enclose(lambda: notions.budget(a.ball(), e.ball(), d.ball()))
    back = notions.delta_of_renyi(order, budget.upper, epsilon)
    assert abs(back.upper * 10**exponent - 1) < CLOSE
    again = notions.epsilon_of_renyi(order, budget.upper, delta)
    assert abs(Fraction(again.upper) - epsilon) < Fraction(CLOSE)


@settings(max_examples=12)
@given(ORDERS, st.fractions(Fraction(1, 100), 3, max_denominator=100), EXPONENTS)
def test_renyi_to_power_and_back(order: Fraction, divergence: Fraction, exponent: int) -> None:
    alpha = Fraction(1, 10**exponent)
    power = notions.power_of_renyi(order, divergence, alpha)
    if power.upper == 1:
        assert divergence >= Fraction(math.log(10) * exponent) * Fraction(999, 1000)
        return
    # the two outcomes of the test have the divergence themselves
    p, q, a = float(power.upper), float(alpha), float(order)
    spent = a * math.log(p) + (1 - a) * math.log(q)
    rest = a * math.log1p(-p) + (1 - a) * math.log1p(-q)
    top = max(spent, rest)
    total = top + math.log(math.exp(spent - top) + math.exp(rest - top))
    # ln of a sum near 1 keeps 1e-15; p is rounded to a float
    assert abs(total / (a - 1) - float(divergence)) < 1e-11 * (1 + abs(spent)) / (a - 1)


@settings(max_examples=15)
@given(st.fractions(Fraction(1, 10), 3, max_denominator=10))
def test_pure_dp_to_the_others(epsilon: Fraction) -> None:
    worst = Guaranteed(epsilon)
    assert profile.epsilon(worst, 0).upper == profile.epsilon(RandomizedResponse(epsilon), 0).upper
    rho = guarantees.rho(RandomizedResponse(epsilon), relative_width=Fraction(1, 10**6))
    assert Fraction(rho.upper) <= epsilon**2 / 2 * Fraction(1000001, 1000000)
    for order in (2, 8):
        most = guarantees.renyi(RandomizedResponse(epsilon), order)
        assert guarantees.renyi(Laplace(1 / epsilon), order).lower <= most.upper
        assert most.lower <= min(Decimal(float(epsilon)), order * rho.upper) * (1 + CLOSE)
