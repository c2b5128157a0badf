"""Problems of optimal integer noise under (ε, δ)-DP, and their linear programs.

The noise Z ∈ −D..D is added to an integer of sensitivity S. Over all laws p of Z the least cost
is sought for which the hockey-stick divergence is at most δ for every shift s = 1..S and in both
directions,

    Σ_z max(0, p(z) − E p(z ∓ s)) ≤ δ,    E = e^ε,

or, with the objective "delta", the least such δ.

Symmetry is free. The cost is even, the divergence is convex and both directions are bounded, so
the mean of a law and its mirror image is feasible and costs the same. Hence the optimum is
attained by a symmetric law, whose bias is zero and for which one direction implies the other.
A law that falls with |z| has a mean with its mirror image that does so too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, final

from dpassay.accountant.core.validate import Integer, OneOf, OptionalRationals, Switch
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.lp.problem import OptionalReal, OptionalShare, WithRatio
from dpassay.lp.program import ONE, ZERO, Coefficient, Program, Row

OBJECTIVES = ("variance", "absolute", "error", "cost", "delta")
_MOST_ROWS = 6000
"""Constraints of a program: more take hours."""
_KILOBYTES_PER_ROW = 40
"""Memory of one constraint, measured, for the refusal to name."""


@final
@dataclass(frozen=True, repr=False)
class IntegerNoiseProblem(WithRatio):
    """What is asked of integer noise; see the module.

    Parameters
    ----------
    objective
        "variance" is E[Z²], which is the variance of unbiased noise; "absolute" is E|Z|; "error"
        is P(Z ≠ 0); "cost" is E[cost(|Z|)] with the given costs; "delta" is δ.
    support
        D ≥ 1, the largest error.
    delta
        δ, rational, in (0, 1); None for the objective "delta". No bounded noise has δ = 0.
    epsilon
        ε ≥ 0; or else
    ratio
        E = e^ε itself, rational and ≥ 1: then the optimum is an exact fraction.
    sensitivity
        S ≥ 1, the largest distance of the true answers on neighbours.
    error_free
        P(Z = 0), rational and in (0, 1), where it is prescribed.
    costs
        With the objective "cost": cost(1), …, cost(D) ≥ 0, not all 0; cost(0) = 0, and errors
        beyond D, where they are considered, cost at least cost(D).
    monotone
        Whether P(Z = z) must not grow with |z|.
    """

    objective: OneOf = OneOf(*OBJECTIVES)
    support: Integer = Integer(least=1)
    delta: OptionalShare = OptionalShare()
    epsilon: OptionalReal = OptionalReal(least=0)
    ratio: OptionalReal = OptionalReal(least=1)
    sensitivity: Integer = Integer(1, least=1)
    error_free: OptionalShare = OptionalShare()
    costs: OptionalRationals = OptionalRationals()
    monotone: Switch = Switch(False)

    def __post_init__(self) -> None:
        self.require_one_ratio()
        if (self.objective == "delta") != (self.delta is None):
            raise InvalidInputError(
                f"Expected {'no ' if self.delta else ''}delta with objective={self.objective!r}: "
                "it is either given or minimised (objective='delta')."
            )
        if (self.objective == "cost") != (self.costs is not None):
            raise InvalidInputError(
                f"Expected costs={self.costs} to be given exactly with objective='cost'."
            )
        if self.costs is not None and (len(self.costs) != self.support or not any(self.costs)):
            raise expected(
                "costs",
                list(self.costs),
                f"to have {self.support} entries, not all 0",
                "They are the costs of the errors 1, …, support.",
            )
        rows = self.sensitivity * (2 * self.support + 1)
        if rows > _MOST_ROWS:
            raise expected(
                "support",
                self.support,
                f"to give at most {_MOST_ROWS} constraints, not {rows}",
                f"They would take about {rows * _KILOBYTES_PER_ROW / 1e6:.1f} GB and hours of "
                "exact arithmetic.",
            )

    def exact_epsilon(self) -> ExactReal | None:
        """Return ε, or None where it is the logarithm of a rational E other than 1."""
        if self.ratio is not None and self.ratio.rational == 1:
            return ExactReal.of_rational(0)
        return self.epsilon

    def cost(self, z: int) -> Fraction:
        """Return the cost of the error z; for the objective "delta" an error costs nothing."""
        if self.costs is not None:
            return self.costs[min(abs(z), self.support) - 1] if z else Fraction(0)
        if self.objective == "variance":
            return Fraction(z * z)
        if self.objective == "absolute":
            return Fraction(abs(z))
        return Fraction(self.objective == "error" and z != 0)


class Inequality(NamedTuple):
    """p(z) ≤ E p(z − shift) + slack."""

    shift: int
    z: int


@final
@dataclass(frozen=True)
class IntegerProgram:
    """The program of a symmetric law, and the names of its rows and columns.

    Columns 0..D are P(Z = 0), …, P(Z = D). Then comes a slack for each of `inequalities`, whose
    rows are in the same order from `first` on, then δ where it is the objective. The next rows
    bound the sum of the slacks, shift by shift; the last ones, from `steps` on, say that
    P(Z = z) ≥ P(Z = z + 1) for z = 0..D − 1, where that is asked for.
    """

    program: Program
    inequalities: tuple[Inequality, ...]
    first: int
    steps: int


def integer_program(
    problem: IntegerNoiseProblem, delta: Fraction, *, log_ratio: float
) -> IntegerProgram:
    """Write down the program.

    Parameters
    ----------
    delta
        The sum that the slacks may have; where δ is the objective, a guess of its size.
    log_ratio
        log₂ E, for the scaling.
    """
    largest, shifts = problem.support, range(1, problem.sensitivity + 1)
    inequalities = tuple(
        Inequality(shift, z)
        for shift in shifts
        for z in range(-largest, largest + 1)
        if abs(z) != abs(z - shift)  # p(z) ≤ E p(−z) says nothing
    )
    mass = Row(((0, ONE), *((z, Coefficient(2)) for z in range(1, largest + 1))), ONE, True)
    rows = [mass]
    if problem.error_free is not None:
        rows.append(Row(((0, ONE),), Coefficient(problem.error_free), True))
    first = len(rows)
    for column, (shift, z) in enumerate(inequalities, start=largest + 1):
        terms = [(abs(z), Coefficient(-1)), (column, ONE)]
        if abs(z - shift) <= largest:
            terms.append((abs(z - shift), Coefficient(0, 1)))
        rows.append(Row(tuple(terms)))
    free = largest + 1 + len(inequalities)
    for shift in shifts:
        slacks = tuple(
            (column, Coefficient(-1))
            for column, row in enumerate(inequalities, start=largest + 1)
            if row.shift == shift
        )
        if problem.objective == "delta":
            rows.append(Row((*slacks, (free, ONE)), ZERO))
        else:
            rows.append(Row(slacks, Coefficient(-delta)))
    steps = len(rows)
    if problem.monotone:
        rows += [Row(((z, ONE), (z + 1, Coefficient(-1)))) for z in range(largest)]
    size = math.frexp(delta)[1] if delta > Fraction(1, 10**300) else _log2(delta)
    decay = log_ratio / problem.sensitivity
    exponents = [max(size, -int(decay * z)) for z in range(largest + 1)]
    exponents += [size] * len(inequalities)
    if problem.objective == "delta":
        exponents.append(size)
        cost = {free: Fraction(1)}
    else:
        costs = {z: 2 * problem.cost(z) for z in range(1, largest + 1)}
        cost = {z: amount for z, amount in costs.items() if amount}
    program = Program(cost, tuple(rows), tuple(exponents))
    return IntegerProgram(program, inequalities, first, steps)


def _log2(value: Fraction) -> int:
    return value.numerator.bit_length() - value.denominator.bit_length()
