"""Optimal integer noise under (ε, δ)-DP, with proof.

The upper bound is the cost of a law with rational masses whose divergence is bounded by exact
arithmetic. The lower bound needs no solver either. Take any tests 0 ≤ w_s(z) ≤ λ_s, one for
each shift s. A law p that satisfies the constraints has Σ_z w_s(z)(p(z) − E p(z − s)) ≤ λ_s δ,
so with h(z) = cost(z) + Σ_s (w_s(z) − E w_s(z + s))

    Σ_z cost(z) p(z)  ≥  Σ_z h(z) p(z) − δ Σ_s λ_s  ≥  min_z (h(z) + h(−z))/2 − δ Σ_s λ_s,

where the mirror image may be taken because both directions are constrained. A prescribed
P(Z = 0) = η puts η h(0) + (1 − η) min_{z ≠ 0} in the place of the minimum; with δ as objective
there is no cost, and δ ≥ min_z (h(z) + h(−z))/(2 Σ_s λ_s). Where the law must fall with |z|, any
steps m_z ≥ 0 for p(z) ≥ p(z + 1) may be subtracted too: (h(z) + h(−z))/2 is then less by
(m_z − m_{z−1})/2, and h(0) by m_0.

Problems of optimal integer noise under (ε, δ)-DP, and their linear programs.

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
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, final

from flint import arb, fmpq

from dpassay.accountant.core.validate import Integer, OneOf, OptionalRationals, Switch
from dpassay.accountant.errors import (
    DpassayError,
    InvalidInputError,
    UndecidedError,
    expected,
    forgiving,
    require_type,
)
from dpassay.accountant.mechanisms.additive.integers import IntegerNoise
from dpassay.accountant.numbers.exact import ExactReal, in_short
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.lp.certificate import Ratio, rounded
from dpassay.lp.passes import log_ratio_of, polished
from dpassay.lp.problem import OptionalReal, OptionalShare, Value, WithRatio, to_fmpq, to_fraction
from dpassay.lp.program import ONE, ZERO, Coefficient, Program, Row, scaled
from dpassay.lp.solve import Highs, InfeasibleError

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


MARGIN = Fraction(1, 1 << 96)
"""Where E is irrational the law is made for δ(1 − MARGIN), so that its rounding cannot hurt."""

_DIGITS = 42
"""Digits of multipliers, besides those of their range."""
_EXACT_ROWS = 200
"""Constraints up to which rational data are solved exactly."""
_FARTHEST = 1000
"""Errors beyond the largest that a test is followed to: it ends before, or is of no use."""
_STEP = 1 << 16
"""Factor of a guessed size that the solver finds too small, or far too large: its columns end at
10⁶."""
_MOST_FREE = 512
"""Support, in sensitivities, up to which a law without one is sought: its program grows with the
square."""
_ROUNDING = fmpq(1, 10**36)
"""Share of a lower bound given up for one of every support: more than rounding to 42 places."""


@final
@dataclass(frozen=True)
class IntegerNoiseSolution:
    """The optimum, a law that attains it, and what proves it.

    Parameters
    ----------
    problem
        What was asked.
    value
        An enclosure of the optimum: of the cost, or of δ.
    exact
        The optimum where E is rational and the basis was solved exactly.
    mechanism
        The noise.
    divergence
        An upper bound of the exact δ(ε) of the mechanism; equal to it where E is rational.
    tests
        w_s(−D), …, w_s(D) for s = 1..S, which prove the lower bound.
    steps
        m_0, …, m_{D−1}, which help to prove it where the law must fall with |z|; else nothing.
    ratio
        The rational bounds of E that the proof uses.
    every_support
        Whether the tests, continued beyond ±D, also prove the lower bound for noise of any
        support: then a larger D gains nothing.
    seconds
        Running time.
    """

    problem: IntegerNoiseProblem
    value: Interval
    exact: Fraction | None
    mechanism: IntegerNoise
    divergence: Fraction
    tests: tuple[tuple[Fraction, ...], ...]
    steps: tuple[Fraction, ...]
    ratio: tuple[Fraction, Fraction]
    every_support: bool
    seconds: float

    def cost(self, objective: str) -> Fraction:
        """Return another cost of the law, exactly; it is symmetric."""
        side = enumerate(self.side()[1:], start=1)
        weights = {"variance": 2, "absolute": 1, "error": 0}
        return 2 * sum((p * z ** weights[objective] for z, p in side), start=Fraction(0))

    def side(self) -> list[Fraction]:
        """Return P(Z = 0), …, P(Z = D)."""
        return list(self.mechanism.probabilities[self.problem.support :])


@forgiving
def optimal_integer_noise(problem: IntegerNoiseProblem) -> IntegerNoiseSolution:
    """Solve a problem and prove the optimum.

    Raises
    ------
    InfeasibleError
        If no law on −D..D with the prescribed P(Z = 0) has so small a δ; the message says
        which δ it could have.
    UndecidedError
        If the solver's answer could not be turned into a proof.
    """
    require_type("problem", problem, IntegerNoiseProblem)
    started = time.perf_counter()
    _require_room(problem)
    rows = problem.sensitivity * (2 * problem.support + 1)
    exactly = problem.is_rational and rows <= _EXACT_ROWS
    try:
        program, point, multipliers, digits = _solved(problem, exactly=exactly)
    except (InfeasibleError, UndecidedError) as error:
        raise _infeasible(problem, error) from error
    with ctx.workprec(4 * digits + 128):
        ratio = Ratio.of(problem.exponential(), 2 * digits)
        side = _law(problem, point, None if exactly else digits)
        tests = _tests(problem, program, multipliers, None if exactly else digits)
        falls = multipliers[program.steps :] if problem.monotone else ()
        steps = [max(rounded(value, None if exactly else digits), fmpq(0)) for value in falls]
    divergence = max(
        _divergence(side, shift, ratio.lower) for shift in range(1, problem.sensitivity + 1)
    )
    if problem.objective == "delta":
        highest = divergence
    else:
        if problem.delta is None or divergence > to_fmpq(problem.delta):
            why = UndecidedError("The law could not be repaired to satisfy the constraints.")
            raise _infeasible(problem, why)
        highest = _total(2 * to_fmpq(problem.cost(z)) * p for z, p in enumerate(side))
    lowest, every_support = lower_bound(problem, tests, ratio, steps)
    law = [to_fraction(side[abs(z)]) for z in range(-problem.support, problem.support + 1)]
    return IntegerNoiseSolution(
        problem,
        Interval(
            Interval.of_exact(to_fraction(lowest)).lower,
            Interval.of_exact(to_fraction(highest)).upper,
        ),
        to_fraction(highest) if lowest == highest else None,
        IntegerNoise(law, -problem.support, problem.sensitivity),
        to_fraction(divergence),
        tuple(tuple(to_fraction(entry) for entry in test) for test in tests),
        tuple(to_fraction(step) for step in steps),
        (to_fraction(ratio.lower), to_fraction(ratio.upper)),
        every_support,
        time.perf_counter() - started,
    )


@forgiving
def optimal_free_noise(problem: IntegerNoiseProblem) -> IntegerNoiseSolution:
    """Solve a problem for noise of any support; `problem.support` is where the search starts.

    Raises
    ------
    UndecidedError
        If no support was found beyond which nothing is gained.
    """
    support = problem.support
    while True:
        try:
            found = optimal_integer_noise(replace(problem, support=support))
            if found.every_support:
                return found
            reached = f"with support {support} the optimum is {found.value}"
        except InfeasibleError as error:
            reached = str(error)
        support *= 2
        if problem.costs is not None or support > _MOST_FREE // problem.sensitivity:
            raise UndecidedError(
                f"No support was found beyond which nothing is gained ({reached}). Give a support."
            )


def lower_bound(
    problem: IntegerNoiseProblem,
    tests: Sequence[Sequence[fmpq]],
    ratio: Ratio,
    steps: Sequence[fmpq] = (),
) -> tuple[fmpq, bool]:
    """Return the bound that tests prove, and whether it holds for every support.

    Beyond ±D the tests are 0, except that w_1(−z) is made as large as h(−z) needs. Where that
    does not end, w_s(−z) = λ_s for all s and all z > D is tried: with w ≤ λ everywhere,
    (h(z) + h(−z))/2 ≥ cost(D + 1) − (E − 1) Σ λ_s/2 for all z > D. Rounding may leave this below
    the minimum over −D..D by less than `_ROUNDING` of that, which is then given up.

    Parameters
    ----------
    tests
        w_s(−D), …, w_s(D) ≥ 0 for s = 1..S.
    steps
        m_0, …, m_{D−1} ≥ 0, for a law that falls with |z|; else nothing.
    """
    largest, shifts = problem.support, range(1, problem.sensitivity + 1)
    known = [dict(enumerate(test, start=-largest)) for test in tests]
    limits = [max(test) for test in tests]

    def half(z: int) -> fmpq:
        value = to_fmpq(problem.cost(z))
        for shift, test in zip(shifts, known, strict=True):
            value += test.get(z, fmpq(0)) - ratio.upper * test.get(z + shift, fmpq(0))
        return value

    def mean(z: int) -> fmpq:
        value = (half(z) + half(-z)) / 2
        if z < len(steps):
            value -= steps[z] / (2 if z else 1)
        return value + (steps[z - 1] / 2 if 1 <= z <= len(steps) else 0)

    least = min(mean(z) for z in range(1, largest + 1))
    if problem.error_free is None:
        least = centre = min(least, mean(0))
    else:
        centre = mean(0)
    stays = True
    beyond = largest
    while stays:
        beyond += 1
        missing = 2 * (least - mean(beyond))
        if missing > 0:
            known[0][-beyond] = missing
            stays = missing <= limits[0] and beyond - largest < _FARTHEST
        elif all(-beyond + shift not in test for shift, test in zip(shifts, known, strict=True)):
            break  # all tests are 0 from here on, and the cost does not fall
    if not stays:
        level = to_fmpq(problem.cost(largest + 1)) - (ratio.upper - 1) * _total(limits) / 2
        if least - level <= abs(least) * _ROUNDING:
            least, stays = min(least, level), True
            centre = min(centre, least) if problem.error_free is None else centre
    eta = to_fmpq(problem.error_free or Fraction(0))
    bound = eta * centre + (1 - eta) * least
    total = _total(limits)
    if problem.objective == "delta":
        return (bound / total if bound > 0 else fmpq(0)), stays
    return bound - to_fmpq(problem.delta or Fraction(0)) * total, stays


class _Solved(NamedTuple):
    program: IntegerProgram
    point: Sequence[Value]
    multipliers: Sequence[Value]
    digits: int
    """Decimal places worth keeping."""


def _solved(problem: IntegerNoiseProblem, *, exactly: bool) -> _Solved:
    """Return a point and multipliers; where δ is sought, correct the guess of its size first."""
    log_ratio = log_ratio_of(problem.exponential)
    if problem.delta is not None:
        delta = problem.delta if exactly else problem.delta * (1 - MARGIN)
        return _solved_at(problem, delta, log_ratio, exactly=exactly)
    size = _size_of_delta(problem, log_ratio)
    while True:
        try:
            found = _solved_at(problem, size, log_ratio, exactly=exactly)
        except InfeasibleError:  # the solver keeps its columns below 10⁶ in their scale
            if size > 1:
                raise
            size *= _STEP
            continue
        column = found.program.program.columns - 1
        actual = abs(to_fraction(fmpq(*_mantissa(found.point[column]))))
        if not 0 < actual * _STEP < size:
            return found
        size = actual


def _mantissa(value: Value) -> tuple[int, int]:
    """Return a rational number near to the value, as numerator and denominator."""
    if isinstance(value, fmpq):
        return int(value.p), int(value.q)
    mantissa, exponent = (int(part) for part in value.mid().man_exp())
    return mantissa << max(exponent, 0), 1 << max(-exponent, 0)


def _solved_at(
    problem: IntegerNoiseProblem, delta: Fraction, log_ratio: float, *, exactly: bool
) -> _Solved:
    """Solve with δ given, or guessed."""
    program = integer_program(problem, delta, log_ratio=log_ratio)
    exponents = program.program.column_exponents
    size = max(exponents) - min(exponents) + 2 * problem.support.bit_length()
    digits = _DIGITS + int((size + max(log_ratio, 0)) * math.log10(2))
    bits = int(digits / math.log10(2)) + 16
    solver = Highs(scaled(program.program, 2.0**log_ratio))
    basis = solver.run()[1]
    found = polished(program.program, solver, basis, problem.exponential, bits, exactly=exactly)
    return _Solved(program, *found, digits)


def _size_of_delta(problem: IntegerNoiseProblem, log_ratio: float) -> Fraction:
    """Guess the least δ: what a geometric law leaves at the ends, or what P(Z = 0) forces.

    P(Y ≥ 0) is (1 + η)/2 without and (1 − η)/2 with a shift by one.
    """
    ends = log_ratio * problem.support / problem.sensitivity
    guess = Fraction(1, 1 << int(ends)) / (2 * problem.support + 1)
    if problem.error_free is not None:
        with ctx.workprec(64):
            ratio = to_fraction(Ratio.of(arb(problem.exponential()), 10).upper)
        guess = max(guess, (1 + problem.error_free - ratio * (1 - problem.error_free)) / 2)
    return guess


def _law(problem: IntegerNoiseProblem, point: Sequence[Value], digits: int | None) -> list[fmpq]:
    """Round P(Z = 0), …, P(Z = D) to a symmetric law."""
    side = [max(rounded(value, digits), fmpq(0)) for value in point[: problem.support + 1]]
    rest = 2 * _total(side[1:])
    if problem.error_free is None and rest <= 1:
        side[0] = 1 - rest
        return side
    side[0] = to_fmpq(problem.error_free or Fraction(0))
    missing = (1 - side[0] - rest) / 2
    places = sorted(range(1, problem.support + 1), key=lambda z: to_fraction(side[z]), reverse=True)
    if problem.monotone:
        places = [z for z in places if side[z - 1] - side[z] >= missing]
    if not places:
        raise UndecidedError("The law could not be repaired so that it falls with |z|.")
    side[places[0]] += missing
    return side


def _tests(
    problem: IntegerNoiseProblem,
    program: IntegerProgram,
    multipliers: Sequence[Value],
    digits: int | None,
) -> list[list[fmpq]]:
    """Read the tests off the multipliers."""
    largest = problem.support
    tests = [[fmpq(0)] * (2 * largest + 1) for _ in range(problem.sensitivity)]
    for row, (shift, z) in enumerate(program.inequalities, start=program.first):
        tests[shift - 1][z + largest] = max(rounded(multipliers[row], digits), fmpq(0))
    return tests


def _divergence(side: Sequence[fmpq], shift: int, ratio: fmpq) -> fmpq:
    """Return Σ_z max(0, p(z) − E p(z − shift)) for a symmetric law."""
    largest = len(side) - 1
    total = fmpq(0)
    for z in range(-largest, largest + 1):
        other = side[abs(z - shift)] if abs(z - shift) <= largest else fmpq(0)
        excess = side[abs(z)] - ratio * other
        if excess > 0:
            total += excess
    return total


def _require_room(problem: IntegerNoiseProblem) -> None:
    """Raise InfeasibleError where P(Z = 0) cannot be the largest of all probabilities."""
    values = 2 * problem.support + 1
    if problem.monotone and problem.error_free is not None and problem.error_free * values < 1:
        raise InfeasibleError(
            f"P(Z = 0) = {problem.error_free} and monotone contradict each other: a law on "
            f"-{problem.support}..{problem.support} that falls with |z| has P(Z = 0) ≥ 1/{values}. "
            "Leave one of the two out, or give a larger support."
        )


def _infeasible(problem: IntegerNoiseProblem, reason: DpassayError) -> DpassayError:
    """Return the error that says which constraints are too much, with the least δ there is."""
    if problem.delta is None:
        return reason
    least = optimal_integer_noise(_least_delta(problem))
    if problem.delta >= Fraction(least.value.lower):
        return UndecidedError(
            f"No proof was found ({reason}). The least delta of this support is {least.value}."
        )
    fixed = "" if problem.error_free is None else f" and P(Z = 0) = {problem.error_free}"
    falling = " that falls with |z|" if problem.monotone else ""
    without = []
    if problem.error_free is not None:
        free = optimal_integer_noise(_least_delta(problem, error_free=None))
        without.append(f"without error_free it is {free.value}")
    if problem.monotone:
        free = optimal_integer_noise(_least_delta(problem, monotone=False))
        without.append(f"without monotone it is {free.value}")
    return InfeasibleError(
        f"No noise on -{problem.support}..{problem.support}{falling}{fixed} has delta="
        f"{in_short(problem.delta)}: the least is {least.value}"
        f"{''.join(f'; {text}' for text in without)}. Give a larger delta"
        f"{', another error_free' if fixed else ''} or a larger support."
    )


def _least_delta(problem: IntegerNoiseProblem, **changes: Any) -> IntegerNoiseProblem:
    return replace(problem, objective="delta", delta=None, costs=None, **changes)


def _total(values: Iterable[fmpq]) -> fmpq:
    return sum(values, start=fmpq(0))
