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

from dpassay.verifier.audit.learning.features import Feature, Proposer, Values
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


@final
@dataclass(frozen=True, eq=False)
class Nearer:
    """How much nearer the output is to one centre than to another, in a norm."""

    centres: tuple[Values, Values]
    order: float
    """Of the norm: 1, 2 or ∞."""
    ratio: bool
    """Whether the ratio of the distances is taken, in place of their difference."""
    label: str
    discrete: bool = False

    @property
    def name(self) -> str:
        """Say of what."""
        what = "log ratio" if self.ratio else "difference"
        return f"{what} of the l{self.order:g} distances to {self.label}"

    def __call__(self, outputs: Matrix) -> Values:
        """Return it: large where the output is nearer to the first centre."""
        far, near = (_norm(outputs - centre, self.order) for centre in self.centres[::-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(far) - np.log(near) if self.ratio else far - near
        return np.nan_to_num(found, nan=np.inf)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        centres = [[float(c) for c in centre] for centre in self.centres]
        return {"feature": "nearer", "centres": centres, "order": self.order, "ratio": self.ratio}


@final
@dataclass(frozen=True, eq=False)
class Size:
    """A norm of the output, or its largest entry."""

    order: float
    """Of the norm; 0 for the largest entry."""
    discrete: bool = False

    @property
    def name(self) -> str:
        """Which."""
        return (
            f"l{self.order:g} norm of the output" if self.order else "largest entry of the output"
        )

    def __call__(self, outputs: Matrix) -> Values:
        """Return it."""
        found = _norm(outputs, self.order) if self.order else outputs.max(axis=1)
        return np.nan_to_num(np.asarray(found, dtype=np.float64), nan=np.inf)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"feature": "size", "order": self.order}


def _norm(rows: Matrix, order: float) -> Values:
    if order == 2:
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))
    size = np.abs(rows)
    return np.asarray(size.sum(axis=1) if order == 1 else size.max(axis=1))


def nearer(centres: tuple[Values, Values], label: str) -> Iterable[Feature]:
    """Propose comparisons of the distances to two places."""
    yield Nearer(centres, 2, True, label)
    for order in (1.0, 2.0, np.inf):
        yield Nearer(centres, order, False, label)


def between(pair: tuple[Any, Any]) -> Proposer:
    """Return what compares distances to both datasets, where they look like answers themselves."""

    def propose(first: Matrix, _: Matrix) -> Iterable[Feature]:
        try:
            centres = [np.asarray(answer, dtype=np.float64).ravel() for answer in pair]
        except Exception:  # noqa: BLE001 (no numbers, or tensors on a device)
            return
        width = first.shape[1]
        if width < 2 or any(len(c) != width or not np.isfinite(c).all() for c in centres):
            return
        if (centres[0] != centres[1]).any():
            yield Linear(centres[0] - centres[1], "difference of the datasets")
            yield from nearer((centres[0], centres[1]), "both datasets")

    return propose


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
    yield Nearer((spike_a, spike_b), 2, True, "the densest points")
    yield from (Size(order) for order in (0, 1, 2, np.inf))


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
