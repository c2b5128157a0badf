"""The Gaussian pair N(μ, 1) against N(0, 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Known, MirroredPair, Tails
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.theta import erfc

_ESTIMATE_BITS, _ESTIMATE_WIDTH, _MOST_STEPS = 192, 1e-14, 40
"""Precision, last relative step and maximal number of steps of an estimate of ε."""


def normal_cdf(x: arb) -> arb:
    """Return Φ(x), the normal distribution function, with relative accuracy in both tails."""
    return erfc(-x / arb(2).sqrt()) / 2


def gaussian_tails(mu: arb, epsilon: ExactReal) -> Tails:
    """Return the probabilities on both sides of x = ε/μ + μ/2 under N(μ, 1) (P) and N(0, 1) (Q)."""
    half, cut = mu / 2, epsilon.ball() / mu
    return Tails(
        p_above=normal_cdf(half - cut),
        p_below=normal_cdf(cut - half),
        q_above=normal_cdf(-half - cut),
        q_below=normal_cdf(half + cut),
    )


@final
@dataclass(frozen=True)
class GaussianPair(MirroredPair):
    """P = N(μ, 1), Q = N(0, 1), with the exact μ of a mechanism under a neighbouring relation.

    The loss L = μx − μ²/2 has the law N(μ²/2, μ²) under P and N(−μ²/2, μ²) under Q. The reflection
    x → μ − x exchanges P and Q, so the pair is its own reverse, and
    H(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Balle and Wang 2018, Theorem 8).
    """

    mechanism: Mechanism
    adjacency: Adjacency | None

    def mu(self) -> arb:
        """Return the shift μ > 0."""
        known = self._exact_mu
        return self.mechanism.gaussian_mu(self.adjacency) if known is None else known.ball()

    @cached_property
    def _exact_mu(self) -> ExactReal | None:
        return self.mechanism.exact_gaussian_mu(self.adjacency)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the probabilities on both sides of x = ε/μ + μ/2."""
        return gaussian_tails(self.mu(), epsilon)

    @property
    def known(self) -> Known:
        """Return ρ = μ²/2 in closed form, and a float estimate of ε."""
        return Known(epsilon=self._estimate_epsilon, rho=lambda: self.mu() ** 2 / 2)

    def _estimate_epsilon(self, log_delta: float) -> float | None:
        """Estimate the ε with ln H(ε) = log_delta by Newton's method; None if it does not converge.

        For ε ≥ μ²/2, H(ε) ≤ Φ(μ/2 − ε/μ) ≤ exp(−(ε/μ − μ/2)²/2), which gives a start to the right
        of the root. The slope is H′(ε) = −e^ε Φ(−μ/2 − ε/μ).
        """
        with ctx.workprec(_ESTIMATE_BITS):
            mu = float(self.mu())
            guess = mu * mu / 2 + mu * math.sqrt(-2 * log_delta)  # inf, no error, beyond floats
            for _ in range(_MOST_STEPS):
                if not math.isfinite(guess):
                    return None
                tails = self.tails(ExactReal.of_rational(Fraction(guess)))
                slope = arb(guess).exp() * tails.q_above
                value = tails.p_above - slope
                if not (value > 0 and slope > 0):
                    return None
                step = float((value.log() - log_delta) * value / slope)
                guess += step
                if abs(step) <= _ESTIMATE_WIDTH * abs(guess):
                    return guess
        return None

    def renyi(self, order: arb) -> arb:
        """Return order·μ²/2."""
        return order * self.mu() ** 2 / 2

    def law(self) -> dict[str, object]:
        """Return {"law": "gaussian", "mu": an enclosure of μ}."""
        return {"law": "gaussian", "mu": Interval.of_ball(self.mu(), 60).to_json()}

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-space {L > ε}."""
        cut = epsilon.ball() / self.mu() + self.mu() / 2
        return (
            "the release, scaled along the difference of the true answers to noise of standard "
            f"deviation 1, exceeds {Interval.of_ball(cut, 12)} (mean 0 under Q, mu under P)"
        )
