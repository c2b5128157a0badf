"""Probabilities of a table: rational numbers, or formulas such as exp(1)/(exp(1)+1)."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from dpassay.accountant.core.validate import probabilities
from dpassay.accountant.density.constants import (
    ClosedForm,
    Known,
    ball_of,
    closed,
    log_ratio,
    total,
)
from dpassay.accountant.errors import InvalidInputError, UndecidedError, expected
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import enclose, sign
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import fraction
from dpassay.accountant.pairs.enclosed_tables import Ends, Masses, hull, masses, over
from dpassay.accountant.pairs.finite import FiniteLaws

Entry: TypeAlias = Known
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
        whole = total(known)
    except ArithmeticError:
        raise InvalidInputError(
            f"Expected {name} of sum 1, which takes too many terms to see. Write the entries over "
            "one denominator."
        ) from None
    if whole != 1:
        raise InvalidInputError(
            f"Expected {name} of sum 1, not {enclose(lambda: ball_of(whole))}. Divide by the sum."
        )
    return known


def balls(entries: Sequence[Entry]) -> list[arb]:
    """Return balls that contain the entries."""
    return [ball_of(entry) for entry in entries]


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
        return list(map(log_ratio, *self.rows(index)))


def _entry(name: str, value: object) -> Entry:
    number = _number(name, value)
    side = sign(lambda: ball_of(number))
    if side is None:
        raise UndecidedError(f"Whether {name}={number} is ≥ 0 takes more digits than there are.")
    if side < 0:
        shown = ExactReal.of_rational(number) if isinstance(number, Fraction) else number.text
        raise expected(name, shown, "≥ 0")
    return number


def _number(name: str, value: object) -> Known:
    if isinstance(value, ClosedForm):
        return value
    try:
        number = exact(value, name)  # type: ignore[arg-type]  # exact refuses what is no number
    except InvalidInputError:
        text = value if isinstance(value, str) else ""
        with contextlib.suppress(InvalidInputError):
            return closed(text, name)
        if "exp(" in text or "sqrt(" in text:
            closed(text, name)  # says what a formula is
        raise
    return closed(str(number), name) if number.rational is None else number.rational


def _around(value: arb) -> Ends:
    return max(fraction(value.lower()), Fraction(0)), fraction(value.upper())
