"""Roots beside estimates, and profiles that keep below another one: both sides are proved."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from flint import arb

from dpassay.accountant.budget.allotment import largest_sampling_prob, most_releases
from dpassay.accountant.budget.calibrate import calibrate
from dpassay.accountant.budget.target import EpsilonDelta
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.mechanisms import Composed, Gaussian, Laplace, PoissonSubsampled
from dpassay.accountant.numbers.dominance import proved_below
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.questions import profile
from dpassay.accountant.questions.threshold import FINEST, Limit, threshold
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


def test_nothing_is_found_without_estimates_or_below_their_digits() -> None:
    def smooth(sigma: ExactReal) -> Sequence[Pair]:
        return composed(sigma, "0.01", 1000).worst_case(BOTH).pairs(None)

    def listed(scale: ExactReal) -> Sequence[Pair]:
        return Laplace(scale=scale).worst_case(BOTH).pairs(None)

    one, delta = exact(1), exact("1e-5")
    finer = FINEST / 2
    assert threshold(smooth, one, delta, Fraction(1), relative_width=finer) is None
    assert threshold(listed, one, delta, Fraction(1), relative_width=NARROW) is None
    found = threshold(smooth, one, delta, Fraction(40), relative_width=NARROW)  # from far away
    assert found is not None
    assert str(found.least) == "1.41461940653"


SIX_DIGITS = Fraction(1, 10**6)
FINE = Fraction(1, 10**12)


def training(sigma: Fraction | str, q: str, count: int) -> Composed:
    return Composed(PoissonSubsampled(Gaussian(standard_deviation=sigma), q), count)


def gaussian(epsilon: ExactReal) -> arb:
    (pair,) = Gaussian(standard_deviation=3).worst_case(None).remove
    return pair.hockey_stick(epsilon)


def steep(epsilon: ExactReal) -> arb:
    """Return e^{−10ε}/5, which a profile like that of Gaussian noise touches inside."""
    return (-10 * epsilon.ball()).exp() / 5


def test_a_profile_is_proved_to_keep_below_another_one_or_is_not() -> None:
    def scaled(share: str) -> Limit:
        return lambda at: gaussian(at) * arb(share)

    assert proved_below(scaled("0.99"), gaussian, Fraction(2))
    assert not proved_below(scaled("1.0001"), gaussian, Fraction(2))
    assert not proved_below(gaussian, steep, Fraction(1))
