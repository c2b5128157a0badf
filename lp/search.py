"""The search for laws and multipliers that prove the optimum of a count-noise problem.

For the objective "singular" the constraints are those of `dpassay.lp.build`. For "true-delta",
(ε, δ)-DP itself, they bound the hockey-stick divergence,

    Σ_z max(0, p(z | n) − E p(z − s | n + s)) ≤ δ    for s = ±1 and all counts n, n + s.

Each outcome gets a slack t ≥ 0 with t ≥ p(z | n) − E p(z − s | n + s), and the slacks of a pair of
neighbours sum to at most δ. A dual solution consists, as for single outcomes, of flows w ≥ 0 that
respect the columns of all laws. The condition Σ w ≤ 1 becomes Σ over pairs of max_z w ≤ 1: the
maximum of w over z is the weight of the pair, and w divided by it is a randomised test.

Counts beyond M are treated as in `dpassay.lp.count_noise`: dropping their constraints gives a lower
bound, and using the law of M for all of them an upper bound. In contrast to "singular", the optimum
can grow with N beyond D + 1, ever more slowly, like E^{−N}; M is doubled until the two bounds meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from flint import arb, fmpq

from dpassay.accountant.counting.count_noise import CountNoise
from dpassay.accountant.errors import TOO_LARGE, UndecidedError
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.lp.build import Comparison, CountProgram, Layout, count_program
from dpassay.lp.certificate import DualBound, Ratio, dual_bound, rounded
from dpassay.lp.laws import Law
from dpassay.lp.one_law import closed_form
from dpassay.lp.passes import (
    GUARD_DIGITS,
    ROOM,
    WHOLE,
    Answer,
    Solved,
    answer,
    covers,
    log2,
    solved,
)
from dpassay.lp.problem import CountNoiseProblem, Value, to_fraction
from dpassay.lp.program import ONE, Coefficient, Program, Row

_EXACT_SUPPORT = 16
"""Support up to which programs with rational E are solved exactly."""


def first_magnitude(problem: CountNoiseProblem) -> int:
    """Estimate log₂ δ from three kinds of lower bounds.

    One is the optimum of a single law for all counts. The others are for the count n = 1. There the
    mean is 0, so P(Z = −1 | 1) ≥ (1 − η)/2, while the chain of counts up to D + 1 limits it to
    δ P_D. And P(Z = z | 1) ≥ (η − δ P_z)/E^z implies Σ_{z ≤ k} (z + 1)(η − δ P_z)/E^z ≤ 1 − η.
    """
    with ctx.workprec(64):
        ratio, support = arb(problem.exponential()), problem.support
        eta = arb(fmpq(problem.eta.numerator, problem.eta.denominator))
        power, plain = arb(1), arb(0)
        mass = slope = arb(0)
        guesses = []
        for k in range(1, support + 1):
            plain, power = plain + power, power * ratio
            mass += (k + 1) * eta / power
            slope += (k + 1) * plain / power
            guesses.append((mass - (1 - eta)) / slope)
        guesses.append((1 - eta) / (2 * plain))
        guesses.append(arb(CountNoise(ratio, eta, support).optimal_delta))
        if not any(guess > 0 for guess in guesses):
            raise UndecidedError(TOO_LARGE)
        return max(log2(guess) for guess in guesses if guess > 0)


def by_formula(problem: CountNoiseProblem, bits: int) -> Answer:
    """Return the closed-form solution for one law for all counts."""
    magnitude = first_magnitude(problem)
    enough = bits + problem.support.bit_length() + GUARD_DIGITS
    with ctx.workprec(8 * (enough - magnitude + problem.support)):
        layout = Layout.one_law(problem)
        program = count_program(problem, layout, magnitude=0, log_ratio=0)
        found = Solved(program, *closed_form(problem, program))
    return answer(problem, found, found, bits, excess=Law.excess, bound=_bound, least=-magnitude)


def first_answer(
    problem: CountNoiseProblem, bits: int, excess: Callable[[Law, Law, int, fmpq], fmpq]
) -> Answer:
    """Return the trivial enclosure [0, δ of a single law for all counts].

    The law is the closed form for the largest support that every count allows.
    """
    if problem.counts is None:
        layout = Layout.one_law(problem)
    elif problem.counts == 1:
        layout = Layout.first_counts(problem, 1)
    else:
        layout = Layout.shared_tail(problem, 1)
    room = replace(problem, support=-layout.lowest[0], max_count=None, min_count=1)
    formula = by_formula(room, bits)
    law, ratio = formula.laws[0], formula.ratio
    excesses = [excess(law, law, shift, ratio.lower) for _, _, shift in layout.comparisons]
    highest = to_fraction(max(excesses, default=fmpq(0)))
    upper = Interval.of_exact(highest, int(bits * math.log10(2)) + GUARD_DIGITS).upper
    bare = count_program(problem, Layout(layout.lowest, ()), magnitude=0, log_ratio=0)
    nothing = DualBound([fmpq(0)] * len(bare.program.rows), fmpq(0))
    return Answer(Interval(Decimal(0), upper), None, (law,), layout, (bare, nothing), ratio)


def answers(problem: CountNoiseProblem, bits: int, *, own: int) -> Iterator[Answer]:
    """Yield proved answers in order of increasing cost.

    Each of the first `own` counts has its own law, and the last law serves all larger counts. If
    there are no larger counts, this is the full program. For own = D + 1 the last law is
    constrained to serve larger counts even if there are none, unless the program is solved exactly:
    this usually costs nothing, and the floating-point solver is faster.
    """
    exactly = problem.is_rational and problem.support <= _EXACT_SUPPORT
    layout = Layout.shared_tail(problem, own)
    windows: tuple[int, ...] = (2 * own - 1, own + 1, 3 * own)
    if problem.counts is None:
        layout, windows = Layout.one_law(problem), ()
    elif problem.counts == own and (own != problem.support + 1 or exactly):
        layout, windows = Layout.first_counts(problem, own), ()
    counts = dict.fromkeys(min(problem.counts or 1, window) for window in windows)
    magnitude = first_magnitude(problem)

    def solve(layout: Layout, share: fmpq = WHOLE) -> tuple[Solved, int]:
        return solved(
            problem,
            layout,
            magnitude,
            bits,
            form=lambda plain, _: plain.program,
            exactly=exactly,
            share=share,
        )

    def proved(upper: Solved, lower: Solved) -> Answer:
        lower = _relaxed(problem, lower) if windows else lower
        return answer(
            problem, upper, lower, bits, excess=Law.excess, bound=_bound, least=-magnitude
        )

    upper, magnitude = solve(layout)
    found = proved(upper, upper)
    yield found
    if found.delta.lower == 0 < found.delta.upper:  # with slightly stricter E, δ may be exactly 0
        yield proved(solve(layout, ROOM)[0], upper)
    for window in counts:
        yield proved(upper, solve(Layout.first_counts(problem, window))[0])


def _bound(found: Solved, ratio: Ratio, digits: int | None) -> DualBound:
    program = found.program
    return dual_bound(program.program, found.multipliers, ratio, covers(program), digits)


def _relaxed(problem: CountNoiseProblem, found: Solved) -> Solved:
    """Return the relaxation to finitely many counts, with the multipliers of a solution.

    Comparisons of the last law with itself are dropped.
    """
    layout = Layout.first_counts(problem, len(found.program.layout.lowest))
    program = count_program(problem, layout, magnitude=0, log_ratio=0)
    own = found.program.equalities
    known = dict(zip(found.program.flows, found.multipliers[own:], strict=True))
    flows: list[Value] = [known.get(flow, fmpq(0)) for flow in program.flows]
    return Solved(program, found.point, [*found.multipliers[:own], *flows])


_EXACT_EVENTS = 8
"""Support up to which programs with rational E are solved exactly."""
_MOST_CELLS = 800
"""Maximal number of laws times the support in one program."""


def true_answers(problem: CountNoiseProblem, bits: int) -> Iterator[Answer]:
    """Yield proved answers for "true-delta"; later ones give more counts their own law."""
    exactly = problem.is_rational and problem.support <= _EXACT_EVENTS
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

    few = 2 if exactly else 1  # when exact, solve the full program if it has at most twice the laws
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
    if proved.delta.lower == 0 < proved.delta.upper:  # with slightly stricter E, δ may be exactly 0
        yield _answer(problem, solve(whole, share=ROOM), found, bits)


def _with_slacks(plain: CountProgram, magnitude: int) -> Program:
    """Replace δ in each row by a slack of its own, and bound the slacks of each pair by δ.

    The rows of `plain` keep their positions; the rows of the pairs are appended.
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
    """Scale the flows so that Σ over pairs of max_z w ≤ 1, repair them, and return the bound."""
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
