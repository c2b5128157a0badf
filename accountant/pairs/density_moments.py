"""Rényi and Kullback–Leibler divergences that are integrals or sums without a closed form.

With w the density of P against Q and a > 1 the order, D_a = ln E_Q[w^a]/(a − 1); D_1 = E_Q[w ln w].

- *Mixtures of normal laws* P = Σ w_i N(a_i, 1), Q = Σ v_j N(b_j, 1): an integral over [−R, R'] in
  balls. Right of all means p ≤ φ(x − M) and q ≥ vφ(x − m), M the largest a_i, (v, m) the rightmost
  component of Q, so that with c = aM − (a − 1)m

      p^a q^{1−a} ≤ v^{1−a} e^{a(a−1)(M−m)²/2} φ(x − c),

  and the same holds on the left with the least means. For a = 1: −q ≤ p ln(p/q) ≤ p²/q.
- *A sample of Laplace noise*: w = 1 − q + q e^l with the loss l of the noise, which under Q has the
  atoms ±t of masses e^{−t}/2 and 1/2, and the density e^{−(l+t)/2}/4 between them.
- *A sample of logistic noise*: the same, with the density e^{−l/2}/(4 sinh(t/2)) on [−t, t] alone.
- *A sample of discrete Gaussian noise*: the same w at l = (2zs − s²)/2v, a sum over integers. As
  1 − q ≤ w ≤ max(1, e^l), beyond ±K every term is at most C(1 + e^{bl}) for some C and b, and the
  terms of either tail fall at least geometrically.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from flint import acb, arb

from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.theta import theta
from dpassay.accountant.pairs.gaussian import normal_cdf
from dpassay.accountant.pairs.rank_one.interruption import integral

Components: TypeAlias = Sequence[tuple[arb, arb]]
"""Weights > 0 and means."""
_MOST_TERMS = 1_000_000
"""Terms of a sum over integers: a minute."""
_SPARE = 16
"""Bits below the precision to which densities are followed."""


def mixture_renyi(p: Components, q: Components, order: arb) -> arb:
    """Return D_a of two mixtures of normal laws, for an order a > 1."""
    less = order - 1

    def curve(log_p: acb, log_q: acb) -> acb:
        return (order * log_p - less * log_q).exp()

    moment = _over_normals(p, q, curve, order) + arb(0).union(_tails(p, q, order))
    return moment.log() / less


def mixture_kullback_leibler(p: Components, q: Components) -> arb:
    """Return D_1 of two mixtures of normal laws."""

    def curve(log_p: acb, log_q: acb) -> acb:
        return log_p.exp() * (log_p - log_q)

    two = arb(2)
    return _over_normals(p, q, curve, two) + (-_outside(p, q, two)).union(_tails(p, q, two))


def _over_normals(
    p: Components, q: Components, curve: Callable[[acb, acb], acb], order: arb
) -> arb:
    """Return the integral of φ(x)·curve(ln p/φ, ln q/φ) between the ends for an order."""

    def density(parts: Components, x: acb, analytic: bool) -> acb:
        total = acb(0)
        for weight, mean in parts:
            total += weight * (mean * x - mean * mean / 2).exp()
        return total.log(analytic=analytic)

    def integrand(x: acb, analytic: bool) -> acb:
        bell = (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
        return bell * curve(density(p, x, analytic), density(q, x, analytic))

    left, right = _ends(p, q, order)
    return integral(integrand, left, right).real


def _ends(p: Components, q: Components, order: arb) -> tuple[arb, arb]:
    """Return exact points beyond which what is left out is negligible."""
    away = arb(math.sqrt(2 * math.log(2) * (ctx.prec + _SPARE)) + 1)
    found = []
    for side in (-1, 1):
        means = [_outermost(parts, side)[1] for parts in (p, q)]
        centre = order * means[0] - (order - 1) * means[1]
        farthest = max(float((side * mean).upper()) for mean in (*means, centre))
        found.append(arb(math.ceil(side * farthest)) + side * away)
    return found[0], found[1]


def _outermost(parts: Components, side: int) -> tuple[arb, arb]:
    return max(parts, key=lambda part: float(side * part[1].mid()))


def _tails(p: Components, q: Components, order: arb) -> arb:
    """Return an upper bound of ∫ p^a q^{1−a} beyond the ends."""
    total = arb(0)
    for side, end in zip((-1, 1), _ends(p, q, order), strict=True):
        (_, most), (weight, mean) = _outermost(p, side), _outermost(q, side)
        centre = order * most - (order - 1) * mean
        growth = order * (order - 1) * (most - mean) ** 2 / 2 - (order - 1) * weight.log()
        total += growth.exp() * normal_cdf(-side * (end - centre))
    return total.upper()


def _outside(p: Components, q: Components, order: arb) -> arb:
    """Return an upper bound of the mass of Q beyond the ends."""
    total = arb(0)
    for side, end in zip((-1, 1), _ends(p, q, order), strict=True):
        total += normal_cdf(-side * (end - _outermost(q, side)[1]))
    return total.upper()


def sampled_renyi(base: Base, share: arb, order: arb, *, mixed_first: bool) -> arb:
    """Return D_a for a sample with share q: E[w^a], or of the reversed pair E[w^{1−a}]."""
    power = order if mixed_first else 1 - order

    def value(w: acb, analytic: bool) -> acb:
        return (power * w.log(analytic=analytic)).exp()

    if mixed_first:
        moment = base(value, share, arb(1), order)
    else:
        moment = base(value, share, (power * (-share).log1p()).exp(), arb(0))
    return moment.log() / (order - 1)


def sampled_kullback_leibler(base: Base, share: arb, *, mixed_first: bool) -> arb:
    """Return D_1 for a sample: E[w ln w], or of the reversed pair −E[ln w].

    |w ln w| ≤ max(1, w²), and |ln w| ≤ max(w, −ln(1 − q)).
    """

    def both(w: acb, analytic: bool) -> acb:
        return w * w.log(analytic=analytic)

    def alone(w: acb, analytic: bool) -> acb:
        return -w.log(analytic=analytic)

    if mixed_first:
        return base(both, share, arb(1), arb(2))
    return base(alone, share, 1 - (-share).log1p(), arb(1))


Value: TypeAlias = Callable[[acb, bool], acb]
"""A function of w, analytic away from w ≤ 0."""
Base: TypeAlias = Callable[[Value, arb, arb, arb], arb]
"""Returns E[f(1 − q + q e^l)] from f, q, and C and b with |f| ≤ C max(1, e^{bl})."""


def laplace(distance: ExactReal) -> Base:
    """Return the means over the loss l of Laplace noise at a distance t, under Q."""

    def mean(value: Value, share: arb, size: arb, growth: arb) -> arb:
        t = distance.ball()

        def at(loss: acb, analytic: bool) -> acb:
            return value(1 - share + share * loss.exp(), analytic)

        def integrand(u: acb, analytic: bool) -> acb:
            loss = t * (2 * u - 1)
            return at(loss, analytic) * (-t * u).exp()

        atoms = at(acb(t), False).real * (-t).exp() / 2 + at(acb(-t), False).real / 2
        return atoms + t / 2 * integral(integrand, arb(0), arb(1)).real

    return mean


def logistic(distance: ExactReal) -> Base:
    """Return the means over the loss l of logistic noise at a distance t, under Q."""

    def mean(value: Value, share: arb, size: arb, growth: arb) -> arb:
        t = distance.ball()

        def integrand(u: acb, analytic: bool) -> acb:
            away = t * (u - arb("0.5"))
            return value(1 - share + share * (2 * away).exp(), analytic) * (-away).exp()

        return t / (2 * (t / 2).sinh()) * integral(integrand, arb(0), arb(1)).real

    return mean


def discrete_gaussian(parameter: ExactReal, shift: int) -> Base:
    """Return the means over the loss l(z) = (2zs − s²)/2v of discrete Gaussian noise, under Q."""

    def mean(value: Value, share: arb, size: arb, growth: arb) -> arb:
        v = parameter.ball()
        far = math.sqrt(2 * math.log(2) * (ctx.prec + _SPARE) * float(v))
        last = math.ceil(far + float(growth.upper()) * shift) + 2
        if last > _MOST_TERMS:
            raise NotApplicableError(
                f"This divergence of a sample of discrete Gaussian noise is a sum of more than "
                f"{_MOST_TERMS} terms. Ask for delta, epsilon or the trade-off function."
            )
        total = arb(0)
        for z in range(-last, last + 1):
            loss = arb(2 * z * shift - shift * shift) / (2 * v)
            mass = (-arb(z * z) / (2 * v)).exp()
            total += mass * value(acb(1 - share + share * loss.exp()), False).real
        left_out = arb(0)
        for side in (-1, 1):
            for rate in (arb(0), growth):  # of e^{bl − z²/2v}, which falls by a factor from z on
                z = side * (last + 1)
                term = (
                    rate * (2 * z * shift - shift * shift) / (2 * v) - arb(z * z) / (2 * v)
                ).exp()
                fall = ((side * 2 * rate * shift - arb(2 * last + 3)) / (2 * v)).exp()
                left_out += term / (1 - fall)
        bound = (size * left_out).upper()
        return (total + (-bound).union(bound)) / theta(parameter)

    return mean
