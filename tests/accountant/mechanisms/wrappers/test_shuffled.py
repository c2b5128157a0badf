"""Shuffled randomised response, against plain enumeration of every report of every user."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from mpmath import exp, mp, mpf

from dpassay.accountant.mechanisms import RandomizedResponse, Shuffled
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.questions import profile
from tests.accountant.mechanisms.wrappers.histograms import law, worst_of_all
from tests.near import narrow


def response(epsilon: str, k: int) -> list[list[mpf]]:
    odds = exp(mpf(epsilon))
    return [[(odds if i == j else mpf(1)) / (odds + k - 1) for j in range(k)] for i in range(k)]


@pytest.mark.parametrize(("k", "users"), [(2, 1), (2, 4), (2, 7), (3, 1), (3, 3), (4, 3), (5, 2)])
@pytest.mark.parametrize(("epsilon0", "epsilon"), [("2", "0.3"), ("0.5", "0.1"), ("3", "2.9")])
def test_all_datasets_are_covered(k: int, users: int, epsilon0: str, epsilon: str) -> None:
    found = profile.delta(Shuffled(RandomizedResponse(epsilon0, k), users), epsilon)
    with mp.workdps(30):
        true = worst_of_all(response(epsilon0, k), users, exp(mpf(epsilon)), mpf(1))
        assert mpf(str(found.lower)) * (1 - mpf(10) ** -25) <= true
        assert true <= mpf(str(found.upper)) * (1 + mpf(10) ** -25)
    assert narrow(found, 1e-11)


def test_the_worst_of_the_others_is_inside() -> None:
    """δ(0.06) of 40 users at ε = 3: 21 of the others hold the first category, by binomials."""
    p, n = math.exp(3) / (1 + math.exp(3)), 40
    r = 1 - p

    def others(ones: int) -> np.ndarray:
        found = np.array([1.0])
        for chance in [p] * ones + [r] * (n - 1 - ones):
            found = np.convolve(found, [1 - chance, chance])
        return found

    def delta(ones: int) -> float:
        g = others(ones)
        with_one, without = np.append(0, g), np.append(g, 0)
        gap = p * with_one + r * without - math.exp(0.06) * (r * with_one + p * without)
        return float(np.maximum(gap, 0).sum())

    each = [delta(ones) for ones in range(n)]
    assert max(each) == each[21]
    assert max(each) > 1.07 * max(each[0], each[-1])
    found = profile.delta(Shuffled(RandomizedResponse(3), n), "0.06")
    assert abs(float(found) / max(each) - 1) < 1e-12


def test_the_exact_loss_is_attained() -> None:
    made = Shuffled(RandomizedResponse("1/2", 3), 3)
    (pair, *_) = made.worst_case(None).remove
    assert pair.max_loss().contains(exact("1/2").ball())


def test_histograms_are_drawn_with_their_law() -> None:
    """A false alarm has a chance below 1e-6: 5 σ of each of 24 frequencies, and a fixed seed."""
    made, draws = Shuffled(RandomizedResponse(1, 3), 3), 20_000
    for records in ((0, 0, 0), (0, 1, 2)):
        counts = tuple(records.count(c) for c in range(3))
        seen = Counter(
            map(tuple, made.outputs(counts, draws, rng=np.random.default_rng(7)).tolist())
        )
        for histogram, chance in law(response("1", 3), records, mpf(1)).items():
            share = float(chance)
            spread = math.sqrt(share * (1 - share) / draws)
            assert abs(seen[histogram] / draws - share) < 5.5 * spread
