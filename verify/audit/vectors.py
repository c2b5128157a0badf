"""Features of vectors, learned from the training runs: directions, distances, a classifier.

A linear score is best for noise of Gaussian shape around shifted answers; distances to the two
centres show noise whose length depends on the dataset or that is thin in some direction; gradient
boosting (the scikit-learn of the `audit` extra) finds what neither shows.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, final

import numpy as np

from verify.audit.features import Feature, Values
from verify.audit.outputs import Matrix

_MOST_FOR_COVARIANCE = 400
"""Entries up to which a covariance is learned: it costs their square in runs."""
_MOST_FOR_TREES = 200
"""Entries up to which trees learn: each costs them as much again."""
_TREE_RUNS, _LEAST_TREE_RUNS, _TREE_ENTRIES = 20_000, 5000, 1_000_000
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


@final
@dataclass(frozen=True, eq=False)
class Trees:
    """The score of a gradient-boosted classifier of the two datasets."""

    model: Any
    digest: str
    discrete: bool = False

    @property
    def name(self) -> str:
        """Say what it is."""
        return "gradient-boosted score"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the log odds."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            score: Values = self.model.decision_function(np.asarray(outputs, dtype=np.float64))
        return score

    def to_json(self) -> dict[str, Any]:
        """Return a digest: the classifier is learned anew from the training runs."""
        return {"feature": "gradient-boosting", "training_digest": self.digest}


def trees(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose a classifier of vectors, and of rows of codes and values."""
    if 1 < first.shape[1] <= _MOST_FOR_TREES and find_spec("sklearn") is not None:
        yield _trees(*(np.asarray(side, dtype=np.float64) for side in (first, second)))


def geometry(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose directions in which vectors differ, and distances from places."""
    if first.shape[1] < 2:
        return
    sides = (np.asarray(side, dtype=np.float64) for side in (first, second))
    a, b = (side[np.isfinite(side).all(axis=1)] for side in sides)
    if min(len(a), len(b)) < _FEWEST:
        return
    for how in _DIRECTIONS:
        found = direction(how, a, b)
        if found is not None:
            yield found
    yield Distance(a.mean(axis=0), "the first centre")
    yield Distance(b.mean(axis=0), "the second centre")
    spike_a, spike_b = spike(a), spike(b)
    yield Linear(spike_a - spike_b, "difference of the densest points")
    yield Distance(spike_a, "the first densest point")
    yield Distance(spike_b, "the second densest point")


_MEANS, _DISCRIMINANT, _SCALED = (
    "difference of means",
    "discriminant",
    "scaled difference of means",
)
_DIRECTIONS = (_MEANS, _DISCRIMINANT, _SCALED)


def direction(how: str, a: Matrix, b: Matrix) -> Linear | None:
    """Return a linear score of mean 0 and variance 1, learned from the runs of both datasets."""
    centre_a, centre_b = a.mean(axis=0), b.mean(axis=0)
    weights, width = centre_a - centre_b, a.shape[1]
    if how != _MEANS:
        if width > _MOST_FOR_COVARIANCE:
            return None
        covariance = (np.cov(a, rowvar=False) + np.cov(b, rowvar=False)) / 2
        if how == _DISCRIMINANT:
            ridge = 1e-9 * np.trace(covariance) / width + 1e-300
            weights = np.linalg.solve(covariance + ridge * np.eye(width), weights)
        else:
            variances = np.diag(covariance)
            weights = weights / np.where(variances > 0, variances, 1.0)
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
    if not isinstance(feature, Linear) or feature.how not in _DIRECTIONS:
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


def _trees(a: Matrix, b: Matrix) -> Feature:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    rows = min(_TREE_RUNS, max(_LEAST_TREE_RUNS, _TREE_ENTRIES // a.shape[1]))
    a, b = a[:rows], b[:rows]
    runs = np.concatenate([a, b])
    runs = np.where(np.isinf(runs), np.copysign(1e300, runs), runs)
    labels = np.repeat([1, 0], [len(a), len(b)])
    model = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.1, max_leaf_nodes=15, early_stopping=False, random_state=0
    )
    with threadpool_limits(1):  # small data: more threads only wait for each other
        model.fit(runs, labels)
    return Trees(model, hashlib.sha256(np.ascontiguousarray(runs).tobytes()).hexdigest()[:16])
