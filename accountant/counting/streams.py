"""Streaming forms of mechanisms for continual counting: each input yields one estimate."""

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
from dpassay.accountant.counting.counters import BridgedTree, LinearCounter, TreeCounter
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
from dpassay.accountant.counting.square_root import SquareRootFactorization, SquareRootNoise
from dpassay.accountant.errors import DpassayError, InvalidInputError, NotApplicableError, expected

__all__ = ["Saved", "Snapshot", "StateFile", "StreamCounter", "continued", "counter_of"]


# --- The noise of a k-ary tree: a walk over the digits of the time step (Algorithm 2) -------------


@final
class TreeNoise(NoiseProcess):
    """The noise of a tree, with sums stored for each level.

    Level i stores the sum of the noise from the root down to its current node and, while its digit
    is negative, the sums at the nodes through which it will return. Level i changes once in kⁱ
    steps, so a step costs amortised O(1). At most (1 + ⌊(k−1)/2⌋) h numbers are stored.
    """

    def __init__(self, tree: Tree, source: NoiseSource) -> None:
        self._tree, self._source, self._height = tree, source, tree.height
        self._lowest, self._highest = tree.lowest, tree.arity - 1 - tree.lowest
        self._digits = [0] * self._height
        self._values: list[Any] = [source.zero] * (self._height + 1)  # the root has no noise
        self._waiting: list[list[Any]] = [[] for _ in range(self._height)]

    def one(self) -> Any:
        """Advance the digits by 1, and return the noise of the last level."""
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
            if self._lowest:  # this level will return through all of these nodes
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
        """The number of sums stored: one per level, and those to return through."""
        return self._height + sum(map(len, self._waiting))

    def record(self) -> dict[str, Any]:
        """Return all stored sums."""
        return {
            "values": self._values[:-1],
            "waiting": [list(values) for values in self._waiting],
        }

    def resume(self, record: dict[str, Any], counted: int) -> None:
        """Continue from a record; the digits follow from the number of outputs."""
        digits = self._tree.written(counted)
        values = finite("values", record["values"], self._height)
        self._waiting = rows("waiting", record["waiting"], [max(-d - 1, 0) for d in digits])
        self._values, self._digits = [*values, self._source.zero], digits


# --- The noise of bridges, and the assignment of variables to cells -------------------------------


@final
class CellNoise:
    """The noise of cells, each pooled from its own variable and those of cells in it.

    A level stores the variables of future cells that a cell above has already used. With r = 1
    these are at most the variables of k_i k_{i+1} cells, at the start of a parent cell.

    Parameters
    ----------
    grids
        The cells and their weights.
    draw
        Draws one variable.
    number
        Converts a weight to the number type of the variables.
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
        """Continue from recorded variables; their number follows from the number of outputs."""
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

    Level i stores its value at the end of the current cell and at the grid points ahead within the
    parent cell, at most k_i − 1 numbers; the first level stores one. For a new parent cell k_i
    noise variables are drawn, the steps of a walk, and the difference from the known right end is
    spread evenly over them.
    """

    def __init__(self, mechanism: BridgedTree, source: NoiseSource) -> None:
        grids = mechanism.grids
        self._arities, self._sizes = grids.arities, grids.cell_sizes()
        self._bottom, self._pooled = grids.height - 1, grids.pooled > 0
        self._source = source
        self._noise = CellNoise(grids, source.one, source.number)
        self._right: list[Any] = [source.zero] * grids.height
        self._cells_left = [0] * grids.height  # in the parent cell, after the current cell
        self._ahead: list[list[Any]] = [[] for _ in grids.arities]  # the next value is last

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
        """The number of values stored: ends of cells (but the last level's), and values ahead."""
        return max(1, self._bottom) + sum(map(len, [*self._ahead, *self._noise.used]))

    def record(self) -> dict[str, Any]:
        """Return the ends, the values ahead, and the variables already used by a cell above."""
        found = {"right": list(self._right), "ahead": [list(values) for values in self._ahead]}
        return found | ({"used": self._noise.used} if self._pooled else {})

    def resume(self, record: dict[str, Any], counted: int) -> None:
        """Continue from a record; the cells left follow from the number of outputs."""
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


# --- Counting a stream with any mechanism for prefix sums -----------------------------------------


@final
class Snapshot:
    """The state of a counter, which can be restored only once.

    Two continuations would use the same noise for two different prefixes, and the difference of
    their outputs would reveal the inputs.
    """

    def __init__(self, record: dict[str, Any]) -> None:
        self._record: dict[str, Any] | None = record

    def take(self) -> dict[str, Any]:
        """Return the record on the first call; NotApplicableError afterwards."""
        if self._record is None:
            raise NotApplicableError(
                "This snapshot has been restored already. A second continuation would use the same "
                "noise for two different prefixes; take a new snapshot of the first one."
            )
        record, self._record = self._record, None
        return record


def read_inputs(block: ArrayLike, counted: int) -> NDArray[np.float64]:
    """Return a block of inputs as doubles.

    Raises InvalidInputError unless it has one axis and values in [0, 1]. The error numbers inputs
    from the beginning of the stream.
    """
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
    """Release the prefix sums of a stream in [0, 1]ⁿ: A x + L z, as its mechanism defines them.

    The noise L z comes from a process with little storage and amortised O(1) cost per output (that
    of `SquareRootFactorization` stores n numbers). Outputs are multiples of one power of two, and
    the rounding is exact (`dpassay.accountant.counting.noise`): the release has the guarantee of
    the mechanism, without an increase of δ.

    A counter accepts as many inputs as the mechanism has steps. Its state can be continued at most
    once.

    Parameters
    ----------
    mechanism
        The factorisation, for a number of steps.
    rng
        The source of randomness. The output of a NumPy generator is predictable.
    """

    def __init__(self, mechanism: LinearCounter, *, rng: Randomness = SECURE) -> None:
        self._mechanism, self._rng = mechanism, rng
        self._steps = mechanism.steps
        self._rounding = Rounding(mechanism)
        self._open = True
        self._clear()

    def _clear(self) -> None:
        """Start without inputs, with new noise."""
        self._counted = 0
        self._sum = 0  # in steps of the lattice
        self._noise = process(self._mechanism, self._rounding.source(self._rng))

    @property
    def mechanism(self) -> LinearCounter:
        """The mechanism that is released."""
        return self._mechanism

    @property
    def counted(self) -> int:
        """The number of inputs read and outputs released so far."""
        return self._counted

    @property
    def step(self) -> Fraction:
        """The step of the lattice."""
        return self._rounding.step

    @property
    def stored(self) -> int:
        """The number of noisy values stored at present."""
        return self._noise.stored

    def update(self, x: float) -> float:
        """Read the next input, in [0, 1], and return the estimate of the sum so far."""
        if not 0 <= x <= 1:
            raise expected(f"input {self._counted + 1}", x, "in [0, 1]")
        if self._counted >= self._steps or not self._open:
            raise self._refusal(1)
        self._counted += 1
        return self._rounded([x])[0]

    def extend(self, block: ArrayLike) -> NDArray[np.float64]:
        """Read a block of inputs and return their estimates.

        Raises InvalidInputError, without reading any input, if an input is outside [0, 1] or there
        are more inputs than remaining steps.
        """
        inputs = read_inputs(block, self._counted)
        if not self._open or self._counted + len(inputs) > self._steps:
            raise self._refusal(len(inputs))
        if not len(inputs):
            return np.empty(0)
        self._counted += len(inputs)
        return np.array(self._rounded(inputs.tolist()), dtype=np.float64)

    def _rounded(self, inputs: list[float]) -> list[float]:
        """Return the next outputs, rounded to the lattice."""
        found, total, one, rounding = [], self._sum, self._noise.one, self._rounding
        for x in inputs:
            total += rounding.input(x)
            found.append(rounding.output(total + rounding.noise(one())))
        self._sum = total
        return found

    def reset(self) -> None:
        """Start a new stream with new noise. A person in both streams is protected by 2ε only."""
        if not self._open:
            raise self._refusal(0)
        self._clear()

    def snapshot(self) -> Snapshot:
        """Transfer the state to a snapshot, which can be continued once, and close the counter."""
        if not self._open:
            raise self._refusal(0)
        self._open = False
        return Snapshot(self.record())

    def record(self) -> dict[str, Any]:
        """Return the state needed to continue, as plain data. Keep it secret, and use it once.

        It contains noise. `StateFile` writes it before the outputs that it counts are released.
        """
        return {
            "mechanism": repr(self._mechanism),
            "counted": self._counted,
            "sum": self._sum,
            "noise": packed(self._noise.record()),
        }

    def _resume(self, record: dict[str, Any]) -> None:
        """Continue from a record of the same mechanism; KeyError or TypeError for another form."""
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
    """Return a counter at the beginning of its stream.

    Outputs are multiples of one power of two, and noise comes from the operating system, so neither
    the low bits nor the noise reveal the inputs. A NumPy generator is predictable, and is for
    simulation only.

    Raises InvalidInputError if the mechanism is not for streams.
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
    """Continue from a record; noise that no output has used yet is drawn from `rng`.

    Raises InvalidInputError if the record is not one of `StreamCounter.record`.
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


# --- A file with which a stream can continue after an interruption, with identical outputs --------

_FORMAT = "dpassay stream state"
_VERSION = 2
"""Version of the format; files of other versions are refused."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@final
@dataclass(frozen=True)
class Saved:
    """The state of a stream after some of its inputs.

    `outputs` are the last outputs, whose release may have been interrupted; the `delivered` outputs
    before them have been released. They are stored exactly, so that a repeated release is
    identical.
    """

    record: dict[str, Any]
    """The state of the counter after the last output (`StreamCounter.record`)."""
    digest: str
    """Digest of all inputs so far; another stream must not continue with the same noise."""
    delivered: int
    outputs: NDArray[np.float64]
    insecure: tuple[str, ...] = ()
    """Settings that make the noise predictable or let the low bits reveal the inputs."""

    @property
    def counted(self) -> int:
        """The number of inputs read."""
        return self.delivered + len(self.outputs)


@final
class StateFile:
    """The state file, locked while open: two runs would use the same noise for two prefixes.

    Every block of outputs is committed before its release, by one atomic replacement of the file.
    The file contains noise. It is created readable for its owner only. It is refused if it (or its
    lock file) is a link, belongs to another user or is accessible to others, or if anyone can write
    to its folder. The checksum detects damage, not forgery by someone who can write the owner's
    files.

    The lock file stores the number of commits. An older state that was put back, or a missing one,
    is refused: continuing from it would release other noise for outputs already released. A copy
    that is continued elsewhere cannot be detected.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: int | None = None
        self._commits = 0

    def __enter__(self) -> StateFile:
        """Take the lock.

        Raises InvalidInputError if others can access the file, or if another run has locked it.
        """
        folder = self._path.parent.stat()
        if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
            raise InvalidInputError(
                f"Anyone can write to {self._path.parent}. Keep the state file in a folder of "
                "your own."
            )
        self._lock = self._opened(self._sibling(".lock"), os.O_RDWR | os.O_CREAT)
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
            raise InvalidInputError(f"Expected {self._sibling('.lock')} to hold a number.")
        self._commits = int(text or b"0")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the lock."""
        self._release()

    def commit(self, saved: Saved) -> None:
        """Replace the contents durably."""
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
        fresh = self._sibling(".new")
        fresh.unlink(missing_ok=True)  # left by an interrupted run
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
        """Return the last committed state; None if there is no file yet.

        Raises InvalidInputError if the file is not the last one written.
        """
        try:
            with open(self._opened(self._path, os.O_RDONLY), encoding="utf-8") as stream:
                text = stream.read()
        except FileNotFoundError:
            if self._commits:
                raise InvalidInputError(
                    f"{self._path} is missing, and outputs of its stream were published. Another "
                    f"stream costs privacy again; to begin one, delete {self._sibling('.lock')} "
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
        """Open a regular file of this user that nobody else can access."""
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

    def _sibling(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _checksum(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
