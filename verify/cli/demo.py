"""`dpassay demo`: published guarantees decided, with certificates that are checked at once."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verify.cli.shell import Command, ExitCode, note, say

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
    "less-is-more/theorem-5/half-space",
    "less-is-more/abstract/lower-bounds/classic/corrected",
    "elliptical-gaussian/elliptical/guarantee",
    "elliptical-gaussian/definition-1.2/exists",
)
"""Ids of the claims that the demonstration decides."""
_NEXT = """\
Next:
  dpassay verify --all-papers            every claim of the five papers
  dpassay verify --paper less-is-more    one paper
  dpassay profile "Gaussian(standard_deviation=3)" --plot profile.png
  dpassay calibrate Gaussian --epsilon 1 --delta 1e-5
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
    _tamper(found[0][1])
    say()
    report.show_table([finding for finding, _ in found], sys.stdout)
    say(f"\n{time.monotonic() - started:.1f} s. Certificates are in {options.out}.\n\n{_NEXT}")
    return ExitCode.DONE if all(entry.valid for entry in checked) else ExitCode.REFUTED


def _decide(folder: Path) -> list[tuple[Finding, Path]]:
    """Decide the claims, show each finding, and write its certificate."""
    from verify import certificate, report
    from verify.cli.verify import ledger, selected

    claims = [
        claim
        for paper in dict.fromkeys(wanted.partition("/")[0] for wanted in SHOWN)
        for claim in ledger(paper)
        if claim.id in SHOWN
    ]
    found = []
    for claim in selected(claims, SHOWN):
        finding, data = certificate.certify(claim)
        report.show(finding, sys.stdout)
        if data is not None:
            path = folder / f"{claim.id.replace('/', '-')}.json"
            certificate.write(path, [data])
            found.append((finding, path))
        else:
            note(f"{claim.id} has no certificate")
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
    """Change the third digit of the first enclosure's lower end in place; return its path."""
    for index, fact in enumerate(facts):
        for name, value in fact.items():
            if isinstance(value, dict) and "lower" in value:
                text = value["lower"]
                at = [i for i, character in enumerate(text) if character in "123456789"][2]
                other = "8" if text[at] == "9" else "9"
                value["lower"] = text[:at] + other + text[at + 1 :]
                return f"facts[{index}].{name}.lower"
    raise ValueError("a certificate without an enclosure")


COMMAND = Command(
    "demo", "published guarantees, decided and checked", _DESCRIPTION, _EPILOG, configure, run
)
