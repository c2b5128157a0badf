"""Mutants of the counters: each well-known mistake is caught by an exact test.

The sensitivity of what a program releases is read off the program. One noise variable at a time is
set to 1, which gives the columns of L; the measured sums R follow from L R = A, and the exact
ℓ1 norm of the worst column of R, times ε over the scale, is the ε that the program really has.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.counting.streams import (
    StreamCounter,
    TreeCounter,
    chain_noise,
    counter_of,
    noise,
    tree_counter,
)
from accountant.counting.tree import Digits, Tree, clashes, largest_load, misfits
from accountant.counting.tree_walk import factorisation
from accountant.mechanisms import DelannoyCounter, KaryTree, LaplaceVector
from accountant.numbers.exact import ExactReal
from accountant.questions import profile
from tests.accountant.counting.streams.one_hot import generator

Feed = Callable[[Any], NDArray[np.float64]]


def columns(mechanism: KaryTree | DelannoyCounter, feed: Feed) -> NDArray[np.float64]:
    """Return the distinct columns of L that the outputs of a program have."""
    found, hot, drawn = [], 0, 1
    while hot < drawn:
        one_hot, rng = generator(hot)
        outputs = feed(counter_of(mechanism, rng=rng, insecure_floats=True))
        if outputs.any():
            found.append(outputs / float(mechanism.scale))
        hot, drawn = hot + 1, one_hot.drawn
    return np.round(np.array(found).T, 9)


def real_epsilon(left: NDArray[np.float64], scale: ExactReal) -> float:
    """Return the ε of A x + L z for a square L: the worst column of R = L⁻¹ A, over the scale."""
    steps, variables = left.shape
    assert steps == variables
    right = np.linalg.solve(left, np.tri(steps))
    return float(abs(right).sum(axis=0).max()) / float(scale)


def one_by_one(counter: TreeCounter | StreamCounter) -> NDArray[np.float64]:
    steps = counter.mechanism.steps
    return np.array([counter.update(0) for _ in range(steps)])


@pytest.fixture(autouse=True)
def _small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_BUFFERED", 1)
    monkeypatch.setattr(tree_counter, "_BUFFERED", 1)


@pytest.mark.parametrize(
    "mechanism",
    [
        KaryTree(40, 3, 1),
        KaryTree(63, 2, 1, subtraction=False),
        KaryTree(42, 4, 1),
        DelannoyCounter(60, 3, epsilon=1),
        DelannoyCounter(41, 2, epsilon=1),
    ],
    ids=repr,
)
def test_the_programs_have_the_epsilon_they_state(mechanism: KaryTree | DelannoyCounter) -> None:
    """The audit of the honest programs: exactly ε = 1."""
    left = columns(mechanism, one_by_one)
    assert real_epsilon(left, mechanism.scale) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("mechanism", [KaryTree(13, 3, 1), DelannoyCounter(12, 2, epsilon=1)])
def test_noise_redrawn_on_reuse(
    mechanism: KaryTree | DelannoyCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that draws the noise of a vertex again for each output that uses it.

    Each output then is a measurement of its own: more noise variables than outputs have columns
    for, and an input in as many of them as there are outputs behind it.
    """

    def redrawn(counter: TreeCounter | StreamCounter) -> NDArray[np.float64]:
        outputs = []
        for step in range(1, mechanism.steps + 1):
            fresh = counter_of(mechanism, rng=counter._rng, insecure_floats=True)
            outputs.append([fresh.update(0) for _ in range(step)][-1])
        return np.array(outputs)

    monkeypatch.setattr(noise.NoiseSource, "one", lambda self: float(self.draw(1)[0]))
    honest = columns(mechanism, one_by_one)
    mutant = columns(mechanism, redrawn)
    assert mutant.shape[1] > honest.shape[1]
    uses = (mutant != 0).sum(axis=1)
    assert (uses == (honest != 0).sum(axis=1)).all()
    shared = mutant @ mutant.T
    assert np.count_nonzero(shared - np.diag(np.diag(shared))) == 0  # all outputs independent
    # The first input moves every output by 1, and the loss of each tends to 1/scale in its tail.
    assert mechanism.steps / float(mechanism.scale) > 4


@pytest.mark.parametrize(("arity", "steps"), [(3, 2), (3, 14), (5, 13), (19, 181), (19, 2 * 10**6)])
def test_height_from_the_logarithm_of_n_instead_of_2n(arity: int, steps: int) -> None:
    """⌈log_k n⌉ levels do not write n, and noise for as many is too little by a factor."""
    tree = Tree(arity, steps, Digits.SIGNED)
    short = next(h for h in range(1, 20) if arity**h >= steps)
    assert short < tree.height
    assert tree.capacity(short) < steps
    if steps < 1000:
        assert largest_load(tree) == tree.height
    release = LaplaceVector(scale=short, shifts=[1] * tree.height)
    assert profile.delta(release, 1).lower > 0
    assert profile.delta(release, Fraction(tree.height, short)).upper == 0


@pytest.mark.parametrize(("arity", "steps"), [(2, 15), (3, 26), (5, 24)])
def test_the_root_counted_or_not(arity: int, steps: int) -> None:
    """A root that is measured is in one more column entry; one that is only counted costs noise."""
    tree = Tree(arity, steps, Digits.PLAIN)
    _, right = factorisation(tree)
    without = max(map(sum, zip(*right, strict=True)))
    with_root = max(map(sum, zip(*right, [1] * steps, strict=True)))
    assert (without, with_root) == (tree.height, tree.height + 1)
    measured = LaplaceVector(scale=tree.height, shifts=[1] * with_root)
    assert profile.delta(measured, 1).lower > 0
    wasteful = LaplaceVector(scale=tree.height + 1, shifts=[1] * without)
    least = profile.epsilon(wasteful, 0)
    assert Fraction(least.upper) < 1


@pytest.mark.parametrize("arity", [2, 4, 6])
def test_the_digit_range_of_even_arities(arity: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits −k/2..k/2−1 write fewer numbers; at the capacity of −(k/2−1)..k/2 outputs go wrong."""
    honest = Tree(arity, 3, Digits.SIGNED)
    steps = honest.capacity(3)
    tree = Tree(arity, steps, Digits.SIGNED)
    assert misfits(tree) == clashes(tree) == 0
    written = Tree.written

    def mirrored(self: Tree, step: int) -> list[int]:
        shift, found = arity // 2, []
        for _ in range(self.height):
            digit = (step + shift) % arity - shift
            found.append(digit)
            step = (step - digit) // arity
        return found

    monkeypatch.setattr(Tree, "written", mirrored)
    assert misfits(tree) > 0
    monkeypatch.setattr(Tree, "written", written)
    assert misfits(tree) == 0


def test_a_resumed_state_that_repeats_noise() -> None:
    """Two continuations of one record share the noise of the chains that are open.

    What one input costs in both together is more than ε: the columns of the two stack up.
    """
    mechanism = KaryTree(40, 3, 1)
    joined, hot, drawn = [], 0, 1
    while hot < drawn:
        one_hot, rng = generator(hot)
        counter = TreeCounter(mechanism, rng=rng, insecure_floats=True)
        first = [counter.update(0) for _ in range(15)]
        record = counter.record()
        both = [TreeCounter.of_record(record, rng=rng).extend(np.zeros(25)) for _ in range(2)]
        outputs = np.concatenate([first, *both])
        if outputs.any():
            joined.append(outputs / float(mechanism.scale))
        hot, drawn = hot + 1, one_hot.drawn
    left = np.array(joined).T
    once, twice = left[15:40], left[40:]
    assert ((once != 0) & (twice != 0)).any()  # noise in both: their difference cancels it
    same = (once == twice).all(axis=1)
    assert same.any()  # these outputs differ by exactly the difference of the inputs


def test_a_seed_does_not_repeat_its_draws_after_an_interruption(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The program continues from another place of the seed; the mutant draws the same again."""
    monkeypatch.setattr(chain_noise, "_SMALLEST_PLAN", 1 << 20)
    mechanism = DelannoyCounter(10_000, 1, epsilon=1)  # a random walk: draws are increments

    def draws(seed: list[int]) -> NDArray[np.float64]:
        counter = StreamCounter(mechanism, rng=np.random.default_rng([7, 0]), insecure_floats=True)
        before = np.diff(counter.extend(np.zeros(500)), prepend=0)
        later = StreamCounter.of_record(counter.record(), rng=np.random.default_rng(seed))
        after = np.diff(later.extend(np.zeros(500)))
        return np.intersect1d(np.round(before, 6), np.round(after, 6))

    assert len(draws([7, 0])) > 300
    assert len(draws([7, 500])) == 0
