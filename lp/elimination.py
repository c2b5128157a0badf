"""Sparse linear systems over the rationals or over balls, and basic solutions of linear programs.

The bases of noise programs consist of long chains p(z) = E·p(z + 1) + δ, connected by a few dense
rows (one mass and one mean per law). Elimination by Markowitz's rule removes the chains with almost
no fill-in; python-flint solves the small dense system that remains.
"""

from __future__ import annotations

import heapq
from typing import TypeAlias

from flint import arb, arb_mat, fmpq, fmpq_mat

from dpassay.accountant.errors import UndecidedError
from dpassay.lp.problem import Value
from dpassay.lp.program import Evaluated

Sparse: TypeAlias = dict[int, Value]
_DENSE_ROW = 12
"""When the sparsest remaining row has more entries than this, the rest is solved as dense."""


def basic_solution(
    program: Evaluated, columns: list[int], tight: list[int]
) -> tuple[list[Value], list[Value]]:
    """Return the primal point and the multipliers of a basis.

    The point is zero outside `columns` and satisfies the rows in `tight` with equality. The
    multipliers are zero outside `tight` and make the reduced costs of `columns` zero.

    Raises
    ------
    UndecidedError
        If the basis is singular, or not proved regular at this precision.
    """
    place = {column: index for index, column in enumerate(columns)}
    rows: list[Sparse] = [
        {place[column]: value for column, value in program.terms[row] if column in place}
        for row in tight
    ]
    transposed: list[Sparse] = [{} for _ in columns]
    for index, row in enumerate(rows):
        for column, value in row.items():
            transposed[column][index] = value
    costs: list[Value] = [fmpq(0)] * len(columns)
    for column, cost in program.program.cost.items():
        if column in place:
            costs[place[column]] = fmpq(cost.numerator, cost.denominator)
    found = solve(rows, [program.bounds[row] for row in tight])
    prices = solve(transposed, costs)
    point: list[Value] = [fmpq(0)] * program.program.columns
    for column, value in zip(columns, found, strict=True):
        point[column] = value
    multipliers: list[Value] = [fmpq(0)] * len(program.terms)
    for row_index, value in zip(tight, prices, strict=True):
        multipliers[row_index] = value
    return point, multipliers


def solve(rows: list[Sparse], right: list[Value]) -> list[Value]:
    """Solve a square sparse system; the arguments are overwritten.

    Raises UndecidedError if all possible pivots of a row are zero or contain zero.
    """
    size = len(rows)
    where: list[set[int]] = [set() for _ in range(size)]
    for index, row in enumerate(rows):
        for column in row:
            where[column].add(index)
    if len(rows) != len(right) or any(not rows_with for rows_with in where):
        raise UndecidedError("The basis is singular.")
    queue = [(len(row), index) for index, row in enumerate(rows)]
    heapq.heapify(queue)
    active = set(range(size))
    pivots: list[tuple[int, int]] = []
    system = (rows, right, where)
    while queue:
        count, index = heapq.heappop(queue)
        if index not in active or count != len(rows[index]):
            continue
        if count > _DENSE_ROW:
            break
        column = _pivot(rows[index], where)
        active.discard(index)
        pivots.append((index, column))
        for other in where[column] - {index}:
            if other in active:
                _subtract(system, index, other, column)
                heapq.heappush(queue, (len(rows[other]), other))
        for entry in rows[index]:
            where[entry].discard(index)
    solution: list[Value] = [fmpq(0)] * size
    _solve_dense(rows, right, sorted(active), {column for _, column in pivots}, solution)
    for index, column in reversed(pivots):
        row = rows[index]
        rest = right[index]
        for entry, value in row.items():
            if entry != column:
                rest = rest - value * solution[entry]
        solution[column] = rest / row[column]
    return solution


def _pivot(row: Sparse, where: list[set[int]]) -> int:
    """Return the column of a certainly nonzero entry, with the fewest entries in its column."""
    usable = [column for column, value in row.items() if _nonzero(value)]
    if not usable:
        raise UndecidedError("The basis is not proved regular at this precision.")
    return min(usable, key=lambda column: (len(where[column]), column))


def _nonzero(value: Value) -> bool:
    return not value.contains(0) if isinstance(value, arb) else value != 0


def _subtract(
    system: tuple[list[Sparse], list[Value], list[set[int]]], index: int, other: int, column: int
) -> None:
    """Eliminate a column from row `other` by subtracting a multiple of row `index`."""
    rows, right, where = system
    source, target = rows[index], rows[other]
    factor = target.pop(column) / source[column]
    for entry, value in source.items():
        if entry == column:
            continue
        change = factor * value
        if entry in target:
            result = target[entry] - change
            if isinstance(result, arb) or result != 0:
                target[entry] = result
            else:
                del target[entry]
                where[entry].discard(other)
        else:
            target[entry] = -change
            where[entry].add(other)
    right[other] = right[other] - factor * right[index]


def _solve_dense(
    rows: list[Sparse],
    right: list[Value],
    remaining: list[int],
    eliminated: set[int],
    solution: list[Value],
) -> None:
    if not remaining:
        return
    columns = sorted({column for column in range(len(rows)) if column not in eliminated})
    entries = [rows[index].get(column, fmpq(0)) for index in remaining for column in columns]
    sides = [right[index] for index in remaining]
    size = len(remaining)
    exact = [entry for entry in [*entries, *sides] if isinstance(entry, fmpq)]
    found: fmpq_mat | arb_mat
    try:
        if len(exact) == len(entries) + size:
            matrix = fmpq_mat(size, size, exact[:-size])
            found = matrix.solve(fmpq_mat(size, 1, exact[-size:]))
        else:
            found = arb_mat(size, size, entries).solve(arb_mat(size, 1, sides))
    except ZeroDivisionError:
        raise UndecidedError("The basis is not proved regular at this precision.") from None
    for place, column in enumerate(columns):
        solution[column] = found[place, 0]
