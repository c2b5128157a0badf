"""The law of the radius r = ‖x‖ of noise with the density g(‖x‖): weights, rests, and draws.

Its density is g r^{d−1}/Z. All is in units of about the largest g r^d, so that no number is out of
range for a million dimensions. ∫ e^{−v} r^d/d dv over the levels v of V = −ln g is Z too, by parts.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np
from flint import acb, arb

from dpassay.accountant.density.radii import Radii, Stretch, radii
from dpassay.accountant.density.ranges import Ranges
from dpassay.accountant.density.sweep import STARTS
from dpassay.accountant.density.tail import Decay, TailError, decay
from dpassay.accountant.density.tree import X, add, mul, num, power
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import fraction

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIRST_BITS = 64
"""Bits in which it is looked whether an integral is finite, and for draws."""
_CELLS, _NATS, _WIDEST = 1 << 15, 45, 200
"""Cells of the histogram of draws, how far its weights fall, and its largest width in ln r."""
_NEARER, _NEAREST = 16, 16
"""Halvings of the centre, for each of the first of these doublings, that 0 is approached by."""
_GRADES = (1.0, 1.5)
"""Places between two doublings."""
_FARTHEST, _WIDER = 220, 4
"""Doublings of the spread that are places, and how the panels of integrals grow."""
_HALVINGS = 80
"""Of the step with which the centre is sought."""


@final
class Radius:
    """The law of the radius, in units of the largest g r^d."""

    def __init__(self, text: str, dimension: int) -> None:
        self.radii: Radii = radii(text, ctx.prec)
        self.dimension = self._d = dimension
        self._peak()

    def _peak(self) -> None:
        """Find about where g r^d is largest, how far it reaches, and its logarithm."""
        d, best = self._d, None
        for part in self.radii.parts:
            places = list(zip(*part.table, strict=True))
            if part.high is not None and part.top.is_finite():
                places.append((float(part.high.lower()), float(part.top.mid())))
            for r, v in places:
                if r > 0 and (best is None or d * float(arb(r).log()) - v > best[0]):
                    best = d * float(arb(r).log()) - v, arb(r), part
        assert best is not None
        _, at, part = best
        step = at / 4
        for _ in range(_HALVINGS):  # to where the slope of its logarithm is 0
            new = at + step if d / at + part.rise(acb(at), False).real > 0 else at - step
            inside = new > part.low and (part.high is None or new < part.high)
            at, step = (new.mid() if inside else at), step / 2
            if step < at / 2**40:
                break
        slope = d / at + part.rise(acb(at), False).real
        bend = -d / at**2 + part.bend(acb(at), False).real
        spread = 1 / (-bend).sqrt() if bend < 0 else at
        spread = spread.min(1 / abs(slope)) if abs(slope) > 0 else spread
        self.centre, self.spread = at, arb(float(spread.mid()))
        self.top = (d * at.log() - part.at(at)).mid()
        near = [self.spread * g * arb(2) ** n for n in range(-1, 220) for g in _GRADES]
        self.edges = [at + s * self.spread * arb(4) ** n for n in range(110) for s in (-2, 2)]
        self.edges = [u.mid() for u in self.edges if u > 0]
        self.places = sorted(
            {u.mid() for gap in near for u in (at - gap, at + gap) if u > 0}
            | {at.mid()} | {(at / arb(2) ** n).mid() for n in range(1, 12)}
        )  # fmt: skip

    def reach(self, n: int) -> tuple[arb, arb | None]:
        """Return two radii n doublings of the spread from the centre; None for the end of g."""
        far = self.spread * arb(2) ** n
        low = (self.centre - far).max(self.centre * arb(2) ** (-_NEARER * min(n, _NEAREST))).mid()
        high, end = (self.centre + far).mid(), self.radii.end
        return low, None if end is not None and high > end else high

    def _ball(self, r: arb, v: arb) -> arb:
        """Return e^{−v} r^d/d."""
        return (self._d * r.log() - v - self.top).exp() / self._d

    def below(self, low: arb) -> arb:
        """Return g(0) A^d/d."""
        return self._ball(low, self.radii.parts[0].bottom).upper()

    @property
    def closing(self) -> arb:
        """Return a bound of what lies between R, where g falls to 0, and the last place before."""
        if (last := self.radii.closing) is None or self.radii.end is None:
            return arb(0)
        return self._ball(self.radii.end, self.radii.parts[-1].at(last)).upper()

    def beyond(self, high: arb) -> arb:
        """Return a bound of g(B) B^d/d + ∫ g r^{d−1} dr from B on; NaN where none is known."""
        d, end, last = self._d, self.radii.end, self.radii.parts[-1]
        if end is not None:
            part = [each for each in self.radii.parts if each.low.lower() <= high][-1]
            v = part.bottom if not high > part.low else part.at(high)
            return self._ball(end, v).upper()
        if (fall := _falls(self.radii, d, fraction(high))) is None:
            return arb.nan()
        size = (d * high.log() - last.at(high) - self.top).exp()
        return (size / d + size / high * fall.below(high)).upper()

    def levels(self, stretch: Stretch, low: arb, high: arb) -> arb:
        """Return an upper bound of the integral of e^{−v} r^d/d dv; of a jump its value."""
        if stretch.part is not None:
            size = self._ball(high, stretch.part.at(low))
            return size * -(stretch.part.at(low) - stretch.part.at(high)).expm1()
        size = self._ball(stretch.place, low)
        return size if not high.is_finite() else size * -(low - high).expm1()

    def ring(self, low: arb, high: arb) -> arb:
        """Return an upper bound of ∫ g r^{d−1} dr."""
        part = [each for each in self.radii.parts if each.low.lower() <= low][-1]
        size = ((self._d - 1) * high.log() - part.at(low) - self.top).exp()
        return (high - low) * (size if self._d > 1 else (-part.at(low) - self.top).exp())

    def weight(self, stretch: Stretch, u: acb, of_levels: bool, analytic: bool) -> acb:
        """Return e^{−v} r^d/d dv/du, or g r^{d−1}.

        Its logarithm on a set is that at a point, its slope there, and the range of its curvature.
        """
        d, part = self._d, stretch.part
        if part is None:
            return (self._d * stretch.place.log() - u - self.top).exp() / d
        k = d if of_levels else d - 1
        rise = -part.rise(u, analytic) / d if of_levels else acb(1)
        m = u.real.mid()
        if m > 0:
            log = k * m.log() - part.at(m) - self.top
            away = u - m
            if away.is_zero():
                return log.exp() * rise
            slope = k / m + part.rise(acb(m), False)
            bend = part.bend(u, analytic) - (k / (u * u) if k else 0)
            near = (log + away * slope + away * away * bend / 2).exp()
            if near.is_finite() and near.rad() < 1:
                return near * rise
        return u**k * (-part.level(u, analytic) - self.top).exp() * rise


@functools.lru_cache(maxsize=64)
def is_integrable(text: str, dimension: int) -> bool:
    """Whether ∫ g r^{d−1} dr is proved to be finite; where it is not, it is ∞ or unknown."""
    with ctx.workprec(_FIRST_BITS):
        found = radii(text, ctx.prec)
        return found.end is not None or any(
            _falls(found, dimension, start) is not None for start in STARTS
        )


def _falls(found: Radii, dimension: int, start: Fraction) -> Decay | None:
    """Return how g r^{d−1} falls from a radius on; None where that is not known."""
    slope = add(mul(num(dimension - 1), power(X, Fraction(-1))), found.parts[-1].piece.slope)
    try:
        return decay(slope, start)
    except TailError:
        return None


def draw(text: str, dimension: int, size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Draw radii in floats, by inversion of a histogram in ln r of many cells: for simulation."""
    with ctx.workprec(_FIRST_BITS + 2 * dimension.bit_length()):
        found = radius(text, dimension, ctx.prec)
        centre, spread = float(found.centre), float(found.spread / found.centre)
    parts = found.radii.parts
    ends = [float(part.low.mid()) for part in parts[1:]]
    end = math.inf if found.radii.end is None else float(found.radii.end.mid())

    def log_weight(s: NDArray[Any]) -> NDArray[Any]:
        r = np.exp(s)
        which = np.searchsorted(ends, r, side="right")
        value = np.full(len(s), -np.inf)
        for k, part in enumerate(parts):
            mine = (which == k) & (r < end)
            low, high = Ranges(r[mine], r[mine], part.piece.known)(part.piece.log)
            value[mine] = dimension * s[mine] + (low + high) / 2
        return value

    middle = math.log(centre)
    most = float(log_weight(np.array([math.log(centre * (1 - 2**-30))]))[0])
    jumps = [math.log(r) for r in (*ends, end) if 0 < r < math.inf]
    tabled = [math.log(r) for part in parts for r in part.table[0] if r > 0]
    places = np.array([*tabled, *(jump - 2**-30 for jump in jumps)]) - middle
    places = places[log_weight(places + middle) > most - _NATS]  # of all modes
    sides = []
    for way in (-1, 1):
        reach = float(max([min(spread, 1.0), *(way * places)]))
        while log_weight(np.array([middle + way * reach]))[0] > most - _NATS and reach < _WIDEST:
            reach *= 2
        sides.append(middle + way * reach)
    edges = np.union1d(np.linspace(sides[0], sides[1], _CELLS + 1), jumps)
    weights = np.exp(log_weight((edges[1:] + edges[:-1]) / 2) - most) * np.diff(edges)
    above = np.concatenate([[0.0], np.cumsum(weights)])
    drawn: NDArray[Any] = np.exp(np.interp(rng.random(size) * above[-1], above, edges))
    return drawn


@functools.lru_cache(maxsize=64)
def radius(text: str, dimension: int, bits: int) -> Radius:
    """Return the law of the radius for this precision."""
    with ctx.workprec(bits):
        return Radius(text, dimension)
