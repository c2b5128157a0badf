"""Cutting rare large losses off, where their moments explode although they do not matter.

The moments of a subsampled Gaussian loss grow like e^{s²μ²/2} q^s: for large s they belong to a
jump that is far less likely than δ itself, and the line through their saddle says nothing. With
the normal density φ replaced by φχ, χ ≤ 1 (`losses.transform.Cut`), the two laws lose the masses
p and q of the factors; a bounded function of the losses, 0 ≤ g ≤ b, then satisfies

    E[g; φχ] ≤ E[g] ≤ E[g; φχ] + b Σ k_i p_i,

and the masses are closed forms. So the cut is put where Σ k_i p_i is far below what is asked for.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np
from flint import arb

from accountant.composition.fourier.measure import Loss, Measure
from accountant.composition.losses.transform import (
    Cut,
    GaussianTransform,
    MixtureTransform,
    Transform,
)
from accountant.composition.numeric.cells import LEAST_RATE
from accountant.composition.numeric.search import Strip, saddle
from accountant.errors import UndecidedError
from accountant.numbers.solve import shortened

_LOG_2 = math.log(2)
_ROUNDS = 12
"""Times that cuts are placed anew for the value they give; the last ones are as valid."""
_GRAIN = 16
"""Bits to which an accuracy is rounded up: fewer are shared by fewer questions, more cost time."""
_GAIN = 3.0
"""Difference of ln G from which on two saddle-point values are told apart: they are that rough."""
_SPURIOUS = 4.0
"""Ratio of the tilts of a cut and a whole loss from which on large losses held the saddle back."""
_FIRST = 20.0
"""How much lower than 4 times the last guess ln G is guessed where a cut leaves no saddle."""
_FURTHEST = 1.3
"""Distance of the largest tilt that is needed, in those at which a normal law falls to the
accuracy: with less a cut is smoother than its aliasing bounds allow."""
_NEGLIGIBLE = 36.0
"""−ln of a share that no float shows: what is that small needs no cut, or does not change one."""
_MARGIN = 14.0
"""−ln of the share of what may be lost that cuts do lose: with more they lie where moments
explode."""
_EDGE = 4.0
"""Widths before its place at which a smooth cut begins to matter."""
_REACH = 9.0
"""Distance at which a normal law has fallen below e^−40."""
_POINTS = 256
"""Places at which a tilted law is looked at: with fewer a narrow peak near a cut is missed."""
_LEFT, _BEYOND = -40.0, 12.0
"""Where a tilted law is taken to begin, and the widths beyond a cut where its fall is asked for."""
_WIDTHS = tuple(Fraction(1, 1 << i) for i in range(2, 8))
"""Widths of cuts, the smoothest first: the sharper one is, the finer the nodes beside it."""


@functools.lru_cache(maxsize=128)
def chosen(loss: Loss, strip: Strip, epsilon: float, bits: int) -> Loss:
    """Return the loss, cut where that lowers the saddle-point value of the integral.

    Nothing that is proved rests on the place of the cut.
    """
    whole = saddle_value(loss, strip, epsilon, bits)
    if whole is not None and _far_off(loss, bits * _LOG_2 - whole.log_value, whole.furthest):
        return loss
    best, level = loss, 0.0 if whole is None else whole.log_value
    found: Level | None = None
    tilt = start = None
    for _ in range(_ROUNDS):
        shorter = cut_off(loss, -level + bits * _LOG_2, tilt)
        found = saddle_value(shorter, strip, epsilon, bits, start)
        if found is None and best is loss:
            level = 4 * level - _FIRST  # ε lies beyond what is kept
            continue
        if found is None:
            break
        if whole is not None and best is loss and _same(whole, found):
            return loss
        first, last = best is loss, level
        best, level, tilt, start = shorter, found.log_value, rounded(found.furthest), found.c
        if not first and abs(last - level) < _GAIN:
            break
    if whole is None or found is None:
        return best
    return loss if _same(whole, found) else best


@final
@dataclass(frozen=True)
class Level:
    """The saddle-point approximation of an integral."""

    log_value: float
    """ln G(ε), about."""
    c: float
    """The saddle."""
    furthest: float
    """The largest tilt that is needed."""


def _same(whole: Level, cut: Level) -> bool:
    """Whether a cut changes little; else jumps hold the saddle back."""
    lower = whole.log_value - cut.log_value
    return lower < _GAIN and cut.furthest < _SPURIOUS * whole.furthest


def _far_off(loss: Loss, log_mass: float, tilt: float) -> bool:
    """Whether cuts that lose e^−log_mass lie where nothing is, tilted as far as that."""
    for (part, count), (shorter, _) in zip(
        loss.factors, cut_off(loss, log_mass).factors, strict=True
    ):
        if isinstance(part, MixtureTransform) and isinstance(shorter, MixtureTransform):
            assert shorter.cut is not None
            s = max(tilt + 1 if part.mixed_first else -tilt, 0.0)
            edge = float(shorter.cut.at) - _EDGE * float(shorter.cut.width)
            x = np.linspace(-_REACH, max(edge, s * part.floats().mu) + _REACH, _POINTS)
            size = part.floats().bell(x) + s * part.floats().log_density(x)
            if size[x >= edge].max() > size.max() - _NEGLIGIBLE - math.log(count):
                return False
    return True


def saddle_value(
    loss: Measure, strip: Strip, epsilon: float, bits: int, start: float | None = None
) -> Level | None:
    """Return the saddle-point approximation of G(ε), None where there is no saddle."""
    try:
        point = saddle(loss, strip, epsilon, start=start)
    except (ArithmeticError, UndecidedError):
        return None
    value = loss.cumulants(point.c)[0] - point.c * epsilon
    if value > max(epsilon, 0.0) + _GAIN:  # it is at most what it is at a pole
        return None
    value -= sum(math.log(abs(point.c - pole)) for pole in strip.poles)
    furthest = point.c + _FURTHEST * math.sqrt(2 * bits * _LOG_2 / point.curvature)
    return Level(value - 0.5 * math.log(2 * math.pi * point.curvature), point.c, furthest)


def near(epsilon: float) -> float:
    """Round to eight bits, so that neighbouring questions share their cuts."""
    return shortened(epsilon, 8)


def coarse(bits: int) -> int:
    """Round an accuracy up, so that questions of nearly the same one share their cuts."""
    return max(3, -(-bits // _GRAIN)) * _GRAIN


def rounded(value: float) -> float:
    """Round to four bits, so that neighbouring questions share a cut."""
    return shortened(value, 4)


@functools.lru_cache(maxsize=128)
def cut_off(loss: Loss, log_mass: float, tilt: float | None = None) -> Loss:
    """Return the loss with each normal law cut, so that about e^−log_mass is lost in all.

    The cuts are as smooth as a contour through `tilt` allows.
    """
    factors: list[tuple[Transform, int]] = []
    for part, count in loss.factors:
        if isinstance(part, MixtureTransform):
            needed = max(log_mass, 0.0) + math.log(count) + math.log(len(loss.factors)) + _MARGIN
            s = None if tilt is None else tilt + 1 if part.mixed_first else -tilt
            factors.append((replace(part, cut=_cut(part, needed, s)), count))
        else:
            factors.append((part, count))
    return Loss(tuple(factors))


def _cut(part: MixtureTransform, needed: float, s: float | None) -> Cut:
    """Return a cut of mass e^−needed, sharp enough for φχw^s to vanish beyond it.

    Without a tilt s it is twice the one at which φ(x) w(x)^s is as large at the cut as at 0.
    """
    floats = part.floats()
    shifted = floats.mu + math.sqrt(2 * max(needed + floats.log_share, 0.0))
    at = max(math.sqrt(2 * needed), shifted)
    if s is None:
        s = largest_tilt(part, at)
    for width in _WIDTHS:
        place = Fraction(math.ceil(at * math.sqrt(1 + float(width) ** 2) * 16), 16)
        cut = Cut(place, width)
        if is_tame(part, cut, s):
            break
    return cut


def takes_apart(loss: Loss) -> bool:
    """Whether large losses may be rare, and all others are smooth."""
    smooth = all(isinstance(p, (GaussianTransform, MixtureTransform)) for p, _ in loss.factors)
    mixtures = [part for part, _ in loss.factors if isinstance(part, MixtureTransform)]
    return smooth and bool(mixtures) and all(part.mixed_first for part in mixtures)


def are_tame(loss: Loss, tilt: float) -> bool:
    """Whether all cuts are sharp enough for φχw^s, s = tilt + 1, to fall beyond them."""
    return all(
        is_tame(part, part.cut, tilt + 1)
        for part, _ in loss.factors
        if isinstance(part, MixtureTransform) and part.cut is not None
    )


def is_tame(part: MixtureTransform, cut: Cut, s: float) -> bool:
    """Whether φχw^s falls beyond a cut."""
    end = float(cut.at) + _BEYOND * float(cut.width)
    return replace(part, cut=cut).floats().rates(_LEFT, end, s, 0.0)[1] >= LEAST_RATE


def largest_tilt(part: MixtureTransform, at: float) -> float:
    """Return twice the tilt s at which φ(x) w(x)^s is as large at a place as at 0."""
    ends = part.floats().log_density(np.array([0.0, at]))
    return at * at / max(float(ends[1] - ends[0]), 1e-300)


def lost(loss: Loss) -> tuple[arb, arb]:
    """Return the masses that the cuts take from the products P and Q."""
    first, second = arb(0), arb(0)
    for part, count in loss.factors:
        if isinstance(part, MixtureTransform):
            p, q = part.lost()
            first, second = first + count * p, second + count * q
    return first.upper(), second.upper()
