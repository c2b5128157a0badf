"""The α's of Propositions 2 and 3: they make up the laws, exactly, and cvxpy finds the same."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from lp.count_noise import optimal_count_noise
from lp.example import two_point_law
from lp.laws import Law
from lp.problem import CountNoiseProblem
from lp.reference import ReferenceModel
from lp.weights import mixture_weights
from verify.cli import main

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


@pytest.mark.parametrize(("epsilon", "eta"), [("2.18", "0.8"), ("1.1", "0.5")])
def test_cvxpy_finds_the_same_weights_of_one_law(epsilon: str, eta: str) -> None:
    problem = CountNoiseProblem(epsilon=epsilon, eta=eta, support=6)
    certified = optimal_count_noise(problem)
    model = ReferenceModel(problem).build()
    assert abs(model.solve("HIGHS") - float(certified.delta)) <= SOLVER
    (alphas,) = model.alphas
    assert certified.alpha_star is not None
    for found, exact in zip(alphas.value, certified.alpha_star, strict=True):
        assert abs(found - float(exact)) <= SOLVER


def test_the_command_line_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["optimal", "count-noise", "--ratio", "3", "--eta", "1/2", "--support", "2"]
    assert main([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert sum(map(Fraction, answer["alpha_star"])) == 1
    assert main([*words, "--max-count", "3", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["alpha_star"] is None
    for count in (1, 2, 3):
        own = [each for each in answer["alphas"] if each["count"] == count]
        assert sum(Fraction(each["alpha"]) for each in own) == 1
        assert all(each["below"] < 0 < each["above"] for each in own)
    assert main([*words, "--max-count", "3", "--alphas"]) == 0
    assert "α[-2,1,2] = 0.2325174825" in capsys.readouterr().out
