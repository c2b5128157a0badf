"""The methods that need no other proof: identity, positive, sweep, cases."""

from __future__ import annotations

import dataclasses
from math import floor
from typing import Final

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.ranges.domain import Domain, Goal, Variable
from dpassay.verifier.ranges.expressions import (
    NEGATION,
    Apply,
    Budget,
    Comparison,
    Node,
    Number,
    ProofError,
    children,
    free,
    number,
    replace,
    show,
    walk,
)
from dpassay.verifier.ranges.extended import evaluate
from dpassay.verifier.ranges.normal import Normaliser
from dpassay.verifier.ranges.polynomials import ONE, Ratio, coefficients, used
from dpassay.verifier.ranges.prover import Proved, Prover, Spec, normalised, options, whole_number
from dpassay.verifier.ranges.ranges import Range, fraction, related
from dpassay.verifier.ranges.sweep import PIECES, sweep, whole_part

_PRECISIONS: Final = (128, 512, 2048)
"""Bits at which balls are asked for a sign before algebra decides it."""


_MOST_CASES: Final = 10_000
_MOST_PIECES: Final = 200_000
_AGAINST: Final = {"<=": -1, "<": -1, ">=": 1, ">": 1}


def difference(goal: Goal, normaliser: Normaliser) -> Ratio:
    """Return left − right, reduced by the relations between the atoms."""
    left, right = normaliser.normal(goal.left), normaliser.normal(goal.right)
    return normaliser.reduced(left - right)


def defined(goal: Goal, budget: Budget) -> None:
    """Show that both sides are defined over the domain."""
    normalised(goal, budget, lambda normaliser: difference(goal, normaliser))


def without_abs(goal: Goal, budget: Budget) -> Goal:
    """Write e or −e for abs(e) wherever the sign of e is known."""
    found = {
        node
        for side in (goal.left, goal.right)
        for node in walk(side)
        if isinstance(node, Apply) and node.name == "abs" and free(node) <= goal.domain.names()
    }
    if not found:
        return goal

    def work(normaliser: Normaliser) -> dict[Node, Node]:
        plain: dict[Node, Node] = {}
        for node in sorted(found, key=show):
            (inner,) = children(node)
            sign = normaliser.sign(normaliser.normal(inner))
            if sign is not None:
                plain[node] = inner if sign[0] >= 0 else -inner
        return plain

    plain = normalised(goal, budget, work)
    return dataclasses.replace(
        goal, left=replace(goal.left, plain), right=replace(goal.right, plain)
    )


def vanishes(normaliser: Normaliser, value: Ratio) -> bool:
    """Whether a ratio is 0 over the whole domain: at once, or since A + s·B = 0 with s² = e."""
    if value.is_zero():
        return True
    for index in sorted(used(value.top), reverse=True):
        atom = normaliser.atoms[index]
        if atom.radicand is None or atom.degree != 2:
            continue
        parts = coefficients(value.top, index)
        if len(parts) != 2:
            continue
        plain, rooted = (Ratio.of(part, ONE) for part in parts)
        square = normaliser.reduced(plain * plain - rooted * rooted * atom.radicand)
        opposite = normaliser.sign(plain * rooted)
        if opposite is not None and opposite[0] <= 0 and vanishes(normaliser, square):
            return True
    return False


def identity(goal: Goal, spec: Spec, prover: Prover) -> Proved:
    """Prove left = right (or ≤, ≥) as both are the same rational function of the atoms."""
    options(spec, ())
    if goal.relation not in ("==", "<=", ">="):
        raise ProofError(f"an identity proves no {goal.relation}")

    def work(normaliser: Normaliser) -> int:
        found = difference(goal, normaliser)
        if not vanishes(normaliser, found):
            shown = show(normaliser.node(found))
            raise ProofError(f"the two sides differ by {shown[:200]}")
        return len(normaliser.atoms)

    atoms = normalised(goal, prover.budget, work)
    return Proved(str(goal), "identity", f"{atoms} atoms")


def positive(goal: Goal, spec: Spec, prover: Prover) -> Proved:
    """Prove an inequality as all coefficients of left − right have one sign."""
    options(spec, ())
    side = _AGAINST.get(goal.relation)
    if side is None:
        raise ProofError(f"positive coefficients prove no {goal.relation}")

    def work(normaliser: Normaliser) -> int:
        found = difference(goal, normaliser)
        sign = normaliser.sign(found)
        strict = goal.relation in ("<", ">")
        if sign is None or sign[0] == -side or (strict and not sign[1]):
            shown = show(normaliser.node(found))
            raise ProofError(f"no sign of the coefficients of {shown[:200]}")
        return len(found.top)

    terms = normalised(goal, prover.budget, work)
    return Proved(str(goal), "positive", f"{terms} terms")


def cut(domain: Domain, name: str, point: Node, budget: Budget) -> tuple[Domain, Domain]:
    """Cut the range of a variable in two at a number; every value is in one of the pieces."""
    variable = domain.variable(name)
    if variable is None or free(point):
        raise ProofError(f"expected a variable and numbers to split at, not {name[:40]!r}")
    after = point
    if variable.integer:
        if not isinstance(point, Number):
            raise ProofError("an integer variable is split at a rational number")
        point = number(floor(point.value))
        after = number(point.value + 1)
    evaluate(point, {}, budget)  # the number is defined
    kept = [c for c in variable.conditions() if not isinstance(c.right, Number)]
    lower = dataclasses.replace(variable, high=point, high_open=False)
    upper = dataclasses.replace(variable, low=after, low_open=False)
    old_high = [c for c in kept if c.relation[0] == "<"]
    old_low = [c for c in kept if c.relation[0] == ">"]
    below = dataclasses.replace(domain.put(lower), assumptions=(*domain.assumptions, *old_high))
    above = dataclasses.replace(domain.put(upper), assumptions=(*domain.assumptions, *old_low))
    return below, above


def by_sweep(goal: Goal, spec: Spec, prover: Prover) -> Proved:
    """Prove an inequality by a sweep, perhaps in another form.

    With `form = "l < r"` and `times = "m"`, left − right = m·(l − r) must be an identity and m > 0;
    the relation of the form may be stricter.
    """
    given = options(spec, ("form", "times", "pieces"))
    pieces = whole_number(given.get("pieces", PIECES), "pieces")
    if not 1 <= pieces <= _MOST_PIECES:
        raise ProofError("expected pieces from 1 to 200000")
    swept = goal
    if "form" in given:
        swept = reformed(goal, prover.compared(given["form"]), given.get("times", "1"), prover)
    count = sweep(swept, prover.budget, pieces=pieces)
    return Proved(str(goal), "sweep", f"{count} pieces")


def reformed(goal: Goal, form: Comparison, multiplier: object, prover: Prover) -> Goal:
    """Return the goal in an equivalent form, after that has been shown."""
    if form.relation != goal.relation and form.relation + "=" != goal.relation:
        raise ProofError("the form has another relation than the claim")
    factor = prover.read(multiplier)
    result = Goal(form.left, form.relation, form.right, goal.domain)

    def work(normaliser: Normaliser) -> None:
        scale = normaliser.normal(factor)
        normaliser.require(scale, 1, "the factor of the form")
        left, right = normaliser.normal(form.left), normaliser.normal(form.right)
        found = difference(goal, normaliser) - scale * (left - right)
        if not vanishes(normaliser, normaliser.reduced(found)):
            raise ProofError("the form is not the claim: left - right is not times*(l - r)")

    normalised(goal, prover.budget, work, factor, form.left, form.right)
    return result


def cases(goal: Goal, spec: Spec, prover: Prover) -> Proved:
    """Prove a goal whose variables are integers between two ends, case by case."""
    options(spec, ())
    found = list(enumerate_cases(goal, prover.budget))
    for case in found:
        decide(case, prover.budget)
    return Proved(str(goal), "cases", f"{len(found)} cases")


def enumerate_cases(goal: Goal, budget: Budget) -> list[Goal]:
    """Return the goal in every case of its domain."""
    done: list[Goal] = []
    waiting = [goal]
    while waiting:
        case = waiting.pop()
        if not case.domain.variables:
            if all(_is_true(a, budget) for a in case.domain.assumptions):
                done.append(Goal(case.left, case.relation, case.right, Domain()))
            continue
        variable = case.domain.variables[0]
        found = _integers(variable, budget)
        if found is None:
            continue
        low, high = fraction(found.low), fraction(found.high)
        if high - low > _MOST_CASES or len(waiting) + len(done) > _MOST_CASES:
            raise ProofError("too many cases")
        waiting += [
            case.fix({variable.name: number(value)}) for value in range(int(low), int(high) + 1)
        ]
    if not done:
        raise ProofError("the domain has no case")
    return done


def _integers(variable: Variable, budget: Budget) -> Range | None:
    """Return the integers between two ends that are numbers, None where there surely is none."""
    if not variable.integer or variable.low is None or variable.high is None:
        raise ProofError(f"{variable.name} is no integer between two ends")
    low, high = evaluate(variable.low, {}, budget), evaluate(variable.high, {}, budget)
    if low.low > high.high:
        return None
    return whole_part(Range(low.low, high.high, variable.low_open, variable.high_open))


def _is_true(assumption: Comparison, budget: Budget) -> bool:
    """Decide an assumption between numbers."""
    try:
        decide(Goal(assumption.left, assumption.relation, assumption.right, Domain()), budget)
    except ProofError:
        false = NEGATION[assumption.relation]
        decide(Goal(assumption.left, false, assumption.right, Domain()), budget)
        return False
    return True


def decide(goal: Goal, budget: Budget) -> None:
    """Prove a comparison between two numbers; raise ProofError where it is not proved."""
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            left, right = (evaluate(side, {}, budget) for side in (goal.left, goal.right))
            if related(left, goal.relation, right):
                return
            if related(left, NEGATION[goal.relation], right):
                raise ProofError(f"it is false: {goal}")

    def work(normaliser: Normaliser) -> bool:
        return vanishes(normaliser, difference(goal, normaliser))

    if not normalised(goal, budget, work):
        raise ProofError(f"it was not decided: {goal}")
    if goal.relation not in ("<=", ">=", "=="):
        raise ProofError(f"it is false: {goal}")


def require_whole(goal: Goal, node: Node, budget: Budget) -> None:
    """Require a node to be an integer over the domain of a goal."""

    def work(normaliser: Normaliser) -> None:
        if not normaliser.is_integer(normaliser.reduced(normaliser.normal(node))):
            raise ProofError(f"{show(node)[:60]} was not shown to be an integer")

    normalised(goal, budget, work, node)
