"""How far one privacy profile exceeds another: the supremum of a ratio, over all ε ≥ 0.

As a function of z = e^ε every profile is convex, H = sup_S P(S) − z Q(S), and non-increasing.
On a piece [z₁, z₂] with a point m inside, the profile in the numerator therefore lies below its
chords over [z₁, m] and [m, z₂]; the profile in the denominator lies above the chord over
[m, z₂] extended to the left, and above the chord over [z₁, m] extended to the right. All four
are lines, so three comparisons prove a bound on the whole piece, with an error of second order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx

Profile = Callable[[ExactReal], arb]
_MAX_PIECES = 2000
"""Pieces of a range that are bounded: profiles that touch would take any number."""


def largest_ratio(value: Profile, limit: Profile, stop: Fraction, *, enough: int) -> arb:
    """Return a ball for sup of value(ε)/limit(ε) over 0 ≤ ε ≤ stop with value(ε) > 0.

    Parameters
    ----------
    value, limit
        Non-increasing functions of ε, convex in e^ε; each returns a ball at an exact point.
    stop
        An ε at and beyond which `value` is 0.
    enough
        A ratio above which the search ends.

    Returns
    -------
    arb
        A ball of relative width 2^(−p/2) at flint's precision p; or, once a ratio above `enough`
        is met, that ratio: a lower bound, +∞ where `limit` is 0 and `value` is not.

    Raises
    ------
    UndecidedError
        If a fixed number of pieces does not suffice.
    """
    precision = ctx.prec
    with ctx.workprec(2 * precision):
        stretch = 1 + arb(2) ** (-precision // 2)
        found = _Pieces(value, limit).largest(stop, stretch, enough)
        return found if found > enough or not found.is_finite() else found.union(found * stretch)


class _Pieces:
    """Branch and bound over pieces of [0, stop]; every profile value is computed once."""

    def __init__(self, value: Profile, limit: Profile) -> None:
        self._value = functools.cache(lambda at: value(ExactReal.of_rational(at)))
        self._limit = functools.cache(lambda at: limit(ExactReal.of_rational(at)))

    def largest(self, stop: Fraction, stretch: arb, enough: int) -> arb:
        """Return the largest ratio met, once no piece can exceed `stretch` times it."""
        best = self._ratio(Fraction(0))
        pieces = [(Fraction(0), stop)]
        for _ in range(_MAX_PIECES):
            if not pieces or best > enough or not best.is_finite():
                return best
            low, high = pieces.pop()
            middle = (low + high) / 2
            best = best.max(self._ratio(middle)).max(self._ratio(high))
            if best.is_finite() and not self._bounded(low, middle, high, best * stretch):
                pieces += [(low, middle), (middle, high)]
        raise UndecidedError(
            f"The largest ratio of the profiles was not found within {_MAX_PIECES} pieces: they "
            "come too near each other. Ask for delta or epsilon."
        )

    def _ratio(self, at: Fraction) -> arb:
        value, limit = self._value(at), self._limit(at)
        if value.is_zero():
            return arb(0)
        return arb.pos_inf() if limit.is_zero() and value > 0 else value / limit

    def _bounded(self, low: Fraction, middle: Fraction, high: Fraction, ratio: arb) -> bool:
        """Whether value ≤ ratio·limit is proved on the piece."""
        z = [ball(at).exp() for at in (low, middle, high)]
        numerator = [self._value(at) for at in (low, middle, high)]
        t = [self._limit(at) for at in (low, middle, high)]
        left = t[1] + (t[1] - t[2]) * (z[1] - z[0]) / (z[2] - z[1])
        right = t[1] - (t[0] - t[1]) * (z[2] - z[1]) / (z[1] - z[0])
        if not right >= 0:  # the limit may end inside the piece: then the value has to be 0 there
            right = arb(0)
            if not numerator[1].is_zero():
                return False
        return all(n <= ratio * b for n, b in zip(numerator, [left, t[1], right], strict=True))
