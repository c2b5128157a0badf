"""The simplex method in high precision, to finish what the floating-point solver began.

Each pivot solves the basis anew over balls (`lp.elimination`), so nothing drifts and no update
formulas are needed; from the solver's last basis a few pivots are enough. A basis that is
neither primal nor dual feasible is handled by two runs: the primal method with the violated
bounds moved out to where the point is, then the dual method with the true bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias, final

from flint import arb, fmpq

from accountant.errors import UndecidedError
from lp.elimination import Sparse, basic_solution, solve
from lp.problem import Value
from lp.program import Evaluated, Scaled

_MOST_WORK = 200_000_000
"""Pivots times the square of the columns after which the last basis is taken: some 10 s."""

Name: TypeAlias = tuple[bool, int]
"""A variable: (False, column), or (True, row) for the slack of a row."""
_Change: TypeAlias = Callable[[Name], Value]


@final
@dataclass(frozen=True)
class Optimal:
    """An optimal basis and its solution."""

    point: list[Value]
    multipliers: list[Value]
    columns: list[int]
    tight: list[int]
    pivots: int


def optimal_basis(
    program: Evaluated,
    form: Scaled,
    columns: list[int],
    tight: list[int],
    bits: int,
    *,
    visible: int | None = None,
) -> Optimal:
    """Pivot until no variable and no reduced cost is below −2^−bits in the scaling.

    With `visible`, those that are above −2^−visible in the unit of the objective stay: the
    optimum does not show them. Where the pivots run out the last basis is returned.

    Raises UndecidedError where a basis is not seen to be regular.
    """
    run = _Simplex(program, form, set(columns), set(tight), bits, visible=visible)
    with suppress(_OutOfWorkError):
        run.tighten_equalities()
        run.primal()
        run.dual()
    return Optimal(run.point, run.multipliers, sorted(run.columns), sorted(run.tight), run.pivots)


class _OutOfWorkError(UndecidedError):
    """The pivots ran out."""


class _Simplex:
    def __init__(
        self,
        program: Evaluated,
        form: Scaled,
        columns: set[int],
        tight: set[int],
        bits: int,
        *,
        visible: int | None,
    ) -> None:
        self.columns, self.tight, self.pivots = columns, tight, 0
        self._program, self._form = program, form
        self._tolerance = arb(2) ** -bits
        self._visible = visible
        self._free = [row for row, equality in enumerate(form.equalities) if not equality]
        self._by_column: list[list[tuple[int, Value]]] = [[] for _ in form.column_exponents]
        for row, terms in enumerate(program.terms):
            for column, value in terms:
                self._by_column[column].append((row, value))
        self._solve()

    def _solve(self) -> None:
        """Compute the basic solution, slacks and reduced costs of the current basis."""
        self.point, self.multipliers = basic_solution(
            self._program, sorted(self.columns), sorted(self.tight)
        )
        self._slacks = self._program.slacks(self.point)
        self._costs = self._program.reduced_costs(self.multipliers)

    def _scale(self, name: Name) -> int:
        """Return log₂ of the unit in which the variable is measured."""
        slack, index = name
        return (self._form.row_exponents if slack else self._form.column_exponents)[index]

    def _basic(self) -> list[Name]:
        loose = [(True, row) for row in self._free if row not in self.tight]
        return [(False, column) for column in sorted(self.columns)] + loose

    def _nonbasic(self) -> list[Name]:
        columns = [
            (False, column) for column in range(len(self._by_column)) if column not in self.columns
        ]
        return columns + [(True, row) for row in self._free if row in self.tight]

    def _value(self, name: Name) -> arb:
        slack, index = name
        return _middle((self._slacks if slack else self.point)[index]) * arb(2) ** -self._scale(
            name
        )

    def _cost(self, name: Name) -> arb:
        slack, index = name
        value = (self.multipliers if slack else self._costs)[index]
        return _middle(value) * arb(2) ** (self._scale(name) - self._form.cost_exponent)

    def tighten_equalities(self) -> None:
        """Bring every equality into the basis; a float solver may think one redundant."""
        for row, equality in enumerate(self._form.equalities):
            if not equality or row in self.tight:
                continue
            change = self._change((True, row), slacks=True)
            unit = self._scale((True, row))
            best, entering = arb(0), None
            for name in self._nonbasic():
                size = abs(_middle(change(name))) * arb(2) ** (self._scale(name) - unit)
                merit = size / (self._cost(name).max(arb(0)) + self._tolerance)
                if size > self._tolerance and merit > best:
                    best, entering = merit, name
            if entering is None:
                raise UndecidedError("An equality is redundant.")
            self._exchange(entering, (True, row))

    def primal(self) -> None:
        """Make the reduced costs ≥ 0, never lowering a variable that is < 0 already."""
        floors = {name: self._value(name).min(arb(0)) for name in self._basic()}
        while True:
            entering = self._most_negative(self._nonbasic(), self._cost, lambda scale: scale)
            if entering is None:
                return
            change = self._change(entering, slacks=False)
            leaving, best, size = None, arb(0), arb(0)
            for name in self._basic():
                rate = _middle(change(name)) * arb(2) ** -self._scale(name)
                if rate < -self._tolerance:
                    room = (self._value(name) - floors.get(name, arb(0))).max(arb(0))
                    ratio = (room / -rate).mid()
                    if leaving is None or ratio < best or (ratio == best and -rate > size):
                        leaving, best, size = name, ratio, -rate
            if leaving is None:
                raise UndecidedError("The program is unbounded below.")
            self._exchange(entering, leaving)

    def dual(self) -> None:
        """Make the variables ≥ 0, keeping the reduced costs ≥ 0."""
        unit = self._form.cost_exponent
        while True:
            leaving = self._most_negative(self._basic(), self._value, lambda scale: unit - scale)
            if leaving is None:
                return
            change = self._change(leaving, slacks=True)
            entering, best, size = None, arb(0), arb(0)
            for name in self._nonbasic():
                rate = _middle(change(name)) * arb(2) ** (self._scale(name) - self._scale(leaving))
                if rate < -self._tolerance:
                    ratio = (self._cost(name).max(arb(0)) / -rate).mid()
                    if entering is None or ratio < best or (ratio == best and -rate > size):
                        entering, best, size = name, ratio, -rate
            if entering is None:
                raise UndecidedError("The constraints contradict each other.")
            self._exchange(entering, leaving)

    def _most_negative(
        self, names: list[Name], size: Callable[[Name], arb], shift: Callable[[int], int]
    ) -> Name | None:
        """Return the variable that is furthest below its tolerance, 2^`shift`(scale) if visible."""
        worst, found = arb(0), None
        for name in names:
            value, tolerance = size(name), self._tolerance
            if self._visible is not None:
                tolerance = arb(2) ** (shift(self._scale(name)) - self._visible)
            if value < -tolerance and value < worst:
                worst, found = value, name
        return found

    def _exchange(self, entering: Name, leaving: Name) -> None:
        self.pivots += 1
        if self.pivots * len(self._by_column) ** 2 > _MOST_WORK:
            raise _OutOfWorkError(f"No optimal basis was found in {self.pivots} pivots.")
        for slack, index in (entering, leaving):
            (self.tight if slack else self.columns).symmetric_difference_update({index})
        self._solve()

    def _change(self, name: Name, *, slacks: bool) -> _Change:
        """Return how fast each basic variable changes while a variable grows from 0.

        With `slacks`: how fast each reduced cost changes while that of the variable grows. The
        unknowns are then the multipliers of the tight rows, one equation for each basic column,
        where otherwise they are the basic columns, one equation for each tight row.
        """
        rows, columns, sign = self._program.terms, self._by_column, fmpq(1)
        unknown, equations = sorted(self.columns), sorted(self.tight)
        if slacks:
            rows, columns, sign = columns, rows, fmpq(-1)
            unknown, equations = equations, unknown
        slack, index = name
        own = slack == slacks
        right: Sparse = {at: -value for at, value in columns[index]} if own else {index: sign}
        place = {entry: position for position, entry in enumerate(unknown)}
        system = [{place[c]: v for c, v in rows[each] if c in place} for each in equations]
        found = solve(system, [right.get(each, fmpq(0)) for each in equations])
        moved: dict[int, Value] = dict(zip(unknown, found, strict=True))
        if own:
            moved[index] = fmpq(1)

        def change(name: Name) -> Value:
            is_slack, at = name
            if is_slack == slacks:
                return moved.get(at, fmpq(0))
            return sign * sum((v * moved[c] for c, v in rows[at] if c in moved), start=fmpq(0))

        return change


def _middle(value: Value) -> arb:
    return (arb(value) if isinstance(value, fmpq) else value).mid()
