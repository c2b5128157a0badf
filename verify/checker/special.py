"""Functions of balls: every one encloses its values over the balls that it is given."""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

_WIDE = 20
"""Bits of a ball with fewer than which a monotone function is evaluated at both ends."""
_FAR = 10
"""From here on Arb's erfc loses digits of a ball, but not of its ends."""


def rising(function: Callable[[arb], arb], x: arb, *, ends: bool = False) -> arb:
    """Evaluate an increasing function, over a wide ball at both ends."""
    if x.is_finite() and (ends or x.rel_accuracy_bits() < _WIDE):
        return function(arb(x.lower())).union(function(arb(x.upper())))
    return function(x)


def phi(x: arb) -> arb:
    """Return the standard normal distribution function, with all digits of both small tails."""
    z = -x / arb(2).sqrt()
    return -rising(lambda y: -y.erfc() / 2, z, ends=bool(abs(z) > _FAR))


def phi_inverse(p: arb) -> arb:
    """Return the normal quantile of p in (0, 1)."""
    if not 0 < p < 1:
        return arb.nan()
    low, root = 2 * p < 1, arb(2).sqrt()
    return rising(lambda x: -root * (2 * x).erfcinv() if low else root * (2 * x - 1).erfinv(), p)


EVALUATED: dict[str, Callable[..., arb]] = {
    "log": lambda x: rising(arb.log, x),
    "exp": lambda x: rising(arb.exp, x),
    "sin": arb.sin,
    "cos": arb.cos,
    "gamma": arb.gamma,
    "lgamma": arb.lgamma,
    "erf": lambda x: rising(arb.erf, x),
    "erfc": lambda x: -rising(lambda y: -arb.erfc(y), x),
    "tanh": lambda x: rising(arb.tanh, x),
    "expm1": lambda x: rising(arb.expm1, x),
    "log1p": lambda x: rising(arb.log1p, x),
    "Phi": phi,
    "Phi_inverse": phi_inverse,
    "gamma_upper": lambda shape, x: x.gamma_upper(shape, 1),
    "beta_lower": lambda a, b, x: x.beta_lower(a, b, 1),
    "lambert_w": lambda x: rising(arb.lambertw, x),
}
