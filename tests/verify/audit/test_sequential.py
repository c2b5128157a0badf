"""Evidence that is valid at every time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from mpmath import mp

from dpassay.accountant import notation
from dpassay.verifier.audit import Outcome, audit_until_refuted
from dpassay.verifier.audit.kinds.rounds import log_factor
from dpassay.verifier.audit.statistics.guarantee import Point


@pytest.mark.slow
def test_a_twofold_error_of_the_noise_is_found_in_few_pairs() -> None:
    """Median at 5 % over 9 seeds."""
    noise = notation.parse('Laplace(scale="1/2")')
    used = [
        audit_until_refuted(noise, 1, samples=20_000, seed=seed, bits=False).samples
        for seed in range(9)
    ]
    assert np.median(used) <= 300
    sure = audit_until_refuted(noise, 1, samples=20_000, seed=1, significance=1e-6)
    assert sure.refuted
    assert sure.samples <= 1000
    assert "at most 1e-6" in sure.advice


@pytest.mark.parametrize(("seeds", "most"), [(1, 1), pytest.param(24, 12, marks=pytest.mark.slow)])
def test_private_mechanisms_are_seldom_accused_at_any_time(seeds: int, most: int) -> None:
    """Ville: at most 5 % of the audits; P(Bin(2·seeds, 0.05) > most) < 1e-6."""
    accused = sum(
        audit_until_refuted(notation.parse(text), claim, samples=600, seed=seed, bits=False).refuted
        for seed in range(seeds)
        for text, claim in (("Laplace(scale=1)", 1), ("RandomizedResponse(epsilon=1)", 1))
    )
    assert accused <= most


@pytest.mark.parametrize("delta", ["0", "0.01"])
def test_no_bet_wins_on_average_under_the_claim(delta: str) -> None:
    point = Point.read("1", delta)
    d = float(point.delta)
    for stake in np.linspace(0, 1 / (math.e + d), 7):
        for wrong in np.linspace(0.001, (1 - d) / (1 + math.e), 9):
            right = math.e * wrong + d
            mean = sum(
                probability * math.exp(log_factor(counts, point, float(stake)))
                for probability, counts in (
                    (right, (1, 0, 1)),
                    (wrong, (0, 1, 1)),
                    (1 - right - wrong, (0, 0, 1)),
                )
            )
            assert mean <= 1 + 1e-12


def test_factors_of_rounds_are_never_above_the_exact_ones() -> None:
    """Against 40 digits, for counts up to 10⁹ and stakes up to the largest; 1e-9 below at most."""
    rng = np.random.default_rng(6)
    with mp.workdps(40):
        for _ in range(300):
            runs = int(10 ** rng.uniform(1, 9))
            right = int(runs * rng.uniform(0, 0.9))
            wrong = int((runs - right) * rng.uniform(0, 0.5))
            point = Point.read(str(rng.uniform(0, 8)), str(rng.choice([0, 1e-6, 0.03])))
            odds = mp.exp(mp.mpf(point.epsilon.numerator) / point.epsilon.denominator)
            delta = mp.mpf(point.delta.numerator) / point.delta.denominator
            stake = float(rng.uniform(0, 0.999) / (odds + delta))
            terms = (
                right * mp.log1p(stake * (1 - delta)),
                wrong * mp.log1p(-stake * (odds + delta)),
                (runs - right - wrong) * mp.log1p(-stake * delta),
            )
            found = log_factor((right, wrong, runs), point, stake)
            assert found <= sum(terms)
            assert found >= sum(terms) - 1e-9 * (1 + sum(map(abs, terms)))


def test_the_budget_ends_it() -> None:
    result = audit_until_refuted(
        notation.parse("Laplace(scale=1)"), 1, samples=2_000, seed=3, bits=False
    )
    assert result.outcome is Outcome.NOT_REFUTED
    assert result.samples == 2_000
    assert "Not a proof" in str(result)


def test_several_pairs_are_tried() -> None:
    def clamped(dataset: int, size: int, rng: np.random.Generator) -> Any:
        return rng.laplace(0, 1, size) + (4.0 if dataset == 5 else dataset % 2)

    pairs = [(0, 1), (2, 3), (4, 5)]
    result = audit_until_refuted(
        clamped, 1, pairs=pairs, samples=20_000, seed=3, significance=1e-6, bits=False
    )
    assert result.refuted
    assert result.rounds[-1].pair == 2
