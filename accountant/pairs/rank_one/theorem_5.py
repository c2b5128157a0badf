"""The amount of rank-one Gaussian noise that its paper asks for."""

from __future__ import annotations

from flint import arb


def theorem_5_sigma_star(epsilon: arb, delta: arb, dimension: int, l2_sensitivity: arb) -> arb:
    """2Δ²/(εψ), ψ = (δ Γ((M−1)/2)/(√π Γ(M/2)))^{2/(M−2)}: the noise of Ji and Li, Theorem 5.

    What the theorem prescribes for (ε, δ)-DP; it is not enough for that where δ is small.
    """
    m = arb(dimension)
    gammas = ((m - 1) / 2).lgamma() - (m / 2).lgamma() - arb.pi().log() / 2
    log_psi = 2 * (delta.log() + gammas) / (m - 2)
    return 2 * l2_sensitivity**2 / epsilon * (-log_psi).exp()
