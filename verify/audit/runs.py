"""Runs of an audit: what is run, on which datasets, in which blocks; and training on some of them.

*Neighbours.* The listed pairs are those that broke mechanisms in the literature: no record, one
record, many equal records, the ends of the allowed range, negative zero, numbers on both sides of a
power of two (where the grid of floating point changes), large numbers. Training runs choose one
pair, and only that one is tested: the search costs training runs but no significance.

*Blocks.* Block i of a stage draws from SeedSequence(seed, spawn_key=(stage, pair, i, side)), so
that the counts depend on the seed, and not on which worker ran which block, or in which order.

*Dependence.* The tests assume independent runs. A mechanism that adds noise to its dataset in place
begins each run where the last one ended: so the dataset is compared before and after. A mechanism
with its own generator may be copied with it to every process, a forked process begins with the
state of its parent, and a generator that is seeded by the time is the same for a while: then blocks
begin alike. Let p̂ be the frequencies of the
first n outputs of a block. If runs are independent with any law p, another block begins with the
same n outputs with probability ∏ p(output) ≤ ∏ p̂(output) = exp(−n·entropy of p̂): where this is
small, equal beginnings are copies.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import math
import os
import pickle
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol, TypeAlias, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant import notation
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import (
    DpassayError,
    InvalidInputError,
    expected,
    shortened,
    suggestion,
)
from dpassay.accountant.numbers.interval import few
from dpassay.verifier.ask import is_notation
from dpassay.verifier.audit import features
from dpassay.verifier.audit.exact_test import MOST_RUNS, SPARED, Counts, Design, least, p_value
from dpassay.verifier.audit.features import (
    Alphabet,
    Chosen,
    Matrix,
    Sides,
    all_worded,
    joined,
    stacked,
)
from dpassay.verifier.audit.guarantees import Guarantee, read_count, read_seed, read_significance
from dpassay.verifier.audit.learn import VALUES, bits_of, choose, shares_of
from dpassay.verifier.decide import LateError, ended_after

# --- What is audited: something that can be asked for independent runs on a dataset ---------------
# A `Target` has a name, and returns a block of runs at a time. `target` makes one of a mechanism of
# this package, a callable `mechanism(dataset, rng)` that returns one output, an object with
# `sample(dataset, size, rng)` that returns many, a measurement of OpenDP or a mechanism of
# diffprivlib (recognised by their methods; neither library is imported), or a command.
#
# *Callables.* The first parameter takes the dataset. A parameter called `rng`, `generator`,
# `random_state` or `seed` takes the randomness, and a required one called `size`, `n`, `n_samples`
# or `num_samples` the number of runs: one with a default may be the size of an output. One required
# parameter of another name takes the generator. Others keep their defaults, so that no switch such
# as `exact=False` is set; a required parameter that remains is an error.
#
# *Mechanisms of this package.* The dataset is the true answer. The mechanism knows the answers at
# which its worst case is attained (`worst_answers`), and how its outputs are drawn (`outputs`).


class Role(Enum):
    """What an argument is."""

    SIZE = "size"
    GENERATOR = "numpy.random.Generator"
    STATE = "numpy.random.RandomState"
    SEED = "a fresh seed"


_NAMES = {
    "rng": Role.GENERATOR,
    "generator": Role.GENERATOR,
    "random_state": Role.STATE,
    "seed": Role.SEED,
    "size": Role.SIZE,
    "n": Role.SIZE,
    "n_samples": Role.SIZE,
    "num_samples": Role.SIZE,
}
_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_SEEDS = 1 << 32
"""Seeds that every library takes: 32 bits."""


@final
@dataclass(frozen=True)
class Binding:
    """The arguments after the dataset, passed by name, or by position where the name is empty."""

    arguments: tuple[tuple[str, Role], ...] = ()

    @property
    def takes_size(self) -> bool:
        """Whether one call is many runs."""
        return any(role is Role.SIZE for _, role in self.arguments)

    @property
    def takes_randomness(self) -> bool:
        """Whether the audit supplies the randomness."""
        return any(role is not Role.SIZE for _, role in self.arguments)

    def call(
        self, function: Callable[..., Any], dataset: Any, size: int, rng: np.random.Generator
    ) -> Any:
        """Call the function."""
        given = [(name, _argument(role, size, rng)) for name, role in self.arguments]
        placed = [value for name, value in given if not name]
        return function(dataset, *placed, **{name: value for name, value in given if name})

    def described(self, name: str) -> str:
        """Say how the function of a name is called."""
        shown = (f"{own}={role.value}" if own else role.value for own, role in self.arguments)
        often = "once a block of runs" if self.takes_size else "once a run"
        own = "" if self.takes_randomness else ", with randomness of its own"
        return f"{name}({', '.join(['dataset', *shown])}), {often}{own}"


def _argument(role: Role, size: int, rng: np.random.Generator) -> Any:
    match role:
        case Role.SIZE:
            return size
        case Role.GENERATOR:
            return rng
        case Role.STATE:
            return np.random.RandomState(int(rng.integers(_SEEDS)))
    return int(rng.integers(_SEEDS))


BLOCK = Binding((("", Role.SIZE), ("", Role.GENERATOR)))
"""mechanism(dataset, size, rng)."""


def binding(function: Callable[..., Any], name: str) -> Binding:
    """Return how a callable is to be called, by the names of its parameters.

    Raises
    ------
    InvalidInputError
        If it takes no dataset, needs an unknown argument, or is a coroutine or a generator.
    """
    _require_outputs(function, name)
    try:
        known = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a built-in that says nothing of itself
        return Binding()
    if not known or known[0].kind not in (*_PLACED, inspect.Parameter.VAR_POSITIONAL):
        raise InvalidInputError(
            f"Expected {name} to take the dataset first, as in {name}(dataset, rng)."
        )
    roles: list[tuple[inspect.Parameter, Role]] = []
    unknown: list[inspect.Parameter] = []
    for parameter in known[1:]:
        required = parameter.default is parameter.empty and parameter.kind not in _VARIABLE
        role = None if parameter.kind in _VARIABLE else _NAMES.get(parameter.name)
        if role is None:
            unknown += [parameter] * required
        elif required or (role is not Role.SIZE and not _has_randomness(roles)):
            roles.append((parameter, role))
    if len(unknown) == 1 and not _has_randomness(roles) and unknown[0].kind in _PLACED:
        roles.append((unknown.pop(), Role.GENERATOR))
    if unknown:
        needed = " and ".join(parameter.name for parameter in unknown)
        fixed = ", ".join(f"{parameter.name}=…" for parameter in unknown)
        raise InvalidInputError(
            f"{name} needs {needed}, which the audit cannot know. Fix what is not random, "
            f"functools.partial({name}, {fixed}), and call the others size and rng."
        )
    roles.sort(key=lambda entry: known.index(entry[0]))
    return Binding(
        tuple(("" if p.kind is p.POSITIONAL_ONLY else p.name, role) for p, role in roles)
    )


def _has_randomness(roles: list[tuple[inspect.Parameter, Role]]) -> bool:
    return any(role is not Role.SIZE for _, role in roles)


def _require_outputs(function: Callable[..., Any], name: str) -> None:
    """Refuse coroutines and generators: they return no output when they are called."""
    for called in (function, getattr(function, "func", None), type(function).__call__):
        if inspect.iscoroutinefunction(called):
            raise InvalidInputError(
                f"{name} is a coroutine function. Audit what it returns: "
                f"lambda dataset, rng: asyncio.run({name}(dataset, rng))."
            )
        if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
            raise InvalidInputError(
                f"{name} is a generator function. Audit what it yields: "
                f"lambda dataset, rng: list({name}(dataset, rng))."
            )


Pair: TypeAlias = tuple[Any, Any]


@final
@dataclass(frozen=True)
class MechanismTarget:
    """A mechanism of this package. A dataset is a true answer, or of a composition one per part."""

    mechanism: Mechanism
    simulated: bool = False
    """Whether real noise is drawn in floats rather than released exactly: for estimates, and some
    twenty times faster. Last bits then say nothing of the release, and are left out."""

    @property
    def name(self) -> str:
        """Its notation."""
        return str(self.mechanism)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `size` releases of the true answer `dataset`."""
        if not self.simulated or not self.mechanism.adds_real_noise():
            return self.mechanism.outputs(dataset, size, rng=rng)
        drawn: NDArray[Any] = self.mechanism.sample(size, rng=rng) + np.asarray(dataset)
        return drawn


def worst_pairs(mechanism: Mechanism) -> list[Pair]:
    """Return pairs of true answers, without and with the record, at which the loss is largest.

    Raises InvalidInputError for a mechanism that lists none.
    """
    found = mechanism.worst_answers()
    if not found:
        raise InvalidInputError(
            f"No worst pair of true answers is listed for {type(mechanism).__name__}. "
            "Name two with pairs=[(answer, neighbouring answer)]."
        )
    return found


NOT_REPEATABLE = "the mechanism does not follow the rng it is given: runs cannot be drawn again"
"""A note of results: their runs cannot be repeated."""
GIVEN = "the rows were given, and the seed only splits them"
"""A note of results: there was nothing to run."""


class MechanismError(DpassayError):
    """The audited mechanism raised an error, did not end, or did not return one output per run."""


def require_one_each(name: str, outputs: Any, size: int) -> None:
    """Raise MechanismError where outputs are not one for each of `size` runs."""
    try:
        count = len(outputs)
    except TypeError:
        count = -1
    if count != size:
        raise MechanismError(
            f"{name} returned {count if count >= 0 else 'no list of'} outputs where {size} runs "
            "were asked for."
        )


@runtime_checkable
class Target(Protocol):
    """Something that is audited."""

    @property
    def name(self) -> str:
        """What the report calls it."""

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Return the outputs of `size` independent runs: an array or a sequence, one entry each.

        Only randomness from `rng` can be repeated; the runs of a mechanism with randomness of its
        own are audited, but cannot be reproduced.
        """


@final
@dataclass(frozen=True)
class Called:
    """A callable: `mechanism(dataset, size, rng)` of many runs, or one run as its binding says."""

    mechanism: Callable[..., Any]
    name: str
    binding: Binding = BLOCK

    @property
    def called(self) -> str:
        """How it is called."""
        return self.binding.described(self.name)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Call it once, or where one call is one run, `size` times."""
        call, block = self.binding.call, self.binding.takes_size
        try:
            if not block:
                return [_copied(call(self.mechanism, dataset, 1, rng)) for _ in range(size)]
            outputs = call(self.mechanism, dataset, size, rng)
        except Exception as error:  # a foreign program may raise anything
            said = f"{self.name} raised {type(error).__name__}: {error}"
            remedy = (
                " If whoever sees the output sees that too, catch the error and return its name."
            )
            raise MechanismError(
                f"{said} (dataset {shortened(repr(dataset))}).{'' if block else remedy}"
            ) from error
        require_one_each(self.name, outputs, size)
        return outputs


@final
@dataclass(frozen=True)
class Command:
    """A command that prints one output per line.

    `{dataset}`, `{size}` and `{seed}` in its arguments are filled in. A line of numbers, separated
    by spaces or commas, is a list of numbers; any other line is a text.
    """

    command: str
    timeout: float | None = None

    @property
    def name(self) -> str:
        """The command."""
        return self.command

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Sequence[Any]:
        """Run it once and read its lines."""
        seed = int(rng.integers(0, 2**63))
        filled = {"{dataset}": str(dataset), "{size}": str(size), "{seed}": str(seed)}
        arguments = [_with_values(part, filled) for part in shlex.split(self.command)]
        try:
            done = subprocess.run(
                arguments,
                capture_output=True,
                encoding="utf-8",
                errors="backslashreplace",
                check=True,
                timeout=self.timeout,
            )
        except OSError as error:
            raise MechanismError(
                f"{self.command} could not be started: {error.strerror or error}. Expected the "
                "name of a program and its arguments, as in a shell."
            ) from None
        except subprocess.TimeoutExpired as error:
            raise MechanismError(
                f"{self.command} did not end within {error.timeout:g} s. Give it more time with "
                "timeout=, or fewer runs a block."
            ) from None
        except subprocess.CalledProcessError as error:
            last = (error.stderr or "").strip().splitlines()[-1:]
            raise MechanismError(
                f"{self.command} ended with exit code {error.returncode}: {' '.join(last)}"
            ) from None
        lines = done.stdout.splitlines()
        if len(lines) < size:
            raise MechanismError(
                f"{self.command} printed {len(lines)} lines where {size} runs were asked for."
            )
        return [_output_of_line(line) for line in lines[:size]]


def target(thing: Any, name: str = "") -> Target:
    """Turn what a user has in hand into a target.

    Raises InvalidInputError for anything in an unknown form.
    """
    if isinstance(thing, Mechanism):
        return MechanismTarget(thing)
    name = name or str(getattr(thing, "__name__", "") or type(thing).__name__)
    if isinstance(thing, (Called, Command)):
        return thing
    if callable(getattr(thing, "sample", None)):
        return thing if isinstance(thing, Target) else _of_callable(thing.sample, name)
    if callable(getattr(thing, "randomise", None)):  # diffprivlib
        return Called(thing.randomise, name, Binding())
    if hasattr(thing, "input_domain") and callable(thing):  # OpenDP
        return Called(thing, name, Binding())
    if callable(thing):
        return _of_callable(thing, name)
    raise InvalidInputError(
        f"Expected a mechanism, a callable mechanism(dataset, rng) or an object with "
        f"sample(dataset, size, rng), not {shortened(repr(thing))}."
    )


def named(text: str, expected: str = "TARGET to be a mechanism or package.module:callable") -> Any:
    """Return a mechanism of this package, or import package.module:callable.

    Raises InvalidInputError for anything else, and if it cannot be imported.
    """
    if is_notation(text):
        return notation.parse(text)
    module, colon, name = text.partition(":")
    if not colon:
        package, _, last = text.rpartition(".")
        if last == "py":
            hint = f" Write {package.replace('/', '.')}:NAME, NAME being the function."
        elif package and text.replace(".", "").isidentifier():
            hint = f" Did you mean {package}:{last}?"
        else:
            hint = ""
        raise InvalidInputError(f"Expected {expected}, not {text!r}.{hint}")
    if module.endswith(".py"):
        place = module.removesuffix(".py").removeprefix("./").replace("/", ".")
        raise InvalidInputError(f"Expected {expected}, not {text!r}. Write {place}:{name}.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"Cannot import {text}: {error}. Expected package.module:callable, a module "
            "without .py, from here or from an installed package."
        ) from None
    return found


def _of_callable(function: Callable[..., Any], name: str) -> Target:
    """Return a callable with the arguments that it wants."""
    return Called(function, name, binding(function, name))


def _copied(output: Any) -> Any:
    """Return a copy of an output, which a mechanism might overwrite in its next run."""
    copied = getattr(output, "copy", None) or getattr(output, "clone", None)
    try:
        return copied() if callable(copied) else output
    except TypeError:  # a method of another meaning
        return output


def _with_values(part: str, values: dict[str, str]) -> str:
    """Fill in the three names; other braces stay as they are."""
    for name, value in values.items():
        part = part.replace(name, value)
    return part


def _output_of_line(line: str) -> Any:
    parts = line.replace(",", " ").split()
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        return line.strip()
    return numbers[0] if len(numbers) == 1 else numbers or line.strip()


_LENGTHS = 64, 512, 4096
"""Outputs at the beginning of a block that are compared: more if they have little entropy."""
_ENOUGH = 60.0
"""The entropy, in nats, that they must have: independent blocks are then taken for copies with
probability 1e-26 a pair, and 1e-10 in all if 10⁸ blocks are compared."""


def state(dataset: Any) -> Any:
    """Return the content of a dataset, which a mechanism might change; None if it is not known."""
    try:
        if hasattr(dataset, "__array__"):  # tensors and frames too
            array = np.asarray(dataset)
            return pickle.dumps(array.tolist()) if array.dtype == object else array.tobytes()
        return pickle.dumps(dataset) if isinstance(dataset, (list, tuple, dict, set)) else None
    except Exception:  # noqa: BLE001 (of tensors on a device, or of what is in it: anything)
        return None


def require_unchanged(name: str, before: Any, dataset: Any) -> None:
    """Raise MechanismError if a dataset was changed."""
    if state(dataset) != before:
        raise MechanismError(
            f"{name} changes the dataset that it is given: runs that begin where others ended are "
            "not independent. Give it a copy, such as lambda dataset, rng: "
            "mechanism(copy.deepcopy(dataset), rng)."
        )


def information(outputs: Sequence[bytes]) -> float:
    """Return n times the entropy of p̂, in nats."""
    count = len(outputs)
    return sum(times * math.log(count / times) for times in Counter(outputs).values())


def beginning(rows: Matrix) -> bytes:
    """Return a digest of the first rows of a block; empty if they have too little entropy."""
    for length in _LENGTHS:
        first = [row.tobytes() for row in rows[:length].astype(np.float64)]
        if len(first) == length and information(first) >= _ENOUGH:
            return hashlib.sha256(b"".join(first)).digest()[:16]
    return b""


Datasets: TypeAlias = tuple[Any, Any]

TRAINING, TESTING, PROBING = 0, 1, 2
_MOST_RUNS = 1 << 16
"""Runs on each side of a block: some megabytes, and little is lost if a worker dies."""
_MOST_ENTRIES = 1 << 22
"""Numbers in a block of wide outputs: 32 MiB of doubles."""
_WAITING_PER_WORKER = 2
"""Blocks that are queued for each worker: none is idle, and memory stays small."""
_COIN_KEY = 2
"""The last part of the key of a block's coins; that of its sides is 0 or 1."""
START_SECONDS = 10.0
"""Seconds that a worker may take to start, beyond its time limit."""


def block_size(runs: int, width: int) -> int:
    """Return the runs on each side of a block: forty blocks or more, each in little memory."""
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

    A row depends on its own output alone, so that runs stay independent: an output that does not
    fit the width becomes NaN, whatever the others in the block are.

    Raises MechanismError if there is not one output per run, or the dataset was changed.
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
    limit = nullcontext() if seconds is None else ended_after(seconds, by_the_clock=True)
    try:
        with limit:
            yield
    except LateError:
        raise MechanismError(
            f"{what} did not end within {seconds:g} s. Give it more time with timeout=, or fewer "
            "runs a block."
        ) from None


@final
@dataclass(frozen=True, eq=False)
class Block:
    """One block of the test, with all that a worker needs to run it."""

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

    def count(self) -> tuple[NDArray[np.int64], bytes]:
        """Run the block; return its counts, and how its outputs begin.

        For guesses fair coins choose the dataset of every run.
        """
        rows, begins = [], b""
        sizes = side_sizes(self.rule.design, self.size, self.seed, self.key)
        for side, (dataset, size) in enumerate(zip(self.datasets, sizes, strict=True)):
            rng = generator(self.seed, *self.key, side)
            with time_limit(self.timeout, f"A block of {size} runs of {self.target.name}"):
                form = Alphabet(width=self.mixed)
                outputs = draw(self.target, dataset, size, rng, alphabet=form, width=self.width)
            misfits = int(np.isnan(outputs).all(axis=1).sum()) if form.width != self.mixed else 0
            rows.append(np.append(self.rule.histograms(outputs), misfits))
            begins = begins if side else beginning(outputs)
        return np.array(rows), begins


def side_sizes(design: Design, size: int, seed: int, key: tuple[int, ...]) -> tuple[int, int]:
    """Return how many runs of a block are made on each dataset: for guesses fair coins choose."""
    if design is not Design.GUESSES:
        return size, size
    chosen = int(generator(seed, *key, _COIN_KEY).binomial(2 * size, 0.5))
    return chosen, 2 * size - chosen


@final
@dataclass(frozen=True, eq=False)
class Blocks:
    """The runs on each side in blocks, which are made when they are needed."""

    whole: Block
    """A block of full size, whose key is the beginning of theirs."""
    runs: int

    def __len__(self) -> int:
        """Return how many blocks there are."""
        size = self.whole.size
        return (self.runs + size - 1) // size

    def __getitem__(self, index: int) -> Block:
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
    """Training runs on each side."""
    notes: tuple[str, ...]


def run(
    blocks: Blocks,
    executor: Executor | None,
    progress: Callable[[int, int], None] | None = None,
    timeout: float | None = None,
) -> NDArray[np.int64]:
    """Run every block, here or with an executor, and return the counts of all.

    Few blocks are queued at a time, and only their counts are returned, so that memory does not
    grow with the number of runs.

    Raises MechanismError if a block fails, a worker dies, no block ends in time, or two blocks
    begin with the same outputs.
    """
    waiting = iter(range(len(blocks)))
    seen: set[bytes] = set()
    histogram = np.zeros((2, blocks.whole.rule.size + 1), dtype=np.int64)
    done = 0

    def add(counted: tuple[NDArray[np.int64], bytes]) -> None:
        nonlocal histogram, done
        counts, begins = counted
        if begins and begins in seen:
            raise MechanismError(
                f"{blocks.whole.target.name} returned the same outputs in two blocks of runs: they "
                "are not independent. Does it seed a generator of its own, or does every worker "
                "get a copy of one? Use the rng that the audit gives it, or executor=None "
                "(--workers 1)."
            )
        seen.add(begins)
        histogram, done = histogram + counts, done + 1
        if progress is not None:
            progress(done, len(blocks))

    if executor is None:
        for index in waiting:
            add(blocks[index].count())
        return histogram
    _require_sendable(blocks, executor)
    running: set[Future[tuple[NDArray[np.int64], bytes]]] = set()
    most = _WAITING_PER_WORKER * _workers(executor)
    # a block may have to wait for those before it at the same worker, and the worker to start
    patience = None if timeout is None else (_WAITING_PER_WORKER + 1) * timeout + START_SECONDS
    try:
        while True:
            for index in waiting:
                running.add(executor.submit(blocks[index].count))
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


_MANY = 100
"""Equal records in a large table: partial sums of them pass several powers of two."""


def neighbours(kind: str, *, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> list[Datasets]:
    """Return pairs of neighbours of a kind of datasets.

    `count`: a dataset is an integer, neighbours differ by 1. `number`: a real true answer,
    neighbours differ by 1. `vector`: three true answers, neighbours differ by 1 in one of them or
    (as counts of one person's attributes) in several. `table`: a list of records in [0, 1],
    neighbours by adjacency. `rows`: a list of records of three numbers each.
    """
    if kind not in _KINDS:
        raise InvalidInputError(f"Unknown kind of dataset {kind!r}. {suggestion(kind, _KINDS)}")
    found = _KINDS[kind](Adjacency.read(adjacency) or Adjacency.ADD_REMOVE)
    return list({repr(pair): pair for pair in found if repr(pair[0]) != repr(pair[1])}.values())


def _counts(_: Adjacency) -> list[Datasets]:
    starts = [0, 1, 7, 127, 1000, 2**31 - 1, 2**53 - 1]
    return [(start, start + 1) for start in starts]


def _numbers(_: Adjacency) -> list[Datasets]:
    starts = [0.0, -1.0, -0.5, 0.5, 0.1, 1 / 3, 1000.0, 2.0**20 - 0.5]
    return [*((start, start + 1) for start in starts), (0.0, -0.0)]


def _vectors(_: Adjacency) -> list[Datasets]:
    pairs: list[Datasets] = []
    for x, y, z in ((0.0, 0.0, 0.0), (10.0, 10.0, 10.0), (0.0, 10.0, 20.0)):
        base = [x, y, z]
        pairs += [(base, [x + 1, y, z]), (base, [x, y, z + 1]), (base, [x + 1, y + 1, z + 1])]
        halves: Datasets = [x + 1, y, z], [x, y + 1, z + 1]
        pairs += [halves, halves[::-1]]
    return pairs


def _records(relation: Adjacency, record: Callable[[float], Any]) -> list[Datasets]:
    bases: list[list[float]] = [[], [0.0], [1.0], [0.0] * _MANY, [1.0] * _MANY]
    bases += [[0.0, 1.0], [i / 9 for i in range(10)], [0.5]]
    pairs: list[Datasets] = []
    for base in bases:
        for value in (0.0, 1.0, 0.5):
            more = [*map(record, base), record(value)]
            if relation is Adjacency.ADD_REMOVE:
                pairs.append((more[:-1], more))
            else:
                others = [other for other in (0.0, 1.0) if other != value]
                pairs += [([*more[:-1], record(other)], more) for other in others]
    return pairs


_KINDS: dict[str, Callable[[Adjacency], list[Datasets]]] = {
    "count": _counts,
    "number": _numbers,
    "vector": _vectors,
    "table": lambda relation: _records(relation, lambda value: value),
    "rows": lambda relation: _records(relation, lambda value: [value] * 3),
}


_LEAST_RUNS = 20
"""Runs on each side, some for training and some for the test."""
_PROBE = 8
"""Runs on each side that show the form of outputs."""
_TRIES = 64, 512
"""Runs with the same generator and with others that are compared: more if entropy is low."""
_LEAST_ENTROPY = 20.0
"""The entropy, in nats, that they must have: independent runs are then equal with chance 2e-9."""


@final
@dataclass(frozen=True)
class Plan:
    """What is fixed before the first run."""

    target: Target
    guarantee: Guarantee
    pairs: tuple[Datasets, ...]
    samples: int
    significance: float
    seed: int
    timeout: float | None
    claimed: bool = True
    """Whether the guarantee is claimed; else it says where ε is bounded."""
    bits: bool | None = None
    """Whether the last bits of floats are examined: not if False, and as part of the claim if
    True."""

    @staticmethod
    def of(
        mechanism: Any,
        whole: Guarantee,
        *,
        pairs: Iterable[Datasets] | None,
        samples: int,
        significance: float,
        seed: int | None,
        timeout: float | None,
        claimed: bool = True,
        bits: bool | None = None,
    ) -> Plan:
        """Check the arguments."""
        level, samples = read_significance(significance), read_count(samples)
        if not _LEAST_RUNS <= samples <= MOST_RUNS:
            bounds = f"in [{_LEAST_RUNS}, {MOST_RUNS:.0e}]"
            raise expected("samples", samples, bounds, "Training and test need some runs each.")
        listed = own_pairs(mechanism) if pairs is None else read_pairs(pairs)
        fixed = read_seed(seed)
        runs = target(mechanism)
        if isinstance(runs, MechanismTarget) and not claimed:
            runs, bits = replace(runs, simulated=True), False
        plan = Plan(runs, whole, listed, samples, level, fixed, timeout, claimed, bits)
        plan.require_enough()
        return plan

    def require_enough(self) -> None:
        """Raise where even the clearest counts could not refute the claim."""
        whole, level = self.guarantee, self.significance
        if can_refute(whole, self.samples, level):
            return
        needed = least(lambda runs: can_refute(whole, runs, level), MOST_RUNS)
        if needed is None:
            raise InvalidInputError("No number of runs can refute this claim.")
        raise InvalidInputError(
            f"Expected samples={self.samples} to be enough: even an event of probability 1 against "
            f"0 is refuted at significance {few(self.significance)} only with {needed} runs or "
            "more on each side."
        )


def can_refute(whole: Guarantee, runs: int, significance: float) -> bool:
    """Whether an event of probability 1 against 0 would refute some point of a claim."""
    counts, spared = Counts(runs, runs, 0, runs), SPARED * significance
    return any(
        p_value(counts, float(p.epsilon), float(p.delta), spared=spared) <= significance
        for p in whole.candidates()
    )


def own_pairs(mechanism: Any) -> tuple[Datasets, ...]:
    """Return the pairs that a mechanism of this package, or its attribute `pairs`, names."""
    if isinstance(mechanism, Mechanism):
        return tuple(worst_pairs(mechanism))
    listed = getattr(mechanism, "pairs", None)
    if listed is not None and not callable(listed):
        return tuple(listed)
    raise _no_pairs("")


def read_pairs(pairs: Any) -> tuple[Datasets, ...]:
    """Return a list of pairs as a tuple; InvalidInputError for anything else."""
    try:
        listed = tuple(pairs)
        fine = listed and all(not isinstance(pair, str) and len(pair) == 2 for pair in listed)
    except TypeError:  # not iterable, or an entry has no length
        fine = False
    if not fine:
        raise _no_pairs(f", not pairs={shortened(repr(pairs))}")
    return listed


def _no_pairs(given: str) -> InvalidInputError:
    return InvalidInputError(
        f"Expected pairs of neighbouring datasets{given}. Write pairs=[(dataset, neighbour)], or "
        'pairs=dpassay.verifier.audit.neighbours("table"); also "count", "number", "vector" '
        'and "rows".'
    )


def probe(plan: Plan, alphabet: Alphabet, notes: list[str]) -> int:
    """Run a few times: learn the form of an output, and whether runs follow the rng."""
    widths: list[int] = []
    worked = 0
    for index, pair in enumerate(plan.pairs[:4]):
        for side, dataset in enumerate(pair):
            for form in (Alphabet(width=alphabet.width), alphabet):
                rng = generator(plan.seed, PROBING, index, 0, side)
                try:
                    with time_limit(plan.timeout, f"{_PROBE} runs of {plan.target.name}"):
                        rows = draw(plan.target, dataset, _PROBE, rng, alphabet=form)
                except MechanismError:
                    if len(plan.pairs) == 1:
                        raise
                    continue
                worked = index if not widths else worked
                widths.append(rows.shape[1])
    if called := getattr(plan.target, "called", ""):
        notes.append(f"called as {called}")
    if widths:
        require_independent(plan, worked, alphabet, notes)
    return int(max(widths, default=1))


def require_independent(plan: Plan, index: int, alphabet: Alphabet, notes: list[str]) -> None:
    """Check on runs of a pair that other generators give other outputs; note if equal ones do.

    Raises
    ------
    MechanismError
        If other generators give the same outputs: such runs are not independent.
    """
    for runs in _TRIES:
        drawn = [
            draw(
                plan.target,
                plan.pairs[index][0],
                runs,
                generator(plan.seed, PROBING, index, key, 0),
                alphabet=Alphabet(width=alphabet.width),
            )
            for key in (1, 1, 2)
        ]
        again, other = _same(drawn[0], drawn[1]), _same(drawn[0], drawn[2])
        constant = bool((drawn[0] == drawn[0][:1]).all())
        certain = information([row.tobytes() for row in drawn[0]]) >= _LEAST_ENTROPY
        if not other or constant or certain:
            break
    if other and certain:
        raise MechanismError(
            f"{plan.target.name} returned the same outputs for different random generators: its "
            "runs are not independent. Does it seed a generator of its own, or write over the "
            "array that it returned before?"
        )
    found = ""
    if constant and again and other:
        found = (
            "64 runs gave one output: the mechanism may be deterministic on this dataset (if it "
            "keeps its answer or its seed, runs are not independent and no refutation holds)"
        )
    elif not again:
        found = NOT_REPEATABLE
    notes += [found] * (bool(found) and found not in notes)


def _same(first: Matrix, second: Matrix) -> bool:
    alike = first.shape == second.shape and np.array_equal(first, second, equal_nan=True)
    return bool(alike and np.array_equal(np.signbit(first), np.signbit(second)))


def oddities(
    first: Matrix, second: Matrix, *, mixed: bool, with_bits: bool = True
) -> Iterable[str]:
    """Yield notes on unusual training outputs: lengths, NaN, infinities, bits not examined."""
    sides = first, second
    lengths = np.unique(np.concatenate([side[:, 0] for side in sides])) if mixed else first[:0, 0]
    if len(lengths) > 1:
        yield (
            f"outputs have {len(lengths)} different lengths, {lengths[0]:g} to {lengths[-1]:g} "
            "(the length counts as part of the output)"
        )
    if not np.issubdtype(np.result_type(first, second), np.floating):
        return
    if with_bits and (said := features.bounded(first)):
        yield said
    if all(np.isfinite(side).all() for side in sides):
        return
    contain = [np.isnan(side).any(axis=1) for side in sides]
    if share := float(np.mean(np.concatenate(contain))):
        yield f"{share:.2%} of the training outputs contain NaN (it counts as a value)"
    if any(np.isinf(side).any() for side in sides):
        yield "some outputs are infinite"


_TRAINING_SHARE = 0.1
"""The share of 10⁵ runs that training takes for δ = 0."""
_SHARE_FOR_RARE = 0.2
"""The share for δ > 0: rare events take more runs to learn."""
_FULL_SHARE = 100_000
"""Runs on each side for which these are the shares."""
_SHARE_DECAY = 0.2
"""The share falls with this power of the runs, as the test gains more by them than training."""
_MOST_OFTEN = 2.0
"""If runs are few, the share grows by this factor at most."""
_LARGEST_SHARE = 0.4
"""The largest share if several pairs are trained: the test keeps more than half."""
_MOST_TRAINING = 1_000_000
"""Most training runs on each side: more take seconds, and find no better event."""
_MOST_TRAINING_ENTRIES = 12_000_000
"""Most numbers on each side, for wide outputs: 96 MB of doubles."""
_LEAST_TRAINING = 200
"""Least training runs on each side, if that is at most half of all: fewer choose by luck."""
_OF_PAIRS = 2
"""One in so many pairs goes on to the next stage of training."""


def train(plan: Plan) -> Prepared:
    """Draw training runs of the pairs, and choose a pair and its events.

    All pairs share half of the runs, the more promising half of them share half of the rest, and so
    on: the last one gets all that is left (Karnin, Koren and Somekh, "Almost optimal exploration
    in multi-armed bandits", 2013).
    """
    alphabet = Alphabet()
    notes: list[str] = []
    width = probe(plan, alphabet, notes)
    training = left = training_runs(plan, width)
    sides: dict[int, Sides] = {}
    alive, refused, stage, each = list(range(len(plan.pairs))), [], 0, 0
    while True:
        share = left if len(alive) == 1 else left // (2 * len(alive))
        share = max(share, min(training, _LEAST_TRAINING) if stage == 0 else 1)
        rules: dict[int, Chosen] = {}
        for index in alive:
            try:
                more = _sides(plan, index, stage, share, width, alphabet=alphabet)
            except MechanismError as error:
                if len(plan.pairs) == 1:
                    raise
                refused.append(f"a pair was left out: {error}")
                continue
            mixed = alphabet.width is not None
            odd = oddities(*more, mixed=mixed, with_bits=plan.bits is not False)
            notes += [note for note in odd if note not in notes]
            sides[index] = joined(sides.get(index), more)
            rules[index] = choose(
                *sides[index],
                plan.guarantee,
                runs=plan.samples - training,
                significance=plan.significance,
                values=[features.distances_to(plan.pairs[index]), *VALUES],
                bits=bits_of(plan.bits),
                shares=shares_of(plan.bits, claimed=plan.claimed),
                mixed=mixed,
            )
        if not rules:
            raise MechanismError(f"Every pair of neighbours failed; the last one: {refused[-1]}")
        stage, each, left = stage + 1, each + share, left - share * len(alive)
        ranked = sorted(rules, key=lambda index: -_predicted(rules[index], plan))
        alive = ranked[: math.ceil(len(ranked) / _OF_PAIRS)]
        if left < each * len(alive) / _OF_PAIRS:  # too few more to change much
            break
    notes += refused[:3] + ([f"{len(refused)} pairs were left out"] if len(refused) > 3 else [])
    best = ranked[0]
    if best:  # `probe` looked at the first pair
        require_independent(plan, best, alphabet, notes)
    rule = all_worded(rules[best], sides[best], alphabet.width, alphabet.names)
    fresh = plan.samples - training
    whole = Block(
        plan.target,
        plan.pairs[best],
        rule,
        width,
        alphabet.width,
        block_size(fresh, width),
        plan.seed,
        (TESTING, best),
        plan.timeout,
    )
    return Prepared(rule, best, Blocks(whole, fresh), training, tuple(notes))


def _predicted(chosen: Chosen, plan: Plan) -> float:
    """Return what a pair promises: by values, and by bits if they are part of the claim."""
    bits = chosen.bits if plan.bits else None
    return max(chosen.values.predicted, -math.inf if bits is None else bits.predicted)


def training_runs(plan: Plan, width: int) -> int:
    """Return how many runs on each side choose the event: a tenth; more for δ > 0 and vectors.

    For δ > 0 rare events are best, and take more runs to learn. More runs improve the test more
    than training, so that the share falls with the fifth root of the runs. Pairs share the training
    runs: with too few for each, the luckiest pair would be tested.
    """
    rare = plan.guarantee.profile is not None or any(p.delta > 0 for p in plan.guarantee.points)
    share = _SHARE_FOR_RARE if rare else _TRAINING_SHARE
    share *= min(_MOST_OFTEN, (_FULL_SHARE / plan.samples) ** _SHARE_DECAY)
    share = min(_LARGEST_SHARE, share * len(plan.pairs))
    if width > 1:
        share = min(0.5, max(share, 10 * math.sqrt(width / plan.samples)))
    wanted = max(share * plan.samples, min(_LEAST_TRAINING, plan.samples / 2))
    return int(min(wanted, _MOST_TRAINING, max(1000, _MOST_TRAINING_ENTRIES // width)))


def _sides(
    plan: Plan, index: int, stage: int, runs: int, width: int, *, alphabet: Alphabet
) -> Sides:
    """Draw the training runs of one pair in one stage; the alphabet learns the texts."""
    size = block_size(runs, width)
    sides: list[list[Matrix]] = [[], []]
    for side, dataset in enumerate(plan.pairs[index]):
        for number, start in enumerate(range(0, runs, size)):
            count = min(size, runs - start)
            key = (index, number, side, stage) if stage else (index, number, side)
            rng = generator(plan.seed, TRAINING, *key)
            with time_limit(plan.timeout, f"A block of {count} runs of {plan.target.name}"):
                own = Alphabet(alphabet.width, alphabet.names)
                drawn = draw(plan.target, dataset, count, rng, alphabet=own, width=width)
            sides[side].append(drawn)
    first, second = (stacked(parts) for parts in sides)
    return first, second
