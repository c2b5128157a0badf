r"""The boundary {L = ε} of the worst event of the rank-one Gaussian law.

Law.  n = √σ_* z v with z ~ N(0, 1) and v uniform on the unit sphere of R^M, M > 2 (Ji and Li,
"Less is More", Definition 8): ‖n‖ is half-normal, the direction uniform, and

    density(x) ∝ ‖x‖^{−(M−1)} exp(−‖x‖² / (2σ_*)).

P is the law centred at s, Q the law centred at 0, ‖s‖ = Δ. In units of √σ_* the pair depends on
M and on the ratio κ = Δ/√σ_* only. Put a = (M−1)/2, ρ the distance from the centre of P and w
the distance from that of Q. Then L = ln dP/dQ = 2a ln(w/ρ) + (w² − ρ²)/2 increases with w, so
at a fixed ρ the event {L > ε} is a cap {cosine > t(ρ)} of the sphere.

With y = ρ², Y = w², d = Y − y the curve L = ε, ε ≥ 0, is run through by x, without any root:

    s = 1/(1+e^{−x}),  d = 2εs,  z = ε(1−s)/a = ln(Y/y),  y = 2a e^x z/(e^z − 1),  Y = y + d,
    t = cosine at the centre of P = (d − κ²)/(2κ√y),
    u = cosine at the centre of Q = (d + κ²)/(2κ√Y).

It starts on the segment between the centres (t = −1), where 4a h + (κ²/2) tanh h = ε with
4h = ln(Y/y) and e^x = κ² tanh(h)/(8ah). It meets t = +1 where 4a h + (κ²/2) coth h = ε: a convex
function of h with its minimum at sinh h = κ/√(8a), so never, or twice; there
e^x = κ² coth(h)/(8ah) and ρ = κ/(e^{2h} − 1).

Everything works at the ambient precision ``flint.ctx.prec``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

from flint import acb, arb

from dpassay.accountant.numbers.precision import ctx

GUARD_BITS = 24
"""Bits by which a curve is finer than the answer."""
_START_SLACK = 6  # bits by which the first bracket of a root is wider than the precision


class TouchingError(ArithmeticError):
    """The curve touches the axis within the width of the balls: neither case is certain."""


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
    """The curve {L = ε} for ε ≥ 0, a = (M−1)/2 and the ratio κ > 0."""

    epsilon: arb
    a: arb
    ratio: arb

    def at(self, x: acb, analytic: bool = False) -> Point:
        """Return the point at x; with `analytic`, NaN where the roots are not analytic on x."""
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
            # mean-value form: t(x) ∈ t(m) + t'(box)(x − m); where t turns it is far narrower
            middle = x.mid()
            form = self.at(middle, analytic).t + dt * (x - middle)
            if form.is_finite() and form.rad() < t.rad():
                t = form
        return Point(rho, w, d, z, t, u, dt, du)

    def start(self) -> arb:
        """Return x where the curve leaves the segment between the centres."""
        a, k2 = self.a, self.ratio * self.ratio
        if self.epsilon == 0:
            return (k2 / (8 * a)).log()

        def excess(h: arb) -> arb:
            return 4 * a * h + k2 / 2 * h.tanh() - self.epsilon

        def slope(h: arb) -> arb:
            return 4 * a + k2 / 2 * h.sech() ** 2

        first = self.epsilon / (4 * a + k2 / 2)  # left of the root: the excess is concave
        h = _certified_root(excess, _newton(excess, slope, first), rising=True)
        return (k2 * h.tanh() / (8 * a * h)).log()

    def exits(self) -> tuple[Exit, Exit] | None:
        """Return the near exit and the far re-entry on the axis, or None if there are none.

        Raises
        ------
        TouchingError
            If the curve comes too near to the axis to tell.
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
        # convex, and positive at both starts: Newton's steps are monotone
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
        """Return an exact x beyond which erfc(ρ/√2) is negligible at the working precision."""
        bits = (ctx.prec + 2 * GUARD_BITS) * arb(2).log()
        size = abs(self.ratio.log()) + self.epsilon * (1 + 1 / self.a) + self.ratio**2 / 2
        square = 2 * (bits + size)
        x = arb((square / (2 * self.a)).log().mid())
        while not self.at(acb(x)).rho.real ** 2 > square:
            x = arb((x + 1).mid())
        return x


def _newton(f: Callable[[arb], arb], slope: Callable[[arb], arb], start: arb) -> arb:
    """Newton's iteration from a side where it is monotone, on midpoints: to be certified."""
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
    """Return a ball round `guess` at whose ends `f` certainly has opposite signs."""
    guess = arb(guess.mid())
    step = guess * arb(2) ** (_START_SLACK - ctx.prec)
    while step < guess / 2:
        low, high = f(guess - step), f(guess + step)
        if (low < 0 and high > 0) if rising else (low > 0 and high < 0):
            return arb(guess, step.abs_upper())
        step = step * 4
    raise TouchingError
