"""The profiles of a density against cells of shifts, bounded from above for all ε ≥ 0 at once.

On a cell J of y let p be at least the mass of f, q at most that of f(y + t), for every t of a cell
of shifts, and r₁ ≤ f(y + t)/f(y) ≤ r₂. As (1 − cr)⁺ is convex in r and falls, the integral of
(f(y) − c f(y + t))⁺ over J is at most that of p shared among r₁ and r₂ with the mean q/p, or r₁
where that is larger. So errors are of the second order in the width of J, and of the first in that
of the shifts.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple, final

import numpy as np

from accountant.density.law import Law
from accountant.density.line import BITS, SLACK, Line
from accountant.density.pieces import Piece
from accountant.density.ranges import Array, Range, Ranges, number_ends, product, total
from accountant.numbers.precision import ctx

_CELLS = 768
"""Cells of y: fewer err more, by their square; more take longer."""
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
_SHARE = 2.0**-20
"""What is added to shares of a cell for rounding, and the least spread that is shared."""
_WIDEST = 50.0
"""Spread of losses on a cell from which on it is not shared."""


class Losses(NamedTuple):
    """Bounds of the loss on cells of y, and of the mass of Q there from below."""

    least: Array
    most: Array
    mass: Array


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
            self._ends = float(whole.lower()) * (1 - SLACK), float(whole.upper()) * (1 + SLACK)
            self._line = Line(law, distance, self._ends[0] * SMALL**2)
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

    def losses(self, low: Fraction, high: Fraction) -> Losses:
        """Return bounds of the loss on every cell of y, for all shifts of a cell."""
        piece, a, b = self._cells
        found = Losses(np.full(len(a), np.inf), np.full(len(a), -np.inf), np.zeros(len(a)))
        ends = number_ends(low)[0], number_ends(high)[1]
        for i, part in enumerate(self._line.parts):
            here = np.flatnonzero(piece == i)
            if part.is_zero or not len(here):
                continue
            y = a[here], b[here]
            t = np.full(len(here), ends[0]), np.full(len(here), ends[1])
            for j, rows in self._line.inside(y, t):
                near = self._smoothly(part, self._line.parts[j], _of(y, rows), _of(t, rows))
                for column, values in zip(found, near, strict=True):
                    column[here[rows]] = values
            rest = np.flatnonzero(~np.isfinite(found.least[here] - found.most[here]))
            (least, most), _ = self._line.losses(i, _of(y, rest), _of(t, rest))
            found.least[here[rest]], found.most[here[rest]] = least, most
            found.mass[here[rest]] = 0.0
        return found

    def _smoothly(self, p: Piece, q: Piece, y: Range, t: Range) -> Losses:
        """Return the loss in the middle, and its slopes times half the widths; and the mass of Q.

        With h the width of y that is at least h f(x) − h³/24 max f of max(−f″/f, 0), x the middle.
        """
        x = total(y, t)
        width, (mid_y, half_y), (mid_t, half_t) = y[1] - y[0], _middle(y), _middle(t)
        slopes, ranges = Ranges(*y, p.known)(p.slope), Ranges(*x, q.known)
        slope, bend = ranges(q.slope), ranges(q.bend)
        moved = total((mid_y, mid_y), (mid_t, mid_t))
        here, there = Ranges(mid_y, mid_y, p.known)(p.log), Ranges(*moved, q.known)(q.log)
        along = product(total(slopes, (-slope[1], -slope[0])), (-half_y, half_y))
        across = product(slope, (-half_t, half_t))
        loss = total(total(here, (-there[1], -there[0])), total(along, across))
        off = np.maximum(np.abs(x[0]), np.abs(x[1])) * SLACK
        steep = np.maximum(np.abs(slope[0]), np.abs(slope[1]))
        flattest = np.maximum(np.maximum(slope[0], -slope[1]), 0.0)
        bent = np.maximum(-(flattest**2 + bend[0]), 0.0)
        with np.errstate(invalid="ignore", over="ignore"):
            least = np.exp(there[0] - steep * (half_t + off)) * (1 - SUMS)
            most = np.exp(there[1] + steep * (half_y + half_t + off)) * (1 + SUMS)
            mass = width * (least - width**2 / 24 * most * bent) / self._ends[1] * (1 - SUMS)
        return Losses(*loss, np.where(mass > 0, mass, 0.0))

    def _atoms(self, found: Losses) -> tuple[Array, Array]:
        """Return losses and masses under P: the mass of each cell, shared among its two losses."""
        with np.errstate(all="ignore"):
            wide, narrow = np.exp(-found.least), np.exp(-found.most)
            mean = np.clip(found.mass / self._mass, narrow, wide)
            share = (wide - mean) / (wide - narrow) + _SHARE
            spread = found.most - found.least
            shared = (share < 1) & (spread > _SHARE) & (spread < _WIDEST) & (found.least > -_FAR)
        share = np.where(shared, share, 1.0)
        losses = np.append(found.most, np.where(shared, found.least, found.most))
        return losses, np.append(self._mass * share, self._mass * (1 - share)) * (1 + SUMS)

    def _refine(self) -> None:
        """Halve the cells of y that matter most for a few shifts."""
        while True:
            self._mass = self._masses(*self._cells)
            if len(self._mass) >= _CELLS:
                return
            cost = np.zeros(len(self._mass))
            for n in (1, 2, 3, 4):
                shift = self._distance * n / 4
                found = self.losses(shift, shift)
                with np.errstate(invalid="ignore"):
                    spread = np.minimum(found.most - found.least, 1.0)
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
        """Return upper bounds of the masses of cells.

        With m the middle and h the width the integral is at most h f(m) + h³/24 max f″, and what
        rounding m costs; or h max f.
        """
        found = np.zeros(len(a))
        for i, part in enumerate(self._line.parts):
            here = np.flatnonzero(piece == i)
            if part.is_zero or not len(here):
                continue
            low, high = a[here], b[here]
            width, middle = np.nextafter(high - low, np.inf), low + (high - low) / 2
            ranges = Ranges(low, high, part.known)
            f, slope = ranges(part.tree), ranges(part.slope)
            bend = product(f, total(product(slope, slope), ranges(part.bend)))[1]
            off = np.maximum(np.abs(low), np.abs(high)) * SLACK
            steep = np.maximum(np.abs(slope[0]), np.abs(slope[1])) * f[1]
            at = Ranges(middle, middle, part.known)(part.tree)[1]
            with np.errstate(invalid="ignore", over="ignore"):
                curved = width * (at + off * steep + width**2 / 24 * np.maximum(bend, 0))
                plain = width * f[1]
                found[here] = np.fmin(plain, np.where(np.isnan(curved), np.inf, curved))
        result: Array = found / self._ends[0] * (1 + SUMS)
        return result

    def median(self, shift: Fraction) -> float:
        """Return about the median size of the finite losses."""
        found = self.losses(shift, shift)
        with np.errstate(invalid="ignore"):
            size = np.abs(found.least / 2 + found.most / 2)
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
        losses, mass = self._atoms(self.losses(*shifts))
        order = np.argsort(-losses)
        losses, mass = losses[order], mass[order]
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
            new = [half for i in split for half in _halves(*new[i])]
        return np.maximum.reduce(done), known


def _halves(low: Fraction, high: Fraction) -> Iterator[tuple[Fraction, Fraction]]:
    middle = (low + high) / 2
    yield from ((low, middle), (middle, high))


def _middle(x: Range) -> Range:
    """Return the middle of intervals, rounded, and at least half their widths."""
    middle = x[0] + (x[1] - x[0]) / 2
    return middle, np.nextafter(np.maximum(x[1] - middle, middle - x[0]), np.inf)


def _of(x: Range, rows: Array) -> Range:
    return x[0][rows], x[1][rows]
