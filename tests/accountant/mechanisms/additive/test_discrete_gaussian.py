from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from flint import arb

from accountant.mechanisms.additive.discrete_gaussian import DiscreteGaussian
from accountant.mechanisms.additive.gaussian import Gaussian
from accountant.numbers.exact import ExactReal, exact
from accountant.numbers.interval import Interval
from accountant.pairs import theta
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.questions import guarantees, profile, utility


def mpf(interval: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(interval.lower)) + mpmath.mpf(str(interval.upper))) / 2


def test_rho_is_that_of_the_continuous_gaussian_and_attained_at_order_two() -> None:
    mechanism = DiscreteGaussian("0.3", 2)
    rho = guarantees.rho(mechanism)
    assert Fraction(20, 3) in rho  # 4/0.6
    twice = guarantees.renyi(mechanism, 2)
    assert Fraction(40, 3) in twice
    # at an order where a·s is no integer the divergence is smaller
    assert guarantees.renyi(mechanism, "1.25").upper < Fraction(5, 4) * Fraction(20, 3)


def test_losses_on_the_threshold_are_not_counted() -> None:
    # v = 4, s = 1: L(z) = (2z − 1)/8, which is 3/8 exactly at z = 2; {L > 3/8} is {z ≥ 3}
    pair = DiscreteGaussianPair(exact(4), 1)
    assert pair.describe_event(exact("3/8")).startswith("outcomes at least 3 above")
    assert pair.describe_event(exact("0.3749999999")).startswith("outcomes at least 2 above")


@pytest.mark.parametrize("epsilon", ["0", "1e-3", "0.01", "0.3", "1", "7.7", "40"])
@pytest.mark.parametrize("parameter", ["1e-3", "1", "1e6", "1e12"])
def test_profile_takes_few_terms_and_is_narrow_over_the_whole_range(
    parameter: str, epsilon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = DiscreteGaussian(parameter)
    lengths: list[int] = []
    direct = theta._direct

    def counted(v: ExactReal, start: int, terms: int) -> arb:
        lengths.append(terms)
        return direct(v, start, terms)

    monkeypatch.setattr(theta, "_direct", counted)
    found = profile.delta(mechanism, epsilon)
    assert max(lengths, default=0) <= 2000
    assert 0 < found.lower <= found.upper
    assert (found.upper - found.lower) / found.lower < Decimal("1e-27")


@pytest.mark.parametrize("epsilon", ["1e-7", "1e-6", "2e-6"])
def test_the_continuous_gaussian_is_the_limit(epsilon: str) -> None:
    # σ² = 1e12: the two profiles differ by the discretisation, of relative order 1/σ = 1e-6
    discrete = profile.delta(DiscreteGaussian("1e12"), epsilon)
    continuous = profile.delta(Gaussian("1e6"), epsilon)
    ratio = Fraction(discrete.lower) / Fraction(continuous.lower)
    assert abs(ratio - 1) < Fraction(1, 10**5)


@pytest.mark.parametrize("level", ["1e-100", "0.01", "0.5", "0.8", "0.999", "sqrt(0.9)"])
@pytest.mark.parametrize("parameter", ["0.2", "30"])
def test_quantile_is_the_least_integer_that_reaches_the_level(parameter: str, level: str) -> None:
    found = utility.quantile(DiscreteGaussian(parameter), level)
    assert found.lower == found.upper
    x = int(found.lower)
    with mpmath.workdps(130):
        spread = 2 * exact(parameter).mpf()
        masses = {z: mpmath.exp(-mpmath.mpf(z * z) / spread) for z in range(-250, 251)}
        total = mpmath.fsum(masses.values())
        below = mpmath.fsum(mass for z, mass in masses.items() if z < x) / total
        assert below < exact(level).mpf() <= below + masses[x] / total


def test_quantiles_at_the_ends_are_infinite() -> None:
    assert utility.quantile(DiscreteGaussian(2), 0).upper == -math.inf
    assert utility.quantile(DiscreteGaussian(2), 1).lower == math.inf


def test_the_variance_is_less_than_the_parameter() -> None:
    (small,) = utility.variance(DiscreteGaussian("0.2660156010"))
    assert Fraction("0.2370274") < small.lower <= small.upper < Fraction("0.2370275")
    (unit,) = utility.variance(DiscreteGaussian(1))
    assert Fraction(999999, 10**6) < unit.lower <= unit.upper < 1
    (large,) = utility.variance(DiscreteGaussian("1e12"))
    assert 10**12 in large
