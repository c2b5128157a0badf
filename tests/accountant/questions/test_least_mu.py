"""Least μ of discrete Gaussian noise beside mpmath: plain sums, test by test."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from mpmath import mp
from scipy.stats import norm

import dpassay
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    Gaussian,
    Guaranteed,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
)
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile, tradeoff
from dpassay.accountant.questions.least_mu import bounds, least_mu
from tests.quick import quick, slow

WIDTH = Fraction(1, 10**6)


def masses(parameter: Any, count: int, reach: int) -> dict[int, Any]:
    """Return the masses of the sum of `count` variables, by plain convolution."""
    one = {z: mp.exp(-mp.mpf(z * z) / (2 * parameter)) for z in range(-reach, reach + 1)}
    total = mp.fsum(one.values())
    law = {0: mp.one}
    for _ in range(count):
        after: dict[int, Any] = {}
        for a, p in law.items():
            for b, q in one.items():
                after[a + b] = after.get(a + b, mp.zero) + p * q / total
        law = after
    return law


def needs(law: dict[int, Any], shift: int, last: int) -> list[Any]:
    """Return μ_k for k from the middle up to `last`."""
    above, tails = mp.zero, {}
    for z in sorted(law, reverse=True):
        above += law[z]
        tails[z] = above
    scores = {k: score(tails[k]) for k in range(1, last + 1)}
    scores |= {1 - k: -value for k, value in scores.items()}
    return [scores[k] - scores[k - shift] for k in range(shift // 2 + 1, last + 1)]


def upper(mechanism: Mechanism, relation: Adjacency | None = None) -> Any:
    """Return the best upper μ, required to be narrow, as an interval of mpmath."""
    found = least_mu(mechanism.worst_case(relation).pairs(None), WIDTH)
    assert (found.relative_width or 0) <= WIDTH
    return mp.mpf(str(found.lower)), mp.mpf(str(found.upper))


@pytest.mark.parametrize(
    ("parameter", "shift", "last"),
    [("1/100", 1, 5), ("1/4", 1, 12), ("1", 1, 40), ("2", 3, 40), ("4", 1, 60), ("25", 4, 160)],
)
def test_one_release(parameter: str, shift: int, last: int) -> None:
    value = Fraction(parameter)
    with mp.workdps(40):
        v = mp.mpf(value.numerator) / value.denominator
        found = needs(masses(v, 1, last + 200), shift, last)
        low, high = upper(DiscreteGaussian(parameter, shift))
        assert low <= max(found) <= high
        assert max(found) > shift / mp.sqrt(v)
        assert all(one > other for one, other in pairwise(found))  # the middle one is the largest


@pytest.mark.parametrize(("parameter", "count", "last"), [("4", 3, 60)])
def test_sums_of_releases(parameter: str, count: int, last: int) -> None:
    value = Fraction(parameter)
    with mp.workdps(40):
        v = mp.mpf(value.numerator) / value.denominator
        found = needs(masses(v, count, last), count, last)
        low, high = upper(Composed(DiscreteGaussian(parameter), count))
        assert low <= max(found) <= high
        assert max(found) > mp.sqrt(count / v)


def test_much_noise_needs_hardly_more_than_normal_noise() -> None:
    low, high = upper(DiscreteGaussian(4_000_000))
    assert high < mp.mpf("0.0005") * (1 + mp.mpf(10) ** -6)
    assert low > mp.mpf("0.0005")


def sampled(law: dict[int, Any], shift: int, q: Any, reach: int) -> list[Any]:
    """Return what {Z ≥ k} needs of a sample, for |k| up to `reach`."""
    tails, lower, above, below = {}, {}, mp.zero, mp.zero
    for z in sorted(law, reverse=True):
        above += law[z]
        tails[z] = above
    for z in sorted(law):
        lower[z] = below  # of less than z
        below += law[z]

    def t(k: int, share: Any) -> Any:
        high = (1 - share) * tails[k] + share * tails[k - shift]
        low = (1 - share) * lower[k] + share * lower[k - shift]
        return score(high) if high < low else -score(low)

    return [t(k, mp.zero) - t(k, q) for k in range(-reach, reach + 1)]


@pytest.mark.parametrize(
    ("parameter", "shift", "q"), [("1/4", 1, "0.9"), ("1", 1, "0.9"), ("4", 2, "0.999")]
)
def test_samples_lie_between_their_limit_and_the_release(
    parameter: str, shift: int, q: str
) -> None:
    value = Fraction(parameter)
    sample = PoissonSubsampled(DiscreteGaussian(parameter, shift), q)
    with mp.workdps(60):
        v = mp.mpf(value.numerator) / value.denominator
        true = max(sampled(masses(v, 1, 160), shift, mp.mpf(q), 60))
        assert true > shift / mp.sqrt(v)
        pairs = sample.worst_case(Adjacency.ADD_REMOVE).pairs(None)
        ends = bounds(pairs, WIDTH)
        _, whole = upper(DiscreteGaussian(parameter, shift))  # a union has a radius of 30 bits
        assert (
            mp.mpf(str(ends.lower))
            <= true
            <= mp.mpf(str(ends.upper))
            <= whole * (1 + mp.mpf(2) ** -28)
        )


@pytest.mark.parametrize(
    ("mechanism", "known"),
    [
        (Composed(DiscreteGaussian("1/4"), 2), r"\[2\.828.*, 3\."),
        slow(Composed([DiscreteGaussian(4), Gaussian(1)]), r"\[1\.118.*, 1\.1204"),
        slow(Composed([DiscreteGaussian(4), Laplace(1)]), r"\[1\.03006.*, 1\.147"),
    ],
)
def test_what_is_known_is_said_where_no_narrow_enclosure_is(
    mechanism: Mechanism, known: str
) -> None:
    with pytest.raises(UndecidedError, match=known):
        upper(mechanism)


# Normal scores in mpmath, for the tests.


def score(tail: Any) -> Any:
    """Return t with P(N(0, 1) > t) = tail, by Newton's method for the logarithm."""
    if tail > mp.mpf(1) / 2:
        return -score(1 - tail)
    t = mp.sqrt(-2 * mp.log(tail))
    for _ in range(60):
        own = mp.ncdf(-t)
        step = mp.log(own / tail) * own / mp.npdf(t)
        t += step
        if abs(step) < mp.mpf(10) ** (8 - mp.dps) * (1 + abs(t)):
            return t
    raise AssertionError("Newton's method did not settle")


# The least μ where only two bounds of the profile are known.


WIDE = Fraction(1, 10**6)


def ends(text: str) -> Interval:
    return bounds(profile.worst_pairs(parse(text), None, None), WIDE)


MECHANISMS = [
    "AboveThreshold(threshold_scale=2, query_scale=4)",
    "ReportNoisyMax('Laplace', scale=2, candidates=5)",
    "Composed(PermuteAndFlip(epsilon=1), 10)",
]


@pytest.mark.parametrize("text", quick(MECHANISMS, 0, 1))
def test_both_ends_are_mu(text: str) -> None:
    """The profile is nowhere above that of the upper end, and somewhere above one below."""
    found = ends(text)
    assert 0 < found.lower < found.upper < 4
    high, low = (float(end) for end in (found.upper, found.lower))
    shown = []
    for epsilon in ("0", "1/10", "1/4", "1/2", "3/4"):
        at = float(Fraction(epsilon))
        delta = profile.delta(parse(text), epsilon)
        gaussian = [
            norm.cdf(mu / 2 - at / mu) - math.exp(at) * norm.cdf(-mu / 2 - at / mu)
            for mu in (high, low)
        ]
        assert float(delta.lower) <= gaussian[0]
        shown.append(float(delta.upper) > gaussian[1])
    assert any(shown)


def test_a_loss_of_at_most_t_needs_the_mu_of_randomised_response() -> None:
    """Closed form: 2Φ⁻¹(e^t/(1 + e^t)), which what is t-DP attains."""
    exact = least_mu(profile.worst_pairs(Guaranteed(1), None, None), Fraction(1, 10**9))
    known = 2 * norm.isf(1 / (1 + math.e))
    assert float(exact) == pytest.approx(known, rel=1e-8, abs=0)
    assert float(ends(MECHANISMS[0]).upper) == pytest.approx(known, rel=1e-8, abs=0)


def test_a_wide_answer_is_given_to_those_who_ask_for_it() -> None:
    pairs = profile.worst_pairs(parse(MECHANISMS[1]), None, None)
    with pytest.raises(UndecidedError, match=r"Reached the least mu in \[0\.61"):
        least_mu(pairs, WIDE)
    assert least_mu(pairs, Fraction(1)).lower > 0
    shown = dpassay.AboveThreshold(2, 4, variant="noisy-values")
    with pytest.raises(NotApplicableError, match="No mu is known"):
        bounds(profile.worst_pairs(shown, None, None), WIDE)


def test_few_laplace_releases_are_searched_as_one() -> None:
    """The upper end is that of all measured sums together, less than the root of their squares."""
    outputs, sums = (
        ends(f"BridgedTree(steps=8, arities=[2, 2, 2], epsilon=1, released='{what}')")
        for what in ("outputs", "measurements")
    )
    assert float(outputs.upper) == pytest.approx(float(sums.upper), rel=1e-8, abs=0)
    assert float(outputs.upper) < 3**0.5 * float(ends("Laplace(scale=3)").upper) * 0.9


@pytest.mark.parametrize("order", [1, -1])
def test_both_directions_count(order: int) -> None:
    """Of a part whose loss is larger in one direction, whichever comes first."""
    p, q = (["1/100", "99/100"], ["1/10", "9/10"])[::order]
    alone = f"Tabulated(p={p}, q={q})"
    both = ends(f"Composed([PermuteAndFlip(epsilon='1/1000'), {alone}])")
    least = ends(alone).lower
    assert least * Decimal("0.98") < both.lower
    assert least < both.upper


# Least μ of unbounded losses: the limit where it is exact, else two ends.


BOTH: list[tuple[Mechanism, str | None]] = [
    (PoissonSubsampled(Gaussian(2), "0.1"), "replace-one"),
    (PoissonSubsampled(Gaussian(1), "0.9"), "replace-one"),
    (Composed([Gaussian(2), Laplace(2)]), None),
    (Composed([Gaussian(1), RandomizedResponse(1)]), "replace-one"),
]


@pytest.mark.parametrize(("mechanism", "relation"), BOTH)
def test_no_test_needs_more_than_the_upper_end(mechanism: Mechanism, relation: str | None) -> None:
    """A test of level α and type II error β needs Φ⁻¹(1 − α) − Φ⁻¹(β)."""
    found = dpassay.mu(mechanism, adjacency=relation)
    assert 0 < found.lower <= found.upper < 2.5
    for alpha in (Fraction(1, 10**6), Fraction(1, 100), Fraction(1, 4)):
        beta = float(tradeoff.beta(mechanism, alpha, adjacency=relation).lower)
        assert norm.isf(float(alpha)) - norm.ppf(beta) <= float(found.upper) * (1 + 1e-9)


def test_a_search_has_fifteen_digits() -> None:
    # a lie hides behind the line through (c, c), c = 1/(1 + e), where Φ(−μ/2) = c
    found = dpassay.mu(RandomizedResponse(1), relative_width="1e-15")
    with mp.workdps(40):
        known = 2 * mp.sqrt(2) * mp.erfinv(mp.tanh(mp.mpf(1) / 2))
        assert (found.relative_width or 1) <= Fraction(1, 10**15)
        assert mp.mpf(str(found.lower)) <= known <= mp.mpf(str(found.upper))


def test_calibration_to_mu_says_the_mu_that_is_reached() -> None:
    found = dpassay.calibrate("Laplace", mu=1).achieved
    assert list(found) == ["mu"]
    assert Decimal("0.99999999") < found["mu"].lower <= found["mu"].upper <= 1
