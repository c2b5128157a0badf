"""The noise of `DelannoyCounter`: a walk over words, block by block."""

from __future__ import annotations

from typing import Any, final

from accountant.counting.streams.noise import NoiseProcess, NoiseSource, finite, rows
from accountant.errors import expected
from accountant.mechanisms.counting.delannoy_counter import DelannoyCounter


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
