"""`dpassay optimal check`: verify certificates of optimal integer noise again."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from accountant.errors import InvalidInputError
from verify.cli.shell import Command, ExitCode, add_output_options, say, say_json

_DESCRIPTION = """\
Check certificates of `dpassay optimal integer-noise` again, in fractions alone: the law, its
divergence and cost, and the tests that prove that nothing is better. Needs no solver.
"""
_EPILOG = """\
example:
  dpassay optimal integer-noise --epsilon 1 --delta 1e-6 --certificate noise.json
  dpassay optimal check noise.json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="a certificate")
    add_output_options(parser, quiet="print nothing; the exit code says it")


def run(options: argparse.Namespace) -> int:
    """Check every file."""
    from verify.checker.integer_noise import integer_noise_problems

    results = [(path, integer_noise_problems(_read(path))) for path in options.files]
    if options.json:
        say_json(
            {
                "schema_version": 1,
                "certificates": [
                    {
                        "file": str(path),
                        "valid": not problems,
                        "problems": [{"field": f, "message": m} for f, m in problems],
                    }
                    for path, problems in results
                ],
            }
        )
    elif not options.quiet:
        for path, problems in results:
            say(f"{'INVALID' if problems else 'VALID'}  {path}")
            for field, message in problems:
                say(f"  {field}: {message}")
    return ExitCode.REFUTED if any(problems for _, problems in results) else ExitCode.DONE


def _read(path: Path) -> dict[str, object]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidInputError(f"Expected {path} to be a JSON certificate ({error}).") from None
    if not isinstance(data, dict):
        raise InvalidInputError(f"Expected {path} to hold one certificate, an object.")
    return data


COMMAND = Command(
    "check", "verify certificates of integer noise again", _DESCRIPTION, _EPILOG, configure, run
)
