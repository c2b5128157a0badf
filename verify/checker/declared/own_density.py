"""Noise of a density that is written as a formula.

The worst pairs follow from the arguments: shifts up to the distance to either side, of which the
full one is worst where the density is proved to have one mode: its level sets are intervals, of
which a larger shift moves out more. Where it is not proved, or there are masses, the worst shift is
taken as given, so that a certificate is CONDITIONAL. Numbers are integrals over the line.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import acb, arb

from verify.checker.declared import line
from verify.checker.declared.formula import LONGEST, Cut, Piece, pieces
from verify.checker.declared.formula import mirrored as turned
from verify.checker.declared.law import DeclaredLaw, Pair, unknown
from verify.checker.kernel.expressions import ZERO
from verify.checker.kernel.ranges import fraction
from verify.checker.notation import Argument, Noise, positive
from verify.checker.reals import Real, UnknownError, ball, exp


def _text(value: Any) -> str:
    if not isinstance(value, str) or not len(value) <= LONGEST:
        raise ValueError("a formula in x")
    return value


def _pair(noise: Noise) -> Pair:
    """Return the pair to one side; `both_sides` has the other one."""
    return {
        "law": "own-density",
        "density": noise["density"],
        "distance": noise["sensitivity"] / noise["scale"],
        "mirrored": False,
    }


def both_sides(noise: Noise) -> list[Pair]:
    """Return the shifts to both sides. Raises UnknownError for other laws than densities."""
    _require_density(noise)
    return [_pair(noise), {**_pair(noise), "mirrored": True}]


def _require_density(noise: Noise) -> None:
    if [bool(noise[law]) for law in ("density", "mass", "cdf")].count(True) != 1:
        raise ValueError("either a density, masses or a distribution function")
    if noise["mass"]:
        raise UnknownError("masses that are written as a formula")
    if noise["cdf"]:
        raise UnknownError("a distribution function that is written as a formula")


def is_shift(law: Pair, given: Pair, *, refuted: bool) -> bool:
    """Whether a law is the worst of all shifts up to the distance, or refutes by a smaller one."""
    if law.get("law") != OWN_DENSITY.name or any(
        law[key] != given.get(key) for key in ("density", "mirrored")
    ):
        return False
    distance = given.get("distance")
    if given.get("law") == "own-shifts":
        return bool(distance == law["distance"])
    smaller = isinstance(distance, Fraction) and 0 < distance <= law["distance"]
    return refuted and given.get("law") == OWN_DENSITY.name and smaller


def is_worst(noise: Noise) -> bool:
    """Whether the full shift of a density is proved to be worst."""
    try:
        return bool(noise["density"]) and line.one_mode(noise["density"])
    except UnknownError:
        return False


_JUMP_BITS = 40
"""Of an integral over a jump, which is halved in upon: twelve digits."""
_Sides = tuple[tuple[Piece, ...], tuple[Piece, ...], arb]
_Shape = Callable[[acb, acb, bool], acb]
"""What is integrated of p and e^ε q, and whether it has to be analytic."""


@lru_cache(maxsize=64)
def _laws(density: str, distance: Fraction, mirrored: bool) -> _Sides:
    """Return the pieces of f(x − t) and f(x), of f(−x) if mirrored, and ∫ f."""
    q = pieces(density)
    if mirrored:
        q = turned(q)
    return tuple(part.moved(distance) for part in q), q, line.mass(q)


def _of(pair: Pair) -> _Sides:
    if not isinstance(pair["distance"], Fraction):
        raise UnknownError("a density at an irrational distance")
    return _laws(pair["density"], pair["distance"], pair["mirrored"])


def _integral(pair: Pair, epsilon: Any, shape: _Shape, bits: int) -> Real:
    """Return the integral of shape(p, e^ε q) ≤ p, which is 0 where p < e^ε q, over ∫ f."""
    p, q, whole = _of(pair)
    factor = acb(ball(exp(epsilon)))

    def panel(low: Cut, high: Cut, enough: arb) -> arb | None:
        one, other = (line.at(part, low, high) for part in (p, q))
        if one.formula == ZERO or _none_above(pair, low, high, epsilon):
            return arb(0)
        if low is None or high is None:
            return None
        f, g = line.compiled(one.formula), line.compiled(other.formula)

        def integrand(x: acb, analytic: bool) -> acb:
            return shape(f(x, analytic), factor * g(x, analytic), analytic)

        return line.between(integrand, low, high, enough, bits)

    return Real(line.integral(panel, line.cuts(p) + line.cuts(q), line.tails(p)) / whole)


def _none_above(pair: Pair, low: Cut, high: Cut, epsilon: Any) -> bool:
    """Whether it is known that no loss on an interval is above ε.

    Where f > 0 is continuous the loss at x is the integral of −(ln f)′ from x − t to x.
    """
    low = None if low is None else low - pair["distance"]
    most = line.steepest(_of(pair)[1], low, high)
    return bool(most.is_finite() and fraction(most) * pair["distance"] <= epsilon)


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    at = pair["density"], pair["distance"], pair["mirrored"], epsilon
    return tuple(_answers(*at, stick=False))


def _hockey_stick(pair: Pair, epsilon: Any) -> Any:
    """Return ∫ (p − e^ε q)⁺."""
    at = pair["density"], pair["distance"], pair["mirrored"], epsilon
    return _answers(*at, stick=True)[0]


@lru_cache(maxsize=512)
def _answers(
    density: str, distance: Fraction, mirrored: bool, epsilon: Any, *, stick: bool
) -> list[Any]:
    """Return H(ε), or P(L > ε) and Q(L > ε), whose integrands jump."""
    pair = {"density": density, "distance": distance, "mirrored": mirrored}

    def excess(p: acb, q: acb, analytic: bool) -> acb:
        return (p - q).real_max(acb(0), analytic=analytic)

    def above(p: acb, q: acb, analytic: bool) -> acb:
        return (p - q).real_heaviside(analytic=analytic)

    if stick:
        return [_integral(pair, epsilon, excess, line.BITS)]
    p = _integral(pair, epsilon, lambda p, q, a: p * above(p, q, a), _JUMP_BITS)
    q = _integral(pair, epsilon, lambda p, q, a: q * above(p, q, a), _JUMP_BITS)
    return [p, q / exp(epsilon)]


OWN_DENSITY = DeclaredLaw(
    mechanism="AdditiveNoise",
    arguments={
        "density": Argument(_text, ""),
        "scale": Argument(positive, Fraction(1)),
        "sensitivity": Argument(positive, Fraction(1)),
        "mass": Argument(_text, ""),
        "cdf": Argument(_text, ""),
    },
    name="own-density",
    parameters=("density", "distance", "mirrored"),
    pair=_pair,
    tails=_tails,
    largest_loss=unknown("the largest loss of a density that is written as a formula"),
    hockey_stick=_hockey_stick,
)
