"""`dpassay optimal local`: the report of one's category with the least variance of counts."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from dpassay.verifier.cli.shell import Command, ExitCode, add_output_options, say, say_json
from dpassay.verifier.tables import columns

if TYPE_CHECKING:
    from dpassay.lp.local import LocalOptimum

_DESCRIPTION = """\
Find the report of one of K categories with the least variance of estimated counts, among all that
have no privacy loss above epsilon: a subset selection, with the dual that proves it.
"""
_EPILOG = """\
examples:
  dpassay optimal local --candidates 100 --epsilon 1
  dpassay optimal local --candidates 100 --epsilon 1 --share 0 --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    add("--candidates", metavar="K", required=True, help="number of categories")
    add("--epsilon", metavar="E", required=True, help="the largest privacy loss")
    add(
        "--share",
        metavar="S",
        help="share of people who hold the counted category (default 1/K: the average count)",
    )
    add_output_options(parser, quiet="print the mechanism only")


def run(options: argparse.Namespace) -> int:
    """Solve and print."""
    from dpassay.lp.local import optimal_local

    found = optimal_local(options.candidates, options.epsilon, options.share)
    if options.json:
        say_json(to_json(found))
    elif options.quiet:
        say(repr(found.mechanism))
    else:
        rows = [
            ("least variance of a count, per person", str(found.value)),
            ("of one who holds it", str(found.holder)),
            ("of one who does not", str(found.other)),
            ("dual: no report has a larger mean", str(found.dual)),
        ]
        say(repr(found.mechanism))
        say(columns([(f"  {name}", value) for name, value in rows]))
    return ExitCode.DONE


def to_json(found: LocalOptimum) -> dict[str, Any]:
    """Return the answer as plain data."""
    return {
        "schema_version": 1,
        "minimised": "variance",
        "share": str(found.share),
        "objective": found.value.to_json(),
        "holder": found.holder.to_json(),
        "other": found.other.to_json(),
        "dual": found.dual.to_json(),
        "mechanism": repr(found.mechanism),
    }


COMMAND = Command("local", "the best report of a category", _DESCRIPTION, _EPILOG, configure, run)
