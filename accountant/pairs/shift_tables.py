"""A density with several modes: a table of losses above all of its shifts, and some shifts below.

Above: `dpassay.accountant.pairs.finite`, of the largest profile of all shifts up to a distance
to both sides. These are a family that holds the reverse of each pair, so that its profile is the
one of a pair that is its own reverse. Below: the shifts that are worst at some ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

from flint import arb

from dpassay.accountant.core.pair import Pair
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.finite import TablesAbove, profile_at, spread
from dpassay.accountant.pairs.own_density import OwnShiftsPair
from dpassay.accountant.pairs.subsampled import envelope

_POINTS = 48
"""Losses of a table: some seconds, and ends of ε that differ by about 1 %."""
_SHOWN = (0, _POINTS // 4, _POINTS // 2)
"""Places at which the worst shifts are taken for lower bounds."""


@final
@dataclass(frozen=True)
class ShiftTables(TablesAbove):
    """The table above all shifts of a density up to a distance."""

    density: str
    distance: Fraction

    @cached_property
    def _sides(self) -> tuple[OwnShiftsPair, ...]:
        """Shifts to the right, and to the left where the density is lopsided."""
        one = OwnShiftsPair(self.density, self.distance, mirrored=False)
        return (one, one.reverse()) if one.is_lopsided else (one,)

    @cached_property
    def places(self) -> Sequence[Fraction]:
        """Return them to where little mass is beyond, and then the largest loss."""
        return spread(envelope(self._sides), _POINTS)

    def at_most(self) -> Sequence[arb]:
        """Return the largest H of all shifts."""
        return profile_at(envelope(self._sides), self.places)

    @property
    def below(self) -> tuple[Pair, ...]:
        """The worst shifts at some places."""
        places = [ExactReal.of_rational(self.places[n]) for n in _SHOWN]
        found = (side.attained(place) for side in self._sides for place in places)
        return tuple(dict.fromkeys(found))
