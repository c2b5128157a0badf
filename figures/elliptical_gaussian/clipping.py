"""Normal data clipped to a box: exact moments, and a simulation of the whole release.

For x ~ N(m, s²) and the projection onto [−a, a] the error clip(x) − x is −(x − a)⁺ + (−a − x)⁺.
With u = (a − m)/s, E[(x − a)⁺] = s(φ(u) − u·Φ(−u)) and
E[((x − a)⁺)²] = s²((1 + u²)Φ(−u) − u·φ(u)); the lower end is the upper one of N(−m, s²).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from numpy.random import Generator

_BATCH = 20
"""Trials that are drawn at once."""


@final
@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and variance of clip(x) − x."""

    bias: float
    variance: float


def clipped(mean: float, deviation: float, bound: float) -> Moments:
    """Return the moments of the clipping error of one coordinate."""
    above, above_square = _excess((bound - mean) / deviation)
    below, below_square = _excess((bound + mean) / deviation)
    bias = deviation * (below - above)
    return Moments(bias, deviation**2 * (above_square + below_square) - bias**2)


def _excess(u: float) -> tuple[float, float]:
    """Return E[(z − u)⁺] and E[((z − u)⁺)²] for z ~ N(0, 1)."""
    density = math.exp(-u * u / 2) / math.sqrt(2 * math.pi)
    tail = math.erfc(u / math.sqrt(2)) / 2
    return density - u * tail, (1 + u * u) * tail - u * density


def simulate(
    means: list[float],
    deviations: list[float],
    widths: list[float],
    *,
    records: int,
    trials: int,
    unit: float,
    rng: Generator,
) -> dict[str, list[tuple[float, float, float, float]]]:
    """Release the clipped sum of correlated normal records many times.

    Returns, for each kind of noise and each width of the box, the squared bias and the variance
    of the clipping over the trials, the mean square of the noise, and the mean square of the
    whole error, each summed over the coordinates. Correlations are 0.5^|i−j|.
    """
    import numpy as np

    d = len(means)
    index = np.arange(d)
    root = np.linalg.cholesky(0.5 ** np.abs(index[:, None] - index[None, :]))
    s, m = np.array(deviations), np.array(means)
    errors = np.zeros((len(widths), trials, d))
    for start in range(0, trials, _BATCH):
        size = min(_BATCH, trials - start)
        data = m + s * (rng.standard_normal((size, records, d)) @ root.T)
        for place, c in enumerate(widths):
            shift = np.clip(data, -c * s, c * s) - data
            errors[place, start : start + size] = shift.sum(axis=1)
    found: dict[str, list[tuple[float, float, float, float]]] = {"elliptical": [], "spherical": []}
    for place, c in enumerate(widths):
        bounds = 2 * c * s
        own = np.sqrt(unit * bounds * bounds.sum())
        same = np.full(d, math.sqrt(unit * float(bounds @ bounds)))
        bias = errors[place].mean(axis=0)
        squared = float(bias @ bias)
        variance = float(((errors[place] - bias) ** 2).sum(axis=1).mean())
        for kind, spread in (("elliptical", own), ("spherical", same)):
            drawn = rng.standard_normal((trials, d)) * spread
            noise = float((drawn**2).sum(axis=1).mean())
            total = float(((errors[place] + drawn) ** 2).sum(axis=1).mean())
            found[kind].append((squared, variance, noise, total))
    return found
