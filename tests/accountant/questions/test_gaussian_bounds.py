"""The best μ: closed forms, and points of the profiles between the two curves."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from scipy.stats import norm

import dpassay
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.mechanisms import (
    DiscreteLaplace,
    Gaussian,
    Laplace,
    MixtureOfGaussians,
    PoissonSubsampled,
    RandomizedResponse,
    Tabulated,
)
from dpassay.accountant.questions import guarantees, profile, tradeoff
from dpassay.accountant.questions.gaussian_bounds import gaussian_bounds
from tests.near import narrow


def test_randomized_response_touches_at_the_total_variation() -> None:
    # G_μ touches the profile of randomised response at ε = 0: 2Φ(μ/2) − 1 = tanh(1/2)
    bounds = gaussian_bounds(RandomizedResponse(epsilon=1))
    expected = 2 * norm.ppf(1 / (1 + 2.718281828459045**-1))
    assert abs(float(bounds.upper.lower) - expected) < 2e-6
    assert narrow(bounds.upper, 3e-6)


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


def test_no_mu_where_an_outcome_gives_the_record_away() -> None:
    # f(α) = 1/2 − α on [0, 1/2]: f(κ) = κ at 1/4, and no μ is enough
    leaky = Tabulated(p=["1/2", "1/2", 0], q=[0, "1/2", "1/2"])
    bounds = gaussian_bounds(leaky)
    assert bounds.upper.lower == Decimal("Infinity")
    assert float(bounds.regret.lower) == pytest.approx(1 / 4, rel=1e-3, abs=0)
    assert bounds.regret.lower <= Decimal("0.25") <= bounds.regret.upper
    # δ = 1/2 at every ε: δ_μ(0) = 2Φ(μ/2) − 1 is the largest of δ_μ
    assert float(bounds.lower.lower) == pytest.approx(2 * norm.ppf(0.75), rel=2e-6, abs=0)

    nothing_hidden = gaussian_bounds(Tabulated(p=[1, 0], q=[0, 1]))
    assert nothing_hidden.upper.lower == nothing_hidden.lower.lower == Decimal("Infinity")
    assert str(nothing_hidden.regret) == "0"


def test_refusals() -> None:
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


@pytest.mark.parametrize(
    "text",
    ["Composed(PoissonSubsampled(Gaussian(1.1), 1/50), 500)", "RandomAllocation(Gaussian(1), 20)"],
)
def test_a_run_but_for_a_rare_event(text: str) -> None:
    """δ ≤ δ_μ + δ₀ everywhere, for no smaller μ; the regret is the largest (δ_μ − δ)/(1 + e^ε)."""
    floor, relation = Decimal("1e-8"), "add-remove"
    run = dpassay.parse(text)
    found = gaussian_bounds(
        run, adjacency=relation, down_to=floor, relative_width=Fraction(1, 1000)
    )
    assert found.upper_at_delta0.upper < found.upper.lower * Decimal("0.6")
    assert found.regret_at_delta0.upper < found.regret.lower / 2
    most, less = (
        Gaussian(standard_deviation=1, l2_sensitivity=mu)
        for mu in (found.upper_at_delta0.upper, found.upper_at_delta0.lower * Decimal("0.999"))
    )
    needed, largest = False, 0.0
    for i in range(41):
        epsilon = Fraction(i, 10)
        own = profile.delta(run, epsilon, adjacency=relation)
        high = profile.delta(most, epsilon)
        assert own.lower <= high.upper + floor
        needed |= own.lower > profile.delta(less, epsilon).upper + floor
        gap = float(high.lower - own.upper) / (1 + 2.718281828459045 ** float(epsilon))
        largest = max(largest, gap)
    assert needed
    assert (
        0.9 * float(found.regret_at_delta0.lower) < largest <= float(found.regret_at_delta0.upper)
    )


def test_gaussian_releases_need_their_mu_but_for_a_rare_event() -> None:
    found = gaussian_bounds(Gaussian(2))
    assert str(found.upper) == str(found.lower) == "0.5"
    assert Decimal("0.49999") < found.upper_at_delta0.lower < found.upper_at_delta0.upper == 1 / 2
    hidden = gaussian_bounds(Gaussian("1e12"))  # its δ is nowhere above δ₀
    assert float(hidden.upper.upper) == 1e-12
    assert hidden.upper_at_delta0.lower == 0


def test_a_leak_may_be_such_an_event() -> None:
    """A leak of 1e-12 leaves (1 − 1e-12) of randomised response, in which G touches it at ε = 0."""
    found = gaussian_bounds(dpassay.parse("Guaranteed(1, 1e-12)"))
    assert found.upper.lower == found.regret.lower * Decimal("Infinity")
    assert float(found.upper_at_delta0.lower) == pytest.approx(1.232035, rel=1e-4, abs=0)
    beyond = gaussian_bounds(dpassay.parse("Guaranteed(1, 1e-9)"))
    assert beyond.upper_at_delta0.lower == Decimal("Infinity")
    assert beyond.regret_at_delta0 == beyond.regret


def test_a_mixture_has_the_mu_of_its_largest_shift() -> None:
    mixture = MixtureOfGaussians(2, [0, 1, 3], ["0.9", "0.09", "0.01"])
    bounds = gaussian_bounds(mixture, adjacency="add-remove", down_to="1e-4")
    assert str(bounds.upper) == "1.5"
    power = tradeoff.power(mixture, "1e-300", adjacency="add-remove")
    smaller = tradeoff.power(Gaussian(standard_deviation=1, l2_sensitivity="1.3"), "1e-300")
    assert power.lower > smaller.upper
    for i in range(20):
        own = profile.delta(mixture, Fraction(i, 20), adjacency="add-remove")
        assert own.lower <= profile.delta(Gaussian("2/3"), Fraction(i, 20)).upper


def test_mu_of_other_noise_is_the_least_one() -> None:
    with pytest.raises(NotApplicableError, match="Ask gaussian_bounds for the least mu"):
        guarantees.mu(dpassay.parse("Laplace(1)"))
    assert dpassay.mu("Laplace(1)") == dpassay.gaussian_bounds("Laplace(1)").upper
    assert str(dpassay.mu("Tabulated([1, 0], [0, 1])")) == "Infinity"
    said = str(dpassay.gaussian_bounds("Laplace(1)"))
    assert said.startswith("mu-GDP for every mu ≥ 1.030064, with regret 0.037")
    assert "; (mu, 1e-10)-GDP for every mu ≥ 1.030" in said


def test_laws_that_are_one_have_a_mu_of_0() -> None:
    assert dpassay.mu("Channel([['1/2', '1/2'], ['1/2', '1/2']])") == 0


def test_no_regret_is_below_0() -> None:
    # G_μ + δ₀ touches the profile at 0, and is below it elsewhere: the regret is 0 but for rounding
    bounds = gaussian_bounds(Laplace(scale=2), down_to="0.2")
    assert 0 <= bounds.regret_at_delta0.lower <= bounds.regret_at_delta0.upper < 1e-11
