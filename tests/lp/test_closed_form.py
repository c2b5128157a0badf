"""The closed form of one law for all counts: proved by its own certificate, where simplex fails."""

from __future__ import annotations

from fractions import Fraction

import pytest

from accountant.numbers.interval import Interval
from lp.count_noise import optimal_count_noise
from lp.problem import CountNoiseProblem
from lp.search import Search, first_magnitude


def by_formula(problem: CountNoiseProblem, bits: int) -> tuple[Interval, Fraction | None]:
    answer = Search(
        problem, first_magnitude(problem), bits, complete=True, own=problem.columns
    ).by_formula()
    return answer.delta, answer.exact


@pytest.mark.parametrize("ratio", ["1", "3/2", "4"])
@pytest.mark.parametrize("eta", ["1/100", "1/10", "1/2", "4/5"])
@pytest.mark.parametrize("support", [1, 2, 5, 8])
def test_it_is_the_simplex_optimum_exactly(ratio: str, eta: str, support: int) -> None:
    problem = CountNoiseProblem(ratio=ratio, eta=eta, support=support)
    assert by_formula(problem, 100)[1] == optimal_count_noise(problem).exact


@pytest.mark.parametrize("epsilon", ["0.1", "2.2", "4"])
@pytest.mark.parametrize("eta", ["0.01", "0.5", "0.97"])
@pytest.mark.parametrize("support", [3, 16, 64])
def test_its_certificate_is_narrow_for_every_size(epsilon: str, eta: str, support: int) -> None:
    delta, _ = by_formula(CountNoiseProblem(epsilon=epsilon, eta=eta, support=support), 100)
    assert delta.relative_width is not None
    assert delta.relative_width < Fraction(1, 10**29)


@pytest.mark.parametrize("support", [32, 64])
def test_an_optimum_that_floating_point_cannot_follow(support: int) -> None:
    # δ* ~ 6e-20 does not depend on D beyond the regime, while E^D ~ 1e61
    found = optimal_count_noise(CountNoiseProblem(epsilon="2.2", eta="0.8", support=support))
    assert found.delta.relative_width is not None
    assert found.delta.relative_width <= Fraction(1, 10**12)
    assert found.delta.upper > 0
