"""Comparisons of formulas over a domain: intervals, expansion into polynomials, and signs.

A domain has variables between ends, which may use earlier variables only, and assumptions. Every
proof (proofs.py) first shows that both sides are defined on the whole domain. There they are
continuous in the real variables.

* Intervals (`Box`): bounds of a formula over a box of ranges, which may be infinite.
* Expansion (`Algebra`): a formula is a quotient of polynomials in *atoms*. These are variables,
  square roots (reduced by s² = p), powers with variable exponents, and functions of other formulas.
  A sum Σ p(j)·bʲ over m ≤ j ≤ n is b^(n+1) r(n+1) − b^m r(m) with b·r(j + 1) − r(j) = p(j). The
  logarithm of a product of positive factors is a sum. Equal quotients prove an identity.
* Signs: a polynomial has a sign if all its coefficients do, after substituting (a + bt)/(1 + t) for
  a variable in [a, b], a + t for a variable with a lower end only, and its least value + t for
  another atom, t ≥ 0. Where √x = s occurs, x may be written as s².

The counting trees of functions.py have closed forms over all time steps of height h. The plain
digits of 0..kʰ − 1 have the mean (k − 1)/2 on each of the h levels. The signed digits of −n..n,
n = (kʰ − 1)/2, have the mean size (k² − 1)/(4k), and by symmetry half of their sum is from 1..n.
The sum over levels and steps, times 2h²/n, is in `_TREES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import comb, prod
from typing import Any, NamedTuple

from flint import Ordering, arb, fmpq, fmpq_mpoly_ctx

from . import numbers
from .cases import Comparison, Variable
from .expressions import (
    FOLDS,
    ONE,
    QUESTIONS,
    ZERO,
    Node,
    make,
    number,
    parse,
    show,
    substitute,
    value,
    variable,
    walk,
)
from .functions import FUNCTIONS
from .notation import signatures
from .numbers import Budget, NotProved, Wrong, ball

Span = tuple[arb, arb]
Sign = tuple[int, bool] | None
"""(1 or −1, whether 0 is excluded): ≥ 0 or ≤ 0, strictly if so; (0, False): always 0."""
INFINITY = arb("inf")
MOST_ATOMS, MOST_TERMS = 40, 20_000


@dataclass(frozen=True)
class Goal(Comparison):
    """A comparison to prove for all values of the variables that satisfy `given`."""

    variables: tuple[Variable, ...] = ()
    given: tuple[Goal, ...] = ()

    @property
    def gap(self) -> Node:
        """The difference left − right."""
        return self.left - self.right

    @property
    def side(self) -> int:
        """The sign of left − right that the relation asserts: 1 or −1."""
        if self.relation not in ("<", "<=", ">", ">="):
            raise NotProved(f"a sign does not prove {self.relation}")
        return 1 if self.relation[0] == ">" else -1

    def agrees(self, sign: Sign) -> bool:
        """Whether this sign of left − right proves the comparison."""
        return sign is not None and sign[0] in (0, self.side) and (sign[1] or not self.strict)

    def variable(self, name: Any) -> Variable:
        """Return a variable of the domain."""
        for v in self.variables:
            if v.name == name:
                return v
        raise Wrong("witness.proof.variable", "is not a variable of the goal")

    def over(self, changed: Variable) -> Goal:
        """Return the goal with one variable replaced."""
        kept = tuple(changed if v.name == changed.name else v for v in self.variables)
        return replace(self, variables=kept)

    def on(self, left: Node, relation: str, right: Node) -> Goal:
        """Return another comparison over the same domain."""
        return replace(self, left=left, relation=relation, right=right)

    def fix(self, values: Mapping[str, Node]) -> Goal:
        """Substitute values, known to lie in the domain, for variables."""
        kept = tuple(v.put(values) for v in self.variables if v.name not in values)
        given = tuple(one.fix(values) for one in self.given)
        left, right = substitute(self.left, values), substitute(self.right, values)
        return Goal(left, self.relation, right, kept, given)

    def mentions(self, name: str) -> bool:
        """Whether an end or an assumption uses the variable."""
        return any(name in v.ends for v in self.variables) or any(
            name in g.free for g in self.given
        )


# --- intervals ----------------------------------------------------------------------------------
_MONOTONE: dict[str, tuple[Any, Any]] = {
    **{"exp": (0, INFINITY), "expm1": (-1, INFINITY), "sqrt": (0, INFINITY)},
    **dict.fromkeys(("log", "log1p", "log2"), (-INFINITY, INFINITY)),
    **{"tanh": (-1, 1), "erf": (-1, 1), "Phi": (0, 1), "erfc": (2, 0), "mills": (INFINITY, 0)},
}
"""Monotone function → its limits at the left and right ends of its domain."""
_LEFT = {"sqrt": 0, "log": 0, "log2": 0, "log1p": -1}


class Box:
    """Bounds of formulas over a box of variables, at all points where they are defined.

    With `far`, an infinite end is a limit, and 0·∞ is unknown instead of 0.
    """

    def __init__(self, ranges: Mapping[str, Span], budget: Budget, *, far: bool = False) -> None:
        self.ranges, self.budget, self.far = ranges, budget, far
        self._memo: dict[Node, Span] = {}

    def __call__(self, node: Node) -> Span:
        """Return lower and upper bounds of a formula."""
        if node not in self._memo:
            self.budget.check()
            low, high = self._span(node)
            low = -INFINITY if low.is_nan() else arb(low.lower())
            self._memo[node] = low, INFINITY if high.is_nan() else arb(high.upper())
        return self._memo[node]

    def _span(self, node: Node) -> Span:
        op, args = node.op, node.args
        if op == "num":
            return ball(args[0]), ball(args[0])
        if op == "var":
            if args[0] not in self.ranges:
                raise NotProved(f"{args[0]} has no range")
            return self.ranges[args[0]]
        if op in FOLDS:
            return self(_unrolled(node, self.budget))
        if not all(isinstance(a, Node) for a in args) or op in ("text", "list"):
            raise NotProved(f"the kernel has no bounds of {op} over a range")
        inside = [self(a) for a in args]
        match op:
            case "+":
                return inside[0][0] + inside[1][0], inside[0][1] + inside[1][1]
            case "-":
                return inside[0][0] - inside[1][1], inside[0][1] - inside[1][0]
            case "*" if args[0] is args[1]:
                return self._power(inside[0], 2)
            case "*":
                return self._product(*inside)
            case "/":
                return self._product(inside[0], self._inverse(inside[1]))
            case "**":
                n = args[1].args[0] if args[1].op == "num" else fmpq(1, 2)
                if n.q == 1 and abs(n) < 1000:
                    return self._power(inside[0], int(n.p))
                if not inside[0][0] >= 0:
                    raise NotProved("a power in a piece has a base that may be negative")
                low, high = self._product(_monotone("log", inside[0]), inside[1])
                return _monotone("exp", (arb(low.lower()), arb(high.upper())))
            case "abs":
                low, high = inside[0]
                return low.max(-high).max(arb(0)), high.max(-low)
            case "max" | "min":
                low, high = inside[0]
                for a, b in inside[1:]:
                    low, high = (
                        (low.max(a), high.max(b)) if op == "max" else (low.min(a), high.min(b))
                    )
                return low, high
            case "log" if len(args) == 2:
                return self(make("log", args[0]) / make("log", args[1]))
        if op in _MONOTONE:
            return _monotone(op, inside[0])
        if op in FUNCTIONS and all(a.is_finite() and b.is_finite() for a, b in inside):
            union = [a.union(b) for a, b in inside]
            found = ball(FUNCTIONS[op](*union) if node.free else value(node, self.budget))
            return found, found
        raise NotProved(f"the kernel has no bounds of {op} over a range")

    def _product(self, x: Span, y: Span) -> Span:
        found = [self._times(a, b) for a in x for b in y]
        if any(p.is_nan() for p in found):
            return -INFINITY, INFINITY
        low, high = found[0], found[0]
        for other in found[1:]:
            low, high = low.min(other), high.max(other)
        return low, high

    def _times(self, a: arb, b: arb) -> arb:
        finite = a.is_finite() and b.is_finite()
        return arb(0) if (a.is_zero() or b.is_zero()) and (finite or not self.far) else a * b

    def _power(self, x: Span, k: int) -> Span:
        if k < 0:
            return self._inverse(self._power(x, -k))
        if k == 0:
            return arb(1), arb(1)
        if k % 2 == 0:
            x = x if x[0] >= 0 else (-x[1], -x[0]) if x[1] <= 0 else (arb(0), x[1].max(-x[0]))
        low, high = (end**k if end.is_finite() else end for end in x)
        return low, high

    def _inverse(self, x: Span) -> Span:
        low, high = x
        if high <= 0 and not low >= 0:
            a, b = self._inverse((-high, -low))
            return -b, -a
        if self.far and not low > 0:
            return -INFINITY, INFINITY
        if not low >= 0:
            raise NotProved("a divisor may be 0 in a piece")
        return 1 / high if high.is_finite() else arb(0), 1 / low if low > 0 else INFINITY


def _monotone(op: str, x: Span) -> Span:
    def at(end: arb) -> arb:
        left, right = _MONOTONE[op]
        if not end.is_finite():
            return arb(right if end > 0 else left)
        if op in _LEFT and end <= _LEFT[op]:
            return arb(left)
        return ball(FUNCTIONS[op](end))

    return (at(x[1]), at(x[0])) if op in ("erfc", "mills") else (at(x[0]), at(x[1]))


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """Apply `change` to every subtree, innermost first."""
    done: dict[Node, Node] = {}

    def work(n: Node) -> Node:
        if n not in done:
            inner = [work(a) if isinstance(a, Node) else a for a in n.args]
            same = all(a is b for a, b in zip(inner, n.args, strict=True))
            done[n] = change(n if same else make(n.op, *inner))
        return done[n]

    return work(node)


def _unrolled(node: Node, budget: Budget) -> Node:
    """Write out a sum or product of at most about a thousand terms."""
    index, low, high, term = node.args
    if low.free or high.free:
        raise NotProved("the ends of a sum in it vary")
    first, last = (numbers.whole(value(n, budget)) for n in (low, high))
    if last - first > 1000:
        raise NotProved("a sum over a range has more than 1000 terms")
    total = ZERO if node.op == "sum" else ONE
    for i in range(first, last + 1):
        one = substitute(term, {index: number(i)})
        total = total + one if node.op == "sum" else total * one
    return total


# --- signs --------------------------------------------------------------------------------------
class Facts:
    """Facts over the domain of a goal: bounds, signs, limits, and where formulas are defined."""

    def __init__(self, goal: Goal, budget: Budget) -> None:
        self.goal, self.budget = goal, budget
        self.known: dict[str, Variable] = {}
        self.places: dict[str, int] = {}
        self.algebras = [Algebra(self, closed=closed) for closed in (False, True)]
        self._signs: dict[Node, Sign] = {}
        self.ranges: dict[str, Span] = {}
        self.box = Box(self.ranges, budget)
        for v in goal.variables:
            self.bind(v)

    def bind(self, v: Variable) -> None:
        """Add a variable, or the index of a sum, with its range."""
        low, high = -INFINITY, INFINITY
        try:
            low = low if v.low is None else self.box(v.low)[0]
            high = high if v.high is None else self.box(v.high)[1]
        except NotProved:
            pass
        self.known[v.name], self.ranges[v.name] = v, (low, high)
        self.places.setdefault(v.name, len(self.places))

    def least(self, node: Node) -> fmpq | None:
        """Return a rational lower bound over the domain, or None."""
        try:
            low = self.box(node)[0]
        except NotProved:
            return None
        if not low.is_finite():
            return None
        man, exp = low.man_exp()
        if abs(exp) > numbers.MOST_BITS:  # FLINT aborts the process if it is out of memory
            return fmpq(0) if low >= 0 else None
        return fmpq(man) * fmpq(2) ** int(exp) if exp >= 0 else fmpq(man) / fmpq(2) ** int(-exp)

    def positive(self, node: Node) -> bool:
        """Whether a formula is positive over the domain."""
        return self.sign(node) == (1, True)

    def sign(self, node: Node) -> Sign:
        """Return the sign of a formula over the domain, or None if none is found."""
        if node not in self._signs:
            self._signs[node] = None  # breaks cycles
            self.budget.check()
            self._signs[node] = self._sign(node)
        return self._signs[node]

    def _sign(self, node: Node) -> Sign:
        found = self._structural(node)
        if found is not None and found[1]:
            return found
        try:
            with numbers.precision(96):
                low, high = self.box(node)
            if low > 0 or high < 0:
                return (1 if low > 0 else -1), True
            if found is None and (low >= 0 or high <= 0):
                found = (1 if low >= 0 else -1), False
        except NotProved:
            pass
        for algebra in self.algebras if node.free and node.op != "var" else []:
            try:
                other = algebra.sign(algebra.normal(node))
            except NotProved:
                continue
            if other is not None and (other[1] or found is None):
                found = other
                break
        if found is None or not found[1]:
            other = self._rooted(node)
            found = other if other is not None and (other[1] or found is None) else found
        return found

    def _rooted(self, node: Node) -> Sign:
        """Return the sign with x = s² for variables x ≥ 0 whose root occurs, on a larger domain."""
        ends = [e for v in self.known.values() for e in (v.low, v.high) if e is not None]
        inside = {n.args[0] for n in walk(node, *ends) if n.op == "sqrt" and n.args[0].op == "var"}
        signs = {str(x.args[0]): self.sign(x) for x in inside if x.args[0] in self.known}
        squares = {
            name: variable(name) ** number(2)
            for name, sign in signs.items()
            if sign and sign[0] >= 0
        }
        if not squares:
            return None
        kept = []
        for v in self.known.values():
            least = self.least(make("sqrt", variable(v.name))) or fmpq(0)
            if v.name not in squares:
                kept.append(v.put(squares))
            elif v.low is not None and v.low.op == "var" and v.low.args[0] in squares:
                kept.append(Variable(v.name, v.low, v.low_open))
            else:
                kept.append(Variable(v.name, number(max(least, fmpq(0))), v.low_open and not least))
        whole = replace(self.goal.on(ZERO, self.goal.relation, ZERO), variables=tuple(kept))
        return Facts(whole, self.budget).sign(substitute(node, squares))

    def _structural(self, node: Node) -> Sign:
        op, args = node.op, node.args
        if op == "num":
            return (0, False) if not args[0] else (1 if args[0] > 0 else -1, True)
        if op == "var":
            v = self.known.get(args[0], Variable(""))
            for end, is_open, side in ((v.low, v.low_open, 1), (v.high, v.high_open, -1)):
                found = None if end is None else self.sign(end)
                if found is not None and found[0] in (0, side):
                    return side, is_open or (found[1] and found[0] == side)
            return None
        if op in ("exp", "pi", "Phi", "erfc", "mills"):
            return 1, True
        if op in ("gamma", "binomial") and node.free:  # of a constant, gamma(-1/2) < 0
            return 1, True
        if op in FOLDS:
            inner = Facts(_bound(self.goal, node), self.budget).sign(args[3])
            if inner is None or (op == "product" and inner[0] <= 0):
                return None
            never = op == "product" or self.positive(args[2] - args[1] + ONE)
            return inner[0], inner[1] and never
        if op not in ("+", "-", "*", "/", "**", "sqrt", "abs", "max", "min"):
            return None
        if op == "-" and (found := self._ordered(*args)):
            return found
        signs = [self.sign(a) for a in args]
        a, b = signs[0], signs[-1]
        if op in ("sqrt", "abs") or (op == "*" and args[0] is args[1]):
            return 1, a is not None and a[1]
        if op in ("max", "min"):
            side = 1 if op == "max" else -1
            own = [s for s in signs if s is not None and s[0] in (0, side)]
            if own:
                return side, any(s[1] for s in own)
            return None if None in signs else (-side, all(s is not None and s[1] for s in signs))
        if op == "**":
            if a == (1, True):
                return a
            n = args[1].args[0] if args[1].op == "num" else fmpq(1, 2)
            if n.q == 1:
                return (1, a is not None and a[1]) if int(n.p) % 2 == 0 else a
            return (1, False) if a is not None and a[0] >= 0 else None
        if a is None or b is None:
            return None
        if op in ("*", "/"):
            return a[0] * b[0], a[1] and b[1]
        b = (-b[0], b[1]) if op == "-" else b
        return (a[0] or b[0], a[1] or b[1]) if a[0] * b[0] >= 0 else None

    def _ordered(self, a: Node, b: Node) -> Sign:
        """Return the sign of a − b for monotone functions, and for a variable and its end."""
        if a.op == b.op in ("sqrt", "exp", "log", "Phi") and len(a.args) == len(b.args) == 1:
            return self.sign(a.args[0] - b.args[0])
        if a.op == b.op in ("mills", "erfc"):
            return self.sign(b.args[0] - a.args[0])
        if a.op == "-" and a.args[0] is b:
            return self.sign(ZERO - a.args[1])
        for node, other, way in ((a, b, 1), (b, a, -1)):
            v = self.known.get(node.args[0]) if node.op == "var" else None
            ends = [] if v is None else [(v.low, v.low_open, 1), (v.high, v.high_open, -1)]
            for end, is_open, side in ends:
                sign = self.sign(end - other) if end is not None else None
                if sign is not None and sign[0] in (0, side):
                    return side * way, sign[1] or is_open
        return None

    def far(self, node: Node, name: str) -> Node:
        """Return the limit of a formula as a variable tends to ∞.

        If the bounds of a subformula at infinity agree, they are its limit. Elsewhere limits are
        taken of the arguments, by continuity.
        """
        box = Box({**self.ranges, name: (INFINITY, INFINITY)}, self.budget, far=True)

        def span(n: Node) -> Span:
            try:
                return box(n)
            except NotProved:
                return -INFINITY, INFINITY

        def side(n: Node) -> int:
            """Return 1 or −1 if a formula tends to ∞ or −∞, else 0."""
            low, high = span(n)
            if low == INFINITY or high == -INFINITY:
                return 1 if low > 0 else -1
            for a, b in (n.args, n.args[::-1]) if n.op == "*" else ():
                sign = None if name in a.free else self.sign(a)
                if sign is not None and sign[1]:
                    return sign[0] * side(b)
            return 0

        def limit(n: Node) -> Node:
            if name not in n.free:
                return n
            low, high = span(n)
            if low.is_finite() and low == high:
                man, exp = low.man_exp()
                return number(fmpq(man)) * number(2) ** number(int(exp))
            if n.op == "/" and name not in n.args[0].free and side(n.args[1]):
                return ZERO
            if n.op in ("erfc", "Phi", "tanh") and (far := side(n.args[0])):
                return number(_MONOTONE[n.op][far > 0])
            if n.op not in ("+", "-", "*", "/", "**", "sqrt", "exp", "log", "abs"):
                raise NotProved(f"no limit of {show(n)[:80]} was found")
            parts = [limit(a) for a in n.args]
            if n.op == "**" and name in n.args[1].free and not self.positive(parts[0]):
                raise NotProved(f"no limit of {show(n)[:80]} was found")
            return make(n.op, *parts)

        found = limit(node)
        self.defined(found)
        return found

    # --- where formulas are defined
    def defined(self, *nodes: Node) -> None:
        """Require that formulas are defined on the whole domain."""
        for n in walk(*nodes):
            if not n.free <= {*self.known}:
                continue  # checked with the sum that binds its variable
            if n.op in FOLDS:
                if not (self.whole(n.args[1]) and self.whole(n.args[2])):
                    raise NotProved("an end of a sum in it may not be an integer")
                Facts(_bound(self.goal, n), self.budget).defined(n.args[3])
            elif n.op not in ("num", "var"):
                self._defined(n)

    def whole(self, node: Node) -> bool:
        """Whether a formula is an integer: a polynomial is, if it is on the grid 0..degree."""
        if node.op in ("max", "min"):
            return all(map(self.whole, node.args))
        algebra = self.algebras[0]
        try:
            top, low = algebra.normal(node)
        except NotProved:
            return False
        used = algebra.used(top)
        names = [self.known.get(algebra.name(i)) for i in used]
        if not low.is_one() or not all(v is not None and v.integer for v in names):
            return False
        grids = [range(int(top.degrees()[i]) + 1) for i in used]
        if prod(map(len, grids)) > 1000:
            return False
        point = [fmpq(0)] * MOST_ATOMS
        for values in product(*grids):
            for i, x in zip(used, values, strict=True):
                point[i] = fmpq(x)
            if top(*point).q != 1:
                return False
        return True

    def _defined(self, n: Node) -> None:
        op, args = n.op, n.args
        if n.free and (sizes := _sizes(n)) is not None:
            integers, least, closed = sizes
            signs = [self.sign(x) for x in least]
            if not all(map(self.whole, integers)) or any(s is None or s[0] < 0 for s in signs):
                raise NotProved(f"{op} of {show(args[0])[:80]} may be undefined")
            return self.defined(closed)
        if (
            op in QUESTIONS
            or op in signatures()
            or op not in FUNCTIONS
            or (op in _STEPS and n.free)
        ):
            raise NotProved(f"the kernel proves nothing about {op} over a range")
        if not n.free:
            with numbers.precision(256):
                value(n, self.budget)
            return
        inside, strict = args[0], op != "sqrt"
        if op == "/":
            sign = self.sign(args[1])
            if sign is None or not sign[1]:
                raise NotProved(f"the divisor {show(args[1])[:80]} may be 0")
        elif op == "**":
            power = args[1].args[0] if args[1].op == "num" else None
            if power is not None and power.q == 1:
                if power < 0:
                    self.defined(ONE / inside)
                return
            strict = power is None or power < 0
        elif op == "log" and len(args) == 2:
            self.defined(make("log", args[0]) / make("log", args[1]))
        elif op == "log1p":
            inside = inside + ONE
        if op in ("**", "sqrt", "log", "log1p", "log2", "gamma", "lgamma"):
            sign = self.sign(inside)
            if sign is None or sign[0] < 0 or (strict and sign != (1, True)):
                raise NotProved(f"{op} of {show(inside)[:80]} may be undefined")

    def around(self, node: Node) -> None:
        """Require that zeros of a divisor are isolated, so that continuity extends an identity."""
        sign = self.sign(node)
        if sign is not None and sign[1]:
            return
        names = [v for v in self.goal.variables if v.name in node.free]
        rational = all(n.op in ("num", "var", "+", "-", "*", "/") for n in walk(node))
        tied = any(v.integer or self.goal.mentions(v.name) for v in names)
        if not rational or tied or self.goal.strict or len(names) < max(1, len(node.free)):
            raise NotProved(f"a closed form of a sum divides by {show(node)[:60]}, which may be 0")
        for v in names:
            if v.low is not None and v.high is not None and not self.positive(v.high - v.low):
                raise NotProved(f"the range of {v.name} may be a point")


_STEPS = ("floor", "ceil", "float", "round_up", "round_down", "harmonic", "where", "lambert_w",
          "Phi_inverse", "gamma_upper", "beta_lower", "r1smg_sigma_star")  # fmt: skip
"""Functions with jumps, or whose domains are not checked here."""


def _sizes(node: Node) -> tuple[list[Node], list[Node], Node] | None:
    """Return the integers, the nonnegative terms and the closed form of a binomial or a tree."""
    if node.op == "binomial":
        n, k = node.args
        return [n, k], [k, n - k], ONE
    if node.op in _TREES:
        k, last = node.args
        signed = node.op == "signed_tree_mse"
        if signed and last.op == "/" and last.args[1] is number(2):
            last, signed = last.args[0], False
        power = last.args[0] if last.op == "-" and last.args[1] is ONE else last
        if not signed and power.op == "**" and power is not last and power.args[0] is k:
            h, plain = power.args[1], node.op == "tree_mse"
            form = substitute(_TREES[node.op], {"k": k, "h": h})
            return [k if plain else (k - ONE) / number(2), h], [k - number(2), h - ONE], form
    return None


def _bound(goal: Goal, fold: Node) -> Goal:
    """Return the goal with the index of a sum as a further variable."""
    index, low, high, _ = fold.args
    own = Variable(index, low, False, high, False, True)
    return replace(goal, variables=(*(v for v in goal.variables if v.name != index), own))


# --- expansion ----------------------------------------------------------------------------------
class Ratio(NamedTuple):
    """A quotient of two polynomials in lowest terms."""

    top: Any
    low: Any

    @property
    def key(self) -> tuple[str, str]:
        """A text that identifies the ratio."""
        return str(self.top), str(self.low)

    def constant(self) -> fmpq | None:
        """Return the value of a constant ratio, else None."""
        if self.top.is_constant() and self.low.is_constant():
            return fmpq(self.top.leading_coefficient()) / fmpq(self.low.leading_coefficient())
        return None


class Algebra:
    """Formulas over one domain as ratios of polynomials in atoms; `closed` sums Σ p(j)·bʲ."""

    def __init__(self, facts: Facts, *, closed: bool) -> None:
        self.ctx = fmpq_mpoly_ctx.get(tuple(f"a{i}" for i in range(MOST_ATOMS)), Ordering.lex)
        self.facts, self.closed, self.one = facts, closed, self.ctx.constant(1)
        self.atoms: list[Node] = []
        self._index: dict[Any, int] = {}
        self._roots: dict[int, Any] = {}
        self._bases: dict[int, tuple[Node, Ratio]] = {}
        self._binomials: list[tuple[Ratio, Ratio, Ratio]] = []
        self._memo: dict[Node, Ratio] = {}

    def constant(self, x: Any) -> Ratio:
        """Return a number as a ratio."""
        return Ratio(self.ctx.constant(fmpq(x)), self.one)

    def ratio(self, top: Any, low: Any) -> Ratio:
        """Return top/low in lowest terms, with roots reduced."""
        self.facts.budget.check()
        top, low = self._reduced(top), self._reduced(low)
        if low.is_zero():
            raise NotProved("a formula divides by 0")
        if len(top) + len(low) > MOST_TERMS:
            raise NotProved("a polynomial in it has too many terms")
        if not low.is_constant():
            common = top.gcd(low)
            top, low = top / common, low / common
        scale = low.leading_coefficient()
        return Ratio(top / scale, low / scale)

    def add(self, a: Ratio, b: Ratio, sign: int = 1) -> Ratio:
        """Return a + b, or a − b for sign −1."""
        if a.low == b.low:
            return self.ratio(a.top + sign * b.top, a.low)
        return self.ratio(a.top * b.low + sign * b.top * a.low, a.low * b.low)

    def mul(self, a: Ratio, b: Ratio) -> Ratio:
        """Return a·b."""
        return self.ratio(a.top * b.top, a.low * b.low)

    def div(self, a: Ratio, b: Ratio) -> Ratio:
        """Return a/b."""
        return self.ratio(a.top * b.low, a.low * b.top)

    def pow(self, a: Ratio, n: int) -> Ratio:
        """Return aⁿ, expanded."""
        if abs(n) > 400 or (len(a.top) + len(a.low)) ** min(abs(n), 20) > 10**9:
            raise NotProved("a power in it is too large to be expanded")
        return self.ratio(a.top**n, a.low**n) if n >= 0 else self.ratio(a.low**-n, a.top**-n)

    def _reduced(self, p: Any) -> Any:
        for i in sorted(self._roots, reverse=True):
            if p.degrees()[i] >= 2:
                square, root = self._roots[i], self.ctx.gen(i)
                parts = self.split(p, i).items()
                p = sum((c * square ** (k // 2) * root ** (k % 2) for k, c in parts), 0 * p)
        return p

    def split(self, p: Any, i: int) -> dict[int, Any]:
        """Return power → coefficient of a polynomial in one atom."""
        parts: dict[int, dict[tuple[int, ...], fmpq]] = {}
        for powers, c in p.terms():
            rest = tuple(0 if j == i else int(k) for j, k in enumerate(powers))
            parts.setdefault(int(powers[i]), {})[rest] = c
        return {k: self.ctx.from_dict(v) for k, v in parts.items()}

    def used(self, *polys: Any) -> list[int]:
        """Return the indices of the atoms that occur."""
        return [i for i in range(len(self.atoms)) if any(p.degrees()[i] > 0 for p in polys)]

    def node(self, a: Ratio) -> Node:
        """Return a ratio as a formula."""
        return self._sum(a.top) / self._sum(a.low)

    def _sum(self, p: Any) -> Node:
        total = ZERO
        for powers, c in p.terms():
            term = number(fmpq(c))
            for atom, k in zip(self.atoms, powers, strict=False):
                term = term * atom ** number(int(k)) if int(k) else term
            total = total + term
        return total

    def atom(self, key: Any, node: Node) -> int:
        """Return the index of an atom, adding it if it is new."""
        if key not in self._index:
            if len(self.atoms) == MOST_ATOMS:
                raise NotProved("it has too many roots, powers and variables")
            self._index[key] = len(self.atoms)
            self.atoms.append(node)
        return self._index[key]

    def gen(self, key: Any, node: Node) -> Ratio:
        """Return an atom as a ratio."""
        return Ratio(self.ctx.gen(self.atom(key, node)), self.one)

    # --- reading
    def normal(self, node: Node) -> Ratio:
        """Return a formula as a ratio."""
        if node not in self._memo:
            self.facts.budget.check()
            self._memo[node] = self._normal(node)
        return self._memo[node]

    def _normal(self, node: Node) -> Ratio:
        op, args = node.op, node.args
        match op:
            case "num":
                return self.constant(args[0])
            case "var":
                return self.gen(args[0], node)
            case "**":
                return self.power(args[0], self.normal(args[1]))
            case "sum" | "product":
                return self._fold(node)
            case "exp":
                return self.power(make("exp", ONE), self.normal(args[0]))
            case "log" if len(args) == 2:
                return self.normal(make("log", args[0]) / make("log", args[1]))
        if op in _REWRITTEN:
            return self.normal(substitute(_REWRITTEN[op], {"x": args[0]}))
        if op in _TREES and (sizes := _sizes(node)) is not None:
            return self.normal(sizes[2])
        if op in ("text", "list") or not all(isinstance(a, Node) for a in args):
            raise NotProved(f"the kernel has no expansion of {op}")
        if op in ("floor", "ceil") and not node.free:
            return self.constant(value(node, self.facts.budget))
        inside = [self.normal(a) for a in args]
        match op:
            case "+" | "-":
                return self.add(inside[0], inside[1], 1 if op == "+" else -1)
            case "*":
                return self.mul(*inside)
            case "/":
                return self.div(*inside)
            case "sqrt":
                return self.root(inside[0])
            case "log" if found := self._logarithm(inside[0]):
                return found
            case "binomial":
                return self._binomial(*inside)
            case "abs" if sign := self.facts.sign(args[0]):
                return self.mul(self.constant(sign[0] or 1), inside[0])
            case "max" | "min":
                inside = self._chosen(op, inside)
                if len(inside) == 1:
                    return inside[0]
        known = make(op, *(self.node(a) for a in inside))
        return self.gen((op, *(a.key for a in inside)), known)

    def _logarithm(self, a: Ratio) -> Ratio | None:
        """Return ln a as a sum of logarithms of primes and, if `closed`, of positive factors."""
        if a.constant() is None and not self.closed:
            return None
        total, scale = self.constant(0), fmpq(1)
        for poly, side in ((a.top, 1), (a.low, -1)):
            content, factors = poly.factor()
            scale = scale * fmpq(content) ** side
            for factor, k in factors:
                size, i = Ratio(factor, self.one), self.used(factor)[0]
                if (sign := self.facts.sign(self._sum(factor))) is None or not sign[1]:
                    return None
                if sign[0] < 0:
                    scale, size = scale * (-1) ** int(k), Ratio(-factor, self.one)
                if factor == self.ctx.gen(i) and i in self._bases:
                    base, power = self._bases[i]
                    own = base.op == "exp" and base.args[0] is ONE
                    one = power if own else self.mul(power, self.normal(make("log", base)))
                else:
                    one = self.gen(("log", *size.key), make("log", self.node(size)))
                total = self.add(total, self.mul(self.constant(side * int(k)), one))
        if scale <= 0 or max(scale.p, scale.q) >= 1 << 64:
            return None
        for whole, side in ((scale.p, 1), (scale.q, -1)):
            for prime, k in whole.factor() if whole > 1 else []:
                one = self.gen(("log", str(prime)), make("log", number(fmpq(prime))))
                total = self.add(total, self.mul(self.constant(side * int(k)), one))
        return total

    def _binomial(self, n: Ratio, k: Ratio) -> Ratio:
        """Return C(n, k) as a ratio times a known C(n₀, k₀), if n − n₀ and k − k₀ are integers.

        C(n + 1, k)/C(n, k) = (n + 1)/(n + 1 − k) and C(n, k + 1)/C(n, k) = (n − k)/(k + 1). The
        differences have one sign, so no divisor is 0 if 0 ≤ k ≤ n at both ends.
        """
        for n0, k0, known in self._binomials:
            a, b = (self.add(x, y, -1).constant() for x, y in ((n, n0), (k, k0)))
            if a is None or b is None or a.q * b.q != 1 or a * b < 0 or abs(a) + abs(b) > 20:
                continue
            up = a + b >= 0
            m, j = (n0, k0) if up else (n, k)
            total, one = self.constant(1), self.constant(1)
            for _ in range(abs(int(a.p))):
                m = self.add(m, one)
                total = self.mul(total, self.div(m, self.add(m, j, -1)))
            for _ in range(abs(int(b.p))):
                j = self.add(j, one)
                total = self.mul(total, self.div(self.add(self.add(m, j, -1), one), j))
            return self.mul(known, total) if up else self.div(known, total)
        found = self.gen(("binomial", *n.key, *k.key), make("binomial", self.node(n), self.node(k)))
        self._binomials.append((n, k, found))
        return found

    def _chosen(self, op: str, inside: list[Ratio]) -> list[Ratio]:
        """Return the arguments that may be the maximum (or minimum), in canonical order."""
        kept: list[Ratio] = []
        for a in inside:
            for i, b in enumerate(kept):
                sign = self.sign(self.add(a, b, -1))
                if sign is not None:  # the other argument is never needed
                    kept[i] = a if sign[0] == (1 if op == "max" else -1) else b
                    break
            else:
                kept.append(a)
        return sorted(kept, key=lambda a: a.key)

    def root(self, a: Ratio) -> Ratio:
        """Return √a as a product of roots of primes and of factors of known sign."""
        sign = self.facts.sign(self._sum(a.low))
        if sign is None:
            raise NotProved("a root of a quotient has a divisor without a sign")
        inside = a.top * a.low
        if inside.is_zero():
            return self.constant(0)
        content, factors = inside.factor()
        scale, unknown, parts = fmpq(content), self.one, []
        outside = self.ctx.constant(1 / fmpq(scale.q))
        for factor, k in factors:
            own = self.facts.sign(self._sum(factor))
            if own is None:
                unknown = unknown * factor**k
                continue
            size = factor * (own[0] or 1)
            scale = scale if own[0] >= 0 else scale * (-1) ** int(k)
            outside = outside * size ** (int(k) // 2)
            parts += [size] * (int(k) % 2)
        whole = abs(scale.p * scale.q)
        for prime, k in whole.factor() if whole < 1 << 64 else [(whole, 1)]:
            outside = outside * fmpq(prime) ** (int(k) // 2)
            parts += [self.ctx.constant(fmpq(prime))] * (int(k) % 2 and prime != 1)
        unknown = unknown if scale > 0 else -unknown
        if unknown.is_constant() and not unknown.is_one():
            raise NotProved("it has the root of a negative number")
        for part in parts if unknown.is_one() else [*parts, unknown]:
            index = self.atom(("sqrt", str(part)), make("sqrt", self._sum(part)))
            self._roots[index] = part
            outside = outside * self.ctx.gen(index)
        return self.ratio(outside, a.low * (sign[0] or 1))

    def power(self, base: Node, power: Ratio) -> Ratio:
        """Return base^power as a product over the terms of the exponent."""
        n = power.constant()
        own = base.op == "exp" and base.args[0] is ONE
        inner = self.gen(("exp",), base) if own else self.normal(base)  # for e itself, see `part`
        if n is not None and n.q == 1 and not own:
            return self.pow(inner, int(n.p))
        if n is not None and n.q == 2 and not own:
            return self.pow(self.root(inner), int(n.p))
        total, scale = self.constant(1), fmpq(power.low.leading_coefficient())
        for powers, content in power.top.terms():
            c = fmpq(content) / scale
            unit = self.ratio(
                self.ctx.from_dict({tuple(map(int, powers)): fmpq(1)}), power.low / scale
            )
            inside = self.node(unit)
            if own and inside.op == "log" and len(inside.args) == 1 and c.q == 1:
                total = self.mul(total, self.pow(self.normal(inside.args[0]), int(c.p)))
                continue
            whole = unit.constant() is not None and c.q == 1 and not own
            most = 40 if unit.constant() is not None else 8  # e^0.1, e^0.25: powers of one
            part = most if own and most % int(c.q) == 0 and abs(c) * most < 400 else int(c.q)
            one = inner
            if not whole:
                node = make("exp", self.node(unit) / number(part)) if own else (
                    base ** (self.node(unit) / number(part)))  # fmt: skip
                i = self.atom(("**", inner.key, unit.key, part), node)
                self._bases[i] = base, self.div(unit, self.constant(part))
                one = Ratio(self.ctx.gen(i), self.one)
            total = self.mul(total, self.pow(one, int((c * part).p)))
        return total

    def _fold(self, node: Node) -> Ratio:
        index, low, high, term = node.args
        first, last = self.normal(low), self.normal(high)
        count = self.add(last, first, -1).constant()
        if count is not None and count.q == 1 and count < 200:
            total = self.constant(node.op == "product")
            for i in range(int(count.p) + 1):
                one = self.normal(substitute(term, {index: low + number(i)}))
                total = self.add(total, one) if node.op == "sum" else self.mul(total, one)
            return total
        empty = self.facts.sign(high - low + ONE)
        if empty is None or empty[0] < 0:
            raise NotProved("the ends of a sum in it may be reversed")
        found = None
        if node.op == "sum" and self.closed:
            own = f"{index} from {first.key} to {last.key}"
            self.facts.bind(Variable(own, low, False, high, False, True))
            inside = self.normal(substitute(term, {index: variable(own)}))
            found = self._closed(own, first, last, inside)
        key = node.op, index, term, first.key, last.key
        ends = self.node(first), self.node(last)
        return found or self.gen(key, make(node.op, index, *ends, term))

    def _closed(self, index: str, first: Ratio, last: Ratio, inside: Ratio) -> Ratio | None:
        own = self.atom(index, variable(index))
        bound = [i for i, atom in enumerate(self.atoms) if index in atom.free and i != own]
        slopes = {i: c for i in bound if (c := self._linear(i, own, index)) is not None}
        powers = [*slopes]
        if {*self.used(inside.top)} & {*bound} - {*powers}:
            return None
        below, lowest = inside.low, [min(int(e[i]) for e, _ in inside.low.terms()) for i in powers]
        for i, k in zip(powers, lowest, strict=True):
            below = below / self.ctx.gen(i) ** k
        if {*self.used(below)} & {own, *bound}:
            return None
        groups: dict[tuple[int, ...], dict[int, dict[Any, fmpq]]] = {}
        for exponents, c in inside.top.terms():
            key = tuple(int(exponents[i]) - k for i, k in zip(powers, lowest, strict=True))
            rest = tuple(0 if i == own or i in powers else int(e) for i, e in enumerate(exponents))
            groups.setdefault(key, {}).setdefault(int(exponents[own]), {})[rest] = c
        total, after = self.constant(0), self.add(last, self.constant(1))

        def raised(key: tuple[int, ...], to: Ratio) -> Ratio:
            found = self.constant(1)
            for i, k in zip(powers, key, strict=True):
                exponent = self.mul(self.mul(self.constant(k), slopes[i]), to)
                found = self.mul(found, self.power(self._bases[i][0], exponent))
            return found

        for key, degrees in groups.items():
            p = {d: self.ratio(self.ctx.from_dict(v), below) for d, v in degrees.items()}
            r = self._telescope(p, raised(key, self.constant(1)))
            for end, sign in ((after, 1), (first, -1)):
                at = self.constant(0)
                for d, c in r.items():
                    at = self.add(at, self.mul(c, self.pow(end, d)))
                total = self.add(total, self.mul(at, raised(key, end)), sign)
        return total

    def _linear(self, i: int, own: int, index: str) -> Ratio | None:
        """Return c if an atom is b^(c·index), with b and c independent of the index."""
        if i not in self._bases or index in self._bases[i][0].free:
            return None
        found = self.div(self._bases[i][1], Ratio(self.ctx.gen(own), self.one))
        inside = self.used(found.top, found.low)
        return None if any(index in self.atoms[j].free for j in inside) else found

    def _telescope(self, p: dict[int, Ratio], base: Ratio) -> dict[int, Ratio]:
        """Return the polynomial r with base·r(j + 1) − r(j) = p(j)."""
        flat = base.constant() == 1
        less = self.add(base, self.constant(1), -1)
        if not flat:
            self.facts.around(self.node(less))
        r: dict[int, Ratio] = {}
        for equation in range(max(p), -1, -1):
            rest = p.get(equation, self.constant(0))
            d = equation + 1 if flat else equation
            for e, c in r.items():
                shift = self.mul(self.constant(comb(e, equation)), self.mul(base, c))
                rest = self.add(rest, shift, -1)
            r[d] = self.div(rest, self.constant(d) if flat else less)
        return r

    def vanishes(self, a: Ratio) -> bool:
        """Whether a ratio is 0: as a polynomial, or as A + sB with A·B ≤ 0 and A² = s²B²."""
        if a.top.is_zero():
            return True
        for i in sorted(self._roots, reverse=True):
            parts = self.split(a.top, i)
            if {*parts} == {0, 1}:
                plain, rooted = parts[0], parts[1]
                square = self.ratio(plain**2 - rooted**2 * self._roots[i], self.one)
                sign = self.facts.sign(self._sum(plain) * self._sum(rooted))
                if sign is not None and sign[0] <= 0 and self.vanishes(square):
                    return True
        return False

    # --- signs
    def sign(self, a: Ratio) -> Sign:
        """Return the sign of a ratio by the coefficients of its factors."""
        if a.top.is_zero():
            return 0, False
        total, strict = 1, True
        for poly in a:
            scale, factors = poly.factor()
            total = -total if fmpq(scale) < 0 else total
            for factor, k in factors:
                found = self._spread(factor)
                if found is None and int(k) % 2:
                    return None
                side, never = found or (1, False)
                total *= side if int(k) % 2 else 1
                strict = strict and (never or poly is a.low)
        return total, strict

    def _spread(self, p: Any) -> Sign:
        """Return the sign of a polynomial from its coefficients in t ≥ 0."""
        plan: list[tuple[int, bool, bool, int]] = []
        done: set[int] = set()
        fixed = {i for i, atom in enumerate(self.atoms) if not atom.free}
        while waiting := [i for i in self.used(p) if i not in done | fixed]:
            i = max(waiting, key=lambda i: self.facts.places.get(self.name(i), -1))
            low, low_open, high, high_open = self._range(i)
            if low is None and high is None:
                return None
            plan.append((i, high_open if low is None else low_open, high is None or low is None
                         or high_open, int(p.degrees()[i])))  # fmt: skip
            p = self._put(p, i, low, high)
            done.add(i)
            if p.is_zero():
                return 0, False
            if len(p) > MOST_TERMS:
                return None
        signs = {self._coefficient(c, fixed) for c in self._grouped(p, fixed)}
        side = signs.pop()
        return None if signs or not side else (side, self._strict(p, plan))

    def _grouped(self, p: Any, fixed: set[int]) -> list[Any]:
        """Return the coefficients of the monomials in varying atoms: polynomials in constants."""
        found: dict[tuple[int, ...], dict[tuple[int, ...], fmpq]] = {}
        for powers, c in p.terms():
            key = tuple(0 if i in fixed else int(k) for i, k in enumerate(powers))
            rest = tuple(int(k) - j for k, j in zip(powers, key, strict=True))
            found.setdefault(key, {})[rest] = c
        return [self.ctx.from_dict(v) for v in found.values()]

    def _coefficient(self, c: Any, fixed: set[int]) -> int:
        if not {*self.used(c)} & fixed:
            return 1 if c.leading_coefficient() > 0 else -1
        with numbers.precision(256):
            low, high = Box({}, self.facts.budget)(self._sum(c))
        return 1 if low > 0 else -1 if high < 0 else 0

    def _strict(self, p: Any, plan: list[tuple[int, bool, bool, int]]) -> bool:
        """Whether a polynomial with coefficients of one sign is nowhere 0 on the domain."""
        if p.is_zero() or not plan:
            return not p.is_zero()
        (i, low_open, high_open, most), rest = plan[-1], plan[:-1]
        parts = {k: self._strict(c, rest) for k, c in self.split(p, i).items()}
        inner = parts.get(0, False) or (low_open and any(parts.values()))
        return inner and (high_open or parts.get(most, False))

    def name(self, i: int) -> str:
        """Return the name of an atom that is a variable, else an empty text."""
        return str(self.atoms[i].args[0]) if self.atoms[i].op == "var" else ""

    def _range(self, i: int) -> tuple[Ratio | None, bool, Ratio | None, bool]:
        v = self.facts.known.get(self.name(i))
        if v is not None:
            low, high = (None if e is None else self.normal(e) for e in (v.low, v.high))
            return low, v.low_open, high, v.high_open
        node = self.atoms[i]
        least, sign = self.facts.least(node), self.facts.sign(node)
        if least is None and sign is not None and sign[0] >= 0:
            least = fmpq(0)
        if least is None:
            return None, False, None, False
        strict = least == 0 and sign == (1, True)
        if least == 1 and node.op == "exp":
            strict = self.facts.positive(node.args[0])
        return self.constant(least), strict, None, True

    def _put(self, p: Any, i: int, low: Ratio | None, high: Ratio | None) -> Any:
        """Substitute (low + high t)/(1 + t), low + t or high − t, up to a positive factor."""
        t, one, end = self.ctx.gen(i), self.one, low or high
        assert end is not None
        if any(r is not None and not self.facts.positive(self._sum(r.low)) for r in (low, high)):
            raise NotProved("an end of a variable has a divisor without a sign")
        if low is not None and high is not None:
            top, below = low.top * high.low + high.top * low.low * t, low.low * high.low * (one + t)
        else:
            top, below = end.top + (t if low is not None else -t) * end.low, end.low
        parts = self.split(p, i)
        most = max(parts)
        return sum((c * top**k * below ** (most - k) for k, c in parts.items()), 0 * p)


_TREES = {
    "tree_mse": parse("(k - 1)*h**3/(1 - 1/k**h)"),
    "signed_tree_mse": parse("k*(1 - 1/k**2)*h**3/(2*(1 - 1/k**h))"),
}
"""Mean squared error over kʰ − 1 time steps of a tree, or (kʰ − 1)/2 of a signed one."""
_REWRITTEN = {
    name: parse(text)
    for name, text in {
        "log1p": "log(1 + x)",
        "expm1": "exp(x) - 1",
        "log2": "log(x)/log(2)",
        "tanh": "1 - 2/(exp(2*x) + 1)",
        "mills": "Phi(-x)*sqrt(2*pi())*exp(x*x/2)",
        "erf": "1 - erfc(x)",
    }.items()
}
