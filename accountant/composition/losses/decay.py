"""How fast the transforms of smooth losses decay along a vertical line."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from flint import arb

from dpassay.accountant.composition.losses.bounds import Mixture

_LOG_2 = math.log(2)
_NEAREST = 0.3
"""First t of a bound, in deviations: nearer 0 its multiples say as much."""
_LEAP = 2.0
"""Ratio of the t at which bounds are made first."""
_MOST_ANCHORS = 60
"""Such t at most: 2^60 deviations are beyond every line."""
_NEAR = 1 / 3
"""Share of the best of these t below which no bound is made: multiples of it have better ones."""
_ENOUGH = 0.75
"""Share of the fall of a normal law that is bound enough: more takes another bound."""
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

    def log_scale(self) -> float | None:
        """Return ln C with r(t) ≤ C/t for all t, None where there is none, as with atoms."""
        return None

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
        self._best = t
        for _ in range(_MOST_ANCHORS):
            found = -math.expm1(2 * self._direct(t)) / t**2
            if found < best:  # it rises as far as the width of cells counts, and falls then
                break
            best, self._best, t = found, t, _LEAP * t
            if best > _ENOUGH * deviation**2 or best * t**2 > 1:  # it is at most V, and 1/t²
                break

    def _direct(self, t: float) -> float:
        if t not in self._known:
            self._known[t] = min(self._floats.log_decay(self._s, t) - self._size, 0.0)
        return self._known[t]

    def log_ratio(self, t: float) -> float:
        """Return the best bound, from points below t and from multiples of t."""
        best = self._of_known(t)
        if t > _NEAR * self._best and best > -_ENOUGH * (t * self._deviation) ** 2 / 2:
            self._direct(_GRID ** math.floor(math.log(t) / math.log(_GRID)))
            best = self._of_known(t)
        return best

    def _of_known(self, t: float) -> float:
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
