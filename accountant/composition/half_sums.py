"""Sums over pairs of partial sums, with bounds of all rounding.

Only operations that IEEE 754 rounds correctly are used: with u = 2^−53, a product adds u to a
relative error, and a sum of m numbers ≥ 0, in any order, (m − 1)u.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import final

import numpy as np
from flint import arb

from accountant.composition.half_lists import SLACK, UNIT, Array, Halves, TooLongError
from accountant.precision import ctx

_ROW = 1024
_STEPS = 64
_LARGEST = 300.0  # exponents beyond it might leave the range of floats in a product
_LEAST = 1e-300  # products below it may have lost digits to underflow
_SPLIT_BITS = 32
_BEYOND = 1 << 62  # sums of losses are below 2^61


@functools.lru_cache(maxsize=1)
def _roots() -> tuple[Array, float, float]:
    """Return 2^{j/64}, and ln 2/64 as a float of 32 bits and the rest."""
    with ctx.workprec(128):
        table = np.array([float((arb(2).log() * j / _STEPS).exp().mid()) for j in range(_STEPS)])
        step = arb(2).log() / _STEPS
        high = float(int(float(step) * 2.0**_SPLIT_BITS)) / 2.0**_SPLIT_BITS
        return table, high, float((step - arb(high)).mid())


def exponentials(y: Array) -> tuple[Array, float]:
    """Return e^y, and a bound of the relative error, that of y (two roundings of it) included.

    What is below e^−300 is returned as that.

    y = k ln 2/64 + r with |r| < 0.006: k times the leading bits of ln 2/64 is exact, and so is the
    difference from y (Sterbenz); of the series in r seven terms are taken, the next is below u/10.
    """
    if float(y.max(initial=0.0)) > _LARGEST:
        raise TooLongError
    y = np.maximum(y, -_LARGEST)
    most = float(np.abs(y).max(initial=0.0))
    table, high, low = _roots()
    k = np.rint(y / (high + low))
    r = (y - k * high) - k * low
    series = 1 + r * (1 + r / 2 * (1 + r / 3 * (1 + r / 4 * (1 + r / 5 * (1 + r / 6)))))
    whole = k.astype(np.int64)
    found = np.ldexp(table[whole % _STEPS] * series, whole // _STEPS)
    return found, (2 * most + 8) * UNIT * SLACK


def cumulated(values: Array) -> Array:
    """Return 0 and the running sums; of relative error (ROW + len/ROW + 2)u for values ≥ 0."""
    rows = -(-len(values) // _ROW)
    padded = np.zeros(rows * _ROW)
    padded[: len(values)] = values
    inner = np.cumsum(padded.reshape(rows, _ROW), axis=1)
    outer = np.concatenate([[0.0], np.cumsum(inner[:-1, -1])]) if rows else np.zeros(0)
    result = np.zeros(len(values) + 1)
    result[1:] = (inner + outer[:, None]).ravel()[: len(values)]
    return result


def total(values: Array) -> float:
    """Return the sum; of relative error (ROW + 2)u for values ≥ 0."""
    rows = -(-len(values) // _ROW)
    padded = np.zeros(rows * _ROW)
    padded[: len(values)] = values
    return math.fsum(padded.reshape(rows, _ROW).sum(axis=1))


@final
@dataclass(frozen=True)
class Block:
    """The sums that use u draws in the first half and all others in the second."""

    losses: Array
    p: Array
    q: Array
    """Of the first half: weights times e^{−cl} and e^{−(c+1)l}."""
    others: Array
    """The losses of the second half, ascending, and running sums of the same weights of these:"""
    p_below: Array
    p_above: Array
    q_above: Array

    def at(self, threshold: int) -> tuple[float, float, float]:
        """Return the sums of p above and at most a threshold, and of q above."""
        index = np.searchsorted(self.others, threshold - self.losses, side="right")
        return (
            total(self.p * self.p_above[index]),
            total(self.p * self.p_below[index]),
            total(self.q * self.q_above[index]),
        )


@final
@dataclass(frozen=True)
class PairSums:
    """Σ of tilted weights times e^{−cl}, or e^{−(c+1)l}, over pairs above or below a threshold.

    Losses are in units of 2^−bits, and count from a middle of the sums.
    """

    middle: int
    blocks: tuple[Block, ...]
    error: float
    """Bound of the relative error of each sum."""
    p_rough: float
    q_rough: float
    """Bounds of what pairs add whose weights are known to be so small, but not to digits."""

    @staticmethod
    def of(halves: Halves, c: float, bits: int) -> PairSums:
        """Weigh the lists. Raises TooLongError where an exponent is too large."""
        unit = 2.0**-bits
        weighed, error = [], 0.0
        middle, centres = _centres(halves)
        for half, centre in zip((halves.first, halves.second), centres, strict=True):
            places = half.losses - centre[half.used]
            at = places * unit
            tilt, first = exponentials(-c * at)
            untilt, second = exponentials(-at)
            p = half.weights * tilt
            q = np.maximum(p * untilt, _LEAST)
            far = -c * at < -_LARGEST
            small = far | (-at < -_LARGEST) | (q == _LEAST)
            weighed.append((half.used, places, p, q, np.where(far, p, 0), np.where(small, q, 0)))
            error += half.error + first + second + 2 * UNIT
        blocks, longest, p_rough, q_rough = [], 0, 0.0, 0.0
        (used, a, p, q, *own_rough), (others, b, r, s, *other_rough) = weighed
        starts = np.searchsorted(used, np.arange(halves.count + 2))
        ends = np.searchsorted(others, np.arange(halves.count + 2))
        for u in range(halves.count + 1):
            own = slice(starts[u], starts[u + 1])
            other = slice(ends[halves.count - u], ends[halves.count - u + 1])
            if own.start == own.stop or other.start == other.stop:
                continue
            longest = max(longest, other.stop - other.start)
            p_rough += _rough(p[own], own_rough[0][own], r[other], other_rough[0][other])
            q_rough += _rough(q[own], own_rough[1][own], s[other], other_rough[1][other])
            above = [cumulated(side[other][::-1])[::-1] for side in (r, s)]
            blocks.append(
                Block(a[own], p[own], q[own], b[other], cumulated(r[other]), above[0], above[1])
            )
        error += (2 * _ROW + longest / _ROW + 8) * UNIT
        return PairSums(
            middle, tuple(blocks), error * SLACK, p_rough * SLACK * SLACK, q_rough * SLACK * SLACK
        )

    def at(self, threshold: int) -> tuple[float, float, float]:
        """Return the sums of the first weights above and at most a threshold, second ones above."""
        within = min(max(threshold, -_BEYOND), _BEYOND)
        sums = [block.at(within) for block in self.blocks]
        high, low, second = (math.fsum(entry[i] for entry in sums) for i in range(3))
        return high, low, second


def _rough(own: Array, own_rough: Array, other: Array, other_rough: Array) -> float:
    """Return Σ w w′ over pairs one of which is rough, from both and from the rough ones."""
    return float(own_rough.sum()) * float(other.sum()) + float(own.sum()) * float(other_rough.sum())


def _centres(halves: Halves) -> tuple[int, tuple[Array, Array]]:
    """Return a middle of all sums and, by the draws used, numbers of which two add up to it.

    Any numbers would do; near the heaviest sums the exponents are small.
    """
    first, second, count = halves.first, halves.second, halves.count
    means, masses = [], []
    for half in (first, second):
        mass = np.bincount(half.used, half.weights, count + 1)
        total_loss = np.bincount(half.used, half.weights * half.losses, count + 1)
        means.append(np.divide(total_loss, mass, out=np.zeros(count + 1), where=mass > 0))
        masses.append(mass)
    shares = masses[0] * masses[1][::-1]
    both = means[0] + means[1][::-1]
    middle = round(float((shares * both).sum() / shares.sum()))
    own = np.rint(np.where(masses[0] > 0, means[0], middle - means[1][::-1])).astype(np.int64)
    return middle, (own, (middle - own)[::-1])
