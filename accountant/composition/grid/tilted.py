"""The sum of many losses on one grid: a fast Fourier transform of tilted masses, with its errors.

Let m_i be the masses of factor i on o_i + hn, k_i its count, a_i(n) = m_i(n) e^{sh(n − c_i)}/A_i
with A_i such that the sum of a_i is about 1. The masses of the sum at x = Σ k_i o_i + hj are those
of the convolution power a = a_1^{k_1} * a_2^{k_2} * …, times Π A_i^{k_i} e^{sh(Σ k_i c_i − j)}. So

    Σ_x m(x)(1 − e^{ε−x})⁺ = Π A_i^{k_i} e^{sh Σ k_i c_i − s(ε − X)} Σ_j a(j) w(y_j),
    X = Σ k_i o_i,  y_j = X + hj − ε,  w(y) = e^{−sy}(1 − e^{−y})⁺ ≤ s^s/(1 + s)^{1+s} =: W.

Of other sums than those of losses Σ m(x)(x − ε)⁺ is asked: with w(y) = e^{−sy} y⁺ ≤ 1/(es) =: W.

*Errors of Σ a(j) w(y_j)*, all in floats and all added:

- The a_i differ from what they stand for by a relative error η_i(n). With τ_i = Σ a_i η_i the sum
  changes by at most W (Π (1 + τ_i)^{k_i} − 1) Π ‖a_i‖₁^{k_i}.
- Every component of a transform is a sum of the a_i(n), each times log₂N roots of unity: a step of
  radix 2 is a product, wrong by √5 units and by one of the root, and a sum. So the transforms F_i
  are off by at most e_i = φ ‖a_i‖₁ in every component, φ = FFT_ERROR · UNIT · log₂N, and with
  c_i = e_i + the computed |F_i| by telescoping the product by Σ k_i e_i/c_i Π c_j^{k_j}. By
  Parseval, ‖F‖₂ = √N ‖a‖₂.
- K factors are multiplied, in any order, with a relative error of at most (1 + √5 u)^{K−1} − 1 in
  every component (Brent, Percival and Zimmermann 2007), or by underflow.
- The inverse transform adds φ times the norm (Higham, Accuracy and Stability, Theorem 24.2: 4√2 + 1
  units for a step of radix 2, to first order). If in all ‖Δa‖₂ ≤ D, then Σ a w is off by D ‖w‖₂.
- The transform is circular: masses outside the window of N points come back inside. They are
  at most T = Π ‖a_i‖^{k_i} P(outside), by Chernoff's inequality for the a_i themselves, and W T is
  what they add or what is missing of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from flint import arb

from dpassay.accountant.composition.grid.dominate import GridLaw
from dpassay.accountant.composition.grid.factors import UNIT, Array
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import log_peak

FFT_ERROR = 10.0
"""Errors of one doubling of a transform, in units of 2^−53, with room above the proved 6.7."""
_TIMES_ERROR = 2.24
"""√5, rounded up: the relative error of a product of complex numbers, in units."""
_ROOM = 1.001
"""Covers the rounding of bounds of errors."""
_LOWEST = 1e-280
"""Added to bounds, for what underflows."""
_PRECISION = 128
"""Bits of the sums that bounds are read from: fewer widen the bounds, more are slower."""
_CERTAIN = 1e-9
"""The rounding of a logarithm of a moment, per factor, is far below this."""
_CLOSE = -20.0
"""ln of a bound that is small enough."""
_SMALLER = (2.0, 4.0, 16.0, 64.0)
"""Exponents that are tried where the chosen one is too large."""
_LARGEST = 600.0
"""Natural logarithms of numbers that floats hold, with room."""
_LONG = float(np.finfo(np.longdouble).eps)


@final
@dataclass(frozen=True)
class Frame:
    """Where the sum is computed: the tilt, the step and the window of grid points."""

    tilt: float
    step: float
    low: float
    """The least loss of the window."""
    points: int
    outward: tuple[float, float]
    """The u > 0 of Chernoff's inequality below and above the window."""
    linear: bool = False
    """Whether y⁺ stands for (1 − e^{−y})⁺, and 1/(es) for W: a sum that is no sum of losses."""

    @property
    def peak(self) -> float:
        """W, or a little more."""
        tilt = arb(self.tilt)
        return float((1 / tilt / arb.const_e() if self.linear else log_peak(tilt).exp()).upper())


@final
@dataclass(frozen=True, eq=False)
class TiltedSum:
    """The tilted masses of a sum in a window, and what bounds their errors."""

    frame: Frame
    masses: Array
    origin: Fraction
    """The loss of the first mass."""
    log_scale: arb
    """ln of Π A_i^{k_i} e^{sh Σ k_i c_i − s (first loss)}, without the tilt of the first loss."""
    start: Fraction
    spread: float
    """A bound of ‖Δa‖₂."""
    lost: float
    """A bound of the sum of all |Δa| that is no error of the transforms."""
    outside: tuple[float, float]
    """Bounds of the masses below and above the window."""
    infinity: arb

    def above(self, epsilon: arb) -> arb:
        """Return an upper bound of m_∞ + Σ m(x)(1 − e^{ε−x})⁺; +∞ where nothing is known."""
        found, norm, rounding = self._weighted(epsilon, 1.0)
        peak = self.frame.peak
        with ctx.workprec(_PRECISION):
            all_seen = ball(self.origin) <= epsilon  # else masses below the window count too
        missing = self.outside[1] if all_seen else sum(self.outside)
        errors = (norm * self.spread + peak * (self.lost + missing)) * _ROOM
        total = found * (1 + rounding) + errors + _LOWEST
        return self._scaled(total, epsilon) if math.isfinite(total) else arb.pos_inf()

    def below(self, epsilon: arb) -> arb:
        """Return a lower bound of the same, at least m_∞."""
        found, norm, rounding = self._weighted(epsilon, -1.0)
        peak = self.frame.peak
        errors = (norm * self.spread + peak * (self.lost + sum(self.outside))) * _ROOM
        total = found * (1 - rounding) - errors - _LOWEST
        return self._scaled(total, epsilon) if total > 0 else self.infinity.lower()

    def _weighted(self, epsilon: arb, side: float) -> tuple[float, float, float]:
        """Return Σ a w, ‖w‖₂ and the relative rounding error of the w and their sum.

        y is rounded up for side 1, down for side −1.
        """
        frame = self.frame
        with ctx.workprec(_PRECISION):
            nearest = float((ball(self.origin) - epsilon).mid())
            radius = float(epsilon.rad())
        first = max(0, math.ceil(-nearest / frame.step) - 2)
        if first >= frame.points:
            return 0.0, 0.0, 0.0
        plain = nearest + frame.step * np.arange(first, frame.points)
        moved = 4 * UNIT * (np.abs(plain) + abs(nearest)) + radius
        y = plain + side * moved
        y = y[y > 0]
        if len(y) == 0:
            return 0.0, 0.0, 0.0
        place = plain[-len(y) :]
        weights = (y if frame.linear else -np.expm1(-y)) * np.exp(-frame.tilt * place)
        masses = self.masses[-len(y) :]
        total = float((masses * weights).sum(dtype=np.longdouble))
        reach = frame.tilt * (2 * abs(nearest) + frame.step * frame.points)
        rounding = (8 * reach + 64) * UNIT + frame.points * _LONG
        return total, float(np.sqrt((weights * weights).sum())) * _ROOM, rounding

    def _scaled(self, total: float, epsilon: arb) -> arb:
        with ctx.workprec(_PRECISION):
            log = self.log_scale - arb(self.frame.tilt) * (epsilon - ball(self.start))
            return self.infinity + arb(total) * log.exp()


def compose(laws: Sequence[tuple[GridLaw, int]], frame: Frame) -> TiltedSum | None:
    """Return the law of the sum of all losses; None where floats do not hold it."""
    parts = [_Part(law, count, frame) for law, count in laws]
    if not all(part.sound for part in parts):
        return None
    points, half = frame.points, frame.points // 2 + 1
    phi = FFT_ERROR * UNIT * math.log2(points)
    total = np.ones(half, dtype=complex)
    wrong, grown, powers = np.zeros(half), np.zeros(half), 0
    with np.errstate(all="ignore"):
        for part in parts:
            transform = np.fft.rfft(part.folded(points))
            error = phi * part.mass
            most = error + np.abs(transform) * (1 + 8 * UNIT)
            wrong += part.count * error / most
            grown += part.count * np.log(most)
            total *= _power(transform, part.count)
            powers += part.count
        wrong *= np.exp(grown)
        spread = math.sqrt(2 * float((wrong**2).sum()) / points) * _ROOM
        norm = math.sqrt(2 * float((np.abs(total) ** 2).sum()) / points) * _ROOM
        rounded = math.expm1(min(_TIMES_ERROR * UNIT * 1.01 * powers, _LARGEST))
        spread += norm * (rounded + phi * (1 + rounded)) * _ROOM + _LOWEST * points
        masses = np.fft.irfft(total, points)
    lost = math.expm1(min(sum(p.count * math.log1p(p.error) for p in parts), _LARGEST))
    lost *= math.exp(min(sum(p.count * max(math.log(p.mass), 0.0) for p in parts), _LARGEST))
    with ctx.workprec(_PRECISION):
        start = sum((p.count * Fraction(p.law.origin) for p in parts), start=Fraction(0))
        offset = math.floor((Fraction(frame.low) - start) / Fraction(frame.step))
        origin = start + offset * Fraction(frame.step)
        scale = arb(0)
        for part in parts:
            scale += part.count * (arb(part.scale).log() + arb(frame.tilt) * arb(frame.step)
                                   * part.centre)  # fmt: skip
        infinity = _infinity(parts)
    shift = offset % points
    if not (np.all(np.isfinite(masses)) and math.isfinite(spread)):
        return None
    outside = _outside(parts, frame, offset)
    return TiltedSum(
        frame, np.roll(masses, -shift), origin, scale, start, spread, lost, outside, infinity
    )


def _infinity(parts: Sequence[_Part]) -> arb:
    """Return Π (M_i + p_i)^{k_i} − Π M_i^{k_i}, M_i the finite masses, p_i those at infinity."""
    finite, ratio = arb(0), arb(0)
    for part in parts:
        rounding = 4 * UNIT + len(part.law.masses) * _LONG
        total = float(part.law.masses.sum(dtype=np.longdouble))
        mass = arb(total, total * rounding)
        finite += part.count * mass.log()
        ratio += part.count * (arb(part.law.infinity) / mass).log1p()
    return finite.exp() * ratio.expm1()


@final
class _Part:
    """The tilted masses of one factor."""

    def __init__(self, law: GridLaw, count: int, frame: Frame) -> None:
        self.law, self.count = law, count
        index = law.index
        slope = frame.tilt * frame.step
        with np.errstate(divide="ignore"):
            logs = np.log(law.masses) + slope * index
        self.centre = int(index[int(np.argmax(logs))]) if len(index) else 0
        arguments = slope * (index - self.centre)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            raw = np.where(law.masses > 0, law.masses * np.exp(arguments), 0.0)
            self.scale = float(raw.sum())
            self.sound = math.isfinite(self.scale) and self.scale > 0
            if not self.sound:
                return
            self.values = raw / self.scale
        self.mass = float(self.values.sum(dtype=np.longdouble)) * (1 + 4 * UNIT + len(raw) * _LONG)
        relative = (3 * np.abs(arguments) + 8) * UNIT
        self.error = float((self.values * relative).sum()) * _ROOM + _LOWEST * len(raw)
        self._index = index

    def folded(self, points: int) -> Array:
        """Return the masses on the circle of so many points."""
        places, span = np.mod(self._index, points), int(self._index[-1] - self._index[0])
        if span >= points:
            self.error += (span // points + 1) * UNIT * 2
            return np.bincount(places, weights=self.values, minlength=points)
        row = np.zeros(points)
        row[places] = self.values
        return row

    def extreme(self, sign: float) -> int:
        """Return the last index with a mass, or the first one."""
        kept = self._index[self.values > 0]
        return int(kept[-1] if sign > 0 else kept[0])

    def log_moment(self, u: float, step: float) -> float:
        """Return ln Σ a(n) e^{uh(n − c)}."""
        kept = self.values > 0
        terms = u * step * (self._index[kept] - self.centre) + np.log(self.values[kept])
        most = float(terms.max())
        return most + math.log(float(np.exp(terms - most).sum()))


def _power(values: Array, count: int) -> Array:
    """Return values^count by squaring: `count` − 1 products, however they are shared."""
    result, square = None, values
    while True:
        if count & 1:
            result = square if result is None else result * square
        count >>= 1
        if not count:
            assert result is not None
            return result
        square = square * square


def _outside(parts: Sequence[_Part], frame: Frame, offset: int) -> tuple[float, float]:
    """Return bounds of the tilted masses below and above the window."""
    centre = sum(part.count * part.centre for part in parts)
    found = []
    for sign, u, edge in (
        (-1.0, frame.outward[0], offset),
        (1.0, frame.outward[1], offset + frame.points - 1),
    ):
        reached = sum(part.count * part.extreme(sign) for part in parts)
        if sign * reached <= sign * edge:
            found.append(0.0)
            continue

        def bound(u: float, sign: float = sign, edge: int = edge) -> float:
            """Return ln of Chernoff's bound with the exponent u."""
            total = 0.0
            for part in parts:
                total += part.count * (part.log_moment(sign * u, frame.step) + _CERTAIN * 1e-3)
            total -= sign * u * frame.step * (edge - centre)
            return total + _CERTAIN * (1 + u * frame.step * (abs(edge) + abs(centre)) * 1e-3)

        total = bound(u)
        if not total < _CLOSE:  # the rough law by which u was chosen ends sooner
            total = min(total, *(bound(u / divisor) for divisor in _SMALLER))
        found.append(math.exp(total) if total < 0 else math.inf)
    return found[0], found[1]
