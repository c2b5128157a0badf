"""The profiles of a density against cells of shifts, bounded from above for all ε ≥ 0 at once.

On a cell J of y let p be at least the mass of f, and l at least the loss ln(f(y)/f(y + t)), for
every t of a cell of shifts. Then the integral of (f(y) − c f(y + t))⁺ over J is at most
p (1 − c e^{−l})⁺. The cells are many and narrow where that matters: errors are of the first order
in their width and in that of the shifts.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import final

import numpy as np

from accountant.density.law import Law
from accountant.density.line import BITS, SLACK, Line
from accountant.density.ranges import Array, Range, Ranges, number_ends
from accountant.numbers.precision import ctx

_CELLS = 8192
"""Cells of y: fewer err more, in proportion; more take longer."""
_SHIFTS = 96
"""Cells of shifts that are looked at: about half a second."""
_FIRST = 16
"""Cells of shifts at first."""
_NEAR = 1e-3
"""Relative excess of a cell of shifts over the best known that is left."""
_FLOOR = 1e-12
"""A profile below it counts as absolute in that."""
_FAR = 600.0
"""Losses that count as infinite: e^ε ends above."""
SMALL = 1e-16
"""A profile so near its limit is taken for it."""
SUMS = 2.0**-36
"""Relative rounding of sums over the cells, and of their terms."""


@final
class Profiles:
    """A density against its shifts to the right."""

    def __init__(self, law: Law, distance: Fraction) -> None:
        self._distance = distance
        breaks = [place.low for place in law.pieces.breaks]
        kinks = {abs(a - b) for a in breaks for b in breaks}
        self._kinks = sorted(t for t in kinks if 0 < t < distance)[: _SHIFTS // 4]
        with ctx.workprec(BITS):
            whole = law.total()
            self._total = float(whole.lower()) * (1 - SLACK)
            self._line = Line(law, distance, self._total * SMALL**2)
            left, right = (Fraction(end) for end in self._line.reach)
            far = law.above(right) + law.mirrored.above(left)
            self._beyond = float((far / whole).upper()) * (1 + SLACK)
        edges = self._line.edges
        self._cells = (
            np.concatenate([np.full(len(each) - 1, i) for i, each in enumerate(edges)]),
            np.concatenate([each[:-1] for each in edges]),
            np.concatenate([each[1:] for each in edges]),
        )
        self._refine()

    def losses(self, low: Fraction, high: Fraction) -> Range:
        """Return bounds of the loss on every cell of y, for all shifts of a cell."""
        piece, a, b = self._cells
        least, most = np.full(len(a), np.inf), np.full(len(a), -np.inf)
        ends = number_ends(low)[0], number_ends(high)[1]
        for i, part in enumerate(self._line.parts):
            here = np.flatnonzero(piece == i)
            if not part.is_zero and len(here):
                t = np.full(len(here), ends[0]), np.full(len(here), ends[1])
                (least[here], most[here]), _ = self._line.losses(i, (a[here], b[here]), t)
        return least, most

    def _refine(self) -> None:
        """Halve the cells of y that matter most for a few shifts."""
        while True:
            self._mass = self._masses(*self._cells)
            if len(self._mass) >= _CELLS:
                return
            cost = np.zeros(len(self._mass))
            for n in (1, 2, 3, 4):
                shift = self._distance * n / 4
                least, most = self.losses(shift, shift)
                with np.errstate(invalid="ignore"):
                    spread = np.minimum(most - least, 1.0)
                cost = np.maximum(cost, np.sqrt(self._mass) * np.where(spread > 0, spread, 0.0))
            piece, a, b = self._cells
            worst = np.argsort(-cost)[: max(64, len(cost) // 3)]
            middle = a[worst] + (b[worst] - a[worst]) / 2
            split = worst[(cost[worst] > 0) & (a[worst] < middle) & (middle < b[worst])]
            if not len(split):
                return
            middle = a[split] + (b[split] - a[split]) / 2
            ends = b.copy()
            ends[split] = middle
            self._cells = (
                np.append(piece, piece[split]), np.append(a, middle), np.append(ends, b[split])
            )  # fmt: skip

    def _masses(self, piece: Array, a: Array, b: Array) -> Array:
        """Return upper bounds of the masses of cells."""
        found = np.zeros(len(a))
        for i, part in enumerate(self._line.parts):
            here = np.flatnonzero(piece == i)
            if not part.is_zero and len(here):
                most = Ranges(a[here], b[here], part.known)(part.tree)[1]
                found[here] = np.nextafter(b[here] - a[here], np.inf) * most
        return found / self._total * (1 + SUMS)

    def median(self, shift: Fraction) -> float:
        """Return about the median size of the finite losses."""
        least, most = self.losses(shift, shift)
        with np.errstate(invalid="ignore"):
            size = np.abs(least / 2 + most / 2)
        order = np.argsort(size)
        order = order[np.isfinite(size[order])]
        if not len(order):
            return 0.0
        mass = np.cumsum(self._mass[order])
        return float(size[order][np.searchsorted(mass, mass[-1] / 2)])

    def top(self, shift: Fraction) -> float:
        """Return an ε beyond which the profile hardly falls."""
        levels = np.geomspace(SMALL, _FAR, 512)
        found = self._profile((shift, shift), np.exp(levels))
        return float(levels[np.argmax(found <= found[-1] + SMALL)])

    def _profile(self, shifts: tuple[Fraction, Fraction], c: Array) -> Array:
        """Return U at c ≥ 1, for a cell of shifts."""
        losses = self.losses(*shifts)[1]
        order = np.argsort(-losses)
        losses, mass = losses[order], self._mass[order]
        p = np.append(0.0, np.cumsum(mass))
        q = np.append(0.0, np.cumsum(mass * np.exp(-np.maximum(losses, 0.0))))
        count = np.searchsorted(-losses, -np.log(c))
        found: Array = np.maximum(p[count] * (1 + SUMS) - c * q[count] * (1 - SUMS), 0.0)
        return found + self._beyond

    def profiles(self, c: Array) -> tuple[Array, dict[Fraction, Array]]:
        """Return U over all shifts, and at single ones."""
        known: dict[Fraction, Array] = {}
        done: list[Array] = []
        edges = {self._distance * n / _FIRST for n in range(_FIRST + 1)} | set(self._kinks)
        new, seen = list(pairwise(sorted(edges))), 0
        while new:
            seen += len(new)
            found = [self._profile(cell, c) for cell in new]
            for _, high in new:
                if high not in known:
                    known[high] = self._profile((high, high), c)
            best = np.maximum.reduce(list(known.values()))
            excess = [float(np.max((u - best) / (best + _FLOOR))) for u in found]
            ranked = sorted(range(len(new)), key=lambda i: -excess[i])
            split = [i for i in ranked if excess[i] > _NEAR][: max(0, _SHIFTS - seen) // 2]
            done += [u for i, u in enumerate(found) if i not in split]
            middles = [(low + high) / 2 for low, high in new]
            new = [half for i in split for half in pairwise((new[i][0], middles[i], new[i][1]))]
        return np.maximum.reduce(done), known
