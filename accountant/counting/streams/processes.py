"""The noise of a stream, output by output: of bridges, of chains of words, and which is whose."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, final

from dpassay.accountant.counting.bridge import Grids
from dpassay.accountant.counting.streams.noise import NoiseProcess, NoiseSource, finite, rows
from dpassay.accountant.counting.streams.square_root_noise import SquareRootNoise
from dpassay.accountant.counting.streams.tree_noise import HonakerNoise, SmoothNoise, TreeNoise
from dpassay.accountant.errors import expected
from dpassay.accountant.mechanisms.counting.bridged_tree import BridgedTree
from dpassay.accountant.mechanisms.counting.delannoy_counter import DelannoyCounter
from dpassay.accountant.mechanisms.counting.honaker_tree import HonakerTree
from dpassay.accountant.mechanisms.counting.kary_tree import DiscreteKaryTree, TreeCounter
from dpassay.accountant.mechanisms.counting.linear_counter import LinearCounter
from dpassay.accountant.mechanisms.counting.normalized_square_root import NormalizedSquareRoot
from dpassay.accountant.mechanisms.counting.smooth_binary import SmoothBinary
from dpassay.accountant.mechanisms.counting.square_root_factorization import SquareRootFactorization


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


@final
class ChainNoise(NoiseProcess):
    """The noise of the word at hand, of the words above it, and of those it will come back through.

    Level i keeps the sum of the noise up to its digit and, while that digit is negative, the sums
    at the nearer digits: at most s + T numbers in all.
    """

    def __init__(self, mechanism: DelannoyCounter, source: NoiseSource) -> None:
        chains = mechanism.chains
        self._levels, self._reach = chains.levels, chains.reach
        self._spare = chains.outermost  # words of norm T that may still come
        self._source = source
        self._digits = [0] * self._levels
        self._values: list[Any] = [source.zero] * self._levels
        self._waiting: list[list[Any]] = [[] for _ in range(self._levels)]
        self._from = self._levels - 1  # the level whose digit changes next, or one above it

    def one(self) -> Any:
        """Return the noise of the next word."""
        self._enter(*self._next())
        return self._values[-1]

    def _next(self) -> tuple[int, int]:
        """Change the digit of the last level that can go on; return it and T less the norm."""
        digits, values = self._digits, self._values
        level = self._from
        room = self._reach - sum(map(abs, digits[: level + 1]))
        while digits[level] >= 0 and room <= (0 if self._spare else 1):
            room += digits[level]
            digits[level] = 0
            level -= 1
        digit = digits[level] + 1
        digits[level] = digit
        if digit > 0:
            values[level] += self._source.one()
            return level, room - 1
        above = values[level - 1]  # the first digit is never negative
        values[level] = self._waiting[level].pop() if digit else above
        return level, room + 1

    def _enter(self, level: int, room: int) -> None:
        """Go to the first word of the block below a level: the left end of its chain."""
        length = self._length(level, room)
        if length:
            value, row = self._values[level], []
            for _ in range(length):
                value += self._source.one()
                row.append(value)
            level, room = level + 1, room - length
            self._digits[level], self._values[level] = -length, row.pop()
            self._waiting[level] = row
        self._settle(level)
        self._from = self._levels - 1
        if not room:
            self._spare -= 1

    def _length(self, level: int, room: int) -> int:
        """Return how far the digits below a level reach: words of norm T may be used up."""
        if level + 1 == self._levels or not room:
            return 0
        return room if self._spare else room - 1

    def _settle(self, level: int) -> None:
        """Set the digits below a level to 0."""
        for below in range(level + 1, self._levels):
            self._digits[below], self._values[below] = 0, self._values[level]

    @property
    def stored(self) -> int:
        """The sums up to each digit, and those to come back through."""
        return self._levels + sum(map(len, self._waiting))

    def record(self) -> dict[str, Any]:
        """Return the digits, the sums, and what is left."""
        return {
            "digits": list(self._digits),
            "values": list(self._values),
            "waiting": [list(values) for values in self._waiting],
            "from": self._from,
            "spare": self._spare,
        }

    def resume(self, record: dict[str, Any], counted: int) -> None:
        """Go on from a record."""
        digits, start, spare = record["digits"], record["from"], record["spare"]
        whole = isinstance(digits, list) and all(type(d) is int for d in digits)
        if not whole or len(digits) != self._levels or sum(map(abs, digits)) > self._reach:
            raise expected("digits", digits, f"to be a word of {self._levels} digits")
        if type(start) is not int or not 0 <= start < self._levels:
            raise expected("from", start, f"in 0..{self._levels - 1}")
        if type(spare) is not int or not 0 <= spare <= self._spare:
            raise expected("spare", spare, f"in 0..{self._spare}")
        lengths = [max(-digit - 1, 0) for digit in digits]
        self._waiting = rows("waiting", record["waiting"], lengths)
        self._values = finite("values", record["values"], self._levels)
        self._digits, self._from, self._spare = list(digits), start, spare


def process(mechanism: LinearCounter | DiscreteKaryTree, source: NoiseSource) -> NoiseProcess:
    """Return the noise process of a mechanism, at its beginning."""
    match mechanism:
        case BridgedTree():
            return BridgeNoise(mechanism, source)
        case DelannoyCounter():
            return ChainNoise(mechanism, source)
        case HonakerTree():
            return HonakerNoise(mechanism, source)
        case SmoothBinary():
            return SmoothNoise(mechanism, source)
        case TreeCounter():
            return TreeNoise(mechanism.tree, source)
        case DiscreteKaryTree():
            return TreeNoise(mechanism.continuous.tree, source)
        case SquareRootFactorization() | NormalizedSquareRoot():
            return SquareRootNoise(mechanism, source)
    raise expected("mechanism", mechanism, "to count a stream")
