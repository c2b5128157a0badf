"""What a round bets on, and how much: the events and the stake under which capital grows fastest.

By the bets of `kinds.sequential` capital grows on average by

    r ln(1 + θ(1 − δ)) + w ln(1 − θ(e^ε + δ)) + (1 − r − w) ln(1 − θδ)

in a run, for rates r of right and w of wrong guesses and a stake θ. An event E alone leaves most
runs without a guess, each of which costs δ: where δ is large, only E with its opposite F grows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verify.audit.learning.rule import Histogram, Rule
from verify.audit.statistics.exact_test import Design, last
from verify.audit.statistics.guarantee import Point

Guesses: TypeAlias = tuple[int, int, int]
"""Right ones, wrong ones, runs."""
Array: TypeAlias = NDArray[Any]

_CAUTION = 1.0
"""Standard deviations by which rates are doubted in a stake: without, luck is bet on."""
_STAKES = np.arange(1, 16) / 16
"""Stakes that are tried for every event, as parts of the largest one."""
_CUTS = 48
"""Cuts between cells that are tried, in pairs."""


def doubted(right: Array, wrong: Array, runs: int) -> Array:
    """Return cautious rates of right and wrong guesses and of none, shape (events, 3)."""
    r, w = right / runs, wrong / runs
    r = np.maximum(0.0, r - _CAUTION * np.sqrt(r * (1 - r) / runs))
    w = np.minimum(1 - r, w + _CAUTION * np.sqrt(w * (1 - w) / runs) + 1 / runs)
    return np.stack([r, w, np.maximum(0.0, 1 - r - w)], axis=-1)


def sharpened(rule: Rule, histogram: Histogram, points: Sequence[Point]) -> Rule:
    """Return a rule of the same cells with the events and the point of fastest growth."""
    p, q = histogram
    order = np.arange(len(p))
    if rule.feature.discrete:
        order = np.argsort(np.log((p + 0.5) / (q + 0.5)), kind="stable")
    sums = [np.concatenate([[0], np.cumsum(side[order])]) for side in (p, q)]
    cuts = np.unique(np.linspace(0, len(p), min(_CUTS, len(p) + 1)).astype(int))
    low, high = (
        grid[np.triu_indices(len(cuts))] for grid in np.meshgrid(cuts, cuts, indexing="ij")
    )
    factors = np.exp([min(float(point.epsilon), 700.0) for point in points])[:, np.newaxis]
    deltas = np.array([float(point.delta) for point in points])[:, np.newaxis]
    stakes = _STAKES / (factors + deltas)
    gains = (stakes * (1 - deltas), -stakes * (factors + deltas), -stakes * deltas)
    payoffs = np.log1p(np.stack([gain.ravel() for gain in gains]))
    best: tuple[float, int, int, int] = (-math.inf, 0, 0, 0)
    for favoured in (0, 1):
        own, other = sums[favoured], sums[1 - favoured]
        right, wrong = own[-1] - own[high] + other[low], other[-1] - other[high] + own[low]
        growth = doubted(right, wrong, int(own[-1] + other[-1])) @ payoffs
        place = int(growth.argmax())
        event, bet = divmod(place, growth.shape[1])
        if growth.flat[place] > best[0]:
            best = float(growth.flat[place]), favoured, event, bet // len(_STAKES)
    growth, favoured, event, point = best
    marks = np.zeros(len(p), np.int8)
    marks[order[high[event] :]], marks[order[: low[event]]] = 1, -1
    return replace(
        rule,
        marks=marks,
        design=Design.GUESSES,
        favoured=favoured,
        point=points[point],
        predicted=growth,
    )


def stake(guesses: Guesses, point: Point) -> float:
    """Return the stake that grows the capital fastest, for cautious rates; 0 where none does."""
    right, wrong, runs = guesses
    factor, delta = math.exp(min(float(point.epsilon), 700.0)), float(point.delta)
    r, w, rest = doubted(np.array(right), np.array(wrong), runs).tolist()

    def slope(stake: float) -> float:
        gain = r * (1 - delta) / (1 + stake * (1 - delta))
        loss = w * (factor + delta) / max(1 - stake * (factor + delta), 1e-12)
        return float(gain - loss - rest * delta / (1 - stake * delta))

    if slope(0.0) <= 0:
        return 0.0
    return last(lambda stake: slope(stake) > 0, 0.0, 1 / (factor + delta))
