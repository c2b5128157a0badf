"""Shuffled reports among given others, against plain enumeration of what every user reports."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import exp, mp, mpf

import dpassay
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import (
    Channel,
    RandomizedResponse,
    Rappor,
    Shuffled,
    ShuffledAmong,
    SubsetSelection,
    UnaryEncoding,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.pairs.shuffling import ShuffledReports
from dpassay.accountant.questions import profile
from tests.accountant.mechanisms.wrappers.histograms import bits, law, worst
from tests.near import narrow
from tests.quick import slow


def records(counts: Sequence[int]) -> list[int]:
    """Return as many records of each category as it says."""
    return [category for category, count in enumerate(counts) for _ in range(count)]


def sets(epsilon: mpf, k: int, d: int) -> list[list[mpf]]:
    """Return the rows of a report of d of k categories."""
    found = []
    for own in range(k):
        weights = [
            exp(epsilon) if own in s else mpf(1) for s in itertools.combinations(range(k), d)
        ]
        found.append([w / sum(weights) for w in weights])
    return found


def responses() -> list[tuple[Mechanism, list[list[mpf]]]]:
    with mp.workdps(40):
        e, half = exp(mpf(1)), exp(mpf("0.5"))
        p = half / (1 + half)
        return [
            (RandomizedResponse(1), sets(mpf(1), 2, 1)),
            (RandomizedResponse(1, 3), sets(mpf(1), 3, 1)),
            (RandomizedResponse(1, 5), sets(mpf(1), 5, 1)),
            (UnaryEncoding(1, 2), bits(p, 1 - p, 2)),
            (UnaryEncoding(1, 3), bits(p, 1 - p, 3)),
            (UnaryEncoding(1, 3, optimised=True), bits(mpf(1) / 2, 1 / (1 + e), 3)),
            (Rappor("1/2", 3), bits(mpf(3) / 4, mpf(1) / 4, 3)),
            (SubsetSelection(1, 4, 2), sets(mpf(1), 4, 2)),
            (SubsetSelection(1, 5, 3), sets(mpf(1), 5, 3)),
        ]


def names(value: object) -> str:
    return str(value) if isinstance(value, Mechanism) else ""


@pytest.mark.parametrize(("mechanism", "rows"), responses(), ids=names)
@pytest.mark.parametrize("epsilon", [slow("0"), "0.3"])
def test_every_report_of_every_user(
    mechanism: Mechanism, rows: list[list[mpf]], epsilon: str
) -> None:
    k = len(rows)
    for others in ([3] + [0] * (k - 1), [0] * k, [1] * 2 + [0] * (k - 2), [0] * (k - 1) + [2]):
        found = profile.delta(ShuffledAmong(mechanism, others), epsilon)
        with mp.workdps(40):
            true = worst(rows, records(others), exp(mpf(epsilon)), mpf(1))
            assert mpf(str(found.lower)) * (1 - mpf(10) ** -25) <= true
            assert true <= mpf(str(found.upper)) * (1 + mpf(10) ** -25)
        assert narrow(found, 1e-11)


@st.composite
def channels(draw: st.DrawFn) -> list[list[Fraction]]:
    """Draw rows of fractions, some of which are 0, with columns that are proportional or not."""
    inputs, kinds = draw(st.sampled_from([(2, 2), (2, 3), (3, 3), (3, 4)]))
    rows = []
    for _ in range(inputs):
        weights = draw(st.lists(st.integers(0, 4), min_size=kinds, max_size=kinds).filter(any))
        rows.append([Fraction(w, sum(weights)) for w in weights])
    return rows


@given(channels(), st.data())
@settings(max_examples=25, deadline=None)
def test_any_table_in_exact_fractions(rows: list[list[Fraction]], data: st.DataObject) -> None:
    """δ(ln r) of small tables is a fraction, and so it is by enumeration."""
    inputs = len(rows)
    others = data.draw(st.lists(st.integers(0, 2), min_size=inputs, max_size=inputs))
    ratio = data.draw(st.fractions(1, 4, max_denominator=6))
    true = worst(rows, records(others), ratio, Fraction(1))
    channel = Channel([[str(entry) for entry in row] for row in rows])
    found = profile.delta(ShuffledAmong(channel, others), f"log({ratio})")
    assert Fraction(found.lower) <= true <= Fraction(found.upper)
    assert Fraction(found.upper - found.lower) <= Fraction(1, 10**12)


@pytest.mark.parametrize("users", [5, 40])
def test_all_others_of_two_categories_are_the_exact_answer(users: int) -> None:
    """The largest over what the others hold is that of `Shuffled`, which looks at all of them."""
    for epsilon in ("0.05", "0.5", "1.9"):
        whole = profile.delta(Shuffled(RandomizedResponse(2), users), epsilon)
        each = [
            profile.delta(ShuffledAmong(RandomizedResponse(2), [m, users - 1 - m]), epsilon)
            for m in range(users)
        ]
        assert float(max(each, key=float)) == pytest.approx(float(whole), rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("mechanism", "others"),
    [
        (RandomizedResponse(1), [999, 0]),
        (RandomizedResponse(1), [300, 300]),
        (RandomizedResponse(1, 3), [60, 0, 0]),
        (UnaryEncoding(2, 2, True), [100, 0]),
    ],
    ids=str,
)
def test_it_is_between_both_ends_of_all_others(
    mechanism: RandomizedResponse | UnaryEncoding, others: list[int]
) -> None:
    among = ShuffledAmong(mechanism, others)
    report = None if isinstance(mechanism, RandomizedResponse) else mechanism
    pair = ShuffledReports(mechanism.epsilon, mechanism.categories, among.users, report)
    for epsilon in ("0.02", "0.3"):
        found = float(profile.delta(among, epsilon))
        lower, upper = (float(end(exact(epsilon))) for end in (pair.lower, pair.upper))
        assert found <= upper * (1 + 1e-12)
        if others[1] == 0:  # all alike, as where the lower end is from: by its best event
            assert found >= lower * (1 - 1e-12)
            if report is None:
                assert found == pytest.approx(lower, rel=1e-9, abs=0)


def test_reports_that_tell_nothing_apart_are_one_kind() -> None:
    """Columns in proportion, split, and renamed: the same answers, and fewer histograms."""
    whole = Channel([["3/4", "1/4"], ["1/4", "3/4"]])
    split = Channel([["1/4", "1/2", "1/12", "1/6"], ["1/12", "1/6", "1/4", "1/2"]])
    for others in ([5, 2], [0, 30]):
        one, two = (ShuffledAmong(channel, others) for channel in (whole, split))
        assert len(one.outcomes(1)) == len(two.outcomes(1)) == one.users + 1
        for epsilon in ("0", "0.3", "log(3)"):
            assert profile.delta(one, epsilon) == profile.delta(two, epsilon)


def test_a_claim_that_is_just_met_is_decided() -> None:
    for mechanism in (RandomizedResponse(2, 3), UnaryEncoding(2, 3), SubsetSelection(2, 4, 2)):
        among = ShuffledAmong(mechanism, [4] + [0] * (mechanism.categories - 1))
        assert dpassay.verify(among, epsilon=2, delta=0).verdict.value == "HOLDS"
        assert dpassay.verify(among, epsilon="1.99", delta=0).verdict.value == "REFUTED"
    table = ShuffledAmong(Channel([["3/4", "1/4"], ["1/4", "3/4"]]), [60, 0])
    assert dpassay.verify(table, epsilon="log(3)", delta=0).verdict.value == "HOLDS"


def test_only_neighbours_are_compared() -> None:
    p, q = ["1/2", "1/2", "0"], ["1/4", "1/4", "1/2"]
    table = ShuffledAmong(Channel([p, q]), [2, 3])
    path = Channel([p, q, ["0", "1/4", "3/4"]], neighbours=[[0, 1]])
    for epsilon in ("0", "0.4"):
        known = profile.delta(table, epsilon)
        assert known == profile.delta(ShuffledAmong(path, [2, 3, 0]), epsilon)


def test_histograms_are_drawn_with_their_law() -> None:
    """A false alarm has a chance below 1e-5: 5.5 σ of each of 20 frequencies, and a fixed seed."""
    rows = [
        [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)],
        [Fraction(0), Fraction(1, 3), Fraction(2, 3)],
    ]
    channel, draws = Channel([[str(entry) for entry in row] for row in rows]), 20_000
    made = ShuffledAmong(channel, [1, 1])
    for own in (0, 1):
        drawn = made.outputs(own, draws, rng=np.random.default_rng(7)).tolist()
        seen = Counter(map(tuple, drawn))
        for histogram, chance in law(rows, [own, 0, 1], Fraction(1)).items():
            share = float(chance)
            spread = math.sqrt(share * (1 - share) / draws)
            assert abs(seen[histogram] / draws - share) <= 5.5 * spread
