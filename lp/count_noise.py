"""Optimal bounded count noise, with certified optimum.

The program of Proposition 2 is solved for any N at the cost of a small program:

* The variables are the laws p(· | n) instead of the weights α (`dpassay.lp.build`).
* Upper bound: with M = min(N, D + 1), the law of n = M serves all larger counts. This restricts the
  program, so its laws are feasible for the full one.
* Lower bound: the constraints on counts beyond 2M − 1 or M + 1 are dropped. This relaxes the
  program, so its dual multipliers, extended by zeros, are feasible for the full dual.

M is doubled until the two bounds agree to the requested width; if they do not, the answer says so.
If they agree, the optimum is the same for every N beyond the counts of the relaxation. (N = D + 1
is not always enough: for E = 3, η = 1/100, D = 4 the optimum is 1/24 there, and 57/1352 for all
N ≥ 6.) The optimal single law for all counts n ≥ D has a closed form (`dpassay.lp.one_law`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

from flint import fmpq

from dpassay.accountant.errors import UndecidedError, forgiving, require_type
from dpassay.accountant.mechanisms.additive.integers import IntegerNoise
from dpassay.accountant.mechanisms.wrappers.channel import Tabulated
from dpassay.accountant.numbers.interval import Interval
from dpassay.lp.build import CountProgram, Layout
from dpassay.lp.certificate import DualBound, Ratio
from dpassay.lp.laws import Law, Weights, mixture_weights, symmetric_weights
from dpassay.lp.one_law import counts_for_one_law
from dpassay.lp.passes import Answer
from dpassay.lp.problem import CountNoiseProblem, to_fraction
from dpassay.lp.search import answers, by_formula, divergence, first_answer, true_answers

if TYPE_CHECKING:
    from dpassay.lp.reference import SolverAnswer

_WIDTH = Fraction(1, 10**12)
"""Default relative width of the answer."""
_GUARD_BITS = 16
"""Bits to which a solution is more accurate than the requested width."""
_DIGITS = 15
"""Digits of the δ of the laws in `Solution.reached`."""
MORE_LAWS = 3
"""How often the number of laws is doubled; each time takes 4 to 8 times as long."""


@final
@dataclass(frozen=True)
class Solution:
    """The optimum of a problem, laws that attain it, and its proof.

    Parameters
    ----------
    problem
        The problem.
    delta
        An enclosure of the optimal δ.
    exact
        The optimal δ, if E is rational and the program was solved exactly.
    laws
        The laws of the counts from `problem.min_count` on; the last one serves all larger counts.
        If `problem.max_count` is None, the single law for all counts n ≥ D.
    layout
        The laws and comparisons of the program for the upper bound.
    dual
        The relaxed program and its multipliers, which prove the lower bound.
    ratio
        The rational bounds on E that the proof uses.
    seconds
        Running time.
    solver_answer
        The solution of the program as printed by a solver of cvxpy, if one was requested.
    """

    problem: CountNoiseProblem
    delta: Interval
    exact: Fraction | None
    laws: tuple[Law, ...]
    layout: Layout
    dual: tuple[CountProgram, DualBound]
    ratio: Ratio
    seconds: float
    solver_answer: SolverAnswer | None = None

    @cached_property
    def reached(self) -> dict[str, Interval]:
        """Enclosures of both δ of the laws: "singular" (single outcomes) and "true-delta"."""
        pairs = list(itertools.pairwise(self.laws))
        counts = self.problem.counts
        if counts is None or counts > len(self.laws):
            pairs.append((self.laws[-1], self.laws[-1]))
        found = {}
        for objective, excess in (("singular", Law.excess), ("true-delta", divergence)):
            ends = [
                max(
                    (
                        excess(own, other, shift, ratio)
                        for pair in pairs
                        for own, other, shift in ((*pair, 1), (*pair[::-1], -1))
                    ),
                    default=fmpq(0),
                )
                for ratio in (self.ratio.upper, self.ratio.lower)
            ]
            least, most = (Interval.of_exact(to_fraction(end), _DIGITS) for end in ends)
            found[objective] = Interval(least.lower, most.upper)
        return found

    def law(self, count: int) -> Law:
        """Return the law of the noise at a count."""
        return self.laws[min(count - self.problem.min_count, len(self.laws) - 1)]

    def alphas(self, count: int) -> Weights:
        """Return weights α_{i1,i2,n} of Proposition 2 for the law at a count n."""
        return mixture_weights(self.law(count))

    @property
    def alpha_star(self) -> tuple[Fraction, ...] | None:
        """α_1, …, α_D of a single law, p(±j) = α_j (1 − η)/2; None if each count has its own law.

        They describe the average of the law and its mirror image, which is also optimal.
        """
        if self.problem.max_count is not None:
            return None
        return symmetric_weights(self.laws[0], self.problem.support)

    def mechanism(self) -> IntegerNoise | None:
        """Return the single law as a mechanism for counts n ≥ D; None if each count has its own."""
        if self.problem.max_count is not None:
            return None
        law = self.laws[0]
        return IntegerNoise(law.fractions(), law.lowest)

    def neighbours(self, count: int) -> Tabulated:
        """Return the laws of Y at the counts n and n + 1 as a pair of tables."""
        first, second = self.law(count), self.law(count + 1)
        ends = [count + z for z in first.values] + [count + 1 + z for z in second.values]
        outcomes = range(min(ends), max(ends) + 1)
        return Tabulated(
            [to_fraction(first.at(y - count)) for y in outcomes],
            [to_fraction(second.at(y - count - 1)) for y in outcomes],
        )


@forgiving
def optimal_count_noise(
    problem: CountNoiseProblem, *, relative_width: Fraction | None = None, solver: str | None = None
) -> Solution:
    """Minimise the δ of bounded count noise, and prove the optimum.

    Parameters
    ----------
    problem
        The problem.
    relative_width
        The required relative width of the enclosure. None aims at 1e-12 and returns the narrowest
        enclosure that is reached.
    solver
        "cvxpy", "cvxpy:CLARABEL", "cvxpy:HIGHS", "cvxpy:SCS", …: solve also the program as printed,
        in floating point, and report the errors of its δ and α's.

    Raises
    ------
    InvalidInputError
        If the solver is unknown, or the paper has no program for this problem.
    UndecidedError
        If the required width is not reached; the message contains the enclosure that is.
    """
    require_type("problem", problem, CountNoiseProblem)
    if solver is not None:
        return _with_solver(optimal_count_noise(problem, relative_width=relative_width), solver)
    started, asked = time.perf_counter(), relative_width
    relative_width = asked or _WIDTH
    bits = (relative_width.denominator // relative_width.numerator).bit_length() + _GUARD_BITS
    excess = Law.excess if problem.objective == "singular" else divergence

    def timed(answer: Answer) -> Solution:
        return Solution(problem, *answer, seconds=time.perf_counter() - started)

    best: Solution | None = None
    why = ""
    try:
        for answer in proved_answers(problem, bits):
            found = timed(answer)
            best = found if best is None else min(best, found, key=_width)
            if _width(best) <= relative_width * Fraction(best.delta.upper):
                return best
    except UndecidedError as error:
        why = f" {error}"
    if best is None or best.delta.lower == 0:
        least = timed(first_answer(problem, bits, excess))
        best = least if best is None else min(best, least, key=_width)
    if asked is None:
        return best
    raise UndecidedError(
        f"Relative width {float(relative_width):.1e} was not reached; the optimum was enclosed "
        f"in [{best.delta.lower}, {best.delta.upper}].{why} Ask for a larger relative_width, or a "
        "smaller support."
    )


def _with_solver(solution: Solution, solver: str) -> Solution:
    """Add the solution of the program as printed by a solver of cvxpy, and its errors."""
    from dpassay.lp.reference import answer_of

    found = answer_of(solution.problem, solver)
    exact = Fraction(solution.delta.lower) + Fraction(solution.delta.upper)
    proved = solution.alpha_star
    if proved is not None:
        off = max(abs(x - float(y)) for x, y in zip(found.alpha_star or (), proved, strict=True))
    else:
        weights = {n: solution.alphas(n) for n in found.alphas}
        off = max(
            abs(value - float(weights[n].get(pair, 0)))
            for n, alphas in found.alphas.items()
            for pair, value in alphas.items()
        )
    about = replace(found, delta_off=abs(found.delta - float(exact / 2)), alpha_off=off)
    return replace(solution, solver_answer=about)


def proved_answers(problem: CountNoiseProblem, bits: int) -> Iterator[Answer]:
    """Yield proved answers in order of increasing cost."""
    if problem.objective == "true-delta":
        yield from true_answers(problem, bits)
        return
    if problem.max_count is None:
        yield by_formula(problem, bits)
        return
    # D + 1 laws are nearly always enough, except if the least count is large: for E = 2, η = 9/20,
    # D = 3 and the counts 3..7, the law of 6 cannot serve 7 as well.
    own = problem.columns
    for _ in range(1 + MORE_LAWS):
        yield from answers(problem, bits, own=own)
        if problem.counts is None or own >= problem.counts:
            return
        own = min(2 * own, problem.counts)


def _width(solution: Solution) -> Fraction:
    return Fraction(solution.delta.upper) - Fraction(solution.delta.lower)


SCHEMA_VERSION = 1
"""Version of the JSON report; it increases when a key changes its meaning."""


def to_json(solution: Solution) -> dict[str, Any]:
    """Return a report as plain data.

    Its keys, besides those of the problem, are:

    * "delta": the enclosure; "exact": a fraction, or None;
    * "reached": both δ of the laws, "singular" and "true-delta";
    * "law": the laws, each with the range of counts that it serves;
    * "alphas": the nonzero weights α_{i1,i2,n} of each law at its first count n, with i1 as "below"
      and i2 as "above", as fraction and as decimal;
    * "alpha_star": the α_j of a single law for all counts, or None;
    * "solver": the floating-point solution by cvxpy, or None;
    * "mechanism": the single law in the notation of mechanisms, or None;
    * "counts_for_one_law": the number of counts n ≥ D from which on the single law is optimal also
      among laws that depend on the count, or None (`dpassay.lp.one_law`).
    """
    mechanism = solution.mechanism()
    return {
        "schema_version": SCHEMA_VERSION,
        "problem": repr(solution.problem),
        "objective": solution.problem.objective,
        "delta": solution.delta.to_json(),
        "exact": None if solution.exact is None else str(solution.exact),
        "reached": {name: value.to_json() for name, value in solution.reached.items()},
        "law": listed(solution),
        "alphas": _alphas(solution),
        "alpha_star": None if solution.alpha_star is None else [*map(str, solution.alpha_star)],
        "alpha_star_decimal": None
        if solution.alpha_star is None
        else [*map(_decimal, solution.alpha_star)],
        "solver": _solver(solution),
        "mechanism": None if mechanism is None else repr(mechanism),
        "counts_for_one_law": None
        if mechanism is None or solution.problem.objective != "singular"
        else counts_for_one_law(solution.problem),
        "seconds": round(solution.seconds, 6),
    }


def listed(solution: Solution) -> list[dict[str, Any]]:
    """Return each law with the range of counts that it serves."""
    last = solution.problem.max_count
    if last is None:
        return [_law(solution.laws[0], solution.problem.support, None)]
    counted = enumerate(solution.laws, solution.problem.min_count)
    entries = [_law(law, count, count) for count, law in counted]
    return [*entries[:-1], {**entries[-1], "to": last}]


def _alphas(solution: Solution) -> list[dict[str, Any]]:
    problem = solution.problem
    first = problem.support if problem.max_count is None else problem.min_count
    return [
        {"below": i1, "above": i2, "count": count, "alpha": str(alpha), "decimal": _decimal(alpha)}
        for count, law in enumerate(solution.laws, first)
        for (i1, i2), alpha in mixture_weights(law).items()
    ]


def _solver(solution: Solution) -> dict[str, Any] | None:
    """Return the floating-point solution by cvxpy and its errors, as plain data."""
    found = solution.solver_answer
    if found is None:
        return None
    return {
        "name": found.solver,
        "delta": found.delta,
        "delta_off": found.delta_off,
        "alpha_off": found.alpha_off,
        "alpha_star": None if found.alpha_star is None else [*found.alpha_star],
        "alphas": [
            {"below": i1, "above": i2, "count": count, "alpha": alpha}
            for count, alphas in found.alphas.items()
            for (i1, i2), alpha in alphas.items()
        ],
    }


def _decimal(value: Fraction) -> str:
    """Return the number rounded to fifteen significant digits."""
    return f"{Decimal(value.numerator) / Decimal(value.denominator):.15g}"


def _law(law: Law, first: int, last: int | None) -> dict[str, Any]:
    probabilities = [written(probability) for probability in law.probabilities]
    return {"from": first, "to": last, "lowest": law.lowest, "probabilities": probabilities}


def written(value: fmpq) -> str:
    """Return a number as a fraction, or as a terminating decimal if that is shorter."""
    fraction = to_fraction(value)
    text = str(fraction)
    decimal = _terminating(fraction)
    return text if decimal is None or len(text) <= len(decimal) else decimal


def _terminating(value: Fraction) -> str | None:
    """Return the number as "MANTISSAe-PLACES", or None if its decimal expansion is infinite."""
    twos = (value.denominator & -value.denominator).bit_length() - 1
    odd, fives = value.denominator >> twos, 0
    while odd % 5 == 0:
        odd, fives = odd // 5, fives + 1
    if odd != 1:
        return None
    places = max(twos, fives)
    return f"{value.numerator * 10**places // value.denominator}e-{places}"
