"""Probabilities of a table: rational numbers, or formulas such as exp(1)/(exp(1)+1)."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from dpassay.accountant.core.validate import probabilities
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.numbers import formula
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import ball, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import fraction
from dpassay.accountant.pairs.enclosed_tables import Ends, Masses, hull, masses, over
from dpassay.accountant.pairs.finite import FiniteLaws

Entry: TypeAlias = Fraction | ExactReal
"""A rational number, or one that is not."""
_BITS = 256
"""Of masses in tables that are no smaller: compositions ask for the δ of floats."""


def law(name: str, value: object) -> tuple[Entry, ...]:
    """Return the masses of a law, of sum exactly 1."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return probabilities(name, value)  # which says what a list is
    known = tuple(_entry(f"{name}[{i}]", given) for i, given in enumerate(value))
    if all(isinstance(entry, Fraction) for entry in known):
        return probabilities(name, known)
    try:
        whole = _total(known)
    except ArithmeticError:
        raise InvalidInputError(
            f"Expected {name} of sum 1, which takes too many terms to see. Write the entries over "
            "one denominator."
        ) from None
    if whole != 1:
        raise InvalidInputError(
            f"Expected {name} of sum 1, not {enclose(lambda: _ball(whole))}. Divide by the sum."
        )
    return known


def _total(values: Sequence[Entry]) -> Entry:
    """Return the sum; ArithmeticError where it has too many terms."""
    parts: dict[object, formula.Quotient] = {}
    for value in values:  # those of one denominator first
        quotient = _quotient(value)
        key = frozenset(quotient[1].items())
        parts[key] = formula.add(parts[key], quotient) if key in parts else quotient
    return _known(ExactReal.of_quotient(functools.reduce(formula.add, parts.values()), "a sum"))


def _quotient(value: Entry) -> formula.Quotient:
    return formula.of_fraction(value) if isinstance(value, Fraction) else value.quotient()


def _known(value: ExactReal) -> Entry:
    return value if value.rational is None else value.rational


def _ball(value: Entry) -> arb:
    return ball(value) if isinstance(value, Fraction) else value.ball()


def balls(entries: Sequence[Entry]) -> list[arb]:
    """Return balls that contain the entries."""
    return [_ball(entry) for entry in entries]


class TableLaws(FiniteLaws):
    """Laws that are rows of entries."""

    @abstractmethod
    def rows(self, index: int) -> tuple[Sequence[Entry], Sequence[Entry]]:
        """Return P and Q."""

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return balls around the entries."""
        p, q = self.rows(index)
        return balls(p), balls(q)

    def rational_masses(self, index: int) -> Masses | None:
        """Return the entries where all are rational."""
        p, q = (tuple(e for e in row if isinstance(e, Fraction)) for row in self.rows(index))
        return (p, q) if len(p) == len(q) == len(self.rows(index)[0]) else None

    def table_above(self, index: int) -> Masses:
        """Return rational masses with a profile that is at least as large, by 2⁻²⁵⁶ or so."""
        if (exact := self.rational_masses(index)) is not None:
            return exact
        with ctx.workprec(_BITS):
            p, q = ([_around(b) for b in law] for law in self.masses(index))
        return masses(hull(over(p, q)))

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return ln(p/q) where it is an exact number: of no other outcome is it an exact ε."""
        if self.rational_masses(index) is not None:
            return super().exact_losses(index)
        return list(map(_log_ratio, *self.rows(index)))


def _entry(name: str, value: object) -> Entry:
    number = exact(value, name)  # type: ignore[arg-type]  # exact refuses what is no number
    if number.sign < 0:
        raise expected(name, number, "≥ 0")
    return _known(number)


@functools.lru_cache(maxsize=4096)
def _log_ratio(p: Entry, q: Entry) -> ExactReal | None:
    """Return ln(p/q) of two numbers ≥ 0 where it is algebraic; else, or if too long, None."""
    if p == 0 or q == 0:
        return None
    try:
        ratio = formula.times(_quotient(p), formula.inverse(_quotient(q)))
        exponent = formula.algebraic_log(ratio)
    except ArithmeticError:
        return None
    return None if exponent is None else ExactReal.of_quotient(exponent)


def _around(value: arb) -> Ends:
    return max(fraction(value.lower()), Fraction(0)), fraction(value.upper())
