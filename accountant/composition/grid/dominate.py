"""Two laws of the loss of one pair on grid points: one whose profile is above H, one below.

A law on losses l_n = origin + step·n is a list of masses m_n ≥ 0 and a mass m_∞ ≥ 0 at infinity;
its profile, as a function of z = e^ε, is m_∞ + Σ m_n (1 − z/z_n)⁺ with z_n = e^{l_n}: convex,
non-increasing, straight between the z_n. Conversely the slopes −γ_n on (z_n, z_{n+1}) of such a
function are those of the masses m_n = z_n (γ_{n−1} − γ_n).

*Products.* If H_i lies below (above) the profile of the law m_i for all real ε, i = 1, …, k, then
the profile of the product lies below (above) that of the convolution: replace one factor after the
other in H(ε) = E_rest[H_i(ε − L_rest)] + P(L_rest = ∞), a mean over nonnegative masses. They need
not add up to 1.

*Above* (connect the dots; Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022). H is convex in z,
1 at z = 0 and non-increasing. So is the greatest convex function through or below the points
(0, 1), (z_n, H_n + e_n), with e_n ≥ 0, and it lies above H, since H is convex and below them. Its
last value becomes m_∞.

*Below.* P(A) − zQ(A) ≤ H(z) for every event A. Each cell (z_n, z_{n+1}) has such a line, of the
event A_n = {L > l_n + step/2}; at a grid point take the lower one of the lines on both sides. The
chords lie below the lines, so does the greatest convex function below these values. Up to the
lowest loss on the grid, in cells before any mass, and in the next one unless an atom is on its
left or the line falls too much, it is that of all losses on the grid: what H lacks there, it lacks
at all smaller losses. Cells beyond all of them have the level P(L = ∞).

Where the loss has a density both err by O(step²) per release; an atom between grid points is
merged with what surrounds it, by the convex function below the values.

*Cut.* With an event B_i for each factor the product is that of the laws outside the B_i, and a rest
that `engine` knows. B = {L > l_N}, nearly, lies within the best events at z ≤ z_N: there what is
outside has the profile H(z) − (P(B) − zQ(B)), and none beyond. All lines lose P(B) − zQ(B).

*Floats.* The convex functions come from an isotonic regression of slopes, which nothing is proved
of; the masses are floats, their profile is summed again with a bound of its rounding errors, and
multiplied by a factor that puts it on its side of all the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dpassay.accountant.composition.grid.factors import UNIT, Array, Survival

_LONG = float(np.finfo(np.longdouble).eps)
_HARDLY_ANY = 4e-15
"""A mass that floats hardly tell from 0: no more is between the grid's start and there."""
_MARGIN = 32 * UNIT
"""Relative rounding errors of z_n, of its differences and of a mass, together."""
_SLIVER = 1e-6
"""Share of a cell: an atom so near to the right of a grid point counts as being on it."""
_NEARLY = 0.99
"""Share of a value that the line of all losses must leave at the end of its last cell: all later
values are below that."""
_MOST_MENDED = 0.5
"""A profile that misses its values by more than this share is given up: nothing is known."""
_ROUNDS, _FEW = 16, 64
"""Rounds of pooling all values, at most, and values in the wrong order that are pooled one by one:
an atom between points joins a neighbour a round, some thousand in all."""


@final
@dataclass(frozen=True, eq=False)
class GridLaw:
    """Masses at the losses origin + step·index, and at infinity."""

    origin: float
    index: Array
    masses: Array
    infinity: float


@dataclass(frozen=True, eq=False)
class Place:
    """The grid points origin + step·n, for increasing integers n: cells may differ in width."""

    origin: float
    step: float
    index: Array
    cut: bool = False
    """Whether the losses above the last point are left out."""

    @property
    def gaps(self) -> Array:
        """The distances of neighbours."""
        return self.step * np.diff(self.index)

    @property
    def reach(self) -> float:
        """A bound of the sizes that go into a loss."""
        return abs(self.origin) + self.step * float(np.max(np.abs(self.index[[0, -1]])))

    def losses(self) -> Array:
        """Return the points."""
        return self.origin + self.step * self.index

    def middles(self) -> Array:
        """Return the middles of the cells."""
        return self.origin + self.step * ((self.index[:-1] + self.index[1:]) / 2)


def above(survival: Survival, place: Place) -> GridLaw:
    """Return a law with a profile above H."""
    masses, infinity = above_at(survival, place.losses(), place.gaps, place.reach, cut=place.cut)
    return GridLaw(place.origin, place.index, masses, infinity)


def above_at(
    survival: Survival,
    l: Array,  # noqa: E741
    gaps: Array,
    reach: float,
    *,
    cut: bool = False,
) -> tuple[Array, float]:
    """Return masses at increasing losses, and at infinity, of a law with a profile above H."""
    tail = survival(l)
    error = 1.01 * (tail.error_p + tail.error_q) + _misplaced(l) * tail.above_p
    value, most = tail.above_p - tail.above_q, 1.0
    if cut:
        beyond_p, beyond_q = tail.above_p[-1], tail.above_q[-1] * np.exp(l - l[-1])
        value = (tail.above_p - beyond_p) - (tail.above_q - beyond_q)
        error = error + 1.01 * (tail.error_p[-1] + tail.error_q[-1])
        most = float(min(1 - beyond_p + 2 * error[-1], 1.0))
    values = np.minimum(np.maximum(value + 3.5 * error, 0.0), most)
    law, profile, total = _convex(values, l, gaps, most)
    wanted = np.maximum(np.minimum(value + error, most), 0.0)
    positive = profile > 0
    short = np.max(
        (wanted[positive] - profile[positive]) / profile[positive], initial=most / total - 1
    )
    beyond = np.max(wanted[~positive], initial=0.0)
    factor = 1 + max(float(short), 0.0) + 2 * _rounding(reach, len(l))
    return law * factor, float(values[-1] + beyond) * factor


def below(survival: Survival, place: Place, infinity: float) -> GridLaw | None:
    """Return a law with a profile below H, P(L = ∞) ≥ `infinity`; None where none is found."""
    l, z = place.losses(), np.exp(place.losses())  # noqa: E741
    middle, gaps = place.middles(), place.gaps
    middle[-1] = l[-1]  # an atom at the last point stays there
    tail = survival(middle)
    error = 1.01 * (tail.error_p + tail.error_q) + _misplaced(middle) * tail.above_p
    error *= np.exp(gaps)
    event_p, event_q = tail.above_p, tail.above_q
    first = survival(l[:1])  # the event of all losses on the grid
    most_p = float(first.above_p[0] - first.error_p[0]) - 4 * UNIT
    most_q = min(float((first.above_q[0] + first.error_q[0]) * np.exp(-l[0])), 1.0) + 4 * UNIT
    if place.cut:
        last = survival(l[-1:])
        error += 1.01 * (last.error_p + last.error_q) + _misplaced(l[-1:]) * last.above_p
        event_p = event_p - last.above_p
        event_q = event_q - last.above_q * np.exp(middle - l[-1])
        most_p -= float(last.above_p[0] + error[-1])
        most_q -= float((last.above_q[0] - error[-1]) * np.exp(-l[-1])) - 4 * UNIT
        infinity = 0.0
    left = event_p - event_q * np.exp(l[:-1] - middle) - error
    right = event_p - event_q * np.exp(l[1:] - middle) - error
    flat = right < infinity
    left, right = np.where(flat, infinity, left), np.where(flat, infinity, right)
    lost = float(first.above_p[0]) - tail.above_p  # by the events: they only choose
    before = int(np.count_nonzero(lost <= _HARDLY_ANY))
    lines = (most_p - z * most_q) - 8 * UNIT * (1 + np.abs(l)) * (1 + z)
    if before < len(gaps) and lines[before + 1] > _NEARLY * right[before]:
        sliver = survival((l[:-1] + _SLIVER * gaps)[before : before + 1]).above_p[0]
        before += float(first.above_p[0] - sliver) < lost[before] / 2
    start = np.arange(len(gaps)) < before
    start &= lines[1:] >= infinity
    left, right = np.where(start, lines[:-1], left), np.where(start, lines[1:], right)
    values = np.concatenate([[min(lines[0], left[0])], np.minimum(right[:-1], left[1:]),
                             [min(infinity, right[-1])]])  # fmt: skip
    values = np.minimum.accumulate(values)  # as H does, they fall: also where errors are as large
    if not (values[0] >= infinity and most_p > 0) or not np.all(np.isfinite(values)):
        return None
    law, profile, total = _convex(values, l, gaps, most_p)
    positive = profile > infinity
    finite = profile[positive] - infinity
    over = np.max((profile[positive] - values[positive]) / finite, initial=total / most_p - 1)
    factor = 1 - max(float(over), 0.0) - 2 * _rounding(place.reach, len(l))
    if not factor > _MOST_MENDED:
        return None
    return GridLaw(place.origin, place.index, law * factor, infinity)


def _misplaced(l: Array) -> Array:  # noqa: E741
    """Return the rounding of the losses themselves, twice: a bound of what H changes per P-mass."""
    return 8 * UNIT * (1 + np.abs(l))


def _rounding(reach: float, points: int) -> float:
    """Return the relative rounding error of the profile that `_convex` sums."""
    return _MARGIN * (1 + reach) + (points + 4) * _LONG


def _convex(
    values: Array,
    l: Array,  # noqa: E741
    gaps: Array,
    most: float,
) -> tuple[Array, Array, float]:
    """Return the masses of the greatest convex function below (0, most) and the values, nearly.

    Also the values of their profile at the grid points, and the sum of all masses, each with a
    relative error of at most `_rounding`.
    """
    z = np.exp(l)
    widths = np.concatenate([[z[0]], z[:-1] * np.expm1(gaps)])
    slopes = np.diff(np.concatenate([[most], values])) / widths
    fitted = _increasing(slopes, widths)
    gamma = np.maximum(-fitted, 0.0)
    masses = z * (gamma - np.append(gamma[1:], 0.0))
    parts = (gamma * widths)[::-1].astype(np.longdouble)
    sums = np.cumsum(np.concatenate([[np.longdouble(values[-1])], parts]))[::-1]
    return masses, sums[1:].astype(float), float(sums[0])


def _increasing(values: Array, weights: Array) -> Array:
    """Return the isotonic regression: neighbours in the wrong order get their weighted mean.

    Two neighbours in the wrong order, or equal ones, have one value in the regression, so all runs
    are pooled at once: of many equal ones each would take a round to join a lower one behind them.
    What is left after some rounds is pooled one by one.
    """
    values, sizes = values.copy(), np.ones(len(values), dtype=int)
    for _ in range(_ROUNDS):
        rises = np.append(True, np.diff(values) > 0)
        if np.count_nonzero(~rises) < _FEW:
            break
        starts, inside = np.flatnonzero(rises), ~rises
        inside[:-1] |= ~rises[1:]
        members = np.flatnonzero(inside)  # of runs of several: most have one
        firsts, own = np.flatnonzero(rises[members]), weights[members]
        pooled, sums = inside[starts], np.add.reduceat(own, firsts)
        means = np.add.reduceat(values[members] * own, firsts) / sums
        counts = np.add.reduceat(sizes[members], firsts)
        values, weights, sizes = values[starts], weights[starts], sizes[starts]
        values[pooled], weights[pooled], sizes[pooled] = means, sums, counts
    runs: dict[int, tuple[int, float]] = {}  # the start and the weight of each, by its end
    last = -1
    for at in np.flatnonzero(np.diff(values) <= 0).tolist():
        if at <= last:
            continue
        first, last, mean, mass = at, at, values[at], weights[at]
        while True:
            if last + 1 < len(values) and values[last + 1] <= mean:
                last += 1
                value, more = values[last], weights[last]
            elif first > 0 and values[first - 1] >= mean:
                value = values[first - 1]
                first, more = runs.pop(first - 1, (first - 1, weights[first - 1]))
            else:
                break
            mass += more
            mean += (value - mean) * (more / mass)
        runs[last], values[last] = (first, mass), mean
    for last, (first, _) in runs.items():
        values[first:last] = values[last]
    return np.repeat(values, sizes)
