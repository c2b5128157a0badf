"""Progress of a long run, on stderr: a line that is rewritten, or now and then a new line."""

from __future__ import annotations

import time
from typing import TextIO, final

_QUIET_SECONDS = 1.0
_REWRITE_SECONDS = 0.1
_LINE_SECONDS = 10.0
_SHOWN = 40


@final
class Progress:
    """Says how many of a number of things are finished, once that takes noticeable time."""

    def __init__(
        self, total: int, stream: TextIO, *, silent: bool = False, unit: str = "claims"
    ) -> None:
        self._unit = unit
        self._total, self._stream, self._silent = total, stream, silent
        self._live = stream.isatty()
        self._done = 0
        self._started = self._shown = time.monotonic()
        self._open_line = False

    def advance(self, what: str) -> None:
        """Count one more."""
        self._done += 1
        now = time.monotonic()
        pause = _REWRITE_SECONDS if self._live else _LINE_SECONDS
        if self._silent or now - self._started < _QUIET_SECONDS or now - self._shown < pause:
            return
        self._shown = now
        text = f"dpassay: {self._done} of {self._total} {self._unit}, {now - self._started:.0f} s"
        if self._live:
            self._stream.write(f"\r\x1b[2K{text}  {what[:_SHOWN]}")
            self._open_line = True
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Wipe the line."""
        if self._open_line:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
            self._open_line = False
