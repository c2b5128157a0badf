"""Contour integrals without the releases that have no large loss: a rare jump, and several.

Where ε is reached by one large loss of one release among many small ones, no vertical line is good
for M(z) e^{−zε}κ(z): at the tilt at which the sum of the losses is ε, most of M belongs to outcomes
without a jump, or to jumps that are too large, and their contributions cancel. They are taken
apart. With χ, 0 ≤ χ ≤ 1, a smooth cut at a threshold (`losses.transform.Cut`) and χ₂ one far above,

    T_i(z) = E[χ w^s],    J_i(z) = E[(1 − χ)χ₂ w^s],    s = z + 1,

are the transforms of two positive measures, of the small and of the large losses of a factor, whose
sum differs from the law by the mass that χ₂ takes away (`cut`). Hence

    M = Π T_i^{k_i} + F,    F = Π (T_i + J_i)^{k_i} − Π T_i^{k_i},

and F, outcomes with at least one large loss, is the transform of a positive measure, too. It has a
saddle of its own; on the line through it |F(c + it)| ≤ F(c) ρ(t) r(t), with

    ρ = max_i sup_{u ≥ t} |J_i(c + iu)|/J_i(c) / m_i,   r = Π m_i^{k_i},   m_i ≥ the ratios of both,

as every product in F has at least one factor J. Large losses have a smooth law: so that F decays
fast, although M hardly does for small q. The part without large losses is bounded by Chernoff's
inequality, E(s) of `certified`, or integrated on a line of its own.

The thresholds are chosen by floats; nothing that is proved rests on that.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from flint import acb, arb

from dpassay.accountant.composition.fourier.estimates import CALL, FloatTransform
from dpassay.accountant.composition.fourier.measure import (
    LOSS,
    MOST_NODES,
    Kernel,
    Loss,
    Measure,
    are_tame,
    chosen,
    coarse,
    cut_off,
    estimator,
    integral,
    is_narrow,
    is_tame,
    measure_near,
    power,
    quick_lines,
    quick_rate,
    rounded,
    saddle_value,
)
from dpassay.accountant.composition.fourier.saddle import Strip, saddle
from dpassay.accountant.composition.losses.bounds import Decay, Mixture
from dpassay.accountant.composition.losses.transform import (
    Cut,
    MixtureTransform,
    Transform,
    overlap,
)
from dpassay.accountant.core.arrays import np
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.solve import halved, log_peak, shortened
from dpassay.accountant.pairs.subsampled import SubsampledPair

_NEGLIGIBLE = -30.0
"""ln x below which floats do not tell ln(1 + x) from x, to 1e-13."""
_LARGEST = 600.0
"""Largest exponent that is formed: e^709 is the last float."""
_FLAT = 1e-6
"""Least second derivative of ln F as a share of that of ln Π T: by rounding it may be negative."""
_FEW = 64
"""Count up to which a difference of powers is a sum of its terms; of more it is bounded."""


@final
@dataclass(frozen=True)
class Jumps:
    """F(z) = Π (T_i + J_i)^{k_i} − Π T_i^{k_i}, a `measure.Measure`."""

    small: Loss
    """The transforms T_i, and k_i."""
    large: tuple[MixtureTransform | None, ...]
    """The transforms J_i, None for losses without any."""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.small, self.large))

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln F(c) and its first two derivatives, without proof.

        With D = Σ k_i ln(1 + J_i/T_i), ln F = Σ k_i ln T_i + ln(e^D − 1).
        """
        found: tuple[float, float, float] = _cumulants(self, c)
        return found

    def log_value(self, c: Fraction) -> arb:
        """Return ln F(c)."""
        total, excess = arb(0), arb(0)
        for (part, count), jump in zip(self.small.factors, self.large, strict=True):
            value = part.value(c)
            total += count * value.log()
            if jump is not None:
                excess += count * (jump.value(c) / value).log1p()
        return total + excess.expm1().log()

    def log_upper(self, c: Fraction) -> arb:
        """Return an upper bound: F(c) increases with every T_i(c) and every J_i(c)."""
        total, excess = arb(0), arb(0)
        for (part, count), jump in zip(self.small.factors, self.large, strict=True):
            size = part.log_upper(c)
            total += count * size
            if jump is not None:
                excess += count * (jump.log_upper(c) - size).exp().log1p()
        return (total + excess.expm1().log()).upper()

    def line(self, c: Fraction, step: Fraction, count: int) -> list[acb]:
        """Return F(c + ij·step)/F(c) for j < count."""
        small = [part.line(c, step, count) for part, _ in self.small.factors]
        large = [None if jump is None else jump.line(c, step, count) for jump in self.large]
        return self._ratios(c, small, large)

    def quick_line(self, c: Fraction, step: Fraction, count: int) -> list[acb] | None:
        """Return the same from floats, None where their error matters.

        An error of T_i counts k_i times, one of J_i as often as there are large losses.
        """
        rate = quick_rate(self, c, float(step * count)) / (2 * len(self.large))
        small = [(part, rate / times) for part, times in self.small.factors]
        large = [(jump, rate / self._jumps(c)) for jump in self.large if jump is not None]
        found = quick_lines([*small, *large], c, step, count)
        if found is None:
            return None
        rest = iter(found[len(small) :])
        jumps = [None if jump is None else next(rest) for jump in self.large]
        return self._ratios(c, found[: len(small)], jumps)

    def _jumps(self, c: Fraction) -> float:
        """Return about the number of large losses under the tilt c, at least 1."""
        ratios = [
            (floats_of(jump).cumulants(float(c))[0] - floats_of(part).cumulants(float(c))[0], times)
            for (part, times), jump in zip(self.small.factors, self.large, strict=True)
            if jump is not None
        ]
        return 1 + sum(times * math.exp(min(ratio, _LARGEST)) for ratio, times in ratios)

    def _ratios(
        self, c: Fraction, small: list[list[acb]], large: list[list[acb] | None]
    ) -> list[acb]:
        """Return the ratios of F on a line from those of the T_i and J_i."""
        rows, whole = [], arb(0)
        factors = zip(self.small.factors, self.large, small, large, strict=True)
        for (part, times), jump, ratios, beyond in factors:
            share = arb(0) if jump is None else jump.value(c) / part.value(c)
            rows.append(_Row(times, ratios, beyond, share))
            whole += times * share.log1p()
        scale = whole.expm1()
        return [_excess(rows, j) / scale for j in range(len(small[0]))]

    def log_ratio(self, c: Fraction, t: float) -> float:
        """Return an upper bound of ln(|F(c + iu)|/F(c)) for all u ≥ t."""
        total, best = 0.0, -math.inf
        for small, large, count in _decays(self, c):
            low = small.log_ratio(t)
            if large is None:
                total += count * low
                continue
            jump = large.log_ratio(t)
            total += count * max(low, jump)
            best = max(best, jump - max(low, jump))
        return (total + best) * (1 - 1e-9)

    def far(self, c: Fraction) -> tuple[float, int]:
        """Return ln C and 1 with |F(c + it)|/F(c) ≤ C/t."""
        scales = [decay.log_scale() for _, decay, _ in _decays(self, c) if decay is not None]
        known = [scale for scale in scales if scale is not None]
        if len(known) < len(scales):
            raise UndecidedError("No rate of decay is known of these losses.")
        return max(known), 1

    @property
    def count(self) -> int:
        """The number of independent losses."""
        return self.small.count


@final
@dataclass(frozen=True)
class _Row:
    """The ratios of T and J on a line, and J(c)/T(c)."""

    times: int
    small: list[acb]
    large: list[acb] | None
    share: arb


def _excess(rows: list[_Row], j: int) -> acb:
    """Return (Π (T + J)^k − Π T^k)/Π T(c)^k at a node.

    It is Π T^k (e^D − 1), D = Σ k ln(1 + J/T); where T may vanish, the sum over i of
    (Π_{l < i} (T_l + J_l)^{k_l}) ((T_i + J_i)^{k_i} − T_i^{k_i}) Π_{l > i} T_l^{k_l}.
    """
    product, exponent = acb(1), acb(0)
    for row in rows:
        t = row.small[j]
        product *= power(t, row.times)
        if row.large is not None:
            part = row.share * row.large[j] / t
            if not (part.is_finite() and abs(part) < 0.5):
                return _telescoped(rows, j)
            exponent += row.times * part.log1p()
    return product * exponent.expm1() if exponent.is_finite() else _telescoped(rows, j)


def _telescoped(rows: list[_Row], j: int) -> acb:
    total = acb(0)
    for i, row in enumerate(rows):
        if row.large is None:
            continue
        jump, t = row.share * row.large[j], row.small[j]
        if row.times <= _FEW:
            term, before = acb(0), acb(1)
            for n in range(row.times):
                term += before * power(t, row.times - 1 - n)
                before *= t + jump
            term *= jump
        else:
            size = row.times * abs(jump) * (abs(t) + abs(jump)) ** (row.times - 1)
            bound = arb(0, size.upper())
            term = acb(bound, bound)
        for other in rows[:i]:
            here = other.small[j]
            if other.large is not None:
                here += other.share * other.large[j]
            term *= power(here, other.times)
        for other in rows[i + 1 :]:
            term *= power(other.small[j], other.times)
        total += term
    return total


@functools.lru_cache(maxsize=64)
def _decays(jumps: Jumps, c: Fraction) -> tuple[tuple[Decay, Decay | None, int], ...]:
    """Return the decays of T_i and J_i, and k_i."""
    return tuple(
        (part.decay(c), None if jump is None else jump.decay(c), count)
        for (part, count), jump in zip(jumps.small.factors, jumps.large, strict=True)
    )


@functools.lru_cache(maxsize=512)
def _cumulants(jumps: Jumps, c: float) -> tuple[float, float, float]:
    size, mean, variance = 0.0, 0.0, 0.0
    terms: list[_Term] = []
    for (part, count), jump in zip(jumps.small.factors, jumps.large, strict=True):
        small = floats_of(part).cumulants(c)
        size += count * small[0]
        mean += count * small[1]
        variance += count * small[2]
        if jump is not None:
            large = floats_of(jump).cumulants(c)
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
    """One factor: ln k, ln ln(1 + J/T), ln(J/(T + J)), and what J has more than T."""

    log_count: float
    log_excess: float
    log_share: float
    mean: float
    variance: float


@functools.lru_cache(maxsize=64)
def floats_of(part: Transform) -> FloatTransform:
    """Return the transform in floats, with the tables that it keeps."""
    return part.estimate()


def _log_log1p(log_value: float) -> float:
    """Return ln ln(1 + e^x)."""
    if log_value < _NEGLIGIBLE:
        return log_value
    return math.log(math.log1p(math.exp(log_value)) if log_value < 700 else log_value)


"""Losses so large that each of them decides alone: what a cut takes away, in closed form.

Let the normal laws of a product be cut by χ_i (`losses.transform.Cut`), and let μ be the measure of
the outcomes that the cuts take away, those with at least one large loss, with the sum S of all
losses. Its masses under P and Q are closed forms,

    p = 1 − Π(1 − p_i)^{k_i},    q = ∫ e^{−S} dμ = 1 − Π(1 − q_i)^{k_i},

and (1 − e^{ε−S})⁺ = 1 − e^{ε−S} + (e^{ε−S} − 1)⁺, so that μ contributes to the integrals of
`certified` to the right of all poles

    1/(z(z + 1)):  p − e^ε q + G,     1/z:  p − G,     1/(z + 1):  e^ε q − G,

where G is the integral of the same kernel left of all poles, 0 ≤ G ≤ E(c) = F(c) e^{−cε} for all
real c there: Chernoff's bound, with F the transform of μ, which is one of `jumps`. G belongs to
outcomes with a large loss and yet S ≤ ε: a cut a little above ε makes it as small as is asked,
because the other losses are bounded below, or hardly ever add up to much less than 0.

The place of the cut is chosen by floats; nothing that is proved rests on it.

*On one line.* Near ε = 0, and where many small losses and rare large ones mix, the tilt at which
the mean of the losses is ε belongs to losses far above ε, and no threshold far from ε tells the one
from the other. But a loss somewhat above ε decides alone, as above, and all other losses are of the
size of ε: the line through their own saddle is short (`decided_cut`).
"""

_LARGE = 700.0
"""Losses beyond it have exponentials that floats do not hold."""
_SURE_WIDTHS = tuple(Fraction(1, 1 << i) for i in range(2, 9))
"""Widths of cuts, the smoothest first: sharper ones tame larger tilts, and need finer nodes."""
_SHARP = Fraction(1, 64)
"""Width of the cuts that a threshold is searched with: so sharp that only the place matters."""
_GRAIN = 64
"""Parts of a unit to which a place is rounded up: neighbouring questions share their cuts."""
_HALVINGS = 5
"""Halvings of the range of ln(threshold − ε): a third or so is left, less than `_WIDER`."""
_LEAST_SHARE = 1e-4
"""Least distance of a threshold from ε, as its share: nearer ones decide nothing sooner."""
_WIDER, _SURE_FURTHER = 1.5, 0.1
"""Factor and share of ε by which a threshold is above the least one, so that cuts may be smooth."""
_GROWTH, _LEAP = 1.5, 16.0
"""Least and largest ratio of the tilts that are tried: Chernoff's bound is flat beside its least
value, and far beyond it floats do not know it."""
_TILT_BITS = 3
"""Bits of a tilt: with more, fewer questions share its bounds."""
_FARTHEST = 2.0**35
"""Largest tilt: it is beyond any that helps."""
_FIRST_TILT = 2.0
"""First tilt above 1, in units of 1/(|ε| + least sum): smaller ones hardly bound anything."""
_SURE_ROUGH, _MASSES = 24, 128
"""Bits of a bound, besides those of the count, and more bits of masses, which cancel."""
_SURE_SPARE = 3.0
"""−ln of the share of the accuracy that undecided outcomes may take."""
_PLACE_BITS = 5
"""Bits of the ε that a cut is made for, counted from the least sum on, and of a first tilt: with
fewer, more questions share cuts, and lines are longer."""
_ROUNDS = 6
"""Times a cut is placed anew for the value and the tilt that it gives."""
_SAME = 3.0
"""Difference of ln G at which a cut was placed for the value it gives."""
_MOVED = 1e-9
"""Relative size of the last step of an estimate, the next one of which would be its square."""
_ALONE, _FINER = (-20.0, 6.5), 12
"""Natural logarithms of the ε between which that of one release is sought, and halvings, to 1 %."""
_SURE_STEEPER = 1.25
"""Factor by which the next tilt exceeds the one that was needed, so that it settles."""


def sure_cut(loss: Loss, epsilon: float, log_error: float, tilt: float) -> Loss:
    """Return the loss cut so that a loss beyond the cuts decides alone, up to e^log_error.

    The cuts are as smooth as they can be a little above the least threshold, and sharp enough for
    the losses to stay small under the tilt.

    Raises UndecidedError where there is none.
    """
    least = least_sum(loss)
    low, high = math.log(_LEAST_SHARE * (epsilon or least)), math.log(least + 8 * epsilon)

    def leaves_open(log: float) -> bool:
        return not _decides(loss, _cut(loss, epsilon + math.exp(log), _SHARP), epsilon, log_error)

    _, high = halved(leaves_open, low, high, _HALVINGS)
    threshold = epsilon + _WIDER * math.exp(high) + _SURE_FURTHER * epsilon
    for width in _SURE_WIDTHS:
        cut = _cut(loss, threshold, width)
        if are_tame(cut, tilt) and _decides(loss, cut, epsilon, log_error):
            return cut
    raise UndecidedError(f"No single loss is sure to decide at epsilon={epsilon:.6g}.")


def least_sum(loss: Loss) -> float:
    """Return −Σ k ln(1 − q): minus the least sum of the losses of samples."""
    return -sum(
        count * part.floats().log_rest
        for part, count in loss.factors
        if isinstance(part, MixtureTransform)
    )


def place_of(floats: Mixture, threshold: float) -> float:
    """Return the x where the loss is a threshold, −∞ where all losses are larger."""
    if threshold > _LARGE:  # e^threshold would overflow, and the share does not count
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
    """Whether G is below e^log_error at some tilt: no step passes the first of them by much."""
    for _, value, slope in _tilts(loss, cut, epsilon, log_error):
        if value < log_error or slope >= 0:
            return value < log_error
    return False


def _tilts(
    loss: Loss, cut: Loss, epsilon: float, enough: float
) -> Iterator[tuple[float, float, float]]:
    """Yield tilts a > 1, about ln F(−a) e^{aε} and its slope, up to the least value.

    It is convex in a, so that Newton's steps do not pass the first a at which it is `enough`.
    """
    taken = _taken(cut)
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
def _taken(cut: Loss) -> Jumps:
    """Return the measure of the outcomes that the cuts take away."""
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
    """Return what the outcomes that the cuts take away add to an integral right of all poles.

    `loss` is the loss without cuts, `found` the integral of the other outcomes: where all that is
    taken is below 2^−bits of it, that is the bound.
    """
    with ctx.workprec(ctx.prec + _MASSES):
        first, second = _masses(cut)
        growth = epsilon.ball().exp()
        above = first if kernel != Kernel.ABOVE_Q else second * growth
        if above < found * arb(2) ** -bits:
            return arb(0).union(above.upper())
        enough = float(found.log().mid()) - bits * _LOG_2 - _SURE_SPARE if found > 0 else -math.inf
        rest = _undecided(loss, cut, epsilon, enough)
        if not rest.is_finite():
            return arb(0).union(above.upper())
        if kernel == Kernel.CALL:
            sure = first - second * growth
            lower, upper = sure.max(arb(0)), (sure + rest).min(first)
        else:
            lower, upper = (above - rest).max(arb(0)), above
        return lower.lower().union(upper.upper())


def slack(whole: Loss, jumps: Jumps, kernel: Kernel, epsilon: ExactReal) -> arb:
    """Bound by how much an integral right of all poles is wrong for the two parts of a law.

    With χ₂ the cut of the whole and χ that of the small losses these are φχ and φ(1 − χ)χ₂: they
    have φχ(1 − χ₂) more than φχ₂, of some mass m, and products Π(1 + m)^k − 1 more at most.
    """
    first, second = arb(0), arb(0)
    for (part, count), (small, _) in zip(whole.factors, jumps.small.factors, strict=True):
        if not (isinstance(part, MixtureTransform) and isinstance(small, MixtureTransform)):
            continue
        if small.cut is None or part.cut is None or small.cut == part.cut:
            continue
        p, q = part.between(small.cut, part.cut)
        first, second = first + count * p, second + count * q
    more = first.expm1() if kernel != Kernel.ABOVE_Q else second.expm1() * epsilon.ball().exp()
    return more.upper()


def _masses(cut: Loss) -> tuple[arb, arb]:
    """Return p and q."""
    first, second = arb(0), arb(0)
    for part, count in cut.factors:
        if isinstance(part, MixtureTransform):
            p, q = part.lost()
            first += count * (-p).log1p()
            second += count * (-q).log1p()
    return -first.expm1(), -second.expm1()


def _undecided(loss: Loss, cut: Loss, epsilon: ExactReal, enough: float) -> arb:
    """Return an upper bound of G, at the first tilt at which ln G is low enough, or the best.

    For all kernels it is E(c) at any c ≤ −1: e^{−cu} is above (e^u − 1)⁺, e^u 1{u ≥ 0}, 1{u ≥ 0}.
    """
    best, c = math.inf, Fraction(-2)
    for tilt, value, _ in _tilts(loss, cut, float(epsilon), enough):
        if value < best:
            best, c = value, -Fraction(tilt)
        if best < enough:
            break
    with ctx.workprec(_SURE_ROUGH + cut.count.bit_length()):
        return (_taken(cut).log_upper(c) - ball(c) * epsilon.ball()).exp().upper()


def decided_cut(loss: Loss, strip: Strip, epsilon: float, bits: int) -> Loss:
    """Return the loss cut somewhat above ε, or above a little larger one, which leaves no more.

    Where that one is too large, as beside 0, it is nearer to ε.
    """
    if not epsilon >= 0:
        raise UndecidedError(f"No loss decides alone at epsilon={epsilon:.6g}.")
    least = least_sum(loss)
    place = shortened(epsilon + least, _PLACE_BITS, math.ceil) - least
    with contextlib.suppress(UndecidedError):
        return _decided_cut(loss, strip, place, bits)
    return _decided_cut(loss, strip, shortened(epsilon, _PLACE_BITS, math.ceil), bits)


@functools.lru_cache(maxsize=64)
def _decided_cut(loss: Loss, strip: Strip, epsilon: float, bits: int) -> Loss:
    """Return the loss cut somewhat above ε, so that what is undecided is negligible."""
    level, tilt = 0.0, 1 / (epsilon + least_sum(loss))
    for _ in range(_ROUNDS):
        cut = sure_cut(loss, epsilon, level - bits * _LOG_2 - _SURE, rounded(tilt))
        found = saddle_value(cut, strip, epsilon, bits)
        if found is None:
            break
        if abs(found.log_value - level) < _SAME and found.furthest <= rounded(tilt):
            return cut
        level, tilt = found.log_value, _SURE_STEEPER * found.furthest
    raise UndecidedError(f"No loss is sure to decide alone at epsilon={epsilon:.6g}.")


def estimate_epsilon(loss: Loss, log_delta: float) -> float | None:
    """Return the ε with ln δ(ε) = log_delta, in floats, where a loss somewhat above ε decides.

    Newton's method with p − e^ε q in closed form and the sum of the other outcomes on a line. It
    starts where one release alone has the δ; a cut serves every smaller ε as well. None where no
    loss decides, or floats do not tell.
    """

    def is_more(log: float) -> bool:
        return _log_alone(loss, math.exp(log)) > log_delta

    low, high = (math.exp(log) for log in halved(is_more, *_ALONE, _FINER))
    epsilon, high, place, bits = low, math.inf, -math.inf, coarse(_BITS)
    for _ in range(_FEW):
        try:
            if epsilon > place:
                cut, place = decided_cut(loss, CALL, epsilon, bits), epsilon
            log, slope = estimator(cut).log_integral(CALL, epsilon)
        except (UndecidedError, ArithmeticError):  # too far
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
        if abs(move) < _MOVED * epsilon:
            return epsilon + move
        wanted = max(epsilon + move, epsilon / 4)
        epsilon = wanted if wanted < high else math.sqrt(low * high)
    return None


def _log_alone(loss: Loss, epsilon: float) -> float:
    """Return ln of Σ k δ_i(ε), δ_i the profile of one release that is sampled."""
    total = 0.0
    for part, count in loss.factors:
        if isinstance(part, MixtureTransform):
            floats = part.floats()
            x, q = place_of(floats, epsilon), math.exp(floats.log_share)
            above, plain = (math.erfc((x - mean) / math.sqrt(2)) / 2 for mean in (floats.mu, 0.0))
            total += count * max(q * above - (math.expm1(epsilon) + q) * plain, 0.0)
    return math.log(total) if total > 0 else -math.inf


"""Integrals where large losses are rare, with the transforms of `jumps`.

*Thresholds*, where small losses end and large ones begin, are chosen by floats: nothing that is
proved rests on them. One serves if the small losses alone hardly ever add up to ε, and if the large
ones have a smooth law. Whether they do is estimated at saddle points, and where one release alone
has a large loss by its own profile.
"""

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
    at, planned = measure_near(float(epsilon)), coarse(bits)

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
