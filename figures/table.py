"""Tables of plotted numbers: what a figure computes, stores as CSV, and draws."""

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
"""Significant digits that are kept: the last ones of a float depend on the machine."""

Value = float | str | None
"""A cell; None where a curve has no point."""


@final
@dataclass(frozen=True, slots=True)
class Column:
    """One column: what it holds, and how far a recomputed number may be from a stored one.

    A number agrees if |found − stored| ≤ absolute + relative·|stored|; a text is the same text.
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
    """Return columns of texts, then of numbers with their units, "1" for a number without one.

    A unit may have the relative tolerance behind it, and then the absolute one.
    """
    texts = [Column(name, text=True) for name in labels]
    pairs = {name: (unit,) if isinstance(unit, str) else unit for name, unit in units.items()}
    return (*texts, *(Column(name, unit[0], False, *unit[1:]) for name, unit in pairs.items()))


@final
@dataclass(frozen=True)
class Table:
    """Columns, rows, and the parameters that they were computed with.

    Numbers are rounded to DIGITS significant digits as the table is made, so that a figure drawn
    from a table and one drawn from its CSV are the same.
    """

    columns: Columns
    rows: tuple[tuple[Value, ...], ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, columns: Iterable[Column], rows: Iterable[Sequence[object]], **parameters: object
    ) -> Table:
        """Make a table; cells may be any exact or floating number, an Interval, a text or None.

        Raises ValueError if a row has another length than the list of columns, or a number is not
        finite.
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
        """Read back what `to_csv` and `about` wrote, of the same table.

        Raises ValueError if the columns are not those of the CSV.
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
        """Return the columns and parameters as plain data, floats rounded as cells are."""
        columns = [asdict(column) for column in self.columns]
        plain = json.loads(json.dumps(dict(self.parameters)), parse_float=to_float)
        return {"columns": columns, "parameters": plain}

    def column(self, name: str, **where: Value) -> list[Value]:
        """Return the cells of a column, in the rows where other columns have given values."""
        index = self._index(name)
        wanted = {self._index(key): value for key, value in where.items()}
        return [
            row[index] for row in self.rows if all(row[i] == value for i, value in wanted.items())
        ]

    def numbers(self, name: str, **where: Value) -> list[float]:
        """Return the numbers of a column, gaps left out."""
        return [value for value in self.column(name, **where) if isinstance(value, float)]

    def points(self, x: str, y: str, **where: Value) -> tuple[list[float], list[float]]:
        """Return two columns as coordinates, without the rows where either is missing."""
        pairs = [
            (a, b)
            for a, b in zip(self.column(x, **where), self.column(y, **where), strict=True)
            if isinstance(a, float) and isinstance(b, float)
        ]
        return [a for a, _ in pairs], [b for _, b in pairs]

    def value(self, name: str, **where: Value) -> float:
        """Return the number of the only row of that kind.

        Raises ValueError if there is none, or more than one.
        """
        (found,) = self.numbers(name, **where)
        return found

    def values(
        self, name: str, column: str, labels: Iterable[Value], **where: Value
    ) -> list[float]:
        """Return the number of the only row for each cell of a column."""
        return [self.value(name, **{column: one}, **where) for one in labels]

    def distinct(self, name: str, **where: Value) -> list[Value]:
        """Return the different cells of a column, in the order of their first row."""
        return list(dict.fromkeys(self.column(name, **where)))

    def to_csv(self) -> str:
        """Return the table as CSV: a header, then one line per row."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([column.name for column in self.columns])
        writer.writerows([_text(value) for value in row] for row in self.rows)
        return stream.getvalue()

    def digest(self) -> str:
        """Return the SHA-256 of the CSV."""
        return hashlib.sha256(self.to_csv().encode()).hexdigest()

    def differences(self, stored: str) -> list[str]:
        """Say where the table differs from a stored CSV by more than its tolerances."""
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
    """Return a number as a float of DIGITS significant digits: the middle of an Interval."""
    if isinstance(value, Interval):
        value = (Fraction(value.lower) + Fraction(value.upper)) / 2
    return float(f"{float(value):.{DIGITS}g}")  # type: ignore[arg-type]  # raises for others


def _text(value: Value) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.{DIGITS}g}"


def _padded(texts: list[str], names: Sequence[object]) -> list[str]:
    """Return as many cells as there are columns: a file that was cut short differs in them."""
    return [*texts, *[""] * len(names)][: len(names)]


def _agrees(column: Column, value: Value, text: str) -> bool:
    if value is None or isinstance(value, str):
        return _text(value) == text
    try:
        stored = float(text)
    except ValueError:
        return False
    return abs(value - stored) <= column.absolute + column.relative * abs(stored)
