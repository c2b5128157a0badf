from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import arb, arb_mat, ctx
from hypothesis import given
from hypothesis import strategies as st

from accountant.geometry.covariances import Diagonal, Isotropic, Matrix
from accountant.mechanisms.additive.gaussian import Gaussian
from accountant.mechanisms.shapes.matrix_variate import MatrixVariateGaussian
from accountant.questions import guarantees

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


def test_isotropic_covariances_give_the_gaussian_mechanism() -> None:
    mechanism = MatrixVariateGaussian(Isotropic(4, 2), Isotropic(5, "1/3"), "sqrt(2)")
    assert mechanism.exact_gaussian_mu(None) == Gaussian("sqrt(2/3)", "sqrt(2)").exact_gaussian_mu(
        None
    )
    assert mechanism.dimension == 20
    assert len(mechanism.variances()) == 1
    rectangular = MatrixVariateGaussian(Isotropic(2, 2), Diagonal([1, 5, 7]))
    assert [float(v) for v in rectangular.variances()] == [2, 10, 14] * 2
