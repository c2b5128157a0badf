"""Optimal count noise under (ε, δ)-DP itself, with events of any number of outcomes.

Proposition 2 bounds single outcomes. Here the hockey-stick divergence is bounded,

    Σ_z max(0, p(z | n) − E p(z − s | n + s)) ≤ δ    for s = ±1 and all counts n, n + s.

Each outcome has a slack t ≥ p(z | n) − E p(z − s | n + s), and the slacks of a pair of neighbours
sum to at most δ. A dual solution is the same as for single outcomes, flows w ≥ 0 that respect
the columns of all laws, except that Σ over pairs of max_z w is at most 1, in the place of Σ w:
the maximum of w over z weighs the pair, and w over it is a randomised test.

Counts beyond M are treated as in `lp.count_noise`: without their constraints (a lower bound),
and with the law of M for all of them (an upper bound). Unlike there, the optimum may still grow
with N beyond D + 1, by a factor that falls like E^{−N}; so M grows until the two bounds meet.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from flint import arb, fmpq

from accountant.errors import UndecidedError
from accountant.numbers.interval import Interval
from accountant.numbers.precision import ctx
from lp.build import Comparison, CountProgram, Layout, count_program
from lp.certificate import DualBound, Ratio, dual_bound, round_down
from lp.elimination import basic_solution
from lp.laws import Law, nearest_law
from lp.pivot import optimal_basis
from lp.problem import CountNoiseProblem, Value, to_fraction
from lp.program import ONE, Coefficient, Program, Row, scaled
from lp.refine import refine
from lp.search import Answer, first_magnitude
from lp.solve import InfeasibleError, SolverError

_OFFSETS = (0, 12, -12, 24, -24, 48, 96)
_TOO_FAR = 20
"""log₂ of how far a value may be from its guess: further, the solver's tolerances hide it."""
_EXACT_SUPPORT = 8
"""Support up to which rational data are solved exactly."""
_GUARD_DIGITS = 12
"""Digits beyond what is asked for, so that rounding does not show."""
_MOST_CELLS = 800
"""Laws by outcomes that one program may have."""
_MORE_COUNTS = 4
"""Laws that are added where a program with fewer is not enough."""
_WHOLE = fmpq(1)
_ROOM = 1 - fmpq(1, 1 << 40)


class _Solved(NamedTuple):
    program: CountProgram
    point: Sequence[Value]
    multipliers: Sequence[Value]


def true_answers(problem: CountNoiseProblem, bits: int) -> Iterator[Answer]:
    """Yield answers, each proved; later ones give more counts a law of their own."""
    exactly = problem.is_rational and problem.support <= _EXACT_SUPPORT
    magnitude = first_magnitude(problem)
    if problem.counts is None:
        whole = Layout.one_law(problem)
    elif problem.counts <= _MOST_CELLS // problem.support:
        whole = Layout.first_counts(problem, problem.counts)
    else:
        whole = None
    counts = problem.columns
    while whole is None or counts < len(whole.lowest) // 2:
        tail = Layout.shared_tail(problem, counts)
        window = Layout.first_counts(problem, counts + 1)
        upper, magnitude = _solved(problem, tail, magnitude, bits)
        lower, _ = _solved(problem, window, magnitude, bits)
        yield _answer(problem, upper, lower, bits)
        counts += _MORE_COUNTS
        if counts * problem.support > _MOST_CELLS:
            upper, _ = _solved(problem, tail, magnitude, bits, pivots=True)
            lower, _ = _solved(problem, window, magnitude, bits, pivots=True)
            yield _answer(problem, upper, lower, bits)
            break
    if whole is None:
        return
    for pivots in (exactly, True):
        solved, _ = _solved(problem, whole, magnitude, bits, pivots=pivots, exactly=exactly)
        found = _answer(problem, solved, solved, bits)
        yield found
        if found.delta.lower == 0 < found.delta.upper:  # a law with room may need no δ at all
            roomy, _ = _solved(problem, whole, magnitude, bits, share=_ROOM)
            yield _answer(problem, roomy, solved, bits)


def _solved(
    problem: CountNoiseProblem,
    layout: Layout,
    magnitude: int,
    bits: int,
    *,
    pivots: bool = False,
    exactly: bool = False,
    share: fmpq = _WHOLE,
) -> tuple[_Solved, int]:
    """Solve the program of a layout for E·share; return also log₂ of its δ.

    What iterative refinement leaves is corrected by pivots only if those are asked for; the
    bounds that it proves without them may be wider, and are bounds all the same.
    """

    def ratio() -> Value:
        return problem.exponential() * share

    with ctx.workprec(64):
        log_ratio = float((arb(ratio()).log() / arb(2).log()).mid())
    failure: Exception | None = None
    scales = [magnitude + offset for offset in _OFFSETS]
    seen: set[int] = set()
    while scales:
        scale = scales.pop(0)
        if scale in seen:
            continue
        seen.add(scale)
        plain = count_program(problem, layout, magnitude=scale, log_ratio=log_ratio, complete=True)
        program = _with_slacks(plain, scale)
        exponents = program.column_exponents
        depth = bits + max(exponents) - min(exponents)
        try:
            found = refine(program, ratio, log_ratio, depth)
        except (InfeasibleError, SolverError) as error:
            failure = error
            continue
        actual = _log2(found.point[0]) if found.point[0] > 0 else scale
        if abs(actual - scale) > _TOO_FAR:
            scales.insert(0, actual)
            continue
        if not exactly and (not pivots or found.violation <= -depth):
            return _Solved(plain, found.point, found.multipliers), scale
        with ctx.workprec(3 * depth + 256):
            value = ratio()
            try:
                optimal = optimal_basis(
                    program.at(arb(value)),
                    scaled(program, 2.0**log_ratio),
                    found.columns,
                    found.tight,
                    depth,
                )
                if exactly:
                    exact = basic_solution(program.at(value), optimal.columns, optimal.tight)
                    return _Solved(plain, *exact), scale
            except UndecidedError:  # the bounds that the guess proves are wider, but bounds
                return _Solved(plain, found.point, found.multipliers), scale
        return _Solved(plain, optimal.point, optimal.multipliers), scale
    raise UndecidedError(
        f"The solver found no solution at any of {len(seen)} scalings"
        f"{f' ({failure})' if failure else ''}."
    )


def _with_slacks(plain: CountProgram, magnitude: int) -> Program:
    """Give each outcome a slack in the place of δ, and bound the slacks of a pair by δ.

    The rows of `plain` keep their places; those of the pairs follow them.
    """
    program, equalities = plain.program, plain.equalities
    first = program.columns
    rows = list(program.rows[:equalities])
    pairs: dict[Comparison, list[int]] = {}
    for slack, (row, (comparison, _)) in enumerate(
        zip(program.rows[equalities:], plain.flows, strict=True), start=first
    ):
        terms = ((slack, ONE), *(term for term in row.terms if term[0] != 0))
        rows.append(Row(terms, row.bound))
        pairs.setdefault(comparison, []).append(slack)
    rows += [
        Row(((0, ONE), *((slack, Coefficient(-1)) for slack in slacks)))
        for slacks in pairs.values()
    ]
    exponents = (*program.column_exponents, *[magnitude] * len(plain.flows))
    return Program({0: Fraction(1)}, tuple(rows), exponents)


def _answer(problem: CountNoiseProblem, upper: _Solved, lower: _Solved, bits: int) -> Answer:
    exactly = isinstance(upper.point[0], fmpq) and isinstance(lower.point[0], fmpq)
    digits = None if exactly else _digits(upper.point[0], bits)
    with ctx.workprec(4 * (digits or 0) + 128):
        ratio = Ratio.of(problem.exponential(), 2 * (digits or 40))
        laws = _laws(problem, upper, digits)
        dual = _proof(lower, ratio, digits)
    layout = upper.program.layout
    highest = max(
        (
            divergence(laws[first], laws[second], shift, ratio.lower)
            for first, second, shift in layout.comparisons
        ),
        default=fmpq(0),
    )
    lowest = max(dual[1].bound, fmpq(0))
    shown = int(bits * math.log10(2)) + _GUARD_DIGITS
    return Answer(
        Interval(
            Interval.of_exact(to_fraction(lowest), shown).lower,
            Interval.of_exact(to_fraction(highest), shown).upper,
        ),
        to_fraction(highest) if lowest == highest else None,
        laws,
        layout,
        dual,
        ratio,
    )


def divergence(law: Law, other: Law, shift: int, ratio: fmpq) -> fmpq:
    """Return Σ_z max(0, P(Z = z) − E·P(Z' = z − shift))."""
    excess = (law.at(z) - ratio * other.at(z - shift) for z in law.values)
    return sum((entry for entry in excess if entry > 0), start=fmpq(0))


def _laws(problem: CountNoiseProblem, solved: _Solved, digits: int | None) -> tuple[Law, ...]:
    lowest = solved.program.layout.lowest
    weights: list[dict[int, Value]] = [{} for _ in lowest]
    for (law, z), value in zip(
        solved.program.entries, solved.point[1 : len(solved.program.entries) + 1], strict=True
    ):
        weights[law][z] = value
    return tuple(
        nearest_law(weight, problem.eta, range(low, problem.support + 1), digits)
        for weight, low in zip(weights, lowest, strict=True)
    )


def _proof(solved: _Solved, ratio: Ratio, digits: int | None) -> tuple[CountProgram, DualBound]:
    """Scale the flows so that Σ over pairs of max_z w is at most 1; repair, and prove a bound."""
    plain = solved.program
    count = plain.equalities + len(plain.flows)
    values: list[fmpq] = []
    for index, value in enumerate(solved.multipliers[:count]):
        exact = value if digits is None and isinstance(value, fmpq) else None
        rounded = round_down(value, digits or 0) if exact is None else exact
        values.append(rounded if index < plain.equalities else max(rounded, fmpq(0)))
    heights: dict[Comparison, fmpq] = {}
    for (comparison, _), value in zip(plain.flows, values[plain.equalities :], strict=True):
        heights[comparison] = max(heights.get(comparison, fmpq(0)), value)
    total = sum(heights.values(), start=fmpq(0))
    if total > 1:
        shrink = 1 / total if digits is None else round_down(1 / total, digits)
        values = [value * shrink for value in values]
    rows = [
        Row(tuple(term for term in row.terms if term[0] != 0), row.bound, row.equality)
        for row in plain.program.rows
    ]
    bare = Program(plain.program.cost, tuple(rows), plain.program.column_exponents)
    covers = [None, *(2 * law for law, _ in plain.entries)]
    return plain, dual_bound(bare, values, ratio, covers, None)


def _digits(delta: Value, bits: int) -> int:
    """Return the decimal places that probabilities and multipliers are rounded to."""
    size = -_log2(delta) if delta > 0 else 0
    return int((max(size, 0) + bits) * math.log10(2)) + _GUARD_DIGITS


def _log2(value: Value) -> int:
    mantissa, exponent = arb(value).mid().man_exp()
    return int(mantissa).bit_length() + int(exponent)
