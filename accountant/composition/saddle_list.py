"""The loss of a law on a list, on a vertical line: sums of few terms, and how far they fall.

With X and X' two independent losses, tilted by e^{cL}, |M(c + iu)/M(c)|² = E cos(u(X − X')), of
variance v and fourth central moment m:

- u²v − u⁴(2m + 6v²)/24 ≤ 1 − |M/M(c)|², a concave function of u², and 4u²v/π² as well as long as
  no u|X − X'| exceeds π, by cos y ≤ 1 − y²/2 + y⁴/24 and cos y ≤ 1 − 2y²/π²;
- Σ 2 w_x w_y (1 − cos u(l_x − l_y)) over neighbours alone, which increases with u as long as no
  u(l_x − l_y) exceeds π.

Beyond that nothing is known: the values may lie on a lattice, and M is periodic then.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from flint import acb, arb, ctx

from accountant.composition.finite import finite
from accountant.composition.listed import MAX_VALUES, listed
from accountant.composition.saddle import FloatTransform
from accountant.composition.saddle_decay import Decay, up
from accountant.composition.saddle_kernels import NumpyKernels
from accountant.composition.saddle_transform import Quadrature, Transform
from accountant.interval import ball
from accountant.pair import Pair
from accountant.pairs.finite import FinitePair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

_PRECISION = 128
_NEXT = 1.6
_SAME = 2.0**-60
_BELOW = 1 - 2.0**-50
_MOST = 1 - arb(2) ** -20


def finite_list(pair: Pair) -> FinitePair | None:
    """Return a pair on a short list with finite losses alone, None for any other pair."""
    small = finite(pair)
    if small is None or len(small.source.outcomes(small.index)) > MAX_VALUES:
        return None
    p, q = small.source.masses(small.index)
    return small if all(a.is_zero() == b.is_zero() for a, b in zip(p, q, strict=True)) else None


@final
@dataclass(frozen=True)
class ListTransform(Transform):
    """M(z) = Σ p e^{zl} for a pair with a `finite_list`."""

    pair: FinitePair

    def value(self, c: Fraction) -> arb:
        """Return the sum."""
        return self._tilted(c).total()

    def line(self, c: Fraction, step: Fraction, count: int) -> list[acb]:
        """Return the sums on the line."""
        return self._tilted(c).line(step, count)

    def _tilted(self, c: Fraction) -> Quadrature:
        losses, p = _values(self.pair, ctx.prec)
        tilt = ball(c)
        weights = tuple(mass * (tilt * loss).exp() for mass, loss in zip(p, losses, strict=True))
        return Quadrature(losses, weights, arb(0))

    def decay(self, c: Fraction) -> Decay:
        """Return the bounds at the head of this file."""
        with ctx.workprec(_PRECISION):
            tilted = self._tilted(c)
            whole = tilted.total()
            return ListDecay(tilted.losses, [weight / whole for weight in tilted.weights])

    def log_beyond(self, c: Fraction, t: float, count: int) -> float:
        """Return ln M(c)."""
        return up(float(self.value(c).log().upper()))

    def estimate(self, *, compiled: bool = False) -> FloatTransform:
        """Return the sums in floats."""
        with ctx.workprec(_PRECISION):
            losses, p = _values(self.pair, ctx.prec)
            return FloatList(*(tuple(float(x.mid()) for x in row) for row in (losses, p)))

    def alike(self) -> Hashable:
        """Return the pair itself."""
        return self.pair


@functools.lru_cache(maxsize=64)
def _values(pair: FinitePair, precision: int) -> tuple[tuple[arb, ...], tuple[arb, ...]]:
    """Return the losses and their masses under P."""
    found = listed(pair, 0.0)
    assert found is not None  # the list is not too long
    return tuple(found.losses), tuple(found.p)


@final
class ListDecay(Decay):
    """A list of losses and their masses, tilted."""

    def __init__(self, losses: tuple[arb, ...], weights: list[arb]) -> None:
        rows = sorted(zip(losses, weights, strict=True), key=lambda row: float(row[0]))
        mean = sum((w * x for x, w in rows), start=arb(0))
        away = [(x - mean, w) for x, w in rows]
        self._variance = sum((w * x**2 for x, w in away), start=arb(0))
        self._fourth = 2 * sum((w * x**4 for x, w in away), start=arb(0)) + 6 * self._variance**2
        pairs = itertools.pairwise(rows)
        self._gaps = [(y - x, 2 * v * w) for (x, v), (y, w) in pairs if (y - x) > _SAME]
        widest = (rows[-1][0] - rows[0][0], max((gap for gap, _ in self._gaps), default=arb(0)))
        self.limits = tuple(
            float((arb.pi() / gap).lower()) * _BELOW if gap > 0 else math.inf for gap in widest
        )

    def log_ratio(self, t: float) -> float:
        """Return 0."""
        return 0.0

    def log_between(self, t: float, end: float) -> float:
        """Return the better one of the two bounds."""
        with ctx.workprec(_PRECISION):
            fall = arb(0)
            if end <= self.limits[0]:
                u = min(_NEXT * t, end)
                fall = (4 / arb.pi() ** 2 * self._variance * arb(u) ** 2).min(
                    self._near(arb(t)).min(self._near(arb(u)))
                )
                fall = fall.max(4 / arb.pi() ** 2 * self._variance * arb(t) ** 2)
            if end <= self.limits[1]:
                at = arb(t)
                turned = ((1 - (at * gap).cos()) * w for gap, w in self._gaps)
                fall = fall.max(sum(turned, start=arb(0)))
            return min(up(0.5 * float((-fall.min(_MOST)).log1p().upper())), 0.0)

    def _near(self, u: arb) -> arb:
        return self._variance * u**2 - self._fourth * u**4 / 24

    def log_scale(self) -> float | None:
        """Return None."""
        return None

    def split(self) -> tuple[arb, arb]:
        """Return 1 and 0: there is no density."""
        return arb(1), arb(0)


@final
@dataclass(frozen=True)
class FloatList:
    """ln M(z) = ln Σ p e^{zl}."""

    losses: tuple[float, ...]
    p: tuple[float, ...]

    def _tilted(self, c: float) -> tuple[Floats, Floats, float, float]:
        """Return the losses, their shares of M(c), ln M(c) and the mean."""
        losses, p = np.array(self.losses), np.array(self.p)
        logs = np.log(p) + c * losses
        top = float(logs.max())
        shares = np.exp(logs - top)
        size = top + math.log(float(shares.sum()))
        if float(np.abs(c * losses).max()) < 1:
            size = math.log1p(math.fsum(p * np.expm1(c * losses)))
        shares /= shares.sum()
        return losses, shares, size, math.fsum(shares * losses)

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln M(c), the mean and the variance."""
        losses, shares, size, mean = self._tilted(c)
        return size, mean, float(shares @ (losses - mean) ** 2)

    def log_ratio(self, c: float, t: Floats) -> tuple[Floats, Floats]:
        """Return ln E[e^{it(L − m)}] under the tilted law of mean m."""
        losses, shares, _, mean = self._tilted(c)
        sums = NumpyKernels.line(shares, losses - mean, t)
        real, imaginary = sums.real, sums.imag
        size = 0.5 * np.log1p(2 * real + real * real + imaginary * imaginary)
        return size, np.arctan2(imaginary, 1 + real)
