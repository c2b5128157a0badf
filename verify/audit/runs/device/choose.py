"""The event that shows most, from the exact laws of both datasets.

Cells between the cuts of two real laws, or cells of outcomes ranked by their likelihood ratio under
two laws on integers. What so many training runs would count in each that nothing is luck is handed
to the chooser of `learning.learn`. Nothing here needs to be exact: the event is fixed before a
run is drawn.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from verify.audit.learning.cells import Cells
from verify.audit.learning.features import Coordinate
from verify.audit.learning.learn import Scale, candidates
from verify.audit.learning.rule import Partition, Rule
from verify.audit.learning.vectors import Linear
from verify.audit.runs.device.laws import Law, TableNoise
from verify.audit.statistics.guarantee import Guarantee
from verify.audit.statistics.promise import Claimed

Values: TypeAlias = NDArray[np.float64]

_TRAINED = 10**15
"""Training runs that the probabilities stand for: doubles hold all their digits."""
_MOST_CELLS = 700
"""Cells of equal probability: an event is off its best by 0.2 % of the runs at most."""
_RAREST = 200
"""Outcomes at either end of the ranking with cells of their own, however rare they are."""
_DIGITS = 6
"""Decimals of a log ratio: outcomes that differ by rounding keep their own order."""
_LIGHT = 1e-12
"""Mass below which weights of 2⁻⁶⁴ are rounded too coarsely to give a ratio."""
_CERTAIN = 1e3
"""A log ratio in place of ±∞, larger than any other."""


def choose(laws: tuple[Law, Law], guarantee: Guarantee, *, runs: int, significance: float) -> Rule:
    """Return the rule that promises most for a test on `runs` runs a side."""
    lows, masses = _masses(laws)
    order = np.arange(len(lows))
    if all(isinstance(own.noise, TableNoise) for own in laws):
        order = _ranked(masses)
    starts = _starts(masses[:, order])
    first, second = np.add.reduceat(masses[:, order], starts, axis=1) * _TRAINED
    weights = laws[0].weights
    feature = Linear(np.array(weights), "the exact likelihood ratio") if weights else Coordinate(0)
    cells = Cells(feature, lows, first, second, luck=0.0)
    claim = Claimed.of(guarantee.candidates())
    best = max(
        candidates(cells, claim, Scale.of(_TRAINED, runs, significance)),
        key=lambda candidate: candidate.objective,
    )
    marks = np.empty(len(lows), np.int8)
    marks[order] = np.repeat(best.marks, np.diff(starts, append=len(lows)))
    edges = np.flatnonzero(np.diff(marks)) + 1
    kept = marks[np.append(0, edges)]
    partition = Partition(lows[edges])
    return Rule(feature, partition, kept, best.design, best.favoured, best.point, best.objective)


def _masses(laws: tuple[Law, Law]) -> tuple[Values, Values]:
    """Return where cells begin, and their probabilities under both laws.

    A difference is taken from the smaller tail, so that it keeps its relative accuracy.
    """
    cuts = np.unique(np.concatenate([own.cuts() for own in laws]))
    upper = np.array([own.upper(cuts) for own in laws])
    lower = np.array([own.lower(cuts) for own in laws])
    inner = np.where(lower[:, 1:] < 0.5, np.diff(lower), -np.diff(upper))
    masses = np.concatenate([lower[:, :1], inner, upper[:, -1:]], axis=1)
    return np.append(-np.inf, cuts), masses


def _ranked(masses: Values) -> NDArray[np.intp]:
    """Return the cells in the order of their log ratio.

    Weights of a few units are rounded, and what never occurs has no ratio: there it is that of what
    is next to them.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.clip(np.log(masses[0]) - np.log(masses[1]), -_CERTAIN, _CERTAIN)
    places = np.arange(len(ratio))
    heavy = masses.sum(axis=0) > _LIGHT
    ratio = np.interp(places, places[heavy], ratio[heavy])
    return np.argsort(-np.round(ratio, _DIGITS), kind="stable")


def _starts(masses: Values) -> NDArray[np.intp]:
    """Return where cells begin that hold some neighbours each, few at the ends."""
    count = masses.shape[1]
    reached = np.cumsum(masses.sum(axis=0))
    wanted = np.linspace(0, reached[-1], _MOST_CELLS)
    ends = np.arange(min(_RAREST, count))
    starts = np.concatenate([ends, count - 1 - ends, np.searchsorted(reached, wanted)])
    return np.unique(np.clip(starts, 0, count - 1))
