"""Private covariances and components: PPCA, MOD-SULQ, Wishart, and matrix-variate noise.

Data are n rows of norm at most 1 with d entries; A = D'D/n is their second-moment matrix.

**PPCA** (Chaudhuri, Sarwate and Sinha 2013) samples components from a matrix Bingham distribution:
k orthonormal columns V with density ∝ exp(tr(V'BV)), B = nεA/2. This is the exponential mechanism
with score n·tr(V'AV). Replacing a row x by y changes the score by ‖V'x‖² − ‖V'y‖², which is between
−1 and 1. Claimed guarantee: ε-DP, which is true for the exact distribution. The paper and this
module use Gibbs sampling (Hoff 2009); after finitely many sweeps its error is not bounded. Each
conditional distribution, a vector Bingham distribution, is sampled exactly, by rejection from an
angular central Gaussian distribution (Kent, Ganeiban and Mardia 2013).

**MOD-SULQ** (Chaudhuri, Sarwate and Sinha 2013) releases A plus a symmetric matrix whose entries on
and above the diagonal are independent N(0, β²). Replacing x by y changes A by E = (xx' − yy')/n.
The ℓ2 norm of the change of these entries is √((‖E‖² + Σ Eᵢᵢ²)/2) ≤ √2/n, with equality for two
coordinate vectors. Claimed guarantee: (ε, δ)-DP for β = `claimed_deviation`. This is true, but the
least β is `exact_deviation`.

**The Wishart mechanism** (Jiang, Xie and Zhang 2016) releases A + W, where W = c Σ gg' over d + 1
independent standard normal vectors g has density ∝ e^{−tr(W)/(2c)} on positive definite matrices.
Claimed guarantee: ε-DP for c = 3/(2nε), which is false. Let A' = A − xx'/n with ‖x‖ = 1. A release
from A' can also come from A only if W − xx'/n is positive definite, that is x'W⁻¹x ≤ n. Since
1/(x'W⁻¹x) is c times χ² with 2 degrees of freedom, this fails with probability 1 − e^{−t}, where t
= 1/(2cn); at the claimed c it is 1 − e^{−ε/3}. Where both densities are positive, their ratio is
e^t. If a row is added or removed and n is fixed, the privacy loss is therefore exactly t from A;
from A' it is −t, or infinite with probability 1 − e^{−t}. So the mechanism is (0, 1 − e^{−t})-DP,
and δ(ε) is not smaller at any ε. Replacing a row is an addition and a removal: (0, e^t − 1)-DP.

**Matrix-variate Gaussian noise** is Σ^{1/2} Z Ψ^{1/2}, where Z has independent standard normal
entries. It is exactly μ-GDP with μ = Δ/√(λ(Σ) λ(Ψ)), λ the least eigenvalue
(`MatrixVariateGaussian`). With equal eigenvalues, which minimise the loss under the conditions
below, it is independent Gaussian noise of variance λ(Σ)λ(Ψ).

* MVG (Chanyaswad, Dytso, Poor and Mittal; Theorem 3 of Ji and Li) claims (ε, δ)-DP if ‖σ(Σ⁻¹)‖₂
  ‖σ(Ψ⁻¹)‖₂ ≤ B. This is sufficient, but far from necessary.
* MGM (Yang et al., cited by Ji and Li without a condition): the privacy loss of the worst pair is
  N(μ²/2, μ²). The condition used is P(loss > ε) ≤ δ, which implies (ε, δ)-DP.
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
    """Return orthonormal columns after `sweeps` Gibbs sweeps from a uniformly random start.

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

    Let λ = max eig(B) − B, let b solve Σ 1/(b + 2λᵢ) = 1 over the eigenvalues of λ, and let
    Ω = 1 + 2λ/b. The direction of a draw from N(0, Ω⁻¹) is accepted with probability
    e^{−x'λx} (x'Ωx)^{q/2} / (e^{−(q−b)/2} (q/b)^{q/2}) ≤ 1. The Cholesky factor of Ω depends
    continuously on B, unlike eigenvectors, so results hardly depend on the processor's rounding.
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
    """Append a uniformly random orthonormal basis of the orthogonal complement."""
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
    """Return the least β that is (ε, δ)-DP under replacement of a row."""
    return math.sqrt(2) / records * quantities.gaussian_deviation(epsilon, delta)


def mod_sulq_noise(size: int, deviation: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a symmetric matrix with independent N(0, deviation²) on and above the diagonal."""
    upper = np.triu(deviation * rng.standard_normal((size, size)))
    return np.asarray(upper + np.triu(upper, 1).T)


def claimed_scale(records: int, epsilon: float) -> float:
    """Return c = 3/(2nε)."""
    return 3 / (2 * records * epsilon)


def exact_scale(records: int, delta: float) -> float:
    """Return the c with e^t − 1 = δ, which is (0, δ)-DP under replacement of a row."""
    return 1 / (2 * records * math.log1p(delta))


def wishart_noise(size: int, scale: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw the Wishart matrix W = c Σ gg'."""
    vectors = rng.standard_normal((size, size + 1))
    return np.asarray(scale * vectors @ vectors.T)


def bound_of_theorem_3(
    size: int, sensitivity: float, norm: float, epsilon: float, delta: float
) -> float:
    """Return B = (−β + √(β² + 8αε))²/(4α²) for square answers with M rows and norm at most γ."""
    harmonic, half = (math.fsum(k**-power for k in range(1, size + 1)) for power in (1, 0.5))
    tau = 2 * size * math.sqrt(-math.log(delta)) - 2 * math.log(delta) + size * size
    alpha = 2 * harmonic * norm * sensitivity + (harmonic + half) * norm**2
    beta = 2 * math.sqrt(size) * harmonic * sensitivity * tau
    # (−β + s)/(2α) without cancellation.
    root: float = 4 * epsilon / (beta + math.sqrt(beta * beta + 8 * alpha * epsilon))
    return root * root


def mvg_deviation(size: int, sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the standard deviation of each entry that Theorem 3 requires, at the best γ = Δ/2.

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
