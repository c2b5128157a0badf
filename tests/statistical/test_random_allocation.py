"""δ of random allocations against importance sampling, one epoch and several."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

import dpassay

_RUNS = 400_000
_DEVIATIONS = 6.0
"""Of the mean: false alarms are below 1e-8 for each of six numbers, were it normal."""


def _logarithm(z: NDArray[np.float64], shift: float) -> NDArray[np.float64]:
    """Return ln (1/t) Σ e^{shift·z_j − shift²/2}."""
    exponent = shift * z - shift * shift / 2
    most = exponent.max(axis=1)
    found: NDArray[np.float64] = most + np.log(np.exp(exponent - most[:, None]).mean(axis=1))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "steps", "epochs", "epsilon", "tilt"),
    [(1.0, 20, 1, 0.5, 3.0), (1.5, 50, 3, 0.3, 1.8), (0.75, 20, 2, 2.0, 1.8)],
)
def test_delta_is_that_of_simulated_epochs(
    sigma: float, steps: int, epochs: int, epsilon: float, tilt: float
) -> None:
    """REMOVE draws the record's coordinate with a larger mean, and weighs; ADD draws from Q."""
    rng = np.random.default_rng(steps)
    mu = 1 / sigma
    away = mu * tilt
    loss, weight = np.zeros(_RUNS), np.zeros(_RUNS)  # ln W, and ln dP/d(what is drawn)
    loss_q = np.zeros(_RUNS)
    for _ in range(epochs):
        for first in range(0, _RUNS, 50_000):
            part = slice(first, first + 50_000)
            z = rng.standard_normal((50_000, steps))
            loss_q[part] += _logarithm(z, mu)
            z[np.arange(50_000), rng.integers(0, steps, 50_000)] += away
            loss[part] += _logarithm(z, mu)
            weight[part] += _logarithm(z, mu) - _logarithm(z, away)
    remove = np.exp(weight) * np.maximum(-np.expm1(epsilon - loss), 0)
    add = np.maximum(-np.expm1(epsilon + loss_q), 0)
    release = dpassay.RandomAllocation(dpassay.Gaussian(str(sigma)), steps)
    whole = release if epochs == 1 else dpassay.Composed(release, epochs)
    for name, values in (("REMOVE", remove), ("ADD", add)):
        exact = dpassay.delta(
            whole,
            str(epsilon),
            adjacency="add-remove",
            direction=dpassay.Direction[name],
            relative_width="1e-2",
        )
        slack = _DEVIATIONS * values.std() / math.sqrt(_RUNS)
        assert float(exact.lower) - slack <= values.mean() <= float(exact.upper) + slack
        if name == "REMOVE":
            assert slack < 0.05 * values.mean()  # it can tell a few percent
