"""Where small losses end and large ones begin: the thresholds of `jumps`, chosen by floats.

A threshold serves if the small losses alone hardly ever add up to ε, and if the large ones have a
smooth law. Whether they do is estimated at saddle points, and where one release alone has a large
loss by its own profile. Nothing that is proved rests on any of this.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np
from flint import ctx

from accountant.composition.jumps import Jumps
from accountant.composition.saddle_certified import Loss, estimator
from accountant.composition.saddle_cut import (
    chosen,
    cut_off,
    largest_tilt,
    rounded,
    saddle_value,
    start,
)
from accountant.composition.saddle_search import Strip
from accountant.composition.saddle_transform import Cut, MixtureTransform, Transform
from accountant.composition.subsampling import SubsampledPair
from accountant.errors import UndecidedError
from accountant.number import ExactReal

_LOG_2 = math.log(2)
_BITS = 46
_SHARES = tuple(Fraction(i, 16) for i in range(14, 2, -1))
_WIDTHS = tuple(Fraction(1, 1 << i) for i in range(1, 8))
_SPARE = 25.0
_APART = 1.0
_LEAST_PLACE = 1.0
_MOST_STEPS = 60
_FEW_STEPS = 6
_BESIDE = 1e-6
_ROUGH = 128
_LEVEL = 0.5


@functools.lru_cache(maxsize=64)
def plan_of_jumps(
    loss: Loss, strip: Strip, epsilon: float, bits: int, spare: float
) -> tuple[Loss, Jumps | None]:
    """Return the cut loss, and how it is taken apart for the small losses alone not to matter.

    The threshold is the largest one for which they do not, by e^−spare; None where there is none.
    """
    cut, _ = _cut_for_jumps(loss, strip, epsilon, bits, spare)
    best: Jumps | None = None
    low, high = 0, len(_SHARES)
    while low < high:
        middle = (low + high) // 2
        jumps = _apart(cut, _SHARES[middle], strip, epsilon, bits)
        large = None if jumps is None else saddle_value(jumps, strip, epsilon, bits)
        if jumps is None or large is None:
            low = middle + 1
            continue
        small = saddle_value(jumps.small, strip, epsilon, bits)
        if small is None or small[0] < large[0] - bits * _LOG_2 - spare:
            best, high = jumps, middle
        else:
            low = middle + 1
    return cut, best


@functools.lru_cache(maxsize=64)
def plan_of_both(loss: Loss, strip: Strip, epsilon: float, bits: int) -> tuple[Loss, Jumps]:
    """Return the cut loss, and how it is taken apart for both parts to have a line.

    The threshold is the largest one below which the small losses alone do not depend on it: there
    they are thin, tilted to a sum of ε.
    """
    cut, _ = _cut_for_jumps(loss, strip, epsilon, bits, _SPARE)
    last = math.inf
    for share in _SHARES:
        jumps = _apart(cut, share, strip, epsilon, bits)
        small = None if jumps is None else saddle_value(jumps.small, strip, epsilon, bits)
        if jumps is None or small is None:
            continue
        if abs(last - small[0]) < _LEVEL:
            return cut, jumps
        last = small[0]
    raise UndecidedError(f"Small and large losses were not told apart at epsilon={epsilon:.6g}.")


def _cut_for_jumps(
    loss: Loss, strip: Strip, epsilon: float, bits: int, spare: float
) -> tuple[Loss, float]:
    """Return the loss, cut, and about −ln of the integral."""
    found = saddle_value(chosen(loss, strip, epsilon, bits), strip, epsilon, bits)
    if found is None or not any(isinstance(part, MixtureTransform) for part, _ in loss.factors):
        raise UndecidedError(f"No large losses were found for epsilon={epsilon:.6g}.")
    depth = -min(found[0], level_of_one(loss, epsilon))
    return cut_off(loss, depth + bits * _LOG_2 + spare, rounded(found[1])), depth


def _apart(loss: Loss, share: Fraction, strip: Strip, epsilon: float, bits: int) -> Jumps | None:
    """Take the loss apart where the factor with the largest losses has a share of its cut."""
    cuts = [
        (part, float(part.cut.at))
        for part, _ in loss.factors
        if isinstance(part, MixtureTransform) and part.cut is not None
    ]
    ends = [float(part.floats().log_density(np.array([float(share) * at]))[0]) for part, at in cuts]
    threshold = max(ends)
    sharpest = _split(loss, threshold, None, bits)  # whose saddles are the true ones
    large = None if sharpest is None else saddle_value(sharpest, strip, epsilon, bits)
    if sharpest is None or large is None:
        return None
    small = saddle_value(sharpest.small, strip, epsilon, bits)
    least = rounded(large[1])
    most = rounded(_most_tilt(sharpest.small) if small is None else small[1])
    found = _split(loss, threshold, max(least, most), bits)
    return found or _split(loss, threshold, least, bits) or sharpest


def _most_tilt(small: Loss) -> float:
    """Return a tilt at which the small losses are as thick at their threshold as at 0."""
    return max(
        0.5 * largest_tilt(part, float(part.cut.at))
        for part, _ in small.factors
        if isinstance(part, MixtureTransform) and part.cut is not None
    )


def _split(loss: Loss, threshold: float, tilt: float | None, bits: int) -> Jumps | None:
    """Split every factor with losses above a threshold there, as smoothly as a tilt allows."""
    small: list[tuple[Transform, int]] = []
    large: list[MixtureTransform | None] = []
    for part, count in loss.factors:
        found = None
        if isinstance(part, MixtureTransform) and part.cut is not None:
            floats = part.floats()
            odds = math.expm1(threshold) + math.exp(floats.log_share)
            log_odds = math.log(odds) if odds > 0 else -math.inf
            at = (log_odds - floats.log_share) / floats.mu + 0.5 * floats.mu
            if _LEAST_PLACE < at < float(part.cut.at) - _APART:
                found = _threshold(part, at, tilt, bits)
        if isinstance(part, MixtureTransform) and found is not None:
            small.append((replace(part, cut=found), count))
            large.append(replace(part, rise=found))
        else:
            small.append((part, count))
            large.append(None)
    return Jumps(Loss(tuple(small)), tuple(large)) if any(large) else None


def _threshold(part: MixtureTransform, at: float, tilt: float | None, bits: int) -> Cut | None:
    """Return the cut for which the large losses are smoothest, among those that tame the tilt."""
    place = Fraction(round(at * 16), 16)
    if tilt is None:
        return Cut(place, _WIDTHS[-1])
    best: tuple[float, Cut] | None = None
    for width in _WIDTHS:
        cut = Cut(place, width)
        floats = replace(part, cut=cut).floats()
        end = float(place) + 12 * float(width)
        if floats.rates(-40.0, end, tilt + 1, 0.0)[1] < 1:
            continue
        slowness = _slowness(replace(part, rise=cut), bits)
        if best is None or slowness < best[0]:
            best = slowness, cut
    return None if best is None else best[1]


def _slowness(jump: MixtureTransform, bits: int) -> float:
    """Return about the t where the transform of large losses is 2^−bits of its size.

    Beside the threshold it decays like e^{−(tτL′)²/2}, where L′ is least as far left of it as the
    measure does not vanish.
    """
    floats = jump.floats()
    reach = math.sqrt(2 * bits * _LOG_2)
    left = np.array([floats.rise - reach * floats.rise_width])
    return reach / (floats.rise_width * floats.mu * float(floats.share(left)[0]))


def one_jump(loss: Loss, log_delta: float) -> tuple[float, float]:
    """Return ε with ln δ(ε) = log_delta, and the slope, if one release alone has a large loss."""
    apart = start(loss, log_delta)
    for _ in range(_MOST_STEPS):
        found = _single(loss, apart)
        move = (found.log_delta - log_delta) / found.s
        apart = min(max(apart + move, 0.3 * apart), 3 * apart)
        if abs(move) < _BESIDE * apart:
            return found.epsilon + move, -found.s
    raise UndecidedError(f"No single loss explains ln(delta)={log_delta:.6g}.")


def level_of_one(loss: Loss, epsilon: float) -> float:
    """Return ln δ(ε) if one release alone has a large loss; 0 if it cannot have it."""
    apart = epsilon
    try:
        for _ in range(_FEW_STEPS):
            found = _single(loss, apart)
            apart = max(apart + epsilon - found.epsilon, 0.5 * apart)
    except (UndecidedError, ArithmeticError):
        return 0.0
    return found.log_delta if abs(found.epsilon - epsilon) < 0.1 * epsilon else 0.0


@final
@dataclass(frozen=True)
class _Single:
    """A point of the profile if one release alone has a large loss."""

    epsilon: float
    log_delta: float
    s: float


def _single(loss: Loss, apart: float) -> _Single:
    """Return the point where the large loss has to exceed `apart`.

    With δ₁ the profile of one release, of slope −s in its logarithm, and K(s) = Σ k ln T(s) for
    the small losses, ln δ(ε) is about ln k + ln δ₁(ε − K′(s)) + K(s) − sK′(s).
    """
    part, count = max(
        ((part, count) for part, count in loss.factors if isinstance(part, MixtureTransform)),
        key=lambda row: row[0].floats().log_share + math.log(row[1]),
    )
    pair = SubsampledPair(part.pair, part.sampling_prob, part.mixed_first)
    with ctx.workprec(_ROUGH):
        here, beside = (
            float(pair.hockey_stick(ExactReal.of_rational(Fraction(e))).log().mid())
            for e in (apart, apart * (1 + _BESIDE))
        )
    s = (here - beside) / (apart * _BESIDE)
    if not (apart > 0 and s > 0):
        raise UndecidedError(f"No single large loss is near {apart:.6g}.")
    size, mean, _ = estimator(_small_part(loss, apart, s, here)).cumulants(s)
    return _Single(apart + mean, here + math.log(count) + size - s * mean, s)


def _small_part(loss: Loss, large: float, s: float, log_delta: float) -> Loss:
    """Return the loss cut at half of a large one."""
    found = _split(cut_off(loss, -log_delta + _BITS), 0.5 * large, s, _BITS)
    if found is None:
        raise UndecidedError(f"No losses are small beside {large:.6g}.")
    return found.small
