"""`dpassay convert`: what a guarantee in one notion says in another."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

from verify.cli.shell import Command, ExitCode, add_output_options, say, say_json

if TYPE_CHECKING:
    from accountant.core.mechanism import Mechanism
    from accountant.numbers.interval import Interval

Answer: TypeAlias = "Callable[[str], Interval]"

_DESCRIPTION = """\
Convert a guarantee: give one, and ask what follows from it. Every answer encloses the best
statement that follows from the guarantee alone; where the ends differ visibly, it lies between
them, and the upper one is proved for everything that has the guarantee.
"""
_EPILOG = """\
examples:
  dpassay convert --renyi 16,0.7 --delta 1e-6
  dpassay convert --mu 1 --epsilon 1 --tpr-at-fpr 1e-300
  dpassay convert --zcdp 0.1 --delta 1e-5
  dpassay convert --approximate 1,1e-6 --alpha 0.05 --json
  dpassay convert --pure 1 --order 8 --rho --to-mu
"""


@final
@dataclass(frozen=True)
class Given:
    """A guarantee that can be converted."""

    option: str
    parts: tuple[str, ...]
    """The names of its numbers."""
    help: str
    answers: Callable[[list[str]], dict[str, Answer]]
    """What follows, by the key of the question."""


@final
@dataclass(frozen=True)
class Question:
    """What can be asked of a guarantee."""

    option: str
    key: str
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


def _of_mechanism(mechanism: Mechanism) -> dict[str, Answer]:
    """Answer by the mechanism that is the worst of all with the guarantee."""
    from accountant.questions import guarantees, profile, tradeoff
    from accountant.questions.gaussian_bounds import gaussian_bounds

    return {
        "delta": lambda at: profile.delta(mechanism, at),
        "epsilon": lambda at: profile.epsilon(mechanism, at),
        "beta": lambda at: tradeoff.beta(mechanism, at),
        "true_positive_rate": lambda at: tradeoff.power(mechanism, at),
        "renyi": lambda at: guarantees.renyi(mechanism, at),
        "rho": lambda _: guarantees.rho(mechanism),
        "mu": lambda _: gaussian_bounds(mechanism).upper,
    }


def _of_mu(numbers: list[str]) -> dict[str, Answer]:
    from accountant.errors import expected
    from accountant.mechanisms.additive.gaussian import Gaussian
    from accountant.numbers.exact import exact

    shift = exact(numbers[0], "mu")
    if shift.sign < 0:
        raise expected("mu", numbers[0], "≥ 0")
    return _of_mechanism(Gaussian(1, shift) if shift.sign else _nothing())


def _of_pure(numbers: list[str]) -> dict[str, Answer]:
    from accountant.mechanisms.wrappers.guaranteed import Guaranteed

    return _of_mechanism(Guaranteed(numbers[0]))


def _of_approximate(numbers: list[str]) -> dict[str, Answer]:
    from accountant.mechanisms.wrappers.guaranteed import Guaranteed

    worst = Guaranteed(numbers[0], numbers[1])
    answers = _of_mechanism(worst)
    if worst.delta.sign:  # an infinite loss has no mu, and no finite divergence
        del answers["mu"], answers["rho"], answers["renyi"]
    return answers


def _nothing() -> Mechanism:
    from accountant.mechanisms.wrappers.guaranteed import Guaranteed

    return Guaranteed(0)


def _of_renyi(numbers: list[str]) -> dict[str, Answer]:
    from accountant.errors import NotApplicableError
    from accountant.numbers.exact import exact
    from accountant.questions import convert

    order, divergence = exact(numbers[0], "order"), exact(numbers[1], "divergence")

    def renyi(at: str) -> Interval:
        if exact(at, "order") <= order and exact(at, "order").rational != 0:
            return convert.exactly(divergence)
        raise NotApplicableError(
            f"A divergence of order {order} bounds those of smaller orders only, not of {at}."
        )

    return {
        "delta": lambda at: convert.delta_of_renyi(order, divergence, at),
        "epsilon": lambda at: convert.epsilon_of_renyi(order, divergence, at),
        "beta": lambda at: _beta(convert.power_of_renyi(order, divergence, at)),
        "true_positive_rate": lambda at: convert.power_of_renyi(order, divergence, at),
        "renyi": renyi,
    }


def _of_zcdp(numbers: list[str]) -> dict[str, Answer]:
    from accountant.errors import expected
    from accountant.numbers.exact import exact
    from accountant.questions import convert

    rho = exact(numbers[0], "rho")

    def renyi(at: str) -> Interval:
        order = exact(at, "order")
        if order < exact(1):
            raise expected("order", at, "≥ 1")
        return convert.exactly(rho * order)

    return {
        "delta": lambda at: convert.delta_of_zcdp(rho, at),
        "epsilon": lambda at: convert.epsilon_of_zcdp(rho, at),
        "beta": lambda at: _beta(convert.power_of_zcdp(rho, at)),
        "true_positive_rate": lambda at: convert.power_of_zcdp(rho, at),
        "renyi": renyi,
        "rho": lambda _: convert.exactly(rho),
    }


def _beta(power: Interval) -> Interval:
    """Return 1 − power, rounded outward."""
    from fractions import Fraction

    from accountant.numbers.interval import Interval

    low, high = (Interval.of_exact(1 - Fraction(end), 40) for end in (power.upper, power.lower))
    return low.hull(high)


GIVEN = (
    Given("mu", ("M",), "mu-Gaussian DP", _of_mu),
    Given("pure", ("E",), "epsilon-DP", _of_pure),
    Given("approximate", ("E", "D"), "(epsilon, delta)-DP", _of_approximate),
    Given("renyi", ("R", "V"), "Renyi divergence at most V at order R > 1", _of_renyi),
    Given("zcdp", ("R",), "rho-zCDP", _of_zcdp),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    given = parser.add_argument_group("what is given (one of)")
    for entry in GIVEN:
        given.add_argument(
            f"--{entry.option}", metavar=",".join(entry.parts), help=entry.help, dest=entry.option
        )
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
        help="with --renyi and --delta: the two usual conversions beside the best one",
    )
    add_output_options(parser, quiet="print the enclosures only, one line each")


def run(options: argparse.Namespace) -> int:
    """Convert and print."""
    entry, numbers = _given(options)
    answers = entry.answers(numbers)
    rows = list(_ask(options, entry, answers))
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

    named = [entry for entry in GIVEN if getattr(options, entry.option) is not None]
    if len(named) != 1:
        known = ", ".join(f"--{entry.option} {','.join(entry.parts)}" for entry in GIVEN)
        raise InvalidInputError(f"Expected one guarantee to convert: {known}.")
    (entry,) = named
    numbers = [part.strip() for part in getattr(options, entry.option).split(",")]
    if len(numbers) != len(entry.parts):
        raise InvalidInputError(
            f"Expected --{entry.option} {','.join(entry.parts)}, not "
            f"{getattr(options, entry.option)!r}."
        )
    return entry, numbers


def _ask(options: argparse.Namespace, entry: Given, answers: dict[str, Answer]) -> list[Row]:
    from accountant.errors import InvalidInputError, NotApplicableError

    rows = []
    for question in QUESTIONS:
        for argument in getattr(options, question.name) or ():
            if question.key not in answers:
                raise NotApplicableError(
                    f"No finite {question.key} follows from --{entry.option} "
                    f"{','.join(entry.parts)}: some mechanism with this guarantee has none."
                )
            rows.append((question, argument, answers[question.key](argument)))
    if not rows:
        asked = ", ".join(f"--{question.option}" for question in QUESTIONS)
        raise InvalidInputError(f"Expected a question: {asked}.")
    return rows


def _others(
    options: argparse.Namespace, entry: Given, numbers: list[str]
) -> list[tuple[str, str, Interval]]:
    from accountant.errors import InvalidInputError
    from accountant.questions import convert

    if not options.baselines:
        return []
    if entry.option != "renyi" or not options.to_delta:
        raise InvalidInputError("Expected --renyi R,V and --delta D with --baselines.")
    return [
        (name, delta, conversion(numbers[0], numbers[1], delta))
        for delta in options.to_delta
        for name, conversion in (
            ("classic", convert.classic_epsilon_of_renyi),
            ("improved", convert.improved_epsilon_of_renyi),
        )
    ]


def _json(
    entry: Given, numbers: list[str], rows: list[Row], others: list[tuple[str, str, Interval]]
) -> dict[str, Any]:
    """Return one entry per kind of question, as `profile` does."""
    result: dict[str, Any] = {"schema_version": 1, "given": {entry.option: numbers}}
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
    from verify import report

    values = ", ".join(f"{part} = {n}" for part, n in zip(entry.parts, numbers, strict=True))
    say(f"{entry.help}, {values}")
    shown = [
        (f"  {question.key}", f"at {question.option} {at}" if at else "", str(value))
        for question, at, value in rows
    ]
    shown += [(f"  epsilon, {name}", f"at delta {delta}", str(v)) for name, delta, v in others]
    say(report.columns(shown))


COMMAND = Command(
    "convert",
    "a guarantee in other terms: (ε, δ), μ, ρ, Rényi",
    _DESCRIPTION,
    _EPILOG,
    configure,
    run,
)
