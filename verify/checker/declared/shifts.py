"""The largest H(ε) of a density against itself over all shifts up to a distance.

*On a cell T of shifts t.* Points move at speeds from 0 to 1 as t grows: ends of pieces of f(x − t)
as x does, those of f(x) not, points between them in proportion. Between them intervals are halved
until the sign of f(x − t) − c f(x), c = e^ε, is known for all t in T, but on tiny ones. G(t) is its
integral over those where it is ≥ 0, E a bound of that of its positive part over those where it is
not known. G ≤ H ≤ G + E, as every event bounds H from below, so that for u and v in T

    H(u) ≤ G(u) + E = G(v) + (u − v) G′ + E ≤ H(v) + (u − v) G′ + E

for a value of G′ on T. An upper end x of speed s adds s (f(x − t) − c f(x)) − f(x − t) to it, a
lower one takes that away. Ends of pieces meet at shifts that are ends of cells.

*Over all cells.* H is known at the ends of T, and the one that gives less bounds it inside. The
cell with the largest bound is halved, until it is hardly above the largest H that is known.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple, final

from flint import acb, arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.declared import line
from dpassay.verifier.checker.declared.formula import Piece
from dpassay.verifier.checker.kernel.expressions import ZERO, Node
from dpassay.verifier.checker.kernel.ranges import INFINITY
from dpassay.verifier.checker.reals import UnknownError, ball, exp

_BITS = 64
"""Of the signs and slopes of a cell."""
_NEAR = arb(2) ** -17
"""Relative distance of both ends at which a sweep ends: five digits."""
_SHARE = arb(2) ** -10
"""Of that: what an interval of unknown sign may add before it is halved."""
_MOST_SPLITS, _MOST_PARTS = 120, 20_000
"""Cells that are halved, and intervals that are looked at, each some seconds; and then both ends
are taken as they are."""
_MOST_OF_ONE = 4000
"""Intervals of one cell, after which signs are left open."""
_MOST_KINKS = 200
"""Shifts at which ends of pieces meet."""
_FARTHEST = Fraction(2) ** 60
"""Where a tail is given up."""

Value = Callable[[Fraction], arb]
"""H at a shift."""


@final
class _Point(NamedTuple):
    """The point start + speed·t."""

    start: Fraction
    speed: Fraction

    def at(self, t: Fraction) -> Fraction:
        return self.start + self.speed * t


def largest(
    parts: Sequence[Piece], whole: arb, distance: Fraction, epsilon: Any, value: Value
) -> tuple[arb, arb]:
    """Return bounds of the largest H(ε) over 0 ≤ t ≤ distance, of f/whole."""
    cuts, factor = line.cuts(parts), ball(exp(epsilon))
    kinks = {t for a in cuts for b in cuts if 0 < (t := a - b) < distance}
    if len(kinks) > _MOST_KINKS:
        raise UnknownError("the worst shift of a density of so many pieces")
    known = {Fraction(0): (1 - factor).max(arb(0)), distance: value(distance)}
    waiting: list[tuple[float, int, Fraction, Fraction, arb]] = []
    work = 0

    def least() -> arb:
        return max(each.lower() for each in known.values())

    def add(a: Fraction, b: Fraction) -> None:
        nonlocal work
        for t in (a, b):
            known[t] = known[t] if t in known else value(t)
        with ctx.workprec(_BITS):
            cell = _Cell(parts, (a, b), epsilon, factor, least() * whole * _NEAR * _SHARE)
            work += cell.count
            rise, fall = ball(b - a) * cell.slope, ball(a - b) * cell.slope
            ends = known[a] + rise.max(arb(0)) / whole, known[b] + fall.max(arb(0)) / whole
            grown = ends[0].min(ends[1]) + cell.open / whole
            bound = grown.upper().min(arb(1)) if grown.is_finite() else arb(1)
        heapq.heappush(waiting, (-float(bound), len(known), a, b, bound))

    for a, b in pairwise(sorted({*known, *kinks})):
        add(a, b)
    for _ in range(_MOST_SPLITS):
        _, _, a, b, bound = waiting[0]
        if bound <= least() * (1 + _NEAR) or work > _MOST_PARTS:
            break
        heapq.heappop(waiting)
        add(a, (a + b) / 2)
        add((a + b) / 2, b)
    return least(), max(*(each[-1] for each in waiting), *(v.upper() for v in known.values()))


@final
class _Cell:
    """Shifts between two, where signs are left open that add no more than `enough`.

    `slope` is a ball around G′, `open` around numbers up to E, both times ∫ f.
    """

    def __init__(
        self, parts: Sequence[Piece], shifts: tuple[Fraction, Fraction], epsilon: Any, factor: arb,
        enough: arb,
    ) -> None:  # fmt: skip
        self._parts, (self._a, self._b) = parts, shifts
        self._epsilon, self._factor, self._enough = epsilon, factor, enough
        self.slope, self.open, self.count = arb(0), arb(0), 0
        middle, cuts = (self._a + self._b) / 2, line.cuts(parts)
        points = sorted(
            {_Point(cut, Fraction(speed)) for cut in cuts for speed in (0, 1)},
            key=lambda point: point.at(middle),
        )
        right, last = self._tail(points[-1], 1)
        left, first = self._tail(points[0], -1)
        ends = [*left[::-1], *points, *right]
        self._formulas, self._above = (parts[0].formula, parts[0].formula), first > 0
        self._compiled = [line.compiled(formula) for formula in self._formulas]
        for low, high in pairwise(ends):
            p, q = (
                line.at(parts, *(end.at(middle) - t for end in (low, high))).formula
                for t in (middle, Fraction(0))
            )
            self._enter(p, q, low)
            self._panel(low, high)
        self._enter(parts[-1].formula, parts[-1].formula, ends[-1])
        self._turn(ends[-1], last > 0)

    def _tail(self, point: _Point, way: int) -> tuple[list[_Point], int]:
        """Return points at which panels end, and the sign beyond the last."""
        found: list[_Point] = []
        tail = line.tails(self._parts)[0 if way > 0 else 1]
        while True:
            last = found[-1] if found else point
            if side := self._side(*((last, None) if way > 0 else (None, last))):
                return found, side
            start = self._least(last) if way > 0 else -self._most(last)
            rest = line.beyond(tail, start) if start > 0 else None
            if rest is not None and rest <= self._enough:
                self.open += rest
                return found, -1
            if start > _FARTHEST:
                raise UnknownError("the tails of a density that is written as a formula")
            far = Fraction(1)
            while far <= abs(last.start) + self._b:
                far *= 2
            found.append(_Point(way * far, Fraction(0)))

    def _least(self, point: _Point) -> Fraction:
        """Return the least x − t."""
        return point.at(self._b) - self._b

    def _most(self, point: _Point) -> Fraction:
        """Return the largest x − t."""
        return point.at(self._a) - self._a

    def _side(self, low: _Point | None, high: _Point | None) -> int:
        """Return the sign where the loss tells it: t times a mean of −(ln f)′ from x − t to x."""
        a = None if low is None else self._least(low)
        least, most = line.losses(self._parts, a, None if high is None else high.at(self._b))
        shifts = self._a, self._b
        if most is not None and max(t * most for t in shifts) <= self._epsilon:
            return -1
        return int(least is not None and min(t * least for t in shifts) >= self._epsilon)

    def _panel(self, low: _Point, high: _Point) -> None:
        """Tell the signs between two points, from left to right."""
        if side := -1 if self._formulas[0] == ZERO else self._side(low, high):
            self._turn(low, side > 0)
            return
        waiting, fine = [(low, high)], (self._b - self._a) / 4
        while waiting:
            low, high = waiting.pop()
            self.count += 1
            f, g = self._values(low, high)
            if not (f >= g or f <= g):
                width = max(high.at(t) - low.at(t) for t in (self._a, self._b))
                rest = (f - g).upper().max(arb(0)) * ball(width)
                if width > fine and self.count < _MOST_OF_ONE and not rest <= self._enough:
                    middle = _Point(*((u + v) / 2 for u, v in zip(low, high, strict=True)))
                    waiting += [(middle, high), (low, middle)]
                    continue
                self.open += rest.upper() if rest.is_finite() else INFINITY
            self._turn(low, bool(f >= g))

    def _enter(self, p: Node, q: Node, point: _Point) -> None:
        """Go on with other formulas from a point on."""
        if (p, q) != self._formulas:
            self._turn(point, above=False)
            self._formulas, self._compiled = (p, q), [line.compiled(p), line.compiled(q)]

    def _turn(self, point: _Point, above: bool) -> None:
        """Go on where the sign is ≥ 0 from a point on, or where it is not, or not known."""
        if above != self._above:
            f, g = self._values(point, point)
            moved = ball(point.speed) * (f - g) - f
            self.slope += moved if self._above else -moved
        self._above = above

    def _values(self, low: _Point, high: _Point) -> tuple[arb, arb]:
        """Return f(x − t) and c f(x) for all shifts, between two points."""
        x = ball(low.at(self._a)).union(ball(high.at(self._b)))
        y = ball(self._least(low)).union(ball(self._most(high)))
        f, g = self._compiled
        return f(acb(y), False).real, self._factor * g(acb(x), False).real
