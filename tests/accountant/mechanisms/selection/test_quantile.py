"""A private quantile: its profile against all small datasets, its law, its error."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from dpassay.accountant.mechanisms import Composed, ExponentialMechanism, PrivateQuantile
from dpassay.accountant.questions import profile
from tests.near import mpf

FALSE_ALARM = 1e-6
BASE = Fraction(3, 2)
"""e^{ε/(2Δ·denominator of p)}: laws and e^ε are fractions."""
RELATIONS = ("add-remove", "replace-one")
Records = tuple[int, ...]


def law(records: Records, p: Fraction, lengths: list[Fraction]) -> list[Fraction]:
    """Return the probabilities of cells of some lengths, where record i is at their edge i."""
    weights = []
    for cell, length in enumerate(lengths):
        rank = sum(record <= cell for record in records)
        power = abs(rank * p.denominator - p.numerator * len(records))
        weights.append(length / BASE**power)
    return [weight / sum(weights) for weight in weights]


def odds(p: Fraction, relation: str) -> Fraction:
    """Return e^ε: the power of the base is 2Δ·denominator."""
    most = max(p.numerator, p.denominator - p.numerator)
    return BASE ** (2 * (most if relation == "add-remove" else p.denominator))


def neighbours(edges: int, most: int, relation: str) -> Iterator[tuple[Records, Records]]:
    """Yield all pairs of datasets of at most so many records, in both orders."""
    places = range(edges)
    for n in range(most):
        for rest in itertools.combinations_with_replacement(places, n):
            if relation == "add-remove":
                for one in places:
                    yield rest, (*rest, one)
                    yield (*rest, one), rest
            else:
                for one, other in itertools.permutations(places, 2):
                    yield (*rest, one), (*rest, other)


def largest(
    p: Fraction, relation: str, lengths: list[Fraction], growth: Fraction, most: int
) -> Fraction:
    """Return max H(ln growth) over all neighbours: the best event has the positive terms."""
    found = Fraction(0)
    for one, other in neighbours(len(lengths) + 1, most, relation):
        pairs = zip(law(one, p, lengths), law(other, p, lengths), strict=True)
        found = max(found, sum((max(a - growth * b, Fraction(0)) for a, b in pairs), Fraction(0)))
    return found


def bound(whole: Fraction, root: Fraction) -> Fraction:
    """Return the profile at e^ε/root²: (1 − 1/root)²/(1 − e^{−ε})."""
    return (1 - 1 / root) ** 2 / (1 - 1 / whole)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 3), Fraction(3, 4)])
@pytest.mark.parametrize("root", [Fraction(5, 4), Fraction(2)])
def test_the_worst_of_all_small_datasets_attains_the_profile(
    p: Fraction, relation: str, root: Fraction
) -> None:
    """The lengths of two cells give the event the probability (root − 1)/(e^ε − 1) under Q."""
    whole, most = odds(p, relation), int(1 / min(p, 1 - p))
    share = (root - 1) / (whole - 1)
    found = Fraction(0)
    for _, other in neighbours(3, most, relation):
        if len(other) in (most - 1, most):
            even = law(other, p, [Fraction(1)] * 2)
            for first in (share, 1 - share):
                lengths = [first / even[0], (1 - first) / even[1]]
                found = max(found, largest(p, relation, lengths, whole / root**2, most))
        if found == bound(whole, root):
            break
    assert found == bound(whole, root)


@given(
    st.lists(st.fractions(Fraction(1, 100), 100, max_denominator=100), min_size=3, max_size=3),
    st.sampled_from([Fraction(1, 2), Fraction(1, 3), Fraction(3, 4), Fraction(1, 10)]),
    st.sampled_from(RELATIONS),
    st.sampled_from([Fraction(1), Fraction(9, 8), Fraction(2)]),
)
def test_no_small_datasets_are_worse(
    lengths: list[Fraction], p: Fraction, relation: str, root: Fraction
) -> None:
    whole = odds(p, relation)
    assert largest(p, relation, lengths, whole / root**2, 3) <= bound(whole, root)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_profile_is_that_of_bounded_range(relation: str) -> None:
    about = PrivateQuantile(2, -1, "1/3", relation, "9/10")
    found = mpf(profile.delta(about, "1/2", adjacency=relation))
    expected = (1 - mpmath.exp(mpmath.mpf(-3) / 4)) ** 2 / -mpmath.expm1(-2)
    assert abs(found - expected) <= expected * mpmath.mpf("1e-11")
    ten, choices = Composed(about, 10), Composed(ExponentialMechanism(2), 10)
    assert profile.delta(ten, 9, adjacency=relation) == profile.delta(choices, 9)


DATA = [3, 3, 7, 12, -5, 1]
"""In [0, 10]: ranks 1 from 0, 2 from 1, 4 from 3, 5 from 7."""


@pytest.mark.parametrize(("relation", "rate"), [("add-remove", 0.75), ("replace-one", 0.5)])
def test_outputs_have_their_law(relation: str, rate: float) -> None:
    about = PrivateQuantile(1, 0, 10, relation, "2/3")
    edges, misses = np.array([0, 1, 3, 7, 10]), np.abs(np.array([1, 2, 4, 5]) - 4)
    expected = np.diff(edges) * np.exp(-rate * misses)
    expected /= expected.sum()
    assert [float(p.mid()) for p in about.probabilities(DATA)] == pytest.approx(
        list(expected),
        rel=2.0**-27,  # a cell of 2^−32 more or less, of a tenth or more
        abs=0,
    )
    drawn = about.release(DATA, 20_000, rng=np.random.default_rng(5))
    counts, _ = np.histogram(drawn, edges)
    assert chisquare(counts, expected * len(drawn)).pvalue > FALSE_ALARM
    inside = drawn[(drawn > 3) & (drawn < 7)]
    assert kstest((inside - 3) / 4, "uniform").pvalue > FALSE_ALARM
    error = about.mean_rank_error(DATA)
    assert float(error) == pytest.approx(float(expected @ misses), rel=2.0**-27, abs=0)


def test_outputs_lie_on_one_lattice_whatever_the_records() -> None:
    about = PrivateQuantile(1, 0, 1, "add-remove")
    for data in ([], [0.1, 0.3 + 2.0**-40], [2.0**-60] * 3, [0, 1], [5, -5]):
        drawn = about.release(data, 100, rng=np.random.default_rng(1)) * 2.0**32 - 0.5
        assert (drawn == np.floor(drawn)).all()
        assert ((drawn >= 0) & (drawn < 2.0**32)).all()


def test_a_sharp_release_is_next_to_the_median() -> None:
    data = np.random.default_rng(2).uniform(0, 1, 999)
    drawn = PrivateQuantile(1000, 0, 1, "replace-one").release(data, 50)
    ranks = (np.sort(data) <= drawn[:, np.newaxis]).sum(axis=1)
    assert set(ranks.tolist()) <= {499, 500}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("p", ["1/2", "1/10", "2/3", "98/100", "0.0123"])
def test_listed_neighbours_attain_the_profile(relation: str, p: str) -> None:
    """Where the level that rises has probability (e^{(ε − ε')/2} − 1)/(e^ε − 1) under Q."""
    about, whole = PrivateQuantile("3/2", -3, 8, relation, p), 1.5
    at = []
    for pair in about.worst_answers():
        assert abs(len(pair[0]) - len(pair[1])) == (relation == "add-remove")
        one, other = sorted(float(about.probabilities(data)[0].mid()) for data in pair)
        at.append(whole - 2 * math.log1p(one * math.expm1(whole)))
        delta = float(profile.delta(about, at[-1], adjacency=relation))
        # a cell of 2^−32 more or less, of a share of e^{−5} or more: 2^−24 of it, squared
        assert other - math.exp(at[-1]) * one == pytest.approx(delta, rel=1e-13, abs=0)
    assert at[0] == pytest.approx(0, abs=2.0**-24)
    assert at[1] > whole / 2
