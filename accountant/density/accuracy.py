"""Enclosed moments and quantiles of a density.

x^n f on a half-line is itself a density given by a formula, so the same code encloses its integral.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from dpassay.accountant.density.law import Law, goal, law_of
from dpassay.accountant.density.pieces import Piece
from dpassay.accountant.density.sweep import Break
from dpassay.accountant.density.tree import ZERO, X, branch, mirrored, mul, power
from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.solve import crossing


def mean(found: Law) -> arb:
    """Return E X; ±∞ or NaN if a tail is too heavy."""
    return (_half(found, 1, right=True) - _half(found, 1, right=False)) / found.total()


def absolute_moment(found: Law, n: int) -> arb:
    """Return E|X|^n, +∞ if a tail is too heavy."""
    return (_half(found, n, right=True) + _half(found, n, right=False)) / found.total()


def _half(found: Law, n: int, *, right: bool) -> arb:
    """Return the integral of |x|^n f over one half-line."""
    tree = found.tree if right else mirrored(found.tree)
    side = found if right else found.mirrored
    heavy, end = side.power_of_tail, side.support[1]
    if heavy is not None and heavy + n >= -1:
        return arb.pos_inf()
    if end is not None and end <= 0:
        return arb(0)
    weighted = branch(X, mul(power(X, Fraction(n)), tree), ZERO, joined=True)
    try:
        return law_of(weighted, "the density").total()
    except InvalidInputError as refusal:
        raise UndecidedError(f"A moment was not enclosed. {refusal}") from None


def _last_below(law: Law, x: Fraction) -> arb:
    """Enclose the supremum of the points ≤ x at which f is not 0."""
    last = [part for part in _charged(law) if part.low is None or part.low.low < x][-1]
    if last.high is None or last.high.low >= x:
        return ball(x)
    return ball(last.high.low).union(ball(min(x, last.high.high)))


def _charged(law: Law) -> list[Piece]:
    return [part for part in law.pieces.parts if not part.is_zero]


def _end(place: Break | None, infinite: arb) -> arb:
    return infinite if place is None else ball(place.low).union(ball(place.high))


def quantile(law: Law, level: ExactReal, p: arb) -> arb:
    """Return the least x with F(x) ≥ p, where p is a ball that contains `level`."""
    low, high = law.support
    if law.axis is not None and level.rational == Fraction(1, 2):
        return _last_below(law, law.axis)
    if level.rational == 0:
        return _end(_charged(law)[0].low, arb.neg_inf())
    if level.rational == 1:
        return _end(_charged(law)[-1].high, arb.pos_inf())

    def excess(x: Fraction) -> arb:
        below = law.mass(None, x)
        above = law.mass(x, None)
        return (1 - p) * below - p * above  # (F − p)·total, without cancellation in 1 − F

    a = -Fraction(1) if low is None else low
    while low is None and not excess(a) < 0:
        a *= 2
    b = max(Fraction(1), a + 1) if high is None else high
    while high is None and not excess(b) > 0:
        b *= 2
    ends = crossing(excess, a, b, goal())
    return ball(ends[0]).union(ball(ends[1]))
