"""The passes that lead from a count-noise problem to laws and multipliers that prove its value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal

from flint import arb, fmpq

from dpassay.accountant.counting.count_noise import CountNoise
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.lp.build import Layout, count_program
from dpassay.lp.certificate import DualBound, Ratio, dual_bound
from dpassay.lp.closed_form import closed_form
from dpassay.lp.laws import Law
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

_EXACT_SUPPORT = 16
"""Support up to which rational data are solved exactly."""


def first_magnitude(problem: CountNoiseProblem) -> int:
    """Guess log₂ δ from the bounds that one law for all counts, or that of n = 1 alone, gives.

    Its mean is 0, so P(Z = −1 | 1) ≥ (1 − η)/2, which the chain of counts up to D + 1 limits to
    δ P_D; and P(Z = z | 1) ≥ (η − δ P_z)/E^z, so Σ_{z ≤ k} (z + 1)(η − δ P_z)/E^z ≤ 1 − η.
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
        return max(log2(guess) for guess in guesses if guess > 0)


def by_formula(problem: CountNoiseProblem, bits: int) -> Answer:
    """Return the answer of the closed form, for one law that serves all counts."""
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
    """Return what the optimum cannot exceed: the excess of one law for all counts; and 0 below.

    It is the law of the closed form for a support that every count has room for.
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
    """Yield answers, each proved, each after more work than the one before.

    The first `own` counts have a law each. The last of these laws serves all larger counts; where
    there are none, the program is the whole one. With own = D + 1 it serves them even then, for ε
    irrational or D large: one more constraint on the law of a count that can have many, and floats
    find one faster.
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
    if found.delta.lower == 0 < found.delta.upper:  # a law with room may need no δ at all
        yield proved(solve(layout, ROOM)[0], upper)
    for window in counts:
        yield proved(upper, solve(Layout.first_counts(problem, window))[0])


def _bound(found: Solved, ratio: Ratio, digits: int | None) -> DualBound:
    program = found.program
    return dual_bound(program.program, found.multipliers, ratio, covers(program), digits)


def _relaxed(problem: CountNoiseProblem, found: Solved) -> Solved:
    """Return the relaxation to the counts of a solution, with its multipliers.

    A law that is compared with itself is taken for its first count only.
    """
    layout = Layout.first_counts(problem, len(found.program.layout.lowest))
    program = count_program(problem, layout, magnitude=0, log_ratio=0)
    own = found.program.equalities
    known = dict(zip(found.program.flows, found.multipliers[own:], strict=True))
    flows: list[Value] = [known.get(flow, fmpq(0)) for flow in program.flows]
    return Solved(program, found.point, [*found.multipliers[:own], *flows])
