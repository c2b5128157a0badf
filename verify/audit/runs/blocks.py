"""Runs in blocks: seeds by index, any executor, counts that add up.

Block number i of a stage draws from SeedSequence(seed, spawn_key=(stage, pair, i, side)), so that
what is counted depends on the seed and not on who ran which block, or in which order.

Runs that depend on each other, which no count may take for independent ones.

*Changed datasets.* A mechanism that adds noise to its dataset in place begins each run where the
one before ended.

*Copies.* A mechanism with a generator of its own is copied with it to every process, a forked
process begins with the state of its parent, and a generator that is seeded by the time is the same
for a while: each makes blocks that begin alike. Let p̂ be the frequencies of the first n outputs of
a block. If runs are independent with any law p, another block begins with the same n outputs with
probability ∏ p(output) ≤ ∏ p̂(output) = exp(−n·entropy of p̂): where this is small, equal beginnings
are copies.
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.audit.learning.outputs import Alphabet, Matrix, stacked
from dpassay.verifier.audit.learning.rule import Chosen
from dpassay.verifier.audit.runs.target import MechanismError, Target, require_one_each
from dpassay.verifier.audit.statistics.exact_test import Design

_LENGTHS = 64, 512, 4096
"""Outputs at the beginning of a block that are looked at, more where they tell little."""
_ENOUGH = 60.0
"""Nats that they must tell: independent blocks are taken for copies with probability 1e-26 a pair,
so 1e-10 in all where 10⁸ blocks are compared."""


@final
@dataclass(eq=False)
class Watched:
    """A target that notes how its first outputs begin."""

    target: Target
    beginning: bytes = b""
    """A digest; empty where the outputs tell too little."""
    _looked: bool = field(default=False)

    @property
    def name(self) -> str:
        """That of the target."""
        return self.target.name

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Return the outputs of the target."""
        outputs = self.target.sample(dataset, size, rng)
        if not self._looked:
            self._looked, self.beginning = True, _beginning(outputs)
        return outputs


@final
@dataclass(eq=False)
class Beginnings:
    """How the blocks that were counted begin."""

    name: str
    seen: set[bytes] = field(default_factory=set)

    def add(self, beginning: bytes) -> None:
        """Note one more; raise MechanismError if it was there."""
        if beginning and beginning in self.seen:
            raise MechanismError(
                f"{self.name} returned the same outputs in two blocks of runs: they are not "
                "independent. Does it seed a generator of its own, or does every worker get a copy "
                "of one? Use the rng that the audit gives it, or executor=None (--workers 1)."
            )
        self.seen.add(beginning)


def state(dataset: Any) -> Any:
    """Return what is in a dataset that a mechanism could change; None where that is not known."""
    try:
        if hasattr(dataset, "__array__"):  # tensors and frames too
            array = np.asarray(dataset)
            return pickle.dumps(array.tolist()) if array.dtype == object else array.tobytes()
        return pickle.dumps(dataset) if isinstance(dataset, (list, tuple, dict, set)) else None
    except Exception:  # noqa: BLE001 (of tensors on a device, or of what is in it: anything)
        return None


def require_unchanged(name: str, before: Any, dataset: Any) -> None:
    """Raise MechanismError where a dataset is not what it was."""
    if state(dataset) != before:
        raise MechanismError(
            f"{name} changes the dataset that it is given: runs that begin where others ended are "
            "not independent. Give it a copy, such as lambda dataset, rng: "
            "mechanism(copy.deepcopy(dataset), rng)."
        )


def told(outputs: Sequence[bytes]) -> float:
    """Return n times the entropy of p̂, in nats."""
    count = len(outputs)
    return sum(times * math.log(count / times) for times in Counter(outputs).values())


def _beginning(outputs: Any) -> bytes:
    for length in _LENGTHS:
        if not hasattr(outputs, "__getitem__") or len(outputs) < length:
            break
        first = [
            one.tobytes() if isinstance(one, (np.ndarray, np.generic)) else repr(one).encode()
            for one in outputs[:length]
        ]
        if told(first) >= _ENOUGH:
            return hashlib.sha256(b"\0".join(first)).digest()[:16]
    return b""


Datasets: TypeAlias = tuple[Any, Any]

TRAINING, TESTING, PROBING = 0, 1, 2
_MOST_RUNS = 1 << 16
"""Runs a side of a block: some megabytes, and a kill loses no more."""
_MOST_ENTRIES = 1 << 22
"""Numbers of a block, for wide outputs: 32 MiB of doubles."""
_WAITING_PER_WORKER = 2
"""Blocks that wait for each worker, so that none is idle and memory stays small."""
_COIN = 2
"""The last part of the key from which the coins of a block come; 0 and 1 are its sides."""
_GRACE = 10.0
"""Seconds that a worker may take to start, beyond its time limit."""


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

    Raises MechanismError where what comes back is not one output per run, or the dataset changed.
    """
    before = state(dataset)
    outputs = target.sample(dataset, size, rng)
    require_unchanged(target.name, before, dataset)
    require_one_each(target.name, outputs, size)
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
    rule: Chosen
    width: int
    mixed: int | None
    """The width of mixed outputs; None for plain vectors."""
    size: int
    seed: int
    key: tuple[int, ...]
    timeout: float | None

    def count(self) -> NDArray[np.int64]:
        """Run the block; for guesses fair coins choose the dataset of every run."""
        rows = []
        sizes = side_sizes(self.rule.design, self.size, self.seed, self.key)
        for side, (dataset, size) in enumerate(zip(self.datasets, sizes, strict=True)):
            rng = generator(self.seed, *self.key, side)
            with time_limit(self.timeout, f"A block of {size} runs of {self.target.name}"):
                form = Alphabet(width=self.mixed)
                outputs = draw(self.target, dataset, size, rng, alphabet=form, width=self.width)
            misfits = int(np.isnan(outputs).all(axis=1).sum()) if form.width != self.mixed else 0
            rows.append(np.append(self.rule.histograms(outputs), misfits))
        return np.array(rows)


def side_sizes(design: Design, size: int, seed: int, key: tuple[int, ...]) -> tuple[int, int]:
    """Return how many runs of a block are made on each dataset: for guesses fair coins choose."""
    if design is not Design.GUESSES:
        return size, size
    chosen = int(generator(seed, *key, _COIN).binomial(2 * size, 0.5))
    return chosen, 2 * size - chosen


@final
@dataclass(frozen=True, eq=False)
class Blocks:
    """Runs a side cut into blocks that are made when they are asked for."""

    whole: Task
    """A block of the full size, with the key that all of them begin with."""
    runs: int

    def __len__(self) -> int:
        """Return how many blocks there are."""
        size = self.whole.size
        return (self.runs + size - 1) // size

    def __getitem__(self, index: int) -> Task:
        """Return one block: the last one holds what is left."""
        size = min(self.whole.size, self.runs - index * self.whole.size)
        return replace(self.whole, size=size, key=(*self.whole.key, index))


@final
@dataclass(frozen=True, eq=False)
class Prepared:
    """What is fixed before the first run of the test."""

    rule: Chosen
    pair: int
    blocks: Blocks
    training: int
    """Training runs a side."""
    notes: tuple[str, ...]


def run(
    blocks: Blocks,
    executor: Executor | None,
    progress: Callable[[int, int], None] | None = None,
    timeout: float | None = None,
) -> NDArray[np.int64]:
    """Run every block, here or with an executor, and return the counts of all.

    Only a few blocks are waiting at any time, and only their counts come back, so that memory does
    not grow with the number of runs.

    Raises MechanismError where a block raises, a worker dies, no block ends in time, or two blocks
    begin with the same outputs.
    """
    waiting = iter(range(len(blocks)))
    beginnings = Beginnings(blocks.whole.target.name)
    histogram = np.zeros((2, blocks.whole.rule.size + 1), dtype=np.int64)
    done = 0

    def add(counted: tuple[NDArray[np.int64], bytes]) -> None:
        nonlocal histogram, done
        beginnings.add(counted[1])
        histogram, done = histogram + counted[0], done + 1
        if progress is not None:
            progress(done, len(blocks))

    if executor is None:
        for index in waiting:
            add(_count(blocks[index]))
        return histogram
    _require_sendable(blocks, executor)
    running: set[Future[tuple[NDArray[np.int64], bytes]]] = set()
    most = _WAITING_PER_WORKER * _workers(executor)
    # a block may have to wait for those before it at the same worker, and the worker to start
    patience = None if timeout is None else (_WAITING_PER_WORKER + 1) * timeout + _GRACE
    try:
        while True:
            for index in waiting:
                running.add(executor.submit(_count, blocks[index]))
                if len(running) >= most:
                    break
            if not running:
                return histogram
            finished, running = wait(running, timeout=patience, return_when=FIRST_COMPLETED)
            if not finished:
                raise MechanismError(
                    f"No block ended within {patience:g} s. Give it more time with timeout=, or "
                    "fewer samples."
                )
            for future in finished:
                add(future.result())
    except BrokenExecutor as error:
        raise MechanismError(
            f"A worker of {type(executor).__name__} died ({error}). Is the mechanism killed, or "
            "short of memory?"
        ) from error
    finally:
        # A pool of processes that is shut down while only cancelled work is left may miss that it
        # has none, and wait for ever: something that ends makes it look again.
        cancelled = [future.cancel() for future in running]
        if any(cancelled):
            with suppress(RuntimeError):
                executor.submit(int)


def _count(block: Task) -> tuple[NDArray[np.int64], bytes]:
    """Count one block, wherever this runs, and note how its outputs begin."""
    watched = Watched(block.target)
    return replace(block, target=watched).count(), watched.beginning


def _workers(executor: Executor) -> int:
    """Return how many workers an executor has, as far as it says so."""
    for name in ("_max_workers", "num_workers"):  # concurrent.futures, others
        number = getattr(executor, name, None)
        if isinstance(number, int) and number > 0:
            return number
    return os.cpu_count() or 1


def _require_sendable(blocks: Blocks, executor: Executor) -> None:
    """Raise InvalidInputError where processes could not be sent the mechanism."""
    if not isinstance(executor, ProcessPoolExecutor):
        return
    try:
        pickle.dumps(blocks.whole)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidInputError(
            f"Expected a mechanism that can be sent to the processes of executor: {error}. Define "
            "it at the top of a module, or use a ThreadPoolExecutor."
        ) from None
