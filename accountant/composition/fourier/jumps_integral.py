"""Integrals where large losses are rare, with the transforms of `jumps`.

*Thresholds*, where small losses end and large ones begin, are chosen by floats: nothing that is
proved rests on them. One serves if the small losses alone hardly ever add up to ε, and if the large
ones have a smooth law. Whether they do is estimated at saddle points, and where one release alone
has a large loss by its own profile.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np
from flint import arb

from dpassay.accountant.composition.fourier.certified import MOST_NODES, Kernel, integral
from dpassay.accountant.composition.fourier.jumps import Jumps
from dpassay.accountant.composition.fourier.measure import (
    LOSS,
    Loss,
    Measure,
    are_tame,
    chosen,
    coarse,
    cut_off,
    estimator,
    is_narrow,
    is_tame,
    near,
    rounded,
    saddle_value,
)
from dpassay.accountant.composition.fourier.saddle import Strip, saddle
from dpassay.accountant.composition.fourier.sure import (
    beyond,
    decided_cut,
    place_of,
    slack,
    sure_cut,
)
from dpassay.accountant.composition.losses.transform import (
    Cut,
    MixtureTransform,
    Transform,
    overlap,
)
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.chernoff import log_peak
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.subsampled import SubsampledPair

_LOG_2 = math.log(2)
_ROUGH = 24
"""Bits of Chernoff's bounds, besides those of the count: bounds need few digits."""
_SPARE = 6.0
"""−ln of the share of what is asked for that cuts may take: more moves them out to where moments
explode, less shows in the width."""
_FEWEST = 24
"""Bits that an integral is asked for at least, and by which one that lacks some is improved."""
_MOST_EXTRA = 400
"""Most bits by which small and large losses may cancel, and are computed finer for it."""
_MANY = 64
"""Losses from which on small ones mix with those that decide alone: of fewer, large ones are taken
apart first, as none is sure to decide alone."""
_SHORT = 512
"""Nodes of such a line up to which it comes first where floats have no sum."""
_SHARES = (1.0, 0.5, 0.25)
"""Shares of a tilt at which Chernoff's bound of small losses is tried: floats may overrate it."""


def jump_integral(loss: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int) -> arb:
    """Return a ball around G(ε) of relative accuracy of about 2^−bits.

    `strip` reaches to the right: large losses count there. What the cuts take from the laws is
    added in closed form (`sure.beyond`).

    Raises UndecidedError where no threshold tells small losses from large ones, or where a line
    has too many nodes.
    """
    at, planned = near(float(epsilon)), coarse(bits)

    def by_one(asked: _Question) -> tuple[Loss, Jumps | None, arb]:
        """Cut losses that decide alone."""
        sure = decided_cut(loss, strip, float(epsilon), planned)
        return sure, None, asked.beside(sure, arb(0), None)

    def by_all(asked: _Question) -> tuple[Loss, Jumps | None, arb]:
        """Take large losses apart from small ones."""
        lowest = log_level(loss, strip, at, planned) - planned * _LOG_2 - _SPARE
        single = single_at(loss, at)
        cut = cut_for_jumps(loss, strip, at, planned, _SPARE)
        jumps = window(cut, strip, at, planned, lowest)
        if jumps is None:
            raise UndecidedError(f"No losses are large at epsilon={float(epsilon):.6g}.")
        expected = None if single is None else single.log_delta
        return cut, jumps, asked.mostly_large(jumps, expected)

    ways = (by_one, by_all) if loss.count > _MANY else (by_all, by_one)
    # First by short sums, and else to one bit more, for what is added.
    asks = (bits, _SHORT), (bits + 1, MOST_NODES)
    for ask, way in itertools.product(asks, ways):
        with contextlib.suppress(UndecidedError):
            ends, jumps, part = way(_Question(kernel, strip, epsilon, *ask))
            found = part + beyond(loss, ends, kernel, epsilon, part, bits)
            if jumps is not None:
                found += arb(0, slack(ends, jumps, kernel, epsilon))
            if is_narrow(found, bits):
                return found
    raise UndecidedError(f"Small losses hide the large ones at epsilon={float(epsilon):.6g}.")


@final
@dataclass(frozen=True)
class _Question:
    """Which integral is asked for, at which ε, to how many bits."""

    kernel: Kernel
    strip: Strip
    epsilon: ExactReal
    bits: int
    most: int
    """Nodes of lines that may be summed in balls."""

    def mostly_large(self, jumps: Jumps, expected: float | None) -> arb:
        """Return the integrals of outcomes with large losses and of all others.

        The latter are bounded where that is enough.
        """
        total = self.beside(jumps, arb(0), expected)
        with contextlib.suppress(UndecidedError):
            found = total + arb(0).union(self._small_alone(jumps))
            if is_narrow(found, self.bits):
                return found
        return total + self.beside(jumps.small, total, _log(total))

    def beside(self, measure: Measure, known: arb, expected: float | None) -> arb:
        """Return the integral of a measure, to as many bits more as cancel with what is known.

        They are those by which its saddle-point value is above the logarithm that is expected of
        the sum, and more where that is not enough.
        """
        asked, extra = self.bits, 0
        if expected is not None:
            found = saddle_value(measure, self.strip, float(self.epsilon), self.bits)
            if found is not None:
                above = math.ceil((found.log_value - expected) / _LOG_2)
                more = min(max(above, 0), _MOST_EXTRA) if known.is_zero() else min(above, 0)
                asked = max(self.bits + more, _FEWEST)
        while True:
            known_by = self.kernel, self.strip, self.epsilon, asked + extra
            value = integral(measure, *known_by, most=self.most)
            missing = self.bits - (known + value).rel_accuracy_bits()
            if missing <= LOSS or extra > _MOST_EXTRA:
                return value
            extra += max(missing, _FEWEST)

    def _small_alone(self, jumps: Jumps) -> arb:
        """Return a bound of the integral without large losses, at a tilt found by floats."""
        try:
            tilt = tilt_of_small(jumps, self.strip, float(self.epsilon))[0]
        except ArithmeticError as error:
            raise UndecidedError(f"No bound of the small losses alone: {error}.") from error
        for share in _SHARES:
            with contextlib.suppress(UndecidedError):
                found = self._bound(jumps.small, share * tilt)
                if found.is_finite():
                    return found
        raise UndecidedError("No bound was found for the small losses alone.")

    def _bound(self, measure: Measure, tilt: float) -> arb:
        """Return Chernoff's bound of an integral, from ln M(c) at some c > 0.

        For δ it is M(c) e^{−cε} sup_x (1 − e^{−x}) e^{−cx}, which is c^c/(1 + c)^{1 + c}.
        """
        with ctx.workprec(_ROUGH + measure.count.bit_length()):
            c = ball(Fraction(tilt))
            size = measure.log_upper(Fraction(tilt)) - c * self.epsilon.ball()
            if self.kernel == Kernel.CALL:
                size += log_peak(c)
            return size.exp().upper()


def _log(value: arb) -> float:
    """Return the logarithm of a sum of integrals. Raises UndecidedError where they cancel."""
    if not value > 0:
        raise UndecidedError("Both parts of an integral cancel.")
    return float(value.log().mid())


_BITS = 46
"""Accuracy in bits to which small losses are taken for all, where no question says one."""
_USUAL = Fraction(13, 16)
"""Share of a cut from which down a threshold is kept where none makes small losses negligible."""
_PLACES = tuple(Fraction(i, 32) for i in (30, 28, 26, 24, 22, 20, 18, 15, 12, 10, 8, 6))
"""Shares of a cut at which thresholds are tried: high ones, tried first, leave few large losses."""
_WIDTHS = tuple(Fraction(1, 1 << i) for i in range(2, 8))
"""Widths of thresholds: on sharp ones the large losses' transform falls slowly, on smooth ones the
small losses' tilted law does not fall."""
_SURE = 4.0
"""−ln of the share of what may be lost that losses beyond a cut leave undecided."""
_STEEPER, _GENTLER = 2.0, 0.25
"""Tilt that a cut shall tame, in units of the slope of ln δ₁; and the factor that lowers one that
no threshold tames."""
_APART = 0.5
"""Least distance of a threshold from its cut: nearer ones leave no large losses between."""
_LEAST_PLACE = 1.0
"""Least x of a threshold: nearer the middle of the normal law no loss is rare."""
_FEW_STEPS = 6
"""The same where ε is known, and only whether one loss explains it is asked."""
_SETTLED = 1e-3
"""Relative error of ε that ends such a search: thresholds are no finer."""
_TILTED, _FURTHER = 1.3, 1.5
"""Factors between the tilts of a search, and beyond the one that is found."""
_MOST_TILTS = 12
"""Tilts on either side of a saddle at which Chernoff's bound is asked for."""
_BESIDE = 1e-6
"""Relative step of the slope of ln δ₁, and of the last move."""
_PROFILE_BITS = 128
"""Bits of the profile of one release, whose δ₁ may be as small as δ."""
_BELOW = 6.0
"""−ln of the share of the accuracy that small losses alone may have: Chernoff's bound overrates
them."""


@functools.lru_cache(maxsize=64)
def window(whole: Loss, strip: Strip, epsilon: float, bits: int, log_error: float) -> Jumps | None:
    """Return how a cut loss is taken apart, if possible so that the small losses do not matter.

    Chernoff's bound of these shall be far below what the large ones add up to. Where it is at no
    threshold, the losses are taken apart a little below their cut. The two cuts overlap by less
    than e^log_error. None where no threshold serves.
    """
    default: Jumps | None = None
    start: float | None = None
    for share in _PLACES:
        jumps = _apart(whole, share, strip, epsilon, bits, log_error, start)
        large = None if jumps is None else saddle_value(jumps, strip, epsilon, bits, start)
        if jumps is None or large is None:
            continue
        start = large.c
        small = tilt_of_small(jumps, strip, epsilon)[1]
        if small < large.log_value - bits * _LOG_2 - _BELOW:
            return jumps
        if share <= _USUAL:
            default = default or jumps
    return default


def tilt_of_small(jumps: Jumps, strip: Strip, epsilon: float) -> tuple[float, float]:
    """Return a tilt c, and ln of Chernoff's bound M(c) e^{−cε} |κ(c)| for the small losses alone.

    The bound is convex in c; the search begins at the saddle of the large losses, and stays near
    it: small losses that cannot reach ε have their least bound where floats say nothing.
    """
    c = saddle(jumps, strip, epsilon).c
    found = c, chernoff(jumps.small, strip, epsilon, c)
    for factor in (_TILTED, 1 / _TILTED):
        for _ in range(_MOST_TILTS):
            c *= factor
            if not are_tame(jumps.small, c):
                break
            try:
                value = chernoff(jumps.small, strip, epsilon, c)
            except (ArithmeticError, UndecidedError):
                break
            if not value < found[1]:
                break
            found = c, value
        c = found[0]
    return found


def chernoff(small: Loss, strip: Strip, epsilon: float, c: float) -> float:
    """Return ln of M(c) e^{−cε} |κ(c)|, without proof."""
    poles = sum(math.log(abs(c - pole)) for pole in strip.poles)
    return small.cumulants(c)[0] - c * epsilon - poles


def log_level(loss: Loss, strip: Strip, epsilon: float, bits: int) -> float:
    """Return about ln of the integral: what a single large loss makes of it, if one can.

    Raises UndecidedError where no losses are large.
    """
    found = saddle_value(chosen(loss, strip, epsilon, bits), strip, epsilon, bits)
    if found is None or not any(isinstance(part, MixtureTransform) for part, _ in loss.factors):
        raise UndecidedError(f"No large losses were found for epsilon={epsilon:.6g}.")
    single = single_at(loss, epsilon)
    return found.log_value if single is None else single.log_delta


def cut_for_jumps(loss: Loss, strip: Strip, epsilon: float, bits: int, spare: float) -> Loss:
    """Return the loss, cut where larger losses do not matter or decide alone."""
    depth = -log_level(loss, strip, epsilon, bits)
    found = saddle_value(chosen(loss, strip, epsilon, bits), strip, epsilon, bits)
    single = single_at(loss, epsilon)
    tilt = None if found is None else rounded(found.furthest)
    far = cut_off(loss, depth + bits * _LOG_2 + spare, tilt)
    if single is None:
        return far
    try:
        near = sure_cut(loss, epsilon, -depth - bits * _LOG_2 - _SURE, rounded(_STEEPER * single.s))
    except UndecidedError:
        return far
    return near if _threshold_at(near, Fraction(1)) < _threshold_at(far, Fraction(1)) else far


def _apart(  # noqa: PLR0917
    loss: Loss,
    share: Fraction,
    strip: Strip,
    epsilon: float,
    bits: int,
    log_error: float,
    start: float | None,
) -> Jumps | None:
    """Take the loss apart where the factor with the largest losses has a share of its cut."""
    threshold = _threshold_at(loss, share)
    sharpest = _split(loss, threshold, None, bits, log_error)  # whose saddles are the true ones
    large = None if sharpest is None else saddle_value(sharpest, strip, epsilon, bits, start)
    if sharpest is None or large is None:
        return None
    small = saddle_value(sharpest.small, strip, epsilon, bits, large.c)
    least = rounded(large.furthest)
    most = large.furthest if small is None else small.furthest
    target = large.log_value - bits * _LOG_2 - _BELOW
    most = rounded(_enough(sharpest.small, strip, epsilon, large.c, most, target))
    while most > least:
        if (found := _split(loss, threshold, most, bits, log_error)) is not None:
            return found
        most *= _GENTLER
    return _split(loss, threshold, least, bits, log_error)


def _threshold_at(loss: Loss, share: Fraction) -> float:
    """Return the largest loss at this share of a cut."""
    return max(
        float(part.floats().log_density(np.array([float(share * part.cut.at)]))[0])
        for part, _ in loss.factors
        if isinstance(part, MixtureTransform) and part.cut is not None
    )


def _enough(  # noqa: PLR0917
    small: Loss, strip: Strip, epsilon: float, least: float, most: float, target: float
) -> float:
    """Return a tilt of at most `most` at which Chernoff's bound is e^target, if there is one."""
    c, low = least, max(strip.low, -1.0)
    while c < most:
        try:
            if chernoff(small, strip, epsilon, c) < target:
                return min(c + (_FURTHER - 1) * (c - low), most)
        except (ArithmeticError, UndecidedError):
            break
        c += (_TILTED - 1) * (c - low)
    return most


def _split(
    loss: Loss, threshold: float, tilt: float | None, bits: int, log_error: float = math.inf
) -> Jumps | None:
    """Split every factor with losses above a threshold there, as smoothly as a tilt allows."""
    small: list[tuple[Transform, int]] = []
    large: list[MixtureTransform | None] = []
    for part, count in loss.factors:
        found = None
        if isinstance(part, MixtureTransform) and part.cut is not None:
            floats = part.floats()
            at = place_of(floats, threshold)
            if _LEAST_PLACE < at < float(part.cut.at) - _APART:
                found = _threshold(part, part.cut, at, tilt, bits, log_error - math.log(count))
        if isinstance(part, MixtureTransform) and found is not None:
            small.append((replace(part, cut=found), count))
            large.append(replace(part, rise=found))
        else:
            small.append((part, count))
            large.append(None)
    return Jumps(Loss(tuple(small)), tuple(large)) if any(large) else None


def _threshold(  # noqa: PLR0917
    part: MixtureTransform, end: Cut, at: float, tilt: float | None, bits: int, log_error: float
) -> Cut | None:
    """Return the cut for which the large losses are smoothest, among those that tame the tilt."""
    place = Fraction(round(at * 16), 16)
    if tilt is None:
        return Cut(place, _WIDTHS[-1])
    best: tuple[float, Cut] | None = None
    for width in _WIDTHS:
        cut = Cut(place, width)
        if not is_tame(part, cut, tilt + 1) or overlap(part, cut, end) > log_error:
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


@functools.lru_cache(maxsize=64)
def single_at(loss: Loss, epsilon: float) -> Single | None:
    """Return the point of the profile at ε if one release alone has a large loss."""
    apart = epsilon
    try:
        for _ in range(_FEW_STEPS):
            found = _single(loss, apart)
            if abs(found.epsilon - epsilon) < _SETTLED * epsilon:
                break
            apart = max(apart + epsilon - found.epsilon, 0.5 * apart)
    except (UndecidedError, ArithmeticError):
        return None
    return found if abs(found.epsilon - epsilon) < 0.1 * epsilon else None


@final
@dataclass(frozen=True)
class Single:
    """A point of the profile if one release alone has a large loss."""

    epsilon: float
    log_delta: float
    s: float


def _single(loss: Loss, apart: float) -> Single:
    """Return the point where the large loss has to exceed `apart`.

    With δ₁ the profile of one release, of slope −s in its logarithm, and K(s) = Σ k ln T(s) for
    the small losses, ln δ(ε) is about ln k + ln δ₁(ε − K′(s)) + K(s) − sK′(s).
    """
    part, count = max(
        ((part, count) for part, count in loss.factors if isinstance(part, MixtureTransform)),
        key=lambda row: _log_tail(row[0], apart) + math.log(row[1]),
    )
    pair = SubsampledPair(part.pair, part.sampling_prob, part.mixed_first)
    with ctx.workprec(_PROFILE_BITS):
        here, beside = (
            float(pair.hockey_stick(ExactReal.of_rational(Fraction(e))).log().mid())
            for e in (apart, apart * (1 + _BESIDE))
        )
    s = (here - beside) / (apart * _BESIDE)
    if not (apart > 0 and s > 0):
        raise UndecidedError(f"No single large loss is near {apart:.6g}.")
    size, mean, _ = estimator(_small_part(loss, apart, s, here)).cumulants(s)
    return Single(apart + mean, here + math.log(count) + size - s * mean, s)


def _log_tail(part: MixtureTransform, large: float) -> float:
    """Return about ln P(L > large) for one release."""
    floats = part.floats()
    x = place_of(floats, large)
    shifted = floats.log_share - 0.5 * max(x - floats.mu, 0.0) ** 2
    return max(shifted, floats.log_rest - 0.5 * max(x, 0.0) ** 2)


def _small_part(loss: Loss, large: float, s: float, log_delta: float) -> Loss:
    """Return the loss cut at half of a large one."""
    found = _split(cut_off(loss, -log_delta + _BITS), 0.5 * large, s, _BITS)
    if found is None:
        raise UndecidedError(f"No losses are small beside {large:.6g}.")
    return found.small
