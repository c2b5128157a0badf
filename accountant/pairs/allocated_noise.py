"""Random allocation of any noise: the mean of t likelihood ratios, from above and from below.

(A, B) is the worst pair of one step, L = dA/dB under B, and W = (L_1 + … + L_t)/t with independent
terms. P, which runs A in one step chosen uniformly, has the density W against Q, which runs B in
all: H(ε) is E(W − K)⁺ with K = e^ε, or K E(1/K − W)⁺ with the mixture last.

*Above and below.* U(k) = E(L − k)⁺ is H of (A, B) at ln k, and E(k − L)⁺ is k times that of (B, A)
at −ln k. `composition.grid.dominate` lists masses on given losses with a profile above H, or below:
here at the losses ln nh, so that they are masses of L on nh with a larger, or smaller, U(k) for all
k > 0. Their sum is put above, or below, that of B by a mass at 0, so that the same holds for k ≤ 0.
A mean over nonnegative masses, E_rest U(θ − rest), replaces one L after the other: the sum of t
terms with larger U has a larger E(Σ − θ)⁺. It is a convolution power (`composition.grid.tilted`).

*Cut.* Let B' be the event L > T, T ≥ tK: there Σ ≥ tK, as L ≥ 0. With a = A(not B') and
p = B(not B') the outcomes with some such L add, of E Σ = t,

    1 − a p^{t−1} − K (1 − p^t)

to E(W − K)⁺, and the others have masses of L up to T. Of E(K − W)⁺ no L above tK has a part.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from flint import arb

from dpassay.accountant.composition.grid import dominate, engine
from dpassay.accountant.composition.grid.dominate import GridLaw, Place
from dpassay.accountant.composition.grid.factors import Release, releases
from dpassay.accountant.composition.grid.plan import Sketch, ends
from dpassay.accountant.composition.grid.survival import UNIT, Array
from dpassay.accountant.composition.grid.tilted import Frame, TiltedSum, compose
from dpassay.accountant.composition.product import apart
from dpassay.accountant.core.pair import Pair, ProfileOnly, Tails, WorstCase
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers import ledger
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.halving import halved
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import shortened
from dpassay.accountant.pairs.allocated_values import allocated_values
from dpassay.accountant.pairs.finite_losses import finite
from dpassay.accountant.pairs.two_ends import narrow_enough

_LEAST, _MOST = 1 << 16, 1 << 20
"""Points of the sum at first and at most: the last take about a second."""
_MENDINGS, _CLOSE = 16, 0.05
"""Times that a rough ε is mended, and how near ln δ that comes."""
_ROUGH = 512
"""Losses of the rough law by which a grid is chosen."""
_DEEP = -27.0
"""ln of the mass of the ratios below the grid, where they have no least one."""
_FINE, _FINE_SLOW = 14, 9
"""Bits of a ratio of neighbouring grid points, where tails come fast, and where they are balls."""
_ABOVE = 1.03
"""T over tK: other ε share the grid up to there."""
_NUDGE = 1e-12
"""Relative shift of the ends from the least and the largest ratio: a rounding, or an atom there is
missed."""
_PRECISION = 128
"""Bits of sums of what lies beyond the cut."""
_SHARED = 6
"""Bits of the ε for which a grid is made: others near it use the same."""
_STEEPEST = 500.0
"""Largest exponent of a tilt: where one ratio has nearly all of the mass, none is best."""
_LEAST_OF, _SPARE = 1e-4, 0.25
"""Share of all sums below which the width of a window is not known; and its own share by which it
may be longer if it then ends where the sums do."""
_ROOM = 1e-9
"""Share of the support that is added at both ends of a window with all of it."""
_STEPS = 24
"""Halvings of a search for a rough ε."""
_LEAST_STEP = 1e-6
"""Least share of e^ε by which a slope is taken."""
_DIGITS = 20
"""Of the ends, which are rounded outward."""
_SETTLED, _NEAR = 1e-12, 1 / 64
"""Shares of ε to which the roots of both bounds are sought, and by which a rough one is off."""


@contextlib.contextmanager
def _in_floats() -> Iterator[None]:
    """Raise UndecidedError where floats do not hold a likelihood ratio, or e^ε."""
    try:
        with np.errstate(over="raise", invalid="raise"):
            yield
    except (ArithmeticError, ValueError) as error:
        raise UndecidedError(
            "Floats do not hold the likelihood ratios of a step. Use more noise, or Gaussian noise."
        ) from error


@final
@dataclass(frozen=True)
class AllocatedNoise(ProfileOnly):
    """(P, Q), or (Q, P) with the mixture last, t ≥ 2; the losses of one step are finite."""

    law_name = "allocated-noise"

    inner: Pair
    """(A, B)."""
    steps: int
    mixed_first: bool = True
    relative_width: Fraction | None = field(default=None, compare=False)

    only_bounded: ClassVar = True
    usual_width: ClassVar = Fraction(1, 10**5)
    """Relative width of answers for which none is named: what comes within about a second."""

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball around both bounds of H(ε), to a width that is asked for if that comes."""
        if self.max_loss() <= epsilon.ball():
            return arb(0)
        low, high = self._bounds(epsilon, float(self.relative_width or self.usual_width))[1]
        return low.union(high)

    @_in_floats()
    def _bounds(self, epsilon: ExactReal, wanted: float) -> tuple[_Grid, tuple[arb, arb]]:
        at, near = epsilon.ball(), shortened(float(epsilon), _SHARED)
        ledger.note("grid")

        def bounds(points: int) -> tuple[float, tuple[_Grid, tuple[arb, arb]]]:
            grid = _grid(self, near, points)
            low, high = (grid.bound(at, above=above) for above in (False, True))
            return engine.relative_width(low, high), (grid, (low, high))

        return engine.refined(bounds, wanted, _MOST, _LEAST)[0]

    @_in_floats()
    def tails(self, epsilon: ExactReal) -> Tails:
        """Return probabilities from slopes: H is convex in e^ε, with the slope −Q(L > ε)."""
        wanted = float(self.relative_width or self.usual_width)
        grid, (low, high) = self._bounds(epsilon, wanted)
        with ctx.workprec(_PRECISION):
            at = epsilon.ball()
            width = float((high - low) / low) if low > 0 else 1.0
            share = arb(min(max(math.sqrt(width), _LEAST_STEP), 0.5))
            size = at.exp() * share
            before = grid.bound(at + (-share).log1p(), above=True)
            after = grid.bound(at + share.log1p(), above=True)
            above = ((low - after) / size).union((before - low) / size)
            q = above.max(arb(0)).min(arb(1)).min((-at).exp())
            p = (low.union(high) + at.exp() * q).max(arb(0)).min(arb(1))
            return Tails(p, 1 - p, q, 1 - q)

    @_in_floats()
    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose the ε with H(ε) = δ; UndecidedError, with both ends, if the width is not met."""
        ledger.note("grid")
        target = delta.ball()
        start = self._epsilon(float(target.log().mid()))
        near = shortened(start, _SHARED)

        def between(points: int) -> tuple[float, Interval | None]:
            grid = _grid(self, near, points)
            ends = [
                engine.crossing(grid, target, start, above=above, near_by=_NEAR, settled=_SETTLED)
                for above in (False, True)
            ]
            if ends[0] is None or ends[1] is None:
                return math.inf, None
            low, high = (Interval.of_exact(end, _DIGITS) for end in ends if end is not None)
            found = low.hull(high)
            return float(found.relative_width or math.inf), found

        found, _, _ = engine.refined(between, float(relative_width), _MOST, _LEAST)
        if found is None:
            raise UndecidedError(f"No epsilon was found for delta={delta} on a grid.")
        return narrow_enough(found, relative_width, "sums on grids are not finer")

    def estimate_log_delta(self, epsilon: float) -> float | None:
        """Return about ln H(ε), by the saddle of the rough law; None beyond floats."""
        with contextlib.suppress(UndecidedError), _in_floats():
            return self._log_delta(epsilon)
        return None

    def _log_delta(self, epsilon: float) -> float:
        law, theta = _sketch(self, shortened(epsilon, _SHARED)), _threshold(self, epsilon)
        s = law.tilt(theta)
        value, mean, variance = law.cumulants(s)
        curvature = variance + 1 / s**2
        log = value - s * theta - 2 * math.log(s) - math.log(2 * math.pi * curvature) / 2
        log -= (mean - theta - 1 / s) ** 2 / (2 * curvature)
        return log - math.log(self.steps) + (0.0 if self.mixed_first else epsilon)

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return about the ε with ln H(ε) = log_delta; None beyond floats."""
        with contextlib.suppress(UndecidedError), _in_floats():
            return self._epsilon(log_delta)
        return None

    def _epsilon(self, log_delta: float) -> float:
        """Return that of the rough law, mended on a grid."""
        shift, low, high = 0.0, 0.0, float(self.max_loss().upper())
        for _ in range(_MENDINGS):
            at = self._rough_epsilon(log_delta - shift)
            if not low < at < high:
                at = (low + high) / 2 if math.isfinite(high) else 2 * low
            grid = _grid(self, shortened(at, _SHARED), _LEAST)
            log = float(grid.bound(arb(at), above=True).log().mid())
            if abs(log - log_delta) < _CLOSE:
                break
            shift = log - self._log_delta(at)
            low, high = (at, high) if log > log_delta else (low, at)
        return at

    def _rough_epsilon(self, log_delta: float) -> float:
        most = self.max_loss()
        low, high = 0.0, float(most.upper()) if most.is_finite() else 1.0
        while not most.is_finite() and self._log_delta(high) > log_delta:
            low, high = high, 2 * high
        return halved(lambda at: self._log_delta(at) > log_delta, low, high, _STEPS)[0]

    @property
    def refusal(self) -> str:
        """Say what is known."""
        return (
            "Of a random allocation of this noise delta, epsilon and beta of one epoch are known, "
            "not its divergences or the law of its loss. Ask for one of these, or use Gaussian."
        )

    def max_loss(self) -> arb:
        """Return that of one step: all ratios may be the largest."""
        return (self.inner if self.mixed_first else self.inner.reverse()).max_loss()

    def reverse(self) -> AllocatedNoise:
        """Return the other order."""
        return replace(self, mixed_first=not self.mixed_first)

    def to_width(self, relative_width: Fraction | None) -> AllocatedNoise:
        """Return the same pair, whose grid is as fine as a relative width asks for."""
        return replace(self, relative_width=relative_width)


def _threshold(pair: AllocatedNoise, epsilon: float) -> float:
    """Return tK, or −t/K, beyond which Σ, or −Σ, counts."""
    size = pair.steps * math.exp(epsilon if pair.mixed_first else -epsilon)
    return size if pair.mixed_first else -size


def _release(pair: AllocatedNoise) -> Release:
    ((release, _),) = releases([(pair.inner if pair.mixed_first else pair.inner.reverse(), 1)])
    return release


def _ends(pair: AllocatedNoise, epsilon: float) -> tuple[float, float, bool, bool]:
    """Return ln of the least and of the largest ratio on the grid.

    And whether the former is that of all outcomes, and the latter a cut.
    """
    release, limit = _release(pair), math.log(abs(_threshold(pair, epsilon)) * _ABOVE)
    bottom, top = ends(release, _DEEP)
    least, most = release.bottom, release.top
    if not pair.mixed_first:
        bottom, least, most = -top, _minus(most), _minus(least)
    if most is not None and most < limit:
        return bottom, most, bottom == least, False
    if not bottom < limit:
        return limit - 1, limit, False, pair.mixed_first
    return bottom, limit, bottom == least, pair.mixed_first


def _minus(x: float | None) -> float | None:
    return None if x is None else -x


@dataclass(frozen=True, eq=False)
class _Ratios(Place):
    """The losses ±ln z of the ratios z = origin + nh, which increase, or decrease."""

    sign: int = field(default=1)

    @property
    def ratios(self) -> Array:
        """The z."""
        return self.origin + self.step * self.index

    @property
    def gaps(self) -> Array:
        """The distances of neighbours."""
        z = self.ratios
        return np.log1p(self.step * np.abs(np.diff(self.index)) / np.minimum(z[:-1], z[1:]))

    @property
    def reach(self) -> float:
        """A bound of the sizes of losses."""
        return float(np.max(np.abs(self.losses())))

    def losses(self) -> Array:
        """Return the points."""
        return self.sign * np.log(self.ratios)

    def middles(self) -> Array:
        """Return the middles of the cells."""
        return self.losses()[:-1] + self.gaps / 2


def _masses(pair: AllocatedNoise, law: GridLaw, place: _Ratios, total: float, side: int) -> GridLaw:
    """Return masses of B at the ratios, at minus these with the mixture last.

    Their sum is at least `total` for side 1, at most for side −1. What is missing of it is put at
    the least ratio for side 1, at 0 for side −1 if that is a multiple of the step.
    """
    if not pair.mixed_first:
        if not place.origin:
            masses = np.append(law.masses, law.infinity)
            return GridLaw(0.0, np.append(-place.index, 0), masses, 0.0)
        masses = law.masses.copy()
        masses[-1] += law.infinity
        return GridLaw(-place.origin, -place.index, masses, 0.0)
    masses = law.masses / place.ratios * (1 + 8 * side * UNIT)
    own = float(masses.sum(dtype=np.longdouble))
    if side < 0 and own > total:
        masses *= total / own * (1 - len(masses) * UNIT)
    rest = max(total - own, 0.0) * (1 + 8 * side * UNIT)
    if not place.origin:
        return GridLaw(0.0, np.append(0, place.index), np.append(rest, masses), 0.0)
    masses[0] += rest if side > 0 else 0.0
    return GridLaw(place.origin, place.index, masses, 0.0)


@functools.lru_cache(maxsize=256)
def _sketch(pair: AllocatedNoise, epsilon: float) -> Sketch:
    """Return a rough law of L, or of −L, as the only term of t."""
    low, high, _, cut = _ends(pair, epsilon)
    z = np.exp(np.linspace(low, high, _ROUGH))
    sign = 1 if pair.mixed_first else -1
    place = _Ratios(0.0, 1.0, z[::sign], cut, sign)
    law = _masses(pair, dominate.above(_release(pair).survival, place), place, 1.0, 1)
    with np.errstate(divide="ignore"):
        logs = np.log(law.masses)[None, :]
    return Sketch(np.asarray(law.index, dtype=float)[None, :], logs, np.array([float(pair.steps)]))


@final
@dataclass(frozen=True, eq=False)
class _Grid:
    """Both sums for one pair, and what lies beyond the cut."""

    pair: AllocatedNoise
    upper: TiltedSum | None
    lower: TiltedSum | None
    limit: float
    """T, +∞ where nothing is cut."""
    beyond: tuple[arb, arb]
    """A(B') and B(B')."""

    def bound(self, epsilon: arb, *, above: bool) -> arb:
        """Return an upper bound of H(ε), or a lower one."""
        t, first = self.pair.steps, self.pair.mixed_first
        with ctx.workprec(_PRECISION):
            size = epsilon.exp() if first else (-epsilon).exp()
            trivial = arb(1) if above else (-epsilon.expm1()).max(arb(0)).lower()
            found = self.upper if above else self.lower
            if found is None or not t * size < self.limit:
                return trivial
            threshold = t * size if first else -t * size
            value = (found.above if above else found.below)(threshold) / t
            if not value.is_finite():
                return trivial
            if first:
                value += self._rest(size)
            else:
                value /= size
            return value.upper().min(trivial) if above else value.lower().max(trivial)

    def _rest(self, size: arb) -> arb:
        t, (p, q) = self.pair.steps, self.beyond
        less = q.log1p() if q.is_zero() else (-q).log1p()
        some_p = -((-p).log1p() + (t - 1) * less).expm1()
        return some_p + size * (t * less).expm1()


@functools.lru_cache(maxsize=8)
def _grid(pair: AllocatedNoise, epsilon: float, points: int) -> _Grid:
    """Return both sums, on so many points, for losses near one."""
    t, sign, release = pair.steps, 1 if pair.mixed_first else -1, _release(pair)
    low, high, bounded, cut = _ends(pair, epsilon)
    rough = _sketch(pair, epsilon)
    least, most = math.exp(low) if bounded else 0.0, math.exp(high)
    steepest = _STEEPEST / (most - least)
    tilt = min(rough.tilt(_threshold(pair, epsilon)), steepest)
    bottom, top, *outward = rough.window(tilt)
    u_low, u_high = (min(u, steepest) for u in outward)
    support = sorted((sign * t * least, sign * t * most))
    whole = support[1] - support[0]
    spare = whole if top - bottom < _LEAST_OF * whole else (top - bottom) * _SPARE
    if bottom - spare < support[0]:
        bottom = support[0] - _ROOM * whole
    if top + spare > support[1]:
        top = support[1] + _ROOM * whole
    cells = max(math.floor((most - least) * (points - 8) / (top - bottom)), 2)
    fine = 1 << (_FINE_SLOW if release.slow else _FINE)
    step = (most - least) / cells
    first = max(math.exp(low), step)
    z = np.geomspace(first, most, math.ceil(math.log(most / first) * fine) + 2)
    ends_too = [0, cells] if bounded else [cells]  # 0 stands for no outcome elsewhere
    index = np.unique(np.append(np.round((z - least) / step), ends_too).astype(np.int64))[::sign]
    beyond, within, limit = (arb(0), arb(0)), (1.0, 1.0), math.inf
    places = []
    for side in (1, -1):
        start, end = least * (1 - _NUDGE * (1 if side > 0 else sign)), most
        if not cut:
            end *= 1 + _NUDGE * (1 if side > 0 else -sign)
        places.append(_Ratios(start, (end - start) / cells, index, cut, sign))
    upper_place, lower_place = places
    if cut:
        at = upper_place.losses()[-1:]
        tail = release.survival(at)
        p = arb(float(tail.above_p[0]), float(tail.error_p[0]) * 1.01)
        q = arb(float(tail.above_q[0]), float(tail.error_q[0]) * 1.01) * arb(-at[0]).exp()
        beyond, limit = (p, q), most * (1 - _NUDGE)
        within = float((1 - q).lower()), float((1 - q).upper())
    upper = _masses(pair, dominate.above(release.survival, upper_place), upper_place, within[1], 1)
    below = dominate.below(release.survival, lower_place, 0.0)
    lower = None if below is None else _masses(pair, below, lower_place, within[0], -1)

    def power(law: GridLaw | None, step: float) -> TiltedSum | None:
        frame = Frame(tilt, step, bottom, points, (u_low, u_high), linear=True)
        return None if law is None else compose([(law, t)], frame)

    return _Grid(
        pair, power(upper, upper_place.step), power(lower, lower_place.step), limit, beyond
    )


def allocated(inner: WorstCase, steps: int, participations: int) -> Pair | None:
    """Return the pair of the allocation of a step; None where it is not known.

    Both directions of a step need one pair, whose losses are finite.
    """
    if len(inner.remove) != 1 or inner.enveloped or inner.add != (inner.remove[0].reverse(),):
        return None
    (pair,) = inner.remove
    masses = (pair.infinity_mass(), pair.reverse().infinity_mass())
    if pair.only_bounded or len(apart([(pair, 1)])) != 1 or not all(m.is_zero() for m in masses):
        return None
    few = finite(pair)
    found = None if few is None else allocated_values(few, steps, participations)
    if found is not None or participations > 1:
        return found
    return AllocatedNoise(pair, steps)
