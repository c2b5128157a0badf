"""From the basis that a floating-point solver finds to the optimal one.

*Iterative refinement* (Gleixner, Steffy and Wolter 2016), on basic solutions. The solution of a
basis is computed over balls. Its violations of bounds and reduced costs are scaled up by powers of
two and replace the bounds and costs of the program; the solver, started from this basis, then finds
a better one. Costs are corrected first, with violated bounds relaxed to the current point; then the
true bounds are restored.

*The simplex method over balls* finishes where the floating-point solver makes no further progress.
Each pivot solves the basis from scratch (`dpassay.lp.elimination`), so errors do not accumulate. A
basis that is neither primal nor dual feasible takes two runs: the primal method with violated
bounds relaxed to the current point, then the dual method with the true bounds.

The result is still unproved; `dpassay.lp.certificate` derives rigorous bounds from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, final

from flint import arb, fmpq

from dpassay.accountant.errors import UndecidedError
from dpassay.lp.elimination import Sparse, basic_solution, solve
from dpassay.lp.problem import Value, middle
from dpassay.lp.program import Evaluated, Scaled
from dpassay.lp.solve import Basis, Highs, InfeasibleError, SolverError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_STALLS = 5
"""Corrections without progress after which refinement stops; most programs need two in all."""
_LESS = 4
"""log₂ of the factor by which the magnification is reduced after a correction without progress."""


def optimal_basis(
    program: Evaluated, solver: Highs, basis: Basis, bits: int, *, visible: int | None = None
) -> Optimal:
    """Return a basis with no scaled value and no scaled reduced cost below −2^−bits.

    With `visible`, violations of up to 2^−visible in units of the objective are tolerated, because
    they do not change the optimum noticeably. `finished` completes the search if refinement stops
    making progress.

    Raises UndecidedError if the first basis is not proved regular.
    """
    import numpy as np

    form, free, fixed = solver.form, solver.inequalities, solver.equalities
    columns, unit = np.array(form.column_exponents), form.cost_exponent
    rows = np.array(form.row_exponents)
    scales = np.concatenate([columns, rows[free]])  # of the variables: columns, then slacks
    finest = np.full(len(scales), -bits)
    low, cheap = finest, finest
    if visible is not None:
        low, cheap = unit - scales - visible, scales - visible
    found = best = Optimal(basis, *basic_solution(program, *basis))
    least, stalled, gain = math.inf, 0, 0
    while True:
        loose = np.ones(len(rows), dtype=bool)
        loose[found.basis.tight] = False
        slacks = np.where(loose, _floats(program.slacks(found.point), -rows), 0)
        values = np.concatenate([_floats(found.point, -columns), slacks[free]])
        costs = np.concatenate(
            [
                _floats(program.reduced_costs(found.multipliers), columns - unit),
                _floats(found.multipliers, rows - unit)[free],
            ]
        )
        basic = np.isin(np.arange(len(scales)), found.basis.columns)
        basic[len(columns) :] = loose[free]
        costs[basic] = 0
        wrong = max(_size(-values, low), _size(abs(slacks[fixed]), finest[: len(fixed)]))
        dear = _size(-costs, cheap)
        if max(wrong, dear) < least:
            best, least, stalled = found, max(wrong, dear), 0
        else:
            stalled += 1
        if least == -math.inf:
            return best
        if stalled == _MOST_STALLS:
            break
        if dear > -math.inf:
            gain = max(gain, -int(dear)) - _LESS * stalled
            lower, sides = np.minimum(-values, 0), np.zeros(len(fixed))
        else:
            lower, sides = (_magnified(-each, -int(wrong)) for each in (values, slacks[fixed]))
        try:
            basis = solver.correct(lower, sides, _magnified(costs, gain))
            found = Optimal(basis, *basic_solution(program, *basis))
        except (SolverError, InfeasibleError, UndecidedError):
            break
    return finished(program, form, best, Limits(low.tolist(), cheap.tolist(), -bits))


def _floats(values: Sequence[Value], exponents: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the values, as floats, times powers of two."""
    import numpy as np

    return _magnified(np.array([float(middle(value)) for value in values]), exponents)


def _magnified(
    values: NDArray[np.float64], exponents: NDArray[np.int64] | int
) -> NDArray[np.float64]:
    import numpy as np

    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(values, exponents)


def _size(violations: NDArray[np.float64], limits: NDArray[np.int64]) -> float:
    """Return log₂ of the largest violation that exceeds its limit, rounded up, or −∞."""
    import numpy as np

    sizes = np.frexp(violations)[1]
    return float(max(sizes[(violations > 0) & (sizes > limits)], default=-math.inf))


_MOST_WORK = 200_000_000
"""Limit on the number of pivots times the square of the number of columns: about 10 s."""


class Optimal(NamedTuple):
    """A basis, its primal point and its multipliers."""

    basis: Basis
    point: list[Value]
    multipliers: list[Value]


class Limits(NamedTuple):
    """Tolerances, as log₂, for negative values and reduced costs of columns, then inequalities."""

    values: Sequence[int]
    costs: Sequence[int]
    rates: int
    """log₂ of the rate of change below which a pivot counts as 0."""


def finished(program: Evaluated, form: Scaled, found: Optimal, limits: Limits) -> Optimal:
    """Pivot until no scaled value and no scaled reduced cost violates its limit.

    Returns the last basis if the limit on pivots is reached or a basis is not proved regular.
    """
    run = _Simplex(program, form, found)
    with suppress(UndecidedError):
        run.improve(limits.costs, limits.rates, primal=True)
        run.improve(limits.values, limits.rates, primal=False)
    return run.found


@final
class _Simplex:
    """The simplex method over balls. Its variables are the columns, then the inequality slacks."""

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
        """Make the reduced costs ≥ 0 (primal method) or the values ≥ 0 (dual method).

        The primal method does not decrease a value that is negative at the start.
        """
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
                    rate = -middle(change(name)) * arb(2) ** scale
                    if rate > arb(2) ** rates:
                        best.append(((room.max(arb(0)) / rate).mid(), -rate, name))
            if not best:
                raise UndecidedError("The program has no optimum.")
            self._exchange(first, min(best)[2])

    def _values(self) -> list[arb]:
        slacks = self._program.slacks(self.found.point)
        every = [*self.found.point, *(slacks[row] for row in self._free)]
        scaled = zip(every, self._scales, strict=True)
        return [middle(value) * arb(2) ** -scale for value, scale in scaled]

    def _costs(self) -> list[arb]:
        multipliers = self.found.multipliers
        every = self._program.reduced_costs(multipliers)
        every += [multipliers[row] for row in self._free]
        scaled = zip(every, self._scales, strict=True)
        return [middle(value) * arb(2) ** (scale - self._unit) for value, scale in scaled]

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
        """Return the rate of change of each basic variable as the given variable grows from 0.

        With `slacks`, return the rate of each reduced cost as the reduced cost of the given
        variable grows. The unknowns are the basic columns, with one equation per tight row; with
        `slacks` they are the multipliers of the tight rows, with one equation per basic column.
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
