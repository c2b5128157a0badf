"""Bounds that are proved, from solutions that are only good guesses.

For any y ≥ 0 on the inequalities of min {c·x : a_i·x ≥ b_i, x ≥ 0} and any x that is feasible,

    b·y − Σ_j (loss of column j)  ≤  optimum  ≤  c·x.

A column whose reduced cost c_j − (Aᵀy)_j is negative is repaired exactly: where it lies in a row
Σ x_j = mass with coefficient 1 (its `cover`), the multiplier of that row is lowered until the
reduced cost is 0, which costs mass times the violation. Everything here is rational arithmetic;
E enters through two rational bounds, so the result holds for every E between them.
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
    """Rational bounds lower ≤ E ≤ upper; equal where E itself is rational."""

    lower: fmpq
    upper: fmpq

    @staticmethod
    def of(value: Value, digits: int) -> Ratio:
        """Enclose a ball, or keep a rational number."""
        if isinstance(value, fmpq):
            return Ratio(value, value)
        interval = Interval.of_ball(value, digits)
        return Ratio(to_fmpq(Fraction(interval.lower)), to_fmpq(Fraction(interval.upper)))

    def least(self, coefficient: Coefficient, factor: fmpq) -> fmpq:
        """Return a lower bound of (constant + slope·E)·factor."""
        slope = to_fmpq(coefficient.slope) * factor
        at = self.lower if slope >= 0 else self.upper
        return to_fmpq(coefficient.constant) * factor + slope * at


@final
@dataclass(frozen=True)
class DualBound:
    """Multipliers that are feasible, exactly, and the bound they prove."""

    multipliers: list[fmpq]
    bound: fmpq


def round_down(value: Value, digits: int) -> fmpq:
    """Return a multiple of 10^−digits that is at most the value, and near it."""
    if isinstance(value, fmpq):
        scaled = value * fmpq(10) ** digits
        return fmpq(scaled.p // scaled.q) / fmpq(10) ** digits
    lower = (value * arb(10) ** digits).floor().lower()
    whole = lower.floor().unique_fmpz()
    if whole is None:
        raise UndecidedError("A multiplier is not known to a single digit.")
    return fmpq(whole, fmpz(10) ** digits)


def rounded(value: Value, digits: int | None) -> fmpq:
    """Round a guess down to so many digits; None keeps a rational number as it is."""
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
    """Make multipliers feasible and return the bound they prove.

    Parameters
    ----------
    program
        The program; columns with a cost must have coefficients ≥ 0 in the inequalities.
    multipliers
        A guess, row by row.
    ratio
        Bounds of E.
    covers
        For every column an equality with coefficient 1 in it, and no coefficient below 0; None
        for a column with a cost.
    digits
        Decimal places that the multipliers are rounded to; None keeps rational ones as they are.
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
    """Return a lower bound of every reduced cost c_j − (Aᵀy)_j."""
    costs = [fmpq(0)] * program.columns
    for column, cost in program.cost.items():
        costs[column] = to_fmpq(cost)
    for row, multiplier in zip(program.rows, multipliers, strict=True):
        if multiplier != 0:
            for column, coefficient in row.terms:
                costs[column] += ratio.least(coefficient, -multiplier)
    return costs
