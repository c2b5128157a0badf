"""How much the divergence of a density from itself grows with the shift, with proof.

P_u has the density f(x − u), Q has f, c = e^ε. A_t = {y : f(y) > c f(y + t)} is the best set for
the shift t, in y = x − t: H_t = V_t(A_t) with V_u(B) = ∫ f(y) − c f(y + u) over y in B. For shifts
t and s let B_u, u between them, be A_s for u = s, with some ends held fixed in y and the others in
y + u. Then H_s − H_t ≤ V_s(B_s) − V_t(B_t), and V_u(B_u) has, almost everywhere, the derivative

    Σ g(a) − Σ g(b) over the intervals (a, b) of A_s, with g(e) = c f(e + u) of an end held fixed
    in y, g(e) = f(e + s − u) of the others.

So over a cell of shifts H grows to the right at most by the largest, to the left at most by minus
the smallest such sum. Either choice serves where f is continuous; an end where f(y) jumps is held
fixed in y, one where f(y + t) jumps in y + u. Ends move by at most the width h of the cell: two
zones of ends that are nearer to each other are held fixed alike.

*Ends.* Ranges in floats (`ranges`) prove of cells of y whether they lie in A_s for all s of a cell;
zones (p, q) between them stay open. Where the sides before and after a zone differ by
σ = −1, 0, 1, the alternating sum of f over the ends in it, moved by v, differs from σ f(p) by at
most the variation of f on (p, q + h) for v ≥ 0, or from σ f(q) by that on (p − h, q) for v ≤ 0:
pair neighbours. So does that of c f(e + u). Beyond the last cells f is monotone.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import final

import numpy as np

from dpassay.accountant.density.law import Law
from dpassay.accountant.density.line import BITS, SLACK, Line, ends_of
from dpassay.accountant.density.pieces import jump
from dpassay.accountant.density.ranges import Array, Range, Ranges, total
from dpassay.accountant.density.tree import derivative
from dpassay.accountant.numbers.precision import ctx

MOST_CELLS = 1 << 16
"""Cells of y at once, and 16 times as many as cells of shifts in all: about a second."""
_TINY = 2.0**-60
"""Share of the best value by which growths over the whole distance may be rounded up."""
_MANY_SUMS = 2.0**-36
"""Relative rounding of a sum over up to 2^16 cells."""
HIGHEST = 700.0
"""Exponents of floats end above."""
_CALL = 30
"""Cells that take as long as a look at one piece."""
UNIT = 2.0**-53
"""Relative rounding of one operation with floats."""


class _Sides:
    """Cells of y in order: of which cell of shifts, piece, ends, side, and variation of f."""

    def __init__(self, count: int, *columns: Array) -> None:
        self.cell, self.piece, self.a, self.b, self.side, variation = columns
        self._variation = np.append(np.where(self.side == 0, variation, 0.0), 0.0)
        self.known = np.flatnonzero(self.side != 0)
        self.first = np.searchsorted(self.cell[self.known], np.arange(count))
        self.last = np.append(self.first[1:], len(self.known)) - 1
        """Of each cell of shifts, among those whose side is known."""

    def varied(self, start: Array, stop: Array) -> Array:
        """Return bounds of the variation in the open cells from some on up to others."""
        if not len(start):
            return np.zeros(0)
        sums = np.add.reduceat(self._variation, np.stack([start, stop], axis=1).ravel())[::2]
        return np.where(stop > start, sums * (1 + _MANY_SUMS), 0.0)

    def alone(self, x: Array, y: Array, width: Array) -> Array:
        """Return which zones, between x and y, are farther from all others than ends move."""
        if not len(x):
            return np.zeros(0, dtype=bool)
        a, b, cell = self.a, self.b, self.cell[x]
        room = width[cell] * (1 + SLACK) + 2.0**-50 * np.maximum(np.abs(b[x]), np.abs(a[y]))
        same = np.diff(cell) == 0
        gap = b[x[1:]] - a[y[:-1]]
        edge = b[x] - a[self.known[self.first[cell]]], b[self.known[self.last[cell]]] - a[y]
        before = np.where(np.append(False, same), np.append(0.0, gap), edge[0])
        after = np.where(np.append(same, False), np.append(gap, 0.0), edge[1])
        found: Array = (before >= room) & (after >= room)
        return found


@final
class Growth:
    """Bounds of the growth of H over cells of shifts, for one density, c and distance."""

    def __init__(self, law: Law, level: float, distance: Fraction, scale: float) -> None:
        self._parts, self._level = law.pieces.parts, level
        self._changes = [derivative(part.tree) for part in self._parts]
        with ctx.workprec(BITS):
            whole = law.total()
            self._total = float(whole.lower()) * (1 - SLACK), float(whole.upper()) * (1 + SLACK)
        self._least = _TINY * scale * self._total[0]
        self._lows, self._highs = ends_of(law)
        jumps = [self._jump(law, i) for i in range(len(self._lows))]
        self._jumps = np.concatenate([[0.0], np.cumsum(jumps)])
        self.work = 0
        self._line = Line(law, distance, self._least)

    def _jump(self, law: Law, i: int) -> float:
        if law.pieces.continuous:
            return 0.0
        place = law.pieces.breaks[i]
        with ctx.workprec(BITS):
            size = abs(jump(self._parts[i].tree, self._parts[i + 1].tree, place)).upper()
            return float(size) * (1 + SLACK) if size.is_finite() else math.inf

    def rates(self, low: Array, high: Array, *, coarse: float = 0.0) -> tuple[Array, Array, Array]:
        """Return for each cell of shifts bounds of H′ to the right and to the left, and about H′.

        Growth to the right is at most the first; H′ is at least the second where H is followed to
        the left. They are in units of H per unit of the shift.
        """
        width = np.nextafter(high - low, np.inf)
        line = self._sides(low, high, np.maximum(width / 2, coarse))
        a, b, piece, side = line.a, line.b, line.piece, line.side
        # zones between neighbours that are known, and before the first and after the last
        x, y = line.known[:-1], line.known[1:]
        inner = (line.cell[x] == line.cell[y]) & ((y > x + 1) | (side[x] != side[y]))
        x, y = x[inner], y[inner]
        k, sigma = line.cell[x], (side[y] - side[x]) / 2
        open_part = line.varied(x + 1, y)
        ends = np.minimum(a[x + 1], b[x]), np.maximum(a[y], b[y - 1])
        other = self._fixed(sigma, ends, (low[k], high[k]))
        alone = line.alone(x, y, width)
        most, least, middle = (np.zeros(len(low)) for _ in range(3))
        for way in (1, -1):
            at = x + 1 if way > 0 else y - 1
            edge = (a[at], b[x]) if way > 0 else (a[y], b[at])
            value = self._at(piece[at], np.minimum(*edge), np.maximum(*edge))
            near, last = (a[y], b[y - 1]) if way > 0 else (b[x], a[x + 1])
            far = np.nextafter(last + way * width[k], way * np.inf)
            spread = open_part + self._extra(near, far) + self._jumped(piece[at], far, way)
            bound = np.where(sigma > 0, value[1], -value[0]) if way > 0 else np.where(
                sigma > 0, value[0], -value[1])  # fmt: skip
            whole = np.where(sigma == 0, 0.0, bound) + way * spread
            whole = whole + way * SLACK * (np.abs(bound) + spread)
            better = np.minimum(whole, other[1]) if way > 0 else np.maximum(whole, other[0])
            np.add.at(most if way > 0 else least, k, np.where(alone, better, whole))
            np.add.at(middle, k, sigma * (value[0] + value[1]) / 4)
        outside = self._outside(line, width)
        most, least = most + outside, least - outside
        scale = self._total
        up = np.where(most > 0, most / scale[0], most / scale[1])
        down = np.where(least > 0, least / scale[1], least / scale[0])
        error = SLACK * 2**-4
        return up + error * np.abs(up), down - error * np.abs(down), middle / scale[0]

    def _fixed(self, sigma: Array, zone: Range, shifts: Range) -> Range:
        """Return bounds of the sums over the ends in zones that are held fixed in y."""
        if self._level > HIGHEST:
            return np.full(len(sigma), -np.inf), np.full(len(sigma), np.inf)
        start, stop = total(zone, shifts)
        piece = np.searchsorted(self._lows, start, side="left")
        piece = np.minimum(piece, np.searchsorted(self._highs, start, side="right"))
        value = self._at(piece, start, start)
        spread = self._extra(start, stop) + self._jumped(piece, np.nextafter(stop, np.inf), 1)
        bound = np.where(sigma > 0, value[0], -value[1]), np.where(sigma > 0, value[1], -value[0])
        scale = np.exp(self._level) * (1 + SLACK * (1 + abs(self._level)))
        most = np.where(sigma == 0, 0.0, bound[1]) + spread
        least = np.where(sigma == 0, 0.0, bound[0]) - spread
        error = SLACK * (1 + abs(self._level)) * (np.abs(value[1]) + spread)
        return scale * (least - error), scale * (most + error)

    def _outside(self, line: _Sides, width: Array) -> Array:
        """Return the variation of f in what is open before the first cell known, and after."""
        count = len(width)
        starts = np.searchsorted(line.cell, np.arange(count + 1))
        some = line.last >= line.first
        known = line.known if len(line.known) else np.zeros(1, dtype=int)
        x = known[np.minimum(line.first, len(known) - 1)]
        y = known[line.last]
        result = np.full(count, sum(self._line.beyond))
        none = line.varied(starts[:-1], starts[1:]) + self._jumps[-1]
        result += np.where(some, line.varied(starts[:-1], x), none)
        result += np.where(some, line.varied(y + 1, starts[1:]), none)
        for near, way in ((line.a[x], 1), (line.b[y], -1)):
            room = np.abs(near) * 2.0**-50
            far = np.nextafter(near + way * (width + room), way * np.inf)
            extra = self._extra(near - way * room, far)
            crossed = self._jumped(np.full(count, 0 if way > 0 else len(self._lows)), far, way)
            result += np.where(some, extra + crossed, 0.0)
        return result

    def _sides(self, low: Array, high: Array, finest: Array) -> _Sides:
        """Return cells of y in order, each as large as its side is known."""
        done = []
        for i, edges in enumerate(self._line.edges):
            cell = np.repeat(np.arange(len(low)), len(edges) - 1)
            a, b = np.tile(edges[:-1], len(low)), np.tile(edges[1:], len(low))
            while len(a):
                self.work += len(a) + _CALL * len(self._parts)
                side, level = self._judged(i, a, b, low[cell], high[cell])
                fine = np.maximum(finest[cell], np.maximum(np.abs(a), np.abs(b)) * 2.0**-50)
                kept = (side != 0) | level | (b - a <= fine)
                kept |= self._at(np.full(len(a), i), a, b)[1] <= self._least
                if np.count_nonzero(~kept) > MOST_CELLS:
                    kept |= True
                n = np.count_nonzero(kept)
                ends = a[kept], b[kept]
                variation = np.where(side[kept] == 0, self._variation(i, *ends), 0.0)
                done.append((cell[kept], np.full(n, i), *ends, side[kept], variation))
                cell, a, b = cell[~kept], a[~kept], b[~kept]
                shares = np.arange(5) / 4
                parts = a[:, None] + (b - a)[:, None] * shares
                parts[:, -1] = b
                cell, a, b = np.repeat(cell, 4), parts[:, :-1].ravel(), parts[:, 1:].ravel()
        columns = [np.concatenate(column) for column in zip(*done, strict=True)]
        order = np.lexsort((columns[2], columns[1], columns[0]))
        return _Sides(len(low), *(column[order] for column in columns))

    def _judged(self, i: int, a: Array, b: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Return 1 where f(y) > c f(y + t) is proved, −1 where not, 0 where it is open.

        And whether the loss depends on t alone, so that no smaller cell of y is told.
        """
        if self._parts[i].is_zero:
            return np.full(len(a), -1), np.zeros(len(a), dtype=bool)
        (least, most), flat = self._line.losses(i, (a, b), (low, high), self._level)
        room = 4 * UNIT * abs(self._level)
        side = np.where(
            least > self._level + room, 1, np.where(most <= self._level - room, -1, 0)
        )  # fmt: skip
        return side, flat

    def _variation(self, i: int, a: Array, b: Array) -> Array:
        """Return a bound of the variation of f on cells of a piece."""
        part = self._parts[i]
        if part.is_zero or not len(a):
            return np.zeros(len(a))
        ranges = Ranges(a, b, part.known)
        (low, high), (falls, rises) = ranges(part.tree), ranges(self._changes[i])
        slope = ranges(part.slope)
        monotone = (falls >= 0) | (rises <= 0) | (slope[0] >= 0) | (slope[1] <= 0)
        steep = np.maximum(np.abs(falls), np.abs(rises)) * np.maximum(b - a, 0)
        with np.errstate(invalid="ignore"):
            found = np.where(monotone, np.minimum(high - low, steep), steep)
        return np.where(np.isnan(found), np.inf, found * (1 + SLACK))

    def _extra(self, near: Array, far: Array) -> Array:
        """Return the variation of f inside its pieces from `near` to `far`, on either side."""
        low, high = np.minimum(near, far), np.maximum(near, far)
        found = np.zeros(len(near))
        for i in range(len(self._parts)):
            start = -np.inf if i == 0 else self._lows[i - 1]
            stop = np.inf if i == len(self._parts) - 1 else self._highs[i]
            met = np.flatnonzero((high > start) & (low < stop))
            if len(met):
                ends = np.maximum(low[met], start), np.minimum(high[met], stop)
                found[met] += self._variation(i, *ends)
        return found

    def _jumped(self, piece: Array, far: Array, way: int) -> Array:
        """Return the sum of the jumps of f between a piece and a point."""
        if way > 0:
            end = np.searchsorted(self._lows, far, side="left")
            found: Array = self._jumps[np.maximum(end, piece)] - self._jumps[piece]
            return found
        end = np.searchsorted(self._highs, far, side="right")
        before: Array = self._jumps[piece] - self._jumps[np.minimum(end, piece)]
        return before

    def _at(self, piece: Array, low: Array, high: Array) -> Range:
        """Return f at points, by the formula of a piece."""
        least, most = np.zeros(len(piece)), np.zeros(len(piece))
        for i, part in enumerate(self._parts):
            here = np.flatnonzero(piece == i)
            if len(here) and not part.is_zero:
                found = Ranges(low[here], high[here], part.known)(part.tree)
                least[here], most[here] = np.maximum(found[0], 0), found[1]
        return least, most
