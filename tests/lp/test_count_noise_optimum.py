"""The certified optimum of bounded count noise: closed form, a plain float program, bad input."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from accountant.errors import InvalidInputError
from lp.count_noise import optimal_count_noise
from lp.problem import CountNoiseProblem
from lp.search import Search, first_magnitude


def closed_form(e: Fraction, eta: Fraction, support: int) -> Fraction:
    """The largest of δ_k, k ≤ D, and (1 − C Σ_{i≤m} E^i)/(B(A_m + A_{D−m})), 0 ≤ m ≤ D/2."""
    b, c = 2 / (1 - eta), 2 * eta / (1 - eta)

    def weighted(m: int) -> Fraction:
        return sum(((m - j) * e**j for j in range(m)), Fraction(0))

    deltas = [
        (c * sum(e**j for j in range(k)) - e**k) / (b * sum((j + 1) * e**j for j in range(k)))
        for k in range(1, support + 1)
    ]
    deltas += [
        (1 - c * sum(e**i for i in range(1, m + 1))) / (b * (weighted(m) + weighted(support - m)))
        for m in range(support // 2 + 1)
    ]
    return max(deltas)


@pytest.mark.parametrize("e", [2, 3, 9])
@pytest.mark.parametrize("eta", ["1/50", "1/10", "1/2", "4/5"])
def test_one_law_for_all_counts_attains_the_closed_form(e: int, eta: str) -> None:
    for support in range(1, 9):
        found = optimal_count_noise(CountNoiseProblem(ratio=e, eta=eta, support=support))
        expected = closed_form(Fraction(e), Fraction(eta), support)
        assert found.exact == expected
        assert expected in found.delta


@pytest.mark.parametrize("support", [4, 16, 32])
def test_the_enclosure_is_narrow_where_delta_is_tiny(support: int) -> None:
    problem = CountNoiseProblem(epsilon="2.2", eta="1/2", support=support)
    delta = optimal_count_noise(problem).delta
    assert delta.lower > 0
    assert delta.relative_width is not None
    assert delta.relative_width <= Fraction(1, 10**12 if support > 16 else 10**30)


def by_linear_program(e: float, eta: float, support: int, count: int, first: int = 1) -> float:
    """Proposition 2 written out: a variable for each p(z | n), in floating point."""
    counts = range(first, count + 1)
    cells = [(n, z) for n in counts for z in range(-min(n, support), support + 1)]
    index = {cell: i for i, cell in enumerate(cells)}
    size = len(cells) + 1
    equalities, right = [], []
    for n in counts:
        own = [(z, index[n, z]) for m, z in cells if m == n]
        for coefficient, value in ((lambda z: 1, 1.0), (lambda z: z, 0.0), (lambda z: z == 0, eta)):
            row = np.zeros(size)
            for z, i in own:
                row[i] = coefficient(z)
            equalities.append(row)
            right.append(value)
    above = []
    for n in counts:
        for other in (n - 1, n + 1):
            if other not in counts:
                continue
            for y in range(count + support + 1):
                row = np.zeros(size)
                if (n, y - n) in index:
                    row[index[n, y - n]] = 1
                if (other, y - other) in index:
                    row[index[other, y - other]] = -e
                row[-1] = -1
                above.append(row)
    cost = np.zeros(size)
    cost[-1] = 1
    answer = linprog(cost, np.array(above), np.zeros(len(above)), np.array(equalities), right)
    assert answer.fun is not None
    return float(answer.fun)


@pytest.mark.parametrize(
    ("e", "eta", "support", "count"),
    [(2, "1/2", 2, 3), (4, "1/2", 2, 6), (3, "4/5", 3, 8), (2, "1/5", 3, 9), (9, "1/2", 2, 5)],
)
def test_laws_for_each_count_agree_with_a_plain_program(
    e: int, eta: str, support: int, count: int
) -> None:
    problem = CountNoiseProblem(ratio=e, eta=eta, support=support, max_count=count)
    found = optimal_count_noise(problem)
    expected = by_linear_program(float(e), float(Fraction(eta)), support, count)
    # HiGHS solves to a feasibility of 1e-7 per row
    assert abs(float(found.delta.lower) - expected) <= 1e-6


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
    expected = by_linear_program(2.0, 0.45, 3, last, first)
    assert abs(float(optimum) - expected) <= 1e-6


def test_one_count_more_than_the_support_is_decided_by_floats() -> None:
    """The pass with pivots, which takes half a minute here, is not reached."""
    problem = CountNoiseProblem(epsilon=1, eta="1/5", support=24, max_count=25)
    answer = next(
        iter(Search(problem, first_magnitude(problem), 56, complete=False, own=25).answers())
    )
    width = answer.delta.relative_width
    assert width is not None
    assert width < Fraction(1, 10**12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 1, "eta": 1, "support": 3}, "eta=1"),
        ({"epsilon": 1, "eta": "-0.5", "support": 3}, "eta='-0.5'"),
        ({"epsilon": -1, "eta": "0.5", "support": 3}, "epsilon=-1"),
        ({"epsilon": 1, "eta": "0.5", "support": 0}, "support=0"),
        ({"epsilon": 1, "eta": "0.5", "support": 3, "max_count": 0}, "max_count=0"),
        ({"eta": "0.5", "support": 3}, "one of epsilon"),
    ],
)
def test_bad_input_names_the_argument(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message.replace("'", ".")):
        CountNoiseProblem(**arguments)  # type: ignore[arg-type]  # wrong on purpose
