"""A comparison proved over whole boxes in ball arithmetic, for the checker."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

from flint import ctx

from verify.checker.arithmetic import UnknownError, compare, hull
from verify.checker.facts import read
from verify.checker.kinds import OPPOSITE
from verify.checker.language import Variables, evaluate, number, split

Box: TypeAlias = dict[str, tuple[Fraction, Fraction]]

_BITS = 90
_MAX_PIECES = 4000


def sweep(claim: Mapping[str, Any]) -> None:
    """Prove a relation for every value of the variables whose domain has both ends.

    Each box is proved as a whole, or split across its relatively widest side.

    Raises
    ------
    UnknownError
        If a function has no interval form here, or the pieces become too many.
    ValueError
        If the relation is false on a piece, or a domain has no rational ends.
    """
    domains = claim["for_all"]
    swept = {name for name, d in domains.items() if d.get("low") and d.get("high")}
    listed = {**claim["where"], **{n: d["grid"] for n, d in domains.items() if n not in swept}}
    left, relation, right = split(claim["claim"])
    with ctx.workprec(_BITS):
        for row in product(*([read(entry) for entry in column] for column in listed.values())):
            fixed = Variables(dict(zip(listed, row, strict=True)), claim["let"])
            ends = {name: _ends(domains[name], fixed) for name in swept}
            boxes, pieces = [ends], 0
            while boxes:
                box, pieces = boxes.pop(), pieces + 1
                if pieces > _MAX_PIECES:
                    raise UnknownError("that it holds between the cases (too many pieces)")
                scope = fixed.but(**{name: hull(*side) for name, side in box.items()})
                sides = evaluate(left, scope), evaluate(right, scope)
                if _certain(*sides, relation):
                    continue
                middle = fixed.but(**{name: sum(side) / 2 for name, side in box.items()})
                if _certain(evaluate(left, middle), evaluate(right, middle), OPPOSITE[relation]):
                    raise ValueError("the relation is false between the cases")
                boxes += _halves(box)


def _ends(domain: Mapping[str, Any], scope: Variables) -> tuple[Fraction, Fraction]:
    low, high = (number(evaluate(domain[end], scope)) for end in ("low", "high"))
    if not isinstance(low, Fraction) or not isinstance(high, Fraction) or low > high:
        raise ValueError("expected rational ends low ≤ high of a domain")
    return low, high


def _certain(left: Any, right: Any, relation: str) -> bool:
    return compare(number(left), relation, number(right)) is True


def _halves(box: Box) -> list[Box]:
    """Split the side that is widest for its size."""

    def width(name: str) -> Fraction:
        low, high = box[name]
        return (high - low) / max(abs(low), abs(high), Fraction(1, 10**9))

    name = max(box, key=width)
    low, high = box[name]
    middle = (low + high) / 2
    return [{**box, name: (low, middle)}, {**box, name: (middle, high)}]
