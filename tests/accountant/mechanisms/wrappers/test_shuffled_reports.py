"""Bounds of many shuffled reports: around what enumeration finds, and binomials in floats."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, multinomial

import dpassay
from dpassay.accountant.core.pair import attained
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms import (
    Guaranteed,
    Laplace,
    RandomizedResponse,
    Rappor,
    Shuffled,
    ShuffledAmong,
    SubsetSelection,
    UnaryEncoding,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.pairs.shuffling import OthersAlike, ShuffledReports
from dpassay.accountant.questions import profile
from tests.accountant.mechanisms.wrappers.histograms import bits, worst_of_all
from tests.quick import slow


def both(epsilon0: Fraction, k: int, users: int, epsilon: Fraction) -> tuple[float, float]:
    pair = ShuffledReports(exact(epsilon0), k, users)
    return float(pair.lower(exact(epsilon))), float(pair.upper(exact(epsilon)))


@given(
    st.sampled_from([(2, 1), (2, 2), (2, 9), (2, 40), (3, 2), (3, 6), (4, 4), (5, 3)]),
    st.fractions("1/10", 4, max_denominator=20),
    st.fractions(-1, 1, max_denominator=20),
)
@settings(max_examples=40, deadline=None)
def test_what_is_listed_lies_between_the_bounds(
    size: tuple[int, int], epsilon0: Fraction, share: Fraction
) -> None:
    (k, users), epsilon = size, epsilon0 * share
    true = float(profile.delta(Shuffled(RandomizedResponse(epsilon0, k), users), epsilon))
    lower, upper = both(epsilon0, k, users, epsilon)
    assert lower * (1 - 1e-12) <= true <= upper * (1 + 1e-12)
    assert true <= both(epsilon0, 0, users, epsilon)[1] * (1 + 1e-12)
    if k == 2 and users < 3:
        assert lower == pytest.approx(true, rel=1e-12, abs=1e-300)


@given(st.integers(0, 10**6), st.floats(0.2, 3))
@settings(max_examples=15, deadline=None)
def test_no_randomiser_is_above_the_bound_by_clones(seed: int, epsilon0: float) -> None:
    """Random channels that are ε₀-DP, every dataset of four users, by enumeration."""
    rng, users, kinds = np.random.default_rng(seed), 4, 3
    channel = rng.dirichlet(np.ones(kinds), size=3)
    channel = np.clip(channel, channel.max(axis=0) / math.exp(epsilon0), None)
    channel = channel / channel.sum(axis=1, keepdims=True)
    reached = math.log((channel.max(axis=0) / channel.min(axis=0)).max())
    bound = ShuffledReports(exact(reached * (1 + 1e-12)), 0, users)

    for epsilon in (0.0, reached / 3, 0.9 * reached):
        most = float(bound.upper(exact(epsilon)))
        assert worst_of_all(channel.tolist(), users, math.exp(epsilon)) <= most * (1 + 1e-9)


@pytest.mark.parametrize(("users", "epsilon0", "epsilon"), [(1000, 2, 0.35), (500, 1, 0.01)])
def test_sums_in_floats(users: int, epsilon0: float, epsilon: float) -> None:
    """Of two categories: clones one by one, and all others alike, with no recurrence."""
    odds, x = math.exp(epsilon0), math.exp(epsilon)
    q, n, upper = odds / (odds + 1), users - 1, 0.0
    for c in range(n + 1):
        j = np.arange(c + 3)
        tail = binom.sf(j - 1, c, 0.5)
        each = (q - x * (1 - q)) * tail[:-1] + ((1 - q) - x * q) * tail[1:]
        upper += binom.pmf(c, n, 2 / (odds + 1)) * each.max()
    lower = 0.0
    for share in (q, 1 - q):
        tail = binom.sf(np.arange(users + 2) - 1, n, share)
        lower = max(lower, ((q - x * (1 - q)) * tail[:-1] + ((1 - q) - x * q) * tail[1:]).max())
    found = both(Fraction(epsilon0), 2, users, Fraction(epsilon))
    assert found == pytest.approx((lower, upper), rel=1e-9, abs=0)


@pytest.mark.parametrize(
    ("report", "epsilon0", "chances"),
    [
        (UnaryEncoding(2, 3), 2.0, (math.e / (1 + math.e), 1 / (1 + math.e))),
        (UnaryEncoding(1, 3, optimised=True), 1.0, (0.5, 1 / (1 + math.e))),
        (Rappor("1/2", 3), 2 * math.log(3), (0.75, 0.25)),
    ],
)
@pytest.mark.parametrize("users", [1, 2, 4])
def test_encodings_lie_between_their_bounds(
    report: UnaryEncoding | Rappor, epsilon0: float, chances: tuple[float, float], users: int
) -> None:
    """Every dataset of three categories, by the law of the multiset of rows of bits."""
    alone, rows = Shuffled(report, users), bits(*chances, 3)
    for epsilon in (0.0, 0.2 * epsilon0, 0.8 * epsilon0):
        most = worst_of_all(rows, users, math.exp(epsilon))
        (pair,) = alone.worst_case(None).remove
        assert isinstance(pair, ShuffledReports)
        low, high = (float(end(exact(epsilon))) for end in (pair.lower, pair.upper))
        assert low * (1 - 1e-12) <= most <= high * (1 + 1e-12)
        if users == 1:
            assert high == pytest.approx(most, rel=1e-12, abs=0)


def test_of_two_categories_a_subset_is_randomised_response() -> None:
    made = [Shuffled(report, 2000) for report in (SubsetSelection(1, 2, 1), RandomizedResponse(1))]
    sets, names = (each.worst_case(None).remove[0] for each in made)
    assert isinstance(sets, ShuffledReports)
    assert isinstance(names, ShuffledReports)
    for text in ("0.01", "0.05", "0.9"):
        for end in (ShuffledReports.lower, ShuffledReports.upper):
            found, known = end(sets, exact(text)), end(names, exact(text))
            assert found.overlaps(known)
            assert float(found) == pytest.approx(float(known), rel=1e-12, abs=0)
    with pytest.raises(NotApplicableError, match="does not run it"):
        Shuffled(UnaryEncoding(1, 3), 10).release([0] * 10)


@pytest.mark.parametrize(
    "report", [UnaryEncoding(2, 2, optimised=True), UnaryEncoding(1, 2), SubsetSelection(2, 5)]
)
@pytest.mark.parametrize("users", [2, 5, 40])
def test_the_lower_end_of_sets_is_the_best_event_among_others_alike(
    report: UnaryEncoding | SubsetSelection, users: int
) -> None:
    """All histograms are listed by another route; the larger of both datasets is the lower end."""
    others = [users - 1, *[0] * (report.categories - 1)]
    ways = ShuffledAmong(report, others).worst_case(None).remove[:2]  # all hold a, or all hold b
    (pair,) = Shuffled(report, users).worst_case(None).remove
    assert isinstance(pair, ShuffledReports)
    for epsilon in ("0.05", "0.3", "0.9"):
        most = max(float(way.hockey_stick(exact(epsilon))) for way in ways)
        assert float(pair.lower(exact(epsilon))) == pytest.approx(most, rel=1e-12, abs=0)


def laplace_bins(at: float, edges: np.ndarray) -> np.ndarray:
    """Return the masses of Laplace noise of scale 1 around a number, between edges."""
    below = np.where(edges < at, np.exp(edges - at) / 2, 1 - np.exp(at - edges) / 2)
    return np.diff(np.concatenate([[0.0], below, [1.0]]))


@pytest.mark.parametrize("whole", [0.3, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("users", [1, 2, 3])
def test_numbers_lie_between_their_bounds(whole: float, users: int) -> None:
    """Reports in 40 bins, and datasets on a grid: they tell less than all, but nearly as much."""
    edges = np.linspace(-0.2 * whole, 1.2 * whole, 39)
    laws = [laplace_bins(at, edges) for at in np.linspace(0, whole, 5)]
    (pair,) = Shuffled(Laplace(1, exact(Fraction(whole))), users).worst_case(None).remove
    assert isinstance(pair, ShuffledReports)
    for epsilon in (0.0, 0.3 * whole, 0.8 * whole):
        most = 0.0
        for others in itertools.combinations_with_replacement(laws, users - 1):
            joint = []
            for own in laws:
                product = own
                for law in others:
                    product = np.multiply.outer(product, law)
                orders = [product.transpose(o) for o in itertools.permutations(range(users))]
                joint.append(np.sum(orders, axis=0) / len(orders))
            for p, q in itertools.permutations(joint, 2):
                most = max(most, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
        low, high = (float(end(exact(Fraction(epsilon)))) for end in (pair.lower, pair.upper))
        assert low * (1 - 1e-12) <= 1.02 * most
        assert most <= high * (1 + 1e-12)
        if users == 1:
            assert high == pytest.approx(1 - math.exp((epsilon - whole) / 2), rel=1e-12, abs=0)


@pytest.mark.parametrize(("whole", "users", "epsilon"), [(1, 300, 0.2), (5, 200, 1.5), (7, 400, 1)])
def test_the_upper_end_of_numbers_is_that_of_their_worst_distance(
    whole: float, users: int, epsilon: float
) -> None:
    """Clones one by one in floats, at 400 distances: their largest is met within an eighth."""
    x, n, c = math.exp(epsilon), users - 1, np.arange(users)
    j = np.arange(users + 2)
    tails = np.asarray(binom.sf(j[None, :] - 1, c[:, None], 0.5))
    found = []
    for t in np.linspace(0, whole, 401)[1:]:
        s = math.exp(t / 2)
        alpha, gamma = 1 / (s * (s + 1)), s / ((s + 1) * math.exp(whole))
        each = alpha * ((s * s - x) * tails[:, :-1] - (x * s * s - 1) * tails[:, 1:])
        found.append(binom.pmf(c, n, 2 * gamma) @ np.maximum(each.max(axis=1), 0))
    pair = ShuffledReports(exact(whole), 0, users, None, numbers=True)
    upper = float(pair.upper(exact(Fraction(epsilon))))
    assert max(found) * (1 - 1e-9) <= upper <= 1.15 * max(found)


def test_cuts_of_numbers_tell_what_binomials_say() -> None:
    """The event of the lower end, by the law of three counts in floats and no recurrence."""
    users, whole, x = 60, 2.0, math.exp(0.4)
    pair = ShuffledReports(exact(2), 0, users, None, numbers=True)
    event = attained(pair, exact("0.4"))
    assert isinstance(event, FinitePair)
    others = event.source
    assert isinstance(others, OthersAlike)
    p, q, law = ([float(part) for part in laws] for laws in others.laws)
    low, high = map(float, others.cuts)
    assert p == pytest.approx(laplace_bins(0, np.array([low, high])), rel=1e-12, abs=0)
    assert q == pytest.approx(laplace_bins(whole, np.array([low, high])), rel=1e-12, abs=0)
    counts = multinomial(users - 1, law)
    gap = 0.0
    for first, last in itertools.product(range(users + 1), repeat=2):
        kinds = (first, users - first - last, last)
        if min(kinds) >= 0:
            without = [[k - (o == i) for i, k in enumerate(kinds)] for o in range(3)]
            masses = [float(counts.pmf(rest)) if min(rest) >= 0 else 0.0 for rest in without]
            gap += max(sum((p[o] - x * q[o]) * masses[o] for o in range(3)), 0.0)
    assert float(pair.lower(exact("0.4"))) == pytest.approx(gap, rel=1e-6, abs=0)


def test_numbers_are_refused_what_only_a_randomiser_of_categories_has() -> None:
    shuffled = Shuffled(Laplace(1, 2), 100)
    with pytest.raises(NotApplicableError, match="does not run it"):
        shuffled.release([0] * 100)
    finding = dpassay.verify(shuffled, epsilon="1/2", delta="1e-3")
    assert finding.verdict.value == "REFUTED"
    assert dpassay.verify(shuffled, epsilon=2, delta=0).verdict.value == "HOLDS"


def test_next_to_the_loss_of_one_report() -> None:
    for k, users in ((0, 50), (2, 50), (3, 50), (7, 5)):
        pair = ShuffledReports(exact(1), k, users)
        near = exact("0." + 70 * "9")
        assert pair.upper(near).upper() > 0
        assert pair.upper(near) < 1e-50
        assert pair.hockey_stick(exact(1)).is_zero()


@pytest.mark.parametrize(
    ("mechanism", "apart"),
    [
        (Shuffled(RandomizedResponse(2), 10_000), 1.32),
        *[
            slow(Shuffled(RandomizedResponse(1, 3), 10_000), 1.3),
            slow(Shuffled(Guaranteed(1), 10_000), 1.45),
        ],
    ],
    ids=str,
)
def test_epsilon_has_two_ends(mechanism: Shuffled, apart: float) -> None:
    found = dpassay.epsilon(mechanism, "1e-6")
    assert 1 < found.upper / found.lower < apart
    for end, bound in ((found.upper, "upper"), (found.lower, "lower")):
        delta = float(getattr(dpassay.delta(mechanism, end), bound))
        assert delta == pytest.approx(1e-6, rel=1e-3, abs=0)
    with pytest.raises(dpassay.UndecidedError, match="by clones"):
        dpassay.epsilon(mechanism, "1e-6", relative_width=Fraction(1, 1000))
