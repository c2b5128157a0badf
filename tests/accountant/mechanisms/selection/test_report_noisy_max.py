"""Report noisy max against every pair of score vectors that is tried, and other routes."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from scipy.optimize import minimize_scalar

import dpassay
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import Composed, Gaussian, Laplace, ReportNoisyMax
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.questions import profile
from dpassay.verifier.verdict import Verdict
from tests.accountant.mechanisms.selection.test_scores import chances
from tests.near import narrow
from tests.quick import slow

SPARE = {"Gaussian": 1e-9, "Laplace": 1e-4}
"""For the quadrature of the other route."""


def bounding(about: ReportNoisyMax) -> Mechanism:
    """Return the noise that dominates every release."""
    found = about.dominated_by
    assert found is not None
    return found


def test_two_candidates_with_laplace_noise_are_the_difference_of_both() -> None:
    def negative(gap: float) -> float:
        p, q = chances("Laplace", [gap + 1, 0])[0], chances("Laplace", [gap, 0])[0]
        return float(math.exp(0.5) * q - p)

    best = -minimize_scalar(negative, bounds=(-3, 1), method="bounded").fun
    exactly = profile.delta(ReportNoisyMax("Laplace", 2, 2), "1/2")
    assert float(exactly) == pytest.approx(best, abs=SPARE["Laplace"])
    more = profile.delta(ReportNoisyMax("Laplace", 2, 3), "1/2")
    assert more.lower <= exactly.upper <= profile.delta(Laplace(1), "1/2").upper
    assert float(more.upper) == pytest.approx(float(profile.delta(Laplace(1), "1/2")))


@pytest.mark.parametrize(("k", "best"), [(3, "2.90300715272"), (10, "3.58476376331")])
def test_gaussian_noise_lies_between_both_ends(k: int, best: str) -> None:
    """The ε at δ = 1e-4 of equal scores, which are worst, at a total move of 1 (scale 2)."""
    about = ReportNoisyMax("Gaussian", 2, k)
    found = profile.epsilon(about, "1e-4")
    assert found.lower < Decimal(best) < found.upper < Decimal("1.22") * Decimal(best)
    assert dpassay.verify(about, epsilon="4.4", delta="1e-4").verdict is Verdict.HOLDS
    wide = dpassay.mu(ReportNoisyMax("Gaussian", 100, 10**6))
    assert wide.lower < Decimal("0.02") < wide.upper < Decimal("10.001")


@pytest.mark.parametrize("count", [10, slow(100)])
@pytest.mark.parametrize("noise", ["Gaussian", "Laplace", "Exponential", "Gumbel"])
def test_what_bounds_several_releases(noise: str, count: int) -> None:
    about = ReportNoisyMax(noise, 20, 3)
    bound = bounding(about)
    for at in ("-1/50", "0", "1/20"):
        found = profile.delta(about, at)
        assert found.lower <= profile.delta(bound, at).upper
        for pair in about.attained():  # no more than what is largest
            assert not pair.hockey_stick(exact(at)) > found.ball()
    several = profile.epsilon(Composed(about, count), "1e-6")
    most = profile.epsilon(Composed(bound, count), "1e-6")
    assert 0 < several.lower <= several.upper
    assert float(several.upper) <= float(most.upper) * 1.001 < count * 0.1 + 4


@pytest.mark.parametrize("scale", ["2", "1e-16"])
def test_two_candidates_with_gaussian_noise_are_one_normal_law(scale: str) -> None:
    """The gap moves by 2 with a variance of 2 scale²."""
    found = profile.epsilon(ReportNoisyMax("Gaussian", scale, 2), "1e-6")
    gap = profile.epsilon(Gaussian(scale, l2_sensitivity="sqrt(2)"), "1e-6")
    assert found.overlaps(gap)
    assert narrow(found, Fraction(1, 10**9))


def test_epsilon_of_a_scale_beyond_floats_lies_between_two_ends_at_once() -> None:
    found = profile.signed_epsilon(ReportNoisyMax("Laplace", "1e-400", 3), "0.1")
    assert float(found.lower) == pytest.approx(math.log(0.9), rel=1e-5)
    assert Decimal("2e400") <= found.upper <= Decimal("3.1e400")
