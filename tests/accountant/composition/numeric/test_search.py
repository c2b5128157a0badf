"""Saddles are found in few steps, also beside a phase in which a few large losses take over."""

from __future__ import annotations

import math

import pytest

from accountant.composition.fourier.estimates import ABOVE_P, CALL, MIDDLE, PUT, Estimator
from accountant.composition.fourier.measure import estimator
from accountant.composition.fourier.pair import SmoothPair
from accountant.composition.numeric.search import Strip, saddle
from accountant.core.adjacency import Adjacency, Direction
from accountant.mechanisms import Composed, Gaussian, PoissonSubsampled


class Counted:
    """Cumulants, and how often they were asked for."""

    def __init__(self, loss: Estimator) -> None:
        self.loss, self.asked = loss, 0

    def cumulants(self, c: float) -> tuple[float, float, float]:
        self.asked += 1
        return self.loss.cumulants(c)


def loss_of(sigma: str, q: str, count: int, direction: Direction) -> Estimator:
    release = PoissonSubsampled(Gaussian(standard_deviation=sigma), q)
    (pair,) = Composed(release, count).worst_case(Adjacency.ADD_REMOVE).pairs(direction)
    assert isinstance(pair, SmoothPair)
    return estimator(pair.loss())


@pytest.mark.parametrize(
    ("law", "epsilon", "strip"),
    [
        (("1.1", "0.004", 10**6), 29.4, CALL),
        (("1.1", "0.004", 1000), 0.58, CALL),
        (
            ("38.9", "3.599e-5", 128),
            1.464474e-4,
            CALL,
        ),  # f' jumps from -2e-4 to 1e3 within 1e-5 of s
        (("12.97", "0.004317", 84), 0.162044385, CALL),
        (("12.97", "0.004317", 84), 0.162044385, ABOVE_P),
        (("1.1", "0.004", 1000), -0.2, PUT),
        (("1.1", "0.1", 1000), -2.0, PUT),
        (("1.1", "0.1", 1000), 5.0, MIDDLE),
    ],
)
@pytest.mark.parametrize("direction", list(Direction))
def test_the_derivative_changes_its_sign_beside_the_point(
    law: tuple[str, str, int], epsilon: float, strip: Strip, direction: Direction
) -> None:
    loss = Counted(loss_of(*law, direction))
    found = saddle(loss, strip, epsilon, close=1e-3)
    assert loss.asked <= 16
    width = found.curvature**-0.5

    def slope(s: float) -> float:
        return loss.cumulants(s)[1] - epsilon - math.fsum(1 / (s - pole) for pole in strip.poles)

    assert slope(found.c - 0.02 * width) < 0 < slope(found.c + 0.02 * width)


class Certain:
    """A loss that is 5."""

    @staticmethod
    def cumulants(c: float) -> tuple[float, float, float]:
        return 5 * c, 5.0, 0.0


def test_there_is_no_saddle_where_nothing_is_curved() -> None:
    with pytest.raises(ArithmeticError, match="no saddle for epsilon=4"):
        saddle(Certain(), Strip(-math.inf, math.inf, ()), 4.0)
