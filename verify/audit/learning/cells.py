"""Features cut into cells: the training runs of both datasets counted in each.

Values that are taken in order are cut finely at quantiles; categories are put in order by their
observed likelihood ratio.
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
from dpassay.verifier.audit.statistics.smooth import smoothed

Array: TypeAlias = NDArray[Any]

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
