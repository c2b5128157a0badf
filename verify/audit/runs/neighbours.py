"""Neighbouring datasets to try, from a description of what a dataset is.

The pairs are the ones that broke mechanisms in the literature: nothing at all, one record, many
equal records, an outlier, the ends of the allowed range, negative zero, numbers on both sides of a
power of two (where the grid of floating point changes), very large numbers, infinities and NaN.
The list is fixed before any run; an audit chooses among its pairs on training runs and tests one of
them, so that the search costs training runs and no significance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import InvalidInputError, expected, suggestion
from dpassay.verifier.audit.runs.blocks import Datasets

_MANY = 100
"""Equal records in a large table: sums of them pass several powers of two."""
_HUGE = 2.0**60
"""A true answer at which the next double is 256 away."""


def neighbours(
    kind: str | Mapping[str, Any],
    *,
    low: float | None = None,
    high: float | None = None,
    length: int = 3,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    sensitivity: float = 1.0,
    special: bool = False,
    frame: Callable[..., Any] | None = None,
) -> list[Datasets]:
    """Return pairs of neighbours.

    Parameters
    ----------
    kind
        `count`: a dataset is an integer, neighbours differ by 1. `number`: a real true answer,
        neighbours differ by `sensitivity`. `vector`: `length` true answers, neighbours differ by
        `sensitivity` in one of them or (as counts of one person's attributes) in all. `table`: a
        list of records in [low, high], neighbours by adjacency. `rows`: a list of records of
        `length` numbers each. A mapping of columns describes records: (low, high) for a number
        (whole where both ends are ints), a list for categories; then a dataset is a list of
        dictionaries, or what `frame` makes of it.
    frame
        What turns a list of records into a dataset, such as `pandas.DataFrame`; it is called
        `frame(records, columns=[…])`, so that an empty table has its columns too.
    low, high
        The range of a record, or of an answer; 0 and 1 for records by default.
    special
        Whether to add infinities, NaN and numbers outside of the range, which a mechanism should
        clamp or refuse, and whose handling must not depend on the data.
    """
    if isinstance(kind, Mapping):
        relation = Adjacency.read(adjacency) or Adjacency.ADD_REMOVE
        return _of_schema(kind, relation, frame, special=special)
    if kind not in _KINDS:
        raise InvalidInputError(f"Unknown kind of dataset {kind!r}. {suggestion(kind, _KINDS)}")
    if low is not None and high is not None and not low < high:
        raise expected("low", low, f"< high={high}")
    if length < 1:
        raise expected("length", length, "≥ 1")
    relation = Adjacency.read(adjacency) or Adjacency.ADD_REMOVE
    options = {"low": low, "high": high, "length": length, "sensitivity": sensitivity}
    found = _KINDS[kind]({**options, "relation": relation, "special": special})
    distinct: list[Datasets] = []
    for pair in found:
        if repr(pair[0]) != repr(pair[1]) and repr(pair) not in map(repr, distinct):
            distinct.append(pair)
    return distinct


def _counts(options: Mapping[str, Any]) -> list[Datasets]:
    low = 0 if options["low"] is None else int(options["low"])
    starts = [low, low + 1, low + 7, low + 127, low + 1000, 2**31 - 1, 2**53 - 1]
    if options["high"] is not None:
        starts = [s for s in starts if s < options["high"]] + [int(options["high"]) - 1]
    return [(start, start + 1) for start in dict.fromkeys(starts)]


def _numbers(options: Mapping[str, Any]) -> list[Datasets]:
    step = float(options["sensitivity"])
    starts = [0.0, -step, -step / 2, 1.0 - step / 2, 0.1, 1 / 3, 1000.0, 2.0**20 - step / 2, _HUGE]
    low = -math.inf if options["low"] is None else float(options["low"])
    high = math.inf if options["high"] is None else float(options["high"])
    starts += [value for value in (low, high - step) if math.isfinite(value)]
    pairs: list[Datasets] = [(s, s + step) for s in starts if low <= s and s + step <= high]
    pairs += [(0.0, -0.0)]
    if options["special"]:
        pairs += [(0.0, math.inf), (0.0, math.nan), (0.0, 1e308)]
    return pairs


def _vectors(options: Mapping[str, Any]) -> list[Datasets]:
    length, step = int(options["length"]), float(options["sensitivity"])
    zero = [0.0] * length
    unit = [step] + [0.0] * (length - 1)
    level = [10.0] * length
    distinct = [float(10 * i) for i in range(length)]
    pairs: list[Datasets] = []
    for base in (zero, level, distinct):
        pairs.append((base, [a + b for a, b in zip(base, unit, strict=True)]))
        pairs.append((base, [a + b for a, b in zip(base, reversed(unit), strict=True)]))
        pairs.append((base, [a + step for a in base]))
        pairs.append(
            (
                [a + step * (i < length // 2) for i, a in enumerate(base)],
                [a + step * (i >= length // 2) for i, a in enumerate(base)],
            )
        )
        pairs.append(([base[0], *(a + step for a in base[1:])], [base[0] + step, *base[1:]]))
    return pairs


def _records(options: Mapping[str, Any], record: Callable[[float], Any]) -> list[Datasets]:
    low = 0.0 if options["low"] is None else float(options["low"])
    high = 1.0 if options["high"] is None else float(options["high"])
    special = [-0.0, math.inf, math.nan, high * 1e6 + 1e6] if options["special"] else []
    return _tables(low, high, special, options["relation"], record)


def _tables(
    low: float,
    high: float,
    special: Sequence[float],
    relation: Adjacency,
    record: Callable[[float], Any],
) -> list[Datasets]:
    middle = (low + high) / 2
    bases: list[list[float]] = [[], [low], [high], [low] * _MANY, [high] * _MANY]
    bases += [[low, high], [low + (high - low) * i / 9 for i in range(10)], [middle]]
    pairs: list[Datasets] = []
    for base in bases:
        for value in (low, high, middle, *special):
            more = [*map(record, base), record(value)]
            if relation is Adjacency.ADD_REMOVE:
                pairs.append((more[:-1], more))
            else:
                pairs += [
                    ([*more[:-1], record(other)], more) for other in (low, high) if other != value
                ]
    return pairs


def _of_schema(
    schema: Mapping[str, Any],
    relation: Adjacency,
    frame: Callable[..., Any] | None,
    *,
    special: bool,
) -> list[Datasets]:
    """Return tables of records whose columns move together, and records with one column apart."""
    columns = {name: _column(name, values) for name, values in schema.items()}
    if not columns:
        raise InvalidInputError("Expected a schema with at least one column.")

    def record(value: float) -> dict[str, Any]:
        if not 0 <= value <= 1:  # NaN and what is outside of the range, where the type allows it
            odd = {name: value for name, at in columns.items() if isinstance(at(0.5), float)}
            return {**record(0.5), **odd}
        return {name: at(value) for name, at in columns.items()}

    extra = [-0.5, math.inf, math.nan] if special else []
    pairs = _tables(0.0, 1.0, extra, relation, record)
    for name, at in columns.items():
        lone = [{**record(0.0), name: at(1.0)}, {**record(1.0), name: at(0.0)}]
        if relation is Adjacency.ADD_REMOVE:
            pairs += [([], [each]) for each in lone]
        else:
            pairs += [([record(end)], [each]) for end, each in zip((0.0, 1.0), lone, strict=True)]
    distinct = list({repr(pair): pair for pair in pairs if repr(pair[0]) != repr(pair[1])}.values())
    if frame is None:
        return distinct
    names = list(columns)
    return [(frame(a, columns=names), frame(b, columns=names)) for a, b in distinct]


def _column(name: str, values: Any) -> Callable[[float], Any]:
    """Return what a column holds between its least (0) and its largest value (1)."""
    if isinstance(values, list) and values:
        return lambda value: values[round(value * (len(values) - 1))]
    if isinstance(values, tuple) and len(values) == 2 and values[0] < values[1]:
        low, high = values
        if isinstance(low, int) and isinstance(high, int):
            return lambda value: low + round(value * (high - low))
        return lambda value: float(low + value * (high - low))
    raise InvalidInputError(
        f"Expected column {name!r} to be (low, high) with low < high or a list of categories, not "
        f"{values!r}."
    )


_KINDS: dict[str, Callable[[Mapping[str, Any]], list[Datasets]]] = {
    "count": _counts,
    "number": _numbers,
    "vector": _vectors,
    "table": lambda options: _records(options, lambda value: value),
    "rows": lambda options: _records(options, lambda value: [value] * options["length"]),
}
