"""Noise of a density that is written as a formula: named, and not derived a second time.

The worst pairs follow from the arguments: shifts up to the distance to either side, of which the
full one is worst where the density has one mode. Which shift is worst and every number about it are
taken as given, so that a certificate about it is CONDITIONAL, never VALID.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from verify.checker.declared.law import DeclaredLaw, Pair, unknown
from verify.checker.notation import Argument, Noise, positive
from verify.checker.reals import UnknownError

_LONGEST = 2000
"""Characters of a formula, as its mechanism allows: longer ones are no density one reads."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or not len(value) <= _LONGEST:
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
    """Return the shifts to both sides. Raises UnknownError for masses."""
    if bool(noise["mass"]) == bool(noise["density"]):
        raise ValueError("either a density or masses")
    if noise["mass"]:
        raise UnknownError("masses that are written as a formula")
    return [_pair(noise), {**_pair(noise), "mirrored": True}]


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


_UNKNOWN = unknown("the integrals of a density that is written as a formula")

OWN_DENSITY = DeclaredLaw(
    mechanism="AdditiveNoise",
    arguments={
        "density": Argument(_text, ""),
        "scale": Argument(positive, Fraction(1)),
        "sensitivity": Argument(positive, Fraction(1)),
        "mass": Argument(_text, ""),
    },
    name="own-density",
    parameters=("density", "distance", "mirrored"),
    pair=_pair,
    tails=_UNKNOWN,
    renyi=_UNKNOWN,
    largest_loss=_UNKNOWN,
    variance=_UNKNOWN,
    quantile=_UNKNOWN,
)
