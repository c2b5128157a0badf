"""The masses of a pair on a grid by connecting the dots, in balls: a reference for other grids.

What lies between two grid points is split onto both so that its mass under P and under Q stays
(Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022). Losses above the grid become ∞, those below
it move to its lowest point.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from flint import arb

from dpassay.accountant.core.pair import Pair, Tails
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx

_PRECISION = 256
"""Bits of masses and of their bounds."""


def discretised(pair: Pair, step: Fraction, first: int, last: int) -> list[arb]:
    """Return the P-masses on the grid points step·n, first ≤ n ≤ last."""
    fine = max(0, step.denominator.bit_length() - step.numerator.bit_length())
    with ctx.workprec(_PRECISION + fine):  # the masses of a cell differ by a share h
        cuts = [pair.tails(ExactReal.of_rational(step * n)) for n in range(first, last + 1)]
        masses = [arb(0) for _ in cuts]
        gap = -(-ball(step)).expm1()
        scale, growth = ball(step * first).exp(), ball(step).exp()
        masses[0] += cuts[0].p_below  # all losses below are raised to the lowest point
        for i, cells in enumerate(pairwise(cuts)):
            p, q = _mass(*cells)
            right = (p - q * scale) / gap  # of p, which keeps q
            masses[i] += p - right
            masses[i + 1] += right
            scale *= growth
        return [mass.max(arb(0)) for mass in masses]


def _mass(left: Tails, right: Tails) -> tuple[arb, arb]:
    """Return P and Q of {left < L ≤ right}, from the tails that lose less to subtraction."""
    p = (left.p_above - right.p_above, right.p_below - left.p_below)
    q = (left.q_above - right.q_above, right.q_below - left.q_below)
    return min(p, key=arb.rad), min(q, key=arb.rad)
