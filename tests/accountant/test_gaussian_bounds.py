"""The best μ: closed forms, and points of the profiles between the two curves."""

from __future__ import annotations

import pytest
from scipy.stats import norm

from accountant import profile, tradeoff
from accountant.errors import InvalidInputError, NotApplicableError
from accountant.gaussian_bounds import gaussian_bounds
from accountant.mechanism import Mechanism
from accountant.mechanisms import (
    Composed,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
    Tabulated,
)


def test_exact_where_it_is() -> None:
    bounds = gaussian_bounds(Gaussian(standard_deviation=2))
    assert str(bounds.upper) == str(bounds.lower) == "0.5"
    assert str(bounds.regret) == "0"


def test_randomized_response_touches_at_the_total_variation() -> None:
    # G_μ touches the profile of randomised response at ε = 0: 2Φ(μ/2) − 1 = tanh(1/2)
    bounds = gaussian_bounds(RandomizedResponse(epsilon=1))
    expected = 2 * norm.ppf(1 / (1 + 2.718281828459045**-1))
    assert abs(float(bounds.upper.lower) - expected) < 2e-6
    assert bounds.upper.relative_width is not None
    assert bounds.upper.relative_width < 3e-6


@pytest.mark.parametrize("mechanism", [Laplace(scale=2), DiscreteLaplace(scale=2)])
def test_the_curves_enclose_the_profile(mechanism: Mechanism) -> None:
    bounds = gaussian_bounds(mechanism, down_to="1e-4")
    above = Gaussian(standard_deviation=1, l2_sensitivity=bounds.upper.upper)
    below = Gaussian(standard_deviation=1, l2_sensitivity=bounds.lower.lower)
    largest = 0.0
    for i in range(60):
        epsilon = i / 100
        own = profile.delta(mechanism, epsilon)
        high = profile.delta(above, epsilon)
        assert own.lower <= high.upper
        largest = max(largest, float(high.lower - own.upper) / (1 + 2.718281828459045**epsilon))
        if own.lower > 1e-4:
            assert profile.delta(below, epsilon).lower <= own.upper
    assert largest <= float(bounds.regret.upper)
    assert largest > 0.99 * float(bounds.regret.lower)


def test_refusals() -> None:
    unbounded = Tabulated(p=["1/2", "1/2", 0], q=[0, "1/2", "1/2"])
    with pytest.raises(NotApplicableError, match="unbounded"):
        gaussian_bounds(unbounded)
    with pytest.raises(InvalidInputError, match="down_to=0 > 0"):
        gaussian_bounds(Laplace(scale=1), down_to=0)
    with pytest.raises(InvalidInputError, match="total variation"):
        gaussian_bounds(Laplace(scale=1), down_to="0.9")


def test_power_at_the_least_false_positive_rates() -> None:
    # Laplace: the likelihood ratio is at most e^t, reached below α = e^{−t}/2
    rate = tradeoff.power(Laplace(scale=1), "1e-300")
    assert abs(float(rate.lower) / 2.718281828459045e-300 - 1) < 1e-12
    # Gaussian: Φ(μ − z_α)
    gaussian = tradeoff.power(Gaussian(standard_deviation=1), "1e-300")
    assert abs(float(gaussian.lower) / norm.sf(norm.isf(1e-300) - 1) - 1) < 1e-9


def test_a_subsampled_gaussian_release_keeps_its_mu() -> None:
    step = PoissonSubsampled(Gaussian(standard_deviation=2), "1/10")
    bounds = gaussian_bounds(step, adjacency="add-remove", down_to="1e-6")
    assert str(bounds.upper) == "0.5"
    # no smaller μ will do: a test of a small level has more power than it allows
    power = tradeoff.power(step, "1e-300", adjacency="add-remove")
    smaller = tradeoff.power(Gaussian(standard_deviation="2.5"), "1e-300")
    assert power.lower > smaller.upper
    below = Gaussian(standard_deviation=1, l2_sensitivity=bounds.lower.lower)
    largest = 0.0
    for i in range(40):
        epsilon = i / 20
        own = profile.delta(step, epsilon, adjacency="add-remove")
        high = profile.delta(Gaussian(standard_deviation=2), epsilon)
        assert own.lower <= high.upper
        if own.lower > 1e-6:
            assert profile.delta(below, epsilon).lower <= own.upper
        largest = max(largest, float(high.lower - own.upper) / (1 + 2.718281828459045**epsilon))
    assert 0.99 * float(bounds.regret.lower) < largest <= float(bounds.regret.upper)


def test_a_composition_of_subsampled_releases_is_refused() -> None:
    step = PoissonSubsampled(Gaussian(standard_deviation=2), "1/10")
    with pytest.raises(NotApplicableError, match="unbounded"):
        gaussian_bounds(Composed(step, 3), adjacency="add-remove")
