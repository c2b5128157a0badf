"""The simplex method over balls, to finish what floating-point solvers cannot.

Each pivot solves the basis anew (`dpassay.lp.elimination`), so nothing drifts. A basis that is
neither primal nor dual feasible is handled by two runs: the primal method with the violated bounds
moved out to where the point is, then the dual method with the true bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, final

from flint import arb, fmpq

from dpassay.accountant.errors import UndecidedError
from dpassay.lp.elimination import Sparse, basic_solution, solve
from dpassay.lp.problem import Value
from dpassay.lp.program import Evaluated, Scaled
from dpassay.lp.solve import Basis

_MOST_WORK = 200_000_000
"""Pivots times the square of the columns after which the last basis is taken: some 10 s."""


class Optimal(NamedTuple):
    """A basis with its point and multipliers."""

    basis: Basis
    point: list[Value]
    multipliers: list[Value]


class Limits(NamedTuple):
    """log₂ of how far below 0 a value and a reduced cost may be: columns, then inequalities."""

    values: Sequence[int]
    costs: Sequence[int]
    rates: int
    """log₂ of what counts as 0 among rates of change."""


def finished(program: Evaluated, form: Scaled, found: Optimal, limits: Limits) -> Optimal:
    """Pivot until no value and no reduced cost is below its limit in the scaling.

    Where the pivots run out, or a basis is not seen to be regular, the last basis is returned.
    """
    run = _Simplex(program, form, found)
    with suppress(UndecidedError):
        run.improve(limits.costs, limits.rates, primal=True)
        run.improve(limits.values, limits.rates, primal=False)
    return run.found


@final
class _Simplex:
    """Variable j is column j, and those that follow are the slacks of the inequalities."""

    def __init__(self, program: Evaluated, form: Scaled, found: Optimal) -> None:
        self.found, self._program, self._unit = found, program, form.cost_exponent
        self._columns: list[list[tuple[int, Value]]] = [[] for _ in form.column_exponents]
        for row, terms in enumerate(program.terms):
            for column, value in terms:
                self._columns[column].append((row, value))
        self._free = [row for row, fixed in enumerate(form.equalities) if not fixed]
        self._scales = [*form.column_exponents, *(form.row_exponents[row] for row in self._free)]
        self._pivots = 0

    def improve(self, limits: Sequence[int], rates: int, *, primal: bool) -> None:
        """Make the reduced costs ≥ 0, never lowering a value that is < 0; or the values ≥ 0."""
        floors = [value.min(arb(0)) for value in self._values()]
        while True:
            basis, tight = set(self.found.basis.columns), set(self.found.basis.tight)
            basic = [column in basis for column in range(len(self._columns))]
            basic += [row not in tight for row in self._free]
            values, costs = self._values(), self._costs()
            if primal:
                values = [value - floor for value, floor in zip(values, floors, strict=True)]
            sizes, rooms = (costs, values) if primal else (values, costs)
            wrong = [
                name
                for name, size in enumerate(sizes)
                if basic[name] != primal and size < -(arb(2) ** limits[name])
            ]
            if not wrong:
                return
            first = min(wrong, key=lambda name: sizes[name])
            change = self._change(first, slacks=not primal)
            sign = 1 if primal else -1
            best: list[tuple[arb, arb, int]] = []
            for name, room in enumerate(rooms):
                if basic[name] == primal:
                    scale = sign * (self._scales[first] - self._scales[name])
                    rate = -_middle(change(name)) * arb(2) ** scale
                    if rate > arb(2) ** rates:
                        best.append(((room.max(arb(0)) / rate).mid(), -rate, name))
            if not best:
                raise UndecidedError("The program has no optimum.")
            self._exchange(first, min(best)[2])

    def _values(self) -> list[arb]:
        slacks = self._program.slacks(self.found.point)
        every = [*self.found.point, *(slacks[row] for row in self._free)]
        scaled = zip(every, self._scales, strict=True)
        return [_middle(value) * arb(2) ** -scale for value, scale in scaled]

    def _costs(self) -> list[arb]:
        multipliers = self.found.multipliers
        every = self._program.reduced_costs(multipliers)
        every += [multipliers[row] for row in self._free]
        scaled = zip(every, self._scales, strict=True)
        return [_middle(value) * arb(2) ** (scale - self._unit) for value, scale in scaled]

    def _exchange(self, *names: int) -> None:
        self._pivots += 1
        if self._pivots * len(self._columns) ** 2 > _MOST_WORK:
            raise UndecidedError(f"No optimal basis was found in {self._pivots} pivots.")
        columns, tight = map(set, self.found.basis)
        for name in names:
            slack, index = self._place(name)
            (tight if slack else columns).symmetric_difference_update({index})
        basis = Basis(sorted(columns), sorted(tight))
        self.found = Optimal(basis, *basic_solution(self._program, *basis))

    def _place(self, name: int) -> tuple[bool, int]:
        """Return whether a variable is a slack, and its column or row."""
        beyond = name - len(self._columns)
        return (True, self._free[beyond]) if beyond >= 0 else (False, name)

    def _change(self, name: int, *, slacks: bool) -> Callable[[int], Value]:
        """Return how fast each basic variable changes while a variable grows from 0.

        With `slacks`: how fast each reduced cost changes while that of the variable grows. The
        unknowns are then the multipliers of the tight rows, one equation for each basic column,
        where otherwise they are the basic columns, one equation for each tight row.
        """
        rows, columns, sign = self._program.terms, self._columns, fmpq(1)
        unknown, equations = self.found.basis
        if slacks:
            rows, columns, sign = columns, rows, fmpq(-1)
            unknown, equations = equations, unknown
        slack, index = self._place(name)
        own = slack == slacks
        right: Sparse = {at: -value for at, value in columns[index]} if own else {index: sign}
        place = {entry: position for position, entry in enumerate(unknown)}
        system = [{place[c]: v for c, v in rows[each] if c in place} for each in equations]
        found = solve(system, [right.get(each, fmpq(0)) for each in equations])
        moved: dict[int, Value] = dict(zip(unknown, found, strict=True))
        if own:
            moved[index] = fmpq(1)

        def change(name: int) -> Value:
            is_slack, at = self._place(name)
            if is_slack == slacks:
                return moved.get(at, fmpq(0))
            return sign * sum((v * moved[c] for c, v in rows[at] if c in moved), start=fmpq(0))

        return change


def _middle(value: Value) -> arb:
    return arb(value).mid()
