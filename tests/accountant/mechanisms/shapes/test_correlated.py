"""Lebeda's lemmas on Algorithm 1, the known size and disjoint groups."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from accountant.core.adjacency import Adjacency
from accountant.errors import AdjacencyError, InvalidInputError
from accountant.mechanisms.shapes.correlated import CorrelatedGaussian
from accountant.mechanisms.shapes.disjoint_groups import DisjointGroupsGaussian
from accountant.mechanisms.shapes.known_size import KnownSizeGaussian
from accountant.mechanisms.shapes.optimal_ellipse import OptimalEllipse
from accountant.numbers.exact import exact
from accountant.questions import guarantees, utility

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
DIMENSIONS = st.integers(1, 10**6)


def positive(largest: int) -> st.SearchStrategy[Fraction]:
    return st.fractions(min_value=Fraction(1, 50), max_value=largest, max_denominator=50)


@given(DIMENSIONS, positive(9))
def test_theorem_3_1(dimension: int, mu: Fraction) -> None:
    mechanism = CorrelatedGaussian(dimension, mu)
    assert guarantees.mu(mechanism, adjacency=ADD).lower <= mu
    assert mechanism.exact_gaussian_mu(ADD) == mechanism.mu
    with ctx.workprec(128):
        root, square = arb(dimension).sqrt(), mechanism.mu.ball() ** 2
        variances = mechanism.variances() if dimension < 1000 else [mechanism.variances()[0]]
        assert variances[0].overlaps((root + 1) ** 2 / (4 * square))
        if dimension < 1000:
            assert variances[-1].overlaps((root + 1) / square)


@given(st.integers(1, 300), positive(40))
def test_lemma_3_5(dimension: int, c: Fraction) -> None:
    mechanism = CorrelatedGaussian(dimension, 1, c)
    with ctx.workprec(128):
        square = arb(c.numerator) ** 2 / c.denominator**2
        query = (dimension + square + dimension / square + 1) / 4
        assert mechanism.variances()[0].overlaps(query)
        assert mechanism.variances()[-1].overlaps(dimension / square + 1)
        # C = d^{1/4} is the best for the queries
        best = CorrelatedGaussian(dimension, 1).variances()[0]
        assert best < query or best.overlaps(query)


def test_figure_2() -> None:
    mechanism = CorrelatedGaussian(10_000, 1, 100)
    with ctx.workprec(128):
        entries = mechanism.variances()
        assert entries[0] == arb("5000.5")
        assert entries[-1] == 2
        assert CorrelatedGaussian(10_000, 1).variances()[0] == arb("2550.25")


@pytest.mark.parametrize("dimension", range(1, 40))
def test_hiding_the_size_helps_except_at_perfect_squares(dimension: int) -> None:
    mechanism = CorrelatedGaussian(dimension, 1, release_size=False)
    square = isqrt(dimension) ** 2 == dimension
    with ctx.workprec(128):
        mu = mechanism.gaussian_mu(ADD)
        assert mu == 1 if square else mu < 1
    assert (mechanism.exact_gaussian_mu(ADD) is not None) == square


def test_the_size_costs_privacy_under_replacement() -> None:
    with ctx.workprec(128):
        for dimension in (1, 2, 3, 9):
            released = CorrelatedGaussian(dimension, 1).gaussian_mu(REPLACE)
            d = arb(dimension)
            assert released.overlaps(2 * (d / (d + d.sqrt())).sqrt())
            assert released > 1
        assert CorrelatedGaussian(1, 1, release_size=False).gaussian_mu(REPLACE) == 1


def test_a_large_c_hides_little_behind_the_size() -> None:
    # C² > d: all d ones are worst, and μ'² = 4dC²/(d + C²)²
    mechanism = CorrelatedGaussian(2, 1, 2, False)
    assert mechanism.exact_gaussian_mu(ADD) == exact("sqrt(32/36)")


def test_corollary_3_1() -> None:
    with ctx.workprec(128):
        matrix = CorrelatedGaussian(9, 1).covariance_matrix()
        assert matrix[0][0] == 4
        assert matrix[0][1] == 1
        assert matrix[0][9] == 2
        assert matrix[9][9] == 4


@pytest.mark.parametrize("dimension", [2, 3, 5, 10])
def test_the_optimal_ellipse_is_better_than_algorithm_1(dimension: int) -> None:
    mine = utility.variance(OptimalEllipse(dimension, dimension, 1))[0]
    theirs = utility.variance(CorrelatedGaussian(dimension, 1))[0]
    assert mine.upper < theirs.lower


@given(st.integers(1, 200), positive(5), positive(5))
def test_lemma_3_6(dimension: int, mu: Fraction, size_mu: Fraction) -> None:
    public = KnownSizeGaussian(dimension, mu)
    assert public.exact_gaussian_mu(ADD) == public.mu
    with ctx.workprec(128):
        assert public.gaussian_mu(REPLACE).overlaps(2 * public.mu.ball())
        assert public.variances()[0].overlaps(dimension / (4 * public.mu.ball() ** 2))
        noisy = KnownSizeGaussian(dimension, mu, size_mu)
        assert noisy.size_mu is not None
        total = (noisy.mu.ball() ** 2 + noisy.size_mu.ball() ** 2).sqrt()
        assert noisy.gaussian_mu(ADD).overlaps(total)


@given(st.integers(1, 6), st.integers(1, 200), positive(5))
def test_lemma_4_2(groups: int, dimension: int, mu: Fraction) -> None:
    for relation in Adjacency:
        for printed in (True, False):
            mechanism = DisjointGroupsGaussian(groups, dimension, mu, relation, printed)
            assert mechanism.exact_gaussian_mu(relation) == mechanism.mu
            assert mechanism.exact_gaussian_mu(None) == mechanism.mu


def test_the_printed_variance_is_more_than_needed() -> None:
    printed = DisjointGroupsGaussian(2, 3, 1, "replace-one", as_printed=True)
    derived = DisjointGroupsGaussian(2, 3, 1, "replace-one")
    with ctx.workprec(128):
        assert printed.variances()[0] == 7  # the standard mechanism has 2d = 6
        assert derived.variances()[0] == 4


def test_the_wrong_relation_costs_privacy() -> None:
    for dimension, square in ((1, 2.0), (2, 2.3431457505), (3, 2.5358983849)):
        mechanism = DisjointGroupsGaussian(2, dimension, 1, "add-remove")
        value = guarantees.mu(mechanism, adjacency="replace-one").lower
        assert abs(float(value) ** 2 - square) < 1e-9
    one_group = DisjointGroupsGaussian(1, 1, 1, "add-remove")
    assert one_group.exact_gaussian_mu(REPLACE) == CorrelatedGaussian(1, 1).exact_gaussian_mu(
        REPLACE
    )


def test_the_relation_of_the_noise_is_required() -> None:
    with pytest.raises(AdjacencyError, match="Expected adjacency='swap' to be one of"):
        DisjointGroupsGaussian(2, 3, 1, "swap")
    with pytest.raises(InvalidInputError, match="Expected adjacency=None"):
        DisjointGroupsGaussian(2, 3, 1, None)  # type: ignore[arg-type]
