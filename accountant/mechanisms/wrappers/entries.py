"""Probabilities of a table: rational numbers, formulas such as exp(1)/(exp(1)+1), or intervals."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from dpassay.accountant.core.validate import probabilities, rational
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
from dpassay.accountant.numbers.interval import Interval, enclose, sign
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import fraction
from dpassay.accountant.pairs.enclosed_tables import Ends, Masses, hull, masses, over
from dpassay.accountant.pairs.finite import FiniteLaws

Entry: TypeAlias = Known | Ends
_BITS = 256
"""Of masses in tables that are no smaller: compositions ask for the δ of floats."""
_INTERVAL = 'Write [lower, upper], such as ["0.24", "0.26"].'


def law(name: str, value: object) -> tuple[Entry, ...]:
    """Return the masses of a law: of sum exactly 1, or between bounds whose sums enclose 1."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return probabilities(name, value)  # which says what a list is
    entries = tuple(_entry(f"{name}[{i}]", given) for i, given in enumerate(value))
    if is_enclosed(entries):
        low, high = (
            sum(side, start=Fraction(0)) for side in zip(*ends(name, entries), strict=True)
        )
        if not low <= 1 <= high:
            raise InvalidInputError(
                f"Expected {name} with a law of sum 1 in its intervals, whose sums are "
                f"{_short(low)} to {_short(high)}. Widen them."
            )
        return entries
    known = [entry for entry in entries if not isinstance(entry, tuple)]
    if all(isinstance(entry, Fraction) for entry in known):
        return probabilities(name, known)
    try:
        whole = total(known)
    except ArithmeticError:
        raise InvalidInputError(
            f"Expected {name} of sum 1, which takes too many terms to see. Write the entries over "
            "one denominator, or as intervals [lower, upper]."
        ) from None
    if whole != 1:
        raise InvalidInputError(
            f"Expected {name} of sum 1, not {enclose(lambda: ball_of(whole))}. Divide by the sum."
        )
    return entries


def known_law(name: str, value: object) -> tuple[Known, ...]:
    """Return the masses of a law of sum exactly 1; none of them may be an interval."""
    entries = law(name, value)
    known = tuple(entry for entry in entries if not isinstance(entry, tuple))
    if len(known) < len(entries):
        raise expected(name, value, "without intervals", "A Channel of two rows may have some.")
    return known


def is_enclosed(entries: Sequence[Entry]) -> bool:
    """Whether some entry is an interval."""
    return any(isinstance(entry, tuple) for entry in entries)


def ends(name: str, entries: Sequence[Entry]) -> list[Ends]:
    """Return both ends of intervals and rational numbers, of a table with intervals."""
    found = []
    for index, entry in enumerate(entries):
        if isinstance(entry, ClosedForm):
            raise expected(
                f"{name}[{index}]",
                entry.text,
                "to be rational or an interval, in a table with intervals",
                "Enclose it: [lower, upper].",
            )
        found.append((entry, entry) if isinstance(entry, Fraction) else entry)
    return found


def balls(entries: Sequence[Entry]) -> list[arb]:
    """Return balls that contain the entries, none of which is an interval."""
    return [ball_of(entry) for entry in entries if not isinstance(entry, tuple)]


class TableLaws(FiniteLaws):
    """Laws that are rows of entries, none of which is an interval."""

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
        return list(map(log_ratio, *self.rows(index)))  # no intervals


def _entry(name: str, value: object) -> Entry:
    if isinstance(value, Interval):
        value = [value.lower, value.upper]
    if isinstance(value, str) and value.strip()[:1] == "[":  # a cell of a file
        value = value.strip().removeprefix("[").removesuffix("]").split(",")
    if isinstance(value, (list, tuple)):
        return _interval(name, value)
    number = _number(name, value)
    side = sign(lambda: ball_of(number))
    if side is None:
        raise UndecidedError(f"Whether {name}={number} is ≥ 0 takes more digits than there are.")
    if side < 0:
        shown = ExactReal.of_rational(number) if isinstance(number, Fraction) else number.text
        raise expected(name, shown, "≥ 0")
    return number


def _interval(name: str, value: Sequence[object]) -> Entry:
    if len(value) != 2:
        raise expected(name, value, "to be a number or an interval", _INTERVAL)
    low, high = (rational(f"{name}[{i}]", end, least=0) for i, end in enumerate(value))
    if low > high:
        raise expected(name, list(value), "to have its lower end first", _INTERVAL)
    return low if low == high else (low, high)


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


def _short(value: Fraction) -> str:
    return str(ExactReal.of_rational(value))
