"""MOD-SULQ (Chaudhuri, Sarwate and Sinha, 2013): a covariance plus symmetric Gaussian noise.

Law: A = D'D/n, for n rows of norm at most 1 with d entries, plus a symmetric matrix whose entries
on and above the diagonal are independent N(0, β²).

Sensitivity: replacing x by y changes A by E = (xx' − yy')/n; the entries on and above the diagonal
change in ℓ2 norm by √((‖E‖² + Σ Eᵢᵢ²)/2) ≤ √2/n, attained by two coordinate vectors.

Claimed guarantee: (ε, δ)-DP with β of `claimed_deviation`. True, and more than needed:
`exact_deviation` is the least.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.budget.calibrate import EpsilonDelta, calibrate


def claimed_deviation(size: int, records: int, epsilon: float, delta: float) -> float:
    """Return β = (d + 1)/(nε)·√(2 ln((d² + d)/(δ·2√(2π)))) + 1/(n√ε)."""
    inside = (size * size + size) / (delta * 2 * math.sqrt(2 * math.pi))
    first = (size + 1) / (records * epsilon) * math.sqrt(2 * math.log(inside))
    return first + 1 / (records * math.sqrt(epsilon))


def exact_deviation(records: int, epsilon: str, delta: str) -> float:
    """Return the least β of (ε, δ)-DP when a row is replaced."""
    unit = float(calibrate("Gaussian", EpsilonDelta(epsilon, delta)).least.upper)
    return math.sqrt(2) / records * unit


def noise(size: int, deviation: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw the symmetric noise."""
    upper = np.triu(deviation * rng.standard_normal((size, size)))
    return np.asarray(upper + np.triu(upper, 1).T)
