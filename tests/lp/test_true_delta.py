"""Optimal count noise under (ε, δ)-DP itself: a plain program, the accountant, special cases."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.questions import profile
from dpassay.lp.count_noise import Solution, optimal_count_noise
from dpassay.lp.integer_noise import IntegerNoiseProblem, optimal_integer_noise
from dpassay.lp.problem import CountNoiseProblem
from tests.lp.plain import by_linear_program
from tests.near import narrow


def solve(**options: Any) -> Solution:
    return optimal_count_noise(CountNoiseProblem(objective="true-delta", **options))


@pytest.mark.parametrize(
    ("e", "eta", "support", "first", "last"),
    [
        (3, "1/2", 4, 1, 9),
        (3, "1/2", 2, 2, 3),
        (2, "1/10", 3, 1, 5),
        (2, "4/5", 3, 2, 6),
        (4, "1/3", 1, 1, 4),
    ],
)
def test_agrees_with_a_plain_program(e: int, eta: str, support: int, first: int, last: int) -> None:
    found = solve(ratio=e, eta=eta, support=support, min_count=first, max_count=last)
    plain = by_linear_program(
        e, float(Fraction(eta)), support, range(first, last + 1), single=False
    )
    assert found.exact is not None
    assert float(found.exact) == pytest.approx(plain, abs=1e-9)
    single = optimal_count_noise(
        CountNoiseProblem(ratio=e, eta=eta, support=support, min_count=first, max_count=last)
    )
    assert single.exact is not None
    assert single.exact <= found.exact


@pytest.mark.parametrize(
    ("epsilon", "eta", "support", "last"),
    [("1.5", "1/2", 4, 8), ("1", "4/5", 3, 10_000), ("2.2", "1/10", 5, 300)],
)
def test_the_accountant_finds_the_same_delta(
    epsilon: str, eta: str, support: int, last: int
) -> None:
    found = solve(epsilon=epsilon, eta=eta, support=support, max_count=last)
    assert narrow(found.delta, Fraction(1, 10**12))
    reached = [
        profile.delta(found.neighbours(n), epsilon, adjacency=None)
        for n in range(1, min(last, len(found.laws) + 2))
    ]
    assert max(delta.lower for delta in reached) <= found.delta.upper
    assert max(delta.upper for delta in reached) >= found.delta.lower


@pytest.mark.parametrize("eta", ["1/10", "1/2", "9/10"])
@pytest.mark.parametrize("support", [1, 4, 8])
def test_one_law_is_the_best_integer_noise(eta: str, support: int) -> None:
    """A mean of 0 costs nothing: the mean of a law and its mirror image has it."""
    found = solve(ratio=3, eta=eta, support=support)
    other = IntegerNoiseProblem("delta", support, ratio=3, error_free=eta)
    assert found.exact == optimal_integer_noise(other).exact


def test_no_delta_is_needed_where_all_counts_share_their_outcomes() -> None:
    for objective in ("singular", "true-delta"):
        problem = CountNoiseProblem(
            epsilon="1.5", eta="1/2", support=6, max_count=5, objective=objective
        )
        found = optimal_count_noise(problem)
        assert found.delta.lower == found.delta.upper == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "delta"}, "objective='delta' to be one of 'singular', 'true-delta'"),
        ({"min_count": 0}, "min_count=0 ≥ 1"),
        ({"min_count": 9}, "min_count=9 ≤ 8"),
        ({"min_count": 2, "max_count": None}, "min_count=2 ≤ 1"),
        ({"objective": "true-delta", "support": 99, "max_count": 99}, "about 3 GiB"),
    ],
)
def test_bad_problems(options: dict[str, Any], message: str) -> None:
    base: dict[str, Any] = {"epsilon": 1, "eta": "1/2", "support": 4, "max_count": 8}
    with pytest.raises(InvalidInputError, match=message):
        CountNoiseProblem(**(base | options))


@pytest.mark.slow
def test_what_is_reached_is_the_answer_unless_a_width_is_asked_for() -> None:
    problem = CountNoiseProblem(
        epsilon="0.5", eta="0.5", support=8, max_count=70, objective="true-delta"
    )
    delta = optimal_count_noise(problem).delta
    assert narrow(delta, Fraction(1, 10**6))
    assert not narrow(delta, Fraction(1, 10**12))
