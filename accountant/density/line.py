"""A density against its shifts on the whole line: cells of y, and the range of the loss on each.

With y = x − t, P at x is f(y) and Q is f(y + t), so that the loss is ln f(y) − ln f(y + t).
"""

from __future__ import annotations

from fractions import Fraction
from typing import final

import numpy as np

from dpassay.accountant.density.balls import real
from dpassay.accountant.density.law import Law
from dpassay.accountant.density.pieces import Piece
from dpassay.accountant.density.ranges import Array, Range, Ranges, number_ends, product, total
from dpassay.accountant.density.tree import ZERO
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx

SLACK = 2.0**-45
"""Relative rounding of a sum over the ends, of which there are fewer than a hundred."""
BITS = 96
"""Bits of the balls: the proof is in floats."""
_FARTHEST = Fraction(1 << 80)
"""Beyond it no tail is followed."""


def ends_of(law: Law) -> Range:
    """Return the points between the pieces, rounded down and up."""
    places = law.pieces.breaks
    return (
        np.array([number_ends(place.low)[0] for place in places]),
        np.array([number_ends(place.high)[1] for place in places]),
    )


@final
class Line:
    """Edges of cells of y on every piece, how far they reach, and f beyond on both sides."""

    def __init__(self, law: Law, distance: Fraction, least: float) -> None:
        self.parts = law.pieces.parts
        self._lows, self._highs = ends_of(law)
        reach, beyond = [], []
        for side in (law.mirrored, law):
            end = side.support[1]
            tail = side.pieces.right
            if tail is None or end is not None:
                reach.append(float(end or 0) + 1)
                beyond.append(0.0)
                continue
            for start in (Fraction(2) ** n for n in range(1, 81)):
                if start < tail.start + distance:
                    continue
                with ctx.workprec(BITS):
                    left = real(side.pieces.parts[-1].log, ball(start - distance)).exp().upper()
                    if left <= least or start >= _FARTHEST:
                        break
            reach.append(float(start))
            beyond.append(float(left) * (1 + SLACK))
        steps = sorted(s * 2.0**n * m for n in range(-6, 81) for s in (-1, 1) for m in (1, 1.5))
        self.reach, self.beyond = (reach[0], reach[1]), (beyond[0], beyond[1])
        self.edges: list[Array] = []
        for i in range(len(self.parts)):
            low = -reach[0] if i == 0 else self._lows[i - 1]
            high = reach[1] if i == len(self.parts) - 1 else self._highs[i]
            even = np.linspace(max(low, -8.0), min(high, 8.0), 33).tolist()
            inner = {x for x in (0.0, *steps, *even) if low < x < high}
            self.edges.append(np.array(sorted({low, high, *inner})))

    def losses(
        self, i: int, y: Range, shifts: Range, level: float | None = None
    ) -> tuple[Range, Array]:
        """Return bounds of the loss on cells of y in piece i, where f > 0, for cells of shifts.

        Closely about `level` alone, where one is given. And whether the loss depends on t alone, so
        that no smaller cell of y is told.
        """
        (a, b), (low, high) = y, shifts
        flat = np.zeros(len(a), dtype=bool)
        least, most = np.full(len(a), np.inf), np.full(len(a), -np.inf)
        moved = total((a, b), (low, high))
        for j, part in enumerate(self.parts):
            start = -np.inf if j == 0 else self._lows[j - 1]
            stop = np.inf if j == len(self.parts) - 1 else self._highs[j]
            met = np.flatnonzero((moved[1] >= start) & (moved[0] <= stop))
            if not len(met):
                continue
            if part.is_zero:
                most[met] = np.inf
                continue
            here, t = (a[met], b[met]), (low[met], high[met])
            x = np.maximum(moved[0][met], start), np.minimum(moved[1][met], stop)
            inside = (moved[0][met] >= start) & (moved[1][met] <= stop)
            found = self._loss(i, j, (here, t, x), inside, level)
            flat[met] |= inside & (i == j) & (part.slope.op == "num")
            least[met] = np.minimum(least[met], found[0])
            most[met] = np.maximum(most[met], found[1])
        return (least, most), flat

    def _loss(
        self, i: int, j: int, box: tuple[Range, Range, Range], inside: Array, level: float | None
    ) -> Range:
        """Return the range of ln f(y) − ln f(x), x = y + t: where it is open, of three forms."""
        (p, q), (y, _, x) = (self.parts[i], self.parts[j]), box
        if p.log == q.log and p.slope == ZERO:
            return np.zeros(len(inside)), np.zeros(len(inside))
        least, most = _less(Ranges(*y, p.known)(p.log), Ranges(*x, q.known)(q.log))
        for form in (self._about_middle, self._between)[: 2 if i == j else 1]:
            asked = inside if level is None else inside & (least <= level) & (most >= level)
            some = np.flatnonzero(asked)
            if len(some):
                found = form(p, q, *((r[0][some], r[1][some]) for r in box))
                least[some] = np.maximum(least[some], found[0])
                most[some] = np.minimum(most[some], found[1])
        return least, most

    @staticmethod
    def _about_middle(p: Piece, q: Piece, y: Range, t: Range, x: Range) -> Range:
        """Return the loss in the middle, and its slopes times half the widths."""
        slopes = Ranges(*y, p.known)(p.slope), Ranges(*x, q.known)(q.slope)
        mid_y, mid_t = y[0] + (y[1] - y[0]) / 2, t[0] + (t[1] - t[0]) / 2
        half_y, half_t = (np.nextafter(np.maximum(r[1] - m, m - r[0]), np.inf)
                          for r, m in ((y, mid_y), (t, mid_t)))  # fmt: skip
        moved = total((mid_y, mid_y), (mid_t, mid_t))
        there = _less(Ranges(mid_y, mid_y, p.known)(p.log), Ranges(*moved, q.known)(q.log))
        along = product(_less(*slopes), (-half_y, half_y))
        return total(there, total(along, product(slopes[1], (-half_t, half_t))))

    @staticmethod
    def _between(p: Piece, q: Piece, y: Range, t: Range, x: Range) -> Range:
        """Return minus the integral of the slope from y to y + t, in one piece."""
        ends = np.minimum(y[0], x[0]), np.maximum(y[1], x[1])
        grown = product(Ranges(*ends, p.known)(p.slope), t)
        return -grown[1], -grown[0]


def _less(a: Range, b: Range) -> Range:
    return total(a, (-b[1], -b[0]))
