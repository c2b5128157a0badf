"""Optimal count noise under (ε, δ)-DP itself, with events of any number of outcomes.

Proposition 2 bounds single outcomes. Here the hockey-stick divergence is bounded,

    Σ_z max(0, p(z | n) − E p(z − s | n + s)) ≤ δ    for s = ±1 and all counts n, n + s.

Each outcome has a slack t ≥ p(z | n) − E p(z − s | n + s), and the slacks of a pair of neighbours
sum to at most δ. A dual solution is the same as for single outcomes, flows w ≥ 0 that respect
the columns of all laws, except that Σ over pairs of max_z w is at most 1, in the place of Σ w:
the maximum of w over z weighs the pair, and w over it is a randomised test.

Counts beyond M are treated as in `dpassay.lp.count_noise`: without their constraints (a lower
bound), and with the law of M for all of them (an upper bound). Unlike there, the optimum may still
grow with N beyond D + 1, by a factor that falls like E^{−N}; so M grows until the two bounds meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from flint import fmpq

from dpassay.lp.build import Comparison, CountProgram, Layout
from dpassay.lp.certificate import DualBound, Ratio, dual_bound, rounded
from dpassay.lp.laws import Law
from dpassay.lp.passes import ROOM, WHOLE, Answer, Solved, answer, covers, solved
from dpassay.lp.problem import CountNoiseProblem
from dpassay.lp.program import ONE, Coefficient, Program, Row
from dpassay.lp.search import first_magnitude

_EXACT_SUPPORT = 8
"""Support up to which rational data are solved exactly."""
_MOST_CELLS = 800
"""Laws by outcomes that one program may have."""


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

    def solve(layout: Layout, *, exactly: bool = False, share: fmpq = WHOLE) -> Solved:
        nonlocal magnitude
        found, magnitude = solved(
            problem, layout, magnitude, bits, form=_with_slacks, exactly=exactly, share=share
        )
        return found

    few = 2 if exactly else 1  # a program of few more laws is solved exactly as a whole
    while whole is None or few * counts < len(whole.lowest):
        tail, window = Layout.shared_tail(problem, counts), Layout.first_counts(problem, counts + 1)
        yield _answer(problem, solve(tail), solve(window), bits)
        counts *= 2
        if counts * problem.support > _MOST_CELLS:
            break
    if whole is None:
        return
    found = solve(whole, exactly=exactly)
    proved = _answer(problem, found, found, bits)
    yield proved
    if proved.delta.lower == 0 < proved.delta.upper:  # a law with room may need no δ at all
        yield _answer(problem, solve(whole, share=ROOM), found, bits)


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
    return answer(problem, upper, lower, bits, excess=divergence, bound=_proof)


def divergence(law: Law, other: Law, shift: int, ratio: fmpq) -> fmpq:
    """Return Σ_z max(0, P(Z = z) − E·P(Z' = z − shift))."""
    excess = (law.at(z) - ratio * other.at(z - shift) for z in law.values)
    return sum((entry for entry in excess if entry > 0), start=fmpq(0))


def _proof(found: Solved, ratio: Ratio, digits: int | None) -> DualBound:
    """Scale the flows so that Σ over pairs of max_z w is at most 1; repair, and prove a bound."""
    plain = found.program
    count = plain.equalities + len(plain.flows)
    values: list[fmpq] = []
    for index, value in enumerate(found.multipliers[:count]):
        near = rounded(value, digits)
        values.append(near if index < plain.equalities else max(near, fmpq(0)))
    heights: dict[Comparison, fmpq] = {}
    for (comparison, _), value in zip(plain.flows, values[plain.equalities :], strict=True):
        heights[comparison] = max(heights.get(comparison, fmpq(0)), value)
    total = sum(heights.values(), start=fmpq(0))
    if total > 1:
        shrink = rounded(1 / total, digits)
        values = [value * shrink for value in values]
    rows = [
        Row(tuple(term for term in row.terms if term[0] != 0), row.bound, row.equality)
        for row in plain.program.rows
    ]
    bare = Program(plain.program.cost, tuple(rows), plain.program.column_exponents)
    return dual_bound(bare, values, ratio, covers(plain), None)
