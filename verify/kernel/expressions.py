"""Formulas of claims: parsed into trees, and evaluated exactly or in balls.

A tree is a number, variable, text or list, a function of trees, or a mechanism with keyword
arguments. `sum(i, a, b, term)` and `product(i, a, b, term)` bind i. Equal trees are one object, so
a subformula that occurs many times is evaluated once. Python never executes a formula.

A name of `let` is replaced with its formula when a formula is parsed. So the free variables of a
formula are those of its tree. A variable or name may not be called like a function, constant or
mechanism.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from keyword import kwlist
from typing import Any

from flint import arb, ctx, fmpq

from . import notation, numbers
from .notation import signatures
from .numbers import MOST_BITS, Budget, NotProved, Number, TooFewDigits, Wrong, ball, whole

MOST_NODES = 4_000_000
"""Limit on the number of trees of one process."""
MOST_TERMS = 1_000_000
"""Limit on the terms of a sum or product."""
RELATIONS = {"LtE": "<=", "Lt": "<", "GtE": ">=", "Gt": ">", "Eq": "==", "NotEq": "!="}
ARITHMETIC = {"Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "Pow": "**"}
FOLDS = ("sum", "product")
_LEAVES = ("num", "var", "text", "list")
RELATED = ("add-remove", "replace-one")
QUESTIONS = (
    *("delta", "epsilon", "beta", "renyi", "rho", "mu", "max_loss", "loss_above"),
    *("total_variation", "variance", "mse", "quantile", "dimension"),
)
"""Quantities of mechanisms that a formula may contain; `questions` computes them."""


class Node:
    """A tree: an operation and its arguments. Equal trees are the same object."""

    __slots__ = ("args", "free", "op", "size")
    op: str
    args: tuple[Any, ...]
    free: frozenset[str]
    size: int

    def __repr__(self) -> str:
        return show(self)

    def __add__(self, other: Node) -> Node:
        return make("+", self, other)

    def __sub__(self, other: Node) -> Node:
        return make("-", self, other)

    def __mul__(self, other: Node) -> Node:
        return make("*", self, other)

    def __truediv__(self, other: Node) -> Node:
        return make("/", self, other)

    def __pow__(self, other: Node) -> Node:
        return make("**", self, other)


_KNOWN: dict[Any, Node] = {}


def make(op: str, *args: Any) -> Node:
    """Return the tree of an operation, simplified for small numbers and neutral elements."""
    if op in ARITHMETIC.values() and (easy := _simple(op, *args)) is not None:
        return easy
    key = (op, *(str(a) if isinstance(a, fmpq) else a for a in args))
    if key not in _KNOWN:
        node = Node()
        node.op, node.args = op, args
        inner = [a for a in args if isinstance(a, Node)]
        node.free = frozenset(args) if op == "var" else frozenset().union(*(a.free for a in inner))
        if op in FOLDS:
            node.free = args[3].free - {args[0]} | args[1].free | args[2].free
        node.size = min(1 + sum(child.size for child in inner), 1 << 60)
        if len(_KNOWN) > MOST_NODES:
            raise NotProved("its formulas are too large")
        _KNOWN[key] = node
    return _KNOWN[key]


def _simple(op: str, a: Node, b: Node) -> Node | None:
    x, y = (n.args[0] if n.op == "num" else None for n in (a, b))
    if x is not None and y is not None:
        small = max(int(v).bit_length() for v in (x.p, x.q, y.p, y.q)) < 512
        if op == "**" and (y.q != 1 or abs(y) > 64):
            small = False
        if small and not (not x and y < 0 and op == "**") and (y or op != "/"):
            found = BASIC[op](x, y)
            return number(found)
    if op == "+":
        return b if x == 0 else a if y == 0 else None
    if op == "*":
        return b if x == 1 else a if y == 1 else None
    return a if (op == "-" and y == 0) or (op in ("/", "**") and y == 1) else None


def number(x: Any) -> Node:
    """Return the tree of a rational number."""
    return make("num", x if isinstance(x, fmpq) else fmpq(x))


def variable(name: str) -> Node:
    """Return the tree of a variable."""
    return make("var", name)


def walk(*nodes: Node) -> list[Node]:
    """Return all subtrees, each once."""
    seen: dict[Node, None] = {}
    stack = [*nodes]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen[node] = None
            stack += [a for a in node.args if isinstance(a, Node)]
    return [*seen]


def substitute(node: Node, values: Mapping[str, Node]) -> Node:
    """Replace free variables with trees."""
    done: dict[Node, Node] = {}

    def work(n: Node) -> Node:
        if n.free.isdisjoint(values):
            return n
        if n not in done:
            if n.op == "var":
                done[n] = values[n.args[0]]
            elif n.op in FOLDS:
                index, low, high, term = n.args
                inner = {k: v for k, v in values.items() if k != index}
                done[n] = make(n.op, index, work(low), work(high), substitute(term, inner))
            else:
                done[n] = make(n.op, *(work(a) if isinstance(a, Node) else a for a in n.args))
        return done[n]

    return work(node)


def show(node: Node) -> str:
    """Return a text that parses to the same tree; bound variables are named _1, _2, …"""
    match node.op, node.args:
        case "num", (x,):
            return str(x) if x >= 0 and x.q == 1 else f"({x})"
        case "var", (name,):
            return str(name)
        case "text", (text,):
            return repr(text)
        case "list", entries:
            return f"[{', '.join(map(show, entries))}]"
        case ("+" | "-" | "*" | "/" | "**") as op, (a, b):
            return f"({show(a)} {op} {show(b)})"
        case name, (*args, tuple() as keys):
            given = [*[""] * (len(args) - len(keys)), *(f"{k}=" for k in keys)]
            return f"{name}({', '.join(k + show(a) for k, a in zip(given, args, strict=True))})"
    return f"{node.op}({', '.join(a if isinstance(a, str) else show(a) for a in node.args)})"


# --- reading ------------------------------------------------------------------------------------
def parse(text: object, field: str = "theorem", names: Mapping[str, Node] | None = None) -> Node:
    """Parse a formula, replacing `names` with their trees; raise Wrong(field, reason) on errors."""
    flat, tree = notation.syntax(text, field, "a formula")
    return _Reader(flat, field, names or {}).read(tree, {})


def comparison(
    text: object, field: str = "theorem.claim", names: Mapping[str, Node] | None = None
) -> tuple[Node, str, Node]:
    """Parse one comparison of two formulas."""
    flat, tree = notation.syntax(text, field, "a formula")
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        raise Wrong(field, "expected one comparison such as left <= right")
    relation = RELATIONS.get(type(tree.ops[0]).__name__)
    if relation is None:
        raise Wrong(field, "expected <=, <, >=, >, == or !=")
    reader = _Reader(flat, field, names or {})
    return reader.read(tree.left, {}), relation, reader.read(tree.comparators[0], {})


class _Reader:
    def __init__(self, text: str, field: str, names: Mapping[str, Node]) -> None:
        self.text, self.field, self.names = text, field, names

    def read(self, node: ast.AST, bound: Mapping[str, Node]) -> Node:
        match node:
            case ast.Constant(value=str() as words):
                return make("text", words)
            case ast.Constant(value=bool() | None):
                return make("text", str(node.value))
            case ast.Constant(value=int() | float()):
                segment = self.text[node.col_offset : node.end_col_offset]
                try:
                    return number(numbers.rational(segment.replace("_", "")))
                except ValueError as error:
                    raise Wrong(self.field, str(error)) from None
            case ast.Name(id=name):
                return bound.get(name) or self.names.get(name) or variable(name)
            case ast.List(elts=entries):
                return make("list", *(self.read(entry, bound) for entry in entries))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return ZERO - self.read(operand, bound)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.read(operand, bound)
            case ast.BinOp(left=left, op=op, right=right) if type(op).__name__ in ARITHMETIC:
                sides = self.read(left, bound), self.read(right, bound)
                return make(ARITHMETIC[type(op).__name__], *sides)
            case ast.Call(func=ast.Name(id=name)):
                return self.call(name, node, bound)
        raise Wrong(self.field, "expected arithmetic, a function of the table or a mechanism")

    def call(self, name: str, node: ast.Call, bound: Mapping[str, Node]) -> Node:
        """Parse a sum or product, a function, a quantity of a mechanism, or a mechanism."""
        keys = tuple(k.arg for k in node.keywords)
        if name in FOLDS:
            if len(node.args) != 4 or keys or not isinstance(node.args[0], ast.Name):
                raise Wrong(self.field, f"expected {name}(i, low, high, term)")
            own = node.args[0].id
            if not (own.startswith("_") and own[1:].isdecimal()):  # as `show` writes them
                allowed(own, self.field)
            if own in self.names or own in bound:
                raise Wrong(self.field, f"{name} binds {own}, which has a meaning already")
            fresh = f"_{len(bound) + 1}"
            low, high = (self.read(a, bound) for a in node.args[1:3])
            term = self.read(node.args[3], {**bound, own: variable(fresh)})
            texts = " ".join(n.args[0] for n in walk(term) if n.op == "text")
            if re.search(rf"\b{own}\b", texts) or (own in term.free and own[0] != "_"):
                raise Wrong(self.field, f"{name} binds {own}, which a name or text in it uses")
            return make(name, fresh, low, high, term)
        if name in _LEAVES:
            raise Wrong(self.field, f"{name} is no function")
        given = [self.read(a, bound) for a in [*node.args, *(k.value for k in node.keywords)]]
        if name in signatures() or name in QUESTIONS:
            if None in keys or len({*keys}) < len(keys):
                raise Wrong(self.field, "has arguments that are no expressions")
            return make(name, *given, keys)
        least, most = ARITY.get(name, (0, 9))  # others have no value here
        if keys or not least <= len(given) <= most:
            raise Wrong(self.field, f"{name[:40]!a} takes {least} to {most} arguments")
        return make(name, *given)


def allowed(name: str, field: str) -> str:
    """Return the name of a variable; raise Wrong if it is reserved or malformed."""
    taken = {*ARITY, *FOLDS, *signatures(), *kwlist, "adjacency", "inf", "nan", "oo"} - {"gamma"}
    if name in taken or name.startswith("_") or not name.isidentifier() or not name.isascii():
        raise Wrong(field, f"{name[:60]!a} cannot be the name of a variable")
    return name


def definitions(let: Mapping[str, str], known: Iterable[str], field: str) -> dict[str, Node]:
    """Return the trees of the names of `let`, which may use one another, but not in a cycle."""
    taken, found = {*known}, dict[str, Node]()
    waiting = {name: parse(text, f"{field}.{name}") for name, text in let.items()}
    for name, tree in waiting.items():
        if allowed(name, f"{field}.{name}") in taken:
            raise Wrong(f"{field}.{name}", "is a variable already")
        if any(used.startswith("_") for used in tree.free):  # the index of a sum around the name
            raise Wrong(f"{field}.{name}", "uses the index of a sum")
    while waiting:
        ready = [n for n, tree in waiting.items() if tree.free.isdisjoint(waiting)]
        if not ready:
            raise Wrong(f"{field}.{min(waiting)}", "is defined by itself")
        for name in ready:
            used = {n: found[n] for n in waiting.pop(name).free if n in found}
            found[name] = parse(let[name], f"{field}.{name}", used)
            if found[name].size > 1 << 50:
                raise NotProved("its formulas are too large")
    return found


def listed(theorem: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the listed values of variables, including those whose range is given in words."""
    ends, ranges = ("low", "above", "high", "below"), theorem["for_all"].items()
    words = {k: v["grid"] for k, v in ranges if all(v[end] is None for end in ends)}
    return {**theorem["where"], **words}


# --- values at points ---------------------------------------------------------------------------
def value(
    node: Node,
    budget: Budget,
    adjacency: str | None = None,
    lemmas: set[str] | None = None,
    at: Any = None,
) -> Number:
    """Return the value of a formula: exact if it is rational by arithmetic, else a ball.

    `at` maps variables to values. Names of lemmas that the value rests on are added to `lemmas`.
    Raises NotProved if the formula has no value, or the kernel cannot compute it.
    """
    return _Evaluation(budget, adjacency, set() if lemmas is None else lemmas, at or {}).known(node)


def values(nodes: Iterable[Node], budget: Budget, at: Mapping[str, Number]) -> list[Number]:
    """Return the values of formulas, with common subformulas evaluated once."""
    evaluation = _Evaluation(budget, None, set(), at)
    return [evaluation.known(node) for node in nodes]


def real(text: object, budget: Budget | None = None) -> Number:
    """Return the value of a formula without variables."""
    return value(parse(text), budget or Budget())


class _Evaluation:
    def __init__(self, budget: Budget, adjacency: str | None, lemmas: set[str], at: Any) -> None:
        self.budget, self.adjacency, self.lemmas, self.at = budget, adjacency, lemmas, at
        self.memo: dict[Node, Number] = {}

    def known(self, n: Node) -> Number:
        if n.op in ("num", "text"):
            return n.args[0] if n.op == "num" else numbers.rational(n.args[0])
        if n.op == "var":
            if n.args[0] not in self.at:
                raise Wrong("theorem", f"has no value for {n.args[0][:60]!a}")
            given: Number = self.at[n.args[0]]
            return given
        if n in self.memo:
            return self.memo[n]
        self.budget.check()
        try:
            found = self.apply(n)
        except ValueError as error:
            raise NotProved(str(error)) from None
        found = _short(found)
        if not isinstance(found, fmpq | arb) or (isinstance(found, arb) and found.is_nan()):
            raise TooFewDigits(f"{show(n)[:80]} has no value that balls can tell")
        if not any(name.startswith("_") for name in n.free):
            self.memo[n] = found
        return found

    def apply(self, n: Node) -> Number:
        if n.op in FOLDS:
            return self.fold(n)
        if n.op in QUESTIONS:
            return self.question(n)
        if n.op in BASIC:
            return BASIC[n.op](*map(self.known, n.args))
        from .functions import FUNCTIONS, written
        from .laws import resolve

        if n.op in FUNCTIONS:
            with numbers.precision(max(ctx.prec, 1024) if n.op[:6] == "round_" else ctx.prec):
                return FUNCTIONS[n.op](*map(self.known, n.args))

        def holds(*facts: tuple[Node, str, Node]) -> bool:
            return all(resolve(self.known(a), relation, self.known(b)) for a, relation, b in facts)

        if (form := written(n, holds)) is None:
            raise NotProved(f"the kernel does not compute {n.op[:40]!a}")
        return self.known(form)

    def fold(self, n: Node) -> Number:
        index, low, high, term = n.args
        first, last = _integer(self.known(low)), _integer(self.known(high))
        if last - first >= MOST_TERMS:
            raise NotProved(f"it has a {n.op} of more than {MOST_TERMS} terms")
        total: Number = fmpq(n.op == "product")
        before = self.at
        for i in range(first, last + 1):
            self.at = {**before, index: fmpq(i)}
            one = self.known(term)
            total = _short(total + one if n.op == "sum" else total * one)
            self.budget.check()
        self.at = before
        return total

    def question(self, n: Node) -> Number:
        from .questions import quantity

        given, word = question_parts(n, self.adjacency)
        exact = {k: number(v) for k, v in self.at.items() if isinstance(v, fmpq)}
        noise = substitute(given[0], exact)
        if noise.free:
            raise NotProved(f"{n.op} of a mechanism with an argument that is not rational")
        for inner in walk(noise):  # it rests on what they rest on
            if inner.op in QUESTIONS:
                self.known(inner)
        rest = [self.known(a) for a in given[1:]]
        found, rows = quantity(n.op, notation.parse(show(noise)), word, rest, self.budget)
        self.lemmas |= rows
        return found


def question_parts(question: Node, adjacency: str | None) -> tuple[list[Node], str | None]:
    """Return the mechanism and numbers of a quantity, and its adjacency."""
    *given, keys = question.args
    if keys:
        *given, last = given
        adjacency = str(last.args[0]) if last.op == "text" else None
    if not given or keys not in ((), ("adjacency",)) or (keys and adjacency not in RELATED):
        words = " or ".join(RELATED)
        raise Wrong("theorem", f"expected {question.op}(mechanism, …, adjacency={words})")
    return given, adjacency


def _short(x: Number) -> Number:
    """Return a number, or a ball around it if it is exact and too long."""
    long = isinstance(x, fmpq) and max(int(x.p).bit_length(), int(x.q).bit_length()) > MOST_BITS
    return ball(x) if long else x


def _integer(x: Number) -> int:
    if not isinstance(x, fmpq) or x.q != 1:
        raise NotProved("it has a sum whose ends are no integers")
    return int(x.p)


def _log(x: Number, base: Number | None = None) -> Number:
    return numbers.log(x) if base is None else numbers.divide(numbers.log(x), numbers.log(base))


BASIC: dict[str, Callable[..., Number]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": numbers.divide,
    "**": numbers.power,
    "sqrt": numbers.sqrt,
    "exp": numbers.exp,
    "log": _log,
    "pi": arb.pi,
    "abs": abs,
    "min": lambda *values: -numbers.maximum([-x for x in values]),
    "max": lambda *values: numbers.maximum([*values]),
    "floor": lambda x: fmpq(whole(x)),
}
"""Arithmetic and the most common functions; `functions` has all others."""
ONE_ARGUMENT = (
    "sqrt exp expm1 log1p log2 sin cos sinh tanh gamma lgamma erf erfc Phi Phi_inverse mills abs"
    " floor ceil float"
)
ARITY = {
    **dict.fromkeys(ONE_ARGUMENT.split(), (1, 1)),
    **dict.fromkeys(("round_up", "round_down", "log", "harmonic"), (1, 2)),
    **dict.fromkeys(("min", "max"), (1, 1000)),
    **dict.fromkeys(("gamma_upper", "binomial"), (2, 2)),
    "beta_lower": (3, 3),
    "r1smg_sigma_star": (4, 4),
    "pi": (0, 0),
}
"""Function → least and largest number of arguments."""
ZERO, ONE = number(0), number(1)
