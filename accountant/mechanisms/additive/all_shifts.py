"""What dominates noise of a density against every shift at once, for compositions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from fractions import Fraction

from accountant.core.adjacency import Adjacency
from accountant.core.arrays import Array, np
from accountant.core.description import declared
from accountant.core.mechanism import Mechanism
from accountant.core.pair import Pair, WorstCase
from accountant.density.envelope import Envelope, envelope, masses
from accountant.density.law import law
from accountant.errors import NotApplicableError
from accountant.numbers.exact import ExactReal
from accountant.pairs.finite import Balls, FiniteLaws, FinitePair
from accountant.pairs.own_density import OwnDensityPair
from accountant.pairs.own_shifts import OwnShiftsPair


@declared
class AllShifts(Mechanism, FiniteLaws):
    """A table that dominates AdditiveNoise(density) for all shifts (`accountant.density.envelope`).

    It is no mechanism that is run: it bounds several releases of that one, whose worst shifts may
    differ, and depend on earlier results.
    """

    density: str
    distance: Fraction

    def table(self) -> Envelope:
        """Return the masses."""
        return _table(self.density, self.distance)

    def attained(self) -> tuple[Pair, ...]:
        """Return the pairs of a few shifts that come near it."""
        return tuple(
            OwnDensityPair(self.density, abs(shift), shift < 0) for shift in self.table().shifts
        )

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the table, which is its own reverse."""
        return WorstCase.symmetric(FinitePair(self, 0), "It dominates every shift.")

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the losses by their places on the lattice."""
        places = self.table().places
        return [*places, *(-k for k in places), 0, "∞", "-∞"]

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the masses of the losses."""
        return masses(self.table())

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return kΔ."""
        unit, places = self.table().unit, self.table().places
        finite = [ExactReal.of_rational(k * unit) for k in (*places, *(-k for k in places), 0)]
        return [*finite, None, None]

    def is_mirrored(self, index: int) -> bool:
        """Return False: the masses are listed in another order."""
        return False

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Raise NotApplicableError: it bounds what is run."""
        raise NotApplicableError("A table that bounds other noise is not drawn.")


@functools.lru_cache(maxsize=64)
def _table(density: str, distance: Fraction) -> Envelope:
    pair = OwnShiftsPair(density, distance, False)
    ends = [each.exact_max_loss() for each in (pair, pair.reverse())]
    known = [end.rational for end in ends if end is not None]
    largest = [end for end in known if end is not None]
    return envelope(law(density, "density"), distance, max(largest) if len(largest) == 2 else None)
