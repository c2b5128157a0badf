"""The loss of logistic noise on a vertical line: a closed form, and how far it falls.

At distance τ the loss has the density e^{l/2}/(4 sinh(τ/2)) on [−τ, τ], so that with s = z + ½
M(z) = sinh(τs)/(2s sinh(τ/2)). Up to its size that is the part of the loss of Laplace noise between
its atoms, whose decay is bounded in `accountant.composition.losses.laplace`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from flint import acb, arb

from accountant.composition.losses.decay import Decay
from accountant.composition.losses.laplace import LaplaceDecay
from accountant.composition.losses.transform import Transform, rounded
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from accountant.composition.fourier.estimates import FloatTransform

    Floats: TypeAlias = NDArray[np.float64]

_HALF = Fraction(1, 2)
_LEAST = 1e-3
"""The least |s| in floats: terms cancel at 0, and nearby the mean is linear."""
_SERIES = 0.3
"""Below it ln(sinh(x)/x) is summed by a series, whose next term is below 1e-12 of the sum."""


@final
@dataclass(frozen=True)
class LogisticTransform(Transform):
    """M(z) = sinh(τs)/(2s sinh(τ/2)), s = z + ½."""

    is_closed = True

    distance: ExactReal

    def value(self, c: Fraction) -> arb:
        """Return the closed form."""
        t, s = self.distance.ball(), ball(c + _HALF)
        whole = 2 * (t / 2).sinh()
        return t / whole if c == -_HALF else (s * t).sinh() / (s * whole)

    def line(self, c: Fraction, step: Fraction, count: int) -> list[acb]:
        """Return (cos v + i coth(x) sin v) σ/(σ + it); at σ = 0 it is sin(v)/v."""
        t, s = self.distance.ball(), ball(c + _HALF)
        slope = 1 / t if c == -_HALF else s * (s * t).coth()
        found = [acb(1)]
        for j in range(1, count):
            u = ball(j * step)
            sine, cosine = (t * u).sin_cos()
            found.append(acb(s * cosine, slope * sine) / acb(s, u))
        return found

    def decay(self, c: Fraction) -> Decay:
        """Return the bound of the density of Laplace noise's loss."""
        return LaplaceDecay(self.distance, c, atoms=False)

    def estimate(self) -> FloatTransform:
        """Return the closed form in floats."""
        return FloatLogistic(float(self.distance))

    def alike(self) -> Hashable:
        """Return the distance to 28 bits."""
        return "logistic", rounded(float(self.distance))


@final
@dataclass(frozen=True)
class FloatLogistic:
    """ln M(z) = g(τs) − g(τ/2) with g(x) = ln(sinh(x)/x), s = z + ½."""

    tau: float

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln M(c) and its first two derivatives."""
        s = c + 0.5
        here, slope, bend = _shape(self.tau * abs(s))
        size = here - _shape(self.tau / 2)[0]
        return size, math.copysign(self.tau * slope, s), self.tau**2 * bend

    def log_ratio(self, c: float, t: Floats) -> tuple[Floats, Floats]:
        """Return ln M(c + it) − ln M(c) − it (ln M)'(c)."""
        s = max(abs(c + 0.5), _LEAST)
        x, v = s * self.tau, t * self.tau
        turned = np.sin(v) * (2 * math.exp(-x) / -math.expm1(-2 * x))
        real = 0.5 * (np.log1p(turned**2) - np.log1p((t / s) ** 2))
        lag = np.angle(1 - np.exp(-2 * (x + 1j * v)))
        imaginary = v + lag - np.arctan(t / s) - v * _shape(x)[1]
        return real, math.copysign(1.0, c + 0.5) * imaginary


def _shape(x: float) -> tuple[float, float, float]:
    """Return g(x) and its first two derivatives, x ≥ 0."""
    if x < _SERIES:
        y = x * x
        size = y * (1 / 6 - y * (1 / 180 - y * (1 / 2835 - y * (1 / 37800 - y / 467775))))
        slope = x * (1 / 3 - y * (1 / 45 - y * (2 / 945 - y * (1 / 4725 - y * 2 / 93555))))
        bend = 1 / 3 - y * (1 / 15 - y * (2 / 189 - y * (1 / 675 - y * 2 / 10395)))
        return size, slope, bend
    fall = -math.expm1(-2 * x)
    size = x + math.log(fall) - math.log(2 * x)
    slope = (2 - fall) / fall - 1 / x
    return size, slope, 1 / x**2 - (2 * math.exp(-x) / fall) ** 2
