"""Integrals on one line, without the losses that decide alone.

Near ε = 0, and where many small losses and rare large ones mix, the tilt at which the mean of the
losses is ε belongs to losses far above ε, and no threshold far from ε tells the one from the other.
But a loss somewhat above ε decides alone: the outcomes with one are closed forms, up to what
Chernoff's inequality bounds at a negative tilt (`sure`). All other losses are of the size of ε, and
the line through their own saddle is short.
"""

from __future__ import annotations

import math

from flint import arb

from accountant.composition.measure import LOSS, Loss
from accountant.composition.saddle_certified import Kernel, integral
from accountant.composition.saddle_cut import coarse, near, rounded, saddle_value
from accountant.composition.saddle_search import Strip
from accountant.composition.sure import beyond, least_sum, slack, sure_cut
from accountant.errors import UndecidedError
from accountant.number import ExactReal

_LOG_2 = math.log(2)
_ROUNDS = 6
_SURE = 4.0
_SAME = 3.0
_STEEPER = 2.0
_MOST_EXTRA = 64


def decided_integral(
    loss: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int
) -> arb:
    """Return a ball around G(ε) of relative accuracy of about 2^−bits, for a strip to the right.

    Raises UndecidedError where no loss near ε is sure to decide, or where the line is too long.
    """
    cut = _cut(loss, strip, near(float(epsilon)), coarse(bits))
    extra = 0
    while extra <= _MOST_EXTRA:
        found = integral(cut, kernel, strip, epsilon, bits + extra)
        found += beyond(loss, cut, kernel, epsilon, found, bits)
        found += arb(0, slack(cut, None, kernel, epsilon))
        missing = bits - found.rel_accuracy_bits()
        if missing <= LOSS:
            return found
        extra += missing
    raise UndecidedError(f"Losses that do not decide alone cancel at epsilon={float(epsilon):.6g}.")


def _cut(loss: Loss, strip: Strip, epsilon: float, bits: int) -> Loss:
    """Return the loss cut somewhat above ε, so that what is undecided is negligible."""
    if not epsilon > 0:
        raise UndecidedError(f"No loss decides alone at epsilon={epsilon:.6g}.")
    level, tilt = 0.0, 1 / (epsilon + least_sum(loss))
    for _ in range(_ROUNDS):
        cut = sure_cut(loss, epsilon, level - bits * _LOG_2 - _SURE, rounded(tilt))
        found = saddle_value(cut, strip, epsilon, bits)
        if found is None:
            break
        if abs(found.log_value - level) < _SAME and found.furthest <= rounded(tilt):
            return cut
        level, tilt = found.log_value, _STEEPER * found.furthest
    raise UndecidedError(f"No loss is sure to decide alone at epsilon={epsilon:.6g}.")
