"""What the commands share: a parser, exit codes, one style of errors, JSON and streams."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NoReturn, final

from accountant.errors import DpassayError, UndecidedError


class ExitCode(IntEnum):
    """What the exit code of a command says."""

    DONE = 0
    """Done; every claim holds (or is supported, or pending)."""
    REFUTED = 1
    """A claim is refuted, or a certificate is not valid."""
    USAGE = 2
    """Wrong usage or bad input."""
    UNDECIDED = 3
    """A claim is undecided."""
    INTERRUPTED = 130
    """Interrupted; what was finished is kept."""
    BROKEN_PIPE = 141
    """Nobody reads the output any more."""


@final
@dataclass(frozen=True, slots=True)
class Command:
    """One command of the program."""

    name: str
    help: str
    """One line for the list of commands."""
    description: str
    epilog: str
    """Examples."""
    configure: Callable[[argparse.ArgumentParser], None]
    """Add the arguments."""
    run: Callable[[argparse.Namespace], int]
    """Do it, and return the exit code."""


class _Layout(argparse.RawDescriptionHelpFormatter):
    """Texts as they are written, and room for the names of options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)
        self._action_max_length = 15  # argparse forgets the indentation of the commands


class Parser(argparse.ArgumentParser):
    """A parser that keeps the layout of its texts, and reports errors in the house style."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", _Layout)
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        """Print one line and where to find help; exit with 2."""
        self.exit(ExitCode.USAGE, f"dpassay: error: {message}\nTry: {self.prog} --help\n")


def say(text: str = "") -> None:
    """Print a line of the result."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """Print a line about the run, on stderr."""
    sys.stderr.write(f"dpassay: {text}\n")


def say_json(data: object) -> None:
    """Print a result as JSON."""
    readable = (sys.stdout.encoding or "").lower().startswith("utf")
    say(json.dumps(data, indent=2, ensure_ascii=not readable))


def report_error(error: DpassayError | OSError) -> int:
    """Print an error and return the exit code."""
    if isinstance(error, UndecidedError):
        note(f"undecided: {error}")
        return ExitCode.UNDECIDED
    if isinstance(error, OSError) and error.filename is not None:
        note(f"error: {error.filename}: {error.strerror}")
    else:
        note(f"error: {error}")
    return ExitCode.USAGE


def tolerant_streams() -> None:
    """Let a terminal that cannot show ε show something else: no output is worth a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def add_output_options(parser: argparse.ArgumentParser, *, quiet: str) -> None:
    """Add --json and --quiet."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quiet", action="store_true", help=quiet)


def add_adjacency(parser: argparse.ArgumentParser) -> None:
    """Add --adjacency."""
    parser.add_argument(
        "--adjacency",
        metavar="RELATION",
        help="add-remove or replace-one; required where the guarantee depends on it",
    )
