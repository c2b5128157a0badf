"""Many streams counted side by side, each with noise of its own."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from accountant.core.randomness import SECURE
from accountant.core.validate import integer
from accountant.counting.streams.bridge_noise import BridgeNoise
from accountant.counting.streams.exact_noise import Rounding
from accountant.counting.streams.noise import FloatSource, NoiseSource
from accountant.errors import InvalidInputError, expected

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from accountant.core.randomness import Randomness
    from accountant.mechanisms.counting.bridged_tree import BridgedTree

Row: TypeAlias = NDArray[Any]


@final
class ParallelCounter:
    """Release the prefix sums of many streams in step, one input of each at a time.

    Each stream has independent noise, as `StreamCounter` would draw for it alone; who is in one
    stream is protected by the ε (or μ) of the mechanism. What one counter stores is an array here,
    of rationals, or with `insecure_floats` of doubles: a hundred times faster, for simulation.

    Parameters
    ----------
    mechanism
        The same for all streams.
    streams
        How many, ≥ 1.
    rng
        Draws the noise; a generator of NumPy can be guessed.
    insecure_floats
        Whether to simulate in floating point.
    """

    def __init__(
        self,
        mechanism: BridgedTree,
        streams: int,
        *,
        rng: Randomness = SECURE,
        insecure_floats: bool = False,
    ) -> None:
        self._mechanism = mechanism
        self._streams = integer("streams", streams, least=1)
        self._rounding = None if insecure_floats else Rounding(mechanism)
        source: NoiseSource = (
            FloatSource(mechanism, rng) if self._rounding is None else self._rounding.source(rng)
        )
        self._noise = BridgeNoise(mechanism, _Rows(source, self._streams))
        self._sums = np.zeros(self._streams, dtype=float if insecure_floats else object)
        self._counted = 0

    @property
    def mechanism(self) -> BridgedTree:
        """What is released for each stream."""
        return self._mechanism

    @property
    def counted(self) -> int:
        """How many inputs of each stream have come."""
        return self._counted

    def update(self, inputs: ArrayLike) -> Row:
        """Take the next input of every stream, in [0, 1], and return all estimates.

        Raises InvalidInputError, and then has taken none, for a wrong number of inputs, one
        outside [0, 1], or more steps than the mechanism was built for.
        """
        row = np.asarray(inputs, dtype=np.float64)
        if row.shape != (self._streams,):
            raise expected("inputs", row.shape, f"to be one for each of {self._streams} streams")
        inside = (row >= 0) & (row <= 1)
        if not inside.all():
            stream = int(np.argmin(inside))
            raise expected(
                f"input {self._counted + 1} of stream {stream}", row[stream], "in [0, 1]"
            )
        if self._counted >= self._mechanism.steps:
            raise InvalidInputError(
                f"Expected at most {self._mechanism.steps} inputs of each stream: "
                f"{self._mechanism!r} was built for as many. Build it for more steps."
            )
        self._counted += 1
        noise: Row = self._noise.one()
        rounding = self._rounding
        if rounding is None:
            self._sums = self._sums + row
            released: Row = self._sums + noise
            return released
        self._sums = self._sums + [rounding.input(x) for x in row.tolist()]
        noise = np.array([rounding.noise(value) for value in noise], dtype=object)
        return np.array([rounding.output(whole) for whole in (self._sums + noise).tolist()])


class _Rows(NoiseSource):
    """Rows of variables, one for each stream, in the place of single ones."""

    def __init__(self, source: NoiseSource, streams: int) -> None:
        super().__init__()
        self._source, self._streams = source, streams
        self.zero = np.full(streams, source.zero)

    def one(self) -> Row:
        """Draw a row."""
        row: Row = self.draw(1)[0]
        return row

    def draw(self, count: int) -> Row:
        """Draw many."""
        return self._source.draw(count * self._streams).reshape(count, self._streams)

    def number(self, value: Fraction) -> Any:
        """Return a constant of every row."""
        return self._source.number(value)
