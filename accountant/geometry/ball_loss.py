"""The privacy loss of noise with the density e^{−‖x‖₂} in d ≥ 2 dimensions.

P is at a point v of length t, Q at 0: L = ‖x‖ − ‖x − v‖ lies in [−t, t]. In the coordinates L and
s = ‖x‖ + ‖x − v‖ ≥ t of spheroids with foci 0 and v the distance to the axis is
√((s² − t²)(t² − L²))/(2t), so that dx is in proportion to

    ((s² − t²)(t² − L²))^{(d−3)/2} (s² − L²) ds dL,

and P has the density e^{−(s−L)/2}. The integrals over s are Bessel functions K: with z = t/2,
κ = K_{d/2}(z)/K_{d/2−1}(z) and L = t sin φ, the loss has the density w(φ) e^{z sin φ}/W,

    w = cos^d φ + (d − 1)(κ/z) cos^{d−2} φ,  W = √π Γ((d+1)/2) (2/z)^{d/2}/(z K_{d/2−1}(z)),

where ∫(1 − u²)^{ν−½} e^{zu} du = √π Γ(ν + ½)(2/z)^ν I_ν(z) and the Wronskian of I and K give W.
"""

from __future__ import annotations

import math

from flint import acb, arb

from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx

_LOST_BITS = 64
"""Bits that Bessel functions lose where they are computed as differences."""
_LOST_EACH = 1.5
"""Bits more for each unit of |Im y|: the terms of j_ν grow like e^{|y|}, and the sum does not."""


def bessel_k(z: arb, dimension: int) -> tuple[arb, arb]:
    """Return K_{d/2−1}(z) and K_{d/2}(z)."""
    nu = arb(dimension) / 2
    return z.bessel_k(nu - 1), z.bessel_k(nu)


def shape(distance: ExactReal, dimension: int) -> tuple[arb, arb]:
    """Return (d − 1)κ/z, and W."""
    z, half = distance.ball() / 2, arb(dimension) / 2
    less, more = bessel_k(z, dimension)
    whole = arb.pi().sqrt() * (half + 0.5).gamma() * (2 / z) ** half / (z * less)
    return (dimension - 1) * more / (less * z), whole


def moment(distance: ExactReal, dimension: int, tilt: acb) -> acb:
    """Return E_P[e^{cL}] at c = tilt − ½."""
    first, second = terms(distance, dimension, tilt)
    return first + second


def terms(distance: ExactReal, dimension: int, tilt: acb) -> tuple[acb, acb]:
    """Return the terms of the moment, with y = (c + ½)t and j_ν(y) = y^{−ν} I_ν(y).

    It is z^{d/2} (z K_{d/2−1}(z) j_{d/2}(y) + K_{d/2}(z) j_{d/2−1}(y)).
    """
    turned = abs(float((distance.ball() * tilt.imag).mid()))
    with ctx.workprec(ctx.prec + _LOST_BITS + math.ceil(_LOST_EACH * turned)):
        z, nu = distance.ball() / 2, arb(dimension) / 2
        y = 2 * z * tilt
        less, more = bessel_k(z, dimension)
        first, second = (
            (y * y / 4).hypgeom_0f1(acb(n + 1), regularized=True) / arb(2) ** n
            for n in (nu, nu - 1)
        )
        return z ** (nu + 1) * less * first, z**nu * more * second
