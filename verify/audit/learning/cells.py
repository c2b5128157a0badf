r"""Features cut into cells: the training runs of both datasets counted in each.

Values that are taken in order are cut finely at quantiles; categories are put in order by their
observed likelihood ratio.

Smooth the histograms of two training samples by a fitted log-likelihood ratio.

The runs of both datasets together say how often a value occurs, and a logistic regression of the
dataset says which of the two it speaks for: far in the tail, where few runs are, that is known much
better than from the counts there. The log ratio is a linear spline

    ℓ(x) = w₀ + w₁x + Σ w_j (|x| − |k_j|)⁺ (beyond knot k_j, on its side of the centre),

with a flat prior on the line and w_j ~ N(0, v_j) on the changes of slope. The variances are those
with the largest evidence (the integral of likelihood times prior, by Laplace's method): first one
rate of change for all knots, then one variance each by a few steps of expectation-maximisation
(MacKay, "Bayesian interpolation", 1992; Tipping, "Sparse Bayesian learning", 2001). So a Gaussian
shift is fitted by two numbers and Laplace noise by its two kinks. What stays uncertain is a normal
law of the weights, from which `draws` are taken.

Where the counts contradict the fit it is not used. Nothing here needs to be right for a test to be
valid: it chooses events, which fresh runs test.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.verifier.audit.learning import features
from dpassay.verifier.audit.learning.bit_features import Atoms, BitCell
from dpassay.verifier.audit.learning.boosted import Boosted
from dpassay.verifier.audit.learning.features import Feature, Values
from dpassay.verifier.audit.learning.outputs import Matrix

Array: TypeAlias = NDArray[Any]

_INNER = (0.06, 0.14, 0.24, 0.36, 0.5)
_OUTER = 0.03
"""The part of the runs beyond the innermost of the outer knots."""
_RUNS_BEYOND = 60
"""The outermost knots have so many runs beyond them; those between are a factor of 3 apart."""
_RATES = (1e-2, 1.0, 1e2, 1e4)
_FLAT = 1e-6
"""Precision of the prior of a line: next to none, so that a line costs nothing."""
_RELEVANCE_STEPS = 8
"""Steps of expectation-maximisation: precisions change little after."""
_FOR_A_LINE = 2.0
"""Logarithm of the odds for a straight line before anything is seen."""
_STEPS = 25
"""Newton steps: a fit that needs more is left out."""
_LARGEST = 30.0
"""Log ratio beyond which shares are 0 or 1 in doubles."""
_CONTRADICTION = 4.0
"""Standard deviations between fit and counts, at the worst of some 500 cells, that are no
chance."""
_DRAWS = 24
"""Fits that are as likely: their spread is known within 15 %."""
_LEAST_CELLS = 18
"""Cells with runs: fewer are no curve."""


@final
@dataclass(frozen=True, eq=False)
class Smoothed:
    """Two smoothed histograms, and how uncertain they are."""

    first: Array
    second: Array
    draws: tuple[Array, Array]
    """Histograms that are as likely, shape (draws, cells) each."""


@final
@dataclass(frozen=True, eq=False)
class _Fit:
    weights: Array
    information: Array
    evidence: float


def smoothed(places: Array, first: Array, second: Array) -> Smoothed | None:
    """Return both histograms smoothed, or None where the counts contradict the fit.

    Parameters
    ----------
    places
        A value of each cell, increasing.
    first, second
        Runs of both datasets in each cell, of the same total.
    """
    seen = _occupied(places, first, second)
    if seen is None:
        return None
    hits, total = first[seen].astype(np.float64), (first + second).astype(np.float64)
    design, gaps = _spline(places, total, seen)
    fit = _best_fit(design[seen], gaps, hits, total[seen])
    if fit is None:
        return None
    design = design[:, : len(fit.weights)]
    drawn = _drawn(fit.weights, fit.information) @ design.T
    return _checked(first, second, design @ fit.weights, drawn)


def _occupied(places: Array, first: Array, second: Array) -> Array | None:
    seen: Array = (first + second) > 0
    return seen if seen.sum() >= _LEAST_CELLS and np.isfinite(places[seen]).all() else None


def _drawn(weights: Array, information: Array) -> Array:
    """Return weights that are as likely."""
    root = np.linalg.cholesky(np.linalg.inv(information))
    normal = np.random.default_rng(0).standard_normal((_DRAWS, len(weights)))
    drawn: Array = weights + normal @ root.T
    return drawn


def _checked(first: Array, second: Array, score: Array, drawn: Array) -> Smoothed | None:
    """Return the histograms of a log ratio, None where the counts contradict it."""
    total, share = first + second, _share(score)
    p, q = total * share, total * (1 - share)
    for fitted, seen in ((p, first), (q, second)):
        off = np.cumsum(fitted - seen)
        spread = np.sqrt(np.cumsum(total * share * (1 - share)).clip(min=1.0))
        rest = spread[-1] ** 2
        spread = np.sqrt((spread**2 * (rest - spread**2) / rest).clip(min=1.0))
        if np.max(np.abs(off) / (spread + 1)) > _CONTRADICTION:
            return None
    shares = _share(drawn)
    return Smoothed(p, q, (total * shares, total * (1 - shares)))


def _spline(places: Array, total: Array, occupied: Array) -> tuple[Array, Array]:
    """Return a constant, the place and the hinges, one column each, and the gaps of the knots."""
    runs = total.sum()
    reached = np.cumsum(total) / runs
    count = max(0, int(np.log(_OUTER * runs / _RUNS_BEYOND) / np.log(3.0)) + 1)
    outer = _RUNS_BEYOND / runs * 3.0 ** np.arange(count)
    lower = np.concatenate([outer, _INNER])
    wanted = np.concatenate([lower, 1 - lower[-2::-1]])
    knots = np.unique(places[np.searchsorted(reached, wanted).clip(max=len(places) - 1)])
    seen = places[occupied]
    knots = np.clip(knots, seen[0], seen[-1])
    centre, scale = (knots[0] + knots[-1]) / 2, (knots[-1] - knots[0]) or 1.0
    x = (np.clip(places, seen[0], seen[-1]) - centre) / scale
    at = (knots - centre) / scale
    hinges = [np.maximum(x - k, 0.0) if k > 0 else np.maximum(k - x, 0.0) for k in at]
    gaps = np.gradient(at) if len(at) > 1 else np.ones(1)
    return np.stack([np.ones_like(x), x, *hinges], axis=1), gaps


def _best_fit(design: Array, gaps: Array, hits: Array, total: Array) -> _Fit | None:
    """Return the fit with the largest evidence: a line, one rate of change, or one for each."""
    flat = np.full(2, _FLAT)
    line = _fit(design[:, :2], flat, np.zeros(2), (hits, total))
    if line is None:
        return None
    best, start = line, np.concatenate([line.weights, np.zeros(len(gaps))])
    curved: _Fit | None = None
    for rate in _RATES:
        found = _fit(design, np.concatenate([flat, 1 / (rate * gaps)]), start, (hits, total))
        if found is None:
            break
        start = found.weights
        if curved is None or found.evidence > curved.evidence:
            curved = found
    if curved is None or curved.evidence < line.evidence + _FOR_A_LINE:
        return best
    best = curved
    for _ in range(_RELEVANCE_STEPS):
        spread = np.diag(np.linalg.inv(curved.information))[2:]
        precisions = 1 / np.maximum(curved.weights[2:] ** 2 + spread, 1e-8)
        found = _fit(design, np.concatenate([flat, precisions]), curved.weights, (hits, total))
        if found is None:
            break
        curved = found
        if curved.evidence > best.evidence:
            best = curved
    return best


def _fit(
    design: Array, precisions: Array, weights: Array, counts: tuple[Array, Array]
) -> _Fit | None:
    """Return the likeliest weights (Newton's method), None where it does not converge."""
    hits, total = counts
    information = np.eye(len(weights))
    for _ in range(_STEPS):
        share = _share(design @ weights)
        gradient = design.T @ (hits - total * share) - precisions * weights
        information = (design * (total * share * (1 - share))[:, np.newaxis]).T @ design
        information[np.diag_indices(len(weights))] += precisions + 1e-9
        try:
            step = np.linalg.solve(information, gradient)
        except np.linalg.LinAlgError:  # cells at one place
            return None
        size = float(np.max(np.abs(step)))
        if not np.isfinite(size):
            return None
        weights = weights + step * min(1.0, 5.0 / max(size, 1e-12))
        if size < 1e-4:
            break
    else:
        return None
    score = design @ weights
    evidence = (
        float(hits @ score - total @ np.logaddexp(0, score))
        - 0.5 * float(precisions @ weights**2)
        + 0.5 * float(np.log(precisions).sum())
        - 0.5 * float(np.linalg.slogdet(information)[1])
    )
    return _Fit(weights, information, evidence)


def _share(score: Array) -> Array:
    share: Array = 1 / (1 + np.exp(-np.clip(score, -_LARGEST, _LARGEST)))
    return share


_FINE = 500
"""Quantiles at which a feature is cut: an event is off its best by 0.2 % of the runs at most."""
_FEW = 8
"""Values of a feature that count as few: all their events are looked at."""
LUCK = 3.0
"""Standard deviations by which the training counts may have been lucky."""
_LUCK_OF_FEW = 0.0
"""The same for a feature of few values: few events, which share most of their runs."""
_DOUBT_OF_FEW = 4.0
"""Runs that may have been lucky, instead: rare events are doubted more than common ones."""
_LUCK_OF_SETS = 5.0
"""The same for sets of many categories, of which there are far more than intervals."""
_SLOW = (BitCell, Atoms, Boosted)
_MOST_ENTRIES, _LEAST_JUDGES = 2_000_000, 10_000
"""Entries, and at least so many runs a side, that judge slow features of wide outputs: fewer choose
a worse one, more cost seconds for each million."""
_SMOOTH_LUCK = 1.0
"""Standard deviations of what is uncertain in a fit, for comparisons with other events."""


@final
@dataclass(frozen=True)
class Cells:
    """A feature cut into cells, in their order, with the training runs of both datasets in each."""

    feature: Feature
    bounds: Values
    """The lower edge of every cell but the first; for a discrete feature the value of each."""
    first: Array
    second: Array
    luck: float
    """Standard deviations by which these counts may have been lucky."""
    doubt: float = 0.0
    """Training runs that may have been on the wrong side of an event."""
    share: float = 1.0
    """The part of the training runs that was counted."""
    draws: tuple[Array, Array] | None = None
    """Counts that are as likely, where these are smoothed by a spline."""
    ends: tuple[float, float] = (-np.inf, np.inf)
    """The least and the largest value."""


def cells_of(feature: Feature, first: Matrix, second: Matrix, *, tails: bool) -> Iterable[Cells]:
    """Yield the counts of a feature in cells; smoothed ones too where rare events may be best.

    At δ = 0 events of large probability are best, and counts alone are better judges.
    """
    judged = getattr(feature, "judged", None)  # what taught a feature cannot judge it
    runs = len(first)
    if isinstance(feature, _SLOW) and first.shape[1] > 1:
        rows = max(_LEAST_JUDGES, _MOST_ENTRIES // first.shape[1])
        first, second = first[:rows], second[:rows]
    a, b = (feature(first), feature(second)) if judged is None else judged
    share = len(a) / runs
    if feature.discrete:
        yield _categories(feature, a, b, share)
        return
    yield from intervals(feature, (a, b), share, tails=tails)


def intervals(
    feature: Feature, sides: tuple[Values, Values], share: float, *, tails: bool
) -> Iterable[Cells]:
    """Yield the counts of a feature whose values are taken in order, of a share of the runs."""
    a, b = sides
    both = np.sort(np.concatenate([a, b]))
    total = len(both)
    far = np.unique(np.geomspace(1, total / 2, 120).astype(int))
    ranks = np.concatenate([np.linspace(1, total - 1, _FINE).astype(int), far, total - far])
    edges = np.unique(both[np.clip(ranks, 0, total - 1)])
    edges = edges[edges > both[0]]  # a guess of an empty cell would be no guess of both datasets
    p, q = (
        np.bincount(np.searchsorted(edges, side, side="right"), minlength=len(edges) + 1)
        for side in (a, b)
    )
    luck, doubt = (LUCK, 0.0) if len(p) > _FEW else (_LUCK_OF_FEW, _DOUBT_OF_FEW)
    ends = float(both[0]), float(both[-1])
    yield Cells(feature, edges, p, q, luck, share=share, doubt=doubt, ends=ends)
    if not tails or not np.isfinite(both[[0, -1]]).all():
        return
    fitted = smoothed(np.append(both[0], edges), p, q)
    if fitted is not None:
        counts = (fitted.first, fitted.second)
        yield Cells(
            feature, edges, *counts, _SMOOTH_LUCK, share=share, draws=fitted.draws, ends=ends
        )


def _categories(feature: Feature, a: Values, b: Values, of: float) -> Cells:
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
    luck, doubt = (_LUCK_OF_FEW, _DOUBT_OF_FEW) if few else (_LUCK_OF_SETS, 0.0)
    share = of if few else of / 2
    return Cells(feature, values[order], p[order], q[order], luck, share=share, doubt=doubt)
