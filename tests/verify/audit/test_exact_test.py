"""The exact tests against brute force, their level, and binomial laws of up to 10¹⁵ runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from mpmath import mp
from scipy import stats

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.audit import exact_test
from dpassay.verifier.audit.exact_test import (
    Counts,
    Design,
    delta_lower_bound,
    epsilon_lower_bound,
    nested_p_value,
    p_value,
)
from dpassay.verifier.kernel import statistics
from tests.quick import quick, slow

SPARED = 1e-4


def test_a_huge_factor_needs_no_huge_table() -> None:
    """At ε = 30 the boundary reaches from p = δ to p = 1: a table of all counts is 4·10⁶ wide."""
    value = p_value(Counts(40, 4_000_000, 0, 4_000_000), 30.0, 1e-6, spared=1e-8)
    assert stats.binom.sf(39, 4_000_000, 1e-6) <= value <= 1


def test_guesses_of_a_pure_guarantee_are_binomial() -> None:
    value = p_value(Counts(80, 1000, 20, 1000, Design.GUESSES), 1.0, 0.0, spared=SPARED)
    exact = stats.binom.sf(79, 100, math.e / (1 + math.e))
    assert exact <= value <= exact * (1 + 2 * exact_test.ROUNDING)


@pytest.mark.parametrize("design", quick(list(Design), 1))
def test_the_level_at_the_boundary(design: Design) -> None:
    """Of 4000 audits at 5 % between 3 % and 5 % are refuted, plus 5 deviations of the count."""
    rng = np.random.default_rng(21)
    n, epsilon, delta, q, trials = 100_000, 1.0, 1e-4, 0.05, 4000
    p = math.e * q + delta
    hits, misses = rng.binomial(n, p, trials), rng.binomial(n, q, trials)
    if design is Design.GUESSES:
        misses = rng.binomial(n - hits, q / (1 - p))
    refuted = sum(
        p_value(Counts(int(a), n, int(b), n, design), epsilon, delta, spared=5e-4) <= 0.05
        for a, b in zip(hits[:1000], misses[:1000], strict=True)
    )
    deviation = math.sqrt(1000 * 0.05)
    assert 0.03 * 1000 - 5 * deviation <= refuted <= 0.05 * 1000 + 5 * deviation


def test_bounds_are_refuted_and_hardly_more() -> None:
    for design in Design:
        for n in (200, 10**5, 10**9):
            counts = Counts(n // 2, n, n // 6, n, design)
            eps = epsilon_lower_bound(counts, 1e-6, 0.05)
            assert p_value(counts, eps, 1e-6, spared=5e-4) <= 0.05
            gap = math.log(3) - eps
            assert p_value(counts, eps + 0.1 * gap, 1e-6, spared=5e-4) > 0.05
            bound = delta_lower_bound(counts, 0.5, 0.05)
            assert p_value(counts, 0.5, bound, spared=5e-4) <= 0.05
            assert 0 <= bound < 0.5 - math.exp(0.5) / 6
    assert epsilon_lower_bound(Counts(3, 10, 3, 10), 0.0, 0.05) == 0


def test_impossible_counts_are_refused() -> None:
    for bad in ((5, 4, 0, 4), (0, 4, -1, 4), (0, 0, 0, 4)):
        with pytest.raises(InvalidInputError):
            Counts(*bad)
    with pytest.raises(InvalidInputError, match="≤ 4 runs"):
        Counts(3, 4, 2, 4, Design.GUESSES)
    with pytest.raises(InvalidInputError, match="delta"):
        p_value(Counts(1, 2, 1, 2), 1.0, 1.0)
    with pytest.raises(InvalidInputError, match="epsilon"):
        p_value(Counts(1, 2, 1, 2), -1.0, 0.0)
    assert p_value(Counts(4, 4, 0, 4), 800.0, 0.0) == 1.0


_DIGITS = 50
RUNS = [10**5, 10**9, 10**12, 10**15]


def mass(k: int, n: int, p: Any) -> Any:
    """P(Bin(n, p) = k) from three factorials, at a precision that bears their cancellation."""
    log = mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)
    return mp.exp(log + k * mp.log(p) + (n - k) * mp.log1p(-mp.mpf(p)))


def upper_tail(k: int, n: int, p: Any) -> Any:
    """P(Bin(n, p) ≥ k) above the mean: the first mass times a hypergeometric series."""
    p = mp.mpf(p)
    ratio, total, term = p / (1 - p), mp.mpf(1), mp.mpf(1)
    for i in range(k, n):
        term *= ratio * (n - i) / (i + 1)
        total += term
        if term < total * mp.mpf(10) ** -30:
            break
    return mass(k, n, p) * total


@pytest.mark.parametrize("n", RUNS)
@pytest.mark.parametrize("mean", [0.3, 5.0, 1000.0, 4e4])
def test_masses(n: int, mean: float) -> None:
    p = mean / n
    spread = math.sqrt(mean)
    ks = {max(0, min(n, round(mean + z * spread))) for z in (-5, -1, 0, 1, 5)} | {0, 1, 15, 16, 17}
    with mp.workdps(_DIGITS):
        for k in sorted(ks):
            exact = mass(k, n, p)
            if exact < 1e-290:  # out of the range of floats
                continue
            found = mp.mpf(exact_test.masses(np.array([k]), n, np.array([p]))[0, 0])
            assert abs(found / exact - 1) < 1e-12 * (1 + abs(k - mean) / spread)


@pytest.mark.parametrize("n", RUNS)
def test_tails(n: int) -> None:
    with mp.workdps(_DIGITS):
        for mean in (2.0, 300.0, 2e4):
            for z in (3, 6, 20):
                k = math.ceil(mean + z * math.sqrt(mean)) + 2
                exact = upper_tail(k, n, mean / n)
                above = mp.mpf(float(exact_test.at_least(k, n, mean / n)))
                assert abs(above / exact - 1) < exact_test.ROUNDING / 10
                # the same tail of failures, whose probability 1 − mean/n is rounded
                failure = 1 - mean / n
                exact = upper_tail(k, n, 1 - mp.mpf(failure))
                below = mp.mpf(float(exact_test.at_most(n - k, n, failure)))
                assert abs(below / exact - 1) < exact_test.ROUNDING / 10


@pytest.mark.parametrize("n", RUNS)
@pytest.mark.parametrize("level", [0.0025, 5e-9])
def test_rates_are_on_the_safe_side_and_near(n: int, level: float) -> None:
    """The library's inverse is wrong by a factor of ten at 10¹² runs and 1000 hits."""
    hits = np.array([0, 1, 3, 100, 1000, 10**5 - 3, n // 3, n - 5, n], dtype=float)
    low = exact_test.least_rate(hits, n, level)
    high = exact_test.largest_rate(hits, n, level)
    assert (low <= hits / n).all()
    assert (hits / n <= high).all()
    assert low[0] == 0
    assert high[-1] == 1
    some, most = hits > 0, hits < n
    above = exact_test.at_least(hits[some], n, low[some])
    assert (above <= level).all()
    below = exact_test.at_most(hits[most], n, high[most])
    assert (below <= level).all()
    # n − 5 of n is as near as floats next to 1 allow
    assert (above[:6] >= 0.98 * level).all()
    assert (below[:6] >= 0.98 * level).all()


CASES = [
    slow(Counts(2_300, 10**12, 300, 10**12), 0.0),  # tables
    slow(Counts(2_300, 10**12, 300, 10**12), 1e-9),
    (Counts(45, 10**9, 3, 10**9), 1e-9),
    (Counts(731_063_578_630, 2 * 10**12, 268_936_421_370, 2 * 10**12, Design.GUESSES), 0.0),
    (Counts(4_600, 2 * 10**12, 600, 2 * 10**12, Design.GUESSES), 0.0),
    (Counts(4_600, 2 * 10**12, 600, 2 * 10**12, Design.GUESSES), 1e-9),
]


@pytest.mark.parametrize(("counts", "delta"), CASES)
def test_bounds_at_a_trillion_runs_stand_in_the_kernel(counts: Counts, delta: float) -> None:
    """The kernel sums anew, in 40 digits or with finer cells, and must not find more."""
    significance, spared = 1e-6, 1e-8
    epsilon = epsilon_lower_bound(counts, delta, significance)
    assert epsilon > 0.5
    least = delta_lower_bound(counts, 0.5, significance)
    points = [(epsilon, delta)] + [(0.5, least)] * (counts.hits < 10**6)
    for point in points:
        own = p_value(counts, *point, spared=spared)
        again = (counts.hits, counts.runs, counts.misses, counts.other_runs)
        with ctx.workprec(statistics.BITS):
            found = getattr(statistics, counts.design.value)(
                again, math.exp(point[0]), point[1], spared
            )
        assert found <= own * (1 + 1e-9)
        assert own <= significance


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_the_p_value_of_a_clear_refutation_holds_at_every_level(delta: float) -> None:
    """What a test spares does not keep it up, and P(p ≤ t) ≤ t on the boundary, by summing."""
    n, epsilon, level = 16, 0.5, 0.05
    found = np.array(
        [
            [nested_p_value(Counts(a, n, b, n), epsilon, delta, level) for b in range(n + 1)]
            for a in range(n + 1)
        ]
    )
    assert found[n, 0] < 1e-4
    for q in np.linspace(0, (1 - delta) / math.exp(epsilon), 25):
        p = min(1.0, q * math.exp(epsilon) + delta)
        masses = np.outer(*(stats.binom.pmf(np.arange(n + 1), n, rate) for rate in (p, q)))
        for t in np.unique(found):
            assert masses[found <= t].sum() <= t * (1 + 1e-9)


def test_a_p_value_is_below_what_its_test_spares() -> None:
    counts = Counts(900, 1000, 3, 1000)
    assert p_value(counts, 1, 0.05, spared=5e-4) > 5e-4
    assert nested_p_value(counts, 1, 0.05, 0.05) < 1e-8
    right = Counts(900, 2000, 3, 2000, Design.GUESSES)
    assert nested_p_value(right, 1, 0.01, 0.05) < 1e-8
    assert nested_p_value(right, 1, 0.0, 0.05) == p_value(right, 1, 0.0)
