"""Integrals and estimates where large losses are rare, with the transforms of `jumps`."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from flint import arb, ctx

from accountant.composition.jumps import Jumps, floats_of
from accountant.composition.jumps_plan import one_jump, plan_of_both, plan_of_jumps
from accountant.composition.saddle import CALL, Estimator
from accountant.composition.saddle_certified import Kernel, Loss, integral
from accountant.composition.saddle_cut import chosen, near, start
from accountant.composition.saddle_search import Strip, saddle
from accountant.composition.saddle_transform import Transform
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
_ROUGH = 56
_LARGE = 40.0
_LEAST = -700.0
_SPARE = 25.0
_FEWEST = 24
_MOST_EXTRA = 400
_MOST_TRIES = 3
_MOST_SECANTS = 12
_ENOUGH = 1e-10
_LOSS = 10


def jump_integral(
    loss: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int
) -> tuple[arb, Loss]:
    """Return a ball around G(ε) of relative accuracy of about 2^−bits, and the cut loss it is of.

    `strip` reaches to the right: large losses count there. What the cut takes from the laws is not
    in the ball (`saddle_cut.lost`).

    Raises UndecidedError where no threshold tells small losses from large ones, or where a line
    has too many nodes.
    """
    at, spare = near(float(epsilon)), _SPARE
    for _ in range(_MOST_TRIES):
        cut, jumps = plan_of_jumps(loss, strip, at, bits, spare)
        if jumps is None:
            break
        found = _large_alone(jumps, kernel, strip, epsilon, bits)
        rest = _small_alone(jumps, kernel, strip, epsilon)
        total = found + arb(0).union(rest)
        if total.rel_accuracy_bits() >= bits - _LOSS:
            return total, cut
        if not found > 0:
            break
        excess = float((rest / found).log().mid())
        needed = max(bits + math.ceil(excess / _LOG_2), _FEWEST)
        with contextlib.suppress(UndecidedError):
            total = found + integral(jumps.small, kernel, strip, epsilon, needed)
            if total.rel_accuracy_bits() >= bits - _LOSS:
                return total, cut
        spare += max(excess + bits * _LOG_2, _SPARE)
    cut, jumps = plan_of_both(loss, strip, at, bits)
    found = integral(jumps.small, kernel, strip, epsilon, bits)
    total = found + _large_alone(jumps, kernel, strip, epsilon, bits)
    if total.rel_accuracy_bits() >= bits - _LOSS:
        return total, cut
    raise UndecidedError(f"Small losses hide the large ones at epsilon={float(epsilon):.6g}.")


def _large_alone(jumps: Jumps, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int) -> arb:
    """Return the integral of F, with as many bits more as cancel."""
    extra = 0
    while True:
        found = integral(jumps, kernel, strip, epsilon, bits + extra)
        missing = bits - found.rel_accuracy_bits()
        if missing <= _LOSS or extra > _MOST_EXTRA:
            return found
        extra += max(missing, _FEWEST)


def _small_alone(jumps: Jumps, kernel: Kernel, strip: Strip, epsilon: ExactReal) -> arb:
    """Return Chernoff's bound of the integral without large losses, at one of two tilts.

    For δ it is M(c) e^{−cε} sup_x (1 − e^{−x}) e^{−cx}, which is c^c/(1 + c)^{1 + c}.
    """
    best = arb("inf")
    for part in (jumps.small, jumps):
        try:
            c = Fraction(saddle(part, strip, float(epsilon)).c)
            with ctx.workprec(_ROUGH + jumps.count.bit_length()):
                size = jumps.small.log_upper(c) - ball(c) * epsilon.ball()
        except (ArithmeticError, UndecidedError):
            continue
        if kernel is Kernel.CALL:
            size += ball(c) * ball(c).log() - (1 + ball(c)) * ball(c).log1p()
        if size.is_finite():
            best = best.min(size.exp().upper())
    if not best.is_finite():
        raise UndecidedError("No bound was found for the small losses alone.")
    return best


def estimate(loss: Loss, log_delta: float) -> float:
    """Return ε with ln δ(ε) = log_delta where large losses are rare, without proof.

    In floats, where these do; else by the secant method on enclosures.
    """
    try:
        return _infloats_of(loss, log_delta)
    except (UndecidedError, ArithmeticError):
        return _by_secants(loss, log_delta)


def _infloats_of(loss: Loss, log_delta: float) -> float:
    epsilon = start(loss, log_delta)
    for _ in range(_ROUNDS):
        _, jumps = plan_of_jumps(loss, CALL, near(epsilon), _BITS, _SPARE)
        if jumps is None:
            raise UndecidedError(f"No losses are rare and large at epsilon={epsilon:.6g}.")
        last, epsilon = epsilon, Estimator([(FloatJumps(jumps), 1)], _SPARE).epsilon(log_delta)
        if not math.isfinite(epsilon):
            raise UndecidedError(f"No epsilon was found for ln(delta)={log_delta:.6g} in floats.")
        if abs(last - epsilon) < _SAME * epsilon:
            break
    return epsilon


def _by_secants(loss: Loss, log_delta: float) -> float:
    try:
        epsilon, slope = one_jump(loss, log_delta)
    except (UndecidedError, ArithmeticError):
        epsilon = start(loss, log_delta)
        slope = -saddle(chosen(loss, CALL, near(epsilon), _BITS), CALL, epsilon).c
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
        with np.errstate(divide="ignore"):
            if top < _NEGLIGIBLE:
                size += np.log(sum(count * np.exp(share - top) for count, share in shares))
            else:
                excess = sum((k * _log1p_exp(share) for k, share in shares), np.zeros_like(size))
                size += _log_expm1(excess)
        size -= size[0]
        return size.real[1:], size.imag[1:] - self.cumulants(c)[1] * t[1:]


def _on_line(part: Transform, c: float, t: Floats) -> tuple[float, Complexes]:
    """Return ln M(c), and ln M(c + it) − ln M(c), without proof."""
    floats = floats_of(part)
    size, mean, _ = floats.cumulants(c)
    real, imaginary = floats.log_ratio(c, t)
    return size, np.maximum(real, _LEAST) + 1j * (imaginary + mean * t)


def _log1p_exp(z: Complexes) -> Complexes:
    """Return ln(1 + e^z)."""
    small = np.where(z.real > _LARGE, 0.0, z)
    found: Complexes = np.where(z.real > _LARGE, z, np.log1p(np.exp(small)))
    return found


def _log_expm1(z: Complexes) -> Complexes:
    """Return ln(e^z − 1)."""
    small = np.where(z.real > _LARGE, 1.0, z)
    found: Complexes = np.where(z.real > _LARGE, z, np.log(np.expm1(small)))
    return found
