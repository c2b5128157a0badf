"""Integrals and estimates where large losses are rare, with the transforms of `jumps`."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from flint import arb

from accountant.composition.fourier.certified import Kernel, integral
from accountant.composition.fourier.cut import (
    coarse,
    near,
    saddle_value,
    start,
)
from accountant.composition.fourier.estimates import CALL, Estimator
from accountant.composition.fourier.jumps import Jumps, floats_of
from accountant.composition.fourier.jumps_plan import (
    cut_for_jumps,
    is_all,
    log_level,
    no_jump,
    one_jump,
    plateau,
    single_at,
    tilt_of_small,
    window,
)
from accountant.composition.fourier.measure import LOSS, Loss, Measure, estimator
from accountant.composition.fourier.sure import beyond, slack, sure_delta
from accountant.composition.losses.float_mixture import TARGET
from accountant.composition.losses.transform import Transform
from accountant.composition.numeric.search import Strip
from accountant.errors import UndecidedError
from accountant.numbers.chernoff import log_peak
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball
from accountant.numbers.precision import ctx

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Complexes: TypeAlias = NDArray[np.complex128]

_LOG_2 = math.log(2)
_BITS = 48
"""Accuracy of estimates in bits: nearly that of floats."""
_ROUNDS = 3
"""Times that an estimate chooses its thresholds anew, for the ε that it found."""
_SAME = 0.02
"""Relative difference of two ε that are one: thresholds made for the one serve the other."""
_NEGLIGIBLE = -30.0
"""ln x below which floats do not tell ln(1 + x) from x, to 1e-13."""
_ROUGH = 56
"""Bits of Chernoff's bounds, besides those of the count: bounds need few digits."""
_LARGE = 40.0
"""Exponents z above it have ln(e^z ± 1) = z in floats."""
_TINY = 1e-3
"""Sizes up to which four terms of a power series are right to 1e-12."""
_LEAST = -700.0
"""ln|M| below it counts as this: its exponential vanishes in floats."""
_SPARE = 6.0
"""−ln of the share of what is asked for that cuts may take: more moves them out to where moments
explode, less shows in the width."""
_FEWEST = 24
"""Bits that an integral is asked for at least, and by which one that lacks some is improved."""
_MOST_EXTRA = 400
"""Most bits by which small and large losses may cancel, and are computed finer for it."""
_MOST_WINDOWS = 8
"""Thresholds below each other: each leaves fewer small losses, at the cost of an integral."""
_MOST_SECANTS, _MOST_LINES = 12, 8
"""Secants on one line, and lines in all, to the root of an estimate: it is found in a few,
or not."""
_AWAY = 4.0
"""Change of ln δ over which a line serves: beyond it the period is too short for ε."""
_MOST_LOSS, _TARGET = 16.0, 26.0
"""How far the large losses' integral may be below its terms, as ln, and −ln of its error: they lose
more digits than all losses together, and need fewer."""
_SETTLED = 1e-10
"""Relative size of the last move to a root: estimates choose brackets no narrower."""
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
    cut = whole = cut_for_jumps(loss, strip, at, planned, _SPARE)
    total, more = arb(0), arb(0)
    level: float | None = None
    single = single_at(loss, at)
    expected = None if single is None else single.log_delta
    lowest = log_level(loss, strip, at, planned) - planned * _LOG_2 - _SPARE
    flat = plateau(whole, strip, at, planned, lowest, single)
    if flat is not None:
        with contextlib.suppress(UndecidedError):
            found = _below_plateau(flat.jumps, kernel, strip, epsilon, bits)
            more = beyond(loss, cut, kernel, epsilon, found, bits)
            more += arb(0, slack(cut, None, kernel, epsilon))
            more += arb(0, slack(cut, flat.jumps, kernel, epsilon))
            if (found + more).rel_accuracy_bits() >= bits - LOSS:
                return found + more
        expected = level = flat.log_value
        single = None
    for _ in range(_MOST_WINDOWS):
        jumps = window(whole, strip, at, planned, level, lowest, single=single is not None)
        if jumps is None:
            break
        total += _beside(jumps, kernel, strip, epsilon, bits, total, expected)
        if not total > 0:
            break
        if whole is cut:
            more = beyond(loss, cut, kernel, epsilon, total, bits)
            more += arb(0, slack(cut, None, kernel, epsilon))
        level = expected = float(total.log().mid())
        more += arb(0, slack(whole, jumps, kernel, epsilon))
        whole = jumps.small
        rest = _small_alone(jumps, kernel, strip, epsilon)
        found = total + more + arb(0).union(rest)
        if found.rel_accuracy_bits() >= bits - LOSS:
            return found
        with contextlib.suppress(UndecidedError):
            found = total + more + _beside(whole, kernel, strip, epsilon, bits, total, level)
            if found.rel_accuracy_bits() >= bits - LOSS:
                return found
    raise UndecidedError(f"Small losses hide the large ones at epsilon={float(epsilon):.6g}.")


def _below_plateau(
    jumps: Jumps, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int
) -> arb:
    """Return the integral of the small losses, and what little the large ones add."""
    main = integral(jumps.small, kernel, strip, epsilon, bits)
    large = saddle_value(jumps, strip, float(epsilon), bits)
    if large is None or not main > 0:
        raise UndecidedError("No saddle was found for the large losses.")
    with ctx.workprec(_ROUGH + jumps.count.bit_length()):
        c = ball(Fraction(large.c))
        bound = _chernoff(jumps.log_upper(Fraction(large.c)), c, kernel, epsilon)
    if bound < main * arb(2) ** -(bits - LOSS + 1):
        return main + arb(0).union(bound)
    above = math.ceil((large.log_value - float(main.log().mid())) / _LOG_2)
    return main + integral(jumps, kernel, strip, epsilon, max(bits + above, _FEWEST))


def _beside(  # noqa: PLR0917
    measure: Measure,
    kernel: Kernel,
    strip: Strip,
    epsilon: ExactReal,
    bits: int,
    known: arb,
    expected: float | None,
) -> arb:
    """Return the integral of a measure, beside what is known, with as many bits more as cancel.

    They are those by which its saddle-point value is above the logarithm that is expected of the
    sum, and more where that is not enough.
    """
    asked, extra = bits, 0
    found = saddle_value(measure, strip, float(epsilon), bits)
    if expected is not None and found is not None:
        above = math.ceil((found.log_value - expected) / _LOG_2)
        asked = max(bits + min(above, _MOST_EXTRA if known.is_zero() else 0), _FEWEST)
    while True:
        value = integral(measure, kernel, strip, epsilon, asked + extra)
        missing = bits - (known + value).rel_accuracy_bits()
        if missing <= LOSS or extra > _MOST_EXTRA:
            return value
        extra += max(missing, _FEWEST)


def _small_alone(jumps: Jumps, kernel: Kernel, strip: Strip, epsilon: ExactReal) -> arb:
    """Return Chernoff's bound of the integral without large losses, at a tilt found by floats."""
    try:
        tilt = tilt_of_small(jumps, strip, float(epsilon))[0]
    except ArithmeticError as error:
        raise UndecidedError(f"No bound of the small losses alone: {error}.") from error
    for share in _SHARES:
        c = Fraction(share * tilt)
        with contextlib.suppress(UndecidedError), ctx.workprec(_ROUGH + jumps.count.bit_length()):
            found = _chernoff(jumps.small.log_upper(c), ball(c), kernel, epsilon)
            if found.is_finite():
                return found
    raise UndecidedError("No bound was found for the small losses alone.")


def _chernoff(log_moment: arb, c: arb, kernel: Kernel, epsilon: ExactReal) -> arb:
    """Return Chernoff's bound of an integral, from ln M(c) at some c > 0.

    For δ it is M(c) e^{−cε} sup_x (1 − e^{−x}) e^{−cx}, which is c^c/(1 + c)^{1 + c}.
    """
    size = log_moment - c * epsilon.ball()
    if kernel == Kernel.CALL:
        size += log_peak(c)
    return size.exp().upper()


def estimate(loss: Loss, log_delta: float) -> float:
    """Return ε with ln δ(ε) = log_delta where large losses are rare, in floats, without proof."""
    epsilon = _first(loss, log_delta)
    for _ in range(_ROUNDS):
        at = near(epsilon)
        cut = cut_for_jumps(loss, CALL, at, _BITS, _SPARE)
        lowest = log_level(loss, CALL, at, _BITS) - _BITS * _LOG_2 - _SPARE
        single = single_at(loss, at)
        flat = plateau(cut, CALL, at, _BITS, lowest, single)
        last = epsilon
        if flat is not None:
            single = None
            with contextlib.suppress(UndecidedError, ArithmeticError):
                epsilon = _root(_small_and_large(flat.jumps, at), cut, log_delta, epsilon)
                if abs(last - epsilon) < _SAME * epsilon:
                    break
                continue
        level = None if flat is None else flat.log_value
        apart = window(cut, CALL, at, _BITS, level, lowest, single=single is not None)
        if apart is None or not is_all(apart, CALL, at, _BITS, level):
            raise UndecidedError(f"No losses are rare and large at epsilon={epsilon:.6g}.")
        engine = Estimator([(FloatJumps(apart), 1)], _MOST_LOSS, _TARGET)
        epsilon = _root([engine], cut, log_delta, epsilon)
        if abs(last - epsilon) < _SAME * epsilon:
            break
    return epsilon


def _small_and_large(jumps: Jumps, epsilon: float) -> list[Estimator]:
    """Return the engines of the small losses, which are nearly everything, and of the large ones.

    The latter may lose as many digits as their terms are smaller.
    """
    small = saddle_value(jumps.small, CALL, epsilon, _BITS)
    above = saddle_value(jumps, CALL, epsilon, _BITS)
    if small is None or above is None:
        raise UndecidedError(f"No saddle was found at epsilon={epsilon:.6g}.")
    lower = small.log_value - above.log_value
    if lower > TARGET:
        return [estimator(jumps.small)]
    large = Estimator([(FloatJumps(jumps), 1)], max(lower, 0.0) + _SPARE, _TARGET)
    return [estimator(jumps.small), large]


def _root(engines: Sequence[Estimator], cut: Loss, log_delta: float, epsilon: float) -> float:
    """Return ε where these integrals, and what a cut takes, add up to e^log_delta.

    Each integral is asked on one line for all ε near the one that it was made for.
    """
    for _ in range(_MOST_LINES):
        lines = [engine.line(CALL, epsilon) for engine in engines]
        first = epsilon
        for _ in range(_MOST_SECANTS):
            values, slopes = zip(*(line(epsilon) for line in lines), strict=True)
            for engine, line, value in zip(engines, lines, values, strict=True):
                line.check(epsilon, value, engine.most_loss)
            total = float(np.logaddexp.reduce([*values, sure_delta(cut, epsilon)]))
            fall = sum(s * math.exp(v - total) for v, s in zip(values, slopes, strict=True))
            move = (log_delta - total) / fall if fall < 0 else math.inf
            if abs((epsilon + move - first) * slopes[0]) > _AWAY:
                break
            epsilon += move
            if abs(move) < _SETTLED * epsilon:
                return epsilon
        limit = _AWAY / abs(slopes[0])
        epsilon = first + min(max(epsilon + move - first, -limit), limit)
    raise UndecidedError(f"No epsilon was found for ln(delta)={log_delta:.6g} in floats.")


def _first(loss: Loss, log_delta: float) -> float:
    """Return a first ε: one large loss explains δ, or small ones do.

    Either alone makes δ too small, and so ε.
    """
    found: list[float] = []
    for way in (one_jump, no_jump):
        with contextlib.suppress(UndecidedError, ArithmeticError):
            found.append(way(loss, log_delta))
    return max(found) if found else start(loss, log_delta)


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
        first = 0 if t[0] == 0 else 1
        t = np.concatenate([[0.0], t]) if first else t
        size = np.zeros(len(t), dtype=np.complex128)
        shares: list[tuple[int, Complexes]] = []
        for (part, count), jump in zip(self.jumps.small.factors, self.jumps.large, strict=True):
            at, small = _on_line(part, c, t)
            size += count * small
            if jump is not None:
                above, large = _on_line(jump, c, t)
                shares.append((count, above - at + large - small))
        top = max(float(share.real.max()) for _, share in shares)
        with np.errstate(divide="ignore"):
            if top < _NEGLIGIBLE:
                size += np.log(sum(count * np.exp(share - top) for count, share in shares))
            else:
                excess = sum((k * _log1p_exp(share) for k, share in shares), np.zeros_like(size))
                size += _log_expm1(excess)
        size -= size[0]
        return size.real[first:], size.imag[first:] - self.cumulants(c)[1] * t[first:]


def _on_line(part: Transform, c: float, t: Floats) -> tuple[float, Complexes]:
    """Return ln M(c), and ln M(c + it) − ln M(c), without proof."""
    floats = floats_of(part)
    size, mean, _ = floats.cumulants(c)
    real, imaginary = floats.log_ratio(c, t)
    return size, np.maximum(real, _LEAST) + 1j * (imaginary + mean * t)


def _log1p_exp(z: Complexes) -> Complexes:
    """Return ln(1 + e^z)."""
    w = np.exp(np.where(z.real > _LARGE, 0.0, z))
    near = w * (1 - w * (1 / 2 - w * (1 / 3 - w / 4)))  # numpy's log1p has no digits there
    found: Complexes = np.where(np.abs(w) < _TINY, near, np.log(1 + w))
    return np.where(z.real > _LARGE, z, found)


def _log_expm1(z: Complexes) -> Complexes:
    """Return ln(e^z − 1)."""
    near = z * (1 + z * (1 / 2 + z * (1 / 6 + z / 24)))
    far = np.exp(np.where(z.real > _LARGE, 1.0, z)) - 1
    found: Complexes = np.log(np.where(np.abs(z) < _TINY, near, far))
    return np.where(z.real > _LARGE, z, found)
