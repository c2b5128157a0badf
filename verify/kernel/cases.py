"""The variables, names and cases of a theorem, and comparisons of numbers.

A theorem covers its listed cases (all combinations of `where`) and, in each, all values of its
`for_all` variables that satisfy `assume`. This module decides single cases, in which each variable
has a value; `statements` proves ranges.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from flint import fmpq

from .expressions import (
    ARITHMETIC,
    ARITY,
    FOLDS,
    Node,
    allowed,
    comparison,
    definitions,
    listed,
    number,
    parse,
    show,
    substitute,
    value,
    walk,
)
from .numbers import OPPOSITE, Budget, NotProved, Number, Proof, Wrong, compare, decide
from .theorem import Theorem, bracketed, described, formula, quoted, safe

Data = Mapping[str, Any]
Case = dict[str, Node]
QUICKLY = 256
"""Precision in bits for quantities of mechanisms; if it does not decide, formulas may."""
MOST_VALUES = 12  # listed values that are printed
SEES = "depends on the variable that it bounds"
ENDS = {"low": ">=", "above": ">", "high": "<=", "below": "<"}


@dataclass(frozen=True)
class Variable:
    """A real or integer variable; a missing end means unbounded on that side."""

    name: str
    low: Node | None = None
    low_open: bool = False
    high: Node | None = None
    high_open: bool = False
    integer: bool = False

    @property
    def ends(self) -> frozenset[str]:
        """Names of the variables in the ends."""
        return frozenset().union(*(e.free for e in (self.low, self.high) if e is not None))

    def put(self, values: Mapping[str, Node]) -> Variable:
        """Return the variable with values substituted in its ends."""
        low, high = (None if e is None else substitute(e, values) for e in (self.low, self.high))
        return replace(self, low=low, high=high)


@dataclass(frozen=True)
class Comparison:
    """A comparison of two formulas."""

    left: Node
    relation: str
    right: Node

    @property
    def free(self) -> frozenset[str]:
        """The free variables of both sides."""
        return self.left.free | self.right.free

    @property
    def strict(self) -> bool:
        """Whether equality makes the comparison false."""
        return self.relation in ("<", ">", "!=")

    def decided(self, at: Callable[[Node], Number]) -> bool | None:
        """Compare the values of both sides; None if the balls do not decide."""
        return compare(at(self.left), self.relation, at(self.right))

    def fix(self, values: Mapping[str, Node]) -> Comparison:
        """Substitute values for variables."""
        return Comparison(
            substitute(self.left, values), self.relation, substitute(self.right, values)
        )

    def __str__(self) -> str:
        return f"{show(self.left)[:100]} {self.relation} {show(self.right)[:100]}"


class Statement:
    """A parsed theorem: its variables, names, domains, assumptions and cases."""

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
        self.domains: dict[str, Variable] = {}
        while waiting := [n for n in self.for_all if n not in self.domains]:
            for name in waiting:  # in an order in which ends use earlier variables only
                found = self.domain(name, self.for_all[name], f"theorem.for_all.{name}")
                if found.ends <= {*self.where, *self.domains}:
                    self.domains[name] = found
                    break
            else:
                raise Wrong(f"theorem.for_all.{waiting[0]}", SEES)
        self.assumed = [self.fact(text, "assume") for text in theorem["assume"]]
        self.over: Variable | None = None
        if self.own and theorem.get("over") is not None:
            self.over = self.domain(self.own, theorem["over"], "theorem.over")
            if not self.over.ends <= {*self.names} - {self.own}:
                raise Wrong("theorem.over", SEES)

    def domain(self, name: str, ends: Data, field: str) -> Variable:
        """Return a variable with its ends; a lower end "-inf" or an upper end "inf" is no end."""
        found: dict[str, Any] = {}
        for key, relation in ENDS.items():
            side = "low" if ">" in relation else "high"
            if ends.get(key) is not None:
                if side in found:
                    raise Wrong(f"{field}.{key}", "is a second end on the same side")
                far = str(ends[key]).strip() == ("-inf" if side == "low" else "inf")
                found[side] = None if far else parse(ends[key], f"{field}.{key}", self.let)
                found[f"{side}_open"] = "=" not in relation
        if not found and not ends.get("grid"):
            raise Wrong(field, "has no ends")
        low, high = found.get("low"), found.get("high")
        if low and high and not low.free | high.free:
            strict = found["low_open"] or found["high_open"]
            self.require(Comparison(low, "<" if strict else "<=", high), field, "is empty")
        return Variable(name, integer=ends["integer"], **found)

    def about(self, field: str, *nodes: Node) -> None:
        """Require that formulas use variables of the theorem, and its own one where allowed."""
        for strange in sorted(frozenset().union(*(n.free for n in nodes)) - {*self.names}):
            raise Wrong(
                f"theorem.{field}", f"is about {strange[:60]!a}, which is no variable of it"
            )
        if field not in ("expression", "rate") and any(self.own in n.free for n in nodes):
            raise Wrong(f"theorem.{field}", SEES)

    def formula(self, field: str, text: Any = None) -> Node:
        """Parse a field of the theorem, or `text` in its place."""
        given = self.theorem[field] if text is None else text
        found = parse(given, f"theorem.{field}", self.let)
        self.about(field, found)
        return found

    def fact(self, text: Any, field: str) -> Comparison:
        """Parse a comparison of the theorem."""
        found = Comparison(*comparison(text, f"theorem.{field}", self.let))
        self.about(field, found.left, found.right)
        return found

    # --- cases
    def entry(self, name: str, text: Any) -> Node:
        """Parse a listed value: a formula without variables, or a mechanism."""
        found = parse(text, f"theorem.where.{name}")
        if found.free:
            raise Wrong(f"theorem.where.{name}", f"{str(text)[:60]!a} is no number")
        return found

    def cases(self, names: Mapping[str, Any]) -> Iterator[Case]:
        """Yield the combinations of listed values that satisfy the assumptions."""
        lists = [[self.entry(n, v) for v in values] for n, values in names.items()]
        empty = True
        for combination in itertools.product(*lists):
            self.budget.check(cases=1)
            case = dict(zip(names, combination, strict=True))
            if self.satisfies(case):
                empty = False
                yield case
        if empty:
            raise NotProved("no listed case satisfies the assumptions")

    def satisfies(self, case: Case) -> bool:
        """Whether a case satisfies the assumptions on its variables; raise if undecided."""
        for one in self.assumed:
            if one.free <= {*case}:
                found = self.compared(one.fix(case))
                if found is None:
                    raise NotProved("an assumption is too close to decide")
                if not found:
                    return False
        return True

    def listed(self) -> Iterator[Case]:
        """Yield every listed case, with the grid points of the domains."""
        grids = {name: ends["grid"] for name, ends in self.for_all.items()}
        for case in self.cases({**self.where, **grids}):
            for name, domain in self.domains.items():
                self.within(case[name], domain, case, f"theorem.for_all.{name}.grid")
            yield case

    def within(self, point: Node, domain: Variable, case: Case, field: str) -> None:
        """Require that a point lies in a range."""
        if domain.integer and not (point.op == "num" and point.args[0].q == 1):
            raise Wrong(field, f"{point!r:.60} is no integer, and the range has only these")
        ends = (domain.low, domain.low_open, ">"), (domain.high, domain.high_open, "<")
        for end, is_open, sign in ends:
            if end is not None:
                inside = Comparison(point, sign if is_open else sign + "=", substitute(end, case))
                self.require(inside, field, f"{point!r:.60} lies outside the range")

    def case(self) -> Case:
        """Return the counterexample of the witness, checked to lie in the theorem's domain."""
        given = self.witness.get("case", {})
        if not isinstance(given, Mapping) or {*given} != {*self.where, *self.for_all}:
            raise Wrong("witness.case", "expected a value of each variable of the theorem")
        case = {name: self.entry(name, given[name]) for name in self.where}
        for name in self.for_all:
            case[name] = self.point(given[name], f"witness.case.{name}")
        for name, values in listed(self.theorem).items():
            if not any(self.same(case[name], self.entry(name, v)) for v in values):
                raise Wrong(f"witness.case.{name}", "is not among the listed values")
        for name, domain in self.domains.items():
            self.within(case[name], domain, case, f"witness.case.{name}")
        if not self.satisfies(case):
            raise Wrong("witness.case", "does not satisfy the assumptions")
        return case

    def same(self, a: Node, b: Node) -> bool:
        """Whether two listed values are equal."""
        if a is b or "text" in (a.op, b.op):
            return a is b
        try:
            return self.compared(Comparison(a, "==", b)) is True
        except (NotProved, Wrong):
            return False

    def point(self, text: Any, field: str) -> Node:
        """Parse a number, made exact if it is rational by arithmetic."""
        found = parse(text, field)
        if found.free:
            raise Wrong(field, "expected a number")
        try:
            exact = value(found, self.budget)
        except NotProved:
            return found
        return number(exact) if isinstance(exact, fmpq) else found

    # --- comparisons
    def value(self, node: Node) -> Number:
        """Return the value of a formula without variables, and record its lemmas."""
        return value(node, self.budget, self.theorem["adjacency"], self.proof.lemmas)

    def number(self, text: object, case: Case) -> Number:
        """Return the value of a formula of the theorem or the witness at a case."""
        node = text if isinstance(text, Node) else parse(text, "theorem", self.let)
        return self.value(substitute(node, case))

    def compared(self, one: Comparison) -> bool | None:
        """Decide a comparison of two numbers: in balls, else by formulas and identities."""
        sees = (*ARITHMETIC.values(), *ARITY, *FOLDS, "num")
        plain = all(n.op in sees for n in walk(one.left, one.right))
        budget = self.budget if plain else replace(self.budget, bits=QUICKLY)
        with suppress(*(() if plain else (NotProved,))):
            found = decide(lambda: one.decided(self.value), budget)
            if found is not None or (plain and one.strict):
                return found
        from .statements import decided_by_formulas

        return decided_by_formulas(self, one)

    def require(
        self, one: Comparison, field: str = "theorem", why: str = "is false at a case"
    ) -> None:
        """Require a comparison of two numbers; raise Wrong if it is false."""
        found = self.compared(one)
        if found is None:
            raise NotProved(f"{one} is too close to decide")
        if not found:
            raise Wrong(field, why)

    def compare(self, fact: Comparison) -> None:
        """Prove a comparison in every case, or its opposite in the case of the witness."""
        if self.theorem["verdict"] == "REFUTED":
            self.require(opposite(fact).fix(self.case()))
        elif self.theorem["verdict"] == "HOLDS" and self.for_all:
            self.over_ranges(fact)
        else:
            for case in self.listed():
                self.require(fact.fix(case))

    def over_ranges(self, fact: Comparison) -> None:
        """Prove a comparison for every listed case, over the domains."""
        raise NotProved(f"{fact} over ranges")


def opposite(fact: Comparison) -> Comparison:
    """Return the negation of a comparison."""
    return replace(fact, relation=OPPOSITE[fact.relation])


def reading(theorem: Data, witness: Data, budget: Budget) -> Statement:
    """Parse a theorem; load `statements` if it needs a proof over a range."""
    if theorem["for_all"] and theorem["verdict"] == "HOLDS":
        from .statements import Ranges

        return Ranges(theorem, witness, budget, Proof())
    return Statement(theorem, witness, budget, Proof())


def prove(theorem: Data, witness: Data, budget: Budget) -> Proof:
    """Prove or refute a comparison; raise NotProved or Wrong if that fails."""
    statement = reading(theorem, witness, budget)
    statement.compare(statement.fact(theorem["claim"], "claim"))
    return statement.proof


# --- claims in words ---------------------------------------------------------------------
_CLAIMED = {
    "approximate-dp": "({epsilon}, {delta})-DP",
    "pure-dp": "({epsilon}, 0)-DP",
    "gaussian-dp": "{mu}-GDP",
    "renyi-dp": "of Renyi divergence at most {epsilon} at order {order}",
    "zcdp": "{rho}-zCDP",
    "relation": "{claim}",
    "limit": "{expression} tends to {limit}",
}


def in_words(theorem: Data, witness: Data, _: Proof) -> Theorem:
    """Return a claim in the kernel's words."""
    mechanism = formula(theorem["mechanism"]) if "mechanism" in theorem else ""
    verdict = str(theorem["verdict"])
    if verdict == "REFUTED" and (case := witness.get("case")):
        verdict += " at " + ", ".join(f"{safe(k)} = {formula(v)}" for k, v in case.items())
    if verdict == "SUPPORTED":
        places = "; ".join(_listed(name, d["grid"]) for name, d in theorem["for_all"].items())
        listed = f" ({places})" if places else ""
        verdict += f" in the listed cases{listed}; nothing is proved beyond"
    claimed = _assertion(theorem) + _scope(theorem)
    return Theorem(mechanism, theorem["adjacency"] or "", claimed, verdict)


def _assertion(theorem: Data) -> str:
    if theorem["kind"] == "optimality":
        return _optimality(theorem)
    words = {name: formula(text) for name, text in theorem.items() if isinstance(text, str)}
    words |= {name: bracketed(theorem[name]) for name in ("mu", "rho") if name in theorem}
    text = _CLAIMED[theorem["kind"]].format_map(words)
    if theorem["kind"] != "limit":
        return text
    name, over = words["variable"], theorem["over"]
    end = (over or {}).get("high") or (over or {}).get("below") or "infinity"
    rate = f", off by at most {words['rate']}" if theorem["rate"] else ""
    rate += f" over {_domain(name, over)}" if rate and over else ""
    return f"{text} as {name} tends to {formula(end)}{rate}"


def _optimality(theorem: Data) -> str:
    """Return the text of an optimality claim, with the family described by `among`."""
    below, slack = formula(theorem["value"]), formula(theorem["tolerance"])
    if slack != "0":
        below = f"({below})/(1 + {slack})"
    return f"no {described(theorem['among'])} is below {below}"


def _scope(theorem: Data) -> str:
    """Return the text of the domains, cases, assumptions and names."""
    parts = [f"for every {_domain(name, domain)}" for name, domain in theorem["for_all"].items()]
    parts += [f"in the cases {_listed(name, values)}" for name, values in theorem["where"].items()]
    parts += [f"if {formula(text)}" for text in theorem["assume"]]
    parts += [f"where {safe(name)} = {formula(text)}" for name, text in theorem["let"].items()]
    return "".join(f", {part}" for part in parts)


def _domain(name: str, domain: Data) -> str:
    texts = [f"{sign} {formula(domain[end])}" for end, sign in ENDS.items() if domain[end]]
    whole = " (integer)" if domain["integer"] else ""
    if not texts and not whole:
        return f"{safe(name)} in a domain that is given in words: {quoted(domain['statement'])}"
    return f"{safe(name)} {' and '.join(texts)}{whole}"


def _listed(name: str, values: Sequence[Any]) -> str:
    shown = [formula(value) for value in values[:MOST_VALUES]]
    if len(values) == 1:
        return f"{safe(name)} = {shown[0]}"
    more = f", ... ({len(values)} values)" if len(values) > MOST_VALUES else ""
    return f"{safe(name)} in {{{', '.join(shown)}{more}}}"
