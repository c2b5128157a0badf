"""Calibration, shares of a budget, and the least noise, the largest rate, the most releases."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant.budget.allotment import (
    largest_sampling_prob,
    most_releases,
    shares_of_epsilon,
)
from dpassay.accountant.budget.calibrate import (
    Calibration,
    EpsilonDelta,
    Mu,
    Rho,
    Target,
    calibrate,
)
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.mechanisms import Composed, Gaussian, Guaranteed, Laplace, PoissonSubsampled
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile
from tests.near import narrow

WIDTH = Fraction(1, 10**12)
SCALES = [("Gaussian", "standard_deviation"), ("Laplace", "scale"), ("DiscreteLaplace", "scale")]


def noise(found: Calibration) -> Fraction:
    value = exact(getattr(found.mechanism, found.argument)).rational
    assert value is not None
    return value


def delta_at(name: str, argument: str, value: Fraction, epsilon: str) -> Interval:
    from dpassay.accountant import notation

    mechanism = notation.build(name, {argument: value})
    assert isinstance(mechanism, Mechanism)
    return profile.delta(mechanism, epsilon)


@pytest.mark.parametrize(("name", "argument"), SCALES)
@given(
    epsilon=st.sampled_from(["0", "0.01", "1/3", "1", "5"]),
    exponent=st.sampled_from([-300, -20, -6, -1]),
)
def test_delta_is_met_and_missed_just_below(
    name: str, argument: str, epsilon: str, exponent: int
) -> None:
    target = f"1e{exponent}"
    found = calibrate(name, EpsilonDelta(epsilon, target))
    width = found.least.relative_width
    assert width is not None
    assert width <= WIDTH
    bound = Fraction(target)
    spare = bound * Fraction(1, 10**29)  # the width of an enclosure
    assert Fraction(delta_at(name, argument, noise(found), epsilon).upper) <= bound + spare
    least = Fraction(found.least.lower)
    assert Fraction(delta_at(name, argument, least, epsilon).lower) > bound
    # the printed digits cost at most one unit of the last of 12
    assert noise(found) <= Fraction(found.least.upper) * (1 + Fraction(1, 10**11))


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        ("Laplace", EpsilonDelta("0.1"), "Laplace(scale=10)"),
        ("Laplace", EpsilonDelta("0.3"), "Laplace(scale='3.33333333334')"),
        ("DiscreteLaplace", EpsilonDelta("0.1"), "DiscreteLaplace(scale=10)"),
        ("Gaussian", Mu("0.1"), "Gaussian(standard_deviation=10)"),
        ("Gaussian", Mu("1/3"), "Gaussian(standard_deviation=3)"),
        ("Gaussian", Mu("0.7"), "Gaussian(standard_deviation='1.42857142858')"),
        ("Gaussian", Rho("0.005"), "Gaussian(standard_deviation=10)"),
    ],
)
def test_noise_that_is_just_enough_is_found(name: str, target: Target, expected: str) -> None:
    assert repr(calibrate(name, target).mechanism) == expected


def test_integer_noise_has_the_mu_of_its_median_event() -> None:
    """{Z ≥ 1} needs it: μ = 2z with Φ(z) = (1 + p(0))/2."""
    found = calibrate("DiscreteGaussian", Mu("0.2"))
    total = sum(math.exp(-(z**2) / (2 * float(noise(found)))) for z in range(-60, 61))
    assert math.isclose(2 * NormalDist().inv_cdf((1 + 1 / total) / 2), 0.2, rel_tol=1e-10)


def test_laplace_meets_gaussian_dp() -> None:
    found = calibrate("Laplace", Mu("0.5"))
    limit = Gaussian(standard_deviation=2)
    just_below = Laplace(scale=Fraction(found.least.lower) * (1 - 10 * WIDTH))
    epsilons = [Fraction(k, 64) for k in range(64)]

    def misses(mechanism: Mechanism, epsilon: Fraction) -> bool:
        return profile.delta(mechanism, epsilon).lower > profile.delta(limit, epsilon).upper

    assert not any(misses(found.mechanism, epsilon) for epsilon in epsilons)
    # at small epsilon, where the tangency is
    assert any(misses(just_below, epsilon) for epsilon in [*epsilons, Fraction(0)])


def test_a_schedule_of_unequal_noise_shares_the_budget() -> None:
    """Gaussian releases with 1, 2 and 2 times the spread have μ² = (1 + 1/4 + 1/4)·μ_1²."""
    target = EpsilonDelta(1, "1e-6")
    found = calibrate("Gaussian", target, schedule=[1, 2, 2])
    one = calibrate("Gaussian", target)
    assert (found.least.ball() ** 2).overlaps(one.least.ball() ** 2 * 3 / 2)
    assert profile.delta(found.whole, 1).upper <= Decimal("1e-6")
    laplace = calibrate("Laplace", EpsilonDelta(1), schedule=[1, 2])
    assert laplace.mechanism == Laplace(scale="1.5")
    tree = calibrate("KaryTree", EpsilonDelta(1), steps=9, arity=3, schedule=[1, 3])
    assert tree.least.ball().overlaps(arb(3) / 4)
    integers = calibrate("DiscreteGaussian", Rho("1/10"), schedule=[2])  # 4 times σ²
    assert integers.least.ball().overlaps(arb(5) / 4)


def test_a_counter_gets_the_noise_with_the_smaller_error() -> None:
    found = calibrate("BinaryTree", EpsilonDelta("0.1", "1e-6"), steps=1000)
    assert found.argument == "mu"
    pure = calibrate("BinaryTree", EpsilonDelta("0.1"), steps=16)
    assert pure.argument == "epsilon"
    with pytest.raises(NotApplicableError, match="give a delta > 0"):
        calibrate("SquareRootFactorization", EpsilonDelta("0.1"), steps=1000)
    mu = calibrate("SquareRootFactorization", Mu(1), steps=1000)
    assert repr(mu.mechanism) == "SquareRootFactorization(steps=1000, mu=1)"


@pytest.mark.slow
def test_fewer_digits_where_twelve_are_out_of_reach() -> None:
    found = calibrate(
        "Laplace", EpsilonDelta(1, "1e-6"), count=200, sampling_prob="0.01", adjacency="add-remove"
    )
    assert found.achieved["delta"].upper <= Decimal("1e-6")
    assert narrow(found.least, Fraction(1, 10**4))


@pytest.mark.slow
def test_one_direction_may_need_less_noise() -> None:
    how: dict[str, Any] = {"sampling_prob": "0.1", "adjacency": "add-remove", "count": 2}
    both = calibrate("Gaussian", EpsilonDelta("0.1", "1e-3"), **how)
    ends = [
        calibrate("Gaussian", EpsilonDelta("0.1", "1e-3"), direction=d, **how).least
        for d in ("add", "remove")
    ]
    assert min(end.upper for end in ends) < both.least.lower
    assert max(ends, key=lambda end: end.lower).overlaps(both.least)
    with pytest.raises(InvalidInputError, match="direction"):
        calibrate("Gaussian", Mu(1), direction="add")


# What fits into a budget: closed forms, and both sides of each answer.


BUDGET = EpsilonDelta(epsilon=1, delta="1e-5")


def test_most_pure_releases() -> None:
    assert most_releases(Laplace(scale=10), EpsilonDelta(epsilon=1)) == 10
    with pytest.raises(NotApplicableError, match="Not even one"):
        most_releases(Laplace(scale="1/2"), EpsilonDelta(epsilon=1))


def test_equal_shares_of_epsilon() -> None:
    share = shares_of_epsilon(BUDGET, [1], count=20)
    assert share.safe > Fraction(1, 20)
    assert profile.delta(Composed(Guaranteed(share.safe), 20), 1).upper <= Fraction(1, 10**5)
    more = share.safe * Fraction(1000001, 10**6)
    assert profile.delta(Composed(Guaranteed(more), 20), 1).lower > Fraction(1, 10**5)
    # one release: δ(ε) of randomised response is (e^{ε₀} − e^ε)/(1 + e^{ε₀})
    one = shares_of_epsilon(EpsilonDelta(epsilon=1, delta="0.1"), [1])
    assert abs(float(one.largest.lower) - math.log((math.e + 0.1) / 0.9)) < 1e-11
    assert shares_of_epsilon(EpsilonDelta(epsilon=1), [1], count=4).safe == Fraction(1, 4)


def test_shares_of_epsilon_in_proportion() -> None:
    weights = ["3", "1/2", "1"]
    share = shares_of_epsilon(BUDGET, weights, count=4)

    def delta(unit: Fraction) -> Interval:
        parts = [Guaranteed(unit * Fraction(weight)) for weight in weights]
        return profile.delta(Composed(parts, 4), 1)

    assert (share.largest.relative_width or 1) <= Fraction(1, 10**12)
    assert delta(share.safe).upper <= Fraction(1, 10**5)
    assert delta(share.safe * (1 + Fraction(1, 10**11))).lower > Fraction(1, 10**5)
    # pure: basic composition
    assert shares_of_epsilon(EpsilonDelta(epsilon=1), weights, count=4).safe == Fraction(
        "0.0555555555555"
    )


# Roots beside estimates, and profiles that keep below another one: both sides are proved.


BOTH = Adjacency.ADD_REMOVE
NARROW = Fraction(1, 10**12)
ROUGH = Fraction(1, 10**14)


def composed(sigma: ExactReal | Fraction | str, q: str, count: int) -> Composed:
    return Composed(PoissonSubsampled(Gaussian(standard_deviation=sigma), q), count)


@pytest.mark.parametrize(
    ("epsilon", "delta", "q", "count"),
    [
        ("1", "1e-5", "0.01", 1000),
        ("8", "1e-6", "0.05", 2000),
        ("1/2", "1e-9", "1e-3", 10**6),
        ("3", "1e-5", "0.2", 50),
        ("1", "1e-5", "0.5", 10),
    ],
)
def test_the_least_noise_is_enclosed(epsilon: str, delta: str, q: str, count: int) -> None:
    target = EpsilonDelta(epsilon, delta)
    found = calibrate("Gaussian", target, adjacency=BOTH, count=count, sampling_prob=q)
    width = found.least.relative_width
    assert width is not None
    assert width <= NARROW
    limit = Fraction(delta)
    for end, met in ((found.least.lower, False), (found.least.upper, True)):
        value = profile.delta(
            composed(Fraction(end), q, count), epsilon, adjacency=BOTH, relative_width=ROUGH
        )
        assert (Fraction(value.upper) < limit) is met
        assert (Fraction(value.lower) > limit) is not met
    achieved = profile.delta(found.whole, epsilon, adjacency=BOTH, relative_width=ROUGH)
    assert found.achieved["delta"].lower <= achieved.upper
    assert achieved.lower <= found.achieved["delta"].upper
    assert Fraction(found.achieved["delta"].upper) <= limit


def test_few_digits_are_rounded_to_the_safe_side() -> None:
    target = EpsilonDelta(1, "1e-5")
    found = calibrate(
        "Gaussian", target, adjacency=BOTH, count=1000, sampling_prob="0.01", digits=2
    )
    assert found.mechanism == Gaussian(standard_deviation="1.5")
    exact_delta = profile.delta(found.whole, 1, adjacency=BOTH, relative_width=NARROW)
    assert found.achieved["delta"].lower <= exact_delta.upper
    assert exact_delta.lower <= found.achieved["delta"].upper
    assert narrow(found.achieved["delta"], Fraction(1, 10**8))


def test_as_many_digits_as_are_asked_for() -> None:
    found = calibrate("Gaussian", EpsilonDelta(1, "1e-5"), digits=20)
    value, unit = noise(found), Fraction(1, 10**19)
    assert (value / unit).denominator == 1
    fine = Fraction(1, 10**30)
    enough = profile.delta(Gaussian(value), 1, relative_width=fine)
    assert Fraction(enough.upper) <= Fraction(1, 10**5)
    less = profile.delta(Gaussian(value - unit), 1, relative_width=fine)
    assert Fraction(less.lower) > Fraction(1, 10**5)


@pytest.mark.parametrize(("sigma", "count"), [("1", 1), ("1.5", 10), ("1.1", 1000), ("2", 10**6)])
def test_the_largest_rate_is_enclosed(sigma: str, count: int) -> None:
    target = EpsilonDelta(1, "1e-5")
    share = largest_sampling_prob(Gaussian(standard_deviation=sigma), target, count)
    assert narrow(share.largest, Fraction(1, 10**9))
    assert share.safe <= Fraction(share.largest.lower)
    for end, met in ((share.largest.lower, True), (share.largest.upper, False)):
        value = profile.delta(
            composed(sigma, str(end), count), 1, adjacency=BOTH, relative_width=ROUGH
        )
        assert (Fraction(value.upper) < Fraction("1e-5")) is met


@pytest.mark.parametrize(("sigma", "q"), [("0.8", "0.001"), ("5", "0.01"), ("2", "0.1")])
def test_the_most_releases_are_found(sigma: str, q: str) -> None:
    release = PoissonSubsampled(Gaussian(standard_deviation=sigma), q)
    count = most_releases(release, EpsilonDelta(1, "1e-5"), adjacency=BOTH)
    for number, met in ((count, True), (count + 1, False)):
        value = profile.delta(Composed(release, number), 1, adjacency=BOTH, relative_width=NARROW)
        assert (Fraction(value.upper) < Fraction("1e-5")) is met
