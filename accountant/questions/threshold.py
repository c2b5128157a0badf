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

from accountant.composition import invert
from accountant.core.pair import Pair
from accountant.numbers import solve
from accountant.numbers.exact import ExactReal, exact
from accountant.numbers.interval import START_PRECISION, Interval
from accountant.numbers.precision import ctx

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
    search = _Search(family, epsilon, delta)
    if not search.run(float(first)):
        return None
    width = Fraction(search.slope) * relative_width * solve.HALF

    def excess(at: ExactReal) -> arb:
        value = family(at)[search.worst].to_width(width).hockey_stick(epsilon)
        return (value / delta.ball()).log() if value > 0 else arb.neg_inf()

    found = solve.beside(excess, Fraction(search.root), relative_width=relative_width)
    if found is None:
        return None
    with ctx.workprec(START_PRECISION):
        limit = delta.ball() * (1 - _LESS)
        for i, pair in enumerate(family(exact(found.upper))):
            if i != search.worst and not invert.below(pair, epsilon, limit):
                return None
    return Threshold(found, width, search.worst, limit)


@final
class _Search:
    """Inverse interpolation of ln δ in ln x, through the last three points, in a bracket."""

    def __init__(self, family: Family, epsilon: ExactReal, delta: ExactReal) -> None:
        self._family, self._epsilon = family, float(epsilon)
        with ctx.workprec(_ROUGH):
            self._log_delta = float(delta.ball().log().mid())
        self.worst = 0
        self.root = self.slope = 0.0

    def run(self, first: float) -> bool:
        """Find the root and −d ln δ/d ln x there; False where there is no estimate."""
        estimates = [self._estimate(pair) for pair in self._pairs(first)]
        known = [value for value in estimates if value is not None]
        if len(known) < len(estimates):
            return False
        value, self.worst = max((value, i) for i, value in enumerate(known))
        if not math.isfinite(value):
            return False
        here = math.log(first)
        low, high = -math.inf, math.inf
        points = [(value, here)]
        step = math.copysign(_FIRST_STEP, value)
        off = [1.0, 1.0]  # about the errors of the last points
        for _ in range(_MOST_STEPS):
            low, high = (here, high) if value > 0 else (low, here)
            there = here + step
            if not low < there < high:
                bounded = math.isfinite(high - low)
                there = 0.5 * (low + high) if bounded else here + math.copysign(off[-1], value)
            found = self._estimate(self._pairs(math.exp(there))[self.worst])
            if found == -math.inf:  # no loss is larger than ε there
                high, step = there, 0.5 * (there - here)
                continue
            if found is None or not 0 < (value - found) * (there - here) < math.inf:
                return False
            self.slope = (value - found) / (there - here)
            off = [off[-1], abs(there - here)]
            here, value = there, found
            points = [*points[-2:], (value, here)]
            step = min(max(to_zero(points) - here, -_LONGEST_STEP), _LONGEST_STEP)
            if abs(step) * off[0] * off[1] < _NEGLIGIBLE:
                self.root = math.exp(here + step)
                return True
        return False

    def _pairs(self, x: float) -> Sequence[Pair]:
        return self._family(ExactReal.of_rational(Fraction(x)))

    def _estimate(self, pair: Pair) -> float | None:
        """Return ln δ(ε)/δ."""
        found = pair.estimate_log_delta(self._epsilon)
        return None if found is None else found - self._log_delta


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
