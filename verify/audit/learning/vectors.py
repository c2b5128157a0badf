"""Features of vectors, learned from the training runs: directions, and distances.

A linear score is best for noise of Gaussian shape around shifted answers; distances to the points
where runs are densest show noise that is thin in some direction or has a spike at the true answer;
gradient boosting (`learning.boosted`) finds what neither shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dpassay.verifier.audit.learning.features import Feature, Values
from dpassay.verifier.audit.learning.outputs import Matrix

_MOST_FOR_COVARIANCE = 400
"""Entries up to which a covariance is learned: it costs their square in runs."""
_SPIKE_RUNS = 5_000
"""Training runs that show a densest point: each step looks at all of them."""
_SPIKE_STEPS = 25
"""Steps to a densest point, each of which brings it closer by a factor."""
_PARTS = 5
"""Parts of the runs: each is scored by what the others taught."""
_FEWEST = 20
"""Finite training runs a side: fewer have no direction."""


@final
@dataclass(frozen=True, eq=False)
class Linear:
    """The score w·output − offset."""

    weights: Values
    how: str
    offset: float = 0.0
    discrete: bool = False

    @property
    def name(self) -> str:
        """Say how it was found."""
        return f"linear score ({self.how})"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the score."""
        return np.nan_to_num(outputs @ self.weights - self.offset, nan=np.inf)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        weights = [float(w) for w in self.weights]
        return {"feature": "linear", "weights": weights, "offset": self.offset}


@final
@dataclass(frozen=True, eq=False)
class Distance:
    """The distance of the output from a centre, or (with two) the difference of two distances."""

    centre: Values
    label: str
    discrete: bool = False

    @property
    def name(self) -> str:
        """Say from where."""
        return f"distance from {self.label}"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the Euclidean distance."""
        off = outputs - self.centre
        distance: Values = np.sqrt(np.einsum("ij,ij->i", off, off))
        return np.nan_to_num(distance, nan=np.inf)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"feature": "distance", "centre": [float(c) for c in self.centre]}


def geometry(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose directions in which vectors differ, and distances from places."""
    if first.shape[1] < 2:
        return
    sides = (np.asarray(side, dtype=np.float64) for side in (first, second))
    a, b = (side[np.isfinite(side).all(axis=1)] for side in sides)
    if min(len(a), len(b)) < _FEWEST:
        return
    for how in (MEANS, DISCRIMINANT):
        found = direction(how, a, b)
        if found is not None:
            yield found
    spike_a, spike_b = spike(a), spike(b)
    yield Linear(spike_a - spike_b, "difference of the densest points")
    yield Distance(spike_a, "the first densest point")
    yield Distance(spike_b, "the second densest point")


MEANS, DISCRIMINANT = "difference of means", "discriminant"


def direction(how: str, a: Matrix, b: Matrix) -> Linear | None:
    """Return a linear score of mean 0 and variance 1, learned from the runs of both datasets."""
    centre_a, centre_b = a.mean(axis=0), b.mean(axis=0)
    weights, width = centre_a - centre_b, a.shape[1]
    if how == DISCRIMINANT:
        if width > _MOST_FOR_COVARIANCE:
            return None
        covariance = (np.cov(a, rowvar=False) + np.cov(b, rowvar=False)) / 2
        ridge = 1e-9 * np.trace(covariance) / width + 1e-300
        weights = np.linalg.solve(covariance + ridge * np.eye(width), weights)
    scores = [side @ weights for side in (a, b)]
    spread = math.sqrt((scores[0].var() + scores[1].var()) / 2)
    if not 0 < spread < math.inf:
        return Linear(weights, how)
    weights = weights / spread
    return Linear(weights, how, float(weights @ (centre_a + centre_b)) / 2)


def crossed(
    feature: Feature, first: Matrix, second: Matrix
) -> tuple[Feature, tuple[Values, Values]] | None:
    """Learn a linear score from all runs, with honest scores of the same runs to cut it by.

    The scores of a part of the runs come from the score that the other parts teach. None where the
    feature is no such score, or an output is not finite.
    """
    if not isinstance(feature, Linear) or feature.how not in (MEANS, DISCRIMINANT):
        return None
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return None
    whole = direction(feature.how, first, second)
    scores = np.empty(len(first)), np.empty(len(second))
    for part in range(_PARTS):
        rest = [np.arange(len(side)) % _PARTS != part for side in (first, second)]
        taught = direction(feature.how, first[rest[0]], second[rest[1]])
        if whole is None or taught is None:
            return None
        for found, side, kept in zip(scores, (first, second), rest, strict=True):
            found[~kept] = taught(side[~kept])
    return None if whole is None else (whole, scores)


def spike(runs: Matrix) -> Values:
    """Return a point where many runs are close to each other.

    Steps to the mean weighted by 1/distance² (whose fixed points maximise Π 1/distance): in many
    dimensions noise with a density that is infinite at the true answer is found where it is, long
    before a mean is good enough.
    """
    runs = runs[:_SPIKE_RUNS]
    centre = runs.mean(axis=0)
    norms = np.einsum("ij,ij->i", runs, runs)
    for _ in range(_SPIKE_STEPS):
        square = norms - 2 * (runs @ centre) + centre @ centre
        weights = 1 / np.maximum(square, 1e-9 * max(1e-200, float(np.median(square))))
        centre = weights @ runs / weights.sum()
    found: Values = centre
    return found
