"""Every sampling under every neighbouring relation, against all datasets of gradients −1, 0, 1."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

import dpassay
from dpassay.accountant.training.schemes import RELATIONS, SCHEMES, TRUNCATED

Data: TypeAlias = tuple[int, ...]
Law: TypeAlias = dict[tuple[int, ...], float]
BATCH, SIZE, DELTA, SIGMA, LIMIT = 2, 4, 0.02, 2.0, 3
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


@pytest.mark.parametrize(("delta", "group"), [(DELTA, 1), (LARGE, 1), (DELTA, 2)])
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
    assert (lower > 0) == (delta == DELTA)
    assert lower == 0 or most >= delta * (0.999 if group == 1 else 0.998)


@pytest.mark.parametrize("sampling", [name for name in SCHEMES if name != "poisson"])
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


def test_batches_that_may_always_be_cut_are_private_at_zero() -> None:
    run = dpassay.dpsgd(
        4, 2, 4, epochs=1, delta="0.4", sampling=TRUNCATED, truncated_batch_size=1, group=2
    )
    assert run.epsilon == 0


@pytest.mark.parametrize(
    ("sampling", "relation"),
    [
        ("poisson", "replace-one"),
        ("random-allocation", "zero-out"),
        ("shuffle", "add-remove"),
        (TRUNCATED, "add-remove"),
        (TRUNCATED, "replace-one"),
        ("without-replacement", "zero-out"),
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


def test_what_is_refused() -> None:
    for sampling in ("poisson", "without-replacement"):
        with pytest.raises(dpassay.InvalidInputError, match="group=7 ≤ dataset_size=5"):
            dpassay.dpsgd(1, 2, 5, steps=1, delta=DELTA, sampling=sampling, group=7)
    with pytest.raises(dpassay.InvalidInputError, match="Did you mean 'replace-one'"):
        dpassay.dpsgd(1, 1, 9, steps=1, delta=DELTA, neighbours="replace")
    with pytest.raises(dpassay.InvalidInputError, match="batch_size=9 < dataset_size=9"):
        dpassay.dpsgd(
            1, 9, 9, steps=1, delta=DELTA, sampling="without-replacement", neighbours="add-remove"
        )
    with pytest.raises(dpassay.InvalidInputError, match="group=9 < dataset_size=9"):
        dpassay.dpsgd(1, 9, 9, steps=1, delta=DELTA, sampling="with-replacement", group=9)
    with pytest.raises(dpassay.InvalidInputError, match="Expected delta=1 < 1"):
        dpassay.dpsgd(2, 2, 4, epochs=1, delta=1, sampling=TRUNCATED, truncated_batch_size=3)


def test_the_mechanism_of_a_run_is_no_better_than_the_run() -> None:
    """Of a group, and at a δ far below the usual ones, its ε is not below the proved upper end."""
    group = dpassay.dpsgd(
        2, 10, 100, epochs=2, delta=DELTA, sampling="shuffle", neighbours="add-remove", group=3
    )
    tiny = dpassay.dpsgd(
        2, 100, 10000, steps=1, delta="1e-60", sampling="with-replacement", neighbours="add-remove"
    )
    assert group.epsilon.upper.is_finite()
    for run in (group, tiny):
        known = dpassay.epsilon(run.mechanism, run.delta, adjacency=run.adjacency)
        assert known.upper >= run.epsilon.upper
