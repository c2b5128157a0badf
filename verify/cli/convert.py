"""`dpassay convert`: what a guarantee in one notion says in another."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

from verify.cli.shell import Command, ExitCode, add_output_options, say, say_json
from verify.tables import columns

if TYPE_CHECKING:
    from accountant.numbers.interval import Interval
    from accountant.questions.convert import Given

_DESCRIPTION = """\
Convert a guarantee: give one, and ask what follows from it. Every answer encloses the best
statement that follows from the guarantee alone; the safe end is proved for every mechanism that
has it.
"""
_EPILOG = """\
examples:
  dpassay convert --renyi 16,0.7 --delta 1e-6
  dpassay convert --mu 1 --epsilon 1 --tpr-at-fpr 1e-300
  dpassay convert --zcdp 0.1 --delta 1e-5
  dpassay convert --approximate 1,1e-6 --alpha 0.05 --json
  dpassay convert --pure 1 --order 8 --rho --to-mu
"""
_GIVEN = {
    "mu": ("M", "mu-Gaussian DP", "{}-GDP"),
    "pure": ("E", "epsilon-DP", "{}-DP"),
    "approximate": ("E,D", "(epsilon, delta)-DP", "({}, {})-DP"),
    "renyi": (
        "R,V",
        "Renyi divergence at most V at order R > 1",
        "Renyi divergence of order {} at most {}",
    ),
    "zcdp": ("R", "rho-zCDP", "{}-zCDP"),
}
"""What can be given: its numbers, what it means, and how it is printed."""


@final
@dataclass(frozen=True)
class Question:
    """What can be asked of a guarantee."""

    option: str
    key: str
    """What is asked for."""
    metavar: str | None
    help: str

    @property
    def name(self) -> str:
        """The attribute of the parsed options."""
        return "to_" + self.option.replace("-", "_")


QUESTIONS = (
    Question("epsilon", "delta", "E", "delta at this epsilon"),
    Question("delta", "epsilon", "D", "least epsilon at this delta"),
    Question("alpha", "beta", "A", "least type II error at this type I error"),
    Question("tpr-at-fpr", "true_positive_rate", "A", "largest power at this false positive rate"),
    Question("order", "renyi", "R", "Renyi divergence of this order"),
    Question("rho", "rho", None, "least rho of zCDP"),
    Question("to-mu", "mu", None, "least mu of Gaussian DP"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    given = parser.add_argument_group("what is given (one of)")
    for name, (numbers, meaning, _) in _GIVEN.items():
        given.add_argument(f"--{name}", metavar=numbers, nargs="+", help=meaning)
    asked = parser.add_argument_group("what is asked (any, repeated too)")
    for question in QUESTIONS:
        flags = [f"--{question.option}"] + (["--fpr"] if question.option == "tpr-at-fpr" else [])
        if question.metavar is None:
            asked.add_argument(
                *flags, dest=question.name, action="append_const", const="", help=question.help
            )
        else:
            asked.add_argument(
                *flags,
                dest=question.name,
                action="append",
                metavar=question.metavar,
                help=question.help,
            )
    parser.add_argument(
        "--baselines",
        action="store_true",
        help="with --renyi and --delta: the two usual conversions too",
    )
    add_output_options(parser, quiet="print the enclosures only, one line each")
    parser.hints = {  # type: ignore[attr-defined]  # is a `Parser`
        "--rho": "--rho asks for rho. To give rho-zCDP: --zcdp R",
        "--to-mu": "--to-mu asks for mu. To give mu-GDP: --mu M",
        "--mu": "--mu M gives mu-GDP. To ask for mu: --to-mu",
        "--pure": "To ask for delta at an epsilon: --epsilon E",
    }


def run(options: argparse.Namespace) -> int:
    """Convert and print."""
    entry, numbers = _given(options)
    rows = _ask(options, entry, numbers)
    others = _others(options, entry, numbers)
    if options.json:
        say_json(_json(entry, numbers, rows, others))
    elif options.quiet:
        for _, _, value in rows:
            say(str(value))
    else:
        _show(entry, numbers, rows, others)
    return ExitCode.DONE


Row: TypeAlias = "tuple[Question, str, Interval]"


def _given(options: argparse.Namespace) -> tuple[Given, list[str]]:
    from accountant.errors import InvalidInputError
    from accountant.questions.convert import GIVEN

    named = [entry for entry in GIVEN if getattr(options, entry.name) is not None]
    if len(named) != 1:
        known = ", ".join(f"--{name} {numbers}" for name, (numbers, *_) in _GIVEN.items())
        asked = (
            ""
            if named or options.to_epsilon is None
            else (
                f" For (epsilon, delta)-DP: --approximate {options.to_epsilon[0]},"
                f"{(options.to_delta or ['D'])[0]}."
            )
        )
        raise InvalidInputError(f"Expected one guarantee to convert: {known}.{asked}")
    (entry,) = named
    return entry, [str(n) for n in entry.numbers(" ".join(getattr(options, entry.name)))]


def _ask(options: argparse.Namespace, entry: Given, numbers: list[str]) -> list[Row]:
    from accountant.errors import InvalidInputError

    rows = [
        (question, at, entry.answer(numbers, question.key, at))
        for question in QUESTIONS
        for at in getattr(options, question.name) or ()
    ]
    if not rows:
        asked = ", ".join(f"--{question.option}" for question in QUESTIONS)
        raise InvalidInputError(f"Expected a question: {asked}.")
    return rows


def _others(
    options: argparse.Namespace, entry: Given, numbers: list[str]
) -> list[tuple[str, str, Interval]]:
    from accountant.errors import InvalidInputError
    from accountant.questions import notions

    if not options.baselines:
        return []
    if entry.name != "renyi" or not options.to_delta:
        raise InvalidInputError("Expected --renyi R,V and --delta D with --baselines.")
    return [
        (name, delta, conversion(numbers[0], numbers[1], delta))
        for delta in options.to_delta
        for name, conversion in (
            ("classic", notions.classic_epsilon_of_renyi),
            ("improved", notions.improved_epsilon_of_renyi),
        )
    ]


def _json(
    entry: Given, numbers: list[str], rows: list[Row], others: list[tuple[str, str, Interval]]
) -> dict[str, Any]:
    """Return one entry per kind of question, as `profile` does."""
    result: dict[str, Any] = {"schema_version": 1, "given": {entry.name: numbers}}
    for question in QUESTIONS:
        mine = [row for row in rows if row[0] is question]
        if len(mine) == 1 or (mine and question.metavar is None):
            result[question.key] = mine[0][2].to_json()
        elif mine:
            name = question.option.replace("-", "_")
            result[question.key] = [{name: at, **value.to_json()} for _, at, value in mine]
    if others:
        result["baselines"] = [
            {"delta": delta, "name": name, "epsilon": value.to_json()}
            for name, delta, value in others
        ]
    return result


def _show(
    entry: Given, numbers: list[str], rows: list[Row], others: list[tuple[str, str, Interval]]
) -> None:
    say(f"from {_GIVEN[entry.name][2].format(*numbers)}")
    shown = [
        (f"  {question.key}", f"at {question.option} {at}" if at else "", str(value))
        for question, at, value in rows
    ]
    shown += [(f"  epsilon, {name}", f"at delta {delta}", str(v)) for name, delta, v in others]
    say(columns(shown))


COMMAND = Command(
    "convert",
    "a guarantee in other terms: (ε, δ), μ, ρ, Rényi",
    _DESCRIPTION,
    _EPILOG,
    configure,
    run,
)
