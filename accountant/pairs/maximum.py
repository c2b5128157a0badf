"""What the pairs of a noisy maximum share."""

from __future__ import annotations

from abc import ABC

from flint import arb

from accountant.core.pair import Pair
from accountant.numbers.exact import ExactReal


class MaximumPair(Pair, ABC):
    """All pairs of the report of a noisy maximum at once, with losses in [−t, t]."""

    distance: ExactReal

    def rho_bound(self) -> arb:
        """Return t²/2, for a loss in [−t, t]."""
        return self.distance.ball() ** 2 / 2

    def max_loss(self) -> arb:
        """Return t."""
        return self.distance.ball()

    def exact_max_loss(self) -> ExactReal:
        """Return t, which rare events of two candidates come near."""
        return self.distance

    def reverse(self) -> MaximumPair:
        """Return the pair itself: the complement of an event is one, with scores exchanged."""
        return self
