"""Random allocation and shuffled batches in training runs: both ends, and what is assumed."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import dpassay
from accountant.numbers.exact import exact
from accountant.pairs.shuffled_batches import ShuffledBatches
from tests.near import narrow

DELTA = "1e-5"


def test_random_allocation_is_that_mechanism_composed_over_epochs() -> None:
    run = dpassay.dpsgd(2, 10, 45, epochs=1, delta=DELTA, sampling="random-allocation")
    assert repr(run.mechanism) == (
        "RandomAllocation(mechanism=Gaussian(standard_deviation=2), steps=4)"
    )
    alone = dpassay.epsilon(run.mechanism, DELTA, adjacency="add-remove")
    assert run.epsilon.overlaps(alone)
    assert "45/10 is not whole" in str(run)
    longer = dpassay.dpsgd(2, 10, 10, epochs="1.5", delta=DELTA, sampling="random-allocation")
    assert "2 epochs, parts counted as whole ones, of 1 step each" in str(longer)
    twice = dpassay.epsilon("Composed(Gaussian(2), 2)", DELTA)
    assert longer.epsilon.overlaps(twice)  # in one step of one, that is, always


@pytest.mark.parametrize("settings", [{"epochs": 3}, {"steps": 7}, {"steps": 9}])
def test_shuffled_batches_are_no_worse_than_a_release_per_epoch(settings: dict[str, int]) -> None:
    run = dpassay.dpsgd(1, 10, 30, delta=DELTA, sampling="shuffle", **settings)
    whole = dpassay.epsilon("Composed(Gaussian(1), 3)", DELTA)
    assert run.epsilon.upper == whole.upper
    done = 2 if settings == {"steps": 7} else 3
    below, _ = ShuffledBatches(exact(1), 10, 30, done).lower(exact(DELTA))
    assert 0 < float(run.epsilon.lower) <= float(run.epsilon.upper)
    assert float(run.epsilon.lower) >= float(below) * (1 - 1e-15)
    assert "Lower end" in str(run)


def test_where_there_is_one_batch_both_ends_meet() -> None:
    run = dpassay.dpsgd(1, 10, 10, epochs=1, delta=DELTA, sampling="shuffle")
    assert narrow(run.epsilon, Fraction(1, 10**3))


@pytest.mark.parametrize(("size", "epochs"), [(40, 1), (47, 1), (40, 3)])
def test_the_event_of_the_lower_end_has_its_probabilities(size: int, epochs: int) -> None:
    """Simulated with real permutations: 10^5 runs, false alarm below 1e-6 (five deviations)."""
    sigma, batch, runs, k, c = 0.8, 10, 100_000, 2 if epochs > 1 else 1, 1.5
    shuffled = ShuffledBatches(exact("0.8"), batch, size, epochs)
    rng = np.random.default_rng(size + epochs)
    full = size // batch
    for own, shift in ((1, 2), (0, 1)):
        each = shuffled._exceeds(Fraction(c), shift)
        expected = float(shuffled._tail(each, k, below=False))
        seen = np.zeros(runs, dtype=int)
        for _ in range(epochs):
            place = rng.integers(0, size, runs) // batch  # of the record in a random order
            sums = np.full((runs, full), -float(batch))
            inside = place < full
            sums[np.flatnonzero(inside), place[inside]] += 1 + own
            noisy = sums + sigma * rng.standard_normal((runs, full))
            seen += noisy.max(axis=1) > c - batch
        found = np.mean(seen >= k)
        assert abs(found - expected) < 5 * math.sqrt(expected * (1 - expected) / runs)


@pytest.mark.parametrize(("epsilon", "epochs"), [("1", 1), ("6", 20)])
def test_noise_for_a_budget_with_random_allocation_uses_it(epsilon: str, epochs: int) -> None:
    run = dpassay.dpsgd_noise(
        epsilon, 10, 60, epochs=epochs, delta=DELTA, sampling="random-allocation"
    )
    assert 1 - 1e-7 <= float(run.epsilon.upper) / float(epsilon) <= 1


def test_the_table_of_schemes_has_every_answer() -> None:
    table = dpassay.training_schemes(10, 20, epochs=1, noise_multiplier=2, delta=DELTA)
    for run in table.runs:
        alone = dpassay.dpsgd(2, 10, 20, epochs=1, delta=DELTA, sampling=run.sampling)
        assert run.epsilon == alone.epsilon
        assert f"{run.sampling}: {run.assumptions[0]}" in str(table)
    with pytest.raises(dpassay.InvalidInputError, match="one of noise_multiplier"):
        dpassay.training_schemes(10, 20, epochs=1, delta=DELTA)


def test_several_epochs_of_very_few_steps_lie_between_one_and_known_steps() -> None:
    few = dpassay.dpsgd(1, 30, 90, epochs=3, delta=DELTA, sampling="random-allocation")
    one = dpassay.dpsgd(1, 30, 90, epochs=1, delta=DELTA, sampling="random-allocation")
    each = dpassay.epsilon("Composed(Gaussian(1), 3)", DELTA)
    assert one.epsilon < few.epsilon < each
    assert narrow(few.epsilon, Fraction(1, 10**9))
