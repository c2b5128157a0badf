"""Moment generating functions of smooth losses on vertical lines, in ball arithmetic.

A factor is a pair (P, Q). Its transform is M(z) = E_P[e^{zL}] with L = ln dP/dQ. A certified
contour integral needs, for a real c: M(c); the ratios M(c + ijh)/M(c) for j = 0, 1, …; and a bound
on the decay of |M(c + it)|.
"""

from __future__ import annotations

import bisect
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, TypeVar, final

from flint import acb, acb_mat, arb

from dpassay.accountant.composition.fourier.estimates import (
    FloatGaussian,
    FloatMoments,
    FloatTransform,
)
from dpassay.accountant.composition.losses.bounds import (
    HALF_LOG_2PI,
    LARGEST_ANGLE,
    MOST_PHASES,
    Decay,
    GaussianDecay,
    Mixture,
    MixtureDecay,
    blocks,
    error_of_sums,
    phase_sums,
    up,
)
from dpassay.accountant.composition.losses.float_mixture import FloatMixture
from dpassay.accountant.core.arrays import np
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.solve import shortened

if TYPE_CHECKING:
    from dpassay.accountant.composition.losses.bounds import Complexes, Reals

MOST_WORK = 24_000_000
"""Largest number of nodes in x times nodes on the line, at 256 bits; for more bits the work grows
with their square."""
_BITS = 256
"""Precision, in bits, to which `MOST_WORK` refers."""
_SPARE_BITS = 12
"""Bits for the rounding of powers of e^{ihL}."""
MOST_POINTS = 24_000
"""Largest number of nodes in x."""
_LOWER = 1.5
"""Ratio of the heights that are tried for a rule: near the best height the number of nodes is flat.
"""
_HEIGHTS = tuple(_LOWER**-i for i in range(12))
"""These heights, as shares of the largest one."""
_HIGHEST = 0.95
"""Largest height for a real moment, as a share of π/μ, where w has a zero."""
_LOG_2 = math.log(2)
_UNIT = 2.0**-53
"""The unit roundoff u."""
_MOST_SHARE, _MOST_SHIFT, _MOST_CUT = 0.5, 600.0, 26.0
"""Largest q, l and z for nodes in floats: else w is near 0, or w overflows or erfc underflows."""
_ROUGH = 64
"""Least precision, in bits, of nodes and of bounds."""
_SPARE = 16
"""Bits by which nodes of float sums may be less precise than balls; the sums are no more precise.
"""

Real = TypeVar("Real", float, Fraction)


class Moments(ABC):
    """M(c) = E_P[e^{cL}] of one factor at real points."""

    @abstractmethod
    def value(self, c: Fraction) -> arb:
        """Return M(c), at flint's current precision."""

    def log_upper(self, c: Fraction) -> arb:
        """Return an upper bound on ln M(c), a rough one if M(c) takes long."""
        return self.value(c).log().upper()

    @abstractmethod
    def estimate(self) -> FloatMoments:
        """Return the moments in floats, from which a contour is chosen."""


class Transform(Moments):
    """M(z) = E_P[e^{zL}] of one factor."""

    is_closed: ClassVar[bool] = False
    """Whether the bound on the decay is a closed form: such a factor is never left out of it."""

    @property
    def is_whole(self) -> bool:
        """Whether M(0) = M(−1) = 1: no mass is cut off, and no loss is infinite."""
        return True

    @abstractmethod
    def line(self, c: Fraction, step: Fraction, count: int) -> list[acb]:
        """Return M(c + ij·step)/M(c) for j < count, with an absolute error of about 2^−prec."""

    def quick_sums(self, c: Fraction, step: Fraction, count: int, rate: float) -> QuickSums | None:
        """Return the ratios as floats with error bounds of about rate·t, or None.

        This default rounds those of `line`.
        """
        ratios = [value - 1 for value in self.line(c, step, count)]
        values = np.array([complex(value.mid()) for value in ratios])
        radii = np.array([float(value.rad().upper()) for value in ratios])
        return QuickSums(0.0, values, radii * (1 + 1e-9) + 2.0**-52, 0.0)

    @abstractmethod
    def decay(self, c: Fraction) -> Decay:
        """Return bounds on |M(c + it)|/M(c)."""

    @abstractmethod
    def estimate(self) -> FloatTransform:
        """Return the transform in floats, for estimates and for the choice of a contour."""


@final
@dataclass(frozen=True)
class GaussianTransform(Transform):
    """M(z) = e^{z(z+1)μ²/2}."""

    is_closed = True

    pair: Pair

    def value(self, c: Fraction) -> arb:
        """Return the closed form."""
        return (ball(c * (c + 1)) * self.pair.renyi(arb(1))).exp()

    def line(self, c: Fraction, step: Fraction, count: int) -> list[acb]:
        """Return the closed form e^{−t²μ²/2 + it(2c + 1)μ²/2}."""
        half = self.pair.renyi(arb(1))
        found = []
        for j in range(count):
            t = j * step
            found.append(acb(-ball(t * t) * half, ball(t * (2 * c + 1)) * half).exp())
        return found

    def quick_sums(self, c: Fraction, step: Fraction, count: int, rate: float) -> QuickSums | None:
        """Return the ratios in closed form.

        The error of e^x, including that of its argument, is below 64u(1 + |x|) relative to it; that
        of e^x − 1 is larger by u.
        """
        half = self.pair.renyi(arb(1))
        exactly = ball(2 * c + 1) * half
        mean, t = float(exactly.mid()), np.arange(count) * float(step)
        gap, fall = float(abs(exactly - mean).upper()), float(half.mid()) * t * t
        size = np.exp(-fall)
        errors = size * (1 + fall) * (64 * _UNIT) + t * (1.01 * gap) + _UNIT
        return QuickSums(mean, (size - 1).astype(np.complex128), errors, 0.0)

    def estimate(self) -> FloatTransform:
        """Return the closed form in floats."""
        return FloatGaussian(float(self.pair.renyi(arb(1)).mid()))

    def decay(self, c: Fraction) -> Decay:
        """Return e^{−t²μ²/2}, rounded upward."""
        return GaussianDecay(float(self.pair.renyi(arb(1)).mid()) * (1 - 1e-12))


@final
@dataclass(frozen=True)
class Cut:
    """A factor χ(x) = erfc((x − at)/(width √2))/2 of the normal density, which removes large x.

    ∫ φ(x − m)(1 − χ(x)) dx = P(X + width·Z > at − m) for independent standard normal X and Z.
    """

    at: Fraction
    width: Fraction

    def log_kept_on(self, points: Sequence[arb], *, above: bool = False) -> list[arb]:
        """Return ln χ(x), or ln(1 − χ(x)) with `above`, at ascending real points.

        Points far below the cut, where χ is 1 to the precision, share the ball of the last of them.
        """
        at, scale = ball(self.at), ball(self.width) * arb(2).sqrt()
        if above:
            return [(((at - x) / scale).erfc() / 2).log() for x in points]
        begin = bisect.bisect_left(points, at - scale * arb((ctx.prec + 8) * _LOG_2).sqrt())
        kept = [(((x - at) / scale).erfc() / 2).log() for x in points[max(begin - 1, 0) :]]
        return [kept[0].union(arb(0))] * (begin - 1) + kept if begin > 1 else kept


@final
@dataclass(frozen=True)
class MixtureTransform(Transform):
    """The transform of ((1 − q)B + qA, B) or (B, (1 − q)B + qA), A = N(μ, 1) and B = N(0, 1).

    With w the density of the mixture against B and Λ(s) = E_B[w^s], M(z) is Λ(z + 1) if the mixture
    is the first law, and Λ(−z) if it is the second.
    """

    pair: Pair
    sampling_prob: ExactReal
    mixed_first: bool
    cut: Cut | None = None
    rise: Cut | None = None
    """If given, φ is also multiplied by 1 − χ for this χ, so that only large x remain."""

    @property
    def is_whole(self) -> bool:
        """Whether no mass is cut off."""
        return self.cut is None and self.rise is None

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.pair, self.sampling_prob, self.mixed_first, self.cut, self.rise))

    def tilt(self, c: Real) -> Real:
        """Return the s with M(c) = Λ(s)."""
        return c + 1 if self.mixed_first else -c

    def value(self, c: Fraction) -> arb:
        """Return M(c), which is Λ at a real point."""
        return self.rule(self.tilt(c), 0.0).total()

    def line(self, c: Fraction, step: Fraction, count: int) -> list[acb]:
        """Return the ratios of M on the line, from those of Λ on the line upward from s."""
        ratios = self.rule(self.tilt(c), up(float(step * count))).line(step, count)
        return ratios if self.mixed_first else [value.conjugate() for value in ratios]

    def quick_sums(self, c: Fraction, step: Fraction, count: int, rate: float) -> QuickSums | None:
        """Return the ratios with moments in floats, to an error of at most rate·t, or None.

        Lines are cached. A rounded rate lets a line for T releases serve T + 1 releases too.
        """
        rate = shortened(rate, 4, math.floor) if math.isfinite(rate) else rate
        return _quick_sums(self, c, step, count, rate, ctx.prec)

    def decay(self, c: Fraction) -> Decay:
        """Return the bounds of `losses.bounds` on the decay."""
        return _decay(self, c, max(_ROUGH, ctx.prec))

    def estimate(self) -> FloatTransform:
        """Return Λ by the trapezoidal rule in floats; it caches its nodes."""
        return float_mixture(self.floats(), self.mixed_first)

    def log_upper(self, c: Fraction) -> arb:
        """Return an upper bound on ln M(c) from `bounds`, faster than its value and nearly it.

        Λ(0) and Λ(1) are at most 1, because they are the masses of the two laws.
        """
        if self.rise is None and c in (0, -1):
            return arb(0)
        return _log_upper(self, c)

    def closed_bound(self, c: arb) -> arb | None:
        """Return a bound on M(c), c > 0, in closed form, or None if the mixture is the first law.

        Statement: M(c) ≤ 1 + (e^{μ²} − 1)((1 − q)^{−c} − 1 − cq). Proof (Bennett): M(c) = E_B[g(X)]
        with g(x) = (1 + x)^{−c}, where X = w − 1 ≥ −q has the mean 0 and the variance
        q²(e^{μ²} − 1). As g‴ < 0, (g(x) − 1 + cx)/x² decreases in x; so it is at most its value at
        −q. A cut makes M(c) smaller.
        """
        if self.mixed_first:
            return None
        q = self.sampling_prob.ball()
        spread = (2 * self.pair.renyi(arb(1))).expm1()
        return 1 + spread * ((-c * (-q).log1p()).expm1() - c * q)

    def floats(self) -> Mixture:
        """Return the parameters as floats."""
        return self._floats

    @cached_property
    def _floats(self) -> Mixture:
        return _floats(self.pair, self.sampling_prob, self.cut, self.rise)

    def lost(self) -> tuple[arb, arb]:
        """Return the masses that the cut removes from the laws of the pair."""
        if self.cut is None:
            return arb(0), arb(0)
        at, scale = ball(self.cut.at), (2 * (1 + ball(self.cut.width) ** 2)).sqrt()
        return self._of_both(lambda mean: ((at - mean) / scale).erfc() / 2)

    def _of_both(self, mass: Callable[[arb], arb]) -> tuple[arb, arb]:
        """Return a mass under each law of the pair, given it as a function of m under N(m, 1)."""
        q, mu = self.sampling_prob.ball(), (2 * self.pair.renyi(arb(1))).sqrt()
        plain, shifted = mass(arb(0)), mass(mu)
        mixed = (1 - q) * plain + q * shifted
        return (mixed, plain) if self.mixed_first else (plain, mixed)

    def rule(self, s: Fraction, t: float) -> Quadrature:
        """Return the trapezoidal rule for Λ(s + iu), |u| ≤ t, at the current precision."""
        return _quadrature(self, s, t, ctx.prec, ctx.prec)


@functools.lru_cache(maxsize=8)
def _quick_sums(  # noqa: PLR0917  # all arguments are the key
    of: MixtureTransform, c: Fraction, step: Fraction, count: int, rate: float, precision: int
) -> QuickSums | None:
    assert ctx.prec == precision
    bits, t = precision - _SPARE, up(float(step * count))
    with ctx.workprec(max(_ROUGH, bits)):
        found = _float_sums(of, of.tilt(c), t, bits, step, count, rate)
        if found is None:
            nodes = _quadrature(of, of.tilt(c), t, ctx.prec, bits)
            found = nodes.quick_sums(step, count, rate)
    return found if found is None or of.mixed_first else found.turned()


@functools.lru_cache(maxsize=64)
def _decay(of: MixtureTransform, c: Fraction, precision: int) -> MixtureDecay:
    """Return the decay, given a lower bound on ln Λ(s)."""
    s, deviation = of.tilt(c), math.sqrt(of.estimate().cumulants(float(c))[2])
    with ctx.workprec(precision):
        size = of.rule(s, 0.0).total().log()
    lower = float(size.mid()) - 2 * float(size.rad())
    return MixtureDecay(of.floats(), float(s), lower, deviation)


@functools.lru_cache(maxsize=256)
def _log_upper(of: MixtureTransform, c: Fraction) -> arb:
    return arb(of.floats().log_bound(of.tilt(float(c))))


@functools.lru_cache(maxsize=64)
def float_mixture(floats: Mixture, mixed_first: bool) -> FloatMixture:
    """Return the float estimator of a mixture."""
    return FloatMixture(floats, mixed_first)


@functools.lru_cache(maxsize=256)
def _floats(pair: Pair, sampling_prob: ExactReal, cut: Cut | None, rise: Cut | None) -> Mixture:
    with ctx.workprec(128):
        q = sampling_prob.ball()
        mu = (2 * pair.renyi(arb(1))).sqrt()
        parts = float(mu.mid()), float(q.log().mid()), float((-q).log1p().mid())
    found = Mixture(*parts)
    if cut is not None:
        found = replace(found, cut=float(cut.at), width=float(cut.width))
    if rise is not None:
        found = replace(found, rise=float(rise.at), rise_width=float(rise.width))
    return found


@final
@dataclass(frozen=True)
class Quadrature:
    """The trapezoidal rule for Λ(s + it), |t| ≤ T: its nodes and its error."""

    losses: tuple[arb, ...]
    """ln w at the nodes."""
    weights: tuple[arb, ...]
    """η φ w^s at the nodes."""
    error: arb
    """An upper bound on the error of the rule, for every |t| ≤ T."""

    def total(self) -> arb:
        """Return Λ(s)."""
        rough = sum(self.weights, start=arb(0))
        return rough + arb(0, self.error.upper())

    def line(self, step: Fraction, count: int) -> list[acb]:
        """Return Λ(s + ij·step)/Λ(s)."""
        total, blur = self.total(), arb(0, self.error.upper())
        turns = [acb(0, ball(step) * loss) for loss in self.losses]
        return [(value + acb(blur, blur)) / total for value in sums(turns, self.weights, count)]

    def quick_sums(self, step: Fraction, count: int, rate: float) -> QuickSums | None:
        """Return the ratios with sums in floats, as e^{itm} (1 + E[e^{it(L − m)} − 1]), m a mean.

        The weights v = weight/total sum to 1. The error of the rule is returned as `blur`.
        """
        total = sum(self.weights, start=arb(0))
        weights = np.array([float((weight / total).mid()) for weight in self.weights])
        mean = float(weights @ np.array([float(loss.mid()) for loss in self.losses]))
        away = [loss - mean for loss in self.losses]
        x = np.array([float(loss.mid()) for loss in away])
        blurred = float(weights @ np.array([float(loss.rad()) for loss in away])) * (1 + 1e-9)
        blur = float((self.error / total).upper()) * (1 + 1e-9)
        return QuickSums.of(mean, weights, x, blurred, blur, step, count, rate)


@final
@dataclass(frozen=True, eq=False)
class QuickSums:
    """Ratios e^{ijhm} (1 + w_j)/n for j < count, with |n − 1| at most `blur`."""

    mean: float
    """m"""
    values: Complexes
    """Approximations of w_j. Real and imaginary parts have errors of at most `errors` + `blur`."""
    errors: Reals
    blur: float

    @staticmethod
    def of(  # noqa: PLR0917
        mean: float,
        weights: Reals,
        x: Reals,
        blurred: float,
        blur: float,
        step: Fraction,
        count: int,
        rate: float,
    ) -> QuickSums | None:
        """Return the sums over losses m + x; None if the errors exceed rate·t.

        Errors of the weights and losses contribute at most blurred·t.
        """
        h, reach = float(step), float(step * count)
        if len(x) > MOST_PHASES or reach * float(np.abs(x).max()) > LARGEST_ANGLE or h != step:
            return None
        error = error_of_sums(weights, x, heads=False) + blurred
        if heads := not error < rate:
            error = error_of_sums(weights, x) + blurred
            if not error < rate:
                return None
        j, block = np.arange(count), blocks(count)
        errors = error * (j * h + (j % block) * h) * (1 + 1e-9)
        values = phase_sums(weights, x, h, count, heads=heads)
        return QuickSums(mean, values, errors, blur)

    def turned(self) -> QuickSums:
        """Return the complex conjugates."""
        return QuickSums(-self.mean, self.values.conj(), self.errors, self.blur)


@functools.lru_cache(maxsize=64)
def _quadrature(
    of: MixtureTransform, s: Fraction, t: float, precision: int, bits: int
) -> Quadrature:
    """Return a rule of about `bits` accuracy, with nodes at the current precision."""
    assert ctx.prec == precision
    floats, real, simple = of.floats(), float(s), t == 0 and of.is_whole
    step, log_error, first, last = _rule(of, real, t, bits)
    q, mu = of.sampling_prob.ball(), (2 * of.pair.renyi(arb(1))).sqrt()
    half, exponent, rest = mu * mu / 2, ball(s), 1 - q
    h = ball(step)
    odds, scale = (q.log() - half).exp(), h / (2 * arb.pi()).sqrt()
    x = [h * j for j in range(first, last + 1)]
    losses = [(rest + odds * (mu * point).exp()).log() for point in x]
    kept = [point * point / -2 for point in x]
    for cut, above in ((of.cut, False), (of.rise, True)):
        if cut is not None:
            more = cut.log_kept_on(x, above=above)
            kept = [a + b for a, b in zip(kept, more, strict=True)]
    weights = [
        scale * (exponent * loss + log).exp() for loss, log in zip(losses, kept, strict=True)
    ]
    left, right = floats.rates(float(first * step), float(last * step), real, 0.0)
    outside = weights[0] / (h * left).expm1() + weights[-1] / (h * right).expm1()
    error = arb(log_error).exp()
    if simple:
        error *= (sum(weights, start=outside)) / (1 - error)
    return Quadrature(tuple(losses), tuple(weights), (error + outside).upper())


@functools.lru_cache(maxsize=64)
def _rule(of: MixtureTransform, s: float, t: float, bits: int) -> tuple[Fraction, float, int, int]:
    """Return the step of a rule, ln of a bound on its error, and its first and last node."""
    fall = (bits + 4) * _LOG_2
    simple = t == 0 and of.is_whole
    step, log_error = (_real_rule if simple else _line_rule)(of, s, t, fall)
    low, high = of.floats().reach(s, 0.0, 0.0, fall + 8)
    first, last = math.floor(low / step), math.ceil(high / step)
    if last - first > MOST_POINTS:
        raise UndecidedError(
            f"The moments of a subsampled Gaussian release at s={s:.4g}, |t| up to {t:.4g}, "
            f"need {last - first} nodes. Ask for a larger relative_width."
        )
    return step, log_error, first, last


def _float_sums(  # noqa: PLR0917
    of: MixtureTransform, s: Fraction, t: float, bits: int, step: Fraction, count: int, rate: float
) -> QuickSums | None:
    """Return `Quadrature.quick_sums` with nodes in floats, or None if their errors matter.

    Statement: let B = |μx| + μ², p = q e^l/w, q ≤ ½, and z the argument of erfc in a cut. Then L
    has an error below a = 24u((1 + B)p + q + |L|), and a weight v, as a share of all weights, one
    below e + Σ v e + 4u relative to it, with e = 32u(1 + |sL| + x² + max(z, 0)² + |top|) + 2|s|a,
    where `top` is about ln of the largest weight.

    *Proof.* x = jη is exact. μ and q have relative errors 2u, so l one of 4uB. exp, expm1, log1p
    and erfc have relative errors below 8u for the argument given. Hence qE, E = e^l − 1, has an
    error below 11uq max(e^l, 1) + 5uBqe^l, and L = ln(1 + qE) that over w ≥ ½, plus 8u|L|. The
    exponent sL − x²/2 − top has an error below |s|a + 3u(|sL| + x² + |top|). erfc at z, whose
    relative error is 4u, has one below 8u + 4uz(2z + 2) for z ≥ 0 and below 12u for z < 0: the
    logarithmic slope is at most 2z + 2, or 2e^{−z²}/√π. The sum of all weights is rounded once.
    """
    real, q, law = float(s), float(of.sampling_prob), of.floats()
    grid, log_error, first, last = _rule(of, real, t, bits)
    h = float(grid)
    if real != s or h != grid or q > _MOST_SHARE or of.rise is not None:
        return None
    x: Reals = np.arange(first, last + 1) * h
    shift = law.mu * x - 0.5 * law.mu**2
    if not shift[-1] < _MOST_SHIFT:
        return None
    rise = q * np.expm1(shift)
    loss, share = np.log1p(rise), q * np.exp(shift) / (1.0 + rise)
    power, z = real * loss - 0.5 * x * x, np.zeros_like(x)
    with np.errstate(under="ignore"):
        kept: Reals = np.ones_like(x)
        if of.cut is not None:
            z = (x - law.cut) / (law.width * math.sqrt(2))
            if not z[-1] < _MOST_CUT:
                return None
            kept = 0.5 * np.fromiter(map(math.erfc, z.tolist()), float, len(z))
        top = float(power.max())
        weights = kept * np.exp(power - top)
        total = math.fsum(weights.tolist())
        weights /= total
        off = (24 * _UNIT) * ((1 + law.mu * np.abs(x) + law.mu**2) * share + q + np.abs(loss))
        relative = np.maximum(z, 0.0) ** 2 + np.abs(real * loss) + x * x + (1 + abs(top))
        relative *= 32 * _UNIT
        relative += (2 * abs(real)) * off
        relative += float(weights @ relative) + 4 * _UNIT
        mean = float(weights @ loss)
        away = loss - mean
        blurred = float(weights @ (off + relative * np.abs(away))) * (1 + 1e-6)
    if not relative.max() < 1e-6:
        return None
    log_total = top + math.log(total * h) - HALF_LOG_2PI
    left, right = law.rates(float(x[0]), float(x[-1]), real, 0.0)
    outside = float(weights[0]) / math.expm1(h * left) + float(weights[-1]) / math.expm1(h * right)
    blur = (math.exp(log_error - log_total) + outside) * (1 + 1e-5)
    return QuickSums.of(mean, weights, away, blurred, blur, step, count, rate)


def _real_rule(of: MixtureTransform, s: float, t: float, fall: float) -> tuple[Fraction, float]:
    """Return a step for Λ(s), and ln of a bound on its relative error, about −fall.

    Statement: with step η and a height a < π/μ, the relative error of the rule is at most
    2/(e^{2πa/η} − 1) times e^{a²/2} cos(θ/2)^{min(s, 0)}, where θ = μa. Proof: at this height q e^l
    has the argument θ, and cos(θ/2) w ≤ |w| ≤ w. So the integrand is at most the second factor
    times its value on the real line. Apply Trefethen and Weideman 2014, Theorem 5.1.
    """
    del t
    mu, best = of.floats().mu, (0.0, 0.0, 0.0)
    for share in _HEIGHTS:
        a = share * min(_HIGHEST * math.pi / mu, math.sqrt(2 * fall))
        growth = _LOG_2 + 0.5 * a * a + min(s, 0.0) * math.log(math.cos(0.5 * mu * a))
        best = max(best, (2 * math.pi * a / (fall + growth + _LOG_2), a, growth))
    step = Fraction(shortened(best[0], 6, math.floor))
    gap = 2 * math.pi * best[1] / float(step)
    return step, best[2] - gap - math.log1p(-math.exp(-gap)) + 1e-9 * (1 + gap + best[2])


def _line_rule(of: MixtureTransform, s: float, t: float, fall: float) -> tuple[Fraction, float]:
    """Return a step for Λ(s + iu), |u| ≤ t, and ln of a bound on its error (ln Λ(s) − fall)."""
    floats, step, log_error = of.floats(), Fraction(0), 0.0
    tolerance = of.estimate().cumulants(s - 1 if of.mixed_first else -s)[0] - fall
    tallest = min(floats.largest_shift, math.sqrt(2 * fall))
    for share in _HEIGHTS:
        try:
            found, reached = floats.rule(s, t, share * tallest, tolerance)
        except UndecidedError:  # at this height the phases of large losses grow too fast
            continue
        if found > step and reached <= tolerance:
            step, log_error = Fraction(shortened(found, 6, math.floor)), reached
            if 2 * math.pi * share * tallest <= _LOWER * fall * found:  # no lower height is better
                break
        elif step:  # the best height lies between the last two
            break
    if not step:
        raise UndecidedError(f"No rule was found for the moments at s={s:.4g}, |t| ≤ {t:.4g}.")
    return step, log_error


def sums(turns: Sequence[acb], weights: Sequence[acb | arb], count: int) -> list[acb]:
    """Return Σ_k weights_k e^{j·turns_k} for 0 ≤ j < count.

    With j = bG + g the terms factor into e^{bG·turn} and e^{g·turn}. The sums are a product of two
    matrices, whose entries are products of two earlier entries.

    Raises UndecidedError if that is too much work.
    """
    if count * len(turns) * max(1.0, ctx.prec / _BITS) ** 2 > MOST_WORK:
        raise UndecidedError(
            f"The contour needs {count} × {len(turns)} terms at {ctx.prec} bits, more work than "
            f"{MOST_WORK} at {_BITS} bits. Ask for a larger relative_width, such as 1e-9."
        )
    inner = max(1, math.isqrt(count))
    outer = -(-count // inner)
    with ctx.workprec(ctx.prec + _SPARE_BITS):
        near = [_powers(turn.exp(), inner + 1) for turn in turns]
        far = [_powers(powers[inner], outer) for powers in near]
        left = [
            row[b] * weight for b in range(outer) for row, weight in zip(far, weights, strict=True)
        ]
        product = acb_mat(outer, len(turns), left)
        product *= acb_mat(len(turns), inner, [power for row in near for power in row[:inner]])
        return [product[j // inner, j % inner] for j in range(count)]


def _powers(base: acb, number: int) -> list[acb]:
    """Return base^g for 0 ≤ g < number."""
    found = [acb(1), base]
    for g in range(2, number):
        found.append(found[g // 2] * found[g - g // 2])
    return found[:number]
