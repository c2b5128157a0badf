from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from accountant.mechanisms.additive.integer_noise import IntegerNoise
from accountant.numbers.exact import Number, exact
from accountant.numbers.interval import Interval, ball
from accountant.pairs.finite import FinitePair
from accountant.questions import guarantees, profile

LAW = [Fraction(1, 8), Fraction(0), Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)]

weights = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


def law_of(counts: list[int]) -> list[Fraction]:
    return [Fraction(count, sum(counts)) for count in counts]


def shifted(law: list[Fraction], shift: int) -> list[tuple[Fraction, Fraction]]:
    padding = [Fraction(0)] * shift
    return list(zip(padding + law, law + padding, strict=True))


@given(
    counts=weights,
    shift=st.integers(1, 3),
    epsilon=st.fractions(-3, 3, max_denominator=8),
)
def test_hockey_stick_is_the_sum_of_the_excesses(
    counts: list[int], shift: int, epsilon: Fraction
) -> None:
    law = law_of(counts)
    pair = FinitePair(IntegerNoise(law, 0, shift), shift)
    with ctx.workprec(200):
        eps = exact(epsilon)
        factor = eps.ball().exp()
        expected = sum(
            ((ball(p) - factor * ball(q)).max(arb(0)) for p, q in shifted(law, shift)),
            start=arb(0),
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
        assert pair.kullback_leibler() == arb.pos_inf()
        assert pair.max_loss() == arb.pos_inf()
    assert guarantees.rho(IntegerNoise(LAW, 0)).lower == math.inf


def test_infinity_mass_is_exact() -> None:
    # shift 1: outcomes with mass of Z + 1 and none of Z are the hole at 1 and the top end 5
    pair = FinitePair(IntegerNoise(LAW, 0), 1)
    assert pair.exact_infinity_mass() == exact("1/4")
    assert pair.reverse().exact_infinity_mass() == exact("5/8")
    assert Fraction(1, 4) in Interval.of_ball(pair.infinity_mass())
    assert profile.epsilon(IntegerNoise(LAW, 0), "1/5").lower == math.inf
    with ctx.workprec(128):
        assert pair.max_finite_loss().overlaps(arb(2).log())


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
        assert worst.remove[0].infinity_mass().overlaps(arb(1) / 6)
        assert worst.add[0].infinity_mass().overlaps(arb(1) / 2)
    assert Fraction(1, 2) in profile.delta(mechanism, 40)


def test_ties_are_decided_exactly_at_zero() -> None:
    # p = q on three of five outcomes: loss 0 is not above 0
    pair = FinitePair(IntegerNoise(["1/4", "1/4", "1/4", "1/4"], 0), 1)
    tails = pair.tails(exact(0))
    assert (tails.p_above - arb("0.25")).is_zero()
    assert (tails.q_above).is_zero()
    assert pair.describe_event(exact(0)) == "the outcomes {4}"
    assert pair.describe_event(exact(-1)) == "the outcomes {1..4}"
