"""How fast the transforms of smooth losses decay along a vertical line.

Bounds of real moments of Gaussian mixtures in floats, with all errors.

Λ(s) = ∫ φ w^s dx, w = 1 − q + q e^{μx − μ²/2}, is taken by the trapezoidal rule with step η. At
the height y < π/μ above the real axis the two terms of w are vectors at an angle θ = μy < π, so
that cos(θ/2) w(x) ≤ |w(x + iy)| ≤ w(x), and

    |φ w^s| at x + iy ≤ G φ(x) w(x)^s,   G = e^{y²/2} for s ≥ 0,   e^{y²/2} cos(θ/2)^s for s < 0:

the rule is wrong by at most 2GΛ(s)/(e^{2πy/η} − 1) (Trefethen and Weideman 2014, Theorem 5.1).
Nodes that are left out decay geometrically (`saddle_bounds.Mixture.rates`).

A law that is cut has the factor χ(x) = erfc(u)/2, u = (x − cut)/(τ√2), besides. As |erfc(u + iv)| ≤
e^{v²} erfc(u) for u ≥ 0, and |erfc(u + iv)| ≤ 2 + e^{v²} for u < 0, where erfc(u) ≥ 1, it brings
the factor 2 + e^{v²}, v = y/(τ√2), to G; and so does a law that begins somewhere. A second, sharp
cut far behind the first is left out of upper bounds, if it hardly matters there.

*Rounding*, u = 2^−53. The numbers of the mixture and b = ln(q e^{μx − μ²/2}) are wrong by at most
8u(1 + |ln q| + |μx| + μ²/2) = 8uB; ln w = ln(1 − q) + ln(1 + odds) takes over the share p of that
and 8u of its own two terms, of which the second is at most 2p(1 + B). A logarithm of a term is
wrong by |s| times as much and by 8u(1 + x² + |s ln w|): together by less than 64u(1 + x² +
|s|(|ln(1 − q)| + p(1 + B))), and with a cut by 64u(|ln χ| + |x|(1 + √|ln χ|)/τ) more. The
logarithm of the sum is wrong by the mean of that, weighted with the terms, which is doubled.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from flint import arb

from accountant.composition.losses.bounds import Mixture
from accountant.composition.numeric.cells import GUARD_WIDTH, HALF_LOG_2PI
from accountant.errors import UndecidedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

_LOG_2 = math.log(2)
_NEAREST = 0.3
"""First t of a bound, in deviations: nearer 0 its multiples say as much."""
_LEAP = 2.0
"""Ratio of the t at which bounds are made first."""
_MOST_ANCHORS = 60
"""Such t at most: 2^60 deviations are beyond every line."""
_NEAR = 0.1
"""t in deviations below which no bound is made there: multiples of it have better ones."""
_GRID = 1.3
"""Ratio of the t at which bounds are made when asked for: neighbours share them, within 30 %."""


def up(value: float) -> float:
    """Return a float above a number of which this is the nearest float."""
    return math.nextafter(value, math.inf)


class Decay(ABC):
    """Upper bounds of r(t) = sup over u ≥ t of |M(c + iu)|/M(c)."""

    limits: tuple[float, ...] = ()
    """Frequencies beyond which less is known."""

    @abstractmethod
    def log_ratio(self, t: float) -> float:
        """Return an upper bound of ln r(t)."""

    def log_between(self, t: float, end: float) -> float:
        """Return an upper bound of ln|M(c + iu)|/M(c) for t ≤ u ≤ end."""
        return self.log_ratio(t)

    @abstractmethod
    def log_scale(self) -> float | None:
        """Return ln C with r(t) ≤ C/t for all t, None where there is none."""

    def split(self) -> tuple[arb, arb] | None:
        """Return A and C with |M(c + it) − a(c + it)|/M(c) ≤ C/t, a the atoms, A = a(c)/M(c).

        None where the loss has a density alone.
        """
        return None


@final
@dataclass(frozen=True)
class GaussianDecay(Decay):
    """r(t) = e^{−t²μ²/2}, given μ²/2."""

    half: float

    def log_ratio(self, t: float) -> float:
        """Return ln r(t)."""
        return -self.half * t * t

    def log_scale(self) -> float | None:
        """Return ln(√(2/μ²)), as x e^{−x²} < 1."""
        return -0.5 * math.log(self.half)


@final
class MixtureDecay(Decay):
    """The decay of |Λ(s + it)|/Λ(s).

    With ψ(t) = (|Λ(s + it)|/Λ(s))², a real characteristic function, 1 − ψ(nt) ≤ n²(1 − ψ(t)) for
    every integer n. So a bound r of the ratio beyond T gives, for t ≥ T/n, the bound
    √(1 − (1 − r²)/n²): near 0 it is Gaussian, however roughly r is known.
    """

    def __init__(self, floats: Mixture, s: float, size: float, deviation: float) -> None:
        self._floats, self._s, self._size, self._deviation = floats, s, size, deviation
        self._known: dict[float, float] = {}
        t, best = _NEAREST / self._deviation, 0.0
        for _ in range(_MOST_ANCHORS):
            best = max(best, -math.expm1(2 * self._direct(t)) / t**2)
            t *= _LEAP
            if best * t**2 > 1:  # (1 − r²)/t² is never as large again
                break

    def _direct(self, t: float) -> float:
        if t not in self._known:
            self._known[t] = min(self._floats.log_decay(self._s, t) - self._size, 0.0)
        return self._known[t]

    def log_ratio(self, t: float) -> float:
        """Return the best bound, from points below t and from multiples of t."""
        if t * self._deviation > _NEAR:
            grid = math.floor(math.log(t) / math.log(_GRID))
            self._direct(_GRID**grid)
        best = 0.0
        for point, level in self._known.items():
            if point <= t:
                best = min(best, level)
            else:
                n = math.ceil(point / t)
                best = min(best, 0.5 * math.log1p(math.expm1(2 * level) / n**2))
        return best

    def log_scale(self) -> float | None:
        """Bound t|Λ(s + it)| by the variation of φ w^s/l', through closed Gaussian moments.

        One integration by parts gives (1/t) ∫ |(φ w^s/L')'| dx, with L' = μ q e^l/w; and
        w ≤ 2 max(1, e^l) for s ≥ 0, w ≥ 1 − q for s < 0.
        """
        mu, s = self._floats.mu, self._s
        above = max(s, 0.0)
        factor = mu * (1 + abs(s + 1))
        if math.isfinite(self._floats.cut):
            factor += 1 / self._floats.width  # |χ'| ≤ 1/(τ√(2π))
        if math.isfinite(self._floats.guard):
            factor += 1 / GUARD_WIDTH
        if math.isfinite(self._floats.rise):
            factor += 1 / self._floats.rise_width
        logs = []
        for a in (-1.0, 0.0, above - 1, above):
            moment = 0.5 * (2 + (a * mu) ** 2) + factor
            logs.append(0.5 * (a * a - a) * mu * mu + math.log(moment))
        top = max(logs) + math.log(4)
        outer = above * _LOG_2 + min(s, 0.0) * self._floats.log_rest
        size = top + outer - math.log(mu) - self._floats.log_share - self._size
        return size + 1e-6 * (1 + abs(size) + abs(self._size))


_FALL = 38.0
"""−ln of the relative error of the rule that is aimed at."""
_BEYOND = 8.0
"""How much further down than its accuracy the nodes of the rule reach, as ln."""
_HIGHEST = 0.9
"""The largest height, as a part of π/μ."""
_MOST_NODES = 1 << 14
"""Most nodes of the rule: some milliseconds; a ball sum takes over beyond."""
_ROUNDING = 2.0**-47
"""64 units of rounding: see the head of this file."""
_SMALL = 1e-3
"""Largest error of a logarithm by rounding with which a bound is worth having."""
_HARDLY = 1e-9
"""Share of the terms beyond a guard up to which leaving it out hardly raises the bound."""


def log_upper(floats: Mixture, s: float) -> float | None:
    """Return an upper bound of ln Λ(s), None where floats do not do."""
    if not math.isinf(floats.guard):
        guard, floats = floats.guard, replace(floats, guard=math.inf)
        found = _sum(floats, s)
        return None if found is None or found.beyond(guard) > _HARDLY else found.log_upper
    found = _sum(floats, s)
    return None if found is None else found.log_upper


def log_lower(floats: Mixture, s: float) -> float | None:
    """Return a lower bound of ln Λ(s) for a law that is not cut, None where floats do not do."""
    found = None if floats.is_cut else _sum(floats, s)
    return None if found is None else found.log_lower


@final
@dataclass(frozen=True, slots=True)
class _Sum:
    """The trapezoidal rule for Λ(s), its nodes, and bounds of its error."""

    x: Floats
    terms: Floats
    """In units of the largest."""
    log_value: float
    error: float
    outside: float
    slack: float

    @property
    def log_upper(self) -> float:
        """Of χ that is rounded up, too."""
        return self.log_value + 2 * self.error + self.outside + self.slack

    @property
    def log_lower(self) -> float:
        """Of a law without χ."""
        return self.log_value - self.error - self.slack

    def beyond(self, place: float) -> float:
        """Return the share of the terms beyond a place."""
        return float(self.terms[self.x > place].sum() / self.terms.sum())


def _sum(floats: Mixture, s: float) -> _Sum | None:
    height, log_growth = _height(floats, s)
    step = 2 * math.pi * height / (_FALL + log_growth)
    step = 2.0 ** math.floor(math.log2(step))  # so that nodes are not rounded
    try:
        low, high = floats.reach(s, 0.0, 0.0, _FALL + _BEYOND)
    except UndecidedError:
        return None
    first, last = math.floor(low / step), math.ceil(high / step)
    rates = floats.rates(first * step, last * step, s, 0.0)
    if last - first > _MOST_NODES or min(rates) <= 0:
        return None
    x = np.arange(float(first), last + 1.0) * step
    bell, loss, share = floats.bell(x), floats.log_density(x), floats.share(x)
    log_odds = abs(floats.log_share) + floats.mu * np.abs(x) + 0.5 * floats.mu * floats.mu
    wrong = 1 + x * x + abs(s) * (abs(floats.log_rest) + share * (2 + log_odds))
    for _, width in floats.edges:
        kept = np.maximum(-bell - 0.5 * x * x, 0.0)
        wrong += kept + np.abs(x) * (1 + np.sqrt(kept)) / width
    logs = s * loss + bell
    top = float(logs.max())
    if not _ROUNDING * float(wrong.max()) < _SMALL:
        return None
    terms = np.exp(logs - top)
    total = math.fsum(terms)
    beyond = terms[0] / math.expm1(rates[0] * step) + terms[-1] / math.expm1(rates[1] * step)
    return _Sum(
        x,
        terms,
        top + math.log(total * step) - HALF_LOG_2PI,
        2 * math.exp(log_growth) / math.expm1(2 * math.pi * height / step),
        float(beyond) / total,
        2 * _ROUNDING * (float(terms @ wrong) / total + abs(top)),
    )


def _height(floats: Mixture, s: float) -> tuple[float, float]:
    """Return a height of about the largest step, and ln G there."""
    mu, widths = floats.mu, [width for _, width in floats.edges]
    bend = 1 + sum(width**-2 for width in widths) + 0.25 * mu * mu * max(-s, 0.0)
    y = min(math.sqrt(2 * _FALL / bend), _HIGHEST * math.pi / mu)
    log_growth = 0.5 * y * y + min(s, 0.0) * math.log(math.cos(0.5 * mu * y))
    for width in widths:
        log_growth += math.log(2 + math.exp(0.5 * (y / width) ** 2))
    return y, log_growth
