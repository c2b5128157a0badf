"""Questions on the command line, several at once, and their answers as text and as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias, final

if TYPE_CHECKING:
    from dpassay.accountant.numbers.interval import Interval

Value: TypeAlias = "Interval | list[Interval] | dict[str, Interval]"
"""One enclosure, one for each coordinate, or several by name."""


@final
@dataclass(frozen=True)
class Question:
    """One kind of question."""

    option: str
    """The option without its dashes."""
    metavar: str | None
    """Stands for the argument; None for a question without one."""
    help: str
    function: str = ""
    """The module and the function of `dpassay.accountant.questions` that answer it."""
    key: str = ""
    """The name of the answer, where it is not that of the question."""

    def __post_init__(self) -> None:
        """Fill in the name of the answer."""
        object.__setattr__(self, "key", self.key or self.name)

    @property
    def name(self) -> str:
        """The attribute of the parsed options."""
        return self.option.replace("-", "_")

    def add_to(self, parser: Any) -> None:
        """Add the option."""
        flags = [f"--{self.option}"] + ["--fpr"] * (self.option == "tpr-at-fpr")
        if self.metavar is None:
            parser.add_argument(*flags, action="append_const", const="", help=self.help)
        else:
            parser.add_argument(*flags, action="append", metavar=self.metavar, help=self.help)

    def asked(self, options: argparse.Namespace) -> list[str]:
        """Return the arguments at which it is asked."""
        return getattr(options, self.name) or []


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


def as_json(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return one entry per kind of question: an object, or a list where it was repeated."""
    result: dict[str, Any] = {}
    for question in dict.fromkeys(answer.question for answer in answers):
        mine = [answer for answer in answers if answer.question is question]
        if len(mine) == 1 or question.metavar is None:
            result[question.key] = mine[0].to_json(with_argument=False)
        else:
            result[question.key] = [answer.to_json(with_argument=True) for answer in mine]
    return result


def as_rows(answers: Sequence[Answer]) -> list[tuple[str, str, str]]:
    """Return a row for each number: what it is, where, and its digits."""
    return [
        (f"  {answer.question.key}{which}", f"at {answer.question.option} {answer.argument}"
         if answer.argument else "", str(value))
        for answer in answers
        for which, value in named(answer.value)
    ]  # fmt: skip


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
