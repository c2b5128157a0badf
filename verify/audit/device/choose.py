"""The event that shows most, from the exact laws of both datasets.

Candidates: {score ≥ t} and {score < s} under two real laws, sets of outcomes ranked by their
likelihood ratio under two laws on integers; one of them alone (`Design.SIDES`) or both against each
other (`Design.GUESSES`), in both orders. With c = e^ε and probabilities in place of counts the
expected standardised excess over P ≤ cQ + δ is

    sides:   √n (P − cQ − δ)/√(P(1 − P) + c² Q(1 − Q)),
    guesses: √2n (R − cW − δ)/√(R + c²W − (R − cW)²),

with R = (P(E) + Q(F))/2 and W = (Q(E) + P(F))/2. For a claim of one point the event is best at
the largest ε at which it is still `level` standard deviations above, so that the bound of ε is
best; for a curve, at the point where the excess is largest. Nothing here needs to be exact: the
event is fixed before a run is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from verify.audit.device.laws import Law, TableNoise
from verify.audit.exact_test import Design
from verify.audit.features import Coordinate, Feature
from verify.audit.guarantee import Guarantee, Point
from verify.audit.rule import Partition, Rule
from verify.audit.vectors import Linear

Values: TypeAlias = NDArray[np.float64]

_MOST_ENDS = 700
"""Ends of each kind that are tried: pairs of them are looked at coarsely, then closely."""
_HALVINGS = 40
"""Steps that find ε within 1e-10 of its range."""
_LARGEST_EPSILON = 60.0
"""Where the search for ε ends: events of a claim beyond it are never seen in a run."""
_LEAST_COUNT = 0.5
"""Runs that an impossible outcome counts as: an excess over 0 would be infinite."""
_OVERLAP = 1e-12
"""Rounding of a sum of two probabilities: more is an overlap of two events."""
_THIN = 60
"""Ends of each kind in one look: 60 × 60 pairs, two times."""
_DIGITS = 6
"""Decimals of a log ratio: outcomes that differ by rounding keep their own order."""
_LIGHT = 1e-12
"""Mass below which weights of 2⁻⁶⁴ are rounded too coarsely to give a ratio."""
_CERTAIN = 1e3
"""A log ratio in place of ±∞, larger than any other."""


@final
@dataclass(frozen=True, eq=False)
class _Ends:
    """Nested events E_0 ⊂ E_1 ⊂ … for the first law and F_0 ⊂ F_1 ⊂ … for the second.

    Row 0 holds their probabilities under the first law, row 1 under the second.
    """

    events: Values
    opposites: Values
    cells: Any
    """Given the indices of an event and of an opposite one (or None): edges and marks."""


@final
@dataclass(frozen=True)
class _Choice:
    value: float
    event: int
    opposite: int | None


def choose(laws: tuple[Law, Law], guarantee: Guarantee, *, runs: int, significance: float) -> Rule:
    """Return the rule that promises most for a test on `runs` runs a side."""
    level = -float(special.ndtri(significance))
    points = guarantee.candidates()
    best: tuple[float, Rule] | None = None
    for favoured in (0, 1):
        for ends in _ends(laws[favoured], laws[1 - favoured]):
            value, point, choice = _best(ends, points, runs, level)
            if best is None or value > best[0]:
                best = value, _rule(ends, choice, Coordinate(0), favoured, point)
    assert best is not None
    weights = laws[0].weights
    feature = Linear(np.array(weights), "the exact likelihood ratio") if weights else Coordinate(0)
    return replace(best[1], feature=feature, predicted=best[0])


def _best(
    ends: _Ends, points: Iterable[Point], runs: int, level: float
) -> tuple[float, Point, _Choice]:
    listed = list(points)
    if len(listed) == 1:
        delta = float(listed[0].delta)
        low, high = 0.0, _LARGEST_EPSILON
        choice = _clearest(ends, low, delta, runs)
        if choice.value <= level:
            return choice.value - level, listed[0], choice
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            found = _clearest(ends, middle, delta, runs)
            low, high = (middle, high) if found.value > level else (low, middle)
            choice = found if found.value > level else choice
        return low, listed[0], choice
    values = [(_clearest(ends, float(p.epsilon), float(p.delta), runs), p) for p in listed]
    choice, point = max(values, key=lambda pair: pair[0].value)
    return choice.value, point, choice


def _clearest(ends: _Ends, epsilon: float, delta: float, runs: int) -> _Choice:
    """Return the event, or the two, of the largest expected excess."""
    factor = math.exp(epsilon)
    p, q = ends.events
    least = _LEAST_COUNT / runs
    spread = p * (1 - p) + factor**2 * np.maximum(q, least)
    alone = math.sqrt(runs) * (p - factor * q - delta) / np.sqrt(spread + least)
    one = int(np.argmax(alone))
    rows, columns = (_thin(0, side.shape[1] - 1) for side in (ends.events, ends.opposites))
    for _ in range(2):  # coarsely, then closely around the best
        both = _together(ends.events[:, rows], ends.opposites[:, columns], factor, delta, runs)
        row, column = np.unravel_index(int(np.argmax(both)), both.shape)
        value, chosen = float(both[row, column]), (int(rows[row]), int(columns[column]))
        rows, columns = _around(rows, int(row)), _around(columns, int(column))
    if value > alone[one]:
        return _Choice(value, *chosen)
    return _Choice(float(alone[one]), one, None)


def _together(events: Values, opposites: Values, factor: float, delta: float, runs: int) -> Values:
    """Return the excess of guesses by every event and every opposite one."""
    least = _LEAST_COUNT / runs
    (p, q), (p_below, q_below) = events[:, :, np.newaxis], opposites[:, np.newaxis, :]
    right, wrong = (p + q_below) / 2, (q + p_below) / 2
    gain = right - factor * wrong
    spread = right + factor**2 * np.maximum(wrong, least) - np.minimum(gain, 1.0) ** 2
    both: Values = math.sqrt(2 * runs) * (gain - delta) / np.sqrt(np.maximum(spread, least))
    overlap = (p + p_below > 1 + _OVERLAP) | (q + q_below > 1 + _OVERLAP)
    return np.where(overlap, -np.inf, both)


def _thin(low: int, high: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(low, high, _THIN).astype(np.intp))


def _around(places: NDArray[np.intp], index: int) -> NDArray[np.intp]:
    """Return the places between the neighbours of one."""
    return _thin(int(places[max(0, index - 1)]), int(places[min(len(places) - 1, index + 1)]))


def _ends(first: Law, second: Law) -> Iterable[_Ends]:
    """Yield families of events for the first law against the second."""
    cuts = np.unique(np.concatenate([first.cuts(), second.cuts()]))
    upper = np.array([first.upper(cuts), second.upper(cuts)])
    lower = np.array([first.lower(cuts), second.lower(cuts)])
    if isinstance(first.noise, TableNoise) and isinstance(second.noise, TableNoise):
        masses = np.array([_between(*sides) for sides in zip(upper, lower, strict=True)])
        yield _ranked(cuts[:-1], masses)
        return
    if len(cuts) > _MOST_ENDS:
        keep = np.linspace(0, len(cuts) - 1, _MOST_ENDS).astype(int)
        cuts, upper, lower = cuts[keep], upper[:, keep], lower[:, keep]

    def cells(up: int | None, down: int | None, *, above: bool) -> tuple[Values, NDArray[np.int8]]:
        top, bottom = (up, down) if above else (down, up)
        mark = 1 if above else -1
        edges = [cuts[i] for i in (bottom, top) if i is not None]
        marks = [-mark] * (bottom is not None) + [0] + [mark] * (top is not None)
        if len(edges) == 2 and edges[0] == edges[1]:
            return np.array(edges[:1]), np.array([-mark, mark], dtype=np.int8)
        return np.array(edges), np.array(marks, dtype=np.int8)

    yield _Ends(upper, lower, lambda e, f: cells(e, f, above=True))
    yield _Ends(lower, upper, lambda e, f: cells(e, f, above=False))


def _between(upper: Values, lower: Values) -> Values:
    """Return the masses between cuts, from the smaller tail."""
    return np.where(lower[1:] < 0.5, np.diff(lower), -np.diff(upper))


def _ranked(outcomes: Values, masses: Values) -> _Ends:
    """Return the outcomes likeliest under the first law, and those under the second."""
    p, q = masses
    possible = np.flatnonzero((p > 0) | (q > 0))
    with np.errstate(divide="ignore"):
        ratio = np.clip(np.log(p[possible]) - np.log(q[possible]), -_CERTAIN, _CERTAIN)
    # Weights of a few units are rounded: there the ratio is taken from the next likelier outcome.
    heavy = (p + q)[possible] > _LIGHT
    ratio = np.interp(possible, possible[heavy], ratio[heavy])
    order = possible[np.argsort(-np.round(ratio, _DIGITS), kind="stable")]
    ranked = masses[:, order]
    count = min(len(order), _MOST_ENDS)
    events = np.cumsum(ranked[:, :count], axis=1)
    opposites = np.cumsum(ranked[:, ::-1][:, :count], axis=1)

    following = np.searchsorted(possible, np.arange(len(outcomes)))
    beside = possible[np.minimum(following, len(possible) - 1)]

    def cells(up: int | None, down: int | None) -> tuple[Values, NDArray[np.int8]]:
        marks = np.zeros(len(outcomes), dtype=np.int8)
        if up is not None:
            marks[order[: up + 1]] = 1
        if down is not None:
            marks[order[::-1][: down + 1]] = -1
        marks = marks[beside]  # what never occurs goes with what is next to it
        starts = np.flatnonzero(np.diff(marks)) + 1
        return outcomes[starts], marks[np.concatenate([[0], starts])]

    return _Ends(events, opposites, cells)


def _rule(ends: _Ends, choice: _Choice, feature: Feature, favoured: int, point: Point) -> Rule:
    edges, marks = ends.cells(choice.event, choice.opposite)
    design = Design.SIDES if choice.opposite is None else Design.GUESSES
    return Rule(feature, Partition(edges), marks, design, favoured, point, choice.value)
