"""The noise of a k-ary tree: a walk over the digits of the time step (Algorithm 2).

That of `HonakerTree`: estimates of vertices, merged like the carries of a counter. That of
`SmoothBinary`: sums along the ones of a word of binary digits.
"""

from __future__ import annotations

import math
from typing import Any, final

from dpassay.accountant.counting.streams.noise import NoiseProcess, NoiseSource, finite, rows
from dpassay.accountant.counting.tree import Tree, own_weight
from dpassay.accountant.mechanisms.counting.honaker_tree import HonakerTree
from dpassay.accountant.mechanisms.counting.smooth_binary import SmoothBinary


@final
class TreeNoise(NoiseProcess):
    """Level i keeps the sum of the noise from the root down to its own node.

    And, while its digit is negative, the sums of the nodes it will come back through. A step
    changes level i once in kⁱ steps, so it costs amortised O(1), with at most (1 + ⌊(k−1)/2⌋) h
    numbers stored.
    """

    def __init__(self, tree: Tree, source: NoiseSource) -> None:
        self._tree, self._source, self._height = tree, source, tree.height
        self._lowest, self._highest = tree.lowest, tree.arity - 1 - tree.lowest
        self._digits = [0] * self._height
        self._values: list[Any] = [source.zero] * (self._height + 1)  # the root has no noise
        self._waiting: list[list[Any]] = [[] for _ in range(self._height)]

    def one(self) -> Any:
        """Count one up, and return the noise of the last level."""
        digits, values, draw, at = self._digits, self._values, self._source.one, 0
        while digits[at] == self._highest:
            at += 1
        digits[at] += 1
        if digits[at] > 0:
            values[at] += draw()
        else:
            values[at] = self._waiting[at].pop() if digits[at] else values[at + 1]
        for level in reversed(range(at)):
            value = values[level + 1]
            if self._lowest:  # this level will come back through all of these nodes
                row = []
                for _ in range(self._lowest):
                    value += draw()
                    row.append(value)
                value = row.pop()
                self._waiting[level] = row
            digits[level], values[level] = -self._lowest, value
        return values[0]

    @property
    def stored(self) -> int:
        """The sum of each level, and those to come back through."""
        return self._height + sum(map(len, self._waiting))

    def record(self) -> dict[str, Any]:
        """Return all sums."""
        return {
            "values": self._values[:-1],
            "waiting": [list(values) for values in self._waiting],
        }

    def resume(self, record: dict[str, Any], counted: int) -> None:
        """Go on from a record: the digits follow from the number of outputs."""
        digits = self._tree.written(counted)
        values = finite("values", record["values"], self._height)
        self._waiting = rows("waiting", record["waiting"], [max(-d - 1, 0) for d in digits])
        self._values, self._digits = [*values, self._source.zero], digits


@final
class HonakerNoise(NoiseProcess):
    """The errors of the estimates of the vertices in the last prefix, one for each 1 in t."""

    def __init__(self, mechanism: HonakerTree, source: NoiseSource) -> None:
        self._height = mechanism.height
        self._weights = [source.number(own_weight(level)) for level in range(self._height)]
        self._source = source
        self._counted = 0
        self._estimates: list[Any] = [source.zero] * self._height

    def one(self) -> Any:
        """Return the sum of the errors for the next step."""
        level, error = 0, self._source.one()
        while self._counted >> level & 1:
            children = error + self._estimates[level]
            self._estimates[level] = self._source.zero
            level += 1
            weight = self._weights[level]
            error = weight * self._source.one() + (1 - weight) * children
        self._estimates[level] = error
        self._counted += 1
        return sum(self._estimates)

    @property
    def stored(self) -> int:
        """One estimate for each level."""
        return self._height

    def record(self) -> dict[str, Any]:
        """Return the errors of the estimates."""
        return {"estimates": list(self._estimates)}

    def resume(self, record: dict[str, Any], counted: int) -> None:
        """Go on from a record."""
        self._estimates = finite("estimates", record["estimates"], self._height)
        self._counted = counted


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
