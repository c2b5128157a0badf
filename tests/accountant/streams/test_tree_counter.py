"""The counter draws and uses its noise exactly as the tree of intervals says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from accountant.errors import InvalidInputError, NotApplicableError
from accountant.mechanisms import DiscreteKaryTree, KaryTree
from accountant.streams import TreeCounter, counter_of, tree_counter
from accountant.tree_walk import nodes, parent

Feed = Callable[[TreeCounter, NDArray[np.float64]], NDArray[np.float64]]
TREES = [
    (k, n, subtraction)
    for subtraction in (False, True)
    for k, n in ((2, 31), (2, 20), (3, 40), (3, 30), (4, 42), (5, 62), (5, 40), (19, 60), (20, 60))
]


class OneHot:
    """Stands for a generator: all magnitudes 0 but one, so that the outputs show its users."""

    def __init__(self, hot: int) -> None:
        self.hot, self.drawn = hot, 0

    def standard_exponential(self, count: int) -> NDArray[np.float64]:
        found = np.zeros(count)
        if self.drawn <= self.hot < self.drawn + count:
            found[self.hot - self.drawn] = 1
        self.drawn += count
        return found

    def integers(self, low: int, high: int, count: int, dtype: Any) -> NDArray[Any]:
        return np.zeros(count, dtype=dtype)


def one_by_one(counter: TreeCounter, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([counter.update(x) for x in inputs])


def one_block(counter: TreeCounter, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    return counter.extend(inputs)


def mixed(counter: TreeCounter, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take blocks of 0, 7, 1, 13, … inputs, with a snapshot in between."""
    found, at = [], 0
    for size in (0, 7, 1, 13, 5, 100):
        block = inputs[at : at + size]
        found.append(counter.extend(block))
        at += len(block)
        counter = TreeCounter.restore(counter.snapshot(), rng=counter._rng)
    return np.concatenate(found)


@pytest.mark.parametrize("feed", [one_by_one, one_block, mixed])
@pytest.mark.parametrize(("arity", "steps", "subtraction"), TREES)
def test_each_noise_variable_is_in_the_outputs_of_its_vertex(
    feed: Feed, arity: int, steps: int, subtraction: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Algorithm 2, as a stream, has jointly the law of Algorithm 3, the tree of intervals.

    Both are sums of independent variables of one symmetric law; the multisets of index sets are
    equal, for every way to feed the stream.
    """
    monkeypatch.setattr(tree_counter, "_BUFFERED", 4)  # fewer variables that nothing uses
    mechanism = KaryTree(steps, arity, 1, subtraction)
    scale = float(mechanism.scale)
    users: Counter[tuple[int, ...]] = Counter()
    hot, drawn = 0, 1
    while hot < drawn:
        generator = OneHot(hot)
        counter = TreeCounter(mechanism, rng=cast(np.random.Generator, generator))
        noise = feed(counter, np.zeros(steps)) / scale
        assert set(noise) <= {0, 1}
        if noise.any():
            users[tuple(int(step) for step in np.flatnonzero(noise) + 1)] += 1
        hot, drawn = hot + 1, generator.drawn
    assert users == Counter(v.outputs for v in mechanism.tree.noise_variables())


def test_noise_is_laplace() -> None:
    counter = TreeCounter(KaryTree(10, 3, "0.5"), rng=np.random.default_rng(8))
    drawn = counter._laplace(200_000)
    # one test, fixed seed; a right program fails for a new seed with probability 1e-7
    assert (
        stats.kstest(drawn, stats.laplace(scale=float(counter.mechanism.scale)).cdf).pvalue > 1e-7
    )


def test_inputs_are_summed() -> None:
    generator = np.random.default_rng(1)
    inputs = generator.random(3000)
    counter = TreeCounter(KaryTree(3000, 7, 10**9), rng=generator)
    estimates = np.concatenate(
        [counter.extend(inputs[:2000]), [counter.update(x) for x in inputs[2000:]]]
    )
    # noise of scale 5e-9, at most 15 variables; P(|Lap| > 50 scales) = e^-50 each
    np.testing.assert_allclose(estimates, np.cumsum(inputs), rtol=0, atol=15 * 50 * 5e-9)
    assert counter.counted == 3000


@pytest.mark.parametrize("arity", [2, 3, 18, 19, 20])
def test_memory(arity: int) -> None:
    mechanism = KaryTree(10**9, arity, 1)
    counter = TreeCounter(mechanism, rng=np.random.default_rng(0))
    most = 0
    for _ in range(300):
        counter.extend(np.zeros(997))
        most = max(most, counter.stored)
    lowest, height = (arity - 1) // 2, mechanism.tree.height
    assert most <= height * max(1, lowest) <= 100


def test_a_snapshot_goes_on_once() -> None:
    counter = TreeCounter(KaryTree(100, 3, 1), rng=np.random.default_rng(0))
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
    again = TreeCounter.restore(snapshot, rng=np.random.default_rng(0))
    assert again.counted == 9
    with pytest.raises(NotApplicableError, match="has been restored already"):
        TreeCounter.restore(snapshot, rng=np.random.default_rng(0))


def test_a_continuation_keeps_the_noise_that_is_out() -> None:
    """Signed digits draw Z_3 for the output 2 already; the output 3 must be S_3 + Z_3 of then."""
    counter = TreeCounter(KaryTree(13, 3, 1), rng=np.random.default_rng(4))
    counter.extend([0, 0])
    (above,) = counter.record()["values"][1:2]
    continued = TreeCounter.restore(counter.snapshot(), rng=np.random.default_rng(5))
    assert continued.update(1) == 1 + above


def test_reset_draws_new_noise() -> None:
    counter = TreeCounter(KaryTree(20, 3, 1), rng=np.random.default_rng(0))
    first = counter.extend(np.zeros(20))
    counter.reset()
    assert counter.counted == 0
    assert not np.isin(counter.extend(np.zeros(20)), first).any()


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
        ("sum", 6, r"in \[0, 5\]"),
        ("sum", math.nan, r"in \[0, 5\]"),
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


@pytest.mark.slow
@pytest.mark.parametrize(("arity", "subtraction"), [(19, True), (18, True), (2, False)])
def test_mean_squared_error_of_a_million_steps(arity: int, subtraction: bool) -> None:
    """The simulated error lies within six of its standard errors, which are exact too.

    Y = (1/n) Σ noise(t)² is the quadratic form ZᵀMZ with M_ij = s_j/n for a node i on the path to
    the node j, s_j the outputs below j. So Var Y = b⁴ (12 Σ M_ii² + 8 Σ M_ij²) for Lap(b) noise.
    The mean of 100 runs is nearly normal: a right program fails with probability near 2e-9.
    """
    n, runs = 10**6, 100
    mechanism = KaryTree(n, arity, 1, subtraction)
    order = nodes(mechanism.tree)
    above = [parent(mechanism.tree, node) for node in order]
    below = {node: int(node <= n) for node in (0, *order)}
    depth = {0: 0}
    for node, up in zip(order, above, strict=True):
        depth[node] = depth[up] + 1
    for node, up in zip(reversed(order), reversed(above), strict=True):
        below[up] += below[node]
    squares = np.array([below[node] ** 2 for node in order], dtype=float)
    pairs = np.array([2 * depth[node] - 1 for node in order], dtype=float)
    spread = (
        float(mechanism.scale) ** 2
        / n
        * math.sqrt(12 * squares.sum() + 8 * (squares * pairs).sum())
    )
    generator, zeros = np.random.default_rng(19), np.zeros(n)
    total = 0.0
    for _ in range(runs):
        total += float(np.mean(TreeCounter(mechanism, rng=generator).extend(zeros) ** 2))
    exact = mechanism.exact_mean_squared_error().rational
    assert exact is not None
    assert abs(Fraction(total / runs) - exact) <= 6 * spread / math.sqrt(runs)


@pytest.mark.parametrize("feed", [one_by_one, one_block, mixed])
def test_a_lattice_holds_every_output(feed: Feed) -> None:
    mechanism = KaryTree(40, 3, "0.7")
    inputs = np.random.default_rng(1).random(40)
    first, second = (
        feed(TreeCounter(mechanism, rng=np.random.default_rng(2), lattice=True), stream)
        for stream in (inputs, np.zeros(40))
    )
    grid = tree_counter._lattice(mechanism).lattice[0]
    assert grid == Fraction(1, 2**30)  # the scale is 4/0.7
    assert ((first / float(grid)) % 1 == 0).all()
    rounded = [round(Fraction(x) / grid) * grid for x in inputs.tolist()]
    sums = [float(sum(rounded[: index + 1])) for index in range(40)]
    assert (first - second == sums).all()


def test_noise_on_the_lattice_is_laplace() -> None:
    """The law of the first output, within the margin of Dvoretzky–Kiefer–Wolfowitz at 1e-6."""
    mechanism, rng = KaryTree(1, 2, 1), np.random.default_rng(3)
    sampler = TreeCounter(mechanism, rng=rng, lattice=True)
    noise = sampler._laplace(100_000)
    margin = math.sqrt(math.log(2e6) / (2 * len(noise)))
    assert stats.kstest(noise, stats.laplace(0, 1).cdf).statistic < margin


def test_what_the_lattice_costs() -> None:
    rng = np.random.default_rng(4)
    long = TreeCounter(KaryTree(10**9, 19, 1), rng=rng, lattice=True)
    assert 0 <= long.extra_delta.lower <= long.extra_delta.upper < 1e-300
    assert tree_counter._lattice(KaryTree(10**9, 19, 1)).lattice[0] <= 2**-19
    assert TreeCounter(DiscreteKaryTree(4, 2, 1), rng=rng).extra_delta.upper == 0
    with pytest.raises(NotApplicableError, match="lattice=True"):
        TreeCounter(KaryTree(4, 2, 1), rng=rng).extra_delta  # noqa: B018
    with pytest.raises(InvalidInputError, match="larger epsilon"):
        TreeCounter(KaryTree(4, 2, "1e-20"), rng=rng, lattice=True)
    assert counter_of(KaryTree(4, 2, 1), rng=rng, lattice=True).record()["lattice"] is True
