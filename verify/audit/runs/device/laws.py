"""The laws of our own mechanisms as a device draws them, and their exact half-lines.

A law is a noise and where it is centred. It draws scores (the output, or a linear score of a vector
of outputs) from words of 64 bits, and knows P(score ≥ x) and P(score < x), with relative accuracy
in both tails, from which the event is chosen.

- A symmetric density of one number: by inversion, ± scale·g(−ln(1 − U)).
- Gaussian: Box and Muller's √(−2 ln(1 − U)) cos 2πV and its sine.
- Staircase: whole steps ⌊−ln(1 − U)/ε⌋, the part, the place in it and the sign.
- Rank-one Gaussian: whole directions g/‖g‖ of M Gaussian numbers and a Gaussian length.
- Integers and categories: Walker's alias method with whole weights that add up to 2⁶⁴. The law that
  is drawn is exactly that of the weights.

`resolution` bounds what separates the drawn law from the mechanism's on a half-line. U and V lie on
a grid of 2⁻⁵³, the elementary functions are taken to be right within 4 units in the last place, and
values are rounded: in all below 2⁻⁴⁴ in units of the noise, and 2⁻⁵³ for each unit of the centre.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpassay.accountant.core.inverse_noise import InverseNoise
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import (
    DESCRIPTIONS,
    BoundedCountNoise,
    DiscreteGaussian,
    DiscreteLaplace,
    EllipticalGaussian,
    Gaussian,
    IntegerNoise,
    PoissonSubsampled,
    RandomizedResponse,
    RankOneGaussian,
    Staircase,
    Tabulated,
    TruncatedGeometric,
)
from dpassay.accountant.numbers.interval import ball
from dpassay.verifier.audit.runs.device import alias
from dpassay.verifier.audit.runs.device.arrays import Array, Device, Words

Values: TypeAlias = NDArray[np.float64]

_ROUNDING = 2.0**-44
"""In units of the noise: grid, elementary functions and rounding together (see above)."""
_UNIT = 2.0**-53
"""The grid of uniform numbers, and the relative rounding of a double."""
_UNIFORM_SHIFT = 11
"""Bits of a word that a uniform number does not use."""
_UNIFORM_MASK = (1 << 53) - 1
"""Takes away the sign that a signed shift repeats."""
_HALF_RANGE = 1 << 63
"""Words as signed integers run from minus this to below it."""
_POLAR, _POLAR_NODES = 40.0, 1601
"""s of the polar form: e^{−40} is below the rounding of a double, steps of 1/20 are exact to it."""


class SymmetricNoise(ABC):
    """A symmetric law of one real number."""

    whole: ClassVar[bool] = False
    """Whether the values are integers, drawn exactly."""
    unit: float
    """The scale in which rounding is measured."""

    @abstractmethod
    def draw(self, words: Words, size: int, device: Device) -> Array:
        """Return `size` values in float64."""

    @abstractmethod
    def tail(self, x: Values) -> Values:
        """Return P(Z ≥ x) for x ≥ 0."""

    @abstractmethod
    def cuts(self) -> Values:
        """Return places at which an event may begin or end."""

    def upper(self, x: Values) -> Values:
        """Return P(Z ≥ x)."""
        tail = self.tail(np.abs(x))
        return np.where(x >= 0, tail, 1 - tail)

    def lower(self, x: Values) -> Values:
        """Return P(Z < x)."""
        return self.upper(-x)


def uniform(word: Array, device: Device) -> Array:
    """Return the upper 53 bits of words as numbers in [0, 1)."""
    bits = (word >> _UNIFORM_SHIFT) & _UNIFORM_MASK
    return device.xp.astype(bits, device.xp.float64) * _UNIT


def sign(word: Array, device: Device) -> Array:
    """Return ±1 by the lowest bit of words."""
    return 1.0 - 2.0 * device.xp.astype(word & 1, device.xp.float64)


@final
@dataclass(frozen=True)
class DeclaredNoise(SymmetricNoise):
    """A symmetric density that its mechanism declares by its inverse."""

    declared: InverseNoise
    unit: float

    def draw(self, words: Words, size: int, device: Device) -> Array:
        """Draw from one word each."""
        word = words(size)
        exponential = -device.xp.log1p(-uniform(word, device))
        magnitude = self.declared.magnitude(device.xp, exponential)
        return sign(word, device) * self.unit * magnitude

    def tail(self, x: Values) -> Values:
        """Return P(Z ≥ x)."""
        return self.declared.survival(x / self.unit)

    def cuts(self) -> Values:
        """Return places up to the reach of the noise."""
        return self.unit * np.linspace(-self.declared.reach, self.declared.reach, 721)


@final
@dataclass(frozen=True)
class GaussianNoise(SymmetricNoise):
    """N(0, unit²)."""

    unit: float

    def draw(self, words: Words, size: int, device: Device) -> Array:
        """Draw two values from two words."""
        xp = device.xp
        half = (size + 1) // 2
        radius = self.unit * xp.sqrt(-2.0 * xp.log1p(-uniform(words(half), device)))
        angle = (2 * math.pi) * uniform(words(half), device)
        return xp.concat([radius * xp.cos(angle), radius * xp.sin(angle)])[:size]

    def tail(self, x: Values) -> Values:
        """Return P(Z ≥ x)."""
        return np.asarray(special.ndtr(-x / self.unit))

    def cuts(self) -> Values:
        """Return places up to 8 standard deviations out."""
        return self.unit * np.linspace(-8, 8, 641)


@final
@dataclass(frozen=True)
class StaircaseNoise(SymmetricNoise):
    """Geng and Viswanath's staircase: steps of width `unit`, each lower by e^{−ε}."""

    epsilon: float
    gamma: float
    unit: float

    def draw(self, words: Words, size: int, device: Device) -> Array:
        """Draw from two words each: steps and sign, part and place."""
        xp = device.xp
        word = words(size)
        steps = xp.floor(xp.log1p(-uniform(word, device)) / -self.epsilon)
        place = uniform(words(size), device)
        share = self._inner()
        inner = xp.astype(place < share, xp.float64)
        first = place * (self.gamma / share) if share > 0 else 0.0 * place
        second = 1.0 - (1.0 - place) * ((1 - self.gamma) / (1 - share)) if share < 1 else first
        return self.unit * sign(word, device) * (steps + inner * first + (1.0 - inner) * second)

    def _inner(self) -> float:
        """Return the probability of the first part of a step."""
        later = math.exp(-self.epsilon) * (1 - self.gamma)
        return self.gamma / (self.gamma + later)

    def tail(self, x: Values) -> Values:
        """Return P(Z ≥ x)."""
        ratio, share = math.exp(-self.epsilon), self._inner()
        steps = np.floor(x / self.unit)
        place = x / self.unit - steps
        first = np.minimum(place / self.gamma, 1.0) if self.gamma > 0 else np.ones_like(place)
        rest = np.maximum(place - self.gamma, 0.0)
        second = rest / (1 - self.gamma) if self.gamma < 1 else rest
        passed = share * first + (1 - share) * second
        return ratio**steps * (1 - (1 - ratio) * passed) / 2

    def cuts(self) -> Values:
        """Return the ends of the parts, up to a probability of e^{−36}."""
        steps = np.arange(min(200, math.ceil(36 / self.epsilon)) + 1)
        ends = np.concatenate([steps, steps + self.gamma])
        return self.unit * np.unique(np.concatenate([-ends, ends]))


@final
@dataclass(frozen=True)
class RankOneNoise(SymmetricNoise):
    """One entry of unit·z·v: z ~ N(0, 1), v uniform on the sphere of R^dimension.

    With the direction in polar form, v = (1 + e^{−2s})^{−1/2}, the density of v > 0 is
    2c·v(1 − v²)^{(M−1)/2} ds with c = Γ(M/2)/(√π Γ((M − 1)/2)).
    """

    unit: float
    dimension: int

    def draw(self, words: Words, size: int, device: Device) -> Array:
        """Draw whole directions, of which the first entry is kept, and their lengths."""
        xp, unit_noise = device.xp, GaussianNoise(1.0)
        directions = xp.reshape(
            unit_noise.draw(words, size * self.dimension, device), (size, self.dimension)
        )
        norms = xp.sqrt(xp.sum(directions * directions, axis=1))
        return self.unit * unit_noise.draw(words, size, device) * directions[:, 0] / norms

    def tail(self, x: Values) -> Values:
        """Return P(Z ≥ x), by the trapezoidal rule over s."""
        from_centre = x[:, np.newaxis] / self.unit
        return np.asarray(special.ndtr(-from_centre / self._entries[0]) @ self._entries[1])

    @cached_property
    def _entries(self) -> tuple[Values, Values]:
        """Return nodes of v in (0, 1) and their weights, which add up to 1."""
        s = np.linspace(-_POLAR, _POLAR, _POLAR_NODES)
        entry = 1 / np.sqrt(1 + np.exp(-2 * s))
        weight = entry * np.exp((self.dimension - 1) / 2 * special.log_expit(-2 * s))
        return entry, weight / weight.sum()

    def cuts(self) -> Values:
        """Return places on both sides of the spike at 0, evenly in their logarithm."""
        out = self.unit / math.sqrt(self.dimension) * np.logspace(-8, 1.5, 340)
        return np.concatenate([-out[::-1], [0.0], out])


@final
@dataclass(frozen=True)
class TableNoise:
    """A law on consecutive integers by whole weights that add up to 2⁶⁴."""

    table: alias.Table
    unit: ClassVar[float] = 1.0
    whole: ClassVar[bool] = True

    def draw(self, words: Words, size: int, device: Device) -> Array:
        """Draw from one word each."""
        index = self.table.draw(words(size), device)
        return device.xp.astype(index, device.xp.float64) + float(self.table.lowest)

    def upper(self, x: Values) -> Values:
        """Return P(Z ≥ x)."""
        return self.table.upper(np.ceil(x))

    def lower(self, x: Values) -> Values:
        """Return P(Z < x)."""
        return self.table.lower(np.ceil(x))

    def cuts(self) -> Values:
        """Return every outcome and the place behind the last."""
        return self.table.lowest + np.arange(self.table.size + 1.0)


@final
@dataclass(frozen=True, eq=False)
class Law:
    """A noise around an answer, which counts with a probability (Poisson subsampling)."""

    noise: SymmetricNoise | TableNoise
    centre: float = 0.0
    present: float = 1.0
    weights: tuple[float, ...] = ()
    """Of a vector of outputs: its score is weights·output, of which `noise` is the law."""
    parts: tuple[tuple[float, float], ...] = ()
    """Of a vector of outputs: standard deviation and centre of every entry."""
    width: int = 1
    """Numbers that a run draws."""

    @property
    def resolution(self) -> float:
        """Bound of the difference to the mechanism's probability of a half-line."""
        rounded = _ROUNDING * self.width
        off = abs(self.centre)
        off += sum(abs(w * c) for w, (_, c) in zip(self.weights, self.parts, strict=True))
        return rounded if self.noise.whole else rounded + _UNIT * off / self.noise.unit

    def draw(self, words: Words, size: int, device: Device) -> Array:
        """Return the scores of `size` runs."""
        if self.parts:
            return self._draw_vectors(words, size, device)
        values = self.noise.draw(words, size, device)
        if self.present < 1:
            xp = device.xp
            threshold = math.floor(self.present * 2 * _HALF_RANGE) - _HALF_RANGE
            taken = xp.astype(words(size) < threshold, xp.float64)
            return values + self.centre * taken
        return values + self.centre if self.centre else values

    def _draw_vectors(self, words: Words, size: int, device: Device) -> Array:
        """Draw whole vectors and return their scores."""
        xp = device.xp
        drawn = GaussianNoise(1.0).draw(words, size * self.width, device)
        rows = xp.reshape(drawn, (size, self.width))
        spread, centre = (device.array(np.array(part)) for part in zip(*self.parts, strict=True))
        outputs = rows * spread + centre
        return xp.matmul(outputs, device.array(np.array(self.weights)))

    def upper(self, x: Values) -> Values:
        """Return P(score ≥ x)."""
        return self._mixed(self.noise.upper, x)

    def lower(self, x: Values) -> Values:
        """Return P(score < x)."""
        return self._mixed(self.noise.lower, x)

    def _mixed(self, probability: Callable[[Values], Values], x: Values) -> Values:
        with_answer = probability(x - self.centre)
        if self.present == 1:
            return with_answer
        return self.present * with_answer + (1 - self.present) * probability(x)

    def cuts(self) -> Values:
        """Return places at which an event may begin or end."""
        around = self.noise.cuts()
        own = around + self.centre
        return own if self.present == 1 else np.concatenate([around, own])


@singledispatch
def law(mechanism: Mechanism, answer: Any) -> Law:
    """Return the law of what a mechanism releases for a true answer.

    One without a law here is drawn by its own `inverse_noise`.

    Raises InvalidInputError for a mechanism that has none here.
    """
    declared = mechanism.inverse_noise()
    if declared is not None:
        return Law(DeclaredNoise(declared, float(declared.scale)), _number(answer))
    known = {kind.__name__ for kind in law.registry if kind is not object}
    known |= {
        kind.__name__
        for kind in DESCRIPTIONS.values()
        if issubclass(kind, Mechanism) and kind.inverse_noise is not Mechanism.inverse_noise
    }
    raise InvalidInputError(
        f"Expected device=None for {type(mechanism).__name__}: a device draws "
        f"{', '.join(sorted(known))}. Every mechanism can be audited without a device."
    )


@law.register
def _(mechanism: Gaussian, answer: Any) -> Law:
    return Law(GaussianNoise(float(mechanism.standard_deviation)), _number(answer))


@law.register
def _(mechanism: Staircase, answer: Any) -> Law:
    noise = StaircaseNoise(
        float(mechanism.epsilon), float(mechanism.gamma), float(mechanism.sensitivity)
    )
    return Law(noise, _number(answer))


@law.register
def _(mechanism: DiscreteLaplace, answer: Any) -> Law:
    return Law(TableNoise(alias.discrete_laplace(mechanism.scale)), float(_integer(answer)))


@law.register
def _(mechanism: DiscreteGaussian, answer: Any) -> Law:
    return Law(TableNoise(alias.discrete_gaussian(mechanism.parameter)), float(_integer(answer)))


@law.register
def _(mechanism: IntegerNoise, answer: Any) -> Law:
    table = alias.finite(lambda: [ball(p) for p in mechanism.probabilities], mechanism.lowest)
    return Law(TableNoise(table), float(_integer(answer)))


@law.register
def _(mechanism: BoundedCountNoise, answer: Any) -> Law:
    table = alias.finite(lambda: mechanism.masses(0)[0], -mechanism.support)
    return Law(TableNoise(table), float(_integer(answer)))


@law.register
def _(mechanism: TruncatedGeometric, answer: Any) -> Law:
    count = _integer(answer)
    return Law(TableNoise(alias.finite(lambda: mechanism.masses(count), mechanism.low)))


@law.register
def _(mechanism: Tabulated, answer: Any) -> Law:
    side, exact = int(_integer(answer) != 0), mechanism.rational_masses(0)
    if exact is None:
        return Law(TableNoise(alias.finite(lambda: mechanism.masses(0)[side], 0)))
    return Law(TableNoise(alias.rational(exact[side])))


@law.register
def _(mechanism: RandomizedResponse, answer: Any) -> Law:
    truth, k = _integer(answer), mechanism.categories
    if not 0 <= truth < k:
        raise InvalidInputError(f"Expected the answer {truth} to be a category, 0 to {k - 1}.")

    def masses() -> Sequence[Any]:
        odds = mechanism.epsilon.ball().exp()
        total = odds + (k - 1)
        return [(odds if index == truth else odds / odds) / total for index in range(k)]

    return Law(TableNoise(alias.finite(masses, 0)))


@law.register
def _(mechanism: PoissonSubsampled, answer: Any) -> Law:
    inner = law(mechanism.mechanism, answer)
    if inner.parts or isinstance(
        mechanism.mechanism, (TruncatedGeometric, Tabulated, RandomizedResponse, PoissonSubsampled)
    ):
        raise InvalidInputError(
            f"Expected device=None for a subsampled {type(mechanism.mechanism).__name__}: a device "
            "subsamples noise that is added to one number."
        )
    return Law(inner.noise, inner.centre, float(mechanism.sampling_prob))


@law.register
def _(mechanism: EllipticalGaussian, answer: Any) -> Law:
    spreads = [math.sqrt(float(v.mid())) for v in mechanism.variances()]
    centres = [float(entry) for entry in np.broadcast_to(np.asarray(answer), len(spreads))]
    shifts = [float(entry) for entry in mechanism.sensitivities]
    weights = tuple(shift / spread**2 for shift, spread in zip(shifts, spreads, strict=True))
    unit = math.sqrt(sum((w * s) ** 2 for w, s in zip(weights, spreads, strict=True)))
    centre = math.fsum(w * c for w, c in zip(weights, centres, strict=True))
    parts = tuple(zip(spreads, centres, strict=True))
    return Law(GaussianNoise(unit), centre, weights=weights, parts=parts, width=len(parts))


@law.register
def _(mechanism: RankOneGaussian, answer: Any) -> Law:
    m = mechanism.dimension
    off_axis = np.broadcast_to(np.asarray(answer, dtype=float), m)
    if off_axis[1:].any():
        raise InvalidInputError(
            "Expected device=None where answers differ off the first axis: a device looks along it."
        )
    noise = RankOneNoise(float(mechanism.sigma_star) ** 0.5, m)
    return Law(noise, float(off_axis[0]), width=m)


def _number(answer: Any) -> float:
    value = np.asarray(answer)
    if value.size != 1 or not np.isfinite(value).all():
        raise InvalidInputError(f"Expected one finite number as an answer, not {answer!r}.")
    return float(value.reshape(())[()])


def _integer(answer: Any) -> int:
    value = _number(answer)
    if value != int(value) or abs(value) > 1 << 52:
        raise InvalidInputError(f"Expected a whole number below 2^52 as an answer, not {answer!r}.")
    return int(value)
