"""The noise of `HonakerTree`: estimates of vertices, merged like the carries of a counter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from accountant.counting.streams.noise import NoiseProcess, NoiseSource, finite
from accountant.counting.tree import own_weight

if TYPE_CHECKING:
    from accountant.mechanisms.counting.honaker_tree import HonakerTree


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
