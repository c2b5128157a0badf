"""Numbers of mechanisms to the accuracy of figures, and grids."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from dpassay.accountant.budget.calibrate import EpsilonDelta, calibrate
from dpassay.accountant.numbers.interval import Interval, enclose

if TYPE_CHECKING:
    from flint import arb

    from dpassay.accountant.core.mechanism import Mechanism

WIDTH = Fraction(1, 10**15)
"""Relative width of enclosures, below the twelve digits of a table."""


def value(compute: Callable[[], arb]) -> Interval:
    """Enclose a number that is computed in ball arithmetic."""
    return enclose(compute, relative_width=WIDTH)


def middle(value: Interval) -> float:
    """Return the midpoint of an enclosure."""
    return float((value.lower + value.upper) / 2)


def variance(mechanism: Mechanism, index: int) -> Interval:
    """Enclose the variance of one released coordinate."""
    return value(lambda: mechanism.variances()[index])


def gaussian_deviation(epsilon: str, delta: str) -> float:
    """Return the least σ of (ε, δ)-DP Gaussian noise for an ℓ2 sensitivity of 1."""
    return float(calibrate("Gaussian", EpsilonDelta(epsilon, delta)).least.upper)


def spaced(low: float, high: float, points: int) -> list[float]:
    """Return evenly spaced numbers from low to high, both included."""
    step = (high - low) / (points - 1)
    return [low + i * step for i in range(points - 1)] + [high]


def geometric(low: float, high: float, points: int) -> list[float]:
    """Return numbers from low to high, both included, with constant ratio."""
    ratio = (high / low) ** (1 / (points - 1))
    return [low * ratio**i for i in range(points - 1)] + [high]
