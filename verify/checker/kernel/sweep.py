"""Prove a comparison on a whole box by cutting it into pieces on which ranges decide it."""

from __future__ import annotations

import dataclasses
from typing import Final

from accountant.numbers.precision import ctx
from verify.checker.kernel.boxes import Box, box_of, halves, outside, width
from verify.checker.kernel.derivative import differentiate
from verify.checker.kernel.domain import Domain, Goal
from verify.checker.kernel.extended import evaluate
from verify.checker.kernel.language import Budget, Node, ProofError, free, minus
from verify.checker.kernel.ranges import Range, related

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
    opposite = {"<=": ">", "<": ">=", ">=": "<", ">": "<="}[goal.relation]
    return _decided(dataclasses.replace(goal, relation=opposite), middle, budget)


def _slopes(goal: Goal) -> dict[str, Node]:
    """Return the derivatives of left − right, where they can be formed."""
    found = {}
    for variable in goal.domain.variables:
        try:
            found[variable.name] = differentiate(minus(goal.left, goal.right), variable.name)
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
