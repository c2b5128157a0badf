"""What a terminal shows: progress of a long run, tables as wide as it is."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO, final

from dpassay.accountant.errors import one_line

# --- Progress of a long run, on stderr: a line that is rewritten, or now and then a new line ------

QUIET_SECONDS = 1.0
"""Seconds before anything is shown: short runs stay quiet."""
_REWRITE_SECONDS = 0.1
"""Seconds between two states on a terminal."""
_LINE_SECONDS = 10.0
"""The same in a file, where every one is a line."""
TICK_SECONDS = 0.5
"""Seconds between two looks at the clock while one thing is computed."""
_SHOWN = 40
"""Characters of what is being done."""


@final
class Line:
    """A line of progress: rewritten on a terminal, printed now and then elsewhere."""

    def __init__(self, stream: TextIO, *, silent: bool = False) -> None:
        self._stream, self._silent = stream, silent
        self._live = stream.isatty()
        self._started = self._shown = time.monotonic()
        self._open = False

    def say(self, text: str, what: str = "") -> None:
        """Show the news, if some time has passed; `what` only where the line is rewritten."""
        now = time.monotonic()
        pause = _REWRITE_SECONDS if self._live else _LINE_SECONDS
        if self._silent or now - self._started < QUIET_SECONDS or now - self._shown < pause:
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
        while not done.wait(TICK_SECONDS):
            line.say("computing")

    clock = threading.Thread(target=tick, daemon=True)
    clock.start()
    try:
        yield
    finally:
        done.set()
        clock.join()
        line.close()


# --- One table for every list in the terminal: as wide as it is, whole words, colour where it shows
# Where nobody looks (a pipe, a file) a row is one line with all of its text, for other programs.

_GAP = "  "
_LEAST_INLINE = 36
"""Columns that a text needs to stand in its row; with less it stands on a line of its own."""
_INDENT = "    "
_MOST_LINES = 2
"""Lines of a text that stands below its row."""
_LONGEST_LABEL = 24
"""Columns of a label, with its indentation, beside which its text goes on."""
_COPIED = re.compile(r" *(?:release  |run  +|mechanism: |dpassay |\$ )")
"""How a line begins that is to be copied: the terminal breaks it, and copies it whole."""
_QUOTED = re.compile(r"`[^`]*`")
_FIXED = "\u00a0"
"""A space at which no line ends."""
_LABEL = re.compile(r" *(?:[-*] |\S+(?: \S+)*  +)?")
"""The indentation of a line, with its bullet, or its label and the gap behind it."""


@final
@dataclass(frozen=True)
class Row:
    """Short cells, which are never cut, and a text that may be."""

    cells: Sequence[str]
    text: str = ""
    below: str = ""
    """What stands on a line of its own in any case, such as the cause of a refutation."""
    style: str = ""
    """Of the first cell."""


def is_pretty(stream: TextIO) -> bool:
    """Whether the stream is a terminal that shows more than plain text."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


_CODES = {
    "bold": 1, "dim": 2, "strike": 9, "red": 31, "green": 32, "yellow": 33, "blue": 34,
    "magenta": 35, "cyan": 36, "bright_black": 90,
}  # fmt: skip


def styled(text: str, style: str, stream: TextIO) -> str:
    """Return a text in a style such as "bold red", where the stream shows any."""
    if not style or not is_pretty(stream) or os.environ.get("NO_COLOR"):
        return text
    codes = ";".join(str(_CODES[word]) for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m"


def fitted(text: str, stream: TextIO) -> str:
    """Return lines that fit the terminal: a longer one goes on below where its text began.

    Anywhere else, and for a table of several columns, the text is returned as it is.
    """
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(_hanging(line, width) for line in text.split("\n"))


def _hanging(line: str, width: int) -> str:
    label = _LABEL.match(line)[0]  # type: ignore[index]  # it matches any line
    said = line[len(label) :]
    if len(line) <= width or _GAP in said or _COPIED.match(line):
        return line
    said = _QUOTED.sub(lambda found: found[0].replace(" ", _FIXED), said)
    indent = len(label) + len(_GAP) * label.isspace()
    return textwrap.fill(
        said,
        max(width, indent + 1),
        initial_indent=label,
        subsequent_indent=" " * (indent if indent <= _LONGEST_LABEL else len(_INDENT)),
        break_long_words=False,
        break_on_hyphens=False,
    ).replace(_FIXED, " ")


def columns(rows: Sequence[Sequence[str]], *, numbers_from: int | None = None) -> str:
    """Align the cells of rows with spaces; from the column `numbers_from` on, to the right."""
    widths = _widths(rows)
    if numbers_from is not None:
        rows = [
            [*row[:numbers_from], *map(str.rjust, row[numbers_from:], widths[numbers_from:])]
            for row in rows
        ]
    return "\n".join(_line(row, widths) for row in rows)


def show(rows: Sequence[Row], stream: TextIO, *, caption: str = "") -> None:
    """Print rows: aligned on a terminal, within its width; else one line each, uncut."""
    rows = [_printable(row) for row in rows]
    if not is_pretty(stream):
        everything = [[*row.cells, *filter(None, (row.text, row.below))] for row in rows]
        short = [row.cells for row in rows]
        widths = _widths(short)
        lines = [_line(row, widths) for row in everything]
        stream.write("\n".join([*lines, *(("", caption) if caption else ())]) + "\n")
        return
    width = shutil.get_terminal_size().columns
    for line, style, faint in laid_out(rows, width):
        first, gap, rest = line.partition(_GAP)
        text = f"{styled(first, style, stream)}{gap}{rest}"
        stream.write((styled(line, "dim", stream) if faint else text) + "\n")
    if caption:
        stream.write("\n".join(["", *_wrapped(caption, width)]) + "\n")


def _printable(row: Row) -> Row:
    """Return a row whose texts stand on one line and hold nothing that a terminal obeys."""
    cells = tuple(map(one_line, row.cells))
    return Row(cells, one_line(row.text), one_line(row.below), row.style)


def laid_out(rows: Sequence[Row], width: int) -> list[tuple[str, str, bool]]:
    """Return the lines of a table of this width, each with the style of its first cell.

    The last entry of a line tells whether it is an explanation of the row above.
    """
    widths = _widths([row.cells for row in rows])
    room = width - sum(widths) - len(_GAP) * len(widths)
    fits = room >= min(_LEAST_INLINE, max((len(row.text) for row in rows), default=0))
    found: list[tuple[str, str, bool]] = []
    for row in rows:
        inline = [_cut(row.text, room)] if fits else []
        line = _line([*row.cells, *inline], widths)
        if len(line) > width:  # an id that is wider than a small window: break it at its slashes
            found += [(part, row.style * (i == 0), False) for i, part in _broken(line, width)]
        else:
            found.append((line, row.style, False))
        below = [] if fits or not row.text else [_cut(row.text, width - len(_INDENT))]
        below += _wrapped(row.below, width - len(_INDENT))
        found += [(_INDENT + part, "", True) for part in below]
    return found


def _cut(text: str, width: int) -> str:
    """Shorten a text to one line, between words where that leaves most of it."""
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    kept = text[: max(width, 1) - 1]
    words = kept.rpartition(" ")[0]
    return (words if len(words) > len(kept) / 2 else kept).rstrip() + "…"


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap between words, to a few lines that end with … where more is to say."""
    return textwrap.wrap(
        " ".join(text.split()),
        max(width, 1),
        max_lines=_MOST_LINES,
        placeholder="…",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _broken(line: str, width: int) -> list[tuple[int, str]]:
    """Break a line after blanks, slashes and hyphens only."""
    parts, current = [], ""
    for piece in re.findall(r"[^ /-]*[ /-]|[^ /-]+", line):
        if current.strip() and len((current + piece).rstrip()) > width:
            parts.append(current.rstrip())
            current = _INDENT
        current += piece
    return list(enumerate([*parts, current.rstrip()]))


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    aligned = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
    return _GAP.join([*aligned, *row[len(widths) :]]).rstrip()
