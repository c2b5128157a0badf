"""Proofs over ranges, from the data of a witness, by the methods that `docs/proofs.md` lists.

The data is not trusted: pieces always cover the range, signs of factors are proved, and identities
are expanded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from flint import arb

from . import numbers
from .boxes import Box, Facts, Goal, Span, rebuilt
from .expressions import (
    ARITHMETIC,
    FOLDS,
    ONE,
    ZERO,
    Node,
    comparison,
    make,
    number,
    parse,
    show,
    substitute,
    value,
    variable,
)
from .numbers import Budget, NotProved, Number, Wrong, compare, decide

DEEPEST = 25
"""Limit on the nesting of proofs."""


class Prover:
    """Proves goals from proof data; `names` are replaced with their formulas when it is parsed."""

    def __init__(
        self,
        budget: Budget,
        names: Mapping[str, Node],
        rewrite: Callable[[Node], Node] = lambda n: n,
    ) -> None:
        self.budget, self.names, self.rewrite, self.depth = budget, dict(names), rewrite, 0
        self.methods: dict[str, Callable[[Goal, Any], None]] = {
            "identity": self.by_identity,
            "positive": self.by_positive,
            "sweep": self.by_sweep,
            "cases": self.by_cases,
            "split": self.by_split,
            "form": lambda goal, spec: self.prove(goal, spec.get("proof")),
            "both": self.by_both,
            "each": self.by_each,
            "combine": self.by_combine,
            "induction": self.by_induction,
            "derivative": self.by_derivative,
        }

    def read(self, goal: Goal, text: object) -> Node:
        """Parse a formula of a proof."""
        return self._about(goal, parse(text, "witness.proof", self.names))

    def _about(self, goal: Goal, node: Node) -> Node:
        if strange := node.free - {v.name for v in goal.variables}:
            raise NotProved(f"its proof uses {min(strange)[:40]}, which the goal does not")
        return self.rewrite(node)

    def compared(self, goal: Goal, text: object) -> Goal:
        """Parse a comparison of a proof."""
        left, relation, right = comparison(text, "witness.proof", self.names)
        return goal.on(self._about(goal, left), relation, self._about(goal, right))

    def prove(self, goal: Goal, spec: Any) -> None:
        """Prove a goal, or raise NotProved."""
        self.budget.check(cases=1)
        if spec is None:
            return self.attempt(goal)
        method = self.methods.get(str(spec.get("method"))) if isinstance(spec, Mapping) else None
        if method is None:
            raise NotProved("its proof has a method that the kernel does not know")
        self.depth += 1
        if self.depth > DEEPEST:
            raise NotProved("its proof is nested too deeply")
        rounded = {"<": "round_up", ">": "round_down"}.get(goal.relation[0])
        if goal.right.op == rounded and len(goal.right.args) == 1:
            goal = goal.on(goal.left, goal.relation, goal.right.args[0])
        facts = Facts(goal, self.budget)
        facts.defined(goal.left, goal.right)
        method(self._formed(goal, spec) if "form" in spec else goal, spec)
        self.depth -= 1
        return None

    def attempt(self, goal: Goal) -> None:
        """Prove a goal by the methods that are tried if no proof is given."""
        depth, reason = self.depth, ""
        for method in ("identity", "positive", "each", "sweep"):
            try:
                return self.prove(goal, {"method": method, "pieces": 300})
            except NotProved as error:
                self.depth, reason = depth, error.reason
        raise NotProved(f"{goal}: {reason}")

    def _formed(self, goal: Goal, spec: Any) -> Goal:
        """Return an equivalent comparison l ~ r: left − right = times·(l − r) with times > 0."""
        form, times = (
            self.compared(goal, spec.get("form", "")),
            self.read(goal, spec.get("times", "1")),
        )
        facts = Facts(goal, self.budget)
        facts.defined(times, form.left, form.right)
        if form.relation != goal.relation:
            form = goal.on(
                form.right,
                {">": "<", "<": ">"}.get(form.relation[0], "") + form.relation[1:],
                form.left,
            )
        if form.relation != goal.relation or not facts.positive(times):
            raise NotProved(
                "the form is not the same comparison, or its factor is not known to be positive"
            )
        self._vanishes(facts, goal.gap - times * form.gap)
        return form

    # --- by expansion and signs
    def _vanishes(self, facts: Facts, node: Node) -> None:
        for algebra in facts.algebras:
            try:
                if algebra.vanishes(algebra.normal(node)):
                    return
            except NotProved:
                if algebra.closed:
                    raise
        raise NotProved(f"{show(node)[:200]} is not known to be 0")

    def by_identity(self, goal: Goal, spec: Any) -> None:
        """Prove that both sides are the same quotient of polynomials."""
        del spec
        if goal.strict:
            raise NotProved("an identity does not prove a strict inequality")
        self._vanishes(Facts(goal, self.budget), goal.gap)

    def by_positive(self, goal: Goal, spec: Any) -> None:
        """Prove an inequality by the sign of left − right."""
        del spec
        if not goal.agrees(Facts(goal, self.budget).sign(goal.gap)):
            raise NotProved(f"the sign of the difference was not found: {goal}")

    def by_cases(self, goal: Goal, spec: Any) -> None:
        """Prove a goal by checking every value of its integer variables."""
        if not goal.variables:
            excluded = any(decided(one, self.budget) is False for one in goal.given)
            if not excluded and not decided(goal, self.budget):
                raise NotProved(f"{goal} is false or not decided")
            return
        v = goal.variables[0]
        if not v.integer or v.low is None or v.high is None or v.low.free or v.high.free:
            raise NotProved(f"the range of {v.name} is not a finite set of integers")
        low, high = value(v.low, self.budget), value(v.high, self.budget)
        for i in range(-numbers.whole(-low), numbers.whole(high) + 1):
            out = (v.low_open and compare(low, "==", i)) or (v.high_open and compare(high, "==", i))
            if not out:
                self.budget.check(cases=1)
                self.by_cases(goal.fix({v.name: number(i)}), spec)

    # --- by boxes
    def by_sweep(self, goal: Goal, spec: Any) -> None:
        """Bisect the domain until intervals decide the comparison on each piece."""
        facts = Facts(goal, self.budget)
        if goal.agrees(facts.sign(goal.gap)):
            return
        given = str(spec.get("pieces", 4000))
        most = int(given) if given.isdecimal() and len(given) < 6 else 0
        if not 0 < most <= 20_000:
            raise Wrong("witness.proof.pieces", "expected from 1 to 20000")
        stack = [dict(facts.ranges)]
        with numbers.precision(160):
            for _ in range(most):
                if not stack:
                    return
                ranges = stack.pop()
                if not self._decided_on(goal, ranges):
                    stack += _halves(goal, ranges)
        if stack:
            raise NotProved(f"{most} pieces do not decide {goal}")

    def _decided_on(self, goal: Goal, ranges: Mapping[str, Span]) -> bool:
        """Whether intervals decide the comparison on a piece."""
        box = Box(ranges, self.budget)
        try:
            (a, b), (c, d), gap = box(goal.left), box(goal.right), box(goal.gap)
        except NotProved:
            return False
        least = (a - d).max(gap[0]) if goal.side > 0 else (c - b).max(-gap[1])
        return bool(least > 0 or (not goal.strict and least >= 0))

    def by_split(self, goal: Goal, spec: Any) -> None:
        """Prove a goal on each piece of the range of a variable."""
        v = goal.variable(spec.get("variable"))
        points = [self.read(goal, p) for p in _list(spec, "at")]
        proofs = _proofs(spec, len(points) + 1)
        if any(p.op != "num" for p in points):
            raise Wrong("witness.proof.at", "expected rational points")
        rest = v  # the part above the points so far
        for point, proof in zip(points, proofs, strict=False):
            cut = number(point.args[0].floor()) if v.integer else point
            for low, high in ((rest.low, cut), (cut, v.high)):
                if low and high:
                    self.attempt(goal.on(low, "<=", high))
            self.prove(goal.over(replace(rest, high=cut, high_open=False)), proof)
            rest = replace(rest, low=cut + ONE if v.integer else cut, low_open=not v.integer)
        self.prove(goal.over(rest), proofs[-1])

    # --- from other proofs
    def by_both(self, goal: Goal, spec: Any) -> None:
        """Prove an equality by two inequalities."""
        if goal.relation != "==":
            raise NotProved("only an equality is proved by two inequalities")
        self.prove(replace(goal, relation="<="), spec.get("below"))
        self.prove(replace(goal, relation=">="), spec.get("above"))

    def by_each(self, goal: Goal, spec: Any) -> None:
        """Prove a comparison for each argument of a max or min, with |x| = max(x, −x)."""

        def plain(n: Node) -> Node:
            return make("max", n.args[0], ZERO - n.args[0]) if n.op == "abs" else n

        side, left, right = goal.side, plain(goal.left), plain(goal.right)
        above, below = ("max", "min") if side > 0 else ("min", "max")
        if right.op == above:
            parts = [goal.on(left, goal.relation, a) for a in right.args]
        elif left.op == below:
            parts = [goal.on(a, goal.relation, right) for a in left.args]
        else:
            raise NotProved("neither side is a max or min that can be split")
        for part, proof in zip(parts, _proofs(spec, len(parts)), strict=True):
            self.prove(part, proof)

    def by_combine(self, goal: Goal, spec: Any) -> None:
        """Prove left − right = Σ times·(l − r) + rest, with each term of the required sign."""
        facts = Facts(goal, self.budget)
        equal = goal.relation == "=="
        side, total, strict = 0 if equal else goal.side, ZERO, False
        for entry in _list(spec, "from"):
            if not isinstance(entry, Mapping):
                raise Wrong("witness.proof.from", "expected facts")
            times = self.read(goal, entry.get("times", "1"))
            fact = self._fact(goal, entry)
            facts.defined(times, fact.left, fact.right)
            if fact.relation == "==":
                total = total + times * fact.gap
                continue
            sign = facts.sign(times)
            if equal or sign is None or sign[0] < 0:
                raise NotProved(f"{show(times)[:80]} is not known to be nonnegative")
            gap = fact.gap if fact.side == side else fact.right - fact.left
            total = total + times * gap
            strict = strict or (fact.strict and sign == (1, True))
        needed = {1: ">", -1: "<", 0: "=="}[side]
        needed += "" if equal or (goal.strict and not strict) else "="
        self.prove(goal.on(goal.gap - total, needed, ZERO), spec.get("rest"))

    def _fact(self, goal: Goal, entry: Any) -> Goal:
        """Return an assumption, or a comparison that is proved first."""
        if "assume" in entry:
            return goal.given[_place(entry["assume"], len(goal.given))]
        fact = self.compared(goal, entry.get("fact", ""))
        sides = fact.left, fact.right
        small, large = sides if fact.relation == "<=" else sides[::-1]
        among = (large.op == "max" and small in large.args) or (
            small.op == "min" and large in small.args
        )
        if fact.relation not in ("<=", ">=") or not among:
            self.prove(fact, entry.get("by"))
        return fact

    def by_induction(self, goal: Goal, spec: Any) -> None:
        """Prove D(least n) ~ 0 and D(n + 1) − c·D(n) ~ 0, with D = left − right and c ≥ 0."""
        v, facts = goal.variable(spec.get("variable")), Facts(goal, self.budget)
        if not v.integer or v.low is None or v.low_open or v.high or goal.mentions(v.name):
            raise NotProved("induction is over the integers from a least one on")
        if goal.relation == "!=" or not facts.whole(v.low):
            raise NotProved("induction needs an integer least value, and does not prove !=")
        factor = self.read(goal, spec.get("factor", "1"))
        facts.defined(factor)
        sign = facts.sign(factor)
        if goal.relation != "==" and (sign is None or sign[0] < 0):
            raise NotProved("the factor of an induction is not known to be nonnegative")
        self.prove(goal.fix({v.name: v.low}), spec.get("start"))
        after = _opened(substitute(goal.gap, {v.name: variable(v.name) + ONE}), v.name, facts)
        self.prove(goal.on(after - factor * goal.gap, goal.relation, ZERO), spec.get("step"))

    def by_derivative(self, goal: Goal, spec: Any) -> None:
        """Prove that f = left − right has its sign at an end, and that f′ preserves it."""
        v, side, start = goal.variable(spec.get("variable")), goal.side, spec.get("from", "low")
        if goal.mentions(v.name):
            raise NotProved(f"other ends or assumptions depend on {v.name[:40]}")
        end, is_open = {"low": (v.low, v.low_open), "high": (v.high, v.high_open)}.get(
            str(start), (None, True)
        )
        whole = goal.over(replace(v, integer=False, low_open=v.low_open and start != "low",
                                  high_open=v.high_open and start != "high"))  # fmt: skip
        facts = Facts(whole, self.budget)
        facts.defined(goal.left, goal.right)
        if start == "infinity" and v.high is None:
            rest = tuple(w for w in goal.variables if w is not v)
            at_most = ">=" if side > 0 else "<="
            self.attempt(Goal(facts.far(goal.gap, v.name), at_most, ZERO, rest, goal.given))
        elif end is None:
            raise NotProved("the range has no such end")
        else:
            at = replace(whole, relation=goal.relation[0] + "=") if is_open else whole
            self.prove(at.fix({v.name: end}), spec.get("start"))
        rising = (side > 0) == (start == "low")
        wanted = (">" if rising else "<") + ("" if goal.strict and is_open else "=")
        inside = goal.over(replace(v, integer=False, low_open=True))
        self.prove(inside.on(derivative(goal.gap, v.name), wanted, ZERO), spec.get("slope"))


def decided(
    goal: Goal, budget: Budget, evaluate: Callable[[Node], Number] | None = None
) -> bool | None:
    """Decide a comparison of two numbers, in balls or by an identity; None if undecided."""
    at = evaluate or (lambda n: value(n, budget))
    found = decide(lambda: compare(at(goal.left), goal.relation, at(goal.right)), budget)
    if found is None and not goal.strict:
        try:
            facts = Facts(Goal(goal.left, "==", goal.right), budget)
            facts.defined(goal.left, goal.right)
            algebra = facts.algebras[0]
            found = algebra.vanishes(algebra.normal(goal.gap)) or None
        except NotProved:
            return None
    return found


def _opened(node: Node, name: str, facts: Facts) -> Node:
    """Split off the last term of each Σ or Π whose upper end depends on a variable."""

    def change(n: Node) -> Node:
        if n.op not in FOLDS or name not in n.args[2].free or not n.free <= {*facts.known}:
            return n
        index, low, high, term = n.args
        sign = facts.sign(high - low)
        if sign is None or sign[0] < 0:
            return n
        rest, last = make(n.op, index, low, high - ONE, term), substitute(term, {index: high})
        return make("+" if n.op == "sum" else "*", rest, last)

    return rebuilt(node, change)


def _halves(goal: Goal, box: dict[str, Span]) -> list[dict[str, Span]]:
    """Bisect a box along its longest side; an infinite side is cut further out each time."""

    def width(item: tuple[str, Span]) -> float:
        low, high = item[1]
        finite = low.is_finite() and high.is_finite()
        return float((high - low) / (1 + abs(low))) if finite else 1e3

    if not box:
        raise NotProved("the two sides are too close to decide")
    name, (low, high) = max(box.items(), key=width)
    middle = arb(((low + high) / 2).mid())
    if not middle.is_finite():
        middle = 2 * low + 1 if low > -1 else 2 * high - 1 if high < 1 else arb(0)
    after = middle = arb(middle.mid())
    if not low < middle < high:
        raise NotProved("a piece as small as a point is undecided")
    if goal.variable(name).integer:
        middle = middle.floor()
        after = middle + 1
    return [{**box, name: (low, middle)}, {**box, name: (after, high)}]


def _proofs(spec: Any, count: int) -> list[Any]:
    found = _list(spec, "proofs") if "proofs" in spec else [None] * count
    if len(found) != count:
        raise Wrong("witness.proof.proofs", f"expected {count} proofs")
    return found


def _place(given: Any, length: int) -> int:
    if not str(given).isdecimal() or int(str(given)[:6]) >= length:
        raise Wrong("witness.proof.from", f"expected a place below {length}")
    return int(str(given)[:6])


def _list(spec: Any, key: str) -> list[Any]:
    found = spec.get(key)
    if not isinstance(found, list) or len(found) > 1000:
        raise Wrong(f"witness.proof.{key}", "expected a list")
    return found


# --- derivatives --------------------------------------------------------------------------------
_SLOPES = {
    name: parse(text)
    for name, text in {
        "sqrt": "1/(2*sqrt(x))",
        "exp": "exp(x)",
        "expm1": "exp(x)",
        "log": "1/x",
        "log1p": "1/(1 + x)",
        "log2": "1/(x*log(2))",
        "sin": "cos(x)",
        "cos": "-sin(x)",
        "tanh": "1 - tanh(x)**2",
        "erf": "2*exp(-x*x)/sqrt(pi())",
        "erfc": "-2*exp(-x*x)/sqrt(pi())",
        "Phi": "exp(-x*x/2)/sqrt(2*pi())",
        "mills": "x*mills(x) - 1",
    }.items()
}


def derivative(node: Node, name: str) -> Node:
    """Return ∂/∂name of a formula, or raise NotProved if its derivative is unknown."""
    if name not in node.free:
        return ZERO
    op, args = node.op, node.args
    if op == "var":
        return ONE
    if op == "sum" and name not in args[1].free | args[2].free:
        return make("sum", *args[:3], derivative(args[3], name))
    if op in _SLOPES and len(args) == 1:
        return substitute(_SLOPES[op], {"x": args[0]}) * derivative(args[0], name)
    if op not in ARITHMETIC.values():
        raise NotProved(f"the kernel has no derivative of {op}")
    a, b = args
    da, db = derivative(a, name), derivative(b, name)
    found: Node
    if op in ("+", "-"):
        found = make(op, da, db)
    elif op == "*":
        found = a * db if da is ZERO else da * b if db is ZERO else da * b + a * db
    elif op == "/":
        found = (da if db is ZERO else da - node * db) / b
    elif db is ZERO:
        found = b * a ** (b - ONE) * da
    else:
        slope = db * make("log", a)
        found = node * (slope if da is ZERO else slope + b * da / a)
    return found
