"""The least μ of pairs of which only two bounds of the profile are known: between two ends.

*Above*: the μ of a pair that dominates is enough, and those of several releases add up in squares,
also of adaptive ones (Dong, Roth and Su 2022, Corollary 3.3); few Laplace releases are searched as
one. A loss in [−t, t] is t-DP: its trade-off function is above the lines through (0, 1), (c, c) and
(1, 0), c = 1/(1 + e^t), and the convex one of N(μ, 1) is below them where it passes (c, c), for
Φ(−μ/2) = c. *Below*: a μ at which δ_μ(ε) is less than a lower bound of H(ε) is too small, and so is
one with μ² < 2D_1. All of it is asked of the pair and of its reverse.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from dpassay.accountant.composition.exact.laplace_product import is_laplace
from dpassay.accountant.composition.invert import hockey_stick, most
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball, nonnegative
from dpassay.accountant.questions.least_mu.closed import floor
from dpassay.accountant.questions.least_mu.curve import needed, tangent

_PLACES = 4
"""Places of ε from 0 up to the largest loss at which a lower bound is looked for."""
_SHARE = Fraction(10**6 - 1, 10**6)
"""Share of a μ in floats that is shown to be too small."""
_FEW = 32
"""Laplace releases that are searched as one: half a second; a thousand take minutes."""
_LONG = 50
"""Loss from which on Φ(−x) ≤ e^{−x²/2}/2 is near enough."""
Bounds = Callable[[Pair], Interval]
"""What encloses the least μ of a pair with an exact profile, or of part of one."""


def least_mu(pair: Pair, bounds: Bounds) -> arb:
    """Return a ball around both ends."""
    sides, high = list(dict.fromkeys((pair, pair.reverse()))), _above(pair, bounds)
    if not high.is_finite():
        raise NotApplicableError("No mu is known to be enough. Ask for delta or epsilon.")
    low = arb(0)
    with contextlib.suppress(NotApplicableError):  # where no divergence is known
        rare = floor(pair).lower()
        low = low if rare.is_nan() else low.max(rare)  # the root of a ball around 0
    largest = _largest_loss(pair)
    reach = largest if largest.is_finite() else arb(_PLACES)
    for i in range(_PLACES):
        epsilon = Fraction(float(reach)) * i / _PLACES
        shown = hockey_stick(sides, ExactReal.of_rational(epsilon)).lower()
        if shown > 0:
            mu = ball(needed(shown, epsilon) * _SHARE)
            if tangent(mu, ball(epsilon))[0] < shown:
                low = low.max(mu)
    return nonnegative(low.union(high))


def _largest_loss(pair: Pair) -> arb:
    """Return an upper end of it, in both directions."""
    return most([pair.max_loss(), pair.reverse().max_loss()]).upper()


def _above(pair: Pair, bounds: Bounds) -> arb:
    """Return a μ that is enough, +∞ where none is known."""
    from dpassay.accountant.pairs.between import Between
    from dpassay.accountant.pairs.bounded_range import Selections

    enough = of_loss(_largest_loss(pair))
    if isinstance(pair, Between):
        return enough.min(_above(pair.most, bounds))
    if isinstance(pair, Selections):
        return enough.min(arb(pair.count).sqrt() * _above(pair.one, bounds))
    if isinstance(pair, Product) and pair.is_product:
        if is_laplace(pair) and sum(count for _, count in pair.factors) <= _FEW:
            return enough.min(bounds(pair).ball().upper())
        squares = (count * _above(part, bounds) ** 2 for part, count in pair.factors)
        return enough.min(sum(squares, start=arb(0)).sqrt())
    return enough if pair.only_bounded else enough.min(bounds(pair).ball().upper())


def of_loss(largest: arb) -> arb:
    """Return the least μ of all that is t-DP: 2Φ⁻¹(e^t/(1 + e^t)), or little more; ∞ for ∞."""
    if not largest.is_finite():
        return arb.pos_inf()
    if largest < _LONG:
        return (arb(8).sqrt() * (largest / 2).tanh().erfinv()).upper()
    return (arb(8) * ((1 + largest.exp()) / 2).log()).sqrt().upper()
