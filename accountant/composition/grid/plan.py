"""Where a grid is put: the ends of each loss, the tilt, the window and the step.

All numbers here are floats that choose; the bounds of `tilted` hold whatever is chosen.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from dpassay.accountant.composition.grid import dominate
from dpassay.accountant.composition.grid.dominate import Place
from dpassay.accountant.composition.grid.factors import Release
from dpassay.accountant.composition.grid.survival import Array
from dpassay.accountant.composition.grid.tilted import Frame
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.chernoff import rough_log_peak

COARSE = 256
"""Cells of one release in the rough law by which the grid is chosen."""
_CUT = 36.0
"""The tilted mass beyond the window, as −ln: far below any width that is asked for."""
_SHALLOW = -50.0
"""ln of the mass of one release beyond its largest grid point, at first."""
_GUESSED = 36.0
"""−ln of the share of δ that a first guess may lose there: at usual δ it is then no deeper."""
_SHARE = 16.0
"""What may be lost there of δ, as −ln and above −ln of the count."""
_BOTTOM = 1 - 4e-15
"""P(L > l) above which floats hardly tell l from the least loss."""
_FARTHEST = 600.0
"""Losses beyond it have exponentials that floats do not hold."""
_SEARCH = 160
"""Losses at which a search for an end looks first: fewer put it farther out, more cost tails."""
_MOST_DEEPENINGS = 8
"""Times the ends are put farther out for a smaller δ: too few cut off mass that matters."""
_FEWEST = 4
"""Cells of one release at least: convex functions need some points to be fitted to."""
_MOST_CELLS = 1 << 20
"""Cells of one release at most: others are skipped, evenly, in its law."""
_MOST_STEPS = 1 << 26
"""Grid points of one release: more take gigabytes."""
_MOST_SLOW_CELLS = 1 << 11
"""The same where every tail is asked in balls, which takes about 0.1 ms."""
_WIDEST = 0.25
"""A cell's width at most, by the tilt: a law is hardly straight within wider ones."""
_MOST_STRIDE = 64.0
"""A cell's width at most, in steps: more saves little, and rough laws are wrong by more."""
_LEAST_PARTS = 64
"""Cells of that width at least of a release that has few: a rough law hardly tells where to."""
_NEAR_JUMP = 4.0
"""Spreads of the other losses about the loss that alone makes the sum, where cells are fine."""
_MANY = 16
"""Releases from which on cells have different widths: sums of fewer are not smooth enough."""
_LEVELS = range(-80, 80)
"""Densities, a factor of √2 apart, from which on cells are a step wide: the last is all of them,
and at the first none is, where a release has few cells."""
_COARSENED = 1.3
"""By how much wider cells where there is little mass may widen the bounds."""
_SPENT = 9.0
"""ln of the digits that a smaller tilt may cost: floats have e^36, and few are asked for."""
_SHORTER = 0.5
"""Share of the window that a smaller tilt must save, for the digits that it costs."""
_MOST_SMALLER = 10
"""Smaller tilts that are tried: each costs a window, and further ones fail by `_SPENT`."""
_MOST_OF = 0.7
"""Share of all sums from which the window may as well hold all of them."""
_SURELY = 10.0
"""Standard deviations that a normal loss hardly ever is below its mean."""
_SPARE = 1e-6
"""Share of the least sum by which a ceiling is above what makes the sum exceed ε."""
_NEARBY = 0.03
"""Share of ε by which other questions of one plan may lie above it."""
_FINEST, _LEAST_STEP = 2.0**-44, 1e-200
"""Steps, relative to losses and absolute, that floats tell apart."""
_ON_POINT = 1e-6
"""Share of a step by which a loss that counts as a grid point may be below it."""
_ON_POINT_DIGITS = 8
"""Digits of the shares below a point that count: of steps alike in these the first is taken."""
_LEAST_FIT = 0.8
"""Share of the step that divides a range which the former one may be: others get too wide."""
_LEAST_CELLS, _TRIED = 0.95, 1024
"""Share of the cells that may be given up for ranges that others divide, and numbers of cells that
are tried for it: fewer leave more below a point."""
_NUDGE = 512 * 2.0**-53
"""Relative shift of a grid's end from the largest loss: a rounding, or the atom there is missed."""
_TILTS = 1.25
"""Ratio of the tilts that are tried: a larger one misses the best one by more and costs digits."""


@functools.lru_cache(maxsize=4096)
def ends(release: Release, log_mass: float) -> tuple[float, float]:
    """Return losses between which the grid of one release lies.

    Below the first P has hardly any mass, above the second at most e^log_mass (or none).
    """
    top = _first(release, math.exp(log_mass) + release.infinity)
    bottom = _bottom(release)
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
def _bottom(release: Release) -> float:
    """Return about the largest loss below which P has hardly any mass."""
    return _first(release, math.nextafter(_BOTTOM, 0.0))


def _first(release: Release, mass: float) -> float:
    """Return about the least loss l with P(L > l) at most `mass`."""
    places, tails = _everywhere(release)
    for turn in range(3):
        if turn:
            tails = release.survival(places).above_p
        hits = np.flatnonzero(tails <= mass)
        at = int(hits[0]) if len(hits) else len(places) - 1
        high = float(places[at])
        places = np.linspace(places[max(at - 1, 0)], high, 18)
    return high


@functools.lru_cache(maxsize=4096)
def _everywhere(release: Release) -> tuple[Array, Array]:
    """Return losses of all sizes, and P(L > l) there."""
    sizes = np.geomspace(1e-12, _FARTHEST, (_SEARCH // 3 if release.slow else _SEARCH) // 2)
    places = np.concatenate([-sizes[::-1], [0.0], sizes])
    return places, release.survival(places).above_p


@final
@dataclass(frozen=True, eq=False)
class Sketch:
    """Rough laws of all releases, for cumulants and Chernoff's bounds."""

    losses: Array
    logs: Array
    counts: Array

    def cumulants(self, s: float) -> tuple[float, float, float]:
        """Return ln M(s) and its first two derivatives, of the sum."""
        weights = self.logs + s * self.losses
        top = weights.max(axis=1, keepdims=True)
        shares = np.exp(weights - top)
        mass = shares.sum(axis=1, keepdims=True)
        shares /= mass
        mean = (shares * self.losses).sum(axis=1)
        variance = (shares * self.losses**2).sum(axis=1) - mean**2
        value = top[:, 0] + np.log(mass[:, 0])
        return (
            float((self.counts * value).sum()),
            float((self.counts * mean).sum()),
            float((self.counts * np.maximum(variance, 0.0)).sum()),
        )

    def tilt(self, epsilon: float) -> float:
        """Return the s > 0 at which M(s) e^{−sε} s^s/(1 + s)^{1+s} is nearly least."""
        return self._root(lambda s, mean: mean - epsilon - math.log1p(1 / s))

    def _root(self, slope: Callable[[float, float], float]) -> float:
        """Return the s at which an increasing function of s and K'(s) passes 0, a round number."""

        def is_past(power: int) -> bool:
            s = _TILTS**power
            return slope(s, self.cumulants(s)[1]) > 0

        low, high = -60, 60  # of ln s, in units of the rounding
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

    @functools.cached_property
    def bulk(self) -> tuple[Array, Array]:
        """Return the medians of the laws, and half of what lies between a sixth and five sixths."""
        sums = np.cumsum(np.exp(self.logs), axis=1)
        shares = np.array([1 / 6, 1 / 2, 5 / 6])
        low, middle, high = np.transpose(
            [np.interp(shares * s[-1], s, at) for s, at in zip(sums, self.losses, strict=True)]
        )
        return middle, (high - low) / 2

    def some_below(self, ceiling: float) -> bool:
        """Whether every law has finite losses up to one: else a cut would leave none."""
        return bool(((self.logs > -np.inf) & (self.losses <= ceiling)).any(axis=1).all())

    def cut(self, ceiling: float) -> Sketch:
        """Return the laws without what is above a loss."""
        return Sketch(self.losses, np.where(self.losses > ceiling, -np.inf, self.logs), self.counts)

    def bottoms(self, s: float) -> list[float]:
        """Return losses to which what lies below may be raised: it is e^{−_CUT} of the tilted."""
        weights = self.logs + s * self.losses
        moments = np.log(np.exp(weights - weights.max(axis=1, keepdims=True)).sum(axis=1))
        moments += weights.max(axis=1)
        with np.errstate(divide="ignore"):
            below = np.log(np.cumsum(np.exp(self.logs), axis=1)) + s * self.losses
        below += np.log(self.counts)[:, None] - moments[:, None]
        at = np.argmax(below > -_CUT, axis=1)
        return [float(row[max(i - 1, 0)]) for row, i in zip(self.losses, at, strict=True)]

    def log_moments(self, tilts: Array) -> Array:
        """Return ln M at several s."""
        weights = self.logs + tilts[:, None, None] * self.losses
        top = weights.max(axis=2, keepdims=True)
        found = top[:, :, 0] + np.log(np.exp(weights - top).sum(axis=2))
        return np.asarray(found @ self.counts)

    def log_bound(self, s: float, epsilon: float) -> float:
        """Return ln of Chernoff's bound of H(ε) at s."""
        return self.cumulants(s)[0] - s * epsilon + rough_log_peak(s)

    def window(self, s: float) -> tuple[float, float, float, float]:
        """Return the ends of a window that misses e^{−_CUT} of the tilted mass, and their u."""
        base, mean, variance = self.cumulants(s)
        scale = math.sqrt(2 * _CUT / max(variance, 1e-280))
        u = scale * 2.0 ** (np.arange(-10, 11) / 2)
        tops = (self.log_moments(s + u) - base + _CUT) / u
        bottoms = (base - self.log_moments(s - u) - _CUT) / u
        at, under = int(np.argmin(tops)), int(np.argmax(bottoms))
        return (
            min(float(bottoms[under]), mean),
            max(float(tops[at]), mean),
            float(u[under]),
            float(u[at]),
        )


@functools.lru_cache(maxsize=32)
def sketch(releases: tuple[tuple[Release, int], ...], log_mass: float) -> Sketch:
    """Return rough laws on grids of their own; UndecidedError if one is beyond all grids."""
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
    """Return COARSE losses, and the masses there of a law above of one release.

    The losses are even between the ends, and where most of the mass is, and dense about 0.
    """
    bottom, top = ends(release, log_mass)
    places = _spread(bottom, top, COARSE // 4)
    tail = release.survival(places).above_p
    likely = np.interp(-np.linspace(0.9995, 0.0005, 3), -tail, places)
    body = np.linspace(likely[0], likely[-1], COARSE // 4)
    even = np.linspace(bottom, top, COARSE - len(places) - len(body))
    l = np.unique(np.concatenate([places, body, even]))  # noqa: E741
    l = l[np.append(np.diff(l) > 1e-9 * (top - bottom), True)]  # noqa: E741
    masses, _ = dominate.above_at(release.survival, l, np.diff(l), max(-bottom, top))
    lacking = COARSE - len(l)
    return np.append(l, np.full(lacking, top)), np.append(masses, np.zeros(lacking))


def _spread(bottom: float, top: float, number: int) -> Array:
    """Return numbers between the ends, denser about 0 in proportion to their size."""
    sizes = np.geomspace(1e-9 * max(-bottom, top), max(-bottom, top), number // 2)
    places = np.concatenate([-sizes[::-1], sizes])
    return np.unique(np.clip(places, bottom, top))


@final
@dataclass(frozen=True)
class Plan:
    """What is chosen for one ε: the tilt, the window, and how far out each loss is followed."""

    releases: tuple[tuple[Release, int], ...]
    epsilon: float
    log_mass: float
    tilt: float
    low: float
    high: float
    outward: tuple[float, float]
    bottoms: tuple[float, ...]
    """The least grid points of the releases."""
    ceiling: float
    """Losses of one release above it are left out of the sum, +∞ where none are."""

    def frame(self, points: int) -> Frame:
        """Return the window with so many points.

        The step divides the range of the releases that are bounded on both sides and have the most
        mass at their least losses in all, and nearly those of others: an atom there is hardly below
        a grid point.
        """
        step = (self.high - self.low) / (points - 8)
        known = (ends(release, self.log_mass) for release, _ in self.releases)
        farthest = max(map(abs, itertools.chain((self.low, self.high), *known)))
        step = max(step, _FINEST * farthest, _LEAST_STEP)
        atoms = [
            (count * (1 - float(release.survival(near).above_p[0])), count, release.top - low)
            for release, count in self.releases
            if (low := release.bottom) is not None
            and release.top is not None
            and ends(release, self.log_mass) == (low, release.top)
            for near in [np.array([low + step / 64])]
        ]
        divided = [
            (mass, count, span)
            for mass, count, span in atoms
            if mass > 0 and span >= step > _LEAST_FIT * span / (span // step)
        ]
        if divided:
            *_, span = max(divided)
            most = math.floor(span / step)
            by = 2 if most > _FEWEST else 1  # an atom in the middle is a point too
            least = max(min(int(most * _LEAST_CELLS), most - by), most - by * _TRIED)
            steps = span / np.arange(most - most % by, least, -by)
            over = sum(mass * ((each / steps + _ON_POINT) % 1) for mass, _, each in atoms)
            whole = sum(mass for mass, _, _ in atoms)
            step = float(steps[np.argmin(np.round(over / whole, _ON_POINT_DIGITS))])
        spare = (points * step - (self.high - self.low)) / 2
        below = min(spare, step * sum(count for _, count in self.releases))  # cells may begin there
        return Frame(self.tilt, step, self.low - below, points, self.outward)

    def places(self, number: int, step: float) -> tuple[Place, Place]:
        """Return the grid points of one release for the upper law, and for the lower one."""
        release, bottom = self.releases[number][0], self.bottoms[number]
        top = ends(release, self.log_mass)[1]
        cut = top > self.ceiling
        if cut:
            upper = lower = 0.0
            last = math.ceil(self.ceiling / step)
        elif release.top is not None and top == release.top:
            upper, lower, last = top + _NUDGE * abs(top), top - _NUDGE * (1 + abs(top)), 0
        else:
            upper = lower = 0.0
            last = math.ceil(top / step)
        cells = max(_FEWEST, last + math.ceil((upper - bottom) / step - _ON_POINT))
        most = _MOST_SLOW_CELLS if release.slow else _MOST_CELLS
        stride = 1
        while cells > most * stride:
            stride *= 2
        first = last - -(-cells // stride) * stride
        few = release.slow and stride > 1
        if few or (release.smooth and sum(count for _, count in self.releases) >= _MANY):
            index = self._refined(number, upper, step, first, last, few=few)
        else:
            index = np.arange(first, last + 1, stride)
        return Place(upper, step, index, cut), Place(lower, step, index, cut)

    def _refined(
        self, number: int, origin: float, step: float, first: int, last: int, *, few: bool
    ) -> Array:
        """Return grid points that are dense where the tilted law has its mass, or a few of them.

        A cell of width g with the tilted density w is off by about w g³. All cells together are off
        by least for their number where g is as w^{−1/3}; here powers of two of the step, and 1
        where w is large, or near the loss that makes the sum where that is no usual one.
        """
        laws = sketch(self.releases, self.log_mass)
        losses, logs = laws.losses[number], laws.logs[number]
        kept = np.append(True, np.diff(losses) > 0)
        losses, logs = losses[kept], logs[kept]
        widths = np.gradient(losses)
        weights = logs + self.tilt * losses
        masses = np.exp(weights - weights.max())
        density = masses / widths
        density = np.maximum(density, np.maximum(np.roll(density, 1), np.roll(density, -1)))
        density /= density.max()
        median, spread = laws.bulk
        others = float(laws.counts @ median) - float(median[number])
        reach = _NEAR_JUMP * math.sqrt(float(laws.counts @ spread**2)) + float(step)
        around = (losses[1:] > self.epsilon - others - reach) & (
            losses[:-1] < self.epsilon - others + reach
        )
        if not few or 2 * np.count_nonzero(around) < len(around):
            density[:-1][around] = 1.0
            density[1:][around] = 1.0
        widest = (last - first) / _LEAST_PARTS if few else _MOST_STRIDE
        most = min(max(_WIDEST / (1 + self.tilt) / step, 1.0), widest)
        with np.errstate(divide="ignore", over="ignore"):
            wide = np.cbrt(1 / density)

        def gaps(level: int) -> Array:
            found: Array = np.clip(wide * 2.0 ** (-level / 6), 1.0, most)
            return found

        def is_fine(level: int) -> bool:
            return bool(masses @ gaps(level) ** 2 <= _COARSENED * masses.sum())

        def is_long(level: int) -> bool:
            return bool((widths / step / gaps(level)).sum() > _MOST_SLOW_CELLS / 2)

        level = bisect.bisect_left(_LEVELS, True, key=is_long if few else is_fine) + _LEVELS[0]
        strides = 1 << np.log2(gaps(level)).astype(int)
        edges = np.round((losses - origin) / step).astype(int)
        runs = np.flatnonzero(np.append(True, np.diff(strides) != 0))
        starts = np.concatenate([[first], edges[runs[1:]], [last]]).clip(first, last)
        if (np.diff(starts) / strides[runs]).sum() > _MOST_STEPS:
            raise UndecidedError(
                f"The losses of a release need more than {_MOST_STEPS} points of a grid."
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
    """Choose the tilt and the window for δ(ε), with losses that matter from a smaller ε on."""
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
    lost, lower = rough_laws.log_bound(s, epsilon), s
    for _ in range(_MOST_SMALLER):  # a smaller tilt keeps large losses out, and costs digits
        lower /= _TILTS**2
        if rough_laws.log_bound(lower, epsilon) > lost + _SPENT:
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
    bottoms = rough_laws.bottoms(s)
    if all(
        release.top is not None for release, _ in releases
    ):  # where all others are largest and the sum is not above ε
        spare = sum(n * r.top for r, n in releases if r.top is not None)
        spare -= epsilon if lowest is None else lowest
        least = [r.top - 1.01 * abs(spare) for r, _ in releases if r.top is not None]
        bottoms = [max(each, own) for each, own in zip(bottoms, least, strict=True)]
    known = [ends(release, log_mass) for release, _ in releases]
    bottoms = [
        bottom
        if release.infinity or each < bottom + 1e-3 * (top - bottom)
        else min(each, top - 1e-3 * (top - bottom))
        for (release, _), each, (bottom, top) in zip(releases, bottoms, known, strict=True)
    ]
    return Plan(releases, epsilon, log_mass, s, low, high, (u_low, u_high), tuple(bottoms), ceiling)


def _ceiling(releases: tuple[tuple[Release, int], ...], epsilon: float) -> float:
    """Return a loss of one release that makes the sum exceed ε, +∞ where none is known."""
    least = 0.0
    for release, count in releases:
        if release.mu is not None:
            least -= release.mu**2 / 2 + _SURELY * release.mu
        elif release.lowest is None:
            return math.inf
        else:
            least += count * release.lowest
    ceiling = epsilon + _NEARBY * abs(epsilon) - least + _SPARE * abs(least)
    return ceiling if ceiling > 0 else math.inf


def guess(releases: tuple[tuple[Release, int], ...], log_delta: float) -> float:
    """Return an ε near the root of H(ε) = δ."""
    wanted = log_delta - _GUESSED
    log_mass = _SHALLOW if wanted >= _SHALLOW else 8.0 * math.floor(wanted / 8.0)
    return sketch(releases, max(log_mass, -_FARTHEST)).guess(log_delta)
