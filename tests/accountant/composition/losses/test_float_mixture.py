"""Moments of mixtures in floats: nodes beside mpmath, lines beside many more nodes on the axis."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from accountant.composition.losses.bounds import Mixture
from accountant.composition.losses.float_mixture import FloatMixture, log_one_plus
from accountant.composition.losses.lists import FloatList
from accountant.composition.numeric import kernels
from tests.quick import quick

LAWS = [(1 / 1.1, 0.004), (0.05, 0.9), (1 / 0.3, 0.5), (1 / 2.4, 1e-6)]


def mixture(mu: float, share: float) -> Mixture:
    """Return the numbers of (1 − q) N(0, 1) + q N(μ, 1)."""
    return Mixture(mu, math.log(share), math.log1p(-share))


@pytest.mark.parametrize(("mu", "share"), LAWS)
def test_losses_at_the_nodes_keep_their_relative_accuracy(mu: float, share: float) -> None:
    law = mixture(mu, share)
    numbers = law.mu, law.log_share, law.log_rest
    x = np.array([-9.0, -1.25, 0.5, 3.0, 8.0, 40.0])
    height = 0.45 * math.pi / mu
    loss, gap = kernels.axis(*numbers, x)
    raised = kernels.raised(*numbers, x, height)
    with mpmath.workdps(40):
        for j, at in enumerate(x.tolist()):
            away = [
                share * mpmath.expm1(mpmath.mpf(mu) * z - mpmath.mpf(mu) ** 2 / 2)
                for z in (mpmath.mpf(at), mpmath.mpc(at, height))
            ]
            true, turned = mpmath.log(1 + away[0]), mpmath.log(1 + away[1])
            assert abs(loss[j] - true) < 1e-14 * abs(true)
            assert abs(gap[j] - (true - away[0])) < 1e-13 * abs(true - away[0])
            assert abs(mpmath.mpc(raised[j]) - turned) < 1e-14 * abs(turned)


@pytest.mark.parametrize(("mu", "share"), LAWS)
@pytest.mark.parametrize("c", quick([-6.5, 0.75, 11.5], 1))
def test_one_raised_line_serves_small_and_large_arguments(
    mu: float, share: float, c: float
) -> None:
    law = mixture(mu, share)
    x = np.arange(-20_000.0, 30_001.0) * 2.0**-9
    loss, _ = kernels.axis(law.mu, law.log_share, law.log_rest, x)
    for mixed_first in (True, False):
        floats = FloatMixture(law, mixed_first)
        s, sign = (c + 1, 1) if mixed_first else (-c, -1)
        logs = s * loss - 0.5 * x * x
        mass = np.exp(logs - logs.max())
        mass /= mass.sum()
        away = loss - np.dot(mass, loss)
        # the first points are summed as they are, the others by products
        for reach in (np.array([1e-3, 0.2, 3.0, 10.0]), np.arange(0.0, 20.0) / 2):
            t = reach / math.sqrt(floats.cumulants(c)[2])
            value = kernels.line(mass, away, t)
            ratio = 1 + value
            size = np.where(
                value.real < -0.5,
                np.log(np.maximum(np.abs(ratio), 1e-20)),
                0.5 * np.log1p(np.maximum(2 * value.real + np.abs(value) ** 2, -0.75)),
            )
            real, imaginary = floats.log_ratio(c, t)
            error = np.abs(np.exp(real + sign * 1j * imaginary) - ratio)
            assert np.all(error <= 2e-14 * (1 + reach))
            near = reach < 0.5
            rounding = 2e-14 + 2.0**-53 * np.abs(logs[mass > 1e-20]).max()  # of the masses here
            assert np.all(np.abs(real - size)[near] <= rounding * np.abs(size)[near])


def test_a_characteristic_function_that_vanishes_is_no_warning() -> None:
    size, _ = log_one_plus(np.array([-1.0 + 0.0j]))
    assert size[0] == -math.inf
    coin = FloatList((1.0, -1.0), (0.5, 0.5))
    size, _ = coin.log_ratio(0.0, np.array([0.0, 0.5 * math.pi]))
    assert size[0] == 0
    assert size[1] < -35
