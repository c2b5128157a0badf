"""A file that lets a stream go on after an interruption, without touching what is released."""

from __future__ import annotations

import base64
import errno
import fcntl
import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.errors import DpassayError, InvalidInputError

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
                f"Anybody can write to {self._path.parent}. Keep the state file in a folder of "
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
                    f"{self._path} is missing, and outputs of its stream are out. Another stream "
                    f"costs privacy again; to begin one, delete {self._beside('.lock')} too."
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
                f"{self._commits} times. Going on would release other noise for what is out."
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
