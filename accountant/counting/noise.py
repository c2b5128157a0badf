"""The noise of counters, drawn exactly."""

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

# --- Noise of a counter, output by output: what a stream adds to its prefix sums ------------------

_BUFFERED: Final = 1 << 13
"""Variables drawn at once: fewer cost time for each, more are drawn in vain by a short stream."""


class NoiseProcess(ABC):
    """The noise of the outputs in their order, L z, with little stored."""

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
    """Return the rationals of a record, as many as `length` if it is given."""
    if not isinstance(values, list) or not all(isinstance(value, fmpq) for value in values):
        raise expected(name, values, "to be a list of rationals")
    if length is not None and len(values) != length:
        raise expected(name, values, f"to be {length} numbers")
    return values


def rows(name: str, values: object, lengths: Sequence[int]) -> list[list[Any]]:
    """Return lists of rationals of the given lengths from a record."""
    if not isinstance(values, list) or len(values) != len(lengths):
        raise expected(name, values, f"to be {len(lengths)} lists")
    return [finite(name, row, length) for row, length in zip(values, lengths, strict=True)]


# --- Exact noise of a counter, and outputs on a lattice -------------------------------------------
# A counter releases A x + L z with L R = A: it measures R x + z, where z are independent real
# variables, and everything else is a function of what it measures. Inputs are rounded to the
# lattice g·ℤ, g = 2^e ≤ 1, which moves no two neighbours further apart: an input stays in [0, 1].
#
# **All counters but the square root** have an integer R. Then R x ∈ g·ℤ, and rounding what is
# measured gives R x + z̃ with z̃ = g·⌊z/g + 1/2⌋. The rounding is decided exactly
# (`dpassay.accountant.release.lattice`), z̃ is a whole number of steps, and L is rational: A x + L
# z̃ = L (R x + z̃) is computed in rationals and rounded to the lattice.
#
# **The square root** measures irregular fractions of the inputs. There the real output A x + L z is
# rounded: A x ∈ g·ℤ, so that is A x + g·⌊L z/g + 1/2⌋, decided exactly for the whole stream before
# its first output (`dpassay.accountant.counting.square_root`).
#
# Either way the released stream is a function of what the real mechanism measures that looks at no
# input. It has the very guarantee of the mechanism: ε-DP is ε-DP, and δ grows by nothing.

_HALF: Final = fmpq(1, 2)


@final
class NoiseSource:
    """Independent noise variables, Laplace or Gaussian, rounded to whole steps of a lattice.

    They are rationals. The step is 2^exponent.
    """

    zero = fmpq(0)

    def __init__(self, mechanism: LinearCounter, exponent: int, rng: Randomness) -> None:
        self.exponent, self.rng = exponent, rng
        self._mechanism = mechanism
        self._ready: list[fmpq] = []  # drawn, and not used by any output

    @functools.cached_property
    def _sampler(self) -> LatticeSampler:
        law = "laplace" if self._mechanism.mu is None else "normal"
        return whole_steps(self._mechanism.scale, self.exponent, law)

    def number(self, value: Fraction) -> fmpq:
        """Return a rational."""
        return fmpq(value.numerator, value.denominator)

    def one(self) -> fmpq:
        """Draw one variable, from a buffer."""
        if not self._ready:
            self._ready = self._draw(_BUFFERED)
        return self._ready.pop()

    def _draw(self, count: int) -> list[fmpq]:
        drawn = self._sampler.whole_steps(np.zeros((count, 1)), rng=self.rng)[:, 0]
        return [fmpq(steps) for steps in drawn.tolist()]


def whole_steps(scale: ExactReal, exponent: int, law: str) -> LatticeSampler:
    """Return the sampler of ⌊z/2^exponent + 1/2⌋ for a real variable z of a law and scale."""
    below = math.frexp(float(scale))[1] - 1
    return LatticeSampler(independent(lambda: [scale.ball()], law), resolution=below - exponent)


@final
class Rounding:
    """The lattice of a counter.

    The step is the power of two 2^−32 below the scale of a noise variable, at most 1.
    """

    def __init__(self, mechanism: LinearCounter) -> None:
        self._mechanism = mechanism
        scale = mechanism.spread
        if not 2.0**-900 < scale < 2.0**900:
            raise expected("scale of the noise", scale, "between 2^-900 and 2^900")
        self.exponent = min(0, math.frexp(scale)[1] - 1 - RESOLUTION)

    @property
    def step(self) -> Fraction:
        """The distance between neighbours of the lattice."""
        return Fraction(2) ** self.exponent

    def source(self, rng: Randomness) -> NoiseSource:
        """Return what draws the noise, in steps."""
        return NoiseSource(self._mechanism, self.exponent, rng)

    def input(self, x: float) -> int:
        """Return an input of [0, 1] in steps: the nearest integer, in [0, 1/step]."""
        return round(math.ldexp(x, -self.exponent))

    def noise(self, value: fmpq) -> int:
        """Return the noise of an output in steps, rounded."""
        return int((value + _HALF).floor())

    def output(self, whole: int) -> float:
        """Return so many steps as a double, the nearest one where there are more than 2^53."""
        return math.ldexp(whole, self.exponent)


def packed(value: Any) -> Any:
    """Return a record with rationals as text.

    >>> packed({"values": [fmpq(3, 4), 2.0]})
    {'values': ['3/4', 2.0]}
    """
    if isinstance(value, dict):
        return {key: packed(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [packed(entry) for entry in value]
    return f"{value.p}/{value.q}" if isinstance(value, fmpq) else value


def unpacked(value: Any) -> Any:
    """Return a record with its rationals again.

    Raises InvalidInputError where a text is none.
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
