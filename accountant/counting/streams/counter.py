"""What every counter of a stream of known length does: check its inputs, hand over, end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from accountant.core.mechanism import Mechanism
from accountant.core.randomness import SECURE
from accountant.counting.streams.snapshot import Snapshot
from accountant.errors import InvalidInputError, NotApplicableError, expected

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from accountant.core.randomness import Randomness


def read_inputs(block: ArrayLike, counted: int) -> NDArray[np.float64]:
    """Require one axis of numbers in [0, 1]; errors count inputs from those before the block."""
    try:
        inputs = np.asarray(block, dtype=np.float64)
    except (TypeError, ValueError):
        raise expected("block", block, "to be an array of numbers in [0, 1]") from None
    if inputs.ndim != 1:
        raise expected("block", inputs.shape, "to have one axis")
    inside = (inputs >= 0) & (inputs <= 1)
    if not inside.all():
        index = int(np.argmin(inside))
        raise expected(f"input {counted + 1 + index}", inputs[index], "in [0, 1]")
    return inputs


class Counter(ABC):
    """A counter that takes `_steps` inputs, and whose state is continued at most once."""

    _steps: int
    _counted: int
    _open: bool

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What is released."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Return what a continuation needs, as plain data: secret, and for one continuation."""

    @abstractmethod
    def _clear(self) -> None:
        """Begin with no inputs and new noise."""

    @classmethod
    @abstractmethod
    def _continued(cls, record: dict[str, Any], rng: Randomness) -> Self:
        """Continue from a record; KeyError or TypeError where it has no such form."""

    @property
    def counted(self) -> int:
        """How many inputs have come, and outputs been released."""
        return self._counted

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

    @classmethod
    def restore(cls, snapshot: Snapshot, *, rng: Randomness = SECURE) -> Self:
        """Continue from a snapshot; noise that no output has used yet comes from `rng`."""
        return cls.of_record(snapshot.take(), rng=rng)

    @classmethod
    def of_record(cls, record: dict[str, Any], *, rng: Randomness = SECURE) -> Self:
        """Continue from a record.

        Raises InvalidInputError where it is not one that `record` returns.
        """
        try:
            return cls._continued(record, rng)
        except (KeyError, TypeError) as error:
            raise InvalidInputError(f"This is not the record of a counter: {error!r}.") from error

    def _inputs(self, block: ArrayLike) -> NDArray[np.float64]:
        """Require a block that this counter can take whole."""
        inputs = read_inputs(block, self._counted)
        if not self._open or self._counted + len(inputs) > self._steps:
            raise self._refusal(len(inputs))
        return inputs

    def _count(self, x: float) -> None:
        """Require one input that this counter can take, and count it."""
        if not 0 <= x <= 1:
            raise expected(f"input {self._counted + 1}", x, "in [0, 1]")
        if self._counted >= self._steps or not self._open:
            raise self._refusal(1)
        self._counted += 1

    @staticmethod
    def _read_counted(record: dict[str, Any], steps: int) -> int:
        counted = record["counted"]
        if type(counted) is not int or not 0 <= counted <= steps:
            raise expected("counted", counted, f"to be an integer in 0..{steps}")
        return counted

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
