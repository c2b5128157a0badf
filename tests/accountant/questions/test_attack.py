"""What an attacker gains, against closed forms and brute force over all events."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, ncdf

import dpassay
from dpassay.accountant.questions.attack import membership, posterior, reconstruction

Law = list[Fraction]
WIDTH = Fraction(1, 10**20)
"""The relative width that the answers about tables have."""

laws = st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any)
priors = st.fractions("1/50", "49/50")


def law(weights: list[int]) -> Law:
    return [Fraction(weight, sum(weights)) for weight in weights]


def tabulated(p: Law, q: Law) -> dpassay.Tabulated:
    return dpassay.Tabulated([str(x) for x in p], [str(x) for x in q])


def events(p: Law, q: Law) -> list[tuple[Fraction, Fraction]]:
    """P(S) and Q(S) of every event."""
    chosen = list(product((0, 1), repeat=len(p)))
    return [(dot(p, inside), dot(q, inside)) for inside in chosen]


def dot(p: Law, inside: tuple[int, ...]) -> Fraction:
    return sum((x * i for x, i in zip(p, inside, strict=True)), Fraction())


def power(p: Law, q: Law, level: Fraction) -> Fraction:
    """The largest power of a test of a level: an event, or a mixture of two."""
    found = events(p, q)
    best = max(s for s, t in found if t <= level)
    for (s, t), (u, v) in product(found, found):
        if t < level < v:
            best = max(best, s + (u - s) * (level - t) / (v - t))
    return best


def holds(found: dpassay.Interval, true: Fraction) -> bool:
    ends = Fraction(found.lower), Fraction(found.upper)
    return ends[0] <= true <= ends[1] and ends[1] - ends[0] <= WIDTH * true


@given(laws, laws, priors)
@settings(max_examples=40, deadline=None)
def test_membership_is_the_best_guess_over_all_events(
    a: list[int], b: list[int], prior: Fraction
) -> None:
    p, q = law(a), law(b)
    both = events(p, q) + events(q, p)
    best = max(prior * s + (1 - prior) * (1 - t) for s, t in both)
    assert holds(membership(tabulated(p, q), str(prior)), best)


@given(laws, laws, priors, st.fractions("1/100", 1))
@settings(max_examples=40, deadline=None)
def test_posterior_is_the_largest_over_all_events_that_are_likely_enough(
    a: list[int], b: list[int], prior: Fraction, alpha: Fraction
) -> None:
    p, q = law(a), law(b)
    best = max(power(p, q, alpha), power(q, p, alpha))
    true = prior * best / (prior * best + (1 - prior) * alpha)
    assert holds(posterior(tabulated(p, q), str(prior), str(alpha)), true)


@given(laws, laws, priors)
@settings(max_examples=40, deadline=None)
def test_posterior_is_the_largest_over_all_events(
    a: list[int], b: list[int], prior: Fraction
) -> None:
    p, q = law(a), law(b)
    both = [(s, t) for s, t in events(p, q) + events(q, p) if s]
    true = max(prior * s / (prior * s + (1 - prior) * t) for s, t in both)
    assert holds(posterior(tabulated(p, q), str(prior)), true)


@pytest.mark.parametrize("mu", ["0.5", "1", "3"])
def test_a_gaussian_is_guessed_at_even_odds_with_probability_phi_of_half_mu(mu: str) -> None:
    found = membership(dpassay.Gaussian(1, mu), "1/2")
    with mp.workdps(30):
        assert abs(mp.mpf(str(found.lower)) - ncdf(mp.mpf(mu) / 2)) < mp.mpf("1e-25")
    assert found.digits > 25


def test_pure_privacy_bounds_the_posterior_and_others_do_not() -> None:
    found = posterior(dpassay.Laplace(1), "1/2")
    with mp.workdps(30):
        assert abs(mp.mpf(str(found.upper)) - 1 / (1 + mp.exp(-1))) < mp.mpf("1e-25")
    assert posterior(dpassay.Gaussian(1), "1e-9") == dpassay.Interval.of_exact(1)


@pytest.mark.parametrize("records", [2, 5, 40])
def test_no_guess_of_a_record_does_better_than_the_bound(records: int) -> None:
    """The record's own randomised response is the best guess of it: right with e/(e + n − 1)."""
    report = dpassay.RandomizedResponse(1, records)
    bound = reconstruction(report, Fraction(1, records))
    with mp.workdps(20):
        assert mp.e / (mp.e + records - 1) <= mp.mpf(str(bound.upper))
    assert bound.upper < 1
