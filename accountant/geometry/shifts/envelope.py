"""Suprema over t of what one coordinate adds to a bound on a line, per unit of its size.

For Re z = c > 0 let φ(t, z) = ((z + 1)e^{zt} + z e^{−(z+1)t})/(2z + 1) be the transform of the
loss of a coordinate of size t, g = ln φ with g(0, z) = 0, and γ(t, z) = g(t, z)/t. With
E = e^{−(2z+1)t},

    g   = zt + ln((z + 1)/(2z + 1)) + ln(1 + Ez/(z + 1)),
    g'  = (z + 1)((2z + 1)/(z + 1 + zE) − 1),
    g'' = (2z + 1)² z(z + 1) E/(z + 1 + zE)².

Both logarithms are principal ones: |arg((z + 1)/(2z + 1))| < π/2, and |Ez/(z + 1)| < 1. They cancel
at t = 0, so that g is continuous.

`Envelope.supremum` bounds F(t) = p Re γ(t, z) + q Im γ(t, z) − bt − μγ(t, c) from above on (0, T].
On a cell with the middle m and the half-width r, Taylor's theorem gives F(m) + |F'(m)|r + F''r²/2
with the largest F'' of the cell, and F(m) + F'(m)²/(2|F''|) where that is negative. In the first
cell F(t) ≤ t sup F', F being 0 at t = 0. What balls enclose for a cell is combined in floats, with
2^−44 of all the terms added, many times the rounding errors of a few sums and products.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from flint import acb, arb

from accountant.geometry.shifts.plan import Support

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

_FIRST, _BEFORE = 0.02, 0.05
"""The first end of a cell, as shares of 1/size and of `near`: that of before is wide."""
_RATIO, _WIDEST, _WAVE = 0.06, 0.12, 0.5
"""Widths of cells: shares of t that fade, or not, and of a wave's length. Wider ones have wider
hulls, and split more."""
_LEVEL = 1.25
"""Ratio of the sizes |2z + 1| that share the ends of their cells."""
_LOOSE = 0.3
"""Relative radius up to which a hull is taken as it is; others are halved."""
_ROUNDS = 24
"""Times that the worst cells are split, until the tolerance is met; then the bound is looser."""
_MOST_SPLITS = 24
"""Cells that are split in a round."""
_SLACK = 2.0**-44
"""Relative room for the rounding of a cell's sums in floats: 512 units."""
_VALUE, _SLOPE, _BEND = slice(0, 3), slice(3, 6), slice(6, 9)


@final
class Envelope:
    """The functions F at z = line + iy, for 0 < t ≤ top; cells are short from t = `near` on."""

    def __init__(self, line: float, y: arb, near: float, top: float) -> None:
        self._c, self._z = acb(line), acb(arb(line), y)
        level = math.ceil(math.log(float(abs(2 * self._z + 1).upper()), _LEVEL))
        edges = _edges(_LEVEL**level, line, near, top)
        rows = [row for low, high in pairwise(edges) for row in self._rows(low, high)]
        self._cells = np.array(rows).reshape(len(rows), _COLUMNS)
        start = arb(edges[0]).union(arb(0))
        # γ' is the average of g''(ut) over u with the weight u, so half of a value of its hull
        halves = _bend(start, self._z) / 2, _bend(start, self._c) / 2
        self._start, self._slopes = edges[0], (halves[0].real, halves[0].imag, halves[1].real)

    def supremum(self, support: Support, tolerance: float) -> float:
        """Return an upper bound of F, at least 0; above its supremum by the tolerance or so."""
        weights = np.array([support.real, support.imaginary, -support.moment])
        terms = [arb(w) * s for w, s in zip(weights.tolist(), self._slopes, strict=True)]
        first = float((sum(terms, start=-arb(support.square))).upper()) * self._start
        floor = max(0.0, first * (1 + _SLACK))
        for _ in range(_ROUNDS):
            bounds, values = _bounds(self._cells, weights, support.square)
            goal = max(floor, float(values.max(initial=0.0))) + tolerance
            high = np.argsort(bounds)[::-1][:_MOST_SPLITS]
            high = high[bounds[high] > goal]
            if not len(high):
                break
            new = [row for cell in self._cells[high] for row in self._halved(cell)]
            self._cells = np.concatenate([np.delete(self._cells, high, axis=0), new])
        return max(floor, float(bounds.max(initial=0.0)))

    def _halved(self, cell: Floats) -> Iterator[list[float]]:
        low, high = float(cell[_LOW]), float(cell[_HIGH])
        middle = (low + high) / 2
        yield from self._rows(low, middle)
        yield from self._rows(middle, high)

    def _rows(self, low: float, high: float) -> Iterator[list[float]]:
        """Yield one row for [low, high], or more where it is too long to enclose γ''."""
        pending = [(low, high)]
        while pending:
            low, high = pending.pop()
            middle = arb((low + high) / 2)
            half = (arb(high) - middle).max(middle - arb(low)).upper()
            at_z, at_c = _taylor(middle, half, self._z), _taylor(middle, half, self._c)
            if at_z is None or at_c is None:
                pending += [((low + high) / 2, high), (low, (low + high) / 2)]
                continue
            balls = [
                part for a, b in zip(at_z, at_c, strict=True) for part in (a.real, a.imag, b.real)
            ]
            sizes = [float(ball.mid()) for ball in balls]
            radii = [
                float(ball.rad().upper()) * (1 + _SLACK) + abs(size) * _SLACK
                for ball, size in zip(balls, sizes, strict=True)
            ]
            yield [low, high, float(middle.mid()), float(half) * (1 + _SLACK), *sizes, *radii]


_LOW, _HIGH, _MIDDLE, _HALF = range(4)
_SIZES, _RADII = slice(4, 13), slice(13, 22)
_COLUMNS = 22
"""Numbers of a cell: its ends and middle, its half, nine values and nine radii."""


def _bounds(cells: Floats, weights: Floats, square: float) -> tuple[Floats, Floats]:
    """Return upper bounds of F on the cells, and values about those at their middles."""
    sizes, radii, half = cells[:, _SIZES], cells[:, _RADII], cells[:, _HALF]
    size_of_weights = np.abs(weights)
    line = square * cells[:, _MIDDLE]
    value = sizes[:, _VALUE] @ weights - line
    error = radii[:, _VALUE] @ size_of_weights
    error += (np.abs(sizes[:, _VALUE]) @ size_of_weights + np.abs(line)) * _SLACK
    slope = np.abs(sizes[:, _SLOPE] @ weights - square)
    slope += radii[:, _SLOPE] @ size_of_weights
    slope += (np.abs(sizes[:, _SLOPE]) @ size_of_weights + abs(square)) * _SLACK
    bend = sizes[:, _BEND] @ weights + radii[:, _BEND] @ size_of_weights
    bend += np.abs(sizes[:, _BEND]) @ size_of_weights * _SLACK
    straight = slope * half
    fallen = np.minimum(slope * slope / (2 * np.maximum(-bend, 1e-100)), straight)
    rise = np.where(bend < 0, fallen, straight + np.maximum(bend, 0) * half * half / 2)
    bounds: Floats = value + error + rise * (1 + _SLACK) + np.abs(value) * _SLACK
    return bounds, value


def _taylor(middle: arb, half: arb, z: acb) -> tuple[acb, acb, acb] | None:
    """Return γ and γ' at the middle and γ'' on the cell, None if it is too long."""
    both, more, whole = 2 * z + 1, z + 1, arb(middle, half)
    bottom = more + z * (-both * whole).exp()
    if not bottom.rad() < _LOOSE * abs(bottom).lower():
        return None
    fallen = z * (-both * middle).exp()
    g = z * middle + (more / both).log() + (fallen / more).log1p()
    first = more * (both / (more + fallen) - 1)
    second, off = _bend(whole, z), arb(0, half)
    first_all = first + off * second
    slope_all = (first_all - (g + off * first_all) / whole) / whole
    value = g / middle
    return value, (first - value) / middle, (second - 2 * slope_all) / whole


def _bend(t: arb, z: acb) -> acb:
    """Return g''."""
    fallen = (-(2 * z + 1) * t).exp()
    bottom = z + 1 + z * fallen
    return (2 * z + 1) ** 2 * z * (z + 1) * fallen / (bottom * bottom)


@functools.lru_cache(maxsize=64)
def _edges(size: float, line: float, near: float, top: float) -> tuple[float, ...]:
    """Return the ends of cells that suit |2z + 1| ≤ size; the first is not 0."""
    edges = [min(_FIRST / size, _BEFORE * near)]
    while edges[-1] < top:
        t = edges[-1]
        fading = math.exp(min((2 * line + 1) * t / 2, 30.0))
        width = min(_RATIO * t * fading, _WIDEST * t, _WAVE * fading / size)
        edges.append(min(t + width, top))
    return tuple(edges)
