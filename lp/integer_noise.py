"""Optimal integer noise under (ε, δ)-DP, with certified optimum.

**Problem.** Noise Z ∈ −D..D is added to an integer of sensitivity S. The cost is minimised over all
laws p of Z whose hockey-stick divergence is at most δ for all shifts s = 1..S, in both directions:

    Σ_z max(0, p(z) − E p(z ∓ s)) ≤ δ,    E = e^ε.

With the objective "delta", δ itself is minimised.

**Symmetry.** The cost is even, the divergence is convex and both directions are bounded, so the
average of a law and its mirror image is feasible and has the same cost. Hence a symmetric law is
optimal; it is unbiased, and one direction implies the other. If a law decreases with |z|, so does
this average.

**Upper bound.** The cost of a law with rational masses, whose divergence is computed exactly.

**Lower bound.** Choose any tests 0 ≤ w_s(z) ≤ λ_s, one for each shift s. A feasible law satisfies
Σ_z w_s(z)(p(z) − E p(z − s)) ≤ λ_s δ. With h(z) = cost(z) + Σ_s (w_s(z) − E w_s(z + s)) this gives

    Σ_z cost(z) p(z)  ≥  Σ_z h(z) p(z) − δ Σ_s λ_s  ≥  min_z (h(z) + h(−z))/2 − δ Σ_s λ_s,

where the last step uses a symmetric p. If P(Z = 0) = η is prescribed, the minimum is replaced by
η h(0) + (1 − η) min_{z ≠ 0} (h(z) + h(−z))/2. If δ is minimised, there is no cost, and δ ≥
min_z (h(z) + h(−z))/(2 Σ_s λ_s). If the law must decrease with |z|, multipliers m_z ≥ 0 of
p(z) ≥ p(z + 1) are subtracted too: they reduce (h(z) + h(−z))/2 by (m_z − m_{z−1})/2 for z ≥ 1,
and h(0) by m_0.
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
"""Maximal number of constraints; more would take hours."""
_KILOBYTES_PER_ROW = 40
"""Measured memory per constraint, used in an error message."""


@final
@dataclass(frozen=True, repr=False)
class IntegerNoiseProblem(WithRatio):
    """A problem of optimal integer noise, as in the module docstring.

    Parameters
    ----------
    objective
        The cost to minimise: "variance" is E[Z²] (the variance, since optimal noise is unbiased),
        "absolute" is E|Z|, "error" is P(Z ≠ 0), "cost" is E[cost(|Z|)] with the given costs, and
        "delta" is δ.
    support
        D ≥ 1, the largest error.
    delta
        δ, a rational number in (0, 1); None for the objective "delta". No bounded noise has δ = 0.
    epsilon
        ε ≥ 0. Give either `epsilon` or `ratio`.
    ratio
        E = e^ε, rational and ≥ 1. The optimum is then an exact fraction.
    sensitivity
        S ≥ 1, the largest distance of the true answers on neighbours.
    error_free
        A prescribed P(Z = 0), rational and in (0, 1), or None.
    costs
        For the objective "cost": cost(1), …, cost(D) ≥ 0, not all 0. cost(0) is 0, and errors
        beyond D are assumed to cost cost(D) at least.
    monotone
        Whether P(Z = z) must be non-increasing in |z|.
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
        """Return ε, or None if it was given as a rational E other than 1."""
        if self.ratio is not None and self.ratio.rational == 1:
            return ExactReal.of_rational(0)
        return self.epsilon

    def cost(self, z: int) -> Fraction:
        """Return the cost of the error z; 0 for the objective "delta"."""
        if self.costs is not None:
            return self.costs[min(abs(z), self.support) - 1] if z else Fraction(0)
        if self.objective == "variance":
            return Fraction(z * z)
        if self.objective == "absolute":
            return Fraction(abs(z))
        return Fraction(self.objective == "error" and z != 0)


class Inequality(NamedTuple):
    """The constraint p(z) ≤ E p(z − shift) + slack."""

    shift: int
    z: int


@final
@dataclass(frozen=True)
class IntegerProgram:
    """The linear program of a symmetric law, with the meaning of its rows and columns.

    Columns 0..D are P(Z = 0), …, P(Z = D), followed by a slack for each of `inequalities`, and by δ
    if it is the objective. The rows of `inequalities` start at `first`, in the same order. They are
    followed by one row per shift, which bounds the sum of its slacks. The rows from `steps` on,
    present for monotone laws, say that P(Z = z) ≥ P(Z = z + 1) for z = 0..D − 1.
    """

    program: Program
    inequalities: tuple[Inequality, ...]
    first: int
    steps: int


def integer_program(
    problem: IntegerNoiseProblem, delta: Fraction, *, log_ratio: float
) -> IntegerProgram:
    """Return the linear program of a problem.

    Parameters
    ----------
    problem
        The problem.
    delta
        The bound on the sum of the slacks; if δ is the objective, an estimate for the scaling.
    log_ratio
        log₂ E, for the scaling.
    """
    largest, shifts = problem.support, range(1, problem.sensitivity + 1)
    inequalities = tuple(
        Inequality(shift, z)
        for shift in shifts
        for z in range(-largest, largest + 1)
        if abs(z) != abs(z - shift)  # p(z) ≤ E p(−z) always holds for a symmetric law
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
"""For irrational E the program has δ(1 − MARGIN), so that the rounded law satisfies δ."""

_DIGITS = 42
"""Digits of multipliers, in addition to their range of magnitudes."""
_EXACT_ROWS = 200
"""Number of constraints up to which programs with rational E are solved exactly."""
_FARTHEST = 1000
"""Number of errors beyond D to which a test is extended; a longer extension proves nothing."""
_STEP = 1 << 16
"""Factor by which an estimate of δ is corrected. The solver's scaled columns are limited to 10⁶."""
_MOST_FREE = 512
"""Maximal support, in units of the sensitivity, in the search for noise of any support."""
_ROUNDING = fmpq(1, 10**36)
"""Fraction of a lower bound that is given up to make it valid for every support; it exceeds the
effect of rounding to 42 places."""


@final
@dataclass(frozen=True)
class IntegerNoiseSolution:
    """The optimum, a law that attains it, and its proof.

    Parameters
    ----------
    problem
        The problem.
    value
        An enclosure of the optimal cost, or of the optimal δ.
    exact
        The optimum, if E is rational and the program was solved exactly.
    mechanism
        The noise.
    divergence
        An upper bound on δ(ε) of the mechanism; equal to it if E is rational.
    tests
        w_s(−D), …, w_s(D) for s = 1..S, which prove the lower bound.
    steps
        m_0, …, m_{D−1} for a monotone law, else empty.
    ratio
        The rational bounds on E that the proof uses.
    every_support
        Whether the tests, extended beyond ±D, prove the lower bound for noise of any support. A
        larger D is then useless.
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
        """Return the exact E[Z²] ("variance"), E|Z| ("absolute") or P(Z ≠ 0) ("error")."""
        side = enumerate(self.side()[1:], start=1)
        weights = {"variance": 2, "absolute": 1, "error": 0}
        return 2 * sum((p * z ** weights[objective] for z, p in side), start=Fraction(0))

    def side(self) -> list[Fraction]:
        """Return P(Z = 0), …, P(Z = D)."""
        return list(self.mechanism.probabilities[self.problem.support :])


@forgiving
def optimal_integer_noise(problem: IntegerNoiseProblem) -> IntegerNoiseSolution:
    """Minimise the cost of integer noise, and prove the optimum.

    Raises
    ------
    InfeasibleError
        If no law on −D..D satisfies the constraints; the message states the least possible δ.
    UndecidedError
        If the solver's result could not be turned into a proof.
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
    """Minimise the cost over integer noise of any support, starting from `problem.support`.

    The support is doubled until the optimum is proved to hold for every support.

    Raises
    ------
    UndecidedError
        If no such support was found.
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
                f"No support was found that is proved optimal ({reached}). Give a support."
            )


def lower_bound(
    problem: IntegerNoiseProblem,
    tests: Sequence[Sequence[fmpq]],
    ratio: Ratio,
    steps: Sequence[fmpq] = (),
) -> tuple[fmpq, bool]:
    """Return the lower bound that tests prove, and whether it holds for every support.

    To bound noise beyond ±D, the tests are extended by 0, except that w_1(−z) is chosen as large as
    is needed to keep (h(z) + h(−z))/2 at the minimum. If this does not terminate, the extension
    w_s(−z) = λ_s for all s and all z > D is tried: as w ≤ λ everywhere,
    (h(z) + h(−z))/2 ≥ cost(D + 1) − (E − 1) Σ λ_s/2 for all z > D. If rounding makes this smaller
    than the minimum over −D..D, by a fraction of at most `_ROUNDING`, the bound is lowered to it.

    Parameters
    ----------
    problem
        The problem.
    tests
        w_s(−D), …, w_s(D) ≥ 0 for s = 1..S.
    ratio
        Rational bounds on E.
    steps
        m_0, …, m_{D−1} ≥ 0 for a monotone law, else empty.
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
            break  # from here on all tests are 0, and the cost does not decrease
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
    """Decimal places to which the solution is accurate."""


def _solved(problem: IntegerNoiseProblem, *, exactly: bool) -> _Solved:
    """Solve the linear program; if δ is the objective, correct the estimate of its size first."""
    log_ratio = log_ratio_of(problem.exponential)
    if problem.delta is not None:
        delta = problem.delta if exactly else problem.delta * (1 - MARGIN)
        return _solved_at(problem, delta, log_ratio, exactly=exactly)
    size = _size_of_delta(problem, log_ratio)
    while True:
        try:
            found = _solved_at(problem, size, log_ratio, exactly=exactly)
        except InfeasibleError:  # δ may exceed the solver's limit of 10⁶ for scaled columns
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
    """Return the midpoint of a value as numerator and denominator."""
    if isinstance(value, fmpq):
        return int(value.p), int(value.q)
    mantissa, exponent = (int(part) for part in value.mid().man_exp())
    return mantissa << max(exponent, 0), 1 << max(-exponent, 0)


def _solved_at(
    problem: IntegerNoiseProblem, delta: Fraction, log_ratio: float, *, exactly: bool
) -> _Solved:
    """Solve the linear program for a given or estimated δ."""
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
    """Estimate the least δ: the larger of two bounds.

    The first is the mass that a geometric law has at the ends of the support. The second applies if
    P(Z = 0) = η is prescribed: P(Y ≥ 0) is (1 + η)/2, and (1 − η)/2 after a shift by one.
    """
    ends = log_ratio * problem.support / problem.sensitivity
    guess = Fraction(1, 1 << int(ends)) / (2 * problem.support + 1)
    if problem.error_free is not None:
        with ctx.workprec(64):
            ratio = to_fraction(Ratio.of(arb(problem.exponential()), 10).upper)
        guess = max(guess, (1 + problem.error_free - ratio * (1 - problem.error_free)) / 2)
    return guess


def _law(problem: IntegerNoiseProblem, point: Sequence[Value], digits: int | None) -> list[fmpq]:
    """Return P(Z = 0), …, P(Z = D), rounded so that the symmetric law has mass exactly 1."""
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
        raise UndecidedError("Rounding could not keep the law monotone.")
    side[places[0]] += missing
    return side


def _tests(
    problem: IntegerNoiseProblem,
    program: IntegerProgram,
    multipliers: Sequence[Value],
    digits: int | None,
) -> list[list[fmpq]]:
    """Return the tests w_s(z) as the multipliers of the inequalities, rounded and made ≥ 0."""
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
    """Raise InfeasibleError if a prescribed P(Z = 0) is too small for a monotone law."""
    values = 2 * problem.support + 1
    if problem.monotone and problem.error_free is not None and problem.error_free * values < 1:
        raise InfeasibleError(
            f"P(Z = 0) = {problem.error_free} and monotone contradict each other: a monotone law "
            f"on -{problem.support}..{problem.support} has P(Z = 0) ≥ 1/{values}. "
            "Leave one of the two out, or give a larger support."
        )


def _infeasible(problem: IntegerNoiseProblem, reason: DpassayError) -> DpassayError:
    """Return an error that states the least δ possible, with and without further constraints."""
    if problem.delta is None:
        return reason
    least = optimal_integer_noise(_least_delta(problem))
    if problem.delta >= Fraction(least.value.lower):
        return UndecidedError(
            f"No proof was found ({reason}). The least delta of this support is {least.value}."
        )
    fixed = "" if problem.error_free is None else f" and P(Z = 0) = {problem.error_free}"
    falling = " with monotone probabilities" if problem.monotone else ""
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
