"""The certified optimum of bounded count noise, and what the paper prints of it."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from flint import fmpq

from dpassay.accountant.counting.count_noise import CountNoise
from dpassay.accountant.errors import UndecidedError
from dpassay.lp import solve
from dpassay.lp.certificate import Ratio, dual_bound
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.problem import CountNoiseProblem, to_fmpq, to_fraction
from dpassay.lp.program import ONE, ZERO, Coefficient, Program, Row
from dpassay.lp.search import answers
from dpassay.verifier import kernel as checker
from dpassay.verifier.prover import optima
from tests.lp.plain import by_linear_program
from tests.near import narrow


@pytest.mark.parametrize("e", [2, 3, 9])
@pytest.mark.parametrize("eta", ["1/50", "1/10", "1/2", "4/5"])
def test_one_law_for_all_counts_attains_the_closed_form(e: int, eta: str) -> None:
    for support in range(1, 9):
        found = optimal_count_noise(CountNoiseProblem(ratio=e, eta=eta, support=support))
        expected = CountNoise(fmpq(e), to_fmpq(Fraction(eta)), support).optimal_delta
        assert isinstance(expected, fmpq)
        assert found.exact == to_fraction(expected)
        assert found.exact in found.delta


@pytest.mark.parametrize(
    ("first", "last", "optimum"),
    [(3, 7, Fraction(17, 332)), (3, 6, Fraction(1, 24)), (3, 10, Fraction(19, 340))],
)
def test_counts_that_begin_late_may_each_need_a_law(
    first: int, last: int, optimum: Fraction
) -> None:
    """With D + 1 laws, the last of them for the counts 6 and 7, δ would be 19/340."""
    found = optimal_count_noise(
        CountNoiseProblem(ratio=2, eta="9/20", support=3, min_count=first, max_count=last)
    )
    assert found.exact == optimum
    expected = by_linear_program(2.0, 0.45, 3, range(first, last + 1), single=True)
    assert abs(float(optimum) - expected) <= 1e-6


@pytest.mark.parametrize("multipliers", [(3, 1, 0), (3, 1, -1), (6, 3, 0), (-1, -2, 4)])
@pytest.mark.parametrize("digits", [None, 1])
def test_any_multipliers_prove_a_valid_bound(
    multipliers: tuple[int, ...], digits: int | None
) -> None:
    """Of: minimise δ where x = 1, δ ≥ E x and x ≥ 0; it is E, at least 2 of all that is known."""
    rows = (
        Row(((1, ONE),), ONE, True),
        Row(((0, ONE), (1, Coefficient(0, -1))), ZERO),
        Row(((1, ONE),), ZERO),
    )
    guess = [fmpq(value) for value in multipliers]
    program = Program({0: Fraction(1)}, rows, (0, 0))
    assert dual_bound(program, guess, Ratio(fmpq(2), fmpq(3)), [None, 0], digits).bound <= 2


@pytest.mark.parametrize("ratio", ["1", "3/2", "4"])
@pytest.mark.parametrize("eta", ["1/100", "1/10", "1/2", "4/5"])
@pytest.mark.parametrize("support", [1, 2, 5, 8])
def test_the_closed_form_is_the_simplex_optimum_exactly(ratio: str, eta: str, support: int) -> None:
    problem = CountNoiseProblem(ratio=ratio, eta=eta, support=support)
    simplex = next(answers(problem, 100, own=1))
    assert optimal_count_noise(problem).exact == simplex.exact


@pytest.mark.parametrize("epsilon", ["0.1", "2.2", "4"])
@pytest.mark.parametrize("eta", ["0.01", "0.5", "0.97"])
@pytest.mark.parametrize("support", [3, 16, 64])
def test_its_certificate_is_narrow_for_every_size(epsilon: str, eta: str, support: int) -> None:
    problem = CountNoiseProblem(epsilon=epsilon, eta=eta, support=support)
    found = optimal_count_noise(problem, relative_width=Fraction(1, 10**29))
    assert narrow(found.delta, Fraction(1, 10**29))


LOCATION = Path(__file__).resolve().parents[2] / "benchmarks" / "closed_form.py"


def test_an_eta_of_1e_12_has_its_digits() -> None:
    problem = CountNoiseProblem(ratio="3/2", eta="1e-12", support=30, max_count=33)
    assert narrow(optimal_count_noise(problem).delta, Fraction(1, 10**20))


def test_a_solver_that_turns_in_a_circle_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(solve._OPTIONS, "time_limit", 20.0)
    problem = CountNoiseProblem(
        ratio=20, eta="47/50", support=4, max_count=20, objective="true-delta"
    )
    delta = optimal_count_noise(problem).delta
    assert Fraction(37, 100) in delta
    assert narrow(delta, Fraction(1, 10**15))


@pytest.fixture(scope="module")
def confrontation() -> Any:
    specification = importlib.util.spec_from_file_location("closed_form_grid", LOCATION)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("case", "name"),
    [
        (("3", "1/2", 6, 10**6), "right"),
        (("9", "4/5", 8, 10**6), "right"),
        (("21/20", "1/2", 1, 10**6), "left"),
        (("9", "4/5", 5, 3), "right"),
    ],
)
def test_one_chain_decides_proposition_2(
    confrontation: Any, case: tuple[str, str, int, int], name: str
) -> None:
    ratio, eta, support, count = case
    bounds = confrontation.chain_bounds(ratio, eta, support, count)
    problem = CountNoiseProblem(ratio=ratio, eta=eta, support=support, max_count=count)
    optimum = optimal_count_noise(problem).exact
    assert optimum == bounds[name] == max(bounds.values())


def test_an_optimum_of_1e_41_has_its_digits() -> None:
    """The float solver's basis has hundreds of multipliers below 0, few of them visible."""
    problem = CountNoiseProblem(epsilon=4, eta="1/2", support=24, max_count=1000)
    delta = optimal_count_noise(problem).delta
    assert narrow(delta, Fraction(1, 10**12))
    assert Fraction("2.7469567604e-41") < Fraction(delta.lower) < Fraction("2.7469567605e-41")


@pytest.mark.parametrize("objective", ["singular", "true-delta"])
@pytest.mark.parametrize(("first", "last"), [(1, 9), (2, 9), (5, 9), (2, 2), (1, None)])
def test_without_a_solver_one_law_still_bounds_the_optimum(
    monkeypatch: pytest.MonkeyPatch, objective: str, first: int, last: int | None
) -> None:
    problem = CountNoiseProblem(
        ratio=3, eta="1/2", support=3, min_count=first, max_count=last, objective=objective
    )
    optimum = optimal_count_noise(problem).delta

    def fails(*_: object, **__: object) -> Any:
        raise UndecidedError("No scaling has a solution.")

    monkeypatch.setattr("dpassay.lp.count_noise._answers", fails)
    found = optimal_count_noise(problem)
    assert found.delta.lower == 0
    assert optimum.upper <= found.delta.upper
    if found.delta.upper == 0:  # a count has no neighbours
        assert checker.check(optima.count_noise(found)).outcome is checker.Outcome.VALID
    else:
        with pytest.raises(UndecidedError, match="too wide for a certificate"):
            optima.count_noise(found)
    with pytest.raises(UndecidedError, match=r"enclosed in \[0, "):
        optimal_count_noise(problem, relative_width=Fraction(1, 100))
