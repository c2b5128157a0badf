"""Ranges of an expression over many intervals at once, in floats rounded outward.

Every operation is monotone, or monotone on each side of 0, so its range follows from the ends of
the intervals. Results of NumPy are moved outward by a relative `_OFF`, and by `_TINY` where a
product may have underflowed; zeros stay zeros. Where nothing is known, the range is the whole line.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias, final

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.density.tree import Node

Range: TypeAlias = "tuple[Array, Array]"

_OFF = 16 * 2.0**-53
"""Bound on the relative error of NumPy's functions: twice the documented 4 ulp."""
_SUM = 4 * 2.0**-53
"""Bound on the relative error of one sum or product, with a margin."""
_ROUNDED = 2.0**-52 * 800
"""Relative error, per unit of the exponent, of a power with a rounded exponent: |ln x| < 745."""
_TINY = 1e-300
"""Products below this may have underflowed and lost their relative accuracy."""
_LARGEST = sys.float_info.max


@final
class Ranges:
    """The ranges of expressions over the intervals [low, high]."""

    def __init__(self, low: Array, high: Array, known: Mapping[Node, int] | None = None) -> None:
        self._x = (low, high)
        self._signs = known or {}
        self._known: dict[Node, Range] = {}

    def __call__(self, node: Node) -> Range:
        """Return the lower and the upper ends of the ranges."""
        with np.errstate(all="ignore"):
            return self._of(node)

    def _of(self, node: Node) -> Range:
        found = self._known.get(node)
        if found is None:
            found = self._made(node)
            if sign := self._signs.get(node, 0):
                low, high = found
                found = (np.maximum(low, 0), high) if sign > 0 else (low, np.minimum(high, 0))
            self._known[node] = found
        return found

    def _made(self, node: Node) -> Range:
        match node.op:
            case "x":
                return self._x
            case "num":
                return self._constant(*number_ends(node.number))
            case "pi":
                return self._constant(math.nextafter(math.pi, 0), math.nextafter(math.pi, 4))
        if node.op == "mul" and node.parts[0].op == "num":
            return _scaled(node.parts[0].number, self._of(node.parts[1]))
        parts = [self._of(part) for part in node.parts]
        match node.op:
            case "add":
                return total(parts[0], parts[1])
            case "mul":
                return product(parts[0], parts[1])
            case "pow":
                return _power(parts[0], node.number)
        low, high = parts[0]
        match node.op:
            case "exp":
                low, high = np.exp(low), np.exp(high)
            case "log":
                return _whole(*_moved(np.log(np.maximum(low, 0)), np.log(np.maximum(high, 0))))
            case "logsum":
                other = parts[1]
                return _whole(*_moved(np.logaddexp(low, other[0]), np.logaddexp(high, other[1])))
            case "sigmoid":
                low, high = 1 / (1 + np.exp(-low)), 1 / (1 + np.exp(-high))
                high = np.minimum(high * (1 + _OFF) + _TINY, 1)
                return _whole(np.where(low < _TINY, 0, low * (1 - _OFF)), high)
            case _:
                raise ValueError(node.op)
        low = np.where(low < _TINY, 0, np.minimum(low, _LARGEST) * (1 - _OFF))
        return _whole(low, high * (1 + _OFF) + _TINY)

    def _constant(self, low: float, high: float) -> Range:
        shape = self._x[0].shape
        return np.full(shape, low), np.full(shape, high)


def number_ends(value: Fraction) -> tuple[float, float]:
    """Return the nearest floats on both sides of a number; the float twice if it is one."""
    try:
        near = float(value)
    except OverflowError:
        most = math.nextafter(math.inf, 0)
        return (most, math.inf) if value > 0 else (-math.inf, -most)
    if not math.isfinite(near) or Fraction(near) == value:
        return near, near
    if near < value:
        return near, math.nextafter(near, math.inf)
    return math.nextafter(near, -math.inf), near


def total(a: Range, b: Range) -> Range:
    """Return the range of a sum."""
    with np.errstate(invalid="ignore", over="ignore"):
        low, high = a[0] + b[0], a[1] + b[1]
    return _whole(low - _share(low, _SUM), high + _share(high, _SUM))


def product(a: Range, b: Range) -> Range:
    """Return the range of a product.

    v − e|v| increases with v, so it suffices to move the least of the four corner products.
    """
    corners = [_corner(x, y) for x in a for y in b]
    low: Array = np.minimum(np.minimum(*corners[:2]), np.minimum(*corners[2:]))
    high: Array = np.maximum(np.maximum(*corners[:2]), np.maximum(*corners[2:]))
    low, high = low - _lost(low), high + _lost(high)
    # a product of numbers ≥ 0 is ≥ 0, despite the outward shift
    same = ((a[0] >= 0) & (b[0] >= 0)) | ((a[1] <= 0) & (b[1] <= 0))
    other = ((a[0] >= 0) & (b[1] <= 0)) | ((a[1] <= 0) & (b[0] >= 0))
    zero = ((a[0] == 0) & (a[1] == 0)) | ((b[0] == 0) & (b[1] == 0))
    np.maximum(low, 0, out=low, where=same | zero)
    np.minimum(high, 0, out=high, where=other | zero)
    return _whole(low, high)


def _scaled(number: Fraction, x: Range) -> Range:
    """Return the range of a number ≠ 0 times x: as `product`, with fewer corners."""
    ends = number_ends(number)
    if ends[0] != ends[1] or not number:
        return product((np.full_like(x[0], ends[0]), np.full_like(x[0], ends[1])), x)
    low, high = x if number > 0 else (-x[1], -x[0])
    if abs(number) == 1:
        return low, high
    least, most = abs(ends[0]) * low, abs(ends[0]) * high
    least, most = least - _lost(least), most + _lost(most)
    np.maximum(least, 0, out=least, where=low >= 0)
    np.minimum(most, 0, out=most, where=high <= 0)
    return _whole(least, most)


def _corner(x: Array, y: Array) -> Array:
    """Return products of ends, with 0·∞ = 0, since an infinite end stands for finite numbers."""
    with np.errstate(invalid="ignore", over="ignore"):
        value: Array = x * y
    unknown = np.isnan(value)
    return np.where(unknown & np.isinf(x + y), 0.0, value) if unknown.any() else value


def _lost(value: Array) -> Array:
    """Return a bound on the rounding error of a product."""
    return np.maximum(_share(value, _SUM), np.where(np.abs(value) < _TINY, _TINY, 0.0))


def _share(value: Array, error: float) -> Array:
    size = np.abs(value)
    found: Array = size * error
    most = size.max(initial=0.0)
    return found if most < np.inf else np.where(np.isinf(size), 0.0, found)


def _power(base: Range, r: Fraction) -> Range:
    low, high = base
    if r.denominator != 1:  # defined only for a base ≥ 0
        low, high = np.maximum(low, 0), np.maximum(high, 0)
    if r < 0:
        return _inverse(_power((low, high), -r))
    exponent = float(r)
    error = _OFF + (r.denominator != 1) * max(exponent, 1) * _ROUNDED
    if r.denominator == 1 and r.numerator % 2 == 0:
        inside = (low <= 0) & (high >= 0)
        least = np.where(inside, 0, np.minimum(np.abs(low), np.abs(high)))
        low, high = least, np.maximum(np.abs(low), np.abs(high))
    ends = []
    for x, way in ((low, -1), (high, 1)):
        value = np.sign(x) * np.abs(x) ** exponent
        lost = (x != 0) & (np.abs(value) < _TINY)
        moved = value + way * np.where(lost, _TINY, _share(value, error))
        ends.append(np.where((x >= 0) if way < 0 else (x <= 0), np.maximum(moved, 0)
                             if way < 0 else np.minimum(moved, 0), moved))  # fmt: skip
    return _whole(*ends)


def _inverse(base: Range) -> Range:
    low, high = base
    positive, falling = low >= 0, high <= 0
    one_high, one_low = 1 / high, 1 / low
    one_high = np.where(high == 0, -np.inf, one_high)
    one_low = np.where(low == 0, np.inf, one_low)
    least = np.where(positive | falling, one_high, -np.inf)
    most = np.where(positive | falling, one_low, np.inf)
    least, most = _moved(least, most)
    return _whole(np.where(positive, np.maximum(least, 0), least),
                  np.where(falling, np.minimum(most, 0), most))  # fmt: skip


def _moved(low: Array, high: Array) -> Range:
    return (np.where(np.isinf(low), low, low - np.abs(low) * _OFF - _TINY),
            np.where(np.isinf(high), high, high + np.abs(high) * _OFF + _TINY))  # fmt: skip


def _whole(low: Array, high: Array) -> Range:
    """Return the ends, the whole line if one is NaN; an overflow counts as a finite number."""
    unknown = np.isnan(low) | np.isnan(high)
    if unknown.any():
        low, high = np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)
    return np.minimum(low, _LARGEST), np.maximum(high, -_LARGEST)
