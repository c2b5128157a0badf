from __future__ import annotations

import math

import numpy as np
import pytest
from flint import acb, arb, ctx

from accountant.composition.numeric.kernels import (
    MOST_PHASES,
    blocks,
    error_of_sums,
    phase_sums,
    turned,
)


def exact_sum(weights: np.ndarray, x: np.ndarray, t: float) -> acb:
    """Return Σ v (e^{itx} − 1) in balls."""
    total = acb(0)
    for v, at in zip(weights.tolist(), x.tolist(), strict=True):
        total += arb(v) * (acb(0, arb(t) * arb(at)).exp() - 1)
    return total


@pytest.mark.parametrize(
    ("size", "count", "step", "spread"),
    [
        (637, 640, 0.125, 1.0),
        (100, 20, 2.0**-10, 0.25),
        (1500, 300, 0.5, 3.0),
        (7, 5, 2.0, 400.0),
        (MOST_PHASES, 100, 0.25, 1.0),
    ],
)
def test_sums_of_phases_are_within_their_bound(
    size: int, count: int, step: float, spread: float
) -> None:
    rng = np.random.default_rng(7)
    x = np.sort(rng.normal(size=size)) * spread
    weights = np.exp(-0.5 * (x / spread) ** 2)
    weights /= math.fsum(weights)
    x[-size // 20 :] *= 40  # rare large losses
    rate = error_of_sums(weights, x)
    found = phase_sums(weights, x, step, count)
    assert rate < 1e-13 * spread
    with ctx.workprec(120):
        for j in range(0, count, max(1, count // 20)):
            value = acb(float(found[j].real), float(found[j].imag))
            reach = (j + j % blocks(count)) * step
            assert abs(exact_sum(weights, x, j * step) - value) <= rate * reach


def test_small_angles_keep_their_digits_and_large_ones_are_reduced() -> None:
    x = np.array([1e-12, 1.0, math.pi, 22.0, 3e5])
    found = turned(np.array([0.0, 1.0, 3.0]), x)
    with ctx.workprec(160):
        for row, t in zip(found, (0, 1, 3), strict=True):
            for value, at in zip(row, x, strict=True):
                y = t * arb(float(at))
                away = abs(acb(0, y).exp() - 1 - acb(float(value.real), float(value.imag)))
                assert away <= 10 * arb(2) ** -53 * y
