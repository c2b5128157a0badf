"""The releases of a product: the tails of their losses, and where their finite losses end.

*A density given by a formula* (`own_density`). The tails are float sums over many cells of the
line. Consider a cell of width w and midpoint m. Taylor's formula gives ∫ f = w f(m) + w³ f″(ξ)/24,
and the loss differs from that at m by at most w/2 times its steepest slope; ranges bound both. Let
A be the union of the cells whose loss at the midpoint exceeds l. Statement: H(l) exceeds
P(A) − e^l Q(A) by at most the sum of p(e^r − 1) over the cells whose loss may be l. Here p is the
mass of the cell, and r bounds the distance of the loss from that at the midpoint. Proof: p(e^r − 1)
bounds what A has too much of p − e^l q on such a cell, or lacks.

- If 2r exceeds 1 for a cell, A includes the cell only if its loss exceeds l throughout. Then A
  lacks at most p.
- Between the floats on both sides of a kink, the loss may be that of any piece next to it, and the
  mass is at most that of all of them.
- Each tail beyond the cells is one more cell.

First a division into few cells finds where more cells make H(l) more exact. That choice needs no
proof.

A sample of a density uses the same cells with mixed masses. Its loss is an increasing function of
the loss l of the pair: ln(1 + y) with y = s(e^l − 1), or −ln(1 + y) with y = s(e^{−l} − 1). A few
roundings of y change it by as many times |y|/(1 + y). Where e^l overflows, it is l + ln s.

*The envelope of tables* (`envelope_of`). At ε the profile of a pair is the maximum of
p(S) − e^ε q(S) over the sets S of outcomes with largest p/q. For several tables the maximum of
their profiles is attained at a corner of the upper convex hull of their points (q(S), p(S)). The
steps between adjacent corners are the masses of a table whose profile is this maximum.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, final

from flint import arb

from dpassay.accountant.composition.product import Factor, expanded
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.pair import Pair, max_finite_loss
from dpassay.accountant.density.law import Law, law
from dpassay.accountant.density.ranges import Range, Ranges, number_ends, total
from dpassay.accountant.density.tree import derivative
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms.additive.laplace import (
    LaplacePair,
    LogisticPair,
    TruncatedLaplacePair,
)
from dpassay.accountant.mechanisms.wrappers.channel import Tabulated
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.pairs.discrete import DiscreteGaussianPair
from dpassay.accountant.pairs.finite import FinitePair, finite, hull, masses, tables
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.own_density import OwnDensityPair
from dpassay.accountant.pairs.subsampled import EnvelopePair, GaussianMixturePair, SubsampledPair

# --- Probabilities P(A) and Q(A) of sets A near {L > l}, for many losses l at once, in floats -----
# For every l there is a set A, equal or close to {L > l}, for which a `Tail` guarantees
#
#     |above_p − P(A)| ≤ error_p,  |above_q − e^l Q(A)| ≤ error_q,
#     H(l) ≤ P(A) − e^l Q(A) + error_p.
#
# A need not be the best set, since P(A) − zQ(A) ≤ H(ln z) for every set. Let A = {X > x} with the
# loss l' = L(x) near l instead of l. Between A and the best set, e^{l−L} lies within |l' − l| of 1.
# So H(l) exceeds P(A) − e^l Q(A) by at most |l' − l| times the mass between.
#
# This mass is at most 1. For mixtures of normal laws with means within r there is a better bound.
# As |L''| ≤ r²/2, the error of x is at most d = 2|l' − l|/L'(x) if L'(x)² ≥ 2r²|l' − l|. If also
# (|x| + r + 1)d ≤ 0.3, the mass at most doubles, because the density of a normal law at t is at
# most t⁺ + 1 times its tail.


UNIT = 2.0**-53
"""Relative error of one float operation."""
NORMAL_ERROR = 16.0
"""|ndtr(t)/Φ(t) − 1| ≤ NORMAL_ERROR (1 + min(t, 0)²) UNIT; tests against balls find at most 4."""
_HALF_ROOT = math.sqrt(0.5)
_FEW = 1 << 14
"""Largest number of values for `math.erfc`, one by one: 1.5 ms. Loading SciPy takes 300 ms."""
_TINY = 1e-290
"""Below this, SciPy's normal probabilities may underflow: the value serves as its own error."""
_EDGE = 40.0
"""Standard deviations beyond which the mass of a normal law is below 1e-340."""
_TABLE = 1 << 13
"""Points of the table that inverts a loss, before Newton's method refines it."""
_MOST_INTEGERS = 1 << 17
"""Largest integer in a table: a second of work, and standard deviations up to about 3,200."""


@final
@dataclass(frozen=True, eq=False)
class Tail:
    """Probabilities of sets A near {L > l}, and their error bounds, for an array of losses l."""

    above_p: Array
    above_q: Array
    """e^l Q(A)."""
    error_p: Array
    error_q: Array

    def part(self, places: slice) -> Tail:
        """Return the tails at some of the losses."""
        columns = (self.above_p, self.above_q, self.error_p, self.error_q)
        return Tail(*(each[places] for each in columns))


Survival: TypeAlias = Callable[[Array], Tail]


@final
class NormalMixtures:
    """P = Σ w_i N(a_i, 1), Q = Σ v_j N(b_j, 1) with every a_i ≥ every b_j: L(x) increases."""

    def __init__(
        self,
        p: list[tuple[float, float]],
        q: list[tuple[float, float]],
        place: Callable[[Array], tuple[Array, Array, Array]] | None = None,
    ) -> None:
        self._p, self._q = p, q
        self._place = place or self._tabled
        means = [mean for _, mean in p + q]
        self._ends = min(means) - _EDGE, max(means) + _EDGE
        self._range = max(means) - min(means) + 2 * max(map(abs, means)) * UNIT
        self._size = max(map(abs, means))
        self._table: tuple[Array, Array] | None = None

    def __call__(self, l: Array) -> Tail:  # noqa: E741 (the loss)
        """Return the probabilities of {X > x} with L(x) about l."""
        x, off, slope = self._place(l)
        x = np.clip(x, *self._ends)
        known = {mean: normal_above(mean, x) for mean in {mean for _, mean in self._p + self._q}}
        above_p, error_p = _mixed(self._p, known)
        above, error_q = _mixed(self._q, known)
        growth = np.exp(l)
        error_q = growth * (error_q + 4 * UNIT * (1 + np.abs(l)) * above)
        step = 2 * off / np.maximum(slope, _TINY)
        near = slope * slope >= 2 * self._range**2 * off
        near &= (np.abs(x) + self._size + self._range + 1) * step <= 0.3
        error_p += off * np.where(near, 2 * above_p, 1.0)
        error_p += np.where(above < _TINY, 2 * above_p + _TINY, 0.0)
        return Tail(above_p, growth * above, error_p, error_q)

    def _tabled(self, l: Array) -> tuple[Array, Array, Array]:  # noqa: E741
        """Invert L by a table and Newton's method; return x, a bound on |L(x) − l|, and L'(x)."""
        if self._table is None:
            x = np.linspace(*self._ends, _TABLE)
            self._table = x, np.maximum.accumulate(self._loss(x)[0])
        places, losses = self._table
        x = np.interp(l, losses, places)
        at = np.clip(np.searchsorted(losses, l), 1, _TABLE - 1)
        for _ in range(3):
            loss, slope = self._loss(x)
            x = np.clip(x - (loss - l) / np.maximum(slope, _TINY), places[at - 1], places[at])
        loss, slope = self._loss(x)
        off = np.abs(loss - l) + 64 * UNIT * (1 + (np.abs(x) + self._size) * self._size)
        beyond = (l <= losses[0]) | (l >= losses[-1])  # the mass beyond the ends underflows
        return x, np.where(beyond, 0.0, off), 0.9 * slope

    def _loss(self, x: Array) -> tuple[Array, Array]:
        parts, slopes = [], []
        for side in (self._p, self._q):
            weights, means = (np.array(each)[:, None] for each in zip(*side, strict=True))
            logs = np.log(weights) + means * (x - means / 2)
            whole = np.logaddexp.reduce(logs, axis=0)
            parts.append(whole)
            slopes.append((means * np.exp(logs - whole)).sum(axis=0))
        return parts[0] - parts[1], slopes[0] - slopes[1]


def normal_below(t: Array) -> Array:
    """Return Φ(t) with the error of NORMAL_ERROR, from `math.erfc` where SciPy would be slower."""
    if len(t) <= _FEW:
        return np.fromiter(map(math.erfc, (t * -_HALF_ROOT).tolist()), float, len(t)) / 2
    from scipy.special import ndtr  # loading it takes as long as 3 million values of erfc

    return np.asarray(ndtr(t))


def normal_above(mean: float, x: Array) -> tuple[Array, Array]:
    """Return Φ(a − x) and a bound on its relative error, for a mean a known to within UNIT."""
    t = mean - x
    left = np.minimum(t, 0.0)
    moved = 2 * UNIT * (abs(mean) + np.abs(t))  # the error of t
    grows = (1 - left) * 1.1 * (t < _EDGE)  # a bound on the density over Φ(t)
    return normal_below(t), (NORMAL_ERROR * (1 + left * left) + 6) * UNIT + grows * moved


def _mixed(
    parts: list[tuple[float, float]], known: dict[float, tuple[Array, Array]]
) -> tuple[Array, Array]:
    """Return Σ w Φ(a − x) and a bound on its error, for weights known to within UNIT."""
    total: Array = np.zeros(1)
    error: Array = np.zeros(1)
    for weight, mean in parts:
        share, relative = known[mean]
        own = weight * share
        total, error = total + own, error + own * relative
    return total, error + len(parts) * 2 * UNIT * total


def gaussian(mu: float) -> NormalMixtures:
    """Return the tails of P = N(μ, 1), Q = N(0, 1)."""

    def place(l: Array) -> tuple[Array, Array, Array]:  # noqa: E741
        x = l / mu + mu / 2
        return x, 8 * UNIT * (np.abs(l) + mu * mu + mu * np.abs(x)), np.full_like(l, 0.9 * mu)

    return NormalMixtures([(1.0, mu)], [(1.0, 0.0)], place)


def sampled_gaussian(mu: float, q: float, rest: float, *, mixed_first: bool) -> NormalMixtures:
    """Return the tails of P = (1 − q)N(0, 1) + qN(μ, 1) and Q = N(0, 1); `rest` is 1 − q.

    Unless `mixed_first`, P = N(μ, 1), and Q is the mixture (1 − q)N(μ, 1) + qN(0, 1). With
    c = μx − μ²/2 the loss is ln(1 − q + qe^c), or −ln(1 − q + qe^{−c}).
    """
    sign = 1.0 if mixed_first else -1.0

    def place(l: Array) -> tuple[Array, Array, Array]:  # noqa: E741
        rise = np.expm1(sign * l)
        inside = rise + q > 0
        c = sign * np.log1p(np.where(inside, rise / q, 0.0).clip(-1 + 1e-16))
        x = np.where(inside, c / mu + mu / 2, -sign * np.inf)
        c = np.where(inside, mu * x - mu * mu / 2, 0.0)
        weight = q * np.exp(np.minimum(sign * c, 700.0))
        loss = sign * np.log1p(q * np.expm1(np.minimum(sign * c, 700.0)))
        share = weight / (rest + weight)
        off = np.abs(loss - l) + 8 * UNIT * (
            np.abs(l) + share * (mu * mu + mu * np.abs(x)) + np.abs(np.expm1(-sign * loss))
        )
        return x, np.where(inside, off, 0.0), 0.9 * mu * share

    mixture = [(rest, 0.0), (q, mu)] if mixed_first else [(rest, mu), (q, 0.0)]
    if mixed_first:
        return NormalMixtures(mixture, [(1.0, 0.0)], place)
    return NormalMixtures([(1.0, mu)], mixture, place)


def laplace(distance: float) -> Survival:
    """Return the tails of P = Lap(t, 1) and Q = Lap(0, 1).

    P(L > l) = 1 − a and e^l Q(L > l) = a with a = e^{(l−t)/2}/2, for −t ≤ l < t.
    """

    def survival(l: Array) -> Tail:  # noqa: E741
        a = np.exp((l - distance) / 2) / 2
        inside, before = (l >= -distance) & (l < distance), l < -distance
        everything = np.exp(np.minimum(l, 700.0))
        f = np.where(before, 1.0, np.where(inside, 1 - a, 0.0))
        zg = np.where(before, everything, np.where(inside, a, 0.0))
        error_q = 4 * UNIT * (1 + np.abs(l) + distance) * zg
        # rounding may put an atom on the wrong side of l, or change the loss
        near = np.abs(l) <= distance * (1 + 8 * UNIT)
        error_p = np.where(near, 8 * UNIT * distance, 0.0)
        return Tail(f, zg, error_p + 4 * UNIT * f, error_q)

    return survival


def truncated_laplace(distance: float, end: float) -> Survival:
    """Return the tails of Laplace laws truncated to [−a, a] (Q) and to [d − a, d + a] (P), d ≤ a.

    With t = (d − l)/2, |l| ≤ d and N = 2(1 − e^{−a}),
    P(L > l) = (1 − e^{−a} + 1 − e^{−t})/N and e^l Q(L > l) = (e^{−t} − e^{l−a})/N;
    L = ∞ has the mass e^{−a}(e^d − 1)/N. As 2t ≥ 0 and l ≤ a, both exponentials are at most 1, and
    an error δ of an exponent changes them by at most δ.
    """
    half = -math.expm1(-end)
    infinity = math.exp(distance - end) * -math.expm1(-distance) / (2 * half)

    def survival(l: Array) -> Tail:  # noqa: E741
        t = np.maximum((distance - l) / 2, 0.0)
        before, beyond = l < -distance, l >= distance
        f = (half - np.expm1(-t)) / (2 * half)
        zg = (np.exp(-t) - np.exp(np.minimum(l - end, 0.0))) / (2 * half)
        growth = np.exp(np.minimum(l, 700.0))
        f = np.where(before, 1.0, np.where(beyond, infinity, f))
        zg = np.where(before, growth * (1 - infinity), np.where(beyond, 0.0, zg))
        # rounding may put an atom on the wrong side of l, or change the loss
        near = np.abs(l) <= distance * (1 + 8 * UNIT)
        far = min(end, 800.0)  # e^{−a} underflows beyond
        moved = 8 * UNIT * (1 + np.abs(l) + distance)
        inside = near * (moved + 8 * UNIT * far * np.exp(np.minimum(l - end, 0.0))) / half
        error_p = inside + 4 * UNIT * (4 + far) * infinity + 4 * UNIT * f
        return Tail(f, zg, error_p, inside + 2 * moved * zg + before * growth * error_p)

    return survival


def logistic(distance: float) -> Survival:
    """Return the tails of logistic laws at t (P) and at 0 (Q).

    With r = e^{(l−t)/2}, N = 1 − e^{−t} and |l| ≤ t, P(L > l) = (1 − r)/N and
    e^l Q(L > l) = r(1 − r)/N. A rounding error δ of (l − t)/2 changes r by rδ. Beyond t, the same
    error of t changes P(L > l) by as much.
    """
    whole = -math.expm1(-distance)

    def survival(l: Array) -> Tail:  # noqa: E741
        half = np.minimum((l - distance) / 2, 0.0)
        before, beyond = l < -distance, l > distance * (1 + 8 * UNIT)
        r, f = np.exp(half), -np.expm1(half) / whole
        moved = 4 * UNIT * (np.abs(l) + distance)
        error_p = r * moved / whole + 8 * UNIT * f
        f = np.where(before, 1.0, f)
        zg = np.where(before, np.exp(np.minimum(l, 700.0)), r * f)
        error_q = r * error_p + 2 * (moved + 4 * UNIT) * zg
        return Tail(f, zg, np.where(beyond, 0.0, error_p), np.where(beyond, 0.0, error_q))

    return survival


def discrete_gaussian(parameter: float, shift: int) -> Survival | None:
    """Return the tails of Z + s (P) and Z (Q) with P(Z = z) ∝ e^{−z²/2v}; None if a table is long.

    L(z) = (2zs − s²)/2v. So {L > l} = {z ≥ m} with the least integer m > x = lv/s + s/2. The table
    has the sums of the masses over |z| ≤ K = ⌈_EDGE √v⌉ + s + 1, and the sums of their errors: each
    exponent z²/2v has at most three rounding errors. The mass beyond K is below
    e^{−_EDGE²/2} < _TINY. If x is so close to an integer that m may be off by one, the set is that
    of a loss l' at distance at most `off` from l.
    """
    last = math.ceil(_EDGE * math.sqrt(parameter)) + shift + 1
    if last > _MOST_INTEGERS:
        return None
    z = np.arange(-last, last + 1, dtype=np.longdouble)
    exponents = z * z / (2 * parameter)
    masses = np.exp(-exponents)
    sums, errors = (
        np.concatenate([np.cumsum(each[::-1])[::-1], [np.longdouble(0)]])
        for each in (masses, masses * (3 * exponents + 1) * UNIT)
    )
    ratio = errors[0] / sums[0] + 2 * len(z) * np.finfo(np.longdouble).eps  # of the total and sums
    tails = (sums / sums[0]).astype(float)
    margins = ((errors + 2 * ratio * sums) / sums[0]).astype(float) + 2 * UNIT * tails + _TINY

    def at_least(m: Array) -> tuple[Array, Array]:
        index = np.clip(m + last, 0, len(tails) - 1).astype(np.int64)
        return tails[index], margins[index]

    def survival(l: Array) -> Tail:  # noqa: E741
        m = np.floor(l * parameter / shift + shift / 2) + 1
        growth = np.exp(l)
        above_p, error_p = at_least(m - shift)
        above, error_q = at_least(m)
        off = 8 * UNIT * (np.abs(l) + shift * shift / parameter)
        error_p += 2 * off * at_least(m - 1 - shift)[0]
        error_q = growth * (error_q + 4 * UNIT * (1 + np.abs(l)) * above)
        return Tail(above_p, growth * above, error_p, error_q)

    return survival


def sampled(inner: Survival, q: float, rest: float, *, mixed_first: bool) -> Survival:
    """Return the tails of ((1 − q)Q + qP, Q) or, unless `mixed_first`, of (P, (1 − q)P + qQ).

    `inner` are the tails of (P, Q), and `rest` is 1 − q.
    """
    sign = 1.0 if mixed_first else -1.0

    def survival(l: Array) -> Tail:  # noqa: E741
        rise = np.expm1(sign * l)
        weight = rise + q
        inside = weight > 4 * UNIT * q
        c = sign * np.log1p(np.where(inside, rise / q, 0.0))
        left = c - 16 * UNIT * (np.abs(c) + np.abs(rise) / np.where(inside, weight, np.inf))
        both = inner(np.concatenate([c, left]))
        own, wide = both.part(slice(len(c))), both.above_p[len(c) :]
        growth, shrink = np.exp(l), np.exp(-c)
        g, error_g = own.above_q * shrink, own.error_q * shrink
        error_g += 8 * UNIT * (1 + np.abs(c)) * g
        # The loss at c has the error due to the rounding of c, up to 4|y|/(1 + y) + 2|c| units for
        # y = rise/q. An atom may be in between, so the mass is taken a little to the left.
        off = np.abs(np.expm1(-sign * l)) + np.abs(l) + q * (1 + growth)
        off *= 16 * UNIT * (1 + np.abs(c))
        if mixed_first:
            f, zg = rest * g + q * own.above_p, growth * g
            error_p, error_q = rest * error_g + q * own.error_p, growth * error_g
            f, zg = np.where(inside, f, 1.0), np.where(inside, zg, growth)
        else:
            f, zg = own.above_p, growth * (rest * own.above_p + q * g)
            error_p, error_q = own.error_p, growth * (rest * own.error_p + q * error_g)
            f, zg = np.where(inside, f, 0.0), np.where(inside, zg, 0.0)
        # elsewhere the set is that of all outcomes, or the empty set
        error_p, error_q = np.where(inside, error_p, 0.0), np.where(inside, error_q, 0.0)
        error_q = error_q + 8 * UNIT * (1 + np.abs(l)) * zg
        near = np.where(inside, 2 * off * np.maximum(wide, f), 0.0)
        near += np.where(np.abs(weight) < 16 * UNIT * q, off, 0.0)
        return Tail(f, zg, error_p + 8 * UNIT * f + near, error_q)

    return survival


@final
@dataclass(frozen=True)
class Largest:
    """Tails of several pairs: at each l those of the pair with the largest profile, nearly.

    The resulting profile is the maximum of all profiles, up to the largest of their errors. Near a
    crossing of two profiles the tails are not those of the envelope: each event is an event of one
    pair. So nothing may be cut off by these events (`Release.lowest` is then None).
    """

    parts: tuple[Survival, ...]

    def __call__(self, l: Array) -> Tail:  # noqa: E741
        """Return the tails at l, each with the largest error of all pairs."""
        found = [part(l) for part in self.parts]
        best = np.argmax([tail.above_p - tail.above_q for tail in found], axis=0)
        return Tail(
            np.choose(best, [tail.above_p for tail in found]),
            np.choose(best, [tail.above_q for tail in found]),
            np.max([tail.error_p for tail in found], axis=0),
            np.max([tail.error_q for tail in found], axis=0),
        )


def listed(pair: FinitePair) -> Survival:
    """Return the tails of a finite pair, as sums over its outcomes."""
    with ctx.workprec(_PRECISION):
        p_masses, q_masses = pair.source.masses(pair.index)[:: -1 if pair.flipped else 1]
        rows = [
            (float((p / q).log().mid()), float(p.mid()), float(q.mid()))
            for p, q in zip(p_masses, q_masses, strict=True)
            if not (p.is_zero() or q.is_zero())
        ]
        infinity = float(pair.infinity_mass().mid())
    rows.sort(reverse=True)
    losses = np.array([row[0] for row in rows])[::-1]
    sums = [
        np.concatenate([[0.0], np.cumsum([row[i] for row in rows], dtype=np.longdouble)])[::-1]
        for i in (1, 2)
    ]
    above_p, above_q = ((each + start).astype(float) for each, start in
                        zip(sums, (infinity, 0.0), strict=True))  # fmt: skip
    rounding = UNIT * (8 + len(rows) * float(np.finfo(np.longdouble).eps) / UNIT)

    def survival(l: Array) -> Tail:  # noqa: E741
        growth = np.exp(l)
        off = 16 * UNIT * np.abs(l) + _TINY
        at = np.searchsorted(losses, l, side="right")
        f, zg = above_p[at], growth * above_q[at]
        reach = above_p[np.searchsorted(losses, l - 2 * off, side="left")]
        error_p = rounding * f + 2 * off * reach
        return Tail(f, zg, error_p, (rounding + off + 4 * UNIT) * zg)

    return survival


def in_balls(pair: Pair) -> Survival:
    """Return the tails of any pair, computed one by one in ball arithmetic."""

    def survival(l: Array) -> Tail:  # noqa: E741
        columns = np.empty((4, len(l)))
        with ctx.workprec(_PRECISION):
            for i, loss in enumerate(l.tolist()):
                at = ExactReal.of_rational(Fraction(loss))
                tails = pair.tails(at)
                for j, value in enumerate((tails.p_above, tails.q_above * at.ball().exp())):
                    if not value.is_finite():
                        raise UndecidedError(
                            "The tails of the loss of one release were not enclosed."
                        )
                    middle = float(value.mid())
                    columns[j, i] = middle
                    columns[2 + j, i] = float(value.rad()) * 1.01 + 4 * UNIT * abs(middle)
        return Tail(*columns)

    return survival


_PRECISION = 128
"""Precision, in bits, of balls that are rounded to floats."""

_HARDLY_ABOVE = 1e-9
"""Share of the range of a loss up to which it counts as the least loss."""
Table: TypeAlias = tuple[Sequence[Fraction], Sequence[Fraction]]


@final
@dataclass(frozen=True)
class Release:
    """One release: the tails of its loss, P(L = ∞) and the ends of its finite losses."""

    name: object
    """Identifies the release: the pair, or the shift of normal laws."""
    survival: Survival = field(compare=False)
    infinity: float
    """A lower bound on P(L = ∞), which is exact up to rounding."""
    top: float | None
    bottom: float | None
    slow: bool = False
    smooth: bool = False
    """Whether the loss has a density without steps between its ends."""
    mu: float | None = None
    """The shift μ, for normal laws."""
    lowest: float | None = None
    """At most 0 and at most every loss, also of outcomes of P-mass 0; None if there is none."""

    @cached_property
    def least_mass(self) -> float:
        """The probability of the least loss, or nearly; 0 if there is no least or largest loss."""
        if self.bottom is None or self.top is None:
            return 0.0
        place = self.bottom + (self.top - self.bottom) * _HARDLY_ABOVE
        return 1 - float(self.survival(np.array([place])).above_p[0])

    def __hash__(self) -> int:
        """Return a hash that is computed once, since caches are keyed by releases."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.name)


def releases(factors: Sequence[Factor]) -> tuple[tuple[Release, int], ...]:
    """Return the releases with their counts; Gaussian pairs become one release, μ² = Σ k_i μ_i²."""
    found: list[tuple[Release, int]] = []
    square = arb(0)
    with ctx.workprec(_PRECISION):
        for pair, count in expanded(factors):
            if isinstance(pair, GaussianPair):
                square += count * pair.mu() ** 2
            else:
                found.append((whole(pair), count))
        if square > 0:
            mu = float(square.sqrt().mid())
            normal = Release(("gaussian", mu), gaussian(mu), 0.0, None, None, smooth=True, mu=mu)
            found.append((normal, 1))
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def whole(pair: Pair) -> Release:
    """Return a pair as one release."""
    with ctx.workprec(_PRECISION):
        known, slow = _survival(pair)
        mass = float(pair.infinity_mass().lower().max(arb(0)))
        infinity = math.nextafter(mass, 0.0) if mass else 0.0
        bottom = _end(pair.reverse(), -1)
        lowest = None
        if bottom is not None and not isinstance(known, Largest):
            lowest = min(bottom, 0.0) if pair.reverse().infinity_mass().is_zero() else None
        return Release(
            pair,
            known or in_balls(pair),
            infinity,
            _end(pair, 1),
            bottom,
            slow=slow,
            smooth=isinstance(known, NormalMixtures),
            lowest=lowest,
        )


def _end(pair: Pair, sign: int) -> float | None:
    try:
        found = max_finite_loss(pair)
    except NotApplicableError:
        return None
    end = sign * float(found.mid())
    return end if found.is_finite() and math.isfinite(end) else None


def _survival(pair: Pair) -> tuple[Survival | None, bool]:
    """Return the tails of a pair in floats, or None if they are known in ball arithmetic only.

    Also return whether some are computed one by one in ball arithmetic.
    """
    known: Survival | None
    match pair:
        case LaplacePair(distance):
            known = laplace(_float(distance))
        case TruncatedLaplacePair(distance, end):
            known = truncated_laplace(_float(distance), _float(end))
        case LogisticPair(distance):
            known = logistic(_float(distance))
        case DiscreteGaussianPair(parameter, shift, count=1, last_shift=0):
            known = discrete_gaussian(_float(parameter), shift)
        case SubsampledPair(inner, q, mixed_first):
            return _sampled(inner, q, mixed_first=mixed_first)
        case EnvelopePair(family) if (known_tables := tables(family)) is not None:
            known = listed(envelope_of(known_tables))
        case EnvelopePair(family):
            parts = [_survival(each) for each in family]
            floats = tuple(part for part, _ in parts if part is not None)
            known = Largest(floats) if len(floats) == len(family) else None
            return known, any(slow for _, slow in parts)
        case OwnDensityPair():
            known = own_density(pair)
        case GaussianMixturePair(p, q):
            first, second = ([(float(w), _float(mean)) for w, mean in side] for side in (p, q))
            known = NormalMixtures(first, second)
        case _:
            small = finite(pair)
            known = None if small is None else listed(small)
    return known, known is None


def _float(value: ExactReal) -> float:
    return float(value.ball().mid())


def _sampled(inner: Pair, q: ExactReal, *, mixed_first: bool) -> tuple[Survival, bool]:
    share, rest = _float(q), float((1 - q.ball()).mid())
    if isinstance(inner, GaussianPair):
        mu = float(inner.mu().mid())
        return sampled_gaussian(mu, share, rest, mixed_first=mixed_first), False
    if isinstance(inner, OwnDensityPair) and rest > _LEAST_REST:
        return own_density(inner, (share, rest, mixed_first)), False
    known, slow = _survival(inner)
    return sampled(known or in_balls(inner), share, rest, mixed_first=mixed_first), slow


def envelope_of(listed: Sequence[Table]) -> FinitePair:
    """Return the table whose profile is the maximum of the tables' profiles at every ε."""
    points = {(Fraction(0), Fraction(0))}
    for p, q in listed:
        x = y = Fraction(0)
        points.add((x, y))
        outcomes = [(a, b) for a, b in zip(p, q, strict=True) if a]
        for a, b in sorted(outcomes, key=lambda o: o[1] / o[0]):
            x, y = x + b, y + a
            points.add((x, y))
    return FinitePair(Tabulated(*masses(hull(points))), 0)


_FIRST_CELLS, _FACTORS_CELLS = 1 << 12, 1 << 17
"""Cells of the line, in the first and the final division. The error of H falls with the square of
their number; the time grows with it, to 0.5 s."""
_LEFT_OUT = 2.0**-62
"""Share of the mass beyond the cells; more if tails are still heavier at the farthest cell."""
_FACTORS_FARTHEST = 16
"""Cells end below 2 to this power, in units of the argument of the density."""
_OUT = (-math.inf, math.inf)
_MOST = 700.0
"""exp does not overflow up to here."""
_SUMS = 2.0**-44
"""Relative rounding error of sums over all cells in extended precision, and of their terms."""
_LEAST_GAIN = 1e-300
"""A smaller H is treated as 0."""
_LEAST_REST = 2.0**-20
"""Least 1 − s of a sample: for a smaller one, cancellation would cost too much precision."""


def own_density(pair: OwnDensityPair, sample: tuple[float, float, bool] | None = None) -> Survival:
    """Return the tails of the loss, or of a sample given by (s, 1 − s, whether P is mixed)."""
    found = law(pair.density, "density")
    found = found.mirrored if pair.mirrored else found
    shift, whole = number_ends(pair.distance), found.total()
    size = float(whole.mid())
    left, right = _reach(found.mirrored, shift[1], whole), _reach(found, shift[1], whole)
    kinks = [
        (first + moved[0], np.nextafter(last + moved[1], np.inf))
        for place in found.pieces.breaks
        for first, last in [(number_ends(place.low)[0], number_ends(place.high)[1])]
        for moved in [(0.0, 0.0), shift]
    ]
    outer = [np.nextafter(x, way) for kink in kinks for x, way in zip(kink, _OUT, strict=True)]
    scale = _scale(found, size)
    first, last = -np.arcsinh(left / scale), np.arcsinh(right / scale)

    def edges(steps: Array) -> Array:
        return np.unique(np.concatenate([scale * np.sinh(steps), outer]))

    def on(edges: Array) -> tuple[Survival, Array]:
        a, b = edges[:-1], edges[1:]
        inside = np.zeros(len(a), dtype=bool)
        for low, high in kinks:
            inside |= (b > low) & (a < high)
        cells = _cells(found, a, b, shift, inside)
        return _of_cells(cells, _beyond(pair, found, left, right), size, sample)

    few = edges(np.linspace(first, last, _FIRST_CELLS))
    survival, losses = on(few)
    tail = survival(np.clip(losses, -_MOST, _MOST))
    gain = np.maximum(tail.above_p - tail.above_q, 0) + tail.error_p
    steps = np.arcsinh(few / scale)
    shares = np.sqrt(tail.error_p / np.maximum(gain, _LEAST_GAIN))
    shares = shares / np.sum(shares) + np.diff(steps) / (last - first)
    sums = np.append(0.0, np.cumsum(shares))
    return on(edges(np.interp(np.linspace(0, sums[-1], _FACTORS_CELLS), sums, steps)))[0]


def _of_cells(
    cells: tuple[Array, Array, Array, Array],
    tails: tuple[Array, Array, tuple[Array, Array]],
    size: float,
    sample: tuple[float, float, bool] | None,
) -> tuple[Survival, Array]:
    """Return the tails from the bounds on all cells and beyond, and the losses at the midpoints."""
    p, q, low, high = cells
    p, q = (
        np.concatenate([each, outer], axis=1) / size
        for each, outer in zip((p, q), tails[:2], strict=True)
    )
    low, high = np.append(low, tails[2][0]), np.append(high, tails[2][1])
    if sample is not None:
        p, q, low, high = _on_sample(p, q, low, high, sample)
    with np.errstate(invalid="ignore"):
        width = np.where(low == high, 0.0, high - low)
        wide = width > 1
        middle = np.where(wide, low, low + width / 2)
        reach = np.where(wide | (width == 0), 0.0, np.maximum(high - middle, middle - low))
    order = np.argsort(middle, kind="stable")
    mass_p, mass_q = (_suffixes((each[0] + each[1])[order] / 2) for each in (p, q))
    spread_p, spread_q = (_suffixes((each[1] - each[0])[order] / 2) for each in (p, q))
    lost = abs(1 - float(mass_p[0]))  # the masses are normalised to sum to 1
    mass_p = mass_p / mass_p[0]
    wrong = np.where(wide, 1.0, np.expm1(reach)) * p[1]
    open_from, open_to = (_suffixes(wrong[np.argsort(each)]) for each in (low, high))
    lows, highs, losses, middle = np.sort(low), np.sort(high), middle[:-2], middle[order]

    def survival(l: Array) -> Tail:  # noqa: E741
        at = np.searchsorted(middle, l, side="right")
        growth, room = np.exp(l), 8 * UNIT * np.abs(l)
        above_p, above_q = mass_p[at], growth * mass_q[at]
        crossed = open_to[np.searchsorted(highs, l - room, side="left")]
        crossed = crossed - open_from[np.searchsorted(lows, l + room, side="right")]
        error_p = np.maximum(crossed, 0) + spread_p[at] + _SUMS * crossed
        error_p += (_SUMS + 2 * lost) * above_p
        error_q = growth * spread_q[at] + above_q * (_SUMS + 4 * UNIT * np.abs(l))
        return Tail(above_p, above_q, error_p, error_q)

    return survival, losses


def _on_sample(
    p: Array, q: Array, low: Array, high: Array, sample: tuple[float, float, bool]
) -> tuple[Array, Array, Array, Array]:
    """Return the bounds on cells for ((1 − s)Q + sP, Q), or for (P, (1 − s)P + sQ)."""
    share, rest, mixed_first = sample
    sign, ends = 1 if mixed_first else -1, []
    for end, way in ((low, -1), (high, 1)):
        inner = sign * end
        rise = share * np.expm1(np.minimum(inner, _MOST))
        large = inner > _MOST
        loss = np.where(large, inner + math.log(share), np.log1p(rise))
        room = 16 * UNIT * (np.abs(loss) + np.where(large, inner, np.abs(rise) / (1 + rise)))
        ends.append(sign * loss + way * np.where(np.isinf(loss), 0.0, room))
    rounded = np.array([[1 - _SUMS], [1 + _SUMS]])
    if mixed_first:
        return (rest * q + share * p) * rounded, q, ends[0], ends[1]
    return p, (rest * p + share * q) * rounded, ends[0], ends[1]


def _suffixes(values: Array) -> Array:
    """Return the sums from each place to the end."""
    sums = np.cumsum(values[::-1], dtype=np.longdouble)[::-1]
    return np.append(sums, 0).astype(float)


def _reach(side: Law, shift: float, whole: arb) -> float:
    """Return the right end of the cells."""
    end = side.support[1]
    if end is not None:
        return max(number_ends(end)[1] + 2 * shift, 1.0)
    at = Fraction(8)
    for n in range(3, _FACTORS_FARTHEST):
        at = Fraction(2) ** n
        rest = side.beyond(at - Fraction(shift) * 2)
        if rest is not None and rest.upper() <= whole.lower() * _LEFT_OUT:
            break
    return float(at)


def _beyond(
    pair: OwnDensityPair, found: Law, left: float, right: float
) -> tuple[Array, Array, tuple[Array, Array]]:
    """Return bounds on the masses of P and Q, and on the loss, to the left and right of all cells.

    Each is a pair of lower and upper bounds.
    """
    t, ends = pair.distance, (Fraction(left), Fraction(right))
    p = found.mass(None, -ends[0] - t), found.mass(ends[1] - t, None)
    q = found.mass(None, -ends[0]), found.mass(ends[1], None)
    masses = [
        np.array([[max(float(x.lower()), 0.0) for x in each], [float(x.upper()) for x in each]])
        * np.array([[1 - _SUMS], [1 + _SUMS]])
        for each in (p, q)
    ]
    losses = []
    for side, start in ((found.mirrored, ends[0]), (found, ends[1] - t)):
        decay = side.decay_from(start)
        around = None if decay is None else decay.drift(ball(start), ball(t))
        losses.append((0.0, 0.0) if around is None else (float(around[0]), float(around[1])))
    (a, b), (c, d) = losses
    room = np.array([-1.0, 1.0]) * _SUMS
    low, high = np.array([-b, c]), np.array([-a, d])
    return masses[0], masses[1], (low + np.abs(low) * room[0], high + np.abs(high) * room[1])


def _scale(found: Law, size: float) -> float:
    """Return about the width of the density; it only guides the choice of cells."""
    x = np.sinh(np.linspace(-30, 30, 4001))
    most = 0.0
    for part in found.pieces.parts:
        low = -np.inf if part.low is None else number_ends(part.low.high)[1]
        high = np.inf if part.high is None else number_ends(part.high.low)[0]
        here = x[(x >= low) & (x <= high)]
        if len(here) and not part.is_zero:
            most = max(most, float(np.max(Ranges(here, here, part.known)(part.tree)[0])))
    return size / most if most > 0 else 1.0


def _cells(
    found: Law, a: Array, b: Array, shift: tuple[float, float], inside: Array
) -> tuple[Array, Array, Array, Array]:
    """Return lower and upper bounds on the masses of P and Q and on the loss, for each cell."""
    moved = total((a, b), (np.full_like(a, -shift[1]), np.full_like(a, -shift[0])))
    p, logs_p, slopes_p = _side(found, moved, b - a, inside)
    q, logs_q, slopes_q = _side(found, (a, b), b - a, inside)
    at_middle = total(logs_p, (-logs_q[1], -logs_q[0]))
    slope = total(slopes_p, (-slopes_q[1], -slopes_q[0]))
    with np.errstate(invalid="ignore"):
        reach = np.maximum(np.abs(slope[0]), np.abs(slope[1])) * (b - a) * (0.5 + _SUMS)
        reach = np.where(inside, 0.0, np.where(np.isnan(reach), np.inf, reach))
        low, high = total(at_middle, (-reach, reach))
        zero_p, zero_q = p[1] <= 0, q[1] <= 0
    low = np.where(np.isnan(low), -np.inf, np.where(zero_q, np.inf, low))
    high = np.where(np.isnan(high) | zero_q, np.inf, high)
    low, high = np.where(zero_p, -np.inf, low), np.where(zero_p, -np.inf, high)
    p[0][inside] = q[0][inside] = 0
    return p, q, low, high


def _side(found: Law, x: Range, width: Array, inside: Array) -> tuple[Array, Range, Range]:
    """Return bounds on the mass of each cell, on ln f at its midpoint and on the slope of ln f.

    For a cell inside a kink, ln f is bounded on the whole cell, and only the upper bound on the
    mass holds.
    """
    mass = np.zeros((2, len(width)))
    logs = np.full(len(width), np.inf), np.full(len(width), -np.inf)
    slopes = np.zeros(len(width)), np.zeros(len(width))
    for part in found.pieces.parts:
        low = -np.inf if part.low is None else number_ends(part.low.low)[0]
        high = np.inf if part.high is None else number_ends(part.high.high)[1]
        here = np.flatnonzero((x[1] > low) & (x[0] < high))
        if part.is_zero:
            logs[0][here[inside[here]]] = -np.inf
        if not len(here) or part.is_zero:
            continue
        own = x[0][here], x[1][here]
        middle = own[0] + (own[1] - own[0]) / 2
        off = 4 * UNIT * np.abs(own[0]) + 4 * UNIT * np.abs(own[1])
        around = middle - off, middle + off
        ranges, there = Ranges(*own, part.known), Ranges(*around, part.known)
        change, bend = derivative(part.tree), derivative(derivative(part.tree))
        least, most = there(part.tree)
        grown = ranges(bend)
        w = width[here]
        with np.errstate(invalid="ignore", over="ignore"):
            first = np.abs(np.array(ranges(change))).max(axis=0) * off * w
            ends = np.array([least * w + w**3 / 24 * grown[0] - first,
                             most * w + w**3 / 24 * grown[1] + first])  # fmt: skip
            plain = np.array([ranges(part.tree)[0] * w, ranges(part.tree)[1] * w])
            ends = np.array([np.fmax(ends[0], plain[0]), np.fmin(ends[1], plain[1])])
            ends += np.array([-1.0, 1.0])[:, None] * np.abs(ends) * 16 * UNIT
        mass[0, here] += np.maximum(ends[0], 0)
        mass[1, here] += ends[1]
        for log, whole, middle, pick in zip(
            logs, ranges(part.log), there(part.log), (np.minimum, np.maximum), strict=True
        ):
            log[here] = pick(log[here], np.where(inside[here], whole, middle))
        slopes[0][here], slopes[1][here] = ranges(part.slope)
    return mass, logs, slopes
