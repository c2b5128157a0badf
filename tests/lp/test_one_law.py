"""From how many counts on one law is optimal, against the certified optima of laws by count."""

from __future__ import annotations

import json
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lp.count_noise import optimal_count_noise
from lp.one_law import counts_for_one_law
from lp.problem import CountNoiseProblem
from verify.cli import main


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


def crossover(ratio: Fraction, k: int) -> Fraction:
    """C_k = P_{k+1}/A_k."""
    zero = Fraction(0)
    top = sum((ratio**j for j in range(k + 1)), zero)
    return top / sum(((k - j) * ratio**j for j in range(k)), zero)


@given(
    st.fractions(1, 5, max_denominator=4),
    st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=100),
    st.integers(2, 4),
)
@settings(max_examples=25)
def test_one_law_is_optimal_from_this_number_of_counts_on(
    ratio: Fraction, eta: Fraction, support: int
) -> None:
    problem = CountNoiseProblem(ratio=ratio, eta=eta, support=support)
    counts, one = counts_for_one_law(problem), optimal_count_noise(problem).exact
    assert one is not None
    assert counts is not None
    assert counts <= 2 * support
    assert least(problem, counts) == one
    fewer = least(problem, counts - 1)
    assert fewer is not None
    if 2 * eta / (1 - eta) != crossover(ratio, support):
        assert fewer < one


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_number_changes_at_the_crossovers(k: int) -> None:
    at = crossover(Fraction(2), k)
    found = []
    for c in (at * Fraction(99, 100), at, at * Fraction(101, 100)):
        problem = CountNoiseProblem(ratio=2, eta=c / (2 + c), support=3)
        found.append(counts_for_one_law(problem))
    assert found == {1: [5, 3, 3], 2: [6, 5, 5], 3: [4, 4, 6]}[k]


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
