"""The dominating pair of noise with any density of one mode, at a distance t.

Where the loss exceeds ε is a finite union of intervals, whose ends are enclosed
(`dpassay.accountant.density.loss`); H(ε) = P(L > ε) − e^ε Q(L > ε) takes the masses of those. A
place that stays open adds between 0 and P(it)·(1 − e^{ε − l})⁺, l the largest loss there: next to a
crossing that is of the second order in its width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from flint import acb, arb

from dpassay.accountant.core.pair import Known, Pair, Tails
from dpassay.accountant.density.law import Law, law, negligible
from dpassay.accountant.density.loss import ABOVE, BELOW, OPEN, Stretch, losses
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.integral import integral
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.theta import theta
from dpassay.accountant.pairs.gaussian import normal_cdf

_DOUBLINGS = (0, 2, 4, 6, 9, 12, 16, 20, 25, 30, 40, 50, 60, 80, 100, 130, 160, 200)
"""How often the reach of the losses is doubled where a tail matters."""
_TOLD = 20
"""Bits of the largest loss from which on a farther reach has to add some."""
_WIDE_BITS = 60
"""Accuracy at which the largest loss is taken: more than the usual width has."""


@final
@dataclass(frozen=True)
class OwnDensityPair(Pair):
    """The laws of t + X and X, X of the density f (mirrored: of −X), t > 0."""

    law_name = "own-density"

    density: str
    distance: Fraction
    mirrored: bool

    def _law(self) -> Law:
        found = law(self.density, "density")
        return found.mirrored if self.mirrored else found

    @property
    def known(self) -> Known:
        """Return closed forms, and where a search may start."""
        return Known(
            # integrals take longer for more
            width=lambda: Fraction(1, 10**12),
            max_loss=self._exact_max_loss,
            finite_loss=self._max_finite_loss,
        )

    def _exact_max_loss(self) -> ExactReal | None:
        """Return st where −(ln f)′ is at most s, and tends to it on the right; else None."""
        steepest = self._law().steepest
        return None if steepest is None else ExactReal.of_rational(steepest * self.distance)

    def reverse(self) -> OwnDensityPair:
        """Return X against t + X: up to a shift, −X moved by t against −X."""
        return OwnDensityPair(self.density, self.distance, not self.mirrored)

    def _masses(self, parts: Sequence[Stretch]) -> tuple[arb, arb]:
        """Return P and Q of some stretches."""
        found = self._law()
        whole = found.total()
        p, q = arb(0), arb(0)
        for part in parts:
            p += found.mass(_moved(part.low, self.distance), _moved(part.high, self.distance))
            q += found.mass(part.low, part.high)
        return p / whole, q / whole

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return ∫ (p − e^ε q)⁺."""
        e = epsilon.ball()
        known = self.known.max_loss()
        if known is not None and epsilon >= known:
            return arb(0)
        for doublings in _DOUBLINGS:
            parts = losses(self._law(), self.distance, doublings).against(e, epsilon.sign)
            if all(part.side == ABOVE for part in parts):
                return -e.expm1()
            if all(part.side == BELOW for part in parts):
                return arb(0)
            p, q = self._masses(joined(parts, ABOVE))
            value = p - e.exp() * q
            near, far = arb(0), arb(0)
            for part in parts:
                if part.side == OPEN and (most := self._most(part, e)) > 0:
                    inside = part.low is not None and part.high is not None
                    near, far = (near + most, far) if inside else (near, far + most)
            least = (value.lower() + near).max(negligible() ** 4)
            if far <= least * negligible():
                break
        return (value + arb(0).union(near + far)).max(arb(0))

    def _most(self, part: Stretch, epsilon: arb) -> arb:
        """Return an upper bound of ∫ (p − e^ε q)⁺ over a stretch whose side is open."""
        share = arb(1) if part.most is None else -(epsilon - part.most).expm1()
        if not share > 0 and share.upper() <= 0:
            return arb(0)
        return self._at_most(part, self.distance) * share.upper().min(arb(1))

    def _at_most(self, part: Stretch, shift: Fraction) -> arb:
        """Return an upper bound of the mass of a stretch."""
        found = self._law()
        return found.at_most(_moved(part.low, shift), _moved(part.high, shift)) / found.total()

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the masses of the stretches above and below ε."""
        known, other = self.known.max_loss(), self.reverse().known.max_loss()
        if known is not None and epsilon >= known:
            return Tails(arb(0), arb(1), arb(0), arb(1))
        if other is not None and epsilon < -other:
            return Tails(arb(1), arb(0), arb(1), arb(0))
        for doublings in _DOUBLINGS:
            found = losses(self._law(), self.distance, doublings)
            parts = found.against(epsilon.ball(), epsilon.sign)
            p_open, q_open = (
                sum((self._at_most(part, shift) for part in joined(parts, OPEN)), start=arb(0))
                for shift in (self.distance, Fraction(0))
            )
            (p_above, q_above), (p_below, q_below) = (
                self._masses(joined(parts, side)) for side in (ABOVE, BELOW)
            )
            if not any(part.side == OPEN and None in (part.low, part.high) for part in parts):
                break
            least = [side.lower().max(negligible() ** 4) for side in (p_above, q_below)]
            if p_open <= least[0] * negligible() and q_open <= least[1] * negligible():
                break
        p, q = (arb(0).union(each.upper()) for each in (p_open, q_open))
        sides = {part.side for part in parts}
        if len(sides) == 1 and OPEN not in sides:
            one, none = (arb(1), arb(0)) if ABOVE in sides else (arb(0), arb(1))
            return Tails(one, none, one, none)
        return Tails(p_above + p, p_below + p, q_above + q, q_below + q)

    def renyi(self, order: arb) -> arb:
        """Raise NotApplicableError."""
        raise NotApplicableError(
            "Rényi divergences of a density that is a formula are not enclosed. Ask for delta, "
            "epsilon or beta."
        )

    def max_loss(self) -> arb:
        """Return the supremum of l, ∞ where the slope of ln f is unbounded in the right tail."""
        known = self.known.max_loss()
        if known is not None:
            return known.ball()
        value, bits = arb(0).union(arb.pos_inf()), 0
        for doublings in _DOUBLINGS:
            found = losses(self._law(), self.distance, doublings).most()
            if not found.is_finite():
                return value if found.is_nan() else found
            # each contains the supremum, and far out a difference of large logarithms says little
            value = value.intersection(found) if value.is_finite() else found
            last, bits = bits, found.rel_accuracy_bits()
            if bits > min(_WIDE_BITS, ctx.prec // 2) or (_TOLD < bits <= last + 1):
                break
        return value

    def infinity_mass(self) -> arb:
        """Return the mass of P where Q has none."""
        found = losses(self._law(), self.distance, 0)
        return self._masses(joined(found.missed(), ABOVE))[0]

    def _max_finite_loss(self) -> arb:
        """Return the supremum of the finite losses."""
        return losses(self._law(), self.distance, _DOUBLINGS[-1] // 2).most(finite=True)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Name the intervals where L > ε, to six digits."""
        found = losses(self._law(), self.distance, 2).against(epsilon.ball(), epsilon.sign)
        shown = ", ".join(
            f"({_shown(part.low, '-∞')}, {_shown(part.high, '∞')})" for part in joined(found, ABOVE)
        )
        side = "lower" if self.mirrored else "higher"
        return (
            f"noise in {shown or 'no interval'} of the true answer under Q, in units of the "
            f"density{', mirrored' if self.mirrored else ''}; the answer under P is "
            f"{ExactReal.of_rational(self.distance)} {side}"
        )


def joined(parts: Sequence[Stretch], side: int) -> list[Stretch]:
    """Return the stretches of one side, neighbours as one."""
    found: list[Stretch] = []
    for part in parts:
        if part.side != side:
            continue
        if found and found[-1].high is not None and found[-1].high == part.low:
            found[-1] = Stretch(found[-1].low, part.high, side)
        else:
            found.append(part)
    return found


def _moved(end: Fraction | None, shift: Fraction) -> Fraction | None:
    return None if end is None else end - shift


def _shown(end: Fraction | None, infinite: str) -> str:
    return infinite if end is None else f"{float(end):.6g}"


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
