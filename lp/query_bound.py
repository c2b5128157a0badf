"""A lower bound of the δ of k answers with bounded count noise, by linear programs.

Let f_k(E) be the least δ of k answers at E = e^ε whose symmetric laws may differ, each chosen when
the answers before it are known; it is at most the δ of one law for all. f_0(E) = max(0, 1 − E), and
a first answer of the law p leaves

    δ(E) = p(D) + Σ_{z < D} p(z) δ'(E p(z+1)/p(z)) ≥ p(D) + Σ_{z < D} p(z) f_{k−1}(E p(z+1)/p(z)),

δ' that of the others. If f_{k−1} is nowhere below lines c_i − d_i E, the right side is at least

    min over p of p(D) + Σ_{z < D} max_i (c_i p(z) − d_i E p(z+1)), a linear program.

*Multipliers.* With weights λ_{z,i} ≥ 0 of sum at most 1 for each z, C_z = Σ_i λ_{z,i} c_i and D_z =
Σ_i λ_{z,i} d_i, this is at least the least p(D) + Σ (C_z p(z) − D_z E p(z+1)) of any symmetric law
with P(Z = 0) = η, which a law on {−j, 0, j} has. Whatever λ a solver returns, this is a bound.

*Lines for the next step.* f decreases: from x to y it is at least f(y). Let v_y be the bound at y,
for the E of a list that begins with 0. A line that is at most v_y at x for all neighbours x < y,
and at most 0 at the last E, is nowhere above f. Those of the lower convex hull of the points (x,
v_y) are taken. Values are fractions, rounded down to floats.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from scipy.optimize import linprog

Line: TypeAlias = tuple[float, float]
"""c and d of c − d E."""
Point: TypeAlias = tuple[float, float]

_PROGRAMS = 240
"""Linear programs in all, shared by the k − 1 steps: some seconds for D = 6."""
_LEAST_POINTS = 24
"""Values of E in each step, however many steps there are."""
_FIRST, _BEYOND = math.exp(-3), math.exp(1)
"""The least of these E, and how far above the E that is asked they go: of little use outside."""
_ROOM = 1e-12
"""Relative room below a line, for the rounding of its value at the points, of order 1e-16."""
_START: Line = (1.0, 1.0)
"""f_0 is this line, and 0."""


def lower_bound(eta: Fraction, support: int, ratio: Fraction, count: int) -> Fraction:
    """Return a number that no law of `count` answers has a δ below, where E is at most `ratio`."""
    lines = [_START]
    points = max(_LEAST_POINTS, _PROGRAMS // max(count - 1, 1))
    places = np.geomspace(_FIRST, float(ratio) * _BEYOND, points).tolist()
    for _ in range(count - 1):
        values = [_bound(lines, Fraction(place), eta, support) for place in places]
        lines = _lines(places, [math.nextafter(float(value), -math.inf) for value in values])
    return _bound(lines, ratio, eta, support)


def _bound(lines: Sequence[Line], ratio: Fraction, eta: Fraction, support: int) -> Fraction:
    """Return L(E), or 0."""
    value = dict.fromkeys(range(-support, support + 1), Fraction(0))
    value[support] += 1
    for z, row in enumerate(_multipliers(lines, float(ratio), float(eta), support), -support):
        weights = [Fraction(weight) for weight in row]
        most = max(sum(weights), Fraction(1))
        for weight, (c, d) in zip(weights, lines, strict=True):
            if weight:
                value[z] += weight * Fraction(c) / most
                value[z + 1] -= weight * Fraction(d) * ratio / most
    least = min(value[j] + value[-j] for j in range(1, support + 1))
    return max(eta * value[0] + (1 - eta) / 2 * least, Fraction(0))


def _multipliers(
    lines: Sequence[Line], place: float, eta: float, support: int
) -> list[list[float]]:
    """Return λ for each z < D: p(1), …, p(D) and one t_z for each z are the variables."""
    pairs = list(itertools.pairwise(range(-support, support + 1)))
    gain, loss = (np.array(side) for side in zip(*lines, strict=True))
    matrix = np.zeros((len(pairs), len(lines), 1 + support + len(pairs)))
    for index, (z, above) in enumerate(pairs):
        matrix[index, :, abs(z)] += gain  # the first column is that of p(0) = η
        matrix[index, :, abs(above)] -= loss * place
        matrix[index, :, 1 + support + index] = -1
    rows = matrix.reshape(len(pairs) * len(lines), -1)
    found = linprog(
        np.array([0.0] * (support - 1) + [1.0] * (1 + len(pairs))),
        A_ub=rows[:, 1:],
        b_ub=-eta * rows[:, 0],
        A_eq=np.array([[1.0] * support + [0.0] * len(pairs)]),
        b_eq=np.array([(1 - eta) / 2]),
        method="highs",
    )
    if found.status != 0:  # 0 is a bound too
        return [[0.0] * len(lines)] * len(pairs)
    weights = np.maximum(-found.ineqlin.marginals, 0).reshape(len(pairs), len(lines))
    found_weights: list[list[float]] = weights.tolist()
    return found_weights


def _lines(places: Sequence[float], values: Sequence[float]) -> list[Line]:
    """Return lines below f, which is at least these values at these E."""
    points = [*zip([0.0, *places], [*values, 0.0], strict=True)]
    found = (_through(*ends) for ends in itertools.pairwise(_hull(points)))
    kept = [(c * (1 - _ROOM), d) for c, d in found if _is_below((c * (1 - _ROOM / 2), d), points)]
    return kept or [(0.0, 0.0)]


def _hull(points: Sequence[Point]) -> list[Point]:
    """Return the corners of the lower convex hull; the points are in order."""
    kept: list[Point] = []
    for point in points:
        while len(kept) > 1 and _through(kept[-2], kept[-1])[1] <= _through(kept[-2], point)[1]:
            kept.pop()
        kept.append(point)
    return kept


def _through(one: Point, other: Point) -> Line:
    slope = (one[1] - other[1]) / (other[0] - one[0])
    return one[1] + slope * one[0], slope


def _is_below(line: Line, points: Sequence[Point]) -> bool:
    return all(line[0] - line[1] * x <= y for x, y in points)
