"""A person in several positions of a stream: Laplace noise on sums that move by given amounts.

Of all sets of positions one moves the measured sums most in ℓ1 norm, by T in units of the scale. It
is a product of Laplace pairs at those distances, so H(ε) is at least what that has. The loss is at
most T for all others, so H(ε) is at most that of randomised response of T.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from flint import arb

from accountant.composition.product import Product
from accountant.core.pair import MirroredPair, ProfileOnly
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import Interval
from accountant.pairs.two_ends import inverse_between


@final
@dataclass(frozen=True)
class SeveralPositionsPair(MirroredPair, ProfileOnly):
    """All pairs of neighbours in several positions.

    Parameters
    ----------
    attaining
        The positions that have the largest loss.
    The noise is symmetric, so that P and Q change places.
    """

    attaining: Product

    only_bounded: ClassVar = True
    """Which positions are worst is not known."""

    def max_loss(self) -> arb:
        """Return T."""
        return self.attaining.max_loss()

    def exact_max_loss(self) -> ExactReal | None:
        """Return T: the distances have rational ratios."""
        return self.attaining.exact_max_loss()

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball around both ends."""
        return self.attaining.hockey_stick(epsilon).union(self._upper(epsilon))

    def to_width(self, relative_width: Fraction | None) -> SeveralPositionsPair:
        """Return the same with the lower end to that width."""
        return SeveralPositionsPair(self.attaining.to_width(relative_width))

    def _upper(self, epsilon: ExactReal) -> arb:
        """Return H(ε) of randomised response of T: (e^T − e^ε)/(e^T + 1) for |ε| ≤ T."""
        largest = self.exact_max_loss()
        if largest is not None and epsilon >= largest:
            return arb(0)
        x, odds = epsilon.ball().exp(), self.max_loss().exp()
        return ((odds - x) / (odds + 1)).max(1 - x).max(arb(0))

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) between both ends; UndecidedError where that is too wide."""
        return inverse_between(
            (self.attaining.hockey_stick, self._upper),
            delta,
            Fraction(float(self.max_loss())) / 4,
            relative_width,
            "below by the positions with the largest loss, above by that loss alone",
        )

    def attained(self, epsilon: ExactReal) -> Product:
        """Return the positions with the largest loss."""
        return self.attaining

    def law(self) -> dict[str, object]:
        """Return {"law": "several-positions"} with what `the law of the product` has."""
        return {**self.attaining.law(), "law": "several-positions"}

    @property
    def refusal(self) -> str:
        """Say what is known, and what to ask."""
        return (
            "Of several positions only the largest loss and bounds of delta and of epsilon are "
            f"known. It is at most that of Guaranteed(epsilon={self.exact_max_loss()}): ask about "
            "that."
        )
