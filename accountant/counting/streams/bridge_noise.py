"""The noise of `BridgedTree`: bridges between known ends, level below level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.counting.streams.noise import NoiseProcess, NoiseSource, finite, rows

if TYPE_CHECKING:
    from accountant.mechanisms.counting.bridged_tree import BridgedTree

_LARGEST_CELL = 1 << 17
"""Values that are filled at once: 1 MB, which caches hold."""
_FEW_ROWS = 32
"""Rows up to which one call draws all digits; longer ones are faster drawn one digit at a time."""


@final
class BridgeNoise(NoiseProcess):
    """The values of every level at its grid points, from one parent cell to the next.

    Level i keeps its value at the end of the current cell and at the grid points to come inside the
    parent cell, at most k_i − 1 numbers; the first level, one. A new parent cell draws k_i noise
    variables, the steps of a walk, and spreads what is missing to the known right end evenly.
    """

    def __init__(self, mechanism: BridgedTree, source: NoiseSource) -> None:
        grids = mechanism.grids
        self._arities, self._sizes = grids.arities, grids.cell_sizes()
        self._bottom = grids.height - 1
        self._source = source
        self._right: list[Any] = [source.zero] * grids.height
        self._cells_left = [0] * grids.height  # in the parent cell, behind the current one
        self._ahead: list[list[Any]] = [[] for _ in grids.arities]  # the next one is the last
        self._weights = [np.arange(1, k) / k for k in grids.arities]

    def one(self) -> Any:
        """Return the value at the next input."""
        self._advance(self._bottom)
        return self._right[self._bottom]

    def _advance(self, level: int) -> None:
        """Move to the next cell of a level."""
        if not level:
            self._right[0] += self._source.one()
            return
        if not self._cells_left[level]:
            left = self._right[level - 1]
            self._advance(level - 1)
            self._ahead[level] = self._between(level, left, self._right[level - 1])
            self._cells_left[level] = self._arities[level]
        self._cells_left[level] -= 1
        ahead = self._ahead[level]
        self._right[level] = ahead.pop() if ahead else self._right[level - 1]

    def _between(self, level: int, left: Any, right: Any) -> list[Any]:
        """Draw the values of a level inside a parent cell, the last one first."""
        arity, one = self._arities[level], self._source.one
        walk, at = [], left
        for _ in range(arity):
            at += one()
            walk.append(at)
        slope = (right - at) / arity
        found = [value + slope * place for place, value in enumerate(walk, 1)]
        del found[-1]
        found.reverse()
        return found

    def fill(self, out: NDArray[np.float64]) -> None:
        """Write the values at the next inputs, whole cells at a time."""
        if not self._bottom:
            np.cumsum(self._source.draw(len(out)), out=out)
            out += self._right[0]
            self._right[0] = float(out[-1])
            return
        position = 0
        while position < len(out):
            level = self._level(len(out) - position)
            if level == self._bottom:
                if 0 < self._cells_left[level] <= len(out) - position:
                    position = self._finish(out, position)
                else:
                    out[position] = self.one()
                    position += 1
                continue
            size = self._sizes[level]
            cells = min((len(out) - position) // size, max(1, _LARGEST_CELL // size))
            values = self._cells(level, cells)
            for below in range(level + 1, self._bottom + 1):
                values = self._children(below, values)
                self._right[below] = float(values[-1])
            count = len(values) - 1
            out[position : position + count] = values[1:]
            position += count

    def _finish(self, out: NDArray[np.float64], position: int) -> int:
        """Write what is left of a parent cell on the last level; return the position behind it."""
        level = self._bottom
        count, ahead = self._cells_left[level], self._ahead[level]
        out[position : position + count - 1] = ahead[::-1]
        out[position + count - 1] = self._right[level] = self._right[level - 1]
        self._cells_left[level], self._ahead[level] = 0, []
        return position + count

    def _level(self, count: int) -> int:
        """Return the first level with a cell that begins here and fits."""
        level = self._bottom
        while level and not self._cells_left[level] and self._sizes[level - 1] <= count:
            level -= 1
        return level

    def _cells(self, level: int, most: int) -> NDArray[np.float64]:
        """Move over cells of a level, and return the values at all their ends."""
        values = [self._right[level]]
        self._advance(level)
        values.append(self._right[level])
        while len(values) <= most and (self._cells_left[level] or not level):
            self._advance(level)
            values.append(self._right[level])
        return np.array(values)

    def _children(self, level: int, ends: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values one level down, with those at the ends among them."""
        arity, count = self._arities[level], len(ends) - 1
        found = np.empty(count * arity + 1)
        found[0] = ends[0]
        table = found[1:].reshape(count, arity)
        if count < _FEW_ROWS:
            np.cumsum(self._source.draw(count * arity).reshape(count, arity), axis=1, out=table)
            table += ends[:-1, None]
            slope = (ends[1:] - table[:, -1])[:, None]
            table[:, :-1] += slope * self._weights[level]
            table[:, -1] = ends[1:]
            return found
        drawn = self._source.draw(count * arity).reshape(arity, count)
        drawn[0] += ends[:-1]
        for place in range(1, arity):  # long rows: one call for each place is the fastest
            np.add(drawn[place], drawn[place - 1], out=drawn[place])
        slope = (ends[1:] - drawn[-1]) / arity
        move = slope.copy()
        for place in range(arity - 1):
            np.add(drawn[place], move, out=drawn[place])
            move += slope
        drawn[-1] = ends[1:]
        table[:] = drawn.T
        return found

    @property
    def stored(self) -> int:
        """The ends of the current cells but the last level's, which is out, and what is ahead."""
        return max(1, self._bottom) + sum(map(len, self._ahead))

    def record(self) -> dict[str, Any]:
        """Return the ends and the values ahead."""
        return {"right": list(self._right), "ahead": [list(values) for values in self._ahead]}

    def resume(self, record: dict[str, Any], counted: int) -> None:
        """Go on from a record: the cells that are left follow from the number of outputs."""
        height = len(self._arities)
        left = [0] * height
        for level in range(1, height):
            begun = -(-counted // self._sizes[level])
            left[level] = -begun % self._arities[level]
        self._right = finite("right", record["right"], height)
        self._ahead = rows("ahead", record["ahead"], [max(cells - 1, 0) for cells in left])
        self._cells_left = left
