"""A stream of inputs counted with any mechanism that is noise between two factors."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from accountant import notation
from accountant.core.randomness import SECURE
from accountant.counting.streams.counter import Counter
from accountant.counting.streams.exact_noise import Rounding, packed, unpacked
from accountant.counting.streams.noise import FloatSource
from accountant.counting.streams.processes import process
from accountant.errors import expected
from accountant.mechanisms.counting.linear_counter import LinearCounter

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from accountant.core.randomness import Randomness


@final
class StreamCounter(Counter):
    """Release prefix sums of a stream in [0, 1]ⁿ: A x + L z, as its mechanism describes them.

    The noise L z comes from a process that stores little and costs amortised O(1) per output
    (that of `SquareRootFactorization` stores n numbers). An output is a multiple of one power of
    two, decided exactly (`accountant.counting.streams.exact_noise`): it has the guarantee of the
    mechanism, and δ grows by nothing.

    With `insecure_floats` noise and sums are doubles, some twenty times faster: the guarantee is
    then that of real numbers, and the bits of an output tell about the inputs. For simulation.

    Parameters
    ----------
    mechanism
        Which factorisation, for how many steps.
    rng
        Draws the noise; a generator of NumPy can be guessed.
    insecure_floats
        Whether to simulate in floating point.
    """

    def __init__(
        self,
        mechanism: LinearCounter,
        *,
        rng: Randomness = SECURE,
        insecure_floats: bool = False,
    ) -> None:
        self._mechanism, self._rng = mechanism, rng
        self._steps = mechanism.steps
        self._rounding = None if insecure_floats else Rounding(mechanism)
        self._open = True
        self._clear()

    def _clear(self) -> None:
        self._counted = 0
        self._sum: float = 0 if self._rounding else 0.0  # in steps of the lattice, or a double
        source = (
            FloatSource(self._mechanism, self._rng)
            if self._rounding is None
            else self._rounding.source(self._rng)
        )
        self._noise = process(self._mechanism, source)

    @property
    def mechanism(self) -> LinearCounter:
        """What is released."""
        return self._mechanism

    @property
    def step(self) -> Fraction | None:
        """The step of the lattice, if there is one."""
        return None if self._rounding is None else self._rounding.step

    @property
    def stored(self) -> int:
        """How many numbers with noise in them are kept at the moment."""
        return self._noise.stored

    def update(self, x: float) -> float:
        """Take the next input, in [0, 1], and return the estimate of the sum so far."""
        self._count(x)
        if self._rounding is not None:
            return self._rounded([x], self._rounding)[0]
        self._sum += x
        return self._sum + float(self._noise.one())

    def extend(self, block: ArrayLike) -> NDArray[np.float64]:
        """Take a block of inputs and return their estimates.

        Raises InvalidInputError, and then has taken none of them, if one is outside [0, 1] or
        there are more than the mechanism has steps left.
        """
        inputs = self._inputs(block)
        if not len(inputs):
            return np.empty(0)
        self._counted += len(inputs)
        if self._rounding is not None:
            return np.array(self._rounded(inputs.tolist(), self._rounding), dtype=np.float64)
        sums = np.cumsum(inputs)
        sums += self._sum
        self._sum = float(sums[-1])
        noise = np.empty(len(inputs))
        self._noise.fill(noise)
        sums += noise
        return sums

    def _rounded(self, inputs: list[float], rounding: Rounding) -> list[float]:
        """Return the next outputs on the lattice."""
        found, total, one = [], int(self._sum), self._noise.one
        for x in inputs:
            total += rounding.input(x)
            found.append(rounding.output(total + rounding.noise(one())))
        self._sum = total
        return found

    def record(self) -> dict[str, Any]:
        """Return what a continuation needs, as plain data: secret, and for one continuation."""
        return {
            "mechanism": repr(self._mechanism),
            "floats": self._rounding is None,
            "counted": self._counted,
            "sum": self._sum,
            "noise": packed(self._noise.record()),
        }

    @classmethod
    def _continued(cls, record: dict[str, Any], rng: Randomness) -> StreamCounter:
        mechanism = notation.parse(record["mechanism"])
        if not isinstance(mechanism, LinearCounter):
            raise expected("mechanism", record["mechanism"], "to count a stream")
        counter = StreamCounter(mechanism, rng=rng, insecure_floats=record["floats"] is True)
        counted, total = cls._read_counted(record, mechanism.steps), record["sum"]
        unit = 1 if counter.step is None else counter.step
        kinds = (int, float) if counter.step is None else (int,)
        if type(total) not in kinds or not (math.isfinite(total) and 0 <= total * unit <= counted):
            raise expected("sum", total, f"in [0, {counted / unit}]")
        noise = record["noise"]
        if not isinstance(noise, dict):
            raise expected("noise", noise, "to be the record of a noise process")
        counter._noise.resume(unpacked(noise) if counter.step is not None else noise, counted)
        counter._counted, counter._sum = counted, total
        return counter
