"""The largest divergence of a density from itself over all shifts up to a distance, with proof.

H is enclosed in balls at a few shifts. From these the growths (`dpassay.accountant.density.growth`)
bound it on all cells; where a bound exceeds the best value found the cell is split, geometrically
towards a shift whose value is known. The derivative vanishes at an inner maximum, so that a last
cell of width h adds O(h²).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import final

import numpy as np
from flint import arb

from dpassay.accountant.density.growth import HIGHEST, MOST_CELLS, UNIT, Growth
from dpassay.accountant.density.law import Law
from dpassay.accountant.density.line import BITS, SLACK
from dpassay.accountant.density.ranges import number_ends
from dpassay.accountant.numbers.precision import ctx

_FIRST = 48
"""Cells of shifts at first: fewer take more rounds, more take longer."""
_PARTS, _GRADE, _LEVELS = 6, 2, 22
"""An open cell is split into so many; towards a known shift into widths that fall by `_GRADE`."""
_ROUNDS = 14
"""Rounds of splits before both ends are taken as they are."""
_LATE = 3
"""Rounds from which on a value is asked in every open run: earlier ones are seldom needed."""
_WIDTH = 2e-13
"""Relative width at which the bounds are near enough: a fifth of the usual width."""
_POINTS, _PEAKS = 33, 3
"""Points at which H′ is taken to find a peak, and how often: it only chooses."""
_SHORT = 34
"""Binary places of a shift at a peak: a longer one makes slower balls, and H is flat there."""
_NEAR = 1e-6
"""Share of the best value within which another peak is looked at in balls."""
_WORK = 1 << 21
"""Cells of y after which both ends are taken as they are: a few seconds."""
_SMALL = 1e-12
"""Scale of the tails where no value of H is known: one far below is not known narrowly."""

Value = Callable[[Fraction], arb]
"""H at a shift, in balls."""


@final
@dataclass(frozen=True)
class Worst:
    """The largest H: both ends, and a shift that has the lower one."""

    lower: float
    upper: float
    shift: Fraction


def worst(law: Law, level: float, distance: Fraction, value: Value) -> Worst:
    """Return the largest H at ε = level over shifts up to a distance."""
    start = -math.expm1(min(level, 0.0))
    known = {Fraction(0): (start * (1 - SLACK), start * (1 + SLACK))}

    def ask(shift: Fraction) -> None:
        with ctx.workprec(BITS):
            found = value(shift)
            known[shift] = _down(found.lower()), _up(found.upper())

    ask(distance)
    breaks = [place.low for place in law.pieces.breaks]
    kinks = {abs(a - b) for a in breaks for b in breaks}
    if all(part.tree.op == "num" for part in law.pieces.parts):
        for shift in _corners(law, level, [t for t in kinks if 0 < t < distance]):
            ask(shift)
        shift = max(known, key=lambda t: known[t][0])
        return Worst(known[shift][0], max(high for _, high in known.values()), shift)
    scale = max(low for low, _ in known.values())
    growth = Growth(law, level, distance, scale or _SMALL)
    even = {Fraction(float(distance * i / _FIRST)) for i in range(1, _FIRST)}
    edges = sorted({Fraction(0), distance} | {t for t in kinks | even if 0 < t < distance})
    cells = _rated(growth, list(pairwise(edges)))
    for peak in _peaks(growth, cells, known, kinks):
        ask(peak)
        cells = _cut(growth, cells, peak)
    for n in range(_ROUNDS):
        best = max(low for low, _ in known.values())
        bounds = _bounds(cells, known)
        goal = max(best * (1 + _WIDTH), best + _SMALL**2)
        bad = [cell for cell, bound in zip(cells, bounds, strict=True) if bound > goal]
        if not bad or len(cells) > MOST_CELLS // 16 or growth.work > _WORK:
            break
        for at in _tops(cells, bounds, goal, known, best, late=n >= _LATE):
            ask(at)
        kept = [cell for cell, bound in zip(cells, bounds, strict=True) if not bound > goal]
        split = [part for cell in bad for part in _split(cell.low, cell.high, known, best)]
        cells = sorted([*kept, *_rated(growth, split)], key=lambda cell: cell.low)
    bounds = _bounds(cells, known)
    shift = max(known, key=lambda t: known[t][0])
    upper = max(*bounds, *(high for _, high in known.values()))
    return Worst(known[shift][0], min(upper, 1.0), shift)


def _corners(law: Law, level: float, shifts: list[Fraction]) -> list[Fraction]:
    """Return the shifts among which the largest H of a density of steps is, by sums in floats.

    Between two differences of the ends of steps H_t is a straight line in t, as the lengths of all
    overlaps are. A sum over overlaps is off by a few roundings of the span times the largest f.
    """
    if level > HIGHEST or not shifts:
        return shifts
    first = law.pieces.breaks[0].low
    ends = np.array([float(place.low - first) for place in law.pieces.breaks])
    heights = np.array([float(part.tree.number) for part in law.pieces.parts])
    scale = float(np.sum(heights[1:-1] * np.diff(ends)))
    sums = []
    for shift in map(float, shifts):
        edges = np.sort(np.concatenate([ends, ends - shift]))
        middle = (edges[1:] + edges[:-1]) / 2
        p, q = (heights[np.searchsorted(ends, at)] for at in (middle, middle + shift))
        excess = np.maximum(p - np.exp(level) * q, 0)
        sums.append(float(np.sum(excess * np.diff(edges))) / scale)
    span = ends[-1] + float(max(shifts))
    error = 32 * UNIT * len(ends) * float(np.max(heights)) * span / scale
    return [t for t, found in zip(shifts, sums, strict=True) if found >= max(sums) - 2 * error]


@final
@dataclass(frozen=True, slots=True)
class _Cell:
    """Shifts between two numbers, the bounds of H′ there, and about what it is."""

    low: Fraction
    high: Fraction
    most: float
    least: float
    middle: float


def _rated(growth: Growth, ends: list[tuple[Fraction, Fraction]]) -> list[_Cell]:
    if not ends:
        return []
    low = np.array([number_ends(a)[0] for a, _ in ends])
    high = np.array([number_ends(b)[1] for _, b in ends])
    with np.errstate(invalid="ignore", over="ignore"):
        most, least, middle = growth.rates(low, high)
    most = np.where(np.isnan(most), np.inf, most)
    least = np.where(np.isnan(least), -np.inf, least)
    rates = zip(most.tolist(), least.tolist(), np.nan_to_num(middle).tolist(), strict=True)
    return [_Cell(a, b, *rate) for (a, b), rate in zip(ends, rates, strict=True)]


def _bounds(cells: list[_Cell], known: dict[Fraction, tuple[float, float]]) -> list[float]:
    """Return upper bounds of H on the cells, from the values known on both sides."""
    found = [math.inf] * len(cells)
    for way in (1, -1):
        at = math.inf
        for i in range(len(cells))[::way]:
            cell = cells[i]
            edge = cell.low if way > 0 else cell.high
            if edge in known:
                at = min(at, known[edge][1])
            width = number_ends(cell.high - cell.low)[1]
            rise = width * (cell.most if way > 0 else -cell.least)
            grown = at + rise
            grown += SLACK * 2**-5 * (at + abs(rise))
            found[i] = min(found[i], max(at, grown))
            at = grown
    return found


def _peaks(
    growth: Growth, cells: list[_Cell], known: dict[Fraction, tuple[float, float]],
    kinks: set[Fraction],
) -> list[Fraction]:  # fmt: skip
    """Return shifts at which H has a peak near the largest, by its derivative in floats."""
    heights, height = [], known[Fraction(0)][0]
    for cell in cells:
        heights.append(height)
        height += float(cell.high - cell.low) * cell.middle
    tops = [
        (height, before.low, cell.high)
        for height, before, cell in zip(heights[1:], cells, cells[1:], strict=False)
        if before.middle > 0 >= cell.middle
    ]
    most = max([height, *(top for top, _, _ in tops)])
    step = max((float(c.high - c.low) * abs(c.middle) for c in cells), default=0.0)
    near = [top for top in sorted(tops, reverse=True) if top[0] >= most - step]
    return [_peak(growth, float(a), float(b), kinks) for _, a, b in near[:_PEAKS]]


def _peak(growth: Growth, a: float, b: float, kinks: set[Fraction]) -> Fraction:
    for _ in range(_PEAKS):
        points = np.linspace(a, b, _POINTS)
        with np.errstate(invalid="ignore", over="ignore"):
            slopes = growth.rates(points, points, coarse=(b - a) / (4 * _POINTS))[2]
        i = int(np.argmax((slopes[:-1] > 0) & (slopes[1:] <= 0)))
        a, b = float(points[i]), float(points[i + 1])
        rise, fall = float(slopes[i]), float(slopes[i + 1])
    for kink in kinks:
        if a <= kink <= b:
            return kink
    at = a + (b - a) * rise / (rise - fall) if rise > fall else a
    return Fraction(round(at * 2.0**_SHORT), 1 << _SHORT)


def _tops(
    cells: list[_Cell], bounds: list[float], goal: float,
    known: dict[Fraction, tuple[float, float]], best: float, *, late: bool,
) -> list[Fraction]:  # fmt: skip
    """Return edges where H seems to be largest, in runs of open cells without a value near it.

    At first only inside a run: a smaller one may be told by the sign of H′.
    """
    runs: list[list[_Cell]] = []
    last = False
    for cell, bound in zip(cells, bounds, strict=True):
        if bound > goal:
            runs = [*runs[:-1], [*runs[-1], cell]] if last else [*runs, [cell]]
        last = bound > goal
    found = []
    for run in runs:
        edges = [run[0].low, *(cell.high for cell in run)]
        if any(edge in known and known[edge][1] >= best * (1 - _NEAR) for edge in edges):
            continue
        heights = [0.0]
        for cell in run:
            heights.append(heights[-1] + float(cell.high - cell.low) * cell.middle)
        top = int(np.argmax(heights))
        if (late or 0 < top < len(run)) and edges[top] not in known:
            found.append(edges[top])
    return found[:_PEAKS]


def _cut(growth: Growth, cells: list[_Cell], at: Fraction) -> list[_Cell]:
    """Return the cells with one more edge."""
    found = []
    for cell in cells:
        inside = cell.low < at < cell.high
        found += _rated(growth, [(cell.low, at), (at, cell.high)]) if inside else [cell]
    return found


def _split(
    low: Fraction, high: Fraction, known: dict[Fraction, tuple[float, float]], best: float
) -> list[tuple[Fraction, Fraction]]:
    """Return parts of a cell: geometric ones towards a shift whose value is near the best."""
    near = [known[end][1] >= best * (1 - _NEAR) if end in known else False for end in (low, high)]
    width = high - low
    if near[0] == near[1]:
        inner = [Fraction(float(low + width * i / _PARTS)) for i in range(1, _PARTS)]
    else:
        sizes = [width / _GRADE**n for n in range(1, _LEVELS)]
        inner = [Fraction(float(low + size if near[0] else high - size)) for size in sizes]
    edges = sorted({low, high} | {x for x in inner if low < x < high})
    return list(pairwise(edges))


def _down(value: arb) -> float:
    return max(0.0, math.nextafter(float(value), -math.inf))


def _up(value: arb) -> float:
    return math.nextafter(float(value), math.inf) if value.is_finite() else 1.0
