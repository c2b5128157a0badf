"""Noise with the density e^{−‖x‖/b}: Laplace noise of ℓ1 and ℓ∞, and a law of its own of ℓ2.

In units of b, P is at v of length t, Q at 0, r = ‖x − v‖ is Gamma(d) under P and u the cosine of
the angle to v. ‖x‖² = r² + t² + 2rtu, so ‖x‖ − r > ε where u > ε/t, and else where r is less than
(t² − ε²)/(2(ε − ut)). With u = sin φ, of a density in proportion to cos^{d−2} φ,

    G(ε) = P(L ≤ ε) = ∫ Γ(d, (t² − ε²)/(2(ε − t sin φ)))/Γ(d) cos^{d−2} φ dφ over sin φ < ε/t,

over the integral of cos^{d−2} φ, and Q(L > ε) = P(L < −ε).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import acb, arb

from accountant.numbers.precision import ctx
from verify.checker.declared.law import ALL, NONE, DeclaredLaw, Pair
from verify.checker.notation import Argument, Noise, integer, name_of, positive, rational
from verify.checker.reals import Real, UnknownError, ball, sqrt

_BITS, _PRECISION = 80, 256
"""Of an integral, and of its integrand, which loses digits where x is large."""
_SQUARE = 2
"""The power of Gaussian noise."""
_MOST_DIMENSIONS = 300
"""Terms of the sum: more take minutes."""


def _pair(noise: Noise) -> Pair:
    """Return the pair at the full distance.

    Level sets are balls rK; what of rK + v lies outside (r + ε)K is least covered by a ball with
    the radius r − (t − ε)/2 that both contain, by which no norm has more than Laplace noise. Cubes
    that are moved along all axes, and cross-polytopes moved along one, meet in no more than it;
    of two Euclidean balls the intersection falls with their distance.
    """
    t = noise["sensitivity"] / noise["scale"]
    if noise["power"] < 1:
        raise ValueError("a power of at least 1")
    if noise["power"] == _SQUARE and (noise["norm"] == "l2" or noise["dimension"] == 1):
        return {"law": "gaussian", "mu": sqrt(Fraction(2)) * t}  # σ = b/√2, and any direction alike
    if noise["power"] != 1:
        raise UnknownError("noise that falls with a power of a norm")
    if noise["norm"] != "l2" or noise["dimension"] == 1:
        return {"law": "laplace", "distance": t}
    return {"law": "ball-noise", "distance": t, "dimension": noise["dimension"]}


@lru_cache(maxsize=256)
def _below(dimension: int, t: Any, epsilon: Any) -> Real:
    """Return G(ε)."""
    if dimension > _MOST_DIMENSIONS:
        raise UnknownError(f"the loss of noise around a ball of more than {_MOST_DIMENSIONS} axes")
    with ctx.workprec(_PRECISION):
        far, level = ball(t), ball(epsilon)
        square = (far - level) * (far + level) / 2
        last = arb(dimension) + 40 * arb(dimension).sqrt() + _PRECISION

        def chance(phi: acb, _: bool) -> acb:
            x = square / (level - far * phi.sin())
            return x.gamma_upper(dimension, regularized=1) * phi.cos() ** (dimension - 2)

        half, end = arb(dimension) / 2, ((level - square / last) / far).asin()
        found = acb.integral(chance, -acb.pi() / 2, acb(end), rel_tol=arb(2) ** -_BITS).real
        whole = (half - arb("0.5")).gamma() * arb.pi().sqrt() / half.gamma()
        return Real(found / whole + arb(0).union(last.gamma_upper(dimension, regularized=1)))


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    t, d = pair["distance"], int(pair["dimension"])
    if epsilon >= t:
        return NONE
    if epsilon <= -t:
        return ALL
    return 1 - _below(d, t, epsilon), _below(d, t, -epsilon)


def _variance(noise: Noise) -> Any:
    """Return that of a coordinate: E‖x‖² = d(d + 1) of ℓ2; cubes of a Gamma(d + 1) size of ℓ∞."""
    if noise["power"] != 1:
        raise UnknownError("the variance of noise that falls with a power of a norm")
    d, square = noise["dimension"], noise["scale"] * noise["scale"]
    if noise["norm"] == "l1":
        return 2 * square
    return square * (d + 1) if noise["norm"] == "l2" else square * (d + 1) * (d + 2) / 3


K_NORM = DeclaredLaw(
    mechanism="KNorm",
    arguments={
        "scale": Argument(positive),
        "dimension": Argument(integer(1)),
        "norm": Argument(name_of(("l1", "l2", "linf")), "l2"),
        "sensitivity": Argument(positive, Fraction(1)),
        "power": Argument(rational, Fraction(1)),
    },
    name="ball-noise",
    parameters=("distance", "dimension"),
    pair=_pair,
    tails=_tails,
    largest_loss=lambda pair: pair["distance"],
    variance=_variance,
)
