"""The least μ where only two bounds of the profile are known."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from scipy.stats import norm

import dpassay
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms import Guaranteed
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile
from dpassay.accountant.questions.least_mu import bounds, least_mu
from tests.quick import quick

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
    assert float(exact) == pytest.approx(known, rel=1e-8)
    assert float(ends(MECHANISMS[0]).upper) == pytest.approx(known, rel=1e-8)


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
    assert float(outputs.upper) == pytest.approx(float(sums.upper), rel=1e-8)
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


def test_no_end_is_negative() -> None:
    bridged = dpassay.BridgedTree(3, arities=[4, 5], epsilon=1)  # no cell is whole
    assert dpassay.epsilon(bridged, 0).lower == 0
    assert dpassay.mu(bridged).lower == 0
