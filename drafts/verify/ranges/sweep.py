"""Prove a comparison on a whole box by cutting it into pieces on which ranges decide it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.ranges.derivative import differentiate
from dpassay.verifier.ranges.domain import Domain, Goal, Variable
from dpassay.verifier.ranges.expressions import (
    NEGATION,
    OPPOSITE,
    Budget,
    Comparison,
    Name,
    Node,
    ProofError,
    free,
)
from dpassay.verifier.ranges.extended import evaluate
from dpassay.verifier.ranges.ranges import INFINITY, Range, intersection, related

Box = dict[str, Range]


def box_of(domain: Domain, budget: Budget, given: Mapping[str, Range] | None = None) -> Box:
    """Return a range for every variable; ends that use variables are widened to all their values.

    `given` has ranges to be narrowed to what the ends leave.
    """
    box: Box = {}
    for variable in domain.variables:
        found = _range_of(variable, box, budget)
        if given is not None and variable.name in given:
            narrowed = intersection(found, given[variable.name])
            if narrowed is None:
                raise ProofError(f"nothing is left of the range of {variable.name}")
            found = narrowed
        box[variable.name] = found
    for assumption in domain.assumptions:
        for side in (assumption, Comparison(
            assumption.right, OPPOSITE[assumption.relation], assumption.left
        )):  # fmt: skip
            _narrow(box, side, domain, budget)
    return box


def _range_of(variable: Variable, box: Box, budget: Budget) -> Range:
    low, high = -INFINITY, INFINITY
    low_open, high_open = True, True
    if variable.low is not None:
        end = evaluate(variable.low, box, budget)
        low, low_open = end.low, variable.low_open or end.low_open
    if variable.high is not None:
        end = evaluate(variable.high, box, budget)
        high, high_open = end.high, variable.high_open or end.high_open
    if not low <= high:
        raise ProofError(f"the range of {variable.name} is empty")
    found = Range(low, high, low_open, high_open)
    if not variable.integer:
        return found
    whole = whole_part(found)
    if whole is None:
        raise ProofError(f"the range of {variable.name} has no integer")
    return whole


def whole_part(found: Range) -> Range | None:
    """Return the range of the integers in a range, None where there are none."""
    low, high = found.low, found.high
    if low.is_finite():
        rounded = low.ceil()
        low = (rounded + 1 if found.low_open and rounded == low else rounded).lower()
    if high.is_finite():
        rounded = high.floor()
        high = (rounded - 1 if found.high_open and rounded == high else rounded).upper()
    return Range(low, high) if low <= high else None


def _narrow(box: Box, side: Comparison, domain: Domain, budget: Budget) -> None:
    """Use an assumption `x <= e` or `x < e` (or >=, >) to narrow the range of x."""
    if not isinstance(side.left, Name) or side.left.name not in box:
        return
    try:
        limit = evaluate(side.right, box, budget)
    except ProofError:
        return
    cut = Range(-INFINITY, INFINITY)
    if side.relation in ("<=", "<", "=="):
        cut = Range(-INFINITY, limit.high, True, limit.high_open or side.relation == "<")
    elif side.relation in (">=", ">"):
        cut = Range(limit.low, INFINITY, limit.low_open or side.relation == ">", True)
    found = intersection(box[side.left.name], cut)
    if found is None:
        return  # an assumption that cannot hold: the box is larger than it need be
    variable = domain.variable(side.left.name)
    whole = whole_part(found) if variable is not None and variable.integer else found
    box[side.left.name] = box[side.left.name] if whole is None else whole


def outside(domain: Domain, box: Box, budget: Budget) -> bool:
    """Whether no point of a box is in the domain."""
    conditions = [c for variable in domain.variables for c in variable.conditions()]
    for condition in (*conditions, *domain.assumptions):
        try:
            left = evaluate(condition.left, box, budget)
            right = evaluate(condition.right, box, budget)
        except ProofError:
            continue
        if related(left, NEGATION[condition.relation], right):
            return True
    return False


def halves(box: Box, name: str, whole: bool) -> list[Box]:
    """Cut the range of a variable in two; [] where it is a single point."""
    found = box[name]
    middle = _middle(found)
    if whole and middle.is_finite():
        middle = middle.floor().mid()
    if not (found.low < middle < found.high or (whole and found.low <= middle < found.high)):
        return []
    left = Range(found.low, middle, found.low_open, False)
    right = Range((middle + 1).lower() if whole else middle, found.high, False, found.high_open)
    return [{**box, name: left}, {**box, name: right}]


def _middle(found: Range) -> arb:
    """Return a dyadic number inside, far out where the range has no end."""
    low, high = found.low, found.high
    if low.is_finite() and high.is_finite():
        return ((low + high) / 2).mid()
    if not low.is_finite() and not high.is_finite():
        return arb(0)
    end, side = (low, 1) if low.is_finite() else (high, -1)
    far = side * end
    if far >= 1:
        far = far * far if far > 64 else 2 * far
    elif far > -1:
        far = arb(1)
    else:
        far = far / 4
    return (side * far).mid()


def width(found: Range) -> arb:
    """Return how wide a range is, relatively; ∞ where it has no end."""
    size = found.high - found.low
    if not size.is_finite():
        return INFINITY
    scale = max(abs(found.low), abs(found.high), arb(1) / 1024)
    return (size / scale).mid()


PIECES: Final = 20_000
_PRECISION: Final = 128
_LOOK_EVERY: Final = 16
"""After so many pieces one is looked at for a counterexample."""
_FINEST: Final = 400
"""How often one piece is halved."""


def sweep(goal: Goal, budget: Budget, *, pieces: int = PIECES) -> int:
    """Prove a comparison over its domain and return the number of pieces.

    On each piece the ranges of both sides decide it, or the derivative in a variable has one sign
    there, so that only an end of its range has to be looked at. Raises ProofError else.
    """
    if goal.relation == "==":
        raise ProofError("a sweep proves no equality")
    with ctx.workprec(max(_PRECISION, ctx.prec)):
        return _swept(goal, budget, pieces)


def _swept(goal: Goal, budget: Budget, pieces: int) -> int:
    domain, slopes = goal.domain, _slopes(goal)
    waiting: list[tuple[Box, int]] = [(box_of(domain, budget), 0)]
    count = 0
    while waiting:
        box, depth = waiting.pop()
        count += 1
        if count > pieces or depth > _FINEST:
            raise ProofError(f"the sweep is not done after {count} pieces, near {_shown(box)}")
        narrowed = _narrowed(domain, box, budget)
        if narrowed is None or _decided(goal, narrowed, budget):
            continue
        if _decided_at_ends(goal, narrowed, slopes, budget):
            continue
        if count % _LOOK_EVERY == 0 and _is_false_inside(goal, narrowed, budget):
            raise ProofError(f"it is false inside {_shown(narrowed)}")
        names = sorted(narrowed, key=lambda name: width(narrowed[name]), reverse=True)
        for name in names:
            variable = domain.variable(name)
            parts = halves(narrowed, name, variable is not None and variable.integer)
            if parts:
                waiting += [(part, depth + 1) for part in parts]
                break
        else:
            raise ProofError(f"the sweep does not decide the comparison at {_shown(narrowed)}")
    return count


def _narrowed(domain: Domain, box: Box, budget: Budget) -> Box | None:
    """Return the part of a box that is in the domain, None for nothing."""
    if outside(domain, box, budget):
        return None
    if not any(variable.ends() for variable in domain.variables):
        return box
    try:
        return box_of(domain, budget, box)
    except ProofError:
        return box


def _decided(goal: Goal, box: Box, budget: Budget) -> bool:
    try:
        left = evaluate(goal.left, box, budget)
        right = evaluate(goal.right, box, budget)
    except ProofError:
        budget.spend()
        return False
    return related(left, goal.relation, right)


def _is_false_inside(goal: Goal, box: Box, budget: Budget) -> bool:
    """Whether the comparison fails in the middle of a piece, so that a sweep can stop."""
    if goal.domain.assumptions or goal.relation == "!=":
        return False
    middle = {}
    for name, found in box.items():
        variable = goal.domain.variable(name)
        if variable is None or any(free(end) for end in variable.ends()):
            return False
        whole = variable.integer
        if not (found.low.is_finite() and found.high.is_finite()):
            return False
        at = found.low if whole else ((found.low + found.high) / 2).mid()
        middle[name] = Range(at, at)
    false = dataclasses.replace(goal, relation=NEGATION[goal.relation])
    return _decided(false, middle, budget)


def _slopes(goal: Goal) -> dict[str, Node]:
    """Return the derivatives of left − right, where they can be formed."""
    found = {}
    for variable in goal.domain.variables:
        try:
            found[variable.name] = differentiate(goal.left - goal.right, variable.name)
        except ProofError:
            continue
    return found


def _decided_at_ends(goal: Goal, box: Box, slopes: dict[str, Node], budget: Budget) -> bool:
    """Move every variable in which left − right is monotone to its worst end, and look there."""
    if goal.relation == "!=":
        return False
    worst_is_high = goal.relation in ("<=", "<")
    pinned = dict(box)
    for name, slope in slopes.items():
        found = pinned[name]
        if found.is_point():
            continue
        try:
            sign = evaluate(slope, pinned, budget).sign()
        except ProofError:
            continue
        if sign is None:
            continue
        end = found.high if (sign[0] >= 0) == worst_is_high else found.low
        if end.is_finite():
            pinned[name] = Range(end, end)
    return pinned != box and _decided(goal, pinned, budget)


def _shown(box: Box) -> str:
    return ", ".join(
        f"{name.split('#')[0]} in [{found.low.str(6, radius=False)}, "
        f"{found.high.str(6, radius=False)}]"
        for name, found in box.items()
    )
