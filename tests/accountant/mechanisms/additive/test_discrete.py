"""Noise on the integers: brute force over masses, exact fractions, limits."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant.core.pair import exact_infinity_mass, max_finite_loss
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.integers import (
    DiscreteGaussian,
    DiscreteLaplace,
    IntegerNoise,
    TruncatedGeometric,
)
from dpassay.accountant.numbers.exact import Number, exact
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.questions import guarantees, profile


def test_rho_is_that_of_the_continuous_gaussian_and_attained_at_order_two() -> None:
    mechanism = DiscreteGaussian("0.3", 2)
    rho = guarantees.rho(mechanism)
    assert Fraction(20, 3) in rho  # 4/0.6
    twice = guarantees.renyi(mechanism, 2)
    assert Fraction(40, 3) in twice
    # at an order where a·s is no integer the divergence is smaller
    assert guarantees.renyi(mechanism, "1.25").upper < Fraction(5, 4) * Fraction(20, 3)


@pytest.mark.parametrize("epsilon", ["0", "1e-3", "0.01", "0.3", "1", "7.7", "40"])
@pytest.mark.parametrize("parameter", ["1e-3", "1", "1e6", "1e12"])
def test_profile_is_narrow_over_the_whole_range(parameter: str, epsilon: str) -> None:
    found = profile.delta(DiscreteGaussian(parameter), epsilon)
    assert 0 < found.lower <= found.upper
    assert (found.upper - found.lower) / found.lower < Decimal("1e-27")


@pytest.mark.parametrize("epsilon", ["1e-7", "1e-6", "2e-6"])
def test_the_continuous_gaussian_is_the_limit(epsilon: str) -> None:
    # σ² = 1e12: the two profiles differ by the discretisation, of relative order 1/σ = 1e-6
    discrete = profile.delta(DiscreteGaussian("1e12"), epsilon)
    continuous = profile.delta(Gaussian("1e6"), epsilon)
    ratio = Fraction(discrete.lower) / Fraction(continuous.lower)
    assert abs(ratio - 1) < Fraction(1, 10**5)


LAW = [Fraction(1, 8), Fraction(0), Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)]

weights = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


def law_of(counts: list[int]) -> list[Fraction]:
    return [Fraction(count, sum(counts)) for count in counts]


def shifted(law: list[Fraction], shift: int) -> list[tuple[Fraction, Fraction]]:
    padding = [Fraction(0)] * shift
    return list(zip(padding + law, law + padding, strict=True))


@given(counts=weights, shift=st.integers(1, 3), epsilon=st.fractions(-3, 3, max_denominator=8))
def test_hockey_stick_is_the_sum_of_the_excesses(
    counts: list[int], shift: int, epsilon: Fraction
) -> None:
    law = law_of(counts)
    pair = FinitePair(IntegerNoise(law, 0, shift), shift)
    with ctx.workprec(200):
        eps = exact(epsilon)
        factor = eps.ball().exp()
        expected = sum(
            ((ball(p) - factor * ball(q)).max(arb(0)) for p, q in shifted(law, shift)), start=arb(0)
        )
        difference = pair.hockey_stick(eps) - expected
        assert difference.contains(0)
        assert difference.rad() < arb(2) ** -150
        tails = pair.tails(eps)
        assert (tails.p_above - factor * tails.q_above - expected).contains(0)
        assert (tails.p_above + tails.p_below - 1).contains(0)
        assert (tails.q_above + tails.q_below - 1).contains(0)


def test_every_divergence_is_infinite_where_the_end_of_the_support_moves() -> None:
    pair = FinitePair(IntegerNoise(LAW, 0), 1)
    with ctx.workprec(128):
        assert pair.renyi(arb(2)) == arb.pos_inf()
        assert pair.renyi(arb(1)) == arb.pos_inf()
        assert pair.max_loss() == arb.pos_inf()
    assert guarantees.rho(IntegerNoise(LAW, 0)).lower == math.inf


def test_infinity_mass_is_exact() -> None:
    # shift 1: outcomes with mass of Z + 1 and none of Z are the hole at 1 and the top end 5
    pair = FinitePair(IntegerNoise(LAW, 0), 1)
    assert exact_infinity_mass(pair) == exact("1/4")
    assert exact_infinity_mass(pair.reverse()) == exact("5/8")
    assert Fraction(1, 4) in Interval.of_ball(pair.infinity_mass())
    assert profile.epsilon(IntegerNoise(LAW, 0), "1/5").lower == math.inf
    with ctx.workprec(128):
        assert max_finite_loss(pair).overlaps(arb(2).log())


def test_a_smaller_shift_may_be_worse() -> None:
    # even outcomes only: neighbours at distance 1 never collide, at distance 2 they mostly do
    law: list[Number] = ["1/5", 0, "1/5", 0, "1/5", 0, "1/5", 0, "1/5"]
    near, far = IntegerNoise(law, 0, 2).worst_case(None).remove
    with ctx.workprec(128):
        assert near.hockey_stick(exact(0)).overlaps(arb(1))
        assert far.hockey_stick(exact(0)).overlaps(arb(1) / 5)
    assert 1 in profile.delta(IntegerNoise(law, 0, 2), 0)


def test_both_directions_are_listed() -> None:
    # a falling law: upward shifts free the bottom (mass 1/2), downward ones the top (mass 1/6)
    mechanism = IntegerNoise(["1/2", "1/3", "1/6"], 0)
    worst = mechanism.worst_case(None)
    with ctx.workprec(128):
        for pairs in (worst.remove, worst.add):  # a record may raise the answer or lower it
            found = [pair.infinity_mass() for pair in pairs]
            assert found[0].overlaps(arb(1) / 6)
            assert found[1].overlaps(arb(1) / 2)
    assert Fraction(1, 2) in profile.delta(mechanism, 40)


def test_ties_are_decided_exactly_at_zero() -> None:
    # p = q on three of five outcomes: loss 0 is not above 0
    pair = FinitePair(IntegerNoise(["1/4", "1/4", "1/4", "1/4"], 0), 1)
    tails = pair.tails(exact(0))
    assert (tails.p_above - arb("0.25")).is_zero()
    assert (tails.q_above).is_zero()
    assert pair.describe_event(exact(0)) == "the outcomes {4}"
    assert pair.describe_event(exact(-1)) == "the outcomes {1..4}"


PRECISION = 200
NARROW = arb(2) ** -150


def brute_force(mechanism: TruncatedGeometric, n: int, other: int, epsilon: arb) -> arb:
    factor = epsilon.exp()
    pairs = zip(mechanism.masses(n), mechanism.masses(other), strict=True)
    return sum(((p - factor * q).max(arb(0)) for p, q in pairs), start=arb(0))


@given(
    scale=st.fractions(Fraction(1, 10), 8, max_denominator=12),
    low=st.integers(-4, 2),
    width=st.integers(1, 6),
    epsilon=st.fractions(-3, 3, max_denominator=9),
)
def test_every_pair_of_counts_at_one_distance_has_the_untruncated_profile(
    scale: Fraction, low: int, width: int, epsilon: Fraction
) -> None:
    high = low + width
    mechanism = TruncatedGeometric(scale, low, high)
    eps = exact(epsilon)
    with ctx.workprec(PRECISION):
        for n in range(low, high + 1):
            for other in range(low, high + 1):
                if n == other:
                    continue
                (pair,) = DiscreteLaplace(scale, abs(n - other)).worst_case(None).remove
                difference = brute_force(mechanism, n, other, eps.ball()) - pair.hockey_stick(eps)
                assert difference.contains(0)
                assert difference.rad() < NARROW


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_moments_at_a_count_are_those_of_the_masses(count: int) -> None:
    mechanism = TruncatedGeometric("1.5", 0, 5)
    with ctx.workprec(PRECISION):
        masses = mechanism.masses(count)
        mean = sum((y * p for y, p in enumerate(masses)), start=arb(0))
        error = sum(((y - count) ** 2 * p for y, p in enumerate(masses)), start=arb(0))
        variance = sum(((y - mean) ** 2 * p for y, p in enumerate(masses)), start=arb(0))
        for difference in (
            sum(masses, start=arb(0)) - 1,
            mean - mechanism.mean_at(count),
            error - mechanism.mean_squared_error_at(count),
            variance - mechanism.variance_at(count),
        ):
            assert difference.contains(0)
            assert difference.rad() < NARROW


def test_releases_stay_in_the_range() -> None:
    mechanism = TruncatedGeometric(3, -1, 2)
    released = mechanism.release(2, 1000, rng=np.random.default_rng(7))
    assert set(released.tolist()) == {-1, 0, 1, 2}
