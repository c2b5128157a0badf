"""Where δ(ε) of a family of mechanisms passes a limit: found in floats, proved by enclosures.

A family has an argument x > 0 in which δ(ε) never increases, such as a standard deviation. The root
of ln δ(ε) in ln x is found by interpolation of estimates, of the pair whose δ is largest. Then
two enclosures decide on which side of the limit δ(ε) lies just below and just above the root, each
no narrower than its slope asks for; for the other pairs one rough enclosure above the root does.
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
"""Narrower roots are not found by floats."""
_ROUGH = 64
"""Bits of values that become floats."""
_LESS = arb(2) ** -20
_FIRST_STEP = 0.25
"""First step of a search in the logarithm of the noise."""
_LONGEST_STEP = math.log(4)
_MOST_STEPS = 60
"""Steps of that search."""
_NEGLIGIBLE = 1e-14
"""Error of a root, from the last two steps, that is rounding."""

Family = Callable[[ExactReal], Sequence[Pair]]


@final
@dataclass(frozen=True, slots=True)
class Threshold:
    """Where δ(ε) passes a limit."""

    least: Interval
    """At its lower end δ(ε) > δ is proved, at its upper end δ(ε) < δ."""
    width: Fraction
    """The relative width that enclosures of δ(ε) had for that."""
    worst: int
    """Which pair has the largest δ."""
    others: arb
    """Above the δ(ε) of the other pairs, from the upper end on; below δ."""


def threshold(
    family: Family,
    epsilon: ExactReal,
    delta: ExactReal,
    first: Fraction,
    *,
    relative_width: Fraction,
) -> Threshold | None:
    """Enclose the argument at which δ(ε) passes δ > 0, or return None where estimates fail.

    Parameters
    ----------
    family
        Returns the worst pairs at an argument, always as many and in the same order.
    first
        Where the search begins, > 0.

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

    found = solve.beside(excess, Fraction(root), relative_width=relative_width)
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
    """Return the root, −d ln δ/d ln x there and which pair has the largest δ, by estimates."""
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
    """Return the root of a function that falls in x > 0, and −d/d ln x of it there.

    By inverse interpolation in ln x, through the last three points, in a bracket. None where a
    value is None, or where it does not fall; −∞ is only known to be below 0.
    """
    here, value = math.log(first), excess(first)
    if value is None or not math.isfinite(value):
        return None
    low, high, points = -math.inf, math.inf, [(value, here)]
    step = math.copysign(_FIRST_STEP, value)
    off = [1.0, 1.0]  # about the errors of the last points
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
    """Return the argument at value 0 of the polynomial in the value through two or three points.

    NaN where two values are equal.
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
