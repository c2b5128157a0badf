"""`dpassay optimal`: the least noise of its kind, with proof that nothing is better."""

from __future__ import annotations

import argparse

from dpassay.verifier.cli import optimal_count, optimal_integer, optimal_local, optimal_shape
from dpassay.verifier.cli.optimal_shared import DrawLaws
from dpassay.verifier.cli.shell import Command

_DESCRIPTION = """\
Find the best noise of a kind, with a proof: a mechanism attains the upper end of the answer, and
the lower end bounds every other one.
"""
_EPILOG = """\
examples:
  dpassay optimal count-noise --epsilon 2.2 --eta 0.7 --support 12 --max-count 1000
  dpassay optimal integer-noise --epsilon 1 --delta 1e-6 --objective variance
  dpassay optimal integer-noise --ratio 3 --error-free 1/2 --objective delta --support 10
  dpassay optimal gaussian-shape "Box(bounds=[1, 2, 3])"
  dpassay optimal local --candidates 100 --epsilon 1
"""


def command(draw: DrawLaws | None) -> Command:
    """Return the command, which draws with `draw`."""
    kinds = (
        optimal_count.command(draw),
        optimal_integer.command(draw),
        optimal_shape.COMMAND,
        optimal_local.COMMAND,
    )

    def configure(parser: argparse.ArgumentParser) -> None:
        """Add the kinds of noise as commands of their own."""
        choices = parser.add_subparsers(title="kinds", metavar="KIND", required=True)
        for kind in kinds:
            own = choices.add_parser(
                kind.name, help=kind.help, description=kind.description, epilog=kind.epilog
            )
            kind.configure(own)
            own.set_defaults(run_kind=kind.run)

    return Command(
        "optimal",
        "the least noise of a kind, with proof",
        _DESCRIPTION,
        _EPILOG,
        configure,
        lambda options: int(options.run_kind(options)),
    )
