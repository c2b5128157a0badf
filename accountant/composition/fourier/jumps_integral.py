"""Integrals where large losses are rare, with the transforms of `jumps`."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from accountant.composition.fourier.certified import Kernel, integral
from accountant.composition.fourier.cut import (
    coarse,
    near,
    saddle_value,
)
from accountant.composition.fourier.jumps import Jumps
from accountant.composition.fourier.jumps_plan import (
    cut_for_jumps,
    log_level,
    single_at,
    tilt_of_small,
    window,
)
from accountant.composition.fourier.measure import LOSS, Loss, Measure
from accountant.composition.fourier.sure import beyond, decided_cut, slack
from accountant.composition.numeric.search import Strip
from accountant.errors import UndecidedError
from accountant.numbers.chernoff import log_peak
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball
from accountant.numbers.precision import ctx

_LOG_2 = math.log(2)
_ROUGH = 56
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
_MOST = 7
"""Times that small losses are taken apart once more: each costs an integral, and leaves fewer."""
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
    cut = cut_for_jumps(loss, strip, at, planned, _SPARE)
    single = single_at(loss, at)
    lowest = log_level(loss, strip, at, planned) - planned * _LOG_2 - _SPARE

    question = _Question(kernel, strip, epsilon, bits, lowest, single=single is not None)

    def by_one() -> tuple[Loss, Jumps | None, arb]:
        """Cut losses that decide alone."""
        sure = decided_cut(loss, strip, float(epsilon), planned)
        return sure, None, question.beside(sure, arb(0), None)

    def by_all() -> tuple[Loss, Jumps | None, arb]:
        """Take large losses apart from small ones."""
        low = window(cut, strip, at, planned, None, lowest, single=single is not None)
        if low is None:
            raise UndecidedError(f"No losses are large at epsilon={float(epsilon):.6g}.")
        expected = None if single is None else single.log_delta
        return cut, low, question.mostly_large(low, arb(0), expected)

    for way in (by_one, by_all) if loss.count > _MANY else (by_all, by_one):
        with contextlib.suppress(UndecidedError):
            ends, jumps, part = way()
            found = part + beyond(loss, ends, kernel, epsilon, part, bits)
            found += arb(0, slack(ends, None, kernel, epsilon))
            if jumps is not None:
                found += arb(0, slack(ends, jumps, kernel, epsilon))
            if found.rel_accuracy_bits() >= bits - LOSS:
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
    lowest: float
    """ln of what cuts may overlap by."""
    single: bool
    """Whether one large loss decides alone."""

    def mostly_large(
        self, jumps: Jumps, known: arb, expected: float | None, left: int = _MOST
    ) -> arb:
        """Return the integrals of outcomes with large losses and of all others, and what is known.

        The latter are bounded where that is enough, or taken apart once more.
        """
        total = known + self.beside(jumps, known, expected)
        with contextlib.suppress(UndecidedError):
            found = total + arb(0).union(self._small_alone(jumps))
            if self._is_enough(found):
                return found
        level = _log(total)
        with contextlib.suppress(UndecidedError):
            return total + self.beside(jumps.small, total, level)
        at, planned = near(float(self.epsilon)), coarse(self.bits)
        low = window(jumps.small, self.strip, at, planned, level, self.lowest, single=self.single)
        if low is None or left == 0:
            raise UndecidedError("The small losses have no short line.")
        total += arb(0, slack(jumps.small, low, self.kernel, self.epsilon))
        return self.mostly_large(low, total, level, left - 1)

    def _is_enough(self, found: arb) -> bool:
        return bool(found.rel_accuracy_bits() >= self.bits - LOSS)

    def beside(self, measure: Measure, known: arb, expected: float | None) -> arb:
        """Return the integral of a measure, to as many bits more as cancel with what is known.

        They are those by which its saddle-point value is above the logarithm that is expected of
        the sum, and more where that is not enough.
        """
        asked, extra = self.bits, 0
        found = saddle_value(measure, self.strip, float(self.epsilon), self.bits)
        if expected is not None and found is not None:
            above = math.ceil((found.log_value - expected) / _LOG_2)
            asked = max(self.bits + min(above, _MOST_EXTRA if known.is_zero() else 0), _FEWEST)
        while True:
            value = integral(measure, self.kernel, self.strip, self.epsilon, asked + extra)
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
