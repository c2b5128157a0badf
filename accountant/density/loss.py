"""Where the privacy loss of a shifted density is monotone, and where it exceeds a level.

P has the density f(x − t) and Q has f(x), t > 0: the loss is l(x) = ln f(x − t) − ln f(x). Between
the ends of the pieces of both densities, a sweep proves the sign of l′. It uses ranges of the
slopes of ln f, or their values at the midpoint of a cell with ranges of second derivatives, or
l′ = −t (ln f)″ at a point between x − t and x. Cells that remain undetermined, around turning
points of l, are so narrow that l hardly changes on them. For |x| > R, l is an integral of the
slopes, which `Decay` bounds.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import final

from flint import arb

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.density.balls import real
from dpassay.accountant.density.law import Law, goal
from dpassay.accountant.density.pieces import Piece
from dpassay.accountant.density.ranges import Range, Ranges, number_ends, product, total
from dpassay.accountant.density.sweep import Break, sweep
from dpassay.accountant.density.tail import nearer
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.solve import crossing, power_of_two

ABOVE, BELOW, OPEN = 1, -1, 0
"""Whether the loss on an interval is above a level, at or below it, or undetermined."""
_UP, _DOWN, _FLAT = 1, 2, 3
_CELLS = 64
"""Cells of an undetermined run whose ranges are combined; more give a narrower range of l."""
_KEPT = 64
"""Most cached sets of losses."""
_SPARE = 12
"""Bits by which a crossing is enclosed less accurately than the precision; the loss has lost
them."""


@final
@dataclass(frozen=True, slots=True)
class Stretch:
    """An interval (None: an infinite end), and whether the loss exceeds the level on it."""

    low: Fraction | None
    high: Fraction | None
    side: int
    most: arb | None = None
    """An upper bound on the loss if the side is undetermined; None for +∞."""


@final
@dataclass(frozen=True)
class Run:
    """An interval on which the loss is monotone: `way` is up, down, flat, or 0 if undetermined."""

    low: Fraction
    high: Fraction
    way: int
    p: Piece
    q: Piece
    span: tuple[float, float]
    """The range of the loss in floats, if `way` is 0."""


@final
class Losses:
    """The losses ln f(x − t) − ln f(x) for |x| ≤ R, and bounds on them beyond."""

    def __init__(self, law: Law, shift: Fraction, doublings: int) -> None:
        self._law, self.shift = law, shift
        found = law.pieces
        breaks = found.breaks
        far = max([Fraction(1), *(abs(place.low) + 1 for place in breaks)])
        starts = [tail.start for tail in (found.left, found.right) if tail is not None]
        self.reach = power_of_two(max([far, *starts]) + 2 * shift) * 2**doublings
        self.tails = [
            None if tail is None else nearer(slope, self.reach - shift, tail)
            for tail, slope in (
                (found.left, law.mirrored.pieces.parts[-1].slope),
                (found.right, found.parts[-1].slope),
            )
        ]
        self.places = _merged([*breaks, *(place.moved(shift) for place in breaks)])
        self.stretches: list[Run | Stretch] = list(self._made())

    @cached_property
    def runs(self) -> list[Run | Stretch]:
        """The intervals up to R in order, with the sign of l′ on each."""
        return [
            run
            for part in self.stretches
            for run in ([part] if isinstance(part, Stretch) else self._monotone(part))
        ]

    def _made(self) -> Iterator[Run | Stretch]:
        ends = [None, *self.places, None]
        for low, high in pairwise(ends):
            if low is not None and not low.exact:
                yield Stretch(low.low, low.high, OPEN)
            p, q = self._piece(low, high, self.shift), self._piece(low, high, Fraction(0))
            a = None if low is None else low.high
            b = None if high is None else high.low
            if p.is_zero:
                yield Stretch(a, b, BELOW)
            elif q.is_zero:
                yield Stretch(a, b, ABOVE)
            else:
                first = -self.reach if a is None else a
                last = self.reach if b is None else b
                yield Run(first, last, 0, p, q, (0.0, 0.0))

    def _piece(self, low: Break | None, high: Break | None, shift: Fraction) -> Piece:
        """Return the piece between two places, after a shift."""
        for part in self._law.pieces.parts:
            ends = [None if end is None else end.moved(shift) for end in (part.low, part.high)]
            starts = ends[0] is None or (low is not None and ends[0].low <= low.high)
            if starts and (ends[1] is None or (high is not None and high.low <= ends[1].high)):
                return part
        raise UndecidedError(
            "Which of two kinks, of the density and of its shift, comes first was not decided. "
            "Give a slightly different sensitivity."
        )

    def _monotone(self, whole: Run) -> Iterator[Run]:
        low, high, p, q = whole.low, whole.high, whole.p, whole.q
        if p.slope.op == q.slope.op == "num":
            rise = p.slope.number - q.slope.number
            way = _UP if rise > 0 else _DOWN if rise < 0 else _FLAT
            yield Run(low, high, way, p, q, (0.0, 0.0))
            return
        start, stop = number_ends(low)[0], number_ends(high)[1]
        shift = number_ends(self.shift)

        def judge(lows: Array, highs: Array) -> Array:
            least, most = _slope(lows, highs, shift, p, q)
            return np.where(least >= 0, _UP, np.where(most <= 0, _DOWN, 0))

        joined: list[list[float]] = []
        for cell in sweep(start, stop, judge):
            if joined and joined[-1][2] == cell[2]:
                joined[-1][1] = cell[1]
            else:
                joined.append([*cell])
        for begun, ended, kind in joined:
            a, b = max(Fraction(begun), low), min(Fraction(ended), high)
            if a < b:
                span = (0.0, 0.0) if kind else _span(begun, ended, shift, p, q)
                yield Run(a, b, int(kind), p, q, span)

    def loss(self, run: Run, x: Fraction) -> arb:
        """Return a ball that contains l(x), from the pieces of a run; NaN if a density is 0."""
        return real(run.p.log, ball(x - self.shift)) - real(run.q.log, ball(x))

    def against(self, epsilon: arb, sign: int) -> list[Stretch]:
        """Partition the line into intervals by whether l > ε; `sign` is the sign of ε."""
        found = []
        if (left := self._left()) is not None:
            side = ABOVE if left[0] > epsilon else BELOW if left[1] <= epsilon else OPEN
            side = BELOW if sign >= 0 else side  # l < 0 there
            found.append(Stretch(None, -self.reach, side, left[1]))
        for run in self.runs:
            found += [run] if isinstance(run, Stretch) else self._cut(run, epsilon)
        if (right := self._right()) is not None:
            side = ABOVE if right[0] > epsilon else BELOW if right[1] <= epsilon else OPEN
            side = ABOVE if sign <= 0 else side  # l > 0 there
            found.append(Stretch(self.reach, None, side, right[1]))
        return found

    def missed(self) -> list[Stretch]:
        """Return the intervals where Q (ABOVE) or P (BELOW) has no mass, and kinks (OPEN)."""
        return [run for run in self.stretches if isinstance(run, Stretch)]

    def most(self, *, finite: bool = False) -> arb:
        """Return a ball that contains sup l, or the supremum of the finite losses.

        It uses values that l attains or approaches.
        """
        least, most = arb.neg_inf(), arb.neg_inf()
        for run in self.runs:
            if isinstance(run, Stretch):
                if run.side == ABOVE and not finite:
                    return arb.pos_inf()
                if run.side == OPEN:
                    most = arb.pos_inf()
                continue
            if run.way:
                ends = [self.loss(run, run.low), self.loss(run, run.high)]
                value = ends[1] if run.way == _UP else ends[0]
                if not value.is_finite():
                    value = arb(0).union(arb.pos_inf())
            else:
                value = self._around(run)
            least, most = least.max(value.lower()), most.max(value.upper())
        for tail, around in ((self.tails[1], self._right()), (None, self._left())):
            if around is not None:
                unbounded = tail is not None and tail.power > 0
                if unbounded or around[1] == arb.pos_inf():
                    return arb.pos_inf()
                low = around[0] if around[0].is_finite() else arb.neg_inf()
                least, most = least.max(low.lower()), most.max(around[1].upper())
        return least.union(most)

    def _right(self) -> tuple[arb, arb] | None:
        """Return bounds on l for x ≥ R; None if f is 0 there."""
        tail = self.tails[1]
        if tail is None:
            return None
        return tail.drift(ball(self.reach - self.shift), ball(self.shift))

    def _left(self) -> tuple[arb, arb] | None:
        tail = self.tails[0]
        if tail is None:
            return None
        low, high = tail.drift(ball(self.reach), ball(self.shift))
        return -high, -low

    def _around(self, run: Run) -> arb:
        """Return the range of l on an undetermined run."""
        x = ball(run.low).union(ball(run.high))
        slope = real(run.p.slope, x - ball(self.shift)) - real(run.q.slope, x)
        middle = (run.low + run.high) / 2
        half = ball((run.high - run.low) / 2)
        near = self.loss(run, middle) + slope * half * arb(0, 1)
        span = arb(run.span[0]).union(arb(run.span[1]))
        if near.is_finite() and span.is_finite():
            return near.intersection(span)
        return near if near.is_finite() else span

    def _cut(self, run: Run, epsilon: arb) -> list[Stretch]:
        """Split a run into intervals above and below a level."""
        low, high = run.low, run.high
        if not run.way:
            around = self._around(run)
            side = ABOVE if around > epsilon else BELOW if around <= epsilon else OPEN
            return [Stretch(low, high, side, around.upper() if around.is_finite() else None)]
        rising = run.way != _DOWN
        ends = [self.loss(run, low), self.loss(run, high)]
        first, last = ends if rising else ends[::-1]
        if first > epsilon:
            return [Stretch(low, high, ABOVE)]
        if last <= epsilon:
            return [Stretch(low, high, BELOW)]
        if run.way == _FLAT:
            exact = run.p is run.q
            flat = -ball(run.p.slope.number * self.shift) if exact else last
            side = ABOVE if flat > epsilon else BELOW if flat <= epsilon else OPEN
            return [Stretch(low, high, side, flat.upper() if flat.is_finite() else None)]
        a, b = self._crossing(run, epsilon, rising)
        top = self.loss(run, b if rising else a)
        most = top.upper() if top.is_finite() else None
        sides = (BELOW, ABOVE) if rising else (ABOVE, BELOW)
        parts = [Stretch(low, a, sides[0]), Stretch(a, b, OPEN, most), Stretch(b, high, sides[1])]
        return [part for part in parts if part.low != part.high]

    def _crossing(self, run: Run, epsilon: arb, rising: bool) -> tuple[Fraction, Fraction]:
        """Return close points a < b such that l crosses the level between them."""

        def rise(x: Fraction) -> arb:
            value = self.loss(run, x) - epsilon
            return value if rising else -value

        return crossing(rise, run.low, run.high, max(min(goal(), ctx.prec - _SPARE), _SPARE))


@functools.lru_cache(maxsize=_KEPT)
def losses(law: Law, shift: Fraction, doublings: int) -> Losses:
    """Return the losses for a shift, cached; R doubles `doublings` times."""
    return Losses(law, shift, doublings)


def _merged(places: list[Break]) -> list[Break]:
    """Return places in order; places that cannot be told apart are merged."""
    found: list[Break] = []
    for place in sorted(places, key=lambda each: (each.low, each.high)):
        if found and place.low <= found[-1].high:
            found[-1] = Break(found[-1].low, max(found[-1].high, place.high))
        else:
            found.append(place)
    return found


def _slope(
    lows: Array, highs: Array, shift: tuple[float, float], p: Piece, q: Piece
) -> tuple[Array, Array]:
    """Return the range of l′ on each cell: the intersection of up to three enclosures."""
    t = (np.full_like(lows, -shift[1]), np.full_like(lows, -shift[0]))
    moved = total((lows, highs), t)
    at_p, at_q = Ranges(*moved, p.known), Ranges(lows, highs, q.known)
    least, most = _less(at_p(p.slope), at_q(q.slope))
    middle = lows + (highs - lows) / 2
    half = np.nextafter(np.maximum(highs - middle, middle - lows), np.inf)
    there = Ranges(*total((middle, middle), t), p.known), Ranges(middle, middle, q.known)
    bend = product(_less(at_p(p.bend), at_q(q.bend)), (-half, half))
    ranges = [total(_less(there[0](p.slope), there[1](q.slope)), bend)]
    if p is q:
        ranges.append(product(t, Ranges(moved[0], highs, p.known)(p.bend)))
    for low, high in ranges:
        least, most = np.maximum(least, low), np.minimum(most, high)
    return least, most


def _less(a: Range, b: Range) -> Range:
    return total(a, (-b[1], -b[0]))


def _span(
    low: float, high: float, shift: tuple[float, float], p: Piece, q: Piece
) -> tuple[float, float]:
    """Return the range of l between two floats, from cells of equal width."""
    edges = np.linspace(low, high, _CELLS + 1)
    edges[-1] = high
    lows, highs = edges[:-1], edges[1:]
    t = (np.full_like(lows, -shift[1]), np.full_like(lows, -shift[0]))
    at_p, at_q = Ranges(*total((lows, highs), t), p.known), Ranges(lows, highs, q.known)
    least, most = _less(at_p(p.log), at_q(q.log))
    middle = lows + (highs - lows) / 2
    half = np.nextafter(np.maximum(highs - middle, middle - lows), np.inf)
    there = Ranges(*total((middle, middle), t), p.known), Ranges(middle, middle, q.known)
    bend = product(_slope(lows, highs, shift, p, q), (-half, half))
    low_end, high_end = total(_less(there[0](p.log), there[1](q.log)), bend)
    return float(np.min(np.maximum(least, low_end))), float(np.max(np.minimum(most, high_end)))
