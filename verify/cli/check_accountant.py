"""`dpassay check-accountant`: check the epsilon of an accountant"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from dpassay.verifier.cli.shell import Command, ExitCode, say, say_json

if TYPE_CHECKING:
    from dpassay.verifier.foreign.accountants import Row
    from dpassay.verifier.verdict import Verdict

_DESCRIPTION = """\
Ask an accountant for the epsilon of training runs, and compare it with the proved one: DP-SGD with
Poisson sampling, under add-remove. An epsilon below the true one is REFUTED. If none is, that
supports the accountant on these runs, and proves nothing about others.

ACCOUNTANT is package.module:object: a function of (noise_multiplier, sampling_prob, steps, delta)
that returns epsilon, or a class with get_epsilon and with compose (dp-accounting) or history
(Opacus). It is imported and run.
"""
_EPILOG = """\
exit codes: 0 none is too small, 1 some epsilon is too small, 3 some have no answer

examples:
  dpassay check-accountant dp_accounting.pld:PLDAccountant
  dpassay check-accountant opacus.accountants:RDPAccountant
  dpassay check-accountant mine:epsilon --settings runs.csv
"""
_OPTIONS = """\
accountant ACCOUNTANT  package.module:object
--settings FILE.csv  runs to ask about: columns noise_multiplier, sampling_prob, steps, delta
"""
_CODES = {"REFUTED": ExitCode.REFUTED, "SUPPORTED": ExitCode.DONE}
_ORDER = ("REFUTED", "PENDING", "UNDECIDED", "HOLDS")


def run(options: argparse.Namespace) -> int:
    """Ask, compare and print."""
    from dpassay.verifier.audit.runs.target import named
    from dpassay.verifier.foreign import accountants
    from dpassay.verifier.terminal import Progress

    asked = accountants.SETTINGS
    if options.settings is not None:
        asked = tuple(accountants.read_settings(options.settings))
    accountant = named(options.accountant, "ACCOUNTANT to be package.module:object")
    progress = Progress(len(asked), sys.stderr, silent=options.quiet, unit="settings")
    try:
        rows = accountants.check_accountant(accountant, asked, progress=progress.advance)
    finally:
        progress.close()
    found = accountants.verdict(rows)
    if options.json:
        data = {"verdict": found.value, "rows": [row.to_dict() for row in rows]}
        say_json({"schema_version": 1, **data})
    elif options.quiet:
        say(found.value)
    else:
        _show(rows, found, options.accountant)
    return _CODES.get(found.value, ExitCode.UNDECIDED)


def _show(rows: list[Row], found: Verdict, name: str) -> None:
    """Print what is too small first, then the rest, the tightest first."""
    from dpassay.verifier import terminal

    def rank(row: Row) -> tuple[int, float]:
        return _ORDER.index(row.verdict.value), float(row.excess or 0)

    head = ("verdict", "noise", "rate", "steps", "delta", "epsilon", "true")
    lines = [terminal.Row(head, "that is")]
    for row in sorted(rows, key=rank):
        setting = row.setting
        said = "-" if row.reported is None else f"{row.reported:.6g}"
        cells = (
            row.verdict.value,
            setting.noise_multiplier,
            setting.sampling_prob,
            str(setting.steps),
            setting.delta,
            said,
            f"{row.true:.6g}",
        )
        lines.append(terminal.Row(cells, _comment(row), style=_STYLES.get(row.verdict.value, "")))
    terminal.show(lines, sys.stdout)
    bad = sum(row.verdict.value == "REFUTED" for row in rows)
    say()
    say(f"{found.value}: {name}: {bad} of {len(rows)} are below the true epsilon.")


_STYLES = {"REFUTED": "red", "HOLDS": "green"}


def _comment(row: Row) -> str:
    if row.problem:
        return row.problem
    if row.excess is None:
        return "above" if row.verdict.value == "HOLDS" else ""
    size = f"{abs(row.excess):.2%}" if abs(row.excess) >= 0.0001 else f"{abs(row.excess):.1e}"
    return f"{size} too small" if row.verdict.value == "REFUTED" else f"{size} above"


COMMAND = Command(
    "check-accountant",
    "is the epsilon of an accountant large enough?",
    _DESCRIPTION,
    _EPILOG,
    _OPTIONS,
    run,
    quiet="print the verdict only",
)
