"""Optimal integer noise: certified, feasible, and equal to what independent routes give."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from dpassay.accountant.questions import profile
from dpassay.lp.integer_noise import (
    IntegerNoiseProblem,
    IntegerNoiseSolution,
    optimal_free_noise,
    optimal_integer_noise,
)
from tests.near import narrow
from tests.quick import slow


def _solve(objective: str, support: int, **options: Any) -> IntegerNoiseSolution:
    return optimal_integer_noise(IntegerNoiseProblem(objective, support, **options))


@pytest.mark.parametrize("objective", ["variance", "absolute", "error"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "sensitivity"),
    [("1", "1e-6", 1), ("0.5", "0.05", 2), ("2", "1e-4", 3), ("4", "0.2", 5), ("0", "0.1", 1)],
)
def test_law_is_private_and_the_optimum_narrow(
    objective: str, epsilon: str, delta: str, sensitivity: int
) -> None:
    found = _solve(objective, 24, epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    width = found.value.relative_width
    assert width is not None
    assert width < Fraction(1, 10**27)
    assert found.divergence <= Fraction(delta)
    exact = profile.delta(found.mechanism, epsilon, adjacency=None)
    if found.problem.is_rational:
        assert Fraction(delta) in exact
    else:
        assert Fraction(exact.upper) <= Fraction(delta)
    assert found.cost(objective) <= Fraction(found.value.upper)
    assert found.mechanism.mean() == 0


@pytest.mark.parametrize(
    ("objective", "support", "options"),
    [
        ("delta", 48, {"epsilon": "1"}),
        slow("delta", 100, {"ratio": "3/2"}),
        ("delta", 16, {"epsilon": "2", "error_free": "1/1000000"}),
        ("variance", 100, {"epsilon": "2", "delta": "1e-9"}),
        slow("absolute", 32, {"epsilon": "8", "delta": "1e-30"}),
    ],
)
def test_the_optimum_is_narrow_where_floats_stay_far_from_it(
    objective: str, support: int, options: dict[str, str]
) -> None:
    assert narrow(_solve(objective, support, sensitivity=2, **options).value, Fraction(1, 10**27))


@pytest.mark.parametrize("ratio", ["1", "21/20", "3/2", "2", "3", "54"])
@pytest.mark.parametrize("delta", ["0.3", "0.03", "1e-4"])
def test_unit_sensitivity_has_a_formula(ratio: str, delta: str) -> None:
    """The trimmed geometric law of docs/lp.md, from P(Z ≥ 1), P(Z ≥ 2), …"""
    tails = [(1 - Fraction(delta)) / (1 + Fraction(ratio))]
    while tails[-1] > Fraction(delta):
        tails.append((tails[-1] - Fraction(delta)) / Fraction(ratio))
    sides = [a - b for a, b in itertools.pairwise([*tails, Fraction(0)])]
    law = [1 - 2 * tails[0], *sides]
    if len(law) > 40:
        return  # only for ratios near 1, where the exact program takes seconds
    found = _solve("variance", len(law) + 1, ratio=ratio, delta=delta)
    assert found.exact == 2 * sum(z * z * mass for z, mass in enumerate(law))
    assert found.every_support
    for objective in ("absolute", "error"):
        assert _solve(objective, len(law) + 1, ratio=ratio, delta=delta).exact == found.cost(
            objective
        )


@pytest.mark.parametrize("error_free", ["0.001", "0.1", "0.7", "0.999"])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [("1.5", 1), ("4", 2), ("0.05", 3)])
def test_least_delta_for_any_error_free_probability(
    error_free: str, epsilon: str, sensitivity: int
) -> None:
    options: dict[str, Any] = {"epsilon": epsilon, "sensitivity": sensitivity}
    found = _solve("delta", 12, error_free=error_free, **options)
    width = found.value.relative_width
    assert width is not None
    assert width < Fraction(1, 10**27)
    assert found.side()[0] == Fraction(error_free)
    assert Fraction(found.value.lower) <= found.divergence <= Fraction(found.value.upper)
    assert found.value.overlaps(profile.delta(found.mechanism, epsilon, adjacency=None))
    assert found.value.lower >= _solve("delta", 12, **options).value.lower


@pytest.mark.parametrize("epsilon", ["0.1", "0.7"])
def test_least_error_probability_of_any_support_is_that_of_half_lines(epsilon: str) -> None:
    """{Z ≤ 0} against {Z ≤ −1}: (1 + η)/2 − E(1 − η)/2 ≤ δ, which some law attains."""
    problem = IntegerNoiseProblem(objective="error", support=32, epsilon=epsilon, delta="1e-6")
    found = optimal_free_noise(problem)
    with mpmath.workdps(50):
        ratio = mpmath.exp(mpmath.mpf(epsilon))
        least = 1 - (ratio - 1 + 2 * mpmath.mpf("1e-6")) / (ratio + 1)
        assert mpmath.mpf(str(found.value.lower)) <= least <= mpmath.mpf(str(found.value.upper))
    assert narrow(found.value, Fraction(1, 10**30))
