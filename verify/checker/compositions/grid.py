"""Profiles of few releases by two laws on a grid, one that dominates and one that is dominated.

Where L is the loss under P, H(ε) = P(L = ∞) + E_P[(1 − e^{ε−L})⁺] rises with every mass of P and
with every loss, and it falls when outcomes are merged. For one release and grid points jh,

- *above*: what has a loss in (jh, (j + 1)h] is split onto both ends so that its masses p and q
  stay, r = (p − q e^{jh})/(1 − e^{−h}) of p going to the right: merging the two gives it back.
  Losses above the grid become ∞, those below it its lowest point;
- *below*: outcomes with losses in ((j − ½)h, (j + ½)h] are merged to one of loss ln(p/q), which is
  lowered onto the grid moved by a common fraction s of a step: to j + s, or to j − 1 + s where that
  is too much. Losses above the grid join its last point, those below it are forgotten.

Sums of independent releases are products of polynomials with balls for coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from flint import arb, arb_poly

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.compositions.contour import Answers, bounded, infinite_mass
from dpassay.verifier.checker.compositions.losses import LN10, Factors, Tails, saddle
from dpassay.verifier.checker.reals import UnknownError

MOST_RELEASES = 8
"""Releases of an exact grid: its cells grow with their number."""
_POINTS = 3000
"""Of the grid of one release."""
_SPARE = 12
"""Digits of H to the share of it that is cut off at the ends."""
_MOST_LOG = 400.0
"""−ln of values that a grid of floats is too coarse for."""
_SHIFTS = (0.0, *(-(2.0**-k) for k in range(14)))
_Law = Callable[[arb], Tails]


@lru_cache(maxsize=64)
def enclose(factors: Factors, epsilon: str) -> Answers:
    """Enclose H(ε); the other two answers are only bounded.

    Raises
    ------
    UnknownError
        For many releases, for losses that may be infinite, and for tiny values.
    """
    releases = sum(count for _, count in factors)
    if releases > MOST_RELEASES or not infinite_mass(factors) == 0:
        raise UnknownError("the law of this composition: its grid takes too long to recompute")
    log_value = _estimate(factors, float(arb(epsilon)))
    digits = math.ceil(-log_value / LN10) + _SPARE
    with ctx.workprec(math.ceil((digits + 40) / math.log10(2))):
        share = arb(10) ** -digits / releases
        ends = [_ends(factor.tails, share) for factor, _ in factors]
        step = arb(max(high - low for low, high in ends)) / _POINTS
        low, high = (_sum(factors, ends, step, arb(epsilon), law) for law in (_below, _above))
        return bounded(factors, epsilon)._replace(
            hockey_stick=low.lower().max(arb(0)).union(high.upper().min(arb(1)))
        )


def _estimate(factors: Factors, eps: float) -> float:
    try:
        _, log_value = saddle(factors, eps)
    except (OverflowError, ValueError, ZeroDivisionError):  # beyond the range of floats
        log_value = -math.inf
    if log_value < -_MOST_LOG:
        raise UnknownError("the law of this composition: its values are too small for a grid")
    return min(log_value, 0.0)


def _ends(tails: _Law, mass: arb) -> tuple[float, float]:
    """Return losses beyond which P has at most that mass, on either side."""

    def least(beyond: Callable[[float], bool]) -> float:
        low, high = 0.0, 1 / 64
        while not beyond(high):
            low, high = high, 2 * high
            if high > 1 << 20:
                raise UnknownError("the law of this composition: its losses are too large")
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (low, middle) if beyond(middle) else (middle, high)
        return high

    return (
        -least(lambda y: bool(1 - tails(arb(-y))[0] <= mass)),
        least(lambda y: bool(tails(arb(y))[0] <= mass)),
    )


def _sum(
    factors: Factors,
    ends: Sequence[tuple[float, float]],
    step: arb,
    eps: arb,
    law: Callable[[_Law, range, arb], tuple[list[arb], float, arb]],
) -> arb:
    """Enclose H(ε) of the laws that are above, or below."""
    total, first, shift, infinity = arb_poly([1]), 0, 0.0, arb(0)
    for (factor, count), (low, high) in zip(factors, ends, strict=True):
        cells = range(math.floor(low / float(step)) - 1, math.ceil(high / float(step)) + 1)
        masses, moved, over = law(factor.tails, cells, step)
        for _ in range(count):
            total *= arb_poly(masses)
            first, shift, infinity = first + cells[0], shift + moved, infinity + over
    value = infinity
    for index, mass in enumerate(total.coeffs()):
        loss = (first + index + arb(shift)) * step - eps
        if loss > 0:
            value -= mass * (-loss).expm1()
        elif not loss <= 0:
            value += mass * (-(-loss).expm1()).max(arb(0))
    return value


def _above(tails: _Law, cells: range, step: arb) -> tuple[list[arb], float, arb]:
    """Return masses at the ends of cells, no shift, and what is at infinity."""
    last = tails(cells[0] * step)
    found = [1 - last[0]] + [arb(0)] * len(cells)
    for place, j in enumerate(cells):
        here = tails((j + 1) * step)
        p, q = last[0] - here[0], last[1] - here[1]
        right = (p - q * (j * step).exp()) / -(-step).expm1()
        found[place] += p - right
        found[place + 1] += right
        last = here
    return found, 0.0, last[0]


def _below(tails: _Law, cells: range, step: arb) -> tuple[list[arb], float, arb]:
    """Return masses at the ends of cells, moved by a fraction of a step."""
    merged: list[tuple[arb, float]] = []
    last = tails((cells[0] + arb(1) / 2) * step)
    for j in cells:
        here = tails((j + 1 + arb(1) / 2) * step) if j < cells[-1] else (arb(0), arb(0))
        p, q = last[0] - here[0], last[1] - here[1]
        known = p > 0 and q > 0
        offset = float(((p / q).log() / step - j - 1).lower()) - 1e-9 if known else -math.inf
        merged.append((p.max(arb(0)), offset))
        last = here

    def lowered(shift: float) -> float:
        return sum(float(p) * (d - shift + (d < shift) if d >= shift - 1 else 2) for p, d in merged)

    shift = min(_SHIFTS, key=lowered)
    found = [arb(0)] * (len(cells) + 1)
    for place, (p, offset) in enumerate(merged, 1):
        if offset >= shift:
            found[place] += p
        elif offset >= shift - 1:
            found[place - 1] += p
    return found, shift, arb(0)
