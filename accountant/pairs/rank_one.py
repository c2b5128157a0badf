r"""The dominating pair of rank-one Gaussian noise: the curve {L = ε} and integrals along it.

Law.  n = √σ_* z v with z ~ N(0, 1) and v uniform on the unit sphere of R^M, M > 2 (Ji and Li,
"Less is More", Definition 8). So ‖n‖/√σ_* is half-normal, the direction is uniform, and

    density(x) ∝ ‖x‖^{−(M−1)} exp(−‖x‖² / (2σ_*)).

P is the law centred at s and Q the law centred at 0, with ‖s‖ = Δ. In units of √σ_* the pair
depends only on M and on the ratio κ = Δ/√σ_*. Put a = (M−1)/2 and let ρ and w be the distances of
an outcome from the centres of P and Q. The loss L = ln dP/dQ = 2a ln(w/ρ) + (w² − ρ²)/2 increases
with w, so on a sphere of radius ρ about the centre of P the event {L > ε} is a cap
{cosine > t(ρ)}.

With y = ρ², Y = w² and d = Y − y, the curve L = ε, ε ≥ 0, has an explicit parametrisation by a
real x, which needs no root finding:

    s = 1/(1+e^{−x}),  d = 2εs,  z = ε(1−s)/a = ln(Y/y),  y = 2a e^x z/(e^z − 1),  Y = y + d,
    t = cosine at the centre of P = (d − κ²)/(2κ√y),
    u = cosine at the centre of Q = (d + κ²)/(2κ√Y).

The curve starts on the segment between the centres (t = −1), where 4a h + (κ²/2) tanh h = ε with
4h = ln(Y/y) and e^x = κ² tanh(h)/(8ah). It meets the axis beyond a centre (t = +1) where
4a h + (κ²/2) coth h = ε. The left side is convex in h with its minimum at sinh h = κ/√(8a), so
there are no such points or two; at each e^x = κ² coth(h)/(8ah) and ρ = κ/(e^{2h} − 1).

All functions work at flint's current precision, ``flint.ctx.prec``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias, final

from flint import acb, arb

from dpassay.accountant.core.pair import Known, MirroredPair, Tails
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.integral import integral
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.invert import rough_root

GUARD_BITS = 24
"""Bits of precision of the curve beyond those of the answer."""
_START_SLACK = 6  # the first bracket of a root is 2^6 times wider than the precision


class TouchingError(ArithmeticError):
    """The balls do not decide whether the curve meets the axis."""


class Point(NamedTuple):
    """A point of the curve, and the derivatives of its cosines with respect to x."""

    rho: acb
    w: acb
    d: acb
    z: acb
    t: acb
    u: acb
    dt: acb
    du: acb


class Exit(NamedTuple):
    """A point where the curve meets the axis beyond a centre."""

    x: arb
    rho: arb


@final
@dataclass(frozen=True, slots=True)
class Curve:
    """The curve {L = ε} for ε ≥ 0, a = (M−1)/2 and κ = `ratio` > 0."""

    epsilon: arb
    a: arb
    ratio: arb

    def at(self, x: acb, analytic: bool = False) -> Point:
        """Return the point with parameter x.

        With `analytic`, NaN if a square root is not analytic on the box x.
        """
        growth = x.exp()
        rest = 1 / (1 + growth)  # 1 − s
        s = growth * rest
        if self.epsilon == 0:
            z, shape, d = acb(0), acb(1), acb(0)
        else:
            z = rest * (self.epsilon / self.a)
            shape = z / z.expm1()
            d = 2 * self.epsilon * s
        y = 2 * self.a * growth * shape
        k2 = self.ratio * self.ratio
        rho, w = y.sqrt(analytic), (y + d).sqrt(analytic)
        t = (d - k2) / (2 * self.ratio * rho)
        u = (d + k2) / (2 * self.ratio * w)
        slope = d * rest / (2 * self.ratio)
        # y'/y = 1 − s + s (shape + z) and Y'/Y = 1 − s + s shape
        dt = slope / rho - t * (rest + s * (shape + z)) / 2
        du = slope / w - u * (rest + s * shape) / 2
        if x.rad() > 0:
            # mean-value form t(x) ∈ t(m) + t'(box)(x − m): far narrower near an extremum of t
            middle = x.mid()
            form = self.at(middle, analytic).t + dt * (x - middle)
            if form.is_finite() and form.rad() < t.rad():
                t = form
        return Point(rho, w, d, z, t, u, dt, du)

    def start(self) -> arb:
        """Return the x at which the curve starts, on the segment between the centres."""
        a, k2 = self.a, self.ratio * self.ratio
        if self.epsilon == 0:
            return (k2 / (8 * a)).log()

        def excess(h: arb) -> arb:
            return 4 * a * h + k2 / 2 * h.tanh() - self.epsilon

        def slope(h: arb) -> arb:
            return 4 * a + k2 / 2 * h.sech() ** 2

        first = self.epsilon / (4 * a + k2 / 2)  # left of the root, since the excess is concave
        h = _certified_root(excess, _newton(excess, slope, first), rising=True)
        return (k2 * h.tanh() / (8 * a * h)).log()

    def exits(self) -> tuple[Exit, Exit] | None:
        """Return the two points where the curve meets the axis, by increasing ρ, or None.

        Raises
        ------
        TouchingError
            If the balls do not decide whether the curve meets the axis.
        """
        if self.epsilon == 0:
            return None
        a, k2 = self.a, self.ratio * self.ratio
        lowest = (self.ratio / (8 * a).sqrt()).asinh()

        def excess(h: arb) -> arb:
            return 4 * a * h + k2 / 2 * h.coth() - self.epsilon

        def slope(h: arb) -> arb:
            return 4 * a - k2 / 2 * h.csch() ** 2

        least = excess(lowest)
        if least > 0:
            return None
        if not least < 0:
            raise TouchingError
        # the excess is convex and positive at both starting points: Newton's method is monotone
        near = _certified_root(excess, _newton(excess, slope, self.epsilon / (4 * a)), rising=True)
        first = k2 / (2 * self.epsilon)
        far = _certified_root(excess, _newton(excess, slope, first), rising=False)
        if not (near > lowest and far < lowest):
            raise TouchingError
        return self._exit(near), self._exit(far)

    def _exit(self, h: arb) -> Exit:
        x = (self.ratio * self.ratio * h.coth() / (8 * self.a * h)).log()
        return Exit(x, self.ratio / (2 * h).expm1())

    def horizon(self) -> arb:
        """Return an exact x such that erfc(ρ/√2) is negligible for all larger x."""
        bits = (ctx.prec + 2 * GUARD_BITS) * arb(2).log()
        size = abs(self.ratio.log()) + self.epsilon * (1 + 1 / self.a) + self.ratio**2 / 2
        square = 2 * (bits + size)
        x = arb((square / (2 * self.a)).log().mid())
        while not self.at(acb(x)).rho.real ** 2 > square:
            x = arb((x + 1).mid())
        return x


def _newton(f: Callable[[arb], arb], slope: Callable[[arb], arb], start: arb) -> arb:
    """Return an uncertified root by Newton's method on midpoints, from a side of monotone steps."""
    h = arb(start.mid())
    for _ in range(60 + 4 * ctx.prec):
        steepness = slope(h)
        if steepness.mid() == 0 or not steepness.is_finite():
            break
        step = arb((f(h) / steepness).mid())
        h = arb((h - step).mid())
        if abs(step) < abs(h) * arb(2) ** (4 - ctx.prec):
            break
    return h


def _certified_root(f: Callable[[arb], arb], guess: arb, *, rising: bool) -> arb:
    """Return a ball around `guess` that contains a root: `f` has opposite signs at its ends."""
    guess = arb(guess.mid())
    step = guess * arb(2) ** (_START_SLACK - ctx.prec)
    while step < guess / 2:
        low, high = f(guess - step), f(guess + step)
        if (low < 0 and high > 0) if rising else (low > 0 and high < 0):
            return arb(guess, step.abs_upper())
        step = step * 4
    raise TouchingError


# --- Probabilities of {L > ε} under the rank-one Gaussian law, as integrals over the curve {L = ε}
# Let φ₂ be the half-normal density and cap(t) the fraction of the sphere where the cosine exceeds
# t. Then P(L > ε) = ∫ φ₂(ρ) cap(t(ρ)) dρ. Integration by parts moves the derivative to the cap,
# whose density c(1−t²)^{a−1}, c = 1/B(a, ½), is elementary. Put Φ(ρ) = erf(ρ/√2). Let K be the
# value of Φ at the far end of a curve that runs to infinity, and 0 if the curve ends on the axis.
# Then
#
#     P(L > ε) = K + ∫ (Φ(ρ) − K) c(1−t²)^{a−1} dt,
#     Q(L > ε) =     ∫ (Φ(w) − K') c(1−u²)^{a−1} du,
#     P(L ≤ ε) =     ∫ erfc(ρ/√2) c(1−t²)^{a−1} dt.
#
# By the sine rule ρ²(1−t²) = w²(1−u²), and on the curve e^ε (ρ/w)^{2(a−1)} = (w/ρ)² e^{d/2}. So the
# two densities differ by an elementary factor, no power of 1−u² is needed, and
# P(L > ε) − e^ε Q(L > ε) is a single integral: two nearly equal numbers are never subtracted.

Integrand: TypeAlias = Callable[[acb, bool], acb]
_SMALL_POWER = 64
"""Largest integer exponent for which `real_power` multiplies out the power."""


class _Piece(NamedTuple):
    """A piece of the curve on which |t| < 1."""

    start: arb
    end: arb
    p_level: arb
    """K, the constant subtracted from Φ(ρ)."""
    q_level: arb
    p_beyond: arb
    """An upper bound of the P-mass beyond `end` if the curve is truncated there, else 0."""
    q_beyond: arb


@final
@dataclass(frozen=True, slots=True)
class Boundary:
    """The curve {L = ε} divided into pieces, and the integrals along it.

    `of` raises TouchingError if the balls do not decide which pieces there are.
    """

    curve: Curve
    pieces: tuple[_Piece, ...]

    @staticmethod
    def of(curve: Curve) -> Boundary:
        """Divide the curve at the axis and truncate it at the horizon."""
        zero, root_two = arb(0), arb(2).sqrt()
        exits = curve.exits()
        begin, horizon = curve.start(), curve.horizon()
        if not begin < horizon:
            horizon = arb((begin + 1).mid())
        far = curve.at(acb(horizon))
        rho, w = far.rho.real / root_two, far.w.real / root_two
        last = (rho.erf(), w.erf(), rho.erfc(), w.erfc())
        if exits is None:
            return Boundary(curve, (_Piece(begin, horizon, *last),))
        near, back = exits
        if back.x < horizon:
            first = _Piece(begin, near.x, zero, zero, zero, zero)
            return Boundary(curve, (first, _Piece(back.x, horizon, *last)))
        # beyond the second meeting point w > ρ, so both masses of {L > ε} are below erfc(ρ/√2)
        beyond = (back.rho / root_two).erfc()
        return Boundary(curve, (_Piece(begin, near.x, zero, zero, beyond, beyond),))

    @property
    def constant(self) -> arb:
        """The constant c = 1/B(a, ½)."""
        a = self.curve.a
        return ((a + arb(1) / 2).lgamma() - a.lgamma()).exp() / arb.pi().sqrt()

    @property
    def _floor(self) -> arb:
        """A rough magnitude below P(L > ε) and H(ε), which sets absolute tolerances."""
        ratio = self.curve.ratio
        size = ratio if ratio < 1 else 1 / ratio
        return arb((size * (-self.curve.epsilon / (2 * self.curve.a)).exp()).mid())

    @property
    def _deep_floor(self) -> arb:
        """A rough magnitude below P(L ≤ ε) and Q(L > ε), which decay also as e^{−κ²/8}, e^{−ε}."""
        exponent = self.curve.ratio**2 + self.curve.epsilon
        return self._floor**2 * arb((-exponent).exp().mid())

    def _starts_open(self, piece: _Piece) -> bool:
        """Whether the term K occurs: on a curve that runs from the segment to infinity."""
        return len(self.pieces) == 1 and not piece.p_level.is_zero()

    def p_above(self) -> arb:
        """Return P(L > ε)."""
        total = arb(0)
        for piece in self.pieces:
            if self._starts_open(piece):
                total += piece.p_level
            total += self._integral(piece, _p_part(piece.p_level), self._floor)
            total += arb(0).union(piece.p_beyond)
        return total

    def p_below(self) -> arb:
        """Return P(L ≤ ε) without forming 1 − P(L > ε), for P(L > ε) near 1."""
        total = arb(0)
        for piece in self.pieces:
            # Φ − 1 = −erfc(ρ/√2)
            total -= self._integral(piece, _p_part(arb(1)), self._deep_floor)
            total += arb(0, piece.p_beyond.abs_upper())
        return total

    def q_above(self) -> arb:
        """Return Q(L > ε)."""
        total = arb(0)
        for piece in self.pieces:
            total += self._integral(piece, _q_part(piece.q_level, self.curve.a), self._deep_floor)
            total += arb(0).union(piece.q_beyond)
        return total

    def hockey_stick(self) -> arb:
        """Return P(L > ε) − e^ε Q(L > ε)."""
        total, factor = arb(0), self.curve.epsilon.exp()
        for piece in self.pieces:
            if self._starts_open(piece):
                total += piece.p_level
            total += self._integral(piece, _difference(piece), self._floor)
            total += arb(0).union(piece.p_beyond) - factor * arb(0).union(piece.q_beyond)
        return total

    def _integral(self, piece: _Piece, part: Callable[[Point], acb], floor: arb) -> arb:
        """Return ∫ part(point) c (1−t²)^{a−1} dx over a piece."""
        curve, constant, power = self.curve, self.constant, self.curve.a - 1

        def integrand(x: acb, analytic: bool) -> acb:
            point = curve.at(x, analytic)
            weight = real_power(_sine_squared(point.t), power, analytic)
            return constant * weight * part(point)

        return integrate(integrand, piece.start, piece.end, floor)


def _p_part(level: arb) -> Callable[[Point], acb]:
    return lambda point: point.dt * _mass(point.rho, level)


def _q_part(level: arb, a: arb) -> Callable[[Point], acb]:
    """Return the integrand of Q(L > ε), by (1−u²)^{a−1} = (1−t²)^{a−1} (y/Y)^{a−1}."""

    def part(point: Point) -> acb:
        return (-(a - 1) * point.z).exp() * point.du * _mass(point.w, level)

    return part


def _difference(piece: _Piece) -> Callable[[Point], acb]:
    def part(point: Point) -> acb:
        lift = (point.z + point.d / 2).exp()  # e^ε (y/Y)^{a−1} = (Y/y) e^{d/2}
        p = point.dt * _mass(point.rho, piece.p_level)
        return p - lift * point.du * _mass(point.w, piece.q_level)

    return part


def _mass(radius: acb, level: arb) -> acb:
    """Return Φ(ρ) − K; for K ≠ 0 through erfc, so that nothing cancels for K near 1."""
    scaled = radius / arb(2).sqrt()
    if level.is_zero():
        return scaled.erf()
    return (1 - level) - scaled.erfc()


def _sine_squared(cosine: acb) -> acb:
    """Return 1 − t², factored only near ±1: elsewhere the factored ball is 1/|t| times wider."""
    if cosine.abs_upper() < 0.75:
        return 1 - cosine * cosine
    return (1 - cosine) * (1 + cosine)


def real_power(base: acb, exponent: arb, analytic: bool) -> acb:
    """Return base^exponent for exponent ≥ 0.

    If the base may have a real part ≤ 0, the result is a ball around 0 that bounds the modulus, or
    NaN if `analytic` is required and the power is not analytic.
    """
    if base.real > 0:
        return (exponent * base.log()).exp()
    whole = exponent.unique_fmpz()
    if whole is not None and whole <= _SMALL_POWER:
        return base ** int(whole)
    if analytic and whole is None:
        return acb("nan")
    radius = (base.abs_upper() ** exponent).abs_upper()
    if not radius.is_finite():
        return acb("nan")
    return acb(arb(0, radius), arb(0, radius))


def integrate(f: Integrand, start: arb, end: arb, floor: arb) -> arb:
    """Return ∫ f from start to end.

    The ends may be balls: the integral runs between their midpoints, and radius·sup|f| is added to
    the error for each end. `floor` is a magnitude below which the value is of no interest: absolute
    errors of floor·2^{−precision} are accepted.
    """
    left, right = arb(start.mid()), arb(end.mid())
    if not left < right:
        raise TouchingError
    tolerance = arb(2) ** (-ctx.prec)
    value: arb = integral(
        f,
        left,
        right,
        rel_tol=tolerance,
        abs_tol=arb((floor * tolerance).mid()),
        eval_limit=400_000 + 2_000 * ctx.prec,
        depth_limit=8 * ctx.prec,
        deg_limit=20 + ctx.prec,
    ).real
    for ball in (start, end):
        if ball.rad() > 0:
            sliver = arb(ball.rad()) * f(acb(ball), False).abs_upper()
            value += arb(0, sliver.abs_upper())
    return value


# --- The privacy profile and the law of the privacy loss of the rank-one Gaussian law -------------
# Arguments are exact numbers; results are balls of about the current relative precision. The
# arguments are converted to balls at a higher internal precision, at which the integrals along the
# curve are computed; that precision is raised until the result is accurate enough.

_ROUNDS = 4
"""Number of internal precisions tried; the extra bits about double from one to the next."""
_NEAR_ONE = 0.75
"""Value of P(L > ε) above which P(L ≤ ε) is computed by an integral of its own."""
_LARGEST_REACH = 4096
"""Reach, about −ln P(L > ε), beyond which only an upper bound is computed."""
_BOUND_PRECISION = 64
"""Precision of that bound, in bits."""

Question: TypeAlias = Callable[[Boundary], arb]


class Arguments(NamedTuple):
    """ε ≥ 0, the dimension M > 2 and the ratio κ = Δ/√σ_* > 0."""

    epsilon: ExactReal
    dimension: int
    ratio: ExactReal

    def boundary(self) -> Boundary:
        """Return the boundary of {L > ε}, at flint's current precision."""
        a = arb(self.dimension - 1) / 2
        return Boundary.of(Curve(self.epsilon.ball(), a, self.ratio.ball()))

    @property
    def reach(self) -> Fraction:
        """An upper bound of (ε − κ²/2)⁺/(M − 1); the size of {L > ε} decreases as e^{−reach}."""
        excess = math.floor(self.epsilon) + 1 - Fraction(math.floor(self.ratio.squared)) / 2
        return max(excess, Fraction(0)) / (self.dimension - 1)


@functools.lru_cache(maxsize=512)
def _hockey_stick(arguments: Arguments, precision: int) -> arb:
    """Return H(ε) for ε ≥ 0; cached, because a verdict evaluates it several times."""
    return _accurate(Boundary.hockey_stick, arguments, precision)


@functools.lru_cache(maxsize=512)
def _tails(arguments: Arguments, precision: int) -> Tails:
    """Return the tails for ε ≥ 0, where Q(L > ε) ≤ 1/2."""
    p_above = _accurate(Boundary.p_above, arguments, precision)
    q_above = _accurate(Boundary.q_above, arguments, precision)
    if p_above < _NEAR_ONE:
        p_below = 1 - p_above
    else:
        p_below = _accurate(Boundary.p_below, arguments, precision)
    return Tails(p_above, p_below, q_above, 1 - q_above)


def _accurate(question: Question, arguments: Arguments, precision: int) -> arb:
    """Return the answer to `precision` bits, if a few rounds of higher precision suffice for that.

    For a worst event as small as e^{−reach} the internal precision is raised accordingly. Beyond
    the largest reach only an upper bound is returned: the answer decreases with ε, so its value at
    the largest reach bounds it. (There P(L > ε) < e^{−4000}, so P(L ≤ ε) is not computed this way.)
    """
    if arguments.reach > _LARGEST_REACH:
        most_reach = _LARGEST_REACH * (arguments.dimension - 1)
        whole = Fraction(math.floor(arguments.ratio.squared))
        nearer = arguments._replace(epsilon=ExactReal.of_rational(whole / 2 + most_reach - 1))
        most = _raised(question, nearer, _BOUND_PRECISION)
        return arb(0).union(most if most is not None else arb(1))
    found = _raised(question, arguments, precision)
    if found is None:  # at this ε the curve touches the axis, to within all precisions tried
        found = _between_neighbours(question, arguments, precision)
    return arb(0).union(arb(1)) if found is None else found


def _raised(question: Question, arguments: Arguments, precision: int) -> arb | None:
    """Return the answer, raising the precision; None if the curve may touch the axis."""
    extra = GUARD_BITS + arguments.dimension.bit_length() + 3 * math.ceil(arguments.reach)
    best: arb | None = None
    for _ in range(_ROUNDS):
        with ctx.workprec(precision + extra):
            try:
                best = question(arguments.boundary())
            except TouchingError:
                pass
            else:
                if best.is_finite() and best.rel_accuracy_bits() >= precision:
                    return best
        extra = 2 * extra + precision // 2
    return best


def _between_neighbours(question: Question, arguments: Arguments, precision: int) -> arb | None:
    """Enclose the answer, which is monotone in ε, by its values at two points around ε."""
    ends = []
    for sign in (-1, 1):
        share = ExactReal.of_rational(1 + Fraction(sign, 1 << precision))
        beside = arguments._replace(epsilon=arguments.epsilon * share)
        end = _raised(question, beside, precision)
        if end is None:
            return None
        ends.append(end)
    return ends[0].union(ends[1])


# --- Two rank-one Gaussian laws at a given distance -----------------------------------------------

_CLOSE = 1e-6
"""Relative step at which an estimate stops: the error left is about the square of it."""
_ROUGH = 53
"""Precision of estimates in bits, that of a float; proofs use more."""


@final
@dataclass(frozen=True)
class RankOnePair(MirroredPair):
    """P = law(s + n), Q = law(n) for rank-one Gaussian noise n in R^dimension, dimension > 2.

    `ratio` is κ = ‖s‖/√σ_*. Let ρ and w be the distances of an outcome from the centres of P and
    Q, in units of √σ_*. Then

        L = (M−1) ln(w/ρ) + (w² − ρ²)/2.

    The loss is unbounded, because the density of the noise is infinite at its centre. The
    isometry x → s − x exchanges P and Q, so the pair is its own reverse.
    """

    law_name = "rank-one-gaussian"

    dimension: int
    ratio: ExactReal

    def excess(self, epsilon: ExactReal) -> arb:
        """Return H(ε): one integral along the boundary {L = ε}."""
        return _hockey_stick(Arguments(epsilon, self.dimension, self.ratio), ctx.prec)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the probabilities on both sides of {L = ε}, a null set."""
        if epsilon.sign < 0:
            return self.tails(-epsilon).reflected
        return _tails(Arguments(epsilon, self.dimension, self.ratio), ctx.prec)

    @property
    def known(self) -> Known:
        """Return ρ = +∞, the usual width of answers, and starting points for searches."""
        return Known(
            width=lambda: Fraction(1, 10**12),
            log_delta=self._estimate_log_delta,
            epsilon=self._estimate_epsilon,
            # D_2 = +∞: near its centre the density of P grows as ρ^{−(M−1)} while that of Q stays
            # bounded, so E_P[e^L] contains the divergent ∫_0 ρ^{−(M−1)} dρ
            rho=arb.pos_inf,
        )

    def _estimate_log_delta(self, epsilon: float) -> float | None:
        """Return ln H(ε) at low precision, without proof."""
        found = self._roughly(ExactReal.of_rational(Fraction(epsilon))).log()
        return float(found.mid()) if found.is_finite() else None

    def _estimate_epsilon(self, log_delta: float) -> float | None:
        """Return about the ε > 0 with ln H(ε) = log_delta; H decays as e^{−ε/(M − 1)}."""
        top = self.known.log_delta(0.0)
        if top is None or not top > log_delta:
            return None
        with suppress(UndecidedError, ArithmeticError):
            far = (self.dimension - 1) * (top - log_delta)
            return rough_root(self._roughly, log_delta, far, _CLOSE)
        return None

    def _roughly(self, epsilon: ExactReal) -> arb:
        """Return H(ε) at low precision, in a third of the time that a proof takes."""
        with ctx.workprec(_ROUGH):
            return self.hockey_stick(epsilon)

    def renyi(self, order: arb) -> arb:
        """Return +∞ for order ≥ M/(M−1); raise NotApplicableError below."""
        if (order - 1) * (self.dimension - 1) >= 1:
            return arb.pos_inf()
        raise NotApplicableError(
            "Rényi divergences of rank-one Gaussian noise are infinite from the order "
            f"{self.dimension}/{self.dimension - 1} on, and not computed below. Ask for delta."
        )

    def ball_event(self, epsilon: ExactReal) -> arb:
        """Return a lower bound of H(ε) that can be checked by hand, from a ball as the event.

        The ball has radius ‖s‖ and is centred at the centre of P. Its P-probability is erf(κ/√2),
        since the distance is half-normal. The centre of Q lies on its surface: a ray from there at
        an acute angle to s meets the ball in a chord of length 2κ·cosine. As the half-normal
        density is at most √(2/π), the Q-probability of the ball is at most √(2/π) κ E|cosine|, with
        E|cosine| = Γ(M/2)/(√π Γ((M+1)/2)).
        """
        kappa, m = self.ratio.ball(), arb(self.dimension)
        cosine = ((m / 2).lgamma() - ((m + 1) / 2).lgamma()).exp() / arb.pi().sqrt()
        q = (2 / arb.pi()).sqrt() * kappa * cosine
        return (kappa / arb(2).sqrt()).erf() - epsilon.ball().exp() * q

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe {L > ε}, with the bound of `ball_event` if it is positive."""
        text = (
            f"the outcomes x with {self.dimension - 1}·ln(w/r) + (w² − r²)/2 > {epsilon}, where r "
            "and w are the distances of x from the true answer under P and under Q, in units of "
            f"sqrt(sigma_star); the true answers are {self.ratio} apart"
        )
        with ctx.workprec(64):
            bound = self.ball_event(epsilon)
            if not bound > 0:
                return text
            kappa = self.ratio.ball()
            probability = Interval.of_ball((kappa / arb(2).sqrt()).erf(), 12)
            return (
                f"{text}. Checkable by hand: the ball of that radius round the true answer under P "
                f"has P = erf({Interval.of_ball(kappa, 12)}/sqrt(2)) = {probability}, and already "
                f"shows P − e^epsilon·Q ≥ {Interval.of_ball(bound, 4).lower}"
            )


# --- The noise that Ji and Li prescribe -----------------------------------------------------------


def theorem_5_sigma_star(epsilon: arb, delta: arb, dimension: int, l2_sensitivity: arb) -> arb:
    """Return σ_* = 2Δ²/(εψ), ψ = (δ Γ((M−1)/2)/(√π Γ(M/2)))^{2/(M−2)} (Ji and Li, Theorem 5).

    The theorem prescribes it for (ε, δ)-DP; for small δ it does not suffice.
    """
    m = arb(dimension)
    gammas = ((m - 1) / 2).lgamma() - (m / 2).lgamma() - arb.pi().log() / 2
    log_psi = 2 * (delta.log() + gammas) / (m - 2)
    return 2 * l2_sensitivity**2 / epsilon * (-log_psi).exp()
