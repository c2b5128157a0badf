"""A file that lets a stream go on after an interruption, without touching what is released."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import DpassayError, InvalidInputError

_FORMAT = "dpassay stream state"
_VERSION = 1


@final
@dataclass(frozen=True)
class Saved:
    """What is known of a stream after some of its inputs.

    `outputs` are the last ones, whose release may have been interrupted; the `delivered` ones
    before them are out. They are kept word by word, so that a release that is repeated is
    repeated identically.
    """

    record: dict[str, Any]
    """The counter behind the last output (`TreeCounter.record`)."""
    digest: str
    """Of all the inputs so far: another stream must not go on with the same noise."""
    delivered: int
    outputs: NDArray[np.float64]

    @property
    def counted(self) -> int:
        """How many inputs have come."""
        return self.delivered + len(self.outputs)


@final
class StateFile:
    """The file, locked while it is open: two runs would use the same noise for two prefixes.

    Every block of outputs is committed before it is released, in one atomic replacement of the
    file. The file holds noise and is readable for its owner only. A copy of it must not be
    continued beside it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: int | None = None

    def __enter__(self) -> StateFile:
        """Take the lock."""
        self._lock = os.open(self._beside(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._release()
            raise InvalidInputError(
                f"{self._path} is in use by another run. Two continuations would use the same "
                "noise for two different prefixes."
            ) from None
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
        body = {
            "record": saved.record,
            "digest": saved.digest,
            "delivered": saved.delivered,
            "outputs": base64.b64encode(saved.outputs.astype("<f8").tobytes()).decode("ascii"),
        }
        text = json.dumps(
            {"format": _FORMAT, "version": _VERSION, "checksum": _checksum(body), "body": body}
        )
        fresh = self._beside(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(fresh, self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def load(self) -> Saved | None:
        """Return what was committed last; None if there is no file yet.

        Raises InvalidInputError where the file is not as it was written.
        """
        try:
            text = self._path.read_text("utf-8")
        except FileNotFoundError:
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
            saved = Saved(body["record"], body["digest"], body["delivered"], outputs)
            consistent = saved.counted == body["record"]["counted"]
        except (KeyError, TypeError, ValueError, DpassayError) as error:
            raise self._corrupted("it lacks a part") from error
        if not consistent:
            raise self._corrupted("its numbers of inputs and outputs differ")
        return saved

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
