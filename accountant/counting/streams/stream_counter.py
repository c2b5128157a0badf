"""A stream of inputs counted with any mechanism for prefix sums: one in, one estimate out."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpassay.accountant import notation
from dpassay.accountant.core.randomness import SECURE, Randomness
from dpassay.accountant.counting.streams.exact_noise import Rounding, packed, unpacked
from dpassay.accountant.counting.streams.noise import FloatSource
from dpassay.accountant.counting.streams.processes import process
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected
from dpassay.accountant.mechanisms.counting.kary_tree import DiscreteKaryTree
from dpassay.accountant.mechanisms.counting.linear_counter import LinearCounter

Streamed: TypeAlias = LinearCounter | DiscreteKaryTree


@final
class Snapshot:
    """Where a counter stood. It is handed over, not copied: it can be restored once.

    Two continuations would use the same noise for two different prefixes, and their difference
    would show the inputs.
    """

    def __init__(self, record: dict[str, Any]) -> None:
        self._record: dict[str, Any] | None = record

    def take(self) -> dict[str, Any]:
        """Return the record, the first time."""
        if self._record is None:
            raise NotApplicableError(
                "This snapshot has been restored already. A second continuation would use the same "
                "noise for two different prefixes; take a new snapshot of the first one."
            )
        record, self._record = self._record, None
        return record


def read_inputs(block: ArrayLike, counted: int, *, whole: bool = False) -> NDArray[np.float64]:
    """Require one axis of numbers in [0, 1], or of 0 and 1.

    Errors count inputs from those before the block.
    """
    try:
        inputs = np.asarray(block, dtype=np.float64)
    except (TypeError, ValueError):
        raise expected("block", block, "to be an array of numbers in [0, 1]") from None
    if inputs.ndim != 1:
        raise expected("block", inputs.shape, "to have one axis")
    inside = (inputs == 0) | (inputs == 1) if whole else (inputs >= 0) & (inputs <= 1)
    if not inside.all():
        index = int(np.argmin(inside))
        what = "0 or 1" if whole else "in [0, 1]"
        raise expected(f"input {counted + 1 + index}", inputs[index], what)
    return inputs


@final
class StreamCounter:
    """Release prefix sums of a stream in [0, 1]ⁿ: A x + L z, as its mechanism describes them.

    The noise L z comes from a process that stores little and costs amortised O(1) per output
    (that of `SquareRootFactorization` stores n numbers). An output is a multiple of one power of
    two, decided exactly (`dpassay.accountant.counting.streams.exact_noise`): it has the guarantee
    of the mechanism, and δ grows by nothing. The noise of a `DiscreteKaryTree` is integers, and its
    inputs are 0 or 1.

    With `insecure_floats` noise and sums are doubles, some times faster: the guarantee is then that
    of real numbers, and the bits of an output tell about the inputs. For simulation.

    A counter takes as many inputs as the mechanism has steps; its state is continued at most once.

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
        mechanism: Streamed,
        *,
        rng: Randomness = SECURE,
        insecure_floats: bool = False,
    ) -> None:
        self._mechanism, self._rng = mechanism, rng
        self._steps = mechanism.steps
        self._discrete = isinstance(mechanism, DiscreteKaryTree)
        floats = insecure_floats and not self._discrete
        self._rounding = None if floats else Rounding(mechanism)
        self._open = True
        self._clear()

    def _clear(self) -> None:
        """Begin with no inputs and new noise."""
        self._counted = 0
        self._sum: float = 0 if self._rounding else 0.0  # in steps of the lattice, or a double
        if self._rounding is not None:
            self._noise = process(self._mechanism, self._rounding.source(self._rng))
        else:
            assert isinstance(self._mechanism, LinearCounter)
            self._noise = process(self._mechanism, FloatSource(self._mechanism, self._rng))

    @property
    def mechanism(self) -> Streamed:
        """What is released."""
        return self._mechanism

    @property
    def counted(self) -> int:
        """How many inputs have come, and outputs been released."""
        return self._counted

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
        if not (x in (0, 1) if self._discrete else 0 <= x <= 1):
            what = "0 or 1" if self._discrete else "in [0, 1]"
            raise expected(f"input {self._counted + 1}", x, what)
        if self._counted >= self._steps or not self._open:
            raise self._refusal(1)
        self._counted += 1
        if self._rounding is not None:
            return self._rounded([x], self._rounding)[0]
        self._sum += x
        return self._sum + float(self._noise.one())

    def extend(self, block: ArrayLike) -> NDArray[np.float64]:
        """Take a block of inputs and return their estimates.

        Raises InvalidInputError, and then has taken none of them, if one is outside [0, 1] or
        there are more than the mechanism has steps left.
        """
        inputs = read_inputs(block, self._counted, whole=self._discrete)
        if not self._open or self._counted + len(inputs) > self._steps:
            raise self._refusal(len(inputs))
        if not len(inputs):
            return np.empty(0)
        self._counted += len(inputs)
        if self._rounding is not None:
            return np.array(self._rounded(inputs.tolist(), self._rounding), dtype=np.float64)
        sums = np.cumsum(inputs)
        sums += self._sum
        self._sum = float(sums[-1])
        one = self._noise.one
        sums += np.fromiter((one() for _ in inputs), np.float64, len(inputs))
        return sums

    def _rounded(self, inputs: list[float], rounding: Rounding) -> list[float]:
        """Return the next outputs on the lattice."""
        found, total, one = [], int(self._sum), self._noise.one
        for x in inputs:
            total += rounding.input(x)
            found.append(rounding.output(total + rounding.noise(one())))
        self._sum = total
        return found

    def reset(self) -> None:
        """Begin a new stream, with new noise; whoever is in both streams is protected by 2ε."""
        if not self._open:
            raise self._refusal(0)
        self._clear()

    def snapshot(self) -> Snapshot:
        """Hand over to a snapshot, which `continued` takes once; this counter ends."""
        if not self._open:
            raise self._refusal(0)
        self._open = False
        return Snapshot(self.record())

    def record(self) -> dict[str, Any]:
        """Return what a continuation needs, as plain data: secret, and for one continuation.

        It holds noise. `StateFile` writes it down before the outputs it counts are released.
        """
        return {
            "mechanism": repr(self._mechanism),
            "floats": self._rounding is None,
            "counted": self._counted,
            "sum": self._sum,
            "noise": packed(self._noise.record()),
        }

    def _resume(self, record: dict[str, Any]) -> None:
        """Go on from a record of the same mechanism; KeyError or TypeError for another form."""
        counted, total, noise = record["counted"], record["sum"], record["noise"]
        if type(counted) is not int or not 0 <= counted <= self._steps:
            raise expected("counted", counted, f"to be an integer in 0..{self._steps}")
        unit = 1 if self.step is None else self.step
        kinds = (int, float) if self.step is None else (int,)
        if type(total) not in kinds or not (math.isfinite(total) and 0 <= total * unit <= counted):
            raise expected("sum", total, f"in [0, {counted / unit}]")
        if not isinstance(noise, dict):
            raise expected("noise", noise, "to be the record of a noise process")
        self._noise.resume(noise if self.step is None else unpacked(noise), counted)
        self._counted, self._sum = counted, total

    def _refusal(self, wanted: int) -> InvalidInputError | NotApplicableError:
        if not self._open:
            return NotApplicableError(
                "This counter has been handed over to a snapshot. Restore that, and go on there."
            )
        return InvalidInputError(
            f"Expected at most {self._steps - self._counted} more inputs, not {wanted}: "
            f"{self.mechanism!r} was built for {self._steps}. Build it for more steps; its noise "
            "grows with their logarithm."
        )


def counter_of(
    mechanism: object, *, rng: Randomness = SECURE, insecure_floats: bool = False
) -> StreamCounter:
    """Return a counter at its beginning.

    Its outputs are multiples of one power of two (integers, of `DiscreteKaryTree`) and its noise
    is the operating system's, so that neither the bits nor the noise tell about the inputs. With
    `insecure_floats`, or a generator of NumPy, they may: that is for simulation.

    Raises InvalidInputError for what is not for streams.
    """
    if not isinstance(mechanism, (LinearCounter, DiscreteKaryTree)):
        raise expected(
            "mechanism",
            mechanism,
            "to be for streams",
            "Known: BinaryTree, BridgedTree, DelannoyCounter, DiscreteKaryTree, HonakerTree, "
            "KaryTree, NormalizedSquareRoot, SmoothBinary, SquareRootFactorization.",
        )
    return StreamCounter(mechanism, rng=rng, insecure_floats=insecure_floats)


def continued(record: dict[str, Any], *, rng: Randomness = SECURE) -> StreamCounter:
    """Continue from a record; noise that no output has used yet comes from `rng`.

    Raises InvalidInputError where it is not one that `StreamCounter.record` returns.
    """
    try:
        mechanism = notation.parse(record["mechanism"])
        counter = counter_of(mechanism, rng=rng, insecure_floats=record["floats"] is True)
        counter._resume(record)
    except KeyError as error:
        raise InvalidInputError(
            f"The record of this counter lacks {error}: it is damaged, or another version of the "
            "program wrote it. Go on with that version; a new stream costs epsilon again."
        ) from error
    except TypeError as error:
        raise InvalidInputError(f"This is not the record of a counter: {error}.") from error
    return counter
