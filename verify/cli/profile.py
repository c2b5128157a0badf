"""`dpassay profile`: the exact privacy and the error of a mechanism, several questions at once."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, final

from verify.cli.shell import (
    Command,
    ExitCode,
    add_adjacency,
    add_output_options,
    checked_path,
    note,
    report_error,
    say,
    say_json,
)
from verify.tables import columns

if TYPE_CHECKING:
    from accountant.baselines import Row
    from accountant.core.mechanism import Mechanism
    from accountant.errors import DpassayError
    from accountant.numbers.interval import Interval

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
  dpassay profile "Composed(Laplace(scale=10), count=100)" --delta 1e-5 --baselines
  dpassay profile "Gaussian(standard_deviation=3)" --export profile.csv --epsilons 0:5:51
  dpassay profile "Composed([Laplace(5), Gaussian(4)])" --epsilon 1 \\
      --method grid
  dpassay profile "Composed(PoissonSubsampled(Gaussian(1), 0.01), 1000)" \\
      --delta 1e-5 --adjacency add-remove --estimate
"""
Value: TypeAlias = "Interval | list[Interval] | dict[str, Interval]"
"""One enclosure, one for each coordinate, or several by name."""
Ask: TypeAlias = "Callable[[Mechanism, str, How], Value]"


class Plot(Protocol):
    """Draws a profile into a file."""

    def __call__(
        self,
        mechanism: Mechanism,
        path: Path,
        *,
        adjacency: str | None,
        marks: Sequence[tuple[str, Interval]],
        estimated: bool,
    ) -> None:
        """Draw δ(ε); `marks` are the points (ε, δ) that were asked for."""


@final
@dataclass(frozen=True)
class How:
    """The neighbouring relation, the engine of δ, ε, trade-offs and total variation, the width."""

    adjacency: str | None
    method: str = "auto"
    relative_width: str | None = None

    def words(self, *, engine: bool = True) -> dict[str, Any]:
        """Return the arguments of a question, of one without engines as well."""
        given = {"adjacency": self.adjacency, "relative_width": self.relative_width}
        return {**given, "method": self.method} if engine else given


@final
@dataclass(frozen=True)
class Question:
    """One kind of question."""

    option: str
    """The option without its dashes; also the name of the argument of the question."""
    key: str
    """The name of the answer."""
    ask: Ask
    metavar: str | None
    """Stands for the argument; None for a question without one."""
    help: str

    @property
    def name(self) -> str:
        """The attribute of the parsed options."""
        return self.option.replace("-", "_")


@final
@dataclass(frozen=True)
class Answer:
    """What was asked and what came out."""

    question: Question
    argument: str
    value: Value

    def to_json(self, *, with_argument: bool) -> Any:
        """Return the enclosure (or enclosures), beside the argument where there are several."""
        if isinstance(self.value, dict):
            named = {name: entry.to_json() for name, entry in self.value.items()}
            return {**next(iter(named.values())), **named}
        if isinstance(self.value, list):
            return [entry.to_json() for entry in self.value]
        beside = {self.question.name: self.argument} if with_argument else {}
        return {**beside, **self.value.to_json()}


def _asked(module: str, name: str, *, argument: bool = False, engine: bool = False) -> Ask:
    """Return how to ask a function of `accountant.questions`, which is imported when it is asked.

    `argument` and `engine` say whether it takes an argument, and an engine.
    """

    def ask(mechanism: Mechanism, given: str, how: How) -> Any:
        question = getattr(import_module(f"accountant.questions.{module}"), name)
        return question(mechanism, *[given] * argument, **how.words(engine=engine))

    return ask


_EXACT_MU = _asked("guarantees", "mu")


def _mu(mechanism: Mechanism, _: str, how: How) -> Value:
    """Return the exact μ, or else the best ones above and below, and what the former loses."""
    from accountant.errors import NotApplicableError
    from accountant.questions.gaussian_bounds import gaussian_bounds

    try:
        return _EXACT_MU(mechanism, _, how)
    except NotApplicableError:
        found = gaussian_bounds(mechanism, adjacency=how.adjacency)
    return {"best_upper": found.upper, "best_lower": found.lower, "regret": found.regret}


def _error(module: str, name: str, *, argument: bool = False) -> Ask:
    """Return how to ask how far an answer is off: no neighbours and no engine have a part in it."""

    def ask(mechanism: Mechanism, given: str, _: How) -> Any:
        question = getattr(import_module(f"accountant.questions.{module}"), name)
        return question(mechanism, *[given] * argument)

    return ask


def _variance(mechanism: Mechanism, _: str, __: How) -> Interval | list[Interval]:
    from accountant.questions.utility import variance

    values = variance(mechanism)
    return values[0] if len(set(values)) == 1 else values


_profile = partial(_asked, "profile", argument=True, engine=True)
_tradeoff = partial(_asked, "tradeoff", argument=True, engine=True)
_guarantee = partial(_asked, "guarantees")

QUESTIONS = (
    Question("epsilon", "delta", _profile("delta"), "E", "delta at this epsilon (any real number)"),
    Question("delta", "epsilon", _profile("epsilon"), "D", "least epsilon at this delta"),
    Question("alpha", "beta", _tradeoff("beta"), "A", "least type II error at this type I error"),
    Question(
        "tpr-at-fpr",
        "true_positive_rate",
        _tradeoff("power"),
        "A",
        "largest true positive rate of an attack at this false positive rate",
    ),
    Question(
        "order", "renyi", _guarantee("renyi", argument=True), "R", "Renyi divergence of this order"
    ),
    Question(
        "total-variation",
        "total_variation",
        _guarantee("total_variation", engine=True),
        None,
        "delta at epsilon 0",
    ),
    Question(
        "mu",
        "mu",
        _mu,
        None,
        "ask for mu of Gaussian DP: exact, or the best above and below (to claim a mu: dpassay "
        "verify --mu M)",
    ),
    Question(
        "rho",
        "rho",
        _guarantee("rho"),
        None,
        "ask for the least rho of zCDP (to claim one: dpassay verify --rho R)",
    ),
    Question(
        "loss-cdf",
        "loss_cdf",
        _guarantee("loss_cdf", argument=True, engine=True),
        "L",
        "least probability that the privacy loss is at most this",
    ),
    Question(
        "mse",
        "mse",
        _error("utility", "mean_squared_error"),
        None,
        "mean squared error, averaged over the outputs",
    ),
    Question(
        "mean-absolute-error",
        "mean_absolute_error",
        _error("accuracy", "mean_absolute_error"),
        None,
        "mean absolute error, averaged over the outputs",
    ),
    Question(
        "quantile",
        "quantile",
        _error("utility", "quantile", argument=True),
        "P",
        "least number that the noise is below with this probability",
    ),
    Question(
        "absolute-quantile",
        "absolute_quantile",
        _error("accuracy", "absolute_quantile", argument=True),
        "P",
        "least error that is not exceeded with this probability",
    ),
    Question("variance", "variance", _variance, None, "variance of each released coordinate"),
)
_DEFAULT = {
    "epsilon": ("0", "0.1", "0.5", "1", "2", "4", "8"),
    "delta": ("1e-3", "1e-5", "1e-6", "1e-9"),
    "mu": ("",),
    "rho": ("",),
    "mse": ("",),
}


def command(plot: Plot | None) -> Command:
    """Return the command, which draws with `plot`."""
    return Command(
        "profile",
        "the exact privacy of one release",
        _DESCRIPTION,
        _EPILOG,
        configure,
        lambda options: run(options, plot),
    )


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    add("mechanism", metavar="MECHANISM", help="such as 'Laplace(scale=2)'")
    for question in QUESTIONS:
        if question.metavar is None:
            add(
                f"--{question.option}",
                action="append_const",
                const="",
                help=question.help,
            )
        else:
            flags = [f"--{question.option}"] + ["--fpr"] * (question.option == "tpr-at-fpr")
            add(*flags, action="append", metavar=question.metavar, help=question.help)
    add("--plot", type=Path, metavar="FILE", help="draw the profile (.png, .pdf or .svg)")
    add(
        "--export",
        type=Path,
        metavar="FILE.csv",
        help="with --epsilons: write a table with a lower and an upper bound of delta",
    )
    add("--epsilons", metavar="A:B:N", help="the N evenly spaced epsilons of --export")
    add(
        "--baselines",
        action="store_true",
        help="with --delta: what other accountants say, and the exact epsilon",
    )
    add(
        "--relative-width",
        metavar="W",
        help="how narrow answers must be (else the digits that come soon: 1e-9 or better)",
    )
    add(
        "--method",
        default="auto",
        metavar="ENGINE",
        help="the engine of a composition: auto, exact, fourier or grid",
    )
    add(
        "--estimate",
        action="store_true",
        help="answer in floats, in milliseconds and without proof",
    )
    add_adjacency(parser)
    add_output_options(parser, quiet="print the enclosures only, one line each")


def run(options: argparse.Namespace, plot: Plot | None) -> int:
    """Ask and print."""
    from accountant import notation

    draw = None if checked_path(options.plot, plot) is None else plot
    mechanism = notation.parse(options.mechanism)
    if options.estimate:
        return _run_estimates(mechanism, options, draw)
    table = _table(mechanism, options)
    tables = _baselines(mechanism, options)
    answers, refused = _answers(mechanism, options)
    if options.json:
        result = _json(mechanism, options.adjacency, answers)
        if tables:
            result["baselines"] = [
                {"delta": delta, **row.to_json()} for delta, rows in tables for row in rows
            ]
        say_json(result)
    elif options.quiet:
        for answer in answers:
            say("  ".join(str(value) for _, value in _named(answer.value)))
    else:
        _show(mechanism, options.adjacency, answers)
        for delta, rows in tables:
            _show_baselines(delta, rows)
    if table is not None:
        options.export.write_text(table, encoding="utf-8")
        note(f"wrote {options.export}")
    if draw is not None:
        marks = [
            (a.argument, a.value)
            for a in answers
            if a.question.key == "delta" and not isinstance(a.value, (list, dict))
        ]
        draw(mechanism, options.plot, adjacency=options.adjacency, marks=marks, estimated=False)
        note(f"wrote {options.plot}")
    return max((report_error(refusal) for refusal in refused), default=ExitCode.DONE)


def _run_estimates(mechanism: Mechanism, options: argparse.Namespace, draw: Plot | None) -> int:
    """Ask and print without proof."""
    from verify.cli.estimates import require_estimates, show_estimates

    require_estimates(options)
    show_estimates(mechanism, options)
    if draw is not None:
        draw(mechanism, options.plot, adjacency=options.adjacency, marks=(), estimated=True)
        note(f"wrote {options.plot}")
    return ExitCode.DONE


def _table(mechanism: Mechanism, options: argparse.Namespace) -> str | None:
    """Return the table of the profile, if it is asked for and can be written."""
    from accountant.errors import InvalidInputError

    path: Path | None = options.export
    if (path is None) != (options.epsilons is None):
        raise InvalidInputError("Expected --export FILE.csv and --epsilons A:B:N together.")
    if path is None:
        return None
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise InvalidInputError(f"Cannot write {path}: expected a file in a folder that exists.")
    from verify.foreign.table import profile_table, read_grid

    return profile_table(mechanism, read_grid(options.epsilons), adjacency=options.adjacency)


def _baselines(mechanism: Mechanism, options: argparse.Namespace) -> list[tuple[str, list[Row]]]:
    """Compare with other accountants at every δ that was asked for."""
    from accountant.errors import InvalidInputError

    if not options.baselines:
        return []
    if not options.delta:
        raise InvalidInputError("Expected --delta with --baselines: they are epsilons at a delta.")
    from accountant.baselines import compare

    return [(delta, compare(mechanism, 1, delta, options.adjacency)) for delta in options.delta]


def _show_baselines(delta: str, rows: Sequence[Row]) -> None:
    say(f"baselines: epsilon at delta {delta}")
    shown = [
        (f"  {row.name}", "none" if row.epsilon is None else str(row.epsilon), row.note[:70])
        for row in rows
    ]
    say(columns(shown))


def _answers(
    mechanism: Mechanism, options: argparse.Namespace
) -> tuple[list[Answer], list[DpassayError]]:
    """Ask every question that the options name, or the default ones that apply.

    Refusals come with the other answers; where there are none the first one is raised.
    """
    from accountant.errors import NotApplicableError, UndecidedError

    asked = {q.name: getattr(options, q.name) for q in QUESTIONS if getattr(options, q.name)}
    how = How(options.adjacency, options.method, options.relative_width)
    answers: list[Answer] = []
    refused: list[DpassayError] = []
    for question in QUESTIONS:
        for argument in (asked or _DEFAULT).get(question.name, ()):
            try:
                ask = _EXACT_MU if question.key == "mu" and not asked else question.ask
                value = ask(mechanism, argument, how)
            except (NotApplicableError, UndecidedError) as refusal:
                if asked:
                    refused.append(refusal)
                elif options.method != "auto" and question.key == "delta":
                    raise
                continue
            # What is bounded on one side only need not be shown where it is not asked.
            if asked or isinstance(value, (list, dict)) or value.relative_width is not None:
                answers.append(Answer(question, argument, value))
    if refused and not answers:
        raise refused[0]
    return answers, refused


def _json(mechanism: Mechanism, adjacency: str | None, answers: Sequence[Answer]) -> dict[str, Any]:
    """Return one entry per kind of question: an object, or a list where it was repeated."""
    result: dict[str, Any] = {
        "schema_version": 1,
        "mechanism": repr(mechanism),
        "adjacency": adjacency,
    }
    for question in QUESTIONS:
        mine = [answer for answer in answers if answer.question is question]
        if len(mine) == 1 or (mine and question.metavar is None):
            result[question.key] = mine[0].to_json(with_argument=False)
        elif mine:
            result[question.key] = [answer.to_json(with_argument=True) for answer in mine]
    return result


def _show(mechanism: Mechanism, adjacency: str | None, answers: Sequence[Answer]) -> None:
    say(repr(mechanism) + (f"  ({adjacency})" if adjacency else ""))
    rows = []
    for answer in answers:
        at = f"at {answer.question.option} {answer.argument}" if answer.argument else ""
        for which, value in _runs(answer.value):
            rows.append((f"  {answer.question.key}{which}", at, str(value)))
    say(columns(rows))


def _named(value: Value) -> list[tuple[str, Interval]]:
    if isinstance(value, dict):
        return [(f" {name.replace('_', ' ')}", entry) for name, entry in value.items()]
    return [("", entry) for entry in (value if isinstance(value, list) else [value])]


def _runs(value: Value) -> list[tuple[str, Interval]]:
    """Return one entry for each run of equal values, with its coordinates: [0..99]."""
    from itertools import groupby

    if isinstance(value, dict):
        return _named(value)
    if not isinstance(value, list):
        return [("", value)]
    found, first = [], 0
    for entry, run in groupby(value):
        last = first + len(list(run)) - 1
        which = f" [{first}]" if first == last else f" [{first}..{last}]"
        found.append((which, entry))
        first = last + 1
    return found
