"""The facts of a certificate as numbers, for the independent checker."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec
from flint import arb

from dpassay.verifier import seal
from dpassay.verifier.checker.arithmetic import AGREEMENT, agree
from dpassay.verifier.checker.compositions import composed
from dpassay.verifier.checker.language import evaluate, number
from dpassay.verifier.checker.laws import Law, hockey_stick, renyi, tails
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import INFINITE, Real, compare, hull
from dpassay.verifier.checker.suprema import least_mu

_SIZES = ("mu", "distance", "parameter", "scale", "shift", "ratio", "dimension", "unit")
"""Parameters of a law that are positive."""
_LAWS = ("pair", "factors")
_LONGEST_EXPONENT = 100_000
"""Of decimals that are written out as fractions."""
_LONGEST_POWER = 100
"""Characters of an exponent: no number of a certificate has a longer one."""


def read(value: Any) -> Any:
    """Read a listed value: a number where it is one, else a text."""
    try:
        return number(value)
    except ValueError:
        return value


def ends(enclosure: seal.Enclosure) -> tuple[Any, Any]:
    """Return both ends: exact numbers, or balls where their powers of ten are too long."""
    low, high = decimal(enclosure.lower), decimal(enclosure.upper)
    if low > high:
        raise ValueError(f"lower={enclosure.lower} exceeds upper={enclosure.upper}")
    return low, high


def decimal(text: str) -> Any:
    """Read a decimal: exactly, or as a ball if its exponent is beyond 10⁵."""
    if "I" in text:
        return -INFINITE if text.startswith("-") else INFINITE
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > _LONGEST_EXPONENT or len(exponent) > _LONGEST_POWER:
        raise ValueError("a number of too many digits")
    if abs(int(exponent or 0)) <= _LONGEST_EXPONENT:
        return Fraction(text)
    return Real(arb(10) ** int(exponent)) * Fraction(mantissa)


def answers(fact: Any, law: Law) -> dict[str, Any]:
    """Return the numbers that a fact about a law encloses."""
    match fact:
        case seal.Event():
            p, q = tails(law, number(fact.loss_above))
            return {"p": p, "q": q}
        case seal.HockeyStick():
            return {"value": hockey_stick(law, number(fact.epsilon))}
        case seal.Renyi():
            return {"value": renyi(law, number(fact.order))}
    return {"value": least_mu(law, decimal(fact.value.upper))}


def named(fact: Any, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a fact contributes to the conclusion, and the point that it is about.

    Its numbers are intervals, or what they were found to be.
    """

    def given(name: str) -> Any:
        low, high = ends(getattr(fact, name))
        return found[name] if name in found else hull(low, high)

    suffix = "" if fact.name in ("event", "value") else f"_{fact.name}"
    match fact:
        case seal.Sweep():
            return {}
        case seal.Point():
            return {fact.name: number(fact.value)}
        case seal.Event():
            point = number(fact.loss_above)
            sides = {f"p{suffix}": given("p"), f"q{suffix}": given("q")}
            return {**sides, f"at{suffix}": point, "epsilon": point}
        case seal.HockeyStick():
            point = number(fact.epsilon)
            return {fact.name: given("value"), f"at{suffix}": point, "epsilon": point}
        case seal.Renyi():
            point = number(fact.order)
            return {fact.name: given("value"), f"at{suffix}": point, "order": point}
        case seal.ExpressionFact():
            points = [read(value) for value in fact.variables.values()]
            at = {f"at{suffix}": points[0]} if points else {}
            return {fact.name: given("value"), **at}
    return {fact.name: given("value")}


def parameters(law: Mapping[str, Any]) -> Law:
    """Read the parameters of a law as they are given."""
    given = composed.nested(law)
    found = {key: parameter(value) for key, value in given.items() if key not in _LAWS}
    if "pair" in given:
        found["pair"] = parameters(given["pair"])
    if "factors" in given:
        found["factors"] = [parameters(entry) for entry in given["factors"]]
    if found.get("law") == "laplace-product":
        found["distances"] = [found["unit"] * multiple for multiple in sorted(found["multiples"])]
    names = given.get("outcomes")  # words, which are shown to nobody
    if names is not None and (
        len(names) != len(found["p"]) or not {*map(type, names)} <= {str, int}
    ):
        raise ValueError("outcomes of the law are not one name for each mass")
    for key, value in found.items():
        masses = value if key in ("p", "q") else []
        if found["law"] == "gaussian-mixture":
            masses = [weight for weight, _ in masses]
        negative = any(compare(mass, "<", Fraction(0)) for mass in masses)
        if negative or (masses and not agree(sum(masses), Fraction(1))):
            raise ValueError(f"{key} of the law is no distribution")
        if key in _SIZES and not value > 0:
            raise ValueError(f"{key} of the law is not positive")
    return found


def parameter(value: Any) -> Any:
    """Read one parameter: a number, a text, a list, or a narrow enclosure."""
    if isinstance(value, dict):
        low, high = ends(msgspec.convert(value, seal.Enclosure))
        if high - low > AGREEMENT * abs(low):
            raise ValueError("a parameter of the law is not narrow")
        return hull(low, high)
    return [parameter(entry) for entry in value] if isinstance(value, list) else read(value)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same, mechanisms with their default arguments included."""
    match one, other:
        case Noise(), Noise():
            names = {**one.arguments, **other.arguments}
            return one.name == other.name and all(same(one[n], other[n]) for n in names)
        case list(), list():
            return len(one) == len(other) and all(map(same, one, other))
        case dict(), dict():
            return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
        case (Fraction() | Real(), Fraction() | Real()):
            return agree(one, other)
    return bool(one == other)


def mechanism(text: str, variables: Any = None) -> Noise:
    """Evaluate the notation of a mechanism."""
    noise = evaluate(text, variables)
    if not isinstance(noise, Noise):
        raise ValueError(f"expected a mechanism, not {text[:60]!r}")
    return noise
