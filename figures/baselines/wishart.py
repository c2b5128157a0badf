"""The Wishart mechanism (Jiang, Xie and Zhang, 2016): a covariance plus Wishart noise.

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
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def claimed_scale(records: int, epsilon: float) -> float:
    """Return c = 3/(2nε)."""
    return 3 / (2 * records * epsilon)


def exact_scale(records: int, delta: float) -> float:
    """Return c with e^t − 1 = δ: (0, δ)-DP when a row is replaced, whatever ε is allowed."""
    return 1 / (2 * records * math.log1p(delta))


def noise(size: int, scale: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw W."""
    vectors = rng.standard_normal((size, size + 1))
    return np.asarray(scale * vectors @ vectors.T)
