"""Noise of a density with several modes, at the worst of all shifts up to a distance.

H(ε) is the largest of the divergences of the shifts, each of two datasets; the proof of its upper
end is in `dpassay.accountant.density.growth`. Which shift is worst depends on ε, so that no one
pair is.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.core.pair import ProfileOnly
from dpassay.accountant.density.shifts import Worst, worst
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, within
from dpassay.accountant.pairs.own_density import OfDensity, OwnDensityPair
from dpassay.accountant.pairs.two_ends import narrow_enough, passes

_ANSWERS = 64
"""Sweeps that are kept: each takes about half a second."""
_TRIES, _WIDER = 7, 16
"""Shifts, or answers wider by a factor, that are tried for ε(δ)."""
_ENOUGH = 1 + 1e-12
"""Factor of δ up to which another shift is as good: a search for a better one would go on."""
_LEAST = 2.0**-30
"""Size of ε from which on a width is relative to it."""
_FAR = ExactReal.of_rational(60)
"""Where H is nearly the mass of infinite loss, if losses do not tend to infinity slowly."""


@final
@dataclass(frozen=True)
class OwnShiftsPair(OfDensity, ProfileOnly):
    """The laws of t + X and X for the worst 0 < t ≤ distance (mirrored: of −X)."""

    law_name = "own-shifts"

    density: str
    distance: Fraction
    mirrored: bool

    @property
    def is_lopsided(self) -> bool:
        """Whether −X is not X up to a shift."""
        return self._law().axis is None

    def at(self, shift: Fraction) -> OwnDensityPair:
        """Return the pair of one shift."""
        return OwnDensityPair(self.density, shift, self.mirrored)

    def worst(self, epsilon: ExactReal) -> Worst:
        """Return the largest H(ε), and its shift."""
        return _swept(self, epsilon)

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball around both ends."""
        known = self.exact_max_loss()
        if known is not None and epsilon >= known:
            return arb(0)
        found = self.worst(epsilon)
        return arb(found.lower).union(arb(found.upper)).max(arb(0))

    def attained(self, epsilon: ExactReal) -> OwnDensityPair:
        """Return the pair of the worst shift."""
        shift = self.worst(epsilon).shift
        return self.at(shift or self.distance)

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ): below by one shift, above by a sweep there.

        Raises UndecidedError where that is too wide.
        """
        limit = delta.ball()
        shift, grown, lower = self.distance, relative_width / 4, Decimal("-Infinity")
        for _ in range(_TRIES):
            with within():  # the enclosure of one shift is not that of the worst
                one = self.at(shift).hockey_stick
                low = passes(one, delta, Fraction(1), relative_width / 4)
            lower = max(lower, low.lower)
            size = max(abs(Fraction(low.upper)), Fraction(_LEAST))
            high = Fraction(max(low.upper, lower)) + grown * size
            most = self.worst(ExactReal.of_rational(high))
            if most.upper <= limit:
                break
            if most.lower <= limit * _ENOUGH:
                grown *= _WIDER
            else:
                shift = most.shift
        else:
            raise UndecidedError(f"No upper end of epsilon was proved at delta={delta}.")
        found = Interval(lower, Interval.of_exact(high, 20).upper)
        return narrow_enough(found, relative_width, "shifts were not told closer")

    def bound(self, epsilon: ExactReal) -> arb:
        """Return the upper end of a sweep."""
        return arb(self.worst(epsilon).upper)

    refusal = (
        "Which shift of a density with several modes is worst depends on epsilon: only delta and "
        "epsilon are known. Ask for these."
    )

    def max_loss(self) -> arb:
        """Return that, or what the full distance has at least."""
        known = self.exact_max_loss()
        if known is not None:
            return known.ball()
        least = self.at(self.distance).max_loss()
        if least.is_finite() or least.is_nan():
            least = (least if least > 0 else arb(0)).union(arb.pos_inf())
        return least

    def infinity_mass(self) -> arb:
        """Return the largest mass of P where Q has none."""
        if not any(part.is_zero for part in self._law().pieces.parts):
            return arb(0)
        found = self.worst(_FAR)
        return self.at(found.shift or self.distance).infinity_mass().union(arb(found.upper))


@functools.lru_cache(maxsize=_ANSWERS)
def _swept(pair: OwnShiftsPair, epsilon: ExactReal) -> Worst:
    def value(shift: Fraction) -> arb:
        return pair.at(shift).hockey_stick(epsilon)

    return worst(pair._law(), float(epsilon), pair.distance, value)
