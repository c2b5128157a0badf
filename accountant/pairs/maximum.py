"""What the pairs of a noisy maximum share."""

from __future__ import annotations

from abc import ABC

from flint import arb

from accountant.core.pair import MirroredPair
from accountant.numbers.exact import ExactReal


class MaximumPair(MirroredPair, ABC):
    """All pairs of the report of a noisy maximum at once, with losses in [−t, t].

    The complement of an event is one, with scores exchanged.
    """

    distance: ExactReal

    def rho_bound(self) -> arb:
        """Return t²/2, for a loss in [−t, t]."""
        return self.distance.ball() ** 2 / 2

    def exact_max_loss(self) -> ExactReal:
        """Return t, which rare events of two candidates come near."""
        return self.distance
