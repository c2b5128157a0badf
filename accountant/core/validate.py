"""Fields of mechanisms: each converts its argument exactly and checks its range.

A field is a data descriptor, declared once in the body of a frozen dataclass::

    scale: Positive = Positive()
    l1_sensitivity: Positive = Positive(1)

Every mechanism thus accepts ints, decimals, fractions, strings and floats, stores an exact number,
and names the argument in an error.
"""

from __future__ import annotations

import inspect
import operator
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, Generic, TypeVar, dataclass_transform, final

from dpassay.accountant.aliases import ALIASES, translated
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import InvalidInputError, expected, suggestion
from dpassay.accountant.numbers.exact import ExactReal, Number, as_floats, exact

Stored = TypeVar("Stored")
Given = TypeVar("Given")
_REQUIRED: Any = object()


class Field(ABC, Generic[Stored, Given]):
    """A field of a frozen dataclass that converts and validates its value."""

    def __init__(self, default: Given = _REQUIRED) -> None:
        self._default = default
        self._name = "argument"

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> Stored:
        if instance is None:
            if self._default is _REQUIRED:  # tells the dataclass that there is no default
                raise AttributeError(self._name)
            return self.read(self._default)
        value: Stored = instance.__dict__[self._name]
        return value

    def __set__(self, instance: object, value: Given) -> None:
        instance.__dict__[self._name] = self.read(value)

    @abstractmethod
    def read(self, value: Given) -> Stored:
        """Convert the value, or raise InvalidInputError, which names the argument."""


class Real(Field[ExactReal, Number]):
    """An exact real number."""

    def read(self, value: Number) -> ExactReal:
        """Convert to an exact number."""
        return exact(value, self._name)


@final
class Positive(Real):
    """A number > 0."""

    def read(self, value: Number) -> ExactReal:
        """Convert to an exact number, and require > 0."""
        number = exact(value, self._name)
        if number.sign <= 0:
            raise expected(self._name, value, "> 0", "Give a positive number.")
        return number


@final
class NonNegative(Real):
    """A number ≥ 0."""

    def read(self, value: Number) -> ExactReal:
        """Convert to an exact number, and require ≥ 0."""
        number = exact(value, self._name)
        if number.sign < 0:
            raise expected(self._name, value, "≥ 0", "Give 0 or a positive number.")
        return number


@final
class Probability(Real):
    """A number in [0, 1], or in (0, 1) if `interior` is True."""

    def __init__(self, default: Number = _REQUIRED, *, interior: bool = False) -> None:
        super().__init__(default)
        self._interior = interior

    def read(self, value: Number) -> ExactReal:
        """Convert to an exact number, and require the interval."""
        number = exact(value, self._name)
        zero, one = ExactReal.of_rational(0), ExactReal.of_rational(1)
        if self._interior and not zero < number < one:
            raise expected(self._name, value, "in (0, 1)", "Give a probability.")
        if not zero <= number <= one:
            raise expected(self._name, value, "in [0, 1]", "Give a probability.")
        return number


@final
class Integer(Field[int, int]):
    """An integer, with an optional lower bound."""

    def __init__(self, default: int = _REQUIRED, *, least: int | None = None) -> None:
        super().__init__(default)
        self._least = least

    def read(self, value: int) -> int:
        """Convert to an int, and require the lower bound."""
        return integer(self._name, value, least=self._least)


class Several(Field[tuple[Stored, ...], Sequence[Given]]):
    """A non-empty list whose entries are converted by `reader(name, number)`."""

    def __init__(self, reader: Callable[[str, ExactReal], Stored]) -> None:
        super().__init__()
        self._reader = reader

    def read(self, value: Sequence[Given]) -> tuple[Stored, ...]:
        """Convert every entry; an error names the entry, such as scales[2]."""
        entries = enumerate(exact_list(self._name, value))
        return tuple(self._reader(f"{self._name}[{index}]", entry) for index, entry in entries)


@final
class Reals(Several[ExactReal, Number]):
    """A non-empty list of exact numbers, each optionally ≥ 0 or > 0."""

    def __init__(self, *, least: int | None = None, strict: bool = False) -> None:
        super().__init__(partial(real, least=least, strict=strict))


@final
class Integers(Several[int, int]):
    """A non-empty list of integers, with an optional lower bound."""

    def __init__(self, *, least: int | None = None) -> None:
        super().__init__(partial(integer, least=least))


class Maybe(Field[Stored | None, Given | None]):
    """A value of another field, or None; the mechanism defines what None means."""

    def __init__(self, kind: Field[Stored, Given]) -> None:
        super().__init__(None)
        self._kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        self._kind.__set_name__(owner, name)

    def read(self, value: Given | None) -> Stored | None:
        """Convert the value unless it is None."""
        return None if value is None else self._kind.read(value)


@final
class OptionalPositive(Maybe[ExactReal, Number]):
    """A number > 0, or None."""

    def __init__(self) -> None:
        super().__init__(Positive())


@final
class OptionalInteger(Maybe[int, int]):
    """An integer with an optional lower bound, or None."""

    def __init__(self, *, least: int | None = None) -> None:
        super().__init__(Integer(least=least))


@final
class OptionalProbability(Maybe[ExactReal, Number]):
    """A number in [0, 1], or None."""

    def __init__(self) -> None:
        super().__init__(Probability())


@final
class Rational(Field[Fraction, Number]):
    """A rational number, optionally ≥ 0 or > 0."""

    def __init__(
        self, default: Number = _REQUIRED, *, least: int | None = None, strict: bool = False
    ) -> None:
        super().__init__(default)
        self._least, self._strict = least, strict

    def read(self, value: Number) -> Fraction:
        """Convert to a Fraction, and require the range."""
        return rational(self._name, value, least=self._least, strict=self._strict)


@final
class Rationals(Several[Fraction, Number]):
    """A non-empty list of rational numbers, each optionally ≥ 0 or > 0."""

    def __init__(self, *, least: int | None = None, strict: bool = False) -> None:
        super().__init__(partial(rational, least=least, strict=strict))


@final
class OptionalRationals(Maybe[tuple[Fraction, ...], Sequence[Number]]):
    """A non-empty list of rational numbers ≥ 0, optionally > 0, or None."""

    def __init__(self, *, strict: bool = False) -> None:
        super().__init__(Rationals(least=0, strict=strict))


@final
class Probabilities(Field[tuple[Fraction, ...], Sequence[Number]]):
    """A non-empty list of rational numbers ≥ 0 whose sum is exactly 1."""

    def read(self, value: Sequence[Number]) -> tuple[Fraction, ...]:
        """Convert every entry, and require the sum to be 1."""
        return probabilities(self._name, value)


@final
class Read(Field[Stored, Given]):
    """A value converted by `reader(argument_name, value)`."""

    def __init__(self, reader: Callable[[str, Given], Stored], default: Given = _REQUIRED) -> None:
        super().__init__(default)
        self._reader = reader

    def read(self, value: Given) -> Stored:
        """Convert the value."""
        return self._reader(self._name, value)


@final
class Instance(Field[Stored, Stored]):
    """An object of a given class."""

    def __init__(self, kind: type[object], noun: str, remedy: str) -> None:
        super().__init__()
        self._kind, self._noun, self._remedy = kind, noun, remedy

    def read(self, value: Stored) -> Stored:
        """Require the class."""
        if not isinstance(value, self._kind):
            raise expected(self._name, value, f"to be a {self._noun}", self._remedy)
        return value


@final
class Switch(Field[bool, bool]):
    """True or False."""

    def read(self, value: bool) -> bool:
        """Require a bool; 0 and 1 are not accepted."""
        if not isinstance(value, bool):
            raise expected(
                self._name, value, "to be True or False", "Write one of them, without quotes."
            )
        return value


@final
class OneOf(Field[str, str]):
    """One of several strings."""

    def __init__(self, *names: str, default: str = _REQUIRED) -> None:
        super().__init__(default)
        self._names = names

    def read(self, value: str) -> str:
        """Require one of the strings."""
        if not isinstance(value, str) or value not in self._names:
            listed = ", ".join(map(repr, self._names))
            near = suggestion(str(value), self._names, listed=False)
            raise expected(self._name, value, f"to be one of {listed}", near)
        return value


@final
class Relation(Field[Adjacency, Adjacency | str]):
    """A neighbouring relation, which may not be None."""

    def read(self, value: Adjacency | str) -> Adjacency:
        """Convert the name of a relation, and refuse None."""
        relation = Adjacency.read(value)
        if relation is None:
            raise expected(self._name, value, "to be 'add-remove' or 'replace-one'")
        return relation


def rational(
    name: str, value: object, *, least: int | None = None, strict: bool = False
) -> Fraction:
    """Return a Fraction, requiring ≥ least (> least if `strict`)."""
    number = real(name, value, least=least, strict=strict).rational
    if number is None:
        raise expected(name, value, "to be rational", 'Give a rational such as "141/100".')
    return number


def real(name: str, value: object, *, least: int | None = None, strict: bool = False) -> ExactReal:
    """Return an exact number, requiring ≥ least (> least if `strict`)."""
    number = exact(value, name)  # type: ignore[arg-type]  # exact refuses what is no number
    end = None if least is None else ExactReal.of_rational(least)
    if end is not None and (number < end or (strict and number == end)):
        raise expected(name, value, f"{'>' if strict else '≥'} {least}")
    return number


def probabilities(name: str, value: object) -> tuple[Fraction, ...]:
    """Return a tuple of rational numbers ≥ 0 whose sum is exactly 1."""
    listed = enumerate(exact_list(name, value))
    entries = tuple(rational(f"{name}[{i}]", entry, least=0) for i, entry in listed)
    if (total := sum(entries, start=Fraction(0))) != 1:
        raise InvalidInputError(
            f"Expected {name} to sum to 1, not {ExactReal.of_rational(total)}. Write the entries "
            "as "
            'exact fractions, such as "1/3", or divide each by the sum.'
        )
    return entries


def integer(name: str, value: object, *, least: int | None = None) -> int:
    """Return an int from any integer value, also from a string or an exact number."""
    if isinstance(value, (str, ExactReal, Fraction)):
        number = exact(value, name).rational
        if number is None or number.denominator != 1:
            raise expected(name, value, "to be an integer", "Give a whole number.")
        value = number.numerator
    try:
        result = operator.index(value)  # type: ignore[arg-type]  # what is no integer is refused
    except TypeError:
        result = None
    if isinstance(value, bool) or result is None:
        remedy = "Write it without a decimal point."
        if not isinstance(value, (bool, float, Decimal)):
            remedy = "Give a whole number."
            if hasattr(value, "worst_case"):
                remedy = "Give a whole number; give several mechanisms as one list: [A, B]."
        raise expected(name, value, "to be an integer", remedy)
    if least is not None and result < least:
        raise expected(name, result, f"≥ {least}", f"Give a whole number from {least} on.")
    return result


def exact_list(name: str, value: object) -> tuple[ExactReal, ...]:
    """Return a tuple of exact numbers from a non-empty list."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        is_number = isinstance(value, (int, float)) or str(value).isdigit()
        example = f"[{value}]" if is_number else "[1, 2]"
        raise expected(name, value, "to be a list of numbers", f"Write it in brackets: {example}.")
    entries = tuple(exact(entry, f"{name}[{index}]") for index, entry in enumerate(value))
    if not entries:
        raise InvalidInputError(f"Expected {name} to have at least one entry. Give one.")
    return entries


def rows_of(name: str, value: object) -> tuple[tuple[ExactReal, ...], ...]:
    """Return rows of exact numbers, all of the same length, from a non-empty list of lists."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) or not value:
        raise expected(name, value, "to be a list of rows", "Write [[1, 0], [0, 1]].")
    rows = tuple(exact_list(f"{name}[{i}]", row) for i, row in enumerate(value))
    require_one_length(name, rows, value)
    return rows


def require_one_length(name: str, rows: Sequence[Sequence[object]], given: Sequence[Any]) -> None:
    """Raise InvalidInputError, with the row as given, unless all are as long as the first."""
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            size = f"to have {len(rows[0])} entries, as the first"
            raise expected(f"{name}[{i}]", list(given[i]), size)


def rational_rows(name: str, value: object) -> tuple[tuple[Fraction, ...], ...]:
    """Return rows of rational numbers, all of the same length, from a non-empty list of lists."""
    return tuple(
        tuple(rational(f"{name}[{i}][{j}]", entry) for j, entry in enumerate(row))
        for i, row in enumerate(rows_of(name, value))
    )


def probability(name: str, value: Number) -> ExactReal:
    """Return an exact number in [0, 1]."""
    field = Probability()
    field.__set_name__(ExactReal, name)
    return field.read(value)


# --- Frozen data with a notation: mechanisms, sensitivity spaces, covariances ---------------------

Kind = TypeVar("Kind")
_BUDGETS = ("epsilon", "eps", "delta", "rho")
"""Budgets that users pass instead of the noise. A class with such an argument accepts it."""


class Described(ABCMeta):
    """Metaclass of descriptions: a call with wrong arguments raises an error that lists them."""

    def __call__(cls, *positional: Any, **named: Any) -> Any:
        """Make the description; raise InvalidInputError if an argument is unknown or missing.

        Argument names of other libraries are accepted too (`dpassay.accountant.aliases`).
        """
        if not ALIASES.keys().isdisjoint(named):
            named = translated(named, list(inspect.signature(cls).parameters), len(positional))
        try:
            return super().__call__(*positional, **named)
        except TypeError:
            if inspect.isabstract(cls):
                raise
            if (problem := cls._misfit(len(positional), named)) is None:
                raise
            raise InvalidInputError(problem) from None

    @property
    def __signature__(cls) -> inspect.Signature:
        """The signature of the class; `inspect` would show that of `__call__`."""
        own = inspect.signature(cls.__init__)  # type: ignore[misc]  # of this very class
        return own.replace(parameters=list(own.parameters.values())[1:])

    def _misfit(cls, positional: int, named: Collection[str]) -> str | None:
        """Describe the first wrong or missing argument and list the right ones; None if all fit."""
        parameters = inspect.signature(cls).parameters
        known, name = list(parameters), cls.__name__
        listed = f"Arguments: {', '.join(known)}."
        if positional > len(known):
            return f"{name} has {len(known)} arguments, not {positional}. {listed}"
        given = known[:positional]
        for argument in named:
            if argument not in known:
                if argument in _BUDGETS and hasattr(cls, "worst_case"):
                    return (
                        f"{name} has no argument {argument!r}: a mechanism states its noise. "
                        f'Calibrate it: dpassay.calibrate("{name}", {argument}=…). {listed}'
                    )
                return f"{name} has no argument {argument!r}. {suggestion(argument, known)}"
            if argument in given:
                return f"Argument {argument!r} of {name} is given twice."
        missing = [
            argument
            for argument, parameter in parameters.items()
            if parameter.default is parameter.empty and argument not in {*given, *named}
        ]
        return f"{name} needs {', '.join(missing)}. {listed}" if missing else None


@dataclass_transform(frozen_default=True)
def declared(kind: type[Kind]) -> type[Kind]:
    """Make a class a frozen dataclass; its annotated fields are the arguments of its notation."""
    return dataclass(frozen=True, repr=False)(kind)


class Description(metaclass=Described):
    """A frozen dataclass whose fields are the arguments of its notation."""

    def __repr__(self) -> str:
        """Return the notation, which reads back as an equal object, with floats as float(…)."""
        return as_floats(str(self))

    def __str__(self) -> str:
        """Return the notation with all digits of every number, as in certificates."""
        shown = []
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            if value is not None and value != field.default:
                shown.append(f"{field.name}={notation(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        """Return the notation and a summary of the law as HTML, for notebooks."""
        from dpassay.accountant.core.asking import describe_html

        return describe_html(self)

    def _repr_markdown_(self) -> str:
        """Return the notation and a summary of the law as Markdown."""
        from dpassay.accountant.core.asking import describe_markdown

        return describe_markdown(self)


def notation(value: object) -> str:
    """Write a field in the notation: nested lists in brackets, numbers exactly."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(notation(entry) for entry in value)}]"
    if isinstance(value, Adjacency):
        return repr(value.value)
    if isinstance(value, Fraction):
        return repr(ExactReal.of_rational(value))
    return str(value) if isinstance(value, Description) else repr(value)
