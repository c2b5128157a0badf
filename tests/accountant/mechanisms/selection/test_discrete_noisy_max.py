"""Report noisy max with discrete Laplace noise against sums over all integers."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, dlaplace

import dpassay
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import Composed, DiscreteLaplace, ReportNoisyMax
from dpassay.accountant.questions import guarantees, profile
from dpassay.verifier.verdict import Verdict
from tests.quick import quick

FALSE_ALARM = 1e-6
SPARE = 1e-12
"""For sums in floats of terms that add up to 1."""
REACH = 200


def chances(scale: float, scores: list[int]) -> np.ndarray:
    """Return P(i is reported): the first one of the largest noisy scores."""
    z = np.arange(min(scores) - REACH, max(scores) + REACH)
    mass = [dlaplace.pmf(z - u, 1 / scale) for u in scores]
    cdf = [dlaplace.cdf(z - u, 1 / scale) for u in scores]
    found = []
    for i in range(len(scores)):  # those before it are lower, those after it at most equal
        others = [cdf[j] - mass[j] if j < i else cdf[j] for j in range(len(scores)) if j != i]
        found.append(float((mass[i] * np.prod(others, axis=0)).sum()))
    return np.array(found)


@pytest.mark.parametrize("scale", ["1/2", "2", "7"])
@pytest.mark.parametrize("monotone", [False, True])
def test_two_candidates_are_exact(scale: str, monotone: bool) -> None:
    """The largest over every gap and both orders."""
    about = ReportNoisyMax("DiscreteLaplace", scale, 2, monotone=monotone)
    t, b = 1 if monotone else 2, float(Fraction(scale))
    known = {gap: chances(b, [gap, 0]) for gap in range(-90, 91)}
    for share in ("-1/2", "0", "1/3", "9/10"):
        epsilon = Fraction(share) * t / Fraction(scale)
        factor = math.exp(float(epsilon))
        best = max(
            np.maximum(known[gap + move] - factor * known[gap], 0).sum()
            for gap in range(-80, 80)
            for move in (-t, t)
        )
        found = profile.delta(about, epsilon)
        assert float(found) == pytest.approx(best, rel=1e-9, abs=0)
        assert float(found.relative_width or 0) < 1e-12


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(-6, 6), st.integers(-1, 1)), min_size=3, max_size=4),
    st.booleans(),
    st.sampled_from(["-1/4", "0", "1/3", "1"]),
)
def test_no_neighbouring_scores_are_worse(
    candidates: list[tuple[int, int]], monotone: bool, epsilon: str
) -> None:
    before = [score for score, _ in candidates]
    after = [score + (abs(move) if monotone else move) for score, move in candidates]
    about = ReportNoisyMax("DiscreteLaplace", "3/2", len(candidates), monotone=monotone)
    upper = float(profile.delta(about, epsilon).upper)
    factor = math.exp(float(Fraction(epsilon)))
    sides = chances(1.5, after), chances(1.5, before)
    for p, q in (sides, sides[::-1]):
        assert float(np.maximum(p - factor * q, 0).sum()) <= upper + SPARE


def test_the_lower_end_is_attained() -> None:
    """Of three and of five candidates, s of which have equal scores, as have the others."""
    for k in (3, 5):
        best = 0.0
        for s, gap in itertools.product(range(1, k), range(-12, 12)):
            q = chances(2, [gap] * s + [0] * (k - s))[:s].sum()
            p = chances(2, [gap + 2] * s + [0] * (k - s))[:s].sum()
            best = max(best, float(p - math.exp(0.5) * q))
        found = profile.delta(ReportNoisyMax("DiscreteLaplace", 2, k), "1/2")
        assert float(found.lower) == pytest.approx(best, rel=1e-8)
        assert found.upper < Fraction(1, 4)


def test_it_is_that_of_laplace_noise_on_a_fine_lattice() -> None:
    fine = ReportNoisyMax("DiscreteLaplace", 10**6, 2, sensitivity=5 * 10**5)
    for epsilon in ("0", "1/2"):
        one, other = (
            profile.delta(about, epsilon) for about in (fine, ReportNoisyMax("Laplace", 2, 2))
        )
        assert float(one) == pytest.approx(float(other), rel=1e-5)


@pytest.mark.parametrize("candidates", quick([2, 3, 10, 100], 0, 2))
def test_questions_agree_with_each_other(candidates: int) -> None:
    about = ReportNoisyMax("DiscreteLaplace", 4, candidates)
    found = profile.epsilon(about, "1e-4")
    assert Fraction(profile.delta(about, found.lower).upper) >= Fraction(1, 10**4)
    assert Fraction(profile.delta(about, found.upper).lower) <= Fraction(1, 10**4)
    assert profile.epsilon(about, 0) == Fraction(1, 2)
    for epsilon, verdict in (("1/2", Verdict.HOLDS), ("0.4999", Verdict.REFUTED)):
        assert dpassay.verify(about, epsilon=epsilon).verdict is verdict
    rho = guarantees.rho(about)
    assert 0 < rho.lower < rho.upper <= Fraction(1, 8) * Fraction(1001, 1000)
    several = profile.epsilon(Composed(about, 10), "1e-6")
    most = profile.epsilon(Composed(DiscreteLaplace(4, 2), 10), "1e-6")
    assert (
        found.lower < several.lower <= several.upper <= Fraction(most.upper) * Fraction(1001, 1000)
    )


def test_selections_have_their_probabilities() -> None:
    size, scores = 20_000, [0, 1, -1, 1]
    about = ReportNoisyMax("DiscreteLaplace", 1, 4)
    drawn = about.release(scores, size, rng=np.random.default_rng(3))
    expected = chances(1, scores)
    assert expected.sum() == pytest.approx(1, abs=SPARE)
    assert chisquare(np.bincount(drawn, minlength=4), expected * size).pvalue > FALSE_ALARM
    assert int(about.release([10**30, 10**30 + 10**6, 0, 0])) == 1


def test_what_is_no_integer_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"scores\[1\]=0.5 to be an integer"):
        ReportNoisyMax("DiscreteLaplace", 1, 2).release(["1", "1/2"])
    with pytest.raises(InvalidInputError, match="sensitivity"):
        ReportNoisyMax("DiscreteLaplace", 1, 2, sensitivity="1/2")


@pytest.mark.parametrize("scale", ["1e-3", "1e-60", "1e-400"])
def test_hardly_any_noise_gives_the_answer_away(scale: str) -> None:
    # two scores that differ by 1 either way: the wrong one wins with chance below e^{-2/scale}
    found = profile.delta(ReportNoisyMax("DiscreteLaplace", scale, 2), 1)
    assert Decimal("0.999999") < found.lower <= found.upper <= 1
