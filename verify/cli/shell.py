"""What the commands share: a parser, exit codes, one style of errors, JSON and streams."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import io
import itertools
import json
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, NoReturn, final

from dpassay.accountant.errors import (
    DpassayError,
    InvalidInputError,
    UndecidedError,
    printable,
    suggestion,
)
from dpassay.verifier.terminal import fitted

_LONGEST = 500
"""Characters of an unforeseen error that are shown."""
_SUFFIXES = (".png", ".pdf", ".svg")
"""The suffixes of files that a command can draw."""

_CHOICE = re.compile(r"invalid choice: '(?P<given>.*)' \(choose from (?P<known>.*)\)", re.DOTALL)
"""The message of argparse about an unknown name."""
_TYPED = {
    "profile MECHANISM --delta D": "epsilon compute-epsilon get-epsilon",
    "profile MECHANISM --epsilon E": "delta compute-delta get-delta privacy pld hockey-stick",
    "profile MECHANISM --order R": "renyi rdp",
    "profile MECHANISM --rho": "rho zcdp",
    "profile MECHANISM --mu": "mu gdp",
    "profile MECHANISM --alpha A": "beta tradeoff trade-off fdp roc",
    "profile MECHANISM --plot FILE": "plot draw",
    'verify "Gaussian(3) is (1, 1e-5)-DP"': "claim prove decide refute",
    "training --help": "account accountant dpsgd dp-sgd train sgd opacus compute-dp-sgd-privacy",
    "calibrate NAME --epsilon E --delta D": "noise sigma solve find",
    "audit TARGET --claim E": "test attack",
    "compare WORKLOAD --epsilon E --delta D": "best choose benchmark",
    "--version": "version",
    "--help": "help",
}
_COMMANDS = {word: typed for typed, words in _TYPED.items() for word in words.split()}
"""What to type in place of an unknown command."""


class ExitCode(IntEnum):
    """What the exit code of a command says."""

    DONE = 0
    """Done; every claim holds (or is supported, or pending)."""
    REFUTED = 1
    """A claim is refuted, or a certificate is not valid."""
    USAGE = 2
    """Wrong usage or bad input."""
    UNDECIDED = 3
    """A claim is undecided."""
    INTERNAL = 70
    """An error of the program itself; `doctor` found an installation that is not sound."""
    INTERRUPTED = 130
    """Interrupted; what was finished is kept."""
    BROKEN_PIPE = 141
    """Nobody reads the output any more."""


@final
@dataclass(frozen=True, slots=True)
class Command:
    """One command of the program."""

    name: str
    help: str
    """One line for the list of commands."""
    description: str
    epilog: str
    """Examples."""
    options: str
    """The arguments, as `declare` reads them."""
    run: Callable[[argparse.Namespace], int]
    """Do it, and return the exit code."""
    quiet: str = ""
    """What --quiet does; without it there is neither --quiet nor --json."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """What to type in place of an option that is wrongly used."""
    kinds: Sequence[Command] = ()
    """Commands below this one, one of which is run."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments, and what is run with them."""
        parser.set_defaults(run=self.run)
        declare(parser, self.options)
        if self.quiet:
            declare(parser, f"--json  print JSON\n--quiet  {self.quiet}")
        if isinstance(parser, Parser):
            parser.hints = dict(self.hints)
        if self.kinds:
            choices = parser.add_subparsers(title="kinds", metavar="KIND", required=True)
            for kind in self.kinds:
                kind.configure(kind.parser_in(choices))

    def parser_in(self, choices: Any) -> Parser:
        """Return a parser of this command, one of the choices of another."""
        words = {"help": self.help, "description": self.description, "epilog": self.epilog}
        added: Parser = choices.add_parser(self.name, **words)
        return added


_SHARED = """\
--adjacency RELATION  add-remove or replace-one; required where the guarantee depends on it
--confidence C :decimal =0.95  confidence of a refutation (default 0.95)
--no-bits @  ignore the last bits of floats
"""
"""Options of several commands, which name them alone."""
_FILES = ("FILE", "FILE.csv", "DIR")


def declare(parser: argparse.ArgumentParser, text: str) -> None:
    """Add arguments from a text that reads like their help, one on a line.

    A line is `--name, --other METAVAR marks  help`, or begins with a bare name where no option is
    typed; an indented line goes on with the one before. Without a METAVAR an option is a switch; a
    FILE or a DIR is a path. The marks: `:int`, `:decimal` and `:path` say what is read, `=value`
    what stands if nothing is given, `{one,other}` what may be, `!` that it must be given, `?`, `*`
    and `+` how many values there are; `[]` lists the values of a repeated option and `...` does,
    or has None; `@` is a switch with None for neither of --name and --no-name. A line after `| `
    excludes the one before it. A line that ends with a colon is the title of a group.
    """
    shared = {line.split(" ", 1)[0]: line for line in _SHARED.splitlines()}
    whole = re.sub(r"\n +", " ", text).splitlines()
    lines = [shared.get(line, line) for line in whole if line]
    group: Any = parser
    either: Any = None
    for line, after in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        if line.endswith(":"):
            group = parser.add_argument_group(line[:-1])
            continue
        names, options = _declared(line.removeprefix("| "))
        if after.startswith("| "):
            required = bool(options.pop("required", False))
            either = group.add_mutually_exclusive_group(required=required)
        (group if either is None else either).add_argument(*names, **options)
        if not after.startswith("| "):
            either = None


def _declared(line: str) -> tuple[list[str], dict[str, Any]]:
    """Return the names of one argument, and what `add_argument` is told of it."""
    head, _, said = line.partition("  ")
    names, *words = head.replace(", ", ",").split()
    found: dict[str, Any] = {"help": said}
    metavar: list[str] = []
    for word in words:
        match word[0], word[1:]:
            case ":", kind:
                found["type"] = {"int": int, "decimal": decimal, "path": Path}[kind]
            case "=", value:
                found["default"] = value
            case "{", inside:
                found["choices"] = inside.removesuffix("}").split(",")
            case "!", "":
                found["required"] = True
            case ("?" | "*" | "+") as count, "":
                found["nargs"] = count
            case "[", "]":
                found |= {"action": "append", "default": []}
            case ".", "..":
                found["action"] = "append" if metavar else "append_const"
            case "@", "":
                is_on = not names.startswith("--no-")
                name = names.removeprefix("--no-").lstrip("-")
                found |= {"action": "store_const", "const": is_on, "dest": name}
            case _:
                metavar.append(word)
    if metavar:
        found["metavar"] = metavar[0] if len(metavar) == 1 else tuple(metavar)
        if len(metavar) > 1:
            found["nargs"] = len(metavar)
        if metavar[0] in _FILES and names.startswith("-"):
            found["type"] = Path
    elif found.get("action") == "append_const":
        found["const"] = ""
    elif "choices" not in found and "action" not in found:
        found["action"] = "store_true"
    return names.split(","), found


class _Layout(argparse.RawDescriptionHelpFormatter):
    """Wraps prose to the terminal, keeps indented lines, and leaves room for long options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)
        self._action_max_length = 15  # argparse forgets the indentation of the commands

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap each paragraph, and continue a long command before one of its options."""
        lines: list[str] = []
        whole = re.sub(r" \\\n +", " ", text).splitlines()
        for indented, group in itertools.groupby(whole, lambda line: line[:1] in " "):
            if not indented:
                lines += textwrap.wrap(" ".join(group), width, break_on_hyphens=False)
                continue
            for line in group:
                rest = line
                while len(rest) > width and (cut := rest.rfind(" --", 9, width + 1)) > 0:
                    lines.append(rest[:cut] + " \\")
                    rest = "     " + rest[cut:]
                lines.append(rest)
        return "\n".join(indent + line for line in lines)

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Wrap a help text between words only: an option's name stays whole."""
        return textwrap.wrap(
            " ".join(text.split()), width, break_long_words=False, break_on_hyphens=False
        )


class Parser(argparse.ArgumentParser):
    """A parser that keeps the layout of its texts, and whose errors say what to type instead."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", _Layout)
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)
        self._given: list[str] = []
        self.hints: dict[str, str] = {}
        """What to type in place of an option that is wrongly used."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and keep the words for `error`."""
        self._given = list(args or [])
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print what is wrong, what to type instead, and where to find help; exit with 2.

        Unknown options may be the reason why another is missing: they are named first.
        """
        given = [word.partition("=")[0] for word in self._given if word.startswith("--")]
        unknown = [word for word in given if word not in self._option_string_actions]
        if unknown and (self._subparsers is None or "required: COMMAND" in message):
            message = f"unrecognized arguments: {' '.join(unknown)}"
            hints = [self._option_meant(word) for word in unknown]
        elif choice := _CHOICE.search(message):
            message, hints = self._choice_meant(message, choice)
        else:
            named = [word for word in given if word in self.hints and word in message]
            stray = message.removeprefix("unrecognized arguments: ").split(" ")[0]
            for option, word in itertools.pairwise(self._given):
                asked = self._option_string_actions.get(option)
                if word == stray and asked is not None and asked.nargs == 0:
                    message = f"{option} takes no value here, not {word}"
                    named.append(option)
            hints = [self.hints[word] for word in named if word in self.hints]
            if message.startswith("unrecognized") and not hints:
                hints = [self.hints.get("", "")]
        said = "".join(f"\n{hint}" for hint in dict.fromkeys(hints) if hint)
        self.exit(ExitCode.USAGE, f"dpassay: error: {message}{said}\nTry: {self.prog} --help\n")

    def _option_meant(self, given: str) -> str:
        """Suggest an option for one that does not exist."""
        if given in self.hints:
            return self.hints[given]
        known = [name[2:] for a in self._actions for name in a.option_strings if len(name) > 2]
        under = [name.replace("-", "_") for name in known if name != "help"]
        near = suggestion(given[2:].replace("-", "_"), under, listed=False)
        return re.sub(r"'(\w+)'", lambda name: f"'--{name[1].replace('_', '-')}'", near)

    def _choice_meant(self, message: str, choice: re.Match[str]) -> tuple[str, list[str]]:
        """Suggest a value, or a command, for one that does not exist."""
        given, known = choice["given"], re.findall(r"[\w-]+", choice["known"])
        near = suggestion(given, known, listed=False)
        if "argument COMMAND" not in message:
            return message, [near]
        typed = _COMMANDS.get(given.lower().replace("_", "-"), "")
        if "(" in given:
            typed = f"{'verify' if ' is ' in given else 'profile'} {given!r}"
        elif given.endswith((".toml", ".json")):
            typed = f"{'verify' if given.endswith('toml') else 'check'} {given}"
        elif not typed:
            return f"invalid choice: {given!r}", [near or f"Commands: {', '.join(known)}"]
        return f"invalid choice: {given!r}", [f"Write: {self.prog} {typed}"]


def program() -> str:
    """Return how this program was started, as commands are to be typed in the same way."""
    return os.environ.get("DPASSAY_COMMAND", "dpassay")


OF_MECHANISMS = {
    "": "Numbers stand behind options (--epsilon 1 --delta 1e-5), and a claim in one pair of "
    'quotation marks: "Gaussian(3) is (1, 1e-5)-DP"',
    **dict.fromkeys(
        ("--sigma", "--scale", "--std", "--noise-multiplier", "--standard-deviation"),
        'A mechanism states its noise: "Gaussian(3)" or "Laplace(2)"',
    ),
    **dict.fromkeys(
        ("--count", "--steps", "--compositions", "--n"),
        'Several releases are one mechanism: "Composed(Gaussian(3), 10)"',
    ),
    **dict.fromkeys(
        ("--sampling-prob", "--sampling-probability", "--sample-rate", "--q"),
        'A sample is a mechanism: "PoissonSubsampled(Gaussian(1.1), 0.01)"',
    ),
    "--sensitivity": 'A mechanism states its sensitivity: "Gaussian(3, l2_sensitivity=2)"',
    "--mechanism": 'The mechanism stands without an option: "Gaussian(3)"',
}
"""What to type for an option that is an argument of the mechanism."""


def decimal(text: str) -> float:
    """Read an option that is a float, where others are read exactly: 1/100 is a number too."""
    from dpassay.accountant.numbers.exact import exact

    try:
        return float(exact(text, "it"))
    except InvalidInputError as error:
        raise argparse.ArgumentTypeError(str(error).replace("it=", "", 1)) from None


def say(text: str = "") -> None:
    """Print lines of the result, wrapped to the terminal if there is one."""
    sys.stdout.write(fitted(printable(text), sys.stdout) + "\n")


def note(text: str) -> None:
    """Print a line about the run, on stderr."""
    tell(fitted(printable(f"dpassay: {text}"), sys.stderr) + "\n")


def tell(text: str) -> None:
    """Write to stderr if anybody reads it; the exit code says the same."""
    try:
        sys.stderr.write(text)
    except BrokenPipeError:
        discard_output()


def say_json(data: object) -> None:
    """Print a result as JSON."""
    readable = (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(data, indent=2, ensure_ascii=not readable)
    sys.stdout.write(_HIDDEN_IN_JSON.sub(_in_json, text) + "\n")


def answer(
    options: argparse.Namespace, data: Mapping[str, Any], text: str, *, quiet: str = ""
) -> int:
    """Print a result in words, as JSON (--json) or in short (--quiet), and return DONE."""
    if options.json:
        say_json(data)
    elif not options.quiet:
        say(text)
    elif quiet:
        say(quiet)
    return ExitCode.DONE


def require_folders(*paths: Path | None) -> None:
    """Raise InvalidInputError, before any work, for a file whose folder does not exist."""
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise InvalidInputError(f"Cannot write {path}: there is no folder {path.parent}.")


_HIDDEN_IN_JSON = re.compile(r"[^\n -~]")


def _in_json(found: re.Match[str]) -> str:
    """Return a character of a JSON text, escaped where a terminal would obey it."""
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


def report_error(error: DpassayError | OSError) -> int:
    """Print an error and return the exit code."""
    if isinstance(error, UndecidedError):
        note(f"undecided: {error}")
        return ExitCode.UNDECIDED
    if isinstance(error, OSError) and error.filename is not None:
        note(f"error: {error.filename}: {error.strerror}")
    else:
        note(f"error: {error}")
    return ExitCode.USAGE


def report_internal(error: BaseException, *, debug: bool) -> int:
    """Print one line about an error that nobody foresaw, and return the exit code."""
    if debug:
        tell("".join(traceback.format_exception(error)))
    if isinstance(error, MemoryError):
        note("error: there is not enough memory for this. Ask for less at once.")
    elif isinstance(error, ModuleNotFoundError):
        note(f"error: {error}. Install dpassay again; `dpassay doctor` lists what is missing.")
    else:
        text = " ".join(f"{type(error).__name__} {error}".split())[:_LONGEST]
        note(
            f"internal error: {text}. Please report this on the project's page of issues, with "
            "the command that you ran; --debug shows where it happened."
        )
    return ExitCode.INTERNAL


def discard_output() -> None:
    """Discard further output: the reader has left, or the disk is full."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
            continue
        with contextlib.suppress(OSError, ValueError):  # a stream of a test has no descriptor
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


_ASCII = {
    "ε": "epsilon", "δ": "delta", "μ": "mu", "ρ": "rho", "σ": "sigma", "α": "alpha", "β": "beta",
    "≥": ">=", "≤": "<=", "±": "+-", "−": "-", "·": "*", "×": "x", "²": "^2", "√": "sqrt",
    "Σ": "sum ", "…": "...", "“": '"', "”": '"', "–": "-", "→": "->", "█": "#", "▏": "|", "é": "e",
    "∞": "inf", "≠": "!=",
}  # fmt: skip
"""What is printed in place of a letter that a terminal cannot show."""


def _plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    """Write letters in ASCII; unknown ones as escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    said = "".join(_ASCII.get(letter, letter) for letter in unknown)
    return said.encode("ascii", "backslashreplace").decode(), error.end


codecs.register_error("dpassay", _plainly)


def ready_streams() -> None:
    """Open what the caller closed (`>&-`) as if it were /dev/null, and let every text be shown.

    A terminal that cannot show ε shows something else: no output is worth a traceback. A file
    opened later must not take the place of a closed stream.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != descriptor:
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
            mode = "w" if descriptor else "r"
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="dpassay")


def checked_path(path: Path | None, draw: object) -> Path | None:
    """Return the path, after checking, before any work, that it can be drawn."""
    if path is None:
        return None
    if path.suffix.lower() not in _SUFFIXES:
        raise InvalidInputError(
            f"Expected --plot {path} to end in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}."
        )
    require_folders(path)
    if draw is None:
        raise InvalidInputError("This installation cannot draw.")
    return path
