"""The noise of `BridgedTree`: bridges between known ends, level below level."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, final

from accountant.counting.bridge import Grids
from accountant.counting.streams.noise import NoiseProcess, NoiseSource, finite, rows
from accountant.mechanisms.counting.bridged_tree import BridgedTree


@final
class CellNoise:
    """The noise of cells, each pooled from its own variable and those of cells in it.

    A level has the variables of the cells to come that a cell above has used already: with r = 1
    those of k_i k_{i+1} cells at most, at the start of a parent cell.

    Parameters
    ----------
    grids
        The cells, and their shares.
    draw
        Draws one variable.
    number
        Returns a share in the arithmetic of the variables.
    """

    def __init__(
        self, grids: Grids, draw: Callable[[], Any], number: Callable[[Fraction], Any]
    ) -> None:
        self._grids, self._draw, self._number = grids, draw, number
        self.used: list[list[Any]] = [[] for _ in grids.arities]

    def next(self, level: int, cells: int) -> list[Any]:
        """Return the noise of the next cells of a level."""
        if not self._grids.pooled:
            return [self._draw() for _ in range(cells)]
        sizes = self._grids.cell_sizes()
        found: list[Any] = [0] * cells
        for below in range(level, min(level + self._grids.pooled + 1, len(sizes))):
            each, used = sizes[level] // sizes[below], self.used[below]
            used += [self._draw() for _ in range(cells * each - len(used))]
            share = self._number(self._grids.share(level, below))
            for cell in range(cells):
                found[cell] += share * sum(used[cell * each : (cell + 1) * each])
        del self.used[level][:cells]
        return found

    def resume(self, used: object, counted: int) -> None:
        """Go on from the variables of a record: how many follows from the number of outputs."""
        sizes, pooled = self._grids.cell_sizes(), self._grids.pooled
        ends = [-(-counted // size) * size for size in sizes]
        lengths = [
            (ends[max(level - pooled - 1, 0)] - ends[level - 1]) // size if level else 0
            for level, size in enumerate(sizes)
        ]
        self.used = rows("used", used, lengths)


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
        self._bottom, self._pooled = grids.height - 1, grids.pooled > 0
        self._source = source
        self._noise = CellNoise(grids, source.one, source.number)
        self._right: list[Any] = [source.zero] * grids.height
        self._cells_left = [0] * grids.height  # in the parent cell, behind the current one
        self._ahead: list[list[Any]] = [[] for _ in grids.arities]  # the next one is the last

    def one(self) -> Any:
        """Return the value at the next input."""
        self._advance(self._bottom)
        return self._right[self._bottom]

    def _advance(self, level: int) -> None:
        """Move to the next cell of a level."""
        if not level:
            self._right[0] += self._noise.next(0, 1)[0]
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
        arity = self._arities[level]
        walk, at = [], left
        for noise in self._noise.next(level, arity):
            at += noise
            walk.append(at)
        slope = (right - at) / arity
        found = [value + slope * place for place, value in enumerate(walk, 1)]
        del found[-1]
        found.reverse()
        return found

    @property
    def stored(self) -> int:
        """The ends of the current cells but the last level's, which is out, and what is ahead."""
        return max(1, self._bottom) + sum(map(len, [*self._ahead, *self._noise.used]))

    def record(self) -> dict[str, Any]:
        """Return the ends, the values ahead, and the variables that a cell above has used."""
        found = {"right": list(self._right), "ahead": [list(values) for values in self._ahead]}
        return found | ({"used": self._noise.used} if self._pooled else {})

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
        if self._pooled:
            self._noise.resume(record["used"], counted)
