from __future__ import annotations

import functools
import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from accountant import guarantees, profile, utility
from accountant.errors import InvalidInputError
from accountant.interval import Interval, ball, enclose
from accountant.mechanisms.integer_noise import IntegerNoise
from accountant.notation import parse
from accountant.number import Number, exact
from accountant.pairs.finite import FinitePair

LAW = [Fraction(1, 8), Fraction(0), Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)]

weights = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


def law_of(counts: list[int]) -> list[Fraction]:
    return [Fraction(count, sum(counts)) for count in counts]


def shifted(law: list[Fraction], shift: int) -> list[tuple[Fraction, Fraction]]:
    padding = [Fraction(0)] * shift
    return list(zip(padding + law, law + padding, strict=True))


@given(counts=weights, shift=st.integers(1, 3))
def test_total_variation_is_the_exact_fraction(counts: list[int], shift: int) -> None:
    law = law_of(counts)
    pair = IntegerNoise(law, -2, shift).worst_case(None).remove[-1]
    expected = sum((max(p - q, Fraction(0)) for p, q in shifted(law, shift)), start=Fraction(0))
    found = enclose(lambda: pair.hockey_stick(exact(0)))
    assert expected in found
    assert found.relative_width is not None
    assert found.relative_width <= Fraction(1, 10**30)


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


@given(counts=weights, start=st.fractions(-2, 2, max_denominator=8))
def test_profile_falls_and_is_convex_in_the_factor(counts: list[int], start: Fraction) -> None:
    pair = FinitePair(IntegerNoise(law_of(counts), 0), 1)
    with ctx.workprec(200):
        points = [exact(start + Fraction(step, 8)) for step in range(3)]
        values = [pair.hockey_stick(point) for point in points]
        x = [point.ball().exp() for point in points]
        assert all(not later > earlier for earlier, later in pairwise(values))
        chord = values[0] + (values[2] - values[0]) * (x[1] - x[0]) / (x[2] - x[0])
        assert not values[1] > chord


@given(counts=weights, epsilon=st.fractions(-2, 2, max_denominator=8))
def test_reversal_identity(counts: list[int], epsilon: Fraction) -> None:
    # H_(P‖Q)(−ε) = 1 − e^{−ε} + e^{−ε} H_(Q‖P)(ε) for every pair.
    pair = FinitePair(IntegerNoise(law_of(counts), 0, 2), 2)
    with ctx.workprec(200):
        factor = (-exact(epsilon).ball()).exp()
        reverse = pair.reverse().hockey_stick(exact(epsilon))
        difference = pair.hockey_stick(exact(-epsilon)) - (1 - factor + factor * reverse)
        assert difference.contains(0)


@pytest.mark.parametrize("epsilon", ["0.3", "-0.6", "1/3", "2", "sqrt(2)"])
@pytest.mark.parametrize("shift", [1, 2])
def test_two_routes_agree(epsilon: str, shift: int) -> None:
    for pair in (
        FinitePair(IntegerNoise(LAW, -2, 2), shift),
        FinitePair(IntegerNoise(LAW, -2, 2), shift, flipped=True),
    ):
        found = enclose(functools.partial(pair.hockey_stick, exact(epsilon)))
        reference = pair.reference().hockey_stick(exact(epsilon), 50)
        with mpmath.workdps(60):
            assert abs(mpmath.mpf(str(found.lower)) - reference) <= mpmath.mpf("1e-30")


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


def test_the_law_in_a_certificate_is_exact() -> None:
    law = FinitePair(IntegerNoise(["1/3", "2/3"], 5), 1).law()
    assert law == {
        "law": "finite",
        "outcomes": [5, 6, 7],
        "p": ["0", "1/3", "2/3"],
        "q": ["1/3", "2/3", "0"],
    }


def test_utility_is_exact() -> None:
    mechanism = IntegerNoise(LAW, -2)  # −2, 0, 1, 2
    assert mechanism.mean() == Fraction(1, 4)
    (variance,) = utility.variance(mechanism)
    assert Fraction(5, 4) - Fraction(1, 16) in variance
    assert Fraction(5, 4) in utility.mean_squared_error(mechanism)
    levels: list[Number] = ["1/8", "0.126", "5/8", "0.63", "7/8", "1"]
    assert [int(utility.quantile(mechanism, p).lower) for p in levels] == [-2, 0, 0, 1, 1, 2]
    assert utility.quantile(mechanism, 0).upper == -math.inf


def test_notation_gives_the_law_back() -> None:
    mechanism = IntegerNoise(["1/3", "2/3"], -1, 2)
    assert repr(mechanism) == "IntegerNoise(probabilities=['1/3', '2/3'], lowest=-1, sensitivity=2)"
    assert mechanism == IntegerNoise(["2/6", "4/6"], -1, 2)
    assert parse(repr(mechanism)) == mechanism


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        (["1/3", "1/3"], "Expected probabilities of sum 1, not 2/3."),
        ([0.1, 0.2, 0.7], "Expected probabilities of sum 1, not 0.99999999999999997"),
        (["-1/3", "4/3"], "Expected probabilities[0]='-1/3' ≥ 0."),
        (["sqrt(1/2)", "1/2"], "Expected probabilities[0]=sqrt(0.5) to be rational."),
        ([], "Expected probabilities to have at least one entry."),
    ],
)
def test_bad_input_is_named(probabilities: list[Number], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        IntegerNoise(probabilities, 0)
    assert str(caught.value).startswith(message)
