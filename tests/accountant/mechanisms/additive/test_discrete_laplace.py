from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from accountant.mechanisms.additive.discrete_laplace import DiscreteLaplace
from accountant.numbers.exact import exact
from accountant.numbers.interval import Interval, enclose
from accountant.pairs.discrete_laplace import DiscreteLaplacePair
from accountant.questions import guarantees, profile, utility

LAWS = [("2", 3), ("0.3", 1), ("sqrt(2)", 4), ("5/7", 2), ("3.25", 1)]
EPSILONS = ["0", "0.3", "-0.7", "-3", "1/7", "1.01", "sqrt(1/2)"]


def mpf(interval: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(interval.lower)) + mpmath.mpf(str(interval.upper))) / 2


@pytest.mark.parametrize(("scale", "sensitivity"), LAWS)
@pytest.mark.parametrize("order", ["1.5", "2", "17/3"])
def test_renyi_divergence_is_the_sum_over_all_outcomes(
    scale: str, sensitivity: int, order: str
) -> None:
    pair = DiscreteLaplacePair(exact(scale), sensitivity)
    value = enclose(lambda: pair.renyi(exact(order).ball()))
    with mpmath.workdps(60):
        assert abs(mpf(value) - pair.reference().renyi(exact(order), 50)) <= mpmath.mpf("1e-28")


@pytest.mark.parametrize(("scale", "sensitivity"), LAWS)
def test_kullback_leibler_is_the_expected_loss(scale: str, sensitivity: int) -> None:
    pair = DiscreteLaplacePair(exact(scale), sensitivity)
    with mpmath.workdps(60):
        expected = pair.reference().integrate(lambda p, q: p * mpmath.log(p / q), None)
        assert abs(mpf(enclose(pair.kullback_leibler)) - expected) <= mpmath.mpf("1e-28")


def test_unit_sensitivity_has_the_elementary_profile() -> None:
    # H = (1 − e^{ε−a})/(1 + e^{−a}) for |ε| ≤ a, with a = 1/b = 2
    value = profile.delta(DiscreteLaplace("1/2"), "0.5")
    with ctx.workprec(256):
        closed = (1 - (-arb("1.5")).exp()) / (1 + (-arb(2)).exp())
        assert Interval.of_ball(closed).overlaps(value)
    assert value.relative_width is not None
    assert value.relative_width <= Fraction(1, 10**30)


@pytest.mark.parametrize(("scale", "sensitivity"), LAWS)
def test_the_pure_guarantee_is_sensitivity_over_scale(scale: str, sensitivity: int) -> None:
    mechanism = DiscreteLaplace(scale, sensitivity)
    largest = exact(sensitivity) / exact(scale)
    assert profile.delta(mechanism, largest).upper == 0
    assert profile.delta(mechanism, exact("0.999999") * largest).lower > 0
    assert profile.epsilon(mechanism, 0).overlaps(enclose(largest.ball))


def test_the_loss_is_compared_exactly_at_its_atoms() -> None:
    # the losses of scale √2, shift 3, are (2j − 3)/√2; the strict side is empty at each
    pair = DiscreteLaplacePair(exact("sqrt(2)"), 3)
    at, below = exact(1) / exact("sqrt(2)"), exact("0.707")
    with ctx.workprec(128):
        r = (-1 / arb(2).sqrt()).exp()
        assert pair.tails(at).q_above.overlaps(r**3 / (1 + r))
        assert pair.tails(below).q_above.overlaps(r**2 / (1 + r))


@pytest.mark.parametrize("level", ["1e-300", "0.01", "0.5", "0.75", "0.999", "1e-3", "sqrt(0.9)"])
@pytest.mark.parametrize("scale", ["0.3", "2", "sqrt(50)"])
def test_quantile_is_the_least_integer_that_reaches_the_level(scale: str, level: str) -> None:
    mechanism = DiscreteLaplace(scale)
    found = utility.quantile(mechanism, level)
    assert found.lower == found.upper
    x = int(found.lower)
    with mpmath.workdps(400):
        rate = 1 / exact(scale).mpf()

        def at_most(z: int) -> mpmath.mpf:
            mass = mpmath.exp(-rate * (-z if z < 0 else z + 1)) / (1 + mpmath.exp(-rate))
            return mass if z < 0 else 1 - mass

        assert at_most(x - 1) < exact(level).mpf() <= at_most(x)


def test_quantiles_at_the_ends_are_infinite() -> None:
    assert utility.quantile(DiscreteLaplace(2), 0).upper == -math.inf
    assert utility.quantile(DiscreteLaplace(2), 1).lower == math.inf


@pytest.mark.parametrize("scale", ["0.3", "2", "sqrt(50)"])
def test_variance_is_the_second_moment(scale: str) -> None:
    with mpmath.workdps(60):
        rate = 1 / exact(scale).mpf()
        mass = mpmath.tanh(rate / 2)
        moment = 2 * mpmath.nsum(lambda z: mass * z**2 * mpmath.exp(-rate * z), [1, mpmath.inf])
        (found,) = utility.variance(DiscreteLaplace(scale))
        assert abs(mpf(found) - moment) <= mpmath.mpf("1e-28") * moment


@given(
    scale=st.fractions(Fraction(1, 20), 50, max_denominator=40),
    epsilon=st.fractions(-4, 4, max_denominator=16),
)
def test_the_full_shift_is_worst(scale: Fraction, epsilon: Fraction) -> None:
    with ctx.workprec(200):
        values = [
            DiscreteLaplacePair(exact(scale), shift).hockey_stick(exact(epsilon))
            for shift in range(1, 6)
        ]
        assert all(not smaller > larger for smaller, larger in pairwise(values))


def test_rho_lies_between_the_kullback_leibler_and_the_pure_bound() -> None:
    # D_a/a ≥ KL at a → 1, and ε-DP implies ε²/2-zCDP
    mechanism = DiscreteLaplace(2, 3)
    found = guarantees.rho(mechanism)
    assert found.upper >= guarantees.renyi(mechanism, 1).lower
    assert found.upper <= Fraction(9, 8)
