"""Noise with the density e^{−‖x‖^p}, p ≥ 1, in d dimensions: of ℓ1, ℓ2 or ℓ∞, at a distance t.

P is at v of length t, Q at 0. Under P u = ‖x − v‖^p is Gamma(d/p), of survival S, and the loss is
‖x‖^p − u: at most ±ε where x, on the sphere of radius r = u^{1/p} about v, lies in the ball of
radius w = (u ± ε)^{1/p} about 0. With V for the share of that sphere, from some u₀ on

    E V = ∫ V over u < u₀ + S(u₀)V(u₀) + ∫ S dV,

P(L > ε) = 1 − E V with +ε, and Q(L > ε) = P(L < −ε) = E V with −ε, by reflection.

V is 0 where r + w ≤ t or r − w ≥ t, and 1 where w − r ≥ t. Between, in ℓ2 it is the part of the
sphere beyond a plane, of cosine τ = (w² − r² − t²)/2rt: a coordinate of the sphere has the density
(1 − τ²)^{(d − 3)/2}/B, and V = I_{(1 + τ)/2}((d − 1)/2, (d − 1)/2). In ℓ1 and ℓ∞ the balls meet
in one of radius s = (r + w − t)/2, whose volume grows with r at fixed w like that of the ball about
v, by the part V of its surface: V = (s/r)^{d−1}/2.

As p ≥ 1, |w − r| falls with u and r + w grows: spheres that meet go on to meet. Where S falls,
∫ S dV over an interval is at most S where it begins (Bonnet).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, final

from flint import acb, arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.arithmetic import crossing
from dpassay.verifier.checker.reals import FewDigitsError, Real, UnknownError, ball

_BITS, _PRECISION = 80, 256
"""Of an integral, and of its integrand, which loses digits where spheres touch."""
_BESIDE = arb(2) ** (-2 * _BITS)
"""Distance from there at which integrals begin."""
_MOST_DIMENSIONS = 10_000
"""Survivals of Gamma laws with more degrees of freedom take a minute."""
_FARTHEST = Fraction(2) ** 64
"""Where spheres meet at most: nearly e^(−2^64) is left of the noise there."""
_EVALUATIONS = 100_000
"""Of an integrand: some ten seconds."""
_SIXTEENTH = arb("0.0625")
"""Where an integral is looked at for its size."""


@final
class _Spheres:
    """The spheres on which the loss is ε ≥ 0 (`inner`: that about v is the smaller), or −ε.

    They are described by x, p-th power of the smaller radius; the other one is x + ε.
    """

    def __init__(
        self, norm: str, dimension: int, power: Any, t: Any, epsilon: Any, *, inner: bool
    ) -> None:
        if dimension > _MOST_DIMENSIONS:
            raise UnknownError(f"noise that falls with a norm of more than {_MOST_DIMENSIONS} axes")
        self.round, self.d, self.p = norm == "l2", dimension, ball(power)
        self.t, self.epsilon, self.inner = ball(t), ball(epsilon), inner
        self.a, self.half = self.d / self.p, arb(dimension - 1) / 2
        self.add = arb(0) if inner else self.epsilon
        self.apart = self._root(self.epsilon) < self.t
        self.low, self.high = self._start()

    def _root(self, x: arb) -> arb:
        return (x.log() / self.p).exp() if x > 0 else arb(0)

    def _start(self) -> tuple[arb, arb]:
        """Enclose the x from which on the spheres meet."""
        sign = 1 if self.apart else -1

        def gap(x: Fraction) -> Real:
            near, far = self._root(ball(x)), self._root(ball(x) + self.epsilon)
            return Real(sign * (self.t - far) - near)

        high = Fraction(1)
        while not gap(high) <= 0:
            high *= 2
            if high > _FARTHEST:
                raise UnknownError("spheres that meet so far out")
        low, high = crossing(gap, Fraction(0), high, _PRECISION)
        return ball(low), ball(high) + _BESIDE

    def _survival(self, x: acb) -> acb:
        """Return S(u), about the middle of a ball by S′ = −e^{−u} u^{a − 1}/Γ(a)."""
        u = x + self.add
        if u == 0:
            return acb(1)
        middle = acb(u.real.mid(), u.imag.mid())
        slope = ((self.a - 1) * u.log() - u - self.a.lgamma()).exp()
        off = arb(0, (abs(slope) * abs(u - middle)).upper())
        return middle.gamma_upper(acb(self.a), regularized=1) + acb(off, off)

    def _share(self, x: acb, analytic: bool) -> tuple[acb, acb, acb]:
        """Return (1 ± τ)/2, or s/r and what it lacks of 1, and dV/dx.

        With ℓ = ln(1 + ε/x) the gap between the radii is x^{1/p}(e^{ℓ/p} − 1).
        """
        t, p = self.t, self.p
        near = (x.log(analytic=analytic) / p).exp()
        far = ((x + self.epsilon).log(analytic=analytic) / p).exp()
        more = (1 + self.epsilon / x).log(analytic=analytic)
        gap = near * (more / p).expm1() if x.real > self.epsilon else far - near
        fall = near / (p * x) * ((1 / p - 1) * more).expm1()
        r, dr = near, near / (p * x)
        if not self.inner:
            r, dr, gap, fall = far, dr + fall, -gap, -fall  # w − r and its slope
        if not self.round:
            inside = 1 + (gap - t) / (2 * r)
            power = ((self.d - 2) * inside.log(analytic=analytic)).exp()
            slope = self.half * power * (fall - (gap - t) / r * dr) / (2 * r)
            return inside, 1 - inside, slope
        tilt = (gap * gap - t * t) / (2 * r * t)
        if near.real > 2 * t:
            tau = gap / t + tilt
            above, below = (1 + tau) / 2, (1 - tau) / 2
        else:  # products, narrow where spheres touch
            both = near + far
            above = (t + gap) * (both - t) / (4 * r * t)
            below = (t - gap) * (both + t) / (4 * r * t)
        power = ((self.half - 1) * (4 * above * below).log(analytic=analytic)).exp()
        slope = fall * (1 + gap / r) / t - tilt * dr / r
        return above, below, power * slope / self._sphere

    @property
    def _sphere(self) -> arb:
        """Return B."""
        half = self.half
        return arb.pi().sqrt() * (half.lgamma() - (half + arb("0.5")).lgamma()).exp()

    def _first(self) -> arb:
        """Return V where the integral begins, or 1 − V of the inner sphere."""
        above, below, _ = (side.real for side in self._share(acb(self.high), False))
        if not (above > 0 and below > 0):
            raise FewDigitsError("where spheres meet")
        if not self.round:
            part = above ** (self.d - 1) / 2
            return 1 - part if self.inner else part
        one, other = (below, above) if self.inner else (above, below)
        if one > other:
            return 1 - other.beta_lower(self.half, self.half, regularized=1)
        return one.beta_lower(self.half, self.half, regularized=1)

    def chance(self) -> arb:
        """Return P(L > ε) of the inner sphere, else P(L < −ε)."""
        sign = -1 if self.inner else 1
        before, at = (self._survival(acb(x)).real for x in (self.low, self.high))
        found = at * self._first() + arb(0).union(before - at)
        if self.inner and self.apart:
            found += 1 - before
        if self.d == 1:  # V is constant
            return found
        nats = _BITS * arb.const_log2()
        end = self.high.max(self.a) + nats + (nats * nats + 2 * nats * self.a).sqrt()
        last, tolerance = (end - self.high).sqrt().mid(), arb(2) ** -_BITS

        def curve(y: acb, analytic: bool) -> acb:
            """Return the integrand at x = high + y²: roots are smooth where spheres touch."""
            x = self.high + y * y
            return sign * 2 * y * self._survival(x) * self._share(x, analytic)[2]

        size = abs(curve(acb(last * _SIXTEENTH), False)).upper()
        integral = acb.integral(
            curve, acb(0), acb(last),
            rel_tol=tolerance, abs_tol=size * tolerance, eval_limit=_EVALUATIONS,
        ).real  # fmt: skip
        rest = self._survival(acb(self.high + last * last)).real
        return found + integral + arb(0, rest.upper())


@lru_cache(maxsize=256)
def radial_tails(norm: str, dimension: int, power: Any, t: Any, epsilon: Any) -> tuple[Real, Real]:
    """Return P(L > ε) and Q(L > ε) for ε ≥ 0."""
    with ctx.workprec(_PRECISION):
        p, q = (
            Real(_Spheres(norm, dimension, power, t, epsilon, inner=inner).chance())
            for inner in (True, False)
        )
    return p, q
