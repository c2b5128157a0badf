"""Hints for the certificates of guarantees: which case, and how fine a lattice has to be.

The upper end of a lattice with the step h = V/f, V the total variation of one release, is about
8.8e-4 (12/f)² too high, relatively, and the lower end twice that too low. So the margin of a claim,
from the accountant's answer, says which f is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flint import fmpq

from dpassay.verifier.kernel import quantities
from dpassay.verifier.kernel.lemmas import Worst, merged, worst
from dpassay.verifier.kernel.notation import parse
from dpassay.verifier.kernel.numbers import (
    Budget,
    NotProved,
    TooFewDigits,
    ball,
    compare,
    precision,
)
from dpassay.verifier.kernel.releases import Case
from dpassay.verifier.kernel.schema import KINDS
from dpassay.verifier.verdict import Verdict

if TYPE_CHECKING:
    from dpassay.verifier.claim import Decision, Scope
    from dpassay.verifier.verdict import Finding

_ERROR, _AT = 8.8e-4, 12
"""The relative error of an upper end, and its fineness f."""
_ROOM = 3
"""By which the margin is to exceed the error."""
_FEWEST, _MOST = 8, 512
_ORDERS = ("1.01", "3/2", "2", "4", "8", "32", "128", "1024")
"""Orders of Rényi divergences that may refute a ρ."""


def certificate(
    fields: Mapping[str, Any],
    finding: Finding,
    scope: Scope,
    decision: Decision,
    lemmas: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, Any], list[str]] | None:
    """Return the witness of a guarantee; the kernel itself tells the rows that it rests on."""
    del lemmas
    refuted = finding.verdict is Verdict.REFUTED
    point = {name: str(text) for name, text in scope.to_json().items()}
    names = {*(fields.get("where") or {}), *(fields.get("for_all") or {})}
    point = {name: text for name, text in point.items() if name in names}
    witness: dict[str, Any] = {"case": point} if refuted else {}
    try:
        return {**witness, **hints(fields, point, refuted)}, []
    except (NotProved, ValueError):
        return witness, []


def hints(fields: Mapping[str, Any], point: Mapping[str, str], refuted: bool) -> dict[str, Any]:
    """Return the hints for one case of a claim."""
    properties = KINDS[str(fields["kind"])][0]["properties"]
    theorem: dict[str, Any] = {
        name: shape["default"] for name, shape in properties.items() if "default" in shape
    }
    theorem |= {name: value for name, value in fields.items() if value is not None}
    budget = Budget(seconds=30)
    case = Case(theorem, point, budget)
    noise = parse(str(fields["mechanism"]))
    with precision(quantities.LATTICE_BITS):
        found = worst(noise, theorem["adjacency"], case.value, budget)
        if fields["kind"] == "zcdp" and refuted:
            return _order(found, case, theorem)
        if fields["kind"] != "approximate-dp" or all(
            quantities.is_single(merged(way)) for way in found.ways
        ):
            return {}
        return _lattice(found, case, theorem, budget, refuted)


def _lattice(
    found: Worst, case: Case, theorem: Mapping[str, Any], budget: Budget, refuted: bool
) -> dict[str, Any]:
    """Return step and bits of the lattices of both directions."""
    epsilon, claimed = case.value(str(theorem["epsilon"])), case.value(str(theorem["delta"]))
    bits = 80 + max(0, -math.floor(math.log2(float(ball(claimed).upper()) or 1e-300)) - 16)
    given: dict[str, Any] = {"bits": str(bits)}
    for name, ways in (("step", found.remove), ("step_add", found.add)):
        way = merged(ways[0])
        if quantities.is_single(way) or (name == "step_add" and ways == found.remove):
            continue
        coarse = quantities.composed(way, epsilon, budget, not refuted, {}, 16, False)
        margin = abs(float(ball(coarse - claimed).mid())) / (float(ball(coarse).mid()) or 1.0)
        error = _ERROR * (2 if refuted else 1) * _ROOM
        fine = _AT * math.sqrt(error / max(margin, 1e-9))
        given[name] = str(quantities.step_for(way, max(_FEWEST, min(_MOST, math.ceil(fine)))))
        if refuted and compare(coarse, ">", claimed):
            direction = "remove" if name == "step" else "add"
            return {**given, "direction": direction}
    return given


def _order(found: Worst, case: Case, theorem: Mapping[str, Any]) -> dict[str, Any]:
    """Return an order at which the Rényi divergence is more than ρ times it."""
    claimed = case.value(str(theorem["rho"]))
    for text in _ORDERS:
        order = case.value(text)
        assert isinstance(order, fmpq)
        try:
            if compare(quantities.renyi(found, order), ">", claimed * order):
                return {"order": text}
        except TooFewDigits:
            continue
    return {}
