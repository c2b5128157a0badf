"""Noise with the density e^{−‖x‖^p} in d dimensions, ℓ1 or ℓ∞, at distance t, p > 1.

Level sets of P and Q at e^{−x} and e^{−x−ε}, ε ≥ 0, are balls r K + v and r′K, r = x^{1/p} and
r′ = (x + ε)^{1/p}. For ‖v‖ ≤ t both contain a translate of sK, s = (r + r′ − t)/2, unless they are
apart, s ≤ 0, or r′ − r ≥ t and the first lies in the second. So no norm has more than

    H(ε) = ∫ e^{−x} (r^d − (s⁺)^d) dx/Γ(d/p + 1) over x with r′ − r < t,

which grows with t. It is attained by a shift of all coordinates in ℓ∞, where the cubes meet in a
cube of side 2s, and by one of a single coordinate in ℓ1: where that is u and the others have the
norm w, the balls meet where w ≤ min(r − |u − t|, r′ − |u|), a tent of height s and slopes ±1, which
is a translate of sK. Its derivative in ε is that of s^d, as s = r where r′ − r = t:

    e^ε Q(L > ε) = ∫ e^{−x} d s^{d−1} (x + ε)^{1/p − 1} dx/(2p Γ(d/p + 1)) over s > 0, r′ − r < t,

and P(L > ε) = H(ε) + e^ε Q(L > ε). Reflection exchanges P and Q. Losses have no largest value.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, final

from flint import acb, arb

from dpassay.accountant.core.pair import ReflectedPair, Tails
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers.crossing import crossing
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import START_PRECISION, ball
from dpassay.accountant.numbers.precision import ctx

_SPARE_BITS = 64
"""Bits that differences of roots of large numbers lose, and the integral does not reach."""
_WIDTHS = range(4, 40)
"""The size of the noise is followed to 2^n standard deviations from its mean."""
_FARTHEST = 1 << 4096
"""Where a place is no longer looked for: exponents of balls have no end."""
_LOST_BITS = 8
"""Bits of a place that the rounding of two roots loses."""

_LOOKED = 24
"""Distances from both ends at which the size of an integral is estimated: a small one decides."""
_NEAR = arb("0.0625")
"""Relative distance from the mean up to which a series is used: it gains 4 bits with each term."""
_SQUARE = 2
"""The power up to which a largest D_a/a may be finite."""
_HALF = arb("0.5")
"""Share from which on a logarithm is narrower than products."""

_MUCH = 1 << 10
"""Times the tolerance that the rest may be before an integral is tried."""

_FLOAT_BITS, _ROUGH_BITS = 53, 32
"""A precision below that of floats, of tables, asks for integrals of so many bits."""

Curve = Callable[[arb, acb, bool], acb]
"""An integrand in x > 0 at ε, and whether it must be analytic."""


def tolerance_of(bits: int, left: int) -> arb:
    """Return the relative one of integrals for an answer of so many bits, some of them left out."""
    return arb(2) ** -(max(bits, START_PRECISION) - left if bits >= _FLOAT_BITS else _ROUGH_BITS)


class LevelsPair(ReflectedPair):
    """A pair whose level sets are balls at a distance: H is an integral, and so is e^ε Q(L > ε)."""

    usual_width: ClassVar = Fraction(1, 10**12)
    """Integrals take longer for more."""
    table_points: ClassVar[int] = 24
    """Losses of a table for compositions, about ten seconds of integrals."""

    @abstractmethod
    def beyond(self, epsilon: ExactReal) -> arb:
        """Return H(ε) for ε ≥ 0 below the largest loss."""

    def excess(self, epsilon: ExactReal) -> arb:
        """Return the same, once for each precision: the tails ask for it again."""
        return _excess(self, epsilon, ctx.prec)

    @abstractmethod
    def weighted(self, epsilon: ExactReal) -> arb:
        """Return e^ε Q(L > ε) for ε ≥ 0."""

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the probabilities, from H and e^ε Q."""
        if epsilon.sign < 0:
            return self.tails(-epsilon).reflected
        weighted = self.weighted(epsilon)
        p = self.excess(epsilon) + weighted
        q = weighted * (-epsilon.ball()).exp()
        return Tails(p, (1 - p).max(arb(0)), q, (1 - q).max(arb(0)))

    def renyi(self, order: arb) -> arb:
        """Raise NotApplicableError."""
        raise NotApplicableError(
            "No divergence of noise that falls with a norm in this way is known here. Ask for "
            "delta or epsilon."
        )

    def kullback_leibler(self) -> arb:
        """Raise NotApplicableError."""
        return self.renyi(arb(1))


@lru_cache(maxsize=64)
def _excess(pair: LevelsPair, epsilon: ExactReal, bits: int) -> arb:
    """Return H(ε) at this precision."""
    return pair.beyond(epsilon)


@dataclass(frozen=True)
class RadialPair(LevelsPair):
    """A pair whose level sets are balls at distance t > 0, for dimension d and the power p > 1.

    H, and e^ε Q(L > ε), are integrals of curves over the x where r′ + r > t > r′ − r.
    """

    slope_share: ClassVar[arb]
    """The second curve is at most so much of e^{−x} x^{d/p − 1}/Γ(d/p)."""

    distance: ExactReal
    dimension: int
    power: Fraction

    def beyond(self, epsilon: ExactReal) -> arb:
        """Return H(ε)."""
        return self._integral(epsilon, self._excess)

    def weighted(self, epsilon: ExactReal) -> arb:
        """Return e^ε Q(L > ε)."""
        return self._integral(epsilon, self._slope)

    def closed_rho(self) -> arb:
        """Return ∞ for p > 2, else a ball without an upper end.

        The loss is above ptX^{p−1} or so with a chance of about e^{−X^p}, and by that event
        D_a ≥ ptX^{p−1} − X^p/(a − 1). With X = Ka^{1/(p−1)} that is more than a·K^{p−1} in the end,
        for every K.
        """
        if self.power > _SQUARE:
            return arb.pos_inf()
        return arb(0).union(arb.pos_inf())

    @abstractmethod
    def _excess(self, epsilon: arb, x: acb, analytic: bool) -> acb:
        """Return the integrand of H: e^{−x} x^{d/p}/Γ(d/p + 1) times a share of a ball."""

    @abstractmethod
    def _slope(self, epsilon: arb, x: acb, analytic: bool) -> acb:
        """Return the integrand of e^ε Q(L > ε)."""

    def _weight(self, x: acb, analytic: bool) -> acb:
        """Return e^{−x} x^{d/p}/Γ(d/p + 1), about its largest value as e^{a(ln(1 + y) − y)}."""
        a, peak = _peak(Fraction(self.dimension) / self.power, ctx.prec)
        y = x / a - 1
        if abs(y).upper() < _NEAR:
            return peak * (a * y * y * _bend(y)).exp()
        return peak * (a * ((x / a).log(analytic=analytic) - y)).exp()

    def _integral(self, epsilon: ExactReal, curve: Curve) -> arb:
        """Return the integral of a curve over where 0 < s < r, and of e^{−x} r^d/Γ where s ≤ 0.

        The curve is at most the weight, or a share of e^{−x} x^{d/p − 1}/Γ(d/p): with that the rest
        is bounded.
        """
        tolerance = tolerance_of(ctx.prec, _SPARE_BITS)
        with ctx.workprec(max(ctx.prec, 2 * _SPARE_BITS)):
            e, is_excess = epsilon.ball(), curve == self._excess
            low, high, apart = self._start(e)
            a = ball(self.dimension / self.power) + (1 if is_excess else 0)
            share = arb(1) if is_excess else self.slope_share
            edge = abs(curve(e, acb(low.union(high)), False).real).upper() * (high - low)
            most = share * _between(low, high, a)
            value = arb(0).union(edge.min(most) if edge.is_finite() else most)
            if apart and is_excess:
                below = low.gamma_lower(a, regularized=1)
                value += below if below.is_finite() else arb(0).union(_beyond(low, a))
            spread = a.sqrt().mid() + 1
            for n in _WIDTHS:
                reach = spread * arb(2) ** n
                left, right = (
                    (a.mid() - reach).max(high).mid(),
                    (a.mid() + reach).max(high + reach).mid(),
                )
                rest = _beyond(right, a)
                if left > high:
                    rest += _beyond(left, a)
                least = _size(lambda x: curve(e, x, False), left, right) * tolerance
                if least > 0 and rest.upper() * share > _MUCH * (least + value.upper() * tolerance):
                    continue
                found = acb.integral(
                    lambda x, analytic: curve(e, x, analytic),
                    acb(left), acb(right), rel_tol=tolerance, abs_tol=least,
                ).real  # fmt: skip
                if rest.upper() * share <= (found + value).lower() * tolerance:
                    return (value + found + arb(0).union(rest * share)).max(arb(0))
        raise UndecidedError("The size of the noise was not followed far enough.")

    def _start(self, epsilon: arb) -> tuple[arb, arb, bool]:
        """Enclose the x where r′ − r = t, or else where r′ + r = t, and say whether it is that."""
        p, t = ball(1 / self.power), self.distance.ball()

        def radius(x: arb) -> arb:
            return (p * x.log()).exp() if x > 0 else arb(0)

        apart = radius(epsilon) < t

        def rise(place: Fraction) -> arb:
            near, far = radius(ball(place)), radius(ball(place) + epsilon)
            return far + near - t if apart else t - far + near

        if not rise(Fraction(0)) < 0:
            return arb(0), arb(2) ** -ctx.prec, apart
        most = Fraction(2)
        while not rise(most) > 0 and most < _FARTHEST:
            most *= 2
        low, high = crossing(rise, Fraction(0), most, ctx.prec - _LOST_BITS)
        return ball(low), ball(high), apart


@final
@dataclass(frozen=True)
class RadialNoisePair(RadialPair):
    """The pair of ℓ1 and ℓ∞."""

    law_name = "radial-noise"
    slope_share: ClassVar = _HALF
    table_points: ClassVar = 64

    def _radii(self, x: acb, epsilon: arb, analytic: bool) -> tuple[acb, acb]:
        """Return r and s/r."""
        p = ball(1 / self.power)
        log, other = x.log(analytic=analytic), (1 + epsilon / x).log(analytic=analytic)
        r = (p * log).exp()
        return r, 1 + ((p * other).expm1() - self.distance.ball() / r) / 2

    def _excess(self, epsilon: arb, x: acb, analytic: bool) -> acb:
        """Return e^{−x} x^{d/p} (1 − (s/r)^d)/Γ."""
        _, share = self._radii(x, epsilon, analytic)
        return self._weight(x, analytic) * (1 - power_of(share, self.dimension, analytic))

    def _slope(self, epsilon: arb, x: acb, analytic: bool) -> acb:
        """Return e^{−x} d s^{d−1} (x + ε)^{1/p − 1}/(2pΓ)."""
        r, share = self._radii(x, epsilon, analytic)
        p = ball(self.power)
        fall = ((1 / p - 1) * (x + epsilon).log(analytic=analytic)).exp()
        size = self._weight(x, analytic) * power_of(share, self.dimension - 1, analytic)
        return size * fall * self.dimension / (2 * p * r)


@lru_cache(maxsize=64)
def _peak(a: Fraction, bits: int) -> tuple[arb, arb]:
    """Return a, and e^{−a} a^a/Γ(a + 1)."""
    with ctx.workprec(bits):
        at = ball(a)
        return at, (at * at.log() - at - (at + 1).lgamma()).exp()


def _beyond(x: arb, a: arb) -> arb:
    """Return a bound of the mass of Gamma(a) on the other side of x from a, by Chernoff."""
    if not (x > 0 and (x > a or x < a)):
        return arb(1)
    return (a * ((x / a).log() + 1) - x).exp().upper()


def _size(f: Callable[[acb], acb], low: arb, high: arb) -> arb:
    """Return about the integral of a function that falls or rises from one end."""
    found, width = arb(0), high - low
    for n in range(_LOOKED):
        part = width / arb(2) ** n
        for x in (low + part / 2, high - part / 2):
            value = abs(f(acb(x)).real).mid() * part
            found = found.max(value) if value.is_finite() else found
    return found


def _between(low: arb, high: arb, a: arb) -> arb:
    """Return a bound of the mass of Gamma(a) between two near points, from e^{−x} ≤ e^{−low}."""
    size = (a * high.log() - (a + 1).lgamma() - low).exp()
    return size if low.is_zero() else -size * (a * (low / high).log()).expm1()


def _bend(y: acb) -> acb:
    """Return (ln(1 + y) − y)/y² by its series, the rest of which is below |y|^n/(1 − |y|)."""
    terms = ctx.prec // 4 + 2
    value = acb(0)
    for k in range(terms + 1, 1, -1):
        value = value * y + (-1) ** (k + 1) / arb(k)
    size = (abs(y).upper() ** terms / (1 - abs(y).upper())).upper()
    rest = arb(0, size)
    return value + acb(rest, rest)


def power_of(share: acb, n: int, analytic: bool) -> acb:
    """Return share^n, by a logarithm away from 0: balls stay narrow."""
    if share.real > _HALF:
        return (n * share.log(analytic=analytic)).exp()
    return share**n
