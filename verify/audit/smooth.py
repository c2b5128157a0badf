"""Smooth the histograms of two training samples by a piecewise linear log-likelihood ratio.

The runs of both datasets together say how often a value occurs, and a logistic regression of the
dataset on a linear spline says which of the two it speaks for: far in the tail, where few runs are,
that is known much better than from the counts there. The noise of the literature (Laplace,
Gaussian, their discrete relatives, mixtures of them) has such a ratio or nearly so; where the
counts contradict the fit it is not used.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

_KNOTS = (0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98)
_RIDGE = 1e-3
_STEPS = 30
_LARGEST = 30.0
_CONTRADICTION = 4.0


def smoothed(places: Array, first: Array, second: Array) -> tuple[Array, Array] | None:
    """Return both histograms smoothed, or None where the counts contradict the fit.

    Parameters
    ----------
    places
        A value of each cell, increasing.
    first, second
        Runs of both datasets in each cell, of the same total.
    """
    total = (first + second).astype(np.float64)
    occupied = total > 0
    if occupied.sum() < 2 * len(_KNOTS) or not np.isfinite(places[occupied]).all():
        return None
    design = _spline(places, total, occupied)
    share = _fit(design, first.astype(np.float64), total)
    if share is None:
        return None
    p, q = total * share, total * (1 - share)
    for fitted, seen in ((p, first), (q, second)):
        off = np.cumsum(fitted - seen)
        spread = np.sqrt(np.cumsum(total * share * (1 - share)).clip(min=1.0))
        rest = spread[-1] ** 2
        spread = np.sqrt((spread**2 * (rest - spread**2) / rest).clip(min=1.0))
        if np.max(np.abs(off) / (spread + 1)) > _CONTRADICTION:
            return None
    return p, q


def _spline(places: Array, total: Array, occupied: Array) -> Array:
    """Return a constant, the place, and the part of it beyond each knot."""
    reached = np.cumsum(total) / total.sum()
    knots = np.unique(places[np.searchsorted(reached, _KNOTS).clip(max=len(places) - 1)])
    low, high = knots[0], knots[-1]
    scale = (high - low) or 1.0
    edge = places[occupied]
    x = (np.clip(places, edge[0], edge[-1]) - low) / scale
    hinges = [np.maximum(x - (knot - low) / scale, 0.0) for knot in knots]
    return np.stack([np.ones_like(x), x, *hinges], axis=1)


def _fit(design: Array, hits: Array, total: Array) -> Array | None:
    """Return the fitted shares of a logistic regression with a small ridge (Newton's method)."""
    weights = np.zeros(design.shape[1])
    ridge = _RIDGE * total.sum() / 1000 * np.eye(len(weights)) / len(weights)
    share = np.full(len(hits), 0.5)
    for _ in range(_STEPS):
        share = 1 / (1 + np.exp(-np.clip(design @ weights, -_LARGEST, _LARGEST)))
        gradient = design.T @ (hits - total * share) - ridge @ weights
        information = (design * (total * share * (1 - share))[:, np.newaxis]).T @ design + ridge
        step = np.linalg.solve(information + 1e-9 * np.eye(len(weights)), gradient)
        size = float(np.max(np.abs(step)))
        if not np.isfinite(size):
            return None
        weights = weights + step * min(1.0, 5.0 / max(size, 1e-12))
        if size < 1e-6:
            return share
    return share
