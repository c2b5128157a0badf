"""`dpassay check`: check certificates with the kernel, and draw the runs of audits again."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.cli.shell import Command, ExitCode, say, say_json

if TYPE_CHECKING:
    from dpassay.verifier.kernel import Checked

_DESCRIPTION = """\
Check certificates with a kernel that shares no code with the program that wrote them.
Prints the theorem that was proved, in the kernel's own words, after one of

  VALID        the theorem was proved
  CONDITIONAL  nothing is wrong; its further assumptions come first
  INVALID      a field is wrong, and is named

A certificate may take 60 s and 1 GB. For several certificates the exit code is that of the worst.
"""
_EPILOG = """\
exit codes: 0 VALID, 1 INVALID, 2 no certificate, 3 CONDITIONAL

examples:
  dpassay verify "Laplace(scale=2)" --epsilon 0.4 --certificate claim.json
  dpassay check claim.json
  dpassay check --trust
  dpassay check --replay audit.json
"""
_OPTIONS = """\
files FILE *  a file of certificates, or - for a pipe
--trust  print what a VALID (of FILE) rests on: files, their lines, and lemmas
--replay  draw the runs of an audit of a mechanism of this package again, and count
--replay-code  the same for package.module:callable: RUNS THE CODE that the certificate names
"""
_REPLAY_SECONDS = 600
"""Seconds that a replay may take."""
_REPLAY_BYTES = 8 * 10**9
"""Of one replay: numpy reserves some of it and uses little."""


def run(options: argparse.Namespace) -> int:
    """Check every certificate of every file, and show each as soon as it is checked."""
    from dpassay.verifier.kernel import Outcome, trust
    from dpassay.verifier.kernel.theorem import safe
    from dpassay.verifier.processes import check_all

    if not options.files:
        if options.trust:
            say(trust())
            return ExitCode.DONE
        raise InvalidInputError("Name a file of certificates, or - for a pipe.")
    entries = [(path, data) for path in options.files for data in read(path)]
    results: list[tuple[str, Checked]] = []
    found = check_all(data for _, data in entries)
    for (path, data), first in zip(entries, found, strict=True):
        replay = options.replay or options.replay_code
        entry = _replayed(first, data, options) if replay else first
        results.append((path, entry))
        if not (options.json or options.quiet):
            say(entry.report(f" of {safe(path)}" if len(options.files) > 1 else ""))
            sys.stdout.flush()
    if options.json:
        plain = [{"file": safe(path), **found.to_json()} for path, found in results]
        say_json({"schema_version": 1, "certificates": plain})
    elif options.trust and not options.quiet:
        say("\n" + trust([found for _, found in results]))
    return Outcome.worst(found.outcome for _, found in results).exit_code


def read(path: str) -> list[Any]:
    """Return the certificates of a file."""
    from dpassay.verifier.kernel.numbers import Wrong
    from dpassay.verifier.kernel.schema import content, read
    from dpassay.verifier.kernel.theorem import safe

    try:
        return read(content(path))
    except OSError as error:
        why = error.strerror or error
        raise InvalidInputError(f"Cannot read {safe(path)}: {why}.") from None
    except Wrong as error:
        raise InvalidInputError(f"{safe(path)} {safe(error.reason)}.") from None


def _replayed(found: Checked, data: Any, options: argparse.Namespace) -> Checked:
    """Return what drawing the runs of an audit again adds to a check."""
    from dpassay.verifier.audit.auditor import replay
    from dpassay.verifier.kernel import schema
    from dpassay.verifier.kernel.check import in_words
    from dpassay.verifier.kernel.numbers import Proof
    from dpassay.verifier.kernel.statistics import FIXED, RUNS
    from dpassay.verifier.processes import Limited

    if found.problems or data["theorem"]["kind"] != "audit":
        return found
    with Limited(replay, seconds=_REPLAY_SECONDS, memory=_REPLAY_BYTES) as limited:
        again, why = limited.call((data, options.replay_code))
    if again is not None and again.problems:
        return replace(found, problems=tuple(again.problems), theorem=None)
    if again is None or again.not_replayed:
        why = why or again.not_replayed
        given = [f"{found.assumptions[0]}; not replayed: {why}", *found.assumptions[1:]]
        return replace(found, assumptions=tuple(given))
    kept = [text for text in found.assumptions if not text.startswith((RUNS, FIXED))]
    numbers = {**found.numbers, "replay": f"{again.runs} runs drawn again and counted: the same"}
    said = found.theorem
    whole = dict(schema.require(data)["theorem"])
    if again.any_seed and any(name.endswith("_lower_bound") for name in whole):
        numbers["bounds"] = "left out: they hold only for a seed that was not chosen"
        without = {name: "0" for name in whole if name.endswith("_lower_bound")}
        said = in_words(whole | without, data["witness"], Proof(numbers=dict(found.numbers)))
    return replace(found, theorem=said, assumptions=(*again.rests_on, *kept), numbers=numbers)


COMMAND = Command(
    "check",
    "check certificates",
    _DESCRIPTION,
    _EPILOG,
    _OPTIONS,
    run,
    quiet="print nothing; the exit code is the answer",
)
