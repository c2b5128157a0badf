"""The loss of Laplace noise on a vertical line: closed forms, and their fall.

At distance τ, with s = z + ½, M(z) = e^{−τ/2} (cosh(τs) + sinh(τs)/(2s)): atoms
and a density. On the line Re s = σ put x = |σ|τ and v = τt. Tilted by e^{cL} the atoms have mass
A = 1/(1 + tanh(x)/(2|σ|)), and with W = 1 − A

    |M(c + it)|/M(c) ≤ A √(1 − sin²v/cosh²x) + W √((1 + sin²v/sinh²x)/(1 + v²/x²)).

Both roots decrease for 0 ≤ v ≤ π/2; the second one does as sin(2v)/(2v) ≤ 1 ≤ sinh²x/x² and
sin(2v)/(2v) ≤ sin²v/v², hence ≤ (sinh²x + sin²v)/(x² + v²). Beyond π/2 the first is at most 1, and
the second at most x coth(x)/√(x² + v²). So |M| stays below A + W < 1 for good, and the power of
many releases is negligible wherever the density alone does not show it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from flint import acb, arb

from accountant.composition.fourier.estimates import FloatTransform
from accountant.composition.losses.decay import Decay, up
from accountant.composition.losses.kernels import excess_of_exp
from accountant.composition.losses.transform import Transform
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball
from accountant.numbers.precision import ctx

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Complexes: TypeAlias = NDArray[np.complexfloating[Any, Any]]

_PRECISION = 128
"""Bits of a bound of the decay, which becomes a float."""
_HALF = Fraction(1, 2)
_NEAR = 1e-3
"""The least |s| in floats: terms cancel at 0, and nearby the mean is linear."""
_LARGE = 1.0
"""|s|τ beyond which e^{−2|s|τ} is split off: the sum of both exponentials would overflow."""
_SMALL = 0.5
"""The distance of s = z + ½ from z."""


@final
@dataclass(frozen=True)
class LaplaceTransform(Transform):
    """M(z) = ((z + 1) e^{τz} + z e^{−τ(z + 1)})/(2z + 1)."""

    is_closed = True

    distance: ExactReal

    def value(self, c: Fraction) -> arb:
        """Return the closed form."""
        t = self.distance.ball()
        if c == -_HALF:
            return (-t / 2).exp() * (1 + t / 2)
        z = ball(c)
        return ((z + 1) * (t * z).exp() + z * (-t * (z + 1)).exp()) / (2 * z + 1)

    def line(self, c: Fraction, step: Fraction, count: int) -> list[acb]:
        """Return the closed form on the line."""
        t, whole = self.distance.ball(), self.value(c)
        at, other = (t * ball(c)).exp() / whole, (-t * (ball(c) + 1)).exp() / whole
        found = [acb(1)]
        for j in range(1, count):
            z = acb(ball(c), ball(j * step))
            sine, cosine = (t * z.imag).sin_cos()
            turn = acb(cosine, sine)
            found.append(((z + 1) * turn * at + z * turn.conjugate() * other) / (2 * z + 1))
        return found

    def decay(self, c: Fraction) -> Decay:
        """Return the bound at the head of this file."""
        return LaplaceDecay(self.distance, c)

    def estimate(self) -> FloatTransform:
        """Return the closed form in floats."""
        return FloatLaplace(float(self.distance))


@final
class LaplaceDecay(Decay):
    """Two atoms, and a density that falls like 1/t."""

    def __init__(self, distance: ExactReal, c: Fraction) -> None:
        with ctx.workprec(_PRECISION):
            self._tau, s = distance.ball(), abs(ball(c + _HALF))
            self._x = x = s * self._tau
            flat = self._tau / 2 if s.is_zero() else x.tanh() / (2 * s)
            self.atoms, self.rest = 1 / (1 + flat), flat / (1 + flat)
            self._x_coth = arb(1) if s.is_zero() else x / x.tanh()

    def log_ratio(self, t: float) -> float:
        """Return the bound for all larger |Im z|."""
        with ctx.workprec(_PRECISION):
            v, quarter = self._tau * arb(t), arb.pi() / 2
            far = self.atoms + self.rest * self._far(v.max(quarter))
            size = far.max(self._near(v)) if v < quarter else far
            return min(up(float(size.log().upper())), 0.0)

    def log_between(self, t: float, end: float) -> float:
        """Return the bound from t to end alone."""
        with ctx.workprec(_PRECISION):
            if not self._tau * arb(end) < arb.pi() / 2:
                return self.log_ratio(t)
            return min(up(float(self._near(self._tau * arb(t)).log().upper())), 0.0)

    def _near(self, v: arb) -> arb:
        x, sine = self._x, v.sin()
        turned = sine / x.cosh()
        atoms = (1 - turned * turned).sqrt()
        if x.is_zero():
            return self.atoms * atoms + self.rest * v.sinc()
        turned, slope = sine / x.sinh(), v / x
        density = ((1 + turned * turned) / (1 + slope * slope)).sqrt()
        return self.atoms * atoms + self.rest * density

    def _far(self, v: arb) -> arb:
        return (self._x_coth / (self._x * self._x + v * v).sqrt()).min(arb(1))

    def log_scale(self) -> float | None:
        """Return None: the atoms stay."""
        return None

    def split(self) -> tuple[arb, arb]:
        """Return A, and C with W b(t) ≤ C/t for the bound b of the density."""
        with ctx.workprec(_PRECISION):
            return self.atoms, self.rest * self._x_coth / self._tau


@final
@dataclass(frozen=True)
class FloatLaplace:
    """ln M(z) with relative accuracy, as E[L] is small where τ is.

    With f = (z + 1)/(2z + 1) and g = z/(2z + 1), M − 1 = f e₂(τz) + g e₂(−τ(z + 1)), where
    e₂(x) = e^x − 1 − x; the terms of first order cancel.
    """

    tau: float

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln M(c) and its first two derivatives."""
        s = max(abs(c + _SMALL), _NEAR)  # at 0 terms cancel; nearby the mean is linear
        side = (c + _SMALL) / s
        found = self._large(s) if s * self.tau > _LARGE else self._small(s - _SMALL)
        return found[0], side * found[1], found[2]

    def _small(self, z: float) -> tuple[float, float, float]:
        t, n = self.tau, 2 * z + 1
        f, g, turn = (z + 1) / n, z / n, 1 / (n * n)
        up_, down = t * z, -t * (z + 1)
        first, second = math.expm1(up_), math.expm1(down)
        excess, deficit = excess_of_exp(np.array([up_, down])).tolist()
        size = f * excess + g * deficit
        slope = turn * (deficit - excess) + t * (f * first - g * second)
        bend = 4 * turn / n * (excess - deficit) - 2 * turn * t * (first + second)
        bend += t * t * (f * (1 + first) + g * (1 + second))
        mean = slope / (1 + size)
        return math.log1p(size), mean, bend / (1 + size) - mean * mean

    def _large(self, s: float) -> tuple[float, float, float]:
        t, near = self.tau, s + _SMALL
        w = math.exp(-2 * t * s) / near
        fall = 1 / near + 2 * t
        r, first = (s - _SMALL) * w, w - (s - _SMALL) * w * fall
        second = -2 * w * fall + (s - _SMALL) * w * (fall * fall + 1 / (near * near))
        size = t * (s - _SMALL) + math.log(near / (2 * s)) + math.log1p(r)
        mean = t - _SMALL / (s * near) + first / (1 + r)
        return size, mean, 1 / (s * s) - near**-2 + second / (1 + r) - (first / (1 + r)) ** 2

    def log_ratio(self, c: float, t: Floats) -> tuple[Floats, Floats]:
        """Return ln M(c + it) − ln M(c) − it (ln M)'(c)."""
        s = c + _SMALL
        s = s if abs(s) > _NEAR else _NEAR
        mean = self.cumulants(s - _SMALL)[1]
        if abs(s) * self.tau > _LARGE:
            return self._ratio_large(s, t, mean)
        z = s - _SMALL + 1j * t
        whole = self._excess(z)
        here = self._excess(np.array([s - _SMALL], dtype=complex))[0].real
        step = (whole - here) / (1 + here)
        size = 0.5 * np.log1p(2 * step.real + step.real**2 + step.imag**2)
        return size, np.arctan2(step.imag, 1 + step.real) - t * mean

    def _excess(self, z: Complexes) -> Complexes:
        """Return M(z) − 1."""
        up_, down = excess_of_exp(self.tau * z), excess_of_exp(-self.tau * (z + 1))
        found: Complexes = ((z + 1) * up_ + z * down) / (2 * z + 1)
        return found

    def _ratio_large(self, s: float, t: Floats, mean: float) -> tuple[Floats, Floats]:
        side, s = (1.0, s) if s > 0 else (-1.0, -s)

        def rest(at: Complexes) -> Complexes:
            found: Complexes = np.log(
                (at + _SMALL + (at - _SMALL) * np.exp(-2 * self.tau * at)) / (2 * at)
            )
            return found

        step = rest(s + 1j * t) - rest(np.array([s + 0j]))[0]
        return step.real, side * (step.imag + t * self.tau) - t * mean
