"""Questions at an irrational ε, and exact sums of losses."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from accountant.core.pair import Pair, Tails
from accountant.numbers.exact import ExactReal


def hockey_stick_at(pair: Pair, epsilon: arb) -> arb:
    """Return a ball for H at every ε in the ball.

    H does not increase, so its values at the two ends of the ball, which are rational, enclose it.
    """
    low, high = ends(epsilon)
    upper = pair.hockey_stick(low)
    return upper if low == high else upper.union(pair.hockey_stick(high))


def tails_at(pair: Pair, epsilon: arb) -> Tails:
    """Return balls for the tails at every ε in the ball: they are monotone too."""
    low, high = ends(epsilon)
    left = pair.tails(low)
    return left if low == high else hull(left, pair.tails(high))


def hull(first: Tails, second: Tails) -> Tails:
    """Return the tails that contain both."""
    return Tails(
        p_above=first.p_above.union(second.p_above),
        p_below=first.p_below.union(second.p_below),
        q_above=first.q_above.union(second.q_above),
        q_below=first.q_below.union(second.q_below),
    )


def ends(value: arb) -> tuple[ExactReal, ExactReal]:
    """Return the two ends of a finite ball, exactly."""
    low, high = value.lower(), value.upper()
    return _dyadic(low), _dyadic(high)


def _dyadic(point: arb) -> ExactReal:
    mantissa, exponent = (int(part) for part in point.man_exp())
    return ExactReal.of_rational(Fraction(mantissa) * Fraction(2) ** exponent)


def exact_sum(values: Sequence[ExactReal]) -> ExactReal | None:
    """Return the sum where the numbers that are not 0 have rational ratios, else None.

    Square roots of rationals that are pairwise incommensurable are linearly independent over the
    rationals, so that a sum of two of them is never the root of a rational: None is final.
    """
    terms = [value for value in values if value.sign]
    if not terms:
        return ExactReal.of_rational(0)
    ratios = [(term / terms[0]).rational for term in terms]
    total = Fraction(0)
    for ratio in ratios:
        if ratio is None:
            return None
        total += ratio
    return ExactReal.of_rational(total) * terms[0]
