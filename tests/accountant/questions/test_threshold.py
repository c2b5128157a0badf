"""Roots beside estimates, and profiles that keep below another one: both sides are proved."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpassay.accountant.budget.allotment import largest_sampling_prob, most_releases
from dpassay.accountant.budget.calibrate import calibrate
from dpassay.accountant.budget.target import EpsilonDelta
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.mechanisms import Composed, Gaussian, PoissonSubsampled
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.questions import profile
from tests.near import narrow

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


@pytest.mark.parametrize(("sigma", "count"), [("1", 1), ("1.5", 10), ("1.1", 1000), ("2", 10**6)])
def test_the_largest_rate_is_enclosed(sigma: str, count: int) -> None:
    target = EpsilonDelta(1, "1e-5")
    share = largest_sampling_prob(Gaussian(standard_deviation=sigma), target, count)
    assert narrow(share.largest, NARROW)
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
