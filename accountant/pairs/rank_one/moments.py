"""Moments of rank-one Gaussian noise n = √σ_* z v, and of its accuracy loss ‖n‖² = σ_* z²."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from flint import arb

from accountant.numbers.exact import ExactReal


@final
@dataclass(frozen=True, slots=True)
class Moments:
    """Closed forms at a dimension M and an eigenvalue σ_*, at the ambient precision.

    ‖n‖ is half-normal and ‖n‖²/σ_* chi-squared with one degree of freedom, whatever M is; the
    direction is uniform, so Cov(n) = (σ_*/M) I.
    """

    dimension: int
    sigma_star: arb

    @property
    def coordinate_variance(self) -> arb:
        """σ_*/M."""
        return self.sigma_star / self.dimension

    def norm_quantile(self, probability: ExactReal) -> arb:
        """Return the x with P(‖n‖ ≤ x) = p: √(2σ_*) erf⁻¹(p), +∞ at p = 1."""
        if probability.rational == 1:
            return arb.pos_inf()
        return (2 * self.sigma_star).sqrt() * probability.ball().erfinv()


def theorem_5_sigma_star(epsilon: arb, delta: arb, dimension: int, l2_sensitivity: arb) -> arb:
    """2Δ²/(εψ), ψ = (δ Γ((M−1)/2)/(√π Γ(M/2)))^{2/(M−2)}: the noise of Ji and Li, Theorem 5.

    What the theorem prescribes for (ε, δ)-DP; it is not enough for that where δ is small.
    """
    m = arb(dimension)
    gammas = ((m - 1) / 2).lgamma() - (m / 2).lgamma() - arb.pi().log() / 2
    log_psi = 2 * (delta.log() + gammas) / (m - 2)
    return 2 * l2_sensitivity**2 / epsilon * (-log_psi).exp()
