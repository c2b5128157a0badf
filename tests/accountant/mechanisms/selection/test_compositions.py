"""Several selections: sequences that an adversary chooses lie within both ends."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import binom

import dpassay
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms import (
    AboveThreshold,
    Composed,
    ExponentialMechanism,
    GaussianThreshold,
    Laplace,
    LaplaceThreshold,
    PartitionSelection,
    PermuteAndFlip,
    PoissonSubsampled,
    ReportNoisyMax,
)
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import fraction
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.questions import guarantees, profile, tradeoff

SPARE = 1e-9
"""Relative: for sums in floats."""


def rising(t: float, s: float) -> tuple[float, float]:
    """Return P and Q of the candidate with the loss s, the other one having s − t."""
    q = (math.exp(-s) - math.exp(-t)) / -math.expm1(-t)
    return q * math.exp(s), q


def fixed_in_advance(t: float, k: int, epsilon: float) -> float:
    """Return the largest H of equal scores in k selections (Dong, Durfee and Rogers 2020)."""
    found = 0.0
    for s in (min(max((epsilon + i * t) / (k + 1), 0.0), t) for i in range(1, k + 2)):
        p, q = rising(t, s)
        i = np.arange(k + 1)  # selections of the candidate that falls
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = gammaln(k + 1) - gammaln(i + 1) - gammaln(k - i + 1)
            sides = [
                np.exp(logs + np.where(i < k, (k - i) * np.log(x), 0) + i * np.log1p(-x))
                for x in (p, q)
            ]
        excess = sides[0] - math.exp(epsilon) * sides[1]
        found = max(found, float(np.nansum(np.maximum(excess, 0))))
    return found


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8])
@pytest.mark.parametrize(("t", "k", "width"), [(1.0, 10, 1e-3), (0.1, 100, 0.02)])
def test_scores_that_are_fixed_in_advance_are_a_little_better(
    t: float, k: int, width: float, share: float
) -> None:
    epsilon = round(share * k * t / (1 if k < 50 else 4), 6)
    found = profile.delta(Composed(ExponentialMechanism(t), k), epsilon)
    least = fixed_in_advance(t, k, epsilon)
    low, high = float(found.lower), float(found.upper)
    assert least * (1 - width) <= low <= high <= low * (1 + width)
    assert high <= 1.25 * least  # adaptivity gains little


def test_two_selections_against_a_search_over_all_scores() -> None:
    t, epsilon = 1.0, 0.0
    s = np.linspace(0, t, 201)

    def after(x: np.ndarray) -> np.ndarray:  # the best second selection, in closed form
        inside = np.expm1((np.clip(x, -t, t) - t) / 2) ** 2 / -np.expm1(-t)
        return np.where(x >= t, 0.0, np.where(x <= -t, -np.expm1(x), inside))

    p = np.expm1(s - t) / np.expm1(-t)
    best = float((p * after(epsilon - s) + (1 - p) * after(epsilon - s + t)).max())
    found = profile.delta(Composed(ExponentialMechanism(1), 2), 0)
    assert float(found.lower) <= best * (1 + SPARE)
    assert float(found.upper) == pytest.approx(best, rel=1e-4)
    assert float(found.lower) > 1.05 * fixed_in_advance(t, 2, epsilon)


@settings(max_examples=40)
@given(st.data())
def test_no_adaptive_scores_are_worse(data: st.DataObject) -> None:
    t, k = data.draw(st.sampled_from([0.5, 2.0])), 3
    epsilon = data.draw(st.floats(-0.9, 0.9)) * k * t

    def value(depth: int, p: float, q: float) -> float:
        if depth == 0:
            return max(p - math.exp(epsilon) * q, 0.0)
        up, down = rising(t, data.draw(st.floats(0.01, 0.99)) * t)
        return value(depth - 1, p * up, q * down) + value(depth - 1, p * (1 - up), q * (1 - down))

    found = profile.delta(Composed(ExponentialMechanism(t), k), epsilon)
    assert value(k, 1.0, 1.0) <= float(found.upper) * (1 + SPARE)


@pytest.mark.parametrize(("length", "count"), [("0.7", 7), ("1/3", 2), ("0.9", 3)])
@pytest.mark.parametrize("digits", [16, 30])
def test_next_to_the_largest_loss_bounds_hold_where_floats_are_rounded(
    length: str, count: int, digits: int
) -> None:
    t = Fraction(length)
    eta = t / 10**digits  # equal scores with the loss t − η/(k + 1), the candidate that rises
    with ctx.workprec(300):
        missing = -(-ball(eta / (count + 1))).expm1()
        least = missing ** (count + 1) / (-(-ball(t)).expm1()) ** count
        attained = fraction(least.lower())
    epsilon, several = count * t - eta, Composed(ExponentialMechanism(t), count)
    assert profile.delta(several, epsilon).upper >= attained
    assert profile.epsilon(several, attained).upper >= epsilon


def test_large_delta_has_the_epsilon_of_every_mechanism() -> None:
    found = profile.signed_epsilon(Composed(ExponentialMechanism("0.3"), 3), "0.999")
    assert found.lower <= math.log(0.001) + SPARE
    assert float(found.upper) == pytest.approx(math.log(0.001), rel=1e-9)


@pytest.mark.parametrize("epsilon", [20, 60, 700, 1000])
@pytest.mark.parametrize("alpha", ["0", "1e-40", "1e-9", "1/2", "1"])
def test_type_ii_errors_where_tails_are_far_apart(epsilon: int, alpha: str) -> None:
    several = Composed(ExponentialMechanism(epsilon), 2)
    found = tradeoff.beta(several, alpha)
    level, best = float(Fraction(alpha)), 1 - float(Fraction(alpha))
    for s in np.linspace(0.01, 0.99, 99) * epsilon:
        p, q = (-math.expm1(s - epsilon), math.exp(-s) - math.exp(-epsilon))
        if q > level:  # the candidate that rises is selected first; by chance not rejected
            best = min(best, 1 - p * level / q)
    assert float(found.lower) <= best * (1 + SPARE)
    if alpha == "0":
        assert found == 1


@pytest.mark.parametrize("epsilon", ["1e400", "1e5", "1e-320", "1e-400"])
def test_lengths_that_floats_do_not_know_are_enclosed_widely_or_refused(epsilon: str) -> None:
    several = Composed(ExponentialMechanism(epsilon), 3)
    with pytest.raises(UndecidedError, match=r"Nothing is known but .* \[0, 1\]"):
        profile.delta(several, "1e-401")
    assert profile.delta(several, 10 * Fraction(epsilon)) == 0
    assert dpassay.verify(several, epsilon=0, delta="1e-500").verdict.value != "HOLDS"


def test_epsilon_and_divergences_of_selections() -> None:
    one, ten = ExponentialMechanism(1), Composed(ExponentialMechanism(1), 10)
    found = profile.epsilon(ten, "1e-6")
    for end, sign in ((found.lower, 1), (found.upper, -1)):
        at = profile.delta(ten, round(float(end) - sign * 1e-3, 6))
        assert (float(at.lower) - 1e-6) * sign > 0
    assert float(found.upper) < 0.96 * float(
        profile.epsilon(Composed(one.dominated_by, 10), "1e-6").lower
    )
    assert profile.epsilon(ten, 0) == 10
    assert float(guarantees.rho(ten)) == pytest.approx(10 * float(guarantees.rho(one)), rel=1e-5)
    low = profile.signed_epsilon(ten, "0.9")
    assert low.upper < 0 < float(profile.delta(ten, low.upper).upper)


SELECTIONS = [
    PermuteAndFlip(1),
    ReportNoisyMax("Laplace", 2, 5),
    ReportNoisyMax("Gaussian", 4, 5),
    AboveThreshold(2, 4),
    AboveThreshold(2, 2),
]


@pytest.mark.parametrize("one", SELECTIONS, ids=repr)
@pytest.mark.parametrize("count", [10, 100])
def test_equal_pairs_are_below_what_dominates_all(one: Mechanism, count: int) -> None:
    found = profile.delta(Composed(one, count), 1)
    i, best = np.arange(count + 1), 0.0
    for pair in one.attained():
        assert isinstance(pair, FinitePair)
        (p, _), (q, _) = ([float(x.mid()) for x in side] for side in pair.source.masses(pair.index))
        sides = [binom.pmf(i, count, x) for x in (p, q)]
        for a, b in (sides, sides[::-1]):
            best = max(best, float(np.maximum(a - math.e * b, 0).sum()))
    assert float(found.lower) == pytest.approx(best, rel=1e-6)
    if count == 10:
        assert found.upper < 1
    assert one.dominated_by is not None
    dominated = profile.delta(Composed(one.dominated_by, count), 1)
    assert float(found.upper) == pytest.approx(float(dominated.upper), rel=1e-6)


def test_keys_of_several_releases() -> None:
    for one, new in (
        (LaplaceThreshold(1, 12), math.exp(-11) / 2),
        (GaussianThreshold(2, 12, partitions=2), None),
        (PartitionSelection(1, "1e-5"), 1e-5),
    ):
        several = Composed(one, 3)
        found = profile.delta(several, 1, adjacency="add-remove")
        assert 0 < found.lower < found.upper < 1
        single = profile.delta(one, 1, adjacency="add-remove")
        assert found.lower > single.upper
        if new is not None:
            least = -math.expm1(3 * math.log1p(-new))
            assert float(profile.delta(several, 50, adjacency="add-remove").lower) >= least * 0.999


def test_mixed_compositions_have_two_ends_and_samples_none() -> None:
    mixed = Composed([Composed(ExponentialMechanism(1), 2), Laplace(2)])
    found = profile.delta(mixed, "1/2")
    parts = Composed([Composed(Laplace(1), 2), Laplace(2)])
    assert found.upper < profile.delta(parts, "1/2").lower
    assert profile.delta(Laplace(2), "1/2").upper < found.lower < found.upper
    for inner in (ExponentialMechanism(1), mixed):
        with pytest.raises(NotApplicableError, match=r"at most that of .*Logistic\(scale=1\)"):
            PoissonSubsampled(inner, "1/10")
