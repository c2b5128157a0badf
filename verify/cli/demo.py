"""`dpassay demo`: published guarantees decided, with certificates that are checked at once."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accountant.errors import UndecidedError
from verify.cli.shell import Command, ExitCode, say

if TYPE_CHECKING:
    from verify.verdict import Finding

_DESCRIPTION = """\
Decide a handful of published guarantees, show the evidence, write certificates, check them with
the independent checker, and show that a changed digit is found.
"""
_EPILOG = """\
example:
  dpassay demo --out certificates
"""
SHOWN = (
    "better-gaussian/theorem-3-1",
    "better-gaussian/theorem-3-1-simplified",
    "elliptical-gaussian/theorem-1",
    "count-on-your-elders/lemma-5-4",
    "count-queries/remark-2/guarantee",
    "less-is-more/theorem-5",
)
"""Ids of the claims that the demonstration decides."""
_NEXT = """\
Next:
  dpassay verify --all-papers            every claim of the five papers
  dpassay verify --paper less-is-more    one paper
  dpassay profile "Gaussian(standard_deviation=3)" --plot profile.png
  dpassay calibrate Gaussian --epsilon 1 --delta 1e-5
  dpassay compare --epsilon 1 --delta 1e-6 --workload "Counts(dimension=1000, sparsity=10)"
  dpassay figures --only less-is-more/1
  dpassay --help
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--out", type=Path, default=Path("out"), metavar="DIR", help="for certificates (out)"
    )


def run(options: argparse.Namespace) -> int:
    """Decide, show, write, check."""
    from verify import checker, report

    started = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    say("Published guarantees, decided now.\n")
    found = _decide(options.out)
    say("Each certificate is checked by a second program (mpmath only):")
    checked = [entry for _, path in found for entry in checker.check_file(path)]
    rows = [
        (f"  {'VALID' if entry.valid else 'INVALID'}", str(path), f"{entry.seconds:.2f} s")
        for (_, path), entry in zip(found, checked, strict=True)
    ]
    say(report.columns(rows))
    _tamper(found[-1][1])
    say()
    report.show_table([finding for finding, _ in found], sys.stdout)
    say(f"\n{time.monotonic() - started:.1f} s. Certificates are in {options.out}.\n\n{_NEXT}")
    return ExitCode.DONE if all(entry.valid for entry in checked) else ExitCode.REFUTED


def _decide(folder: Path) -> list[tuple[Finding, Path]]:
    """Decide the claims, show each finding, and write its certificate."""
    from verify import batch, certificate, report
    from verify.cli.verify import ledger, with_lemmas

    found = []
    for name in SHOWN:
        everything = ledger(name.partition("/")[0])
        claims = with_lemmas(everything, [name])
        outcomes = batch.concluded(claims, dict(batch.decide_all(claims, lemmas=everything)))
        outcome = next(o for i, o in outcomes.items() if claims[i].id == name)
        if outcome.finding is None or outcome.certificate is None:
            raise UndecidedError(outcome.error or f"{name} has no certificate.")
        report.show(outcome.finding, sys.stdout)
        sys.stdout.flush()
        path = folder / f"{name.replace('/', '-')}.json"
        certificate.write(path, [outcome.certificate])
        found.append((outcome.finding, path))
    return found


def _tamper(path: Path) -> None:
    """Change one digit of a certificate and show that the checker names the field."""
    from verify import checker

    changed = path.with_name(f"{path.stem}-tampered.json")
    data = json.loads(path.read_text("utf-8"))
    where = flip_a_digit(data["facts"])
    changed.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf-8")
    say(f"With one digit of {where} changed:")
    for entry in checker.check_file(changed):
        say(f"  {'VALID' if entry.valid else 'INVALID'}")
        for field, message in entry.problems:
            say(f"    {field}: {message}")


def flip_a_digit(facts: Sequence[dict[str, Any]]) -> str:
    """Change the third digit of an enclosure's lower end in place; return its path."""
    for index, fact in enumerate(facts):
        for name, value in fact.items():
            text = value["lower"] if isinstance(value, dict) and "lower" in value else ""
            at = [i for i, character in enumerate(text) if character in "123456789"]
            if len(at) > 2:
                other = "8" if text[at[2]] == "9" else "9"
                value["lower"] = text[: at[2]] + other + text[at[2] + 1 :]
                return f"facts[{index}].{name}.lower"
    raise UndecidedError("The certificate has no enclosure in which a digit could be changed.")


COMMAND = Command(
    "demo", "published guarantees, decided and checked", _DESCRIPTION, _EPILOG, configure, run
)
