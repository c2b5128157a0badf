"""Choose, on training runs, the one event that the test will be made on.

Every feature is cut finely and its cells put in order: by value, or (categories) by their observed
likelihood ratio. The candidates are the two ends of that order, either alone (`Design.SIDES`) or
against each other (`Design.GUESSES`), for both orders of the datasets and at every point of the
claim. The objective is what the fresh runs promise: the lower bound of ε at the claimed δ where the
claim has one point, the standardised excess over it otherwise. Both are computed as if there were
fewer fresh runs than there will be, so that the luck of the training runs does not choose.

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
from verify.audit.smooth import smoothed

Array: TypeAlias = NDArray[Any]

DEFAULT_PROPOSERS: tuple[Proposer, ...] = (features.plain, vectors.learned, bits.propose)
_FINE = 500
_FEW = 8
_LUCK_OF_SETS = 5.0
"""The same for sets of many categories, of which there are far more than intervals."""
_SMOOTH_LUCK = 0.8
_PAIRS = 72
_CURVE = 32
_CLEAR = 3.5
"""Standard deviations over the claim, luck taken off, that are no chance."""
_LUCK = 3.0
"""Standard deviations by which the training counts may have been lucky."""
_LARGEST_EPSILON = 40.0
_HALVINGS = 36
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
    smooth: bool = False


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
                if len(points) > 1 or cells.smooth:
                    continue
                for candidate in _candidates(cells, points, scale, excess=True):
                    if clearest is None or candidate.objective > clearest.objective:
                        clearest = candidate
    if best is None:
        best = _constant(points[0], *picking)
    if clearest is not None and clearest.objective > _CLEAR:
        # No event promises a bound beyond the claim, but a rare one is plainly over it: common
        # events of a violation that is rare come close to the claim and never beyond it.
        claimed = float(points[0].epsilon)
        if best.objective <= claimed:
            best = replace(clearest, objective=claimed + clearest.objective * 1e-3)
    return _rule(best)


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
        root = self.level / math.sqrt(self.runs) + cells.luck / math.sqrt(trained)
        return (self.level / root) ** 2 / trained


def _cells(feature: Feature, first: Matrix, second: Matrix, *, tails: bool) -> Iterable[_Cells]:
    """Yield the counts of a feature in cells; smoothed ones too where rare events may be best.

    At δ = 0 events of large probability are best, and counts alone are better judges.
    """
    held_out = getattr(feature, "trained_on", 0)  # what taught a feature cannot judge it
    a, b = feature(first[held_out:]), feature(second[held_out:])
    share = 1.0 - held_out / len(first)
    if feature.discrete:
        yield _categories(feature, a, b)
        return
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
    if not tails or not np.isfinite(both[[0, -1]]).all():
        return
    fitted = smoothed(np.append(both[0], edges), p, q)
    if fitted is not None:
        yield _Cells(feature, edges, *fitted, _SMOOTH_LUCK, share, smooth=True)


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
    n = float(cells.first.sum()) * scale.factor(cells)
    level = scale.level if len(points) == 1 and not excess else None
    # upper[k] counts cells k, …; lower[k] counts cells …, k − 1
    ends = []
    for side in (cells.first, cells.second):
        lower = np.concatenate([[0], np.cumsum(side)]) * scale.factor(cells)
        ends.append((lower[-1] - lower, lower))
    (upper_p, lower_p), (upper_q, lower_q) = ends
    cuts = np.arange(1, size)
    for favoured, (hit, miss) in enumerate((((0), (1)), ((1), (0)))):
        for upper in (True, False):
            pick = 0 if upper else 1
            a, b = ends[hit][pick][cuts], ends[miss][pick][cuts]
            found = _best(points, lambda pt, a=a, b=b: _sides(a, b, n, pt, level))
            value, point, index = found
            cut = int(cuts[index])
            yield _Candidate(
                value,
                point,
                cells,
                Design.SIDES,
                favoured,
                cut if upper else size,
                0 if upper else cut,
                upper,
            )
    thin = np.unique(np.linspace(1, size - 1, min(_PAIRS, size - 1)).astype(int))
    low, high = (grid.reshape(-1) for grid in np.meshgrid(thin, thin, indexing="ij"))
    low, high = low[low <= high], high[low <= high]
    for favoured in (0, 1):
        right_upper, wrong_upper = (upper_p, upper_q) if favoured == 0 else (upper_q, upper_p)
        right_lower, wrong_lower = (lower_q, lower_p) if favoured == 0 else (lower_p, lower_q)
        right = right_upper[high] + right_lower[low]
        wrong = wrong_upper[high] + wrong_lower[low]
        value, point, index = _best(
            points,
            lambda pt, r=right, w=wrong: _guesses(r, w, 2 * n, pt, level),
        )
        yield _Candidate(
            value,
            point,
            cells,
            Design.GUESSES,
            favoured,
            int(high[index]),
            int(low[index]),
            upper_is_event=True,
        )


def _best(points: Sequence[Point], objective: Any) -> tuple[float, Point, int]:
    found = (-math.inf, points[0], 0)
    for point in points:
        values = objective(point)
        index = int(np.argmax(values))
        if values[index] > found[0]:
            found = (float(values[index]), point, index)
    return found


def _sides(a: Array, b: Array, n: float, point: Point, level: float | None) -> Array:
    """Return the bound of ε where the excess is `level`; for None the excess over the claim."""
    delta = float(point.delta)
    a, b = np.maximum(a - 0.5, 0.0), b + 0.5
    if level is None:
        return _side_score(a, b, n, math.exp(float(point.epsilon)), delta)
    return _solve(lambda c: _side_score(a, b, n, c, delta), level, len(a))


def _side_score(a: Array, b: Array, n: float, factor: Any, delta: float) -> Array:
    u, v = a - n * delta, factor * b
    s = np.minimum((u + v) / 2, n * (1 - delta))
    spread = n * delta * (1 - delta) + s * (1 + factor - 2 * delta - 2 * s / n)
    score: Array = (u - v) / np.sqrt(np.maximum(spread, 0.25 * (1 + factor)))
    return score


def _guesses(right: Array, wrong: Array, n: float, point: Point, level: float | None) -> Array:
    """Return the same for guesses."""
    delta = float(point.delta)
    right, wrong = np.maximum(right - 0.5, 0.0), wrong + 0.5
    if level is None:
        return _guess_score(right, wrong, n, math.exp(float(point.epsilon)), delta)
    return _solve(lambda c: _guess_score(right, wrong, n, c, delta), level, len(right))


def _guess_score(right: Array, wrong: Array, runs: float, factor: Any, delta: float) -> Array:
    guesses = right + wrong
    least = np.maximum(guesses - 3.3 * np.sqrt(guesses), 0.0) / runs if delta > 0 else guesses
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(least > delta, 1 - delta / least if delta > 0 else 1.0, 0.0)
    chance = 1 - share / (1 + factor)
    spread = np.sqrt(np.maximum(guesses * chance * (1 - chance), 0.1))
    score: Array = (right - guesses * chance) / spread
    return np.where(share > 0, score, -1.0)


def _solve(score: Any, level: float, size: int) -> Array:
    """Return the ε at which a falling score crosses the level; what is short of it below 0."""
    low, high = np.zeros(size), np.full(size, _LARGEST_EPSILON)
    start = score(np.ones(size))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = score(np.exp(middle)) > level
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(start > level, low, (start - level) * 1e-3)


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
