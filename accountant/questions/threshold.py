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
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.dominance import proved_below
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import START_PRECISION, Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import HALF
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


"""Where the profile of a family of mechanisms passes below a limit on a range: found, then proved.

A family has an argument x > 0 in which δ(ε) never increases, such as a standard deviation, and the
limit is non-increasing and convex in e^ε, as profiles are. At the threshold the two touch, at some
ε in [0, stop], where `stop` is the largest loss unless it is given: it is where estimates of
ln δ − ln limit are largest, on a grid and by interpolation between its points, and x is where they
are 0 there. The middle of a ball is the estimate where `stop` is not given. One enclosure at that ε
proves that a slightly smaller x does not do; that a slightly larger one does is proved on all of
[0, stop], by chords (`dpassay.accountant.numbers.dominance`).
"""

Limit = Callable[[ExactReal], arb]
_GRID = 48
"""Points at which the worst ε is looked for: fewer miss a narrow one, and the proof then fails."""
_MOST_MOVES = 30
"""Steps to the worst ε: parabolas settle in a few."""
_CLOSE = 1e-8
"""Share of the range to which the worst ε is sought: the excess is flat there."""
_SHARE = 8
"""How much finer than the room that is left δ is asked for."""
_NOTHING = -1e6
"""Stands for the logarithm of a δ of 0."""


@final
@dataclass(frozen=True, slots=True)
class Touching:
    """Where a profile touches its limit."""

    least: Interval
    """At its lower end the limit is exceeded, at its upper end it is kept."""
    at: ExactReal
    """The ε where they touch."""


def touching(
    family: Family,
    limit: Limit,
    first: Fraction,
    *,
    relative_width: Fraction,
) -> Touching | None:
    """Enclose the argument at which δ(ε) ≤ limit(ε) up to the largest loss; None where that fails.

    Parameters
    ----------
    family
        Returns the worst pairs at an argument.
    limit
        Returns a ball for the limit at an exact ε, > 0 up to the largest loss, which is finite.
    first
        Where the search begins, > 0.
    """
    if relative_width < FINEST:
        return None
    search = _Search(limit)

    def excess(x: float) -> float:
        return search.largest(family(ExactReal.of_rational(Fraction(x))))

    if (root := falling_root(excess, float(first))) is None:
        return None
    near = Fraction(root[0])
    slack = near * relative_width * HALF
    margin = Fraction(root[1]) * relative_width * HALF
    if not search.exceeds(family(ExactReal.of_rational(near - slack)), margin):
        return None
    if not search.keeps(family(ExactReal.of_rational(near + slack))):
        return None
    found = Interval.of_exact(near - slack).hull(Interval.of_exact(near + slack))
    return Touching(found, search.at)


@final
class _Search:
    """How the profile of bounded losses stands to a limit: by estimates, and proved."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._known: dict[float, float] = {}
        self._touch = 0.0

    @property
    def at(self) -> ExactReal:
        """The ε where `largest` was last found."""
        return ExactReal.of_rational(Fraction(self._touch))

    def exceeds(self, pairs: Sequence[Pair], margin: Fraction) -> bool:
        """Whether δ > limit is proved at `at`, by an enclosure of relative width `margin`."""
        asked = invert.to_width(pairs, margin)
        with ctx.workprec(START_PRECISION):
            return bool(invert.hockey_stick(asked, self.at) > self._limit(self.at))

    def keeps(self, pairs: Sequence[Pair]) -> bool:
        """Whether δ ≤ limit is proved up to the largest loss."""
        with ctx.workprec(START_PRECISION):
            try:
                return proved_below(
                    lambda at: invert.hockey_stick(pairs, at), self._limit, _end(pairs)
                )
            except UndecidedError:
                return False

    def _excess(self, pairs: Sequence[Pair], epsilon: float) -> float:
        """Return an estimate of ln δ − ln limit."""
        at = ExactReal.of_rational(Fraction(epsilon))
        with ctx.workprec(_ROUGH):
            if epsilon not in self._known:
                self._known[epsilon] = float(self._limit(at).log().mid())
            value = invert.hockey_stick(pairs, at)
            log = float(value.log().mid()) if value > 0 else _NOTHING
        return log - self._known[epsilon]

    def largest(self, pairs: Sequence[Pair]) -> float:
        """Return the largest excess over ε up to the largest loss; `at` is where it is."""
        stop = float(_end(pairs))
        grid = [stop * i / _GRID for i in range(_GRID + 1)]
        values = [self._excess(pairs, at) for at in grid]
        best = max(range(len(grid)), key=lambda i: values[i])
        if best in (0, _GRID):
            self._touch = grid[best]
            return values[best]
        left, middle, right = grid[best - 1 : best + 2]
        low, top, high = values[best - 1 : best + 2]
        for _ in range(_MOST_MOVES):
            rise, fall = (top - low) / (middle - left), (high - top) / (right - middle)
            bend = (fall - rise) / (right - left)
            wanted = 0.5 * (left + middle) - 0.5 * rise / bend if bend < 0 else middle
            if abs(wanted - middle) <= _CLOSE * stop or not left < wanted < right:
                break
            new = self._excess(pairs, wanted)
            if new < top:
                left, low, right, high = (
                    (wanted, new, right, high) if wanted < middle else (left, low, wanted, new)
                )
            elif wanted < middle:
                middle, top, right, high = wanted, new, middle, top
            else:
                left, low, middle, top = middle, top, wanted, new
        self._touch = middle
        return top


def _end(pairs: Sequence[Pair]) -> Fraction:
    """Return the largest loss of some pairs, rounded up."""
    with ctx.workprec(_ROUGH):
        largest = invert.most([pair.max_loss() for pair in pairs])
    return Fraction(Interval.of_ball(largest, 30).upper)
