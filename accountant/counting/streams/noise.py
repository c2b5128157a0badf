"""Noise of a counter, output by output: what a stream adds to its prefix sums."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from dpassay.accountant.core.randomness import Randomness, floating
from dpassay.accountant.errors import expected
from dpassay.accountant.mechanisms.counting.linear_counter import LinearCounter

_BUFFERED: Final = 1 << 13
"""Variables drawn at once: fewer cost time for each, more are drawn in vain by a short stream."""


class NoiseSource(ABC):
    """Independent noise variables of one mechanism: Laplace or Gaussian, as it says.

    A process adds them and multiplies them by rationals; `zero` and `number` give its constants in
    the arithmetic of the variables.
    """

    zero: Any

    def __init__(self) -> None:
        self._ready: list[Any] = []  # drawn, and not used by any output

    def one(self) -> Any:
        """Draw one variable, from a buffer."""
        if not self._ready:
            self._ready = self.draw(_BUFFERED).tolist()
        return self._ready.pop()

    @abstractmethod
    def draw(self, count: int) -> NDArray[Any]:
        """Draw many."""

    @abstractmethod
    def number(self, value: Fraction) -> Any:
        """Return a constant in the arithmetic of the variables."""


@final
class FloatSource(NoiseSource):
    """Doubles: for simulation, since their bits tell about the inputs they are added to.

    Parameters
    ----------
    mechanism
        Tells the kind and the scale.
    rng
        Draws.

    Raises InvalidInputError for `SECURE`, which draws integers only.
    """

    zero = 0.0

    def __init__(self, mechanism: LinearCounter, rng: Randomness) -> None:
        super().__init__()
        self._gaussian = mechanism.mu is not None
        self._scale = mechanism.spread
        self._rng = floating(rng)

    def number(self, value: Fraction) -> float:
        """Return a double."""
        return float(value)

    def draw(self, count: int) -> NDArray[np.float64]:
        """Draw many."""
        if self._gaussian:
            return self._rng.standard_normal(count) * self._scale
        return laplace_doubles(self._scale, self._rng, count)


def laplace_doubles(scale: float, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Draw random signs of exponentials, six times faster than `rng.laplace`."""
    noise = rng.standard_exponential(count)
    np.negative(noise, out=noise, where=rng.integers(0, 2, count, dtype=np.bool_))
    noise *= scale
    return noise


class NoiseProcess(ABC):
    """The noise of the outputs in their order, L z, with little stored.

    Its source draws doubles, or rationals, one at a time then.
    """

    @abstractmethod
    def one(self) -> Any:
        """Return the noise of the next output."""

    @property
    @abstractmethod
    def stored(self) -> int:
        """How many numbers with noise in them are kept at the moment."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Return what a continuation needs, as plain data."""

    @abstractmethod
    def resume(self, record: dict[str, Any], counted: int) -> None:
        """Go on from a record, after so many outputs.

        Raises KeyError, TypeError or InvalidInputError where it is not one that fits.
        """


def finite(name: str, values: object, length: int | None = None) -> list[Any]:
    """Return the finite floats or rationals of a record, as many as `length` if it is given."""
    if not isinstance(values, list) or not all(map(_is_finite, values)):
        raise expected(name, values, "to be a list of finite numbers")
    if length is not None and len(values) != length:
        raise expected(name, values, f"to be {length} numbers")
    return [value if isinstance(value, fmpq) else float(value) for value in values]


def _is_finite(value: object) -> bool:
    if isinstance(value, fmpq):
        return True
    return isinstance(value, (int, float)) and type(value) is not bool and math.isfinite(value)


def rows(name: str, values: object, lengths: Sequence[int]) -> list[list[Any]]:
    """Return lists of finite numbers of the given lengths from a record."""
    if not isinstance(values, list) or len(values) != len(lengths):
        raise expected(name, values, f"to be {len(lengths)} lists")
    return [finite(name, row, length) for row, length in zip(values, lengths, strict=True)]
