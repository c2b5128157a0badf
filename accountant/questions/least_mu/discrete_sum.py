"""The least μ of sums of few discrete Gaussian variables of a small parameter, test by test.

As for one variable (`accountant.questions.least_mu.discrete`), with the masses of the sum U of n
variables
in place of those of one; beyond them the law is that of a single variable of parameter nv, but
for factors e^{±κ} of its tails, by which a score t ≥ u moves by at most κ/λ(u), u = t(e^κ T).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import final

from flint import arb

from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball
from accountant.numbers.precision import ctx
from accountant.pairs.discrete_gaussian_product import (
    MAX_TERMS,
    DiscreteGaussianProductPair,
    log_spread,
    upper_sums,
)
from accountant.pairs.theta import upper_tail
from accountant.questions.least_mu.discrete import Beyond
from accountant.questions.least_mu.scores import hazard, score

_MOST_BITS = 4096
"""Bits of tails at most: they fall like e^{−x²/2}, and are told apart at their own size."""
_MOST_TESTS = 4096
"""Half-lines beyond the ones that are summed whose bound is asked for."""
_LN_2 = math.log(2)


def least_mu(pair: DiscreteGaussianProductPair, width: Fraction) -> arb | None:
    """Enclose the least μ of n variables alike, to a relative width.

    None where that takes too many values, or digits, of the sum.
    """
    variance = pair.count * pair.parameter
    whole, shift = ExactReal.of_rational(variance), pair.count * pair.shift
    spread = log_spread(ExactReal.of_rational(pair.parameter), pair.count)
    near = _Near(whole, shift, spread)
    stretch, x, best = 1 + ball(width) / 2, max(1, int(variance)), arb(0)
    while True:
        bits = int((x + shift) ** 2 / (2 * float(variance) * _LN_2)) + ctx.prec
        values = 4 * pair.count * (2 * float(pair.parameter) * bits) ** 0.5
        if bits > _MOST_BITS or values > MAX_TERMS or not spread.is_finite():
            return None
        with ctx.workprec(bits):
            tails = upper_sums(pair, x + shift)
            scores = [+score(tails[k]) for k in range(1, x + shift + 1)]

        for k in range(shift // 2 + 1, x + shift + 1):
            other = scores[k - shift - 1] if k > shift else -scores[shift - k]
            best = best.max(scores[k - 1] - other)
        if near.bounded(x, best * stretch):
            return best.union(best * stretch)
        x *= 2


@final
class _Near:
    """Tests far out, by those of the single variable that the sum is near to."""

    def __init__(self, whole: ExactReal, shift: int, spread: arb) -> None:
        self._whole, self._shift, self._spread = whole, shift, spread
        self._beyond = Beyond(whole)

    def bounded(self, x: int, goal: arb) -> bool:
        """Whether no test {U ≥ k} with k − shift ≥ x is seen to need more than the goal."""
        for at in range(x, _MOST_TESTS + x):
            tail = upper_tail(self._whole, at)
            slack = 2 * self._spread / hazard(score(self._spread.exp() * tail))
            if self._shift * self._beyond.steepest(at) + slack <= goal:
                return True
            value = score(upper_tail(self._whole, at + self._shift)) - score(tail)
            if not value + slack <= goal:
                return False
        return False
