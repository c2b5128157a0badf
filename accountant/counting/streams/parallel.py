"""Many streams counted side by side, each with noise of its own."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpassay.accountant.core.randomness import SECURE, Randomness
from dpassay.accountant.core.validate import integer
from dpassay.accountant.counting.streams.exact_noise import Rounding
from dpassay.accountant.counting.streams.noise import FloatSource, NoiseSource
from dpassay.accountant.counting.streams.processes import process
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.mechanisms.counting.linear_counter import LinearCounter


@final
class ParallelCounter:
    """Release the prefix sums of many streams in step, one input of each at a time.

    Each stream has independent noise, as `StreamCounter` would draw for it alone; who is in one
    stream is protected by the ε (or μ) of the mechanism.

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
        mechanism: LinearCounter,
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
        self._noise = [process(mechanism, source) for _ in range(self._streams)]
        self._sums = [0.0 if insecure_floats else 0] * self._streams
        self._counted = 0

    @property
    def mechanism(self) -> LinearCounter:
        """What is released for each stream."""
        return self._mechanism

    @property
    def counted(self) -> int:
        """How many inputs of each stream have come."""
        return self._counted

    def update(self, inputs: ArrayLike) -> NDArray[np.float64]:
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
        noise, rounding = [each.one() for each in self._noise], self._rounding
        read = float if rounding is None else rounding.input
        self._sums = [s + read(x) for s, x in zip(self._sums, row.tolist(), strict=True)]
        if rounding is None:
            return np.add(self._sums, noise)
        whole = (int(s) + rounding.noise(z) for s, z in zip(self._sums, noise, strict=True))
        return np.array([rounding.output(steps) for steps in whole])
