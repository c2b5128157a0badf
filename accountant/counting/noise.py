"""The noise of counters, drawn in floats or exactly."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, final

from flint import fmpq

from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.core.randomness import Randomness, floating
from dpassay.accountant.counting.counters import DiscreteKaryTree, LinearCounter
from dpassay.accountant.errors import expected
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.release.lattice import RESOLUTION, LatticeSampler, independent
from dpassay.accountant.release.sampling import discrete_laplace

"""Noise of a counter, output by output: what a stream adds to its prefix sums."""

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


"""Exact noise of a counter, and outputs on a lattice.

A counter releases A x + L z with L R = A: it measures R x + z, where z are independent real
variables, and everything else is a function of what it measures. Inputs are rounded to the
lattice g·ℤ, g = 2^e ≤ 1, which moves no two neighbours further apart: an input stays in [0, 1].

**All counters but the square root** have an integer R. Then R x ∈ g·ℤ, and rounding what is
measured gives R x + z̃ with z̃ = g·⌊z/g + 1/2⌋. The rounding is decided exactly
(`dpassay.accountant.release.lattice`), z̃ is a whole number of steps, and L is rational: A x + L z̃
= L (R x + z̃) is computed in rationals and rounded to the lattice.

**The square root** measures irregular fractions of the inputs. There the real output A x + L z is
rounded: A x ∈ g·ℤ, so that is A x + g·⌊L z/g + 1/2⌋, decided exactly for the whole stream before
its first output (`dpassay.accountant.counting.square_root`).

Either way the released stream is a function of what the real mechanism measures that looks at no
input. It has the very guarantee of the mechanism: ε-DP is ε-DP, and δ grows by nothing.
"""

_HALF: Final = fmpq(1, 2)


@final
class WholeSource(NoiseSource):
    """Real noise rounded to whole steps of a lattice, as rationals (`…streams.rounding`).

    The step is 2^exponent. The noise of a `DiscreteKaryTree` is integers.
    """

    zero = fmpq(0)

    def __init__(
        self, mechanism: LinearCounter | DiscreteKaryTree, exponent: int, rng: Randomness
    ) -> None:
        super().__init__()
        self.exponent, self.rng = exponent, rng
        self._mechanism = mechanism

    @functools.cached_property
    def _sampler(self) -> LatticeSampler:
        assert isinstance(self._mechanism, LinearCounter)
        law = "laplace" if self._mechanism.mu is None else "normal"
        return whole_steps(self._mechanism.scale, self.exponent, law)

    def number(self, value: Fraction) -> fmpq:
        """Return a rational."""
        return fmpq(value.numerator, value.denominator)

    def draw(self, count: int) -> NDArray[Any]:
        """Draw many."""
        if isinstance(self._mechanism, DiscreteKaryTree):
            drawn = discrete_laplace(self._mechanism.scale, count, rng=self.rng)
        else:
            drawn = self._sampler.whole_steps(np.zeros((count, 1)), rng=self.rng)[:, 0]
        found = np.empty(count, dtype=object)
        found[:] = [fmpq(steps) for steps in drawn.tolist()]
        return found


def whole_steps(scale: ExactReal, exponent: int, law: str) -> LatticeSampler:
    """Return the sampler of ⌊z/2^exponent + 1/2⌋ for a real variable z of a law and scale."""
    below = math.frexp(float(scale))[1] - 1
    return LatticeSampler(independent(lambda: [scale.ball()], law), resolution=below - exponent)


@final
class Rounding:
    """The lattice of a counter.

    The step is the power of two 2^−32 below the scale of a noise variable, at most 1; 1 for a
    `DiscreteKaryTree`.
    """

    def __init__(self, mechanism: LinearCounter | DiscreteKaryTree) -> None:
        self._mechanism, self.exponent = mechanism, 0
        if isinstance(mechanism, DiscreteKaryTree):
            return
        scale = mechanism.spread
        if not 2.0**-900 < scale < 2.0**900:
            raise expected("scale of the noise", scale, "between 2^-900 and 2^900")
        self.exponent = min(0, math.frexp(scale)[1] - 1 - RESOLUTION)

    @property
    def step(self) -> Fraction:
        """The distance between neighbours of the lattice."""
        return Fraction(2) ** self.exponent

    def source(self, rng: Randomness) -> WholeSource:
        """Return what draws the noise, in steps."""
        return WholeSource(self._mechanism, self.exponent, rng)

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
