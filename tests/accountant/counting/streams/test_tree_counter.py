"""The counter draws and uses its noise exactly as the tree of intervals says."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from accountant.counting.streams import TreeCounter, counter_of, tree_counter
from accountant.errors import InvalidInputError, NotApplicableError
from accountant.mechanisms import BridgedTree, DiscreteKaryTree, KaryTree
from tests.accountant.counting.streams.one_hot import (
    STEPS,
    Feed,
    exact_variables,
    generator,
    mixed,
    one_block,
    one_by_one,
)
from tests.quick import quick

TREES = [
    (k, n, subtraction)
    for subtraction in (False, True)
    for k, n in ((2, 31), (2, 20), (3, 40), (3, 30), (4, 42), (5, 62), (5, 40), (19, 60), (20, 60))
]


@pytest.mark.parametrize("feed", quick([one_by_one, one_block, mixed], 2))
@pytest.mark.parametrize(
    ("tree", "floats"),
    quick([(tree, floats) for tree in TREES for floats in (False, True)], *range(0, 36, 3)),
)
def test_each_noise_variable_is_in_the_outputs_of_its_vertex(
    feed: Feed, tree: tuple[int, int, bool], floats: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Algorithm 2, as a stream, has jointly the law of Algorithm 3, the tree of intervals.

    Both are sums of independent variables of one symmetric law; the multisets of index sets are
    equal, for every way to feed the stream.
    """
    monkeypatch.setattr(tree_counter, "_BUFFERED", 4)  # fewer variables that nothing uses
    exact_variables(monkeypatch)
    arity, steps, subtraction = tree
    mechanism = KaryTree(steps, arity, 1, subtraction)
    users: Counter[tuple[int, ...]] = Counter()
    hot, drawn = 0, 1
    while hot < drawn:
        one_hot, rng = generator(hot)
        counter = TreeCounter(mechanism, rng=rng, insecure_floats=floats)
        unit = float(mechanism.scale) if counter.step is None else STEPS * float(counter.step)
        noise = feed(counter, np.zeros(steps)) / unit
        assert set(noise) <= {0, 1}
        if noise.any():
            users[tuple(int(step) for step in np.flatnonzero(noise) + 1)] += 1
        hot, drawn = hot + 1, one_hot.drawn
    assert users == Counter(v.outputs for v in mechanism.tree.noise_variables())


@pytest.mark.parametrize("floats", [False, True])
def test_inputs_are_summed(floats: bool) -> None:
    rng = np.random.default_rng(1)
    inputs = rng.random(3000)
    counter = TreeCounter(KaryTree(3000, 7, 10**9), rng=rng, insecure_floats=floats)
    estimates = np.concatenate(
        [counter.extend(inputs[:2000]), [counter.update(x) for x in inputs[2000:]]]
    )
    # noise of scale 5e-9, at most 15 variables; P(|Lap| > 50 scales) = e^-50 each
    np.testing.assert_allclose(estimates, np.cumsum(inputs), rtol=0, atol=15 * 50 * 5e-9)
    assert counter.counted == 3000


@pytest.mark.parametrize("arity", quick([2, 3, 18, 19, 20], 2, 3))
def test_memory(arity: int) -> None:
    mechanism = KaryTree(10**9, arity, 1)
    counter = TreeCounter(mechanism, rng=np.random.default_rng(0))
    most = 0
    for _ in range(300):
        counter.extend(np.zeros(997))
        most = max(most, counter.stored)
    lowest, height = (arity - 1) // 2, mechanism.tree.height
    assert most <= height * max(1, lowest) <= 100


@pytest.mark.parametrize(
    "mechanism", [KaryTree(100, 3, 1), BridgedTree(20, [4, 5], epsilon=1)], ids=repr
)
def test_a_snapshot_goes_on_once(mechanism: KaryTree | BridgedTree) -> None:
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
    again = type(counter).restore(snapshot, rng=np.random.default_rng(0))
    assert again.counted == 9
    with pytest.raises(NotApplicableError, match="has been restored already"):
        type(counter).restore(snapshot, rng=np.random.default_rng(0))


def test_bad_input_takes_nothing() -> None:
    counter = TreeCounter(KaryTree(5, 3, 1), rng=np.random.default_rng(0))
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


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("mechanism", "Laplace(scale=1)", "to be a KaryTree"),
        ("counted", 14, r"in 0\.\.13"),
        ("counted", True, r"in 0\.\.13"),
        ("sum", 6 * 2**31, r"in \[0, "),
        ("sum", math.nan, r"in \[0, "),
        ("values", [1, 2], "to be 3 finite numbers"),
        ("values", [1, 2, "x"], "to be 3 finite numbers"),
        ("waiting", [[], [1], []], "to fit the 5 inputs counted"),
        ("waiting", None, "not the record of a counter"),
    ],
)
def test_bad_records(key: str, value: object, message: str) -> None:
    counter = TreeCounter(KaryTree(13, 3, 1), rng=np.random.default_rng(0))
    counter.extend(np.ones(5))
    with pytest.raises(InvalidInputError, match=message):
        TreeCounter.of_record({**counter.record(), key: value}, rng=np.random.default_rng(0))


@pytest.mark.parametrize("feed", [one_by_one, one_block, mixed])
def test_a_lattice_holds_every_output(feed: Feed) -> None:
    mechanism = KaryTree(40, 3, "0.7")
    inputs = np.random.default_rng(1).random(40)
    counters = [TreeCounter(mechanism, rng=np.random.default_rng(2)) for _ in range(2)]
    grid = counters[0].step
    assert grid == Fraction(1, 2**30)  # the scale is 4/0.7
    first, second = (
        feed(counter, stream)
        for counter, stream in zip(counters, (inputs, np.zeros(40)), strict=True)
    )
    assert ((first / float(grid)) % 1 == 0).all()
    rounded = [round(Fraction(x) / grid) * grid for x in inputs.tolist()]
    sums = [float(sum(rounded[: index + 1])) for index in range(40)]
    assert (first - second == sums).all()


def test_noise_on_the_lattice_is_laplace() -> None:
    """The law of the variables, within the margin of Dvoretzky–Kiefer–Wolfowitz at 1e-6."""
    counter = TreeCounter(KaryTree(20_000, 20_001, 1, False), rng=np.random.default_rng(3))
    assert counter.step is not None
    noise = np.diff(counter.extend(np.zeros(20_000)), prepend=0)  # one level: a walk
    margin = math.sqrt(math.log(2e6) / (2 * len(noise)))
    assert stats.kstest(noise, stats.laplace(0, 1).cdf).statistic < margin


@pytest.mark.parametrize("feed", [one_by_one, one_block, mixed])
@pytest.mark.parametrize("large", [2**53 + 1, 2**62 + 1, 2**70 + 1])
def test_large_noise_is_added_exactly(
    feed: Feed, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the sum is rounded to a double. Rounding the noise first would show the input.

    An even number of steps that a double cannot hold is never reached from the other input.
    """
    monkeypatch.setattr(
        tree_counter, "discrete_laplace", lambda _, n, rng: np.array([large] * n, dtype=object)
    )
    found = feed(TreeCounter(DiscreteKaryTree(3, 9, "1e-16")), np.ones(3))
    assert found.tolist() == [float(t * (large + 1)) for t in (1, 2, 3)]


def test_the_secure_generator_draws_no_doubles() -> None:
    with pytest.raises(InvalidInputError, match="rng='SECURE' to be a NumPy generator"):
        TreeCounter(KaryTree(4, 2, 1), insecure_floats=True)
