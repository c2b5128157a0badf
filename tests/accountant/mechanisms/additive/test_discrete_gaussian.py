from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from flint import arb

from accountant.mechanisms.additive.discrete_gaussian import DiscreteGaussian
from accountant.mechanisms.additive.gaussian import Gaussian
from accountant.numbers.exact import ExactReal
from accountant.pairs import theta
from accountant.questions import guarantees, profile


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
