"""The Fourier transform of a density on an interval, at high frequencies: expansion at the ends.

By parts, m times, with D^(k) the derivatives of the density D on [a, b],

    ∫ D(y) e^{iωy} dy = Σ_{k<m} (−1)^k (iω)^{−k−1} [D^(k)(y) e^{iωy}]_a^b + R,

where |R| ≤ ω^{−m} ∫ |D^(m)|.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from flint import arb

from accountant.composition.node_values import (
    ROW,
    UNIT,
    Array,
    Factor,
    angle_error,
    circle,
    fraction_of_turn,
)

_SLACK = 1 + 1e-6


@final
@dataclass(frozen=True)
class End:
    """One end of the interval."""

    place: arb
    atom: arb
    """The mass there."""
    derivatives: tuple[arb, ...]
    """D, D', …: of the density as seen from its other end, so negated at the lower one."""


@final
class EndExpansion(Factor):
    """φ(ω) at the frequencies kh from `least` on, where |R| is at most `rest`."""

    def __init__(
        self,
        ends: tuple[End, End],
        step: float,
        count: int,
        rows: int,
        *,
        least: float,
        rest: float,
    ) -> None:
        self.count = count
        self._step, self._tables, self._terms = step, [], []
        size = 0.0
        for end in ends:
            turn = end.place * arb(step) / (2 * arb.pi())
            inner = circle([fraction_of_turn(turn)], ROW)[:, 0]
            outer = circle([fraction_of_turn(turn * ROW)], rows)[:, 0]
            self._tables.append((outer, inner))
            slopes = [float(value.mid()) for value in end.derivatives]
            # (−1)^k/i^{k+1} = −i·i^k
            terms = [-1j * 1j**k * slope for k, slope in enumerate(slopes)]
            self._terms.append((float(end.atom.mid()), terms))
            size += float(end.atom) + sum(abs(x) / least ** (k + 1) for k, x in enumerate(slopes))
        most = len(ends[0].derivatives)
        self._error = size * (angle_error(rows) + (8 * most + 20) * UNIT) * _SLACK + rest

    def rows(self, first: int, last: int) -> tuple[Array, float]:
        """Return the values."""
        over = 1 / (np.arange(first * ROW, last * ROW) * self._step)
        total = np.zeros(len(over), dtype=complex)
        for (outer, inner), (atom, terms) in zip(self._tables, self._terms, strict=True):
            series = np.zeros(len(over), dtype=complex)
            for term in reversed(terms):
                series = (series + term) * over
            turned = (outer[first:last, None] * inner[None, :]).ravel()
            total += (series + atom) * turned
        return total, self._error


@final
class Stitched(Factor):
    """One factor in the first rows, and another one in the others."""

    def __init__(self, low: Factor, rows: int, high: Factor) -> None:
        self.count = low.count
        self._low, self.first_rows, self._high = low, rows, high

    def rows(self, first: int, last: int) -> tuple[Array, Array | float]:
        """Return the values of both, with their errors."""
        parts, errors = [], []
        for factor, start, stop in (
            (self._low, first, min(last, self.first_rows)),
            (self._high, max(first, self.first_rows), last),
        ):
            if start < stop:
                values, own = factor.rows(start, stop)
                parts.append(values)
                errors.append(np.broadcast_to(own, len(values)))
        return np.concatenate(parts), np.concatenate(errors)
