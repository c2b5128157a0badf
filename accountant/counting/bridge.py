"""Counting by interpolation: grids that refine each other; cells also measure their parent.

The grid of level i has the cell size K_i = k_{i+1} ⋯ k_h, so level 1 cuts the stream into k_1
cells, level 2 each of these into k_2, and the last grid is that of the inputs. The sum of the
inputs of every cell of every level is measured, with noise z. For a level let P(t) be the sum of
its cells before t, the cell that t cuts counted by the part before t: the linear interpolation, at
t, of the sums at the grid points. For every level but the first let Q(t) count the cells of each
parent cell with the part of the parent that lies before t: the interpolation on the grid above,
as this level sees it. The estimate is

    out(t) = Σ_i P_i(t) − Σ_{i ≥ 2} Q_i(t).

Without noise Q_i = P_{i−1}, as the cells of a parent sum to it, so the sum telescopes to P_h(t),
the prefix sum: L R = A. An input lies in one cell of each level, so Δ₁ = h and Δ₂ = √h.

The noise of level i ≥ 2 is a random-walk bridge over each parent cell, interpolated linearly. At
t = (j + f) K in a parent cell of k cells (0 ≤ f < 1) it has the units

    j + f² − (j + f)²/k,          and on the first level        j + f²,

which average (k − 1)/6 for long cells: a third of the (k − 1)/2 of the tree without subtraction.

**Pooled.** A cell's sum is also that of its descendants of any later level. With `pooled` = r it is
estimated from the measurements of the cell and of its next r generations, each of level l with the
share K_l/S_i, S_i = K_i + … + K_{i+r}: the estimate of least variance, K_i/S_i units. L R = A
stays, as P_i and Q_i see estimates of the same sums. The units are those above, of level i times
K_i/S_i: an estimate weighs all descendants of one generation alike, while P_j − Q_j of a lower
level j weighs the cells of a parent with a sum of zero, so that different levels have no
covariance. With r = h − 1 this is least squares on all measurements.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from dpassay.accountant.errors import InvalidInputError, expected


@final
@dataclass(frozen=True, slots=True)
class Grids:
    """The grids above a stream.

    Parameters
    ----------
    arities
        k_1 ≥ 1 and all others ≥ 2; there is room for their product of inputs.
    steps
        n ≥ 1, the number of outputs.
    pooled
        r ≥ 0, the generations of cells whose measurements are pooled into that of a cell.
    """

    arities: tuple[int, ...]
    steps: int
    pooled: int = 0

    def __post_init__(self) -> None:
        if not self.arities:
            raise InvalidInputError("Expected arities to have at least one entry. Give [steps].")
        for index, arity in enumerate(self.arities):
            least = 2 if index else 1
            if arity < least:
                raise expected(f"arities[{index}]", arity, f"≥ {least}")
        if self.steps > math.prod(self.arities):
            raise expected(
                "steps",
                self.steps,
                f"at most {math.prod(self.arities)}, the product of the arities",
                "Give a larger first arity.",
            )

    @property
    def height(self) -> int:
        """h, the number of levels: the ℓ1 sensitivity, and the square of the ℓ2 sensitivity."""
        return len(self.arities)

    def cell_sizes(self) -> tuple[int, ...]:
        """Return K_1, …, K_h = 1."""
        return _cell_sizes(self.arities)

    def share(self, level: int, below: int) -> Fraction:
        """Return the share of the cells of level `below` in the estimate of one of a level."""
        sizes = self.cell_sizes()
        return Fraction(sizes[below], sum(sizes[level : level + self.pooled + 1]))

    def units(self) -> Fraction:
        """Return the units of all n outputs together, by summing powers."""
        levels = enumerate(zip(self.arities, self.cell_sizes(), strict=True))
        return sum(
            (self.share(i, i) * _level_sum(k, size, self.steps, i > 0) for i, (k, size) in levels),
            Fraction(0),
        )

    def output_units(self, step: int) -> Fraction:
        """Return the units of one output."""
        total = Fraction(0)
        for index, (arity, size) in enumerate(zip(self.arities, self.cell_sizes(), strict=True)):
            inside = step % (arity * size) if index else step
            cell, rest = divmod(inside, size)
            units = cell + Fraction(rest, size) ** 2
            if index:
                units -= Fraction(inside, size) ** 2 / arity
            total += units * self.share(index, index)
        return total

    def cells(self) -> Iterator[tuple[int, int, int]]:
        """Yield (level, first, last) of every cell that an output before the end depends on.

        These are the cells whose parent, or that of an ancestor they are pooled into, begins before
        the end.
        """
        sizes = self.cell_sizes()
        for level, size in enumerate(sizes):
            outer = sizes[max(level - self.pooled - 1, 0)]
            for first in range(0, -(-self.steps // outer) * outer, size):
                yield level, first, first + size

    def coefficient(self, step: int, level: int, first: int) -> Fraction:
        """Return the entry of L for an output and the cell of a level that begins at `first`."""
        sizes, found = self.cell_sizes(), Fraction(0)
        for above in range(max(level - self.pooled, 0), level + 1):
            part = _part(step, first, sizes[above])
            if above:
                part -= _part(step, first, sizes[above - 1])
            found += part * self.share(above, level)
        return found


@functools.lru_cache(maxsize=64)
def _cell_sizes(arities: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(itertools.accumulate(reversed(arities[1:]), operator.mul, initial=1))[::-1]


def _part(step: int, inside: int, size: int) -> Fraction:
    """Return the part of the cell of a size around a place that lies up to the step."""
    return Fraction(min(max(step - inside // size * size, 0), size), size)


def _level_sum(arity: int, size: int, steps: int, closed: bool) -> Fraction:
    """Sum j + f² (less (j + f)²/k where closed) over t = 0..steps, t = (j + f)·size in a parent."""
    periods, last = divmod(steps + 1, arity * size) if closed else (0, steps + 1)
    total = _first_sum(arity, size, last, closed)
    if periods:
        total += periods * _first_sum(arity, size, arity * size, closed)
    return total


def _first_sum(arity: int, size: int, count: int, closed: bool) -> Fraction:
    """Sum over the first `count` values of t in a parent cell."""
    cells, rest = divmod(count, size)
    whole = size * (cells * (cells - 1) // 2) + cells * rest
    parts = Fraction(cells * _squares(size) + _squares(rest), size**2)
    bridge = Fraction(_squares(count), arity * size**2) if closed else Fraction(0)
    return whole + parts - bridge


def _squares(count: int) -> int:
    """Return 0² + … + (count − 1)²."""
    return (count - 1) * count * (2 * count - 1) // 6
