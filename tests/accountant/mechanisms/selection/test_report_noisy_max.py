"""Report noisy max against every pair of score vectors that is tried, and other routes."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import laplace

import dpassay
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import Composed, Gaussian, Laplace, ReportNoisyMax
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.pairs.maxima import MaximaPair
from dpassay.accountant.questions import guarantees, profile
from dpassay.accountant.questions.least_mu import bounds
from dpassay.verifier.verdict import Verdict
from tests.accountant.mechanisms.selection.test_scores import chances
from tests.near import narrow
from tests.quick import quick

FALSE_ALARM = 1e-6
SPARE = {"Gaussian": 1e-9, "Laplace": 1e-4}
"""For the quadrature of the other route."""
TINY = Decimal("1e-9")


def bounding(about: ReportNoisyMax) -> Mechanism:
    """Return the noise that dominates every release."""
    found = about.dominated_by
    assert found is not None
    return found


def test_equal_scores_are_worst_with_gaussian_noise() -> None:
    """The values of another quadrature and search, at total move 1 and epsilon 1/2."""
    known = {2: "0.123724879557", 3: "0.150570987928", 5: "0.199412968866", 10: "0.264978795733"}
    for k, value in known.items():
        found = profile.delta(ReportNoisyMax("Gaussian", 2, k), "1/2")
        assert round(found, 12) == round(Fraction(value), 12)
        sizes = [
            -minimize_scalar(
                lambda gap, s=s, k=k: -excess("Gaussian", s, [gap] * s + [0.0] * (k - s), 1, 0.5),
                bounds=(-6, 6),
                method="bounded",
            ).fun
            for s in range(1, k)
        ]
        assert max(sizes) == pytest.approx(float(value), abs=1e-8)


def excess(noise: str, s: int, scores: list[float], t: float, epsilon: float) -> float:
    """Return P(one of the first s is chosen, all of them t higher) − e^ε Q(the same)."""
    raised = [u + t if i < s else u for i, u in enumerate(scores)]
    p, q = (chances(noise, each)[:s].sum() for each in (raised, scores))
    return float(p - math.exp(epsilon) * q)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["Gaussian", "Laplace"])
@pytest.mark.parametrize(("k", "s"), [(3, 1), (4, 2), (5, 1)])
@pytest.mark.parametrize(("t", "epsilon"), [("1", "1/2"), ("1/4", "-1/10")])
def test_no_search_finds_worse_scores(noise: str, k: int, s: int, t: str, epsilon: str) -> None:
    move, at = float(Fraction(t)), float(Fraction(epsilon))
    upper = float(profile.delta(ReportNoisyMax(noise, 1 / Fraction(t), k, 1, True), epsilon).upper)
    rng = np.random.default_rng(k + s)
    for spread in (0.3, 1, 5):
        start = rng.normal(scale=spread, size=k)
        start[:s] -= move

        def missing(u: np.ndarray) -> float:
            return -excess(noise, s, list(u), move, at)

        found = minimize(missing, start, method="Nelder-Mead", tol=1e-4)
        assert -found.fun <= upper + SPARE[noise]


@pytest.mark.parametrize("candidates", quick([2, 3, 10], 0))
def test_questions_agree_with_each_other(candidates: int) -> None:
    for noise in ("Gaussian", "Laplace", "Exponential", "Gumbel"):
        about = ReportNoisyMax(noise, 4, candidates)
        found = profile.epsilon(about, "1e-4")
        assert Fraction(profile.delta(about, found.lower).upper) >= Fraction(1, 10**4)
        assert Fraction(profile.delta(about, found.upper).lower) <= Fraction(1, 10**4)
        if noise == "Gaussian":
            assert profile.epsilon(about, 0).upper.is_infinite()
            continue
        assert profile.epsilon(about, 0) == Fraction(1, 2)
        for epsilon, verdict in (("1/2", Verdict.HOLDS), ("0.4999", Verdict.REFUTED)):
            assert dpassay.verify(about, epsilon=epsilon).verdict is verdict


def test_bounds_with_laplace_noise() -> None:
    x = np.arange(-30, 30, step := 1 / 256)

    def missing(a: float) -> float:  # of the difference of two
        p, q = (float((laplace.pdf(x) * laplace.cdf(x + t)).sum() * step) for t in (a + 1, a))
        return math.exp(0.5) * q - p

    best = -minimize_scalar(missing, bounds=(-3, 1), method="bounded").fun
    assert float(profile.delta(ReportNoisyMax("Laplace", 2, 2), "1/2")) == pytest.approx(
        best, abs=1e-5
    )
    last = 0.0
    for k, most in ((3, 0.1078), (4, 0.1218), (5, 0.1370), (10, 0.1472), (1000, 0.1472)):
        found = profile.delta(ReportNoisyMax("Laplace", 2, k), "1/2")
        assert 0.1039 < float(found.lower) < float(found.upper) < most
        assert float(found.lower) >= last * (1 - 1e-9)
        last = float(found.lower)


@pytest.mark.parametrize("delta", quick(["1e-3", "1e-30"], 0))
def test_the_upper_end_of_epsilon_is_at_most_that_of_one_noise(delta: str) -> None:
    found = profile.epsilon(ReportNoisyMax("Laplace", 4, 6), delta)
    assert found.lower < found.upper <= profile.epsilon(Laplace(2), delta).upper < 0.5


@given(st.lists(st.floats(-5, 0), min_size=1, max_size=7), st.floats(-8, 8))
def test_no_noisy_maximum_is_denser_than_the_envelope(others: list[float], place: float) -> None:
    scores = [0.0, *others]
    s, cdf = len(scores), [laplace.cdf(place - u) for u in scores]
    p = float(np.prod(cdf))
    dense = sum(p / f * laplace.pdf(place - u) for f, u in zip(cdf, scores, strict=True))
    lines = [2.0**-j + (j - 1) * p for j in range(s)]
    assert dense <= min(*lines, s * p) * (1 + 1e-12)


@pytest.mark.parametrize("noise", ["Laplace", "DiscreteLaplace"])
def test_the_lower_end_of_epsilon_is_that_of_equal_scores(noise: str) -> None:
    """It has the digits of one pair, although the other end is far off."""
    move = None if noise == "Laplace" else 2
    delta, one = exact("1e-3"), exact(1)
    found = profile.epsilon(ReportNoisyMax(noise, 2, 6), "1e-3").lower
    pairs = [MaximaPair(s, r, one, move) for s in range(1, 5) for r in range(1, 7 - s)]
    assert all(pair.hockey_stick(exact(found * (1 + TINY))) < delta.ball() for pair in pairs)
    assert any(pair.hockey_stick(exact(found * (1 - TINY))) > delta.ball() for pair in pairs)


def test_rho_and_mu_with_gaussian_noise() -> None:
    for k, rho in ((2, "1/4"), (3, "1/3")):
        about = ReportNoisyMax("Gaussian", 2, k)
        assert Fraction(rho) in guarantees.rho(about)
        least = bounds(profile.worst_pairs(about, None, None), Fraction(1, 10**6))
        assert least.overlaps(guarantees.mu(bounding(about)))
        assert dpassay.verify(about, rho=rho).verdict is Verdict.HOLDS
        assert dpassay.verify(about, rho=Fraction(rho) * Fraction(999, 1000)).verdict is (
            Verdict.REFUTED
        )
    wide = guarantees.rho(ReportNoisyMax("Gaussian", 2, 10))
    assert (float(wide.lower), float(wide.upper)) == pytest.approx((0.45, 1.25))


@pytest.mark.parametrize("count", quick([10, 100], 0))
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


@pytest.mark.parametrize("noise", ["Gaussian", "Laplace", "Exponential", "Gumbel"])
def test_how_far_from_the_best_it_chooses(noise: str) -> None:
    named = f"ReportNoisyMax(noise='{noise}', scale=2, candidates=5)"
    found = dpassay.compare(
        "Selection(5)", epsilon=9, delta="1e-3", metrics=["regret:0.9"], candidates=[named]
    )
    (row,) = (row for row in found.rows if row.candidate.name.startswith("ReportNoisyMax"))
    distance = row.value("regret:0.9")
    assert distance is not None
    if noise in SPARE:
        chance = chances(noise, [float(distance) / 2, 0, 0, 0, 0])[0]
        assert chance == pytest.approx(0.9, abs=SPARE[noise])


@pytest.mark.parametrize("scale", ["2", "1e-16"])
def test_two_candidates_with_gaussian_noise_are_one_normal_law(scale: str) -> None:
    """The gap moves by 2 with a variance of 2 scale²."""
    found = profile.epsilon(ReportNoisyMax("Gaussian", scale, 2), "1e-6")
    gap = profile.epsilon(Gaussian(scale, l2_sensitivity="sqrt(2)"), "1e-6")
    assert found.overlaps(gap)
    assert narrow(found, Fraction(1, 10**9))


def test_of_very_many_candidates_both_ends_are_told() -> None:
    """A table of the best events takes terabytes; the vector of noisy scores bounds all."""
    many = ReportNoisyMax("Gaussian", 100, 10**6)
    found = dpassay.mu(many)
    assert found.lower < Decimal("0.02") < found.upper < Decimal("10.001")
    assert 0 < dpassay.epsilon(many, "1e-5").upper < 92
    assert dpassay.delta(many, 800).upper < Decimal("1e-1000")


@pytest.mark.parametrize("noise", ["Laplace", "DiscreteLaplace"])
def test_epsilon_of_a_scale_beyond_floats_lies_between_two_ends_at_once(noise: str) -> None:
    found = profile.signed_epsilon(ReportNoisyMax(noise, "1e-400", 3), "0.1")
    assert float(found.lower) == pytest.approx(math.log(0.9), rel=1e-5)
    assert Decimal("2e400") <= found.upper <= Decimal("3.1e400")
