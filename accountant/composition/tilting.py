"""Where the tilted law of a sum lies: moments in floats, which choose cuts and prove nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from accountant.chernoff import rough_log_peak

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "tuple[NDArray[Any], NDArray[Any], int]"
"""The losses of one law, the logarithms of its masses, and its count."""

_CUT = 90.0  # natural logarithm of the tilted mass that is cut off, negated


def cumulants(floats: Sequence[Floats], s: float) -> tuple[float, float, float]:
    """Return ln M(s) and its first two derivatives, of the whole product."""
    total = [0.0, 0.0, 0.0]
    for losses, logs, count in floats:
        weights = logs + s * losses
        top = weights.max()
        shares = np.exp(weights - top)
        mass = shares.sum()
        mean = float((shares * losses).sum() / mass)
        total[0] += count * float(top + math.log(mass))
        total[1] += count * mean
        total[2] += count * float((shares * (losses - mean) ** 2).sum() / mass)
    return total[0], total[1], total[2]


def tilt(floats: Sequence[Floats], epsilon: float) -> float:
    """Return the s > 0 at which M(s) e^{−sε} s^s/(1 + s)^{1+s} is nearly least."""
    low, high = -12.0, 12.0  # of ln s
    for _ in range(40):
        s = math.exp((low + high) / 2)
        slope = cumulants(floats, s)[1] - epsilon - math.log1p(1 / s)
        low, high = (low, math.log(s)) if slope > 0 else (math.log(s), high)
    return math.exp((low + high) / 2)


def log_bound(floats: Sequence[Floats], s: float, epsilon: float) -> float:
    """Return the logarithm of M(s) e^{−sε} s^s/(1 + s)^{1+s}."""
    return cumulants(floats, s)[0] - s * epsilon + rough_log_peak(s)


def window(floats: Sequence[Floats], s: float) -> tuple[float, float]:
    """Return losses between which the tilted sum has all but e^{−_CUT} of its mass (Chernoff)."""
    base, mean, variance = cumulants(floats, s)
    least = sum(count * float(losses[np.isfinite(logs)].min()) for losses, logs, count in floats)
    most = sum(count * float(losses[np.isfinite(logs)].max()) for losses, logs, count in floats)
    scale = math.sqrt(2 * _CUT / max(variance, 1e-300))
    low, high = least, most
    for power in range(-14, 9):
        u = scale * 2.0 ** (power / 2)
        high = min(high, (cumulants(floats, s + u)[0] - base + _CUT) / u)
        low = max(low, (base - cumulants(floats, s - u)[0] - _CUT) / u)
    return min(low, mean), max(high, mean)
