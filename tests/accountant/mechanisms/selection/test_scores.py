"""Selections by scores: each law for all of them, against every pair of score vectors tried."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import chisquare, laplace, norm

import dpassay
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import (
    Composed,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    PermuteAndFlip,
    ReportNoisyMax,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.questions import guarantees, profile, tradeoff
from dpassay.verifier.verdict import Verdict
from tests.near import mpf, narrow
from tests.quick import slow

FALSE_ALARM = 1e-6
NOISES = {"Gaussian": (norm, 1 / 8, 12.0), "Laplace": (laplace, 1 / 64, 40.0)}
"""A law, the step of its quadrature, and its reach."""
Law = Callable[[list[float], float], np.ndarray]


def heads(values: list[float], factor: float) -> np.ndarray:
    return np.asarray(np.exp(factor * (np.array(values) - max(values))))


def softmax(values: list[float], factor: float) -> np.ndarray:
    return np.asarray(heads(values, factor) / heads(values, factor).sum())


def flips(values: list[float], factor: float) -> np.ndarray:
    """Go through every order of the candidates."""
    head, found = heads(values, factor), np.zeros(len(values))
    for order in itertools.permutations(range(len(values))):
        left = 1.0
        for i in order:
            found[i] += left * head[i]
            left *= 1 - head[i]
    return np.asarray(found / math.factorial(len(values)))


def chances(noise: str, scores: list[float]) -> np.ndarray:
    """Integrate the density of one noisy score times P(all others are lower)."""
    law, step, reach = NOISES[noise]
    u, x = (
        np.asarray(scores)[:, np.newaxis],
        np.arange(min(scores) - reach, max(scores) + reach, step),
    )
    below, density = law.cdf(x - u), law.pdf(x - u)
    others = [np.delete(below, i, axis=0).prod(axis=0) for i in range(len(scores))]
    return np.asarray((density * others).sum(axis=1) * step)


class Kind(NamedTuple):
    """A selection of one parameter at most, its law at scores times a factor, and what it spares.

    A factor is that of scores which move one way; of others it is half as large, except of noise.
    """

    make: Callable[[int, bool], Mechanism]
    law: Law
    factor: float
    spare: float = 1e-12
    noise: bool = False


KINDS = {
    "exponential": Kind(lambda k, m: ExponentialMechanism("1/4", monotone=m), softmax, 1 / 4),
    "exponential-2": Kind(lambda k, m: ExponentialMechanism(2, monotone=m), softmax, 2),
    "flip": Kind(lambda k, m: PermuteAndFlip(2, monotone=m), flips, 2),
    "Gaussian": Kind(lambda k, m: ReportNoisyMax("Gaussian", 1, k, monotone=m),
                     lambda u, _: chances("Gaussian", u), 1, 1e-9, noise=True),
    # a kink of Laplace noise costs the step² / 8 at most
    "Laplace": Kind(lambda k, m: ReportNoisyMax("Laplace", 1, k, monotone=m),
                    lambda u, _: chances("Laplace", u), 1, 1e-4, noise=True),
}  # fmt: skip


@functools.cache
def upper_ends(name: str, size: int, monotone: bool, epsilon: float) -> tuple[float, float]:
    """Return the upper ends of δ(ε) and of the divergence of order 3, where that is known."""
    about = KINDS[name].make(size, monotone)
    third = math.inf if KINDS[name].noise else float(guarantees.renyi(about, 3).upper)
    return float(profile.delta(about, epsilon).upper), third


CANDIDATES = st.tuples(st.floats(-8, 8), st.floats(-1, 1), st.floats(0, 1))
"""A score, and how it moves where scores move both ways, and where they move one way."""


@given(
    st.sampled_from(sorted(KINDS)),
    st.lists(CANDIDATES, min_size=3, max_size=5),
    st.sampled_from([-0.7, 0.0, 0.4, 0.8]),
    st.booleans(),
)
def test_no_neighbouring_scores_are_worse(
    name: str, candidates: list[tuple[float, float, float]], share: float, monotone: bool
) -> None:
    kind = KINDS[name]
    before = [score for score, _, _ in candidates]
    after = [score + (up if monotone else move) for score, move, up in candidates]
    factor = kind.factor if monotone else kind.factor / 2
    p, q = kind.law(after, factor), kind.law(before, factor)
    epsilon = share * kind.factor
    delta, third = upper_ends(name, len(candidates), monotone, epsilon)
    for one, other in ((p, q), (q, p)):
        assert float(np.maximum(one - math.exp(epsilon) * other, 0).sum()) <= delta + kind.spare
        if math.isfinite(third):
            assert math.log(float(np.sum(one**3 / other**2))) / 2 <= third + kind.spare


SCORES = [0.0, 0.25, -0.5, 0.125]
DRAWN: list[tuple[Any, np.ndarray, int]] = [
    (ExponentialMechanism(2, sensitivity="1/2", monotone=True), softmax(SCORES, 4), 40_000),
    (PermuteAndFlip(2, sensitivity="1/2", monotone=True), flips(SCORES, 4), 40_000),
    (PermuteAndFlip(2), flips(SCORES, 1), 1),
    (ReportNoisyMax("Gaussian", "1/2", 4), chances("Gaussian", [2 * u for u in SCORES]), 40_000),
    (ReportNoisyMax("Laplace", "1/2", 4), chances("Laplace", [2 * u for u in SCORES]), 40_000),
]


@pytest.mark.parametrize(("about", "expected", "size"), DRAWN, ids=lambda value: str(value)[:40])
def test_selections_have_their_probabilities(about: Any, expected: np.ndarray, size: int) -> None:
    if isinstance(about, ExponentialMechanism):
        exact = [float(value.mid()) for value in about.probabilities(SCORES)]
        assert exact == pytest.approx(list(expected), rel=1e-12, abs=0)
    drawn = about.release(SCORES, size, rng=np.random.default_rng(3))
    assert drawn.shape == (size,)
    if size > 1:
        counts = np.bincount(drawn, minlength=4)
        assert chisquare(counts, expected / expected.sum() * size).pvalue > FALSE_ALARM
    assert about.release([0, 10**6, 5 * 10**5, 0]) == 1


@pytest.mark.parametrize("noise", NOISES)
def test_equal_scores_that_doubles_tell_nothing_of_are_chosen_alike(noise: str) -> None:
    about = ReportNoisyMax(noise, "1/2", 4)
    drawn = about.release(["1e30"] * 4, 400, rng=np.random.default_rng(4))
    assert chisquare(np.bincount(drawn, minlength=4)).pvalue > FALSE_ALARM


BAD = [[1], 3, [[1, 2]], ["x", 1], [1, float("inf")]]


@pytest.mark.parametrize(
    ("about", "bad"),
    [
        *((kind(1), bad) for kind in (ExponentialMechanism, PermuteAndFlip) for bad in BAD),
        (ReportNoisyMax("Laplace", 1, 3), [0, 1]),
    ],
    ids=str,
)
def test_bad_scores_are_named(about: Any, bad: object) -> None:
    with pytest.raises(InvalidInputError, match=r"scores|value"):
        about.release(bad)


# ---------------------------------------------------------------- the exponential mechanism


@pytest.mark.parametrize("epsilon", ["1/5", "1", "4"])
@pytest.mark.parametrize("share", ["-9/10", "0", "1/3", "4/5"])
def test_two_candidates_attain_the_profiles(epsilon: str, share: str) -> None:
    """Of the exponential mechanism by a search over scores; flips are worst at known ones."""
    at, eps = Fraction(epsilon) * Fraction(share), float(Fraction(epsilon))
    growth = math.exp(at)

    def negative(gap: float) -> float:
        p, q = softmax([gap + 0.5, -gap - 0.5], eps / 2), softmax([gap - 0.5, 0.5 - gap], eps / 2)
        return -float(np.maximum(p - growth * q, 0).sum())

    best = -float(minimize_scalar(negative, bounds=(-30, 30), options={"xatol": 1e-12}).fun)
    assert float(profile.delta(ExponentialMechanism(epsilon), at)) == pytest.approx(
        best, rel=1e-9, abs=0
    )
    low = -(eps + float(at)) / 2
    p, q = flips([low + eps, 0], 1), flips([low, 0], 1)
    found = float(profile.delta(PermuteAndFlip(epsilon), at))
    assert found == pytest.approx(p[0] - growth * q[0], rel=1e-12, abs=0)


@pytest.mark.parametrize("epsilon", ["1/5", "3"])
@pytest.mark.parametrize("order", ["1", "3/2", "2", "30"])
def test_the_divergence_is_attained_by_two_candidates(epsilon: str, order: str) -> None:
    a, odds = float(Fraction(order)), math.exp(Fraction(epsilon))

    def negative(p: float) -> float:
        mean = 1 - p + p * odds
        if a == 1:
            return math.log(mean) - p * odds * math.log(odds) / mean
        return (a * math.log(mean) - math.log(1 - p + p * odds**a)) / (a - 1)

    best = minimize_scalar(negative, bounds=(0, 1), options={"xatol": 1e-12})
    found = float(guarantees.renyi(ExponentialMechanism(epsilon), order))
    assert found == pytest.approx(-float(best.fun), rel=1e-9, abs=0)


def test_the_trade_off_function_is_attained_at_every_level() -> None:
    odds = mpmath.exp(2)
    for alpha in ("1e-9", "1/5", "9/10"):
        p = mpmath.mpf(Fraction(alpha).numerator) / Fraction(alpha).denominator
        found = mpf(tradeoff.beta(ExponentialMechanism(2), alpha))
        assert abs(found - (1 - p) / (1 - p + p * odds)) <= mpmath.mpf("1e-14")


@pytest.mark.parametrize("epsilon", ["1/100", "1", "6"])
def test_rho_is_below_the_bound_of_an_eighth(epsilon: str) -> None:
    found = guarantees.rho(ExponentialMechanism(epsilon))
    bound = Fraction(epsilon) ** 2 / 8
    assert Fraction(found.upper) < bound * (1 + Fraction(1, 10**5))
    if epsilon == "1":
        u = 1 / (1 - mpmath.exp(-1))
        assert abs(mpf(found) - (u - 1 - mpmath.log(u))) < mpmath.mpf("1e-6")
        assert Fraction(found.upper) < bound


# ---------------------------------------------------------------- permute-and-flip


def test_an_eighth_of_the_square_is_no_rho_of_flips() -> None:
    found = guarantees.rho(PermuteAndFlip(1))
    assert Fraction(1, 4) < Fraction(found.lower) < Fraction(found.upper) < Fraction(368, 1000)
    p, q = flips([0.5, 0], 1), flips([-0.5, 0], 1)
    assert float(np.sum(p * np.log(p / q))) > 1 / 8
    for rho, verdict in (("1/8", Verdict.REFUTED), ("0.368", Verdict.HOLDS)):
        assert dpassay.verify("PermuteAndFlip(1)", rho=rho).verdict is verdict
    assert dpassay.verify("PermuteAndFlip(1)", rho="0.36").verdict is Verdict.UNDECIDED


# Report noisy max against every pair of score vectors that is tried, and other routes.


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
    assert float(more.upper) == pytest.approx(
        float(profile.delta(Laplace(1), "1/2")), rel=1e-9, abs=0
    )


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
    assert float(found.lower) == pytest.approx(math.log(0.9), rel=1e-5, abs=0)
    assert Decimal("2e400") <= found.upper <= Decimal("3.1e400")
