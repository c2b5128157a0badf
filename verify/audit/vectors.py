"""Features of vectors, learned from the training runs: directions, distances, a classifier.

A linear score is best for noise of Gaussian shape around shifted answers; distances to the two
centres show noise whose length depends on the dataset or that is thin in some direction; gradient
boosting (the scikit-learn of the `audit` extra) finds what neither shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, final

import numpy as np

from verify.audit.features import Feature, Values
from verify.audit.outputs import Matrix

_MOST_FOR_COVARIANCE = 400
_MOST_FOR_TREES = 200
_TREE_RUNS = 20_000
_SPIKE_RUNS = 5_000
_SPIKE_STEPS = 25


@final
@dataclass(frozen=True, eq=False)
class Linear:
    """The score w·output."""

    weights: Values
    how: str
    discrete: bool = False

    @property
    def name(self) -> str:
        """Say how it was found."""
        return f"linear score ({self.how})"

    def __call__(self, outputs: Matrix) -> Values:
        """Return the score."""
        return np.nan_to_num(outputs @ self.weights, nan=np.inf)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"feature": "linear", "weights": [float(w) for w in self.weights]}


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


def learned(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose features of vectors."""
    width = first.shape[1]
    if width < 2:
        return
    a, b = (np.asarray(side, dtype=np.float64) for side in (first, second))
    finite_a, finite_b = a[np.isfinite(a).all(axis=1)], b[np.isfinite(b).all(axis=1)]
    if min(len(finite_a), len(finite_b)) >= 20:
        yield from _geometry(finite_a, finite_b)
    if width <= _MOST_FOR_TREES and find_spec("sklearn") is not None:
        yield _trees(a, b)


def _geometry(a: Matrix, b: Matrix) -> Iterable[Feature]:
    centre_a, centre_b = a.mean(axis=0), b.mean(axis=0)
    shift = centre_a - centre_b
    yield Linear(shift, "difference of means")
    width = a.shape[1]
    if width <= _MOST_FOR_COVARIANCE:
        covariance = (np.cov(a, rowvar=False) + np.cov(b, rowvar=False)) / 2
        ridge = 1e-9 * np.trace(covariance) / width + 1e-300
        yield Linear(np.linalg.solve(covariance + ridge * np.eye(width), shift), "discriminant")
        variances = np.where(np.diag(covariance) > 0, np.diag(covariance), 1.0)
        yield Linear(shift / variances, "scaled difference of means")
    yield Distance(centre_a, "the first centre")
    yield Distance(centre_b, "the second centre")
    spike_a, spike_b = spike(a), spike(b)
    yield Linear(spike_a - spike_b, "difference of the densest points")
    yield Distance(spike_a, "the first densest point")
    yield Distance(spike_b, "the second densest point")


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

    a, b = a[:_TREE_RUNS], b[:_TREE_RUNS]
    runs = np.concatenate([a, b])
    runs = np.where(np.isinf(runs), np.copysign(1e300, runs), runs)
    labels = np.repeat([1, 0], [len(a), len(b)])
    model = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.1, max_leaf_nodes=15, early_stopping=False, random_state=0
    )
    with threadpool_limits(1):  # small data: more threads only wait for each other
        model.fit(runs, labels)
    return Trees(model, hashlib.sha256(np.ascontiguousarray(runs).tobytes()).hexdigest()[:16])
