"""`dpassay convert`: what a guarantee in one notion says in another."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dpassay.verifier.cli.profile import Answer, Question, as_json, as_rows
from dpassay.verifier.cli.shell import Command, ExitCode, add_output_options, say, say_json
from dpassay.verifier.terminal import columns

if TYPE_CHECKING:
    from dpassay.accountant.questions.convert import Given

_DESCRIPTION = """\
Convert a guarantee: give one, and ask what follows from it. Every answer encloses the best
statement that follows from the guarantee alone; its safe end holds for every mechanism with the
guarantee.
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


QUESTIONS = (
    Question("epsilon", "E", "delta at this epsilon", key="delta"),
    Question("delta", "D", "least epsilon at this delta", key="epsilon"),
    Question("alpha", "A", "least type II error at this type I error", key="beta"),
    Question(
        "tpr-at-fpr", "A", "largest power at this false positive rate", key="true_positive_rate"
    ),
    Question("order", "R", "Renyi divergence of this order", key="renyi"),
    Question("rho", None, "least rho of zCDP"),
    Question("to-mu", None, "least mu of Gaussian DP", key="mu"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    given = parser.add_argument_group("what is given (one of)")
    for name, (numbers, meaning, _) in _GIVEN.items():
        given.add_argument(f"--{name}", metavar=numbers, nargs="+", help=meaning)
    asked = parser.add_argument_group("what is asked (any, repeated too)")
    for question in QUESTIONS:
        question.add_to(asked)
    add_output_options(parser, quiet="print the enclosures only, one line each")
    parser.hints = {  # type: ignore[attr-defined]  # is a `Parser`
        "--rho": "--rho asks for rho. To give rho-zCDP: --zcdp R",
        "--to-mu": "--to-mu asks for mu. To give mu-GDP: --mu M",
        "--mu": "--mu M gives mu-GDP. To ask for mu: --to-mu",
        "--pure": "To ask for delta at an epsilon: --epsilon E",
    }


def run(options: argparse.Namespace) -> int:
    """Convert and print."""
    from dpassay.accountant.numbers.exact import in_short

    entry, numbers = _given(options)
    rows = _ask(options, entry, numbers)
    if options.json:
        say_json({"schema_version": 1, "given": {entry.name: numbers}, **as_json(rows)})
    elif options.quiet:
        for answer in rows:
            say(str(answer.value))
    else:
        say(f"from {_GIVEN[entry.name][2].format(*map(in_short, numbers))}")
        say(columns(as_rows(rows)))
    return ExitCode.DONE


def _given(options: argparse.Namespace) -> tuple[Given, list[str]]:
    from dpassay.accountant.errors import InvalidInputError
    from dpassay.accountant.questions.convert import GIVEN

    named = [entry for entry in GIVEN if getattr(options, entry.name) is not None]
    if len(named) != 1:
        known = ", ".join(f"--{name} {numbers}" for name, (numbers, *_) in _GIVEN.items())
        asked = (
            ""
            if named or options.epsilon is None
            else (
                f" For (epsilon, delta)-DP: --approximate {options.epsilon[0]},"
                f"{(options.delta or ['D'])[0]}."
            )
        )
        raise InvalidInputError(f"Expected one guarantee to convert: {known}.{asked}")
    (entry,) = named
    return entry, [str(n) for n in entry.numbers(" ".join(getattr(options, entry.name)))]


def _ask(options: argparse.Namespace, entry: Given, numbers: list[str]) -> list[Answer]:
    from dpassay.accountant.errors import InvalidInputError

    rows = [
        Answer(question, at, entry.answer(numbers, question.key, at))
        for question in QUESTIONS
        for at in question.asked(options)
    ]
    if not rows:
        asked = ", ".join(f"--{question.option}" for question in QUESTIONS)
        raise InvalidInputError(f"Expected a question: {asked}.")
    return rows


COMMAND = Command(
    "convert",
    "a guarantee in other terms: (ε, δ), μ, ρ, Rényi",
    _DESCRIPTION,
    _EPILOG,
    configure,
    run,
)
