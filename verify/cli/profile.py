"""`dpassay profile`: the exact privacy and the error of a mechanism, several questions at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from dpassay.accountant.core.asking import Drawable
from dpassay.accountant.errors import DpassayError, NotApplicableError, UndecidedError
from dpassay.verifier.cli.shell import (
    OF_MECHANISMS,
    Command,
    ExitCode,
    answer,
    checked_path,
    note,
    report_error,
)
from dpassay.verifier.terminal import columns, working

if TYPE_CHECKING:
    from dpassay.accountant.core.mechanism import Mechanism
    from dpassay.accountant.numbers.interval import Interval
    from dpassay.accountant.summary import Question, Value


# --- Questions on the command line, several at once, and their answers as text and as JSON --------

Answer: TypeAlias = "tuple[Question, str, Value]"
"""What was asked, at which argument, and what came out."""


def as_json(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return one entry per question: an object, or where it was repeated a list of them.

    In a list each enclosure has its argument.
    """
    result: dict[str, Any] = {}
    for question, group in groupby(answers, key=lambda answer: answer[0]):
        found = [(argument, _plain(value)) for _, argument, value in group]
        if len(found) == 1 or not found[0][0]:
            result[question.key] = found[0][1]
        else:
            result[question.key] = [
                {question.name: argument, **plain} if isinstance(plain, dict) else plain
                for argument, plain in found
            ]
    return result


def _plain(value: Value) -> Any:
    """Return an enclosure as plain data; of several by name the first stands for all, too."""
    if isinstance(value, dict):
        named = {name: entry.to_json() for name, entry in value.items()}
        return {**next(iter(named.values())), **named}
    return [each.to_json() for each in value] if isinstance(value, list) else value.to_json()


def as_rows(answers: Sequence[Answer]) -> list[tuple[str, str, str]]:
    """Return a row for each number: what it is, where, and its digits."""
    return [
        (f"  {question.key}{which}", question.at(argument), str(entry))
        for question, argument, value in answers
        for which, entry in named(value)
    ]


def named(value: Value) -> list[tuple[str, Interval]]:
    """Return the parts of an answer; equal coordinates in a row are one, such as [0..99]."""
    if isinstance(value, dict):
        return [(f" {name.replace('_', ' ')}", entry) for name, entry in value.items()]
    if not isinstance(value, list):
        return [("", value)]
    found, first = [], 0
    for entry, run in groupby(value):
        last = first + len(list(run)) - 1
        found.append((f" [{first}]" if first == last else f" [{first}..{last}]", entry))
        first = last + 1
    return found


_DESCRIPTION = """\
Answer questions about one release of a mechanism, each with a proved enclosure. Options may be
repeated. Without a question: a table.
"""
_EPILOG = """\
examples:
  dpassay profile "Gaussian(standard_deviation=3)"
  dpassay profile "Laplace(scale=2)" --epsilon 0 --epsilon 0.3 --delta 1e-6 --json
  dpassay profile "CorrelatedGaussian(dimension=100, mu=1)" --mu --adjacency replace-one
  dpassay profile "Laplace(scale=2)" --mu --tpr-at-fpr 1e-300
  dpassay profile "Laplace(scale=2)" --absolute-quantile 0.95 --mean-absolute-error
  dpassay profile "DiscreteLaplace(scale=2)" --plot profile.pdf
  dpassay profile "Composed([Laplace(5), Gaussian(4)])" --epsilon 1 \\
      --method grid
  dpassay profile "Composed(PoissonSubsampled(Gaussian(1), 0.01), 1000)" \\
      --delta 1e-5 --adjacency add-remove
"""


_OPTIONS = """\
mechanism MECHANISM  such as 'Laplace(scale=2)'
--epsilon E ...  delta at this epsilon (any real number)
--delta D ...  least epsilon at this delta
--alpha A ...  least type II error at this type I error
--tpr-at-fpr, --fpr A ...  largest true positive rate of an attack at this false positive rate
--membership PRIOR ...  how often the best guess is right whether a record is in the data, when
    it is in with this probability
--posterior PRIOR[,A] ...  largest probability of a record being in the data after an event that
    happens with probability A or more (default 0) without it
--reconstruction K ...  bound on the success of guessing a record that is guessed without the
    release with probability at most this
--order R ...  Renyi divergence of this order
--total-variation ...  delta at epsilon 0
--mu ...  least mu of Gaussian DP, or the best bounds that are known (to claim a mu: dpassay
    verify --mu M)
--rho ...  least rho of zCDP (to claim one: dpassay verify --rho R)
--loss-cdf L ...  least probability that the privacy loss is at most this
--mse ...  mean squared error, averaged over the outputs
--mean-absolute-error ...  mean absolute error, averaged over the outputs
--quantile P ...  quantile of the noise at this probability
--absolute-quantile P ...  least error that is not exceeded with this probability
--variance ...  variance of each released coordinate
--plot FILE  draw the profile (.png, .pdf or .svg)
--relative-width W  relative width that answers must reach (default: 1e-9 or better)
--method ENGINE =auto  the engine of a composition: auto, exact, fourier or grid
--adjacency
"""
_HINTS = {
    **OF_MECHANISMS,
    "--mu": "To claim a mu: dpassay verify MECHANISM --mu M",
    "--rho": "To claim a rho: dpassay verify MECHANISM --rho R",
    "--estimate": "In Python: dpassay.estimate_epsilon(MECHANISM, delta) and its like",
}


def run(options: argparse.Namespace) -> int:
    """Ask and print."""
    from dpassay.accountant import notation, summary
    from dpassay.accountant.core.adjacency import Adjacency
    from dpassay.accountant.numbers.interval import Interval

    path = checked_path(options.plot, Drawable.drawer)
    mechanism = notation.parse(options.mechanism)
    with working(sys.stderr, silent=options.quiet):
        answers, refused = _answers(mechanism, options)
    about = {"mechanism": repr(mechanism), "adjacency": options.adjacency}
    relation = f"  ({options.adjacency})" if options.adjacency else ""
    text = f"{mechanism!r}{relation}\n{columns(as_rows(answers))}"
    short = [v if isinstance(v, list) else [n for _, n in named(v)] for _, _, v in answers]
    lines = "\n".join("  ".join(map(str, values)) for values in short)
    answer(options, {"schema_version": 1, **about, **as_json(answers)}, text, quiet=lines)
    if path is not None:
        marks = tuple(
            summary.Answer("delta", question.at(argument), value)
            for question, argument, value in answers
            if question.key == "delta" and isinstance(value, Interval)
        )
        summary.Profile(mechanism, Adjacency.read(options.adjacency), marks).plot(path)
        note(f"wrote {path}")
    return max((report_error(refusal) for refusal in refused), default=ExitCode.DONE)


def _answers(
    mechanism: Mechanism, options: argparse.Namespace
) -> tuple[list[Answer], list[DpassayError]]:
    """Ask every question that the options name, or the default ones that apply.

    Refusals come with the other answers; where there are none the first one is raised.
    """
    from dpassay.accountant.summary import QUESTIONS, USUAL

    words = {name: getattr(options, name) for name in ("adjacency", "method", "relative_width")}
    named = {q.name: given for q in QUESTIONS if (given := getattr(options, q.name))}
    answers: list[Answer] = []
    refused: list[DpassayError] = []
    for question in QUESTIONS:
        for argument in (named or USUAL).get(question.name, ()):
            parts = argument.split(",", question.name == "posterior") if argument else []
            try:
                value = question.ask(mechanism, *parts, usual=not named, **words)
            except (NotApplicableError, UndecidedError) as refusal:
                if named:
                    refused.append(refusal)
                elif options.method != "auto" and question.key == "delta":
                    raise
                continue
            # What is bounded on one side only need not be shown where it is not asked.
            if isinstance(value, list) and len({*value}) == 1:
                value = value[0]
            if named or isinstance(value, (list, dict)) or value.relative_width is not None:
                answers.append((question, argument, value))
    if refused and not answers:
        raise refused[0]
    return answers, refused


COMMAND = Command(
    "profile",
    "the exact privacy of one release",
    _DESCRIPTION,
    _EPILOG,
    _OPTIONS,
    run,
    quiet="print the enclosures only, one line each",
    hints=_HINTS,
)
