"""Contour integrals where one large loss decides: a closed form for what a cut removes.

Consider a sum that reaches ε by one large loss of one release, among many small losses. Then no
vertical line is good for M(z) e^{−zε}κ(z). At the tilt at which the mean of the sum is ε, most of M
comes from outcomes without a jump, or from jumps that are too large, and their contributions
cancel. But a loss somewhat above ε decides alone; all other losses are at most about ε, and the
line through their own saddle point is short.

*Notation.* Cut the normal laws of a product by χ_i (`losses.transform.Cut`). Let S be the sum of
all losses, and μ the measure of the outcomes that the cuts remove: those with at least one large
loss. Its masses under P and Q have closed forms,

    p = 1 − Π(1 − p_i)^{k_i},    q = ∫ e^{−S} dμ = 1 − Π(1 − q_i)^{k_i}.

With the transforms of the small and of the large losses of a factor, T_i(z) = E[χ_i w^s] and
J_i(z) = E[(1 − χ_i) w^s], s = z + 1, the transform of μ is F = Π (T_i + J_i)^{k_i} − Π T_i^{k_i}.

*Statement.* To the integrals of `fourier.measure` to the right of all poles, μ contributes

    1/(z(z + 1)):  p − e^ε q + G,     1/z:  p − G,     1/(z + 1):  e^ε q − G,

where G is the integral over μ of the same kernel to the left of all poles, and
0 ≤ G ≤ E(c) = F(c) e^{−cε} for every real c there.

*Proof.* (1 − e^{ε−S})⁺ = 1 − e^{ε−S} + (e^{ε−S} − 1)⁺ gives the first contribution, and the others
are complements likewise. The bound on G is Chernoff's.

G belongs to outcomes with a large loss and yet S ≤ ε. A cut a little above ε makes it as small as
desired, because the other losses are bounded below, or hardly ever sum to much less than 0. Floats
choose the place of the cut; any choice is valid.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.composition.fourier.estimates import CALL
from dpassay.accountant.composition.fourier.measure import (
    LOSS,
    MOST_NODES,
    Kernel,
    Loss,
    all_decay,
    coarse,
    estimator,
    integral,
    is_narrow,
    rounded,
    saddle_value,
)
from dpassay.accountant.composition.fourier.saddle import Strip
from dpassay.accountant.composition.losses.bounds import ROOT_HALF, Mixture, log_half_erfc_at
from dpassay.accountant.composition.losses.transform import Cut, MixtureTransform, Transform
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.solve import halved, shortened

_REMEDY = "Ask for a larger relative_width, such as 1e-6."
_NEGLIGIBLE = -30.0
"""ln x below which ln(1 + x) equals x in floats, to 1e-13."""
_LARGEST = 600.0
"""Largest exponent that is used; the largest float is about e^709."""
_FLAT = 1e-6
"""Least second derivative of ln F, relative to that of ln Π T: rounding could make it negative."""


@final
@dataclass(frozen=True)
class Jumps:
    """F(z) = Π (T_i + J_i)^{k_i} − Π T_i^{k_i}."""

    small: Loss
    """The transforms T_i and the counts k_i."""
    large: tuple[MixtureTransform | None, ...]
    """The transforms J_i; None for factors without large losses."""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.small, self.large))

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln F(c) and its first two derivatives, in floats without error bounds.

        With D = Σ k_i ln(1 + J_i/T_i), ln F = Σ k_i ln T_i + ln(e^D − 1).
        """
        return _cumulants(self, c)

    def log_upper(self, c: Fraction) -> arb:
        """Return an upper bound on ln F(c), since F(c) increases with every T_i(c) and J_i(c)."""
        total, excess = arb(0), arb(0)
        for (part, count), jump in zip(self.small.factors, self.large, strict=True):
            size = part.log_upper(c)
            total += count * size
            if jump is not None:
                excess += count * (jump.log_upper(c) - size).exp().log1p()
        return (total + excess.expm1().log()).upper()


@functools.lru_cache(maxsize=512)
def _cumulants(jumps: Jumps, c: float) -> tuple[float, float, float]:
    size, mean, variance = 0.0, 0.0, 0.0
    terms: list[_Term] = []
    for (part, count), jump in zip(jumps.small.factors, jumps.large, strict=True):
        small = part.estimate().cumulants(c)
        size += count * small[0]
        mean += count * small[1]
        variance += count * small[2]
        if jump is not None:
            large = jump.estimate().cumulants(c)
            ratio = large[0] - small[0]
            log_share = -math.log1p(math.exp(-ratio)) if ratio > _NEGLIGIBLE else ratio
            terms.append(
                _Term(
                    math.log(count),
                    _log_log1p(ratio),
                    log_share,
                    large[1] - small[1],
                    large[2] - small[2],
                )
            )
    logs = [term.log_count + term.log_excess for term in terms]
    top = max(logs)
    log_d = top + math.log(math.fsum(math.exp(each - top) for each in logs))
    first = second = 0.0  # D′/D and D″/D
    for term in terms:
        share = math.exp(term.log_count + term.log_share - log_d)
        first += share * term.mean
        second += share * (term.variance - math.expm1(term.log_share) * term.mean**2)
    d = math.exp(log_d)
    if d > _LARGEST:  # ln(e^D − 1) = D
        return size + d, mean + d * first, variance + d * second
    growth = d / -math.expm1(-d) if d > 0 else 1.0  # D e^D/(e^D − 1)
    log_excess = log_d if log_d < _NEGLIGIBLE else math.log(math.expm1(d))
    bend = growth * second - first * first * growth * (growth - d)
    return size + log_excess, mean + growth * first, max(variance + bend, _FLAT * variance)


@final
@dataclass(frozen=True)
class _Term:
    """One factor: ln k, ln ln(1 + J/T), ln(J/(T + J)), and the mean and variance of J minus T."""

    log_count: float
    log_excess: float
    log_share: float
    mean: float
    variance: float


def _log_log1p(log_value: float) -> float:
    """Return ln ln(1 + e^x)."""
    if log_value < _NEGLIGIBLE:
        return log_value
    return math.log(math.log1p(math.exp(log_value)) if log_value < 700 else log_value)


_LARGE = 700.0
"""Largest loss whose exponential is a finite float."""
_CUT_WIDTHS = tuple(Fraction(1, 1 << i) for i in range(2, 9))
"""Widths of cuts, the smoothest first: a sharper cut allows larger tilts but needs finer nodes."""
_GRAIN = 64
"""A place is rounded up to a multiple of one over this, so that neighbouring questions share it."""
_WIDER, _THRESHOLD_MARGIN = 1.5, 0.1
"""The distance of the estimated threshold from ε is multiplied by the first number, and this share
of ε is added, so that cuts can be smooth."""
_EDGE = 6.0
"""Widths between the places of ε and of a cut: if there are fewer, losses near ε are removed too,
which do not decide alone."""
_GROWTH, _LEAP = 1.5, 16.0
"""Least and largest ratio of successive tilts: Chernoff's bound is flat near its minimum, and
unknown in floats far beyond."""
_TILT_BITS = 3
"""Bits of a tilt: with more, fewer questions share its bounds."""
_FARTHEST = 2.0**35
"""Largest tilt that is tried; a larger one never helps."""
_FIRST_TILT = 2.0
"""First tilt, minus 1, in units of 1/(|ε| + least sum): a smaller one hardly bounds anything."""
_BOUND_BITS, _MASS_BITS = 24, 128
"""Bits of a bound, in addition to those of the count; and additional bits of masses, which cancel.
"""
_LOG_UNDECIDED_SHARE = 3.0
"""−ln of the share of the error that undecided outcomes may take."""
_PLACE_BITS = 5
"""Bits of the distance from the least sum to the ε of a cut, and bits of a first tilt: with fewer,
more questions share cuts, but lines are longer."""
_ROUNDS = 6
"""Times that a cut is placed again for the value and tilt that it leads to."""
_SAME_LEVEL = 3.0
"""Difference of ln G below which a cut counts as placed for the value it leads to."""
_LAST_STEP = 1e-9
"""Relative size of the last step of an estimate; the next one would be about its square."""
_SINGLE_RANGE, _SINGLE_BISECTIONS = (-20.0, 6.5), 12
"""Natural logarithms of the range in which the ε of a single release is sought, and the number of
bisections, which find it to 1 %."""
_TILT_GUESS = 3.2
"""First guess of the largest tilt needed, in units of the smaller one of the tilts of a normal law
and of a single release."""
_TILT_MARGIN = 1.25
"""Factor by which the next tilt exceeds the needed one, so that the search ends."""


def deciding_cut(loss: Loss, epsilon: float, log_error: float, tilt: float) -> Loss:
    """Return the loss, cut such that a loss beyond the cuts decides alone, up to e^log_error.

    The threshold exceeds ε by what the other losses may fall below 0: as for a normal law, or all
    of them to their least values. The cuts are as smooth as possible there, yet sharp enough for
    the remaining losses to stay small under the tilt.

    Raises UndecidedError if there is no such cut.
    """
    away = math.sqrt(2 * _spread(loss) * max(_log_mass_above(loss, epsilon) - log_error, 0.0))
    if all(isinstance(part, MixtureTransform) for part, _ in loss.factors):
        away = min(away, least_sum(loss))
    threshold = epsilon + _WIDER * away + _THRESHOLD_MARGIN * epsilon
    room = min(
        place_of(part.floats(), threshold) - place_of(part.floats(), epsilon)
        for part, _ in loss.factors
        if isinstance(part, MixtureTransform)
    )
    for width in _CUT_WIDTHS:
        if width * _EDGE > room and width > _CUT_WIDTHS[-1]:
            continue
        cut = _cut(loss, threshold, width)
        if all_decay(cut, tilt) and _decides(loss, cut, epsilon, log_error):
            return cut
    raise UndecidedError(f"No single loss outweighs all others at epsilon={epsilon:.6g}. {_REMEDY}")


def least_sum(loss: Loss) -> float:
    """Return −Σ k ln(1 − q), the least sum of the losses of samples with its sign changed."""
    return -sum(
        count * part.floats().log_rest
        for part, count in loss.factors
        if isinstance(part, MixtureTransform)
    )


def _spread(loss: Loss) -> float:
    """Return the variance of the sum under Q, where hardly any loss is large."""
    return max(loss.cumulants(-1.0)[2], 1e-300)


def _log_mass_above(loss: Loss, threshold: float) -> float:
    """Return about ln of the mass under P of the outcomes with a loss above the threshold."""
    logs = []
    for part, count in loss.factors:
        if isinstance(part, MixtureTransform):
            floats = part.floats()
            x = place_of(floats, threshold)
            for log_share, mean in ((floats.log_rest, 0.0), (floats.log_share, floats.mu)):
                log = log_share + log_half_erfc_at((x - mean) * ROOT_HALF)
                logs.append(math.log(count) + log)
    top = max(logs)
    return top + math.log(math.fsum(math.exp(each - top) for each in logs))


def place_of(floats: Mixture, threshold: float) -> float:
    """Return the x where the loss equals the threshold, or −∞ if every loss is larger."""
    if threshold > _LARGE:  # e^threshold would overflow, and the share is negligible
        log_odds = threshold
    else:
        odds = math.expm1(threshold) + math.exp(floats.log_share)
        log_odds = math.log(odds) if odds > 0 else -math.inf
    return (log_odds - floats.log_share) / floats.mu + 0.5 * floats.mu


def _cut(loss: Loss, threshold: float, width: Fraction) -> Loss:
    factors: list[tuple[Transform, int]] = []
    for part, count in loss.factors:
        if isinstance(part, MixtureTransform):
            at = Fraction(math.ceil(place_of(part.floats(), threshold) * _GRAIN), _GRAIN)
            factors.append((replace(part, cut=Cut(at, width)), count))
        else:
            factors.append((part, count))
    return Loss(tuple(factors))


def _decides(loss: Loss, cut: Loss, epsilon: float, log_error: float) -> bool:
    """Whether G is below e^log_error at some tilt; the search hardly passes the first such tilt."""
    for _, value, slope in _tilts(loss, cut, epsilon, log_error):
        if value < log_error or slope >= 0:
            return value < log_error
    return False


def _tilts(
    loss: Loss, cut: Loss, epsilon: float, enough: float
) -> Iterator[tuple[float, float, float]]:
    """Yield tilts a > 1 with about ln F(−a) e^{aε} and its slope, up to the minimum.

    This function of a is convex, so Newton's steps do not pass the first a where it is `enough`.
    """
    taken = _removed(cut)
    first = shortened(_FIRST_TILT / (abs(epsilon) + least_sum(loss) or 1.0), _PLACE_BITS)
    low, high, tilt = 1.0, math.inf, 1 + first
    while high > _GROWTH * low and low < _FARTHEST:
        try:
            size, mean, _ = taken.cumulants(-tilt)
        except (ArithmeticError, UndecidedError):
            high, wanted = tilt, math.inf
        else:
            value, slope = size + tilt * epsilon, epsilon - mean
            yield tilt, value, slope
            low, high = (tilt, high) if slope < 0 else (low, tilt)
            wanted = tilt + (enough - value) / slope if slope < 0 else math.inf
        tilt = shortened(min(max(wanted, _GROWTH * low), _LEAP * low), _TILT_BITS, math.ceil)
        tilt = tilt if tilt < high else math.sqrt(low * high)


@functools.lru_cache(maxsize=64)
def _removed(cut: Loss) -> Jumps:
    """Return the measure μ of the outcomes that the cuts remove."""
    large = tuple(
        replace(part, cut=None, rise=part.cut)
        if isinstance(part, MixtureTransform) and part.cut is not None
        else None
        for part, _ in cut.factors
    )
    return Jumps(cut, large)


def beyond(  # noqa: PLR0917
    loss: Loss, cut: Loss, kernel: Kernel, epsilon: ExactReal, found: arb, bits: int
) -> arb:
    """Return the contribution of what the cuts remove to an integral to the right of all poles.

    `loss` has no cuts, and `found` is the integral of the remaining outcomes. If the total removed
    mass is below 2^−bits of it, that mass is the bound.
    """
    with ctx.workprec(ctx.prec + _MASS_BITS):
        first, second = _masses(cut)
        growth = epsilon.ball().exp()
        above = first if kernel != Kernel.ABOVE_Q else second * growth
        if above < found * arb(2) ** -bits:
            return arb(0).union(above.upper())
        enough = (
            float(found.log().mid()) - bits * _LOG_2 - _LOG_UNDECIDED_SHARE
            if found > 0
            else -math.inf
        )
        rest = _undecided(loss, cut, epsilon, enough)
        if not rest.is_finite():
            return arb(0).union(above.upper())
        if kernel == Kernel.CALL:
            difference = first - second * growth
            lower, upper = difference.max(arb(0)), (difference + rest).min(first)
        else:
            lower, upper = (above - rest).max(arb(0)), above
        return lower.lower().union(upper.upper())


def _masses(cut: Loss) -> tuple[arb, arb]:
    """Return the masses p and q."""
    first, second = arb(0), arb(0)
    for part, count in cut.factors:
        if isinstance(part, MixtureTransform):
            p, q = part.lost()
            first += count * (-p).log1p()
            second += count * (-q).log1p()
    return -first.expm1(), -second.expm1()


def _undecided(loss: Loss, cut: Loss, epsilon: ExactReal, enough: float) -> arb:
    """Return an upper bound on G at the first tilt where ln G is at most `enough`, or the best.

    For each kernel it is E(c) at any c ≤ −1, because e^{−cu} is above (e^u − 1)⁺, e^u 1{u ≥ 0} and
    1{u ≥ 0}.
    """
    best, c = math.inf, Fraction(-2)
    for tilt, value, _ in _tilts(loss, cut, float(epsilon), enough):
        if value < best:
            best, c = value, -Fraction(tilt)
        if best < enough:
            break
    with ctx.workprec(_BOUND_BITS + cut.count.bit_length()):
        return (_removed(cut).log_upper(c) - ball(c) * epsilon.ball()).exp().upper()


def cut_for(loss: Loss, strip: Strip, epsilon: float, bits: int) -> Loss:
    """Return the loss, cut such that what is undecided at ε is negligible.

    The cut is made for a rounded value somewhat above ε, which also serves ε. If that value is too
    large, as near 0, it is rounded more closely.
    """
    if not epsilon >= 0:
        raise UndecidedError(
            f"No single loss outweighs all others at epsilon={epsilon:.6g}. {_REMEDY}"
        )
    least = least_sum(loss)
    place = shortened(epsilon + least, _PLACE_BITS, math.ceil) - least
    with contextlib.suppress(UndecidedError):
        return _cut_above(loss, strip, place, bits)
    return _cut_above(loss, strip, shortened(epsilon, _PLACE_BITS, math.ceil), bits)


@functools.lru_cache(maxsize=64)
def _cut_above(loss: Loss, strip: Strip, epsilon: float, bits: int) -> Loss:
    """Return the loss, cut somewhat above ε, such that what is undecided is negligible."""
    level, tilt = _single(loss, epsilon)
    level = level if math.isfinite(level) else 0.0
    tilt = _TILT_GUESS * min(tilt, 1 / math.sqrt(_spread(loss)))
    start = tilt / 2
    for _ in range(_ROUNDS):
        cut = deciding_cut(loss, epsilon, level - bits * _LOG_2 - _LOG_CUT_SHARE, rounded(tilt))
        found = saddle_value(cut, strip, epsilon, bits, start)
        if found is None:
            break
        if level - found.log_value < _SAME_LEVEL and found.furthest <= rounded(tilt):
            return cut
        level, tilt = min(level, found.log_value), _TILT_MARGIN * found.furthest
        start = found.c
    raise UndecidedError(f"No single loss outweighs all others at epsilon={epsilon:.6g}. {_REMEDY}")


def estimate_epsilon(loss: Loss, log_delta: float) -> float | None:
    """Return the ε with ln δ(ε) = log_delta, in floats, if a loss somewhat above ε decides.

    Newton's method uses p − e^ε q in closed form, and the integral of the other outcomes on a line.
    It starts at the ε where the single releases sum to δ. A cut serves every smaller ε too. Return
    None if no loss decides, or if floats are not accurate enough.
    """

    def is_more(log: float) -> bool:
        return _single(loss, math.exp(log))[0] > log_delta

    low, high = (math.exp(log) for log in halved(is_more, *_SINGLE_RANGE, _SINGLE_BISECTIONS))
    epsilon, high, place, bits = low, math.inf, -math.inf, coarse(_BITS)
    for _ in range(_MOST_STEPS):
        try:
            if epsilon > place:
                cut, place = cut_for(loss, CALL, epsilon, bits), epsilon
            log, slope = estimator(cut).log_integral(CALL, epsilon)
        except (UndecidedError, ArithmeticError):  # ε is too large
            high = epsilon
            epsilon = math.sqrt(low * high)
            if high < _WIDER * low:
                break
            continue
        with ctx.workprec(_PROFILE_BITS):
            first, second = (float(mass.mid()) for mass in _masses(cut))
        rest, lost = math.exp(log), math.exp(epsilon) * second
        value = rest + first - lost
        move = (log_delta - math.log(value)) * value / (slope * rest - lost)
        low, high = (epsilon, high) if move > 0 else (low, epsilon)
        if abs(move) < _LAST_STEP * epsilon:
            return epsilon + move
        wanted = max(epsilon + move, epsilon / 4)
        epsilon = wanted if wanted < high else math.sqrt(low * high)
    return None


def _single(loss: Loss, epsilon: float) -> tuple[float, float]:
    """Return ln Σ k δ_i(ε), where δ_i is the profile of one sampled release, and its decrease.

    Beyond floats, the first is −∞ and the second a small number.
    """
    total, fall, growth = 0.0, 0.0, math.expm1(min(epsilon, _LARGE))
    for part, count in loss.factors:
        if isinstance(part, MixtureTransform):
            floats = part.floats()
            x, q = place_of(floats, epsilon), math.exp(floats.log_share)
            above, plain = (math.erfc((x - mean) / math.sqrt(2)) / 2 for mean in (floats.mu, 0.0))
            total += count * max(q * above - (growth + q) * plain, 0.0)
            fall += count * (growth + 1.0) * plain
    return (math.log(total), fall / total) if total > 0 else (-math.inf, 1 / (epsilon + 1e-300))


_LOG_2 = math.log(2)
_FEWEST, _MOST_EXTRA = 24, 400
"""Least number of bits by which an inaccurate integral is improved, and the most bits in total."""
_SHORT_LINE = 512
"""Nodes of a line up to which sums in balls are tried at first, where floats fail."""
_BITS, _PROFILE_BITS = 46, 128
"""Accuracy of an estimate in bits; and bits of the masses, which may be as small as δ."""
_MOST_STEPS = 64
"""Largest number of steps of an estimate."""
_LOG_CUT_SHARE = 4.0
"""−ln of the share of the error that losses beyond a cut may leave undecided."""


def jump_integral(loss: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int) -> arb:
    """Return a ball around G(ε) of relative accuracy about 2^−bits.

    `strip` is to the right of all poles, where large losses contribute. What the cuts remove from
    the laws is added in closed form.

    Raises UndecidedError if no loss is certain to decide, or if a line has too many nodes.
    """
    cut = cut_for(loss, strip, float(epsilon), coarse(bits))
    # First with short sums; then with any sums to one more bit, because a term is added.
    for asked, most in ((bits, _SHORT_LINE), (bits + 1, MOST_NODES)):
        with contextlib.suppress(UndecidedError):
            part = _kept(cut, kernel, strip, epsilon, asked, most=most)
            found = part + beyond(loss, cut, kernel, epsilon, part, bits)
            if is_narrow(found, bits):
                return found
    raise UndecidedError(
        f"The contour integral of the small losses at epsilon={float(epsilon):.6g} does not "
        f"give {bits} bits. {_REMEDY}"
    )


def _kept(
    cut: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int, *, most: int
) -> arb:
    """Return the integral of the kept outcomes, with more bits if some are lost to cancellation."""
    extra = 0
    while True:
        value = integral(cut, kernel, strip, epsilon, bits + extra, most=most)
        missing = bits - value.rel_accuracy_bits()
        if missing <= LOSS or extra > _MOST_EXTRA:
            return value
        extra += max(missing, _FEWEST)
