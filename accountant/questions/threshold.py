"""Calibration: the argument of a family of mechanisms at which δ(ε) crosses a limit.

δ(ε) must be non-increasing in the argument x > 0 of the family, such as a standard deviation. The
root of ln δ(ε) as a function of ln x is first estimated in floats, by interpolation for the pair
with the largest δ. Then two enclosures of δ(ε), just below and just above the root, prove on which
side of the limit it lies; they are only as narrow as the slope there requires. For the other pairs
one rough enclosure above the root suffices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.core.pair import Pair, refined
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import START_PRECISION, Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs import invert

FINEST = Fraction(1, 10**13)
"""Finest relative width for which a float estimate is accurate enough."""
_ROUGH = 64
"""Precision in bits of values that are converted to floats."""
_LESS = arb(2) ** -20
_FIRST_STEP = 0.25
"""First step of the root search in ln x."""
_LONGEST_STEP = math.log(4)
_MOST_STEPS = 60
"""Largest number of steps of the root search."""
_NEGLIGIBLE = 1e-14
"""The search ends when the error predicted from the last steps is below this, about rounding."""

Family = Callable[[ExactReal], Sequence[Pair]]


@final
@dataclass(frozen=True, slots=True)
class Threshold:
    """The argument at which δ(ε) crosses a limit δ."""

    least: Interval
    """An enclosure, with δ(ε) > δ proved at its lower end and δ(ε) < δ at its upper end."""
    width: Fraction
    """The relative width of the enclosures of δ(ε) in that proof."""
    worst: int
    """The index of the pair with the largest δ(ε)."""
    others: arb
    """A bound below δ of δ(ε) of all other pairs, at the upper end and at larger arguments."""


def threshold(
    family: Family,
    epsilon: ExactReal,
    delta: ExactReal,
    first: Fraction,
    *,
    relative_width: Fraction,
) -> Threshold | None:
    """Enclose the argument at which δ(ε) crosses δ > 0; return None if the estimates fail.

    Parameters
    ----------
    family
        Returns the worst pairs at an argument; their number and order must not depend on it.
    epsilon, delta
        The guarantee to calibrate to.
    first
        The argument at which the search begins, > 0.
    relative_width
        The largest relative width of the enclosure.
    """
    if relative_width < FINEST:
        return None
    estimate = _estimate(family, epsilon, delta, float(first))
    if estimate is None:
        return None
    root, slope, worst = estimate
    width = Fraction(slope) * relative_width * solve.HALF

    def excess(at: ExactReal) -> arb:
        value = refined(family(at)[worst], width).hockey_stick(epsilon)
        return (value / delta.ball()).log() if value > 0 else arb.neg_inf()

    found = solve.root_near(excess, Fraction(root), relative_width=relative_width)
    if found is None:
        return None
    with ctx.workprec(START_PRECISION):
        limit = delta.ball() * (1 - _LESS)
        for i, pair in enumerate(family(exact(found.upper))):
            if i != worst and not invert.below(pair, epsilon, limit):
                return None
    return Threshold(found, width, worst, limit)


def _estimate(
    family: Family, epsilon: ExactReal, delta: ExactReal, first: float
) -> tuple[float, float, int] | None:
    """Return float estimates of the root and of −d ln δ/d ln x there, and the worst pair."""
    with ctx.workprec(_ROUGH):
        log_delta = float(delta.ball().log().mid())

    def pairs(x: float) -> Sequence[Pair]:
        return family(ExactReal.of_rational(Fraction(x)))

    estimates = [pair.known.log_delta(float(epsilon)) for pair in pairs(first)]
    known = [value for value in estimates if value is not None]
    if len(known) < len(estimates):
        return None
    worst = known.index(max(known))

    def excess(x: float) -> float | None:
        found = pairs(x)[worst].known.log_delta(float(epsilon))
        return None if found is None else found - log_delta

    found = falling_root(excess, first)
    return None if found is None else (*found, worst)


def falling_root(
    excess: Callable[[float], float | None], first: float
) -> tuple[float, float] | None:
    """Return the root of a decreasing function of x > 0, and −d/d ln x of the function there.

    The method is inverse interpolation in ln x through the last three points, within a bracket. A
    value of −∞ only means that the function is below 0. Returns None if a value is None, or if the
    function is seen not to decrease.
    """
    here, value = math.log(first), excess(first)
    if value is None or not math.isfinite(value):
        return None
    low, high, points = -math.inf, math.inf, [(value, here)]
    step = math.copysign(_FIRST_STEP, value)
    off = [1.0, 1.0]  # rough errors of the last two points
    for _ in range(_MOST_STEPS):
        low, high = (here, high) if value > 0 else (low, here)
        there = here + step
        if not low < there < high:
            bounded = math.isfinite(high - low)
            there = 0.5 * (low + high) if bounded else here + math.copysign(off[-1], value)
        found = excess(math.exp(there))
        if found == -math.inf:
            high, step = there, 0.5 * (there - here)
            continue
        if found is None or not 0 < (value - found) * (there - here) < math.inf:
            return None
        slope = (value - found) / (there - here)
        off = [off[-1], abs(there - here)]
        here, value = there, found
        points = [*points[-2:], (value, here)]
        step = min(max(to_zero(points) - here, -_LONGEST_STEP), _LONGEST_STEP)
        if abs(step) * off[0] * off[1] < _NEGLIGIBLE:
            return math.exp(here + step), slope
    return None


def to_zero(points: Sequence[tuple[float, float]]) -> float:
    """Return the argument at which the value is 0, by inverse polynomial interpolation.

    `points` are two or three (value, argument); NaN if two values are equal.
    """
    if len({value for value, _ in points}) < len(points):
        return math.nan
    total = 0.0
    for i, (value, at) in enumerate(points):
        weight = 1.0
        for j, (other, _) in enumerate(points):
            if j != i:
                weight *= other / (other - value)
        total += weight * at
    return total
