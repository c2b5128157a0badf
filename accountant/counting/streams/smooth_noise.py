"""The noise of `SmoothBinary`: sums along the ones of a word of binary digits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, final

from accountant.counting.streams.noise import NoiseProcess, NoiseSource, finite

if TYPE_CHECKING:
    from accountant.mechanisms.counting.smooth_binary import SmoothBinary


@final
class SmoothNoise(NoiseProcess):
    """One noise variable for each 1 of the word; where a digit turns to 1, and behind, new ones.

    The words have equally many zeros and ones (a balanced leaf). Each 1 stands for the left sibling
    of a vertex on the way, which is used while the way goes there, and never before or after.
    """

    def __init__(self, mechanism: SmoothBinary, source: NoiseSource) -> None:
        self._length, self._word = 2 * mechanism.ones, (1 << mechanism.ones) - 1
        self._source = source
        self._values: list[Any] = [source.zero] * self._length  # of the digit of weight 2^i

    def one(self) -> Any:
        """Return the sum over the ones of the next word."""
        word = self._word
        low = word & -word
        carried = word + low
        fresh = (word ^ carried) // (low << 2) | carried
        values, one = self._values, self._source.one
        changed = fresh ^ word
        for place in range(changed.bit_length()):
            values[place] = one() if fresh >> place & 1 else self._source.zero
        self._word = fresh
        return sum(values)

    @property
    def stored(self) -> int:
        """One number for each digit."""
        return self._length

    def record(self) -> dict[str, Any]:
        """Return the noise of the ones."""
        return {"values": list(self._values)}

    def resume(self, record: dict[str, Any], counted: int) -> None:
        """Go on from a record: the word follows from the number of outputs."""
        self._values = finite("values", record["values"], self._length)
        self._word = _balanced_word(self._length, counted)


def _balanced_word(length: int, rank: int) -> int:
    """Return the word of a rank among those with equally many zeros and ones, from 0."""
    word, ones = 0, length // 2
    for place in reversed(range(length)):
        without = math.comb(place, ones)  # words that have a 0 here
        if ones and rank >= without:
            word |= 1 << place
            rank -= without
            ones -= 1
    return word
