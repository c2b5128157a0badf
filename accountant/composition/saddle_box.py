"""Upper bounds for the moments of a Gaussian mixture at all exponents in a box, on lines.

The contours are horizontal lines, on which `Mixture` bounds each factor of the integrand
(`accountant.composition.saddle_bounds`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from accountant.composition.saddle_bounds import FALL, Mixture
from accountant.composition.saddle_cells import HALF_LOG_2PI, SLACK, log_near

if TYPE_CHECKING:
    from accountant.composition.saddle_bounds import Floats

_MIDDLE = 300


def log_bounds(
    mixture: Mixture, ends: tuple[float, float], low: float, high: float, y: Floats
) -> Floats:
    """Return upper bounds of ln|Λ| on lines at the heights y, for all s in a box.

    The real parts lie between `ends`, the imaginary ones between `low` and `high`. The heights
    are turned so that arg w and the worst imaginary part have the signs of the first quadrant.
    """
    reaches = [
        mixture.reach(a, tau, h, FALL)
        for a in ends
        for tau, h in ((-low, 0.0), (-low, float(y.max())), (max(high, 0.0), float(-y.min())))
    ]
    x = np.linspace(min(r[0] for r in reaches), max(r[1] for r in reaches), _MIDDLE + 1)
    height = np.abs(y)[:, None]
    tau = np.where(y >= 0, -low, max(high, 0.0))[:, None]
    size, angle = mixture.at_angle(x[None, :], mixture.mu * height)
    turn = tau * np.where(tau >= 0, angle[:, 1:], angle[:, :-1])
    base = log_near(x) + mixture.log_kept_on(x, height) + 0.5 * height * height + turn
    found = np.full(len(y), -np.inf)
    for a in ends:
        growth = a * (size[:, 1:] if a >= 0 else size[:, :-1])
        logs = base + growth
        slack = 1 + np.abs(growth).max() + np.abs(turn).max() + float((x * x).max())
        slack += float(height.max()) ** 2
        top = logs.max(axis=1, keepdims=True)
        total = np.exp(logs - top).sum(axis=1)
        outside = np.zeros(len(y))
        for end in (0, -1):
            edges = float(x[0]), float(x[-1])
            rates = [
                mixture.rates(*edges, a, float(v), float(h))[end]
                for v, h in zip(tau[:, 0], height[:, 0], strict=True)
            ]
            here = np.full(len(y), x[end])
            at = mixture.log_kept(here, height[:, 0]) - 0.5 * here * here
            at = at + 0.5 * height[:, 0] ** 2 - HALF_LOG_2PI
            at = at + a * size[:, end] + tau[:, 0] * angle[:, end] - top[:, 0]
            outside += np.exp(at) / np.where(np.array(rates) > 0, rates, 0.0)
        found = np.maximum(found, top[:, 0] + np.log(total + outside) + SLACK * slack)
    return found
