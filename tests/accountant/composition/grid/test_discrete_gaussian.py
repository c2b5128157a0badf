"""Tails of discrete Gaussian laws in floats, against balls; and samples of them, composed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from accountant.composition.grid import survival
from accountant.numbers.exact import exact
from accountant.numbers.precision import ctx
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair

LOSSES = np.array([-40.0, -3.0, -0.26, -0.25, 0.0, 0.1, 0.25, 1.0, 1.75, 7.0, 60.0, 500.0])


@pytest.mark.parametrize(("parameter", "shift"), [("1/3", 1), ("2", 1), ("20", 3), ("90000", 1)])
def test_tails_are_those_of_balls(parameter: str, shift: int) -> None:
    pair = DiscreteGaussianPair(exact(parameter), shift)
    known = survival.discrete_gaussian(float(Fraction(parameter)), shift)
    assert known is not None
    tail = known(LOSSES)
    with ctx.workprec(256):
        for i, loss in enumerate(LOSSES):
            at = exact(Fraction(float(loss)))
            true = pair.tails(at)
            above_q = true.q_above * at.ball().exp()
            assert abs(true.p_above - tail.above_p[i]) <= tail.error_p[i]
            assert abs(above_q - tail.above_q[i]) <= tail.error_q[i]
            gap = true.p_above - above_q
            assert gap <= tail.above_p[i] - tail.above_q[i] + tail.error_p[i] + tail.error_q[i]
    body = (tail.above_p > 1e-9) & (LOSSES > -5)
    assert np.all(tail.error_p[body] <= 1e-11 * tail.above_p[body])


def test_a_law_too_wide_for_a_table_is_left_to_balls() -> None:
    assert survival.discrete_gaussian(1e9, 1) is None
