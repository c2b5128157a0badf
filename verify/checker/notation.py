"""A mechanism as it is named, and what each of its arguments may be.

A domain reads a value, or says what it should be.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, final

from dpassay.verifier.checker.kernel.expressions import Apply, Name, Node, Number, ProofError, parse
from dpassay.verifier.checker.reals import PI, exp, log, power, sqrt


@final
@dataclass(frozen=True)
class Noise:
    """A name and its arguments: numbers, texts, lists, descriptions or mechanisms.

    `build` in `arguments` is the only place that makes one from a text: there every argument is
    known, in its domain, and has its default where it was left out.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    adjacency: str | None = None
    """The relation, where it was noted (`under`)."""

    def __getitem__(self, argument: str) -> Any:
        return self.arguments.get(argument)


Domain = Callable[[Any], Any]
"""Returns what an argument says, or raises ValueError with what it should have been."""

_DECIMAL = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,5})?"
_RATIO = re.compile(rf"[+-]?{_DECIMAL}(\s*/\s*{_DECIMAL})?")
_FLOAT = re.compile(r"float\((.*)\)")
_ROOT = re.compile(r"(-?)sqrt\((.*)\)")
_MOST_CHARACTERS: Final = 20_000
_MOST_ENTRIES: Final = 100_000
_RELATIONS = ("add-remove", "replace-one")
_FUNCTIONS = {"exp": exp, "log": log, "sqrt": sqrt}
_OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": power,
    **_FUNCTIONS,
}


def number(value: Any) -> Any:
    """Require a real number: one of the language, or a text such as "1/3" or "sqrt(2)"."""
    if isinstance(value, str):
        return _written(value.strip())
    if value is None or isinstance(value, (bool, list, Noise)):
        raise ValueError("a number")
    return Fraction(value) if isinstance(value, int) else value


def nearest_float(value: Any) -> Fraction:
    """Return the binary number nearest to a rational one."""
    try:
        return Fraction(float(Fraction(value)))
    except (OverflowError, TypeError, ValueError):
        raise ValueError("float(x) of a rational number that is not too large") from None


def _written(text: str) -> Any:
    if len(text) <= _MOST_CHARACTERS and (binary := _FLOAT.fullmatch(text)):
        return nearest_float(_written(binary[1].strip()))
    found = _ROOT.fullmatch(text)
    square = found[2].strip() if found else text
    if len(text) > _MOST_CHARACTERS:
        raise ValueError("a number")
    if not _RATIO.fullmatch(square):
        return _formula(text)
    above, _, below = square.partition("/")
    value, divisor = Fraction(Decimal(above.strip())), Fraction(Decimal(below.strip() or "1"))
    if divisor == 0 or (found and value < 0):
        raise ValueError("a number")
    value /= divisor
    return value if not found else -sqrt(value) if found[1] else sqrt(value)


def _formula(text: str) -> Any:
    """Read a formula without variables."""
    try:
        return _value(parse(text) if text.isascii() else None)
    except (ProofError, ArithmeticError):
        raise ValueError("a number") from None


def _value(node: Node | None) -> Any:
    match node:
        case Number(value=value):
            return value
        case Name(name="pi"):
            return PI
        case Apply(name=name, arguments=parts, named=()) if name in _OPERATIONS:
            if len(parts) == (1 if name in _FUNCTIONS else 2):
                return _OPERATIONS[name](*map(_value, parts))
            if name == "log" and len(parts) == 2:
                of, base = map(_value, parts)
                return log(of) / log(base)
    raise ValueError("a number")


def positive(value: Any) -> Any:
    """Require a number > 0."""
    return _ranged(value, lambda x: x > 0, "> 0")


def not_negative(value: Any) -> Any:
    """Require a number ≥ 0."""
    return _ranged(value, lambda x: x >= 0, "≥ 0")


def probability(value: Any) -> Any:
    """Require a number in [0, 1]."""
    return _ranged(value, lambda x: 0 <= x <= 1, "in [0, 1]")


def share(value: Any) -> Any:
    """Require a number in (0, 1)."""
    return _ranged(value, lambda x: 0 < x < 1, "in (0, 1)")


def _ranged(value: Any, inside: Callable[[Any], bool], domain: str) -> Any:
    found = number(value)
    if not inside(found):
        raise ValueError(domain)
    return found


def rational(value: Any) -> Fraction:
    """Require a rational number."""
    found = number(value)
    if not isinstance(found, Fraction):
        raise ValueError("rational")
    return found


def both(*domains: Domain) -> Domain:
    """Require what all domains require, read by one after the other."""

    def read(value: Any) -> Any:
        for domain in domains:
            value = domain(value)
        return value

    return read


def integer(least: int | None = None) -> Domain:
    """Require an integer that is not too small."""

    def read(value: Any) -> Fraction:
        found = number(value)
        if not isinstance(found, Fraction) or found.denominator != 1:
            raise ValueError("an integer")
        if least is not None and found < least:
            raise ValueError(f"at least {least}")
        return found

    return read


def each(domain: Domain) -> Domain:
    """Require a list that is not empty, every entry in a domain."""

    def read(value: Any) -> list[Any]:
        if not isinstance(value, list) or not 0 < len(value) <= _MOST_ENTRIES:
            raise ValueError("a list that is not empty")
        return [domain(entry) for entry in value]

    return read


def optional(domain: Domain) -> Domain:
    """Allow None besides a domain."""
    return lambda value: None if value is None else domain(value)


def switch(value: Any) -> bool:
    """Require True or False."""
    if not isinstance(value, bool):
        raise ValueError("True or False")
    return value


def name_of(names: Iterable[str]) -> Domain:
    """Require one of several texts."""

    def read(value: Any) -> str:
        if value not in names:
            raise ValueError(f"one of {', '.join(names)}")
        return str(value)

    return read


relation = name_of(_RELATIONS)


def one_of(names: Iterable[str], what: str) -> Domain:
    """Require something that has one of several names."""

    def read(value: Any) -> Noise:
        if not isinstance(value, Noise) or value.name not in names:
            raise ValueError(what)
        return value

    return read


@final
@dataclass(frozen=True)
class Argument:
    """What an argument may be, and what it is where it is left out."""

    domain: Domain
    default: Any = ...
    """The default; `...` where the argument is required."""
