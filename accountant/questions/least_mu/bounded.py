"""The least μ of bounded losses: a root, beside the largest ratio of the profiles."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from dpassay.accountant.composition.invert import hockey_stick, most
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.dominance import largest_ratio
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.questions.least_mu.curve import profile_of

_SEARCH_PRECISION = 64
"""Bits of profiles that are compared."""
_ENOUGH = 16
"""ln of a ratio of profiles that is large enough to know: μ is far too small then."""


def least_mu(pairs: Sequence[Pair], width: Fraction) -> Interval:
    """Enclose the least μ of pairs with bounded losses, to a relative width."""
    pairs = list(dict.fromkeys(pairs))  # a symmetric one is asked once
    stop = Fraction(Interval.of_ball(most([pair.max_loss() for pair in pairs]), 30).upper)
    # the same points are asked for at every μ, at one precision
    value = functools.cache(lambda at: hockey_stick(pairs, at))

    def excess(mu: ExactReal) -> arb:
        with ctx.workprec(_SEARCH_PRECISION):
            ratio = largest_ratio(value, profile_of(mu), stop, enough=_ENOUGH)
            return ratio.log() if ratio.is_finite() else arb(_ENOUGH)

    guess = max(float(stop), 1e-300)
    low, high = _around(excess, Fraction(guess))
    return solve.root(excess, (low, high), relative_width=width)


def _around(excess: solve.Function, guess: Fraction) -> solve.Bracket:
    """Return points on both sides of the root, by factors of 2 from a guess."""
    low = high = guess
    for _ in range(400):
        if excess(ExactReal.of_rational(high)) < 0:
            break
        high *= 2
    for _ in range(400):
        if excess(ExactReal.of_rational(low)) > 0:
            return low, high
        low /= 2
    raise UndecidedError("No mu was found on either side of the least one.")
