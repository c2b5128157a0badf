"""Smoothed counts: right where the ratio is smooth, refused where it is not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from verify.audit.smooth import smoothed

EDGES = np.linspace(-4, 5, 181)


def counts(law: stats.rv_continuous, shift: float, runs: int, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).uniform(size=runs)
    return np.histogram(law.ppf(values) + shift, np.concatenate([[-50], EDGES, [50]]))[0]


@pytest.mark.parametrize("law", [stats.norm, stats.laplace, stats.logistic])
def test_tails_are_known_better_than_from_their_counts(law: stats.rv_continuous) -> None:
    """Over 20 samples the squared error of ln P/Q above 2.5 is smaller than that of the counts."""
    places = np.concatenate([EDGES[:1] - 0.05, EDGES])
    cut = int(np.searchsorted(places, 2.5))
    truth = np.log(law.sf(2.5) / law.sf(1.5))
    errors = []
    for seed in range(20):
        first, second = (counts(law, shift, 4000, 2 * seed + int(shift)) for shift in (0.0, 1.0))
        fitted = smoothed(places, first, second)
        assert fitted is not None
        assert np.isclose(fitted.first.sum(), first.sum(), rtol=1e-2, atol=0)
        pairs = ((fitted.first, fitted.second), (first + 0.5, second + 0.5))
        errors.append([(np.log(p[cut:].sum() / q[cut:].sum()) - truth) ** 2 for p, q in pairs])
    smooth, plain = np.mean(errors, axis=0)
    assert smooth < plain


def test_a_ratio_that_jumps_is_not_smoothed() -> None:
    rng = np.random.default_rng(1)
    values = np.arange(200.0)
    total = rng.poisson(100, 200)
    for shares in (
        np.where(values % 2 == 0, 0.9, 0.1),
        np.roll(np.where((values // 50) % 2 == 0, 0.9, 0.1), 13),
    ):
        first = rng.binomial(total, shares)
        assert smoothed(values, first, total - first) is None
