"""The exponential mechanism against every pair of score vectors that is tried."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import chisquare

from accountant.errors import InvalidInputError
from accountant.mechanisms import (
    ExponentialMechanism,
    PermuteAndFlip,
)
from accountant.numbers.interval import Interval
from accountant.questions import guarantees, profile, tradeoff
from verify.audit import audit
from verify.checker.facts import mechanism

FALSE_ALARM = 1e-6
SPARE = 1e-12
"""Relative: for the rounding of the other route."""
scores = st.floats(-8, 8)


def mpf(value: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(value.lower)) + mpmath.mpf(str(value.upper))) / 2


def law(values: list[float], factor: float) -> np.ndarray:
    weights = np.exp(factor * (np.array(values) - max(values)))
    return np.asarray(weights / weights.sum())


def two_sided(epsilon: float, at: float) -> float:
    """Return the largest H over two candidates, by a search over their scores."""

    def negative(gap: float) -> float:
        p, q = law([gap + 0.5, -gap - 0.5], epsilon / 2), law([gap - 0.5, 0.5 - gap], epsilon / 2)
        return -float(np.maximum(p - math.exp(at) * q, 0).sum())

    return -float(minimize_scalar(negative, bounds=(-30, 30), options={"xatol": 1e-12}).fun)


@pytest.mark.parametrize("epsilon", ["1/5", "1", "4"])
@pytest.mark.parametrize("share", ["-9/10", "0", "1/3", "4/5"])
def test_the_profile_is_the_largest_over_the_scores_of_two(epsilon: str, share: str) -> None:
    at = Fraction(epsilon) * Fraction(share)
    found = float(profile.delta(ExponentialMechanism(epsilon), at))
    assert found == pytest.approx(two_sided(float(Fraction(epsilon)), float(at)), rel=1e-9)


@given(
    st.lists(st.tuples(scores, st.floats(-1, 1), st.floats(0, 1)), min_size=2, max_size=10),
    st.sampled_from(["1/4", "2"]),
    st.floats(-1, 1),
    st.booleans(),
)
def test_no_neighbouring_scores_are_worse(
    candidates: list[tuple[float, float, float]], epsilon: str, share: float, monotone: bool
) -> None:
    eps = float(Fraction(epsilon))
    before = [score for score, _, _ in candidates]
    after = [score + (up if monotone else move) for score, move, up in candidates]
    factor = eps if monotone else eps / 2
    p, q = law(after, factor), law(before, factor)
    about = ExponentialMechanism(epsilon, monotone=monotone)
    for one, other in ((p, q), (q, p)):
        most = float(np.maximum(one - math.exp(share * eps) * other, 0).sum())
        assert (
            most <= float(profile.delta(about, Fraction(share) * Fraction(epsilon)).upper) + SPARE
        )
        for order in (1.5, 8.0):
            divergence = math.log(float(np.sum(one**order / other ** (order - 1)))) / (order - 1)
            assert divergence <= float(guarantees.renyi(about, order).upper) + SPARE


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
    assert found == pytest.approx(-float(best.fun), rel=1e-9)


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


def test_selections_have_their_probabilities() -> None:
    about = ExponentialMechanism(2, sensitivity="1/2", monotone=True)
    given_scores = [0.0, 0.25, -0.5, 0.125]
    exact = [float(value.mid()) for value in about.probabilities(given_scores)]
    assert exact == pytest.approx(list(law(given_scores, 4)), rel=1e-12)
    drawn = about.release(given_scores, 40_000, rng=np.random.default_rng(3))
    counts = np.bincount(drawn, minlength=4)
    assert chisquare(counts, np.array(exact) * 40_000).pvalue > FALSE_ALARM
    assert int(about.release([0, 10**6, 0])) == 1


def test_an_audit_finds_a_false_claim_and_spares_a_true_one() -> None:
    about = ExponentialMechanism(1)
    assert audit(about, "0.6", samples=200_000, seed=1, significance=FALSE_ALARM).refuted
    assert not audit(about, 1, samples=50_000, seed=2, significance=FALSE_ALARM).refuted


@pytest.mark.parametrize("bad", [[1], 3, [[1, 2]], ["x", 1], [1, float("inf")]])
@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlip])
def test_bad_scores_are_named(
    kind: type[ExponentialMechanism | PermuteAndFlip], bad: object
) -> None:
    with pytest.raises(InvalidInputError, match="scores"):
        kind(1).release(bad)  # type: ignore[arg-type]


def test_the_checker_knows_no_sample() -> None:
    with pytest.raises(ValueError, match="one release is known"):
        mechanism("PoissonSubsampled(mechanism=ExponentialMechanism(epsilon=1), sampling_prob=1/2)")
