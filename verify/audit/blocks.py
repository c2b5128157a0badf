"""Runs in blocks: seeds by index, any executor, counts that add up, checkpoints.

Block number i of a stage draws from SeedSequence(seed, spawn_key=(stage, pair, i, side)), so that
what is counted depends on the seed and not on who ran which block, or in which order.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import InvalidInputError
from verify.audit.exact_test import Design
from verify.audit.outputs import Alphabet, Matrix, stacked
from verify.audit.rule import Rule
from verify.audit.target import MechanismError, Target

Datasets: TypeAlias = tuple[Any, Any]

TRAINING, TESTING, PROBING, SEQUENTIAL = 0, 1, 2, 3
_MOST_RUNS = 1 << 16
_MOST_ENTRIES = 1 << 22
_WAITING_PER_WORKER = 2
_COIN = 2


def block_size(runs: int, width: int) -> int:
    """Return how many runs a side a block has: at least some forty blocks, in little memory."""
    most = max(1, min(_MOST_RUNS, _MOST_ENTRIES // max(1, width)))
    return max(1, min(most, -(-runs // 40) if runs >= 4000 else runs))


def generator(seed: int, *key: int) -> np.random.Generator:
    """Return the generator of one block and side."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def draw(
    target: Target,
    dataset: Any,
    size: int,
    rng: np.random.Generator,
    *,
    alphabet: Alphabet,
    width: int | None = None,
) -> Matrix:
    """Return the outputs of `size` runs as rows, of a width if one is given.

    A row is a function of its own output alone: one that does not fit the width becomes NaN, and
    its neighbours in the block stay what they are (else runs would depend on each other).

    Raises MechanismError where what comes back is not one output per run.
    """
    outputs = target.sample(dataset, size, rng)
    try:
        count = len(outputs)
    except TypeError:
        count = -1
    if count != size:
        raise MechanismError(
            f"{target.name} returned {count if count >= 0 else 'no list of'} outputs where {size} "
            "runs were asked for."
        )
    rows = alphabet.matrix(outputs)
    if width is None or rows.shape[1] == width:
        return rows
    return stacked([_fitted(output, width, alphabet.width) for output in outputs])


def _fitted(output: Any, width: int, mixed: int | None) -> Matrix:
    """Return the row of one output, NaN where it has another width."""
    for form in dict.fromkeys((None, mixed)):
        row = Alphabet(width=form).matrix([output])
        if row.shape[1] == width:
            return row.astype(np.float64)
    return np.full((1, width), np.nan)


@contextmanager
def time_limit(seconds: float | None, what: str) -> Iterator[None]:
    """Raise MechanismError after some seconds (in the main thread of a POSIX process)."""
    usable = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if seconds is None or not usable:
        yield
        return

    def expired(*_: object) -> None:
        raise MechanismError(
            f"{what} did not end within {seconds:g} s. Give it more time with timeout=, or fewer "
            "runs a block."
        )

    previous = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@final
@dataclass(frozen=True, eq=False)
class Task:
    """One block of the test: what a worker needs to run it."""

    target: Target
    datasets: Datasets
    rule: Rule
    width: int
    mixed: int | None
    """The width of mixed outputs; None for plain vectors."""
    size: int
    seed: int
    key: tuple[int, ...]
    timeout: float | None


def count(task: Task) -> NDArray[np.int64]:
    """Run one block and return the histograms of both sides, misfits in a last column.

    For guesses fair coins choose the dataset of every run.
    """
    sizes = [task.size, task.size]
    if task.rule.design is Design.GUESSES:
        chosen = int(generator(task.seed, *task.key, _COIN).binomial(2 * task.size, 0.5))
        sizes = [chosen, 2 * task.size - chosen]
    rows = []
    for side, (dataset, size) in enumerate(zip(task.datasets, sizes, strict=True)):
        rng = generator(task.seed, *task.key, side)
        with time_limit(task.timeout, f"A block of {size} runs of {task.target.name}"):
            form = Alphabet(width=task.mixed)
            outputs = draw(task.target, dataset, size, rng, alphabet=form, width=task.width)
        misfits = int(np.isnan(outputs).all(axis=1).sum()) if form.width != task.mixed else 0
        rows.append(np.append(task.rule.histogram(outputs), misfits))
    return np.array(rows)


@final
@dataclass
class Tally:
    """What was counted so far, on disk too if a path is given."""

    cells: int
    digest: str = ""
    path: Path | None = None
    done: set[int] = field(default_factory=set)
    histogram: NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, 0), dtype=np.int64))

    def __post_init__(self) -> None:
        """Start empty, or with what an earlier run of the same audit left."""
        self.histogram = np.zeros((2, self.cells + 1), dtype=np.int64)
        if self.path is None or not self.path.exists():
            return
        try:
            data = json.loads(self.path.read_text("utf-8"))
            digest, done, rows = data["audit"], data["done"], np.array(data["histogram"], np.int64)
        except (ValueError, KeyError, TypeError):
            raise InvalidInputError(f"{self.path} is no checkpoint of an audit.") from None
        if digest != self.digest or rows.shape != self.histogram.shape:
            raise InvalidInputError(
                f"{self.path} belongs to another audit: another target, claim, seed or number of "
                "samples. Remove it, or name another checkpoint."
            )
        self.done, self.histogram = set(done), rows

    def add(self, index: int, histogram: NDArray[np.int64]) -> None:
        """Add one block; what is on disk is always whole."""
        self.done.add(index)
        self.histogram = self.histogram + histogram
        if self.path is not None:
            data = {
                "audit": self.digest,
                "done": sorted(self.done),
                "histogram": self.histogram.tolist(),
            }
            whole = self.path.with_name(self.path.name + ".part")
            whole.write_text(json.dumps(data), "utf-8")
            os.replace(whole, self.path)


def digest(*parts: object) -> str:
    """Return a short digest of what an audit is about."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def run(
    tasks: Sequence[Task],
    tally: Tally,
    executor: Executor | None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Run every block that the tally does not have, here or with an executor."""
    waiting = [index for index in range(len(tasks)) if index not in tally.done]
    if executor is None:
        for index in waiting:
            tally.add(index, count(tasks[index]))
            if progress is not None:
                progress(len(tally.done), len(tasks))
        return
    running: dict[Future[NDArray[np.int64]], int] = {}
    most = _WAITING_PER_WORKER * int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)
    try:
        while waiting or running:
            while waiting and len(running) < most:
                index = waiting.pop(0)
                running[executor.submit(count, tasks[index])] = index
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                index = running.pop(future)
                tally.add(index, future.result())
                if progress is not None:
                    progress(len(tally.done), len(tasks))
    finally:
        for future in running:
            future.cancel()
