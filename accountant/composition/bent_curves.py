"""Curves in x on which large losses fall as fast as they do, and bounds of moments on them.

The curve is x(u) = u + i(y + mβ ln(1 + e^{(u − u₀)/β})): the line Im x = y where w is near 1 − q,
and rising with slope m < 1 where the mixture is almost q e^l, so that |w^s φ| ~ |e^{sμx − x²/2}|
falls there for all s = a + it with a ≤ mt. It passes to the right of all zeros of w but the first:
these are at Re x = x_z, where q e^l = 1 − q, and at the heights π/μ, 3π/μ, …

A bound on the curve x(u + iη), for the error of the trapezoidal rule in u: with
h(u) = Re(−x²/2 + s ln w), |h'| ≤ |x'|(|x| + |s|μ|v/w|), v = w − (1 − q), a cell of length 2r with
midpoint c has at most |x'| e^{h(c) + r sup|h'|}. As (ln(v/w))' = μ(1 − v/w), a P' with
P(c) e^{rμ|x'|(1 + P')} ≤ P' bounds |v/w| on the cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from flint import acb

from accountant.interval import ball

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from accountant.composition.saddle_bounds import Mixture

    Floats: TypeAlias = NDArray[np.float64]
    Complexes: TypeAlias = NDArray[np.complex128]

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_CELLS = 600
_SLACK = 1e-9
_SPREAD = 1.5
_FAR = 13.0
_RISE = 0.85
_STRETCH = 2.0
_SHORT_STEPS, _LONGER = 16, 1.25
_WIDEST = 2000.0
_MOST = 600.0  # of logarithms


@final
@dataclass(frozen=True)
class Curve:
    """x(u) = u + i(y + mβ ln(1 + e^{(u − u₀)/β})); a line for m = 0."""

    height: Fraction
    slope: Fraction = Fraction(0)
    start: Fraction = Fraction(0)
    scale: Fraction = Fraction(1)

    def at(self, u: Complexes) -> tuple[Complexes, Complexes]:
        """Return x(u) and x'(u), |Im u| < πβ."""
        x = u + 1j * float(self.height)
        speed = np.ones_like(u)
        if self.slope:
            z = (u - float(self.start)) / float(self.scale)
            right = z.real > 0
            small = np.exp(np.where(right, -z, z))
            soft = np.log1p(small) + np.where(right, z, 0.0)
            logistic = np.where(right, 1.0, small) / (1.0 + small)
            x = x + 1j * float(self.slope * self.scale) * soft
            speed = speed + 1j * float(self.slope) * logistic
        return x, speed

    def ball_at(self, u: Fraction) -> tuple[acb, acb]:
        """Return x(u) and x'(u) in balls, u real."""
        if not self.slope:
            return acb(ball(u), ball(self.height)), acb(1)
        z = ball((u - self.start) / self.scale)
        small = (-abs(z)).exp()
        soft = small.log1p() + (z if u > self.start else 0)
        logistic = (1 if u > self.start else small) / (1 + small)
        height = ball(self.height) + ball(self.slope * self.scale) * soft
        return acb(ball(u), height), acb(1, ball(self.slope) * logistic)


def curve_ends(
    mixture: Mixture, curve: Curve, s: Complexes, offset: float, fall: float
) -> tuple[float, float] | None:
    """Return u₁ < u₂ outside which the integrand falls at rate ≥ 1 and is small at all s."""
    width = math.sqrt(2 * fall) + 1
    low, high = -width, max(float(curve.start), 0.0) + width
    stretch, steps = _STRETCH, 0
    while high - low < _WIDEST:
        left, falls_left = end_rate(mixture, curve, s, low, -1, offset)
        right, falls_right = end_rate(mixture, curve, s, high, 1, offset)
        u = (np.linspace(low, high, 200) + 1j * offset).astype(np.complex128)
        top = float(_exponents(mixture, curve, s, u)[0].max())
        done_left = falls_left >= 1 and left < top - fall
        done_right = falls_right >= 1 and right < top - fall
        if done_left and done_right:
            return low, high
        low -= 0.0 if done_left else stretch
        high += 0.0 if done_right else stretch
        steps += 1
        stretch *= 1.0 if steps < _SHORT_STEPS else _LONGER
    return None


def _exponents(
    mixture: Mixture, curve: Curve, s: Complexes, u: Complexes
) -> tuple[Floats, Complexes, Floats, Floats]:
    """Return h for every s and u, and x, |x'| and |v/w| for every u."""
    x, speed = curve.at(u)
    loss, share = mixture.log_at(x)
    base = (-0.5 * x * x).real
    h = base[None, :] + s.real[:, None] * loss.real[None, :] - s.imag[:, None] * loss.imag[None, :]
    return h, x, np.abs(speed), np.abs(share)


def end_rate(  # noqa: PLR0917
    mixture: Mixture, curve: Curve, s: Complexes, u: float, side: int, offset: float = 0.0
) -> tuple[float, float]:
    """Return ln of the largest integrand at an end, and a lower bound of its rate of decay beyond.

    Both for all s at once.
    """
    values, rates = end_rates(mixture, curve, s, u, side, offset)
    return float(values.max()), float(rates.min())


def end_rates(  # noqa: PLR0917
    mixture: Mixture, curve: Curve, s: Complexes, u: float, side: int, offset: float
) -> tuple[Floats, Floats]:
    """Return ln of the integrand at an end, and lower bounds of its rate of decay, for every s.

    To the left |v/w| ≤ |v|/(1 − |v|), Im x and x' − 1 get smaller; to the right
    |1 − v/w| ≤ 1/(|v| − 1) does, and u − m Im x grows.
    """
    h, x, speed, _ = _exponents(mixture, curve, s, np.array([complex(u, offset)]))
    values = h[:, 0] + math.log(float(speed[0])) - _HALF_LOG_2PI
    growth = math.exp(min(float(mixture.log_odds(x).real[0]), 700.0))
    y, m, absolute = abs(float(x.imag[0])), float(curve.slope), np.abs(s)
    size = absolute * mixture.mu * (1 + 2 * m)
    none = np.full(len(s), -1.0)
    if side < 0:
        if growth >= 1:
            return values, none
        extra = 2 * m * math.exp(min((u - float(curve.start)) / float(curve.scale), 0.0))
        return values, -u - (y + abs(u)) * extra - size * growth / (1 - growth)
    if growth <= 1 or (m > 0 and u < float(curve.start) + float(curve.scale)):
        return values, none
    logistic = 1 / (1 + math.exp(-(u - float(curve.start)) / float(curve.scale)))
    logistic = max(0.0, 1 - 2 * (1 - logistic))  # on Im u = offset, |offset| ≤ 5β/2
    rise = s.real * mixture.mu - s.imag * mixture.mu * m * logistic
    lost = (1 - logistic) * (2 * mixture.mu * absolute + m * (u + y))
    falls = u - m * (y + abs(offset)) - np.maximum(rise, 0.0) - lost - size / (growth - 1)
    return values, falls


def curve_bound(mixture: Mixture, curve: Curve, s: Complexes, offset: float, fall: float) -> float:
    """Return an upper bound of ln ∫ |φ w^s x'| du on Im u = offset, the largest over all s.

    It is ∞ where no bound is found.
    """
    ends = curve_ends(mixture, curve, s, offset, fall)
    if ends is None:
        return math.inf
    edges = np.linspace(*ends, _CELLS + 1)
    radius = 0.5 * float(edges[1] - edges[0])
    middles = (0.5 * (edges[1:] + edges[:-1]) + 1j * offset).astype(np.complex128)
    h, x, _, share = _exponents(mixture, curve, s, middles)
    m, angle = float(curve.slope), abs(offset) / float(curve.scale)
    speed = 1 + (m / max(math.cos(angle / 2), 0.05) if m else 0.0)
    more = _SPREAD * share + 0.01
    reach = radius * mixture.mu * speed * (1 + more)
    known = (reach <= _MOST) & (share * np.exp(np.minimum(reach, _MOST)) <= more)
    if not bool(known.all()):
        return math.inf
    turn = mixture.mu * np.abs(s)[:, None] * more[None, :]
    steep = speed * (np.abs(x)[None, :] + speed * radius + turn)
    logs = h + radius * steep + math.log(2 * radius * speed) - _HALF_LOG_2PI
    outside = [
        values - np.log(rates)
        for values, rates in (
            end_rates(mixture, curve, s, end, side, offset)
            for end, side in zip(ends, (-1, 1), strict=True)
        )
    ]
    terms = np.column_stack([logs, *outside])
    top = terms.max(axis=1)
    found = float((top + np.log(np.exp(terms - top[:, None]).sum(axis=1))).max())
    return found + _SLACK * (1 + float(np.abs(h).max()))


def log_beyond(mixture: Mixture, s: complex, cells: int) -> float:
    """Return an upper bound of ln|E[w^{a + iu}]| for all |u| ≥ t, where s = a + it, t > 0.

    The contour is a polyline, on which arg w ≥ 0, so that |w^{iu}| ≤ e^{−t arg w}. Of small losses
    it takes the Stein kernel times t, which leaves them as they are beside the largest ones; then
    μt p(x), to first order the height at which |w^s| e^{y²/2} is smallest, up to π/(2μ); and, if
    that is better, it rises from there. The cells' Gaussian masses are exact, so that their sizes
    only cost terms of second order. It is ∞ where no bound is found.
    """
    a, t = s.real, s.imag
    start = (mixture.log_rest - mixture.log_share) / mixture.mu + 0.5 * mixture.mu
    start += 1.5 / mixture.mu
    low = min(-_FAR, mixture.peak(a) - _FAR) if a < 0 else -_FAR
    high = mixture.right(a) + _FAR
    if start < high:
        high = max(high, a * mixture.mu + _FAR)
    found = math.inf
    for slope in (0.0, _RISE) if math.isinf(mixture.cut) else (0.0,):
        top = high if slope == 0.0 else max(start, 0.0) + _FAR
        x = np.linspace(low, top, cells + 1)
        height = t * np.maximum(mixture.stein_kernel(x, 0.0, t), mixture.mu * mixture.share(x))
        height = np.minimum(np.maximum.accumulate(height), mixture.largest_shift)
        height = mixture.lowered(x, height, a) + slope * np.maximum(x - start, 0.0)
        found = min(found, _polyline_bound(mixture, s, x, height, slope))
    return found


def _polyline_bound(mixture: Mixture, s: complex, x: Floats, height: Floats, slope: float) -> float:
    z = (x + 1j * height).astype(np.complex128)
    middle, half = 0.5 * (z[1:] + z[:-1]), 0.5 * np.abs(np.diff(z))
    loss, ratio = mixture.log_at(middle)
    share, reach = np.abs(ratio), half * mixture.mu
    more = (0.5 + np.exp(np.minimum(1.5 * reach, 50.0))) * share
    known = share * np.exp(np.minimum(reach * (1 + more), 100.0)) <= more
    if not bool((known & (loss.imag >= -reach * more)).all()):
        return math.inf
    h = s.real * loss.real - s.imag * np.maximum(loss.imag - reach * more, 0.0)
    h += abs(s.real) * reach * more
    higher = np.maximum(height[1:], height[:-1])
    logs = mixture.log_masses(x, higher) + 0.5 * higher**2 + h + np.log(2 * half / np.diff(x))
    first, last = float(x[0]), float(x[-1])
    rates = mixture.rates(first, last, s.real, -s.imag)
    left = mixture.log_integrand(first, s.real, -s.imag, float(height[0])) - _HALF_LOG_2PI
    if slope == 0.0:
        right = mixture.log_integrand(last, s.real, -s.imag, float(height[-1])) - _HALF_LOG_2PI
        rate = rates[1]
    else:
        end, log_end = complex(z[-1]), mixture.log_at(z[-1:])[0][0]
        right = (-0.5 * end * end).real + s.real * log_end.real - s.imag * log_end.imag
        right += 0.5 * math.log1p(slope * slope) - _HALF_LOG_2PI
        growth = math.exp(min(float(mixture.log_odds(z[-1:]).real[0]), 700.0))
        if growth <= 1:
            return math.inf
        rise = max(s.real * mixture.mu - s.imag * mixture.mu * slope, 0.0)
        rate = end.real - slope * end.imag - rise
        rate -= abs(s) * mixture.mu * (1 + slope) / (growth - 1)
    if not (rate > 0 and rates[0] > 0):
        return math.inf
    terms = np.concatenate([logs, [left - math.log(rates[0]), right - math.log(rate)]])
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum())) + _SLACK * (1 + float(np.abs(h).max()))
