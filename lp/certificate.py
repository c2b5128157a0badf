"""Rigorous bounds on the optimum of a linear program, from approximate solutions.

By weak duality, every feasible x and every y that is dual feasible (y_i ≥ 0 for inequalities and
reduced costs c_j − (Aᵀy)_j ≥ 0) satisfy

    b·y  ≤  min {c·x : a_i·x ≥ b_i, x ≥ 0}  ≤  c·x.

A negative reduced cost is repaired exactly. Its column has a `cover`: an equality Σ x_j = mass in
which it has coefficient 1. Lowering the multiplier of this row by the violation makes the reduced
cost 0, and lowers the bound by mass times the violation. All arithmetic is rational. E enters
through two rational bounds, so the result holds for every E between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb, fmpq, fmpz

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.interval import Interval
from dpassay.lp.problem import Value, to_fmpq
from dpassay.lp.program import Coefficient, Program


@final
@dataclass(frozen=True)
class Ratio:
    """Rational bounds lower ≤ E ≤ upper; they are equal if E is rational."""

    lower: fmpq
    upper: fmpq

    @staticmethod
    def of(value: Value, digits: int) -> Ratio:
        """Return bounds with `digits` digits for a ball; a rational number is kept exactly."""
        if isinstance(value, fmpq):
            return Ratio(value, value)
        interval = Interval.of_ball(value, digits)
        return Ratio(to_fmpq(Fraction(interval.lower)), to_fmpq(Fraction(interval.upper)))

    def least(self, coefficient: Coefficient, factor: fmpq) -> fmpq:
        """Return a lower bound on (constant + slope·E)·factor over all E within the bounds."""
        slope = to_fmpq(coefficient.slope) * factor
        at = self.lower if slope >= 0 else self.upper
        return to_fmpq(coefficient.constant) * factor + slope * at


@final
@dataclass(frozen=True)
class DualBound:
    """Exactly feasible multipliers, and the lower bound that they prove."""

    multipliers: list[fmpq]
    bound: fmpq


def round_down(value: Value, digits: int) -> fmpq:
    """Return a multiple of 10^−digits that is close to the value and not above it."""
    if isinstance(value, fmpq):
        scaled = value * fmpq(10) ** digits
        return fmpq(scaled.p // scaled.q) / fmpq(10) ** digits
    lower = (value * arb(10) ** digits).floor().lower()
    whole = lower.floor().unique_fmpz()
    if whole is None:
        raise UndecidedError("Not a single digit of a multiplier is known.")
    return fmpq(whole, fmpz(10) ** digits)


def rounded(value: Value, digits: int | None) -> fmpq:
    """Round a value down to `digits` decimal places; None returns a rational number unchanged."""
    if digits is not None:
        return round_down(value, digits)
    if not isinstance(value, fmpq):
        raise TypeError("Expected a rational number, or a number of digits.")
    return value


def dual_bound(
    program: Program,
    multipliers: Sequence[Value],
    ratio: Ratio,
    covers: Sequence[int | None],
    digits: int | None,
) -> DualBound:
    """Repair approximate multipliers to exactly feasible ones, and return the bound they prove.

    Parameters
    ----------
    program
        The program. Columns with a cost must have coefficients ≥ 0 in the inequalities.
    multipliers
        Approximate multipliers, one per row.
    ratio
        Bounds on E.
    covers
        For each column the index of an equality in which it has coefficient 1 and no column has a
        negative coefficient; None for a column with a cost.
    digits
        Decimal places to which the multipliers are rounded; None keeps rational ones unchanged.
    """
    kept = [rounded(value, digits) for value in multipliers]
    for index, row in enumerate(program.rows):
        if not row.equality:
            kept[index] = max(kept[index], fmpq(0))
    costs = _reduced_costs(program, kept, ratio)
    for column, cost in program.cost.items():
        if costs[column] < 0:
            limit = to_fmpq(cost)
            shrink = rounded(limit / (limit - costs[column]), digits)
            kept = [value * shrink for value in kept]
            costs = _reduced_costs(program, kept, ratio)
    for column, cover in enumerate(covers):
        if cover is not None and costs[column] < 0:
            kept[cover] += costs[column]
            for other, _ in program.rows[cover].terms:
                costs[other] -= costs[column] if other != column else 0
            costs[column] = fmpq(0)
    bound = sum(
        (
            ratio.least(row.bound, value)
            for row, value in zip(program.rows, kept, strict=True)
            if value != 0
        ),
        start=fmpq(0),
    )
    return DualBound(kept, bound)


def _reduced_costs(program: Program, multipliers: Sequence[fmpq], ratio: Ratio) -> list[fmpq]:
    """Return a lower bound on each reduced cost c_j − (Aᵀy)_j."""
    costs = [fmpq(0)] * program.columns
    for column, cost in program.cost.items():
        costs[column] = to_fmpq(cost)
    for row, multiplier in zip(program.rows, multipliers, strict=True):
        if multiplier != 0:
            for column, coefficient in row.terms:
                costs[column] += ratio.least(coefficient, -multiplier)
    return costs
