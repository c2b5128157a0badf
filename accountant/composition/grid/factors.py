"""The releases of a product as survival functions, with what is known of their ends.

*A density that is a formula.* Its tails come from many cells of the line, in floats. On a cell of
width w with middle m Taylor's formula gives ∫ f = w f(m) + w³ f″(ξ)/24, and the loss
differs from that at m by at most its steepest slope times w/2; both from ranges. A is the union of
the cells whose loss in the middle exceeds l. On a cell where the loss lies within r of that and may
be l, what A has too much or lacks of p − e^l q is at most p(e^r − 1): H(l) exceeds P(A) − e^l Q(A)
by at most the sum of these. Where 2r exceeds 1, A has only cells that exceed l throughout, and
lacks at most p. On a cell between the floats on both sides of a kink the loss is that of any of its
pieces, and the mass at most that of all; each tail beyond is one cell more. A first line of few
cells tells where more of them make H(l) more exact, by itself.

Of a sample the cells are the same: their masses are mixed, and the loss is an increasing function
of the loss l of the pair, ln(1 + y) with y = s(e^l − 1), or −ln(1 + y) with y = s(e^{−l} − 1). Few
roundings of y move it by so many times |y|/(1 + y); where e^l is no float, it is l + ln s.

*The envelope of tables.* H of a pair is the largest p(S) − e^ε q(S) over the sets of outcomes of
largest p/q. Over all tables it is the largest over the corners of the upper convex hull of their
points (q(S), p(S)). The steps between corners are the masses of a pair with this profile: a table.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np
from flint import arb

from dpassay.accountant.composition.grid import survival as tails
from dpassay.accountant.composition.grid.ball_tails import (
    MOST_DIMENSIONS,
    MOST_DISTANCE,
    ball_noise,
)
from dpassay.accountant.composition.grid.sums import sums
from dpassay.accountant.composition.grid.survival import UNIT, Array, NormalMixtures, Survival, Tail
from dpassay.accountant.composition.product import Factor, Product, apart
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.density.law import Law, law
from dpassay.accountant.density.ranges import Range, Ranges, number_ends, total
from dpassay.accountant.density.tree import derivative
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.mechanisms.additive.logistic import LogisticPair
from dpassay.accountant.mechanisms.additive.truncated_laplace import TruncatedLaplacePair
from dpassay.accountant.mechanisms.wrappers.tabulated import Tabulated
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.ball_noise import BallNoisePair
from dpassay.accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from dpassay.accountant.pairs.enclosed_tables import hull, masses
from dpassay.accountant.pairs.finite import FinitePair, tables
from dpassay.accountant.pairs.finite_losses import finite
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.gaussian_mixture import GaussianMixturePair
from dpassay.accountant.pairs.own_density import OwnDensityPair
from dpassay.accountant.pairs.own_mass import OwnMassPair
from dpassay.accountant.pairs.subsampled import EnvelopePair, Family, SubsampledPair, two_directions

_PRECISION = 128
"""Bits of the balls that become floats: fewer widen the errors of tails, more are lost."""
_IN_FLOATS = (LaplacePair, TruncatedLaplacePair, LogisticPair, DiscreteGaussianPair, BallNoisePair)
"""Pairs whose samples have tails in floats, besides Gaussian ones."""
_PLAIN_ATOM = 1e-9
"""Least Q(L = 0) of an envelope that is asked in floats: far above what roundings can part."""

Table: TypeAlias = tuple[Sequence[Fraction], Sequence[Fraction]]


@final
@dataclass(frozen=True)
class Release:
    """One release: its tails, its mass at infinity and the ends of its finite losses."""

    name: object
    """What tells releases apart: the pair, or the shift of normal laws."""
    survival: Survival = field(compare=False)
    infinity: float
    """At most P(L = ∞), and less by rounding alone."""
    top: float | None
    bottom: float | None
    slow: bool = False
    smooth: bool = False
    """Whether the loss has a density without steps between its ends."""
    mu: float | None = None
    """The shift, of normal laws."""
    lowest: float | None = None
    """At most 0 and every loss, also of outcomes that P never has; None where there is none."""


def releases(factors: Sequence[Factor]) -> tuple[tuple[Release, int], ...]:
    """Return the releases with their counts; all plain Gaussian ones are one, of Σ k μ²."""
    found: list[tuple[Release, int]] = []
    square = arb(0)
    with ctx.workprec(_PRECISION):
        for pair, count in apart(factors):
            if isinstance(pair, GaussianPair):
                square += count * pair.mu() ** 2
            else:
                found.append((whole(pair), count))
        if square > 0:
            mu = float(square.sqrt().mid())
            normal = Release(
                ("gaussian", mu), tails.gaussian(mu), 0.0, None, None, smooth=True, mu=mu
            )
            found.append((normal, 1))
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def whole(pair: Pair) -> Release:
    """Return what a pair is about as one release."""
    with ctx.workprec(_PRECISION):
        known = _survival(pair)
        mass = float(pair.infinity_mass().lower().max(arb(0)))
        infinity = math.nextafter(mass, 0.0) if mass else 0.0
        bottom = _end(pair.reverse(), -1)
        bounded = not isinstance(known, tails.Largest)
        bounded = bounded and bottom is not None and pair.reverse().infinity_mass().is_zero()
        return Release(
            pair,
            known or tails.in_balls(pair),
            infinity,
            _end(pair, 1),
            bottom,
            slow=known is None,
            smooth=isinstance(known, NormalMixtures),
            lowest=min(bottom, 0.0) if bounded and bottom is not None else None,
        )


def _end(pair: Pair, sign: int) -> float | None:
    try:
        found = tails.finite_or_none(pair.max_finite_loss())
    except NotApplicableError:
        return None
    return None if found is None else sign * found


def _survival(pair: Pair) -> Survival | None:
    """Return the tails of a pair in floats, None where only balls are known."""
    match pair:
        case LaplacePair(distance):
            return tails.laplace(float(distance.ball().mid()))
        case TruncatedLaplacePair(distance, end):
            return tails.truncated_laplace(*(float(each.ball().mid()) for each in (distance, end)))
        case LogisticPair(distance):
            return tails.logistic(float(distance.ball().mid()))
        case DiscreteGaussianPair(parameter, shift):
            return tails.discrete_gaussian(float(parameter.ball().mid()), shift)
        case SubsampledPair(inner, q, mixed_first):
            return _sampled(inner, q, mixed_first=mixed_first)
        case EnvelopePair(family):
            return _envelope(family)
        case BallNoisePair(distance, d) if d <= MOST_DIMENSIONS and distance <= MOST_DISTANCE:
            return ball_noise(pair)
        case OwnDensityPair():
            return own_density(pair)
        case OwnMassPair():
            return tails.listed(pair)
        case Product():
            return sums(pair)
        case GaussianMixturePair(p, q):
            return NormalMixtures(
                [(float(weight), float(mean.ball().mid())) for weight, mean in p],
                [(float(weight), float(mean.ball().mid())) for weight, mean in q],
            )
    small = finite(pair)
    return None if small is None else tails.listed(small)


def _sampled(inner: Pair, q: ExactReal, *, mixed_first: bool) -> Survival | None:
    share, rest = float(q.ball().mid()), float((1 - q.ball()).mid())
    if isinstance(inner, GaussianPair):
        mu = float(inner.mu().mid())
        return tails.sampled_gaussian(mu, share, rest, mixed_first=mixed_first)
    if isinstance(inner, OwnDensityPair) and rest > _LEAST_REST:
        return own_density(inner, (share, rest, mixed_first))
    if isinstance(inner, Product):
        return sums(inner, (share, rest, mixed_first))
    if not isinstance(inner, _IN_FLOATS):
        return None
    known = _survival(inner)
    return known and tails.sampled(known, share, rest, mixed_first=mixed_first)


def _envelope(family: Family) -> Survival | None:
    """Return the tails of the envelope of tables, of the two directions of a sample, or of all."""
    listed = tables(family)
    if listed is not None:
        return tails.listed(envelope_of(listed))
    ordered = two_directions(family)
    parts = [known for known in map(_survival, ordered or family) if known is not None]
    if len(parts) < len(family):
        return None
    if ordered is not None:
        zero = ExactReal.of_rational(0)
        ahead, behind = (pair.tails(zero) for pair in ordered)
        if behind.q_above - ahead.q_above > _PLAIN_ATOM:
            return tails.switched(*parts)
    return tails.Largest(tuple(parts))


def envelope_of(listed: Sequence[Table]) -> FinitePair:
    """Return the table whose profile is the largest of theirs at every ε."""
    points = {(Fraction(0), Fraction(0))}
    for p, q in listed:
        x = y = Fraction(0)
        points.add((x, y))
        outcomes = [(a, b) for a, b in zip(p, q, strict=True) if a]
        for a, b in sorted(outcomes, key=lambda o: o[1] / o[0]):
            x, y = x + b, y + a
            points.add((x, y))
    return FinitePair(Tabulated(*masses(hull(points))), 0)


_FIRST_CELLS, _CELLS = 1 << 12, 1 << 17
"""Of the line: the error of H falls with their square, and the time rises with them: 0.5 s."""
_LEFT_OUT = 2.0**-62
"""Share of the mass beyond the cells, unless the tails are heavier at 2^`_FARTHEST`."""
_FARTHEST = 16
"""Power of two, of the unit of the density, from which on nothing is put into cells."""
_OUT = (-np.inf, np.inf)
_MOST = 700.0
"""Exponents of floats end above."""
_SUMS = 2.0**-44
"""Relative rounding of sums over all cells in extended precision, and of what goes into them."""
_LEAST_GAIN = 1e-300
"""A smaller H is not told from 0 by floats."""
_LEAST_REST = 2.0**-20
"""Share that a sample leaves out, at least: from less a difference of floats has lost too much."""


def own_density(pair: OwnDensityPair, sample: tuple[float, float, bool] | None = None) -> Survival:
    """Return the tails of the loss, or of a sample: its share, the rest, whether P is mixed."""
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
    return on(edges(np.interp(np.linspace(0, sums[-1], _CELLS), sums, steps)))[0]


def _of_cells(
    cells: tuple[Array, Array, Array, Array],
    tails: tuple[Array, Array, tuple[Array, Array]],
    size: float,
    sample: tuple[float, float, bool] | None,
) -> tuple[Survival, Array]:
    """Return the tails from what is known of all cells and beyond; the loss in their middle."""
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
    lost = abs(1 - float(mass_p[0]))  # the masses of all cells are made to add up to 1
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
    """Return the same of the laws ((1 − s)Q + sP, Q), or (P, (1 − s)P + sQ)."""
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
    """Return the sums from each place on."""
    sums = np.cumsum(values[::-1], dtype=np.longdouble)[::-1]
    return np.append(sums, 0).astype(float)


def _reach(side: Law, shift: float, whole: arb) -> float:
    """Return where cells end on the right."""
    end = side.support[1]
    if end is not None:
        return max(number_ends(end)[1] + 2 * shift, 1.0)
    at = Fraction(8)
    for n in range(3, _FARTHEST):
        at = Fraction(2) ** n
        rest = side.beyond(at - Fraction(shift) * 2)
        if rest is not None and rest.upper() <= whole.lower() * _LEFT_OUT:
            break
    return float(at)


def _beyond(
    pair: OwnDensityPair, found: Law, left: float, right: float
) -> tuple[Array, Array, tuple[Array, Array]]:
    """Return both ends of the masses of P and Q, and of the loss, left and right of all cells."""
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
    """Return about the width of the density: it only chooses."""
    x = np.sinh(np.linspace(-30, 30, 4001))
    most = 0.0
    for i, part in enumerate(found.pieces.parts):
        here = x[_inside(found, i, x)]
        if len(here) and not part.is_zero:
            most = max(most, float(np.max(Ranges(here, here, part.known)(part.tree)[0])))
    return size / most if most > 0 else 1.0


def _inside(found: Law, i: int, x: Array) -> Array:
    part = found.pieces.parts[i]
    low = -np.inf if part.low is None else number_ends(part.low.high)[1]
    high = np.inf if part.high is None else number_ends(part.high.low)[0]
    return (x >= low) & (x <= high)


def _cells(
    found: Law, a: Array, b: Array, shift: tuple[float, float], inside: Array
) -> tuple[Array, Array, Array, Array]:
    """Return both ends of the masses of P and of Q, and of the loss, of cells of the line."""
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
    """Return the mass of cells, ln f in their middle, inside a kink on all of them, and its slopes.

    Inside a kink the mass is at most what is returned.
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
