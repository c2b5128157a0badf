"""Example 1 and Figure 1 of Sadeghi, Asoodeh and Calmon, from Proposition 1."""

from __future__ import annotations

from fractions import Fraction

import pytest

from accountant.errors import InvalidInputError
from lp.example import (
    matrix_text,
    noise_matrix,
    noise_table,
    output_matrix,
    two_point_law,
    two_point_pairs,
)

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


def test_the_table_of_figure_1() -> None:
    table = noise_table("2.18", "0.8", 6)
    # printed: p(±1) = 0.08987, p(±2) = 0.00960, zero beyond 3
    assert f"{table.law[1].lower:.5f}" == "0.08987"
    assert f"{table.law[2].lower:.5f}" == "0.00960"
    assert all(mass.upper == 0 for mass in table.law[4:])
    assert table.law[3].lower > 0
    # printed as "identical variance": 0.11685 and 0.000416, which is the parameter
    assert f"{table.by_parameter[1].lower:.5f}" == "0.11685"
    assert f"{table.by_parameter[2].lower:.6f}" == "0.000416"
    assert f"{table.by_variance[1].lower:.5f}" == "0.13015"
    assert f"{table.by_variance[2].lower:.6f}" == "0.000713"
    assert Fraction("0.2880873437477872106") in table.parameter.hull(table.variance)
    assert abs(Fraction(table.parameter.lower) - Fraction("0.288087343747787210651769671825")) < (
        Fraction(1, 10**29)
    )
    assert table.text().splitlines()[2].split() == ["1", "0.089874", "0.11685", "0.13015"]


@pytest.mark.parametrize("eta", [0, 1, "3/2"])
def test_bad_shares_are_refused(eta: object) -> None:
    with pytest.raises(InvalidInputError, match=r"eta="):
        two_point_law(eta, -1, 1)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidInputError, match=r"i1=1"):
        two_point_law("1/2", 1, 1)
