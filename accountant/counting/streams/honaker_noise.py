"""The noise of `HonakerTree`: estimates of vertices, merged like the carries of a counter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.counting.streams.noise import NoiseProcess, NoiseSource, finite
from accountant.mechanisms.counting.honaker_tree import own_weight

if TYPE_CHECKING:
    from accountant.mechanisms.counting.honaker_tree import HonakerTree

_LARGEST_BLOCK = 1 << 17
"""Values that are filled at once: 1 MB, which caches hold."""


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

    def fill(self, out: NDArray[np.float64]) -> None:
        """Write the noise of the next outputs, whole subtrees at a time."""
        position = 0
        while position < len(out):
            levels, size = 0, 1
            most = min(len(out) - position, _LARGEST_BLOCK)
            while levels + 1 < self._height and 2 * size <= most and not self._counted & size:
                levels, size = levels + 1, 2 * size
            # The last output of a subtree closes a vertex that may close others: on its own.
            if levels:
                self._subtree(levels, out[position : position + size - 1])
                position += size - 1
            out[position] = self.one()
            position += 1

    def _subtree(self, levels: int, out: NDArray[np.float64]) -> None:
        """Write all outputs below a vertex that begins here but its last one."""
        size = 1 << levels
        errors = [self._source.draw(size)[: size - 1]]
        for level in range(1, levels):
            weight, below = self._weights[level], errors[-1]
            count = (size - 1) >> level
            pairs = below[: 2 * count : 2] + below[1 : 2 * count : 2]
            errors.append(weight * self._source.draw(count) + (1 - weight) * pairs)
        sums = np.zeros(size)
        for level in reversed(range(levels)):
            sums[1 << level :: 2 << level] = sums[:: 2 << level] + errors[level][::2]
        out[:] = sums[1:] + sum(self._estimates)
        for level in range(levels):
            self._estimates[level] = float(errors[level][-1])
        self._counted += size - 1

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
