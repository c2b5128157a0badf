"""Contour integrals without the releases that have no large loss: a rare jump, and several.

Where ε is reached by one large loss of one release among many small ones, no vertical line is good
for M(z) e^{−zε}κ(z): at the tilt at which the sum of the losses is ε, most of M belongs to outcomes
without a jump, or to jumps that are too large, and their contributions cancel. They are taken
apart. With χ, 0 ≤ χ ≤ 1, a smooth cut at a threshold (`saddle_transform.Cut`) and χ₂ one far above,

    T_i(z) = E[χ w^s],    J_i(z) = E[(1 − χ)χ₂ w^s],    s = z + 1,

are the transforms of two positive measures, of the small and of the large losses of a factor, whose
sum differs from the law by the mass that χ₂ takes away (`saddle_cut`). Hence

    M = Π T_i^{k_i} + F,    F = Π (T_i + J_i)^{k_i} − Π T_i^{k_i},

and F, outcomes with at least one large loss, is the transform of a positive measure, too. It has a
saddle of its own, where nothing cancels; on the line through it |F(c + it)| ≤ F(c) ρ(t) r(t), with

    ρ = max_i sup_{u ≥ t} |J_i(c + iu)|/J_i(c) / m_i,   r = Π m_i^{k_i},   m_i ≥ the ratios of both,

as every product in F has at least one factor J. Large losses have a smooth law: so that F decays
fast, although M hardly does for small q. The part without large losses is bounded by Chernoff's
inequality, E(s) of `saddle_certified`, or integrated on a line of its own.

The thresholds are chosen by floats; nothing that is proved rests on that.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from flint import acb, arb, ctx

from accountant.composition.saddle import CALL, Estimator, FloatTransform
from accountant.composition.saddle_certified import Kernel, Loss, estimator, integral, power
from accountant.composition.saddle_cut import chosen, cut_off, largest_tilt, rounded, saddle_value, start
from accountant.composition.saddle_search import Strip, saddle
from accountant.composition.subsampling import SubsampledPair
from accountant.composition.saddle_transform import Cut, Decay, MixtureTransform, Transform
from accountant.errors import UndecidedError
from accountant.interval import ball
from accountant.number import ExactReal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Complexes: TypeAlias = NDArray[np.complex128]

_LOG_2 = math.log(2)
_BITS = 46
_ROUNDS = 3
_SAME = 0.02
_NEGLIGIBLE = -30.0
_LARGEST = 600.0
_FLAT = 1e-6
_FEW = 64
_SHARES = tuple(Fraction(i, 16) for i in range(14, 2, -1))
_WIDTHS = tuple(Fraction(1, 1 << i) for i in range(1, 8))
_SPARE = 25.0
_APART = 1.0
_LEAST_PLACE = 1.0
_FEWEST = 24
_MOST_EXTRA = 400
_MOST_TRIES = 3
_MOST_SECANTS = 12
_ENOUGH = 1e-10
_MOST_STEPS = 60
_FEW_STEPS = 6
_BESIDE = 1e-6
_ROUGH = 128
_LOSS = 10


@final
@dataclass(frozen=True)
class Jumps:
    """F(z) = Π (T_i + J_i)^{k_i} − Π T_i^{k_i}, a `Measure` of `saddle_certified`."""

    small: Loss
    """The transforms T_i, and k_i."""
    large: tuple[MixtureTransform | None, ...]
    """The transforms J_i, None for losses without any."""

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
        rows, whole, scale = [], arb(0), arb(1)
        for (part, times), jump in zip(self.small.factors, self.large, strict=True):
            ratios = part.line(c, step, count)
            if jump is None:
                rows.append(_Row(times, ratios, None, arb(0)))
                continue
            share = jump.value(c) / part.value(c)
            rows.append(_Row(times, ratios, jump.line(c, step, count), share))
            whole += times * share.log1p()
        scale = whole.expm1()
        return [_excess(rows, j) / scale for j in range(count)]

    def log_ratio(self, c: Fraction, t: float) -> float:
        """Return an upper bound of ln(|F(c + iu)|/F(c)) for all u ≥ t."""
        total, best = 0.0, -math.inf
        for small, large, count in _decays(self, c):
            low = 0.0 if small is None else small.log_ratio(t)
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

    It is Π T^k (e^D − 1), D = Σ k ln(1 + J/T); where T may vanish, the product of sums
    Σ_i (Π_{l < i} (T_l + J_l)^{k_l}) ((T_i + J_i)^{k_i} − T_i^{k_i}) Π_{l > i} T_l^{k_l} is bounded.
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
def _decays(jumps: Jumps, c: Fraction) -> tuple[tuple[Decay | None, Decay | None, int], ...]:
    """Return the decays of T_i and J_i; those of T_i only where many of them matter."""
    return tuple(
        (part.decay(c), None if jump is None else jump.decay(c), count)
        for (part, count), jump in zip(jumps.small.factors, jumps.large, strict=True)
    )


@functools.lru_cache(maxsize=512)
def _cumulants(jumps: Jumps, c: float) -> tuple[float, float, float]:
    size = mean = variance = 0.0
    terms = []
    for (part, count), jump in zip(jumps.small.factors, jumps.large, strict=True):
        small = _floats(part).cumulants(c)
        size, mean, variance = (
            total + count * each for total, each in zip((size, mean, variance), small, strict=True)
        )
        if jump is not None:
            large = _floats(jump).cumulants(c)
            log_share = large[0] - small[0]
            weight = log_share - (math.log1p(math.exp(log_share)) if log_share < 0 else 0.0)
            if log_share >= 0:
                weight = -math.log1p(math.exp(-log_share))
            log_excess = _log_log1p(log_share)
            terms.append((math.log(count), log_excess, weight, small, large))
    logs = [count + excess for count, excess, *_ in terms]
    top = max(logs)
    log_d = top + math.log(math.fsum(math.exp(each - top) for each in logs))
    first = second = 0.0  # D′/D and D″/D
    for count, _, weight, small, large in terms:
        share = math.exp(count + weight - log_d)
        p, apart = math.exp(weight), large[1] - small[1]
        first += share * apart
        second += share * (large[2] - small[2] + (1 - p) * apart * apart)
    if log_d > math.log(_LARGEST):
        log_excess, growth, d = math.exp(log_d), 1.0, math.exp(log_d)
        return size + log_excess, mean + d * first, variance + d * second
    d = math.exp(log_d)
    growth = d / -math.expm1(-d) if d > 0 else 1.0  # D e^D/(e^D − 1)
    log_excess = log_d if log_d < _NEGLIGIBLE else math.log(math.expm1(d))
    bend = growth * second - first * first * growth * (growth - d)
    return size + log_excess, mean + growth * first, max(variance + bend, _FLAT * variance)


@final
@dataclass(frozen=True)
class FloatJumps:
    """F in floats, a `FloatTransform` of `saddle`."""

    jumps: Jumps

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln F(c) and its first two derivatives."""
        return self.jumps.cumulants(c)

    def log_ratio(self, c: float, t: Floats) -> tuple[Floats, Floats]:
        """Return ln F(c + it) − ln F(c) − it (ln F)′(c)."""
        t = np.concatenate([[0.0], t])
        size = np.zeros(len(t), dtype=np.complex128)
        shares: list[tuple[int, Complexes]] = []
        for (part, count), jump in zip(self.jumps.small.factors, self.jumps.large, strict=True):
            at, small = _on_line(part, c, t)
            size += count * small
            if jump is not None:
                above, large = _on_line(jump, c, t)
                shares.append((count, above - at + large - small))
        top = max(float(share.real.max()) for _, share in shares)
        if top < _NEGLIGIBLE:
            total = sum(count * np.exp(share - top) for count, share in shares)
        else:
            total = np.expm1(sum(count * np.log1p(np.exp(share)) for count, share in shares))
        with np.errstate(divide="ignore"):
            size += np.log(total / total[0])
        return size.real[1:], size.imag[1:] - self.cumulants(c)[1] * t[1:]


def _on_line(part: Transform, c: float, t: Floats) -> tuple[float, Complexes]:
    """Return ln M(c), and ln M(c + it) − ln M(c), without proof."""
    floats = _floats(part)
    size, mean, _ = floats.cumulants(c)
    real, imaginary = floats.log_ratio(c, t)
    return size, real + 1j * (imaginary + mean * t)


def _near(epsilon: float) -> float:
    """Round to eight bits, so that neighbouring questions share a plan."""
    mantissa, exponent = math.frexp(epsilon)
    return math.ldexp(round(mantissa * 256), exponent - 8)


def estimate(loss: Loss, log_delta: float) -> float:
    """Return ε with ln δ(ε) = log_delta where large losses are rare, without proof.

    In floats, where these do; else by the secant method on enclosures.
    """
    try:
        return _in_floats(loss, log_delta)
    except (UndecidedError, ArithmeticError):
        return _by_secants(loss, log_delta)


def _in_floats(loss: Loss, log_delta: float) -> float:
    epsilon = start(loss, log_delta)
    for _ in range(_ROUNDS):
        _, jumps = plan_of_jumps(loss, CALL, _near(epsilon), _BITS, _SPARE)
        last, epsilon = epsilon, Estimator([(FloatJumps(jumps), 1)], _SPARE).epsilon(log_delta)
        if abs(last - epsilon) < _SAME * epsilon:
            break
    return epsilon


def _by_secants(loss: Loss, log_delta: float) -> float:
    epsilon, slope = _one_jump(loss, log_delta)
    known: list[tuple[float, float]] = []
    for _ in range(_MOST_SECANTS):
        found, _ = jump_integral(
            loss, Kernel.CALL, CALL, ExactReal.of_rational(Fraction(epsilon)), _BITS
        )
        known.append((epsilon, float(found.log().mid()) - log_delta))
        if len(known) > 1 and known[-1][0] != known[-2][0]:
            slope = (known[-1][1] - known[-2][1]) / (known[-1][0] - known[-2][0])
        if not slope < 0:
            raise UndecidedError(f"No epsilon was found for ln(delta)={log_delta:.6g}.")
        move = -known[-1][1] / slope
        epsilon = max(epsilon + move, 0.5 * epsilon)
        if abs(move) < _ENOUGH * epsilon:
            return epsilon
    raise UndecidedError(f"No epsilon was found for ln(delta)={log_delta:.6g}.")


def _one_jump(loss: Loss, log_delta: float) -> tuple[float, float]:
    """Return ε with ln δ(ε) = log_delta, and the slope, if one release alone has a large loss."""
    apart = start(loss, log_delta)
    for _ in range(_MOST_STEPS):
        found = _single(loss, apart)
        move = (found.log_delta - log_delta) / found.s
        apart = min(max(apart + move, 0.3 * apart), 3 * apart)
        if abs(move) < _BESIDE * apart:
            return found.epsilon + move, -found.s
    raise UndecidedError(f"No single loss explains ln(delta)={log_delta:.6g}.")


def _level_of_one(loss: Loss, epsilon: float) -> float:
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
    size, mean, _ = estimator(_small_part(loss, apart, s, here)).cumulants(s)
    return _Single(apart + mean, here + math.log(count) + size - s * mean, s)


def _small_part(loss: Loss, large: float, s: float, log_delta: float) -> Loss:
    """Return the loss cut at half of a large one."""
    found = _split(cut_off(loss, -log_delta + _BITS), 0.5 * large, s, _BITS)
    if found is None:
        raise UndecidedError(f"No losses are small beside {large:.6g}.")
    return found.small


@functools.lru_cache(maxsize=64)
def _floats(part: Transform) -> FloatTransform:
    return part.estimate()


def _log_log1p(log_value: float) -> float:
    """Return ln ln(1 + e^x)."""
    if log_value < _NEGLIGIBLE:
        return log_value
    return math.log(math.log1p(math.exp(log_value)) if log_value < 700 else log_value)


def jump_integral(
    loss: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int
) -> tuple[arb, Loss]:
    """Return a ball around G(ε) of relative accuracy of about 2^−bits, and the cut loss it is of.

    `strip` reaches to the right: large losses count there. What the cut takes from the laws is not
    in the ball (`saddle_cut.lost`).

    Raises UndecidedError where no threshold tells small losses from large ones, or where a line
    has too many nodes.
    """
    spare = _SPARE
    for _ in range(_MOST_TRIES):
        cut, jumps = plan_of_jumps(loss, strip, _near(float(epsilon)), bits, spare)
        extra = 0
        while True:
            found = integral(jumps, kernel, strip, epsilon, bits + extra)
            missing = bits - found.rel_accuracy_bits()
            if missing <= _LOSS or extra > _MOST_EXTRA:
                break
            extra += max(missing, _FEWEST)
        rest = _small_alone(jumps.small, kernel, strip, epsilon)
        total = found + arb(0).union(rest)
        if total.rel_accuracy_bits() >= bits - _LOSS:
            return total, cut
        if not found > 0:
            break
        spare += max(float((rest / found).log().mid()) + bits * _LOG_2, _SPARE)
    total = found + integral(jumps.small, kernel, strip, epsilon, bits)
    if total.rel_accuracy_bits() >= bits - _LOSS:
        return total, cut
    raise UndecidedError(f"Small losses hide the large ones at epsilon={float(epsilon):.6g}.")


def _small_alone(small: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal) -> arb:
    """Return Chernoff's bound of the integral without large losses.

    For δ it is M(c) e^{−cε} sup_x (1 − e^{−x}) e^{−cx}, which is c^c/(1 + c)^{1 + c}.
    """
    try:
        c = Fraction(saddle(small, strip, float(epsilon)).c)
    except ArithmeticError as error:
        raise UndecidedError(f"No saddle was found for the small losses: {error}.") from error
    at = ball(c)
    size = small.log_upper(c) - at * epsilon.ball()
    if kernel is Kernel.CALL:
        size += at * at.log() - (1 + at) * at.log1p()
    return size.exp().upper()


@functools.lru_cache(maxsize=64)
def plan_of_jumps(
    loss: Loss, strip: Strip, epsilon: float, bits: int, spare: float
) -> tuple[Loss, Jumps]:
    """Return the cut loss, and how it is taken apart.

    Below the threshold the small losses alone should not matter, by e^−spare, and F should decay
    fast.
    """
    at_saddle = saddle_value(chosen(loss, strip, epsilon, bits), strip, epsilon, bits)
    if at_saddle is None or not any(isinstance(part, MixtureTransform) for part, _ in loss.factors):
        raise UndecidedError(f"No large losses were found for epsilon={epsilon:.6g}.")
    depth = -min(at_saddle[0], _level_of_one(loss, epsilon))
    cut = cut_off(loss, depth + bits * _LOG_2 + spare, rounded(at_saddle[1]))
    best: tuple[float, Jumps] | None = None
    low, high = 0, len(_SHARES)  # the largest threshold at which the small losses do not matter
    while low < high:
        middle = (low + high) // 2
        jumps = _apart(cut, _SHARES[middle], strip, epsilon, bits)
        large = None if jumps is None else saddle_value(jumps, strip, epsilon, bits)
        if jumps is None or large is None:
            low = middle + 1
            continue
        small = saddle_value(jumps.small, strip, epsilon, bits)
        below = -math.inf if small is None else small[0]
        excess = max(below - (large[0] - bits * _LOG_2 - spare), 0.0)
        if best is None or excess < best[0] or excess == 0.0:
            best = excess, jumps
        low, high = (low, middle) if excess == 0.0 else (middle + 1, high)
    if best is None:
        raise UndecidedError(f"No saddle was found for the large losses at epsilon={epsilon:.6g}.")
    return cut, best[1]


def _apart(loss: Loss, share: Fraction, strip: Strip, epsilon: float, bits: int) -> Jumps | None:
    """Take the loss apart where the factor with the largest losses has a share of its cut."""
    ends = [
        float(part.floats().log_density(np.array([float(share * part.cut.at)]))[0])
        for part, _ in loss.factors
        if isinstance(part, MixtureTransform) and part.cut is not None
    ]
    tilt = min(
        largest_tilt(part, float(part.cut.at))
        for part, _ in loss.factors
        if isinstance(part, MixtureTransform) and part.cut is not None
    )
    for _ in range(2):
        jumps = _split(loss, max(ends), tilt, bits)
        if jumps is None:
            return None
        found = saddle_value(jumps, strip, epsilon, bits)
        if found is None:
            return None
        tilt = rounded(found[1])
    return jumps


def _split(loss: Loss, threshold: float, tilt: float, bits: int) -> Jumps | None:
    """Split every factor with losses above a threshold there, as smoothly as a tilt allows."""
    small: list[tuple[Transform, int]] = []
    large: list[MixtureTransform | None] = []
    for part, count in loss.factors:
        found = None
        if isinstance(part, MixtureTransform) and part.cut is not None:
            floats = part.floats()
            rise = math.expm1(threshold) + math.exp(floats.log_share)
            at = (math.log(rise) - floats.log_share) / floats.mu + 0.5 * floats.mu
            if _LEAST_PLACE < at < float(part.cut.at) - _APART:
                found = _threshold(part, at, tilt, bits)
        if isinstance(part, MixtureTransform) and found is not None:
            small.append((replace(part, cut=found), count))
            large.append(replace(part, rise=found))
        else:
            small.append((part, count))
            large.append(None)
    return Jumps(Loss(tuple(small)), tuple(large)) if any(large) else None


def _threshold(part: MixtureTransform, at: float, tilt: float, bits: int) -> Cut | None:
    """Return the cut for which the large losses are smoothest, among those that tame the tilt."""
    place = Fraction(round(at * 16), 16)
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
