"""`dpassay check`: re-verify certificates with the independent checker."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpassay.verifier.cli.shell import Command, ExitCode, add_output_options, say, say_json

if TYPE_CHECKING:
    from dpassay.verifier.checker import Checked

_DESCRIPTION = """\
Check certificates again, by a second program with code of its own for every number.
Prints the theorem that was checked, in the checker's own words, after one of

  VALID        all that the theorem rests on was recomputed
  CONDITIONAL  what was recomputed is right; what it assumes comes first
  NOT CHECKED  it would take more than 60 s or 1 GB, or another version wrote it
  INVALID      a field is wrong, and is named

A file of several certificates ends with the exit code of the worst.
"""
_EPILOG = """\
exit codes: 0 VALID, 1 INVALID, 2 no certificate, 3 CONDITIONAL or NOT CHECKED

examples:
  dpassay verify "Laplace(scale=2)" --epsilon 0.4 --certificate claim.json
  dpassay check claim.json
  dpassay check --replay audit.json
"""
_LONGEST = 2500
"""Characters of one message."""
_REPLAY_SECONDS = 600
"""Seconds that a replay may take."""
_REPLAY_BYTES = 8 * 10**9
"""Of one replay: numpy and scikit-learn reserve some of it and use little."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", type=Path, help="a certificate, or - for a pipe")
    add(
        "--replay",
        action="store_true",
        help="draw the runs of an audit of a mechanism of this package again, and count",
    )
    add(
        "--replay-code",
        action="store_true",
        help="the same for package.module:callable: RUNS THE CODE that the certificate names",
    )
    add_output_options(parser, quiet="print nothing; the exit code says it")


def run(options: argparse.Namespace) -> int:
    """Check every certificate of every file, and show each as soon as it is checked."""
    from dpassay.verifier import seal
    from dpassay.verifier.checker import Outcome, apart

    entries, too_large = [], []
    for path in options.files:
        try:
            entries += [(path, data) for data in seal.read(path)]
        except seal.TooLargeError as error:
            too_large.append((path, str(error)))
    results = []
    found = apart.check_all(data for _, data in entries)
    for (path, data), first in zip(entries, found, strict=True):
        entry = _replayed(first, data, options) if options.replay or options.replay_code else first
        results.append((path, entry))
        if not (options.json or options.quiet):
            _show(path, entry, several=len(entries) > 1)
    for path, why in too_large:
        results.append((path, _unread(why)))
        if not (options.json or options.quiet):
            _show(*results[-1], several=len(options.files) > 1)
    if options.json:
        say_json({"schema_version": 1, "certificates": [_plain(*result) for result in results]})
    return {
        Outcome.VALID: ExitCode.DONE,
        Outcome.INVALID: ExitCode.REFUTED,
    }.get(Outcome.worst(entry.outcome for _, entry in results), ExitCode.UNDECIDED)


def _unread(why: str) -> Checked:
    from dpassay.verifier.checker import Checked

    return Checked("", "", [], [], 0.0, not_checked=why)


def _replayed(entry: Checked, data: dict[str, Any], options: argparse.Namespace) -> Checked:
    """Return what a replay adds to a check."""
    from dpassay.verifier.audit.kinds.replay import replay
    from dpassay.verifier.checker.apart import Apart
    from dpassay.verifier.kernel import check
    from dpassay.verifier.kernel.statistics import FIXED, RUNS

    if entry.problems or entry.not_checked or "target" not in data.get("theorem", ()):
        return entry
    with Apart(replay, seconds=_REPLAY_SECONDS, memory=_REPLAY_BYTES) as apart:
        found, why = apart.call((data, options.replay_code))
    if found is not None and found.problems:
        return replace(entry, problems=found.problems, theorem=None)
    if found is None or found.not_replayed:
        why = why or found.not_replayed
        given = [f"{entry.taken_as_given[0]}; not replayed: {why}"]
        return replace(entry, taken_as_given=given + entry.taken_as_given[1:])
    kept = [text for text in entry.taken_as_given if not text.startswith((RUNS, FIXED))]
    drawn = [f"{found.runs} runs were drawn again and counted: the same"]
    said = entry.theorem
    if found.any_seed and "epsilon_lower_bound" in data["theorem"]:
        said = check({**data, "theorem": {**data["theorem"], "epsilon_lower_bound": "0"}}).theorem
        drawn.append("its bound of epsilon is left out: it holds only for a seed that nobody chose")
    return replace(
        entry,
        theorem=said,
        taken_as_given=[*found.rests_on, *kept],
        recomputed=entry.recomputed + drawn,
    )


def _plain(path: Path, entry: Checked) -> dict[str, Any]:
    from dpassay.verifier.checker.outcome import safe

    return {
        "file": safe(path),
        "id": safe(entry.id),
        "outcome": entry.outcome.value,
        "theorem": None if entry.theorem is None else asdict(entry.theorem),
        "assumptions": [safe(text, _LONGEST) for text in entry.taken_as_given],
        "problems": [
            {"field": safe(field), "message": safe(message, _LONGEST)}
            for field, message in entry.problems
        ],
        "not_checked": safe(entry.not_checked),
        "recomputed": [safe(text) for text in entry.recomputed],
        "seconds": round(entry.seconds, 3),
    }


def _show(path: Path, entry: Checked, *, several: bool) -> None:
    """Print the outcome with the theorem; foreign texts stand quoted in lines of their own."""
    from dpassay.verifier.checker import Outcome
    from dpassay.verifier.checker.outcome import quoted, safe

    said = "" if entry.theorem is None else f"  {entry.theorem}"
    if entry.not_checked:
        said = f"  {safe(entry.not_checked, _LONGEST)}"
    place = f" of {safe(path)}" if several else ""
    if entry.outcome is Outcome.CONDITIONAL:
        say(entry.outcome.value)
        for given in entry.taken_as_given:
            say(f"  rests on: {safe(given, _LONGEST)}")
        say(f"  theorem:{said}")
    else:
        say(f"{entry.outcome.value}{said}")
    for field, message in entry.problems:
        say(f"  {safe(field) or 'certificate'}: {safe(message, _LONGEST)}")
    for number in entry.recomputed:
        say(f"  found again: {safe(number)}")
    say(f"  certificate{place} called {quoted(entry.id)}, {entry.seconds:.2f} s")
    sys.stdout.flush()


COMMAND = Command("check", "re-verify a certificate", _DESCRIPTION, _EPILOG, configure, run)
