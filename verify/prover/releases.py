"""Hints for the certificates of guarantees: which case, and how fine a lattice has to be.

The error of an end from a lattice with the step h = V/f, V the total variation of one release, is
nearly as 1/f², that of a lower one eight times as much and more nearly as 1/f. So two coarse
lattices tell the value and the error, and with the margin of a claim the f that is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dpassay.verifier.kernel import lattice, quantities
from dpassay.verifier.kernel.cases import Statement
from dpassay.verifier.kernel.laws import gaussian
from dpassay.verifier.kernel.lemmas import Way, Worst, merged, worst
from dpassay.verifier.kernel.notation import parse
from dpassay.verifier.kernel.numbers import (
    Budget,
    NotProved,
    Number,
    Proof,
    ball,
    compare,
    precision,
)
from dpassay.verifier.kernel.schema import KINDS, fit
from dpassay.verifier.verdict import Verdict

if TYPE_CHECKING:
    from dpassay.verifier.claims import Claim
    from dpassay.verifier.decide import Decided

Value = Callable[[str], Number]
_COARSE = 6, 12
"""Of two coarse lattices."""
_SECONDS = 10
"""Of processor time for hints; without them the claim is CONDITIONAL."""
_ROOM = 2
"""By which the margin is to exceed the error."""
_FEWEST, _MOST = 8, 256
_EPSILONS = tuple(f"{k}/8" for k in range(-8, 80))
"""At which δ may refute a μ."""
_ORDERS = ("1.01", "3/2", "2", "4", "8", "32", "128", "1024")
"""Orders of Rényi divergences that may refute a ρ."""


def witness(
    decided: Decided, theorem: Mapping[str, Any], lemmas: Iterable[Claim]
) -> dict[str, Any]:
    """Return the witness of a guarantee: a proof over ranges, or a case and its lattice."""
    from dpassay.verifier.proof import witness_of

    finding, scope, decision, claim = decided
    found = witness_of(claim, lemmas)
    theorem = fit(theorem, KINDS[theorem["kind"]][0], "theorem")
    refuted = finding.verdict is Verdict.REFUTED
    names = {*theorem["where"], *theorem["for_all"]}
    point = {name: str(text) for name, text in scope.to_json().items() if name in names}
    if refuted:
        point |= claim.refuted_at(decision.witness)
    if refuted:
        found["case"] = point
    with suppress(NotProved, ValueError):
        found |= hints(theorem, point, refuted)
    return found


def hints(theorem: Mapping[str, Any], point: Mapping[str, str], refuted: bool) -> dict[str, Any]:
    """Return the hints for one case of a claim."""
    budget = Budget(seconds=_SECONDS)
    statement = Statement(theorem, {}, budget, Proof())
    case = {name: statement.entry(name, text) for name, text in point.items()}

    def value(text: str) -> Number:
        return statement.number(text, case)

    with precision(quantities.LATTICE_BITS):
        found = worst(parse(theorem["mechanism"]), theorem["adjacency"], value, budget)
        if theorem["kind"] == "zcdp" and refuted:
            return _order(found, value, theorem)
        if theorem["kind"] == "gaussian-dp" and refuted and quantities.is_single(found):
            return _epsilon(found, value, theorem, budget)
        known = quantities.is_single(found) or (refuted and found.lower is not None)
        if theorem["kind"] != "approximate-dp" or known:
            return {}
        return _lattice(found, value, theorem, budget, refuted)


def _lattice(
    found: Worst, value: Value, theorem: Mapping[str, Any], budget: Budget, refuted: bool
) -> dict[str, Any]:
    """Return step and bits of the lattices of both directions."""
    epsilon, claimed = value(str(theorem["epsilon"])), value(str(theorem["delta"]))
    size = max(0, -math.floor(math.log2(float(ball(claimed).upper()) or 1e-300)))
    bits = {"bits": str(64 + size)}
    given: dict[str, Any] = {**bits}
    for name, ways in (("step", found.remove), ("step_add", found.add)):
        way = merged(ways[0])
        if (len(way) == 1 and way[0][1] == 1) or (name == "step_add" and ways == found.remove):
            continue
        wanted = float(ball(claimed).mid())
        ends = _COARSE if not refuted else _COARSE[1:] * 2
        first = _end(way, epsilon, budget, ends[0], bits, upper=not refuted)
        if (first > wanted) == refuted and first != wanted:  # it is proved already
            given[name] = str(lattice.step_for(way, ends[0]))
            if refuted:
                return {**given, "direction": "remove" if name == "step" else "add"}
            continue
        second = _end(way, epsilon, budget, ends[1], bits, upper=True)
        if refuted:
            first, second = second, first
        near = second - (first - second) / 3 if not refuted else first - (first - second) / 8
        error = abs(near - second)
        share = _ROOM * error / max(abs(near - wanted), 1e-9 * wanted, 1e-300)
        share **= 1 if refuted else 0.5
        fine = max(_FEWEST, min(_MOST, math.ceil(_COARSE[1] * share)))
        given[name] = str(lattice.step_for(way, fine))
        if refuted and near > wanted:
            return {**given, "direction": "remove" if name == "step" else "add"}
    return given


def _end(
    way: Way, epsilon: Number, budget: Budget, fine: int, bits: Mapping[str, str], *, upper: bool
) -> float:
    """Return an end of δ from a lattice."""
    end = lattice.upper if upper else lattice.lower
    hints = {**bits, "step": str(lattice.step_for(way, fine))}
    return float(ball(end(way, epsilon, budget, hints)).mid())


def _epsilon(
    found: Worst, value: Value, theorem: Mapping[str, Any], budget: Budget
) -> dict[str, Any]:
    """Return an epsilon at which δ is more than that of μ."""
    curve = gaussian(value(str(theorem["mu"])))
    for text in _EPSILONS:
        loss = value(text)
        with suppress(NotProved):
            real = quantities.lower_delta(found, loss, budget)
            if compare(real, ">", curve.delta(loss)):
                return {"epsilon": text}
    return {}


def _order(found: Worst, value: Value, theorem: Mapping[str, Any]) -> dict[str, Any]:
    """Return an order at which the Rényi divergence is more than ρ times it."""
    claimed = value(str(theorem["rho"]))
    for text in _ORDERS:
        order = value(text)
        try:
            if compare(quantities.renyi(found, order), ">", claimed * order):
                return {"order": text}
        except NotProved:
            continue
    return {}
