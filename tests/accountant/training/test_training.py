"""Training runs: schemes, cut batches, groups; and every relation against all datasets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

import dpassay
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.pairs.shuffling import ShuffledBatches
from dpassay.accountant.training.schemes import RELATIONS, SCHEMES, TRUNCATED
from tests.near import narrow
from tests.quick import quick, slow

DELTA = "1e-5"


@pytest.mark.parametrize("settings", [{"epochs": 3}, {"steps": 7}, {"steps": 9}])
def test_shuffled_batches_are_no_worse_than_a_release_per_epoch(settings: dict[str, Any]) -> None:
    run = dpassay.dpsgd(1, 10, 30, delta=DELTA, sampling="shuffle", **settings)
    whole = dpassay.epsilon("Composed(Gaussian(1), 3)", DELTA)
    assert run.epsilon.upper == whole.upper
    done = 2 if settings == {"steps": 7} else 3
    below, _ = ShuffledBatches(exact(1), 10, 30, done).lower(exact(DELTA))
    assert 0 < float(run.epsilon.lower) <= float(run.epsilon.upper)
    assert float(run.epsilon.lower) >= float(below) * (1 - 1e-15)
    assert "Lower end" in str(run)


@pytest.mark.parametrize(
    ("sampling", "asked", "said"),
    [
        ("shuffle", None, "zero-out"),
        ("shuffle", "add-remove", "add-remove"),
        ("poisson", None, "add-remove"),
        ("poisson", "zero-out", "zero-out"),
        ("without-replacement", None, "replace-one"),
    ],
)
def test_the_answer_names_the_neighbours_that_it_is_for(
    sampling: str, asked: str | None, said: str
) -> None:
    run = dpassay.dpsgd(1, 10, 30, epochs=1, delta=DELTA, sampling=sampling, neighbours=asked)
    assert f"neighbours: {said};" in str(run)
    assert f", {said}, " in repr(run)
    assert (run.neighbours, run.to_dict()["adjacency"]) == (said, said)


@pytest.mark.parametrize("sigma", ["0.001", "0.01"])
def test_hardly_any_noise_has_a_finite_lower_end(sigma: str) -> None:
    """No ε is below ln(1 − δ), however small the probability of an event."""
    found, _ = ShuffledBatches(exact(sigma), 10, 30, 1).lower(exact("1e-5"))
    assert found >= math.log1p(-1e-5) - 1e-12


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


WHERE: dict[str, Any] = {"sampling": "truncated-poisson", "delta": "1e-5"}


@pytest.mark.parametrize("delta", [Fraction(1, 100_000), "1e-5", "1/100000", "0.00001"])
def test_delta_is_printed_in_one_way(delta: Any) -> None:
    run = dpassay.dpsgd(1, 10, 1000, steps=10, delta=delta)
    assert "at delta = 1e-5," in str(run)
    assert "at delta 1e-5," in repr(run)


@pytest.mark.slow
@pytest.mark.parametrize("nines", [slow(16), 30, slow(80)])
def test_a_delta_next_to_one_has_an_answer(nines: int) -> None:
    delta, sampled = f"0.{'9' * nines}", "SampledWithoutReplacement(Gaussian(2, 2), 10, 100)"
    found = [
        dpassay.dpsgd(2, 10, 100, epochs=1, delta=delta, sampling="shuffle").epsilon,
        dpassay.epsilon(f"Composed({sampled}, 10)", delta),
    ]
    assert all(each.lower == each.upper == 0 for each in found)


@pytest.mark.slow
def test_the_upper_end_is_near_that_of_a_peer() -> None:
    """`PLDAccountant().compose(TruncatedSubsampledGaussianDpEvent(60000, 256/60000, 256, 1.1),
    7032).get_epsilon(1e-5)` of dp-accounting 0.6.0, an upper bound of another kind."""
    cut = dpassay.dpsgd("1.1", 256, 60000, epochs=30, truncated_batch_size=256, **WHERE)
    peer = Decimal("8.92767807")
    assert cut.epsilon.lower < peer
    assert cut.epsilon.upper < peer * Decimal("1.002")


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


@pytest.mark.parametrize(
    "sampling",
    [pytest.param(s, marks=[pytest.mark.slow] * (s == "without-replacement")) for s in SCHEMES],
)
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
    "sampling", quick([name for name in SCHEMES if name != "without-replacement"], 0, 2)
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


# Every sampling under every neighbouring relation, against all datasets of gradients −1, 0, 1.


Data: TypeAlias = tuple[int, ...]
Law: TypeAlias = dict[tuple[int, ...], float]
BATCH, SIZE, LEVEL, SIGMA, LIMIT = 2, 4, 0.02, 2.0, 3
"""Four records, or three; batches of two, Poisson ones cut to three."""
LARGE = 0.7
"""More than a test may ever gain, so that ε is negative."""


def sums(sampling: str, data: Data) -> Law:
    """Return the law of the sums of a batch, or of both batches of an epoch."""
    law: Law = {}

    def add(outcome: tuple[int, ...], mass: float) -> None:
        law[outcome] = law.get(outcome, 0.0) + mass

    n, q = len(data), BATCH / SIZE
    if sampling == "with-replacement":
        for drawn in itertools.product(data, repeat=BATCH):
            add((sum(drawn),), n**-BATCH)
    elif sampling == "without-replacement":
        subsets = list(itertools.combinations(data, BATCH))
        for drawn in subsets:
            add((sum(drawn),), 1 / len(subsets))
    elif sampling in {"poisson", TRUNCATED}:
        for taken in itertools.product([0, 1], repeat=n):
            chance = np.prod([q if t else 1 - q for t in taken])
            there = [g for g, t in zip(data, taken, strict=True) if t]
            most = LIMIT if sampling == TRUNCATED else n
            kept = list(itertools.combinations(there, min(len(there), most)))
            for some in kept:
                add((sum(some),), float(chance) / len(kept))
    elif sampling == "random-allocation":
        for steps in itertools.product([0, 1], repeat=n):
            pairs = list(zip(data, steps, strict=True))
            add(tuple(sum(g for g, s in pairs if s == t) for t in (0, 1)), 2.0**-n)
    else:
        orders = list(itertools.permutations(data))
        for order in orders:
            add((sum(order[:BATCH]), sum(order[BATCH:])), 1 / len(orders))
    return law


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    """Return H(ε) of sums with noise, by midpoints: off by far less than a thousandth of δ."""
    grid = np.arange(-16.0, 16.0, 0.1)

    def density(law: Law) -> NDArray[np.float64]:
        found = np.zeros((len(grid),) * len(next(iter(law))))
        for means, mass in law.items():
            each = [ndtr((grid + 0.1 - m) / SIGMA) - ndtr((grid - m) / SIGMA) for m in means]
            found += mass * (each[0] if len(each) == 1 else np.outer(*each))
        return found

    return float(np.maximum(density(p) - np.exp(epsilon) * density(q), 0).sum())


def neighbours(relation: str, group: int = 1) -> Iterator[tuple[Data, Data]]:
    """Yield pairs that differ in the first records, in both orders."""
    for others in itertools.combinations_with_replacement([-1, 0, 1], SIZE - group):
        some = list(itertools.combinations_with_replacement([-1, 1], group))
        if relation == "add-remove":
            found = [((*own, *others), others) for own in some]
        else:
            puts = [[0]] if relation == "zero-out" else [[0], [-1, 0, 1]]
            found = [
                ((*own, *others), (*put, *others))
                for own in some
                for values in puts
                for put in itertools.product(values, repeat=group)
            ]
        for pair in found:
            yield pair
            yield pair[::-1]


@pytest.mark.parametrize(("delta", "group"), [(LEVEL, 1), (LARGE, 1), slow(LEVEL, 2)])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("sampling", SCHEMES)
def test_no_dataset_is_above_and_one_is_at_the_lower_end(
    sampling: str, relation: str, delta: float, group: int
) -> None:
    """Of a person with two records one of gradients in two directions is nearly so."""
    epoch = sampling in {"random-allocation", "shuffle"}
    run = dpassay.dpsgd(
        SIGMA,
        BATCH,
        SIZE,
        steps=2 if epoch else 1,
        delta=delta,
        sampling=sampling,
        neighbours=relation,
        group=group,
        truncated_batch_size=LIMIT if sampling == TRUNCATED else None,
    )
    lower, upper = float(run.epsilon.lower), float(run.epsilon.upper)
    most = 0.0
    for data, other in neighbours(relation, group):
        p, q = sums(sampling, data), sums(sampling, other)
        assert hockey_stick(p, q, upper) <= delta * 1.001
        most = max(most, hockey_stick(p, q, lower))
    assert lower <= upper
    assert (lower > 0) == (delta == LEVEL)
    assert lower == 0 or most >= delta * (0.999 if group == 1 else 0.998)


@pytest.mark.parametrize("sampling", quick([name for name in SCHEMES if name != "poisson"], 1))
def test_replaced_records_are_no_more_private_than_zeroed_ones(sampling: str) -> None:
    def asked(relation: str, group: int = 1) -> dpassay.Interval:
        limit = 30 if sampling == TRUNCATED else None
        return dpassay.dpsgd(
            3, 10, 100, epochs=2, delta="1e-6", sampling=sampling, neighbours=relation,
            group=group, truncated_batch_size=limit,
        ).epsilon  # fmt: skip

    zeroed, replaced = asked("zero-out"), asked("replace-one")
    assert zeroed.lower <= replaced.lower
    assert zeroed.upper <= replaced.upper
    assert asked("zero-out", 2).upper > zeroed.upper


@pytest.mark.parametrize(
    ("sampling", "relation"),
    [
        slow("poisson", "replace-one"),
        slow("random-allocation", "zero-out"),
        ("shuffle", "add-remove"),
        slow(TRUNCATED, "add-remove"),
        slow(TRUNCATED, "replace-one"),
        slow("without-replacement", "zero-out"),
    ],
)
def test_a_person_has_many_records(sampling: str, relation: str) -> None:
    """The rule for groups asks for levels below the smallest float, at which no ε is finite."""
    run = dpassay.dpsgd(
        "1.5", 7, 100, epochs=1, delta="1e-6", sampling=sampling, neighbours=relation, group=60,
        truncated_batch_size=7 if sampling == TRUNCATED else None,
    )  # fmt: skip
    assert run.epsilon.lower <= run.epsilon.upper
    assert run.epsilon.upper.is_finite()


def test_the_mechanism_of_a_run_is_no_better_than_the_run() -> None:
    """Of a group, and at a δ far below the usual ones, its ε is not below the proved upper end."""
    group = dpassay.dpsgd(
        2, 10, 100, epochs=2, delta=LEVEL, sampling="shuffle", neighbours="add-remove", group=3
    )
    tiny = dpassay.dpsgd(
        2, 100, 10000, steps=1, delta="1e-60", sampling="with-replacement", neighbours="add-remove"
    )
    assert group.epsilon.upper.is_finite()
    for run in (group, tiny):
        known = dpassay.epsilon(run.mechanism, run.delta, adjacency=run.adjacency)
        assert known.upper >= run.epsilon.upper
