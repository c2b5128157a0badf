"""The loss of noise e^{−‖x‖₂} on a vertical line: Bessel functions, and how far they fall.

For d ≥ 3 the loss has on [−t, t] a density in proportion to (1 − u²)^{(d−3)/2} (1 − u² + k) e^{yu},
u = l/t, y = (c + ½)t, where it is tilted by e^{cL}: log-concave, so that its variation is at most
twice its maximum g, and |M(c + is)| ≤ 2g/s. Before, M is a sum of j_ν(x + iθ), ν ≥ n = d/2 − 1,
θ = st, with weights > 0, each in proportion to the product of 1 + (x + iθ)²/a² over the zeros a of
the Bessel function J_ν, which exceed ν. The size of a factor falls with θ while x² + θ² < a².
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

import numpy as np
from flint import acb, arb

from dpassay.accountant.composition.losses.decay import Decay, up
from dpassay.accountant.composition.losses.lists import FloatList
from dpassay.accountant.composition.losses.transform import Transform
from dpassay.accountant.geometry.ball_loss import moment, shape, terms
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx

if TYPE_CHECKING:
    from dpassay.accountant.composition.fourier.estimates import FloatTransform

_HALF = Fraction(1, 2)
_CELLS = 512
"""In which the maximum of the density is bounded."""
_NODES = 1024
"""Of an estimate: some for each standard deviation of the angle."""
_WIDE = 20.0
"""Standard deviations of the angle, 1/√d, up to which there are nodes."""
_PRECISION = 128
"""Bits of a bound of the decay, which becomes a float."""


@final
@dataclass(frozen=True)
class BallNoiseTransform(Transform):
    """M(z) of the pair."""

    is_closed = True

    distance: ExactReal
    dimension: int

    def _at(self, z: acb) -> acb:
        return moment(self.distance, self.dimension, z + ball(_HALF))

    def value(self, c: Fraction) -> arb:
        """Return the closed form."""
        return self._at(acb(ball(c))).real

    def line(self, c: Fraction, step: Fraction, count: int) -> list[acb]:
        """Return the closed form on the line."""
        whole = self.value(c)
        return [self._at(acb(ball(c), ball(j * step))) / whole for j in range(count)]

    def decay(self, c: Fraction) -> Decay:
        """Return the bound at the head of this file."""
        return BallNoiseDecay(self, c)

    def estimate(self) -> FloatTransform:
        """Return sums over angles φ in floats, at which the loss is t sin φ."""
        d, z = self.dimension, float(self.distance) / 2
        second = float(shape(self.distance, d)[0])
        reach = min(np.pi / 2, _WIDE / np.sqrt(d) + _WIDE * z / d)
        phi = reach * (2 * np.arange(_NODES) + 1 - _NODES) / _NODES
        cosine, losses = np.cos(phi), 2 * z * np.sin(phi)
        logs = (d - 2) * np.log(cosine) + np.log(cosine**2 + second) + losses / 2
        logs -= np.logaddexp.reduce(logs)
        return FloatList(losses, logs, np.exp(logs))


@final
class BallNoiseDecay(Decay):
    """r(s) = min(1, 2g/s), or what the sizes of both terms are before θ = √(n² − x²)."""

    def __init__(self, transform: BallNoiseTransform, c: Fraction) -> None:
        distance, dimension = transform.distance, transform.dimension
        with ctx.workprec(_PRECISION):
            second, whole = shape(distance, dimension)
            self._t, self._tilt, most = distance.ball(), ball(c + _HALF), arb(0)
            y, power = self._tilt * self._t, arb(dimension - 3) / 2
            for j in range(-_CELLS, _CELLS):
                near = arb(max(j, -j - 1)) / _CELLS
                far = ((y * j).max(y * (j + 1)) / _CELLS).exp()
                square = 1 - near * near
                most = most.max(square**power * (square + second) * far)
            self._shape, self._whole = (distance, dimension), transform.value(c)
            scale = 2 * most / (whole * self._t * self._whole)
            self._log_scale = up(float(scale.log().upper()))
            room = (arb(dimension) / 2 - 1) ** 2 - y * y
            self._end = float((room.sqrt() / self._t).lower()) if room > 0 else 0.0

    def _far(self, t: float) -> float:
        return min(up(self._log_scale - math.log(t)), 0.0) if t > 0 else 0.0

    def _near(self, t: float) -> float:
        """Return ln of the sum of both sizes at t, which is less at larger ones before the end."""
        with ctx.workprec(_PRECISION):
            sizes = (abs(term) for term in terms(*self._shape, acb(self._tilt, arb(t))))
            value = sum(sizes, start=arb(0)) / self._whole
            return min(up(float(value.log().upper())), 0.0)

    def log_ratio(self, t: float) -> float:
        """Return the bound for all larger |Im z|."""
        return max(self._near(t), self._far(self._end)) if t < self._end else self._far(t)

    def log_between(self, t: float, end: float) -> float:
        """Return the bound from t to end alone."""
        return self._near(t) if end < self._end else self.log_ratio(t)

    def log_scale(self) -> float | None:
        """Return ln 2g."""
        return self._log_scale
