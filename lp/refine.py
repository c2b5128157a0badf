"""From a floating-point guess to a solution in as many digits as wanted.

Iterative refinement of linear programs (Gleixner, Steffy and Wolter, 2016): the residuals of a
guess are computed in high precision, magnified by powers of two, and put in the place of bounds
and costs; the same solver, warm from its last basis, then finds the correction. Every round
gains the solver's own accuracy. The answer is still a guess; `lp.certificate` makes bounds of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

from flint import arb, fmpq

from accountant.errors import UndecidedError
from accountant.numbers.precision import ctx
from lp.elimination import basic_solution
from lp.problem import Value
from lp.program import Evaluated, Program, Scaled, scaled
from lp.solve import DirectHighs, Guess, InfeasibleError, SolverError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROUNDS = 16
"""Corrections at most: each gains as many digits as the solver has."""
_FAR = 1e30
"""What floats stand for if they do not hold it."""
_LARGEST_COST = 1e10
"""Largest cost that the solver is given: larger ones cost it its digits."""
_MOST_GAIN = 60
"""log₂ of a magnification from one correction to the next: more than the solver's digits gain
nothing."""
_MOST_DIFFERENCE = 20
"""log₂ of how much more primal errors may be magnified than dual ones, or less: both are in one
program."""
_PATIENCE = 4
"""Corrections without a gain before the best solution is kept."""
_Float: TypeAlias = tuple[float, int]
"""Mantissa and power of two: a float without limits on its exponent."""


@final
@dataclass(frozen=True)
class Refined:
    """A solution in high precision, the basis of its last round, log₂ of the worst violation."""

    point: list[arb]
    multipliers: list[arb]
    columns: list[int]
    tight: list[int]
    violation: int


def refine(program: Program, ratio: Callable[[], Value], log_ratio: float, bits: int) -> Refined:
    """Return a point and multipliers whose violations are below 2^−bits in the scaling.

    Parameters
    ----------
    program
        The program, scaled by its own guesses of magnitude.
    ratio
        Returns E at flint's current precision.
    log_ratio
        log₂ E in floating point.
    bits
        The accuracy asked for.

    Returns
    -------
    Refined
        The best solution found; where the solver stalls it is worse than asked for, and the
        certificate made of it is wider.
    """
    form = scaled(program, 2.0**log_ratio)
    solver = DirectHighs(form)
    with ctx.workprec(2 * bits + 64):
        state = _State(program.at(arb(ratio())), form)
        guess, gain = solver.run(), (0, 0)
        best = Refined(state.point, state.multipliers, [], [], 1 << 30)
        stalled = 0
        for _ in range(_ROUNDS):
            state.add(guess, gain)
            if max(state.violations()) > -bits:
                state.try_basis(guess)
            violations = state.violations()
            found = Refined(
                list(state.point),
                list(state.multipliers),
                guess.basic_columns,
                guess.tight_rows,
                max(violations),
            )
            if found.violation < best.violation:
                best, stalled = found, 0
            else:
                stalled += 1
            if best.violation <= -bits or stalled == _PATIENCE:
                break
            gain = _gains(violations, gain, stalled)
            try:
                guess = solver.correct(*state.correction(gain))
            except (SolverError, InfeasibleError):
                break
    return best


def _gains(violations: tuple[int, int], last: tuple[int, int], stalled: int) -> tuple[int, int]:
    """Return the next magnifications, log₂: the violations become about one."""
    primal, dual = (
        max(0, min(-violation, before + _MOST_GAIN) - 4 * stalled)
        for violation, before in zip(violations, last, strict=True)
    )
    return min(primal, dual + _MOST_DIFFERENCE), min(dual, primal + _MOST_DIFFERENCE)


class _State:
    """The sum of the corrections so far and its residuals, each in the solver's scaling."""

    def __init__(self, evaluated: Evaluated, form: Scaled) -> None:
        self._evaluated, self._form = evaluated, form
        self.point = [arb(0)] * len(form.column_exponents)
        self.multipliers = [arb(0)] * len(form.row_exponents)
        self._inequalities = [i for i, equality in enumerate(form.equalities) if not equality]

    def add(self, guess: Guess, gain: tuple[int, int]) -> None:
        """Add a correction found under the given magnifications, and keep y ≥ 0 exactly."""
        form = self._form
        for column, (value, exponent) in enumerate(
            zip(guess.point.tolist(), form.column_exponents, strict=True)
        ):
            if value:
                self.point[column] = (self.point[column] + _power(value, exponent - gain[0])).mid()
        for row, (value, exponent) in enumerate(
            zip(guess.multipliers.tolist(), form.row_exponents, strict=True)
        ):
            if value:
                change = _power(value, form.cost_exponent - exponent - gain[1])
                self.multipliers[row] = (self.multipliers[row] + change).mid()
        for row in self._inequalities:
            if self.multipliers[row] < 0:
                self.multipliers[row] = arb(0)
        self._measure()

    def try_basis(self, guess: Guess) -> None:
        """Go on from the exact solution of the solver's basis where that is less violated."""
        try:
            point, multipliers = basic_solution(
                self._evaluated, guess.basic_columns, guess.tight_rows
            )
        except UndecidedError:
            return
        other = _State(self._evaluated, self._form)
        other.point = [_middle(value) for value in point]
        other.multipliers = [_middle(value) for value in multipliers]
        for row in self._inequalities:
            if other.multipliers[row] < 0:
                other.multipliers[row] = arb(0)
        other._measure()
        if sum(other.violations()) < sum(self.violations()):
            self.__dict__.update(other.__dict__)

    def _measure(self) -> None:
        form, cost = self._form, self._form.cost_exponent
        slacks = self._evaluated.slacks(self.point)
        reduced = self._evaluated.reduced_costs(self.multipliers)
        self._values = _shifted(self.point, [-e for e in form.column_exponents])
        self._slacks = _shifted(slacks, [-e for e in form.row_exponents])
        self._costs = _shifted(reduced, [e - cost for e in form.column_exponents])
        self._prices = _shifted(self.multipliers, [e - cost for e in form.row_exponents])

    def violations(self) -> tuple[int, int]:
        """Return log₂ of the worst violation of the point and of the multipliers.

        Complementarity counts as well: a positive value times a positive reduced cost.
        """
        equal = [_size(s) for s, e in zip(self._slacks, self._form.equalities, strict=True) if e]
        free = [self._slacks[row] for row in self._inequalities]
        primal = max([*equal, _worst(self._values), _worst(free)])
        gaps = [min(_size(x), _size(d)) for x, d in zip(self._values, self._costs, strict=True)] + [
            min(_size(self._slacks[i]), _size(self._prices[i])) for i in self._inequalities
        ]
        return max(primal, *gaps), max(_worst(self._costs), *gaps)

    def correction(
        self, gain: tuple[int, int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return lower bounds, right sides and costs of the program of the correction."""
        import numpy as np

        primal, dual = gain
        rows = self._inequalities
        slacks = [self._slacks[row] for row in rows]
        lower = [-_magnified(x, primal) for x in self._values]
        lower += [-max(_magnified(s, primal), 0.0) for s in slacks]
        bounds = np.array([-_magnified(entry, primal) for entry in self._slacks])
        for row, value in zip(rows, slacks, strict=True):
            if value[0] > 0:  # the slack itself is the part of the solution so far
                bounds[row] = 0.0
        costs = [_magnified(d, dual) for d in self._costs]
        costs += [_magnified(self._prices[row], dual) for row in rows]
        return np.array(lower), bounds, np.minimum(np.array(costs), _LARGEST_COST)


def _middle(value: Value) -> arb:
    return (arb(value) if isinstance(value, fmpq) else value).mid()


def _power(value: float, exponent: int) -> arb:
    return arb(value) * arb(2) ** exponent


def _shifted(values: Sequence[Value], exponents: Sequence[int]) -> list[_Float]:
    return [_scaled(value, exponent) for value, exponent in zip(values, exponents, strict=True)]


def _scaled(value: Value, exponent: int) -> _Float:
    """Return the midpoint times 2^exponent."""
    middle = _middle(value)
    if middle == 0:
        return 0.0, 0
    mantissa, power = (int(part) for part in middle.man_exp())
    shift = max(mantissa.bit_length() - 60, 0)
    return float(mantissa >> shift), power + shift + exponent


def _size(entry: _Float) -> int:
    """Return log₂ of the magnitude, rounded up; very small for zero."""
    return math.frexp(entry[0])[1] + entry[1] if entry[0] else -(1 << 30)


def _worst(entries: Sequence[_Float]) -> int:
    """Return log₂ of the largest negative entry, rounded up."""
    return max((_size(entry) for entry in entries if entry[0] < 0), default=-(1 << 30))


def _magnified(entry: _Float, bits: int) -> float:
    """Return the entry times 2^bits, cut off where it is too far from zero to matter."""
    size = _size(entry) + bits
    if size < -60:
        return 0.0
    if size > 60:
        return math.copysign(_FAR, entry[0])
    return math.ldexp(entry[0], entry[1] + bits)
