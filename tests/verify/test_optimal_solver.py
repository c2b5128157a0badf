"""`optimal count-noise`: both δ, decimals of the α's, cvxpy beside the proof."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

import dpassay
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.questions import profile
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.problem import CountNoiseProblem
from dpassay.verifier.cli import main

EXACT = ["optimal", "count-noise", "--ratio", "3", "--eta", "1/2", "--support", "4"]
ONE_LAW = CountNoiseProblem(ratio=3, eta="1/2", support=4)
BY_COUNT = CountNoiseProblem(ratio=2, eta="1/2", support=2, max_count=6)


def test_both_deltas_of_the_law_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    reached = optimal_count_noise(ONE_LAW).reached
    assert Fraction(1, 232) in reached["singular"]
    assert Fraction(1, 58) in reached["true-delta"]
    mechanism = dpassay.BoundedCountNoise(epsilon="1.1", eta="1/2", support=6)
    true = profile.delta(mechanism, "1.1", adjacency="add-remove")
    problem = CountNoiseProblem(epsilon="1.1", eta="1/2", support=6)
    assert optimal_count_noise(problem).reached["true-delta"].overlaps(true)
    assert main(EXACT) == 0
    assert "as (ε, δ)-DP     δ = 0.0172413793103, of all events" in capsys.readouterr().out
    assert main([*EXACT, "--objective", "true-delta"]) == 0
    assert "single outcomes  δ = " in capsys.readouterr().out


def test_laws_by_count_have_the_delta_of_their_worst_neighbours() -> None:
    found = optimal_count_noise(BY_COUNT)
    worst = max(
        profile.delta(found.neighbours(n), "0.693147180559945309417232121458").upper
        for n in range(1, 6)
    )
    assert abs(float(worst) / float(found.reached["true-delta"].upper) - 1) < 1e-12


def test_alphas_have_decimals_beside_their_fractions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EXACT, "--json"]) == 0
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    pairs = list(zip(data["alpha_star"], data["alpha_star_decimal"], strict=True))
    pairs += [(each["alpha"], each["decimal"]) for each in data["alphas"]]
    for fraction, decimal in pairs:
        assert abs(Fraction(decimal) - Fraction(fraction)) <= Fraction(fraction) / 10**14
    assert data["solver"] is None
    assert set(data["reached"]) == {"singular", "true-delta"}


@pytest.mark.parametrize(("solver", "near"), [("cvxpy:HIGHS", 1e-9), ("cvxpy:clarabel", 1e-6)])
def test_cvxpy_finds_the_alphas_that_are_proved(solver: str, near: float) -> None:
    found = optimal_count_noise(ONE_LAW, solver=solver).solver_answer
    proved = optimal_count_noise(ONE_LAW).alpha_star
    assert found is not None
    assert found.alpha_star is not None
    assert proved is not None
    assert found.delta_off <= near
    differences = [abs(a - float(b)) for a, b in zip(found.alpha_star, proved, strict=True)]
    assert max(differences) == found.alpha_off <= near


def test_cvxpy_gives_a_law_of_each_count(capsys: pytest.CaptureFixture[str]) -> None:
    answer = optimal_count_noise(BY_COUNT, solver="cvxpy").solver_answer
    assert answer is not None
    assert answer.delta_off < 1e-6
    for alphas in answer.alphas.values():
        assert abs(sum(alphas.values()) - 1) < 1e-6
    assert main([*EXACT, "--solver", "cvxpy:HIGHS", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["solver"]["name"] == "HIGHS"


@pytest.mark.parametrize(
    ("solver", "problem", "said"),
    [
        ("highs", ONE_LAW, "solver='highs' to be cvxpy or cvxpy:NAME"),
        ("cvxpy:", ONE_LAW, "to be cvxpy or cvxpy:NAME"),
        ("cvxpy:GUROBY", ONE_LAW, "to be installed"),
        (
            "cvxpy",
            CountNoiseProblem(ratio=3, eta="1/2", support=4, objective="true-delta"),
            "objective='true-delta' to be singular",
        ),
    ],
)
def test_a_solver_that_cannot_is_refused(
    solver: str, problem: CountNoiseProblem, said: str
) -> None:
    with pytest.raises(InvalidInputError, match=said):
        optimal_count_noise(problem, solver=solver)
