from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx

from accountant.mechanisms.additive.discrete_laplace import DiscreteLaplace
from accountant.numbers.exact import exact
from accountant.numbers.interval import Interval
from accountant.pairs.discrete_laplace import DiscreteLaplacePair
from accountant.questions import guarantees, profile, utility


def mpf(interval: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(interval.lower)) + mpmath.mpf(str(interval.upper))) / 2


def test_unit_sensitivity_has_the_elementary_profile() -> None:
    # H = (1 − e^{ε−a})/(1 + e^{−a}) for |ε| ≤ a, with a = 1/b = 2
    value = profile.delta(DiscreteLaplace("1/2"), "0.5")
    with ctx.workprec(256):
        closed = (1 - (-arb("1.5")).exp()) / (1 + (-arb(2)).exp())
        assert Interval.of_ball(closed).overlaps(value)
    assert value.relative_width is not None
    assert value.relative_width <= Fraction(1, 10**30)


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


def test_rho_lies_between_the_kullback_leibler_and_the_pure_bound() -> None:
    # D_a/a ≥ KL at a → 1, and ε-DP implies ε²/2-zCDP
    mechanism = DiscreteLaplace(2, 3)
    found = guarantees.rho(mechanism)
    assert found.upper >= guarantees.renyi(mechanism, 1).lower
    assert found.upper <= Fraction(9, 8)
