"""Read the plain data of a claim as goals: comparisons over formal domains."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from dpassay.verifier import rivals
from dpassay.verifier.ranges.closed_forms import rounded_up
from dpassay.verifier.ranges.domain import INTEGER, Domain, Goal, Variable
from dpassay.verifier.ranges.expressions import (
    Apply,
    Comparison,
    Fold,
    Name,
    Node,
    Number,
    ProofError,
    Text,
    bounded,
    comparison,
    free,
    number,
    parse,
    show,
    substitute,
    walk,
)
from dpassay.verifier.ranges.limits import StatedLimit
from dpassay.verifier.ranges.resolver import Resolver

_MOST_CASES: Final = 10_000
_BOUNDS: Final = {
    "gaussian-dp": ("mu", (), "mu"),
    "pure-dp": ("max_loss", (), "epsilon"),
    "zcdp": ("rho", (), "rho"),
    "renyi-dp": ("renyi", ("order",), "epsilon"),
    "approximate-dp": ("delta", ("epsilon",), "delta"),
}
"""Kind → question, its arguments, and the field that bounds it from above."""
_ENDS: Final = ("low", "above", "high", "below")


def domain_of(claim: Mapping[str, Any], values: Mapping[str, Node]) -> Domain:
    """Return the domain of the variables under `for_all`, and the assumptions."""
    variables = tuple(
        variable(name, given, values) for name, given in claim.get("for_all", {}).items()
    )
    lets = let_of(claim, values)
    assumptions = (comparison(text) for text in claim.get("assume", []))
    filled = (
        Comparison(substitute(a.left, lets), a.relation, substitute(a.right, lets))
        for a in assumptions
    )
    return Domain(variables, tuple(filled))


def variable(name: str, given: Mapping[str, Any], values: Mapping[str, Node]) -> Variable:
    """Return a variable with its formal domain; raise ProofError where it has only words."""
    if not isinstance(given, Mapping) or not name.isidentifier():
        raise ProofError(f"{str(name)[:40]!r} is no variable with a domain")
    ends = {key: given[key] for key in _ENDS if given.get(key) is not None}
    if {"low", "above"} <= set(ends) or {"high", "below"} <= set(ends):
        raise ProofError(f"{name} has two ends on one side")
    whole = given.get("integer", False)
    if not isinstance(whole, bool):
        raise ProofError(f"expected {name}.integer to be true or false")
    if not ends and not whole:
        raise ProofError(f"{name} has no formal domain (low, above, high or below)")
    nodes = {
        key: substitute(parse(text), values)
        for key, text in ends.items()
        if not (key == "above" and str(text).strip() == "-inf")
        and not (key == "below" and str(text).strip() == "inf")
    }
    return Variable(
        name,
        nodes.get("low", nodes.get("above")),
        nodes.get("high", nodes.get("below")),
        "above" in nodes,
        "below" in nodes,
        whole,
    )


def let_of(claim: Mapping[str, Any], values: Mapping[str, Node]) -> dict[str, Node]:
    """Return what every named sub-expression stands for, with the listed values put in."""
    known = dict(values)
    for name, text in claim.get("let", {}).items():
        if name in known or name in claim.get("for_all", {}):
            raise ProofError(f"the name {name} is given twice")
        known[name] = bounded(substitute(parse(text), known))
    return known


def listed(claim: Mapping[str, Any]) -> list[dict[str, Node]]:
    """Return every combination of the values under `where`."""
    lists = claim.get("where", {})
    count = 1
    for name, texts in lists.items():
        if not isinstance(texts, list) or not texts or name in claim.get("for_all", {}):
            raise ProofError(f"expected a list of values for {name}")
        count *= len(texts)
    if count > _MOST_CASES:
        raise ProofError("too many listed cases")
    rows = itertools.product(*([parse(text) for text in texts] for texts in lists.values()))
    return [dict(zip(lists, row, strict=True)) for row in rows]


def goals_of(claim: Mapping[str, Any]) -> list[tuple[Goal, Mapping[str, Node]]]:
    """Return what has to be proved, for every combination of listed values.

    With each goal come the names that its proof may use: listed values and `let`.
    """
    return [(goal, lets) for domain, lets in _cases(claim) for goal in _goals(claim, domain, lets)]


def _cases(claim: Mapping[str, Any]) -> Iterator[tuple[Domain, dict[str, Node]]]:
    """Yield the domain and the names of every combination of listed values."""
    for values in listed(claim):
        yield domain_of(claim, values), let_of(claim, values)


def _goals(claim: Mapping[str, Any], domain: Domain, lets: Mapping[str, Node]) -> list[Goal]:
    kind = claim.get("kind")

    def read(field: str) -> Node:
        if field not in claim:
            raise ProofError(f"the claim lacks {field}")
        return substitute(parse(claim[field]), lets)

    if kind == "relation":
        found = comparison(claim["claim"])
        left, right = substitute(found.left, lets), substitute(found.right, lets)
        return [Goal(left, found.relation, right, domain)]
    if kind in _BOUNDS:
        question, arguments, bound = _BOUNDS[kind]
        adjacency = claim.get("adjacency")
        named = () if adjacency is None else (("adjacency", Text(str(adjacency))),)
        asked = Apply(question, (read("mechanism"), *map(read, arguments)), named)
        return [Goal(asked, "<=", read(bound), domain)]
    if kind == "optimality":
        best = substitute(parse(_dual(claim).text), lets)
        scale = Number(1 + _tolerance(claim))
        return [Goal(read("value"), "<=", scale * best, domain)]
    if kind in ("monotone", "minimiser"):
        return _behaviour(claim, domain, lets, read("expression"))
    raise ProofError(f"the kernel has no theorem of kind {str(kind)[:40]!r}")


def _moving(name: str, given: Mapping[str, Any], lets: Mapping[str, Node]) -> Variable:
    """Return the variable of a limit, of a minimiser or of a monotone function."""
    if name in lets:
        raise ProofError(f"the name {name} is given twice")
    return variable(name, given, lets)


def limits_of(claim: Mapping[str, Any]) -> list[StatedLimit]:
    """Return what a claim of kind limit states, for every combination of listed values."""
    found = []
    for domain, lets in _cases(claim):
        name, own = claim.get("variable"), claim.get("over")
        if not isinstance(name, str):
            raise ProofError("a limit needs a variable")
        moving = _moving(name, {"above": "-inf"} if own is None else own, lets)
        over = Domain((*domain.variables, moving), domain.assumptions)
        expression, limit = (
            substitute(parse(claim[field]), lets) for field in ("expression", "limit")
        )
        told, conditions = resolved(Goal(expression, "==", limit, over))
        if name in free(limit):
            raise ProofError(f"the limit uses {name}, which tends to infinity")
        rate = substitute(parse(claim["rate"]), lets) if claim.get("rate") else None
        stated = StatedLimit(told.left, name, told.right, rate, over, lets, tuple(conditions))
        found.append(stated)
    return found


def _dual(claim: Mapping[str, Any]) -> rivals.Bound:
    """Return the bound that the dual of a claim of optimality gives for every rival."""
    if not claim.get("dual"):
        raise ProofError("optimality is proved from a dual only")
    return rivals.compared({**claim, "rival": None})


def _tolerance(claim: Mapping[str, Any]) -> Fraction:
    """Return the relative tolerance of a claim of optimality."""
    found = parse(claim.get("tolerance", "0"))
    if not isinstance(found, Number) or found.value < 0:
        raise ProofError("expected tolerance to be a number >= 0")
    return found.value


def sides_of(claim: Mapping[str, Any]) -> list[tuple[Goal, Mapping[str, Node]]]:
    """Return what has to hold besides: where a minimiser lies, and the conditions of a dual."""
    found: list[tuple[Goal, Mapping[str, Node]]] = []
    if claim.get("kind") == "optimality":
        for domain, lets in _cases(claim):
            for text in _dual(claim).conditions:
                side = comparison(text)
                left, right = (substitute(part, lets) for part in (side.left, side.right))
                if side.relation == "==" and left == Apply("floor", (right,)):
                    found.append((Goal(right, INTEGER, number(0), domain), lets))
                else:
                    found.append((Goal(left, side.relation, right, domain), lets))
        return found
    if claim.get("kind") != "minimiser":
        return []
    name = str(claim["variable"])
    for domain, lets in _cases(claim):
        point = substitute(parse(claim["claimed"]), lets)
        moving = variable(name, claim["over"], lets)
        found += [
            (Goal(point, condition.relation, condition.right, domain), lets)
            for condition in moving.conditions()
        ]
        if moving.integer:
            found.append((Goal(point, INTEGER, number(0), domain), lets))
    return found


def theorem_of(claim: Mapping[str, Any]) -> str | None:
    """Say what a claim of optimality, monotone or minimiser states; None for the other kinds."""
    kind, name = claim.get("kind"), claim.get("variable")
    if kind == "optimality":
        value, tolerance = show(parse(claim.get("value"))), _tolerance(claim)
        words = f"no member of {claim.get('among')!r} has less than {value}"
        if tolerance:
            words += f", divided by 1 + {tolerance}"
        found = []
        for values in listed(claim):
            case, lets = str(domain_of(claim, values)), let_of(claim, values)
            meant = ", ".join(f"{key} = {show(value)}" for key, value in lets.items())
            said = f"for {case}: {words}" if case else words
            found.append(f"{said}, with {meant}" if meant else said)
        return "; ".join(found[:20])
    if kind not in ("monotone", "minimiser"):
        return None
    found = []
    for domain, lets in _cases(claim):
        over = domain.add(variable(str(name), claim["over"], lets))
        shown = show(substitute(parse(claim["expression"]), lets))
        if kind == "monotone":
            found.append(f"for {over}: {shown} is {claim['direction']} in {name}")
        else:
            best = show(substitute(parse(claim["claimed"]), lets))
            found.append(f"for {over}: {shown} is least at {name} = {best}")
    return "; ".join(found[:20])


def _behaviour(
    claim: Mapping[str, Any], domain: Domain, lets: Mapping[str, Node], expression: Node
) -> list[Goal]:
    """Compare f(n) with f(n + 1) over integers, f(x) with f(x_after) over reals.

    A minimiser lies in its domain, and is compared with every point of it.
    """
    name = claim.get("variable")
    own = claim.get("over")
    if not isinstance(name, str) or not isinstance(own, Mapping):
        raise ProofError("the variable has no formal domain (over.low, over.above, …)")
    moving = _moving(name, own, lets)
    over = Domain((*domain.variables, moving), domain.assumptions)
    if claim["kind"] == "minimiser":
        point = substitute(parse(claim["claimed"]), lets)
        if not free(point) <= domain.names():
            raise ProofError(
                f"the claimed minimiser uses what is no variable of for_all: {show(point)}"
            )
        return [Goal(substitute(expression, {name: point}), "<=", expression, over)]
    relation = {"increasing": "<", "decreasing": ">"}.get(str(claim.get("direction")))
    if relation is None:
        raise ProofError("expected direction to be increasing or decreasing")
    if moving.integer:
        after = Name(name) + 1
        last = moving.high
        if last is not None:
            end = last - 1
            moving = Variable(name, moving.low, end, moving.low_open, moving.high_open, True)
            over = Domain((*domain.variables, moving), domain.assumptions)
        return [Goal(expression, relation, substitute(expression, {name: after}), over)]
    later = f"{name}_after"
    second = Variable(later, Name(name), moving.high, True, moving.high_open)
    first = dataclasses.replace(moving, high_open=True)
    over = Domain((*domain.variables, first, second), domain.assumptions)
    return [Goal(expression, relation, substitute(expression, {name: Name(later)}), over)]


def resolved(goal: Goal) -> tuple[Goal, list[Goal]]:
    """Return the goal with formulas for the questions about mechanisms, and their conditions."""
    for node in (goal.left, goal.right, *goal.domain.nodes()):
        for inner in walk(node):
            if isinstance(inner, Fold) and inner.index.split("#")[0] in goal.domain.names():
                raise ProofError(f"the index {inner.index.split('#')[0]} is a variable as well")
    resolver = {side: Resolver() for side in ("left", "right")}
    left, right = goal.left, goal.right
    if goal.relation in ("<=", "<"):
        resolver["left"].upper, right = True, rounded_up(right)
    elif goal.relation in (">=", ">"):
        resolver["right"].upper, left = True, rounded_up(left)
    answers = {"left": resolver["left"].resolve(left), "right": resolver["right"].resolve(right)}
    conditions = []
    for found in resolver.values():
        for condition, folds in found.conditions:
            domain = goal.domain
            for fold in folds:
                domain = domain.add(Variable(fold.index, fold.low, fold.high, integer=True))
            conditions.append(Goal(condition.left, condition.relation, condition.right, domain))
    return Goal(answers["left"], goal.relation, answers["right"], goal.domain), conditions
