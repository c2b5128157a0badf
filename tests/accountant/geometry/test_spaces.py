"""Spaces of differences, covariances on them, and the ellipses of counts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from flint import ctx
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.geometry.ellipse import (
    Covariance,
    Diagonal,
    Exchangeable,
    Isotropic,
    Matrix,
    count_ellipse,
    optimal_ellipse,
)
from dpassay.accountant.geometry.spaces import (
    Box,
    DisjointGroups,
    FiniteSet,
    L2Ball,
    SparseBox,
    defects,
)
from dpassay.accountant.numbers.exact import ExactReal, exact, inverse
from tests.quick import slow

ENTRIES = st.fractions(min_value=-3, max_value=3, max_denominator=3)
BOUNDS = st.fractions(min_value=0, max_value=3, max_denominator=3)


@st.composite
def positive_definite(draw: st.DrawFn, size: int) -> Matrix:
    """B B' + I/4 of a random B."""
    b = [[draw(ENTRIES) for _ in range(size)] for _ in range(size)]
    rows = [
        [sum((b[i][k] * b[j][k] for k in range(size)), Fraction(i == j, 4)) for j in range(size)]
        for i in range(size)
    ]
    return Matrix(rows)


def brute(covariance: Covariance, differences: Iterable[tuple[Fraction, ...]]) -> ExactReal:
    """Root of the largest v'Σ⁻¹v, through the inverse."""
    rows = inverse(covariance.matrix())
    size = range(len(rows))
    squares = [
        sum((v[i] * v[j] * rows[i][j] for i in size for j in size), Fraction(0))
        for v in differences
    ]
    return ExactReal.of_root(max(squares))


def corners(bounds: list[Fraction]) -> list[tuple[Fraction, ...]]:
    return list(itertools.product(*[(-bound, bound) for bound in bounds]))


def sparse(d: int, k: int, bound: Fraction, *, signed: bool) -> list[tuple[Fraction, ...]]:
    entries = (-bound, Fraction(0), bound) if signed else (Fraction(0), bound)
    return [v for v in itertools.product(entries, repeat=d) if sum(e != 0 for e in v) <= k]


@given(positive_definite(3), st.lists(BOUNDS, min_size=3, max_size=3))
def test_box_against_all_corners(covariance: Matrix, bounds: list[Fraction]) -> None:
    if not any(bounds):
        return
    norm = Box(bounds).largest_norm(covariance)
    assert norm.exact == brute(covariance, corners(bounds))


@given(positive_definite(4), st.integers(1, 4), st.booleans())
def test_sparse_box_against_all_vertices(covariance: Matrix, k: int, signed: bool) -> None:
    norm = SparseBox(4, k, "3/2", signed).largest_norm(covariance)
    assert norm.exact == brute(covariance, sparse(4, k, Fraction(3, 2), signed=signed))


@pytest.mark.parametrize(
    ("d", "off"), [(1, "0"), (3, "1/2"), (4, "1/2"), (4, "-1/5"), (5, "9/10"), (5, "-1/5")]
)
def test_closed_forms_of_exchangeable_noise(d: int, off: str) -> None:
    noise = Exchangeable(d, 1, off)
    for k in range(1, d + 1):
        for signed in (True, False):
            norm = SparseBox(d, k, 1, signed).largest_norm(noise)
            assert norm.exact == brute(noise, sparse(d, k, Fraction(1), signed=signed))
    for bounds in ([Fraction(2, 3)] * d, [Fraction(j + 1, 2) for j in range(d)]):
        assert Box(bounds).largest_norm(noise).exact == brute(noise, corners(bounds))


def test_closed_forms_of_independent_noise() -> None:
    noise, bounds = Diagonal(["1/2", 3, 2, "1/3"]), [Fraction(b) for b in (1, 2, 0, 3)]
    assert Box(bounds).largest_norm(noise).exact == brute(noise, corners(bounds))
    for k in range(1, 5):
        vertices = sparse(4, k, Fraction(1), signed=False)
        assert SparseBox(4, k).largest_norm(noise).exact == brute(noise, vertices)


@given(positive_definite(3), st.lists(st.tuples(ENTRIES, ENTRIES, ENTRIES), min_size=1, max_size=4))
def test_finite_set(covariance: Matrix, vectors: list[tuple[Fraction, ...]]) -> None:
    if not any(any(v) for v in vectors):
        return
    norm = FiniteSet(vectors).largest_norm(covariance)
    assert norm.exact == brute(covariance, vectors)
    assert FiniteSet([[-e for e in v] for v in vectors]).largest_norm(covariance).exact == (
        norm.exact
    )


@given(positive_definite(3), st.tuples(ENTRIES, ENTRIES, ENTRIES))
def test_the_ball_contains_every_vector(covariance: Matrix, vector: tuple[Fraction, ...]) -> None:
    square = sum((e * e for e in vector), Fraction(0))
    if not square:
        return
    with ctx.workprec(200):
        ball = L2Ball(3, ExactReal.of_root(square)).largest_norm(covariance).ball()
        inside = FiniteSet([vector]).largest_norm(covariance).ball()
        assert inside <= ball or inside.overlaps(ball)
        assert ball.rel_accuracy_bits() > 180


def test_the_ball_is_the_least_eigenvalue() -> None:
    covariance = Matrix([[2, 1, 0], [1, 3, 1], [0, 1, 2]])
    values = np.linalg.eigvalsh(np.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 2]]))
    mu = float(L2Ball(3, 5).largest_norm(covariance).ball())
    assert abs(mu - 5 / values[0] ** 0.5) < 1e-12 * mu
    assert L2Ball(4, 3).largest_norm(Exchangeable(4, 2, 1)).exact == exact(3)
    assert L2Ball(2).largest_norm(Diagonal([4, 9])).exact == exact("1/2")
    assert L2Ball(2, "sqrt(2)").largest_norm(Isotropic(2, 8)).exact == exact("1/2")


@given(positive_definite(4))
def test_disjoint_groups_against_all_corners(covariance: Matrix) -> None:
    unit, zero = [Fraction(1)] * 2, (Fraction(0), Fraction(0))
    differences = [(*v, *zero) for v in corners(unit)] + [(*zero, *v) for v in corners(unit)]
    norm = DisjointGroups(2, Box([1, 1])).largest_norm(covariance)
    assert norm.exact == brute(covariance, differences)
    with ctx.workprec(128):
        balls = DisjointGroups(2, L2Ball(2, "sqrt(2)")).largest_norm(covariance).ball()
        assert norm.exact is not None
        assert norm.exact.ball() <= balls or balls.overlaps(norm.exact.ball())


def test_disjoint_groups_of_structured_noise() -> None:
    space = DisjointGroups(3, Box([1, 2]))
    assert space.largest_norm(Isotropic(6, 5)).exact == exact(1)
    assert space.largest_norm(Diagonal([5, 5, 1, 1, 5, 5])).exact == exact("sqrt(5)")
    noise = Exchangeable(6, 2, 1)
    differences = [
        (*[Fraction(0)] * (2 * j), *v, *[Fraction(0)] * (4 - 2 * j))
        for j in range(3)
        for v in corners([Fraction(1), Fraction(2)])
    ]
    assert space.largest_norm(noise).exact == brute(noise, differences)


def test_large_dimensions_have_closed_forms() -> None:
    d = 2000
    assert Box([1] * d).largest_norm(Isotropic(d, d)).exact == exact(1)
    assert Box([1] * d).largest_norm(Exchangeable(d, d + 1, 1)).exact == exact(1)
    assert SparseBox(d, d // 2).largest_norm(Diagonal([2] * d)).exact == exact("sqrt(500)")


def test_singular_noise_serves_differences_inside_its_range() -> None:
    noise = Matrix([[1, 1], [1, 1]])
    assert FiniteSet([[1, 1], [2, 2]]).largest_norm(noise).exact == exact(2)
    inside = Box([1, 0]).largest_norm(Matrix([[4, 0], [0, 0]]))
    assert inside.exact == exact("1/2")
    assert FiniteSet([[1, -1, 0]]).largest_norm(Exchangeable(3, 2, -1)).exact == exact("sqrt(2/3)")


def test_irrational_ratios_are_refused_with_correlated_noise_only() -> None:
    bounds = ["1", "sqrt(2)"]
    assert Box(bounds).largest_norm(Isotropic(2, 1)).exact == exact("sqrt(3)")
    with pytest.raises(InvalidInputError, match="rational multiple of 1"):
        Box(bounds).largest_norm(Matrix([[2, 1], [1, 2]]))
    same = Box(["sqrt(2)", "sqrt(8)"]).largest_norm(Matrix([[2, 1], [1, 2]]))
    assert same.exact == Box([2, 4]).largest_norm(Matrix([[4, 2], [2, 4]])).exact


def test_every_ninth_sparsity_is_proved_in_dimension_1000() -> None:
    for sparsity in range(1, 1001, 9):
        assert defects(optimal_ellipse(1000, sparsity)) == ()


@pytest.mark.parametrize("dimension", [*range(1, 13), 24, 25, 26, slow(60)])
def test_every_sparsity_is_proved_in_small_dimensions(dimension: int) -> None:
    for sparsity in range(1, dimension + 1):
        ellipse = optimal_ellipse(dimension, sparsity)
        assert defects(ellipse) == ()
        # privacy again, constraint by constraint, and tight somewhere
        norms = [ellipse.squared_norm(j, j) for j in range(1, sparsity + 1)]
        excess = [(norm - exact(1)).sign for norm in norms]
        assert max(excess) == 0
        # replace-one: the noise along (1, …, 1) is never the smaller one
        assert (ellipse.axis_ones - ellipse.axis_rest).sign >= 0


@pytest.mark.parametrize("dimension", [10**6, 10**6 - 1, 10**6 + 1, 10**12 + 1, 10**12 + 7])
def test_large_dimensions(dimension: int) -> None:
    middle = (dimension + isqrt(dimension)) // 2
    for sparsity in (1, dimension // 3, dimension // 2, middle, middle + 1, dimension):
        assert defects(optimal_ellipse(dimension, sparsity)) == ()


def test_wrong_ellipses_are_refused() -> None:
    good = optimal_ellipse(7, 7)
    smaller = replace(good, axis_rest=good.axis_rest.times(Fraction(99, 100)))
    assert any("v'Σ⁻¹v ≤ 1" in defect for defect in defects(smaller))
    larger = replace(good, axis_ones=good.axis_ones.times(Fraction(101, 100)))
    assert any("dual bound" in defect for defect in defects(larger))
    assert "sum to 1" in defects(replace(good, weights=((4, Fraction(1, 2)),)))[0]
    assert "within 1..7" in defects(replace(good, weights=((8, Fraction(1)),)))[0]
    assert "within 1..7" in defects(replace(good, weights=()))[0]
    assert "positive axes" in defects(replace(good, axis_ones=exact(0)))[0]
    assert "between 1 and dimension" in defects(replace(good, sparsity=8))[0]
    shifted = replace(good, weights=((good.weights[0][0] + 1, Fraction(1)),))
    assert any("dual bound" in defect for defect in defects(shifted))


def test_the_count_ellipse_of_one_count() -> None:
    assert count_ellipse(1, 1).query_variance == exact(1)
