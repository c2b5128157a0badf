"""Noise of a density that is written as a formula.

The worst pairs follow from the arguments: shifts up to the distance to either side, of which the
full one is worst where the density is proved to have one mode: its level sets are intervals, of
which a larger shift moves out more. Else the largest H(ε) of all shifts is bounded by a sweep
(`shifts`). Numbers are integrals over the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from operator import sub
from typing import Any

from flint import acb, arb

from dpassay.verifier.checker.declared import line, own_mass, shifts
from dpassay.verifier.checker.declared.formula import LONGEST, Cut, Piece, pieces, power, product
from dpassay.verifier.checker.declared.formula import mirrored as turned
from dpassay.verifier.checker.declared.law import DeclaredLaw, Pair, unknown
from dpassay.verifier.checker.kernel.expressions import ZERO, Name
from dpassay.verifier.checker.notation import Argument, Noise, each, optional, positive, rational
from dpassay.verifier.checker.reals import INFINITE, Real, UnknownError, ball, exp, log


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


def written_out(noise: Noise) -> Noise:
    """Return the same noise with the numbers of its parameters a, b, c, d in its formula."""
    values, found = noise["parameters"], dict(noise.arguments)
    if values is None:
        return noise
    if len(values) > len(_PARAMETERS):
        raise ValueError("more parameters than names of them")
    for law in ("density", "mass", "cdf"):
        text = str(noise[law])
        for name, value in zip(_PARAMETERS, values, strict=False):
            text = re.sub(rf"\b{name}\b", f"({value})", text)
        found[law] = text
    return Noise(noise.name, {**found, "parameters": None}, noise.adjacency)


def both_sides(noise: Noise) -> list[Pair]:
    """Return the shifts to both sides."""
    if noise["mass"] and not (noise["density"] or noise["cdf"]):
        return own_mass.shifts(noise)
    _require_density(noise)
    law = (OWN_DENSITY if has_one_mode(noise["density"]) else OWN_SHIFTS).name
    return [{**_pair(noise), "law": law, "mirrored": side} for side in (False, True)]


@lru_cache(maxsize=64)
def has_one_mode(density: str) -> bool:
    """Whether a density has one mode; raise UnknownError for what may be below 0."""
    if line.one_mode(density):
        return True
    if not all(map(line.nowhere_negative, pieces(density))):
        raise UnknownError("that the density is nowhere below 0")
    return False


def _require_density(noise: Noise) -> None:
    if [bool(noise[law]) for law in ("density", "mass", "cdf")].count(True) != 1:
        raise ValueError("either a density, masses or a distribution function")
    if noise["mass"]:
        raise UnknownError("masses that are written as a formula")
    if noise["cdf"]:
        raise UnknownError("a distribution function that is written as a formula")


def is_shift(law: Pair, given: Pair, *, refuted: bool) -> bool:
    """Whether a law is the worst of all shifts up to the distance, or refutes by a smaller one."""
    names = (OWN_DENSITY.name, OWN_SHIFTS.name)
    if not {law["law"], given.get("law")} <= {*names} or any(
        law[key] != given.get(key) for key in ("density", "mirrored")
    ):
        return False
    distance = given.get("distance")
    smaller = isinstance(distance, Fraction) and 0 < distance <= law["distance"]
    return distance == law["distance"] or (refuted and given["law"] == names[0] and smaller)


_PARAMETERS = "abcd"
_Sides = tuple[tuple[Piece, ...], tuple[Piece, ...], arb]
_Shape = Callable[[acb, acb], acb]


@lru_cache(maxsize=64)
def _laws(density: str, distance: Fraction, mirrored: bool) -> _Sides:
    """Return the pieces of f(x − t) and f(x), of f(−x) if mirrored, and ∫ f."""
    q = pieces(density)
    if mirrored:
        q = turned(q)
    return tuple(part.moved(distance) for part in q), q, _whole(density)


@lru_cache(maxsize=64)
def _whole(density: str) -> arb:
    return line.mass(pieces(density))


def _of(pair: Pair) -> _Sides:
    if not isinstance(pair["distance"], Fraction):
        raise UnknownError("a density at an irrational distance")
    return _laws(pair["density"], pair["distance"], pair["mirrored"])


def _integral(pair: Pair, epsilon: Any, shape: _Shape) -> Real:
    """Return the integral of shape(p, e^ε q) ≤ p over where p > e^ε q, over ∫ f."""
    p, q, whole = _of(pair)
    factor = acb(ball(exp(epsilon)))

    def panel(low: Cut, high: Cut, enough: arb) -> arb | None:
        one, other = (line.at(part, low, high) for part in (p, q))
        side = -1 if one.formula == ZERO else _side(pair, low, high, epsilon)
        if side < 0:
            return arb(0)
        if low is None or high is None:
            return None
        f, g = line.compiled(one.formula), line.compiled(other.formula)

        def both(x: acb, analytic: bool, shape: _Shape = shape) -> acb:
            return shape(f(x, analytic), factor * g(x, analytic))

        parts = [(low, high, side)] if side else line.stretches(
            lambda x: (f(acb(x), False) - factor * g(acb(x), False)).real,
            lambda x: line.slope(one.formula, x) - factor.real * line.slope(other.formula, x),
            low, high,
        )  # fmt: skip
        found = arb(0)
        for a, b, sign in parts:
            if sign > 0:
                found += line.smooth(both, a, b, enough)
            elif not sign:
                most = both(acb(line.around(a, b)), False).real.upper().max(arb(0))
                found += arb(0).union(most * ball(b - a))
        return found

    return Real(line.integral(panel, line.cuts(p) + line.cuts(q), line.tails(p)) / whole)


def _side(pair: Pair, low: Cut, high: Cut, epsilon: Any) -> int:
    """Return 1 where every loss is above ε, −1 where none is, 0 where that is not known.

    Where f > 0 is continuous the loss at x is the integral of −(ln f)′ from x − t to x.
    """
    low = None if low is None else low - pair["distance"]
    least, most = line.losses(_of(pair)[1], low, high)
    if most is not None and most * pair["distance"] <= epsilon:
        return -1
    return 1 if least is not None and least * pair["distance"] > epsilon else 0


@lru_cache(maxsize=512)
def _answers(density: str, distance: Fraction, mirrored: bool, epsilon: Any) -> tuple[Real, ...]:
    """Return P(L > ε), e^ε Q(L > ε) and H(ε)."""
    pair = {"density": density, "distance": distance, "mirrored": mirrored}
    shapes: tuple[_Shape, ...] = (lambda p, q: p, lambda p, q: q, sub)
    return tuple(_integral(pair, epsilon, shape) for shape in shapes)


def _asked(pair: Pair, epsilon: Any) -> tuple[Real, ...]:
    return _answers(pair["density"], pair["distance"], pair["mirrored"], epsilon)


@lru_cache(maxsize=64)
def _of_all(density: str, distance: Fraction, mirrored: bool, epsilon: Any) -> Real:
    """Return the largest H(ε), between two ends."""

    def value(shift: Fraction) -> arb:
        pair = {"density": density, "distance": shift, "mirrored": mirrored}
        return _integral(pair, epsilon, sub).ball

    _, parts, whole = _laws(density, distance, mirrored)
    low, high = shifts.largest(parts, whole, distance, epsilon, value)
    return Real(low.union(high), ends=(Real(low), Real(high)))


def _largest(pair: Pair, epsilon: Any) -> Any:
    if not isinstance(pair["distance"], Fraction):
        raise UnknownError("a density at an irrational distance")
    return _of_all(pair["density"], pair["distance"], pair["mirrored"], epsilon)


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    p, q, _ = _asked(pair, epsilon)
    return p, q / exp(epsilon)


def _renyi(pair: Pair, order: Any) -> Any:
    """Return ln(∫ p^a q^{1−a})/(a − 1): the moment is the mass of another formula."""
    if not isinstance(order, Fraction) or order == 1:
        raise UnknownError("this divergence of a density that is written as a formula")
    p, q, whole = _of(pair)
    ends = sorted({*line.cuts(p), *line.cuts(q)})
    found = []
    for low, high in zip([None, *ends], [*ends, None], strict=True):
        one, other = (line.at(part, low, high).formula for part in (p, q))
        if one != ZERO == other:
            return INFINITE
        formula = ZERO if one == ZERO else product(power(one, order), power(other, 1 - order))
        found.append(Piece(low, high, formula))
    return log(Real(line.mass(found) / whole)) / (order - 1)


def _variance(noise: Noise) -> Any:
    """Return s² (E X² − (E X)²)."""
    _require_density(noise)
    has_one_mode(noise["density"])  # or it is nowhere below 0
    parts = pieces(noise["density"])
    whole, x = line.mass(parts), Name("x")
    second, first = (
        Real(line.mass([Piece(p.low, p.high, product(p.formula, power(x, Fraction(n))))
                        for p in parts]) / whole)
        for n in (2, 1)
    )  # fmt: skip
    return noise["scale"] * noise["scale"] * (second - first * first)


OWN_DENSITY = DeclaredLaw(
    mechanism="AdditiveNoise",
    arguments={
        "density": Argument(_text, ""),
        "scale": Argument(positive, Fraction(1)),
        "sensitivity": Argument(positive, Fraction(1)),
        "mass": Argument(_text, ""),
        "cdf": Argument(_text, ""),
        "parameters": Argument(optional(each(rational)), None),
    },
    name="own-density",
    parameters=("density", "distance", "mirrored"),
    pair=_pair,
    tails=_tails,
    renyi=_renyi,
    largest_loss=unknown("the largest loss of a density that is written as a formula"),
    variance=_variance,
    hockey_stick=lambda pair, epsilon: _asked(pair, epsilon)[2],
)

_OF_SEVERAL_MODES = "of a density with several modes, whose worst shift depends on epsilon"
OWN_SHIFTS = DeclaredLaw(
    name="own-shifts",
    parameters=OWN_DENSITY.parameters,
    tails=unknown(f"events {_OF_SEVERAL_MODES}"),
    largest_loss=unknown(f"the largest loss {_OF_SEVERAL_MODES}"),
    renyi=unknown(f"Rényi divergences {_OF_SEVERAL_MODES}"),
    hockey_stick=_largest,
    only_alone=True,
)
