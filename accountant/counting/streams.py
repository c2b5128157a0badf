"""Streaming forms of mechanisms for continual counting: one input in, one estimate out."""

from __future__ import annotations

import base64
import errno
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, final

from dpassay.accountant import notation
from dpassay.accountant.core.arrays import ArrayLike, NDArray, np
from dpassay.accountant.core.randomness import SECURE, Randomness
from dpassay.accountant.counting.counters import (
    BridgedTree,
    LinearCounter,
    TreeCounter,
)
from dpassay.accountant.counting.grids import Grids, Tree
from dpassay.accountant.counting.noise import (
    NoiseProcess,
    NoiseSource,
    Rounding,
    finite,
    packed,
    rows,
    unpacked,
)
from dpassay.accountant.counting.square_root import (
    SquareRootFactorization,
    SquareRootNoise,
)
from dpassay.accountant.errors import DpassayError, InvalidInputError, NotApplicableError, expected

__all__ = ["Saved", "Snapshot", "StateFile", "StreamCounter", "continued", "counter_of"]


# --- The noise of a k-ary tree: a walk over the digits of the time step (Algorithm 2) -------------


@final
class TreeNoise(NoiseProcess):
    """Level i keeps the sum of the noise from the root down to its own node.

    And, while its digit is negative, the sums of the nodes it will come back through. A step
    changes level i once in kⁱ steps, so it costs amortised O(1), with at most (1 + ⌊(k−1)/2⌋) h
    numbers stored.
    """

    def __init__(self, tree: Tree, source: NoiseSource) -> None:
        self._tree, self._source, self._height = tree, source, tree.height
        self._lowest, self._highest = tree.lowest, tree.arity - 1 - tree.lowest
        self._digits = [0] * self._height
        self._values: list[Any] = [source.zero] * (self._height + 1)  # the root has no noise
        self._waiting: list[list[Any]] = [[] for _ in range(self._height)]

    def one(self) -> Any:
        """Count one up, and return the noise of the last level."""
        digits, values, draw, at = self._digits, self._values, self._source.one, 0
        while digits[at] == self._highest:
            at += 1
        digits[at] += 1
        if digits[at] > 0:
            values[at] += draw()
        else:
            values[at] = self._waiting[at].pop() if digits[at] else values[at + 1]
        for level in reversed(range(at)):
            value = values[level + 1]
            if self._lowest:  # this level will come back through all of these nodes
                row = []
                for _ in range(self._lowest):
                    value += draw()
                    row.append(value)
                value = row.pop()
                self._waiting[level] = row
            digits[level], values[level] = -self._lowest, value
        return values[0]

    @property
    def stored(self) -> int:
        """The sum of each level, and those to come back through."""
        return self._height + sum(map(len, self._waiting))

    def record(self) -> dict[str, Any]:
        """Return all sums."""
        return {
            "values": self._values[:-1],
            "waiting": [list(values) for values in self._waiting],
        }

    def resume(self, record: dict[str, Any], counted: int) -> None:
        """Go on from a record: the digits follow from the number of outputs."""
        digits = self._tree.written(counted)
        values = finite("values", record["values"], self._height)
        self._waiting = rows("waiting", record["waiting"], [max(-d - 1, 0) for d in digits])
        self._values, self._digits = [*values, self._source.zero], digits


# --- The noise of bridges, and which noise is whose -----------------------------------------------


@final
class CellNoise:
    """The noise of cells, each pooled from its own variable and those of cells in it.

    A level has the variables of the cells to come that a cell above has used already: with r = 1
    those of k_i k_{i+1} cells at most, at the start of a parent cell.

    Parameters
    ----------
    grids
        The cells, and their shares.
    draw
        Draws one variable.
    number
        Returns a share in the arithmetic of the variables.
    """

    def __init__(
        self, grids: Grids, draw: Callable[[], Any], number: Callable[[Fraction], Any]
    ) -> None:
        self._grids, self._draw, self._number = grids, draw, number
        self.used: list[list[Any]] = [[] for _ in grids.arities]

    def next(self, level: int, cells: int) -> list[Any]:
        """Return the noise of the next cells of a level."""
        if not self._grids.pooled:
            return [self._draw() for _ in range(cells)]
        sizes = self._grids.cell_sizes()
        found: list[Any] = [0] * cells
        for below in range(level, min(level + self._grids.pooled + 1, len(sizes))):
            each, used = sizes[level] // sizes[below], self.used[below]
            used += [self._draw() for _ in range(cells * each - len(used))]
            share = self._number(self._grids.share(level, below))
            for cell in range(cells):
                found[cell] += share * sum(used[cell * each : (cell + 1) * each])
        del self.used[level][:cells]
        return found

    def resume(self, used: object, counted: int) -> None:
        """Go on from the variables of a record: how many follows from the number of outputs."""
        sizes, pooled = self._grids.cell_sizes(), self._grids.pooled
        ends = [-(-counted // size) * size for size in sizes]
        lengths = [
            (ends[max(level - pooled - 1, 0)] - ends[level - 1]) // size if level else 0
            for level, size in enumerate(sizes)
        ]
        self.used = rows("used", used, lengths)


@final
class BridgeNoise(NoiseProcess):
    """The values of every level at its grid points, from one parent cell to the next.

    Level i keeps its value at the end of the current cell and at the grid points to come inside the
    parent cell, at most k_i − 1 numbers; the first level, one. A new parent cell draws k_i noise
    variables, the steps of a walk, and spreads what is missing to the known right end evenly.
    """

    def __init__(self, mechanism: BridgedTree, source: NoiseSource) -> None:
        grids = mechanism.grids
        self._arities, self._sizes = grids.arities, grids.cell_sizes()
        self._bottom, self._pooled = grids.height - 1, grids.pooled > 0
        self._source = source
        self._noise = CellNoise(grids, source.one, source.number)
        self._right: list[Any] = [source.zero] * grids.height
        self._cells_left = [0] * grids.height  # in the parent cell, behind the current one
        self._ahead: list[list[Any]] = [[] for _ in grids.arities]  # the next one is the last

    def one(self) -> Any:
        """Return the value at the next input."""
        self._advance(self._bottom)
        return self._right[self._bottom]

    def _advance(self, level: int) -> None:
        """Move to the next cell of a level."""
        if not level:
            self._right[0] += self._noise.next(0, 1)[0]
            return
        if not self._cells_left[level]:
            left = self._right[level - 1]
            self._advance(level - 1)
            self._ahead[level] = self._between(level, left, self._right[level - 1])
            self._cells_left[level] = self._arities[level]
        self._cells_left[level] -= 1
        ahead = self._ahead[level]
        self._right[level] = ahead.pop() if ahead else self._right[level - 1]

    def _between(self, level: int, left: Any, right: Any) -> list[Any]:
        """Draw the values of a level inside a parent cell, the last one first."""
        arity = self._arities[level]
        walk, at = [], left
        for noise in self._noise.next(level, arity):
            at += noise
            walk.append(at)
        slope = (right - at) / arity
        found = [value + slope * place for place, value in enumerate(walk, 1)]
        del found[-1]
        found.reverse()
        return found

    @property
    def stored(self) -> int:
        """The ends of the current cells but the last level's, which is out, and what is ahead."""
        return max(1, self._bottom) + sum(map(len, [*self._ahead, *self._noise.used]))

    def record(self) -> dict[str, Any]:
        """Return the ends, the values ahead, and the variables that a cell above has used."""
        found = {"right": list(self._right), "ahead": [list(values) for values in self._ahead]}
        return found | ({"used": self._noise.used} if self._pooled else {})

    def resume(self, record: dict[str, Any], counted: int) -> None:
        """Go on from a record: the cells that are left follow from the number of outputs."""
        height = len(self._arities)
        left = [0] * height
        for level in range(1, height):
            begun = -(-counted // self._sizes[level])
            left[level] = -begun % self._arities[level]
        self._right = finite("right", record["right"], height)
        self._ahead = rows("ahead", record["ahead"], [max(cells - 1, 0) for cells in left])
        self._cells_left = left
        if self._pooled:
            self._noise.resume(record["used"], counted)


def process(mechanism: LinearCounter, source: NoiseSource) -> NoiseProcess:
    """Return the noise process of a mechanism, at its beginning."""
    match mechanism:
        case BridgedTree():
            return BridgeNoise(mechanism, source)
        case TreeCounter():
            return TreeNoise(mechanism.tree, source)
        case SquareRootFactorization():
            return SquareRootNoise(mechanism, source)
    raise expected("mechanism", mechanism, "to count a stream")


# --- A stream of inputs counted with any mechanism for prefix sums: one in, one estimate out ------


@final
class Snapshot:
    """Where a counter stood. It is handed over, not copied: it can be restored once.

    Two continuations would use the same noise for two different prefixes, and their difference
    would show the inputs.
    """

    def __init__(self, record: dict[str, Any]) -> None:
        self._record: dict[str, Any] | None = record

    def take(self) -> dict[str, Any]:
        """Return the record, the first time."""
        if self._record is None:
            raise NotApplicableError(
                "This snapshot has been restored already. A second continuation would use the same "
                "noise for two different prefixes; take a new snapshot of the first one."
            )
        record, self._record = self._record, None
        return record


def read_inputs(block: ArrayLike, counted: int) -> NDArray[np.float64]:
    """Require one axis of numbers in [0, 1]; errors count inputs from those before the block."""
    try:
        inputs = np.asarray(block, dtype=np.float64)
    except (TypeError, ValueError):
        raise expected("block", block, "to be an array of numbers in [0, 1]") from None
    if inputs.ndim != 1:
        raise expected("block", inputs.shape, "to have one axis")
    inside = (inputs >= 0) & (inputs <= 1)
    if not inside.all():
        index = int(np.argmin(inside))
        raise expected(f"input {counted + 1 + index}", inputs[index], "in [0, 1]")
    return inputs


@final
class StreamCounter:
    """Release prefix sums of a stream in [0, 1]ⁿ: A x + L z, as its mechanism describes them.

    The noise L z comes from a process that stores little and costs amortised O(1) per output
    (that of `SquareRootFactorization` stores n numbers). An output is a multiple of one power of
    two, decided exactly (`dpassay.accountant.counting.noise`): it has the guarantee of the
    mechanism, and δ grows by nothing.

    A counter takes as many inputs as the mechanism has steps; its state is continued at most once.

    Parameters
    ----------
    mechanism
        Which factorisation, for how many steps.
    rng
        Draws the noise; a generator of NumPy can be guessed.
    """

    def __init__(self, mechanism: LinearCounter, *, rng: Randomness = SECURE) -> None:
        self._mechanism, self._rng = mechanism, rng
        self._steps = mechanism.steps
        self._rounding = Rounding(mechanism)
        self._open = True
        self._clear()

    def _clear(self) -> None:
        """Begin with no inputs and new noise."""
        self._counted = 0
        self._sum = 0  # in steps of the lattice
        self._noise = process(self._mechanism, self._rounding.source(self._rng))

    @property
    def mechanism(self) -> LinearCounter:
        """What is released."""
        return self._mechanism

    @property
    def counted(self) -> int:
        """How many inputs have come, and outputs been released."""
        return self._counted

    @property
    def step(self) -> Fraction:
        """The step of the lattice."""
        return self._rounding.step

    @property
    def stored(self) -> int:
        """How many numbers with noise in them are kept at the moment."""
        return self._noise.stored

    def update(self, x: float) -> float:
        """Take the next input, in [0, 1], and return the estimate of the sum so far."""
        if not 0 <= x <= 1:
            raise expected(f"input {self._counted + 1}", x, "in [0, 1]")
        if self._counted >= self._steps or not self._open:
            raise self._refusal(1)
        self._counted += 1
        return self._rounded([x])[0]

    def extend(self, block: ArrayLike) -> NDArray[np.float64]:
        """Take a block of inputs and return their estimates.

        Raises InvalidInputError, and then has taken none of them, if one is outside [0, 1] or
        there are more than the mechanism has steps left.
        """
        inputs = read_inputs(block, self._counted)
        if not self._open or self._counted + len(inputs) > self._steps:
            raise self._refusal(len(inputs))
        if not len(inputs):
            return np.empty(0)
        self._counted += len(inputs)
        return np.array(self._rounded(inputs.tolist()), dtype=np.float64)

    def _rounded(self, inputs: list[float]) -> list[float]:
        """Return the next outputs on the lattice."""
        found, total, one, rounding = [], self._sum, self._noise.one, self._rounding
        for x in inputs:
            total += rounding.input(x)
            found.append(rounding.output(total + rounding.noise(one())))
        self._sum = total
        return found

    def reset(self) -> None:
        """Begin a new stream, with new noise; whoever is in both streams is protected by 2ε."""
        if not self._open:
            raise self._refusal(0)
        self._clear()

    def snapshot(self) -> Snapshot:
        """Hand over to a snapshot, which `continued` takes once; this counter ends."""
        if not self._open:
            raise self._refusal(0)
        self._open = False
        return Snapshot(self.record())

    def record(self) -> dict[str, Any]:
        """Return what a continuation needs, as plain data: secret, and for one continuation.

        It holds noise. `StateFile` writes it down before the outputs it counts are released.
        """
        return {
            "mechanism": repr(self._mechanism),
            "counted": self._counted,
            "sum": self._sum,
            "noise": packed(self._noise.record()),
        }

    def _resume(self, record: dict[str, Any]) -> None:
        """Go on from a record of the same mechanism; KeyError or TypeError for another form."""
        counted, total, noise = record["counted"], record["sum"], record["noise"]
        if type(counted) is not int or not 0 <= counted <= self._steps:
            raise expected("counted", counted, f"to be an integer in 0..{self._steps}")
        if type(total) is not int or not 0 <= total * self.step <= counted:
            raise expected("sum", total, f"to be an integer in [0, {counted / self.step}]")
        if not isinstance(noise, dict):
            raise expected("noise", noise, "to be the record of a noise process")
        self._noise.resume(unpacked(noise), counted)
        self._counted, self._sum = counted, total

    def _refusal(self, wanted: int) -> InvalidInputError | NotApplicableError:
        if not self._open:
            return NotApplicableError(
                "This counter has been handed over to a snapshot. Restore that, and go on there."
            )
        return InvalidInputError(
            f"Expected at most {self._steps - self._counted} more inputs, not {wanted}: "
            f"{self.mechanism!r} was built for {self._steps}. Build it for more steps; its noise "
            "grows with their logarithm."
        )


def counter_of(mechanism: object, *, rng: Randomness = SECURE) -> StreamCounter:
    """Return a counter at its beginning.

    Its outputs are multiples of one power of two and its noise is the operating system's, so that
    neither the bits nor the noise tell about the inputs. A generator of NumPy can be guessed: that
    is for simulation.

    Raises InvalidInputError for what is not for streams.
    """
    if not isinstance(mechanism, LinearCounter):
        raise expected(
            "mechanism",
            mechanism,
            "to be for streams",
            "Known: BinaryTree, BridgedTree, KaryTree, SquareRootFactorization.",
        )
    return StreamCounter(mechanism, rng=rng)


def continued(record: dict[str, Any], *, rng: Randomness = SECURE) -> StreamCounter:
    """Continue from a record; noise that no output has used yet comes from `rng`.

    Raises InvalidInputError where it is not one that `StreamCounter.record` returns.
    """
    try:
        mechanism = notation.parse(record["mechanism"])
        counter = counter_of(mechanism, rng=rng)
        counter._resume(record)
    except KeyError as error:
        raise InvalidInputError(
            f"The record of this counter lacks {error}: it is damaged, or another version of the "
            "program wrote it. Continue with that version; a new stream costs epsilon again."
        ) from error
    except TypeError as error:
        raise InvalidInputError(f"This is not the record of a counter: {error}.") from error
    return counter


# --- A file that lets a stream go on after an interruption, without touching what is released -----

_FORMAT = "dpassay stream state"
_VERSION = 2
"""Version of the format: files of another one are refused, not guessed."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@final
@dataclass(frozen=True)
class Saved:
    """What is known of a stream after some of its inputs.

    `outputs` are the last ones, whose release may have been interrupted; the `delivered` ones
    before them are out. They are kept word by word, so that a release that is repeated is
    repeated identically.
    """

    record: dict[str, Any]
    """The counter behind the last output (`StreamCounter.record`)."""
    digest: str
    """Of all the inputs so far: another stream must not go on with the same noise."""
    delivered: int
    outputs: NDArray[np.float64]
    insecure: tuple[str, ...] = ()
    """What the stream was begun with that makes its noise or its bits tell about the inputs."""

    @property
    def counted(self) -> int:
        """How many inputs have come."""
        return self.delivered + len(self.outputs)


@final
class StateFile:
    """The file, locked while it is open: two runs would use the same noise for two prefixes.

    Every block of outputs is committed before it is released, in one atomic replacement of the
    file. It holds noise: it is made readable for its owner only, and refused where it (or its
    lock) is a link, another user's, or open to others, or where anybody can write to its folder.
    The checksum finds damage; who can write the owner's files can also make one that fits.

    The lock file remembers how often the state was committed. An older state, put back, or none
    at all is refused: going on from there would release other noise for what is out. A copy that
    is continued elsewhere cannot be noticed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: int | None = None
        self._commits = 0

    def __enter__(self) -> StateFile:
        """Take the lock.

        Raises InvalidInputError where others can reach the file, or another run has it.
        """
        folder = self._path.parent.stat()
        if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
            raise InvalidInputError(
                f"Anyone can write to {self._path.parent}. Keep the state file in a folder of "
                "your own."
            )
        self._lock = self._opened(self._beside(".lock"), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._release()
            raise InvalidInputError(
                f"{self._path} is in use by another run. Two continuations would use the same "
                "noise for two different prefixes."
            ) from None
        text = os.pread(self._lock, 32, 0).strip()
        if not text.isdigit() and text:
            self._release()
            raise InvalidInputError(f"Expected {self._beside('.lock')} to hold a number.")
        self._commits = int(text or b"0")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the lock back."""
        self._release()

    def commit(self, saved: Saved) -> None:
        """Replace the contents, durably."""
        assert self._lock is not None  # it is taken with the file
        self._commits += 1
        body = {
            "commits": self._commits,
            "insecure": list(saved.insecure),
            "record": saved.record,
            "digest": saved.digest,
            "delivered": saved.delivered,
            "outputs": base64.b64encode(saved.outputs.astype("<f8").tobytes()).decode("ascii"),
        }
        text = json.dumps(
            {"format": _FORMAT, "version": _VERSION, "checksum": _checksum(body), "body": body}
        )
        fresh = self._beside(".new")
        fresh.unlink(missing_ok=True)  # of an interrupted run
        with open(self._opened(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(fresh, self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        os.pwrite(self._lock, b"%d\n" % self._commits, 0)

    def load(self) -> Saved | None:
        """Return what was committed last; None if there is no file yet.

        Raises InvalidInputError where the file is not as it was written last.
        """
        try:
            with open(self._opened(self._path, os.O_RDONLY), encoding="utf-8") as stream:
                text = stream.read()
        except FileNotFoundError:
            if self._commits:
                raise InvalidInputError(
                    f"{self._path} is missing, and outputs of its stream were published. Another "
                    f"stream costs privacy again; to begin one, delete {self._beside('.lock')} "
                    "too."
                ) from None
            return None
        except UnicodeDecodeError as error:
            raise self._corrupted("it is not text") from error
        try:
            data = json.loads(text)
        except ValueError as error:
            raise self._corrupted("it is not JSON") from error
        if not isinstance(data, dict) or data.get("format") != _FORMAT:
            raise self._corrupted("it is not a state of a stream")
        if data.get("version") != _VERSION:
            raise InvalidInputError(
                f"{self._path} has version {data.get('version')}; this program reads {_VERSION}."
            )
        body = data.get("body")
        if not isinstance(body, dict) or data.get("checksum") != _checksum(body):
            raise self._corrupted("its checksum does not fit")
        try:
            outputs = np.frombuffer(base64.b64decode(body["outputs"]), dtype="<f8")
            insecure = tuple(body["insecure"])
            saved = Saved(body["record"], body["digest"], body["delivered"], outputs, insecure)
            commits = int(body["commits"])
            consistent = saved.counted == body["record"]["counted"]
        except (KeyError, TypeError, ValueError, DpassayError) as error:
            raise self._corrupted("it lacks a part") from error
        if not consistent:
            raise self._corrupted("its numbers of inputs and outputs differ")
        if commits < self._commits:
            raise InvalidInputError(
                f"{self._path} is an older state: it was committed {commits} times, its stream "
                f"{self._commits} times. Continuing would publish other noise for the same outputs."
            )
        self._commits = commits
        return saved

    def _opened(self, path: Path, flags: int) -> int:
        """Open a regular file of this user's own, that nobody else may read."""
        try:
            opened = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise InvalidInputError(f"{path} is a symbolic link. Name the file itself.") from None
        found = os.fstat(opened)
        own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not own or found.st_mode & _OTHERS:
            os.close(opened)
            raise InvalidInputError(
                f"Expected {path} to be a file of your own that nobody else may read or write "
                f"(chmod 600), not mode {stat.filemode(found.st_mode)} of user {found.st_uid}."
            )
        return opened

    def _corrupted(self, why: str) -> InvalidInputError:
        return InvalidInputError(
            f"The state file {self._path} is corrupted: {why}. Nothing is released. Restore the "
            "file; without it the stream cannot go on, and a new one costs epsilon again."
        )

    def _beside(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _checksum(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
