from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb, ctx

from accountant.composition.fourier.pair import transform
from accountant.composition.numeric import kernels
from accountant.composition.numeric.kernels import (
    MOST_PHASES,
    blocks,
    error_of_sums,
    phase_sums,
    turned,
)
from accountant.core.adjacency import Adjacency, Direction
from accountant.mechanisms.additive.gaussian import Gaussian
from accountant.mechanisms.wrappers.subsampled import PoissonSubsampled


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


@pytest.mark.parametrize("direction", list(Direction))
def test_the_ratios_in_floats_contain_those_in_balls(direction: Direction) -> None:
    release = PoissonSubsampled(Gaussian(standard_deviation="1.1"), "0.004")
    (pair,) = release.worst_case(Adjacency.ADD_REMOVE).pairs(direction)
    loss = transform(pair)
    assert loss is not None
    c, step, count = Fraction(7, 2), Fraction(1, 16), 300
    with ctx.workprec(96):
        quick = loss.quick_line(c, step, count, 1.0)
        slow = loss.line(c, step, count)
        assert quick is not None
        assert loss.quick_line(c, step, count, 1e-30) is None  # more than floats can do
        for j, (a, b) in enumerate(zip(quick, slow, strict=True)):
            assert a.overlaps(b)
            assert a.real.rad() < 1e-14 * (1 + j * float(step))


def test_products_of_matrices_give_the_sums_of_the_loops() -> None:
    x = np.linspace(-3.0, 6.0, 91)
    mass = np.exp(-0.5 * x * x)
    mass /= mass.sum()
    for step in (1e-7, 0.05, 1.0):
        t = np.arange(0.0, 50.0) * step
        found = kernels.on_line(mass, x, step, 50)
        direct = kernels.line(mass, x, t)
        assert np.allclose(found.real, direct.real, rtol=1e-13, atol=1e-14 if step == 1.0 else 0)
        assert np.allclose(found.imag, direct.imag, rtol=1e-12, atol=1e-14 if step == 1.0 else 0)
