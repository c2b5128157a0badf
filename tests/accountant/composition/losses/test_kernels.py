"""Rounding of sums of phases, and bounds of cells."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from flint import acb, arb, ctx

from dpassay.accountant.composition.losses.bounds import (
    LOSS_ERROR,
    MOST_PHASES,
    SLACK,
    Mixture,
    blocks,
    error_of_sums,
    log_half_erfc,
    log_half_erfc_on,
    phase_sums,
    turned,
)

_ROUNDING = 2.0**-51  # of one logarithm near 0


@pytest.mark.parametrize("low", [-8.0, -6.0, -5.00001, -5.0, -1.0, 0.0, 4.9, 5.0, 9.0])
def test_the_bound_of_half_erfc_is_above_it_and_nearly_met(low: float) -> None:
    u = low + np.linspace(0.0, 1.0, 41)
    found = log_half_erfc(u, np.zeros_like(u))
    with mpmath.workdps(40):
        for at, bound in zip(u.tolist(), found.tolist(), strict=True):
            true = mpmath.log(mpmath.erfc(mpmath.mpf(at)) / 2)
            allowed = _ROUNDING * max(1.0, abs(float(true)))
            assert bound >= true - allowed if at > -5 else bound >= true - 1e-16
            above = 1e-14 if at < 0 else 0.021  # far out 1/(2u²)
            assert bound - true <= above + allowed


@pytest.mark.parametrize("height", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("cells", [6, 40])
def test_the_bound_of_half_erfc_on_cells_holds_on_them(height: float, cells: int) -> None:
    """On the real line it is that of the left end of a cell."""
    u = np.linspace(-9.0, 9.0, cells + 1) + 0.1
    heights = height * np.linspace(1.0, 0.5, cells)
    found = log_half_erfc_on(u, heights)
    with mpmath.workdps(40):
        for k, (at, above) in enumerate(zip(u[:-1].tolist(), u[1:].tolist(), strict=True)):
            for share, part in itertools.product((0.0, 0.3, 1.0), (0.0, 0.6, 1.0)):
                z = mpmath.mpc(at + share * (above - at), part * heights[k])
                allowed = _ROUNDING * max(1.0, abs(float(mpmath.log(abs(mpmath.erfc(z)) / 2))))
                assert found[k] >= mpmath.log(abs(mpmath.erfc(z)) / 2) - allowed - 1e-16
            if height == 0:
                assert found[k] <= mpmath.log(mpmath.erfc(mpmath.mpf(at)) / 2) + 0.021


@pytest.mark.parametrize(("mu", "q"), [(1e-3, 1e-6), (1.0, 0.01), (0.1, 0.5)])
def test_a_tiny_loss_times_a_large_exponent_is_within_its_rounding(mu: float, q: float) -> None:
    mixture = Mixture(mu, math.log(q), math.log1p(-q))
    x = np.linspace(-6.0, 6.0, 25)
    found, angle = mixture.at_angle(x, 0.0)
    assert not angle.any()
    with mpmath.workdps(40):
        for at, log_size in zip(x.tolist(), found.tolist(), strict=True):
            share, rest = mpmath.exp(mixture.log_share), mpmath.exp(mixture.log_rest)
            loss = mpmath.log(rest + share * mpmath.exp(mpmath.mpf(mu) * (at - mpmath.mpf(mu) / 2)))
            assert abs(log_size - loss) <= LOSS_ERROR + SLACK * abs(float(loss))


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
@pytest.mark.parametrize(("heads", "most"), [(True, 1e-13), (False, 3e-12)])
def test_sums_of_phases_are_within_their_bound(
    size: int, count: int, step: float, spread: float, *, heads: bool, most: float
) -> None:
    rng = np.random.default_rng(7)
    x = np.sort(rng.normal(size=size)) * spread
    weights = np.exp(-0.5 * (x / spread) ** 2)
    weights /= math.fsum(weights)
    x[-size // 20 :] *= 40  # rare large losses
    rate = error_of_sums(weights, x, heads=heads)
    found = phase_sums(weights, x, step, count, heads=heads)
    assert rate < most * spread
    with ctx.workprec(120):
        for j in range(0, count, max(1, count // 5)):
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
