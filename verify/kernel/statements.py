"""Statements about formulas: relations, printed numbers, monotone functions, limits, minimisers.

A statement is about its listed cases (the product of `where`) and, in each, about every value of
its `for_all` variables, of its own variable over `over`, that satisfies `assume`. HOLDS is proved
for all of them; SUPPORTED at every listed value; REFUTED by one case inside the domain. An end, a
limit, a claimed point never sees the variable that it bounds: whatever uses it is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from flint import fmpq

from . import numbers
from .boxes import Facts, Goal, Prover, Variable, limit
from .expressions import (
    OPPOSITE,
    ZERO,
    Node,
    allowed,
    comparison,
    definitions,
    make,
    number,
    parse,
    substitute,
    value,
    variable,
)  # fmt: skip
from .formulas import Conditions, expanded
from .numbers import Budget, NotProved, Number, Proof, Wrong, compare, decide

Data = Mapping[str, Any]
Case = dict[str, Node]
_ENDS = {"low": (0, False), "above": (0, True), "high": (1, False), "below": (1, True)}


def prove(theorem: Data, witness: Data, budget: Budget) -> Proof:
    """Prove a theorem of one of the kinds of this module, or raise NotProved or Wrong."""
    proof = Proof()
    statement = Statement(theorem, witness, budget, proof)
    found = {
        "relation": statement.relation,
        "printed-number": statement.printed,
        "monotone": statement.monotone,
        "minimiser": statement.minimiser,
        "limit": statement.limit,
    }.get(theorem["kind"])
    if found is None:
        raise NotProved("the kernel does not prove optimality")
    found()
    return proof


class Statement:
    """A theorem read: its variables, what its names stand for, and its cases."""

    def __init__(self, theorem: Data, witness: Data, budget: Budget, proof: Proof) -> None:
        self.theorem, self.witness, self.budget, self.proof = theorem, witness, budget, proof
        self.where, self.for_all = theorem["where"], theorem["for_all"]
        self.own = theorem.get("variable", "")
        self.names = [*self.where, *self.for_all, *([self.own] if self.own else [])]
        for name in self.names:
            allowed(name, f"theorem.{name}")
            if self.names.count(name) > 1:
                raise Wrong(f"theorem.{name}", "is two variables")
        self.let = definitions(theorem["let"], self.names, "theorem.let")
        known = {*self.names}
        self.domains: dict[str, Variable] = {}
        waiting = dict(self.for_all)
        while waiting:  # in an order in which ends use earlier variables only
            for name, ends in waiting.items():
                found = self.domain(name, ends, f"theorem.for_all.{name}")
                used = {n for e in (found.low, found.high) if e is not None for n in e.free}
                if used <= {*self.where, *self.domains}:
                    self.domains[name] = found
                    del waiting[name]
                    break
            else:
                raise Wrong(
                    f"theorem.for_all.{min(waiting)}", "has an end that sees the variable it bounds"
                )
        self.assumed = [comparison(t, "theorem.assume", self.let) for t in theorem["assume"]]
        for left, _, right in self.assumed:
            if not left.free | right.free <= known - {self.own}:
                raise Wrong("theorem.assume", "is about what is no variable of the theorem")
        self.over: Variable | None = None
        if self.own and theorem.get("over") is not None:
            self.over = self.domain(self.own, theorem["over"], "theorem.over")
            self.free_of_own("over", self.over.low, self.over.high)

    def domain(self, name: str, ends: Data, field: str) -> Variable:
        """Return a variable between its ends; "-inf" and "inf" are none."""
        found: dict[str, Any] = {}
        for key, (side, is_open) in _ENDS.items():
            text = ends.get(key)
            if text is None:
                continue
            word = ("low", "high")[side]
            if word in found:
                raise Wrong(f"{field}.{key}", "is a second end on the same side")
            far = str(text).strip() in ("-inf", "inf")
            found[word] = None if far else parse(text, f"{field}.{key}", self.let)
            found[f"{word}_open"] = is_open
            if found[word] is not None and name in found[word].free:
                raise Wrong(f"{field}.{key}", "sees the variable that it bounds")
        return Variable(name, integer=ends["integer"], **found)

    def free_of_own(self, field: str, *nodes: Node | None) -> None:
        if any(n is not None and self.own in n.free for n in nodes):
            raise Wrong(f"theorem.{field}", "sees the variable that it bounds")

    def formula(self, field: str) -> Node:
        return parse(self.theorem[field], f"theorem.{field}", self.let)

    # --- cases
    def entry(self, name: str, text: Any) -> Node:
        """Return a listed value: a formula in numbers, a mechanism, or words."""
        try:
            found = parse(text, f"theorem.where.{name}")
        except Wrong:
            return make("text", str(text))
        return make("text", str(text)) if found.free else found

    def cases(self, names: Mapping[str, Any]) -> Iterator[Case]:
        """Yield the combinations of listed values that satisfy the assumptions, all inside."""
        lists = [[self.entry(n, v) for v in values] for n, values in names.items()]
        for combination in itertools.product(*lists):
            self.budget.check(cases=1)
            case = dict(zip(names, combination, strict=True))
            if self.assumptions(case):
                yield case

    def assumptions(self, case: Case) -> bool:
        """Whether a case satisfies the assumptions about its variables; they must be decided."""
        for left, relation, right in self.assumed:
            if left.free | right.free <= {*case}:
                found = self.compared(substitute(left, case), relation, substitute(right, case))
                if found is None:
                    raise NotProved("an assumption is too close to call")
                if not found:
                    return False
        return True

    def listed(self) -> list[Case]:
        """Return every listed case, with the grids of the domains; there must be one."""
        grids = {name: ends["grid"] for name, ends in self.for_all.items()}
        found = list(self.cases({**self.where, **grids}))
        for case in found:
            self.inside(case)
        if not found:
            raise NotProved("no listed case satisfies the assumptions")
        return found

    def inside(self, case: Case) -> None:
        for name, domain in self.domains.items():
            self.within(case[name], domain, case, f"theorem.for_all.{name}.grid")

    def within(self, point: Node, domain: Variable, case: Case, field: str) -> None:
        """Require a point to lie in a range."""
        if domain.integer and not (point.op == "num" and point.args[0].q == 1):
            raise Wrong(field, f"{point!r:.60} is no integer, and the range has only these")
        ends = (domain.low, domain.low_open, ">"), (domain.high, domain.high_open, "<")
        for end, is_open, sign in ends:
            if end is None:
                continue
            found = self.compared(point, sign if is_open else sign + "=", substitute(end, case))
            if found is False:
                raise Wrong(field, f"{point!r:.60} lies outside the range")
            if found is None:
                raise NotProved(f"{point!r:.60} is too near an end of the range")

    def case(self) -> Case:
        """Return the case that refutes: listed values, and values inside the domains."""
        given = self.witness.get("case", {})
        if not isinstance(given, Mapping) or {*given} - {self.own} != {*self.where, *self.for_all}:
            raise Wrong("witness.case", "expected a value of each variable of the theorem")
        case: Case = {}
        for name, values in self.where.items():
            case[name] = self.entry(name, given[name])
            if not any(self.same(case[name], self.entry(name, v)) for v in values):
                raise Wrong(f"witness.case.{name}", "is not among the listed values")
        for name in self.for_all:
            case[name] = self.point(given[name], f"witness.case.{name}")
        self.inside(case)
        if not self.assumptions(case):
            raise Wrong("witness.case", "does not satisfy the assumptions")
        return case

    def same(self, a: Node, b: Node) -> bool:
        if a is b or "text" in (a.op, b.op):
            return a is b
        try:
            return self.compared(a, "==", b) is True
        except (NotProved, Wrong):
            return False

    def point(self, text: Any, field: str) -> Node:
        found = parse(text, field)
        if found.free:
            raise Wrong(field, "expected a number")
        try:
            exact = value(found, self.budget)
        except NotProved:
            return found
        return number(exact) if isinstance(exact, fmpq) else found

    # --- comparisons
    def number(self, node: Node) -> Number:
        adjacency, lemmas = self.theorem["adjacency"], self.proof.lemmas
        given = Conditions(adjacency)
        plain = expanded(node, given)
        if plain is not node and not self._met(given):
            plain = node
        else:
            lemmas |= given.lemmas
        return value(plain, self.budget, adjacency, lemmas)

    def _met(self, given: Conditions) -> bool:
        """Whether the conditions of formulas are met by numbers."""
        found = [value(n, self.budget) for n in given.whole]
        if not all(isinstance(x, fmpq) and x.q == 1 for x in found):
            return False
        return all(compare(value(n, self.budget), ">", fmpq(0)) is True for n in given.positive)

    def expand(self, node: Node) -> Node:
        """Put formulas in the place of questions in a proof, which may stand where they do not."""
        return expanded(node, Conditions(self.theorem["adjacency"]))

    def compared(self, left: Node, relation: str, right: Node) -> bool | None:
        found = decide(
            lambda: compare(self.number(left), relation, self.number(right)), self.budget
        )
        if found is None and relation in ("==", "<=", ">="):
            return Prover(self.budget, {}, self.lemma, self.expand).decided(left, "==", right)
        return found

    def require(self, left: Node, relation: str, right: Node, said: str) -> None:
        found = self.compared(left, relation, right)
        if found is None:
            raise NotProved(f"{said} is too close to call")
        if not found:
            raise Wrong("theorem", f"{said} is false")

    # --- kinds
    def relation(self) -> None:
        left, relation, right = comparison(self.theorem["claim"], "theorem.claim", self.let)
        self._about(left, right)
        if self.theorem["verdict"] == "REFUTED":
            case = self.case()
            sides = substitute(left, case), substitute(right, case)
            self.require(sides[0], OPPOSITE[relation], sides[1], "the refutation")
        elif self.theorem["verdict"] == "HOLDS" and self.for_all:
            for goal, names in self.goals():
                Prover(self.budget, names, self.lemma, self.expand).prove(
                    goal, self.witness.get("proof")
                )
        else:
            for case in self.listed():
                sides = substitute(left, case), substitute(right, case)
                self.require(sides[0], relation, sides[1], "the relation")

    def goals(self) -> list[tuple[Goal, Case]]:
        """Return what a relation states: one goal for each listed case, and what its names mean."""
        left, relation, right = comparison(self.theorem["claim"], "theorem.claim", self.let)
        found = []
        for case in self.cases(self.where):
            names = {**{k: substitute(v, case) for k, v in self.let.items()}, **case}
            found.append((self.goal(left, relation, right, case), names))
        if not found:
            raise NotProved("no listed case satisfies the assumptions")
        return found

    def goal(
        self, left: Node, relation: str, right: Node, case: Case, own: tuple[Variable, ...] = ()
    ) -> Goal:
        domains: list[Variable] = []
        for d in self.domains.values():
            formal = {"low", "above", "high", "below"} & {
                k for k, v in self.for_all[d.name].items() if v
            }
            if not formal:
                raise NotProved(f"{d.name} has a domain in words only")
            domains.append(self._fixed(d, case))
        given = tuple(
            (substitute(a, case), r, substitute(b, case))
            for a, r, b in self.assumed
            if (a.free | b.free) - {*case}
        )
        needed = Conditions(self.theorem["adjacency"])
        left, right = (expanded(substitute(n, case), needed) for n in (left, right))
        goal = Goal(left, relation, right, (*domains, *own), given)
        facts = Facts(goal, self.budget)
        names = {v.name for v in goal.variables}
        for node in needed.whole:
            if not facts.whole(node):
                raise NotProved(f"{node!r:.60} is not shown to be an integer")
        for node in needed.positive:
            if not node.free <= names or facts.sign(node) != (1, True):
                raise NotProved(f"{node!r:.60} is not shown to be positive")
        self.proof.lemmas |= needed.lemmas
        return goal

    @staticmethod
    def _fixed(d: Variable, case: Case) -> Variable:
        low, high = (None if e is None else substitute(e, case) for e in (d.low, d.high))
        return replace(d, low=low, high=high)

    def _about(self, *nodes: Node) -> None:
        for node in nodes:
            if strange := node.free - {*self.names}:
                raise Wrong("theorem", f"{min(strange)[:60]!a} is no variable of the theorem")

    def lemma(self, name: str, open_: tuple[str, ...] = ()) -> list[Goal]:
        """Return what another claim states, which the witness carries with its proof."""
        carried = self.witness.get("lemmas", [])
        entries = carried if isinstance(carried, list) else []
        found = next((e for e in entries if isinstance(e, Mapping) and e.get("id") == name), None)
        if found is None or not isinstance(found.get("claim"), str):
            raise NotProved(f"the lemma {name[:60]!a} is not in the certificate")
        if name in open_:
            raise NotProved(f"the lemma {name[:60]!a} rests on itself")
        from .schema import KINDS, fit

        kept = {k: v for k, v in found.items() if k in KINDS["relation"][0]["properties"]}
        shape = {"verdict": "HOLDS", "kind": "relation"}
        theorem = fit({**kept, **shape}, KINDS["relation"][0], "witness.lemmas")
        inner = Statement(theorem, self.witness, self.budget, self.proof)
        goals = inner.goals()
        prover_claims = lambda other: self.lemma(other, (*open_, name))  # noqa: E731
        for goal, names in goals:
            Prover(self.budget, names, prover_claims, inner.expand).prove(goal, found.get("proof"))
        return [goal for goal, _ in goals]

    def printed(self) -> None:
        node, text = self.formula("expression"), str(self.theorem["printed"]).strip()
        self._about(node)
        try:
            shown = numbers.rational(text)
        except ValueError as error:
            raise Wrong("theorem.printed", str(error)) from None
        head, _, power = text.lower().partition("e")
        places = int(power or 0) - len(head.partition(".")[2])
        if "/" in text or abs(places) > 10_000:
            raise Wrong("theorem.printed", "expected a decimal such as 0.125 or 1.3e-5")
        half = number(fmpq(10) ** places / 2 if places >= 0 else 1 / (2 * fmpq(10) ** -places))
        refuted = self.theorem["verdict"] == "REFUTED"
        for case in [self.case()] if refuted else self.listed():
            away = make("abs", substitute(node, case) - number(shown))
            self.require(away, ">" if refuted else "<=", half, "the printed number")
        if self.theorem["verdict"] == "HOLDS" and self.for_all:
            raise NotProved("a printed number is about listed cases only")

    def points(self, case: Case) -> list[fmpq]:
        """Return the points at which it is looked, which increase and lie in the range."""
        found = []
        for i, text in enumerate(self.theorem["at"]):
            node = self.point(text, f"theorem.at[{i}]")
            if node.op != "num" or (found and node.args[0] <= found[-1]):
                raise Wrong(f"theorem.at[{i}]", "expected rational numbers that increase")
            if self.over is not None:
                self.within(node, self.over, case, f"theorem.at[{i}]")
            found.append(node.args[0])
        if len(found) < 2:
            raise Wrong("theorem.at", "expected two or more points")
        return found

    def rival(self, field: str, case: Case, points: list[fmpq]) -> Node:
        """Return a point of a refutation, inside the range (or listed, if there is none)."""
        node = self.point(self.witness.get(field, ""), f"witness.{field}")
        if self.over is not None:
            self.within(node, self.over, case, f"witness.{field}")
        elif node.op != "num" or node.args[0] not in points:
            raise Wrong(f"witness.{field}", "is not among the points")
        return node

    def all_of(self, points: list[fmpq], case: Case) -> bool:
        """Whether the points are the whole range: integers between two ends."""
        v = self.over
        if v is None or not v.integer or v.low is None or v.high is None:
            return False
        if any(b - a != 1 for a, b in itertools.pairwise(points)):
            return False
        for point, end, relation in (
            (points[0] - 1, v.low, "<=" if v.low_open else "<"),
            (points[-1] + 1, v.high, ">=" if v.high_open else ">"),
        ):
            if not self.compared(number(point), relation, substitute(end, case)):
                return False
        return True

    def over_goal(
        self, left: Node, relation: str, right: Node, case: Case, *more: Variable
    ) -> Goal:
        if self.over is None:
            raise NotProved("its variable has no range")
        return self.goal(left, relation, right, case, (self._fixed(self.over, case), *more))

    def proved(self, goal: Goal, case: Case, spec: Any) -> None:
        names = {**{k: substitute(v, case) for k, v in self.let.items()}, **case}
        Prover(self.budget, names, self.lemma, self.expand).prove(goal, spec)

    def _cases(self) -> list[Case]:
        verdict = self.theorem["verdict"]
        if verdict == "REFUTED":
            return [self.case()]
        found = (
            list(self.cases(self.where)) if verdict == "HOLDS" and self.for_all else self.listed()
        )
        if not found:
            raise NotProved("no listed case satisfies the assumptions")
        return found

    def at(self, node: Node, point: Node, case: Case) -> Node:
        return substitute(node, {**case, self.own: point})

    def monotone(self) -> None:
        node = self.formula("expression")
        self._about(node)
        relation = "<" if self.theorem["direction"] == "increasing" else ">"
        refuted, holds = (self.theorem["verdict"] == v for v in ("REFUTED", "HOLDS"))
        for case in self._cases():
            if refuted:
                points = self.points(case)
                low, high = (self.rival(f, case, points) for f in ("low", "high"))
                self.require(low, "<", high, "the order of the two points")
                sides = self.at(node, low, case), self.at(node, high, case)
                self.require(sides[0], OPPOSITE[relation], sides[1], "the refutation")
                continue
            if {*case} >= {*self.for_all}:
                points = self.points(case)
                if not holds or self.all_of(points, case):
                    for a, b in itertools.pairwise(points):
                        sides = self.at(node, number(a), case), self.at(node, number(b), case)
                        self.require(sides[0], relation, sides[1], "the order of the values")
                    continue
            here = variable(self.own)
            if self.over is None:
                raise NotProved("its variable has no range")
            if self.over.integer:
                later = here + number(1)
                own = self._fixed(self.over, case)
                own = replace(own, high=None if own.high is None else own.high - number(1))
                next_one = substitute(node, {self.own: later})
                goal = self.goal(node, relation, next_one, case, (own,))
                self.proved(goal, case, self.witness.get("proof"))
                continue
            name = f"{self.own}_after"
            if name in self.names or name in self.let:
                raise Wrong("theorem.variable", f"{name} is another name of the theorem")
            after = replace(self._fixed(self.over, case), name=name, low=here, low_open=True)
            second = substitute(node, {self.own: variable(name)})
            spec = self.witness.get("proof")
            if isinstance(spec, Mapping) and spec.get("method") == "derivative":
                self.over_goal(node, relation, node, case)
            self.proved(self.over_goal(node, relation, second, case, after), case, spec)

    def minimiser(self) -> None:
        node, claimed = self.formula("expression"), self.formula("claimed")
        self._about(node, claimed)
        self.free_of_own("claimed", claimed)
        holds = self.theorem["verdict"] == "HOLDS"
        for case in self._cases():
            best = self.point_of(substitute(claimed, case))
            if not best.free and self.over is not None:
                self.within(best, self.over, case, "theorem.claimed")
            if self.theorem["verdict"] == "REFUTED":
                rival = self.rival("rival", case, self.points(case))
                sides = self.at(node, best, case), self.at(node, rival, case)
                self.require(sides[0], ">", sides[1], "the refutation")
                continue
            if {*case} >= {*self.for_all}:
                points = self.points(case)
                if not holds or self.all_of(points, case):
                    if best.op != "num" or best.args[0] not in points:
                        raise Wrong("theorem.claimed", "is not among the points")
                    for point in points:
                        sides = self.at(node, best, case), self.at(node, number(point), case)
                        self.require(sides[0], "<=", sides[1], "that no point has a smaller value")
                    continue
            if best.free:
                raise NotProved("the claimed point is no number")
            goal = self.over_goal(substitute(node, {self.own: best}), "<=", node, case)
            self.proved(goal, case, self.witness.get("proof"))

    def point_of(self, node: Node) -> Node:
        return node if node.free else self.point(repr(node), "theorem.claimed")

    def limit(self) -> None:
        node, claimed = self.formula("expression"), self.formula("limit")
        rate = self.formula("rate") if self.theorem["rate"] else None
        self._about(node, claimed, *([] if rate is None else [rate]))
        self.free_of_own("limit", claimed)
        verdict, spec = self.theorem["verdict"], self.witness.get("proof")
        for case in self._cases():
            away = make("abs", node - claimed)
            if verdict == "SUPPORTED":
                if rate is None:
                    raise NotProved("points alone say nothing about a limit")
                for point in self.points(case):
                    sides = self.at(away, number(point), case), self.at(rate, number(point), case)
                    self.require(*_in_order(sides, "<="), "the rate")
                continue
            if verdict == "REFUTED":
                other = parse(self.witness.get("limit", ""), "witness.limit", self.let)
                self.free_of_own("limit", other)
                fixed = substitute(claimed, case), substitute(other, case)
                self.require(*_in_order(fixed, "!="), "that the limits differ")
                self.tends(node, other, case, spec, None)
                continue
            self.tends(node, claimed, case, spec, rate)

    def tends(self, node: Node, claimed: Node, case: Case, spec: Any, rate: Node | None) -> None:
        """Prove that a formula tends to a number as its variable grows, and the stated rate."""
        if self.over is None or self.over.high is not None:
            raise NotProved("the kernel proves limits at infinity only")
        spec = spec if isinstance(spec, Mapping) else {}
        goal = self.over_goal(node, "==", claimed, case)
        names = {**{k: substitute(v, case) for k, v in self.let.items()}, **case}
        prover = Prover(self.budget, names, self.lemma, self.expand)
        facts = Facts(goal, self.budget)
        facts.defined(goal.left, goal.right)
        form = prover.read(spec["form"]) if "form" in spec else goal.left
        if form is not goal.left:
            prover.prove(goal.on(goal.left, "==", form), {"method": "identity"})
        if spec.get("method") == "rate":
            if rate is None:
                raise Wrong("theorem.rate", "is missing")
            form = substitute(rate, case)
        found, far = limit(form, self.own, facts)
        if far:
            raise NotProved("it tends to infinity")
        end = ZERO if spec.get("method") == "rate" else goal.right
        rest = tuple(v for v in goal.variables if v.name != self.own)
        prover.prove(Goal(found, "==", end, rest, goal.assumptions), None)
        if rate is not None:
            bound = substitute(rate, case)
            gap = goal.left - goal.right
            prover.prove(goal.on(gap, "<=", bound), spec.get("above"))
            prover.prove(goal.on(gap, ">=", ZERO - bound), spec.get("below"))


def _in_order(sides: tuple[Node, Node], relation: str) -> tuple[Node, str, Node]:
    return sides[0], relation, sides[1]
