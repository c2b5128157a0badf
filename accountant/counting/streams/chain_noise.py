"""The noise of `DelannoyCounter`: a walk over words, block by block."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.counting.delannoy import delannoy as exact_delannoy
from accountant.counting.streams.noise import NoiseProcess, NoiseSource, finite, rows
from accountant.errors import expected

if TYPE_CHECKING:
    from accountant.mechanisms.counting.delannoy_counter import DelannoyCounter

_LARGEST_PLAN = 1 << 15
"""Longest block that a plan writes: its indices are kept in memory."""
_SMALLEST_PLAN = 16
"""Shortest one: below, single steps are as fast."""
delannoy = functools.lru_cache(maxsize=4096)(exact_delannoy)


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

    def fill(self, out: NDArray[np.float64]) -> None:
        """Write the noise of the next words, whole blocks of them where they fit."""
        position = 0
        while position < len(out):
            level, room = self._next()
            count = self._block(level, room, out[position:])
            if not count:
                self._enter(level, room)
                out[position], count = self._values[-1], 1
            position += count

    def _block(self, level: int, room: int, out: NDArray[np.float64]) -> int:
        """Write the words that share the digits up to a level, if they fit; return how many."""
        below, length = self._levels - 1 - level, self._length(level, room)
        size = delannoy(below, length) if length else 1
        if not _SMALLEST_PLAN <= size <= min(len(out), _LARGEST_PLAN):
            return 0
        outermost = size - delannoy(below, length - 1) if length == room else 0
        if outermost > self._spare:
            return 0
        _plan(below, length).run(self._values[level], out[:size], self._source)
        self._settle(level)
        self._spare -= outermost
        self._from = level
        return size

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


@final
@dataclass(frozen=True, slots=True)
class _Plan:
    """All words of an ℓ1 ball in order: for each shell, which they are and their parents."""

    shells: tuple[tuple[NDArray[np.intp], NDArray[np.intp]], ...]
    centre: int

    def run(self, value: float, out: NDArray[np.float64], source: NoiseSource) -> None:
        """Write the noise of all words, given that of the word in the middle."""
        out[self.centre] = value
        for places, parents in self.shells:
            out[places] = out[parents] + source.draw(len(places))


@functools.lru_cache(maxsize=256)
def _plan(levels: int, reach: int) -> _Plan:
    norms, parents = _ball(levels, reach)
    shells = []
    for norm in range(1, reach + 1):
        places = np.flatnonzero(norms == norm)
        shells.append((places, parents[places]))
    return _Plan(tuple(shells), (len(norms) - 1) // 2)


@functools.lru_cache(maxsize=1024)
def _ball(levels: int, reach: int) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Return the norm of each word and the place of its parent (that of 0 is itself)."""
    if not levels or not reach:
        return np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.intp)
    norms, parents, centres = [], [], []
    offset = 0
    for digit in range(-reach, reach + 1):
        inner, above = _ball(levels - 1, reach - abs(digit))
        norms.append(inner + abs(digit))
        parents.append(above + offset)
        centres.append(offset + (len(inner) - 1) // 2)
        offset += len(inner)
    parent = np.concatenate(parents)
    middle = reach
    for index, place in enumerate(centres):
        nearer = index + (1 if index < middle else -1 if index > middle else 0)
        parent[place] = centres[nearer]
    return np.concatenate(norms), parent
