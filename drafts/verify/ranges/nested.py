"""The methods that rest on smaller proofs: split, both, derivative, induction, combine."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from dpassay.verifier.ranges.derivative import differentiate, is_smooth
from dpassay.verifier.ranges.domain import INTEGER, Goal, Variable
from dpassay.verifier.ranges.expressions import (
    OPPOSITE,
    Apply,
    Comparison,
    Name,
    Node,
    ProofError,
    free,
    number,
    replace,
    substitute,
)
from dpassay.verifier.ranges.limits import Limits
from dpassay.verifier.ranges.methods import cut, defined, reformed, require_whole
from dpassay.verifier.ranges.normal import Normaliser
from dpassay.verifier.ranges.prover import (
    Proved,
    Prover,
    Spec,
    nested,
    normalised,
    options,
    whole_number,
)

_MOST_PARTS: Final = 100
_WEAK: Final = {"<": "<=", ">": ">="}


def _moving(goal: Goal, given: Mapping[str, Any]) -> Variable:
    """Return the variable that a method names; nothing else of the domain may depend on it."""
    variable = goal.domain.variable(str(given.get("variable")))
    if variable is None:
        raise ProofError(f"{str(given.get('variable'))[:40]!r} is not a variable of the claim")
    if goal.domain.mentioned(variable.name):
        raise ProofError(f"the domain of another variable depends on {variable.name}")
    return variable


def split_proof(goal: Goal, spec: Spec, prover: Prover) -> Proved:
    """Prove a goal on each of the pieces into which numbers cut the range of a variable."""
    given = options(spec, ("variable", "at", "proofs"))
    texts, proofs = given.get("at"), given.get("proofs")
    if not isinstance(texts, list) or not texts or len(texts) > _MOST_PARTS:
        raise ProofError("expected at = […] with the numbers to split at")
    if not isinstance(proofs, list) or len(proofs) != len(texts) + 1:
        raise ProofError("expected one proof for every piece")
    parts, rest = [], goal.domain
    for text in texts:
        point = prover.read(text)
        lower, rest = cut(rest, str(given.get("variable")), point, prover.budget)
        parts.append(lower)
    parts.append(rest)
    sizes = []
    for index, (part, proof) in enumerate(zip(parts, proofs, strict=True)):
        try:
            inner = nested({"proofs": proof}, "proofs")
            sizes.append(prover.prove(goal.on(part), inner).size)
        except ProofError as error:
            raise ProofError(f"piece {index + 1}: {error}") from None
    return Proved(str(goal), "split", "; ".join(sizes))


def both(goal: Goal, spec: Spec, prover: Prover) -> Proved:
    """Prove an equality by the two inequalities."""
    given = options(spec, ("below", "above"))
    if goal.relation != "==":
        raise ProofError(f"two inequalities prove ==, not {goal.relation}")
    sizes = [
        prover.prove(dataclasses.replace(goal, relation=relation), nested(given, name)).size
        for relation, name in (("<=", "below"), (">=", "above"))
    ]
    return Proved(str(goal), "both", "; ".join(sizes))


def each(goal: Goal, spec: Spec, prover: Prover) -> Proved:
    """Prove x ≥ max(a, b, …) (or x ≤ min(a, b, …), and with <, >) for each of a, b, … alone."""
    given = options(spec, ("proofs",))
    swap = goal.relation in ("<=", "<")
    small, large = (goal.left, goal.right) if swap else (goal.right, goal.left)
    match small, large:
        case Apply(name="max", arguments=arguments), _ if arguments:
            pairs = [(argument, large) for argument in arguments]
        case _, Apply(name="min", arguments=arguments) if arguments:
            pairs = [(small, argument) for argument in arguments]
        case _:
            raise ProofError("expected a max on the smaller side, or a min on the larger one")
    proofs = given.get("proofs", [None] * len(pairs))
    if goal.relation in ("==", "!=") or not isinstance(proofs, list) or len(proofs) != len(pairs):
        raise ProofError("expected one proof for each argument of the max or min")
    sizes = []
    for (low, high), proof in zip(pairs, proofs, strict=True):
        left, right = (low, high) if swap else (high, low)
        part = Goal(left, goal.relation, right, goal.domain)
        sizes.append(prover.prove(part, nested({"proof": proof}, "proof")).size)
    return Proved(str(goal), "each", "; ".join(sizes))


def in_form(goal: Goal, spec: Spec, prover: Prover) -> Proved:
    """Prove a goal in an equivalent form: left − right = times·(l − r), times > 0."""
    given = options(spec, ("form", "times", "proof"))
    result = reformed(goal, prover.compared(given.get("form")), given.get("times", "1"), prover)
    found = prover.prove(result, nested(given, "proof"))
    return Proved(str(goal), "form", found.size)


def branch(goal: Goal, spec: Spec, prover: Prover) -> Proved:
    """Prove a goal with min, max or abs `of` replaced by what it is, in each of its cases."""
    given = options(spec, ("of", "proofs"))
    found = prover.read(given.get("of"))
    match found:
        case Apply(name="max" | "min" as name, arguments=values, named=()) if values:
            relation = ">=" if name == "max" else "<="
            branches = [
                (value, [Comparison(value, relation, other) for other in values if other != value])
                for value in values
            ]
        case Apply(name="abs", arguments=(value,), named=()):
            minus_value = -value
            branches = [
                (value, [Comparison(value, ">=", number(0))]),
                (minus_value, [Comparison(value, "<=", number(0))]),
            ]
        case _:
            raise ProofError("expected of to be a max, a min or an abs")
    if not free(found) <= goal.domain.names():
        raise ProofError("expected of to use variables of the claim only")
    defined(goal, prover.budget)
    proofs = given.get("proofs", [None] * len(branches))
    if not isinstance(proofs, list) or len(proofs) != len(branches):
        raise ProofError("expected one proof for every branch")
    sizes = []
    for (value, more), proof in zip(branches, proofs, strict=True):
        domain = dataclasses.replace(goal.domain, assumptions=(*goal.domain.assumptions, *more))
        left, right = (replace(side, {found: value}) for side in (goal.left, goal.right))
        part = Goal(left, goal.relation, right, domain)
        sizes.append(prover.prove(part, nested({"proof": proof}, "proof")).size)
    return Proved(str(goal), "branch", "; ".join(sizes))


def derivative(goal: Goal, spec: Spec, prover: Prover) -> Proved:
    """Prove f rel 0 from one end of a variable: f rel 0 there, and f' has the sign that keeps it.

    f = left − right is continuous on the closed range and differentiable inside (the mean value
    theorem). An integer variable is taken as a real one.
    """
    given = options(spec, ("variable", "from", "start", "slope"))
    variable = _moving(goal, given)
    side = given.get("from", "low")
    if side == "infinity":
        return _from_infinity(goal, variable, given, prover)
    end = {"low": variable.low, "high": variable.high}.get(str(side))
    if end is None or goal.relation == "!=":
        raise ProofError(f"the range of {variable.name} has no {str(side)[:20]} end to start from")
    if not (is_smooth(goal.left, variable.name) and is_smooth(goal.right, variable.name)):
        raise ProofError(f"a side is not known to be continuous in {variable.name}")
    low = side == "low"
    closed = dataclasses.replace(
        variable,
        integer=False,
        low_open=variable.low_open and not low,
        high_open=variable.high_open and low,
    )
    inside = dataclasses.replace(
        closed, low_open=low or closed.low_open, high_open=(not low) or closed.high_open
    )
    defined(goal.on(goal.domain.put(closed)), prover.budget)
    open_end = variable.low_open if low else variable.high_open
    weak = _WEAK.get(goal.relation, goal.relation)
    turned = goal.relation if low else OPPOSITE[goal.relation]
    weak_slope = _WEAK.get(turned, turned)
    slopes = [differentiate(node, variable.name) for node in (goal.left, goal.right)]
    attempts = [(goal.relation, weak_slope)]
    if weak != goal.relation and open_end:
        attempts.insert(0, (weak, turned))
    failure: ProofError | None = None
    for at_start, along in attempts:
        start = dataclasses.replace(goal, relation=at_start).fix({variable.name: end})
        slope = Goal(slopes[0], along, slopes[1], goal.domain.put(inside))
        try:
            one = _labelled("start", prover, start, nested(given, "start"))
            two = _labelled("slope", prover, slope, nested(given, "slope"))
        except ProofError as error:
            failure = error
            continue
        return Proved(str(goal), "derivative", f"start: {one.size}; slope: {two.size}")
    raise failure or ProofError("the derivative proves nothing")


def _from_infinity(
    goal: Goal, variable: Variable, given: Mapping[str, Any], prover: Prover
) -> Proved:
    """Prove f rel 0 as f tends to a limit that is rel 0, and f' has the sign that leads to it."""
    if variable.high is not None or goal.relation == "!=":
        raise ProofError(f"the range of {variable.name} ends before infinity")
    real = goal.on(goal.domain.put(dataclasses.replace(variable, integer=False)))
    defined(real, prover.budget)
    if goal.domain.assumptions:
        raise ProofError("a limit with assumptions is not understood")
    limits = Limits(variable.name, goal.domain, prover.budget)
    found = limits.of(goal.left - goal.right)
    weak = _WEAK.get(goal.relation, goal.relation)
    if not (found.infinite and (found.infinite < 0) == (weak == "<=")) or weak == "==":
        if found.infinite:
            raise ProofError("the difference tends to the wrong infinity")
        at_end = Goal(found.value, weak, number(0), limits.domain)
        _labelled("start", prover, at_end, nested(given, "start"))
    slopes = [differentiate(node, variable.name) for node in (goal.left, goal.right)]
    slope = Goal(slopes[0], OPPOSITE[goal.relation], slopes[1], real.domain)
    along = _labelled("slope", prover, slope, nested(given, "slope"))
    return Proved(str(goal), "derivative", f"from infinity; slope: {along.size}")


def _labelled(name: str, prover: Prover, goal: Goal, spec: Spec | None) -> Proved:
    try:
        return prover.prove(goal, spec)
    except ProofError as error:
        raise ProofError(f"{name}: {error}") from None


def induction(goal: Goal, spec: Spec, prover: Prover) -> Proved:
    """Prove D(n) rel 0 for n ≥ low: at n = low, and D(n + 1) − c·D(n) rel 0 with c ≥ 0."""
    given = options(spec, ("variable", "factor", "base", "step"))
    variable = _moving(goal, given)
    if not variable.integer or variable.low is None or goal.relation == "!=":
        raise ProofError(f"{variable.name} is no integer with a least value")
    first = variable.low + 1 if variable.low_open else variable.low
    require_whole(goal, first, prover.budget)
    own, last = Name(variable.name), variable.high
    if last is not None:
        last = last - 1
    shorter = dataclasses.replace(variable, high=last)
    domain = goal.domain.put(shorter)
    factor = prover.read(given.get("factor", "1"))
    relation = goal.relation
    if relation != "==":
        strictly = _multiplier(factor, goal.on(domain), prover)
        relation = _WEAK.get(relation, relation) if strictly else relation
    base = _labelled("base", prover, goal.fix({variable.name: first}), nested(given, "base"))
    after = {variable.name: own + 1}
    step = Goal(
        substitute(goal.left, after) + factor * goal.right,
        relation,
        substitute(goal.right, after) + factor * goal.left,
        domain,
    )
    found = _labelled("step", prover, step, nested(given, "step"))
    return Proved(str(goal), "induction", f"base: {base.size}; step: {found.size}")


def _multiplier(factor: Node, goal: Goal, prover: Prover) -> bool:
    """Require a multiplier to be ≥ 0; return whether it is > 0."""

    def work(normaliser: Normaliser) -> bool:
        value = normaliser.normal(factor)
        normaliser.require(value, 1, "a multiplier", strict=False)
        return normaliser.sign(value) == (1, True)

    return normalised(goal, prover.budget, work, factor)


def combine(goal: Goal, spec: Spec, prover: Prover) -> Proved:
    """Prove a goal from lemmas and facts: left − right = Σ times·(l − r) + rest."""
    given = options(spec, ("from", "rest"))
    entries = given.get("from")
    if goal.relation == "!=":
        raise ProofError("a combination proves no !=")
    if not isinstance(entries, list) or not entries or len(entries) > _MOST_PARTS:
        raise ProofError("expected from = [{claim = …, at = {…}, times = …}, …]")
    left, right, strict = goal.left, goal.right, False
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise ProofError("expected from = [{claim = …, at = {…}, times = …}, …]")
        fact = _fact(goal, entry, prover)
        factor = prover.read(entry.get("times", "1"))
        if fact.relation == "==":
            defined(Goal(factor, "==", factor, goal.domain), prover.budget)
        else:
            if goal.relation == "==":
                raise ProofError("an equality rests on equalities only")
            if fact.relation[0] != goal.relation[0]:
                fact = Comparison(fact.right, OPPOSITE[fact.relation], fact.left)
            positive = _multiplier(factor, goal, prover)
            strict = strict or (positive and fact.relation in ("<", ">"))
        left = left - factor * fact.left
        right = right - factor * fact.right
    relation = _WEAK.get(goal.relation, goal.relation) if strict else goal.relation
    defined(goal, prover.budget)
    rest = _labelled(
        "rest", prover, Goal(left, relation, right, goal.domain), nested(given, "rest")
    )
    return Proved(str(goal), "combine", f"{len(entries)} facts; rest: {rest.size}")


def _fact(goal: Goal, entry: Mapping[str, Any], prover: Prover) -> Comparison:
    """Return a comparison that holds over the domain of the goal."""
    kinds = [key for key in ("claim", "fact", "assume") if key in entry]
    unknown = set(entry) - {"claim", "case", "at", "fact", "by", "assume", "times"}
    if len(kinds) != 1 or unknown:
        raise ProofError("expected one of claim, fact and assume in every entry of from")
    if "assume" in entry:
        index = whole_number(entry["assume"], "assume")
        if index >= len(goal.domain.assumptions):
            raise ProofError("expected assume = the number of an assumption, from 0")
        found = goal.domain.assumptions[index]
    elif "fact" in entry:
        found = prover.compared(entry["fact"])
        if not _is_extreme(found):
            stated = Goal(found.left, found.relation, found.right, goal.domain)
            prover.prove(stated, nested(entry, "by"))
    else:
        found = _lemma(goal, entry, prover)
    if found.relation in ("!=", INTEGER):
        raise ProofError("nothing follows from !=")
    return found


def _is_extreme(found: Comparison) -> bool:
    """Whether a fact says that x ≤ max(x, …) or min(x, …) ≤ x."""
    sides = (found.left, found.right)
    if found.relation == ">=":
        sides = (found.right, found.left)
    elif found.relation != "<=":
        return False
    match sides:
        case (small, Apply(name="max", arguments=arguments)) if small in arguments:
            return True
        case (Apply(name="min", arguments=arguments), large) if large in arguments:
            return True
    return False


def _lemma(goal: Goal, entry: Mapping[str, Any], prover: Prover) -> Comparison:
    """Return what a lemma states at a point of its domain."""
    stated, case = prover.lemma(str(entry["claim"])), whole_number(entry.get("case", 0), "case")
    if case >= len(stated):
        raise ProofError(f"the lemma has the cases 0 to {len(stated) - 1}")
    if "case" not in entry and len(stated) > 1:
        raise ProofError("the lemma is about several cases: say which (case = 0, …)")
    lemma = stated[case]
    points = entry.get("at", {})
    if not isinstance(points, Mapping) or set(points) != set(lemma.domain.names()):
        names = ", ".join(sorted(lemma.domain.names()))
        raise ProofError(f"expected at = {{…}} with a value for each of {names or 'no variable'}")
    values = {name: prover.read(text) for name, text in points.items()}
    conditions = [c for variable in lemma.domain.variables for c in variable.conditions()]
    for condition in (*conditions, *lemma.domain.assumptions):
        one, two = (substitute(side, values) for side in (condition.left, condition.right))
        prover.prove(Goal(one, condition.relation, two, goal.domain), None)
    for variable in lemma.domain.variables:
        if variable.integer:
            require_whole(goal, values[variable.name], prover.budget)
    return Comparison(
        substitute(lemma.left, values), lemma.relation, substitute(lemma.right, values)
    )
