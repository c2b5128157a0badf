"""Private covariances and components: PPCA, MOD-SULQ, Wishart, and matrix-variate noise.

PPCA (Chaudhuri, Sarwate and Sinha, 2013): components from a matrix Bingham law.

Law: k orthonormal columns V with density ∝ exp(tr(V'BV)), B = nεA/2, A = D'D/n for n rows of norm
at most 1: the exponential mechanism with the score n·tr(V'AV).

Sensitivity: replacing a row changes the score by ‖V'x‖² − ‖V'y‖², between −1 and 1.

Claimed guarantee: ε-DP. True of the law; the paper and this module sample it by Gibbs sampling
(Hoff, 2009), whose law after finitely many sweeps is near it, at a distance that nobody bounds.
Each conditional law, a vector Bingham law, is sampled exactly, by rejection from an angular
central Gaussian law (Kent, Ganeiban and Mardia, 2013).

MOD-SULQ (Chaudhuri, Sarwate and Sinha, 2013): a covariance plus symmetric Gaussian noise.

Law: A = D'D/n, for n rows of norm at most 1 with d entries, plus a symmetric matrix whose entries
on and above the diagonal are independent N(0, β²).

Sensitivity: replacing x by y changes A by E = (xx' − yy')/n; the entries on and above the diagonal
change in ℓ2 norm by √((‖E‖² + Σ Eᵢᵢ²)/2) ≤ √2/n, attained by two coordinate vectors.

Claimed guarantee: (ε, δ)-DP with β of `claimed_deviation`. True, and more than needed:
`exact_deviation` is the least.

The Wishart mechanism (Jiang, Xie and Zhang, 2016): a covariance plus Wishart noise.

Law: A = D'D/n, for n rows of norm at most 1 with d entries, plus W = c Σ gg' over d + 1
independent standard normal vectors g: density ∝ e^{−tr(W)/(2c)} on the positive definite matrices.

Claimed guarantee: ε-DP with c = 3/(2nε). False. A release is A plus a positive definite matrix:
with A' = A − xx'/n, ‖x‖ = 1, what is released for A' is possible for A only if W − xx'/n is
positive definite, x'W⁻¹x ≤ n. Now 1/(x'W⁻¹x) is c times χ² with 2 degrees of freedom, so it is
impossible with probability 1 − e^{−t}, t = 1/(2cn), which is 1 − e^{−ε/3} at the claimed c. Where
both are possible the densities have the ratio e^t. So, exactly, when a row is added or removed
and n stays: from A the loss is t always; from A' it is −t, or infinite with probability
1 − e^{−t}. The mechanism is (0, 1 − e^{−t})-DP and for no ε has it a smaller δ. Replacing a row is
adding one and removing one: (0, e^t − 1)-DP.

Matrix-variate Gaussian noise: MVG and MGM.

Law: Σ^{1/2} Z Ψ^{1/2} with independent standard normal entries Z. The mechanism is exactly μ-GDP
with μ = Δ/√(λ(Σ) λ(Ψ)), λ the least eigenvalue (`MatrixVariateGaussian`), so with equal
eigenvalues it is independent Gaussian noise of variance λ(Σ)λ(Ψ) in every entry. Both mechanisms
are taken with equal eigenvalues: the choice with the least loss under either condition.

MVG (Chanyaswad, Dytso, Poor and Mittal; Theorem 3 of Ji and Li) claims (ε, δ)-DP if
‖σ(Σ⁻¹)‖₂ ‖σ(Ψ⁻¹)‖₂ ≤ B. True, and far from needed.

MGM (Yang et al., cited by Ji and Li, who state no condition): the privacy loss of the worst pair
is N(μ²/2, μ²), and what is asked for is P(loss > ε) ≤ δ, which implies (ε, δ)-DP.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import brentq
from scipy.special import ndtri

from dpassay.figures import quantities


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


def claimed_deviation(size: int, records: int, epsilon: float, delta: float) -> float:
    """Return β = (d + 1)/(nε)·√(2 ln((d² + d)/(δ·2√(2π)))) + 1/(n√ε)."""
    inside = (size * size + size) / (delta * 2 * math.sqrt(2 * math.pi))
    first = (size + 1) / (records * epsilon) * math.sqrt(2 * math.log(inside))
    return first + 1 / (records * math.sqrt(epsilon))


def exact_deviation(records: int, epsilon: str, delta: str) -> float:
    """Return the least β of (ε, δ)-DP when a row is replaced."""
    return math.sqrt(2) / records * quantities.gaussian_deviation(epsilon, delta)


def mod_sulq_noise(size: int, deviation: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw the symmetric noise."""
    upper = np.triu(deviation * rng.standard_normal((size, size)))
    return np.asarray(upper + np.triu(upper, 1).T)


def claimed_scale(records: int, epsilon: float) -> float:
    """Return c = 3/(2nε)."""
    return 3 / (2 * records * epsilon)


def exact_scale(records: int, delta: float) -> float:
    """Return c with e^t − 1 = δ: (0, δ)-DP when a row is replaced, whatever ε is allowed."""
    return 1 / (2 * records * math.log1p(delta))


def wishart_noise(size: int, scale: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw W."""
    vectors = rng.standard_normal((size, size + 1))
    return np.asarray(scale * vectors @ vectors.T)


def bound_of_theorem_3(
    size: int, sensitivity: float, norm: float, epsilon: float, delta: float
) -> float:
    """Return B = (−β + √(β² + 8αε))²/(4α²) for square answers of M rows and of norm at most γ."""
    harmonic, half = (math.fsum(k**-power for k in range(1, size + 1)) for power in (1, 0.5))
    tau = 2 * size * math.sqrt(-math.log(delta)) - 2 * math.log(delta) + size * size
    alpha = 2 * harmonic * norm * sensitivity + (harmonic + half) * norm**2
    beta = 2 * math.sqrt(size) * harmonic * sensitivity * tau
    # (−β + s)/(2α) without cancellation.
    root: float = 4 * epsilon / (beta + math.sqrt(beta * beta + 8 * alpha * epsilon))
    return root * root


def mvg_deviation(size: int, sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the standard deviation of each entry that Theorem 3 asks for, at the best γ = Δ/2.

    ‖σ(Σ⁻¹)‖₂ = √M/λ(Σ) for equal eigenvalues, so the variance is √(MN)/B.
    """
    return math.sqrt(size / bound_of_theorem_3(size, sensitivity, sensitivity / 2, epsilon, delta))


def mgm_deviation(sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the least standard deviation with P(N(μ²/2, μ²) > ε) ≤ δ, μ = Δ/σ.

    That is ε/μ − μ/2 = z with Φ(z) = 1 − δ, so μ = √(z² + 2ε) − z.
    """
    z = -float(ndtri(delta))
    mu = 2 * epsilon / (math.sqrt(z * z + 2 * epsilon) + z)
    return sensitivity / mu
