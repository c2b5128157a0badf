"""Sums of many discrete Gaussian variables: by convolution, and as nearly one such variable."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from unittest import mock

import pytest
from flint import arb, ctx

from accountant.budget.calibrate import EpsilonDelta, calibrate
from accountant.mechanisms import Composed, DiscreteGaussian
from accountant.numbers.exact import ExactReal, exact
from accountant.numbers.interval import Interval, enclose
from accountant.pairs import discrete_gaussian_product as module
from accountant.pairs.discrete_gaussian_product import DiscreteGaussianProductPair
from accountant.pairs.theta import theta
from accountant.questions import profile

ONE = ExactReal.of_rational(1)


def by_convolution(pair: DiscreteGaussianProductPair, epsilon: str) -> Interval:
    with mock.patch.object(module, "_smooth", return_value=None):
        return enclose(lambda: pair.hockey_stick(exact(epsilon)))


@pytest.mark.parametrize(("parameter", "count", "shift"), [(12, 10, 1), ("25/2", 3, 2), (40, 7, 3)])
@pytest.mark.parametrize("epsilon", ["-1", "0", "0.3", "4"])
def test_both_routes_agree(parameter: int | str, count: int, shift: int, epsilon: str) -> None:
    pair = DiscreteGaussianProductPair(Fraction(parameter), count, shift, 1, 0)
    fast = enclose(lambda: pair.hockey_stick(exact(epsilon)))
    slow = by_convolution(pair, epsilon)
    assert fast.overlaps(slow)
    width = fast.relative_width
    assert width is not None
    assert width <= Fraction(1, 10**30)


@pytest.mark.parametrize("parameter", [1, 2, 3])
def test_the_factor_encloses_every_mass_of_the_sum(parameter: int) -> None:
    """At 16 bits the shortcut is taken for small parameters too, and has to be wide enough."""
    count, v = 4, Fraction(parameter)
    pair = DiscreteGaussianProductPair(v, count, 1, 1, 0)
    with ctx.workprec(200):
        law = module._law(pair, 200)
        total = theta(ExactReal.of_rational(count * v))
    with ctx.workprec(8):
        factor = module._smooth(v, count)
    assert factor is not None
    with ctx.workprec(200):
        for s in range(-20, 21):
            gaussian = (-arb(s * s) / (2 * count * parameter)).exp() / total
            assert (gaussian * factor).contains(law.sums[s + law.reach])


def test_the_shortcut_is_refused_where_it_would_show() -> None:
    with ctx.workprec(128):
        assert module._smooth(Fraction(1), 4) is None
        assert module._smooth(Fraction(1, 50), 4) is None
        assert module._smooth(Fraction(12), 4) is not None


def test_a_million_releases() -> None:
    found = calibrate("DiscreteGaussian", EpsilonDelta(1, "1e-6"), count=10**6)
    gaussian = calibrate("Gaussian", EpsilonDelta(1, "1e-6"), count=10**6)
    variance = gaussian.least.ball() ** 2
    assert abs(float(found.least.ball() / variance) - 1) < 1e-11  # as fine as theirs
    assert profile.delta(Composed(found.mechanism, 10**6), 1).upper <= Fraction(1, 10**6)


def test_more_releases_are_less_private() -> None:
    noise = DiscreteGaussian(parameter=100)
    found = [profile.delta(Composed(noise, n), 1) for n in (100, 101, 200, 1000)]
    assert all(before.upper < after.lower for before, after in pairwise(found))
