"""Counts: no Gaussian noise has less variance, by a law on differences and by programs."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from flint import arb, arb_mat, ctx

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.geometry.spaces import FiniteSet
from dpassay.accountant.mechanisms.shapes.correlated import DisjointGroupsGaussian
from dpassay.accountant.mechanisms.shapes.ellipses import OptimalEllipse, OptimalGroups
from dpassay.accountant.numbers.interval import ball
from dpassay.lp.shapes import GaussianShapeProblem, optimal_gaussian_shape

ADD, REPLACE = Adjacency


def bound(m: int, d: int, both: arb, square: arb) -> arb:
    """Return (tr M^{1/2})²: 1 and −1 in two groups with probability `both`; else E t² = square."""
    one = 1 - both
    total = one * square / (m * d)  # of the eigenvector (1, …, 1)
    sums = ((one * square + both * 2 * d * d) / d - total) / max(1, m - 1)
    rest = one * d + both * 2 * d - (one * square + both * 2 * d * d) / d
    root: arb = total.sqrt()
    if m > 1:
        root += (m - 1) * sums.sqrt()
    if d > 1:
        root += m * (d - 1) * (rest / (m * (d - 1))).sqrt()
    return root**2


SIZES = list(itertools.product((*range(1, 9), 40), (*range(1, 8), 15, 40)))


@pytest.mark.parametrize(("m", "d"), SIZES)
def test_no_gaussian_has_less(m: int, d: int) -> None:
    mechanism = OptimalGroups(m, d, 1, REPLACE)
    with ctx.workprec(192):
        across = mechanism.axes[2]
        h = d / across.ball() - 1
        if d % 2 == 0 or d == 1 or (m + 1) ** 2 <= 4 * (d + 1):
            whole = (m + 1) * (d * (m + 1) + m - 1)
            share = Fraction(2 * (m + 2) * (m - 1), whole)
            square = Fraction(4 * d * d, (d - 1) * (m + 1) ** 2 + 4)
            assert 0 <= share < 1
            assert d % 2 <= square <= d * d
            both = ball(share)
            assert mechanism.variances()[0].overlaps(d + arb(m - 1) / (m + 1))
        else:
            odds = (m - 1) * (4 * (1 + h) ** 2 * (d + 1) - 1) / (2 * m * d * d)
            both, square = odds / (1 + odds), Fraction(1)
            assert 0 < h < arb(1) / (2 * (d - 1))
            assert mechanism.variances()[0] < d + arb(m - 1) / (m + 1)
        found = bound(m, d, both, ball(square))
        trace = mechanism.variances()[0] * m * d
        assert trace.overlaps(found)
        assert trace.rad() + found.rad() < arb(2) ** -90
        assert m == 1 or trace < DisjointGroupsGaussian(m, d, 1, REPLACE).variances()[0] * m * d


@pytest.mark.parametrize("made_for", Adjacency)
@pytest.mark.parametrize(("m", "d"), [(2, 2), pytest.param(4, 3, marks=pytest.mark.slow)])
def test_the_semidefinite_program_agrees(m: int, d: int, made_for: Adjacency) -> None:
    records = [
        (*(0,) * (d * group), *row, *(0,) * (d * (m - group - 1)))
        for group in range(m)
        for row in itertools.product((0, 1), repeat=d)
    ]
    moved = itertools.product(records, records if made_for is REPLACE else [(0,) * (m * d)])
    differences = {tuple(x - y for x, y in zip(a, b, strict=True)) for a, b in moved}
    found = optimal_gaussian_shape(GaussianShapeProblem(FiniteSet(sorted(differences))))
    with ctx.workprec(64):
        total = OptimalGroups(m, d, 1, made_for).variances()[0] * m * d
        assert total.overlaps(found.value.ball())


def test_under_add_remove_groups_are_apart() -> None:
    mechanism = OptimalGroups(3, 5, "1/2", ADD)
    with ctx.workprec(128):
        assert mechanism.variances()[0].overlaps(OptimalEllipse(5, 5, "1/2").variances()[0])
        assert mechanism.covariance_matrix()[0][5].contains(0)
    assert mechanism.exact_gaussian_mu(ADD) == mechanism.mu


def test_large_releases_are_refused_and_large_variances_known() -> None:
    mechanism = OptimalGroups(1000, 1002, 1, REPLACE)
    with pytest.raises(InvalidInputError, match="at most 4000000"):
        mechanism.release([0] * mechanism.dimension)
    with ctx.workprec(128):
        assert mechanism.variances()[0].overlaps(1002 + arb(999) / 1001)
        odd = OptimalGroups(1000, 3, 1, REPLACE)
        assert odd.variances()[0] < 4


@pytest.mark.parametrize("made_for", Adjacency)
@pytest.mark.parametrize(("m", "d"), [(1, 1), (1, 4), (3, 2), (2, 5), (7, 3)])
def test_the_worst_shift_has_the_norm_of_the_mechanism(m: int, d: int, made_for: Adjacency) -> None:
    mechanism = OptimalGroups(m, d, 2, made_for)
    with ctx.workprec(128):
        column = arb_mat([[arb(int(x))] for x in mechanism.worst_shift()])
        solved = arb_mat(mechanism.covariance_matrix()).solve(column)
        assert (column.transpose() * solved)[0, 0].overlaps(arb(4))
