"""The best few in one shot, with Laplace or exponential noise, against sums over the second."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, expon, laplace

from dpassay.accountant.mechanisms import PermuteAndFlip, ReportNoisyMax, TopSelections
from dpassay.accountant.questions import profile

FALSE_ALARM = 1e-6
NOISES = {"Laplace": laplace, "Exponential": expon}
STEP = 1 / 256


def noisy_law(noise: str, values: list[float], counts: list[float]) -> np.ndarray:
    """Return P(the first has score a and the second b), for so many candidates of each score.

    The density of the second, at y, times the chance of one above it and of all others below.
    """
    u, n = np.array(values)[:, np.newaxis], np.array(counts)[:, np.newaxis]
    y = np.arange(min(values) - 30, max(values) + 40, STEP) + STEP / 3
    tail, density = NOISES[noise].sf(y - u), NOISES[noise].pdf(y - u)
    log_below = np.log1p(-np.minimum(tail, 1 - 2.0**-52))
    found = np.zeros((len(values), len(values)))
    for first, second in itertools.product(range(len(values)), repeat=2):
        left = n.copy()
        left[second] -= 1
        chance = n[second] * density[second] * left[first] * tail[first]
        left[first] -= 1
        if left[first] >= 0:
            others = np.exp((left * log_below).sum(axis=0))
            found[first, second] = float((chance * others).sum() * STEP)
    return np.asarray(found / found.sum())


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.floats(-4, 4), st.floats(-1, 1)), min_size=3, max_size=4),
    st.sampled_from(["-1/2", "0", "1/4", "1"]),
    st.booleans(),
    st.sampled_from(sorted(NOISES)),
)
def test_no_neighbouring_scores_are_worse_with_other_noise(
    candidates: list[tuple[float, float]], epsilon: str, monotone: bool, noise: str
) -> None:
    factor = 1.0 if monotone else 0.5
    before = [factor * score for score, _ in candidates]
    after = [factor * (score + (abs(move) if monotone else move)) for score, move in candidates]
    ones = [1.0] * len(candidates)
    p, q = (noisy_law(noise, side, ones) for side in (after, before))
    upper = float(profile.delta(TopSelections(1, 2, monotone=monotone, noise=noise), epsilon).upper)
    at = math.exp(float(Fraction(epsilon)))
    for one, other in ((p, q), (q, p)):
        # a kink and a jump of a density cost less than a step
        assert float(np.maximum(one - at * other, 0).sum()) <= upper + STEP


@pytest.mark.parametrize("noise", sorted(NOISES))
def test_many_candidates_attain_the_lower_end_with_other_noise(noise: str) -> None:
    about, n, share = TopSelections(1, 2, noise=noise), 1e9, 0.3
    p, q = (noisy_law(noise, [move, 0.0], [share * n, n]) for move in (1.0, 0.0))
    attained = float(np.maximum(p - math.exp(0.5) * q, 0).sum())
    independent = TopSelections(1, 2)
    assert attained > 0.7 * float(profile.delta(independent, "1/2").lower)
    assert attained < float(profile.delta(about, "1/2").upper)


@pytest.mark.parametrize("noise", sorted(NOISES))
def test_other_noise_is_released_with_its_probabilities(noise: str) -> None:
    about, given_scores, size = TopSelections(2, 2, noise=noise), [0.0, 1.0, -1.0, 0.5], 3000
    drawn = about.release(given_scores, size, rng=np.random.default_rng(3))
    expected = noisy_law(noise, given_scores, [1.0] * 4)
    orders = list(itertools.permutations(range(4), 2))
    counts = [int((drawn == order).all(axis=1).sum()) for order in orders]
    chances = np.array([expected[order] for order in orders])
    assert chisquare(counts, chances / chances.sum() * size).pvalue > FALSE_ALARM
    # equal scores so large that doubles tell none of the noise
    first = about.release(["1e30"] * 3, 300, rng=np.random.default_rng(4))[:, 0]
    assert chisquare(np.bincount(first, minlength=3)).pvalue > FALSE_ALARM


def test_one_selection_with_other_noise_is_that_of_a_noisy_maximum() -> None:
    same = {"Exponential": PermuteAndFlip(1), "Laplace": ReportNoisyMax("Laplace", 2, 10**6)}
    for noise, known in same.items():
        for ask in (profile.delta, profile.epsilon):
            one, other = (ask(each, "1/100") for each in (TopSelections(1, 1, noise=noise), known))
            assert one.overlaps(other)
