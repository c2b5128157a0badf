"""Exact noise of counters, for streams."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, final

from flint import fmpq

from dpassay.accountant.core.arrays import np
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.counting.counters import LinearCounter
from dpassay.accountant.errors import expected
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.release.lattice import RESOLUTION, LatticeSampler, independent

# --- Noise of a counter, output by output ---------------------------------------------------------

BUFFERED: Final = 1 << 13
"""Variables drawn at once: fewer take longer per variable, more are wasted on a short stream."""


class NoiseProcess(ABC):
    """The noise L z of the outputs in their order, with little storage."""

    @abstractmethod
    def one(self) -> Any:
        """Return the noise of the next output."""

    @property
    @abstractmethod
    def stored(self) -> int:
        """The number of noisy values stored at present."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Return the state needed to continue, as plain data."""

    @abstractmethod
    def resume(self, record: dict[str, Any], counted: int) -> None:
        """Continue from a record, after `counted` outputs.

        Raises KeyError, TypeError or InvalidInputError if the record does not fit.
        """


def finite(name: str, values: object, length: int | None = None) -> list[Any]:
    """Return a list of rationals from a record, after checking its length if that is given."""
    if not isinstance(values, list) or not all(isinstance(value, fmpq) for value in values):
        raise expected(name, values, "to be a list of rationals")
    if length is not None and len(values) != length:
        raise expected(name, values, f"to be {length} numbers")
    return values


def rows(name: str, values: object, lengths: Sequence[int]) -> list[list[Any]]:
    """Return lists of rationals of the given lengths from a record, after checking them."""
    if not isinstance(values, list) or len(values) != len(lengths):
        raise expected(name, values, f"to be {len(lengths)} lists")
    return [finite(name, row, length) for row, length in zip(values, lengths, strict=True)]


# --- Exact noise of a counter, and outputs on a lattice -------------------------------------------
# A counter releases A x + L z with L R = A. It measures R x + z, where z are independent real
# variables, and all else is a function of the measurements. Inputs are rounded to the lattice
# g·ℤ, g = 2^e ≤ 1. Inputs stay in [0, 1], so this moves no two neighbours further apart.
#
# **All counters except the square root** have an integer R. Then R x ∈ g·ℤ, and rounding the
# measurements gives R x + z̃ with z̃ = g·⌊z/g + 1/2⌋. The rounding is decided exactly
# (`dpassay.accountant.release.lattice`), z̃ is an integer number of steps, and L is rational:
# A x + L z̃ = L (R x + z̃) is computed in rationals and rounded to the lattice.
#
# **The square root** measures fractions of the inputs, which do not lie on the lattice. There the
# real output A x + L z is rounded. Since A x ∈ g·ℤ, this gives A x + g·⌊L z/g + 1/2⌋, which is
# decided exactly for the whole stream before its first output
# (`dpassay.accountant.counting.square_root`).
#
# In both cases the released stream is a function of the real mechanism's measurements alone. It has
# exactly the guarantee of the mechanism: ε-DP remains ε-DP, and δ does not grow.

_HALF: Final = fmpq(1, 2)


@final
class NoiseSource:
    """Independent Laplace or Gaussian noise variables, rounded to integer multiples of a step.

    The step is 2^exponent; variables are returned in steps, as rationals.
    """

    zero = fmpq(0)

    def __init__(self, mechanism: LinearCounter, exponent: int, rng: Randomness) -> None:
        self.exponent, self.rng = exponent, rng
        self._mechanism = mechanism
        self._ready: list[fmpq] = []  # drawn, but not yet used by an output

    @functools.cached_property
    def _sampler(self) -> LatticeSampler:
        law = "laplace" if self._mechanism.mu is None else "normal"
        return whole_steps(self._mechanism.scale, self.exponent, law)

    def number(self, value: Fraction) -> fmpq:
        """Convert a rational to flint's type."""
        return fmpq(value.numerator, value.denominator)

    def one(self) -> fmpq:
        """Return the next variable, from a buffer."""
        if not self._ready:
            self._ready = self.draw_integers(BUFFERED)
        return self._ready.pop()

    def draw_integers(self, count: int) -> list[fmpq]:
        """Return `count` numbers of steps."""
        drawn = self._sampler.whole_steps(np.zeros((count, 1)), rng=self.rng)[:, 0]
        return [fmpq(steps) for steps in drawn.tolist()]


def whole_steps(scale: ExactReal, exponent: int, law: str) -> LatticeSampler:
    """Return the sampler of ⌊z/2^exponent + 1/2⌋ for a real variable z of a law and scale."""
    below = math.frexp(float(scale))[1] - 1
    return LatticeSampler(independent(lambda: [scale.ball()], law), resolution=below - exponent)


@final
class Rounding:
    """The lattice of a counter.

    The step is the largest power of two that is at most 2^−32 times the scale of a noise variable,
    and at most 1.
    """

    def __init__(self, mechanism: LinearCounter) -> None:
        self._mechanism = mechanism
        scale = mechanism.spread
        if not 2.0**-900 < scale < 2.0**900:
            raise expected("scale of the noise", scale, "between 2^-900 and 2^900")
        self.exponent = min(0, math.frexp(scale)[1] - 1 - RESOLUTION)

    @property
    def step(self) -> Fraction:
        """The distance between neighbouring lattice points."""
        return Fraction(2) ** self.exponent

    def source(self, rng: Randomness) -> NoiseSource:
        """Return a source of noise variables, in steps."""
        return NoiseSource(self._mechanism, self.exponent, rng)

    def input(self, x: float) -> int:
        """Round an input in [0, 1] to steps: an integer in [0, 1/step]."""
        return round(math.ldexp(x, -self.exponent))

    def noise(self, value: fmpq) -> int:
        """Round the noise of an output to an integer number of steps."""
        return int((value + _HALF).floor())

    def output(self, whole: int) -> float:
        """Convert steps to the nearest double, which is exact up to 2^53 steps."""
        return math.ldexp(whole, self.exponent)


def packed(value: Any) -> Any:
    """Return a record with its rationals written as text.

    >>> packed({"values": [fmpq(3, 4), 2.0]})
    {'values': ['3/4', 2.0]}
    """
    if isinstance(value, dict):
        return {key: packed(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [packed(entry) for entry in value]
    return f"{value.p}/{value.q}" if isinstance(value, fmpq) else value


def unpacked(value: Any) -> Any:
    """Return a record with its texts converted back to rationals.

    Raises InvalidInputError if a text is not a rational.
    """
    if isinstance(value, dict):
        return {key: unpacked(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [unpacked(entry) for entry in value]
    if isinstance(value, str):
        try:
            return fmpq(*map(int, value.split("/")))
        except (TypeError, ValueError, ZeroDivisionError):
            raise expected("a number of the record", value, "to be a rational") from None
    return value
