"""People with several records, under every sampling: both ends, and where they meet."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest

import dpassay
from accountant.schemes import SCHEMES, TRUNCATED
from tests.near import narrow

DELTA = "1e-5"


def run(
    sampling: str, group: int, *, batch: int = 10, size: int = 100, epochs: int = 3
) -> dpassay.Training:
    return dpassay.dpsgd(
        2,
        batch,
        size,
        epochs=epochs,
        delta=DELTA,
        sampling=sampling,
        group=group,
        truncated_batch_size=40 if sampling == TRUNCATED else None,
    )


@pytest.mark.parametrize("sampling", SCHEMES)
def test_larger_groups_are_less_private_at_both_ends(sampling: str) -> None:
    found = [run(sampling, group).epsilon for group in (1, 2, 3)]
    for fewer, more in pairwise(found):
        assert fewer.lower <= more.lower <= more.upper
        assert fewer.upper < more.upper


@pytest.mark.parametrize("sampling", ["random-allocation", "shuffle"])
def test_one_batch_an_epoch_is_a_gaussian_release_of_all_records(sampling: str) -> None:
    found = run(sampling, 3, size=10, epochs=4).epsilon
    exact = dpassay.epsilon("Composed(Gaussian(2, 3), 4)", DELTA)
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper <= exact.upper * (1 + Decimal("1e-8"))
    assert narrow(found, 1e-8)


def test_batches_that_are_never_cut_are_those_of_poisson() -> None:
    uncut = dpassay.dpsgd(
        2, 10, 100, epochs=3, delta=DELTA, sampling=TRUNCATED, group=3, truncated_batch_size=103
    )
    assert uncut.epsilon.overlaps(run("poisson", 3).epsilon)


def test_two_records_of_one_direction_are_between_the_ends() -> None:
    """δ at both ends for parallel gradients, from 4·10⁵ runs: five deviations, 1e-6."""
    steps, mu, runs = 10, 0.5, 400_000
    found = run("random-allocation", 2, epochs=1)
    rng = np.random.default_rng(23)
    z = rng.standard_normal((runs, steps))
    for _ in range(2):
        z[np.arange(runs), rng.integers(0, steps, runs)] += mu
    tilted = np.exp(mu * z - mu**2 / 2)
    apart = tilted.sum(axis=1) ** 2 - (tilted**2).sum(axis=1)  # ordered pairs of steps
    ratio = (apart + np.exp(2 * mu * z - 2 * mu**2).sum(axis=1)) / steps**2
    event = np.maximum(1 - np.exp(float(found.epsilon.upper)) / ratio, 0)
    assert event.mean() <= float(DELTA) + 5 * event.std() / np.sqrt(runs)
    assert found.epsilon.lower < found.epsilon.upper


@pytest.mark.parametrize(
    "sampling",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "without-replacement" else ())
        for name in SCHEMES
    ],
)
def test_the_noise_for_a_group_is_enough(sampling: str) -> None:
    found = dpassay.dpsgd_noise(
        3,
        10,
        100,
        epochs=1,
        delta=DELTA,
        sampling=sampling,
        group=2,
        truncated_batch_size=60 if sampling == TRUNCATED else None,
    )
    assert Decimal("2.9") < found.epsilon.upper <= 3
