"""Solutions of count-noise problems as plain data."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from flint import fmpq

from dpassay.lp.count_noise import Solution
from dpassay.lp.laws import Law, mixture_weights
from dpassay.lp.one_law import counts_for_one_law
from dpassay.lp.problem import to_fraction

SCHEMA_VERSION = 1
"""Version of the reports; it rises when a key changes its meaning."""


def to_json(solution: Solution) -> dict[str, Any]:
    """Return {"delta", "exact", "law", "alphas", …}.

    "reached" has both δ of the laws, "singular" of single outcomes and "true-delta" of (ε, δ)-DP.
    Each α is a fraction, with its decimals beside it; "solver" is what cvxpy found, or None.
    "law" lists the laws with the counts that each is for; "exact" is a fraction or None; "alphas"
    lists the weights α_{i1,i2,n} that are not 0, "below" i1 and "above" i2, of each law at its
    first count n; "alpha_star" the α_j of one law for all counts, or None; "mechanism" is this law
    in the notation of mechanisms, or None; "counts_for_one_law" the number of counts n ≥ D from
    which on this law is optimal among laws that differ by count, or None (see
    `dpassay.lp.one_law`).
    """
    mechanism = solution.mechanism()
    return {
        "schema_version": SCHEMA_VERSION,
        "problem": repr(solution.problem),
        "objective": solution.problem.objective,
        "delta": solution.delta.to_json(),
        "exact": None if solution.exact is None else str(solution.exact),
        "reached": {name: value.to_json() for name, value in solution.reached.items()},
        "law": _laws(solution),
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


def _laws(solution: Solution) -> list[dict[str, Any]]:
    """Return each law with its counts; the last one serves all counts that remain."""
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
    """Return what a solver of cvxpy found, and how far that is from what is proved."""
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
    """Return fifteen significant digits, rounded."""
    return f"{Decimal(value.numerator) / Decimal(value.denominator):.15g}"


def _law(law: Law, first: int, last: int | None) -> dict[str, Any]:
    probabilities = [_text(probability) for probability in law.probabilities]
    return {"from": first, "to": last, "lowest": law.lowest, "probabilities": probabilities}


def _text(value: fmpq) -> str:
    """Print as a terminating decimal where that is shorter than the fraction."""
    fraction = to_fraction(value)
    text = str(fraction)
    decimal = _terminating(fraction)
    return text if decimal is None or len(text) <= len(decimal) else decimal


def _terminating(value: Fraction) -> str | None:
    """Return mantissa and exponent in decimal, or None where the digits do not end."""
    twos = (value.denominator & -value.denominator).bit_length() - 1
    odd, fives = value.denominator >> twos, 0
    while odd % 5 == 0:
        odd, fives = odd // 5, fives + 1
    if odd != 1:
        return None
    places = max(twos, fives)
    return f"{value.numerator * 10**places // value.denominator}e-{places}"
