"""The passes that lead from a count-noise problem to laws and multipliers that prove its value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeAlias, final

from flint import arb, fmpq

from accountant.mechanisms.counting.count_noise_law import CountNoise
from accountant.numbers.precision import ctx
from lp.build import CountProgram, Layout, count_program
from lp.certificate import DualBound, Ratio, dual_bound
from lp.closed_form import closed_form
from lp.flows import Noise, consistent_flows
from lp.passes import (
    GUARD_DIGITS,
    Answer,
    Solved,
    answer,
    at_some_scale,
    covers,
    digits_for,
    laws_of,
    log2,
    log_ratio_of,
    polished,
)
from lp.problem import CountNoiseProblem, Value, to_fmpq
from lp.refine import Refined, refine

_EXACT_SUPPORT = 16
"""Support up to which rational data are solved exactly."""
_ROOM_BITS = 8
"""Bits between the width and the room that constraints are given: it costs no visible digit."""
_VISIBLE = 0.9
"""Share of the bits that are asked for below which multipliers are noise."""
_MORE = fmpq(1001, 1000)
_Dual: TypeAlias = Callable[[Ratio, int | None], tuple[CountProgram, DualBound]]


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


@final
class Search:
    """One pass: with all constraints, or with only those that usually bind."""

    def __init__(
        self, problem: CountNoiseProblem, magnitude: int, bits: int, *, complete: bool, own: int
    ) -> None:
        """Prepare a pass in which the first `own` counts have a law each.

        The last of these laws serves all larger counts; where there are none, the program is the
        whole one. With own = D + 1 it serves them even then, for ε irrational or D large: one
        more constraint on the law of a count that can have many, and floats find one faster.
        """
        self.problem, self.magnitude = problem, magnitude
        self._bits, self._complete = bits, complete
        self._violated = False  # whether laws break a constraint that was left out
        self._exactly = problem.is_rational and problem.support <= _EXACT_SUPPORT
        self._windows: list[int] = []
        if problem.counts is None:
            self.restricted = Layout.one_law(problem)
        elif problem.counts == own and (own != problem.support + 1 or complete or self._exactly):
            self.restricted = Layout.first_counts(problem, own)
        else:
            self.restricted = Layout.shared_tail(problem, own)
            windows = (2 * own - 1, own + 1, 3 * own)
            self._windows = [min(problem.counts, window) for window in windows]

    def answers(self) -> Iterator[Answer]:
        """Yield answers, each proved, each after more work than the one before."""
        ratio = self.problem.exponential
        if not self._exactly:
            yield from self._fast()
        if self._violated:
            return
        upper = self._solved(self.restricted, ratio, polish=True)
        yield self._answer(upper, self._close_dual(upper))
        if self._violated:
            return
        for window in dict.fromkeys(self._windows):
            relaxed = Layout.first_counts(self.problem, window)
            yield self._answer(upper, self._close_dual(self._solved(relaxed, ratio, polish=True)))

    def by_formula(self) -> Answer:
        """Return the answer of the closed form, for one law that serves all counts."""
        exact = self.problem.is_rational
        bits = self._bits + self.problem.support.bit_length() + GUARD_DIGITS
        with ctx.workprec(8 * (bits - self.magnitude + self.problem.support)):
            program = count_program(
                self.problem, self.restricted, magnitude=0, log_ratio=0, complete=True
            )
            margin = Fraction(0) if exact else Fraction(1, 1 << (self._bits + _ROOM_BITS))
            upper = Solved(program, *closed_form(self.problem, program, margin))
        self._exactly, self._complete = exact, True
        return self._answer(upper, self._close_dual(upper))

    def _fast(self) -> Iterator[Answer]:
        """Solve for an E that is smaller by so little that it costs no visible digit.

        For that E every law satisfies its constraints with room, in proportion to its own size,
        so that what is left of the solver's errors violates nothing. The multipliers are made
        consistent by `consistent_flows`. Where the multipliers of the law that is compared with
        itself are not zero, those of the relaxation are asked for as well.
        """
        exact = self.problem.exponential
        room = Fraction(1, self.problem.support << (self._bits - _ROOM_BITS))
        less = 1 - fmpq(room.numerator, room.denominator)
        layouts = [self.restricted]
        if self._windows:
            layouts.append(Layout.first_counts(self.problem, self._windows[1]))
        upper: Solved | None = None
        for layout in layouts:
            solved = self._solved(layout, lambda: exact() * less, polish=False)
            upper = upper or solved
            yield self._answer(upper, self._loose_dual(solved))
            if self._violated:
                return

    def _solved(self, layout: Layout, ratio: Callable[[], Value], *, polish: bool) -> Solved:
        """Solve the program of a layout, correcting the guess of the magnitude of δ."""
        log_ratio = log_ratio_of(ratio)

        def attempt(scale: int) -> tuple[CountProgram, Refined]:
            program = count_program(
                self.problem,
                layout,
                magnitude=scale,
                log_ratio=log_ratio,
                complete=self._complete,
            )
            depth = self._depth(program) if polish else self._bits
            return program, refine(program.program, ratio, log_ratio, depth)

        program, found, self.magnitude = at_some_scale(self.magnitude, attempt)
        if not polish:
            return Solved(program, found.point, found.multipliers)
        depth, exactly = self._depth(program), self._exactly
        return Solved(program, *polished(program.program, found, ratio, depth, exactly=exactly))

    def _depth(self, program: CountProgram) -> int:
        """Return −log₂ of the violations that keep the bounds as narrow as asked for.

        Violations are measured in the scale of each row and column; the least of these scales
        is near δ, the largest near 1.
        """
        exponents = program.program.column_exponents
        return self._bits + max(exponents) - min(exponents)

    def _answer(self, upper: Solved, lower: _Dual) -> Answer:
        """Prove an upper bound with the laws of a solution, a lower one with multipliers."""
        digits = None if self._exactly else digits_for(upper.point[0], self._bits, -self.magnitude)
        with ctx.workprec(4 * (digits or 0) + 128):
            ratio = Ratio.of(self.problem.exponential(), 2 * (digits or 40))
            laws = laws_of(self.problem, upper, digits)
            dual = lower(ratio, digits)
        highest = max(
            (
                laws[first].excess(laws[second], shift, ratio.lower)
                for first, second, shift in self.restricted.comparisons
            ),
            default=fmpq(0),
        )
        self._violated = not self._complete and bool(highest > upper.point[0] * _MORE)
        return answer(highest, laws, self.restricted, dual=dual, ratio=ratio, bits=self._bits)

    def _close_dual(self, solved: Solved) -> _Dual:
        """Return how to round the multipliers of a solution.

        A law that is compared with itself is taken for its first count only.
        """

        def close(ratio: Ratio, digits: int | None) -> tuple[CountProgram, DualBound]:
            program, multipliers = self._window(solved, len(solved.program.layout.lowest))
            rows = covers(program)
            return program, dual_bound(program.program, multipliers, ratio, rows, digits)

        return close

    def _loose_dual(self, solved: Solved) -> _Dual:
        """Return how to make the flows consistent, on so many counts that every chain ends."""

        def loose(ratio: Ratio, digits: int | None) -> tuple[CountProgram, DualBound]:
            counts = len(solved.program.layout.lowest)
            program, multipliers = self._window(solved, max([counts, *self._windows[:1]]))
            invisible = range(2 * self._visible(), program.equalities)
            for row in invisible:
                multipliers[row] = fmpq(0)
            flows = consistent_flows(
                program, multipliers, ratio, digits or 0, self._noise(solved.point[0])
            )
            return program, dual_bound(program.program, flows, ratio, covers(program), None)

        return loose

    def _noise(self, delta: Value) -> Noise:
        """Return which flows are noise: those whose way out costs δ P_m > 1 − η in m steps."""
        share = fmpq(1, 1 << int(_VISIBLE * self._bits))
        with ctx.workprec(64):
            ratio, plain, power = arb(self.problem.exponential()), arb(0), arb(1)
            room = to_fmpq(1 - self.problem.eta) / arb(delta) if delta > 0 else arb.pos_inf()
            for steps in range(self.problem.support + 1):
                if plain > room:
                    return Noise(share, self.problem.support - steps)
                plain, power = plain + power, power * ratio
        return Noise(share, 0)

    def _visible(self) -> int:
        """Return how many laws have multipliers that the width asked for can see.

        Those of the law of n are E^−n times those of the first, up to a constant; beyond the
        accuracy of the solution they are noise.
        """
        if self.problem.max_count is None:
            return 1
        with ctx.workprec(64):
            nats = float(arb(self.problem.exponential()).log().mid())
        noise = _VISIBLE * self._bits * math.log(2)
        return self.problem.columns if noise > nats * self.problem.columns else int(noise / nats)

    def _window(self, solved: Solved, counts: int) -> tuple[CountProgram, list[Value]]:
        """Return the relaxation to the first counts, with the multipliers that a solution has."""
        if not self._windows:
            return solved.program, list(solved.multipliers)
        relaxed = Layout.first_counts(self.problem, counts)
        program = count_program(
            self.problem, relaxed, magnitude=0, log_ratio=0, complete=self._complete
        )
        own = solved.program.equalities
        known = dict(zip(solved.program.flows, solved.multipliers[own:], strict=True))
        equalities = list(solved.multipliers[: min(own, program.equalities)])
        equalities += [fmpq(0)] * (program.equalities - len(equalities))
        return program, equalities + [known.get(flow, fmpq(0)) for flow in program.flows]
