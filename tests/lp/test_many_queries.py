"""Bounded count noise for k queries: bounds of the least δ, against brute force and known cases."""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction

import pytest

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import BoundedCountNoise, Composed
from dpassay.accountant.questions import profile
from dpassay.lp import query_bound
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.many_queries import optimal_for_queries
from dpassay.lp.problem import CountNoiseProblem
from dpassay.verifier.cli import main


def brute_force(alpha: list[float], eta: float, ratio: float, count: int) -> float:
    """δ of k answers, outcome by outcome."""
    side = [share * (1 - eta) / 2 for share in alpha]
    law = [*reversed(side), eta, *side, 0.0]
    outcomes = itertools.product(range(len(law) - 1), repeat=count)
    return sum(
        max(0.0, math.prod(law[z] for z in y) - ratio * math.prod(law[z + 1] for z in y))
        for y in outcomes
    )


def test_one_query_has_the_optimum_of_the_linear_program() -> None:
    problem = CountNoiseProblem(ratio=3, eta="1/2", support=2)
    exact = optimal_count_noise(
        CountNoiseProblem(ratio=3, eta="1/2", support=2, objective="true-delta")
    ).exact
    assert exact is not None
    found = optimal_for_queries(problem, 1, relative_width=1e-4)
    assert found.delta.lower <= exact <= found.delta.upper
    assert Fraction(found.delta.upper) < exact * Fraction(10002, 10000)


@pytest.mark.parametrize(("support", "count"), [(2, 3), (3, 2)])
def test_no_law_of_a_grid_is_below_the_lower_bound(support: int, count: int) -> None:
    found = optimal_for_queries(CountNoiseProblem(ratio=6, eta="2/5", support=support), count)
    steps = 24
    cuts = itertools.combinations_with_replacement(range(steps + 1), support - 1)
    laws = ([b - a for a, b in itertools.pairwise((0, *cut, steps))] for cut in cuts)
    values = [brute_force([n / steps for n in law], 0.4, 6, count) for law in laws]
    assert float(found.delta.lower) <= min(values)
    assert math.isclose(
        brute_force([*map(float, found.alpha)], 0.4, 6, count),
        float(found.delta.upper),
        rel_tol=1e-9,  # of sums of products of floats
    )
    assert found.delta.lower > found.delta.upper * Decimal("0.989")
    assert found.floor <= Fraction(found.delta.upper)


def test_the_law_is_a_mechanism_that_gains_over_a_share_of_epsilon_for_each() -> None:
    found = optimal_for_queries(CountNoiseProblem(epsilon=2, eta="1/2", support=3), 2)
    composed = Composed(found.mechanism, 2)
    delta = profile.delta(composed, 2, adjacency="add-remove")
    assert found.delta.lower <= delta.lower <= delta.upper <= found.delta.upper * Decimal("1.001")
    printed = BoundedCountNoise(epsilon=1, eta="1/2", support=3)
    assert profile.delta(Composed(printed, 2), 2).lower > Decimal("1.05") * delta.upper


@pytest.mark.slow
def test_beyond_boxes_a_search_finds_the_law() -> None:
    found = optimal_for_queries(CountNoiseProblem(epsilon=4, eta="1/5", support=5), 4)
    assert Decimal("0.0015") < found.delta.lower < found.delta.upper < Decimal("0.00735")


@pytest.mark.parametrize("weights", [None, 0.3, 3.0])
@pytest.mark.parametrize(("support", "count"), [(2, 1), (2, 4), (3, 3)])
def test_the_bound_is_one_whatever_the_solver_says(
    support: int, count: int, weights: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if weights is not None:
        monkeypatch.setattr(
            query_bound, "_multipliers", lambda lines, *_: [[weights] * len(lines)] * (2 * support)
        )
    monkeypatch.setattr(query_bound, "_PROGRAMS", 60)
    bound = query_bound.lower_bound(Fraction(2, 5), support, Fraction(6), count)
    steps = 12
    cuts = itertools.combinations_with_replacement(range(steps + 1), support - 1)
    laws = ([b - a for a, b in itertools.pairwise((0, *cut, steps))] for cut in cuts)
    values = [brute_force([n / steps for n in law], 0.4, 6, count) for law in laws]
    assert float(bound) <= min(values)
    assert weights is not None or float(bound) > 0.4 * min(values)


@pytest.mark.parametrize(
    ("changes", "count"), [({"max_count": 4}, 2), ({"support": 1}, 2), ({}, 0), ({}, 10**6)]
)
def test_what_cannot_be_asked_is_refused(changes: dict[str, int], count: int) -> None:
    fields = {"ratio": 2, "eta": "1/2", "support": 3, **changes}
    with pytest.raises(InvalidInputError, match="Expected"):
        optimal_for_queries(CountNoiseProblem(**fields), count)  # type: ignore[arg-type]


def test_the_command_line_asks_for_several_queries(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["optimal", "count-noise", "--epsilon", "2", "--eta", "1/2", "--support", "3"]
    assert main([*asked, "--queries", "2", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert 0.101 < float(answer["delta"]["lower"]) < float(answer["delta"]["upper"]) < 0.1024
    assert sum(map(Fraction, answer["alpha"])) == 1
    assert main([*asked, "--queries", "2"]) == 0
    assert "least delta of 2 answers" in capsys.readouterr().out
    for wrong in (["--queries", "x"], ["--queries", "1/2"], ["--queries", "2", "--eta", "1/3"]):
        assert main([*asked, *wrong]) == 2
