"""All sign changes of an expression without branches, with proof.

A sweep splits an interval until a label is known on every cell, using ranges in floats. On a cell
where the sign is not determined, the derivative has one sign. Exact signs at the ends of such a
cell then decide whether there is a root, and bisection encloses it. A rational root with a small
denominator is found exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.density.balls import real
from dpassay.accountant.density.ranges import Ranges, number_ends
from dpassay.accountant.density.tail import Tail, TailError
from dpassay.accountant.density.tree import Node, at, derivative, mirrored, num
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx

_FINEST = 2.0**-46
"""Relative width at which cells are no longer split: floats cannot resolve more."""
_NEAREST = 2.0**-60
"""Absolute width at which cells near 0 are no longer split."""
_PARTS, _MANY = (32, 4), 64
"""Number of parts of an undetermined cell, if there are at most `_MANY` such cells, and if there
are more. A call costs as much as a hundred cells, so a few cells are split into many parts."""
_MOST_CELLS = 1 << 14
"""Most undetermined cells at once; more are not a crossing but a curve that nothing decides."""
_GRADES = range(-4, 9, 2)
"""Exponents of the powers of 2 at which the initial cells end, before these keep doubling."""
_ROOT_BITS = 256
"""Bisections by which an irrational kink is enclosed; the gap between its bounds adds to errors."""
_SIMPLE = 10**6
"""Largest denominator of a root that is tried exactly."""
_NARROW = Fraction(1, 10**13)
"""A bracket narrower than this contains at most one number with such a denominator."""
_PRECISIONS = (64, 256, 1024)
STARTS = tuple(Fraction(2) ** n for n in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 30, 40, 60))
"""Trial points for the beginning of a tail."""


@final
@dataclass(frozen=True, slots=True)
class Break:
    """A point, known by two bounds, or exactly if these are equal."""

    low: Fraction
    high: Fraction

    def moved(self, by: Fraction) -> Break:
        """Return the point shifted by a number."""
        return Break(self.low + by, self.high + by)

    @property
    def exact(self) -> bool:
        """Whether the point is known exactly."""
        return self.low == self.high


Cells = list[tuple[float, float, int]]


def sweep(low: float, high: float, judge: Callable[[Array, Array], Array]) -> Cells:
    """Split [low, high] into labelled cells; `judge` labels cells, and 0 means undetermined.

    Undetermined cells are split until they are too narrow, so the narrowest may keep the label 0.
    """
    if not low < high:
        return []
    steps = [s * 2.0**n for n in _GRADES for s in (-1, 1)]
    farthest = max(abs(low), abs(high))
    while abs(steps[-1]) < farthest:
        steps += [2 * steps[-2], 2 * steps[-1]]
    inside = {edge for edge in (0.0, *steps) if low < edge < high}
    edges = np.array(sorted({low, high} | inside))
    lows, highs = edges[:-1], edges[1:]
    done: Cells = []
    while len(lows):
        labels = judge(lows, highs)
        width = highs - lows
        size = np.maximum(np.abs(lows), np.abs(highs))
        last = (width <= _FINEST * size) | (width <= _NEAREST)
        kept = (labels != 0) | last
        if np.count_nonzero(~kept) > _MOST_CELLS:
            kept |= True
        done += zip(lows[kept].tolist(), highs[kept].tolist(), labels[kept].tolist(), strict=True)
        lows, highs = _split(lows[~kept], highs[~kept])
    return sorted(done)


def _split(lows: Array, highs: Array) -> tuple[Array, Array]:
    parts = _PARTS[len(lows) > _MANY]
    shares = np.arange(parts + 1) / parts
    edges = lows[:, None] + (highs - lows)[:, None] * shares
    edges[:, -1] = highs
    return edges[:, :-1].ravel(), edges[:, 1:].ravel()


def sign_at(node: Node, point: Fraction) -> int | None:
    """Return the sign at a point; 0 only for an exact zero, None if it is not determined."""
    value = at(node, num(point))
    if value.op == "num":
        return (value.number > 0) - (value.number < 0)
    for bits in _PRECISIONS:
        with ctx.workprec(bits):
            found = real(node, ball(point))
        if found > 0:
            return 1
        if found < 0:
            return -1
    return None


def signs(node: Node, low: Break | None, high: Break | None) -> tuple[list[Break], list[int]]:
    """Return the sign changes inside an interval, and the signs before, between and after them.

    Raises UndecidedError if a sign is not determined somewhere.
    """
    if node.op == "num":
        return [], [(node.number > 0) - (node.number < 0)]
    changes: list[Break] = []
    found: list[int] = []

    def take(sign: int, since: Break | None) -> None:
        if found and sign != found[-1]:
            assert since is not None
            changes.append(since)
        if not found or sign != found[-1]:
            found.append(sign)

    left, sign = _end(mirrored(node), None if high is None else -high.low, low)
    if sign is not None:
        take(sign, None)
    start = low.high if low is not None else -left
    right, last = _end(node, start, high)
    stop = high.low if high is not None else right
    for first, then, label in _finite(node, start, stop):
        if abs(label) == 1:
            take(label, Break(first, first))
            continue
        ends = [sign_at(node, first), sign_at(node, then)]
        if None in ends:
            raise _open(first)
        if ends[0] == ends[1] == 0:
            raise _open(first)
        if ends[0]:
            take(ends[0] or 0, Break(first, first))
        if ends[1] and ends[1] != ends[0]:
            where = Break(first, first) if not ends[0] else _root(node, first, then, ends[0])
            take(ends[1], where)
    if last is not None:
        take(last, Break(right, right))
    return changes, found


def _end(node: Node, beyond: Fraction | None, end: Break | None) -> tuple[Fraction, int | None]:
    """Return where the constant sign of an unbounded end begins, and the sign; None if bounded."""
    if end is not None:
        return Fraction(0), None
    for start in STARTS:
        if beyond is None or start > beyond:
            try:
                return start, Tail(start).sign(node)
            except TailError:
                continue
    raise UndecidedError("The sign far out is not known")


def _finite(node: Node, low: Fraction, high: Fraction) -> list[tuple[Fraction, Fraction, int]]:
    """Return cells on which the sign, or that of the derivative, is known (label ±1, or 2)."""
    slope = derivative(node)

    def judge(lows: Array, highs: Array) -> Array:
        ranges = Ranges(lows, highs)
        (least, most), (falls, rises) = ranges(node), ranges(slope)
        labels = np.where((falls >= 0) | (rises <= 0), 2, 0)
        return np.where(least >= 0, 1, np.where(most <= 0, -1, labels))

    cells = sweep(number_ends(low)[0], number_ends(high)[1], judge)
    clipped = []
    for first, then, label in cells:
        a, b = max(Fraction(first), low), min(Fraction(then), high)
        if a < b:
            if not label:
                raise _open(a)
            clipped.append((a, b, label))
    return clipped


def _open(at_point: Fraction) -> UndecidedError:
    return UndecidedError(f"A sign near x = {float(at_point):.6g} is not known")


def _root(node: Node, low: Fraction, high: Fraction, sign_low: int) -> Break:
    """Enclose the root between two points with strictly opposite signs."""
    for _ in range(_ROOT_BITS + 16):
        middle = (low + high) / 2
        guess = middle.limit_denominator(_SIMPLE)
        if high - low < _NARROW and low < guess < high and sign_at(node, guess) == 0:
            return Break(guess, guess)
        sign = sign_at(node, middle)
        if sign == 0:
            return Break(middle, middle)
        if sign is None:
            break
        low, high = (middle, high) if sign == sign_low else (low, middle)
    return Break(low, high)
