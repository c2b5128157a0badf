"""Every counter adds L z to the prefix sums: its noise variables are the columns of L."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from flint import fmpq

from dpassay.accountant.counting import noise
from dpassay.accountant.counting.counters import LinearCounter
from dpassay.accountant.counting.streams import StreamCounter, continued, counter_of
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.mechanisms import BinaryTree, BridgedTree, KaryTree, SquareRootFactorization
from tests.accountant.counting.streams.one_hot import (
    STEPS,
    Feed,
    exact_variables,
    generator,
    mixed,
    one_block,
    one_by_one,
)
from tests.quick import quick, slow

MECHANISMS: list[LinearCounter] = [
    BridgedTree(1, [1], epsilon=1),
    BridgedTree(9, [9], epsilon=1),
    BridgedTree(24, [2, 3, 4], epsilon=1),
    BridgedTree(50, [4, 3, 5], epsilon=2),
    BridgedTree(57, [3, 20], mu="1/2"),
    BridgedTree(60, [4, 2, 2, 2, 2], epsilon=1, contributions=3),
    BridgedTree(34, [3, 4, 3], epsilon=1, pooled=1),
    BridgedTree(23, [2, 3, 2, 2], mu=1, pooled=2),
    *(
        KaryTree(n, k, 1, subtraction)
        for k, n in ((2, 20), (3, 30), (4, 42), (5, 62), (19, 60), (20, 60))
        for subtraction in (False, True)
    ),
    *(kind(n, mu=1) for kind in (BinaryTree, SquareRootFactorization) for n in (1, 6, 37)),
]
RECORDED: list[LinearCounter] = [
    BridgedTree(60, [3, 4, 5], epsilon=1),
    BridgedTree(60, [3, 4, 5], epsilon=1, pooled=1),
    KaryTree(60, 5, epsilon=1),
    *(k(60, mu=1) for k in (BinaryTree, SquareRootFactorization)),
]
INTEGER = [m for m in MECHANISMS if not isinstance(m, SquareRootFactorization)]


def label(value: Any) -> str:
    return getattr(value, "__name__", repr(value))


def fed(mechanisms: list[LinearCounter], *feeds: Feed) -> list[Any]:
    """Feed each stream in one of the ways in turn; the default suite has every other stream."""
    turns = zip(itertools.cycle(feeds), mechanisms, strict=False)
    return quick(list(turns), *range(0, len(mechanisms), 2))


_OFF_TIES = 1.7e-12  # so that no exact weight is half way between two rounded ones


def left_columns(mechanism: LinearCounter) -> Counter[tuple[float, ...]]:
    left = np.array(mechanism.factorisation()[0], dtype=np.float64)
    return Counter(tuple(np.round(column + _OFF_TIES, 9)) for column in left.T if column.any())


def columns(mechanism: LinearCounter, feed: Feed) -> Counter[tuple[float, ...]]:
    """Return the weights of every noise variable in the outputs of a program."""
    found: Counter[tuple[float, ...]] = Counter()
    hot, drawn = 0, 1
    while hot < drawn:
        one_hot, rng = generator(hot)
        counter = StreamCounter(mechanism, rng=rng)
        outputs = feed(counter, np.zeros(mechanism.steps))
        unit = STEPS * float(counter.step)
        if outputs.any():
            found[tuple(np.round(outputs / unit + _OFF_TIES, 9))] += 1
        hot, drawn = hot + 1, one_hot.drawn
    return found


@pytest.mark.parametrize(
    ("feed", "mechanism"), fed(INTEGER, mixed, one_block, one_by_one), ids=label
)
def test_the_noise_variables_of_a_stream_are_the_columns_of_the_left_factor(
    feed: Feed, mechanism: LinearCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The joint law is that of L z, however the stream is fed: L is read off exactly.

    Each variable is a whole number of steps, and nothing is rounded before the sum.
    """
    monkeypatch.setattr(noise, "BUFFERED", 4)  # fewer variables that nothing uses
    exact_variables(monkeypatch)
    assert columns(mechanism, feed) == left_columns(mechanism)


@pytest.mark.parametrize("mechanism", INTEGER, ids=repr)
def test_prefix_sums_and_bounds(mechanism: LinearCounter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise the sums come out; inputs out of range or too many are refused whole."""
    exact_variables(monkeypatch)
    steps = mechanism.steps
    counter = StreamCounter(mechanism, rng=generator(-1)[1])
    with pytest.raises(InvalidInputError, match=r"input 1=1\.5 in \[0, 1\]"):
        counter.extend([1.5])
    with pytest.raises(InvalidInputError, match="at most"):
        counter.extend(np.zeros(steps + 1))
    assert counter.counted == 0
    np.testing.assert_array_equal(counter.extend(np.ones(steps)), np.arange(1, steps + 1))
    with pytest.raises(InvalidInputError, match="at most 0 more"):
        counter.update(0)
    counter.reset()
    assert counter.update(1) == 1


@pytest.mark.parametrize("mechanism", RECORDED, ids=repr)
@pytest.mark.parametrize("counted", [0, 7, 23, 60])
def test_a_resumed_stream_keeps_the_noise_it_has_and_draws_the_rest(
    mechanism: LinearCounter, counted: int
) -> None:
    """What outputs have used is kept; the noise to come does not repeat what is out."""
    counter = StreamCounter(mechanism, rng=np.random.default_rng(5))
    counter.extend(np.zeros(counted))
    record = counter.record()
    assert json.loads(json.dumps(record)) == record
    same = continued(record, rng=np.random.default_rng(6))
    assert same.record() == record
    assert same.stored <= 60
    other = continued(record, rng=np.random.default_rng(7))
    rest = mechanism.steps - counted
    first, second = same.extend(np.zeros(rest)), other.extend(np.zeros(rest))
    if rest > 30 and not isinstance(mechanism, SquareRootFactorization):  # that has drawn it all
        assert (first[-20:] != second[-20:]).all()


@pytest.mark.parametrize("mechanism", RECORDED, ids=repr)
def test_a_damaged_record_is_refused(mechanism: LinearCounter) -> None:
    """Every field is checked against the mechanism and the number of inputs."""
    counter = StreamCounter(mechanism, rng=np.random.default_rng(5))
    counter.extend(np.ones(22))
    whole = counter.record()
    rng = np.random.default_rng(1)
    for key, bad in [
        ("counted", 100), ("counted", "2"), ("sum", -1.0), ("sum", float("nan")), ("noise", []),
        ("mechanism", "Gaussian(standard_deviation=1)"),
    ]:  # fmt: skip
        with pytest.raises(InvalidInputError):
            continued({**whole, key: bad}, rng=rng)
    with pytest.raises(
        InvalidInputError, match=r"lacks 'noise': .*another version .*costs epsilon"
    ):
        continued({key: value for key, value in whole.items() if key != "noise"}, rng=rng)
    for key, value in whole["noise"].items():
        without = {name: entry for name, entry in whole["noise"].items() if name != key}
        wrong = value[:-1] if isinstance(value, list) else 10**9
        for changed in (without, {**without, key: wrong}, {**without, key: "x"}):
            with pytest.raises(InvalidInputError):
                continued({**whole, "noise": changed}, rng=rng)


@pytest.mark.parametrize("arity", [slow(2), slow(3), 18, 19, slow(20)])
def test_memory_of_a_tree(arity: int) -> None:
    mechanism = KaryTree(10**9, arity, 1)
    counter = counter_of(mechanism, rng=np.random.default_rng(0))
    most = 0
    for _ in range(300):
        counter.extend(np.zeros(97))
        most = max(most, counter.stored)
    assert most <= mechanism.tree.height * max(1, mechanism.tree.lowest) <= 100


@pytest.mark.parametrize(
    "mechanism", [KaryTree(100, 3, 1), BridgedTree(20, [4, 5], epsilon=1)], ids=repr
)
def test_a_snapshot_goes_on_once(mechanism: LinearCounter) -> None:
    """A second continuation would use the same noise for two prefixes."""
    counter = counter_of(mechanism, rng=np.random.default_rng(0))
    counter.extend(np.ones(9))
    snapshot = counter.snapshot()
    for attempt in (
        lambda: counter.update(1),
        lambda: counter.extend([1]),
        counter.snapshot,
        counter.reset,
    ):
        with pytest.raises(NotApplicableError, match="handed over to a snapshot"):
            attempt()
    again = continued(snapshot.take(), rng=np.random.default_rng(0))
    assert again.counted == 9
    with pytest.raises(NotApplicableError, match="has been restored already"):
        continued(snapshot.take(), rng=np.random.default_rng(0))


def test_bad_input_takes_nothing() -> None:
    counter = counter_of(KaryTree(5, 3, 1), rng=np.random.default_rng(0))
    counter.update(1)
    for bad in (-0.5, 1.5, math.nan, math.inf):
        with pytest.raises(InvalidInputError, match=r"input 2=.* in \[0, 1\]"):
            counter.update(bad)
        with pytest.raises(InvalidInputError, match=r"input 3=.* in \[0, 1\]"):
            counter.extend([1, bad])
    with pytest.raises(InvalidInputError, match="at most 4 more inputs, not 5: KaryTree"):
        counter.extend(np.ones(5))
    with pytest.raises(InvalidInputError, match="to be an array of numbers"):
        counter.extend(["one", "two"])
    with pytest.raises(InvalidInputError, match="to have one axis"):
        counter.extend(np.ones((2, 2)))
    assert counter.counted == 1
    counter.extend(np.ones(4))
    with pytest.raises(InvalidInputError, match="at most 0 more inputs, not 1"):
        counter.update(1)


@pytest.mark.parametrize("feed", [one_by_one, one_block, mixed])
@pytest.mark.parametrize("large", [2**53 + 1, 2**62 + 1, 2**70 + 1])
def test_large_noise_is_added_exactly(
    feed: Feed, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the sum is rounded to a double. Rounding the noise first would show the input.

    An even number of steps that a double cannot hold is never reached from the other input.
    """
    monkeypatch.setattr(noise.NoiseSource, "draw_integers", lambda _, count: [fmpq(large)] * count)
    found = feed(StreamCounter(KaryTree(3, 9, "1e-16")), np.ones(3))
    assert found.tolist() == [float(t * (large + 1)) for t in (1, 2, 3)]
