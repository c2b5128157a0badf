"""What an event promises: the lower bound of ε at which counts would just be refuted.

Normal approximations of the exact tests of `statistics.exact_test`, on whole arrays of counts at
once: they choose events, and nothing that is stated rests on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.verifier.audit.statistics.exact_test import Design
from dpassay.verifier.audit.statistics.guarantee import Point

Array: TypeAlias = NDArray[Any]

_LARGEST_EPSILON = 40.0
"""In place of an infinite bound: no counts promise more."""
_LARGEST_EXPONENT = 700.0
"""Up to which e^ε is a double; nothing is beyond such a claim."""


class Claimed(NamedTuple):
    """Points of a claim, and their e^ε and δ, shape (points, 1)."""

    points: Sequence[Point]
    factors: Array
    deltas: Array

    @staticmethod
    def of(points: Sequence[Point]) -> Claimed:
        """Return points with their numbers."""
        epsilons = [min(float(point.epsilon), _LARGEST_EXPONENT) for point in points]
        deltas = np.array([float(point.delta) for point in points])
        return Claimed(points, np.exp(epsilons)[:, np.newaxis], deltas[:, np.newaxis])


def excess(design: Design, a: Array, b: Array, n: float, claim: Claimed) -> Array:
    """Return by how many standard deviations events exceed a claim, shape (points, events).

    `n` counts the runs of a side, or for guesses all runs.
    """
    score = side_score if design is Design.SIDES else guess_score
    return score(np.maximum(a - 0.5, 0.0), b + 0.5, n, claim.factors, claim.deltas)


def largest(values: Array, claim: Claimed) -> tuple[float, Point, int]:
    """Return the largest of some values, shape (points, events), its point and its event."""
    place = int(values.argmax())
    point, event = divmod(place, values.shape[1])
    return float(values.flat[place]), claim.points[point], event


def sides(a: Array, b: Array, n: float, point: Point, level: float) -> Array:
    """Return the bound of ε where the excess is `level`.

    With u = a − nδ and v = cb the score (u − v)/√(nδ(1 − δ) + s(1 + c − 2δ) − 2s²/n) at
    s = (u + v)/2 reaches the level at a root c of a quadratic.
    """
    delta = float(point.delta)
    a, b = np.maximum(a - 0.5, 0.0), b + 0.5
    u, z2 = a - n * delta, level * level
    lead = b * b - z2 * (b / 2 - b * b / (2 * n))
    middle = 2 * u * b + z2 * ((u + b * (1 - 2 * delta)) / 2 - u * b / n)
    last = u * u - z2 * (n * delta * (1 - delta) + u * (1 - 2 * delta) / 2 - u * u / (2 * n))
    root = np.sqrt(np.maximum(middle * middle - 4 * lead * last, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where((u > 0) & (last > 0), 2 * last / (middle + root), 0.0)
    short = side_score(a, b, n, 1.0, delta) - level
    return _bounds(factor, short)


def _bounds(factor: Array, short: Array) -> Array:
    """Return ln(factor); how far the excess over ε = 0 is from the level where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.minimum(np.log(factor), _LARGEST_EPSILON)
    return np.where(factor > 1, found, np.minimum(short, 0.0) * 1e-3)


def side_score(a: Array, b: Array, n: float, factor: Any, delta: Any) -> Array:
    """Return the excess a − nδ − cb in its standard deviations on the boundary p = cq + δ."""
    u, v = a - n * delta, factor * b
    s = np.minimum((u + v) / 2, n * (1 - delta))
    spread = n * delta * (1 - delta) + s * (1 + factor - 2 * delta - 2 * s / n)
    score: Array = (u - v) / np.sqrt(np.maximum(spread, 0.25 * (1 + factor)))
    return score


def guesses(right: Array, wrong: Array, n: float, point: Point, level: float) -> Array:
    """Return the same for guesses: the ε that the bound of their chance needs (Wilson 1927)."""
    delta = float(point.delta)
    right, wrong = np.maximum(right - 0.5, 0.0), wrong + 0.5
    guesses, z2 = right + wrong, level * level
    spread = np.sqrt(right * wrong / guesses + z2 / 4)
    chance = (right + z2 / 2 - level * spread) / (guesses + z2)
    factor = _share_of_guesses(guesses, n, delta) / (1 - chance) - 1
    return _bounds(factor, guess_score(right, wrong, n, 1.0, delta) - level)


def guess_score(right: Array, wrong: Array, runs: float, factor: Any, delta: Any) -> Array:
    """Return by how many standard deviations more guesses are right than the claim allows."""
    guesses = right + wrong
    share = _share_of_guesses(guesses, runs, delta)
    chance = 1 - share / (1 + factor)
    spread = np.sqrt(np.maximum(guesses * chance * (1 - chance), 0.1))
    score: Array = (right - guesses * chance) / spread
    return np.where(share > 0, score, -1.0)


def _share_of_guesses(guesses: Array, runs: float, delta: Any) -> Array:
    """Return the part of the guesses that δ does not excuse."""
    if not np.any(delta):
        return np.ones_like(guesses)
    least = np.maximum(guesses - 3.3 * np.sqrt(guesses), 0.0) / runs
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((least > delta) | (delta == 0), 1 - delta / np.maximum(least, 1e-300), 0.0)
