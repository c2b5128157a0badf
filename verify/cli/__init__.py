"""The command line: parse, call, print, exit code.

Exit codes: 0 holds or done, 1 refuted, 2 usage or bad input, 3 undecided, 130 interrupted.
Results go to stdout, progress and errors to stderr. Nothing heavy is imported before a command
runs.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence

from accountant.errors import DpassayError
from verify.cli import (
    audit,
    calibrate,
    check,
    convert,
    demo,
    doctor,
    optimal,
    profile,
    stream,
    verify,
)
from verify.cli.optimal_shared import DrawLaws
from verify.cli.shell import Command, ExitCode, Parser, report_error, tolerant_streams

__all__ = ["Command", "ExitCode", "main"]

_DESCRIPTION = """\
Is this differential-privacy guarantee true, and how good is it?

A mechanism is written Name(argument=value, ...), for example
Gaussian(standard_deviation="1.1") or Laplace(scale="1/3"). Numbers are read exactly.
"""
_EPILOG = """\
exit codes: 0 holds or done, 1 refuted, 2 usage or bad input, 3 undecided, 130 interrupted

examples:
  dpassay demo
  dpassay verify "Gaussian(standard_deviation=3)" --epsilon 1 --delta 1e-5
  dpassay profile "Laplace(scale=2)" --epsilon 0.3 --delta 1e-6
  dpassay calibrate Gaussian --epsilon 1 --delta 1e-5
"""
_NEGATIVE = re.compile(r"-(\d|\.\d|sqrt\()")


def main(
    argv: Sequence[str] | None = None,
    *,
    plot: profile.Plot | None = None,
    laws: DrawLaws | None = None,
    commands: Sequence[Command] = (),
) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    argv
        The arguments, without the program's name; None takes those of the process.
    plot
        What `profile --plot` draws with. Drawing lives on a floor above this one, so whoever
        starts the program hands it down.
    laws
        What `optimal --plot` draws with.
    commands
        Further commands, from floors above.
    """
    tolerant_streams()
    built_in = (
        verify.COMMAND,
        audit.COMMAND,
        check.COMMAND,
        profile.command(plot),
        calibrate.COMMAND,
        convert.COMMAND,
        optimal.command(laws),
        stream.COMMAND,
        doctor.COMMAND,
        demo.COMMAND,
    )
    parser = _parser([*built_in, *commands])
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments:
        parser.print_help(sys.stderr)
        return ExitCode.USAGE
    try:
        options = _parsed(parser, joined(arguments))
        code = options.run(options)
        sys.stdout.flush()
    except SystemExit as end:  # argparse ends --help and wrong usage in this way
        return int(end.code or 0)
    except KeyboardInterrupt:
        sys.stderr.write("\ndpassay: interrupted\n")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough: dpassay … | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.BROKEN_PIPE
    except (DpassayError, OSError) as error:
        return report_error(error)
    return int(code)


def _parser(commands: Sequence[Command]) -> Parser:
    parser = Parser(prog="dpassay", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    choices = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in commands:
        own = choices.add_parser(
            command.name, help=command.help, description=command.description, epilog=command.epilog
        )
        command.configure(own)
        own.set_defaults(run=command.run)
    return parser


def _parsed(parser: Parser, arguments: list[str]) -> argparse.Namespace:
    """Parse, with KEY=VALUE allowed after options too, where argparse no longer takes it."""
    options, rest = parser.parse_known_args(arguments)
    fixed: list[str] | None = getattr(options, "fixed", None)
    if fixed is not None and not any(entry.startswith("-") for entry in rest):
        fixed += rest
    elif rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


class _Version(argparse.Action):
    """Prints the version, which is looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print and exit."""
        from importlib.metadata import version

        sys.stdout.write(f"dpassay {version('dpassay')}\n")
        parser.exit()


def joined(arguments: Sequence[str]) -> list[str]:
    """Write `--epsilon -1e-3` as `--epsilon=-1e-3`, which argparse takes for an option else.

    >>> joined(["--epsilon", "-1e-3", "--json"])
    ['--epsilon=-1e-3', '--json']
    """
    result: list[str] = []
    for argument in arguments:
        previous = result[-1] if result else ""
        if _NEGATIVE.match(argument) and previous.startswith("--") and "=" not in previous:
            result[-1] = f"{previous}={argument}"
        else:
            result.append(argument)
    return result
