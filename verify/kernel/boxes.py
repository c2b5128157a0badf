"""Statements over ranges: a comparison over a domain, and what proves it.

A domain is variables between ends that use earlier variables only, with assumptions. A proof is
data: a method and what it wants, as `docs/proofs.md` lists them. Nothing a proof says is believed:
a cut covers the range whatever its points are, a factor's sign is shown, an identity is expanded.

Every proof begins with: both sides are defined over the whole domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from flint import arb, fmpq

from . import numbers
from .algebra import Algebra
from .expressions import (
    FOLDS,
    FUNCTIONS,
    ONE,
    QUESTIONS,
    ZERO,
    Node,
    comparison,
    derivative,
    make,
    number,
    parse,
    show,
    substitute,
    value,
    variable,
    walk,
)  # fmt: skip
from .notation import signatures
from .numbers import Budget, NotProved, Wrong, ball, compare, decide

Sign = tuple[int, bool] | None
Box = dict[str, tuple[arb, arb]]
INFINITY = arb("inf")
DEEPEST = 25


@dataclass(frozen=True)
class Variable:
    """A real or integer variable between two ends; without one it is unbounded."""

    name: str
    low: Node | None = None
    low_open: bool = False
    high: Node | None = None
    high_open: bool = False
    integer: bool = False


@dataclass(frozen=True)
class Goal:
    """A comparison to be proved for all values of the variables that satisfy the assumptions."""

    left: Node
    relation: str
    right: Node
    variables: tuple[Variable, ...] = ()
    assumptions: tuple[tuple[Node, str, Node], ...] = ()

    def variable(self, name: str) -> Variable:
        """Return a variable of the domain."""
        for v in self.variables:
            if v.name == name:
                return v
        raise NotProved(f"{name[:60]} is no variable of the goal")

    def put(self, changed: Variable) -> Goal:
        """Return the goal with a variable changed."""
        kept = tuple(changed if v.name == changed.name else v for v in self.variables)
        return replace(self, variables=kept)

    def on(self, left: Node, relation: str, right: Node) -> Goal:
        """Return another comparison over the same domain."""
        return replace(self, left=left, relation=relation, right=right)

    def fix(self, values: Mapping[str, Node]) -> Goal:
        """Put values (shown to lie in the domain) in the place of variables."""

        def put(n: Node | None) -> Any:
            return None if n is None else substitute(n, values)

        kept = tuple(
            replace(v, low=put(v.low), high=put(v.high))
            for v in self.variables
            if v.name not in values
        )
        given = tuple((put(a), r, put(b)) for a, r, b in self.assumptions)
        return Goal(put(self.left), self.relation, put(self.right), kept, given)

    def mentions(self, name: str) -> bool:
        """Whether an end of another variable or an assumption uses a variable."""
        ends = [e for v in self.variables for e in (v.low, v.high) if e is not None]
        return any(
            name in n.free for n in [*ends, *(s for a, _, b in self.assumptions for s in (a, b))]
        )


# --- intervals ----------------------------------------------------------------------------------
_RISING = {"exp": (0, INFINITY), "expm1": (-1, INFINITY), "sqrt": (None, INFINITY)}
_RISING |= {"log": (None, INFINITY), "log1p": (None, INFINITY), "log2": (None, INFINITY)}
_RISING |= {"tanh": (-1, 1), "erf": (-1, 1), "Phi": (0, 1)}
_FALLING = {"erfc": (2, 0), "mills": (INFINITY, 0)}
"""Monotone functions with their limits at −∞ and ∞."""


def bounds(
    node: Node, box: Box, budget: Budget, memo: dict[Node, tuple[arb, arb]]
) -> tuple[arb, arb]:
    """Return ends between which a formula lies over a box, wherever it is defined there."""
    if node not in memo:
        budget.check()
        low, high = _bounds(node, box, budget, memo)
        low = -INFINITY if low.is_nan() else arb(low.lower())
        memo[node] = low, INFINITY if high.is_nan() else arb(high.upper())
    return memo[node]


def _bounds(node: Node, box: Box, budget: Budget, memo: Any) -> tuple[arb, arb]:
    op, args = node.op, node.args
    if op == "num":
        return ball(args[0]), ball(args[0])
    if op == "var":
        if args[0] not in box:
            raise NotProved(f"{args[0]} has no range")
        return box[args[0]]
    if op in FOLDS:
        return _fold_bounds(node, box, budget, memo)
    if not all(isinstance(a, Node) for a in args) or op in ("text", "list"):
        raise NotProved(f"the kernel has no bounds of {op} over a range")
    inside = [bounds(a, box, budget, memo) for a in args]
    if op == "+":
        return inside[0][0] + inside[1][0], inside[0][1] + inside[1][1]
    if op == "-":
        return inside[0][0] - inside[1][1], inside[0][1] - inside[1][0]
    if op == "*":
        return _square(inside[0]) if args[0] is args[1] else _product(*inside)
    if op == "/":
        return _product(inside[0], _inverse(inside[1]))
    if op == "**":
        return _power(inside[0], inside[1], args[1])
    if op in ("max", "min"):
        choose = arb.max if op == "max" else arb.min
        low, high = inside[0]
        for a, b in inside[1:]:
            low, high = choose(low, a), choose(high, b)
        return low, high
    if op == "abs":
        low, high = inside[0]
        return (
            (low, high) if low >= 0 else (-high, -low) if high <= 0 else (arb(0), (-low).max(high))
        )
    if op in _RISING and len(inside) == 1:
        return _end(op, inside[0][0], _RISING), _end(op, inside[0][1], _RISING)
    if op in _FALLING:
        return _end(op, inside[0][1], _FALLING), _end(op, inside[0][0], _FALLING)
    if op == "log" and len(inside) == 2:
        return bounds(make("log", args[0]) / make("log", args[1]), box, budget, memo)
    if op in FUNCTIONS and all(a.is_finite() and b.is_finite() for a, b in inside):
        if op in ("floor", "ceil", "binomial", "harmonic"):
            raise NotProved(f"the kernel has no bounds of {op} over a range")
        found = ball(FUNCTIONS[op](*(a.union(b) for a, b in inside)))
        return found, found
    raise NotProved(f"the kernel has no bounds of {op} over a range")


def _fold_bounds(node: Node, box: Box, budget: Budget, memo: Any) -> tuple[arb, arb]:
    index, low, high, term = node.args
    if low.free or high.free:
        raise NotProved("a sum in it has ends that vary")
    first, last = (numbers.whole(value(n, budget)) for n in (low, high))
    if last - first > 1000:
        raise NotProved("a sum over a range has more than 1000 terms")
    total = number(0) if node.op == "sum" else ONE
    for i in range(first, last + 1):
        total = make("+" if node.op == "sum" else "*", total, substitute(term, {index: number(i)}))
    return bounds(total, box, budget, memo)


def _end(op: str, x: arb, limits: Mapping[str, Any]) -> arb:
    if x.is_finite():
        if op in ("sqrt", "log", "log2") and x <= 0:
            return arb(0) if op == "sqrt" else -INFINITY
        if op == "log1p" and x <= -1:
            return -INFINITY
        if op == "mills" and x < -30:
            return INFINITY
        return ball(FUNCTIONS[op](x))
    found = limits[op][1 if x > 0 else 0]
    return arb("nan") if found is None else arb(found)


def _times(a: arb, b: arb) -> arb:
    return arb(0) if a.is_zero() or b.is_zero() else a * b


def _product(x: tuple[arb, arb], y: tuple[arb, arb]) -> tuple[arb, arb]:
    found = [_times(a, b) for a in x for b in y]
    low, high = found[0], found[0]
    for other in found[1:]:
        low, high = low.min(other), high.max(other)
    return low, high


def _square(x: tuple[arb, arb]) -> tuple[arb, arb]:
    low, high = x
    if low >= 0 or high <= 0:
        ends = low * low, high * high
        return ends if low >= 0 else ends[::-1]
    return arb(0), (low * low).max(high * high)


def _inverse(x: tuple[arb, arb]) -> tuple[arb, arb]:
    low, high = x
    if low >= 0:
        return 1 / high if high.is_finite() else arb(0), 1 / low if low > 0 else INFINITY
    if high <= 0:
        return 1 / high if high < 0 else -INFINITY, 1 / low if low.is_finite() else arb(0)
    raise NotProved("a divisor may be 0 in a piece")


def _power(x: tuple[arb, arb], y: tuple[arb, arb], power: Node) -> tuple[arb, arb]:
    n = power.args[0] if power.op == "num" else None
    if n is not None and n.q == 1 and abs(n) < 1000:
        k = int(n.p)
        if k < 0:
            return _inverse(_power(x, y, number(-k)))
        if k == 0:
            return arb(1), arb(1)
        low, high = x
        ends = _raised(low, k), _raised(high, k)
        if k % 2 or low >= 0:
            return ends
        return ends[::-1] if high <= 0 else (arb(0), ends[0].max(ends[1]))
    if not x[0] >= 0:
        raise NotProved("a power in a piece has a base that may be negative")
    log = _end("log", x[0], _RISING) if x[0] > 0 else -INFINITY, _end("log", x[1], _RISING)
    low, high = _product(log, y)
    return _end("exp", low.lower(), _RISING), _end("exp", high.upper(), _RISING)


def _raised(x: arb, k: int) -> arb:
    if x.is_finite():
        return x**k
    return INFINITY if x > 0 or k % 2 == 0 else -INFINITY


# --- signs --------------------------------------------------------------------------------------
class Facts:
    """What is known of formulas over the domain of a goal: signs and bounds."""

    def __init__(self, goal: Goal, budget: Budget) -> None:
        self.goal, self.budget = goal, budget
        self.known = {v.name: (i, v) for i, v in enumerate(goal.variables)}
        self._signs: dict[Node, Sign] = {}
        self._algebras: dict[bool, Algebra] = {}
        self.strictly = goal.relation in ("<", ">", "!=")
        self.box: Box = {}
        for v in goal.variables:
            ends = []
            for end, far in ((v.low, -INFINITY), (v.high, INFINITY)):
                try:
                    found = (far, far) if end is None else bounds(end, self.box, budget, {})
                except NotProved:
                    found = (far, far)
                ends.append(found)
            self.box[v.name] = arb(ends[0][0].lower()), arb(ends[1][1].upper())

    def algebra(self, *, closed: bool) -> Algebra:
        """Return formulas as ratios, sums in closed form or as atoms."""
        if closed not in self._algebras:
            self._algebras[closed] = Algebra(self, closed=closed)
        return self._algebras[closed]

    def order(self, name: str) -> int:
        """Return the place of a variable."""
        return self.known[name][0] if name in self.known else 10_000

    def ends(self, name: str) -> tuple[Node | None, bool, Node | None, bool] | None:
        """Return the ends of a variable, and whether they are excluded."""
        if name not in self.known:
            return None
        v = self.known[name][1]
        return v.low, v.low_open, v.high, v.high_open

    def least(self, node: Node) -> fmpq | None:
        """Return a rational lower bound over the domain, or None."""
        try:
            low = bounds(node, self.box, self.budget, {})[0]
        except NotProved:
            return None
        if not low.is_finite():
            return None
        man, exp = low.man_exp()
        return fmpq(man) * fmpq(2) ** int(exp) if exp >= 0 else fmpq(man) / fmpq(2) ** int(-exp)

    @contextmanager
    def binding(self, index: str, low: Node, high: Node) -> Iterator[None]:
        """Let a bound variable range over the integers between two ends, for a while."""
        before, signs, box = self.known, self._signs, self.box
        own = Variable(index, low, False, high, False, True)
        self._signs = {n: s for n, s in signs.items() if index not in n.free}
        self.known = {**before, index: (len(before), own)}
        try:
            ends = (bounds(n, box, self.budget, {}) for n in (low, high))
            (least, _), (_, most) = ends
            self.box = {**box, index: (least, most)}
            yield
        finally:
            self.known, self._signs, self.box = before, signs, box

    def around(self, node: Node) -> None:
        """Require that a formula is 0 at most where others are the limit of the rest."""
        sign = self.sign(node)
        if sign is not None and sign[1]:
            return
        names = [v for v in self.goal.variables if v.name in node.free]
        rigid = any(v.integer or self.goal.mentions(v.name) for v in names)
        thick = all(v.low is None or v.high is None or self._below(v) for v in names)
        if self.strictly or not names or rigid or not thick or len(names) < len(node.free):
            raise NotProved(f"{show(node)[:60]} may be 0, where a sum in it has another form")

    def _below(self, v: Variable) -> bool:
        assert v.low is not None and v.high is not None
        return self.sign(v.high - v.low) == (1, True)

    def sign(self, node: Node) -> Sign:
        """Return the sign of a formula over the domain."""
        if node not in self._signs:
            self._signs[node] = None  # while it is being looked for
            self.budget.check()
            self._signs[node] = self._sign(node)
        return self._signs[node]

    def _sign(self, node: Node) -> Sign:
        found = self._structural(node)
        if found is not None and found[1]:
            return found
        with numbers.precision(96):
            try:
                low, high = bounds(node, self.box, self.budget, {})
                if low > 0 or high < 0:
                    return (1 if low > 0 else -1), True
                if found is None and (low >= 0 or high <= 0):
                    found = (1 if low >= 0 else -1), False
            except NotProved:
                pass
        if node.op == "var" or not node.free:
            return found
        for closed in (False, True):
            try:
                algebra = self.algebra(closed=closed)
                other = algebra.sign(algebra.normal(node))
            except NotProved:
                continue
            if other is not None and (other[1] or found is None):
                return other
        return found

    def _structural(self, node: Node) -> Sign:
        op, args = node.op, node.args
        if op == "num":
            return (0, False) if not args[0] else (1 if args[0] > 0 else -1, True)
        if op == "var" and args[0] in self.known:
            v = self.known[args[0]][1]
            for end, own, side in ((v.low, v.low_open, 1), (v.high, v.high_open, -1)):
                found = None if end is None else self.sign(end)
                if found is not None and found[0] in (0, side):
                    return side, own or (found[1] and found[0] == side)
            return None
        if op in ("exp", "pi", "Phi", "erfc", "mills", "gamma"):
            return 1, True
        if op in ("*", "/"):
            if op == "*" and args[0] is args[1]:
                found = self.sign(args[0])
                return 1, found is not None and found[1]
            a, b = self.sign(args[0]), self.sign(args[1])
            return None if a is None or b is None else (a[0] * b[0], a[1] and b[1])
        if op in ("+", "-"):
            a, b = self.sign(args[0]), self.sign(args[1])
            if a is None or b is None:
                return None
            b = (b[0] if op == "+" else -b[0]), b[1]
            if a[0] * b[0] >= 0:
                return a[0] or b[0], a[1] or b[1]
            return None
        if op == "**":
            a = self.sign(args[0])
            if a is not None and a[0] > 0 and a[1]:
                return a
            n = args[1].args[0] if args[1].op == "num" else None
            if n is not None and n.q == 1:
                if int(n.p) % 2 == 0:
                    return 1, a is not None and a[1]
                return a
            return None if a is None or a[0] < 0 else (1, False)
        if op in ("sqrt", "abs"):
            a = self.sign(args[0])
            return 1, a is not None and a[1] and (op == "abs" or a[0] > 0)
        if op in ("max", "min"):
            signs = [self.sign(a) for a in args]
            side = 1 if op == "max" else -1
            own = [s for s in signs if s is not None and s[0] in (0, side)]
            if own:
                return side, any(s[1] for s in own)
            if all(s is not None for s in signs):
                return -side, all(s is not None and s[1] for s in signs)
            return None
        if op in FOLDS:
            index, low, high, term = args
            own_variable = Variable(index, low, False, high, False, True)
            inner = replace(self.goal, variables=(*self.goal.variables, own_variable))
            a = Facts(inner, self.budget).sign(term)
            if op == "product":
                return (1, a[1]) if a is not None and a[0] > 0 else None
            count = self.sign(high - low + ONE)
            return None if a is None else (a[0], a[1] and count is not None and count == (1, True))
        return None

    def defined(self, *nodes: Node) -> None:
        """Require that formulas are defined over the whole domain."""
        for n in walk(*nodes):
            if any(name.startswith("_") for name in n.free - {*self.known}):
                continue  # it is looked at with the sum that binds the variable
            if n.op in FOLDS:
                index, low, high, term = n.args
                if not (self.whole(low) and self.whole(high)):
                    raise NotProved("a sum in it has ends that may be no integers")
                own = Variable(index, low, False, high, False, True)
                inner = replace(self.goal, variables=(*self.goal.variables, own))
                Facts(inner, self.budget).defined(term)
            elif n.op not in ("num", "var"):
                self._defined(n)

    def whole(self, node: Node) -> bool:
        """Whether a formula is an integer over the domain."""
        if node.op in ("+", "-", "*", "max", "min"):
            return all(map(self.whole, node.args))
        if node.op == "var":
            return node.args[0] in self.known and self.known[node.args[0]][1].integer
        return node.op == "num" and node.args[0].q == 1

    def _defined(self, n: Node) -> None:
        op, args = n.op, n.args
        if op in QUESTIONS or op in signatures() or op not in FUNCTIONS:
            raise NotProved(f"the kernel proves nothing about {op} over a range")
        wanted: tuple[Node, bool] | None = None
        if op == "/":
            sign = self.sign(args[1])
            if sign is None or not sign[1]:
                raise NotProved(f"the divisor {show(args[1])[:80]} may be 0")
        elif op == "sqrt":
            wanted = args[0], False
        elif op in ("log", "log2"):
            wanted = args[0], True
            if len(args) == 2:
                self.defined(make("sqrt", args[1] - ONE), ONE / (args[1] - ONE))
        elif op == "log1p":
            wanted = args[0] + ONE, True
        elif op in ("gamma", "lgamma"):
            wanted = args[0], True
        elif op == "**":
            power = args[1].args[0] if args[1].op == "num" else None
            if power is not None and power.q == 1:
                wanted = None
                if power < 0:
                    self.defined(ONE / args[0])
            else:
                whole = self.whole(args[1])
                below = self.sign(args[1])
                plain = power is not None or (whole and below is not None and below[0] >= 0)
                wanted = args[0], not (plain and (power is None or power > 0))
        elif op in ("Phi_inverse", "floor", "ceil", "binomial", "harmonic", "gamma_upper"):
            if n.free:
                raise NotProved(f"the kernel proves nothing about {op} over a range")
        elif op in ("beta_lower", "lambert_w") and n.free:
            raise NotProved(f"the kernel proves nothing about {op} over a range")
        if wanted is not None:
            sign = self.sign(wanted[0])
            if sign is None or sign[0] < 0 or (wanted[1] and sign != (1, True)):
                raise NotProved(f"{op} of {show(wanted[0])[:80]} may be undefined")


# --- proofs -------------------------------------------------------------------------------------
class Prover:
    """Proofs of goals from their data. `claims` gives, by name, what a lemma states, proved."""

    def __init__(
        self,
        budget: Budget,
        names: Mapping[str, Node],
        claims: Callable[[str], list[Goal]],
        rewrite: Callable[[Node], Node] = lambda n: n,
    ) -> None:
        self.budget, self.names, self.claims, self.depth = budget, dict(names), claims, 0
        self.rewrite = rewrite

    def read(self, text: object) -> Node:
        """Read a formula of a proof."""
        return self.rewrite(parse(text, "witness.proof", self.names))

    def compared(self, text: object) -> tuple[Node, str, Node]:
        """Read a comparison of a proof."""
        left, relation, right = comparison(text, "witness.proof", self.names)
        return self.rewrite(left), relation, self.rewrite(right)

    def prove(self, goal: Goal, spec: Any) -> None:
        """Prove a goal, or raise NotProved."""
        self.budget.check(cases=1)
        if spec is None:
            return self.attempt(goal)
        method = spec.get("method") if isinstance(spec, Mapping) else None
        known = getattr(self, f"by_{method}", None) if isinstance(method, str) else None
        if known is None:
            raise Wrong("witness.proof", "has no method that the kernel knows")
        self.depth += 1
        if self.depth > DEEPEST:
            raise NotProved("its proof is nested too deeply")
        try:
            known(goal, spec)
        finally:
            self.depth -= 1

    def attempt(self, goal: Goal) -> None:
        """Prove a goal by what is tried without a proof."""
        for method in ("identity", "positive", "sweep"):
            try:
                return self.prove(goal, {"method": method, "pieces": 300})
            except NotProved as error:
                reason = error.reason
        raise NotProved(f"{_said(goal)}: {reason}")

    def by_identity(self, goal: Goal, spec: Any) -> None:
        """Prove that both sides are the same ratio."""
        if goal.relation not in ("==", "<=", ">="):
            raise NotProved("an identity proves no strict inequality")
        facts = Facts(goal, self.budget)
        facts.defined(goal.left, goal.right)
        if not self._vanishes(facts, goal.left - goal.right):
            raise NotProved("the two sides were not found to be identical")

    def _vanishes(self, facts: Facts, node: Node) -> bool:
        for closed in (False, True):
            try:
                algebra = facts.algebra(closed=closed)
                if algebra.vanishes(algebra.normal(node)):
                    return True
            except NotProved as error:
                if closed:
                    raise error
        return False

    def by_positive(self, goal: Goal, spec: Any) -> None:
        """Prove an inequality by the sign of the difference."""
        facts = Facts(goal, self.budget)
        facts.defined(goal.left, goal.right)
        sign = self._side(goal.relation)
        found = facts.sign(goal.left - goal.right)
        if found is None or found[0] == -sign or (facts.strictly and not (found[1] and found[0])):
            raise NotProved(f"no sign was found of {_said(goal)}")

    @staticmethod
    def _side(relation: str) -> int:
        if relation not in ("<", "<=", ">", ">="):
            raise NotProved(f"a sign proves no {relation}")
        return 1 if relation[0] == ">" else -1

    def by_cases(self, goal: Goal, spec: Any) -> None:
        """Prove a goal at each of finitely many integers."""
        if not goal.variables:
            for a, r, b in goal.assumptions:
                if self.decided(a, r, b) is False:
                    return
            if not self.decided(goal.left, goal.relation, goal.right):
                raise NotProved(f"{_said(goal)} is false or not decided")
            return
        v = goal.variables[0]
        if not v.integer or v.low is None or v.high is None or v.low.free or v.high.free:
            raise NotProved(f"{v.name} does not range over finitely many integers")
        low, high = value(v.low, self.budget), value(v.high, self.budget)
        first, last = -numbers.whole(-low), numbers.whole(high)
        first += v.low_open and compare(low, "==", first) is not False
        last -= v.high_open and compare(high, "==", last) is not False
        for i in range(first, last + 1):
            self.budget.check(cases=1)
            self.by_cases(goal.fix({v.name: number(i)}), spec)

    def decided(self, left: Node, relation: str, right: Node) -> bool | None:
        """Decide a comparison of two numbers; equality of irrational ones by an identity."""
        found = decide(
            lambda: compare(value(left, self.budget), relation, value(right, self.budget)),
            replace(self.budget, bits=1024),
        )
        if found is None and relation in ("==", "<=", ">="):
            try:
                self.by_identity(Goal(left, "==", right), {})
            except NotProved:
                return None
            return True
        return found

    # --- pieces
    def by_sweep(self, goal: Goal, spec: Any) -> None:
        """Cut the domain until intervals decide the comparison on each piece."""
        Facts(goal, self.budget).defined(goal.left, goal.right)
        if "form" in spec:
            goal = self._formed(goal, spec)
        facts = Facts(goal, self.budget)
        facts.defined(goal.left, goal.right)
        sign = facts.sign(goal.left - goal.right) if goal.relation not in ("==", "!=") else None
        if sign is not None and sign[0] == self._side(goal.relation):
            if sign[1] or not facts.strictly:
                return
        most = spec.get("pieces", 4000)
        if not isinstance(most, int) or not 0 < most <= 20_000:
            raise Wrong("witness.proof.pieces", "expected from 1 to 20000")
        self._side(goal.relation)
        slopes = {}
        for v in goal.variables:
            try:
                slopes[v.name] = derivative(goal.left - goal.right, v.name)
            except NotProved:
                continue
        stack, pieces = [facts.box], 0
        with numbers.precision(96):
            while stack:
                box = self._clipped(goal, stack.pop())
                pieces += 1
                if pieces > most:
                    raise NotProved(f"{most} pieces leave {_said(goal)} open")
                if box is None or self._decided_on(goal, box, slopes):
                    continue
                stack += self._halves(goal, box)

    def _formed(self, goal: Goal, spec: Any) -> Goal:
        """Return an equivalent comparison: left − right = times·(l − r) with times > 0."""
        left, relation, right = self.compared(spec.get("form", ""))
        times = self.read(spec.get("times", "1"))
        facts = Facts(goal, self.budget)
        facts.defined(times, left, right)
        turned = relation != goal.relation
        if turned and {relation, goal.relation} not in ({"<", ">"}, {"<=", ">="}):
            raise NotProved("the form of a proof has another relation")
        if facts.sign(times) != (1, True):
            raise NotProved(f"{show(times)[:80]} is not shown to be positive")
        inner = right - left if turned else left - right
        if not self._vanishes(facts, goal.left - goal.right - times * inner):
            raise NotProved("the form of a proof is not the same comparison")
        return goal.on(left, relation, right)

    def _clipped(self, goal: Goal, box: Box) -> Box | None:
        """Return the part of a box that may meet the domain; None if it does not."""
        own: Box = {}
        for v in goal.variables:
            low, high = box[v.name]
            try:
                low = low if v.low is None else low.max(bounds(v.low, own, self.budget, {})[0])
                high = high if v.high is None else high.min(bounds(v.high, own, self.budget, {})[1])
            except NotProved:
                pass
            if v.integer:
                low, high = arb(low.ceil().lower()), arb(high.floor().upper())
            if low > high:
                return None
            own[v.name] = arb(low.lower()), arb(high.upper())
        return own

    def _decided_on(self, goal: Goal, box: Box, slopes: Mapping[str, Node]) -> bool:
        strict, side = goal.relation in ("<", ">"), self._side(goal.relation)
        for _ in range(1 + len(slopes)):
            memo: dict[Node, tuple[arb, arb]] = {}
            try:
                low, high = bounds(goal.left, box, self.budget, memo)
                other = bounds(goal.right, box, self.budget, memo)
                gap = bounds(goal.left - goal.right, box, self.budget, memo)
                least = (low - other[1]).max(gap[0]) if side > 0 else (other[0] - high).max(-gap[1])
                if least > 0 or (not strict and least >= 0):
                    return True
            except NotProved:
                pass
            changed = False
            for name, slope in slopes.items():
                low, high = box[name]
                if not low < high:
                    continue
                try:
                    a, b = bounds(slope, box, self.budget, memo)
                except NotProved:
                    continue
                end = None if not (a >= 0 or b <= 0) else low if (a >= 0) == (side > 0) else high
                if end is not None and end.is_finite():
                    box = {**box, name: (end, end)}
                    changed = True
                    break
            if not changed:
                return False
        return False

    @staticmethod
    def _halves(goal: Goal, box: Box) -> list[Box]:
        def width(item: tuple[str, tuple[arb, arb]]) -> float:
            low, high = item[1]
            if not (low.is_finite() and high.is_finite()):
                return 1e6 if (low.is_finite() and low < 1 << 40) or high.is_finite() else 1e3
            return float((high - low) / (1 + abs(low)))

        if not box:
            raise NotProved("the two sides are too close to call")
        name, (low, high) = max(box.items(), key=width)
        if low.is_finite() and high.is_finite():
            middle = arb(((low + high) / 2).mid())
        elif low.is_finite():
            middle = arb((2 * abs(low) + 1).mid()) if low > -1 else arb(0)
        else:
            middle = arb((-2 * abs(high) - 1).mid()) if high.is_finite() and high < 1 else arb(0)
        if not low < high or not (low < middle < high):
            raise NotProved("a piece as small as a point stays open")
        if goal.variable(name).integer:
            middle = arb(middle.floor())
            return [{**box, name: (low, middle)}, {**box, name: (middle + 1, high)}]
        return [{**box, name: (low, middle)}, {**box, name: (middle, high)}]

    def by_split(self, goal: Goal, spec: Any) -> None:
        """Prove a goal on the pieces of a range."""
        v = goal.variable(str(spec.get("variable")))
        points = [self.read(p) for p in _list(spec, "at")]
        proofs = _list(spec, "proofs") if "proofs" in spec else [None] * (len(points) + 1)
        if len(proofs) != len(points) + 1 or any(p.op != "num" for p in points):
            raise Wrong("witness.proof.at", "expected rational points, and a proof for each piece")
        low, low_open = v.low, v.low_open
        for i, proof in enumerate(proofs):
            high, high_open = (v.high, v.high_open) if i == len(points) else (points[i], False)
            if v.integer and i < len(points):
                high = number(points[i].args[0].floor())
            piece = replace(v, low=low, low_open=low_open, high=high, high_open=high_open)
            if i < len(points) and v.high is not None and not self._before(high, v.high):
                raise NotProved("a point of a split is not shown to lie in the range")
            if i > 0 and v.low is not None and not self._before(v.low, low):
                raise NotProved("a point of a split is not shown to lie in the range")
            self.prove(goal.put(piece), proof)
            if i < len(points):
                low, low_open = (high + ONE, False) if v.integer else (high, True)

    def _before(self, a: Any, b: Any) -> bool:
        return not (a.free or b.free) and self.decided(a, "<=", b) is True

    # --- proofs from other proofs
    def by_form(self, goal: Goal, spec: Any) -> None:
        """Prove an equivalent comparison."""
        Facts(goal, self.budget).defined(goal.left, goal.right)
        self.prove(self._formed(goal, spec), spec.get("proof"))

    def by_both(self, goal: Goal, spec: Any) -> None:
        """Prove an equality by two inequalities."""
        if goal.relation != "==":
            raise NotProved("only an equality is proved by two inequalities")
        self.prove(replace(goal, relation="<="), spec.get("below"))
        self.prove(replace(goal, relation=">="), spec.get("above"))

    def by_each(self, goal: Goal, spec: Any) -> None:
        """Prove a comparison with each argument of a max or min."""
        left, right = goal.left, goal.right
        if (goal.relation in (">", ">=") and right.op == "max") or (
            goal.relation in ("<", "<=") and right.op == "min"
        ):
            parts = [goal.on(left, goal.relation, a) for a in right.args]
        elif (goal.relation in ("<", "<=") and left.op == "max") or (
            goal.relation in (">", ">=") and left.op == "min"
        ):
            parts = [goal.on(a, goal.relation, right) for a in left.args]
        else:
            raise NotProved("no side is a max or min of what is compared")
        proofs = _list(spec, "proofs") if "proofs" in spec else [None] * len(parts)
        if len(proofs) != len(parts):
            raise Wrong("witness.proof.proofs", f"expected {len(parts)} proofs")
        for part, proof in zip(parts, proofs, strict=True):
            self.prove(part, proof)

    def by_branch(self, goal: Goal, spec: Any) -> None:
        """Prove a goal on each branch of an abs, max or min."""
        of = self.read(spec.get("of"))
        if of.op not in ("abs", "max", "min") or not of.free <= {v.name for v in goal.variables}:
            raise NotProved("a branch is of an abs, max or min")
        options = [of.args[0], ZERO - of.args[0]] if of.op == "abs" else [*of.args]
        proofs = _list(spec, "proofs") if "proofs" in spec else [None] * len(options)
        if len(proofs) != len(options):
            raise Wrong("witness.proof.proofs", f"expected {len(options)} proofs")
        relation = "<=" if of.op == "min" else ">="
        for option, proof in zip(options, proofs, strict=True):
            given = tuple((option, relation, o) for o in options if o is not option)
            sides = (_replaced(n, of, option) for n in (goal.left, goal.right))
            left, right = sides
            inner = replace(goal, left=left, right=right, assumptions=(*goal.assumptions, *given))
            self.prove(inner, proof)

    def by_combine(self, goal: Goal, spec: Any) -> None:
        """Show left − right = Σ times·(l − r) + rest, each term with the sign that is wanted."""
        facts = Facts(goal, self.budget)
        facts.defined(goal.left, goal.right)
        equal = goal.relation == "=="
        side = 0 if equal else self._side(goal.relation)
        total, strict = ZERO, False
        for entry in _list(spec, "from"):
            if not isinstance(entry, Mapping):
                raise Wrong("witness.proof.from", "expected facts")
            times = self.read(entry.get("times", "1"))
            facts.defined(times)
            left, relation, right = self._fact(goal, entry)
            facts.defined(left, right)
            if relation == "==":
                total = total + times * (left - right)
                continue
            if equal:
                raise NotProved("an equality is combined from equalities")
            sign = facts.sign(times)
            if sign is None or sign[0] < 0:
                raise NotProved(f"{show(times)[:80]} is not shown to be non-negative")
            gap = left - right if self._side(relation) == side else right - left
            total = total + times * gap
            strict = strict or (relation in ("<", ">") and sign == (1, True))
        rest = goal.left - goal.right - total
        if "rest" not in spec:
            if not self._vanishes(facts, rest):
                sign = facts.sign(rest)
                if equal or sign is None or sign[0] != side:
                    raise NotProved("what is combined is not the difference of the two sides")
                strict = strict or sign[1]
            if facts.strictly and not strict:
                raise NotProved("nothing that is combined is strict")
            return
        relation = goal.relation if facts.strictly and not strict else (
            "==" if equal else ">=" if side > 0 else "<="
        )  # fmt: skip
        self.prove(goal.on(rest, relation, ZERO), spec["rest"])

    def _fact(self, goal: Goal, entry: Any) -> tuple[Node, str, Node]:
        if "assume" in entry:
            return goal.assumptions[_place(entry["assume"], len(goal.assumptions), "assume")]
        if "claim" in entry:
            return self._lemma(goal, entry)
        left, relation, right = self.compared(entry.get("fact", ""))
        if not (left.free | right.free) <= {v.name for v in goal.variables}:
            raise NotProved("a fact is about another variable")
        small, large = (left, right) if relation == "<=" else (right, left)
        if relation in ("<=", ">=") and (
            (large.op == "max" and small in large.args)
            or (small.op == "min" and large in small.args)
        ):
            return left, relation, right
        self.prove(goal.on(left, relation, right), entry.get("by"))
        return left, relation, right

    def _lemma(self, goal: Goal, entry: Any) -> tuple[Node, str, Node]:
        stated = self.claims(str(entry["claim"]))
        case = _place(entry.get("case", 0), len(stated), "case")
        lemma, at = stated[case], entry.get("at", {})
        if not isinstance(at, Mapping) or {*at} != {v.name for v in lemma.variables}:
            raise Wrong("witness.proof.from.at", "expected a point for each variable of the lemma")
        values = {name: self.read(text) for name, text in at.items()}
        facts = Facts(goal, self.budget)
        facts.defined(*values.values())
        for v in lemma.variables:
            if v.integer and not facts.whole(values[v.name]):
                raise NotProved(f"the lemma is about integers {v.name[:40]}")
            for end, is_open, up in ((v.low, v.low_open, ">"), (v.high, v.high_open, "<")):
                if end is not None:
                    inside = goal.on(
                        values[v.name], up if is_open else up + "=", substitute(end, values)
                    )
                    self.attempt(inside)
        for a, r, b in lemma.assumptions:
            self.attempt(goal.on(substitute(a, values), r, substitute(b, values)))
        return substitute(lemma.left, values), lemma.relation, substitute(lemma.right, values)

    def by_induction(self, goal: Goal, spec: Any) -> None:
        """Prove the claim at the least n, and D(n + 1) − c·D(n) with the same relation to 0, c ≥ 0."""
        Facts(goal, self.budget).defined(goal.left, goal.right)
        v = goal.variable(str(spec.get("variable")))
        if not v.integer or v.low is None or v.low_open or goal.mentions(v.name):
            raise NotProved("induction is over integers from a least one, of which no end depends")
        if not Facts(goal, self.budget).whole(v.low):
            raise NotProved("induction begins at an integer")
        if v.high is not None:
            raise NotProved("induction is over a range without an end")
        here, gap = variable(v.name), goal.left - goal.right
        start = goal.fix({v.name: v.low})
        self.prove(start, spec.get("start"))
        factor = self.read(spec.get("factor", "1"))
        facts = Facts(goal, self.budget)
        facts.defined(factor)
        sign = facts.sign(factor)
        if goal.relation != "==" and (sign is None or sign[0] < 0):
            raise NotProved("the factor of an induction is not shown to be non-negative")
        after = substitute(gap, {v.name: here + ONE})
        self.prove(goal.on(after - factor * gap, goal.relation, ZERO), spec.get("step"))

    def by_derivative(self, goal: Goal, spec: Any) -> None:
        """Show that f = left − right has the right sign at an end of a variable's range, f′ keeps it."""
        v = goal.variable(str(spec.get("variable")))
        side, gap = self._side(goal.relation), goal.left - goal.right
        if goal.mentions(v.name):
            raise NotProved(f"the ends of other variables depend on {v.name[:40]}")
        start = spec.get("from", "low")
        end, is_open = (v.low, v.low_open) if start == "low" else (v.high, v.high_open)
        full = goal.put(replace(v, integer=False, low_open=v.low_open and start != "low",
                                high_open=v.high_open and start != "high"))  # fmt: skip
        Facts(full, self.budget).defined(goal.left, goal.right)
        slope = derivative(gap, v.name)
        strict = goal.relation in ("<", ">")
        rising = (side > 0) == (start == "low")
        inner = goal.put(replace(v, integer=False, low_open=True))
        wanted = (">" if rising else "<") + (
            "" if strict and (is_open or start == "infinity") else "="
        )
        if start == "infinity":
            if v.high is not None:
                raise NotProved("the range has an end")
            far, sign = limit(gap, v.name, Facts(full, self.budget))
            if sign and (sign > 0) != (side > 0):
                raise NotProved("the limit of the difference has the other sign")
            if not sign:
                self.attempt(Goal(far, ">=" if side > 0 else "<=", ZERO,
                                  tuple(w for w in goal.variables if w is not v)))  # fmt: skip
        elif end is None or start not in ("low", "high"):
            raise NotProved("the range has no such end")
        else:
            at = goal.fix({v.name: end})
            relation = goal.relation[0] + "=" if is_open else goal.relation
            self.prove(replace(at, relation=relation), spec.get("start"))
        self.prove(inner.on(slope, wanted, ZERO), spec.get("slope"))


def limit(node: Node, name: str, facts: Facts) -> tuple[Node, int]:
    """Return (limit, 0) of a formula as a variable tends to ∞, or (0, ±1) for ±∞."""
    if name not in node.free:
        return node, 0
    op, args = node.op, node.args
    if op == "var":
        return ZERO, 1
    if not all(isinstance(a, Node) for a in args):
        raise NotProved(f"the kernel has no limit of {op}")
    found = [limit(a, name, facts) for a in args]
    far = [sign for _, sign in found]
    if op in ("+", "-"):
        two = far[0], far[1] if op == "+" else -far[1]
        if two[0] * two[1] < 0:
            raise NotProved("the kernel has no limit of ∞ − ∞")
        return (
            (make(op, found[0][0], found[1][0]), 0) if two == (0, 0) else (ZERO, two[0] or two[1])
        )
    if op == "/" and far[1]:
        if far[0]:
            raise NotProved("the kernel has no limit of ∞/∞")
        return ZERO, 0
    if op in ("*", "/"):
        if not any(far):
            if op == "/" and (facts.sign(found[1][0]) or (0, False))[1] is False:
                raise NotProved("a divisor tends to 0")
            return make(op, found[0][0], found[1][0]), 0
        sign = 1
        for inner, one in found:
            own = (one, True) if one else facts.sign(inner)
            if own is None or not own[1]:
                raise NotProved("the kernel has no limit of 0·∞")
            sign *= own[0]
        return ZERO, sign
    if op == "**" and not far[1] and args[1].op == "num" and args[1].args[0] > 0:
        if far[0] < 0:
            raise NotProved("the kernel has no limit of a power of −∞")
        return (ZERO, 1) if far[0] else (found[0][0] ** args[1], 0)
    table = {
        "exp": (ZERO, None),
        "erfc": (number(2), ZERO),
        "Phi": (ZERO, ONE),
        "mills": (None, ZERO),
    }
    table |= {"erf": (number(-1), ONE), "tanh": (number(-1), ONE), "sqrt": (None, None)}
    table |= dict.fromkeys(("log", "log2", "log1p"), (None, None))
    if op in table and len(args) == 1:
        if not far[0]:
            if op.startswith("log") and facts.sign(
                found[0][0] + (ONE if op == "log1p" else ZERO)
            ) != (1, True):
                raise NotProved("the kernel has no limit of the logarithm of 0")
            return make(op, found[0][0]), 0
        known = table[op][1 if far[0] > 0 else 0]
        if known is not None:
            return known, 0
        if far[0] > 0 or op == "mills":
            return ZERO, 1
    if op in ("max", "min", "abs") and not any(far):
        return make(op, *(inner for inner, _ in found)), 0
    raise NotProved(f"the kernel has no limit of {op} here")


def _replaced(node: Node, old: Node, new: Node) -> Node:
    if node is old:
        return new
    if old not in walk(node):
        return node
    return make(node.op, *(_replaced(a, old, new) if isinstance(a, Node) else a for a in node.args))


def _place(given: Any, length: int, key: str) -> int:
    """Return a place in a list, given as an integer or as its text."""
    if not str(given).isdecimal() or len(str(given)) > 6 or int(str(given)) >= length:
        raise Wrong(f"witness.proof.from.{key}", f"expected a place from 0 to {length - 1}")
    return int(str(given))


def _list(spec: Any, key: str) -> list[Any]:
    found = spec.get(key)
    if not isinstance(found, list) or len(found) > 1000:
        raise Wrong(f"witness.proof.{key}", "expected a list")
    return found


def _said(goal: Goal) -> str:
    return f"{show(goal.left)[:100]} {goal.relation} {show(goal.right)[:100]}"
