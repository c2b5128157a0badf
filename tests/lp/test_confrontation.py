"""The printed closed form against certified optima; the benchmark's grid is the slow test."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lp.count_noise import optimal_count_noise
from lp.problem import CountNoiseProblem

LOCATION = Path(__file__).resolve().parents[2] / "benchmarks" / "closed_form.py"


@pytest.fixture(scope="module")
def confrontation() -> Any:
    specification = importlib.util.spec_from_file_location("closed_form_grid", LOCATION)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def check(confrontation: Any, ratio: str, eta: str, support: int) -> None:
    cell = confrontation.one_law(ratio, eta, support)
    # the corrected formula is the optimum; the printed one is where C ≥ P_{D−1}/A_D, and the
    # law of Definition 2 attains it there and only there
    assert cell.formula, cell
    assert (cell.region == "right") == (confrontation.condition(cell) >= 0), cell
    assert cell.region != "tie", cell
    assert cell.printed <= cell.optimum <= cell.excess, cell


@pytest.mark.parametrize("support", [1, 2, 4, 7])
@pytest.mark.parametrize("ratio", ["21/20", "2", "20"])
@pytest.mark.parametrize("eta", ["1/100", "1/20", "3/10", "99/100"])
def test_the_region_of_theorem_3(confrontation: Any, ratio: str, eta: str, support: int) -> None:
    check(confrontation, ratio, eta, support)


@pytest.mark.slow
def test_the_region_of_theorem_3_on_the_whole_grid(confrontation: Any) -> None:
    cells = list(confrontation.grid())
    assert len(cells) >= 1000
    for ratio, eta, support in cells:
        check(confrontation, ratio, eta, support)


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


@pytest.mark.parametrize("eta", ["1/100", "1/5", "1/2", "4/5"])
@pytest.mark.parametrize("support", [2, 4])
def test_the_optimum_grows_with_n_until_d_plus_2(
    confrontation: Any, eta: str, support: int
) -> None:
    def optimum(count: int) -> Fraction | None:
        problem = CountNoiseProblem(ratio=3, eta=eta, support=support, max_count=count)
        return optimal_count_noise(problem).exact

    values = [optimum(count) for count in range(1, support + 4)]
    assert all(value is not None for value in values)
    assert values[0] == 0
    assert values == sorted(values, key=lambda value: value or Fraction(0))
    assert values[support + 1] == values[support + 2]
    # the count D + 2 matters where η is small: 1/24 against 57/1352
    last = values[support] != values[support + 1]
    assert last == ((eta, support) == ("1/100", 4))
    for count, value in enumerate(values, start=1):
        assert (value or 0) >= max(confrontation.chain_bounds("3", eta, support, count).values())
