"""Linear programs whose coefficients are exact numbers constant + slope·E.

A program has the form

    minimise c·x   subject to   a_i·x ≥ b_i (or = b_i for an equality),   x ≥ 0.

Its coefficients are constant + slope·E, with rational constant and slope and a real E = e^ε ≥ 1
common to all. `Program.at(E)` evaluates them, to rational numbers if E is rational and else to
balls. `scaled` returns the floating-point matrix for a solver.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, final

from flint import arb, fmpq

from dpassay.lp.problem import Value, to_fmpq

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Coefficient(NamedTuple):
    """The number constant + slope·E."""

    constant: Fraction | int
    slope: Fraction | int = 0

    def at(self, ratio: Value) -> Value:
        """Evaluate at E."""
        constant = to_fmpq(self.constant)
        return constant + to_fmpq(self.slope) * ratio if self.slope else constant


ONE = Coefficient(1)
ZERO = Coefficient(0)


class Row(NamedTuple):
    """One constraint Σ coefficient·x[column] ≥ bound, or = bound for an equality."""

    terms: tuple[tuple[int, Coefficient], ...]
    bound: Coefficient = ZERO
    equality: bool = False


@final
@dataclass(frozen=True)
class Program:
    """A linear program in the form of the module docstring.

    Parameters
    ----------
    cost
        Maps columns to their costs, which are > 0; all other columns cost 0.
    rows
        The constraints.
    column_exponents
        An estimate of log₂ of the size of each variable, used to scale the program.
    """

    cost: dict[int, Fraction]
    rows: tuple[Row, ...]
    column_exponents: tuple[int, ...]

    @property
    def columns(self) -> int:
        """Number of variables."""
        return len(self.column_exponents)

    def at(self, ratio: Value) -> Evaluated:
        """Return the program with its coefficients evaluated at E."""
        known: dict[Coefficient, Value] = {}

        def value(coefficient: Coefficient) -> Value:
            if coefficient not in known:
                known[coefficient] = coefficient.at(ratio)
            return known[coefficient]

        return Evaluated(
            self,
            [[(column, value(entry)) for column, entry in row.terms] for row in self.rows],
            [value(row.bound) for row in self.rows],
        )


@final
@dataclass(frozen=True)
class Evaluated:
    """A program at one value of E; `terms[i]` lists the (column, coefficient) pairs of row i."""

    program: Program
    terms: list[list[tuple[int, Value]]]
    bounds: list[Value]

    def slacks(self, point: Sequence[Value]) -> list[Value]:
        """Return a_i·x − b_i for each row i."""
        return [
            sum((value * point[column] for column, value in terms), start=-bound)
            for terms, bound in zip(self.terms, self.bounds, strict=True)
        ]

    def reduced_costs(self, multipliers: Sequence[Value]) -> list[Value]:
        """Return c_j − (Aᵀy)_j for each column j."""
        costs: list[Value] = [fmpq(0)] * self.program.columns
        for column, cost in self.program.cost.items():
            costs[column] = to_fmpq(cost)
        for terms, multiplier in zip(self.terms, multipliers, strict=True):
            if isinstance(multiplier, arb) or multiplier != 0:
                for column, value in terms:
                    costs[column] -= value * multiplier
        return costs


@final
@dataclass(frozen=True)
class Scaled:
    """A program for a floating-point solver, with rows and columns scaled by powers of two.

    The solver's variable j is x_j·2^−column_exponents[j]. Row i is multiplied by
    2^−row_exponents[i], so that its largest coefficient is in [1/2, 1). `starts`, `indices` and
    `values` hold the rows in compressed sparse form. Entries below `_NEGLIGIBLE` are dropped, and
    columns that lose an entry get a small cost that keeps them bounded. This is harmless: the
    solver's result is only a guess, which `dpassay.lp.refine` corrects and exact arithmetic proves.
    """

    starts: NDArray[np.int32]
    indices: NDArray[np.int32]
    values: NDArray[np.float64]
    bounds: NDArray[np.float64]
    cost: NDArray[np.float64]
    equalities: NDArray[np.bool_]
    row_exponents: list[int] = field(repr=False)
    column_exponents: tuple[int, ...] = field(repr=False)
    cost_exponent: int


_NEGLIGIBLE = 1e-12
"""Scaled entries below this are dropped; the solver would treat them as 0 anyway."""
_PENALTY = 1e-7
"""Cost of a column with a dropped entry, which makes the solver prefer other columns."""


def scaled(program: Program, ratio: float) -> Scaled:
    """Return the scaled floating-point form of a program at E = `ratio`."""
    import numpy as np

    exponents = program.column_exponents
    indices: list[int] = []
    values: list[float] = []
    starts = [0]
    row_exponents: list[int] = []
    bounds: list[float] = []
    incomplete: set[int] = set()
    for row in program.rows:
        parts = [
            (column, *_frexp(float(entry.constant) + float(entry.slope) * ratio, exponents[column]))
            for column, entry in row.terms
        ]
        largest = max(exponent for _, _, exponent in parts)
        for column, mantissa, exponent in parts:
            value = math.ldexp(mantissa, max(exponent - largest, -1000))
            if abs(value) >= _NEGLIGIBLE:
                indices.append(column)
                values.append(value)
            else:
                incomplete.add(column)
        starts.append(len(indices))
        row_exponents.append(largest)
        bound = float(row.bound.constant) + float(row.bound.slope) * ratio
        bounds.append(math.ldexp(bound, min(-largest, 1000)))
    cost_exponent = max(exponents[column] for column in program.cost)
    cost = np.zeros(program.columns)
    cost[sorted(incomplete)] = _PENALTY
    for column, amount in program.cost.items():
        cost[column] = math.ldexp(float(amount), max(exponents[column] - cost_exponent, -1000))
    return Scaled(
        np.array(starts, dtype=np.int32),
        np.array(indices, dtype=np.int32),
        np.array(values),
        np.array(bounds),
        cost,
        np.array([row.equality for row in program.rows]),
        row_exponents,
        exponents,
        cost_exponent,
    )


def _frexp(value: float, exponent: int) -> tuple[float, int]:
    mantissa, own = math.frexp(value)
    return mantissa, own + exponent
