"""Bounds on products with atoms: a little normal noise is added to the loss, so that lines end.

Let L be the loss of a product of Laplace, Gaussian and discrete Gaussian laws and finite lists, and
M(s) = E_P[e^{sL}; L < ∞]. If the laws have atoms, |M| does not fall to 0 on a vertical line. So let
V be normal with mean 0 and variance t, independent of L. Let
H⁰(ε) = E_P[(1 − e^{ε−L})⁺; L < ∞], so that H(ε) = H⁰(ε) + P(L = ∞).

*Statement.*

    E_P[(1 − e^{ε−L}) 1{L + V > ε}; L < ∞]  ≤  H⁰(ε)  ≤  E_P[(1 − e^{ε−L−V−t/2})⁺; L < ∞]

*Proof.* Given L, the left side is 1 − e^{ε−L} times a probability, which is at most its positive
part. On the right E[e^{−V−t/2}] = 1, and y → (1 − e^{ε−L} y)⁺ is convex: apply Jensen's inequality.

Both sides differ from H⁰ by about t/2 times the density of L at ε.

*The integrals.* With s = c + iu, c > 0, both sides are ∫ M(s) e^{−sε} k(s) du/2π, where

    above: k(s) = e^{ts(s+1)/2}/(s(s + 1)),   below: k(s) = e^{ts²/2}/s − e^{t(s+1)²/2}/(s + 1).

The latter is e^{ts²/2} (1/(s(s + 1)) − (e^{t(s+½)} − 1)/(s + 1)). Gaussian laws have
M(s) = e^{vs(s+1)/2} with v the sum of the μ². If v is at least the t that would be needed, t = 0
suffices.

*Errors*, all relative to M(c) e^{−cε}:

- *Discretisation.* By Poisson summation the sum over u = jh is Σ_k e^{ckB} I(ε + kB), B = 2π/h,
  whose term I(ε) is wanted. Above, the other terms are ≥ 0 and are kept. Below, each I is at most
  H⁰. By Chernoff's inequality this is at most M(s) e^{−sx} s^s/(1 + s)^{1+s} at x = ε + kB for
  every s > 0, and at most 1. The bounds form geometric series, with an s > c for k > 0 and an
  s < c for k < 0.
- *Truncation.* The line ends at U. |M(s)| ≤ M(c) e^{−vu²/2}. With w = v + t the integral over
  u > U of e^{−wu²/2}/u² is at most e^{−wU²/2}/(wU³), and that of e^{−wu²/2} at most
  e^{−wU²/2}/(wU). Above, the rest is at most e^{tc(c+1)/2}/π times the first. Below, it is at most
  e^{tc²/2}/π times the sum of the first and te^{t(c+½)} times the second, as
  |e^y − 1| ≤ |y| e^{Re y} for Re y ≥ 0.
- *Rounding.* The ratio M_i(s)/M_i(c), which is at most 1 in absolute value, has an error of at most
  e_i ≤ (a_i + b_i u) units in floats. The product of the powers k_i has an error of
  Π (1 + e_i)^{k_i} − 1, where each multiplication adds √5 units to e_i. A part T of the loss is
  known without error, and the phase u(T − ε) is applied once for all factors.

The ratio of a Laplace law at distance d is, up to its phase e^{id u},
(1 − r + r e^{−d(2s+1)})/(the same at c) with r = s/(2s + 1). |r| and |1 − r| are at most 1, and the
denominator is at least ½.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

from flint import arb

from dpassay.accountant.composition.fourier.estimates import CALL, FloatSum
from dpassay.accountant.composition.fourier.saddle import nearest_bound, saddle
from dpassay.accountant.composition.lattice import between, crossings, relative_gap
from dpassay.accountant.composition.losses.bounds import powered
from dpassay.accountant.composition.losses.laplace import (
    MAX_VALUES,
    DiscreteGaussianTransform,
    LaplaceMoments,
    Listed,
    ListTransform,
    finite_list,
)
from dpassay.accountant.composition.losses.transform import GaussianTransform, Moments
from dpassay.accountant.composition.product import Engine, Product
from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import COMPOSED_WIDTH, GRID_WIDTH, Interval, ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.solve import log_peak, shortened
from dpassay.accountant.pairs.discrete import DiscreteGaussianPair
from dpassay.accountant.pairs.gaussian import GaussianPair

if TYPE_CHECKING:
    Complexes: TypeAlias = NDArray[np.complex128]

_UNIT = 2.0**-53
"""The relative rounding error of a float."""
_TIMES = 2.3
"""√5, rounded up: the relative error of a complex product, in units."""
_ROOM = 1 + 1e-9
"""Factor that covers the rounding of float bounds."""
_PRECISION = 128
"""Precision, in bits, of all that is not in floats."""
_NOISE, _REST = 0.6, 0.02
"""Shares of the requested width: for the noise, and for each of the aliases and the truncation."""
_TRIES = 4
"""Largest number of variances that are tried: with atoms, bounds can be wider than planned."""
MOST_WORK, MOST_POINTS = 1 << 25, 1 << 20
"""Largest number of points of a line times laws, counting values of lists, which takes about half a
second; and the largest number of points."""
_SETTLED = 1 / 64
"""Share of the requested width to which the roots of both bounds are sought."""
_ROUNDING = 100 * _UNIT
"""About the rounding error of one law."""
_BITS = 5
"""Bits of the parameters of a line, so that neighbouring questions share it."""
_MOST_LOG, _HALVINGS = 16.0, 24
"""Largest |ln(c + 1)| at which the point c for a quantile is sought, and the number of steps."""
_LEAST_SIZE = 1e-9
"""For a smaller epsilon, widths are relative to this."""
_COARSE = Fraction(1, 100)
"""A relative width that is reached quickly, for `bound`."""


def applies(pairs: Sequence[Pair]) -> bool:
    """Whether all laws have `moments`, and some law is not Gaussian."""
    return not all(isinstance(pair, GaussianPair) for pair in pairs) and all(
        moments(pair) is not None for pair in pairs
    )


@functools.lru_cache(maxsize=1024)
def moments(pair: Pair) -> Moments | None:
    """Return the moments of a Laplace, (discrete) Gaussian or finite law, or None for others."""
    if isinstance(pair, GaussianPair):
        return GaussianTransform(pair)
    if isinstance(pair, LaplacePair):
        return LaplaceMoments(pair.distance)
    if isinstance(pair, DiscreteGaussianPair) and pair.is_one:
        law = DiscreteGaussianTransform(pair)
        return law if law.spread(_PRECISION) < MAX_VALUES // 2 else None
    small = finite_list(pair)
    return None if small is None else ListTransform(small)


@final
@dataclass(frozen=True)
class Laws:
    """The moments of a sum of independent losses, and the count of each."""

    factors: tuple[tuple[Moments, int], ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.factors)

    @cached_property
    def floats(self) -> FloatSum:
        """The sum in floats."""
        return FloatSum([(part.estimate(), count) for part, count in self.factors])

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln M(c) and its first two derivatives, in floats without error bounds."""
        return self.floats.cumulants(c)

    def log_value(self, c: Fraction) -> arb:
        """Return ln M(c)."""
        return sum((count * part.value(c).log() for part, count in self.factors), start=arb(0))

    def log_upper(self, c: Fraction) -> arb:
        """Return an upper bound on ln M(c)."""
        return sum((count * part.log_upper(c) for part, count in self.factors), start=arb(0))

    @property
    def count(self) -> int:
        """The number of losses."""
        return sum(count for _, count in self.factors)


@functools.lru_cache(maxsize=64)
def _laws(product: Product) -> Laws:
    parts = ((moments(pair), count) for pair, count in product.factors)
    return Laws(tuple((part, count) for part, count in parts if part is not None))


@final
@dataclass(frozen=True)
class Blurred(Engine):
    """An engine that bounds the profile by adding noise to the loss (see the head of this file)."""

    numerical = True

    def width(self, product: Product) -> Fraction:
        """Return the relative width that is reached within about 0.2 s."""
        smooth = any(isinstance(pair, GaussianPair) for pair in product.pairs)
        return COMPOSED_WIDTH if smooth else GRID_WIDTH

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return a ball around both bounds, of the requested relative width (default: six digits).

        For ε < 0 it is computed from the reversed pair. Raises UndecidedError if it takes too long.
        """
        if epsilon.sign < 0:
            turned = product.reverse().hockey_stick(-epsilon)
            return epsilon.ball().exp() * turned - epsilon.ball().expm1()
        wanted = float(product.relative_width or GRID_WIDTH)
        loss, mass, share = _laws(product), product.infinity_mass(), _NOISE
        for _ in range(_TRIES):
            line = _line(loss, float(epsilon), wanted, share)
            low, high = (line.bound(epsilon.ball(), above=above) + mass for above in (False, True))
            width = float((high.upper() - low.lower()) / low.lower()) if low > 0 else math.inf
            if width <= wanted:
                return low.union(high)
            share *= 0.8 * wanted / width
        raise UndecidedError(
            f"Reached delta to a relative width of {width:.1e}. Ask for a larger relative_width.",
            reached=width,
        )

    def inverse(
        self,
        product: Product,
        delta: ExactReal,
        relative_width: Fraction,
    ) -> Interval | None:
        """Enclose ε(δ) between the points where the two bounds cross δ.

        Return None if ε(δ) is not clearly positive; it is then found from values of H.
        """
        loss, mass = _laws(product), product.infinity_mass()
        target, wanted, share = delta.ball() - mass, float(relative_width), _NOISE
        if not target > 0:
            return None
        try:
            start = loss.floats.guess(float(target.log().mid()))
        except ArithmeticError:
            return None
        if not start > _LEAST_SIZE:
            return None
        for _ in range(_TRIES):
            line = _line(loss, start, wanted, share, of_loss=True)
            found = crossings(line, target, start, settled=wanted * _SETTLED)
            width = relative_gap(found)
            if width <= wanted:
                return between(found)
            share *= 0.8 * max(wanted / width, 2.0**-8)
            start = start if found[0] is None else float(found[0])
        raise UndecidedError(
            f"Reached epsilon to a relative width of {width:.1e}. Ask for a larger relative_width.",
            reached=width,
        )

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return the upper bound on H(ε), to two digits; 1 if that takes too long."""
        with contextlib.suppress(UndecidedError):
            return self.profile(product.to_width(_COARSE), epsilon).upper().min(arb(1))
        return arb(1)


BLURRED = Blurred()


def quantile_of_q(product: Product, alpha: float) -> tuple[float, float]:
    """Return about the ε with Q(L > ε) = α, and about −(ln Q(L > ε))′ there.

    Both are those of the saddle point c > −1 of M(c) e^{−(c + 1)ε}/(c + 1).
    """
    floats, low, high = _laws(product).floats, -_MOST_LOG, _MOST_LOG
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fall = math.exp(middle)
        size, mean, variance = floats.cumulants(fall - 1)
        epsilon = mean - 1 / fall
        curvature = variance + 1 / fall**2
        value = size - fall * epsilon - middle - 0.5 * math.log(2 * math.pi * curvature)
        low, high = (middle, high) if value > math.log(alpha) else (low, middle)
    return epsilon, fall


@final
@dataclass(frozen=True, eq=False)
class Line:
    """The terms of both sums on one line, without the phase u(T − ε)."""

    loss: Laws
    c: Fraction
    step: float
    known: arb
    """T"""
    terms: dict[bool, Complexes]
    """The terms of the upper (True) and the lower bound, with the first term halved."""
    wrong: dict[bool, float]
    """Bounds on the sums of their errors."""
    rest: dict[bool, float]
    """Bounds on the integrals beyond the end of the line."""
    aliases: tuple[tuple[Fraction, arb], ...]
    """On each side: an s, and ln of a bound on the aliases times e^{(s − c)ε}."""
    log_size: arb
    """ln M(c)"""

    def bound(self, epsilon: arb, *, above: bool) -> arb:
        """Return an upper bound on H⁰(ε), or a lower one."""
        with ctx.workprec(_PRECISION):
            way = self.known - epsilon
            d, off = float(way.mid()), float(way.rad()) + 8 * _UNIT * abs(float(way.mid()))
            terms, u = self.terms[above], self.step * np.arange(len(self.terms[above]))
            turns, sizes = _turns(self.step * d, len(terms)), np.abs(terms)
            total = float(terms.real @ turns.real - terms.imag @ turns.imag)
            error = float(sizes @ u) * off + float(sizes.sum()) * (len(u) + 16) * _UNIT
            error += self.wrong[above]
            share, rest = self.step / math.pi, self.rest[above] * _ROOM
            scale = (self.log_size - ball(self.c) * epsilon).exp()
            if above:
                return ((share * (total + error) * _ROOM + rest) * scale).upper().min(arb(1))
            missing = sum(
                ((log - (ball(s) - ball(self.c)) * epsilon).exp() for s, log in self.aliases),
                start=arb(rest + share * (error + 8 * _UNIT * abs(total)) * _ROOM),
            )
            return ((share * total - missing) * scale).lower().max(arb(0))


def _line(
    loss: Laws, epsilon: float, wanted: float, share: float, *, of_loss: bool = False
) -> Line:
    """Choose the line, the noise, the step and the end for a width of H⁰(ε), or (`of_loss`) of ε.

    Raises UndecidedError if that is too much work, or if ε is beyond the losses.
    """
    try:
        point = saddle(loss, CALL, epsilon)
    except ArithmeticError:
        raise UndecidedError(
            f"The losses have no saddle point at epsilon={epsilon:.6g}. Give a smaller epsilon."
        ) from None
    c = shortened(point.c, _BITS)
    if not loss.cumulants(c)[2] > 0:
        raise UndecidedError(
            f"At epsilon={epsilon:.6g} floats cannot distinguish large losses from the largest. "
            "Give a smaller epsilon."
        )
    curvature, peak = c * c * (c + 1) ** 2 * 2 * math.pi * point.curvature, c * (c + 1)
    slack = min(wanted * (abs(epsilon) * c if of_loss else 1.0), 0.5)
    v = _gaussian(loss)
    t = share * slack / peak
    t = 0.0 if v >= t else shortened(t, _BITS, math.floor)
    log_value = loss.cumulants(c)[0] - c * epsilon - 0.5 * math.log(curvature)
    allowed = _REST * slack / math.sqrt(curvature)
    if not loss.count * _ROUNDING / (2 * c) <= allowed:
        raise UndecidedError(
            f"The rounding errors of {loss.count} releases exceed the requested width. Ask for a "
            "larger relative_width."
        )
    ends = [
        nearest_bound(loss, CALL, epsilon, c, side, log_value, -math.log(_REST * slack))
        for side in (-1, 1)
    ]
    period = max(period for period, _ in ends)
    step = shortened(2 * math.pi / period, _BITS, math.floor)
    if not v + t > 0:
        raise UndecidedError(
            f"At epsilon={epsilon:.6g} the variance of the added noise is below all floats. Ask "
            "for a larger relative_width."
        )
    end = shortened(1 / math.sqrt(v + t), _BITS)
    while max(_beyond(c, v, t, end).values()) > allowed:
        end *= 1.125
    count, each = math.ceil(end / step) + 2, sum(_cost(part) for part, _ in loss.factors)
    if not (count <= MOST_POINTS and count * each <= MOST_WORK):
        raise UndecidedError(
            f"The contour needs {count} nodes for each of {each} laws, more than are computed. "
            "Ask for a larger relative_width."
        )
    sides = tuple(c + shortened(s - c, _BITS, math.trunc) if s else s for _, s in ends)
    return _summed(loss, c, t, step, count, sides)


def _gaussian(loss: Laws) -> float:
    """Return a float near v."""
    return math.fsum(
        n * part.estimate().cumulants(1.0)[2]
        for part, n in loss.factors
        if isinstance(part, GaussianTransform)
    )


def _cost(part: Moments) -> int:
    if isinstance(part, DiscreteGaussianTransform):
        return 2 * part.spread(_PRECISION)
    return len(part.pair.source.outcomes(part.pair.index)) if isinstance(part, ListTransform) else 1


def _beyond(c: float, v: float, t: float, end: float) -> dict[bool, float]:
    """Return bounds on the integrals beyond the end of the line, above (True) and below."""
    w = (v + t) * (1 - 8 * _UNIT)
    first = math.exp(-w * end * end / 2) / (w * end)
    inner = first / (end * end)
    return {
        True: math.exp(t * c * (c + 1) / 2) * inner / math.pi,
        False: math.exp(t * c * c / 2) * (inner + t * math.exp(t * (c + 0.5)) * first) / math.pi,
    }


@functools.lru_cache(maxsize=8)
def _summed(  # noqa: PLR0917  # all arguments are the key
    loss: Laws, at: float, t: float, step: float, count: int, ends: tuple[float, ...]
) -> Line:
    """Return the terms of a line, their error bounds and the bounds on its aliases."""
    u, c, sides = step * np.arange(count), Fraction(at), tuple(map(Fraction, ends))
    total, s = np.ones(count, dtype=np.complex128), at + 1j * u
    flat, steep, r = 0.0, 0.0, s / (2 * s + 1)
    with ctx.workprec(_PRECISION):
        known, v = arb(0), arb(0)
        for part, times in loss.factors:
            if isinstance(part, GaussianTransform):
                v += 2 * times * part.pair.renyi(arb(1))
                continue
            if isinstance(part, LaplaceMoments):
                ratio, first, a, b = _laplace(part.distance, at, step, r)
            else:
                assert isinstance(part, Listed)
                ratio, first, a, b = _listed(part, c, step, count)
            total *= powered(ratio, times)
            known += times * first
            flat, steep = flat + times * (a + _TIMES), steep + times * b
        known += v * (ball(c) + arb(1) / 2)
        spread = float(v.mid())
        log_size = loss.log_value(c)
        period = 2 * arb.pi() / arb(step)
        aliases = []
        for side in sides:
            away, peak = abs(ball(side - c)) * period, log_peak(ball(side)) if side else 0
            aliases.append((side, loss.log_upper(side) + peak - away.expm1().log() - log_size))
    total *= np.exp(-(spread / 2) * u * u)
    off = np.expm1((flat + 16 + steep * u) * _UNIT * _ROOM)
    tilted = np.exp((t / 2) * s * s)
    kernels = {
        True: tilted * np.exp((t / 2) * s) / (s * (s + 1)),
        False: tilted * (1 / (s * (s + 1)) - np.expm1(t * (s + 0.5)) / (s + 1)),
    }
    terms, wrong = {}, {}
    for above, kernel in kernels.items():
        kernel[0] /= 2
        size = np.abs(kernel)
        wrong[above] = float(
            size @ (off + (1 + off) * 64 * _UNIT * (1 + t * (u * u + at * at + at)))
        )
        terms[above] = total * kernel
    rest = _beyond(at, spread * (1 - 8 * _UNIT), t, float(u[-1]))
    return Line(loss, c, step, known, terms, wrong, rest, tuple(aliases), log_size)


def _turns(angle: float, count: int) -> Complexes:
    """Return e^{ij·angle} for j < count, with errors of at most 7 + 3j|angle| units.

    Each of two factors contributes 2 units, and their product √5.
    """
    inner = math.isqrt(count) + 1
    near = angle * np.arange(inner)
    far = (angle * inner) * np.arange(-(-count // inner))
    rows = np.multiply.outer(np.exp(1j * far), np.exp(1j * near))
    found: Complexes = rows.ravel()[:count]
    return found


def _laplace(
    distance: ExactReal, c: float, step: float, r: Complexes
) -> tuple[Complexes, arb, float, float]:
    """Return the ratios without their phase, the known part of the loss, and a and b."""
    d = float(distance.ball().mid())
    ratio = _turns(-2 * d * step, len(r))
    ratio *= math.exp(-d * (2 * c + 1)) * r
    ratio += 1 - r
    ratio /= ratio[0].real
    return ratio, distance.ball(), 96.0, 32 * d


def _listed(
    part: Listed, c: Fraction, step: float, count: int
) -> tuple[Complexes, arb, float, float]:
    """Return the same for a list; the known part of the loss is the likeliest loss.

    Outcomes that are not listed have a bounded share of M(c), which is an error at every s.
    """
    rule = part.tilted(c)
    whole = rule.total()
    likeliest = max(range(len(rule.weights)), key=lambda i: float(rule.weights[i].mid()))
    known = rule.losses[likeliest]
    ratio, reach = np.zeros(count, dtype=np.complex128), 0.0
    for loss, weight in zip(rule.losses, rule.weights, strict=True):
        away, share = float((loss - known).mid()), float((weight / whole).mid())
        ratio += share * _turns(away * step, count)
        reach += share * abs(away)
    missing = 2 * float((rule.error / whole).upper()) / _UNIT
    return ratio, known, 32.0 + 2 * len(rule.losses) + missing, 8 * reach
