"""Lines for losses that are cut where that is of use, and where a root is, roughly.

See `accountant.composition.decisive`. All is in floats: nothing that is proved rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from accountant.composition.decisive import (
    Cut,
    cut_laws,
    decided,
    lowest_threshold,
    small_parts,
    small_threshold,
    threshold_of,
    whole_room,
)
from accountant.composition.joint import Factor
from accountant.composition.laws import Law
from accountant.composition.line import Line, at_saddle, choose_line, guess_epsilon, known_laws
from accountant.number import ExactReal

_WIDTHS, _SHARPEST = tuple(2.0**-k for k in range(6)), 2.0**-6
_STEEP_ENDS = (2.0**-3, 2.0**-5)
_ROOM = 48.0
_GAIN = 2.0
_LONG = 1 << 12
_SPARE = 16.0  # natural logarithm of the width to the share of it that a bound may have
_LESS = 20.0  # natural logarithm of a size to what H may be
_MISSING = 80.0
_LOWER, _NEAR = 0.75, 0.02
_FAR = 4.0


def best_line(factors: tuple[Factor, ...], epsilon: float, wanted: float) -> Line:
    """Return the line near ε, with losses cut where these are too large to be of use.

    The ends are as smooth as the size of what is integrated allows. Where the transform falls so
    slowly that a line is long, outcomes of small losses alone are left out.
    """
    line = choose_line(factors, epsilon, wanted)
    if line.c < 0 or not epsilon > 0:
        return line
    laws = line.laws(factors)
    sharp, whole = _sharp(laws, factors, epsilon), at_saddle(laws, epsilon)[1]
    least = whole if sharp is None else at_saddle(cut_laws(laws, sharp), epsilon)[1]
    first = sharp or Cut(_FAR * epsilon, _SHARPEST, _ROOM)
    enough = least + math.log(wanted) - _LESS
    lowest = lowest_threshold(laws, factors, epsilon, first, enough)
    if lowest is not None:
        sharp = replace(first, threshold=lowest)
        least = at_saddle(cut_laws(laws, sharp), epsilon)[1]
    if sharp is None or (least > whole - _GAIN and line.last <= _LONG):
        return line
    room = whole_room(max(_SPARE - least - math.log(wanted) + epsilon, _ROOM))
    for width in (*_WIDTHS, _SHARPEST):
        cut = Cut(sharp.threshold, width, room)
        laws = known_laws(factors, line.log_missing, cut)
        if width == _SHARPEST or at_saddle(laws, epsilon)[1] < least + _GAIN:
            break
    found = choose_line(factors, epsilon, wanted, cut)
    small = small_threshold(factors, epsilon)
    if found.last <= _LONG or small is None:
        return found
    for width in _STEEP_ENDS:
        cut = Cut(sharp.threshold, min(width, cut.width), room, small)
        if small_parts(known_laws(factors, found.log_missing, cut), cut) is not None:
            apart = choose_line(factors, epsilon, wanted, cut)
            found = min(found, apart, key=lambda line: line.last * line.step)
    return found


def _sharp(laws: Sequence[Law], factors: tuple[Factor, ...], epsilon: float) -> Cut | None:
    """Return sharp cuts, None where there is nothing to cut."""
    threshold = threshold_of(factors, epsilon)
    if threshold is None or not any(law.cut(threshold, _SHARPEST, _ROOM) for law in laws):
        return None
    return Cut(threshold, _SHARPEST, _ROOM)


def start(factors: tuple[Factor, ...], log_delta: float) -> float:
    """Return about the ε with ln H(ε) = log_delta < 0.

    Where losses can be cut, H is what they decide and the saddle-point approximation of the others.
    """
    high = guess_epsilon(factors, log_delta)
    laws = known_laws(factors, log_delta - _MISSING)

    def excess(epsilon: float) -> float | None:
        if (sharp := _sharp(laws, factors, epsilon)) is None:
            return None
        left = cut_laws(laws, sharp)
        c, size, curve = at_saddle(left, epsilon)
        if c < 0:
            return None
        sure, _ = decided(left, factors, sharp, ExactReal.of_rational(Fraction(epsilon)))
        alone = float(sure.log()) if sure > 0 else -math.inf
        return float(np.logaddexp(size - math.log(2 * math.pi * curve) / 2, alone)) - log_delta

    low, at_low = high, excess(high)
    if at_low is None:
        return high
    while at_low is not None and at_low < 0:
        high, low = low, low * _LOWER
        at_low = excess(low)
    while at_low is not None and high - low > _NEAR * low:
        middle = (low + high) / 2
        there = excess(middle)
        if there is None:
            break
        low, high = (middle, high) if there > 0 else (low, middle)
    return high
