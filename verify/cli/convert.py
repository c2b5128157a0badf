"""`dpassay convert`: what a guarantee in one notion says in another."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.cli.profile import Answer, as_json, as_rows
from dpassay.verifier.cli.shell import Command, answer
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
_OPTIONS = """\
what is given (one of):
--mu M +  mu-Gaussian DP
--pure E +  epsilon-DP
--approximate E,D +  (epsilon, delta)-DP
--renyi R,V +  Renyi divergence at most V at order R > 1
--zcdp R +  rho-zCDP
what is asked (any, repeated too):
--epsilon E ...  delta at this epsilon
--delta D ...  least epsilon at this delta
--alpha A ...  least type II error at this type I error
--tpr-at-fpr, --fpr A ...  largest power at this false positive rate
--order R ...  Renyi divergence of this order
--rho ...  least rho of zCDP
--to-mu ...  least mu of Gaussian DP
"""
_HINTS = {
    "--rho": "--rho asks for rho. To give rho-zCDP: --zcdp R",
    "--to-mu": "--to-mu asks for mu. To give mu-GDP: --mu M",
    "--mu": "--mu M gives mu-GDP. To ask for mu: --to-mu",
    "--pure": "To ask for delta at an epsilon: --epsilon E",
}
_GIVEN = {
    "mu": ("M", "{}-GDP"),
    "pure": ("E", "{}-DP"),
    "approximate": ("E,D", "({}, {})-DP"),
    "renyi": ("R,V", "Renyi divergence of order {} at most {}"),
    "zcdp": ("R", "{}-zCDP"),
}
"""What can be given: its numbers, and how it is printed."""


def run(options: argparse.Namespace) -> int:
    """Convert and print."""
    from dpassay.accountant.numbers.exact import in_short

    entry, numbers = _given(options)
    rows = _ask(options, entry, numbers)
    data = {"schema_version": 1, "given": {entry.name: numbers}, **as_json(rows)}
    head = f"from {_GIVEN[entry.name][1].format(*map(in_short, numbers))}\n"
    short = "\n".join(str(value) for _, _, value in rows)
    return answer(options, data, head + columns(as_rows(rows)), quiet=short)


def _given(options: argparse.Namespace) -> tuple[Given, list[str]]:
    from dpassay.accountant.questions.convert import GIVEN

    named = [entry for entry in GIVEN if getattr(options, entry.name) is not None]
    if len(named) != 1:
        known = ", ".join(f"--{name} {numbers}" for name, (numbers, _) in _GIVEN.items())
        instead = (
            ""
            if named or options.epsilon is None
            else (
                f" For (epsilon, delta)-DP: --approximate {options.epsilon[0]},"
                f"{(options.delta or ['D'])[0]}."
            )
        )
        raise InvalidInputError(f"Expected one guarantee to convert: {known}.{instead}")
    (entry,) = named
    return entry, [str(n) for n in entry.numbers(" ".join(getattr(options, entry.name)))]


def _ask(options: argparse.Namespace, entry: Given, numbers: list[str]) -> list[Answer]:
    from dpassay.accountant.questions.convert import ASKED
    from dpassay.accountant.summary import Question

    questions = [Question(name, key=key) for name, key in ASKED.items()]
    rows: list[Answer] = [
        (question, at, entry.answer(numbers, question.key, at))
        for question in questions
        for at in getattr(options, question.name) or ()
    ]
    if not rows:
        known = ", ".join(f"--{question.name.replace('_', '-')}" for question in questions)
        raise InvalidInputError(f"Expected a question: {known}.")
    return rows


COMMAND = Command(
    "convert",
    "a guarantee in other terms: (ε, δ), μ, ρ, Rényi",
    _DESCRIPTION,
    _EPILOG,
    _OPTIONS,
    run,
    quiet="print the enclosures only, one line each",
    hints=_HINTS,
)
