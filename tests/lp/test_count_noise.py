"""Optimal count noise: certified, under (ε, δ)-DP itself, and beside what the paper prints."""

from __future__ import annotations

import json
import warnings
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dpassay.accountant.counting.count_noise import CountNoise
from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.questions import profile
from dpassay.lp import solve
from dpassay.lp.certificate import Ratio, dual_bound
from dpassay.lp.count_noise import Solution, optimal_count_noise
from dpassay.lp.integer_noise import IntegerNoiseProblem, optimal_integer_noise
from dpassay.lp.laws import Law, mixture_weights
from dpassay.lp.one_law import counts_for_one_law
from dpassay.lp.problem import CountNoiseProblem, to_fmpq
from dpassay.lp.program import ONE, ZERO, Coefficient, Program, Row
from dpassay.lp.reference import ReferenceModel, two_point_law, two_point_pairs
from dpassay.lp.search import answers
from dpassay.lp.solve import installed_solvers
from dpassay.verifier import kernel as checker
from dpassay.verifier.cli import main
from dpassay.verifier.prover import optima
from tests.near import narrow
from tests.quick import slow
from tests.scripts import script

# The programs of count noise written out, as a route of their own


def by_linear_program(e: float, eta: float, support: int, counts: range, *, single: bool) -> float:
    """Variables p(z | n) and a slack for each outcome of each ordered pair, in floating point.

    With `single` the slack is δ itself, as in Proposition 2.
    """
    cells = [(n, z) for n in counts for z in range(-min(n, support), support + 1)]
    pairs = [(n, m) for n in counts for m in (n - 1, n + 1) if m in counts]
    slacks = [(n, m, y) for n, m in pairs for y in range(counts.stop + support)]
    index = {name: i for i, name in enumerate([*cells, *slacks])}
    size = len(index) + 1
    equal, right, above = [], [], []
    for n in counts:
        own = [(z, index[n, z]) for m, z in cells if m == n]
        for weights, value in (
            ({i: 1.0 for _, i in own}, 1.0),
            ({i: float(z) for z, i in own}, 0.0),
            ({index[n, 0]: 1.0}, eta),
        ):
            row = np.zeros(size)
            row[list(weights)] = list(weights.values())
            equal.append(row)
            right.append(value)
    for n, m, y in slacks:
        row = np.zeros(size)
        row[-1 if single else index[n, m, y]] = -1
        if (n, y - n) in index:
            row[index[n, y - n]] += 1
        if (m, y - m) in index:
            row[index[m, y - m]] -= e
        above.append(row)
    for pair in () if single else pairs:
        row = np.zeros(size)
        row[[index[slack] for slack in slacks if slack[:2] == pair]] = 1
        row[-1] = -1
        above.append(row)
    bounds = np.zeros(len(above))
    cost = np.zeros(size)
    cost[-1] = 1
    found = linprog(cost, A_ub=above, b_ub=bounds, A_eq=equal, b_eq=right, method="highs")
    assert found.success
    return float(found.fun or 0)


# The certified optimum of bounded count noise, and what the paper prints of it


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


@pytest.mark.slow
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
    return script("benchmarks/closed_form.py")


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

    monkeypatch.setattr("dpassay.lp.count_noise.proved_answers", fails)
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


# Proposition 2 as printed, compared with the certified optimum


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
    assert abs(model.solve("HIGHS") - 0.25) <= 1e-7
    exact = optimal_count_noise(CountNoiseProblem(epsilon=0, eta="1/2", support=2, max_count=3))
    assert exact.exact == Fraction(1, 4)


def test_a_solver_that_is_missing_is_named_with_those_that_are_there() -> None:
    model = ReferenceModel(CountNoiseProblem(ratio=2, eta="1/2", support=2, max_count=3)).build()
    with pytest.raises(InvalidInputError, match=r"'GUROBY'.*Installed: .*HIGHS"):
        model.solve("GUROBY")


def test_a_model_that_no_solver_can_read_is_refused() -> None:
    problem = CountNoiseProblem(ratio=2, eta="1/2", support=4, max_count=10**6)
    with pytest.raises(InvalidInputError, match="max_count=1000000"):
        ReferenceModel(problem)


def test_equation_4() -> None:
    quarter, third = Fraction(1, 4), Fraction(1, 3)
    half = 2 * quarter
    assert two_point_law(half, -1, 1) == {-1: quarter, 0: half, 1: quarter}
    assert two_point_law(half, -1, 2) == {-1: third, 0: half, 2: third / 2}
    assert [len(two_point_pairs(n, 2)) for n in (1, 2, 3)] == [2, 4, 4]


# Optimal count noise under (ε, δ)-DP itself: a plain program, the accountant, special cases


def solve_true_delta(**options: Any) -> Solution:
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
    found = solve_true_delta(ratio=e, eta=eta, support=support, min_count=first, max_count=last)
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
    [("1.5", "1/2", 4, 8), slow("1", "4/5", 3, 10_000), ("2.2", "1/10", 5, 300)],
)
def test_the_accountant_finds_the_same_delta(
    epsilon: str, eta: str, support: int, last: int
) -> None:
    found = solve_true_delta(epsilon=epsilon, eta=eta, support=support, max_count=last)
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
    found = solve_true_delta(ratio=3, eta=eta, support=support)
    other = IntegerNoiseProblem("delta", support, ratio=3, error_free=eta)
    assert found.exact == optimal_integer_noise(other).exact


def test_no_delta_is_needed_where_all_counts_share_their_outcomes() -> None:
    for objective in ("singular", "true-delta"):
        problem = CountNoiseProblem(
            epsilon="1.5", eta="1/2", support=6, max_count=5, objective=objective
        )
        found = optimal_count_noise(problem)
        assert found.delta.lower == found.delta.upper == 0


@pytest.mark.slow
def test_what_is_reached_is_the_answer_unless_a_width_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dpassay.lp.count_noise.MORE_LAWS", 1)
    problem = CountNoiseProblem(
        epsilon="0.5", eta="0.5", support=8, max_count=70, objective="true-delta"
    )
    delta = optimal_count_noise(problem).delta
    assert narrow(delta, Fraction(1, 10**6))
    assert not narrow(delta, Fraction(1, 10**12))


# One law for many counts, and the weights of two laws of which it is a mixture


def least(problem: CountNoiseProblem, counts: int) -> Fraction | None:
    """The optimum over laws for so many counts n ≥ D."""
    support = problem.support
    return optimal_count_noise(
        CountNoiseProblem(
            ratio=problem.ratio,
            eta=problem.eta,
            support=support,
            min_count=support,
            max_count=support + counts - 1,
        )
    ).exact


def needed(problem: CountNoiseProblem) -> int:
    """The number of counts that the theorem names, found to be enough, and one less too few."""
    counts, one = counts_for_one_law(problem), optimal_count_noise(problem).exact
    assert one is not None
    assert counts is not None
    assert least(problem, counts) == one
    fewer = least(problem, counts - 1)
    assert fewer is not None
    assert fewer < one
    return counts


def crossover(ratio: Fraction, k: int) -> Fraction:
    """C_k = P_{k+1}/A_k."""
    zero = Fraction(0)
    top = sum((ratio**j for j in range(k + 1)), zero)
    return top / sum(((k - j) * ratio**j for j in range(k)), zero)


@given(
    st.fractions(1, 5, max_denominator=4),
    st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=100),
    st.integers(1, 4),
)
@settings(max_examples=25)
def test_one_law_is_optimal_from_this_number_of_counts_on(
    ratio: Fraction, eta: Fraction, support: int
) -> None:
    assert needed(CountNoiseProblem(ratio=ratio, eta=eta, support=support)) <= 2 * support


@pytest.mark.parametrize("support", range(1, 6))
@pytest.mark.parametrize("ratio", [Fraction(1), Fraction(11, 10), Fraction(3)])
def test_one_law_at_the_last_crossover(ratio: Fraction, support: int) -> None:
    c = crossover(ratio, support)
    problem = CountNoiseProblem(ratio=ratio, eta=c / (2 + c), support=support)
    assert needed(problem) == (2 if ratio == 1 else max(2, support))


@pytest.mark.parametrize(("support", "m"), [(2, 1), (3, 1), (4, 1), (4, 2), (5, 1), (5, 2)])
@pytest.mark.parametrize("ratio", [Fraction(1), Fraction(11, 10), Fraction(3)])
def test_one_law_where_two_bounds_are_equal(ratio: Fraction, support: int, m: int) -> None:
    noise = CountNoise(to_fmpq(ratio), fmpq(1, 2), support)
    slack = noise.powers[m] / (noise.plain[support + 1 - m] - noise.plain[m])  # Bδ/C
    tail = noise.descending[m] + noise.descending[support - m]
    c = 1 / (noise.plain[m + 1] - 1 + slack * tail)
    assert isinstance(c, fmpq)
    noise = CountNoise(to_fmpq(ratio), c / (2 + c), support)
    assert noise.missing_bound(m) == noise.missing_bound(m - 1) == noise.optimal_delta
    eta = Fraction(str(noise.eta))
    assert needed(CountNoiseProblem(ratio=ratio, eta=eta, support=support)) == support + 1


def test_a_tie_of_balls_has_no_number_and_other_balls_have_one() -> None:
    with mpmath.workdps(2000):
        near = mpmath.nstr(mpmath.log(2), 1999)
    assert counts_for_one_law(CountNoiseProblem(epsilon=near, eta="3/5", support=3)) is None
    assert counts_for_one_law(CountNoiseProblem(epsilon="2.2", eta="4/5", support=6)) == 7


def test_the_command_line_says_the_number(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["optimal", "count-noise", "--ratio", "2", "--eta", "9/20", "--support", "3"]
    assert main(asked) == 0
    assert "over 6 or more counts n ≥ 3" in capsys.readouterr().out
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts_for_one_law"] == 6
    assert main([*asked, "--json", "--max-count", "5"]) == 0
    assert json.loads(capsys.readouterr().out)["counts_for_one_law"] is None


@st.composite
def laws(draw: st.DrawFn) -> Law:
    """Laws with mean 0 and P(0) > 0, on integers from −4 to 4."""
    sides = [
        draw(st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any))
        for size in (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    ]
    below, above = sides
    left = sum(z * mass for z, mass in enumerate(below, 1))
    right = sum(z * mass for z, mass in enumerate(above, 1))
    masses = [mass * right for mass in reversed(below)]
    masses += [draw(st.integers(1, 9)) * left * right, *(mass * left for mass in above)]
    total = sum(masses)
    return Law(-len(below), tuple(fmpq(mass, total) for mass in masses))


@given(laws())
def test_the_mixture_of_two_point_laws_is_the_law(law: Law) -> None:
    eta = Fraction(int(law.at(0).p), int(law.at(0).q))
    weights = mixture_weights(law)
    assert sum(weights.values()) == 1
    assert min(weights.values()) > 0
    made = dict.fromkeys(law.values, Fraction(0))
    for pair, alpha in weights.items():
        for z, mass in two_point_law(eta, *pair).items():
            made[z] += alpha * mass
    assert list(made.values()) == law.fractions()


@pytest.mark.parametrize(("ratio", "eta", "support"), [(3, "1/2", 4), (2, "4/5", 6), (9, "1/5", 3)])
def test_alpha_star_is_the_law_of_definition_2(ratio: int, eta: str, support: int) -> None:
    found = optimal_count_noise(CountNoiseProblem(ratio=ratio, eta=eta, support=support))
    star = found.alpha_star
    assert star is not None
    assert sum(star) == 1
    half = (1 - Fraction(eta)) / 2
    law = [alpha * half for alpha in star]
    whole = [*reversed(law), Fraction(eta), *law]
    padded = [Fraction(0), *whole, Fraction(0)]
    excess = max(
        p - ratio * q
        for one, other in ((padded[1:], padded[:-1]), (padded[:-1], padded[1:]))
        for p, q in zip(one, other, strict=True)
    )
    assert excess == found.exact
