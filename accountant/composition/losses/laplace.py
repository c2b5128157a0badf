"""Moments on vertical lines of losses given as lists of values and of Laplace losses."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

from flint import acb, arb

from dpassay.accountant.composition.fourier.estimates import FloatMoments, FloatTransform
from dpassay.accountant.composition.losses.bounds import Decay, NoDecay, excess_at
from dpassay.accountant.composition.losses.transform import Moments, Quadrature, Transform
from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.theta import theta
from dpassay.accountant.pairs.discrete import DiscreteGaussianPair
from dpassay.accountant.pairs.finite import FinitePair, finite

if TYPE_CHECKING:
    Floats: TypeAlias = NDArray[np.float64]
    Complexes: TypeAlias = NDArray[np.complexfloating[Any, Any]]


MAX_VALUES = 1 << 12
"""Largest number of listed values of one loss."""
_WHOLE = 1e-12
"""Error up to which a sum of masses counts as 1, so that M − 1 is summed without cancellation."""
_LISTS_NEAR, _LARGEST = 0.5, 700.0
"""|ln M| from which no such sum is needed, and the largest exponent in it."""
_DEVIATIONS = 10
"""Standard deviations at which a discrete Gaussian law ends in floats: e^−50 of its peak."""
_FARTHEST = 2.0**50
"""Larger outcomes are not all representable as floats."""


def finite_list(pair: Pair) -> FinitePair | None:
    """Return a pair as a short list with some finite loss, or None for any other pair."""
    small = finite(pair)
    if small is None or len(small.source.outcomes(small.index)) > MAX_VALUES:
        return None
    p, q = small.source.masses(small.index)
    both = (not (a.is_zero() or b.is_zero()) for a, b in zip(p, q, strict=True))
    return small if any(both) else None


class Listed(Moments):
    """M(z) = Σ p e^{zl} over all outcomes, or over those that matter."""

    @abstractmethod
    def tilted(self, c: Fraction) -> Quadrature:
        """Return the losses, the terms p e^{cl} of M(c), and a bound on the terms left out."""

    def value(self, c: Fraction) -> arb:
        """Return the sum."""
        return self.tilted(c).total()


@final
@dataclass(frozen=True)
class ListTransform(Listed):
    """Finite losses of a pair on a short list, in the order of the list."""

    pair: FinitePair

    def tilted(self, c: Fraction) -> Quadrature:
        """Return all terms."""
        losses, p = _values(self.pair, ctx.prec)
        tilt = ball(c)
        weights = tuple(mass * (tilt * loss).exp() for mass, loss in zip(p, losses, strict=True))
        return Quadrature(losses, weights, arb(0))

    def estimate(self) -> FloatMoments:
        """Return the sums in floats."""
        with ctx.workprec(_PRECISION):
            losses, p = _values(self.pair, ctx.prec)
            return FloatList.of(*(np.array([float(x.mid()) for x in row]) for row in (losses, p)))


@final
@dataclass(frozen=True)
class DiscreteGaussianTransform(Listed):
    """The losses (2xs − s²)/2v of discrete Gaussian laws, where x is the outcome.

    With m = s(1 + c) the terms of M(c) are e^{c(c + 1)s²/2v} e^{−(x − m)²/2v}/θ. The terms with
    |x − m| > R sum to at most 2(1 + √(πv/2)) e^{−R²/2v} times the factor e^{c(c + 1)s²/2v}/θ.
    """

    pair: DiscreteGaussianPair

    def spread(self, bits: int) -> int:
        """Return an R such that the terms beyond it sum to about 2^−bits at most."""
        return math.isqrt(math.ceil(2 * float(self.pair.parameter) * (bits + 16))) + 1  # ln 2 < 1

    def tilted(self, c: Fraction) -> Quadrature:
        """Return the terms down to the current precision."""
        v, s, reach = self.pair.parameter.ball(), self.pair.shift, self.spread(ctx.prec)
        centre = s * (1 + c)
        around = range(round(centre) - reach - 1, round(centre) + reach + 2)
        scale = (ball(c * (c + 1) * s * s) / (2 * v)).exp() / theta(self.pair.parameter)
        weights = tuple(scale * (-ball((x - centre) ** 2) / (2 * v)).exp() for x in around)
        losses = tuple(ball(Fraction(2 * x * s - s * s, 2)) / v for x in around)
        rest = 2 * (1 + (arb.pi() * v / 2).sqrt()) * (-(arb(reach) ** 2) / (2 * v)).exp()
        return Quadrature(losses, weights, (scale * rest).upper())

    def estimate(self) -> FloatMoments:
        """Return the sums in floats."""
        return FloatDiscreteGaussian(float(self.pair.parameter), self.pair.shift)


@functools.lru_cache(maxsize=64)
def _values(pair: FinitePair, precision: int) -> tuple[tuple[arb, ...], tuple[arb, ...]]:
    """Return the finite losses and their masses under P."""
    p, q = pair.source.masses(pair.index)
    known = pair.source.exact_losses(pair.index)
    if pair.flipped:
        p, q, known = q, p, [None if loss is None else -loss for loss in known]
    rows = [
        ((a / b).log() if loss is None else loss.ball(), a)
        for a, b, loss in zip(p, q, known, strict=True)
        if not (a.is_zero() or b.is_zero())
    ]
    return tuple(loss for loss, _ in rows), tuple(mass for _, mass in rows)


class _FloatSums(ABC):
    """ln M(z) = ln Σ p e^{zl}."""

    @abstractmethod
    def tilted(self, c: float) -> tuple[Floats, Floats, float]:
        """Return losses, their shares of M(c), and ln M(c)."""

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln M(c) and its first two derivatives."""
        losses, shares, size = self.tilted(c)
        mean = math.fsum(shares * losses)
        return size, mean, float(shares @ (losses - mean) ** 2)


@final
@dataclass(frozen=True, eq=False)
class FloatList(_FloatSums):
    """A list of losses, or the nodes of a rule."""

    losses: Floats
    logs: Floats
    """ln p, stored because p may underflow."""
    p: Floats

    @staticmethod
    def of(losses: Floats, p: Floats) -> FloatList:
        """Return the list of losses and their masses."""
        return FloatList(losses, np.log(p), p)

    def tilted(self, c: float) -> tuple[Floats, Floats, float]:
        """Return the whole list."""
        power = c * self.losses
        logs = self.logs + power
        top = float(logs.max())
        shares = np.exp(logs - top)
        size = top + math.log(float(shares.sum()))
        if abs(size) < _LISTS_NEAR and float(power.max()) < _LARGEST and self._is_whole:
            size = math.log1p(math.fsum(self.p * np.expm1(power)))  # nothing cancels
        return self.losses, shares / shares.sum(), size

    @cached_property
    def _is_whole(self) -> bool:
        return abs(math.fsum(self.p) - 1) < _WHOLE


@final
@dataclass(frozen=True)
class FloatDiscreteGaussian(_FloatSums):
    """Discrete Gaussian outcomes near the mean of the tilted law."""

    parameter: float
    shift: int

    def tilted(self, c: float) -> tuple[Floats, Floats, float]:
        """Return the terms at the outcomes that matter.

        Raises UndecidedError if floats do not distinguish neighbouring outcomes.
        """
        v, s = self.parameter, self.shift
        if not abs(s * (1 + c)) < _FARTHEST:
            raise UndecidedError(
                f"Outcomes of integer noise tilted by {c:.6g} are beyond floats. Ask with "
                "method='auto'."
            )
        reach = math.ceil(_DEVIATIONS * math.sqrt(v)) + 1

        def weights(centre: float) -> tuple[Floats, Floats]:
            x = np.arange(round(centre) - reach, round(centre) + reach + 1.0)
            return x, np.exp(-((x - centre) ** 2) / (2 * v))

        x, shares = weights(s * (1 + c))
        ratio = math.log(float(shares.sum() / weights(0.0)[1].sum()))
        return (x - s / 2) * s / v, shares / shares.sum(), s * s * c * (c + 1) / (2 * v) + ratio


_PRECISION = 128
"""Precision, in bits, of balls that are rounded to floats."""
_HALF = Fraction(1, 2)
_NEAR = 1e-3
"""Least |s| in floats: terms cancel at 0, near which the mean is linear."""
_LARGE = 1.0
"""|s|τ beyond which e^{−2|s|τ} is factored out: the sum of both exponentials would overflow."""
_SMALL = 0.5
"""The difference between s = z + ½ and z."""


@final
@dataclass(frozen=True)
class LaplaceMoments(Transform):
    """M(z) = ((z + 1) e^{τz} + z e^{−τ(z + 1)})/(2z + 1), where τ is the distance."""

    is_closed = True

    distance: ExactReal

    def line(self, c: Fraction, step: Fraction, count: int) -> list[acb]:
        """Return the ratios from the closed form; 2z + 1 must not be 0."""
        t, whole = self.distance.ball(), self.value(c)
        points = (acb(ball(c), ball(j * step)) for j in range(1, count))
        return [acb(1)] + [
            ((z + 1) * (t * z).exp() + z * (-t * (z + 1)).exp()) / ((2 * z + 1) * whole)
            for z in points
        ]

    def decay(self, c: Fraction) -> Decay:
        """Return r = 1: atoms keep |M| from decaying."""
        return NoDecay()

    def value(self, c: Fraction) -> arb:
        """Return the closed form."""
        t = self.distance.ball()
        if c == -_HALF:
            return (-t / 2).exp() * (1 + t / 2)
        z = ball(c)
        return ((z + 1) * (t * z).exp() + z * (-t * (z + 1)).exp()) / (2 * z + 1)

    def estimate(self) -> FloatTransform:
        """Return the closed form in floats."""
        return FloatLaplace(float(self.distance))


_FLAT = 0.05
"""x below which differences of sinh x and cosh x are computed by Taylor's formula."""


@final
@dataclass(frozen=True)
class FloatLaplace:
    """ln M(z) with high relative accuracy, also for small τ, where E[L] is small.

    With f = (z + 1)/(2z + 1) and g = z/(2z + 1), M − 1 = f e₂(τz) + g e₂(−τ(z + 1)), where
    e₂(x) = e^x − 1 − x: the first-order terms cancel.
    """

    tau: float

    def log_ratio(self, c: float, t: Floats) -> tuple[Floats, Floats]:
        """Return ln M(c + it) − ln M(c) − it (ln M)'(c), using M(z) = M(−1 − z) = r e^{τz}.

        With s = z + ½, r = (s + ½ + (s − ½) e^{−2τs})/2s.
        """
        side = 1.0 if c + _SMALL >= 0 else -1.0
        s = max(abs(c + _SMALL), _NEAR) + 1j * np.append(0.0, t)
        r = (s + _SMALL + (s - _SMALL) * np.exp(-2 * self.tau * s)) / (2 * s)
        logs = np.log(r[1:] / r[0])
        angle = logs.imag + t * (self.tau - side * self.cumulants(c)[1])
        return logs.real, side * angle

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
        excess, deficit = excess_at(up_), excess_at(down)
        size = f * excess + g * deficit
        if size < -_SMALL:
            return self._middle(z + _SMALL)
        slope = turn * (deficit - excess) + t * (f * first - g * second)
        bend = 4 * turn / n * (excess - deficit) - 2 * turn * t * (first + second)
        bend += t * t * (f * (1 + first) + g * (1 + second))
        mean = slope / (1 + size)
        return math.log1p(size), mean, bend / (1 + size) - mean * mean

    def _middle(self, s: float) -> tuple[float, float, float]:
        """Return the same for small M, from M = e^{−τ/2} (cosh x + τ/2 · sinh x/x), x = τs."""
        t, x = self.tau, self.tau * s
        cosh, sinh = math.cosh(x), math.sinh(x)
        if x < _FLAT:  # Taylor's formula: the terms below cancel
            share = 1 + x * x / 6 + x**4 / 120
            rise, bend = x / 3 + x**3 / 30, 1 / 3 + x * x / 10
        else:
            share, rise = sinh / x, (x * cosh - sinh) / x**2
            bend = share - 2 * rise / x
        whole = cosh + t / 2 * share
        mean = t * (sinh + t / 2 * rise) / whole
        return math.log(whole) - t / 2, mean, t * t * (cosh + t / 2 * bend) / whole - mean * mean

    def _large(self, s: float) -> tuple[float, float, float]:
        t, near = self.tau, s + _SMALL
        w = math.exp(-2 * t * s) / near
        fall = 1 / near + 2 * t
        r, first = (s - _SMALL) * w, w - (s - _SMALL) * w * fall
        second = -2 * w * fall + (s - _SMALL) * w * (fall * fall + 1 / (near * near))
        size = t * (s - _SMALL) + math.log(near / (2 * s)) + math.log1p(r)
        mean = t - _SMALL / (s * near) + first / (1 + r)
        return size, mean, 1 / (s * s) - near**-2 + second / (1 + r) - (first / (1 + r)) ** 2
