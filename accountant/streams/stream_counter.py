"""A stream of inputs counted with any mechanism that is noise between two factors."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from accountant import notation
from accountant.errors import expected
from accountant.interval import Interval
from accountant.mechanisms.linear_counter import LinearCounter
from accountant.precision import ctx
from accountant.streams.counter import Counter, floating_noise
from accountant.streams.exact_noise import PRECISION, ExactSource, Rounding, packed, unpacked
from accountant.streams.noise import NoiseSource
from accountant.streams.processes import process

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@final
class StreamCounter(Counter):
    """Release prefix sums of a stream in [0, 1]ⁿ: A x + L z, as its mechanism describes them.

    The noise L z comes from a process that stores little and costs amortised O(1) per output
    (that of `SquareRootFactorization` stores n numbers). It is binary floating-point noise, and a
    sum is a sum of doubles: the guarantee of the mechanism is that of real numbers.

    With `lattice` an output is the real sum of inputs and noise, rounded to a multiple of one power
    of two (`accountant.streams.exact_noise`), with inputs rounded to such multiples (0 and 1 stay).
    It has the guarantee of the mechanism but for `extra_delta`. This is the way for secrets, at
    some 10⁵ outputs a second.

    Parameters
    ----------
    mechanism
        Which factorisation, for how many steps.
    rng
        Draws the noise.
    lattice
        Whether outputs are multiples of one power of two, without a channel in the bits.
    """

    def __init__(
        self, mechanism: LinearCounter, *, rng: np.random.Generator, lattice: bool = False
    ) -> None:
        self._mechanism, self._rng = mechanism, rng
        self._steps = mechanism.steps
        self._rounding = Rounding(mechanism) if lattice else None
        self._open = True
        self._clear()

    def _clear(self) -> None:
        self._counted = 0
        self._sum = 0.0
        self._whole = 0  # the sum in steps of the lattice
        if self._rounding is None:
            self._noise = process(self._mechanism, NoiseSource(self._mechanism, self._rng))
        else:
            self._noise = process(self._mechanism, ExactSource(self._mechanism, self._rng))

    @property
    def mechanism(self) -> LinearCounter:
        """What is released."""
        return self._mechanism

    @property
    def extra_delta(self) -> Interval:
        """What the sampler adds to δ(ε), for ε up to 100 (or the ε of the mechanism).

        Raises NotApplicableError for noise that is on no lattice.
        """
        if self._rounding is None:
            raise floating_noise()
        return self._rounding.extra_delta

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
        if not 0 <= x <= 1:
            raise expected(f"input {self._counted + 1}", x, "in [0, 1]")
        if self._counted >= self._steps or not self._open:
            raise self._refusal(1)
        self._counted += 1
        if self._rounding is not None:
            return self._rounded(x, self._rounding)
        self._sum += x
        return self._sum + float(self._noise.one())

    def _rounded(self, x: float, rounding: Rounding) -> float:
        """Return the next output on the lattice."""
        self._whole += rounding.input(x)
        with ctx.workprec(PRECISION):
            return rounding.output(self._whole + rounding.noise(self._noise.one()))

    def extend(self, block: ArrayLike) -> NDArray[np.float64]:
        """Take a block of inputs and return their estimates.

        Raises InvalidInputError, and then has taken none of them, if one is outside [0, 1] or
        there are more than the mechanism has steps left.
        """
        inputs = self._inputs(block)
        if not len(inputs):
            return np.empty(0)
        if self._rounding is not None:
            return np.array([self.update(x) for x in inputs.tolist()])
        sums = np.cumsum(inputs)
        sums += self._sum
        self._sum = float(sums[-1])
        self._counted += len(inputs)
        noise = np.empty(len(inputs))
        self._noise.fill(noise)
        sums += noise
        return sums

    def record(self) -> dict[str, Any]:
        """Return what a continuation needs, as plain data: secret, and for one continuation."""
        lattice = self._rounding is not None
        with ctx.workprec(PRECISION):
            noise = packed(self._noise.record())
        return {
            "mechanism": repr(self._mechanism),
            **({"lattice": True} if lattice else {}),
            "counted": self._counted,
            "sum": self._whole if lattice else float(self._sum),
            "noise": noise,
        }

    @classmethod
    def _continued(cls, record: dict[str, Any], rng: np.random.Generator) -> StreamCounter:
        mechanism = notation.parse(record["mechanism"])
        if not isinstance(mechanism, LinearCounter):
            raise expected("mechanism", record["mechanism"], "to count a stream")
        counter = StreamCounter(mechanism, rng=rng, lattice=record.get("lattice", False) is True)
        counted, total = cls._read_counted(record, mechanism.steps), record["sum"]
        unit = 1 if counter.step is None else counter.step
        kinds = (int, float) if counter.step is None else (int,)
        if type(total) not in kinds or not (math.isfinite(total) and 0 <= total * unit <= counted):
            raise expected("sum", total, f"in [0, {counted / unit}]")
        noise = record["noise"]
        if not isinstance(noise, dict):
            raise expected("noise", noise, "to be the record of a noise process")
        counter._noise.resume(unpacked(noise) if counter.step is not None else noise, counted)
        counter._counted = counted
        if counter.step is None:
            counter._sum = float(total)
        else:
            counter._whole = total
        return counter
