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

import contextlib
from collections.abc import Iterator
from fractions import Fraction

from flint import fmpq

from accountant.errors import UndecidedError
from accountant.numbers.precision import ctx
from lp.build import Comparison, CountProgram, Layout, count_program
from lp.certificate import DualBound, Ratio, dual_bound, round_down
from lp.laws import Law
from lp.passes import (
    Answer,
    Solved,
    answer,
    at_some_scale,
    covers,
    digits_for,
    laws_of,
    log_ratio_of,
    polished,
)
from lp.problem import CountNoiseProblem, Value
from lp.program import ONE, Coefficient, Program, Row
from lp.refine import Refined, refine
from lp.search import first_magnitude

_EXACT_SUPPORT = 8
"""Support up to which rational data are solved exactly."""
_MOST_CELLS = 800
"""Laws by outcomes that one program may have."""
_MORE_COUNTS = 4
"""Laws that are added where a program with fewer is not enough."""
_WHOLE = fmpq(1)
_ROOM = 1 - fmpq(1, 1 << 40)


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
) -> tuple[Solved, int]:
    """Solve the program of a layout for E·share; return also log₂ of its δ.

    What iterative refinement leaves is corrected by pivots only if those are asked for; the
    bounds that it proves without them may be wider, and are bounds all the same.
    """

    def ratio() -> Value:
        return problem.exponential() * share

    log_ratio = log_ratio_of(ratio)

    def depth(program: Program) -> int:
        return bits + max(program.column_exponents) - min(program.column_exponents)

    def attempt(scale: int) -> tuple[CountProgram, Refined]:
        plain = count_program(problem, layout, magnitude=scale, log_ratio=log_ratio, complete=True)
        program = _with_slacks(plain, scale)
        return plain, refine(program, ratio, log_ratio, depth(program))

    plain, found, scale = at_some_scale(magnitude, attempt)
    program = _with_slacks(plain, scale)
    if exactly or (pivots and found.violation > -depth(program)):
        with contextlib.suppress(UndecidedError):  # else the bounds of the guess are wider
            basis = polished(program, found, ratio, depth(program), exactly=exactly)
            return Solved(plain, *basis), scale
    return Solved(plain, found.point, found.multipliers), scale


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


def _answer(problem: CountNoiseProblem, upper: Solved, lower: Solved, bits: int) -> Answer:
    exactly = isinstance(upper.point[0], fmpq) and isinstance(lower.point[0], fmpq)
    digits = None if exactly else digits_for(upper.point[0], bits)
    with ctx.workprec(4 * (digits or 0) + 128):
        ratio = Ratio.of(problem.exponential(), 2 * (digits or 40))
        laws = laws_of(problem, upper, digits)
        dual = _proof(lower, ratio, digits)
    layout = upper.program.layout
    highest = max(
        (
            divergence(laws[first], laws[second], shift, ratio.lower)
            for first, second, shift in layout.comparisons
        ),
        default=fmpq(0),
    )
    return answer(highest, laws, layout, dual=dual, ratio=ratio, bits=bits)


def divergence(law: Law, other: Law, shift: int, ratio: fmpq) -> fmpq:
    """Return Σ_z max(0, P(Z = z) − E·P(Z' = z − shift))."""
    excess = (law.at(z) - ratio * other.at(z - shift) for z in law.values)
    return sum((entry for entry in excess if entry > 0), start=fmpq(0))


def _proof(solved: Solved, ratio: Ratio, digits: int | None) -> tuple[CountProgram, DualBound]:
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
    return plain, dual_bound(bare, values, ratio, covers(plain), None)
