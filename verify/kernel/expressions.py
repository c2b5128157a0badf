"""The language of claims: read into trees, evaluated exactly or in balls, differentiated.

A tree is a number, a variable, a text, a list, a function of trees, or a mechanism with named
arguments. `sum(i, a, b, term)` and `product(i, a, b, term)` bind i. Equal trees are one object, so
that a formula which uses a name sixty times is computed once. Nothing is ever evaluated by Python.

A name of `let` stands for its formula, put in its place: there are no scopes, and which variables a
formula sees is the set `free` of its tree. A name may not be that of a function, constant or
mechanism.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from math import comb
from typing import Any

from flint import arb, ctx, fmpq

from . import numbers
from .notation import Noise, signatures
from .numbers import MOST_BITS, Budget, NotProved, Number, TooFewDigits, Wrong, ball, whole

MOST_NODES = 200_000
"""Of one formula."""
MOST_TERMS = 1_000_000
"""Of a sum or product."""
RELATIONS = {"LtE": "<=", "Lt": "<", "GtE": ">=", "Gt": ">", "Eq": "==", "NotEq": "!="}
OPPOSITE = {"<=": ">", "<": ">=", ">=": "<", ">": "<=", "==": "!=", "!=": "=="}
ARITHMETIC = {"Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "Pow": "**"}
FOLDS = ("sum", "product")
QUESTIONS = (
    *("delta", "epsilon", "beta", "renyi", "rho", "mu", "max_loss", "loss_above"),
    *("total_variation", "variance", "mse", "quantile", "dimension"),
)
OTHERS = (
    *("ellipse_defects", "r1smg_sigma_star", "honaker_mse", "count_noise_delta", "float"),
    *("count_noise_optimal_delta", "optimal_count_delta", "optimal_count_true_delta"),
    *("count_noise_weight", "count_noise_mass", "lambert_w"),
    *(
        f"tree_{what}"
        for what in ["mse", "height", "load", "terms", "live", "gaps", "misfits", "clashes"]
    ),
    *(
        f"signed_tree_{what}"
        for what in ["mse", "height", "load", "terms", "live", "gaps", "misfits", "clashes"]
    ),
)
"""Functions that the prover's accountant has and the kernel has not: they prove nothing here."""


class Node:
    """A tree: an operation and what it is applied to. Equal trees are the same object."""

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
    """Return the tree of an operation; arithmetic with 0 and 1 and of small numbers is done."""
    if op in ("+", "-", "*", "/", "**") and (easy := _simple(op, *args)) is not None:
        return easy
    key = (op, *(str(a) if isinstance(a, fmpq) else a for a in args))
    if key not in _KNOWN:
        node = Node()
        node.op, node.args = op, args
        inner = children(node)
        node.free = frozenset().union(*(child.free for child in inner))
        if op == "var":
            node.free = frozenset(args)
        elif op in FOLDS:
            node.free = args[3].free - {args[0]} | args[1].free | args[2].free
        node.size = min(1 + sum(child.size for child in inner), 1 << 60)
        if len(_KNOWN) > 20 * MOST_NODES:
            raise NotProved("its formulas are too large")
        _KNOWN[key] = node
    return _KNOWN[key]


def _simple(op: str, a: Node, b: Node) -> Node | None:
    x = a.args[0] if a.op == "num" else None
    y = b.args[0] if b.op == "num" else None
    if x is not None and y is not None and max(a.size, b.size) == 1:
        if op == "**" and (y.q != 1 or abs(y) > 64 or (y < 0 and not x)):
            return None
        if op == "/" and not y:
            return None
        if max(int(v).bit_length() for v in (x.p, x.q, y.p, y.q)) < 512:
            work = {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "/": lambda: x / y}
            return number(work[op]() if op in work else numbers.power(x, y))
    if op == "+":
        return b if x == 0 else a if y == 0 else None
    if op == "-" and y == 0:
        return a
    if op == "*":
        return b if x == 1 else a if y == 1 else None
    return a if op in ("/", "**") and y == 1 else None


def number(x: Any) -> Node:
    """Return the tree of a rational number."""
    return make("num", x if isinstance(x, fmpq) else fmpq(x))


def variable(name: str) -> Node:
    """Return the tree of a variable."""
    return make("var", name)


def children(node: Node) -> tuple[Node, ...]:
    """Return the trees directly inside."""
    return tuple(a for a in node.args if isinstance(a, Node))


ZERO, ONE = number(0), number(1)


def walk(*nodes: Node) -> list[Node]:
    """Return every tree inside, each once."""
    seen: dict[Node, None] = {}
    stack = [*nodes]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen[node] = None
            stack += children(node)
    return [*seen]


def substitute(node: Node, values: Mapping[str, Node]) -> Node:
    """Put trees in the place of variables (not of those that a sum inside binds)."""
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
    """Return a text that reads back as the same tree (bound variables have names like _1)."""
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
        case name, args if isinstance(args[-1] if args else 0, tuple):
            given = [*[""] * (len(args) - 1 - len(args[-1])), *(f"{k}=" for k in args[-1])]
            return f"{name}({', '.join(k + show(a) for k, a in zip(given, args, strict=False))})"
    return f"{node.op}({', '.join(a if isinstance(a, str) else show(a) for a in node.args)})"


# --- reading ------------------------------------------------------------------------------------
def parse(text: object, field: str = "theorem", names: Mapping[str, Node] | None = None) -> Node:
    """Read a formula; `names` stand for their trees. Raise Wrong(field, reason) for what is none."""
    return _read(_syntax(text, field), str(text).strip(), field, names or {}, {})


def comparison(
    text: object, field: str = "theorem.claim", names: Mapping[str, Node] | None = None
) -> tuple[Node, str, Node]:
    """Read one comparison of two formulas."""
    tree, source = _syntax(text, field), str(text).strip()
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        raise Wrong(field, "expected one comparison such as left <= right")
    relation = RELATIONS.get(type(tree.ops[0]).__name__)
    if relation is None:
        raise Wrong(field, "expected <=, <, >=, >, == or !=")
    sides = (_read(n, source, field, names or {}, {}) for n in (tree.left, tree.comparators[0]))
    left, right = sides
    return left, relation, right


def _syntax(text: object, field: str) -> ast.expr:
    flat = str(text).strip()
    if len(flat) > 100_000 or not flat.isascii():
        raise Wrong(field, "expected a formula in ASCII, of up to 100000 characters")
    try:
        return ast.parse(flat.replace("\n", " "), mode="eval").body
    except (SyntaxError, ValueError):
        raise Wrong(field, f"expected a formula, not {flat[:60]!a}") from None
    except (RecursionError, MemoryError):
        raise Wrong(field, "is nested too deeply") from None


def _read(
    node: ast.AST, text: str, field: str, names: Mapping[str, Node], bound: Mapping[str, Node]
) -> Node:
    def inner(n: ast.AST) -> Node:
        return _read(n, text, field, names, bound)

    match node:
        case ast.Constant(value=str() as words):
            return make("text", words)
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            segment = ast.get_source_segment(text.replace("\n", " "), node) or ""
            try:
                return number(numbers.rational(segment.replace("_", "")))
            except ValueError as error:
                raise Wrong(field, str(error)) from None
        case ast.Constant(value=bool() | None):
            return make("text", str(node.value))
        case ast.Name(id=name):
            return bound[name] if name in bound else names.get(name) or variable(name)
        case ast.List(elts=entries):
            return make("list", *map(inner, entries))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ZERO - inner(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return inner(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op).__name__ in ARITHMETIC:
            return make(ARITHMETIC[type(op).__name__], inner(left), inner(right))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            if name in FOLDS:
                if len(args) != 4 or keywords or not isinstance(args[0], ast.Name):
                    raise Wrong(field, f"expected {name}(i, low, high, term)")
                own = allowed(args[0].id, field)
                if own in names or own in bound:
                    raise Wrong(field, f"{name} binds {own}, which has a meaning already")
                fresh = f"_{len(bound) + 1}"
                term = _read(args[3], text, field, names, {**bound, own: variable(fresh)})
                return make(name, fresh, inner(args[1]), inner(args[2]), term)
            if any(k.arg is None for k in keywords):
                raise Wrong(field, "has arguments that are no expressions")
            given = [inner(a) for a in args] + [inner(k.value) for k in keywords]
            if name in signatures() or name in QUESTIONS:
                return make(name, *given, tuple(k.arg for k in keywords))
            least, most = ARITY.get(name, (0, 9) if name in OTHERS else (0, -1))
            if keywords or not least <= len(args) <= most:
                known = f"{name} takes {least} to {most} arguments" if most >= 0 else ""
                raise Wrong(field, known or f"has no function {name[:60]!a}")
            return make(name, *given)
    raise Wrong(field, "expected arithmetic, a function of the table or a mechanism")


def allowed(name: str, field: str) -> str:
    """Return a name of a variable; raise Wrong for that of a function, constant or mechanism."""
    taken = {*ARITY, *FOLDS, *OTHERS, *signatures(), "inf", "nan", "oo"}
    if name in taken or name.startswith("_") or not name.isidentifier() or not name.isascii():
        raise Wrong(field, f"{name[:60]!a} cannot be the name of a variable")
    return name


def definitions(let: Mapping[str, str], known: Iterable[str], field: str) -> dict[str, Node]:
    """Return the trees of the names of `let`, which may use one another but not in a circle."""
    found: dict[str, Node] = {}
    raw = {name: parse(text, f"{field}.{name}") for name, text in let.items()}
    for name in raw:
        if allowed(name, f"{field}.{name}") in known:
            raise Wrong(f"{field}.{name}", "is a variable already")
    waiting = dict(raw)
    while waiting:
        ready = [n for n, tree in waiting.items() if tree.free.isdisjoint(waiting)]
        if not ready:
            raise Wrong(f"{field}.{min(waiting)}", "is defined by itself")
        for name in ready:
            found[name] = substitute(waiting.pop(name), found)
            if found[name].size > 1 << 50:
                raise NotProved("its formulas are too large")
    return found


# --- values at points ---------------------------------------------------------------------------
def value(
    node: Node,
    budget: Budget,
    adjacency: str | None = None,
    lemmas: set[str] | None = None,
    at: Mapping[str, Number] | None = None,
) -> Number:
    """Return the value of a formula: exact where arithmetic keeps it so, else a ball.

    Raises NotProved for what has no value, or whose value the kernel cannot compute.
    """
    memo: dict[Node, Number] = {}
    env: dict[str, Number] = dict(at or {})

    def known(n: Node) -> Number:
        if n.op == "num":
            return n.args[0]
        if n.op == "text":
            return numbers.rational(n.args[0])
        if n.op == "var":
            if n.args[0] not in env:
                raise Wrong("theorem", f"has no value for {n.args[0][:60]!a}")
            return env[n.args[0]]
        if n in memo:
            return memo[n]
        budget.check()
        found = apply(n)
        if isinstance(found, fmpq):
            if max(int(found.p).bit_length(), int(found.q).bit_length()) > MOST_BITS:
                found = ball(found)
        elif not isinstance(found, arb) or found.is_nan():
            raise TooFewDigits(f"{show(n)[:80]} has no value that balls can tell")
        if not any(name.startswith("_") for name in n.free):
            memo[n] = found
        return found

    def apply(n: Node) -> Number:
        if n.op in FOLDS:
            index, low, high, term = n.args
            first, last = whole(known(low)), whole(known(high))
            if last - first >= MOST_TERMS:
                raise NotProved(f"it has a {n.op} of more than {MOST_TERMS} terms")
            total: Number = fmpq(0) if n.op == "sum" else fmpq(1)
            before = env.get(index)
            for i in range(first, last + 1):
                env[index] = fmpq(i)
                total = total + known(term) if n.op == "sum" else total * known(term)
            if before is not None:
                env[index] = before
            return total
        if n.op in QUESTIONS:
            return question(n)
        if n.op == "count_noise_delta" and len(n.args) == 3:
            from .lemmas import count_noise

            ratio, eta, support = map(known, n.args)
            return count_noise(ratio, eta, whole(support))[0]
        if n.op in ("round_up", "round_down"):
            with numbers.precision(max(ctx.prec, 1024)):
                return _rounded(n.op, *map(known, n.args))
        if n.op not in FUNCTIONS:
            raise NotProved(f"the kernel does not compute {n.op[:40]!a}")
        try:
            return FUNCTIONS[n.op](*(known(a) for a in n.args))
        except ValueError as error:
            raise NotProved(str(error)) from None

    def question(n: Node) -> Number:
        try:
            from .quantities import quantity
        except ImportError:
            raise NotProved(f"the kernel does not compute {n.op}") from None
        *given, keys = n.args
        named = dict(zip(keys, given[len(given) - len(keys) :], strict=True))
        plain = given[: len(given) - len(keys)]
        relation = named.pop("adjacency", None)
        if named or not plain:
            raise Wrong("theorem", f"expected {n.op}(mechanism, …, adjacency=…)")
        word = adjacency if relation is None else relation.args[0]
        found = quantity(n.op, tree(plain[0]), word, [known(a) for a in plain[1:]], budget)
        if lemmas is not None:
            lemmas.update(found.lemmas)
        return found.value

    def tree(n: Node) -> Any:
        if n.op == "text":
            return n.args[0]
        if n.op == "list":
            return [tree(entry) for entry in n.args]
        if n.op in signatures():
            *given, keys = n.args
            own = [*signatures()[n.op]]
            if len(given) > len(own) or not {*keys} <= {*own}:
                raise Wrong("theorem", f"has arguments that {n.op} has not")
            count = len(given) - len(keys)
            found = {k: tree(a) for k, a in zip([*own[:count], *keys], given, strict=True)}
            if missing := [
                k for k, d in signatures()[n.op].items() if d is None and k not in found
            ]:
                raise Wrong("theorem", f"{n.op} needs {missing[0]}")
            defaults = signatures()[n.op]
            return Noise(n.op, {k: found.get(k, defaults[k]) for k in own})
        found_value = known(n)
        return str(found_value) if isinstance(found_value, fmpq) else show(n)

    return known(node)


def _rounded(op: str, x: Number, digits: Number = fmpq(40)) -> Number:
    """Return the nearest decimal of so many significant digits on one side of x."""
    places = whole(digits)
    if not 1 <= places <= 10_000:
        raise NotProved("it rounds to too many digits")
    if isinstance(x, fmpq) and not x:
        return x
    size = abs(ball(x))
    if not size > 0 or abs(size.log()) > 1 << 20:
        raise TooFewDigits("a number that is rounded is too near 0")
    shift = places - 1 - whole((size.log() / arb(10).log()).floor())
    scaled = x * (fmpq(10) ** shift if shift >= 0 else 1 / fmpq(10) ** -shift)
    n = -whole(-scaled) if op == "round_up" else whole(scaled)
    return fmpq(n) * fmpq(10) ** -shift if shift <= 0 else fmpq(n) / fmpq(10) ** shift


def _two(x: Number, base: Number | None = None) -> Number:
    return numbers.log(x) if base is None else numbers.divide(numbers.log(x), numbers.log(base))


def _balls(function: Callable[..., arb]) -> Callable[..., Number]:
    return lambda *values: function(*map(ball, values))


def _count(x: Number) -> int:
    found = whole(x)
    if not isinstance(x, fmpq) or x.q != 1 or not 0 <= found <= MOST_TERMS:
        raise NotProved("it asks for a count that is no integer from 0 to 10^6")
    return found


def _binomial(n: Number, k: Number) -> Number:
    if _count(n) > 20_000:
        raise NotProved("it has a binomial coefficient of more than 20000")
    return fmpq(comb(_count(n), _count(k)))


def _harmonic(count: Number, order: Number = fmpq(1)) -> Number:
    return sum((ball(i) ** -ball(order) for i in range(1, _count(count) + 1)), start=arb(0))


def normal_cdf(x: arb) -> arb:
    """Return Φ(x)."""
    return (-x / arb(2).sqrt()).erfc() / 2


def mills(x: arb) -> arb:
    """Return Φ(−x)/φ(x)."""
    half = x * x / 2
    if x > 1:
        return half.hypgeom_u(arb(1) / 2, arb(1) / 2) / arb(2).sqrt()
    return (arb.pi() / 2).sqrt() * half.exp() * (x / arb(2).sqrt()).erfc()


def quantile(p: arb) -> arb:
    """Return Φ⁻¹(p): a bracket, halved until balls cannot tell."""
    if not (p > 0 and p < 1):
        raise TooFewDigits("Phi_inverse is asked beyond 0 and 1")
    if p > arb("0.5"):
        return -quantile(1 - p)
    low, high = arb(-1), arb("0.5")
    while not normal_cdf(low) < p:
        low *= 2
        if low < -(1 << 20):
            raise TooFewDigits("Phi_inverse of a number too near 0")
    if not normal_cdf(high) > p:
        raise TooFewDigits("Phi_inverse of a number that is not known well")
    for _ in range(2 * ctx.prec):
        middle = ((low + high) / 2).mid()
        if normal_cdf(middle) < p:
            low = middle
        elif normal_cdf(middle) > p:
            high = middle
        else:
            break
    return low.union(high)


def _where(gap: Number, low: Number, high: Number) -> Number:
    """Return `low` where gap ≤ 0, else `high`."""
    found = numbers.compare(gap, "<=", fmpq(0))
    return ball(low).union(ball(high)) if found is None else low if found else high


def _least(*values: Number) -> Number:
    return -numbers.maximum([-x for x in values])


FUNCTIONS: dict[str, Callable[..., Number]] = {
    "+": numbers.add,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": numbers.divide,
    "**": numbers.power,
    "sqrt": numbers.sqrt,
    "exp": numbers.exp,
    "expm1": _balls(arb.expm1),
    "log": _two,
    "log1p": _balls(arb.log1p),
    "log2": lambda x: numbers.divide(numbers.log(x), arb(2).log()),
    "sin": _balls(arb.sin),
    "cos": _balls(arb.cos),
    "tanh": _balls(arb.tanh),
    "gamma": _balls(arb.gamma),
    "lgamma": _balls(arb.lgamma),
    "erf": _balls(arb.erf),
    "erfc": _balls(arb.erfc),
    "Phi": _balls(normal_cdf),
    "Phi_inverse": _balls(quantile),
    "mills": _balls(mills),
    "gamma_upper": _balls(lambda a, x: x.gamma_upper(a, regularized=1)),
    "beta_lower": _balls(lambda a, b, x: x.beta_lower(a, b, regularized=True)),
    "lambert_w": _balls(lambda x: x.lambertw()),
    "pi": arb.pi,
    "abs": abs,
    "min": _least,
    "max": lambda *values: numbers.maximum([*values]),
    "floor": lambda x: fmpq(whole(x)),
    "ceil": lambda x: fmpq(-whole(-x)),
    "binomial": _binomial,
    "harmonic": _harmonic,
    "where": _where,
}
ARITY = {
    **dict.fromkeys(FUNCTIONS.keys() - set(["+", "-", "*", "/", "**", "where"]), (1, 1)),
    **dict.fromkeys(("round_up", "round_down", "log", "harmonic"), (1, 2)),
    **dict.fromkeys(("min", "max"), (1, 1000)),
    **dict.fromkeys(("gamma_upper", "binomial"), (2, 2)),
    "beta_lower": (3, 3),
    "pi": (0, 0),
}
"""How many arguments each function takes."""


# --- derivatives --------------------------------------------------------------------------------
def derivative(node: Node, name: str) -> Node:
    """Return ∂/∂name of a formula, where it is differentiable; raise NotProved where unknown."""
    if name not in node.free:
        return ZERO
    op, args = node.op, node.args
    if op == "var":
        return ONE
    if op == "sum" and name not in args[1].free | args[2].free:
        return make("sum", args[0], args[1], args[2], derivative(args[3], name))
    if not all(isinstance(a, Node) for a in args):
        raise NotProved(f"the kernel has no derivative of {op}")
    x = args[0]
    if op in ("+", "-"):
        return make(op, derivative(x, name), derivative(args[1], name))
    if op in ("*", "/") and name not in args[1].free:
        return make(op, derivative(x, name), args[1])
    if op == "*" and name not in x.free:
        return x * derivative(args[1], name)
    if op == "*":
        return derivative(x, name) * args[1] + x * derivative(args[1], name)
    if op == "/":
        top = derivative(x, name) - node * derivative(args[1], name)
        return top / args[1]
    if op == "**":
        base, power = args
        if name not in power.free:
            return power * base ** (power - ONE) * derivative(base, name)
        slope = derivative(power, name) * make("log", base)
        if name in base.free:
            slope = slope + power * derivative(base, name) / base
        return node * slope
    gauss = make("exp", ZERO - x * x)
    two_pi = make("sqrt", number(2) * make("pi"))
    known = {
        "sqrt": lambda: ONE / (number(2) * node),
        "exp": lambda: node,
        "expm1": lambda: make("exp", x),
        "log": lambda: ONE / x,
        "log1p": lambda: ONE / (ONE + x),
        "log2": lambda: ONE / (x * make("log", number(2))),
        "sin": lambda: make("cos", x),
        "cos": lambda: ZERO - make("sin", x),
        "tanh": lambda: ONE - node * node,
        "erf": lambda: number(2) * gauss / make("sqrt", make("pi")),
        "erfc": lambda: number(-2) * gauss / make("sqrt", make("pi")),
        "Phi": lambda: make("exp", ZERO - x * x / number(2)) / two_pi,
        "mills": lambda: x * node - ONE,
    }
    if op not in known or len(args) != 1:
        raise NotProved(f"the kernel has no derivative of {op}")
    return known[op]() * derivative(x, name)
