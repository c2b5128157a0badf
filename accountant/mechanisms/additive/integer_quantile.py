"""Quantiles of laws on the integers, from their two tails."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball

Tail = Callable[[int], arb]


def integer_quantile(at_most: Tail, above: Tail, probability: ExactReal) -> arb:
    """Return the least integer x with P(Z ≤ x) ≥ probability, ∓∞ at 0 and 1.

    Parameters
    ----------
    at_most, above
        P(Z ≤ x) and P(Z > x), at flint's current precision; the smaller of the two is asked, so
        that a probability near 1 costs no more digits than one near 0.
    probability
        In [0, 1]. The support is unbounded on both sides.

    Notes
    -----
    Where the precision does not decide a comparison, the ball covers every integer in question.
    """
    if probability.sign == 0:
        return arb.neg_inf()
    if probability.rational == 1:
        return arb.pos_inf()
    upper = probability > ExactReal.of_rational(Fraction(1, 2))
    target = _complement(probability) if upper else probability.ball()
    if not target > 0:  # an irrational probability within one rounding of 1
        return arb("0 +/- inf")

    def reached(x: int) -> bool | None:
        value = above(x) if upper else at_most(x)
        if value <= target if upper else value >= target:
            return True
        return False if (value > target if upper else value < target) else None

    low, high, step = -1, 0, 1
    while reached(low) is not False:
        low -= step
        step *= 2
    step = 1
    while reached(high) is not True:
        high += step
        step *= 2
    while high - low > 1:
        middle = (low + high) // 2
        verdict = reached(middle)
        if verdict is None:
            return arb(low + 1).union(arb(high))
        low, high = (low, middle) if verdict else (middle, high)
    return arb(high)


def _complement(probability: ExactReal) -> arb:
    if probability.rational is None:
        return 1 - probability.ball()
    return ball(1 - probability.rational)
