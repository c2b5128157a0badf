"""PPCA (Chaudhuri, Sarwate and Sinha, 2013): components from a matrix Bingham law.

Law: k orthonormal columns V with density ∝ exp(tr(V'BV)), B = nεA/2, A = D'D/n for n rows of norm
at most 1: the exponential mechanism with the score n·tr(V'AV).

Sensitivity: replacing a row changes the score by ‖V'x‖² − ‖V'y‖², between −1 and 1.

Claimed guarantee: ε-DP. True of the law; the paper and this module sample it by Gibbs sampling
(Hoff, 2009), whose law after finitely many sweeps is near it, at a distance that nobody bounds.
Each conditional law, a vector Bingham law, is sampled exactly, by rejection from an angular
central Gaussian law (Kent, Ganeiban and Mardia, 2013).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import brentq


def components(
    covariance: NDArray[np.float64],
    count: int,
    *,
    records: int,
    epsilon: float,
    sweeps: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return so many private components of the covariance of rows of norm at most 1."""
    return matrix_bingham(records * epsilon / 2 * covariance, count, sweeps=sweeps, rng=rng)


def matrix_bingham(
    parameter: NDArray[np.float64], count: int, *, sweeps: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return orthonormal columns after some Gibbs sweeps from a uniform start.

    Given the others, a column is N u with N a basis of their complement and u of the vector
    Bingham law with parameter N'BN.
    """
    size = len(parameter)
    columns, _ = np.linalg.qr(rng.standard_normal((size, count)))
    for _ in range(sweeps):
        for place in range(count):
            others = np.delete(columns, place, axis=1)
            basis = np.linalg.qr(others, mode="complete")[0][:, count - 1 :]
            columns[:, place] = basis @ vector_bingham(basis.T @ parameter @ basis, rng)
    return np.asarray(columns)


def vector_bingham(parameter: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a unit vector x with density ∝ exp(x'Bx) for a symmetric B.

    With λ = max eig(B) − B, Σ 1/(b + 2λᵢ) = 1 over the eigenvalues of λ and Ω = 1 + 2λ/b, a
    direction of N(0, Ω⁻¹) is taken with probability e^{−x'λx} (x'Ωx)^{q/2} / (e^{−(q−b)/2}
    (q/b)^{q/2}), which is at most 1. The factor of Ω depends continuously on B, where eigenvectors
    do not: processors that round differently draw nearly the same.
    """
    values = np.linalg.eigvalsh(parameter)
    fall, size = values[-1] - values, len(values)
    b = brentq(lambda at: float((1 / (at + 2 * fall)).sum()) - 1, 1e-12, size + 1.0, xtol=1e-12)
    root = np.linalg.cholesky((1 + 2 * values[-1] / b) * np.eye(size) - 2 / b * parameter)
    log_bound = -(size - b) / 2 + size / 2 * math.log(size / b)
    while True:
        x = solve_triangular(root, rng.standard_normal(size), trans="T", lower=True)
        x /= np.linalg.norm(x)
        below = float(values[-1] - x @ parameter @ x)
        log_ratio = -below + size / 2 * math.log1p(2 * below / b)
        if math.log(rng.random()) <= log_ratio - log_bound:
            return np.asarray(x)


def completed(columns: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the columns and after them a uniform basis of what is orthogonal to them."""
    size, count = columns.shape
    more = rng.standard_normal((size, size - count))
    more -= columns @ (columns.T @ more)
    rest, triangle = np.linalg.qr(more)
    return np.hstack([columns, rest * np.sign(np.diag(triangle))])
