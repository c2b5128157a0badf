"""Upper bounds of logarithms on cells of the real line: of normal laws, smooth cuts and sums.

In floats; `SLACK`, relative to the logarithms that are added, exceeds their rounding errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

SLACK = 2.0**-38
"""Relative to the sum of the logarithms: a thousand times their rounding."""
LOSS_ERROR = 2.0**-49
"""Absolute rounding error of a logarithm |ln w| or an angle arg w near 0, sixteen units: what a
factor |w|^s or e^{τ arg w} multiplies by s and τ, however small ln w is."""
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
"""−ln of the largest normal density."""
ROOT_HALF = math.sqrt(0.5)
_FAR = 5.0
"""|u| from which on the asymptotic bounds of erfc are within 2 % of it."""
LEAST_RATE = 1.0
"""Rate at which integrands have to fall beyond their ends: below it what lies outside is no small
part."""


def log_half_erfc(u: Floats, v: Floats) -> Floats:
    """Return an upper bound of ln|erfc(u + iv)/2|, nearly met for v = 0.

    |erfc(u + iv)| ≤ e^{v²} erfc(u), and for u < 0 it is |2 − erfc(−u − iv)| ≤ 2 + e^{v²} erfc(|u|).
    Far out e^{−w²}/(w√π) is above erfc(w), and 1 − 1/(2w²) times it is below: the complement for
    u < 0 takes the latter.
    """
    kept = np.zeros_like(u)
    near = u > -6.0 - np.abs(v)
    u, square = u[near], v[near] * v[near]
    size = np.abs(u)
    far = size > _FAR
    tail = -size * size - np.log(np.where(far, size, 1.0) * (2 * math.sqrt(math.pi)))
    close = size[~far].tolist()
    tail[~far] = np.log(0.5 * np.fromiter(map(math.erfc, close), float, len(close)))
    least = np.where(far, tail + np.log1p(-0.5 / np.where(far, size, 1.0) ** 2), tail)
    kept[near] = np.where(
        u > 0,
        square + tail,
        np.minimum(square + np.log1p(-np.exp(least)), np.logaddexp(0.0, square + tail)),
    )
    return kept


def log_half_erfc_at(u: float) -> float:
    """Return ln(erfc(u)/2), nearly."""
    if u > _FAR:
        return -u * u - math.log(u * (2 * math.sqrt(math.pi)))
    return math.log(0.5 * math.erfc(u))


def distinct(points: Floats) -> Floats:
    """Return the values in ascending order, each once; `numpy.unique` takes 20 ms to be loaded."""
    found = np.sort(points)
    return found[np.diff(found, prepend=-math.inf) > 0]


def log_sum(logs: Floats) -> float:
    """Return an upper bound of ln Σ e^{l_i}."""
    top = float(logs.max())
    if math.isinf(top):
        return top
    return top + math.log(float(np.exp(logs - top).sum())) + SLACK


def log_near(x: Floats) -> Floats:
    """Return upper bounds of ln P(x_j < X < x_{j+1}): the largest density times the length."""
    nearest = np.where(x[:-1] * x[1:] <= 0, 0.0, np.minimum(np.abs(x[:-1]), np.abs(x[1:])))
    bound: Floats = np.log(np.diff(x)) - 0.5 * nearest * nearest - HALF_LOG_2PI
    return bound


def log_tilted(x: Floats, tilt: Floats, growth: Sequence[Floats]) -> Floats:
    """Return upper bounds of ln ∫ φ e^g over cells, for convex g, given at their two ends.

    On a cell φ e^{cx} is largest where x is nearest to c, and g − cx at an end, for every tilt c.
    """
    nearest = np.clip(tilt, x[:-1], x[1:])
    ends = np.maximum(growth[0] - tilt * x[:-1], growth[1] - tilt * x[1:])
    bound: Floats = np.log(np.diff(x)) + (tilt - 0.5 * nearest) * nearest + ends - HALF_LOG_2PI
    return bound
