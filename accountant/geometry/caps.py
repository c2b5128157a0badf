"""Caps of a sphere: the share of the unit sphere in d ≥ 2 dimensions above a height c, −1 < c < 1.

A coordinate has the density (1 − s²)^m/B, m = (d − 3)/2, B = √π Γ(m + 1)/Γ(m + 3/2), so that

    C_d(c) = ∫ (1 − s²)^m ds/B over s > c = I_{1−c²}((d − 1)/2, 1/2)/2 for c ≥ 0,

and C_d(−c) = 1 − C_d(c). The share of the unit ball above c is C_{d+2}(c), as the coordinates of a
point of that ball are d of a point on the sphere in d + 2 dimensions (Archimedes).
"""

from __future__ import annotations

import math
from functools import lru_cache

from flint import acb, arb

from dpassay.accountant.numbers.precision import ctx

_HALF, _ONE = arb("0.5"), arb(1)
_FLAT = 3
"""Dimensions below which the density of a coordinate has its least value at 0."""
_FAR = 1000
"""The exponent (d − 1)c²/2 up to which the series about 0 is used: it loses so many nats."""
_THIN = 24
"""Bits from which on a real argument is taken as a point, and not as an interval."""
_CAUGHT = 16
"""Bits more than those that a difference is expected to lose."""


def cap(above: acb, below: acb, dimension: int, analytic: bool) -> acb:
    """Return C_d(c) from 1 + c and 1 − c about a real point, elsewhere a ball that contains it.

    The ball is all that bounds of an integrand take: C_d at c = x + iy is C_d(x) less the integral
    over the segment from x to c, on which |1 − s²| grows with |y|. It is not finite where `c` must
    be in the domain of an analytic function, and may lie on the lines ±[1, ∞).
    """
    plus, minus = above.real, below.real
    y = abs(above.imag).upper().min(abs(below.imag).upper())
    inside = plus > 0 and minus > 0
    if inside and y.is_zero() and _is_thin(plus) and _is_thin(minus):
        return acb(share(plus, minus, dimension))
    if y.is_zero() and not analytic:
        return _around(_most(plus, minus, dimension))
    if not inside:
        return acb(arb.nan())
    if dimension < _FLAT:  # the density is largest where the segment begins
        square = (plus * minus).lower() ** 2
    else:
        square = (plus * plus + y * y) * (minus * minus + y * y)
    tall = (square.log() * (dimension - 3) / 4).exp()
    return _around(_most(plus, minus, dimension) + y * tall / _whole(dimension, ctx.prec))


def share(plus: arb, minus: arb, dimension: int) -> arb:
    """Return C_d(c) from 1 + c > 0 and 1 − c > 0.

    About 0 it is 1/2 − c (1 − c²)^{m+1} F(1, m + 3/2; 3/2; c²)/B, a sum of positive terms, with so
    many bits more as the difference loses, at the middle of a ball; elsewhere an incomplete beta
    function.
    """
    if minus.mid() > plus.mid():
        return 1 - share(minus, plus, dimension)
    c, m = 1 - minus, arb(dimension - 3) / 2
    middle = c.mid()
    square = middle * middle
    exponent = float(square) * (dimension - 1) / 2
    if square < _HALF and exponent < _FAR:
        slope = ((minus * (2 - minus)).log() * m).exp() / _whole(dimension, ctx.prec)
        with ctx.workprec(ctx.prec + math.ceil(1.5 * exponent) + _CAUGHT):
            square = middle * middle
            size = ((m + 1) * (1 - square).log()).exp() / _whole(dimension, ctx.prec)
            series = square.hypgeom_2f1(1, m + 1.5, arb("1.5"))
            at_middle = _HALF - middle * size * series
        return at_middle - (c - middle) * slope
    half = arb(dimension - 1) / 2
    found: arb = (plus * minus).beta_lower(half, _HALF, regularized=1) / 2
    return found


def _is_thin(x: arb) -> bool:
    return bool(x.rel_accuracy_bits() > _THIN)


def _most(plus: arb, minus: arb, dimension: int) -> arb:
    """Return 1, for c > 0 (1 − c²)^{(d−1)/2}/2.

    I_z(a, 1/2) is z^a up to a factor that grows with z, and is 1 at z = 1.
    """
    square = (plus * minus).upper()  # of all c in the ball, at least that of the least
    if not (minus < 1 and square > 0):
        return _ONE
    return _HALF * (square.log() * (dimension - 1) / 2).exp()


def _around(most: arb) -> acb:
    size = arb(0, most.upper()) if most.is_finite() else arb.nan()
    return acb(size, size)


@lru_cache(maxsize=64)
def _whole(dimension: int, bits: int) -> arb:
    """Return B."""
    with ctx.workprec(bits):
        m = arb(dimension - 3) / 2
        return arb.pi().sqrt() * ((m + 1).lgamma() - (m + 1.5).lgamma()).exp()
