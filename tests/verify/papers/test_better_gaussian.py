"""The ledger of "Better Gaussian Mechanism": every verdict, and its numbers a second time."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import pytest
from mpmath import exp, matrix, mp, mpf, ncdf, sqrt

from verify.verdict import Finding


@pytest.fixture(scope="module")
def findings(decided: Callable[[str], dict[str, Finding]]) -> dict[str, Finding]:
    return decided("better-gaussian")


# ---------------------------------------------------------------- the numbers, a second time


def largest_norm(covariance: matrix, vectors: list[tuple[int, ...]]) -> mpf:
    """The largest √(v'Σ⁻¹v), by solving for every v."""
    norms = [matrix(v).T * mp.lu_solve(covariance, matrix(v)) for v in vectors]
    return sqrt(max(norm[0] for norm in norms))


def algorithm_1(d: int, size: bool) -> matrix:
    """The covariance of Corollary 3.1, without its last row and column where the size is hidden."""
    root = sqrt(mpf(d))
    full = matrix(d + 1, d + 1)
    for i, j in itertools.product(range(d + 1), repeat=2):
        weight = (2 if i == d else 1) * (2 if j == d else 1)
        full[i, j] = weight * (root + 1) / 4 + (i == j < d) * (d + root) / 4
    return full if size else full[:d, :d]


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_the_size_decides_the_norm(d: int) -> None:
    with mp.workdps(40):
        records = list(itertools.product((0, 1), repeat=d))
        with_size = largest_norm(algorithm_1(d, True), [(*v, 1) for v in records])
        without = largest_norm(algorithm_1(d, False), [v for v in records if any(v)])
        assert abs(with_size - 1) < mpf(10) ** -35
        if d in (1, 4):
            assert abs(without - 1) < mpf(10) ** -35
        else:
            assert without < mpf("0.995")
        if d == 2:
            assert abs(without**2 - (12 * sqrt(mpf(2)) - 16)) < mpf(10) ** -35


@pytest.mark.parametrize(("eta", "worst"), [(Fraction(4), Fraction(5, 8)), (Fraction(1), 1)])
def test_algorithm_2_between_rows(eta: Fraction, worst: Fraction) -> None:
    """Two records in different rows, d = 2: (v − c/2)²/Var z + c²/(4 Var η) for each row."""
    d = 2
    one = [sum((Fraction(x) - Fraction(1, 2)) ** 2 for x in v) / d + 1 / (4 * eta)
           for v in itertools.product((0, 1), repeat=d) if any(v)]  # fmt: skip
    assert 2 * max(one) == worst


def test_bound_from_three_ones() -> None:
    """d = 4: the four records with three ones prove that 9/4 per query is optimal."""
    records = [tuple(int(i != j) for j in range(4)) for i in range(4)]
    moment = [[Fraction(sum(v[i] * v[j] for v in records), 4) for j in range(4)] for i in range(4)]
    root = [[Fraction(3, 4) if i == j else Fraction(1, 4) for j in range(4)] for i in range(4)]
    square = [[sum(root[i][m] * root[m][j] for m in range(4)) for j in range(4)] for i in range(4)]
    assert square == moment
    assert sum(root[i][i] for i in range(4)) ** 2 / 4 == Fraction(9, 4)


@pytest.mark.slow
def test_discrete_gaussian_on_the_embedding(findings: dict[str, Finding]) -> None:
    """δ(1/4) at d = C = μ = 1 by summing over the integers that matter."""
    with mp.workdps(30):
        weights = {z: exp(-mpf(z * z) / 4) for z in range(-40, 41)}
        total = sum(weights.values())
        masses: dict[int, mpf] = {}
        for (x, p), (y, q) in itertools.product(weights.items(), repeat=2):
            masses[x + y] = masses.get(x + y, mpf(0)) + p * q / total**2
        # the pair at (0, 0) and (1, 1): the loss at x + y = t is (2t − 2)/4 with its sign
        delta = sum(
            (p * max(mpf(0), 1 - exp(mpf("0.25") - mpf(1 - t) / 2)) for t, p in masses.items()),
            mpf(0),
        )
        gaussian = ncdf(mpf("0.25")) - exp(mpf("0.25")) * ncdf(mpf("-0.75"))
        found = findings["note-practitioners/discrete/not-gdp"].true
        assert mp.almosteq(mpf(found["left"]["lower"]), delta, mpf("1e-14"))
        assert mp.almosteq(mpf(found["right"]["lower"]), gaussian + mpf("0.004"), mpf("1e-14"))


@pytest.mark.parametrize("d", [2, 3, 5, 6, 7])
def test_the_gap_of_lemma_4_4(d: int) -> None:
    """The bound V(j), maximised over the allowed j, never leaves more than (2√2 − 1)/4."""
    with mp.workdps(30):
        for k in range((d + 1) // 2, d + 1):
            best = max((j + sqrt(mpf((d - 1) * j * (d - j)))) ** 2 / d**2 for j in range(1, k + 1))
            gap = (sqrt(mpf(d)) + 1) ** 2 / 4 - best
            limit = (2 * sqrt(mpf(2)) - 1) / 4
            assert gap <= limit + mpf(10) ** -25
