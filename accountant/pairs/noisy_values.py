"""The largest noisy score, and which it is: pairs that neighbours have, and what bounds all.

*Exponential noise.* In units of the noise, let neighbours have the scores u and u′, |u_i − u′_i| ≤
d, and c_i = max(u_i, u′_i). An exponential density that starts at c_i is at most e^d times the one
that starts at either score, wherever it is not 0; and its distribution function is the least of
all three. So where i wins at v, both densities are at least

    e^{−d} f(v − c_i) Π_{j ≠ i} F(v − c_j),

which is e^{−d} times the density of the law of the scores c: both laws share a mass of e^{−d}, and
H(0) ≤ 1 − e^{−d}, for any number of candidates. For ε > 0 H is at most that, and for ε < 0, as
H(ε) = 1 − e^ε + e^ε H(−ε) of the reverse, at most 1 − e^{ε − d}. All is attained: of one candidate
far above the others the higher score is never below its start, so that P has the mass 1 − e^{−d}
there, Q none, and elsewhere the loss is −d. So the profile is that of 1 − e^{−d} at the losses ∞
and −∞ and e^{−d} at 0, and that of several releases, whatever came before, the same with the sum
of their distances.

*Laplace noise, also discrete.* At or below 0 a distribution function is a multiple of e^x. So where
k equal scores fall from d to 0, the event that no noisy score is above 0 has a loss of kd, all that
k scores can have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from flint import arb

from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair


@final
@dataclass(frozen=True)
class ExponentialValue(FiniteLaws):
    """Of scores that move by d units of noise: what bounds all (0), and one candidate (1)."""

    distance: ExactReal

    @property
    def shared(self) -> arb:
        """e^{−d}."""
        return (-self.distance.ball()).exp()

    @property
    def own(self) -> arb:
        """1 − e^{−d}."""
        return -(-self.distance.ball()).expm1()

    @property
    def attained(self) -> tuple[FinitePair, FinitePair]:
        """One candidate far above the others, which rises, or falls."""
        return FinitePair(self, 1), FinitePair(self, 1, flipped=True)

    @property
    def pair(self) -> FinitePair:
        """What bounds all."""
        return FinitePair(self, 0)

    def outcomes(self, index: int) -> Sequence[str]:
        """Name values, one candidate far above the others."""
        shown = "values below the higher score", "values above it"
        return shown if index else ("values below the score under P", shown[1], shown[0])

    def own_law(self, index: int) -> dict[str, object] | None:
        """Return {"law": "exponential-value", "distance"} of what bounds all."""
        return None if index else {"law": "exponential-value", "distance": str(self.distance)}

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return them."""
        p = [self.own, self.shared]
        return (p, [arb(0), arb(1)]) if index else ([*p, arb(0)], [arb(0), *p[::-1]])

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return 0, or −d."""
        return (None, -self.distance) if index else (None, ExactReal.of_rational(0), None)

    def is_mirrored(self, index: int) -> bool:
        """Whether Q is P reversed."""
        return index == 0


@final
@dataclass(frozen=True)
class NothingAbove(FiniteLaws):
    """Whether no noisy score is above 0: k equal scores, of Laplace noise, fall by d to 0.

    Parameters
    ----------
    candidates
        k.
    distance
        d, in units of the noise.
    rate
        1/b of discrete noise of scale b; None for continuous noise.
    """

    candidates: int
    distance: ExactReal
    rate: ExactReal | None = None

    @property
    def largest(self) -> ExactReal:
        """The loss of the event."""
        return ExactReal.of_rational(self.candidates) * self.distance

    @property
    def pair(self) -> FinitePair:
        """The pair."""
        return FinitePair(self, 0)

    def outcomes(self, index: int) -> Sequence[str]:
        """Name values."""
        return "values of at most 0", "values above 0"

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return F(0)^k and e^{−kd} times that, F(0) = 1/2 or 1/(1 + e^{−1/b}), and the rest."""
        odds = arb(1) if self.rate is None else (-self.rate.ball()).exp()
        p = 1 / (1 + odds) ** self.candidates
        q = p * (-self.largest.ball()).exp()
        return [p, 1 - p], [q, 1 - q]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return kd of the event."""
        return self.largest, None
