"""Rare outcomes: a second look that a small part of the significance pays for.

A leak that shows in one output of 1000 puts seven training runs into an event: too few to be worth
more than what the best common event promises, though the fresh runs would refute by it. So the
event of most promise gets 95 % of the significance, and up to four rare ones (2 % of the runs at
most; of either dataset the outcomes and the ends that exceed the claim most in training) share the
rest. All are fixed before the first fresh run. Under the claim the event with share s_i has
P(p_i ≤ s_i α) ≤ s_i α, whatever the others do, and Σ s_i ≤ 1: some p_i/s_i is at most α with
probability at most α (Bonferroni). One event has P(p_i/s_i ≤ α) ≤ α all the more, so each bound
that is printed is taken at level s_i α, and all of them hold together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.verifier.audit.learning import features
from dpassay.verifier.audit.learning.boosted import Boosted
from dpassay.verifier.audit.learning.cells import Cells
from dpassay.verifier.audit.learning.outputs import Matrix
from dpassay.verifier.audit.learning.rule import Histogram, Partition, Rule
from dpassay.verifier.audit.statistics.exact_test import (
    SPARED,
    Counts,
    Design,
    delta_lower_bound,
    epsilon_lower_bound,
    nested_p_value,
)
from dpassay.verifier.audit.statistics.guarantee import Point
from dpassay.verifier.audit.statistics.promise import Claimed, excess, largest

Array: TypeAlias = NDArray[Any]

MAIN = 0.95
"""The part of the significance of the event that promises most: 1 % less of ε at 10⁵ runs."""
_RARE = 0.02
"""The largest part of the training runs that a rare event holds."""
_FEWEST = 2
"""Training runs that an event needs."""


class End(NamedTuple):
    """A rare end of the cells of a feature, and by how much it exceeds the claim."""

    score: float
    cells: Cells
    favoured: int
    point: Point
    cut: int
    upper: bool


def rare_ends(cells: Cells, claim: Claimed) -> Iterable[End]:
    """Yield for either dataset the rare end of some cells that exceeds the claim most."""
    if isinstance(cells.feature, Boosted) or cells.draws is not None:
        return  # slow on every fresh run, or no counts
    sides, size = (cells.first, cells.second), len(cells.first)
    for favoured in (0, 1):
        best: End | None = None
        for upper in (False, True):
            step = -1 if upper else 1
            a, b = (np.cumsum(sides[i][::step])[:-1] for i in (favoured, 1 - favoured))
            n = float(sides[favoured].sum())
            found = _clearest(a, b, n, claim)
            if found is not None and (best is None or found[0] > best.score):
                score, point, index = found
                cut = size - 1 - index if upper else index + 1
                score = score / math.sqrt(cells.share) - luck(size)
                best = End(score, cells, favoured, point, cut, upper)
        if best is not None:
            yield best


def luck(size: int) -> float:
    """Return about how many standard deviations the luckiest of so many events is off."""
    return math.sqrt(2 * math.log(size))


def _clearest(a: Array, b: Array, runs: float, claim: Claimed) -> tuple[float, Point, int] | None:
    """Return the largest excess over the claim among rare events, its point and its index."""
    held = np.flatnonzero((a >= _FEWEST) & (a + b <= 2 * _RARE * runs))
    if not len(held):
        return None
    score, point, index = largest(excess(Design.SIDES, a[held], b[held], runs, claim), claim)
    return score, point, int(held[index])


def rare_outcomes(first: Matrix, second: Matrix, claim: Claimed) -> Iterable[Rule]:
    """Yield for either dataset the value of an entry that exceeds the claim most, if it is rare.

    With it go the other values of that entry that exceed the claim beyond all chance.
    """
    best: dict[int, tuple[float, Rule]] = {}
    for index in features.coordinates(first, second):
        feature = features.Coordinate(index, discrete=True)
        given = [feature(side) for side in (first, second)]
        values, place = np.unique(np.concatenate(given), return_inverse=True)
        if not 1 < len(values) < len(place):
            continue
        cut = len(given[0])
        counts = [np.bincount(part, minlength=len(values)) for part in (place[:cut], place[cut:])]
        for favoured in (0, 1):
            a, b = counts[favoured], counts[1 - favoured]
            n = float(a.sum())
            found = _clearest(a, b, n, claim)
            if found is None or (favoured in best and found[0] <= best[favoured][0]):
                continue
            score, point, which = found
            each = Claimed.of([replace_delta(point)])
            beyond = excess(Design.SIDES, a, b, n, each)[0]
            others = (beyond > luck(len(values)) + 1) & (a <= _RARE * n)
            chosen = values[np.union1d(np.flatnonzero(others), [which])]
            marks = np.append(np.ones(len(chosen), np.int8), np.int8(0))
            partition = Partition(None, chosen)
            rule = Rule(feature, partition, marks, Design.SIDES, favoured, point, score)
            best[favoured] = score, rule
    return (rule for _, rule in best.values())


def replace_delta(point: Point) -> Point:
    """Return the point with δ = 0: what each of several values has to exceed."""
    return replace(point, delta=point.delta * 0)


def hedged(rule: Rule, rare: Sequence[Rule], share: float) -> Rule:
    """Return a rule that has a share of the significance, of which rare events get some."""
    kept = list({each.digest(): each for each in rare if each.digest() != rule.digest()}.values())
    if not kept:
        return replace(rule, share=share)
    part = share * (1 - MAIN) / len(kept)
    hedges = tuple(replace(each, share=part) for each in kept)
    return replace(rule, share=share * MAIN, hedges=hedges)


class Tested(NamedTuple):
    """The event that tells most, and what it tells."""

    rule: Rule
    histogram: Histogram
    counts: Counts
    p_value: float
    """Over the share of its event in the significance."""
    spared: float
    epsilon: float
    delta: float


def decide(rule: Rule, histogram: Histogram, significance: float) -> Tested:
    """Test every event at its share of the significance; keep the one that tells most.

    Of those that refute one point of (ε, δ) that is the one of the largest ε, otherwise the one
    with the least p-value.
    """
    tested: list[Tested] = []
    columns = 0
    one_point = len({each.point for each in rule.rules}) == 1
    for each in rule.rules:
        own = histogram[:, columns : columns + each.partition.size]
        columns += each.partition.size
        if each is not rule and not own.sum(axis=1).all():
            continue  # fair coins gave no run to one of the datasets
        counts, level = each.counts(own), each.share * significance
        eps, delta = float(each.point.epsilon), float(each.point.delta)
        found = min(1.0, nested_p_value(counts, eps, delta, level) / each.share)
        if each is not rule and found > significance:
            continue
        bounds = (
            epsilon_lower_bound(counts, delta, level),
            delta_lower_bound(counts, eps, level),
        )
        tested.append(Tested(each, own, counts, found, SPARED * level, *bounds))
    refuting = [each for each in tested if each.p_value <= significance]
    if one_point and refuting:
        return max(refuting, key=lambda each: each.epsilon)
    return min(tested, key=lambda each: each.p_value)
