"""Steps of the count-noise search: choose a scaling, refine the basis, round the laws, prove."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from flint import arb, fmpq

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.lp.build import CountProgram, Layout, count_program
from dpassay.lp.certificate import DualBound, Ratio
from dpassay.lp.elimination import basic_solution
from dpassay.lp.laws import Law, nearest_law
from dpassay.lp.problem import CountNoiseProblem, Value, to_fraction
from dpassay.lp.program import Program, scaled
from dpassay.lp.refine import optimal_basis
from dpassay.lp.solve import Basis, Highs, InfeasibleError, SolverError

_GUARDS = (2, 4, 8)
"""Multiples of the requested bits that are tried as working precision: elimination loses bits."""
GUARD_DIGITS = 12
"""Digits, or bits, in excess of the requested ones."""
_OFFSETS = (0, 12, 24, 48, 96, -12, -24)
"""Offsets from the estimate of log₂ δ that are tried in turn; the estimate is rarely too large."""
_TOO_FAR = 20
"""Maximal |log₂| of δ over its estimate; beyond it, the solver's tolerances would hide δ."""
WHOLE = fmpq(1)
ROOM = 1 - fmpq(1, 1 << 40)
"""Factor by which E is reduced so that a law with δ = 0 remains feasible after rounding."""


class Answer(NamedTuple):
    """The fields of `dpassay.lp.count_noise.Solution` with the same names."""

    delta: Interval
    exact: Fraction | None
    laws: tuple[Law, ...]
    layout: Layout
    dual: tuple[CountProgram, DualBound]
    ratio: Ratio


class Solved(NamedTuple):
    """A program with a primal point and multipliers, approximate or (for rational E) exact."""

    program: CountProgram
    point: Sequence[Value]
    multipliers: Sequence[Value]


def log2(value: Value) -> int:
    """Return log₂ of the absolute value of a nonzero number, rounded up."""
    mantissa, exponent = arb(value).mid().man_exp()
    return int(mantissa).bit_length() + int(exponent)


def log_ratio_of(ratio: Callable[[], Value]) -> float:
    """Return log₂ E as a float."""
    with ctx.workprec(64):
        return float((arb(ratio()).log() / arb(2).log()).mid())


def polished(
    program: Program,
    solver: Highs,
    basis: Basis,
    ratio: Callable[[], Value],
    bits: int,
    *,
    exactly: bool,
    visible: int | None = None,
) -> tuple[Sequence[Value], Sequence[Value]]:
    """Return the point and the multipliers of the optimal basis.

    With `exactly` and rational E they are rational, else balls. `bits` and `visible` are passed to
    `dpassay.lp.refine.optimal_basis`, which may raise UndecidedError.
    """
    for guard in _GUARDS:
        with ctx.workprec(guard * (bits + 64)):
            value = ratio()
            optimal = optimal_basis(program.at(arb(value)), solver, basis, bits, visible=visible)
            if exactly and isinstance(value, fmpq):
                return basic_solution(program.at(value), *optimal.basis)
        basis, found = optimal.basis, (*optimal.point, *optimal.multipliers)
        balls = (value for value in found if isinstance(value, arb))
        if all(b.rad() < arb(2) ** -bits or b.rel_accuracy_bits() > bits for b in balls):
            break
    return optimal.point, optimal.multipliers


def digits_for(delta: Value, bits: int, least: int = 0) -> int:
    """Return the number of decimal places to which probabilities and multipliers are rounded.

    `least` stands for −log₂ δ if δ = 0.
    """
    size = -log2(delta) if delta > 0 else least
    return int((max(size, 0) + bits) * math.log10(2)) + GUARD_DIGITS


def solved(
    problem: CountNoiseProblem,
    layout: Layout,
    magnitude: int,
    bits: int,
    *,
    form: Callable[[CountProgram, int], Program],
    exactly: bool = False,
    share: fmpq = WHOLE,
) -> tuple[Solved, int]:
    """Solve the program of a layout, with E replaced by E·share.

    Returns the solution and the scale, log₂ of the size of δ. Scales near the estimate `magnitude`
    are tried until one agrees with the δ that is found. `form` derives the program to solve from
    that of single outcomes and the scale.

    Raises UndecidedError if no scale has a solution, or a basis is not proved regular.
    """

    def ratio() -> Value:
        return problem.exponential() * share

    log_ratio = log_ratio_of(ratio)
    failure: Exception | None = None
    scales = [magnitude + offset for offset in _OFFSETS]
    seen: set[int] = set()
    while scales:
        scale = scales.pop(0)
        if scale in seen:
            continue
        seen.add(scale)
        plain = count_program(problem, layout, magnitude=scale, log_ratio=log_ratio)
        program = form(plain, scale)
        try:
            solver = Highs(scaled(program, 2.0**log_ratio))
            value, basis = solver.run()
        except (InfeasibleError, SolverError) as error:
            failure = error
            continue
        off = math.frexp(value)[1] if value > 0 else 0
        if abs(off) <= _TOO_FAR:
            # violations are relative to the scale of each column, of which the least is near δ
            exponents = program.column_exponents
            depth = bits + max(exponents) - min(exponents)
            shown = None if exactly else bits
            found = polished(program, solver, basis, ratio, depth, exactly=exactly, visible=shown)
            return Solved(plain, *found), scale
        scales.insert(0, scale + off)
    raise UndecidedError(
        f"The solver found no solution at any of {len(seen)} scalings"
        f"{f' ({failure})' if failure else ''}."
    )


def laws_of(problem: CountNoiseProblem, solved: Solved, digits: int | None) -> tuple[Law, ...]:
    """Return the laws of a solution, rounded so that mass 1 and mean 0 hold exactly."""
    entries, lowest = solved.program.entries, solved.program.layout.lowest
    weights: list[dict[int, Value]] = [{} for _ in lowest]
    for (law, z), value in zip(entries, solved.point[1 : len(entries) + 1], strict=True):
        weights[law][z] = value
    return tuple(
        nearest_law(weight, problem.eta, range(low, problem.support + 1), digits)
        for weight, low in zip(weights, lowest, strict=True)
    )


def answer(
    problem: CountNoiseProblem,
    upper: Solved,
    lower: Solved,
    bits: int,
    *,
    excess: Callable[[Law, Law, int, fmpq], fmpq],
    bound: Callable[[Solved, Ratio, int | None], DualBound],
    least: int = 0,
) -> Answer:
    """Prove an upper bound on δ from the laws of `upper` and a lower one from those of `lower`.

    `excess` returns the δ that a pair of laws needs. `bound` makes the multipliers of `lower`
    feasible and returns their bound. `least` stands for −log₂ δ if δ = 0.
    """
    exactly = all(isinstance(value, fmpq) for value in (*upper.point, *lower.multipliers))
    digits = None if exactly else digits_for(upper.point[0], bits, least)
    with ctx.workprec(4 * (digits or 0) + 128):
        ratio = Ratio.of(problem.exponential(), 2 * (digits or 40))
        laws = laws_of(problem, upper, digits)
        dual = bound(lower, ratio, digits)
    layout = upper.program.layout
    excesses = (
        excess(laws[first], laws[second], shift, ratio.lower)
        for first, second, shift in layout.comparisons
    )
    highest, lowest = max(excesses, default=fmpq(0)), max(dual.bound, fmpq(0))
    shown = int(bits * math.log10(2)) + GUARD_DIGITS
    found = Interval(
        Interval.of_exact(to_fraction(lowest), shown).lower,
        Interval.of_exact(to_fraction(highest), shown).upper,
    )
    exact = to_fraction(highest) if lowest == highest else None
    return Answer(found, exact, laws, layout, (lower.program, dual), ratio)


def covers(program: CountProgram) -> list[int | None]:
    """Return for each column the index of the row of its law's mass; None for δ."""
    return [None, *(2 * law for law, _ in program.entries)]
