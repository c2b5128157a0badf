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

    @property
    def coordinate_kurtosis(self) -> arb:
        """E[n_i⁴]/E[n_i²]² = 9M/(M+2): 3 only for M = 1, the coordinates are not Gaussian."""
        return arb(9 * self.dimension) / (self.dimension + 2)

    @property
    def mean_square_norm(self) -> arb:
        """E‖n‖² = σ_*."""
        return self.sigma_star

    @property
    def mean_norm(self) -> arb:
        """E‖n‖ = √(2σ_*/π)."""
        return (2 * self.sigma_star / arb.pi()).sqrt()

    def norm_quantile(self, probability: ExactReal) -> arb:
        """Return the x with P(‖n‖ ≤ x) = p: √(2σ_*) erf⁻¹(p), +∞ at p = 1."""
        if probability.rational == 1:
            return arb.pos_inf()
        return (2 * self.sigma_star).sqrt() * probability.ball().erfinv()

    @property
    def loss_variance(self) -> arb:
        """Var ‖n‖² = 2σ_*²."""
        return 2 * self.sigma_star**2


def raw_loss_kurtosis() -> arb:
    """E[ℒ⁴]/E[ℒ²]² = 35/3 for the loss ℒ = ‖n‖² (Ji and Li, Theorem 8)."""
    return arb(35) / 3


def raw_loss_skewness() -> arb:
    """E[ℒ³]/E[ℒ²]^{3/2} = 5√3/3 for the loss ℒ = ‖n‖² (Ji and Li, Theorem 9)."""
    return 5 * arb(3).sqrt() / 3


def central_loss_kurtosis() -> arb:
    """E[(ℒ − Eℒ)⁴]/Var(ℒ)² = 15: the kurtosis proper of a chi-squared law with one degree."""
    return arb(15)


def central_loss_skewness() -> arb:
    """E[(ℒ − Eℒ)³]/Var(ℒ)^{3/2} = 2√2: the skewness proper."""
    return 2 * arb(2).sqrt()


def theorem_5_sigma_star(epsilon: arb, delta: arb, dimension: int, l2_sensitivity: arb) -> arb:
    """2Δ²/(εψ), ψ = (δ Γ((M−1)/2)/(√π Γ(M/2)))^{2/(M−2)}: the noise of Ji and Li, Theorem 5.

    What the theorem prescribes for (ε, δ)-DP; it is not enough for that where δ is small.
    """
    m = arb(dimension)
    gammas = ((m - 1) / 2).lgamma() - (m / 2).lgamma() - arb.pi().log() / 2
    log_psi = 2 * (delta.log() + gammas) / (m - 2)
    return 2 * l2_sensitivity**2 / epsilon * (-log_psi).exp()
