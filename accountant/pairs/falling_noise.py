"""Noise of any density g(‖x‖) that falls with ℓ1, ℓ2 or ℓ∞ in d dimensions, at distance t.

Let V = −ln g on r > 0, and Z = ∫ g r^{d−1} dr, the integral of g(‖x‖) over that of the unit ball K
times d. The level sets {g ≥ e^{−v}} of P are balls rK + a, and {g ≥ e^{−v−ε}} of Q, ε ≥ 0, balls
oK, r and o the radii up to which V does not exceed v and v + ε. (p − cq)⁺ is the length of
{y : cq < y ≤ p}, whatever V is, so that with e^{−v} dv for dy

    H_a(ε) = ∫ e^{−v} r^d/d S(r, o) dv/Z,    S = |(rK + a) ∖ oK|/|rK|.

*The worst shift.* That of ℓ2 is the full distance in any direction: balls have the less in common
the farther apart they are (`dpassay.accountant.pairs.falling_noise`). For ‖a‖ ≤ t any norm has at
most

    S = 1 − ((s⁺)/r)^d,  s = (r + o − t)/2, or S = 0 where o − r ≥ t,

as both balls hold a translate of sK; in ℓ1 one coordinate attains it, in ℓ∞ all, for every level
at once (`dpassay.accountant.pairs.falling_noise`, where nothing is asked of the exponent). In ℓ2 S
is of caps C. With the height c of the plane in which the spheres meet

    c = (o² − r² − t²)/(2rt),  c′ = (o² − r² + t²)/(2ot),  S = C_{d+2}(c) − (o/r)^d C_{d+2}(c′).

S is 0 where o − r ≥ t, and 1 where r + o ≤ t, in all three.

*Pieces.* Where V rises smoothly r is the variable, dv = V′ dr; at a jump of V v is. Where g ends,
at R, the balls of all higher levels are equal. o is analytic between places where it leaves a
piece, or S begins or ends, which are enclosed: there the integral has at most the levels between,
times d(t − (o − r))⁺/2r ≥ S. That S does so nowhere else is proved on every set of the integral,
where o − r < t, or is monotone between ends where it is; or such a place is found, and cut at.

*Tails.* Q(L > ε) is the mean over the radius r of Q, of density g r^{d−1}/Z, of the share I of the
sphere of radius r about 0 that lies in oK + a, V(o) = V(r) − ε:

    I = C_d(−c),  or I = (s/r)^{d−1}/2, the derivative of |(oK + a) ∖ rK| in r, where |o − r| < t.

Here pieces without a slope count. L > ε is strict: o is the radius up to which V is below V(r) − ε.

P(L > ε) = H(ε) + e^ε Q(L > ε), and reflection exchanges P and Q.

*What is left out.* Up to A the levels have at most g(0) A^d/d. Beyond B they have at most
g(B) B^d/d + ∫ g r^{d−1} dr from B on, which `Decay` bounds; nothing where V(r + t) − V(r) ≤ ε from
B − t on, and else a share of at most min(1, dt/2B), as S ≤ 1 − (1 − t/2r)^d.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias, final

from flint import acb, arb

from dpassay.accountant.core.pair import ReflectedPair, Tails
from dpassay.accountant.density.law import integral
from dpassay.accountant.density.radii import Stretch, Target, radii, stretches
from dpassay.accountant.density.radius import Radius, is_integrable, radius
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.geometry.ball_loss import bessel_k, moment, shape
from dpassay.accountant.geometry.spaces import cap
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import START_PRECISION, ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import crossing, fraction
from dpassay.accountant.pairs.own_density import OwnDensityPair

if TYPE_CHECKING:
    from dpassay.accountant.composition.losses.transform import Transform


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

_RADIAL_SPARE_BITS = 64
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
        tolerance = tolerance_of(ctx.prec, _RADIAL_SPARE_BITS)
        with ctx.workprec(max(ctx.prec, 2 * _RADIAL_SPARE_BITS)):
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


_SPARE_BITS = 16
"""Bits that differences of radii lose, besides those of d."""
_LEFT_BITS = 72
"""Bits of the precision that an integral is not asked for: the usual width has 40."""
_THIN = arb(2) ** -30
"""Radius of a ball from which on it is a set, not a point."""
_DOUBLINGS = range(3, 200)
"""How often the spread of the noise is doubled until what is left out no longer counts."""
_MUCH = 1 << 10
"""Times the tolerance that the rest may be before an integral is tried."""
_PLACES = 8
"""Stretches of a jump that are looked at for where S begins or ends."""
_DEEPEST = 100
"""Halvings of a stretch until one ball is proved to lie in the other."""
_HALVINGS = 150
"""Of parts of a stretch whose kind is not known, to bound S there."""
_BISECTIONS = 4096
"""Most steps of a search: places near 0 take as many as they have bits."""

APART, INSIDE, MEETING = 1, 0, 2
"""Whether the balls of P and Q are apart, one in the other, or neither."""

Kind = tuple[Target, int]


class Panel(NamedTuple):
    """Places of a stretch, in exact numbers, with one target and kind; None if those are open."""

    stretch: Stretch
    low: arb
    high: arb
    kind: Kind | None


class Share:
    """The integral of S over levels, or of I over radii where ε ≤ 0, in units of a peak."""

    def __init__(self, pair: FallingNoisePair, shift: arb, *, of_levels: bool) -> None:
        self._d, self._t, self._shift = pair.dimension, pair.distance.ball(), shift
        self._round, self._of_levels = pair.norm == "l2" and pair.dimension > 1, of_levels
        self._noise = radius(pair.density, pair.dimension, ctx.prec)
        self._known: dict[tuple[int, str], Kind | None] = {}
        self._parts: dict[tuple[int, str, str], arb] = {}
        self._stretches = list(stretches(self._noise.radii, of_levels=of_levels))

    def value(self, tolerance: arb) -> arb:
        """Return the integral, and what is left out."""
        found = arb.nan()
        for n in _DOUBLINGS:
            low, high = self._noise.reach(n)
            rest = self._rest(low, high)
            if rest is None:
                continue
            panels = [panel for each in self._stretches for panel in self._panels(each, low, high)]
            sizes = [self._size(panel) for panel in panels]
            most = functools.reduce(lambda a, b: a.max(b), sizes, arb(0))
            if most > 0 and rest > _MUCH * most * tolerance:
                continue
            found = arb(0)
            for i in sorted(range(len(panels)), key=lambda i: -sizes[i]):
                found += self._integral(panels[i], found, tolerance)
            found += arb(0).union(rest)
            if rest <= found.lower() * tolerance or rest.is_zero():
                return found
        return found

    def _rest(self, low: arb, high: arb | None) -> arb | None:
        """Return an upper bound of what lies outside two radii."""
        left = self._noise.below(low)
        if high is None:
            return left + self._noise.closing
        right, start = self._noise.beyond(high), fraction((high - self._t).lower())
        known = self._noise.radii.decay
        if known is not None and start > known.start:
            if self._shift != 0 and known.drift(high - self._t, self._t)[1] <= abs(self._shift):
                return left
            if self._of_levels:
                right = right * (self._d * self._t / (2 * high)).min(arb(1)).upper()
        return (left + right).upper() if right.is_finite() else None

    def _kind(self, stretch: Stretch, u: arb) -> Kind | None:
        """Return the target and kind at a place; None where they are not told."""
        key = id(stretch), u.str(60)
        if key not in self._known:
            try:
                self._known[key] = self._told(stretch, u)
            except UndecidedError:
                self._known[key] = None
        return self._known[key]

    def _told(self, stretch: Stretch, u: arb) -> Kind:
        (r, v), found = stretch.start(u), self._noise.radii
        level = v + self._shift
        target = found.own(stretch) if self._shift.is_zero() else found.target(level)
        if target is None:
            return None, APART
        moved = stretch.other(acb(u), self._shift, target, False)
        assert moved is not None
        gap = moved[2].real
        both = 2 * r + gap - self._t
        if abs(gap) >= self._t:
            return target, INSIDE
        if both <= 0:
            return target, APART
        if abs(gap) < self._t and both > 0:
            return target, MEETING
        raise UndecidedError("Whether two balls meet is not told.")

    def _panels(self, stretch: Stretch, low: arb, high: arb | None) -> Iterator[Panel]:
        last: Panel | None = None
        for a, b in pairwise(self._places(stretch, low, high)):
            for panel in self._split(stretch, a, b):
                edges = self._noise.edges
                if last is not None and last.kind == panel.kind and last.high not in edges:
                    last = last._replace(high=panel.high)
                    continue
                if last is not None:
                    yield last
                last = panel
        if last is not None:
            yield last

    def _places(self, stretch: Stretch, low: arb, high: arb | None) -> list[arb]:
        """Return the ends of a stretch between two radii, and places inside."""
        if stretch.part is None:
            if stretch.place < low or (high is not None and stretch.place > high):
                return []
            if stretch.high is None:  # the target is where g ends
                return [stretch.low, arb.pos_inf()]
            width = stretch.high - stretch.low
            inner = [(stretch.low + width * k / _PLACES).mid() for k in range(1, _PLACES)]
            return [stretch.low, *inner, stretch.high]
        a = stretch.low.max(low)
        b = min(end for end in (high, stretch.high) if end is not None)
        return [] if not a < b else [a, *(u for u in self._noise.places if a < u < b), b]

    def _split(self, stretch: Stretch, a: arb, b: arb) -> Iterator[Panel]:
        """Return panels between two places, cut where the kind changes."""
        if not b.is_finite():
            yield Panel(stretch, a, b, self._kind(stretch, a))
            return
        kinds = self._kind(stretch, a), self._kind(stretch, b)
        if kinds[0] == kinds[1] and kinds[0] is not None:
            yield Panel(stretch, a, b, kinds[0])
            return
        if kinds[0] is None:
            inner = (a + (b - a) * arb(2) ** (_SPARE_BITS - ctx.prec // 2)).mid()
            sure = a < inner < b and self._kind(stretch, inner) is not None
            yield Panel(stretch, a, inner if sure else b, None)
            if sure:
                yield from self._split(stretch, inner, b)
            return
        low, high, last = a, b, kinds[0]
        for _ in range(_BISECTIONS):
            middle = ((low + high) / 2).mid()
            if not low < middle < high or high - low <= high * arb(2) ** (8 - ctx.prec):
                break
            kind = self._kind(stretch, middle)
            if kind is None:
                near = ((low + 3 * middle) / 4).mid(), ((high + 3 * middle) / 4).mid()
                told = [self._kind(stretch, u) for u in near]
                if told[0] is None or told[1] is None:
                    break
                low, high = (near[0], near[1]) if told[0] == last else (low, near[0])
            elif last is None or kind == last:
                low, last = middle, kind
            else:
                high = middle
        if a < low:
            yield Panel(stretch, a, low, last if kinds[0] == last else None)
        yield Panel(stretch, low, high, None)
        if high < b:
            yield from self._split(stretch, high, b)

    def _size(self, panel: Panel) -> arb:
        """Return about the integral over a panel."""
        if panel.kind is None or not panel.high.is_finite():
            return arb(0)
        width = panel.high - panel.low
        f = self._integrand(panel, [])
        found = [abs(f(acb(panel.low + width * k / 4), False).real).mid() for k in (1, 2, 3)]
        known = [each for each in found if each.is_finite()]
        return max(known, default=arb(0)) * width

    def _integral(self, panel: Panel, beside: arb, tolerance: arb) -> arb:
        key = id(panel.stretch), panel.low.str(60), panel.high.str(60)
        if key not in self._parts:
            self._parts[key] = self._made(panel, beside, tolerance)
        return self._parts[key]

    def _made(self, panel: Panel, beside: arb, tolerance: arb) -> arb:
        stretch, low, high, kind = panel
        if kind is None:
            return arb(0).union(self._open(stretch, low, high, beside * tolerance))
        target, state = kind
        if state == INSIDE:
            sure = not isinstance(target, int)
            return arb(0) if sure else self._unsure(panel, beside, tolerance, _DEEPEST)
        if state == APART and not self._of_levels:
            return arb(0)
        if stretch.part is None and not isinstance(target, int):
            assert target is not None
            r, o = acb(stretch.place), acb(target)
            levels = self._noise.levels(stretch, low, high)
            return levels * self._share(r, o, o - r, state, False).real
        others: list[arb] = []
        found = integral(self._integrand(panel, others), low, high, beside, tolerance)
        return self._cut(panel, others[0], beside, tolerance) if others else found

    def _cut(self, panel: Panel, place: arb, beside: arb, tolerance: arb) -> arb:
        """Return the integral over a panel that has another kind at a place inside."""
        stretch, low, high, _ = panel
        parts = *self._split(stretch, low, place), *self._split(stretch, place, high)
        return sum((self._made(part, beside, tolerance) for part in parts), start=arb(0))

    def _unsure(self, panel: Panel, beside: arb, tolerance: arb, deep: int) -> arb:
        """Return the integral where one ball is not yet proved to lie in the other."""
        stretch, low, high, kind = panel
        assert kind is not None
        if self._apart(stretch, low, high, kind[0]) >= self._t:
            return arb(0)
        middle = ((low + high) / 2).mid()
        between = self._kind(stretch, middle)
        if not deep or between is None or not low < middle < high:
            return arb(0).union(self._open(stretch, low, high, beside * tolerance))
        if between != kind:
            return self._cut(panel, middle, beside, tolerance)
        halves = panel._replace(high=middle), panel._replace(low=middle)
        found = (self._unsure(half, beside, tolerance, deep - 1) for half in halves)
        return sum(found, start=arb(0))

    def _apart(self, stretch: Stretch, low: arb, high: arb, target: Target) -> arb:
        """Return |o − r| on a stretch, at least 0; no number where it is not known."""
        moved = stretch.other(acb(low.union(high)), self._shift, target, False)
        return arb.nan() if moved is None else abs(moved[2].real)

    def _open(self, stretch: Stretch, low: arb, high: arb, enough: arb) -> arb:
        """Return an upper bound of the integral where the kind is not known."""
        parts = [(self._most(stretch, low, high), low, high)]
        for _ in range(_HALVINGS if self._of_levels and high.is_finite() else 0):
            most, a, b = parts[i := max(range(len(parts)), key=lambda i: parts[i][0])]
            middle = ((a + b) / 2).mid()
            if most <= enough or not a < middle < b:
                break
            halves = (a, middle), (middle, b)
            parts[i : i + 1] = [(self._most(stretch, *half), *half) for half in halves]
        return sum((part[0] for part in parts), start=arb(0))

    def _most(self, stretch: Stretch, low: arb, high: arb) -> arb:
        """Return an upper bound of the integral: S ≤ d(t − (o − r))⁺/2r in all norms."""
        if not self._of_levels:
            return self._noise.ring(low, high).upper()
        most = self._noise.levels(stretch, low, high).upper()
        level = stretch.start(low.union(high))[1] + self._shift
        if not level.is_finite():
            return most
        try:
            target = self._noise.radii.target(level)
            least = self._apart(stretch, low, high, target).lower()
        except UndecidedError:
            return most
        share = self._d * (self._t - least).max(arb(0)) / (2 * stretch.start(low)[0])
        return (most * share.min(arb(1))).upper() if share.is_finite() else most

    def _integrand(self, panel: Panel, others: list[arb]) -> Callable[[acb, bool], acb]:
        """Return the integrand, NaN as soon as it found a place of another kind."""
        stretch, _, _, kind = panel
        assert kind is not None
        target, state = kind

        def value(u: acb, analytic: bool) -> acb:
            if others:
                return acb(arb.nan())
            size = self._noise.weight(stretch, u, self._of_levels, analytic)
            if state != MEETING:
                return size
            try:
                moved = stretch.other(u, self._shift, target, analytic)
            except UndecidedError:  # it must not pass through flint
                moved = None
            if moved is None or not moved[2].is_finite():
                return acb(arb.nan()) if analytic else size * acb(arb(0).union(arb(1)))
            r, o, gap, slope = moved
            sure = abs(gap.real) < self._t or self._is_between(panel, u, slope)
            if not sure and self._kind(stretch, middle := u.real.mid()) not in (None, kind):
                others.append(middle)
            if analytic and not sure:
                return acb(arb.nan())
            share = self._share(r, o, gap, state, analytic)
            if not sure:  # it is 0 where one ball lies in the other
                share = acb(share.real.union(arb(0)))
            if not share.is_finite() and not analytic:
                share = acb(arb(0).union(arb(1)))
            return size * share

        return value

    def _is_between(self, panel: Panel, u: acb, slope: acb) -> bool:
        """Whether o − r is monotone on a set, and below t at the ends of its part in a panel."""
        if not (slope.real > 0 or slope.real < 0):
            return False
        ends = u.real.lower().max(panel.low), u.real.upper().min(panel.high)
        return all(self._kind(panel.stretch, end) == panel.kind for end in ends)

    def _share(self, r: acb, o: acb, gap: acb, state: int, analytic: bool) -> acb:
        """Return S, or I."""
        if state == APART:
            return acb(1)
        t, d = self._t, self._d
        near, past, both, over = t - gap, t + gap, r + o + t, r + o - t
        if not self._round:
            inner = 1 + (gap - t) / (2 * r)
            if self._of_levels:
                return 1 - power_of(inner, d, analytic)
            return power_of(inner, d - 1, analytic) / 2
        height = _height(
            past * over, near * both, 2 * r * t, gap * (1 + gap / (2 * r)) / t - t / (2 * r)
        )
        if not self._of_levels:
            return cap(*height[::-1], d, analytic)
        other = _height(
            past * both, near * over, 2 * o * t, gap * (1 - gap / (2 * o)) / t + t / (2 * o)
        )
        growth = (d * (gap / r + 1).log(analytic=analytic)).exp()
        return cap(*height, d + 2, analytic) - growth * cap(*other, d + 2, analytic)


def _height(plus: acb, minus: acb, whole: acb, c: acb) -> tuple[acb, acb]:
    """Return 1 + c and 1 − c, the products over their sum, or by c where that is narrower."""
    plus, minus = (
        end if end.rad() <= c.rad().max(_THIN) else other
        for end, other in ((plus / whole, 1 + c), (minus / whole, 1 - c))
    )
    return plus, minus


@final
class Whole(Share):
    """The integral of g r^{d−1} over all radii."""

    def __init__(self, found: Radius) -> None:
        self._noise, self._d, self._of_levels, self._parts = found, found.dimension, True, {}
        self._stretches = list(stretches(found.radii, of_levels=True))

    def _rest(self, low: arb, high: arb | None) -> arb | None:
        left = self._noise.below(low)
        right = self._noise.closing if high is None else self._noise.beyond(high)
        return (left + right).upper() if right.is_finite() else None

    def _kind(self, stretch: Stretch, u: arb) -> Kind | None:
        return None if stretch.part is not None else stretch.place, APART


@functools.lru_cache(maxsize=64)
def _total(text: str, dimension: int, bits: int) -> arb:
    """Return Z, in units of the peak."""
    with ctx.workprec(bits):
        return Whole(radius(text, dimension, bits)).value(arb(2) ** (_LEFT_BITS - bits))


def mean_power(text: str, dimension: int, n: int) -> arb:
    """Return E r^n, ∞ where a tail is too heavy: r^n is as n more dimensions."""
    if not is_integrable(text, dimension + n):
        return arb.pos_inf()
    with ctx.workprec(max(ctx.prec, START_PRECISION) + 2 * dimension.bit_length() + _SPARE_BITS):
        dimensions = dimension + n, dimension
        more, usual = (_total(text, d, ctx.prec) for d in dimensions)
        far, near = (radius(text, d, ctx.prec).top for d in dimensions)
        return (far - near).exp() * more / usual


@final
@dataclass(frozen=True)
class FallingNoisePair(LevelsPair):
    """The pair of a density of ‖x‖ at distance t > 0, in the units in which it is written."""

    law_name = "falling-noise"

    density: str
    distance: ExactReal
    dimension: int
    norm: str

    def _share(self, shift: arb, *, of_levels: bool) -> arb:
        bits = max(ctx.prec, START_PRECISION)
        tolerance = tolerance_of(ctx.prec, _LEFT_BITS)
        with ctx.workprec(bits + 2 * self.dimension.bit_length() + _SPARE_BITS):
            found = Share(self, shift, of_levels=of_levels).value(tolerance)
            value: arb = found / _total(self.density, self.dimension, ctx.prec)
            return value

    def beyond(self, epsilon: ExactReal) -> arb:
        """Return H(ε)."""
        known = self.exact_max_loss()
        if known is not None and epsilon >= known:
            return arb(0)
        return self._share(epsilon.ball(), of_levels=True).max(arb(0))

    def weighted(self, epsilon: ExactReal) -> arb:
        """Return e^ε Q(L > ε)."""
        known = self.exact_max_loss()
        if known is not None and epsilon >= known:
            return arb(0)
        return epsilon.ball().exp() * self._share(-epsilon.ball(), of_levels=False).max(arb(0))

    @property
    def _line(self) -> OwnDensityPair:
        """The pair of one coordinate, with the same largest loss: V(r + t) − V(r) on a line."""
        distance = self.distance.rational
        assert distance is not None
        return OwnDensityPair(self.density, distance, False)

    def exact_max_loss(self) -> ExactReal | None:
        """Return st where V′ ≤ s tends to s, else None."""
        return self._line.exact_max_loss()

    def max_loss(self) -> arb:
        """Return the largest V(r + t) − V(r), that of the noise of one coordinate."""
        return self._line.max_loss()

    def infinity_mass(self) -> arb:
        """Return P where g is 0 around Q: the share S of the last balls, of radius R."""
        if radii(self.density, ctx.prec).end is None:
            return arb(0)
        return self._share(arb.pos_inf(), of_levels=True).max(arb(0))

    def closed_rho(self) -> arb | None:
        """Return a ball without an upper end, of unbounded losses; else None."""
        return None if self.max_loss().is_finite() else arb(0).union(arb.pos_inf())

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the event by norms."""
        return (
            f"outcomes x with V(x) − V(x − a) > {epsilon}, V = −ln of the density of the norm, a "
            f"the shift of norm {self.distance} in units of the density, Q around 0"
        )


"""Noise with the density e^{−‖x‖^p} in d ≥ 2 dimensions, ℓ2, at distance t, p > 1.

Level sets of P and Q are balls rB + v and r′B, r = x^{1/p} and r′ = (x + ε)^{1/p}, ε ≥ 0, as in
`dpassay.accountant.pairs.falling_noise`, and

    H(ε) = ∫ e^{−x} |(rB + v) ∖ r′B| dx/(Γ(d/p + 1)|B|).

Any direction is alike. What two convex symmetric bodies have in common falls with the length of a
shift between them: its volume is log-concave in the shift, by Brunn and Minkowski, and even. So H
grows with t, whatever increasing function of the norm the exponent is: the full distance is worst.

The balls are apart where r + r′ ≤ t, and the first lies in the second where r′ − r ≥ t. Between,
the spheres meet in a plane, cr beyond v and c′r′ beyond 0 in the direction of v,

    c = (r′² − r² − t²)/(2rt),  c′ = c r/r′ + t/r′,

and with the caps C of `dpassay.accountant.geometry.spaces` |(rB + v) ∖ r′B|/|rB| is
C_{d+2}(c) − (r′/r)^d C_{d+2}(c′). Q(L > ε) is the share of the sphere r′ that lies in rB + v:

    e^ε Q(L > ε) = ∫ e^{−x} (x + ε)^{d/p − 1} C_d(c′) dx/Γ(d/p).

That cap is part of the surface of a convex body in rB + v, so that r′^{d−1} C_d(c′) ≤ r^{d−1}.
"""

Ends: TypeAlias = tuple[acb, acb]
"""1 + c and 1 − c of a height c."""


@final
@dataclass(frozen=True)
class RoundNoisePair(RadialPair):
    """The pair at distance t > 0 for dimension d ≥ 2 and the power p > 1."""

    law_name = "round-noise"
    slope_share: ClassVar = arb(1)

    def _heights(self, epsilon: arb, x: acb, analytic: bool) -> tuple[Ends, Ends, acb]:
        """Return 1 ± c, 1 ± c′ and (d/p) ln(1 + ε/x).

        As products they are narrow where balls touch.
        """
        p, t = ball(1 / self.power), self.distance.ball()
        log, other = x.log(analytic=analytic), (1 + epsilon / x).log(analytic=analytic)
        r, far = (p * log).exp(), (p * (x + epsilon).log(analytic=analytic)).exp()
        gap = r * (p * other).expm1() if x.real.mid() > epsilon.mid() else far - r
        near, both, apart = t - gap, r + far + t, r + far - t
        first = (gap + t) * apart / (2 * r * t), near * both / (2 * r * t)
        second = (gap + t) * both / (2 * far * t), near * apart / (2 * far * t)
        return first, second, self.dimension * p * other

    def _excess(self, epsilon: arb, x: acb, analytic: bool) -> acb:
        first, second, growth = self._heights(epsilon, x, analytic)
        d = self.dimension + 2
        share = cap(*first, d, analytic) - growth.exp() * cap(*second, d, analytic)
        return self._weight(x, analytic) * share

    def _slope(self, epsilon: arb, x: acb, analytic: bool) -> acb:
        _, second, growth = self._heights(epsilon, x, analytic)
        size = self._weight(x, analytic) * growth.exp() * cap(*second, self.dimension, analytic)
        return size * ball(self.dimension / self.power) / (x + epsilon)


"""The dominating pair of noise with the density e^{−‖x‖₂} in d ≥ 2 dimensions.

P is at a point v of length t, Q at 0. The loss L = t sin φ has the density w(φ) e^{z sin φ}/W of
`dpassay.accountant.geometry.ball_loss`; w is even, and reflection x → v − x exchanges P and Q.
"""

_BALL_SPARE_BITS = 8
"""Bits of the precision that an integral is not asked for."""
_FLAT = 3
"""Dimensions up to which the factor (1 − u²)^{(d−3)/2} is not log-concave, or is 1."""


@final
@dataclass(frozen=True)
class BallNoisePair(ReflectedPair):
    """Two laws of density e^{−‖x‖₂} at distance t > 0."""

    law_name = "ball-noise"
    largest_order: ClassVar = 1 << 20

    distance: ExactReal
    dimension: int

    def _integral(self, low: arb, high: arb, rate: int, epsilon: ExactReal | None) -> arb:
        """Return ∫ w e^{± z sin φ}/W, or of w (e^{z sin φ} − e^{ε − z sin φ})/W."""
        d, z = self.dimension, self.distance.ball() / 2
        second, whole = shape(self.distance, d)
        level = None if epsilon is None else epsilon.ball() / 2

        def density(phi: acb, _: bool) -> acb:
            sine, cosine = phi.sin_cos()
            size: acb = cosine ** (d - 2) * (cosine * cosine + second)
            if level is None:
                return size * (rate * z * sine).exp()
            return size * (z * sine - level).sinh()

        found = acb.integral(
            density, acb(low), acb(high), rel_tol=arb(2) ** (_BALL_SPARE_BITS - ctx.prec)
        ).real
        return found / whole if level is None else 2 * level.exp() * found / whole

    def _angle(self, epsilon: ExactReal) -> arb:
        return (epsilon.ball() / self.distance.ball()).asin()

    def excess(self, epsilon: ExactReal) -> arb:
        """Return (2/W) e^{ε/2} ∫ w sinh(z sin φ − ε/2) from t sin φ = ε on."""
        return self._integral(self._angle(epsilon), arb.pi() / 2, 1, epsilon)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the integrals on both sides of t sin φ = ε."""
        if epsilon >= self.distance:
            return Tails(arb(0), arb(1), arb(0), arb(1))
        if epsilon <= -self.distance:
            return Tails(arb(1), arb(0), arb(1), arb(0))
        at, end = self._angle(epsilon), arb.pi() / 2
        return Tails(*(
            self._integral(*sides, rate, None)
            for rate in (1, -1) for sides in ((at, end), (-end, at))
        ))  # fmt: skip

    def renyi(self, order: arb) -> arb:
        """Return ln M/(a − 1)."""
        return moment(self.distance, self.dimension, acb(order - 0.5)).real.log() / (order - 1)

    def loss_transform(self) -> Transform | None:
        """Return the moments; in two dimensions how they fall is not known."""
        from dpassay.accountant.composition.losses.laplace import BallNoiseTransform

        return None if self.dimension == 2 else BallNoiseTransform(self.distance, self.dimension)

    def rho_bound(self) -> arb:
        """Return max(D_1, t²/2m), m = d − 3 + 2/(1 + k), where d > 3.

        However tilted, u = L/t has a density (1 − u²)^{(d−3)/2}(1 − u² + k)e^{yu} on [−1, 1], up to
        a factor. The second derivative of its logarithm is at most −m, and so its variance is at
        most 1/m (Brascamp and Lieb 1976). So K(a) = (a − 1)D_a has K″ ≤ t²/m, and
        D_a ≤ D_1 + (a − 1)t²/2m.
        """
        known = super().rho_bound()
        if self.dimension <= _FLAT:
            return known
        m = self.dimension - _FLAT + 2 / (1 + shape(self.distance, self.dimension)[0])
        return known.min(self.kullback_leibler().max(self.distance.ball() ** 2 / (2 * m)).upper())

    def kullback_leibler(self) -> arb:
        """Return 2z² (K_{d/2−1} I_{d/2+1} + K_{d/2} I_{d/2}), as j_ν′ = y j_{ν+1}."""
        z, nu = self.distance.ball() / 2, arb(self.dimension) / 2
        less, more = bessel_k(z, self.dimension)
        return 2 * z**2 * (less * z.bessel_i(nu + 1) + more * z.bessel_i(nu))

    def exact_max_loss(self) -> ExactReal:
        """Return t."""
        return self.distance

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe a sheet of a hyperboloid."""
        return (
            f"outcomes more than {epsilon} scales nearer to the true answer under P than to that "
            f"under Q, which is {self.distance} scales away"
        )
