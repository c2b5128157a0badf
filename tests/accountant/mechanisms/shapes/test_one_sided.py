"""Correlated noise for boxes with a corner at the origin."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat, ctx
from hypothesis import given
from hypothesis import strategies as st

from accountant.core.adjacency import Adjacency
from accountant.errors import AdjacencyError, InvalidInputError
from accountant.mechanisms.shapes.correlated import CorrelatedGaussian
from accountant.mechanisms.shapes.elliptical import EllipticalGaussian
from accountant.mechanisms.shapes.one_sided import OneSidedGaussian
from accountant.questions import guarantees, utility

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
POSITIVE = st.fractions(min_value=Fraction(1, 20), max_value=9, max_denominator=20)
BOUNDS = st.lists(POSITIVE, min_size=1, max_size=5)


def squared_norm(covariance: list[list[arb]], moved: list[Fraction]) -> arb:
    """Return w'Σ⁻¹w by a linear solve."""
    column = arb_mat([[arb(entry.numerator) / entry.denominator] for entry in moved])
    solved = arb_mat(covariance).solve(column)
    return (column.transpose() * solved)[0, 0]


@given(BOUNDS, POSITIVE)
def test_mu_is_the_largest_norm_of_a_corner(bounds: list[Fraction], mu: Fraction) -> None:
    """All corners, and all differences of corners, by the inverse of the whole covariance."""
    mechanism = OneSidedGaussian(bounds, mu)
    with ctx.workprec(256):
        covariance = mechanism.covariance_matrix()
        corners = [
            [*c, Fraction(1)] for c in itertools.product(*((Fraction(0), b) for b in bounds))
        ]
        added = mechanism.gaussian_mu(ADD) ** 2
        for corner in corners:
            norm = squared_norm(covariance, corner)
            assert norm.overlaps(added)
            assert norm.rad() < arb(2) ** -150
        replaced = mechanism.gaussian_mu(REPLACE) ** 2
        signs = itertools.product((-1, 1), repeat=len(bounds))
        norms = [
            squared_norm(
                covariance, [s * b for s, b in zip(sign, bounds, strict=True)] + [Fraction(0)]
            )
            for sign in signs
        ]
        assert all(norm.overlaps(replaced) for norm in norms)
    exact = mechanism.exact_gaussian_mu(REPLACE)
    assert exact is None or exact.ball().overlaps(mechanism.gaussian_mu(REPLACE))


@given(BOUNDS, POSITIVE)
def test_the_total_is_the_square_of_half_the_sum_of_norms(
    bounds: list[Fraction], mu: Fraction
) -> None:
    mechanism = OneSidedGaussian(bounds, mu)
    with ctx.workprec(128):
        entries = mechanism.variances()
        norm = arb(0)
        for b in bounds:
            norm += (arb(b.numerator) / b.denominator) ** 2
        first = sum(bounds, Fraction(0))
        total = ((arb(first.numerator) / first.denominator + norm.sqrt()) ** 2) / 4
        total /= mechanism.mu.ball() ** 2
        assert sum(entries[:-1], start=arb(0)).overlaps(total)
        diagonal = mechanism.covariance_matrix()
        assert all(v.overlaps(diagonal[j][j]) for j, v in enumerate(entries))
        mean = utility.mean_squared_error(mechanism)
        assert mean.overlaps(type(mean).of_ball(sum(entries, start=arb(0)) / len(entries)))
        if len(bounds) > 1:
            elliptical = EllipticalGaussian(bounds, mu)
            assert total < elliptical.mean_squared_error() * len(bounds)
            assert 4 * total > elliptical.mean_squared_error() * len(bounds)


@given(BOUNDS, st.lists(st.integers(1, 30), min_size=6, max_size=6))
def test_no_other_noise_of_this_kind_has_less(bounds: list[Fraction], shape: list[int]) -> None:
    """Any variances of z and η, scaled so that the corners have norm 1."""
    d = len(bounds)
    raw, shared = [Fraction(entry) for entry in shape[:d]], Fraction(shape[-1])
    scale = sum((b**2 / (4 * v) for b, v in zip(bounds, raw, strict=True)), 1 / shared)
    total = scale * sum(
        (v + b**2 * shared / 4 for b, v in zip(bounds, raw, strict=True)), Fraction(0)
    )
    with ctx.workprec(128):
        least = sum(OneSidedGaussian(bounds, 1).variances()[:-1], start=arb(0))
        value = arb(total.numerator) / total.denominator
        assert least < value or least.overlaps(value)


@pytest.mark.parametrize("dimension", [1, 4, 7])
def test_equal_bounds_are_algorithm_1(dimension: int) -> None:
    mine, lebeda = OneSidedGaussian([1] * dimension, 2), CorrelatedGaussian(dimension, 2)
    with ctx.workprec(128):
        for a, b in zip(mine.variances(), lebeda.variances(), strict=True):
            assert a.overlaps(b)
    assert guarantees.mu(mine, adjacency=REPLACE).overlaps(guarantees.mu(lebeda, adjacency=REPLACE))


def test_samples_and_releases_have_the_covariance() -> None:
    """Entries of the covariance of 40,000 draws, within seven deviations: false alarm < 1e-9."""
    mechanism = OneSidedGaussian([1, 2, 4], 1)
    with ctx.workprec(64):
        expected = np.array([[float(v) for v in row] for row in mechanism.covariance_matrix()])
    runs = 40_000
    rng = np.random.default_rng(11)
    draws = mechanism.sample(runs, rng=rng)
    released = mechanism.release([0, 0, 0, 0], runs, rng=np.random.default_rng(12))
    spread = np.sqrt(np.outer(np.diag(expected), np.diag(expected)) + expected**2)
    for found in (draws, released):
        off = np.abs(found.T @ found / runs - expected) / (spread / np.sqrt(runs))
        assert off.max() < 7


def test_what_it_wants() -> None:
    with pytest.raises(AdjacencyError, match="adjacency"):
        guarantees.mu(OneSidedGaussian([1, 2], 1))
    with pytest.raises(InvalidInputError, match=r"bounds\[1\]"):
        OneSidedGaussian([1, 0], 1)
