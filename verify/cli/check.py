"""`dpassay check`: re-verify certificates with the independent checker."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verify.cli.shell import Command, ExitCode, add_output_options, say, say_json

if TYPE_CHECKING:
    from verify.checker import Checked

_DESCRIPTION = """\
Check certificates again, by a second program that shares no numerical code with the first.
Prints VALID, or every field that is wrong.
"""
_EPILOG = """\
example:
  dpassay verify "Laplace(scale=2)" --epsilon 0.4 --certificate claim.json
  dpassay check claim.json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="a certificate")
    add_output_options(parser, quiet="print nothing; the exit code says it")


def run(options: argparse.Namespace) -> int:
    """Check every certificate of every file, and show each as soon as it is checked."""
    from verify import checker, seal

    entries = [(path, data) for path in options.files for data in seal.read(path)]
    results = []
    for path, data in entries:
        results.append((path, checker.check(data)))
        if not (options.json or options.quiet):
            _show(*results[-1], several=len(entries) > 1)
    if options.json:
        say_json({"schema_version": 1, "certificates": [_plain(*result) for result in results]})
    return ExitCode.DONE if all(entry.valid for _, entry in results) else ExitCode.REFUTED


def _plain(path: Path, entry: Checked) -> dict[str, Any]:
    return {
        "file": str(path),
        "id": entry.id,
        "verdict": entry.verdict,
        "valid": entry.valid,
        "problems": [{"field": field, "message": message} for field, message in entry.problems],
        "taken_as_given": list(entry.taken_as_given),
        "recomputed": list(entry.recomputed),
        "seconds": round(entry.seconds, 3),
    }


def _show(path: Path, entry: Checked, *, several: bool) -> None:
    place = f"  {path}" if several else ""
    said = f"{entry.id}: {entry.verdict}"
    say(f"{'VALID' if entry.valid else 'INVALID'}  {said}{place}  ({entry.seconds:.2f} s)")
    for field, message in entry.problems:
        say(f"  {field}: {message}")
    for number in entry.recomputed:
        say(f"  enclosed again: {number}")
    for given in entry.taken_as_given:
        say(f"  taken as given: {given}")
    sys.stdout.flush()


COMMAND = Command("check", "re-verify a certificate", _DESCRIPTION, _EPILOG, configure, run)
