"""One law for many counts, and the weights of two laws of which it is a mixture."""

from __future__ import annotations

import json
from fractions import Fraction

import mpmath
import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.accountant.counting.count_noise import CountNoise
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.laws import Law, mixture_weights
from dpassay.lp.one_law import counts_for_one_law
from dpassay.lp.problem import CountNoiseProblem, to_fmpq
from dpassay.lp.reference import two_point_law
from dpassay.verifier.cli import main


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


# HiGHS keeps constraints to 1e-7; the weights of these programs amplify that less than tenfold.
SOLVER = 1e-6


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
