"""What the kinds of `dpassay optimal` share: certificates, drawings, and sweeps that survive."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol, final

from accountant.errors import DpassayError, InvalidInputError
from verify.cli.shell import ExitCode, note, say, say_json

_SUFFIXES = (".png", ".pdf", ".svg")


class DrawLaws(Protocol):
    """Draws laws on integers into a file."""

    def __call__(
        self, laws: Sequence[tuple[str, int, Sequence[float]]], path: Path, *, title: str
    ) -> None:
        """Draw (label, least value, probabilities) of each law, on a logarithmic scale."""


def write_certificate(path: str, data: dict[str, Any]) -> None:
    """Seal a certificate, write it, and say so."""
    from verify import seal

    sealed = data | {"seal": seal.seal(data)}
    Path(path).write_text(json.dumps(sealed, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    note(f"certificate: {path}")


def checked_path(path: Path | None, draw: DrawLaws | None) -> Path | None:
    """Return where to draw, after checking before any work that it can be drawn there."""
    if path is None:
        return None
    if path.suffix.lower() not in _SUFFIXES:
        raise InvalidInputError(
            f"Expected --plot {path} to end in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}."
        )
    if not path.parent.is_dir():
        raise InvalidInputError(f"Cannot write {path}: there is no folder {path.parent}.")
    if draw is None:
        raise InvalidInputError("This program was started without its drawing part.")
    return path


def values(given: Sequence[str] | None) -> list[str | None]:
    """Return the values of an option that may be repeated or hold commas; None if not given.

    >>> values(["1,2", "3"])
    ['1', '2', '3']
    """
    if given is None:
        return [None]
    found = [text.strip() for entry in given for text in entry.split(",") if text.strip()]
    return [*found] or [None]


def shown(bounds: Mapping[str, str]) -> str:
    """Print an enclosure that was read from JSON."""
    from accountant.numbers.interval import Interval

    return str(Interval(Decimal(bounds["lower"]), Decimal(bounds["upper"])))


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add --out, for sweeps."""
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        help="of a sweep: add each finished cell, a line of JSON, and take finished ones from it",
    )


@final
@dataclass(frozen=True)
class Sweep:
    """All combinations of the values that some options have.

    Parameters
    ----------
    axes
        Option → its values.
    solve
        Makes the answer of a cell, as plain data with "seconds".
    shown
        Makes the line of an answer.
    """

    axes: Mapping[str, Sequence[str | None]]
    solve: Callable[[dict[str, str | None]], dict[str, Any]]
    shown: Callable[[Mapping[str, Any]], str]

    def run(self, options: argparse.Namespace, fixed: Mapping[str, object]) -> int:
        """Solve every cell that the file of finished ones does not hold; say what was found.

        A cell without an answer (an infeasible one) carries its "error". An interrupt leaves
        what was finished in the file.
        """
        from importlib.metadata import version

        from verify.progress import Progress

        stamp = {"version": version("dpassay"), "fixed": dict(fixed)}
        known = _finished(options.out, stamp)
        names = list(self.axes)
        cells = [
            dict(zip(names, entry, strict=True)) for entry in itertools.product(*self.axes.values())
        ]
        progress = Progress(len(cells), sys.stderr, silent=options.quiet, unit="cells")
        found: list[dict[str, Any]] = []
        failed = interrupted = False
        try:
            for cell in cells:
                answer = known.get(_key(cell))
                if answer is None:
                    try:
                        answer = self.solve(cell)
                    except DpassayError as error:
                        answer = {"error": str(error)}
                    _keep(options.out, stamp, cell, answer)
                failed = failed or "error" in answer
                found.append({"cell": cell, **answer})
                if not options.json:
                    said = answer["error"] if "error" in answer else self.shown(answer)
                    say("  ".join([*(f"{k}={v}" for k, v in cell.items()), said]))
                progress.advance(_key(cell))
        except KeyboardInterrupt:
            interrupted = True
        finally:
            progress.close()
        if options.json:
            say_json({"schema_version": 1, "cells": found})
        if interrupted:
            kept = "" if options.out is None else f"; kept in {options.out}"
            note(f"interrupted: {len(found)} of {len(cells)} cells are finished{kept}")
            return ExitCode.INTERRUPTED
        return ExitCode.USAGE if failed else ExitCode.DONE


def _key(cell: Mapping[str, str | None]) -> str:
    return " ".join(f"{name}={value}" for name, value in cell.items() if value is not None)


def _finished(path: Path | None, stamp: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Return the finished cells of a file; a last line that was cut off is left out."""
    if path is None or not path.exists():
        return {}
    known: dict[str, dict[str, Any]] = {}
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            if entry["stamp"] == stamp:
                known[_key(entry["cell"])] = entry["answer"]
        except (ValueError, KeyError, TypeError, AttributeError):
            if number < len(lines):
                raise InvalidInputError(
                    f"Line {number} of {path} is no finished cell. Give another --out."
                ) from None
    return known


def _keep(
    path: Path | None,
    stamp: Mapping[str, object],
    cell: Mapping[str, str | None],
    answer: Mapping[str, Any],
) -> None:
    if path is None:
        return
    text = json.dumps({"stamp": stamp, "cell": cell, "answer": answer}, ensure_ascii=False)
    whole = not path.exists() or path.read_bytes()[-1:] in (b"\n", b"")
    with path.open("a", encoding="utf-8") as stream:
        stream.write(("" if whole else "\n") + text + "\n")
