"""Laws of the bounds on cells: what is called an upper bound is one, against mpmath."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from accountant.composition.losses.bounds import Mixture
from accountant.composition.numeric.cells import LOSS_ERROR, SLACK, log_half_erfc

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
