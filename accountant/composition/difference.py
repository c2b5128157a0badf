"""The transform of outcomes with a loss that is not small, at nodes: a difference of two products.

See `accountant.composition.decisive`. With Φ and Ψ the characteristic functions of the tilted
laws, whole and of small losses alone, each less its centre, a = Π (T_i(c)/M_i(c))^{k_i} and D the
difference of the centres, it is Φ − a e^{iDω} Ψ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from flint import arb

from accountant.composition.laws import Law
from accountant.composition.node_values import (
    ROW,
    UNIT,
    Values,
    angle_error,
    circle,
    fraction_of_turn,
    products,
)

_SLACK = 1 + 1e-6


@final
class Difference:
    """Φ − a e^{iDω} Ψ at the nodes ω = kh, or Φ where there is no law of small losses."""

    def __init__(
        self, laws: Sequence[Law], small: Sequence[Law], c: arb, step: float, rows: int
    ) -> None:
        self._whole = [law.factor(c, step, rows) for law in laws]
        self._small = [law.factor(c, step, rows) for law in small]
        self.number = len(self._whole)
        if small:
            log_scale, centre = arb(0), arb(0)
            for law, part in zip(laws, small, strict=True):
                log_scale += law.count * (part.moment(c) / law.moment(c)).log()
                centre += law.count * (part.mean(c) - law.mean(c))
            self._scale = float(log_scale.exp())
            turn = centre * arb(step) / (2 * arb.pi())
            self._inner = circle([fraction_of_turn(turn)], ROW)[:, 0]
            self._outer = circle([fraction_of_turn(turn * ROW)], rows)[:, 0]
            self._error = angle_error(rows) + 16 * UNIT

    def values(self, first: int, last: int) -> Values:
        """Return the values at the nodes of some rows; bounds of mean sizes are those of Φ."""
        found = products(self._whole, first, last)
        if not self._small:
            return found
        other = products(self._small, first, last)
        turn = (self._outer[first:last, None] * self._inner[None, :]).ravel()
        moved = self._scale * (other.values * turn)
        errors = found.errors + self._scale * other.errors
        errors = errors + UNIT * np.abs(found.values) + self._error * np.abs(moved)
        return Values(found.values - moved, errors * _SLACK, found.first, found.second)
