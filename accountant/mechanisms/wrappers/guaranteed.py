"""Any mechanism of which only (ε, δ) is known."""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import NonNegative, Probability
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair


@declared
class Guaranteed(Mechanism, FiniteLaws):
    """Whatever is (ε, δ)-DP: the worst of all mechanisms with this guarantee.

    Parameters
    ----------
    epsilon, delta
        ε ≥ 0, and δ in [0, 1].

    Notes
    -----
    The pair with the masses P = (δ, (1 − δ)e^ε/(1 + e^ε), (1 − δ)/(1 + e^ε), 0), Q = P reversed,
    dominates every (ε, δ)-DP mechanism, and is one (Kairouz, Oh and Viswanath 2015). So a
    composition of such parts has the best statement that follows from the guarantees of the parts
    alone, for any neighbouring relation that all of them are about. There is no noise to ask for.
    """

    example = "Guaranteed(epsilon='0.1', delta='1e-6')"
    no_variance = (
        "Guaranteed stands for any mechanism with its guarantee, so its variance is not known. "
        "Ask the mechanism itself."
    )

    epsilon: NonNegative = NonNegative()
    delta: Probability = Probability(0)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the four masses and their reverse."""
        reason = "It dominates every mechanism with this guarantee, and has the guarantee itself."
        return WorstCase.symmetric(FinitePair(self, 0), reason)

    def outcomes(self, index: int) -> Sequence[str]:
        """Name the losses."""
        return ("infinity", str(self.epsilon), str(-self.epsilon), "-infinity")

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the four masses and their reverse."""
        delta = self.delta.ball()
        odds = (-self.epsilon.ball()).exp()
        likely, rare = (1 - delta) / (1 + odds), (1 - delta) * odds / (1 + odds)
        p = [delta, likely, rare, arb(0)]
        return p, p[::-1]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return ±ε."""
        return [None, self.epsilon, -self.epsilon, None]

    def exact_infinity_masses(self, index: int) -> tuple[ExactReal, ExactReal]:
        """Return δ, for both laws."""
        return self.delta, self.delta

    def is_mirrored(self, index: int) -> bool:
        """Return True: Q is P reversed."""
        return True

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Raise NotApplicableError: no law of the noise is given."""
        raise NotApplicableError(
            "Guaranteed stands for any mechanism with its guarantee, so it has no noise to draw. "
            "Sample the mechanism itself."
        )
