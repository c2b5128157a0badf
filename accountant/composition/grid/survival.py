"""Probabilities P(A) and Q(A) of the sets A = {L > l}, at many losses l at once, in floats.

For every l there is a set A, {L > l} or nearly so, of which a `Tail` states

    |above_p − P(A)| ≤ error_p,  |above_q − e^l Q(A)| ≤ error_q,  H(l) ≤ P(A) − e^l Q(A) + error_p.

For any set P(A) − zQ(A) ≤ H(ln z), so that A need not be the best one: where A = {X > x} with
the loss l' = L(x) near l instead of l, between A and the best set e^{l−L} lies within |l' − l| of
1, and H(l) exceeds P(A) − e^l Q(A) by at most |l' − l| times the mass between. Of mixtures of
normal laws with means within r, |L''| ≤ r²/2, so that x is off by at most d = 2|l' − l|/L'(x) where
L'(x)² ≥ 2r²|l' − l|; and where (|x| + r + 1)d ≤ 0.3 the mass at most doubles, since a normal law
has at t the density (t⁺ + 1) times its tail at most. Elsewhere it is at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from flint import arb

from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.pairs.own_mass import OwnMassPair

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"

UNIT = 2.0**-53
"""Relative error of one operation with floats."""
NORMAL_ERROR = 16.0
"""|ndtr(t)/Φ(t) − 1| ≤ NORMAL_ERROR (1 + min(t, 0)²) UNIT; tests with balls meet at most 4."""
_HALF_ROOT = math.sqrt(0.5)
_FEW = 1 << 14
"""Values up to which `math.erfc` is asked one by one: 1.5 ms, and SciPy takes 300 to load."""
_TINY = 1e-290
"""Where scipy's normal probabilities near underflow, the number is its own error."""
_EDGE = 40.0
"""Standard deviations beyond which normal laws have a mass below 1e-340."""
_TABLE = 1 << 13
"""Points of the table that the inverse of a loss is read from, before Newton's steps."""
_MOST_INTEGERS = 1 << 17
"""Integers on each side of 0 of a table: a second of work, and standard deviations to 3,200."""
_PRECISION = 128
"""Bits of the balls that become floats: fewer widen the errors of tails, more are lost."""


@final
@dataclass(frozen=True, eq=False)
class Tail:
    """What is known of sets A near {L > l}, for an array of losses l."""

    above_p: Array
    above_q: Array
    """e^l Q(A)."""
    error_p: Array
    error_q: Array


Survival: TypeAlias = Callable[[Array], Tail]


@final
class NormalMixtures:
    """P = Σ w_i N(a_i, 1), Q = Σ v_j N(b_j, 1), every a_i ≥ every b_j: L increases with x."""

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
        """Return the probabilities of {X > x} with L(x) = l, nearly."""
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
        """Invert L by a table and Newton's steps; return x, what L(x) may be off by, and L'(x)."""
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
        beyond = (l <= losses[0]) | (l >= losses[-1])  # the ends leave nothing that floats hold
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
    """Return Φ(t), to NORMAL_ERROR; from the standard library where that is faster than SciPy."""
    if len(t) <= _FEW:
        return np.fromiter(map(math.erfc, (t * -_HALF_ROOT).tolist()), float, len(t)) / 2
    from scipy.special import ndtr  # loading it takes as long as 3 million values without it

    return np.asarray(ndtr(t))


def normal_above(mean: float, x: Array) -> tuple[Array, Array]:
    """Return Φ(a − x) and a bound of its relative error, for a mean a within UNIT of its value."""
    t = mean - x
    left = np.minimum(t, 0.0)
    moved = 2 * UNIT * (abs(mean) + np.abs(t))  # the error of t
    grows = (1 - left) * 1.1 * (t < _EDGE)  # a bound of the density over Φ(t)
    return normal_below(t), (NORMAL_ERROR * (1 + left * left) + 6) * UNIT + grows * moved


def _mixed(
    parts: list[tuple[float, float]], known: dict[float, tuple[Array, Array]]
) -> tuple[Array, Array]:
    """Return Σ w Φ(a − x) and its error; weights are within UNIT of their values."""
    total: Array = np.zeros(1)
    error: Array = np.zeros(1)
    for weight, mean in parts:
        share, relative = known[mean]
        own = weight * share
        total, error = total + own, error + own * relative
    return total, error + len(parts) * 2 * UNIT * total


def gaussian(mu: float) -> NormalMixtures:
    """Return the laws N(μ, 1), N(0, 1)."""

    def place(l: Array) -> tuple[Array, Array, Array]:  # noqa: E741
        x = l / mu + mu / 2
        return x, 8 * UNIT * (np.abs(l) + mu * mu + mu * np.abs(x)), np.full_like(l, 0.9 * mu)

    return NormalMixtures([(1.0, mu)], [(1.0, 0.0)], place)


def sampled_gaussian(mu: float, q: float, rest: float, *, mixed_first: bool) -> NormalMixtures:
    """Return (1 − q)N(0, 1) + qN(μ, 1) and N(0, 1), or N(μ, 1) and the mixture; rest = 1 − q.

    With c = μx − μ²/2 the loss is ln(1 − q + qe^c), or −ln(1 − q + qe^{−c}).
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
    """Return Lap(t, 1) and Lap(0, 1): P(L > l) = 1 − a, e^l Q(L > l) = a, a = e^{(l−t)/2}/2."""

    def survival(l: Array) -> Tail:  # noqa: E741
        a = np.exp((l - distance) / 2) / 2
        inside, before = (l >= -distance) & (l < distance), l < -distance
        everything = np.exp(np.minimum(l, 700.0))
        f = np.where(before, 1.0, np.where(inside, 1 - a, 0.0))
        zg = np.where(before, everything, np.where(inside, a, 0.0))
        error_q = 4 * UNIT * (1 + np.abs(l) + distance) * zg
        # an atom may be taken to be on the wrong side of l, or the loss be off, by a rounding
        near = np.abs(l) <= distance * (1 + 8 * UNIT)
        error_p = np.where(near, 8 * UNIT * distance, 0.0)
        return Tail(f, zg, error_p + 4 * UNIT * f, error_q)

    return survival


def truncated_laplace(distance: float, end: float) -> Survival:
    """Return Laplace laws on [−a, a] and on [d − a, d + a], d ≤ a: with t = (d − l)/2, |l| ≤ d,

    P(L > l) = (1 − e^{−a} + 1 − e^{−t})/N and e^l Q(L > l) = (e^{−t} − e^{l−a})/N,
    N = 2(1 − e^{−a}); L = ∞ has the mass e^{−a}(e^d − 1)/N. As 2t ≥ 0 and l ≤ a both exponentials
    are at most 1, and an exponent that is wrong by δ moves them by as much.
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
        # an atom may be taken to be on the wrong side of l, or the loss be off, by a rounding
        near = np.abs(l) <= distance * (1 + 8 * UNIT)
        far = min(end, 800.0)  # beyond, e^{−a} is 0
        moved = 8 * UNIT * (1 + np.abs(l) + distance)
        inside = near * (moved + 8 * UNIT * far * np.exp(np.minimum(l - end, 0.0))) / half
        error_p = inside + 4 * UNIT * (4 + far) * infinity + 4 * UNIT * f
        return Tail(f, zg, error_p, inside + 2 * moved * zg + before * growth * error_p)

    return survival


def logistic(distance: float) -> Survival:
    """Return logistic laws at t and 0: P(L > l) = (1 − r)/N and e^l Q(L > l) = r(1 − r)/N.

    r = e^{(l−t)/2}, N = 1 − e^{−t}, |l| ≤ t. A rounding δ of (l − t)/2 moves r by rδ, and t by so
    much moves P(L > l) beyond it by as much.
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
    """Return the laws of Z + s and Z, P(Z = z) ∝ e^{−z²/2v}; None where a table would be long.

    L(z) = (2zs − s²)/2v, so that {L > l} = {z ≥ m} with the least integer m > x = lv/s + s/2.
    Sums of masses over |z| ≤ K = ⌈_EDGE √v⌉ + s + 1 are kept with the sums of their errors: each
    exponent z²/2v is off by at most three roundings of floats. What lies beyond K has less than
    e^{−_EDGE²/2} < _TINY of the mass. Where x is so near an integer that m may be the next one, the
    set is that of a loss l' at a distance `off` from l.
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
    ratio = errors[0] / sums[0] + 2 * len(z) * np.finfo(np.longdouble).eps  # of the whole, and sums
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
    """Return the laws ((1 − q)Q + qP, Q), or (P, (1 − q)P + qQ), of a pair; rest = 1 − q."""
    sign = 1.0 if mixed_first else -1.0

    def survival(l: Array) -> Tail:  # noqa: E741
        rise = np.expm1(sign * l)
        weight = rise + q
        inside = weight > 4 * UNIT * q
        c = sign * np.log1p(np.where(inside, rise / q, 0.0))
        own = inner(c)
        growth, shrink = np.exp(l), np.exp(-c)
        g, error_g = own.above_q * shrink, own.error_q * shrink
        error_g += 8 * UNIT * (1 + np.abs(c)) * g
        # the loss at c is off by what the rounding of c makes, and where an atom may be in between
        # the mass is that a little to the left
        off = np.abs(np.expm1(-sign * l)) + np.abs(l) + q * (1 + growth)
        off *= 16 * UNIT * (1 + np.abs(c))
        wide = inner(c - 64 * UNIT * (1 + np.abs(c))).above_p
        if mixed_first:
            f, zg = rest * g + q * own.above_p, growth * g
            error_p, error_q = rest * error_g + q * own.error_p, growth * error_g
            f, zg = np.where(inside, f, 1.0), np.where(inside, zg, growth)
        else:
            f, zg = own.above_p, growth * (rest * own.above_p + q * g)
            error_p, error_q = own.error_p, growth * (rest * own.error_p + q * error_g)
            f, zg = np.where(inside, f, 0.0), np.where(inside, zg, 0.0)
        # elsewhere the set is that of all outcomes, or of none
        error_p, error_q = np.where(inside, error_p, 0.0), np.where(inside, error_q, 0.0)
        error_q = error_q + 8 * UNIT * (1 + np.abs(l)) * zg
        near = np.where(inside, 2 * off * np.maximum(wide, f), 0.0)
        near += np.where(np.abs(weight) < 16 * UNIT * q, off, 0.0)
        return Tail(f, zg, error_p + 8 * UNIT * f + near, error_q)

    return survival


def switched(positive: Survival, negative: Survival) -> Survival:
    """Return the tails of a pair whose losses above 0 are those of one, below 0 of another.

    Its profile is that of the first at l ≥ 0, of the second at l ≤ 0, and never below either: so
    P(A) − zQ(A) ≤ H for the sets of both. A set {L > l'} of the first with l' < 0 ≤ l, or of the
    second with l ≤ 0 ≤ l', |l' − l| a rounding, stands for one that parts the atom at 0.
    """

    def survival(l: Array) -> Tail:  # noqa: E741
        columns = np.empty((4, len(l)))
        for known, chosen in ((positive, l >= 0), (negative, l < 0)):
            if chosen.any():
                tail = known(l[chosen])
                columns[:, chosen] = tail.above_p, tail.above_q, tail.error_p, tail.error_q
        return Tail(*columns)

    return survival


@final
@dataclass(frozen=True)
class Largest:
    """Tails of the pair whose profile is the largest at l, nearly, out of several pairs.

    Its profile is that of all of them within the largest of their errors. Near a crossing the tails
    are not those of the envelope: events are those of a pair, and nothing is cut off by them.
    """

    parts: tuple[Survival, ...]

    def __call__(self, l: Array) -> Tail:  # noqa: E741
        """Return the tails, each with the largest error."""
        found = [part(l) for part in self.parts]
        best = np.argmax([tail.above_p - tail.above_q for tail in found], axis=0)
        return Tail(
            np.choose(best, [tail.above_p for tail in found]),
            np.choose(best, [tail.above_q for tail in found]),
            np.max([tail.error_p for tail in found], axis=0),
            np.max([tail.error_q for tail in found], axis=0),
        )


def listed(pair: FinitePair | OwnMassPair) -> Survival:
    """Return the sums over the outcomes of a finite pair, or over those that are listed."""
    rest = [0.0, 0.0]
    with ctx.workprec(_PRECISION):
        if isinstance(pair, OwnMassPair):
            masses = pair.rows()
            for i in (0, 1):
                outside = sum((tail[i] for tail in pair.tails_beyond()), start=arb(0))
                rest[i] = float(outside.upper()) * (1 + 4 * UNIT)
        else:
            masses = list(zip(*_masses(pair), strict=True))
        rows = [
            (float((p / q).log().mid()), float(p.mid()), float(q.mid()))
            for p, q in masses
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
        error_p = rounding * f + 2 * off * reach + rest[0]
        return Tail(f, zg, error_p, (rounding + off + 4 * UNIT) * zg + growth * rest[1])

    return survival


def _masses(pair: FinitePair) -> tuple[list[arb], list[arb]]:
    p, q = pair.source.masses(pair.index)
    return (q, p) if pair.flipped else (p, q)


def in_balls(pair: Pair) -> Survival:
    """Return the tails of any pair, asked one by one in balls."""

    def survival(l: Array) -> Tail:  # noqa: E741
        columns = np.empty((4, len(l)))
        with ctx.workprec(_PRECISION):
            for i, loss in enumerate(l.tolist()):
                at = ExactReal.of_rational(Fraction(loss))
                tails = pair.tails(at)
                for j, value in enumerate((tails.p_above, tails.q_above * at.ball().exp())):
                    if not value.is_finite():
                        raise UndecidedError(
                            "The tails of the loss of one release are not known here."
                        )
                    middle = float(value.mid())
                    columns[j, i] = middle
                    columns[2 + j, i] = float(value.rad()) * 1.01 + 4 * UNIT * abs(middle)
        return Tail(*columns)

    return survival


def finite_or_none(value: arb) -> float | None:
    """Return a finite ball as a float."""
    return float(value.mid()) if value.is_finite() and math.isfinite(float(value.mid())) else None
