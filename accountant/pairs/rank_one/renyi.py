r"""Rényi and Kullback–Leibler divergences of the rank-one Gaussian law: one integral each.

Notation of `dpassay.accountant.pairs.rank_one.curve`; β = order − 1, s = βa, b = β/2. At the centre
of P the moment E_P[e^{βL}] behaves as ∫ ρ^{−2s} dρ, and nowhere else is there any trouble, so

    D_order = +∞ exactly for s ≥ ½, that is for order ≥ M/(M−1).

Below, e^{βL} = ρ^{−2s} w^{2s} e^{b(w² − ρ²)}, and
w^{2s} = (s/Γ(1−s)) ∫_0^∞ (1 − e^{−λw²}) λ^{−s−1} dλ.
Over the directions e^{−μw²} has the mean e^{−μ(ρ²+κ²)} 0F1(M/2; μ²κ²ρ²), and over the radii that
becomes Kummer's function: with p = λ + ½ and μ = λ − b

    E_P[e^{βL}] = (s/Γ(1−s)) ∫_0^∞ (J(0) − J(λ)) λ^{−s−1} dλ = ∫_0^∞ (−J'(λ)) λ^{−s} dλ / Γ(1−s),
    J(λ) = (Γ(½−s)/√(2π)) p^{s−½} e^{−μκ²} 1F1(½−s; M/2; μ²κ²/p).

J is completely monotone on λ > −½. By Kummer's transformation J = p^{s−½} H(λ), where H contains
exp(κ²(−b − ½ + (b+½)²/p)) 1F1(M/2−½+s; M/2; −μ²κ²/p) and decreases for λ > b: that bounds what
lies beyond the ends of the quadrature. The divergence at order 1 is the limit (Frullani)

    E_P[L] = κ²/2 + a ∫_0^∞ ((1+2λ)^{−½} − J(λ)) dλ/λ,   J at s = b = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from flint import acb, arb

from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.rank_one.integrals import between_zero_and
from dpassay.accountant.pairs.rank_one.interruption import integral

_GUARD_BITS = 32
"""Bits beyond the precision at first, doubled where cancellation takes more."""
_ROUNDS = 3
"""Times they are doubled: what is not accurate then is returned with its radius."""


def renyi(order: arb, dimension: int, ratio: ExactReal) -> arb:
    """Return D_order(P‖Q) for a ball of orders > 1; NaN where it is unsure whether that is +∞."""
    pole = (order - 1) * (dimension - 1)
    if pole >= 1:
        return arb.pos_inf()
    if not pole < 1:
        return arb("nan")
    lost = _lost_bits(order - 1) + _lost_bits(ratio.ball())

    def at(end: arb) -> arb:
        exact = arb(end.mid())
        return _accurate(lambda: _renyi(exact, dimension, ratio.ball()), lost)

    if order.rad() == 0:
        return at(order)
    return at(order.lower()).union(at(order.upper()))  # the divergence grows with the order


def kullback_leibler(dimension: int, ratio: ExactReal) -> arb:
    """Return E_P[L]."""
    return _accurate(lambda: _kullback_leibler(dimension, ratio.ball()), _lost_bits(ratio.ball()))


def _lost_bits(small: arb) -> int:
    """Bits by which a quantity near 1 is more precise than its small difference from 1."""
    bits = (-small.abs_upper().log() / arb(2).log()).mid().ceil().unique_fmpz()
    return max(0, int(bits) + 2) if bits is not None else 0


def _accurate(compute: Callable[[], arb], lost: int) -> arb:
    """Evaluate with as many extra bits as it takes, within reason."""
    target, extra = ctx.prec, _GUARD_BITS + lost
    for _ in range(_ROUNDS):
        with ctx.workprec(target + extra):
            value = compute()
        if value.is_finite() and value.rel_accuracy_bits() >= target:
            break
        extra = 2 * extra
    return value


@final
@dataclass(frozen=True, slots=True)
class _Transform:
    """The function J(λ) = p^{s−½} H(λ)."""

    s: arb
    b: arb
    dimension: int
    ratio: arb

    def decreasing_part(self, at: acb) -> acb:
        """Return H(λ)."""
        p, mu = at + arb(1) / 2, at - self.b
        z = mu * mu * self.ratio**2 / p
        return self._scale(p) * _kummer(arb(1) / 2 - self.s, arb(self.dimension) / 2, z)

    def slope(self, at: acb, analytic: bool = False) -> acb:
        """Return −J'(λ), by d/dz e^{−z} 1F1(A; B; z) = −(1 − A/B) e^{−z} 1F1(A; B+1; z)."""
        half, k2 = arb(1) / 2, self.ratio**2
        first, second = half - self.s, arb(self.dimension) / 2
        p, mu = at + half, at - self.b
        z, growth = mu * mu * k2 / p, mu * (2 * p - mu) * k2 / p**2
        fall = first / p + k2 * ((self.b + half) / p) ** 2
        inner = fall * _kummer(first, second, z)
        inner += growth * (1 - first / second) * _kummer(first, second + 1, z)
        return (-first * p.log(analytic)).exp() * self._scale(p) * inner

    def _scale(self, p: acb) -> acb:
        half = arb(1) / 2
        exponent = self.ratio**2 * ((self.b + half) ** 2 / p - self.b - half)
        return (half - self.s).gamma() / (2 * arb.pi()).sqrt() * exponent.exp()


def _kummer(first: arb, second: arb, z: acb) -> acb:
    """Return e^{−z} 1F1(first; second; z) = 1F1(second − first; second; −z), 0 < first < second.

    Where z is not large this is the series, whose number of terms is set here: flint's own
    choice of a method fails for z between 1 and second².
    """
    size = z.abs_upper()
    if size < 2 * ctx.prec:
        terms = int(float(2 * size)) + ctx.prec // 2 + 16
        return (-z).exp() * z.hypgeom([acb(first)], [acb(second)], n=terms)
    return (-z).hypgeom_1f1(acb(second - first), acb(second))


def _renyi(order: arb, dimension: int, ratio: arb) -> arb:
    beta = order - 1
    s = beta * (dimension - 1) / 2
    transform = _Transform(s, beta / 2, dimension, ratio)

    def integrand(x: acb, analytic: bool) -> acb:
        return transform.slope(x.exp(), analytic) * ((1 - s) * x).exp()

    steepest = transform.slope(acb(0)).real / (1 - s)  # −J' falls
    left = _before(steepest, 1 - s)
    right = _beyond(transform, lambda end: 1 / end.sqrt())
    value = _integral(integrand, left, right)
    value += between_zero_and(steepest * ((1 - s) * left).exp())
    end = right.exp()  # beyond it ∫ λ^{−s} (−J') ≤ end^{−s} J(end) ≤ H(end)/√end
    value += between_zero_and(transform.decreasing_part(acb(end)).real / end.sqrt())
    return (value / (1 - s).gamma()).log() / beta


def _kullback_leibler(dimension: int, ratio: arb) -> arb:
    transform = _Transform(arb(0), arb(0), dimension, ratio)
    at_centre = 1 / arb(2).sqrt()  # (1 + 2λ)^{−½} = p^{−½}/√2

    def integrand(x: acb, analytic: bool) -> acb:
        at = x.exp()
        scale = (at + arb(1) / 2).rsqrt(analytic)
        return scale * (at_centre - transform.decreasing_part(at))

    def rest(end: arb) -> arb:  # ∫ (1 + 2λ)^{−½} dλ/λ from `end` on
        root = (1 + 2 * end).sqrt()
        return (2 / (root - 1)).log1p()

    # |E e^{−λρ²} − E e^{−λw²}| ≤ λ E|w² − ρ²| ≤ λ(κ² + 2κ)
    slope = ratio**2 + 2 * ratio
    left = _before(slope, arb(1))
    right = _beyond(transform, lambda end: arb(2).sqrt() * rest(end))
    value = _integral(integrand, left, right) + arb(0, (slope * left.exp()).abs_upper())
    end = right.exp()
    tail = arb(2).sqrt() * rest(end) * transform.decreasing_part(acb(end)).real
    value += rest(end) - between_zero_and(tail)
    return ratio**2 / 2 + (dimension - 1) * value / 2


def _before(size: arb, power: arb) -> arb:
    """Return an exact x at which size·e^{power·x} is below the working precision."""
    bits = (ctx.prec + 4) * arb(2).log()
    return arb((-(bits + abs(size.log())) / power).mid())


def _beyond(transform: _Transform, rest: Callable[[arb], arb]) -> arb:
    """Return an exact x > ln b after which rest·H(e^x) is below the working precision."""
    x = arb((1 / transform.ratio**2 + transform.b + 1).log().mid()).ceil()
    tolerance = arb(2) ** -ctx.prec
    while True:
        end = x.exp()
        if end > transform.b:
            tail = rest(end) * transform.decreasing_part(acb(end)).real
            if tail < tolerance:
                return x
        x += 1


def _integral(f: Callable[[acb, bool], acb], left: arb, right: arb) -> arb:
    tolerance = arb(2) ** -ctx.prec
    value: arb = integral(
        f,
        left,
        right,
        rel_tol=tolerance,
        abs_tol=tolerance,
        eval_limit=400_000,
        depth_limit=4 * ctx.prec,
        deg_limit=20 + ctx.prec,
    ).real
    return value
