"""What fits into a budget: closed forms, and both sides of each answer."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from accountant import baselines, profile
from accountant.allotment import equal_epsilon, largest_sampling_prob, most_releases
from accountant.errors import NotApplicableError
from accountant.mechanisms import Composed, Gaussian, Laplace, PoissonSubsampled
from accountant.target import EpsilonDelta, Mu

BUDGET = EpsilonDelta(epsilon=1, delta="1e-5")


def test_most_gaussian_releases() -> None:
    # μ = √k/σ: k ≤ (μσ)²
    assert most_releases(Gaussian(standard_deviation=10), Mu(mu="1/2")) == 25
    count = most_releases(Gaussian(standard_deviation=100), BUDGET)
    for n, holds in ((count, True), (count + 1, False)):
        delta = profile.delta(Composed(Gaussian(standard_deviation=100), n), 1)
        assert (delta.upper <= Fraction(1, 10**5)) is holds


def test_most_pure_releases() -> None:
    assert most_releases(Laplace(scale=10), EpsilonDelta(epsilon=1)) == 10
    with pytest.raises(NotApplicableError, match="Not even one"):
        most_releases(Laplace(scale="1/2"), EpsilonDelta(epsilon=1))


def test_largest_sampling_rate() -> None:
    share = largest_sampling_prob(
        Gaussian(standard_deviation=1), BUDGET, 1, relative_width=Fraction(1, 10**9)
    )
    at = PoissonSubsampled(Gaussian(standard_deviation=1), share.safe)
    assert profile.delta(at, 1, adjacency="add-remove").upper <= Fraction(1, 10**5)
    above = PoissonSubsampled(Gaussian(standard_deviation=1), share.safe * Fraction(1000001, 10**6))
    assert profile.delta(above, 1, adjacency="add-remove").lower > Fraction(1, 10**5)
    with pytest.raises(NotApplicableError, match="Every sampling rate"):
        largest_sampling_prob(Gaussian(standard_deviation=100), BUDGET, 1)


def test_equal_shares_of_epsilon() -> None:
    share = equal_epsilon(BUDGET, 20)
    assert share.safe > Fraction(1, 20)
    assert baselines.kairouz_delta([(share.safe, 0, 20)], 1).upper <= Fraction(1, 10**5)
    more = share.safe * Fraction(1000001, 10**6)
    assert baselines.kairouz_delta([(more, 0, 20)], 1).lower > Fraction(1, 10**5)
    # one release: δ(ε) of randomised response is (e^{ε₀} − e^ε)/(1 + e^{ε₀})
    one = equal_epsilon(EpsilonDelta(epsilon=1, delta="0.1"), 1)
    assert abs(float(one.largest.lower) - math.log((math.e + 0.1) / 0.9)) < 1e-11
    assert equal_epsilon(EpsilonDelta(epsilon=1), 4).safe == Fraction(1, 4)
