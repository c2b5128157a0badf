"""A stream of inputs counted with any mechanism that is noise between two factors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from accountant import notation
from accountant.errors import InvalidInputError, NotApplicableError, expected
from accountant.mechanisms.linear_counter import LinearCounter
from accountant.streams.processes import process
from accountant.streams.snapshot import Snapshot

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@final
class StreamCounter:
    """Release prefix sums of a stream in [0, 1]ⁿ: A x + L z, as its mechanism describes them.

    The noise L z comes from a process that stores little and costs amortised O(1) per output
    (that of `SquareRootFactorization` stores n numbers). It is binary floating-point noise, and a
    sum is a sum of doubles: the guarantee of the mechanism is that of real numbers.

    Parameters
    ----------
    mechanism
        Which factorisation, for how many steps.
    rng
        Draws the noise.
    """

    def __init__(self, mechanism: LinearCounter, *, rng: np.random.Generator) -> None:
        self._mechanism, self._rng = mechanism, rng
        self._steps = mechanism.steps
        self._open = True
        self._clear()

    def _clear(self) -> None:
        self._counted, self._sum = 0, 0.0
        self._noise = process(self._mechanism, self._rng)

    @property
    def mechanism(self) -> LinearCounter:
        """What is released."""
        return self._mechanism

    @property
    def counted(self) -> int:
        """How many inputs have come, and outputs been released."""
        return self._counted

    @property
    def stored(self) -> int:
        """How many numbers with noise in them are kept at the moment."""
        return self._noise.stored

    def update(self, x: float) -> float:
        """Take the next input, in [0, 1], and return the estimate of the sum so far."""
        if not 0 <= x <= 1:
            raise expected(f"input {self._counted + 1}", x, "in [0, 1]")
        if self._counted >= self._steps or not self._open:
            raise self._refusal(1)
        self._counted += 1
        self._sum += x
        return self._sum + self._noise.one()

    def extend(self, block: ArrayLike) -> NDArray[np.float64]:
        """Take a block of inputs and return their estimates.

        Raises InvalidInputError, and then has taken none of them, if one is outside [0, 1] or
        there are more than the mechanism has steps left.
        """
        inputs = np.asarray(block, dtype=np.float64)
        if inputs.ndim != 1:
            raise expected("block", inputs.shape, "to have one axis")
        if not self._open or self._counted + len(inputs) > self._steps:
            raise self._refusal(len(inputs))
        inside = (inputs >= 0) & (inputs <= 1)
        if not inside.all():
            index = int(np.argmin(inside))
            raise expected(f"input {self._counted + 1 + index}", inputs[index], "in [0, 1]")
        if not len(inputs):
            return np.empty(0)
        sums = np.cumsum(inputs)
        sums += self._sum
        self._sum = float(sums[-1])
        self._counted += len(inputs)
        noise = np.empty(len(inputs))
        self._noise.fill(noise)
        sums += noise
        return sums

    def reset(self) -> None:
        """Begin a new stream, with new noise; whoever is in both streams is protected by 2ε."""
        if not self._open:
            raise self._refusal(0)
        self._clear()

    def snapshot(self) -> Snapshot:
        """Hand over to a snapshot, which `restore` continues once; this counter ends."""
        if not self._open:
            raise self._refusal(0)
        self._open = False
        return Snapshot(self.record())

    @staticmethod
    def restore(snapshot: Snapshot, *, rng: np.random.Generator) -> StreamCounter:
        """Continue from a snapshot; noise that no output has used yet comes from `rng`."""
        return StreamCounter.of_record(snapshot.take(), rng=rng)

    def record(self) -> dict[str, Any]:
        """Return what a continuation needs, as plain data: secret, and for one continuation."""
        return {
            "mechanism": repr(self._mechanism),
            "counted": self._counted,
            "sum": float(self._sum),
            "noise": self._noise.record(),
        }

    @staticmethod
    def of_record(record: dict[str, Any], *, rng: np.random.Generator) -> StreamCounter:
        """Continue from a record.

        Raises InvalidInputError where it is not one that `record` returns.
        """
        try:
            return StreamCounter._continued(record, rng)
        except (KeyError, TypeError) as error:
            raise InvalidInputError(f"This is not the record of a counter: {error!r}.") from error

    @staticmethod
    def _continued(record: dict[str, Any], rng: np.random.Generator) -> StreamCounter:
        mechanism = notation.parse(record["mechanism"])
        if not isinstance(mechanism, LinearCounter):
            raise expected("mechanism", record["mechanism"], "to count a stream")
        counter = StreamCounter(mechanism, rng=rng)
        counted, total = record["counted"], record["sum"]
        if type(counted) is not int or not 0 <= counted <= mechanism.steps:
            raise expected("counted", counted, f"to be an integer in 0..{mechanism.steps}")
        if type(total) not in (int, float) or not (math.isfinite(total) and 0 <= total <= counted):
            raise expected("sum", total, f"in [0, {counted}]")
        noise = record["noise"]
        if not isinstance(noise, dict):
            raise expected("noise", noise, "to be the record of a noise process")
        counter._noise.resume(noise, counted)
        counter._counted, counter._sum = counted, float(total)
        return counter

    def _refusal(self, wanted: int) -> InvalidInputError | NotApplicableError:
        if not self._open:
            return NotApplicableError(
                "This counter has been handed over to a snapshot. Restore that, and go on there."
            )
        return InvalidInputError(
            f"Expected at most {self._steps - self._counted} more inputs, not {wanted}: "
            f"{self._mechanism!r} was built for {self._steps}. Build it for more steps; its noise "
            "grows with their logarithm."
        )
