"""Noise with the density e^{−(‖x‖/b)^p}: Laplace noise of ℓ1 and ℓ∞ at p = 1, and other laws.

For p = 1 in ℓ2, a quicker integral than those of `declared.radial`. In units of b, P is at v of
length t, Q at 0, r = ‖x − v‖ is Gamma(d) under P and u the cosine of the angle to v.
‖x‖² = r² + t² + 2rtu, so ‖x‖ − r > ε where u > ε/t, and else where r is less than
(t² − ε²)/(2(ε − ut)). With u = sin φ, of a density in proportion to cos^{d−2} φ,

    G(ε) = P(L ≤ ε) = ∫ Γ(d, (t² − ε²)/(2(ε − t sin φ)))/Γ(d) cos^{d−2} φ dφ over sin φ < ε/t,

over the integral of cos^{d−2} φ, and Q(L > ε) = P(L < −ε).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import acb, arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.declared.law import ALL, NONE, DeclaredLaw, Pair, unknown
from dpassay.verifier.checker.declared.own_density import OWN_DENSITY, has_one_mode
from dpassay.verifier.checker.declared.radial import radial_tails
from dpassay.verifier.checker.notation import (
    Argument,
    Noise,
    each,
    integer,
    name_of,
    optional,
    positive,
    rational,
)
from dpassay.verifier.checker.reals import INFINITE, Real, UnknownError, ball, sqrt

_BITS, _PRECISION = 80, 256
"""Of an integral, and of its integrand, which loses digits where x is large."""
_SIDED = re.compile(r"\b(x|steps|linear|loglinear)\b")
"""Words of a formula that may not be a function of r = |x|."""
_SQUARE = 2
"""The power of Gaussian noise."""
_MOST_DIMENSIONS = 300
"""Terms of the sum: of more the general integral is quicker."""


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a formula in r")
    return value


def _pair(noise: Noise) -> Pair:
    """Return the pair at the full distance.

    Level sets are balls rK + v and wK, w ≥ r, which both contain a ball of radius (r + w − t)/2,
    whatever v of norm t: no norm has more than where they meet in no more. Cubes that are moved
    along all axes, and cross-polytopes moved along one, do; of two Euclidean balls the intersection
    falls with their distance.
    """
    t, power = noise["sensitivity"] / noise["scale"], noise["power"]
    if noise["density"]:
        return _own(noise, t)
    if power < 1:
        raise ValueError("a power of at least 1")
    is_round = noise["norm"] == "l2" and noise["dimension"] > 1
    if power == _SQUARE and (is_round or noise["dimension"] == 1):
        return {"law": "gaussian", "mu": sqrt(Fraction(2)) * t}  # σ = b/√2, and any direction alike
    pair = {"distance": t, "dimension": noise["dimension"]}
    if power != 1:
        return {"law": "round-noise" if is_round else "radial-noise", **pair, "power": power}
    return {"law": "ball-noise", **pair} if is_round else {"law": "laplace", "distance": t}


def _own(noise: Noise, t: Any) -> Pair:
    """Return the pair of a density of r: of one coordinate that of a density of |x|."""
    density, dimension = noise["density"], noise["dimension"]
    if noise["power"] != 1:
        raise ValueError("either a power or a density")
    if noise["parameters"] is not None:
        raise UnknownError("parameters of a density of a norm")
    if dimension == 1:  # a formula in r alone is even, and with one mode it falls to both sides
        if _SIDED.search(density) or not has_one_mode(density):
            raise UnknownError("that the density falls with the norm")
        return {"law": OWN_DENSITY.name, "density": density, "distance": t, "mirrored": False}
    return {
        "law": "falling-noise",
        "density": density,
        "distance": t,
        "dimension": dimension,
        "norm": noise["norm"],
    }


@lru_cache(maxsize=256)
def _below(dimension: int, t: Any, epsilon: Any) -> Real:
    """Return G(ε)."""
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


def _ball_tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    t, d = pair["distance"], int(pair["dimension"])
    if epsilon >= t:
        return NONE
    if epsilon <= -t:
        return ALL
    if d > _MOST_DIMENSIONS:
        return _tails("l2")({**pair, "power": Fraction(1)}, epsilon)
    return 1 - _below(d, t, epsilon), _below(d, t, -epsilon)


def _tails(norm: str) -> Callable[[Pair, Any], tuple[Any, Any]]:
    def tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
        shape = int(pair["dimension"]), pair["power"], pair["distance"]
        p, q = radial_tails(norm, *shape, abs(epsilon))
        return (1 - q, 1 - p) if epsilon < 0 else (p, q)

    return tails


def _variance(noise: Noise) -> Any:
    """Return b² E R² times that of a coordinate of a uniform point of K, R^p of Gamma(d/p + 1)."""
    if noise["density"]:
        raise UnknownError(f"the variance {_OF_A_NORM}")
    d, b = noise["dimension"], noise["scale"]
    inside = {"l1": Fraction(2) / ((d + 1) * (d + 2)), "l2": 1 / (d + 2), "linf": Fraction(1, 3)}
    if noise["power"] == 1:
        return b * b * (d + 1) * (d + 2) * inside[noise["norm"]]
    shape, more = ball(d / noise["power"] + 1), ball(2 / noise["power"])
    grown = Real(((shape + more).lgamma() - shape.lgamma()).exp())
    return b * b * grown * inside[noise["norm"]]


K_NORM = DeclaredLaw(
    mechanism="KNorm",
    arguments={
        "scale": Argument(positive),
        "dimension": Argument(integer(1)),
        "norm": Argument(name_of(("l1", "l2", "linf")), "l2"),
        "sensitivity": Argument(positive, Fraction(1)),
        "power": Argument(rational, Fraction(1)),
        "density": Argument(_text, ""),
        "parameters": Argument(optional(each(rational)), None),
    },
    name="ball-noise",
    parameters=("distance", "dimension"),
    pair=_pair,
    tails=_ball_tails,
    largest_loss=lambda pair: pair["distance"],
    variance=_variance,
)
ROUND_NOISE, RADIAL_NOISE = (
    DeclaredLaw(
        name=name,
        parameters=("distance", "dimension", "power"),
        tails=_tails(norm),
        largest_loss=lambda pair: INFINITE,
    )
    for name, norm in (("round-noise", "l2"), ("radial-noise", "linf"))
)
_OF_A_NORM = "of noise with a density of its norm that is written as a formula"
FALLING_NOISE = DeclaredLaw(
    name="falling-noise",
    parameters=("density", "distance", "dimension", "norm"),
    tails=unknown(f"probabilities {_OF_A_NORM}"),
    largest_loss=unknown(f"the largest loss {_OF_A_NORM}"),
    renyi=unknown(f"Rényi divergences {_OF_A_NORM}"),
)
