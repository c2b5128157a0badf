"""The noise of a k-ary tree: a walk over the digits of the time step (Algorithm 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from accountant.counting.streams.noise import NoiseProcess, NoiseSource, finite, rows

if TYPE_CHECKING:
    from accountant.counting.tree import Tree


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
