"""Integrals where large losses are rare, with the transforms of `jumps`."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from fractions import Fraction

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
    plateau,
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

    def tries() -> Iterator[tuple[Loss, Jumps | None, float | None, bool]]:
        """Yield cuts, thresholds, ln of the integral if known, and whether small losses are it."""
        flat = plateau(cut, strip, at, planned, lowest, single)
        many = flat is not None and loss.count > _MANY
        if many:
            with contextlib.suppress(UndecidedError):
                yield decided_cut(loss, strip, float(epsilon), planned), None, None, True
        if flat is not None:
            yield cut, flat.jumps, flat.log_value, True
        level = None if flat is None else flat.log_value
        alone = single is not None and flat is None
        low = window(cut, strip, at, planned, level, lowest, single=alone)
        if low is not None:
            expected = single.log_delta if alone and single is not None else level
            yield cut, low, expected, False
        if not many:
            yield decided_cut(loss, strip, float(epsilon), planned), None, None, True

    for ends, jumps, expected, mostly_small in tries():
        with contextlib.suppress(UndecidedError):
            if jumps is None:
                found = _beside(ends, kernel, strip, epsilon, bits, arb(0), None)
            else:
                found = _parts(jumps, kernel, strip, epsilon, bits, expected, mostly_small)
                found += arb(0, slack(ends, jumps, kernel, epsilon))
            found += beyond(loss, ends, kernel, epsilon, found, bits)
            found += arb(0, slack(ends, None, kernel, epsilon))
            if found.rel_accuracy_bits() >= bits - LOSS:
                return found
    raise UndecidedError(f"Small losses hide the large ones at epsilon={float(epsilon):.6g}.")


def _parts(  # noqa: PLR0917
    jumps: Jumps,
    kernel: Kernel,
    strip: Strip,
    epsilon: ExactReal,
    bits: int,
    expected: float | None,
    mostly_small: bool,
) -> arb:
    """Return the sum of the integrals of the small losses alone and of all others.

    One of them is nearly everything; the other one is only bounded where that is enough.
    """
    first, second = (jumps.small, jumps) if mostly_small else (jumps, jumps.small)
    main = _beside(first, kernel, strip, epsilon, bits, arb(0), expected)
    if not main > 0:
        raise UndecidedError("Both parts of an integral cancel.")
    with contextlib.suppress(UndecidedError):
        rest = (_large_ones if mostly_small else _small_alone)(jumps, kernel, strip, epsilon)
        if (found := main + arb(0).union(rest)).rel_accuracy_bits() >= bits - LOSS + 1:
            return found
    known = float(main.log().mid())
    return main + _beside(second, kernel, strip, epsilon, bits, main, known)


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


def _large_ones(jumps: Jumps, kernel: Kernel, strip: Strip, epsilon: ExactReal) -> arb:
    """Return Chernoff's bound of the integral of outcomes with large losses."""
    large = saddle_value(jumps, strip, float(epsilon), _ROUGH)
    if large is None:
        raise UndecidedError("No saddle was found for the large losses.")
    with ctx.workprec(_ROUGH + jumps.count.bit_length()):
        c = Fraction(large.c)
        return _chernoff(jumps.log_upper(c), ball(c), kernel, epsilon)


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
