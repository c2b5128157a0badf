"""Choose, on training runs, the one event that the test will be made on.

Every feature is cut finely and its cells put in order: by value, or (categories) by their observed
likelihood ratio. The candidates are the two ends of that order, either alone (`Design.SIDES`) or
against each other (`Design.GUESSES`), for both orders of the datasets and at every point of the
claim. The objective is what the fresh runs promise: the lower bound of ε at the claimed δ where the
claim has one point, the standardised excess over it otherwise.

- Counts as they are promise too much, since the luckiest of many is taken: they are read as if
  there were fewer fresh runs than there will be, by some standard deviations of luck.
- Counts smoothed by a fit of the likelihood ratio (`verify.audit.smooth`) are read at the full
  number of runs: the threshold is where the mean promise is largest, and for comparisons with
  other events a standard deviation of what the fit leaves open is taken off. For δ > 0 the fit is
  a spline, since rare events are best; for δ = 0 a line between two constants, since the best
  events end where the ratio becomes constant.
- For δ = 0 one side has to promise plainly more than the guesses of both orders (`handicapped`).
- A linear score of vectors is learned from all training runs in the end, and cut by scores that
  other parts of the runs taught (`verify.audit.vectors.crossed`).

Nothing here needs to be exact: the chosen event is tested on runs that were not looked at, once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from verify.audit import bits, features, vectors
from verify.audit.exact_test import Design
from verify.audit.features import Feature, Proposer, Values
from verify.audit.guarantee import Guarantee, Point
from verify.audit.outputs import Matrix
from verify.audit.rule import Partition, Rule
from verify.audit.smooth import clipped, smoothed
from verify.audit.threads import one_thread

Array: TypeAlias = NDArray[Any]

DEFAULT_PROPOSERS: tuple[Proposer, ...] = (features.plain, vectors.learned, bits.propose)
_FINE = 500
_FEW = 8
_LUCK_OF_SETS = 5.0
"""The same for sets of many categories, of which there are far more than intervals."""
_SMOOTH_LUCK = 1.0
"""Standard deviations of what is uncertain in a fit, for comparisons with other events."""
_PAIRS = 72
_CURVE = 32
_CLEAR = 3.5
"""Standard deviations over the claim, luck taken off, that are no chance."""
_LUCK = 3.0
"""Standard deviations by which the training counts may have been lucky."""
_LUCK_OF_A_RAMP = 1.5
_REACH = 20
"""Cuts are moved by at most this part of the cells."""
_LUCK_OF_SIDES = 1.5
_LARGEST_EPSILON = 40.0
_FOR_LEARNING = 0.6


@final
@dataclass(frozen=True)
class _Cells:
    """A feature cut into cells, in their order, with the training runs of both datasets in each."""

    feature: Feature
    bounds: Values
    """The lower edge of every cell but the first; for a discrete feature the value of each."""
    first: Array
    second: Array
    luck: float
    """Standard deviations by which these counts may have been lucky."""
    share: float = 1.0
    """The part of the training runs that was counted."""
    draws: tuple[Array, Array] | None = None
    """Counts that are as likely, where these are smoothed by a spline."""
    ramp: bool = False
    """Whether these are smoothed by a line between two constants."""


@final
@dataclass(frozen=True)
class _Candidate:
    """One event (or two) of one feature."""

    objective: float
    point: Point
    cells: _Cells
    design: Design
    favoured: int
    top: int
    """The first cell of the upper end; the number of cells where there is none."""
    bottom: int
    """The first cell above the lower end; 0 where there is none."""
    upper_is_event: bool

    @property
    def cuts(self) -> tuple[Array, Array]:
        """Both cuts, as arrays of one."""
        return np.array([self.bottom]), np.array([self.top])


def choose(
    first: Matrix,
    second: Matrix,
    guarantee: Guarantee,
    *,
    runs: int,
    significance: float,
    proposers: Sequence[Proposer] = DEFAULT_PROPOSERS,
) -> Rule:
    """Return the rule that promises most for a test on `runs` fresh runs a side."""
    with one_thread():
        return _chosen((first, second), guarantee, runs, significance, proposers)


def _chosen(
    sides: tuple[Matrix, Matrix],
    guarantee: Guarantee,
    runs: int,
    significance: float,
    proposers: Sequence[Proposer],
) -> Rule:
    first, second = sides
    wide = first.shape[1] > 1
    cut = int(len(first) * _FOR_LEARNING) if wide else 0
    learning = (first[:cut], second[:cut]) if wide else (first, second)
    picking = (first[cut:], second[cut:])
    points = guarantee.candidates()
    scale = _Scale.of(len(picking[0]), runs, significance)
    best: _Candidate | None = None
    clearest: _Candidate | None = None
    for propose in proposers:
        for feature in propose(*learning):
            for cells in _cells(feature, *picking, tails=any(p.delta > 0 for p in points)):
                for candidate in _candidates(cells, points, scale):
                    if best is None or candidate.objective > best.objective:
                        best = candidate
                if len(points) > 1 or cells.draws is not None:
                    continue
                for candidate in _candidates(cells, points, scale, excess=True):
                    if clearest is None or candidate.objective > clearest.objective:
                        clearest = candidate
    if best is None:
        best = _constant(points[0], *picking)
    taught = vectors.crossed(best.cells.feature, first, second) if wide else None
    if taught is not None:
        best = _taught(*taught, points, _Scale.of(len(first), runs, significance)) or best
    if clearest is not None and clearest.objective > _CLEAR:
        # No event promises a bound beyond the claim, but a rare one is plainly over it: common
        # events of a violation that is rare come close to the claim and never beyond it.
        claimed = float(points[0].epsilon)
        if best.objective <= claimed:
            best = replace(clearest, objective=claimed + clearest.objective * 1e-3)
    return _rule(best)


def _taught(
    feature: Feature,
    sides: tuple[Values, Values],
    points: Sequence[Point],
    scale: _Scale,
) -> _Candidate | None:
    """Return the best event of a score that all training runs taught."""
    found = [
        candidate
        for cells in _intervals(feature, sides, 1.0, tails=any(p.delta > 0 for p in points))
        for candidate in _candidates(cells, points, scale)
    ]
    return max(found, key=lambda candidate: candidate.objective, default=None)


@final
@dataclass(frozen=True)
class _Scale:
    """How training counts are read as fresh counts."""

    trained: int
    runs: int
    level: float

    @staticmethod
    def of(trained: int, runs: int, significance: float) -> _Scale:
        return _Scale(trained, runs, -float(special.ndtri(significance)))

    def factor(self, cells: _Cells) -> float:
        """Return fresh counts per training count, as if there were fewer fresh runs."""
        trained = self.trained * cells.share
        if cells.draws is not None:
            return self.runs / trained
        root = self.level / math.sqrt(self.runs) + cells.luck / math.sqrt(trained)
        return (self.level / root) ** 2 / trained


def _cells(feature: Feature, first: Matrix, second: Matrix, *, tails: bool) -> Iterable[_Cells]:
    """Yield the counts of a feature in cells; smoothed ones too where rare events may be best.

    At δ = 0 events of large probability are best, and counts alone are better judges.
    """
    judged = getattr(feature, "judged", None)  # what taught a feature cannot judge it
    a, b = (feature(first), feature(second)) if judged is None else judged
    share = len(a) / len(first)
    if feature.discrete:
        yield _categories(feature, a, b)
        return
    yield from _intervals(feature, (a, b), share, tails=tails)


def _intervals(
    feature: Feature, sides: tuple[Values, Values], share: float, *, tails: bool
) -> Iterable[_Cells]:
    """Yield the counts of a feature whose values are taken in order, of a share of the runs."""
    a, b = sides
    both = np.sort(np.concatenate([a, b]))
    total = len(both)
    far = np.unique(np.geomspace(1, total / 2, 120).astype(int))
    ranks = np.concatenate([np.linspace(1, total - 1, _FINE).astype(int), far, total - far])
    edges = np.unique(both[np.clip(ranks, 0, total - 1)])
    p, q = (
        np.bincount(np.searchsorted(edges, side, side="right"), minlength=len(edges) + 1)
        for side in (a, b)
    )
    yield _Cells(feature, edges, p, q, _LUCK, share)
    if not np.isfinite(both[[0, -1]]).all():
        return
    places = np.append(both[0], edges)
    fitted = smoothed(places, p, q) if tails else clipped(places, p, q)
    if fitted is not None and tails:
        counts = (fitted.first, fitted.second)
        yield _Cells(feature, edges, *counts, _SMOOTH_LUCK, share, draws=fitted.draws)
    elif fitted is not None:
        yield _Cells(feature, edges, fitted.first, fitted.second, _LUCK_OF_A_RAMP, share, ramp=True)


def _categories(feature: Feature, a: Values, b: Values) -> _Cells:
    """Put categories in order by half of the runs and count the other half, where they are many.

    An order that is found and judged on the same runs always looks like a leak.
    """
    values, place = np.unique(np.concatenate([a, b]), return_inverse=True)
    sides = place[: len(a)], place[len(a) :]
    few = len(values) <= _FEW and not isinstance(feature, features.Binned)
    ranking, counted = (slice(None), slice(None)) if few else (slice(0, None, 2), slice(1, None, 2))
    p, q = (np.bincount(side[ranking], minlength=len(values)) for side in sides)
    order = np.argsort(np.log((p + 1.0) / (q + 1.0)), kind="stable")
    p, q = (np.bincount(side[counted], minlength=len(values)) for side in sides)
    luck = math.sqrt(2 * math.log(len(values) + 1)) if few else _LUCK_OF_SETS
    return _Cells(feature, values[order], p[order], q[order], luck, 1.0 if few else 0.5)


def _candidates(
    cells: _Cells, points: Sequence[Point], scale: _Scale, *, excess: bool = False
) -> Iterable[_Candidate]:
    """Yield the best event of each design: by its bound, or by its excess over the claim."""
    size = len(cells.first)
    if size < 2:
        return
    level = scale.level if len(points) == 1 and not excess else None
    sums = _Sums.of(cells, scale.factor(cells), level)
    thin = np.unique(np.linspace(1, size - 1, min(_PAIRS, size - 1)).astype(int))
    reach = np.arange(-(size // _PAIRS) - 1, size // _PAIRS + 2)
    cuts = np.arange(1, size)
    for favoured in (0, 1):
        coarse = sums.best(points, Design.GUESSES, favoured, *_ordered(thin, thin))
        near = (np.unique(np.clip(c + reach, 1, size - 1)) for c in (coarse.bottom, coarse.top))
        guesses = sums.best(points, Design.GUESSES, favoured, *_ordered(*near))
        yield sums.cautious(sums.moved(guesses, points, scale))
        for bottoms, tops in ((0 * cuts, cuts), (cuts, 0 * cuts + size)):
            side = sums.best(points, Design.SIDES, favoured, bottoms, tops)
            yield sums.cautious(sums.handicapped(side, guesses))


def _ordered(lows: Array, highs: Array) -> tuple[Array, Array]:
    """Return the pairs of cuts low ≤ high."""
    low, high = (grid.reshape(-1) for grid in np.meshgrid(lows, highs, indexing="ij"))
    return low[low <= high], high[low <= high]


@final
@dataclass(frozen=True, eq=False)
class _Sums:
    """Cumulative counts of both sides, scaled to the fresh runs: entry k counts cells …, k − 1."""

    cells: _Cells
    factor: float
    level: float | None
    totals: tuple[Array, Array]

    @staticmethod
    def of(cells: _Cells, factor: float, level: float | None) -> _Sums:
        first, second = (_cumulative(side) * factor for side in (cells.first, cells.second))
        return _Sums(cells, factor, level, (first, second))

    def best(
        self, points: Sequence[Point], design: Design, favoured: int, low: Array, high: Array
    ) -> _Candidate:
        """Return the best of some events: what is beyond `high`, against or with what is below."""
        a, b = _ends(self.totals, design, favoured, low, high)
        value, point, index = _best(points, lambda pt: self._promise(design, a, b, pt))
        bottom, top = int(low[index]), int(high[index])
        upper = design is Design.GUESSES or top < len(self.cells.first)
        return _Candidate(value, point, self.cells, design, favoured, top, bottom, upper)

    def moved(self, found: _Candidate, points: Sequence[Point], scale: _Scale) -> _Candidate:
        """Move both cuts of a clipped line to where all fresh runs want them.

        With fewer runs, as which the counts were read, events would rather be larger than tight.
        """
        if not self.cells.ramp or self.level is None:
            return found
        whole = _Sums.of(self.cells, scale.runs / (scale.trained * self.cells.share), self.level)
        size = len(self.cells.first)
        reach = np.arange(-(size // _REACH), size // _REACH + 1)
        near = (np.unique(np.clip(c + reach, 1, size - 1)) for c in (found.bottom, found.top))
        moved = whole.best(points, found.design, found.favoured, *_ordered(*near))
        return replace(moved, objective=found.objective)

    def cautious(self, found: _Candidate) -> _Candidate:
        """Take off what is uncertain in a fit: some deviations of what it promises."""
        if self.cells.draws is None:
            return found
        values = self._promise(found.design, *self._drawn(found), found.point)
        return replace(found, objective=found.objective - self.cells.luck * float(values.std()))

    def handicapped(self, side: _Candidate, guesses: _Candidate) -> _Candidate:
        """Take off what one side may promise beyond guesses by luck, for δ = 0.

        Where both orders leak alike the better looking one is the luckier one. The guesses use what
        the side uses and more: the variance of their difference is the difference of their
        variances (Hausman, "Specification tests in econometrics", 1978).
        """
        if self.level is None or side.point.delta > 0:
            return side
        apart = math.sqrt(max(0.0, self._variance(side) - self._variance(guesses)))
        return replace(side, objective=side.objective - _LUCK_OF_SIDES * apart)

    def _promise(self, design: Design, a: Array, b: Array, point: Point) -> Array:
        runs = float(self.totals[0][-1])
        if design is Design.SIDES:
            return _sides(a, b, runs, point, self.level)
        return _guesses(a, b, 2 * runs, point, self.level)

    def _variance(self, found: _Candidate) -> float:
        """Return the variance of the logarithm of the ratio that a candidate rests on."""
        a, b = _ends(self.totals, found.design, found.favoured, *found.cuts)
        known = 2 / float(self.totals[0][-1]) if found.design is Design.SIDES else 0.0
        return self.factor * max(0.0, float(1 / (a[0] + 0.5) + 1 / (b[0] + 0.5)) - known)

    def _drawn(self, found: _Candidate) -> tuple[Array, Array]:
        """Return the counts of a candidate in histograms that are as likely."""
        drawn = self.cells.draws or (self.cells.first, self.cells.second)
        sums = _cumulative(drawn[0]) * self.factor, _cumulative(drawn[1]) * self.factor
        a, b = _ends(sums, found.design, found.favoured, *found.cuts)
        return a[:, 0], b[:, 0]


def _cumulative(counts: Array) -> Array:
    zero = np.zeros((*counts.shape[:-1], 1))
    return np.concatenate([zero, np.cumsum(counts, axis=-1)], axis=-1)


def _ends(
    sums: tuple[Array, Array], design: Design, favoured: int, low: Array, high: Array
) -> tuple[Array, Array]:
    """Return what speaks for the favoured dataset, and what speaks against it."""
    p, q = sums[favoured], sums[1 - favoured]
    a, b = (side[..., -1:] - side[..., high] for side in (p, q))
    against = (q, p) if design is Design.GUESSES else (p, q)
    return a + against[0][..., low], b + against[1][..., low]


def _best(points: Sequence[Point], objective: Any) -> tuple[float, Point, int]:
    found = (-math.inf, points[0], 0)
    for point in points:
        values = objective(point)
        index = int(np.argmax(values))
        if values[index] > found[0]:
            found = (float(values[index]), point, index)
    return found


def _sides(a: Array, b: Array, n: float, point: Point, level: float | None) -> Array:
    """Return the bound of ε where the excess is `level`; for None the excess over the claim.

    With u = a − nδ and v = cb the score (u − v)/√(nδ(1 − δ) + s(1 + c − 2δ) − 2s²/n) at
    s = (u + v)/2 reaches the level at a root c of a quadratic.
    """
    delta = float(point.delta)
    a, b = np.maximum(a - 0.5, 0.0), b + 0.5
    if level is None:
        return _side_score(a, b, n, math.exp(float(point.epsilon)), delta)
    u, z2 = a - n * delta, level * level
    lead = b * b - z2 * (b / 2 - b * b / (2 * n))
    middle = 2 * u * b + z2 * ((u + b * (1 - 2 * delta)) / 2 - u * b / n)
    last = u * u - z2 * (n * delta * (1 - delta) + u * (1 - 2 * delta) / 2 - u * u / (2 * n))
    root = np.sqrt(np.maximum(middle * middle - 4 * lead * last, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where((u > 0) & (last > 0), 2 * last / (middle + root), 0.0)
    short = _side_score(a, b, n, 1.0, delta) - level
    return _bounds(factor, short)


def _bounds(factor: Array, short: Array) -> Array:
    """Return ln(factor); how far the excess over ε = 0 is from the level where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.minimum(np.log(factor), _LARGEST_EPSILON)
    return np.where(factor > 1, found, np.minimum(short, 0.0) * 1e-3)


def _side_score(a: Array, b: Array, n: float, factor: Any, delta: float) -> Array:
    u, v = a - n * delta, factor * b
    s = np.minimum((u + v) / 2, n * (1 - delta))
    spread = n * delta * (1 - delta) + s * (1 + factor - 2 * delta - 2 * s / n)
    score: Array = (u - v) / np.sqrt(np.maximum(spread, 0.25 * (1 + factor)))
    return score


def _guesses(right: Array, wrong: Array, n: float, point: Point, level: float | None) -> Array:
    """Return the same for guesses: the bound of their chance (Wilson 1927), and the ε it needs."""
    delta = float(point.delta)
    right, wrong = np.maximum(right - 0.5, 0.0), wrong + 0.5
    if level is None:
        return _guess_score(right, wrong, n, math.exp(float(point.epsilon)), delta)
    guesses, z2 = right + wrong, level * level
    spread = np.sqrt(right * wrong / guesses + z2 / 4)
    chance = (right + z2 / 2 - level * spread) / (guesses + z2)
    factor = _share_of_guesses(guesses, n, delta) / (1 - chance) - 1
    return _bounds(factor, _guess_score(right, wrong, n, 1.0, delta) - level)


def _guess_score(right: Array, wrong: Array, runs: float, factor: Any, delta: float) -> Array:
    guesses = right + wrong
    share = _share_of_guesses(guesses, runs, delta)
    chance = 1 - share / (1 + factor)
    spread = np.sqrt(np.maximum(guesses * chance * (1 - chance), 0.1))
    score: Array = (right - guesses * chance) / spread
    return np.where(share > 0, score, -1.0)


def _share_of_guesses(guesses: Array, runs: float, delta: float) -> Array:
    """Return the part of the guesses that δ does not excuse."""
    if delta == 0:
        return np.ones_like(guesses)
    least = np.maximum(guesses - 3.3 * np.sqrt(guesses), 0.0) / runs
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(least > delta, 1 - delta / least, 0.0)


def _rule(best: _Candidate) -> Rule:
    """Cut the feature as coarsely as the event and the estimates need."""
    cells = best.cells
    event, other = (1, -1) if best.upper_is_event else (-1, 1)
    if best.design is Design.SIDES and not best.upper_is_event:
        event, other = 0, 1
    elif best.design is Design.SIDES:
        other = 0
    marks = np.zeros(len(cells.first), dtype=np.int8)
    marks[best.top :] = event
    marks[: best.bottom] = other
    if cells.feature.discrete:
        order = np.argsort(cells.bounds)
        partition = Partition(None, cells.bounds[order])
        marks = np.append(marks[order], np.int8(0))
    else:
        share = np.cumsum(cells.first + cells.second)[:-1] / (cells.first + cells.second).sum()
        wanted = np.searchsorted(share, np.arange(1, _CURVE) / _CURVE)
        keep = np.unique(
            np.concatenate([wanted[wanted < len(share)], _inner(best, len(share))])
        ).astype(int)
        partition = Partition(cells.bounds[keep])
        # the cell above edge k of the fine cut is fine cell k + 1
        marks = np.concatenate([marks[:1], marks[keep + 1]])
    return Rule(
        cells.feature,
        partition,
        marks,
        best.design,
        best.favoured,
        best.point,
        best.objective,
    )


def _inner(best: _Candidate, edges: int) -> list[int]:
    """Return the fine edges at which the event begins or ends."""
    return [cell - 1 for cell in (best.top, best.bottom) if 0 < cell <= edges]


def _constant(point: Point, first: Matrix, second: Matrix) -> _Candidate:
    """Return the empty event: every output was the same."""
    cells = _Cells(
        features.Row(),
        np.unique(features.Row()(np.concatenate([first, second])))[:1],
        np.array([len(first)]),
        np.array([len(second)]),
        _LUCK,
    )
    return _Candidate(0.0, point, cells, Design.SIDES, 0, 1, 0, upper_is_event=True)
