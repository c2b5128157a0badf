"""Compose arbitrary pairs: bracket the product's profile with two laws on a grid of losses.

The engine needs only the tails of each factor (`tails`). It computes in floats with proved error
bounds. The proofs are here and at the heads of the sections: two laws for one pair (below), their
sums (*The sum of many losses*), and losses above the grid (*Large losses*).

# Two laws for one pair

A *law on the losses* l_n = origin + step·n is a list of masses m_n ≥ 0 and a mass m_∞ ≥ 0 at
infinity. As a function of z = e^ε, with z_n = e^{l_n}, its profile is
m_∞ + Σ m_n (1 − z/z_n)⁺: convex, non-increasing, and linear between the z_n. Conversely, a function
of this kind with slopes −γ_n on (z_n, z_{n+1}) has the masses m_n = z_n (γ_{n−1} − γ_n).

Each pair, with profile H, gets two laws: one whose profile is at least H, and one whose profile is
at most H.

*Products.* Statement: if for i = 1, …, k the profile H_i lies below (above) the profile of the law
m_i at every real ε, then the profile of the product lies below (above) that of the convolution of
the m_i. Proof: replace one factor after another in H(ε) = E_rest[H_i(ε − L_rest)] + P(L_rest = ∞),
which is a mean with nonnegative weights. The masses need not sum to 1.

*Upper law* (connect the dots; Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022). Statement: for
any e_n ≥ 0, the greatest convex function that does not exceed the values 1 at z = 0 and H_n + e_n
at z_n lies above H. Proof: H is convex in z and lies below these points. Like H, the function is
non-increasing and 1 at z = 0. Its last value becomes m_∞.

*Lower law.* For every event A the line P(A) − zQ(A) lies below H(z). Each cell (z_n, z_{n+1}) takes
the line of the event A_n that L exceeds the middle of (l_n, l_{n+1}), at l_n + step/2 for cells of
one step. Each grid point takes the lower value of the lines of its two cells. Statement: the
greatest convex function below these values lies below H. Proof: on each cell it lies below the
chord of the values, and the chord lies below the line of the cell. Two kinds of cells have other
lines:

- The first cells, and all z < z_0, use the line of the event that the loss is on the grid, because
  a deficit in these cells lowers the bound at all smaller z too. The first cells are those before
  any mass, and the next one unless there is an atom on its left or the line falls too much.
- Cells whose line would fall below P(L = ∞), beyond all finite losses, use this constant.

If the loss has a density, both laws have an error of O(step²) per release. The lower law merges an
atom between grid points with the mass around it, by taking the greatest convex function.

*Cut.* Given an event B_i for each factor, the product splits into the laws outside the B_i and a
remainder, which *Large losses* bounds. B = {L > l_N}, nearly, is a subset of the best events at
z ≤ z_N. So the law outside B has the profile H(z) − (P(B) − zQ(B)) there, and profile 0 at larger
z. Each line is lowered by P(B) − zQ(B).

*Floats.* An isotonic regression of the slopes computes the convex functions; nothing is proved
about it. The resulting masses are floats. Their profile is summed again, with a bound on its
rounding errors, and the masses are multiplied by a factor that puts the profile on the right side
of all the values.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeVar, final

from flint import arb

from dpassay.accountant.composition.losses.bounds import in_blocks, powered
from dpassay.accountant.composition.product import Engine, Product
from dpassay.accountant.composition.tails import UNIT, Release, Survival, releases
from dpassay.accountant.core.arrays import Array, NDArray, np
from dpassay.accountant.core.pair import max_finite_loss
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import GRID_WIDTH, Interval, ball, enclose
from dpassay.accountant.numbers.precision import cached_property, ctx, note
from dpassay.accountant.numbers.solve import fraction, log_peak, rough_log_peak, shortened
from dpassay.accountant.pairs.subsampled import SubsampledPair

_EMPTY_MASS = 4e-15
"""A mass near the resolution of floats: cells with no more mass than this before their middle, from
the start of the grid on, count as empty."""
_MARGIN = 32 * UNIT
"""Relative rounding error of z_n, of differences of the z_n and of a mass, together."""
_ON_RIGHT = 1e-6
"""Share of a cell: an atom this close to the right of a grid point counts as being on it."""
_MOST_LEFT = 0.99
"""The line of all losses must keep more than this share of a cell's value at the end of its last
cell: no later value can exceed it there."""
_LEAST_CORRECTION = 0.5
"""The least correction factor of a lower law. A profile that needs a smaller one is given up."""
_ROUNDS, _FEW = 16, 64
"""The maximal number of rounds that pool all values, and the number of values in the wrong order
below which they are pooled one by one. An atom between points joins one neighbour a round, some
thousand in all."""


@final
@dataclass(frozen=True, eq=False)
class GridLaw:
    """Masses at the losses origin + step·index, and at infinity."""

    origin: float
    index: Array
    masses: Array
    infinity: float


@final
@dataclass(frozen=True, eq=False)
class Place:
    """The grid points origin + step·n for an increasing list of integers n; widths may differ."""

    origin: float
    step: float
    index: Array
    cut: bool = False
    """Whether losses above the last point are left out."""

    @property
    def gaps(self) -> Array:
        """The widths of the cells."""
        return self.step * np.diff(self.index)

    @property
    def reach(self) -> float:
        """A bound on the size of the terms of which a loss is the sum."""
        return abs(self.origin) + self.step * float(np.max(np.abs(self.index[[0, -1]])))

    def losses(self) -> Array:
        """Return the grid points."""
        return self.origin + self.step * self.index

    def middles(self) -> Array:
        """Return the midpoints of the cells."""
        return self.origin + self.step * ((self.index[:-1] + self.index[1:]) / 2)


def above(survival: Survival, place: Place) -> GridLaw:
    """Return a law whose profile is at least H."""
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
    """Return the masses, at increasing losses and at infinity, of a law with profile at least H."""
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
    """Return a law with profile at most H, or None. `infinity` is a lower bound on P(L = ∞)."""
    l, z = place.losses(), np.exp(place.losses())  # noqa: E741
    middle, gaps = place.middles(), place.gaps
    middle[-1] = l[-1]  # so that an atom at the last point stays there
    known = survival(np.append(l[0], middle))
    first, tail = known.part(slice(1)), known.part(slice(1, None))  # first: the loss is on the grid
    error = 1.01 * (tail.error_p + tail.error_q) + _misplaced(middle) * tail.above_p
    error *= np.exp(gaps)
    event_p, event_q = tail.above_p, tail.above_q
    most_p = float(first.above_p[0] - first.error_p[0]) - 4 * UNIT
    most_q = min(float((first.above_q[0] + first.error_q[0]) * np.exp(-l[0])), 1.0) + 4 * UNIT
    if place.cut:
        last = tail.part(slice(-1, None))
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
    lost = float(first.above_p[0]) - tail.above_p  # needs no error bound: it only selects lines
    before = int(np.count_nonzero(lost <= _EMPTY_MASS))
    lines = (most_p - z * most_q) - 8 * UNIT * (1 + np.abs(l)) * (1 + z)
    if before < len(gaps) and lines[before + 1] > _MOST_LEFT * right[before]:
        sliver = survival((l[:-1] + _ON_RIGHT * gaps)[before : before + 1]).above_p[0]
        before += float(first.above_p[0] - sliver) < lost[before] / 2
    start = np.arange(len(gaps)) < before
    start &= lines[1:] >= infinity
    left, right = np.where(start, lines[:-1], left), np.where(start, lines[1:], right)
    values = np.concatenate([[min(lines[0], left[0])], np.minimum(right[:-1], left[1:]),
                             [min(infinity, right[-1])]])  # fmt: skip
    values = np.minimum.accumulate(values)  # non-increasing like H, even where errors dominate
    if not (values[0] >= infinity and most_p > 0) or not np.all(np.isfinite(values)):
        return None
    law, profile, total = _convex(values, l, gaps, most_p)
    positive = profile > infinity
    finite = profile[positive] - infinity
    over = np.max((profile[positive] - values[positive]) / finite, initial=total / most_p - 1)
    factor = 1 - max(float(over), 0.0) - 2 * _rounding(place.reach, len(l))
    if not factor > _LEAST_CORRECTION:
        return None
    return GridLaw(place.origin, place.index, law * factor, infinity)


def _misplaced(l: Array) -> Array:  # noqa: E741
    """Return twice the rounding error of the losses: a bound on the change of H per P-mass."""
    return 8 * UNIT * (1 + np.abs(l))


def _long_unit() -> float:
    """Return the relative spacing of long doubles."""
    return float(np.finfo(np.longdouble).eps)


def _rounding(reach: float, points: int) -> float:
    """Return a bound on the relative rounding error of the profile that `_convex` sums."""
    return _MARGIN * (1 + reach) + (points + 4) * _long_unit()


def _convex(
    values: Array,
    l: Array,  # noqa: E741
    gaps: Array,
    most: float,
) -> tuple[Array, Array, float]:
    """Return the masses of about the greatest convex function below (0, most) and the values.

    Also return their profile at the grid points, and the sum of all masses, each with a relative
    error of at most `_rounding`.
    """
    z = np.exp(l)
    widths = np.concatenate([[z[0]], z[:-1] * np.expm1(gaps)])
    if not widths.all():
        raise UndecidedError(
            "So many releases need a grid finer than floats can represent. Compose fewer releases."
        )
    slopes = np.diff(np.concatenate([[most], values])) / widths
    fitted = _increasing(slopes, widths)
    gamma = np.maximum(-fitted, 0.0)
    masses = z * (gamma - np.append(gamma[1:], 0.0))
    parts = (gamma * widths)[::-1].astype(np.longdouble)
    sums = np.cumsum(np.concatenate([[np.longdouble(values[-1])], parts]))[::-1]
    return masses, sums[1:].astype(float), float(sums[0])


def _increasing(values: Array, weights: Array) -> Array:
    """Return the isotonic regression: adjacent values in the wrong order get their weighted mean.

    Adjacent values that are equal or in the wrong order have the same value in the regression, so
    each round pools whole runs at once. Pooling only pairs could take one round for each of many
    equal values in front of a lower one. After some rounds the rest is pooled one by one.
    """
    values, sizes = values.copy(), np.ones(len(values), dtype=int)
    for _ in range(_ROUNDS):
        rises = np.append(True, np.diff(values) > 0)
        if np.count_nonzero(~rises) < _FEW:
            break
        starts, inside = np.flatnonzero(rises), ~rises
        inside[:-1] |= ~rises[1:]
        members = np.flatnonzero(inside)  # of runs of two or more: most runs have one member
        firsts, own = np.flatnonzero(rises[members]), weights[members]
        pooled, sums = inside[starts], np.add.reduceat(own, firsts)
        means = np.add.reduceat(values[members] * own, firsts) / sums
        counts = np.add.reduceat(sizes[members], firsts)
        values, weights, sizes = values[starts], weights[starts], sizes[starts]
        values[pooled], weights[pooled], sizes[pooled] = means, sums, counts
    runs: dict[int, tuple[int, float]] = {}  # the end of each run: its start and its weight
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


# --- The sum of many losses: a fast Fourier transform of tilted masses, with its error bounds -----
# *Notation.* Factor i occurs k_i times and has masses m_i on the grid o_i + hn. Let
# a_i(n) = m_i(n) e^{sh(n − c_i)}/A_i, with A_i such that the sum of a_i is about 1. The masses of
# the sum at x = Σ k_i o_i + hj are those of the convolution power a = a_1^{k_1} * a_2^{k_2} * …,
# times Π A_i^{k_i} e^{sh(Σ k_i c_i − j)}. Hence
#
#     Σ_x m(x)(1 − e^{ε−x})⁺ = Π A_i^{k_i} e^{sh Σ k_i c_i − s(ε − X)} Σ_j a(j) w(y_j),
#     X = Σ k_i o_i,  y_j = X + hj − ε,  w(y) = e^{−sy}(1 − e^{−y})⁺ ≤ s^s/(1 + s)^{1+s} =: W.
#
# *Errors of the computed Σ a(j) w(y_j).* The bound is the sum of the following ones.
#
# - *Tilting.* The computed a_i have relative errors η_i(n). With τ_i = Σ a_i η_i they change the
#   sum by at most W (Π (1 + τ_i)^{k_i} − 1) Π ‖a_i‖₁^{k_i}.
# - *Transforms.* Each component is a sum of the a_i(n), each multiplied by log₂N roots of unity. A
#   step of radix 2 is a product, with a relative error of √5 units and that of the root, and a sum.
#   One of radix 3 or 5 has such products, and rounds each part six times: 12 units, of which
#   FFT_ERROR log₂ 3 allows 15.
#   Hence each component of the transform F_i has an error of at most e_i = φ ‖a_i‖₁ with
#   φ = FFT_ERROR · UNIT · log₂N. By telescoping, with c_i = e_i + the computed |F_i|, the product
#   has an error of at most Σ k_i e_i/c_i Π c_j^{k_j}. By Parseval, ‖F‖₂ = √N ‖a‖₂.
#   Where r masses wrap around to one place, their sum adds (r − 1) ‖a_i‖₁ units to e_i.
# - *Few components.* With n = Cb + (C/2)v, |v| ≤ 1, and x = θ_kC/2 ≤ π/4, components k < N/4C are
#
#       F(k) = Σ_p (−ix)^p/p! Σ_b e^{−iθ_kCb} Σ_n a(n)v^p,  p < P, up to x^P/P! ‖a‖₁,
#
#   from P transforms over N/C places. The v are exact. The products of powers have errors below 7p
#   units, and sums of m masses in a place m units. As Σ p x^p/p! S_p ≤ x Σ x^p/p! S_p for
#   S_p = Σ a(n)|v|^p, which decreases, the error is at most (FFT_ERROR log₂(N/C) + m + 3P) units of
#   Σ x^p/p! S_p.
# - *Products.* Multiplying K factors, in any order, has a relative error of at most
#   (1 + √5 u)^{K−1} − 1 per component (Brent, Percival and Zimmermann 2007), apart from underflow.
# - *Truncation.* Components from some index on are left out, where Π c_i^{k_i} ≤ e^{−U} for the
#   factors so far. With the remaining factors they are at most e^{−U} Π max(1, ‖a_i‖₁)^{k_i}. This
#   also bounds their ‖ΔF‖₂/√N. Transforms of only M points tell which components are so small: for
#   any m, g(θ) = Σ a_i(n) e^{−i(n − m)θ} has |g″| ≤ Σ a_i(n)(n − m)². Hence between two of the
#   M points on the circle it is within (2π/M)²/8 times this sum of the chord of its values there,
#   and |F_i| = |g| exceeds the larger of the two absolute values by at most as much.
# - *Norms.* If ‖Δa‖₂ ≤ D in total, Σ a w changes by at most D ‖w‖₂. Since w² has one peak,
#   ‖w‖₂² ≤ W² + ∫ w²/h.
# - *Summation.* By Parseval the sum is computed from the components, without an inverse transform:
#   (1/N) Σ_k F_k Σ_j w(y_j) e^{ijθ_k}, θ_k = 2πk/N. With z = e^{−sh + iθ_k} and a first place Y,
#   the inner sum over all i ≥ 0 is
#
#     Σ_i w(Y + hi) e^{iiθ} = e^{−sY} (1/(1 − z) − e^{−Y}/(1 − ze^{−h}))
#                           = e^{−sY} (1 − e^{−Y} + z(e^{−Y} − e^{−h}))/((1 − z)(1 − ze^{−h})).
#
#   The second form is used for Y ≤ h, where a factor z is a shift by a place. The sum over the
#   window is the difference of two such series.
#   1 − z = (1 − |z|) + 2|z| sin²(θ/2) − i|z| sin θ has no cancellation. The components are summed
#   in rows, each term with two roots. The float error of a term is below `_TERM_ERROR` units of the
#   product of the sizes of its factors, plus a unit for each term of both sums, plus the error due
#   to that of sY. Since |w'| ≤ 1, an error η of Y changes Σ a w by at most η Σ a.
# - *Aliasing.* The transform is circular: masses outside the window of N points wrap around into
#   it. By Chernoff's inequality for the a_i themselves they sum to at most
#   T = Π ‖a_i‖^{k_i} P(outside). The error is at most W T, whether they are added or missing.

FFT_ERROR = 10.0
"""Error of one radix-2 step of a transform, in units of 2^−53. The proof gives 6.7."""
_TIMES_ERROR = 2.24
"""√5, rounded up: the relative error of a complex product, in units of 2^−53."""
_TERM_ERROR = 100.0
"""Error of a term of a sum over components, in units of 2^−53, without the summation: a little more
than its operations give, of which two products of two roots are 40."""
_SUM_ROOM = 1.001
"""Factor that covers the rounding of error bounds."""
_LOWEST = 1e-280
"""Added to bounds to cover underflow."""
_PRECISION = 192
"""Precision, in bits, of the ball arithmetic; its rounding is far below that of the float sums."""
_CERTAIN = 1e-9
"""Far more than the rounding error of the logarithm of a moment, per factor."""
_CLOSE = -20.0
"""ln of a Chernoff bound that is small enough to try no other exponent."""
_SMALLER = (2.0, 4.0, 16.0, 64.0)
"""Divisors of the exponent that are tried where its Chernoff bound is too large."""
_MOMENTS, _LEAST_BLOCK = 16, 32
"""P, a multiple of 4, for which (π/4)^P/P! is below 10u; and the least C for which P transforms
over N/C places take less time than one over N."""
_SHARE_OF_BEND, _LEAST_COARSER, _FINER = 0.1, 4, 8
"""M is so large that g″ adds at most this share of the distance from 1 that each factor needs, at
first of 1, and smaller than the number of points by at least this factor. The components that may
be large are looked at again with a larger M, by the last factor."""
_LOG_LEFT_OUT = 50.0
"""U: components of a transform below e^{−U} are left out."""
_LARGEST = 600.0
"""Arguments of `exp` up to here do not overflow."""


@final
@dataclass(frozen=True)
class Frame:
    """The grid of the sum: its tilt, its step and its window."""

    tilt: float
    step: float
    low: float
    """The lower end of the window."""
    points: int
    outward: tuple[float, float]
    """The exponents u > 0 of Chernoff's inequality below and above the window."""

    @property
    def peak(self) -> float:
        """An upper bound on W."""
        return float(log_peak(arb(self.tilt)).exp().upper())

    @property
    def norm(self) -> float:
        """An upper bound on ‖w‖₂; ∫ w² over y > 0 is 1/(2s(s + 1)(2s + 1))."""
        s = self.tilt
        return math.sqrt(self.peak**2 + 0.5 / (s * (s + 1) * (2 * s + 1) * self.step)) * _SUM_ROOM


@final
@dataclass(frozen=True, eq=False)
class TiltedSum:
    """The tilted masses of a sum in a window, as their transform, and bounds on their errors."""

    frame: Frame
    terms: NDArray[np.complex128]
    """F_k e^{iθ_k·shift}/N; twice that except for k = 0 and N/2."""
    mass: float
    """An upper bound on Σ a."""
    origin: Fraction
    """The loss of the first place of the window."""
    log_scale: arb
    """ln of Π A_i^{k_i} e^{sh Σ k_i c_i + sX}."""
    spread: float
    """An upper bound on the ‖Δa‖₂ caused by the transforms."""
    lost: float
    """An upper bound on Σ |Δa| caused by all else."""
    outside: tuple[float, float]
    """Upper bounds on the tilted masses below and above the window."""
    infinity: arb

    def above(self, epsilon: arb) -> arb:
        """Return an upper bound on m_∞ + Σ m(x)(1 − e^{ε−x})⁺; +∞ if there is none."""
        found, wrong = self._weighted(epsilon)
        with ctx.workprec(_PRECISION):
            all_seen = ball(self.origin) <= epsilon  # else masses below the window contribute too
        missing = self.outside[1] if all_seen else sum(self.outside)
        total = found + wrong + self.frame.peak * (self.lost + missing) * _SUM_ROOM + _LOWEST
        return self._scaled(total, epsilon) if math.isfinite(total) else arb.pos_inf()

    def below(self, epsilon: arb) -> arb:
        """Return a lower bound on the same sum, at least m_∞."""
        found, wrong = self._weighted(epsilon)
        missing = self.frame.peak * (self.lost + sum(self.outside)) * _SUM_ROOM
        total = found - wrong - missing - _LOWEST
        return self._scaled(total, epsilon) if total > 0 else self.infinity.lower()

    def _weighted(self, epsilon: arb) -> tuple[float, float]:
        """Return Σ a w and a bound on its error from the transforms, from y and from rounding."""
        h, points = self.frame.step, self.frame.points
        with ctx.workprec(_PRECISION):
            nearest = float((ball(self.origin) - epsilon).mid())
            radius = float(epsilon.rad())
        first = max(0, math.floor(-nearest / h) + 1)
        away = 4 * UNIT * (2 * abs(nearest) + h * points) + radius
        if first >= points:
            return 0.0, away * self.mass
        found, wrong = self._series(first, nearest + h * first)
        less, more = self._series(points, nearest + h * points)
        wrong += more + away * self.mass + self.spread * self.frame.norm
        return found - less, wrong * _SUM_ROOM

    def _series(self, at: int, y: float) -> tuple[float, float]:
        """Return the series over all places from `at` on, which has y there, and its error."""
        s, h = self.frame.tilt, self.frame.step
        if y <= h:
            factors = -math.expm1(-y), math.exp(-(s + 1) * h) * math.expm1(h - y)
            sums, sizes = self._sums_from(at), [self._size] * 2
        else:  # `at` is 0 or N
            factors, (sums, sizes) = (1.0, -math.exp(-y)), self._whole
        found = sum(each * part for each, part in zip(factors, sums, strict=True))
        wrong = sum(abs(each) * part for each, part in zip(factors, sizes, strict=True))
        units = _TERM_ERROR + sum(self._form.shape) + 8 * s * abs(y)
        size = math.exp(-s * y)
        return size * found, size * wrong * units * UNIT

    @cached_property
    def _less(self) -> tuple[NDArray[np.complex128], ...]:
        """1 − z and 1 − ze^{−h}."""
        s, h = self.frame.tilt, self.frame.step
        return _one_less((s * h, (s + 1) * h), len(self.terms), self.frame.points)

    @cached_property
    def _whole(self) -> tuple[list[float], list[float]]:
        """The sums of the terms over 1 − z and over 1 − ze^{−h}, and bounds on their sizes."""
        forms = [self.terms / less for less in self._less]
        sizes = [float(np.abs(form.view(float)).sum()) for form in forms]
        return [float(form.real.sum()) for form in forms], sizes

    @cached_property
    def _form(self) -> Array:
        """The terms over (1 − z)(1 − ze^{−h}): rows of the real parts, then of the imaginary."""
        kept = len(self.terms)
        terms = self.terms / (self._less[0] * self._less[1])
        width = math.isqrt(kept - 1) + 1
        form: Array = np.zeros((2, -(-kept // width) * width))
        form[0, :kept], form[1, :kept] = terms.real, terms.imag
        return form.reshape(-1, width)

    @cached_property
    def _size(self) -> float:
        """A bound on the sum of the absolute values of the form."""
        return float(np.abs(self._form).sum())

    def _sums_from(self, at: int) -> list[float]:
        """Return Σ_k of the real parts of the form times e^{iθ_k·place}, for `at` and the next."""
        (rows, width), points, places = self._form.shape, self.frame.points, np.array([at, at + 1])
        near = _turned(places, width, points)
        far = _turned(places * width, rows // 2, points)
        sums = in_blocks(self._form, np.concatenate([near.real, near.imag])).T
        sums = sums.reshape(2, 2, 2, -1)  # cosine or sine, place, real or imaginary part
        real = sums[0, :, 0] - sums[1, :, 1]
        imaginary = sums[0, :, 1] + sums[1, :, 0]
        found: list[float] = (real * far.real - imaginary * far.imag).sum(axis=1).tolist()
        return found

    def _scaled(self, total: float, epsilon: arb) -> arb:
        with ctx.workprec(_PRECISION):
            log = self.log_scale - arb(self.frame.tilt) * epsilon
            return self.infinity + arb(total) * log.exp()


def compose(laws: Sequence[tuple[GridLaw, int]], frame: Frame) -> TiltedSum | None:
    """Return the law of the sum of all losses, or None if it is out of the range of floats."""
    parts = [_Part(law, count, frame) for law, count in laws]
    if not all(part.sound for part in parts):
        return None
    points, kept = frame.points, _felt(parts, frame.points)
    if kept > ALONE // 2 + 1:
        return None
    total = np.ones(kept, dtype=complex)
    wrong, grown, powers = np.zeros(kept), np.zeros(kept), 0
    with np.errstate(all="ignore"):
        for part in parts:
            transform, error = part.transform(kept, points)
            most = error + np.abs(transform) * (1 + 8 * UNIT)
            grown += part.count * np.log(most)
            felt = np.flatnonzero(grown > -_LOG_LEFT_OUT)
            kept = int(felt[-1]) + 1 if len(felt) else 1
            wrong, grown, total = wrong[:kept], grown[:kept], total[:kept]
            wrong += part.count * (error / most)[:kept]
            total *= powered(transform[:kept], part.count)
            powers += part.count
        left = sum(part.count * max(math.log(part.mass), 0.0) for part in parts) - _LOG_LEFT_OUT
        wrong *= np.exp(grown)
        spread = math.sqrt(2 * float((wrong**2).sum()) / points) * _SUM_ROOM
        spread += math.exp(min(left, _LARGEST)) * _SUM_ROOM
        norm = math.sqrt(2 * float((np.abs(total) ** 2).sum()) / points) * _SUM_ROOM
        rounded = math.expm1(min(_TIMES_ERROR * UNIT * 1.01 * powers, _LARGEST))
        spread += norm * rounded * _SUM_ROOM + _LOWEST * points
    lost = math.expm1(min(sum(p.count * math.log1p(p.error) for p in parts), _LARGEST))
    lost *= math.exp(min(sum(p.count * max(math.log(p.mass), 0.0) for p in parts), _LARGEST))
    mass = math.exp(min(sum(p.count * math.log(p.mass) for p in parts), _LARGEST)) * _SUM_ROOM
    with ctx.workprec(_PRECISION):
        start = sum((p.count * Fraction(p.law.origin) for p in parts), start=Fraction(0))
        offset = math.floor((Fraction(frame.low) - start) / Fraction(frame.step))
        origin = start + offset * Fraction(frame.step)
        scale = arb(frame.tilt) * ball(start)
        for part in parts:
            scale += part.count * (arb(part.scale).log() + arb(frame.tilt) * arb(frame.step)
                                   * part.centre)  # fmt: skip
        infinity = _infinity(parts)
    terms = total * _roots(offset % points, kept, points)
    terms *= 2 / points
    terms[0] /= 2
    if kept > points // 2:
        terms[-1] /= 2
    if not (np.all(np.isfinite(terms)) and math.isfinite(spread)):
        return None
    outside = _outside(parts, frame, offset)
    return TiltedSum(frame, terms, mass, origin, scale, spread, lost, outside, infinity)


def _felt(parts: Sequence[_Part], points: int) -> int:
    """Return a number of components after which all are at most e^{−U}, or that of all."""
    spread = max(part.spread for part in parts)
    room = _SHARE_OF_BEND * -math.expm1(-_LOG_LEFT_OUT / sum(part.count for part in parts))
    arcs = 1 << math.ceil(math.log2(max(math.pi * spread / math.sqrt(2 * _SHARE_OF_BEND), 16)))
    last, kept = arcs // 2, points // 2 + 1
    while arcs * _LEAST_COARSER <= points:
        grown = np.zeros(last)
        with np.errstate(all="ignore"):
            for part in parts:
                transform, error = part.transform(last + 1, arcs)
                sizes = np.abs(transform) * (1 + 8 * UNIT) + error
                bend = (math.pi * part.spread / arcs) ** 2 / 2
                grown += part.count * np.log(np.maximum(sizes[1:], sizes[:-1]) + bend * _SUM_ROOM)
        felt = np.flatnonzero(grown > -_LOG_LEFT_OUT)
        last = int(felt[-1]) + 1 if len(felt) else 1
        kept = min(-(-last * points // arcs), points // 2) + 1
        if (math.pi * spread / arcs) ** 2 / 2 <= room:
            break
        arcs, last = arcs * _FINER, last * _FINER
    return kept


def _roots(power: int, kept: int, points: int) -> NDArray[np.complex128]:
    """Return e^{iθ_k·power}, θ_k = 2πk/N, for k < kept, as products of two roots."""
    width = math.isqrt(kept - 1) + 1
    near, far = _turned(power, width, points), _turned(power * width, -(-kept // width), points)
    found: NDArray[np.complex128] = np.multiply.outer(far, near).ravel()[:kept]
    return found


def _turned(power: int | Array, kept: int, points: int) -> NDArray[np.complex128]:
    """Return e^{iθ_k·power}, θ_k = 2πk/N, for k < kept; a row for each of several powers."""
    turns = np.multiply.outer(power, np.arange(kept)) % points
    angles = np.where(turns > points // 2, turns - points, turns) * (2 * math.pi / points)
    found = np.empty(turns.shape, dtype=np.complex128)
    found.real, found.imag = np.cos(angles), np.sin(angles)
    return found


def _one_less(
    falls: tuple[float, float], kept: int, points: int
) -> tuple[NDArray[np.complex128], ...]:
    """Return 1 − z for each z = e^{−fall + iθ_k}, k < kept."""
    half, found = np.arange(kept) * (math.pi / points), []
    sine = np.sin(half)
    real, imaginary = 2 * sine * sine, -2 * sine * np.cos(half)
    for fall in falls:
        size, less = math.exp(-fall), np.empty(kept, dtype=np.complex128)
        less.real, less.imag = size * real - math.expm1(-fall), size * imaginary
        found.append(less)
    return tuple(found)


def _infinity(parts: Sequence[_Part]) -> arb:
    """Return Π (M_i + p_i)^{k_i} − Π M_i^{k_i} for total finite masses M_i and p_i at infinity."""
    finite, ratio = arb(0), arb(0)
    for part in parts:
        rounding = 4 * UNIT + len(part.law.masses) * _long_unit()
        total = float(part.law.masses.sum(dtype=np.longdouble))
        mass = arb(total, total * rounding)
        finite += part.count * mass.log()
        ratio += part.count * (arb(part.law.infinity) / mass).log1p()
    return finite.exp() * ratio.expm1()


@final
class _Part:
    """The tilted masses of one factor."""

    def __init__(self, law: GridLaw, count: int, frame: Frame) -> None:
        self.law, self.count = law, count
        index = law.index
        slope = frame.tilt * frame.step
        with np.errstate(divide="ignore"):
            logs = np.log(law.masses) + slope * index
        self.centre = int(index[int(np.argmax(logs))]) if len(index) else 0
        arguments = slope * (index - self.centre)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            raw = np.where(law.masses > 0, law.masses * np.exp(arguments), 0.0)
            self.scale = float(raw.sum())
            self.sound = math.isfinite(self.scale) and self.scale > 0
            if not self.sound:
                return
            self.values = raw / self.scale
        self.mass = float(self.values.sum(dtype=np.longdouble)) * (
            1 + 4 * UNIT + len(raw) * _long_unit()
        )
        relative = (3 * np.abs(arguments) + 8) * UNIT
        self.error = float((self.values * relative).sum()) * _SUM_ROOM + _LOWEST * len(raw)
        self._index = index

    @cached_property
    def spread(self) -> float:
        """Return a bound on the root of Σ a(n)(n − m)² for some m, about the mean."""
        index = self._index.astype(float)
        away = index - float(self.values @ index)
        return math.sqrt(float(self.values @ (away * away))) * _SUM_ROOM

    def transform(self, kept: int, points: int) -> tuple[NDArray[np.complex128], Array]:
        """Return the first components of the transform and a bound on the error of each."""
        size = math.gcd(points, 1 << max(0, (points // (4 * kept)).bit_length() - 1))
        if size >= _LEAST_BLOCK:
            return self._from_moments(kept, points, size)
        folds = -(-int(self._index[-1] - self._index[0] + 1) // points)
        row = np.bincount(np.mod(self._index, points), weights=self.values, minlength=points)
        units = FFT_ERROR * math.log2(points) + folds - 1
        return np.fft.rfft(row)[:kept], np.full(kept, units * UNIT * self.mass)

    def _from_moments(
        self, kept: int, points: int, size: int
    ) -> tuple[NDArray[np.complex128], Array]:
        """Return the same from the moments of the masses in blocks of this size."""
        number, shifted = points // size, self._index + size // 2
        places = np.mod(shifted // size, number)
        power, v = self.values, np.mod(shifted, size) * (2 / size) - 1.0
        sums = np.empty((_MOMENTS, number))
        for row in sums:
            row[:] = np.bincount(places, weights=power, minlength=number)
            power = power * v
        terms = np.fft.rfft(sums)[:, :kept]
        x, share, whole = np.arange(kept) * (math.pi * size / points), np.ones(kept), self.mass
        error = np.zeros(kept)
        for p in range(_MOMENTS):
            if p:
                share *= x / p
                terms[p] *= share
            if p % 2 == 0:  # |v|^p decreases in p
                whole = float(sums[p].sum()) * _SUM_ROOM
            error += share * whole
        one, two, three, four = terms.reshape(-1, 4, kept).sum(axis=0)
        units = FFT_ERROR * math.log2(number) + int(np.bincount(places).max()) + 3 * _MOMENTS
        return (one - three) - 1j * (two - four), error * (units * UNIT * _SUM_ROOM)

    def extreme(self, sign: float) -> int:
        """Return the last index with a positive mass (sign > 0), or the first one."""
        kept = self._index[self.values > 0]
        return int(kept[-1] if sign > 0 else kept[0])

    def log_moment(self, u: float, step: float) -> float:
        """Return ln Σ a(n) e^{uh(n − c)}."""
        kept = self.values > 0
        terms = u * step * (self._index[kept] - self.centre) + np.log(self.values[kept])
        most = float(terms.max())
        return most + math.log(float(np.exp(terms - most).sum()))


def _outside(parts: Sequence[_Part], frame: Frame, offset: int) -> tuple[float, float]:
    """Return bounds on the tilted masses below and above the window."""
    centre = sum(part.count * part.centre for part in parts)
    found = []
    for sign, u, edge in (
        (-1.0, frame.outward[0], offset),
        (1.0, frame.outward[1], offset + frame.points - 1),
    ):
        reached = sum(part.count * part.extreme(sign) for part in parts)
        if sign * reached <= sign * edge:
            found.append(0.0)
            continue

        def bound(u: float, sign: float = sign, edge: int = edge) -> float:
            """Return ln of Chernoff's bound at the exponent u."""
            total = 0.0
            for part in parts:
                total += part.count * (part.log_moment(sign * u, frame.step) + _CERTAIN * 1e-3)
            total -= sign * u * frame.step * (edge - centre)
            return total + _CERTAIN * (1 + u * frame.step * (abs(edge) + abs(centre)) * 1e-3)

        total = bound(u)
        if not total < _CLOSE:  # u was chosen for a rough law with a shorter tail
            total = min(total, *(bound(u / divisor) for divisor in _SMALLER))
        found.append(math.exp(total) if total < 0 else math.inf)
    return found[0], found[1]


# --- Choosing the grid: the ends of each loss, the tilt, the window and the step ------------------
# Every number here is a float that only makes a choice: the bounds hold for any choice.

COARSE = 256
"""Number of points of one release in the rough law from which the grid is chosen."""
_CUT = 36.0
"""−ln of the tilted mass outside the window, which is far below any requested width."""
_SHALLOW = -50.0
"""First choice of ln of the mass of one release beyond its last grid point."""
_GUESSED = 36.0
"""−ln of the share of δ that a first guess may lose beyond the last grid point. For the usual δ
`_SHALLOW` is then deep enough."""
_SHARE = 16.0
"""−ln of the share of δ that all releases together may lose beyond their last grid points."""
_BOTTOM = 1 - 4e-15
"""Where P(L > l) exceeds this, floats can hardly distinguish l from the least loss."""
_BODY = 0.9995, 0.0005
"""P(L > l) at the losses l between which a rough law has a quarter of its points."""
_FARTHEST = 600.0
"""Largest loss on a grid: e^l must be in the range of floats."""
_SEARCH = 160
"""Losses at which the search for an end starts; fewer put the end farther out, more cost tails."""
_MOST_DEEPENINGS = 8
"""How often the ends move out for a smaller δ; stopping too early cuts off mass that matters."""
_FEWEST = 4
"""Least number of cells of one release: a convex function needs a few points."""
_MOST_CELLS, _MOST_SLOW_CELLS = 1 << 20, 1 << 11
"""Cells of one release beyond which some are joined; the second number is for releases whose tails
are computed in balls, at about 0.1 ms each."""
_MOST_JOINED = 1 << 24
"""Largest number of cells after joining; more take gigabytes."""
_WIDEST = 0.25
"""Largest width of a cell, multiplied by 1 + tilt: a wider cell makes linear laws too inexact."""
_MOST_STRIDE = 32.0
"""Largest width of a cell, in steps: a larger one saves little, and rough laws are less exact."""
_MOST_WIDENING = 1.3
"""Factor by which wide cells where there is little mass may widen the bounds."""
_MANY = 16
"""Number of releases from which cells are joined: a sum of fewer is not smooth enough."""
_LEAST_PARTS = 64
"""Least number of cells of the largest width for a release with slow tails: a rough law tells too
little about where its mass is."""
_LEVELS = range(-80, 80)
"""Levels of density, a factor of √2 apart, above which cells have the width of a step: at the last
level all have it, at the first none where a release has few cells."""
_LOG_PRECISION_COST = 9.0
"""ln of the precision that a smaller tilt may cost. Floats have e^36, and bounds need less."""
_SHORTER = 0.75
"""A smaller tilt is worth its loss of precision if it shortens the window to less than this."""
_MOST_SMALLER = 10
"""Smaller tilts that are tried; each computes a window, and beyond these
`_LOG_PRECISION_COST` is exceeded."""
_MOST_OF = 0.7
"""Share of the range of the sum above which the window becomes the whole range."""
_DEVIATIONS = 10.0
"""Standard deviations: a normal loss is hardly ever further below its mean."""
_SPARE = 1e-6
"""Margin of the ceiling above the least loss that makes the sum exceed ε, as a share of the least
sum."""
_ROOM_BELOW, _SERVED = 1.5, 0.25
"""Distance of the least grid point from the largest loss, in those of ε from the largest sum; and
the shift of ε, in these distances, at which the same grid still serves."""
_NEARBY = 0.03
"""Share of ε by which other questions that use the same plan may lie above ε."""
_FINEST, _LEAST_STEP = 2.0**-44, 1e-200
"""Least steps, relative to the losses and absolute, that floats can resolve."""
_ON_POINT = 1e-6
"""Share of a step: a loss this little below a grid point counts as being on it."""
_LEAST_FIT = 0.8
"""The step is adjusted to divide a range only if it is at least this share of the adjusted step;
else the other cells get too wide."""
_NUDGE = 512 * 2.0**-53
"""Relative shift of a grid's end from the largest loss: rounding must not miss an atom there."""
_TILTS = 1.25
"""Ratio of successive tilts that are tried: a larger one misses the best tilt and costs digits."""


@functools.lru_cache(maxsize=4096)
def ends(release: Release, log_mass: float) -> tuple[float, float]:
    """Return losses between which the grid of one release lies.

    Below the first P has hardly any mass, above the second at most e^log_mass (or none).
    """
    bottom, *_, top = _marks(release, log_mass)
    if release.top is not None:
        top = min(top, release.top)
        if top > release.top - 1e-3 * abs(release.top - bottom):
            top = release.top
    if release.bottom is not None and bottom < release.bottom + abs(top - release.bottom) * 1e-3:
        bottom = release.bottom
    else:
        bottom -= 1e-2 * (top - bottom)
    if not top > bottom:
        bottom = top - max(abs(top), 1e-200) * 2.0**-20
    return bottom, top


@functools.lru_cache(maxsize=4096)
def _marks(release: Release, log_mass: float) -> list[float]:
    """Return about the least losses l with P(L > l) at most some masses, the largest mass first."""
    masses = (math.nextafter(_BOTTOM, 0.0), *_BODY, math.exp(log_mass) + release.infinity)
    rows = [_everywhere(release)] * len(masses)
    for left in (2, 1, 0):
        cells = []
        for (places, tails), mass in zip(rows, masses, strict=True):
            hits = np.flatnonzero(tails <= mass)
            at = int(hits[0]) if len(hits) else len(places) - 1
            cells.append(np.linspace(places[max(at - 1, 0)], places[at], 18))
        if left:
            known = release.survival(np.concatenate(cells)).above_p
            rows = list(zip(cells, np.split(known, len(masses)), strict=True))
    return [float(cell[-1]) for cell in cells]


@functools.lru_cache(maxsize=4096)
def _everywhere(release: Release) -> tuple[Array, Array]:
    """Return losses of all sizes, and P(L > l) at each."""
    sizes = np.geomspace(1e-12, _FARTHEST, (_SEARCH // 3 if release.slow else _SEARCH) // 2)
    places = np.concatenate([-sizes[::-1], [0.0], sizes])
    return places, release.survival(places).above_p


@final
@dataclass(frozen=True, eq=False)
class Sketch:
    """Rough laws of all releases, from which cumulants and Chernoff bounds are computed."""

    losses: Array
    logs: Array
    counts: Array

    def cumulants(self, s: float) -> tuple[float, float, float]:
        """Return ln M(s) of the sum and its first two derivatives."""
        masses = self.logs + s * self.losses
        top = masses.max(axis=1, keepdims=True)
        masses -= top
        np.exp(masses, out=masses)
        mass = masses.sum(axis=1)
        masses *= self.losses
        mean = masses.sum(axis=1) / mass
        variance = np.einsum("ij,ij->i", masses, self.losses) / mass - mean**2
        value = top[:, 0] + np.log(mass)
        return (
            float((self.counts * value).sum()),
            float((self.counts * mean).sum()),
            float((self.counts * np.maximum(variance, 0.0)).sum()),
        )

    def tilt(self, epsilon: float) -> float:
        """Return the power s of `_TILTS` at which M(s) e^{−sε} s^s/(1 + s)^{1+s} is about least."""

        def is_past(power: int) -> bool:
            s = _TILTS**power
            return self.cumulants(s)[1] > epsilon + math.log1p(1 / s)

        low, high = -60, 60  # powers of _TILTS
        return float(_TILTS ** (low + bisect.bisect_left(range(low + 1, high), True, key=is_past)))

    def guess(self, log_delta: float) -> float:
        """Return an ε with ln H(ε) near log_delta, by the saddle of K(s) − sε − ln s(1 + s)."""
        low, high = -14.0, 14.0  # of ln s
        for _ in range(24):
            s = math.exp((low + high) / 2)
            value, mean, variance = self.cumulants(s)
            epsilon = mean - 1 / s - 1 / (1 + s)
            curvature = variance + 1 / s**2 + 1 / (1 + s) ** 2
            found = (
                value - s * epsilon - math.log(s + s * s) - math.log(2 * math.pi * curvature) / 2
            )
            low, high = (math.log(s), high) if found > log_delta else (low, math.log(s))
        return epsilon

    def some_below(self, ceiling: float) -> bool:
        """Whether every law has finite losses up to the ceiling, so that a cut leaves some."""
        return bool(((self.logs > -np.inf) & (self.losses <= ceiling)).any(axis=1).all())

    def cut(self, ceiling: float) -> Sketch:
        """Return the laws without their losses above the ceiling."""
        return Sketch(self.losses, np.where(self.losses > ceiling, -np.inf, self.logs), self.counts)

    def log_bound(self, s: float, epsilon: float) -> float:
        """Return ln of Chernoff's bound on H(ε) at s."""
        return self.cumulants(s)[0] - s * epsilon + rough_log_peak(s)

    def window(self, s: float) -> tuple[float, float, float, float]:
        """Return the ends of a window that misses e^{−_CUT} of the tilted mass, and their u."""
        base, mean, variance = self.cumulants(s)
        scale = math.sqrt(2 * _CUT / max(variance, 1e-280))

        def end(sign: int) -> tuple[float, float]:
            """Return the nearest of the ends by Chernoff's inequality that are tried, and its u."""
            ends = dict[int, tuple[float, float]]()

            def is_far(power: int) -> bool:
                u = scale * 2.0 ** (power / 2)
                value, slope, _ = self.cumulants(s + sign * u)
                ends[power] = (value - base + _CUT) / u, u
                return sign * slope > ends[power][0]  # beyond the best u, as ln M is convex

            bisect.bisect_left(range(-10, 11), True, key=is_far)
            return min(ends.values())

        (low, under), (high, over) = end(-1), end(1)
        return min(-low, mean), max(high, mean), under, over


@functools.lru_cache(maxsize=32)
def sketch(releases: tuple[tuple[Release, int], ...], log_mass: float) -> Sketch:
    """Return rough laws, each on its own grid; UndecidedError if one lies beyond all grids."""
    losses, logs = [], []
    for release, _ in releases:
        places, masses = rough(release, log_mass)
        if not masses.any():
            raise UndecidedError(
                f"Nearly all losses of a release are beyond ±{_FARTHEST:g}, where grids end. "
                "Leave method='grid' out."
            )
        losses.append(places)
        with np.errstate(divide="ignore"):
            logs.append(np.log(masses))
    counts = np.array([float(count) for _, count in releases])
    return Sketch(np.array(losses), np.array(logs), counts)


@functools.lru_cache(maxsize=4096)
def rough(release: Release, log_mass: float) -> tuple[Array, Array]:
    """Return `COARSE` losses, and the masses there of an upper law of one release.

    The losses cover the range evenly, are denser where most of the mass is, and dense near 0.
    """
    bottom, top = ends(release, log_mass)
    places = _spread(bottom, top, COARSE // 4)
    _, first, last, _ = np.clip(_marks(release, log_mass), bottom, top)
    body = np.linspace(first, last, COARSE // 4)
    even = np.linspace(bottom, top, COARSE - len(places) - len(body))
    l = np.unique(np.concatenate([places, body, even]))  # noqa: E741
    l = l[np.append(np.diff(l) > 1e-9 * (top - bottom), True)]  # noqa: E741
    masses, _ = above_at(release.survival, l, np.diff(l), max(-bottom, top))
    lacking = COARSE - len(l)
    return np.append(l, np.full(lacking, top)), np.append(masses, np.zeros(lacking))


def _spread(bottom: float, top: float, number: int) -> Array:
    """Return numbers between the ends whose distances are proportional to their absolute values."""
    sizes = np.geomspace(1e-9 * max(-bottom, top), max(-bottom, top), number // 2)
    places = np.concatenate([-sizes[::-1], sizes])
    return np.unique(np.clip(places, bottom, top))


@final
@dataclass(frozen=True)
class Plan:
    """The choices made for one ε: the tilt, the window, and the range of each loss."""

    releases: tuple[tuple[Release, int], ...]
    epsilon: float
    log_mass: float
    tilt: float
    low: float
    high: float
    outward: tuple[float, float]
    bottoms: tuple[float, ...]
    """The least grid point of each release."""
    ceiling: float
    """Losses of one release above this are left out of the sum; +∞ if none are."""
    steepest: float
    """The tilt with the least bound on δ, at least `tilt`: the sum is near ε under this tilt."""
    spare: float
    """The distance of the largest sum from the least ε that the plan serves."""

    def serves(self, epsilon: float, share: float = 1.0) -> bool:
        """Whether ε is near that of the plan, within a share of it, so that bounds are narrow."""
        least = min(share * abs(self.epsilon), _SERVED * self.spare)
        return abs(epsilon - self.epsilon) <= least

    @cached_property
    def _laws(self) -> Sketch:
        return sketch(self.releases, self.log_mass)

    @cached_property
    def _number(self) -> int:
        return sum(count for _, count in self.releases)

    def frame(self, points: int) -> Frame:
        """Return the window with this number of points.

        Among the releases that are bounded on both sides, take those with the largest total mass at
        the least loss. The step divides their range, so that atoms at its ends or middle are on
        grid points.
        """
        step = (self.high - self.low) / (points - 8)
        known = [ends(release, self.log_mass) for release, _ in self.releases]
        farthest = max(map(abs, itertools.chain((self.low, self.high), *known)))
        step = max(step, _FINEST * farthest, _LEAST_STEP)
        atoms = [
            (count * release.least_mass, top - low)
            for (release, count), (low, top) in zip(self.releases, known, strict=True)
            if (low, top) == (release.bottom, release.top)
        ]
        mass, span = max(atoms, default=(0.0, 0.0))
        cells = span // step
        cells -= cells % 2 if cells > _FEWEST else 0
        if mass > 0 and cells and step > _LEAST_FIT * span / cells:
            step = span / cells
        spare = (points * step - (self.high - self.low)) / 2
        below = min(spare, step * self._number)  # cells may begin up to a step lower each
        return Frame(self.tilt, step, self.low - below, points, self.outward)

    def may_reach(self, wanted: float, points: int) -> bool:
        """Whether these points may give ε to a relative width: cells add to the variance."""
        more = self._number * self.frame(points).step ** 2 / _MOST_HELP
        return more * (1 + self.tilt) <= wanted * abs(self.epsilon)

    def places(self, number: int, step: float) -> tuple[Place, Place]:
        """Return the grid points of one release for its upper law and for its lower law."""
        release, bottom = self.releases[number][0], self.bottoms[number]
        top = ends(release, self.log_mass)[1]
        cut = top > self.ceiling
        upper = lower = 0.0
        if cut:
            last = math.ceil(self.ceiling / step)
        elif release.top is not None and top == release.top:
            upper, lower, last = top + _NUDGE * abs(top), top - _NUDGE * (1 + abs(top)), 0
        else:
            last = math.ceil(top / step)
        cells = max(_FEWEST, last + math.ceil((upper - bottom) / step - _ON_POINT))
        many = release.smooth and self._number >= _MANY
        if many or cells > (_MOST_SLOW_CELLS if release.slow else _MOST_CELLS):
            index = self._joined(number, upper, step, last - cells, last)
        else:
            index = np.arange(last - cells, last + 1)
        return Place(upper, step, index, cut), Place(lower, step, index, cut)

    def _joined(self, number: int, origin: float, step: float, first: int, last: int) -> Array:
        """Return grid points that are dense where the tilted laws have their masses.

        A cell of width g and tilted density w has an error of about w g³. For a given number of
        cells the total is least if g is proportional to w^{−1/3}. Widths are rounded to powers of
        two of the step. Rare large losses matter as much as they do under the steepest tilt.
        """
        slow = self.releases[number][0].slow
        losses, logs = self._laws.losses[number], self._laws.logs[number]
        kept = np.append(True, np.diff(losses) > 0) & (losses <= self.ceiling)
        losses, logs = losses[kept], logs[kept]
        widths, masses = np.gradient(losses), np.zeros(len(losses))
        for tilt in (self.tilt, self.steepest):
            weights = logs + tilt * losses
            tilted = np.exp(weights - weights.max())
            masses += tilted / tilted.sum()
        density = masses / widths
        density = np.maximum(density, np.maximum(np.roll(density, 1), np.roll(density, -1)))
        widest = float(last - first) / _LEAST_PARTS if slow else _MOST_STRIDE
        most = min(max(_WIDEST / (1 + self.tilt) / step, 1.0), widest)
        with np.errstate(divide="ignore", over="ignore"):
            wide = np.cbrt(density.max() / density)

        def gaps(level: int) -> Array:
            found: Array = np.clip(wide * 2.0 ** (-level / 6), 1.0, most)
            return found

        def is_enough(level: int) -> bool:
            if slow:  # limit the number of cells
                return bool((widths / step / gaps(level)).sum() > _MOST_SLOW_CELLS / 2)
            return bool(masses @ gaps(level) ** 2 <= _MOST_WIDENING * masses.sum())

        level = bisect.bisect_left(_LEVELS, True, key=is_enough) + _LEVELS[0]
        strides = 1 << np.log2(gaps(level)).astype(int)
        edges = np.round((losses - origin) / step).astype(int)
        runs = np.flatnonzero(np.append(True, np.diff(strides) != 0))
        starts = np.concatenate([[first], edges[runs[1:]], [last]]).clip(first, last)
        if (np.diff(starts) / strides[runs]).sum() > _MOST_JOINED:
            raise UndecidedError(
                f"The losses of a release need more than {_MOST_JOINED} points of a grid."
            )
        points = [np.array([first])]
        for stride, low, high in zip(strides[runs], starts[:-1], starts[1:], strict=True):
            points.append(np.arange(-(-low // stride) * stride, high, stride))
        index = np.concatenate([*points, [last]])
        distinct: Array = index[np.append(True, np.diff(index) > 0)]
        return distinct


@functools.lru_cache(maxsize=1024)
def plan(
    releases: tuple[tuple[Release, int], ...], epsilon: float, lowest: float | None = None
) -> Plan:
    """Choose the tilt and the window for δ(ε); `lowest` is the least ε that the plan must serve."""
    log_count = math.log(sum(count for _, count in releases))
    log_mass = _SHALLOW
    for _ in range(_MOST_DEEPENINGS):
        rough_laws = sketch(releases, log_mass)
        s = rough_laws.tilt(epsilon)
        wanted = rough_laws.log_bound(s, epsilon) - log_count - _SHARE
        if wanted >= log_mass or log_mass == -_FARTHEST:
            break
        log_mass = max(8.0 * math.floor(wanted / 8.0), -_FARTHEST)
    ceiling = _ceiling(releases, epsilon)
    low, high, u_low, u_high = rough_laws.window(s)
    if high > ceiling and rough_laws.some_below(ceiling):
        rough_laws = rough_laws.cut(ceiling)
        s = rough_laws.tilt(epsilon)
        low, high, u_low, u_high = rough_laws.window(s)
    else:
        ceiling = math.inf
    lost, lower, steepest = rough_laws.log_bound(s, epsilon), s, s
    for _ in range(_MOST_SMALLER):  # a smaller tilt suppresses large losses but costs digits
        lower /= _TILTS**2
        if rough_laws.log_bound(lower, epsilon) > lost + _LOG_PRECISION_COST:
            break
        other = rough_laws.window(lower)
        if other[1] - other[0] < _SHORTER * (high - low):
            s, (low, high, u_low, u_high) = lower, other
    tops = [min(ends(release, log_mass)[1], ceiling) for release, _ in releases]
    support = (
        sum(n * ends(release, log_mass)[0] for release, n in releases),
        sum(n * top for top, (_, n) in zip(tops, releases, strict=True)),
    )
    if high - low > _MOST_OF * (support[1] - support[0]):
        low, high = support[0], support[1] * (1 + 1e-9) + 1e-9 * (support[1] - support[0])
    bottoms = [ends(release, log_mass)[0] for release, _ in releases]
    spare = sum(n * (math.inf if r.top is None else r.top) for r, n in releases)
    spare -= epsilon if lowest is None else lowest
    for i, (release, _) in enumerate(releases):  # below, even the largest others give a sum ≤ ε
        if release.top is not None and not release.infinity:
            nearest = tops[i] - 1e-3 * (tops[i] - bottoms[i])
            least = min(release.top - _ROOM_BELOW * abs(spare), nearest)
            bottoms[i] = max(bottoms[i], least)
    outward, lowest_points = (u_low, u_high), tuple(bottoms)
    return Plan(
        releases, epsilon, log_mass, s, low, high, outward, lowest_points, ceiling, steepest, spare
    )


def plan_near(releases: tuple[tuple[Release, int], ...], epsilon: float) -> Plan:
    """Return a plan for ε, rounded to 12 bits unless the largest sum is too near."""
    chosen = plan(releases, near(epsilon))
    return chosen if chosen.serves(epsilon) else plan(releases, epsilon)


def _ceiling(releases: tuple[tuple[Release, int], ...], epsilon: float) -> float:
    """Return a loss of one release that makes the sum exceed ε, or +∞ if none is known."""
    least = 0.0
    for release, count in releases:
        if release.mu is not None:
            least -= release.mu**2 / 2 + _DEVIATIONS * release.mu
        elif release.lowest is None:
            return math.inf
        else:
            least += count * release.lowest
    ceiling = epsilon + _NEARBY * abs(epsilon) - least + _SPARE * abs(least)
    return ceiling if ceiling > 0 else math.inf


# --- Bounds of a product on a grid: upper and lower bounds on H(ε), and their inverse ε(δ) --------
# *Large losses.* Let B_i be the event that the loss of a release of kind i exceeds the last point
# of its grid, A = 1 − Π (1 − P(B_i))^{k_i} and B = 1 − Π (1 − Q(B_i))^{k_i}. Statement: the
# outcomes with some B_i contribute A − e^ε B + E_P[(e^{ε−L} − 1)⁺; some B_i] to H(ε), and the last
# term is at most
#
#     e^ε Q(some B_i, L < ε) ≤ e^ε Σ k_i Q(B_i) Q(the sum of the others < ε − l_i).
#
# The others sum to at least b + N, where b is the sum of their least losses, each at most 0, and N
# is normal. Without N the last factor is 0 if ε − l_i ≤ b. With N it is at most e^{−t²/2}/2 if
# ε − l_i − b lies t > 0 standard deviations below the mean of N. Otherwise it is at most 1. A
# release with outcomes that have probability 0 under P has least loss −∞; then nothing is cut.
#
# *The largest sum.* If P(L = ∞) < δ, ε(δ) is at most the sum of the largest finite losses, where
# H = P(L = ∞). Conversely, for the events A_i that a loss exceeds a point just below the largest,
# H(ε) ≥ Π P(A_i)^{k_i} − e^ε Π Q(A_i)^{k_i}. These bounds are close if δ is far below the first
# product, where a tilted sum is out of the range of floats.
#
# Both laws of every release are put on one grid, chosen from rough laws, and their sums are tilted.
# Grids of increasing size are tried. The width falls about as the square of the step, from which
# the size needed for the requested width is estimated.

Releases = tuple[tuple[Release, int], ...]
T = TypeVar("T")

LEAST, MOST, ALONE = 1 << 12, 1 << 21, 1 << 22
"""Numbers of grid points: at first, at most, and at most for releases of one kind. Sums on 2^21
points take about a second per ten kinds of releases."""
_ROOM = 1e-14
"""Covers the rounding of losses to floats."""
_STEPS = 40
"""Steps of each search for ε: doubling and halving reach every relevant float in fewer."""
SETTLED = 1e-13
"""Least relative accuracy to which a root ε is sought."""
_NEAR_BY, _MOVED, _LEAST_MOVE = 1 / 64, 1 / 256, 1e-10
"""Relative error that a rough ε may have; distance from the ε of a plan at which another plan is
made; and the least distance over which a slope is measured."""
_FOR_ALONE = 500
"""For more releases of one kind there are more points, in proportion: few components matter."""
_SECOND, _MOST_HELP = 1 << 14, 12
"""The first number of points if fewer surely do not reach a width; and the least ratio, met with
atoms on grid points, of the square of a step to what a release adds to a variance."""
_MOST_BLIND = 5
"""Number of grids after which a width above one half is given up."""
_SMOOTH, _LEAST_ORDER = 1.4, 0.7
"""Measured order of convergence from which on the order is taken as 2, the order for densities;
and the least order that is assumed."""
_MOST_UNMEASURED = 32
"""Factor up to which the second grid for densities is finer at once: for a larger one, measuring
the order first saves more than it takes."""
_WIDER = 1.1
"""Factor by which a finer grid may be wider than predicted without missing the width."""
_LEAST_FINER, _FIRST_FINER, _MOST_FINER = 1.5, 4, 64
"""Factors by which the number of points grows at least; at most for a second grid that measures the
order of convergence; and at most for others."""
_CACHED = 6
"""Number of cached sums, each of up to 2^22 points: more take memory, fewer are recomputed."""


@final
@dataclass(frozen=True, eq=False)
class Bracket:
    """The sums of the upper and of the lower laws for a plan; each is made when it is needed."""

    chosen: Plan
    points: int
    """The number of grid points of the window."""

    @cached_property
    def _frame(self) -> Frame:
        return self.chosen.frame(self.points)

    @cached_property
    def _placed(self) -> list[tuple[Release, int, Place, Place]]:
        """The releases with the grid points for their upper laws and for their lower laws."""
        step = self._frame.step
        return [
            (release, count, *self.chosen.places(number, step))
            for number, (release, count) in enumerate(self.chosen.releases)
        ]

    @cached_property
    def upper(self) -> TiltedSum | None:
        """The sum of the upper laws; None if it is out of the range of floats."""
        laws = [(above(release.survival, place), n) for release, n, place, _ in self._placed]
        return compose(laws, self._frame)

    @cached_property
    def lower(self) -> TiltedSum | None:
        """The sum of the lower laws; None if one does not exist or it is out of that range."""
        laws = []
        for release, count, _, place in self._placed:
            law = below(release.survival, place, release.infinity)
            if law is None:
                return None
            laws.append((law, count))
        return compose(laws, self._frame)

    @cached_property
    def large(self) -> Large | None:
        """The events of the grids that are cut, or None if none is."""
        return None if self.chosen.ceiling == math.inf else _large(self._placed)

    def bounds(self, epsilon: arb) -> tuple[arb, arb]:
        """Return a lower and an upper bound on H(ε)."""
        return self.bound(epsilon, above=False), self.bound(epsilon, above=True)

    def bound(self, epsilon: arb, *, above: bool) -> arb:
        """Return an upper bound on H(ε), or a lower one."""
        with ctx.workprec(_PRECISION):
            sure, doubtful = arb(0), arb(0)
            if self.large is not None:
                sure, doubtful = self.large.parts(epsilon)
            if above:
                high = arb(1) if self.upper is None else self.upper.above(epsilon)
                high += sure + doubtful
                return high.upper().min(arb(1)) if high.is_finite() else arb(1)
            low = arb(0) if self.lower is None else self.lower.below(epsilon)
            return (low + sure).lower().max((-epsilon.expm1()).lower()).max(arb(0))


@final
@dataclass(frozen=True)
class Large:
    """The quantities of *Large losses* for the events B_i."""

    some_p: arb
    some_q: arb
    events: tuple[tuple[arb, float], ...]
    """Upper bounds on k_i Q(B_i), and the l_i."""
    least: arb
    """The sum of the least losses of all releases that have one."""
    mu: float

    def parts(self, epsilon: arb) -> tuple[arb, arb]:
        """Return A − e^ε B and an upper bound on the last term."""
        growth, doubtful = epsilon.exp(), arb(0)
        for mass, loss in self.events:
            gap = loss + self.least - epsilon - arb(self.mu) ** 2 / 2
            if self.mu == 0:
                doubtful += arb(0) if gap >= 0 else mass
            else:
                doubtful += mass * ((-((gap / self.mu) ** 2) / 2).exp() / 2 if gap > 0 else 1)
        return self.some_p - growth * self.some_q, growth * doubtful


def _large(places: Sequence[tuple[Release, int, Place, Place]]) -> Large | None:
    """Return the events of the grids that are cut, or None if none is."""
    log_p, log_q, least, mu = arb(0), arb(0), arb(0), 0.0
    events = []
    with ctx.workprec(_PRECISION):
        for release, count, place, _ in places:
            if release.mu is not None:
                mu = math.nextafter(release.mu, math.inf)
            elif release.lowest is not None:
                least += count * arb(release.lowest) * (1 + _ROOM)
            if not place.cut:
                continue
            last = place.losses()[-1:]
            tail = release.survival(last)
            p = arb(float(tail.above_p[0]), float(tail.error_p[0]) * 1.01)
            q = arb(float(tail.above_q[0]), float(tail.error_q[0]) * 1.01) * arb(-last[0]).exp()
            log_p, log_q = log_p + count * (-p).log1p(), log_q + count * (-q).log1p()
            loss = float(last[0]) - _ROOM * (1 + abs(float(last[0])))
            events.append(((count * q).upper(), loss))
        if not events:
            return None
        return Large(-log_p.expm1(), -log_q.expm1(), tuple(events), least, mu)


@functools.lru_cache(maxsize=_CACHED)
def bracket(chosen: Plan, points: int) -> Bracket:
    """Return both sums for a plan on a window of `points` grid points."""
    return Bracket(chosen, points)


def near(epsilon: float) -> float:
    """Round to 12 bits, so that questions about nearly the same ε share a sum."""
    return shortened(epsilon, 12)


class Bounds(Protocol):
    """Bounds on a profile H."""

    def bound(self, epsilon: arb, *, above: bool) -> arb:
        """Return an upper bound on H(ε), or a lower one."""


def _excess(found: Bounds, target: arb, at: float, *, above: bool) -> float:
    """Return ln of the ratio of a bound to δ, rounded outward; −∞ where the bound is 0."""
    value = found.bound(arb(at), above=above)
    with ctx.workprec(_PRECISION):
        if not value > 0:
            return -math.inf
        ratio = (value / target).log()
        return float((ratio.upper() if above else ratio.lower()).mid())


def crossing(
    found: Bounds,
    target: arb,
    start: float,
    *,
    above: bool,
    near_by: float = _NEAR_BY,
    settled: float,
) -> Fraction | None:
    """Return a float near the root of one bound, at which H is certainly on the bound's side of δ.

    With `above` H is at most δ there, else at least δ. Return None if no bracket is found. The
    Illinois method starts at `start` with a relative step of `near_by`, and ends with a bracket of
    relative width `settled`.
    """

    def excess(at: float) -> float:
        return _excess(found, target, at, above=above)

    size = max(abs(start), 1e-9)
    step = size * near_by
    low = high = start
    at_low = at_high = excess(start)
    for _ in range(_STEPS):
        if at_high <= 0:
            break
        low, at_low, high, step = high, at_high, high + step, 2 * step
        at_high = excess(high)
    for _ in range(_STEPS):
        if at_low > 0:
            break
        high, at_high, low, step = low, at_low, low - step, 2 * step
        at_low = excess(low)
    if not at_low > 0 >= at_high:
        return None
    side = 0
    for _ in range(_STEPS):
        size = max(abs(low), abs(high))
        if high - low <= settled * size:
            break
        share = at_low / (at_low - at_high) if math.isfinite(at_high) else 0.5
        # Go a little past the root, as seen from the last end, so that the bracket gets narrow.
        middle = low + (high - low) * share + side * settled / 4 * size
        if not low < middle < high:
            middle = (low + high) / 2
        value = excess(middle)
        if value > 0:
            low, at_low, at_high, side = middle, value, at_high / (2 if side > 0 else 1), 1
        else:
            high, at_high, at_low, side = middle, value, at_low / (2 if side < 0 else 1), -1
    return Fraction(high if above else low)


Ends = tuple[Fraction | None, Fraction | None]
"""Points below and above ε(δ), each None if it is not found."""


def crossings(
    found: Bounds,
    target: arb,
    start: float,
    near_by: float = _NEAR_BY,
    settled: float = SETTLED,
) -> Ends:
    """Return points below and above ε(δ).

    The root is sought near `start`, with relative uncertainty `near_by`, to relative accuracy
    `settled`.
    """
    near_by = min(max(near_by, 4 * settled), _NEAR_BY)
    low, high = (
        crossing(found, target, start, above=side, near_by=near_by, settled=settled)
        for side in (False, True)
    )
    return low, high


def _gap(found: Bracket, target: arb, start: float) -> tuple[float, float] | None:
    """Return about the relative distance of the roots of both bounds, and about the upper root.

    Both come from three values near `start`; None if that is not near.
    """
    high, low = (_excess(found, target, start, above=side) for side in (True, False))
    size = max(abs(start), 1e-9)
    move = high / found.chosen.tilt
    if not (math.isfinite(low) and _LEAST_MOVE * size < abs(move) < _NEAR_BY * size):
        return None
    slope = (high - _excess(found, target, start + move, above=True)) / move
    if not slope > 0:
        return None
    return (high - low) / slope / size, start + high / slope


def refined(
    releases: Releases,
    on_grid: Callable[[int], tuple[float, T]],
    wanted: float,
    limit: int,
    first: int = LEAST,
) -> tuple[T, float, int]:
    """Return the result of the first grid that is fine enough, else that of the best grid tried.

    `on_grid` maps a number of points to a width and a result. Return the result, its width and the
    number of points. Because of rounding, a finer grid may be worse.
    """
    smooth = all(release.smooth or count >= _FOR_ALONE for release, count in releases)
    points = first
    tried = list[tuple[int, float]]()
    best = None
    while True:
        width, found = on_grid(points)
        tried.append((points, width))
        if best is None or width <= best[1]:
            best = found, width, points
        following = None if width <= wanted else _next_points(tried, wanted, limit, smooth=smooth)
        if following is None:
            return best
        points = following


def relative_width(lower: arb, upper: arb) -> float:
    """Return the relative width of two bounds on H."""
    return float((upper - lower) / lower) if lower > 0 else math.inf


def _next_points(
    tried: list[tuple[int, float]], wanted: float, limit: int, *, smooth: bool
) -> int | None:
    """Return the next number of points to try, or None if none in reach will do.

    It is 4, 5 or 6 times a power of two. The order of convergence is measured, unless one finer
    grid is enough, and losses have densities or are so many of a kind that a sum takes little time.
    """
    (points, width), order = tried[-1], 2.0
    if points > ALONE and not width <= 0.5:  # too many of its components matter
        return ALONE if all(before < ALONE for before, _ in tried[:-1]) else None
    if points >= limit:
        return None
    if not width <= 0.5:
        return min(_FIRST_FINER * points, limit) if len(tried) < _MOST_BLIND else None
    last, before = tried[-2] if len(tried) > 1 else (points, width)
    if width < before:
        found = math.log(before / width) / math.log(points / last)
        order = 2.0 if found > _SMOOTH else max(found, _LEAST_ORDER)
    factor = (_WIDER * width / wanted) ** (1 / order)
    if points * factor > 8 * limit and len(tried) > 2 and before <= 0.5:
        return None
    known = len(tried) > 1 or (smooth and factor < _MOST_UNMEASURED)
    needed = points * min(max(factor, _LEAST_FINER), _MOST_FINER if known else _FIRST_FINER)
    unit = 1 << max(0, math.ceil(math.log2(needed / 6)))
    return int(min(math.ceil(needed / unit) * unit, limit))


POINTS = (1 << 12, 1 << 14, 1 << 16, 1 << 18)
"""Grid points of a sum for working precisions of 128, 256, 512 and at least 1024 bits."""
_DIGITS = 20
"""Digits of the ends, which are rounded outward."""
_LEAST_SIZE = Fraction(1, 10**9)
"""For a smaller epsilon, widths are relative to this."""
_SOUGHT = 1 / 64
"""Share of the requested width to which the roots of both bounds are sought."""
_PLACE_BITS = 4
"""Bits of the ε of a coarse grid: with fewer, more questions share a less exact grid."""
_REUSED, _ENOUGH = 0.75, 1.02
"""A coarse grid made for one point serves a smaller one at a distance of at most this share of the
sum of their absolute values, if the ratio of its bounds there is below the second number."""
_ABOVE = 0.25
"""Sums for several points are made for a point above them by this share of ε, and serve points
down to this share below."""
_BELOW_LARGEST = 1e-9
"""Distance of a point just below the largest loss from it, as a share of the range."""
_AGREE = 0.05
"""Relative difference: if the roots of both laws are closer, their grid locates the root."""
_NEARLY = 1e-3
"""Relative accuracy of an estimate, from which secant steps continue."""
_OF_SUMS = 1 << 18
"""Largest number of grid points for samples of compositions, whose tails are slow."""
_NO_ROOT = "No grid reaches an epsilon for this delta. Give a larger delta."
_BRACKET_ROOM = 0.98
"""Share of the requested width that the bounds may take; the rest is for rounding to decimals."""


@functools.lru_cache(maxsize=64)
def _releases(product: Product) -> Releases:
    return releases(product.factors)


def guess(product: Product, log_delta: float) -> float:
    """Return a float estimate of the root of H(ε) = δ."""
    wanted = log_delta - _GUESSED
    log_mass = _SHALLOW if wanted >= _SHALLOW else 8.0 * math.floor(wanted / 8.0)
    return sketch(_releases(product), max(log_mass, -_FARTHEST)).guess(log_delta)


def estimate(product: Product, log_delta: float) -> float:
    """Return a better estimate of that root, from the upper law on a coarse grid.

    If a law fails in floats, the upper one fails last.
    """
    at, delta = guess(product, log_delta), arb(log_delta).exp()
    for points in POINTS[:2]:
        found = bracket(plan_near(_releases(product), at), points)
        high = crossing(found, delta, at, above=True, settled=_NEARLY)
        if high is not None:
            at = float(high)
            if found.bound(arb(at - _AGREE * abs(at)), above=False) > delta:
                break
    return at


def roughly(product: Product) -> Callable[[float], arb]:
    """Return H from coarse grids. Each is made for a point and reused below it if it suffices."""
    made: list[tuple[float, Bracket]] = []

    def value(epsilon: float) -> arb:
        for place, known in made:
            if epsilon <= place <= epsilon + _REUSED * (abs(place) + abs(epsilon)):
                lower, upper = known.bounds(arb(epsilon))
                if upper < _ENOUGH * lower:
                    return lower.union(upper)
        place = shortened(_above(product, epsilon, 0.5), _PLACE_BITS, math.ceil)
        least = shortened(epsilon - abs(epsilon) / 2, _PLACE_BITS, math.floor)
        chosen = plan(_releases(product), place, least)
        made.append((place, bracket(chosen, LEAST)))
        lower, upper = made[-1][1].bounds(arb(epsilon))
        return lower.union(upper)

    return value


def values_near(
    product: Product, epsilon: float, relative: float, most: int | None
) -> Callable[[float], arb]:
    """Return H near a point, with the relative width `relative` there if a grid reaches it.

    All values are computed from one pair of sums, made for a point a little above `epsilon`. Their
    bounds hold at every ε, but are useless far above that point.
    """
    note("grid")
    place = near(_above(product, epsilon, _ABOVE))
    chosen = plan(_releases(product), place, near(epsilon - abs(epsilon) * _ABOVE))

    def width(points: int) -> tuple[float, Bracket]:
        known = bracket(chosen, points)
        return relative_width(*known.bounds(arb(epsilon))), known

    known, _, _ = refined(_releases(product), width, relative, most or _most(product))

    def value(at: float) -> arb:
        lower, upper = known.bounds(arb(at))
        return lower.union(upper)

    return value


def _above(product: Product, epsilon: float, share: float) -> float:
    """Return ε + share·|ε|, but go at most halfway to the largest loss."""
    place, largest = epsilon + share * abs(epsilon), float(max_finite_loss(product).mid())
    return place if epsilon >= largest else min(place, (epsilon + largest) / 2)


def bracket_root(product: Product, delta: ExactReal, points: int, *, above: bool) -> Fraction:
    """Return a point near ε(δ) at which H is certainly at most δ or, unless `above`, at least δ.

    If a grid has no such lower point, return a float below ln(1 − δ), since H(ε) ≥ 1 − e^ε.
    """
    note("grid")
    target = delta.ball()
    start = guess(product, float(target.log()))
    grid = bracket(plan_near(_releases(product), start), points)
    found = crossing(grid, target, start, above=above, settled=SETTLED)
    if found is None and not above:
        least = enclose(lambda: arb.log1p(-delta.ball())).lower
        return Fraction(math.nextafter(float(least), -math.inf))
    if found is None:
        raise UndecidedError(_NO_ROOT)
    return found


def bracket_bounds(product: Product, epsilon: ExactReal, points: int) -> tuple[arb, arb]:
    """Return a lower and an upper bound on H(ε) from a grid of `points` points."""
    low, high = (bracket_bound(product, epsilon, points, above=side) for side in (False, True))
    return low, high


def bracket_bound(product: Product, epsilon: ExactReal, points: int, *, above: bool) -> arb:
    """Return an upper bound on H(ε), or a lower one, from a grid of `points` points."""
    note("grid")
    mass = product.infinity_mass()
    if mass == 1 or product.is_beyond(epsilon):
        return mass
    chosen = plan_near(_releases(product), float(epsilon))
    return bracket(chosen, points).bound(epsilon.ball(), above=above)


def refuse_fine_width(product: Product, epsilon: ExactReal) -> None:
    """Raise UndecidedError unless the coarsest grid bounds H(ε) within a factor of two.

    This is asked for relative widths below `FINEST_WIDTH`. If a grid can reach one, and the losses
    have densities, the coarsest grid is that good.
    """
    lower, upper = bracket_bounds(product, epsilon, POINTS[0])
    if not upper < 2 * lower:
        shown = Interval.between(lower, upper)
        raise UndecidedError(
            f"Reached delta in [{shown.lower:.8g}, {shown.upper:.8g}] on a grid of "
            f"{POINTS[0]} points; contours, which are more accurate, are too long here. Ask for a "
            "larger relative_width.",
            reached=relative_width(lower, upper),
        )


def _refined(  # noqa: PLR0917
    product: Product,
    width: Callable[[int], tuple[float, T]],
    wanted: float,
    name: str,
    enclosed: Callable[[T], Interval | None],
    most: int,
    *,
    first: int = LEAST,
) -> T:
    """Return the bounds from the first grid on which their width is at most `wanted`.

    Raises UndecidedError if no grid reaches it.
    """
    found, reached, points = refined(_releases(product), width, wanted, most, first)
    if reached <= wanted:
        return found
    known = enclosed(found)
    shown = f"[{known.lower:.8g}, {known.upper:.8g}]" if known else "no range"
    raise UndecidedError(
        f"Reached {name} in {shown}, of relative width {reached:.1e}, on a grid of {points} "
        f"points, and {most} points are the most. Ask for a larger relative_width.",
        reached=reached,
        interval=known,
    )


def between(found: Ends) -> Interval | None:
    """Return an interval with these ends, rounded outward, or None if one is not known."""
    low, high = found
    if low is None or high is None:
        return None
    return Interval.of_exact(low, _DIGITS).hull(Interval.of_exact(high, _DIGITS))


def _narrower(first: Ends, second: Ends) -> Ends:
    """Return the larger of the lower ends and the smaller of the upper ends that are known."""
    lows, highs = ([x for x in each if x is not None] for each in zip(first, second, strict=True))
    return max(lows, default=None), min(highs, default=None)


def relative_gap(found: Ends) -> float:
    """Return the relative distance of the ends, +∞ if one is not known.

    That of ends near 0 is relative to `_LEAST_SIZE`; else no enclosure of 0 would be narrow.
    """
    low, high = found
    if low is None or high is None:
        return math.inf
    return float((high - low) / max(min(abs(low), abs(high)), _LEAST_SIZE))


def _near_largest(product: Product, target: arb) -> Ends:
    """Return ends of ε(δ) > −∞ near the largest sum of finite losses (see *The largest sum*)."""
    p, q = arb(1), arb(1)
    with ctx.workprec(_PRECISION):
        try:
            most = max_finite_loss(product).upper()
            high = fraction(most) if most.is_finite() else None
        except NotApplicableError:
            return None, None
        for release, count in _releases(product):
            if release.top is None or release.bottom is None:
                return None, high
            place = np.array([release.top - _BELOW_LARGEST * (release.top - release.bottom)])
            tail = release.survival(place)
            p *= (arb(tail.above_p[0]) - arb(tail.error_p[0]) * 2).max(arb(0)) ** count
            q *= ((arb(tail.above_q[0]) + arb(tail.error_q[0]) * 2) * arb(-place[0]).exp()) ** count
        if not (p > target and q > 0):
            return None, high
        low = ((p - target) / q).log().lower()
        return (fraction(low) if low.is_finite() else None), high


def _points() -> int:
    level = max(0, min(len(POINTS) - 1, (ctx.prec // 128).bit_length() - 1))
    return POINTS[level]


def _samples_sums(product: Product) -> bool:
    """Whether a factor is a sample of a composition of several releases."""
    samples = (pair.inner for pair in product.pairs if isinstance(pair, SubsampledPair))
    return any(isinstance(inner, Product) for inner in samples)


def _most(product: Product) -> int:
    if _samples_sums(product):
        return _OF_SUMS
    if len(product.factors) > 1:
        return MOST
    return ALONE << max((product.factors[0][1] // _FOR_ALONE).bit_length() - 1, 0)


FINEST_WIDTH = Fraction(1, 10**8)
"""A relative width below which a grid hardly ever answers, even after minutes."""
_WIDTH_OF_SUMS = Fraction(1, 10**4)
"""The relative width quickly reached for samples of compositions."""


@final
@dataclass(frozen=True)
class Grid(Engine):
    """An engine that brackets the product by two laws on a grid; it needs only tails of pairs."""

    most: int | None = None
    """The largest number of grid points; None selects a default."""

    numerical = True

    def width(self, product: Product) -> Fraction:
        """Return the relative width that grids reach within about a second."""
        return _WIDTH_OF_SUMS if _samples_sums(product) else GRID_WIDTH

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return a ball that contains both bounds on H(ε).

        Raises UndecidedError, with the bounds reached, if the requested width needs a grid finer
        than the largest one.
        """
        wanted = product.relative_width
        if wanted is None:
            lower, upper = bracket_bounds(product, epsilon, _points())
            return lower.union(upper)
        if product.infinity_mass() == 1:
            return arb(1)

        def width(points: int) -> tuple[float, tuple[arb, arb]]:
            lower, upper = bracket_bounds(product, epsilon, points)
            reached = 0.0 if upper.is_zero() else relative_width(lower, upper)
            return reached, (lower, upper)

        lower, upper = _refined(
            product,
            width,
            float(wanted) * _BRACKET_ROOM,
            "delta",
            lambda known: Interval.between(*known),
            self.most or _most(product),
        )
        return lower.union(upper)

    def inverse(
        self,
        product: Product,
        delta: ExactReal,
        relative_width: Fraction,
        start: float | None = None,
    ) -> Interval:
        """Enclose ε(δ) between the points at which the two bounds cross δ.

        The search begins at `start`. Raises UndecidedError as `profile` does.
        """
        note("grid")
        kinds, target = _releases(product), delta.ball()
        wanted, most = float(relative_width) * _BRACKET_ROOM, self.most or _most(product)
        settled = max(float(relative_width) * _SOUGHT, SETTLED)
        largest = _near_largest(product, target)
        if (answer := between(largest)) and relative_gap(largest) <= wanted:
            return answer
        at = guess(product, float(target.log())) if start is None else start
        chosen, near_by = plan_near(kinds, at), _NEAR_BY

        def ends(found: Bracket) -> Ends:
            return _narrower(crossings(found, target, at, near_by, settled), largest)

        def width(points: int) -> tuple[float, Callable[[], Ends]]:
            nonlocal at, chosen, near_by
            if not chosen.serves(at, _MOVED):
                chosen = plan_near(kinds, at)
            found = bracket(chosen, points)
            if rough := _gap(found, target, at):
                moved = abs(rough[1] - at) / max(abs(at), float(_LEAST_SIZE))
                near_by, at = max(rough[0], moved * _NEAR_BY), rough[1]
                if points < most and rough[0] > 2 * wanted:
                    return rough[0], functools.partial(ends, found)
            low, high = crossed = ends(found)
            about = low if high is None else high
            at = at if about is None else float(about)
            reached = relative_gap(crossed)
            near_by = min(reached, near_by)
            return reached, lambda: crossed

        first = LEAST if chosen.may_reach(wanted, LEAST) else min(_SECOND, most)
        found = _refined(
            product, width, wanted, "epsilon", lambda known: between(known()), most, first=first
        )
        answer = between(found())
        if answer is None:
            raise UndecidedError(_NO_ROOT)
        return answer

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return the upper bound from the coarsest grid."""
        return bracket_bound(product, epsilon, LEAST, above=True)


GRID = Grid()
