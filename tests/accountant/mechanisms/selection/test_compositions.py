"""Several selections: sequences that an adversary chooses lie within both ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms import (
    AboveThreshold,
    Composed,
    ExponentialMechanism,
    GaussianThreshold,
    Laplace,
    LaplaceThreshold,
    PartitionSelection,
    PermuteAndFlip,
    PoissonSubsampled,
    ReportNoisyMax,
)
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.questions import guarantees, profile

SPARE = 1e-9
"""Relative: for sums in floats."""


def test_large_delta_has_the_epsilon_of_every_mechanism() -> None:
    found = profile.signed_epsilon(Composed(ExponentialMechanism("0.3"), 3), "0.999")
    assert found.lower <= math.log(0.001) + SPARE
    assert float(found.upper) == pytest.approx(math.log(0.001), rel=1e-8, abs=0)


def test_divergences_of_adaptive_selections_are_below_the_sum_of_each() -> None:
    one, ten = ExponentialMechanism(1), Composed(ExponentialMechanism(1), 10)
    single, several = (guarantees.renyi(about, 2) for about in (one, ten))
    assert float(several.upper) <= 10 * float(single.upper) * (1 + SPARE)
    assert float(several.lower) > 9.9 * float(single.lower)
    assert guarantees.rho(ten).upper < 1.26


SELECTIONS = [
    PermuteAndFlip(1),
    ReportNoisyMax("Laplace", 2, 5),
    ReportNoisyMax("Gaussian", 4, 5),
    AboveThreshold(2, 4),
    AboveThreshold(2, 2),
]


@pytest.mark.parametrize("one", SELECTIONS, ids=repr)
@pytest.mark.parametrize("count", [10, 100])
def test_equal_pairs_are_below_what_dominates_all(one: Mechanism, count: int) -> None:
    found = profile.delta(Composed(one, count), 1)
    i, best = np.arange(count + 1), 0.0
    for pair in one.attained():
        assert isinstance(pair, FinitePair)
        (p, _), (q, _) = ([float(x.mid()) for x in side] for side in pair.source.masses(pair.index))
        sides = [binom.pmf(i, count, x) for x in (p, q)]
        for a, b in (sides, sides[::-1]):
            best = max(best, float(np.maximum(a - math.e * b, 0).sum()))
    assert float(found.lower) == pytest.approx(best, rel=1e-6, abs=0)
    if count == 10:
        assert found.upper < 1
    assert one.dominated_by is not None
    dominated = profile.delta(Composed(one.dominated_by, count), 1)
    assert float(found.upper) == pytest.approx(float(dominated.upper), rel=1e-6, abs=0)


def test_keys_of_several_releases() -> None:
    for one, new in (
        (LaplaceThreshold(1, 12), math.exp(-11) / 2),
        (GaussianThreshold(2, 12, partitions=2), None),
        (PartitionSelection(1, "1e-5"), 1e-5),
    ):
        several = Composed(one, 3)
        found = profile.delta(several, 1, adjacency="add-remove")
        assert 0 < found.lower < found.upper < 1
        single = profile.delta(one, 1, adjacency="add-remove")
        assert found.lower > single.upper
        if new is not None:
            least = -math.expm1(3 * math.log1p(-new))
            assert float(profile.delta(several, 50, adjacency="add-remove").lower) >= least * 0.999


def test_mixed_compositions_have_two_ends_and_samples_none() -> None:
    mixed = Composed([Composed(ExponentialMechanism(1), 2), Laplace(2)])
    found = profile.delta(mixed, "1/2")
    parts = Composed([Composed(Laplace(1), 2), Laplace(2)])
    assert found.upper < profile.delta(parts, "1/2").lower
    assert profile.delta(Laplace(2), "1/2").upper < found.lower < found.upper
    for inner in (ExponentialMechanism(1), mixed):
        with pytest.raises(NotApplicableError, match=r"at most that of .*Logistic\(scale=1\)"):
            PoissonSubsampled(inner, "1/10")
