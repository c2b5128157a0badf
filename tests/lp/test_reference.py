"""Proposition 2 and Example 1 as printed, beside the certified optimum."""

from __future__ import annotations

import warnings
from fractions import Fraction

import pytest

from dpassay.accountant.errors import InvalidInputError
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.example import (
    matrix_text,
    noise_matrix,
    output_matrix,
    two_point_law,
    two_point_pairs,
)
from dpassay.lp.problem import CountNoiseProblem
from dpassay.lp.reference import ReferenceModel
from dpassay.lp.solve import SolverError, installed_solvers

# absolute tolerances of the answers: ten times what each solver is told to reach
TOLERANCES = {"HIGHS": 1e-6, "CLARABEL": 1e-6, "SCS": 1e-3, "OSQP": 1e-3, "SCIPY": 1e-6}
CASES = [(2, "1/2", 2, 3), (4, "1/2", 2, 6), (3, "4/5", 3, 8), (2, "1/20", 3, 5), (9, "1/2", 4, 4)]


def problem_of(case: tuple[int, str, int, int]) -> CountNoiseProblem:
    ratio, eta, support, count = case
    return CountNoiseProblem(ratio=ratio, eta=eta, support=support, max_count=count)


def attempts() -> list[tuple[str, tuple[int, str, int, int]]]:
    """Every solver on every case, but for OSQP on the second: it runs out of iterations there."""
    solvers = sorted(set(TOLERANCES) & set(installed_solvers()))
    return [(s, case) for s in solvers for case in CASES if (s, case) != ("OSQP", CASES[1])]


@pytest.mark.parametrize(("solver", "case"), attempts())
def test_every_solver_comes_near_the_certified_value(
    solver: str, case: tuple[int, str, int, int]
) -> None:
    problem = problem_of(case)
    certified = optimal_count_noise(problem).delta
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # cvxpy's note on inaccurate answers
        found = ReferenceModel(problem).build().solve(solver)
    assert abs(found - float(certified.lower)) <= TOLERANCES[solver]


def test_the_first_example_of_the_paper() -> None:
    model = ReferenceModel(CountNoiseProblem(epsilon=0, eta="1/2", support=2, max_count=3)).build()
    # 2 + 4 + 4 weights and δ; three sums and four comparisons of the six outcomes 0..5
    assert model.sizes == (11, 3 + 4 * 6)
    assert abs(model.solve("HIGHS") - 0.25) <= 1e-7
    exact = optimal_count_noise(CountNoiseProblem(epsilon=0, eta="1/2", support=2, max_count=3))
    assert exact.exact == Fraction(1, 4)


def test_a_solver_that_gives_up_says_so() -> None:
    model = ReferenceModel(CountNoiseProblem(ratio=2, eta="1/2", support=2, max_count=3)).build()
    with (
        pytest.warns(UserWarning, match="inaccurate"),
        pytest.raises(SolverError, match="OSQP stopped with status 'user_limit'"),
    ):
        model.solve("OSQP", max_iter=1)


def test_a_solver_that_is_missing_is_named_with_those_that_are_there() -> None:
    model = ReferenceModel(CountNoiseProblem(ratio=2, eta="1/2", support=2, max_count=3)).build()
    with pytest.raises(InvalidInputError, match=r"'GUROBY'.*Installed: .*HIGHS"):
        model.solve("GUROBY")


def test_a_model_that_no_solver_can_read_is_refused() -> None:
    problem = CountNoiseProblem(ratio=2, eta="1/2", support=4, max_count=10**6)
    with pytest.raises(InvalidInputError, match="max_count=1000000"):
        ReferenceModel(problem)


# eqs. (5) and (6) of the paper, line by line
EQUATION_5 = [
    ["0", "1/6 α[-2,1,2] + 1/4 α[-2,2,2]", "1/6 α[-2,1,3] + 1/4 α[-2,2,3]"],
    [
        "1/4 α[-1,1,1] + 1/3 α[-1,2,1]",
        "1/4 α[-1,1,2] + 1/3 α[-1,2,2]",
        "1/4 α[-1,1,3] + 1/3 α[-1,2,3]",
    ],
    ["1/2", "1/2", "1/2"],
    ["1/4 α[-1,1,1]", "1/3 α[-2,1,2] + 1/4 α[-1,1,2]", "1/3 α[-2,1,3] + 1/4 α[-1,1,3]"],
    ["1/6 α[-1,2,1]", "1/4 α[-2,2,2] + 1/6 α[-1,2,2]", "1/4 α[-2,2,3] + 1/6 α[-1,2,3]"],
]
EQUATION_6 = [
    [EQUATION_5[1][0], EQUATION_5[0][1], "0"],
    ["1/2", EQUATION_5[1][1], EQUATION_5[0][2]],
    [EQUATION_5[3][0], "1/2", EQUATION_5[1][2]],
    [EQUATION_5[4][0], EQUATION_5[3][1], "1/2"],
    ["0", EQUATION_5[4][1], EQUATION_5[3][2]],
    ["0", "0", EQUATION_5[4][2]],
]


def test_equation_4() -> None:
    quarter, third = Fraction(1, 4), Fraction(1, 3)
    assert two_point_law("1/2", -1, 1) == {-1: quarter, 0: 2 * quarter, 1: quarter}
    assert two_point_law("1/2", -1, 2) == {-1: third, 0: 2 * quarter, 2: third / 2}
    assert [len(two_point_pairs(n, 2)) for n in (1, 2, 3)] == [2, 4, 4]


def test_equations_5_and_6_as_printed() -> None:
    for matrix, printed in (
        (noise_matrix("1/2", 2, 3), EQUATION_5),
        (output_matrix("1/2", 2, 3), EQUATION_6),
    ):
        assert [[str(entry) for entry in row] for row in matrix] == printed


@pytest.mark.parametrize(("eta", "support", "count"), [("1/2", 2, 3), ("4/5", 3, 5), ("1/7", 4, 2)])
def test_every_mixture_is_a_law_of_mean_zero(eta: str, support: int, count: int) -> None:
    matrix = noise_matrix(eta, support, count)
    for n in range(1, count + 1):
        pairs = two_point_pairs(n, support)
        weights = {
            pair: Fraction(2 * k, len(pairs) * (len(pairs) + 1))
            for k, pair in enumerate(pairs, start=1)
        }
        law = [row[n - 1].at(weights) for row in matrix]
        assert sum(law) == 1
        assert sum(z * p for z, p in enumerate(law, start=-support)) == 0
        assert law[support] == Fraction(eta)
        assert all(p == 0 for p in law[: max(support - n, 0)])


def test_the_text_names_counts_and_outcomes() -> None:
    lines = matrix_text(noise_matrix("1/2", 2, 3), -2).splitlines()
    assert lines[0].split() == ["n=1", "n=2", "n=3"]
    assert lines[3].split() == ["0", "1/2", "1/2", "1/2"]


@pytest.mark.parametrize("eta", [0, 1, "3/2"])
def test_bad_shares_are_refused(eta: object) -> None:
    with pytest.raises(InvalidInputError, match=r"eta="):
        two_point_law(eta, -1, 1)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidInputError, match=r"i1=1"):
        two_point_law("1/2", 1, 1)
