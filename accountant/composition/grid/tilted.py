"""The sum of many losses on one grid: a fast Fourier transform of tilted masses, with its errors.

Let m_i be the masses of factor i on o_i + hn, k_i its count, a_i(n) = m_i(n) e^{sh(n − c_i)}/A_i
with A_i such that the sum of a_i is about 1. The masses of the sum at x = Σ k_i o_i + hj are those
of the convolution power a = a_1^{k_1} * a_2^{k_2} * …, times Π A_i^{k_i} e^{sh(Σ k_i c_i − j)}. So

    Σ_x m(x)(1 − e^{ε−x})⁺ = Π A_i^{k_i} e^{sh Σ k_i c_i − s(ε − X)} Σ_j a(j) w(y_j),
    X = Σ k_i o_i,  y_j = X + hj − ε,  w(y) = e^{−sy}(1 − e^{−y})⁺ ≤ s^s/(1 + s)^{1+s} =: W.

Of other sums than those of losses Σ m(x)(x − ε)⁺ is asked: with w(y) = e^{−sy} y⁺ ≤ 1/(es) =: W.

*The sum over the window.* With N points, θ = 2π/N and F_k = Σ a(j) e^{−iθkj},

    Σ_j a(j) w(y_j) = (1/N) Σ_k F_k e^{iθko} Σ_j e^{iθk(j − o)} w(y_j),  o the first point,

and the inner sum is geometric. With q = e^{−sh + iθk} and q' = e^{−(s + 1)h + iθk} the points from
y on, and all that would follow them, have

    e^{−sy}(1/(1 − q) − e^{−y}/(1 − q')) = e^{−sy}(1 − e^{−y} + q'(e^{h−y} − 1))/((1 − q)(1 − q')),

the second form for y ≤ h, where the first one cancels. With y⁺ it is y/(1 − q) + hq/(1 − q)², and
y + q(h − y) over (1 − q)². The window is what starts at its first y > 0, less what starts at its
end: no transform is inverted.

*Few frequencies.* |F_i| changes by at most Σ a_i(n)|n − c| per unit of the angle, c the mean. Where
the masses of all factors are on few of the N points, F_i at few angles bounds it between them; a
power of many releases is then hardly anything nearly everywhere, and is summed at the rest alone.

*Errors of Σ a(j) w(y_j)*, all in floats and all added:

- The a_i differ from what they stand for by a relative error η_i(n). With τ_i = Σ a_i η_i the sum
  changes by at most W (Π (1 + τ_i)^{k_i} − 1) Π ‖a_i‖₁^{k_i}.
- The transforms F_i are off by E_i with ‖E_i‖₂ ≤ φ ‖F_i‖₂, φ = FFT_ERROR · UNIT · log₂N (Higham,
  Accuracy and Stability, Theorem 24.2: 4√2 + 1 units for a step of radix 2, to first order).
  |F_i| and the computed |F_i + E_i| are at most b_i, so that by telescoping the product is off by
  at most Σ k_i ‖E_i‖₂ Π b_j^{k_j} in the norm. By Parseval, ‖F_i‖₂ = √N ‖a_i‖₂.
- K factors are multiplied, in any order, with a relative error of at most (1 + √5 u)^{K−1} − 1 in
  every component (Brent, Percival and Zimmermann 2007), or by underflow.
- If in all ‖ΔF‖₂ ≤ √N D, then Σ a w is off by D ‖w‖₂ (Parseval), ‖w‖₂² ≤ W Σ w, and the sum of
  what rises to W and falls again is at most its integral by h, and W. Frequencies that are left out
  are a part of ΔF.
- The sum over k is off by some units of the sum of its sizes.
- The transform is circular: masses outside the window of N points come back inside. They are
  at most T = Π ‖a_i‖^{k_i} P(outside), by Chernoff's inequality for the a_i themselves, and W T is
  what they add or what is missing of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np
from flint import arb

from accountant.composition.grid.dominate import GridLaw
from accountant.composition.grid.survival import UNIT, Array
from accountant.numbers.chernoff import log_peak
from accountant.numbers.interval import ball
from accountant.numbers.precision import ctx

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
_NEGLIGIBLE = 1e-20
"""A transform that is smaller is left out: far below the errors of the others."""
_OVERSAMPLED = 8
"""Angles per point of the widest factor at which transforms are bounded: more leave out more."""
_LEAST_FEWER = 4
"""Times fewer angles at least: else all of them are as fast."""
_BLOCK, _PRODUCTS = 64, 16
"""Points whose frequencies are formed at once, and products that take as long as forming one."""
_TERM = 256.0
"""Units of a term of the sum over frequencies, and of adding in pairs: by count at most 180."""


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

    @property
    def norm(self) -> float:
        """A bound of ‖w‖₂."""
        peak, s = self.peak, self.tilt
        integral = 1 / s / (s if self.linear else s + 1)
        return math.sqrt(peak * min(integral / self.step + peak, self.points * peak)) * _ROOM


@final
@dataclass(frozen=True, eq=False)
class TiltedSum:
    """The transform of the tilted masses of a sum in a window, and what bounds its errors."""

    frame: Frame
    waves: Array
    """The frequencies k that count, up to N/2."""
    spectrum: Array
    """F_k e^{iθko}/N there, twice where N − k has the conjugate."""
    origin: Fraction
    """The loss of the first point of the window."""
    log_scale: arb
    """ln of Π A_i^{k_i} e^{sh Σ k_i c_i − s (first loss)}, without the tilt of the first loss."""
    start: Fraction
    spread: float
    """A bound of D."""
    lost: float
    """A bound of the sum of all |Δa| that is no error of the transforms."""
    outside: tuple[float, float]
    """Bounds of the masses below and above the window."""
    infinity: arb
    _starts: dict[int, Array] = field(default_factory=dict)

    def above(self, epsilon: arb) -> arb:
        """Return an upper bound of m_∞ + Σ m(x)(1 − e^{ε−x})⁺; +∞ where nothing is known."""
        epsilon = epsilon.lower()
        found, rounding = self._sum(epsilon, 1)
        with ctx.workprec(_PRECISION):
            all_seen = ball(self.origin) <= epsilon  # else masses below the window count too
        missing = self.outside[1] if all_seen else sum(self.outside)
        total = found + self._error(missing, rounding)
        return self._scaled(total, epsilon) if math.isfinite(total) else arb.pos_inf()

    def below(self, epsilon: arb) -> arb:
        """Return a lower bound of the same, at least m_∞."""
        epsilon = epsilon.upper()
        found, rounding = self._sum(epsilon, -1)
        total = found - self._error(sum(self.outside), rounding)
        return self._scaled(total, epsilon) if total > 0 else self.infinity.lower()

    def _error(self, missing: float, rounding: float) -> float:
        frame = self.frame
        known = frame.norm * self.spread + frame.peak * (self.lost + missing) + rounding
        return known * _ROOM + _LOWEST

    @np.errstate(all="ignore")
    def _sum(self, epsilon: arb, side: int) -> tuple[float, float]:
        """Return Σ a w and its rounding; y is rounded up for side 1, down for side −1."""
        frame, step, s = self.frame, self.frame.step, self.frame.tilt
        with ctx.workprec(_PRECISION):
            before = epsilon - ball(self.origin)
            first = max(0, math.ceil(float(before.mid()) / step))
            y = first * arb(step) - before
            if y < 0:
                first, y = first + 1, y + step
            elif first and y >= step:
                first, y = first - 1, y - step
            at = float((y.upper() if side > 0 else y.lower()).mid())
        if first >= frame.points:
            return 0.0, 0.0
        ends, sizes = self._series[2:]
        length = (frame.points - first) * step
        growth, reach = math.exp(-s * at), (_TERM + 8 * s * abs(at)) * UNIT
        if not first and at > step:  # all of the window counts
            here, rest = -math.expm1(-s * length), length * math.exp(-s * length)
            there = -math.exp(-at) * math.expm1(-(s + 1) * length)
            factors = np.array([at * here - rest, here] if frame.linear else [here, -there])
            most = np.array([at * here + rest, here] if frame.linear else [here, there])
            return growth * float(factors @ ends), growth * reach * float(most @ sizes)
        sides = np.array([at, step - at])
        inside = (sides if frame.linear else np.expm1([-at, step - at]) * (-1, 1)) / step
        found = growth * float(inside @ self._start(first))
        rounding = growth * reach * float(abs(inside).sum()) * self._series[1]
        after, fall = at + length, math.exp(-s * (at + length))
        last = np.array((after, 1.0) if frame.linear else (1.0, -math.exp(-after)))
        rounding += fall * (_TERM + 8 * s * after) * UNIT * float(abs(last) @ sizes)
        return found - fall * float(last @ ends), rounding

    @functools.cached_property
    def _series(self) -> tuple[Array, float, Array, Array]:
        """Return hF/((1 − q)(1 − q')) without and with q', and both sums to infinity; sizes."""
        frame = self.frame
        angle = 2 * math.pi / frame.points * self.waves
        first = _one_less(frame.tilt * frame.step, angle)
        second = first
        if not frame.linear:
            second = _one_less((frame.tilt + 1) * frame.step, angle)
        ratio = 1 - second
        once, both = self.spectrum / first, self.spectrum / first * (frame.step / second)
        other = both * ratio if frame.linear else self.spectrum / second
        both = np.stack([both, both * ratio])
        size, ends = float(abs(both[0]).sum()), np.stack([once, other])
        return both, size, ends.sum(axis=1).real, abs(ends).sum(axis=1)

    def _start(self, first: int) -> Array:
        """Return the sums of hF e^{iθk·first}/((1 − q)(1 − q')), without and with q'."""
        if first not in self._starts:
            turned = self._series[0] * _turns(self.waves * first, self.frame.points)
            self._starts[first] = turned.sum(axis=1).real
        return self._starts[first]

    def _scaled(self, total: float, epsilon: arb) -> arb:
        with ctx.workprec(_PRECISION):
            log = self.log_scale - arb(self.frame.tilt) * (epsilon - ball(self.start))
            return self.infinity + arb(total) * log.exp()


def compose(laws: Sequence[tuple[GridLaw, int]], frame: Frame) -> TiltedSum | None:
    """Return the law of the sum of all losses; None where floats do not hold it."""
    parts = [_Part(law, count, frame) for law, count in laws]
    if not all(part.sound for part in parts):
        return None
    points = frame.points
    waves = _few_waves(parts, points)
    total: Array = np.ones(points // 2 + 1 if waves is None else len(waves), dtype=complex)
    spread, grown, powers = 0.0, 0.0, 0
    with np.errstate(all="ignore"):
        for part in parts:
            transform, error = part.transform(points, waves)
            spread += part.count * error
            most = max(part.mass, float(np.max(np.abs(transform))))
            grown += part.count * math.log(max(most * (1 + 8 * UNIT), 1.0))
            total *= _power(transform, part.count)
            powers += part.count
        if waves is None:
            sizes = np.abs(total)
            waves = np.flatnonzero(~(sizes <= _NEGLIGIBLE))
            total = total[waves]
        spread *= math.exp(min(grown, _LARGEST))
        norm = math.sqrt(2 * float((np.abs(total) ** 2).sum()) / points) * _ROOM
        rounded = math.expm1(min(_TIMES_ERROR * UNIT * 1.01 * powers, _LARGEST))
        spread += norm * rounded * _ROOM + _NEGLIGIBLE + _LOWEST * points
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
    if not (np.all(np.isfinite(total)) and math.isfinite(spread)):
        return None
    outside = _outside(parts, frame, offset)
    total *= _turns(waves * (offset % points), points)
    total *= np.where((waves == 0) | (2 * waves == points), 1.0, 2.0) / points
    return TiltedSum(frame, waves, total, origin, scale, start, spread, lost, outside, infinity)


def _few_waves(parts: Sequence[_Part], points: int) -> Array | None:
    """Return the frequencies at which the transform of the sum is not negligible, None for all."""
    longest = max(part.span for part in parts)
    short = 1 << (_OVERSAMPLED * longest - 1).bit_length()
    stride = points // short
    if stride < _LEAST_FEWER or points % short:
        return None
    logs = np.zeros(short // 2 + 1)
    for part in parts:
        wrong = FFT_ERROR * UNIT * math.log2(short) * math.sqrt(short) * part.norm
        size = np.abs(np.fft.rfft(part.row, short)) + wrong + math.pi / short * part.deviation
        logs += part.count * np.log(size)
    kept = np.flatnonzero(logs > math.log(_NEGLIGIBLE))
    waves = kept[:, None] * stride + np.arange(-(stride // 2), stride // 2 + 1)
    if waves.size * (_BLOCK + longest / _PRODUCTS) > points:
        return None
    return np.unique(waves.clip(0, points // 2))


def _turns(index: Array, points: int) -> Array:
    """Return e^{iθ·index}."""
    return np.exp(2j * math.pi / points * (index % points))


def _one_less(decay: float, angle: Array) -> Array:
    """Return 1 − e^{−decay + i·angle}, to a few units also where it is small."""
    real = 2 * np.sin(angle / 2) ** 2 - math.expm1(-decay) * np.cos(angle)
    return real - 1j * math.exp(-decay) * np.sin(angle)


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
        self.norm = float(np.sqrt((self.values**2).sum())) * _ROOM
        self._index = index
        self.span = int(index[-1] - index[0]) + 1

    @functools.cached_property
    def row(self) -> Array:
        """The masses from the first one on."""
        row = np.zeros(-(-self.span // _BLOCK) * _BLOCK)
        row[self._index - self._index[0]] = self.values
        return row

    @functools.cached_property
    def deviation(self) -> float:
        """A bound of Σ a(n)|n − c|."""
        mean = float((self.values * self._index).sum())
        return float((self.values * np.abs(self._index - mean)).sum()) * _ROOM

    def transform(self, points: int, waves: Array | None) -> tuple[Array, float]:
        """Return F at all frequencies, or at those; and a bound of ‖E‖₂/√N."""
        if waves is None:
            found = np.fft.rfft(self.folded(points))
            return found, FFT_ERROR * UNIT * math.log2(points) * self.norm
        rows = self.row.reshape(-1, _BLOCK)
        blocks = self._index[0] + _BLOCK * np.arange(len(rows))
        near = _turns(-np.outer(np.arange(_BLOCK), waves), points)
        found = ((rows @ near) * _turns(-np.outer(blocks, waves), points)).sum(axis=0)
        share = math.sqrt(2 * len(waves) / points)
        return found, (2 * _BLOCK + len(rows)) * UNIT * share * self.mass

    def folded(self, points: int) -> Array:
        """Return the masses on the circle of so many points."""
        if self.span > points:
            self.error += (self.span // points + 2) * UNIT * 2
        return np.bincount(self._index % points, weights=self.values, minlength=points)

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
