r"""Probabilities of {L > ε} under the rank-one Gaussian law, as integrals over the curve {L = ε}.

With φ₂ the half-normal density and cap(t) the share of the sphere where the cosine exceeds t,
P(L > ε) = ∫ φ₂(ρ) cap(t(ρ)) dρ. Integration by parts moves the derivative on to the cap, whose
density c(1−t²)^{a−1}, c = 1/B(a, ½), is elementary. With Φ(ρ) = erf(ρ/√2) and K = Φ at the far
end of a curve that runs to infinity, K = 0 on one that closes on the axis,

    P(L > ε) = K + ∫ (Φ(ρ) − K) c(1−t²)^{a−1} dt,
    Q(L > ε) =     ∫ (Φ(w) − K') c(1−u²)^{a−1} du,
    P(L ≤ ε) =     ∫ erfc(ρ/√2) c(1−t²)^{a−1} dt.

By the sine rule ρ²(1−t²) = w²(1−u²), and e^ε (ρ/w)^{2(a−1)} = (w/ρ)² e^{d/2} on the curve, the
two densities differ by an elementary factor: u is never raised to a power, and
P(L > ε) − e^ε Q(L > ε) is one integral, in which nothing is subtracted afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, final

from flint import acb, arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.rank_one.curve import Curve, Point, TouchingError
from dpassay.accountant.pairs.rank_one.interruption import integral

Integrand: TypeAlias = Callable[[acb, bool], acb]
_SMALL_POWER = 64
"""Power up to which an integral is a finite sum of moments."""


class _Piece(NamedTuple):
    """A stretch of the curve inside |t| < 1."""

    start: arb
    end: arb
    p_level: arb
    """K: what Φ(ρ) is counted from."""
    q_level: arb
    p_beyond: arb
    """A bound on P(ρ > end), where the curve is cut short; else 0."""
    q_beyond: arb


@final
@dataclass(frozen=True, slots=True)
class Boundary:
    """The curve {L = ε} cut into pieces, ready to be integrated along.

    Raises TouchingError on construction where the pieces are uncertain.
    """

    curve: Curve
    pieces: tuple[_Piece, ...]

    @staticmethod
    def of(curve: Curve) -> Boundary:
        """Cut the curve at the axis and at the horizon."""
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
        # beyond the far re-entry {L > ε} has both masses below erfc(ρ/√2), w > ρ there
        beyond = (back.rho / root_two).erfc()
        return Boundary(curve, (_Piece(begin, near.x, zero, zero, beyond, beyond),))

    @property
    def constant(self) -> arb:
        """The constant c = 1/B(a, ½)."""
        a = self.curve.a
        return ((a + arb(1) / 2).lgamma() - a.lgamma()).exp() / arb.pi().sqrt()

    @property
    def _floor(self) -> arb:
        """A crude size below P(L > ε) and the divergence, for absolute tolerances."""
        ratio = self.curve.ratio
        size = ratio if ratio < 1 else 1 / ratio
        return arb((size * (-self.curve.epsilon / (2 * self.curve.a)).exp()).mid())

    @property
    def _deep_floor(self) -> arb:
        """A crude size below P(L ≤ ε) and Q(L > ε), which also fall as e^{−κ²/8} and e^{−ε}."""
        exponent = self.curve.ratio**2 + self.curve.epsilon
        return self._floor**2 * arb((-exponent).exp().mid())

    def _starts_open(self, piece: _Piece) -> bool:
        """Whether K counts: on an open curve that starts between the centres."""
        return len(self.pieces) == 1 and not piece.p_level.is_zero()

    def p_above(self) -> arb:
        """Return P(L > ε)."""
        total = arb(0)
        for piece in self.pieces:
            if self._starts_open(piece):
                total += piece.p_level
            total += self._integral(piece, _p_part(piece.p_level), self._floor)
            total += between_zero_and(piece.p_beyond)
        return total

    def p_below(self) -> arb:
        """Return P(L ≤ ε) without a complement: for where P(L > ε) is near 1."""
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
            total += between_zero_and(piece.q_beyond)
        return total

    def hockey_stick(self) -> arb:
        """Return P(L > ε) − e^ε Q(L > ε)."""
        total, factor = arb(0), self.curve.epsilon.exp()
        for piece in self.pieces:
            if self._starts_open(piece):
                total += piece.p_level
            total += self._integral(piece, _difference(piece), self._floor)
            total += between_zero_and(piece.p_beyond) - factor * between_zero_and(piece.q_beyond)
        return total

    def _integral(self, piece: _Piece, part: Callable[[Point], acb], floor: arb) -> arb:
        """∫ part(point) c (1−t²)^{a−1} dx over a piece."""
        curve, constant, power = self.curve, self.constant, self.curve.a - 1

        def integrand(x: acb, analytic: bool) -> acb:
            point = curve.at(x, analytic)
            weight = real_power(_sine_squared(point.t), power, analytic)
            return constant * weight * part(point)

        return integrate(integrand, piece.start, piece.end, floor)


def _p_part(level: arb) -> Callable[[Point], acb]:
    return lambda point: point.dt * _mass(point.rho, level)


def _q_part(level: arb, a: arb) -> Callable[[Point], acb]:
    """(1−u²)^{a−1} = (1−t²)^{a−1} (y/Y)^{a−1}."""

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
    """Φ(ρ) − K, through erfc where K is near 1 so that no digit is lost."""
    scaled = radius / arb(2).sqrt()
    if level.is_zero():
        return scaled.erf()
    return (1 - level) - scaled.erfc()


def _sine_squared(cosine: acb) -> acb:
    """1 − t²; factored only near ±1: elsewhere that ball would be 1/|t| times wider."""
    if cosine.abs_upper() < 0.75:
        return 1 - cosine * cosine
    return (1 - cosine) * (1 + cosine)


def real_power(base: acb, exponent: arb, analytic: bool) -> acb:
    """base^exponent, exponent ≥ 0; across 0 a ball by modulus, NaN where it is not analytic."""
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
    """∫ f from start to end, which may be balls: exact midpoints, plus width·sup|f| at the ends.

    `floor` is a size below which the value is of no interest: absolute errors of
    floor·2^{−precision} are accepted.
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


def between_zero_and(bound: arb) -> arb:
    """Return a ball that contains all from 0 to a bound."""
    half = bound.abs_upper() / 2
    return arb(half.mid(), half.abs_upper())
