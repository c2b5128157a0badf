"""Rows of other libraries' unit tests, and whether an enclosure is what a row expects.

A row states parameters in the words of the library, what its test expects, and within what
tolerance. `laws` and `accountants` translate them.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.interval import Interval

Row: TypeAlias = dict[str, Any]
FOLDER = Path(__file__).parent
WIDTH = Fraction(1, 10**9)


@dataclass(frozen=True)
class Case:
    """One row of one table."""

    table: str
    test: str
    row: int
    quantity: str
    given: Row

    def __str__(self) -> str:
        """Name the row."""
        return f"{self.table}: {self.test}[{self.row}] {self.quantity}"


def event_of(data: Any) -> Any:
    """Return an object with the class name and the attributes that a JSON object names."""
    if isinstance(data, list):
        return [event_of(entry) for entry in data]
    if not isinstance(data, dict):
        return data
    members = {key: event_of(value) for key, value in data.items() if key != "type"}
    kind = data.get("type", "").removesuffix("DpEvent")
    return type(f"{kind}DpEvent", (), members)()


def cases() -> Iterator[Case]:
    """Read every table; decimals stay the texts that they are."""
    for path in sorted(FOLDER.glob("*.toml")):
        if path.stem == "decided":
            continue
        table = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=str)
        for row in table["cases"]:
            yield Case(path.stem, row["test"], row["row"], row["quantity"], row)


def tolerance(row: Row, expected: Any) -> Fraction:
    if "relative" in row:  # numpy.isclose adds 1e-8
        return Fraction(row["relative"]) * abs(Fraction(expected)) + Fraction(1, 10**8)
    return Fraction(row["tolerance"])


def near(row: Row, found: Interval, expected: Any, what: str = "") -> str | None:
    """Compare an enclosure, which must lie within the tolerance as a whole."""
    said = f"{what} is in [{found.lower}, {found.upper}], expected {expected}"
    if math.isinf(float(expected)):
        same = math.isinf(found.lower) and (found.lower > 0) == (float(expected) > 0)
        return None if same else said
    if not (found.lower.is_finite() and found.upper.is_finite()):
        return said
    middle, slack = Fraction(expected), tolerance(row, expected) + FLOAT
    least, most = middle - slack, middle + slack
    return None if least <= Fraction(found.lower) and Fraction(found.upper) <= most else said


FLOAT = Fraction(1, 10**14)  # a few roundings: what tests want to be equal in floats


def first(messages: Iterator[str | None]) -> str | None:
    return next((message for message in messages if message is not None), None)


def narrowest(row: Row, ask: Callable[[Fraction], Interval]) -> Interval:
    """Ask for half of the tolerance; what is refused says the best enclosure reached."""
    wanted = Fraction(1, 10**9)
    if row.get("tolerance") and row.get("expected"):
        share = Fraction(row["tolerance"]) / Fraction(row["expected"]) / 2
        wanted = max(wanted, min(Fraction(1, 4), share))
    try:
        return ask(wanted)
    except UndecidedError as refusal:
        if isinstance(refusal.interval, Interval):
            return refusal.interval
        raise
