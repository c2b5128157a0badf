"""Tables of numbers: what a figure computes, stores as CSV and draws."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias, final

from dpassay.accountant.numbers.interval import Interval

DIGITS = 12
"""Significant digits of a cell; further digits of a float depend on the machine."""

Value = float | str | None
"""A cell; None marks a gap in a curve."""


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column, its unit and its tolerances.

    A recomputed number x agrees with the stored y if |x − y| ≤ absolute + relative·|y|. Texts must
    be equal.
    """

    name: str
    unit: str = ""
    text: bool = False
    relative: float = 1e-9
    absolute: float = 0.0


Columns: TypeAlias = tuple[Column, ...]


def columns_of(
    *labels: str, **units: str | tuple[str, float] | tuple[str, float, float]
) -> Columns:
    """Return text columns, followed by number columns with their units.

    The unit of a dimensionless number is "1". Instead of a unit one can give a tuple of unit,
    relative tolerance and, optionally, absolute tolerance.
    """
    texts = [Column(name, text=True) for name in labels]
    pairs = {name: (unit,) if isinstance(unit, str) else unit for name, unit in units.items()}
    return (*texts, *(Column(name, unit[0], False, *unit[1:]) for name, unit in pairs.items()))


@final
@dataclass(frozen=True)
class Table:
    """Columns, rows, and the parameters of the computation.

    Numbers are rounded to DIGITS significant digits, so that a figure drawn from the table equals
    one drawn from its CSV.
    """

    columns: Columns
    rows: tuple[tuple[Value, ...], ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, columns: Iterable[Column], rows: Iterable[Sequence[object]], **parameters: object
    ) -> Table:
        """Make a table from cells that are numbers, Intervals, texts or None.

        Raises ValueError if the length of a row differs from the number of columns, or a number is
        not finite.
        """
        heads = tuple(columns)
        cells = tuple(
            tuple(_cell(column, value) for column, value in zip(heads, row, strict=True))
            for row in rows
        )
        return cls(heads, cells, parameters)

    @classmethod
    def of_csv(
        cls, text: str, columns: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]
    ) -> Table:
        """Restore a table from its `to_csv` and `about`.

        Raises ValueError if the columns do not match the CSV.
        """
        heads = tuple(Column(**column) for column in columns)
        names, *lines = csv.reader(io.StringIO(text))
        if names != [head.name for head in heads]:
            raise ValueError(f"the CSV has the columns {', '.join(names)}")
        cells = [
            [cell if head.text else float(cell) if cell else None for head, cell in pairs]
            for pairs in (zip(heads, _padded(line, heads), strict=True) for line in lines)
        ]
        return cls(heads, tuple(map(tuple, cells)), parameters)

    def about(self) -> dict[str, Any]:
        """Return the columns and parameters as plain data, with floats rounded like cells."""
        columns = [asdict(column) for column in self.columns]
        plain = json.loads(json.dumps(dict(self.parameters)), parse_float=to_float)
        return {"columns": columns, "parameters": plain}

    def column(self, name: str, **where: Value) -> list[Value]:
        """Return the cells of a column in the rows whose other columns have given values."""
        index = self._index(name)
        wanted = {self._index(key): value for key, value in where.items()}
        return [
            row[index] for row in self.rows if all(row[i] == value for i, value in wanted.items())
        ]

    def numbers(self, name: str, **where: Value) -> list[float]:
        """Return the numbers of a column, without gaps."""
        return [value for value in self.column(name, **where) if isinstance(value, float)]

    def points(self, x: str, y: str, **where: Value) -> tuple[list[float], list[float]]:
        """Return two columns as coordinates, without rows where one of them is a gap."""
        pairs = [
            (a, b)
            for a, b in zip(self.column(x, **where), self.column(y, **where), strict=True)
            if isinstance(a, float) and isinstance(b, float)
        ]
        return [a for a, _ in pairs], [b for _, b in pairs]

    def value(self, name: str, **where: Value) -> float:
        """Return the number in the only row with given values.

        Raises ValueError if there is no such row, or several.
        """
        (found,) = self.numbers(name, **where)
        return found

    def values(
        self, name: str, column: str, labels: Iterable[Value], **where: Value
    ) -> list[float]:
        """Return `value` for each label in a column."""
        return [self.value(name, **{column: one}, **where) for one in labels]

    def distinct(self, name: str, **where: Value) -> list[Value]:
        """Return the distinct cells of a column, in order of appearance."""
        return list(dict.fromkeys(self.column(name, **where)))

    def to_csv(self) -> str:
        """Return the table as CSV with a header line."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([column.name for column in self.columns])
        writer.writerows([_text(value) for value in row] for row in self.rows)
        return stream.getvalue()

    def digest(self) -> str:
        """Return the SHA-256 of the CSV."""
        return hashlib.sha256(self.to_csv().encode()).hexdigest()

    def differences(self, stored: str) -> list[str]:
        """Describe the cells that differ from a stored CSV by more than their tolerances."""
        lines = list(csv.reader(io.StringIO(stored)))
        names = [column.name for column in self.columns]
        if not lines or lines[0] != names:
            return [f"columns {', '.join(names)}, stored: {', '.join(lines[0] if lines else [])}"]
        if len(lines) - 1 != len(self.rows):
            return [f"{len(self.rows)} rows, stored: {len(lines) - 1}"]
        return [
            f"line {line}, {column.name}: {_text(value) or 'nothing'}, stored: {text or 'nothing'}"
            for line, (row, texts) in enumerate(zip(self.rows, lines[1:], strict=True), start=2)
            for column, value, text in zip(self.columns, row, _padded(texts, names), strict=True)
            if not _agrees(column, value, text)
        ]

    def _index(self, name: str) -> int:
        return [column.name for column in self.columns].index(name)


def _cell(column: Column, value: object) -> Value:
    if value is None:
        return None
    if column.text:
        return str(value)
    found = to_float(value)
    if not math.isfinite(found):
        raise ValueError(f"{column.name} = {found} is not finite")
    return found


def to_float(value: object) -> float:
    """Return a number, or the midpoint of an Interval, rounded to DIGITS significant digits."""
    if isinstance(value, Interval):
        value = (Fraction(value.lower) + Fraction(value.upper)) / 2
    return float(f"{float(value):.{DIGITS}g}")  # type: ignore[arg-type]  # raises for others


def _text(value: Value) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.{DIGITS}g}"


def _padded(texts: list[str], names: Sequence[object]) -> list[str]:
    """Pad or cut a row to the number of columns, so that a truncated file shows as a difference."""
    return [*texts, *[""] * len(names)][: len(names)]


def _agrees(column: Column, value: Value, text: str) -> bool:
    if value is None or isinstance(value, str):
        return _text(value) == text
    try:
        stored = float(text)
    except ValueError:
        return False
    return abs(value - stored) <= column.absolute + column.relative * abs(stored)
