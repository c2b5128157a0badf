"""Matrix-variate Gaussian noise: MVG and MGM.

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
from scipy.special import ndtri


def bound_of_theorem_3(
    rows: int,
    columns: int,
    *,
    sensitivity: float,
    largest_norm: float,
    epsilon: float,
    delta: float,
) -> float:
    """Return B = (−β + √(β² + 8αε))²/(4α²) for M×N answers of norm at most γ."""
    rank = min(rows, columns)
    harmonic = math.fsum(1 / k for k in range(1, rank + 1))
    half_harmonic = math.fsum(k**-0.5 for k in range(1, rank + 1))
    size = rows * columns
    tau = 2 * math.sqrt(-size * math.log(delta)) - 2 * math.log(delta) + size
    alpha = 2 * harmonic * largest_norm * sensitivity
    alpha += (harmonic + half_harmonic) * largest_norm**2
    beta = 2 * size**0.25 * harmonic * sensitivity * tau
    # (−β + s)/(2α) without cancellation.
    root: float = 4 * epsilon / (beta + math.sqrt(beta * beta + 8 * alpha * epsilon))
    return root * root


def mvg_deviation(
    rows: int, columns: int, sensitivity: float, epsilon: float, delta: float
) -> float:
    """Return the standard deviation of each entry that Theorem 3 asks for, at the best γ = Δ/2.

    ‖σ(Σ⁻¹)‖₂ = √M/λ(Σ) for equal eigenvalues, so the variance is √(MN)/B.
    """
    bound = bound_of_theorem_3(
        rows,
        columns,
        sensitivity=sensitivity,
        largest_norm=sensitivity / 2,
        epsilon=epsilon,
        delta=delta,
    )
    return math.sqrt(math.sqrt(rows * columns) / bound)


def mgm_deviation(sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the least standard deviation with P(N(μ²/2, μ²) > ε) ≤ δ, μ = Δ/σ.

    That is ε/μ − μ/2 = z with Φ(z) = 1 − δ, so μ = √(z² + 2ε) − z.
    """
    z = -float(ndtri(delta))
    mu = 2 * epsilon / (math.sqrt(z * z + 2 * epsilon) + z)
    return sensitivity / mu


def noise(
    row_factor: NDArray[np.float64], column_factor: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw A Z B' for factors A of Σ = AA' and B of Ψ = BB'."""
    z = rng.standard_normal((len(row_factor), len(column_factor)))
    return np.asarray(row_factor @ z @ column_factor.T)
