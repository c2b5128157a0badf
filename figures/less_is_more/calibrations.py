"""The amount of noise of each mechanism: by the paper's formulas, and by the exact guarantee.

All amounts are for an ℓ2 sensitivity of 1; noise scales with the sensitivity.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpassay.accountant.budget.calibrate import EpsilonDelta, calibrate
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms.shapes.rank_one_gaussian import RankOneGaussian
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile

_CLOSE = 1e-6
"""Relative distance of the two amounts that enclose the least σ_*."""
_MOST_STEPS = 40
"""Secants to the noise: they settle in a few."""
_ACCURACY = Fraction(1, 10**10)


KINDS = {"printed": "noise by the formulas", "verified": "noise that is (ε, δ)-DP"}
"""What the two kinds of panels are called."""


def sigma_star_of_theorem_5(dimension: int, epsilon: float, delta: float) -> float:
    """Return σ_* = 2/(εψ), ψ = (δ Γ((M−1)/2)/(√π Γ(M/2)))^{2/(M−2)}."""
    log_ratio = math.lgamma(dimension / 2) - math.lgamma((dimension - 1) / 2)
    log_inverse_psi = 2 * (log_ratio + math.log(math.pi) / 2 - math.log(delta)) / (dimension - 2)
    return 2 * math.exp(log_inverse_psi) / epsilon


def exact_sigma_star(dimension: int, epsilon: str, delta: str) -> float:
    """Return the least σ_* at which the mechanism is (ε,δ)-DP, up to a relative 10⁻⁶ above it.

    δ falls about as σ_*^{−1/2}: a secant in the logarithms, on enclosures of δ from
    `dpassay.accountant.questions.profile`, needs few of them where `calibrate` (which encloses the
    least σ_* to
    twelve digits) needs many. The result is certified: δ is at most the target there, and above
    it at 1 − 10⁻⁶ of it.

    Raises
    ------
    UndecidedError
        If the secant does not settle, or its result is not certified.
    """
    target = Fraction(delta)
    goal = math.log(float(target))
    x, slope = math.log(29 * dimension) - 2 * goal, -0.5
    before: tuple[float, float] | None = None
    for _ in range(_MOST_STEPS):
        y = math.log(float(_delta(dimension, x, epsilon).upper))
        if before is not None and x != before[0]:
            slope = (y - before[1]) / (x - before[0])
        before = x, y
        step = (goal - y) / min(slope, -0.05)
        x += step
        if abs(step) < _CLOSE / 10:
            break
    above, below = x + _CLOSE / 2, x - _CLOSE / 2
    enough = Fraction(_delta(dimension, above, epsilon).upper) <= target
    if not (enough and Fraction(_delta(dimension, below, epsilon).lower) > target):
        raise UndecidedError(
            f"The least sigma_star for dimension={dimension}, epsilon={epsilon}, delta={delta} "
            "was not enclosed by the secant. Use calibrate instead."
        )
    return math.exp(above)


def _delta(dimension: int, log_sigma_star: float, epsilon: str) -> Interval:
    mechanism = RankOneGaussian(dimension, Fraction(math.exp(log_sigma_star)))
    return profile.delta(mechanism, epsilon, relative_width=_ACCURACY)


def classic_deviation(epsilon: float, delta: float) -> float:
    """Return σ = √(2 ln(1.25/δ))/ε of Theorem 1."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def analytic_deviation(epsilon: str, delta: str) -> float:
    """Return the least σ of (ε,δ)-DP Gaussian noise (Theorem 2)."""
    return float(calibrate("Gaussian", EpsilonDelta(epsilon, delta)).least.upper)
