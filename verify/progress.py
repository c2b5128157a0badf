"""Progress of a long run, on stderr: a line that is rewritten, or now and then a new line."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO, final

from dpassay.accountant.errors import one_line

_QUIET_SECONDS = 1.0
"""Seconds before anything is shown: short runs stay quiet."""
_REWRITE_SECONDS = 0.1
"""Seconds between two states on a terminal."""
_LINE_SECONDS = 10.0
"""The same in a file, where every one is a line."""
_TICK_SECONDS = 0.5
"""Seconds between two looks at the clock while one thing is computed."""
_SHOWN = 40
"""Characters of what is being done."""


@final
class Line:
    """One line of news that is rewritten on a terminal, and said now and then elsewhere."""

    def __init__(self, stream: TextIO, *, silent: bool = False) -> None:
        self._stream, self._silent = stream, silent
        self._live = stream.isatty()
        self._started = self._shown = time.monotonic()
        self._open = False

    def say(self, text: str, what: str = "") -> None:
        """Show the news, if some time has passed; `what` only where the line is rewritten."""
        now = time.monotonic()
        pause = _REWRITE_SECONDS if self._live else _LINE_SECONDS
        if self._silent or now - self._started < _QUIET_SECONDS or now - self._shown < pause:
            return
        self._shown = now
        text = f"dpassay: {text}, {now - self._started:.0f} s"
        if self._live:
            self._stream.write(f"\r\x1b[2K{text}  {one_line(what)[:_SHOWN]}")
            self._open = True
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Wipe the line."""
        if self._open:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
            self._open = False


@final
class Progress:
    """Says how many of a number of things are finished, once that takes noticeable time."""

    def __init__(
        self, total: int, stream: TextIO, *, silent: bool = False, unit: str = "claims"
    ) -> None:
        self._unit, self._total, self._done = unit, total, 0
        self._line = Line(stream, silent=silent)

    def advance(self, what: str) -> None:
        """Count one more."""
        self._done += 1
        self._line.say(f"{self._done} of {self._total} {self._unit}", what)

    def close(self) -> None:
        """Wipe the line."""
        self._line.close()


@contextmanager
def working(stream: TextIO, *, silent: bool = False) -> Iterator[None]:
    """Say on a terminal, while one thing takes time, that it goes on, and for how long."""
    if silent or not stream.isatty():
        yield
        return
    line, done = Line(stream), threading.Event()

    def tick() -> None:
        while not done.wait(_TICK_SECONDS):
            line.say("computing")

    clock = threading.Thread(target=tick, daemon=True)
    clock.start()
    try:
        yield
    finally:
        done.set()
        clock.join()
        line.close()
