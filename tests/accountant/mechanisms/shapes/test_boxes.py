"""Noise shaped for boxes and matrices: no difference has a larger norm, no other noise less."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat, ctx
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.geometry.ellipse import Diagonal, Matrix
from dpassay.accountant.geometry.spaces import Box
from dpassay.accountant.mechanisms.shapes.correlated import CorrelatedGaussian, OneSidedGaussian
from dpassay.accountant.mechanisms.shapes.ellipses import EllipticalGaussian
from dpassay.accountant.mechanisms.shapes.general_gaussian import (
    GeneralGaussian,
    MatrixVariateGaussian,
)
from dpassay.accountant.questions import accuracy, guarantees

SENSITIVITIES = st.lists(
    st.fractions(min_value=Fraction(1, 20), max_value=9, max_denominator=20), min_size=1, max_size=5
)


@given(SENSITIVITIES, st.fractions(min_value=Fraction(1, 9), max_value=4, max_denominator=9))
def test_the_corners_of_the_box_have_norm_mu(sensitivities: list[Fraction], mu: Fraction) -> None:
    total = sum(sensitivities, Fraction(0))
    noise = Diagonal([entry * total / mu**2 for entry in sensitivities])
    general = GeneralGaussian(noise, Box(sensitivities))
    mechanism = EllipticalGaussian(sensitivities, mu)
    assert general.exact_gaussian_mu(None) == mechanism.exact_gaussian_mu(None)
    with ctx.workprec(128):
        for mine, other in zip(mechanism.variances(), general.variances(), strict=True):
            assert mine.overlaps(other)
        assert mechanism.gaussian_mu(None).overlaps(general.gaussian_mu(None))


ENTRIES = st.fractions(min_value=-3, max_value=3, max_denominator=4)
ROW = Matrix([[2, 1], [1, 3]])
COLUMN = Matrix([[3, 1, 0], [1, 2, -1], [0, -1, 2]])


@given(st.lists(ENTRIES, min_size=6, max_size=6))
def test_no_difference_has_a_larger_norm(entries: list[Fraction]) -> None:
    mechanism = MatrixVariateGaussian(ROW, COLUMN, 2)
    frobenius = sum((entry**2 for entry in entries), Fraction(0))
    if not frobenius:
        return
    with ctx.workprec(128):
        column = arb_mat([[arb(e.numerator) / e.denominator] for e in entries])
        inverse = arb_mat(mechanism.covariance_matrix()).inv()
        norm = (column.transpose() * inverse * column)[0, 0]
        scale = arb(frobenius.numerator) / frobenius.denominator
        assert (norm * 4 / scale).sqrt() <= mechanism.gaussian_mu(None)


def test_the_product_of_two_eigenvectors_attains_mu() -> None:
    mechanism = MatrixVariateGaussian(ROW, COLUMN, 2)
    values, vectors = np.linalg.eigh(np.array([[2.0, 1], [1, 3]]))
    others, axes = np.linalg.eigh(np.array([[3.0, 1, 0], [1, 2, -1], [0, -1, 2]]))
    difference = 2 * np.outer(vectors[:, 0], axes[:, 0])
    inner = np.linalg.inv(np.array([[3.0, 1, 0], [1, 2, -1], [0, -1, 2]]))
    outer = np.linalg.inv(np.array([[2.0, 1], [1, 3]]))
    square = np.trace(inner @ difference.T @ outer @ difference)
    mu = float(guarantees.mu(mechanism).lower)
    assert abs(mu - square**0.5) < 1e-12 * mu
    assert abs(mu - 2 / (values[0] * others[0]) ** 0.5) < 1e-12 * mu


ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
POSITIVE = st.fractions(min_value=Fraction(1, 20), max_value=9, max_denominator=20)
BOUNDS = st.lists(POSITIVE, min_size=1, max_size=5)


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
        mean = accuracy.mean_squared_error(mechanism)
        assert mean.overlaps(type(mean).of_ball(sum(entries, start=arb(0)) / len(entries)))
        if len(bounds) > 1:
            elliptical = EllipticalGaussian(bounds, mu)
            assert total < elliptical.mean_squared_error() * len(bounds)
            assert 4 * total > elliptical.mean_squared_error() * len(bounds)


@pytest.mark.parametrize("dimension", [1, 4, 7])
def test_equal_bounds_are_algorithm_1(dimension: int) -> None:
    mine, lebeda = OneSidedGaussian([1] * dimension, 2), CorrelatedGaussian(dimension, 2)
    with ctx.workprec(128):
        for a, b in zip(mine.variances(), lebeda.variances(), strict=True):
            assert a.overlaps(b)
    assert guarantees.mu(mine, adjacency=REPLACE).overlaps(guarantees.mu(lebeda, adjacency=REPLACE))
