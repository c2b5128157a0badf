"""The command line: parse, call, print, exit code.

Exit codes: 0 holds or done, 1 refuted, 2 usage or bad input, 3 undecided, 70 internal error,
130 interrupted. Results go to stdout, progress and errors to stderr. No library is imported
before a command runs.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence

from dpassay.accountant.errors import DpassayError, NotApplicableError, within_floats
from dpassay.verifier.cli import (
    audit,
    calibrate,
    certify,
    check,
    convert,
    demo,
    doctor,
    optimal,
    profile,
    stream,
    training,
    verify,
)
from dpassay.verifier.cli.shell import (
    Command,
    ExitCode,
    Parser,
    discard_output,
    program,
    ready_streams,
    report_error,
    report_internal,
    tell,
)

__all__ = ["Command", "ExitCode", "main"]

_DESCRIPTION = """\
Is this differential-privacy guarantee true, and how good is it?

A mechanism is written Name(argument=value, ...), for example
Gaussian(standard_deviation="1.1") or Laplace(scale="1/3"). Numbers are exact.
"""
_EPILOG = """\
exit codes: 0 holds or done, 1 refuted, 2 usage or bad input, 3 undecided, 70 internal error,
130 interrupted

dpassay COMMAND --help has the options and examples of each.

examples:
  dpassay demo
  dpassay verify "Gaussian(standard_deviation=3) is (1, 1e-5)-DP"
  dpassay profile "Laplace(scale=2)" --epsilon 0.3 --delta 1e-6
  dpassay training --noise-multiplier 1.1 --batch 256 --size 60000 --epochs 30 --delta 1e-5
  dpassay calibrate Gaussian --epsilon 1 --delta 1e-5
"""
_NEGATIVE = re.compile(r"-(\d|\.\d|sqrt\()")


def main(
    argv: Sequence[str] | None = None,
    *,
    page: verify.WritePage | None = None,
    commands: Iterable[Command] = (),
) -> int:
    """Run one command and return its exit code.

    `argv` are the arguments without the program's name; None takes those of the process. What lies
    on floors above is handed down: what `verify --html` writes with (`page`), and further
    `commands`.
    """
    ready_streams()
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments or os.environ.get("DPASSAY_DEBUG", "0") not in ("", "0")
    try:
        try:
            with within_floats():
                return _run(arguments, page, commands)
        finally:
            sys.stdout.flush()
    except SystemExit as end:  # argparse ends --help and wrong usage in this way
        if end.code in (None, ExitCode.DONE, ExitCode.USAGE):
            return int(end.code or 0)
        return report_internal(end, debug=debug)  # 1 of a program that is audited is not ours
    except KeyboardInterrupt as stop:  # it may say how to go on
        discard_output()
        tell(f"\ndpassay: {'; '.join(['interrupted', *map(str, stop.args)])}\n")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough: dpassay … | head
        discard_output()
        return ExitCode.BROKEN_PIPE
    except (DpassayError, OSError) as error:
        discard_output()
        return report_error(error)
    except Exception as error:  # noqa: BLE001 (it must not end with the code of a refuted claim)
        discard_output()
        return report_internal(error, debug=debug)


def _run(
    arguments: Sequence[str],
    page: verify.WritePage | None,
    commands: Iterable[Command],
) -> int:
    built_in = (
        verify.command(page),
        check.COMMAND,
        certify.COMMAND,
        profile.COMMAND,
        training.COMMAND,
        calibrate.COMMAND,
        convert.COMMAND,
        optimal.COMMAND,
        stream.COMMAND,
        audit.COMMAND,
        *audit.COMMANDS,
    )
    parser = _parser([*built_in, *commands, demo.COMMAND, doctor.COMMAND])
    if not arguments:
        parser.print_help(sys.stderr)
        return ExitCode.USAGE
    options = parse(parser, joined(arguments))
    return int(options.run(options))


def _parser(commands: Sequence[Command]) -> Parser:
    parser = Parser(prog=program(), description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    parser.add_argument(
        "--print-completion",
        action=_Completion,
        choices=("bash", "zsh", "tcsh"),
        help="print a completion script for this shell",
    )
    _add_debug(parser)
    choices = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in commands:
        own = command.parser_in(choices)
        command.configure(own)
        _add_debug(own)
        own.set_defaults(parser=own)
    return parser


def _add_debug(parser: Parser) -> None:
    """Let --debug stand anywhere; `main` looks for it before anything is parsed."""
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


def parse(parser: Parser, arguments: list[str]) -> argparse.Namespace:
    """Parse, with KEY=VALUE allowed after options too, where argparse no longer takes it."""
    options: argparse.Namespace
    options, rest = parser.parse_known_args(arguments)
    fixed: list[str] | None = getattr(options, "fixed", None)
    if fixed is not None and not any(entry.startswith("-") for entry in rest):
        fixed += rest
    elif rest:
        own: Parser = getattr(options, "parser", parser)
        own.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


class _Version(argparse.Action):
    """Prints the version, which is looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print and exit."""
        from importlib.metadata import version

        sys.stdout.write(f"dpassay {version('dpassay')}\n")
        parser.exit()


class _Completion(argparse.Action):
    """Prints a shell's completion script, which the library shtab makes from the parser."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Print and exit."""
        try:
            import shtab
        except ImportError:
            raise NotApplicableError(
                "Completion needs the library shtab: pip install 'dpassay[completion]'."
            ) from None
        sys.stdout.write(f"{shtab.complete(parser, str(values))}\n")
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
