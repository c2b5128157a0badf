"""What fits into a budget: closed forms, and both sides of each answer."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpassay.accountant.budget.allotment import (
    equal_epsilon,
    most_releases,
    shares_of_epsilon,
)
from dpassay.accountant.budget.target import EpsilonDelta, Mu
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.mechanisms import (
    Composed,
    Gaussian,
    Guaranteed,
    Laplace,
)
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile

BUDGET = EpsilonDelta(epsilon=1, delta="1e-5")


def test_most_gaussian_releases() -> None:
    # μ = √k/σ: k ≤ (μσ)²
    assert most_releases(Gaussian(standard_deviation=10), Mu(mu="1/2")) == 25
    assert most_releases(Gaussian(standard_deviation=100), BUDGET) == 718  # σ = 3.7306·√718


def test_most_pure_releases() -> None:
    assert most_releases(Laplace(scale=10), EpsilonDelta(epsilon=1)) == 10
    with pytest.raises(NotApplicableError, match="Not even one"):
        most_releases(Laplace(scale="1/2"), EpsilonDelta(epsilon=1))


def test_equal_shares_of_epsilon() -> None:
    share = equal_epsilon(BUDGET, 20)
    assert share.safe > Fraction(1, 20)
    assert profile.delta(Composed(Guaranteed(share.safe), 20), 1).upper <= Fraction(1, 10**5)
    more = share.safe * Fraction(1000001, 10**6)
    assert profile.delta(Composed(Guaranteed(more), 20), 1).lower > Fraction(1, 10**5)
    # one release: δ(ε) of randomised response is (e^{ε₀} − e^ε)/(1 + e^{ε₀})
    one = equal_epsilon(EpsilonDelta(epsilon=1, delta="0.1"), 1)
    assert abs(float(one.largest.lower) - math.log((math.e + 0.1) / 0.9)) < 1e-11
    assert equal_epsilon(EpsilonDelta(epsilon=1), 4).safe == Fraction(1, 4)


def test_shares_of_epsilon_in_proportion() -> None:
    weights = ["3", "1/2", "1"]
    share = shares_of_epsilon(BUDGET, weights, count=4)

    def delta(unit: Fraction) -> Interval:
        parts = [Guaranteed(unit * Fraction(weight)) for weight in weights]
        return profile.delta(Composed(parts, 4), 1)

    assert (share.largest.relative_width or 1) <= Fraction(1, 10**12)
    assert delta(share.safe).upper <= Fraction(1, 10**5)
    assert delta(share.safe * (1 + Fraction(1, 10**11))).lower > Fraction(1, 10**5)
    # pure: basic composition; equal weights are equal shares
    assert shares_of_epsilon(EpsilonDelta(epsilon=1), weights, count=4).safe == Fraction(
        "0.0555555555555"
    )
    equal = equal_epsilon(BUDGET, 20)
    assert shares_of_epsilon(BUDGET, [1], count=20).largest.overlaps(equal.largest)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, None])
def test_counts_of_equal_shares_are_whole(count: object) -> None:
    with pytest.raises(InvalidInputError, match="count="):
        equal_epsilon(BUDGET, count)  # type: ignore[arg-type]  # refused


def test_no_share_reaches_a_delta_of_one() -> None:
    with pytest.raises(InvalidInputError, match="delta < 1"):
        equal_epsilon(EpsilonDelta(epsilon=1, delta=1), 2)
