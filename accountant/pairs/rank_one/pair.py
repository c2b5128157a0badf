"""Two rank-one Gaussian laws at a given distance."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from flint import arb

from dpassay.accountant.composition.invert import rough_root
from dpassay.accountant.core.pair import MirroredPair, Tails
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.rank_one import tails

_CLOSE = 1e-6
"""Relative size of the last step of an estimate: the next one would be about its square."""
_ROUGH = 53
"""Bits in which estimates are made, those of a float: what they find is proved with more."""


@final
@dataclass(frozen=True)
class RankOnePair(MirroredPair):
    """P = law(s + n), Q = law(n) for rank-one Gaussian noise n in R^dimension, dimension > 2.

    `ratio` is κ = ‖s‖/√σ_*. With ρ and w the distances of an outcome from the centres of P and
    Q, in units of √σ_*,

        L = (M−1) ln(w/ρ) + (w² − ρ²)/2.

    The loss is unbounded, because the density of the noise is infinite at its centre. The
    isometry x → s − x exchanges P and Q, so the pair equals its own reverse.
    """

    law_name = "rank-one-gaussian"
    usual_width: ClassVar = Fraction(1, 10**12)

    dimension: int
    ratio: ExactReal

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε) for any real ε: one integral along the boundary {L = ε}."""
        return tails.hockey_stick(epsilon, self.dimension, self.ratio)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the probabilities on both sides of {L = ε}, which has no mass."""
        return tails.tails(epsilon, self.dimension, self.ratio)

    def estimate_log_delta(self, epsilon: float) -> float | None:
        """Return ln H(ε) from a ball of few bits."""
        found = self._roughly(ExactReal.of_rational(Fraction(epsilon))).log()
        return float(found.mid()) if found.is_finite() else None

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return the ε > 0 with ln H(ε) = log_delta; far out H falls as e^{−ε/(M − 1)}."""
        top = self.estimate_log_delta(0.0)
        if top is None or not top > log_delta:
            return None
        with suppress(UndecidedError, ArithmeticError):
            far = (self.dimension - 1) * (top - log_delta)
            return rough_root(self._roughly, log_delta, far, _CLOSE)
        return None

    def _roughly(self, epsilon: ExactReal) -> arb:
        """Return H(ε) in few bits, which take a third of the time of those of a proof."""
        with ctx.workprec(_ROUGH):
            return self.hockey_stick(epsilon)

    def renyi(self, order: arb) -> arb:
        """Return +∞ for order ≥ M/(M−1); raise NotApplicableError below."""
        if (order - 1) * (self.dimension - 1) >= 1:
            return arb.pos_inf()
        raise NotApplicableError(
            "Rényi divergences of rank-one Gaussian noise are infinite from the order "
            f"{self.dimension}/{self.dimension - 1} on, and not computed below. Ask for delta."
        )

    def kullback_leibler(self) -> arb:
        """Raise NotApplicableError."""
        return self.renyi(arb(1))

    def closed_rho(self) -> arb:
        """Return +∞: D_2 is infinite, since 2 ≥ M/(M−1) for every M ≥ 2.

        Near its centre the density of P grows as ρ^{−(M−1)} while that of Q stays bounded, so
        E_P[e^L] contains the divergent ∫_0 ρ^{−(M−1)} dρ. There is no finite zCDP.
        """
        return arb.pos_inf()

    def ball_event(self, epsilon: ExactReal) -> arb:
        """Return a lower bound on H(ε) that a hand can check: that of a ball round P's centre.

        The ball of radius ‖s‖ has P-probability erf(κ/√2), by the half-normal distance. Seen
        from the centre of Q, which lies on its surface, each direction at an acute angle to s
        meets it in a chord of 2κ·cosine, and the half-normal density is at most √(2/π): its
        Q-probability is at most √(2/π) κ E|cosine|, E|cosine| = Γ(M/2)/(√π Γ((M+1)/2)).
        """
        kappa, m = self.ratio.ball(), arb(self.dimension)
        cosine = ((m / 2).lgamma() - ((m + 1) / 2).lgamma()).exp() / arb.pi().sqrt()
        q = (2 / arb.pi()).sqrt() * kappa * cosine
        return (kappa / arb(2).sqrt()).erf() - epsilon.ball().exp() * q

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe {L > ε}, and the bound from a ball where that says something."""
        text = (
            f"the outcomes x with {self.dimension - 1}·ln(w/r) + (w² − r²)/2 > {epsilon}, where r "
            "and w are the distances of x from the true answer under P and under Q, in units of "
            f"sqrt(sigma_star); the true answers are {self.ratio} apart"
        )
        with ctx.workprec(64):
            bound = self.ball_event(epsilon)
            if not bound > 0:
                return text
            kappa = self.ratio.ball()
            probability = Interval.of_ball((kappa / arb(2).sqrt()).erf(), 12)
            return (
                f"{text}. Checkable by hand: the ball of that radius round the true answer under P "
                f"has P = erf({Interval.of_ball(kappa, 12)}/sqrt(2)) = {probability}, and already "
                f"shows P − e^epsilon·Q ≥ {Interval.of_ball(bound, 4).lower}"
            )
