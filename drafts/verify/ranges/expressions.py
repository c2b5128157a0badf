"""The claim language as small expression trees: parsed with bounds, never evaluated by Python.

A node is a number, a variable, a text, a list, an application of an operator, function, question
or mechanism, or a sum or product with a bound index. Index variables are renamed by their depth,
so that they never meet a variable of the claim.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias, final

_LONGEST: Final = 100_000
_LARGEST_EXPONENT: Final = 100_000
_DEEPEST: Final = 60
"""Brackets within brackets; a chain of operators is no nesting."""
_MOST_PARTS: Final = 100_000
"""Of an expression, after names are put in, which may double it at each step."""
_OPERATORS: Final[dict[type[ast.operator], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**",
}  # fmt: skip
_RELATIONS: Final[dict[type[ast.cmpop], str]] = {
    ast.LtE: "<=", ast.Lt: "<", ast.GtE: ">=", ast.Gt: ">", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
NEGATION: Final = {"<=": ">", "<": ">=", ">=": "<", ">": "<=", "==": "!=", "!=": "=="}
OPPOSITE: Final = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "==": "==", "!=": "!="}


class ProofError(Exception):
    """A proof that does not go through; the message says where."""


class OutOfTimeError(ProofError):
    """A proof that was not finished."""


@final
class Budget:
    """What a proof may still spend: seconds and steps."""

    def __init__(self, seconds: float = 60.0, steps: int = 2_000_000) -> None:
        self._end = time.monotonic() + seconds
        self._steps = steps

    def spend(self, steps: int = 1) -> None:
        """Count steps; raise ProofError where nothing is left."""
        self._steps -= steps
        if self._steps < 0 or time.monotonic() > self._end:
            raise OutOfTimeError("the proof takes more time or steps than it may")


def _binary(name: str, *, turned: bool = False) -> Callable[[Any, Any], Node]:
    return lambda one, two: _applied(name, two, one) if turned else _applied(name, one, two)


class Arithmetic:
    """Operators on expressions; a 0 that is added and a factor of 1 are not written down."""

    __slots__ = ()

    __add__, __radd__ = _binary("+"), _binary("+", turned=True)
    __sub__, __rsub__ = _binary("-"), _binary("-", turned=True)
    __mul__, __rmul__ = _binary("*"), _binary("*", turned=True)
    __truediv__, __rtruediv__ = _binary("/"), _binary("/", turned=True)
    __pow__ = _binary("**")

    def __neg__(self) -> Node:
        return _applied("*", -1, self)


def _applied(name: str, left: Any, right: Any) -> Node:
    left, right = (number(x) if isinstance(x, (int, Fraction)) else x for x in (left, right))
    if right == {"+": ZERO, "-": ZERO, "*": ONE}.get(name):
        return left  # type: ignore[no-any-return]  # a node by now
    if left == {"+": ZERO, "*": ONE}.get(name):
        return right  # type: ignore[no-any-return]
    return Apply(name, (left, right))


@final
@dataclass(frozen=True, slots=True)
class Number(Arithmetic):
    """A rational number."""

    value: Fraction


@final
@dataclass(frozen=True, slots=True)
class Name(Arithmetic):
    """A variable."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class Text(Arithmetic):
    """A quoted text, True, False or None: an argument of a mechanism."""

    value: str | bool | None


@final
@dataclass(frozen=True, slots=True)
class Entries(Arithmetic):
    """A list: an argument of a mechanism."""

    items: tuple[Node, ...]


@final
@dataclass(frozen=True, slots=True)
class Apply(Arithmetic):
    """An operator (+ - * / **), function, question or mechanism with its arguments."""

    name: str
    arguments: tuple[Node, ...]
    named: tuple[tuple[str, Node], ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Fold(Arithmetic):
    """sum(index, low, high, term) or product(…): over the integers from low to high."""

    name: str
    index: str
    low: Node
    high: Node
    term: Node


Node: TypeAlias = Number | Name | Text | Entries | Apply | Fold


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """left relation right."""

    left: Node
    relation: str
    right: Node


ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))


def number(value: Fraction | int) -> Number:
    """Return a number as a node."""
    return Number(Fraction(value))


def parse(text: object) -> Node:
    """Parse an expression; raise ProofError for anything outside the language."""
    source = _source(text)
    tree = _tree(source)
    return _read(tree, source.encode(), {}, 0)


def comparison(text: object) -> Comparison:
    """Parse one comparison."""
    left, relation, right = split(text)
    return Comparison(parse(left), relation, parse(right))


def split(text: object) -> tuple[str, str, str]:
    """Split "left <= right" into its sides and the relation."""
    source = _source(text)
    tree = _tree(source)
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        raise ProofError(f"expected one comparison, not {source[:80]!r}")
    relation = _RELATIONS.get(type(tree.ops[0]))
    if relation is None:
        raise ProofError(f"expected one of {', '.join(NEGATION)} in {source[:80]!r}")
    left, right = (ast.get_source_segment(source, n) for n in (tree.left, *tree.comparators))
    return left or "", relation, right or ""


def _source(text: object) -> str:
    if isinstance(text, int) and not isinstance(text, bool):
        text = str(text)
    if not isinstance(text, str) or len(text) > _LONGEST or not text.strip():
        raise ProofError(f"expected an expression, not {str(text)[:80]!r}")
    return " ".join(text.strip().splitlines())


def _tree(source: str) -> ast.expr:
    try:
        return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ProofError(f"{source[:80]!r} is not an expression") from None


def _read(node: ast.expr, source: bytes, bound: Mapping[str, str], depth: int) -> Node:
    if depth > _DEEPEST:
        raise ProofError("an expression is nested too deeply")
    match node:
        case ast.Constant(value=(bool() | None | str()) as value):
            return Text(value)
        case ast.Constant(value=int() | float()):
            return Number(_decimal(source[node.col_offset : node.end_col_offset].decode()))
        case ast.Name(id=name):
            return Name(bound.get(name, name))
        case ast.List(elts=entries):
            return Entries(tuple(_read(entry, source, bound, depth + 1) for entry in entries))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _read(operand, source, bound, depth + 1)
            if isinstance(inner, Number):
                return Number(-inner.value)
            return -inner
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _read(operand, source, bound, depth + 1)
        case ast.BinOp():
            chain = [node]
            while isinstance(chain[-1].left, ast.BinOp):
                chain.append(chain[-1].left)
            result = _read(chain[-1].left, source, bound, depth + 1)
            for step in reversed(chain):
                sign = _OPERATORS.get(type(step.op))
                if sign is None:
                    raise ProofError(f"{ast.unparse(step)[:60]!r} is not in the language")
                result = _operator(sign, (result, _read(step.right, source, bound, depth + 1)))
            return result
        case ast.Call(func=ast.Name(id="sum" | "product" as name), keywords=[]):
            match node.args:
                case [ast.Name(id=index), low, high, term]:
                    fresh = f"{index}#{len(bound)}"
                    ends = [_read(end, source, bound, depth + 1) for end in (low, high)]
                    inner = _read(term, source, {**bound, index: fresh}, depth + 1)
                    return Fold(name, fresh, ends[0], ends[1], inner)
        case ast.Call(func=ast.Name(id=name)):
            values = tuple(_read(value, source, bound, depth + 1) for value in node.args)
            keys = [keyword.arg for keyword in node.keywords]
            if None in keys or len(set(keys)) < len(keys):
                raise ProofError(f"an argument of {name} is given twice")
            named = ((str(k.arg), _read(k.value, source, bound, depth + 1)) for k in node.keywords)
            return Apply(name, values, tuple(named))
    raise ProofError(f"{ast.unparse(node)[:60]!r} is not in the language")


def _decimal(text: str) -> Fraction:
    digits, _, exponent = text.lower().replace("_", "").partition("e")
    try:
        if exponent and abs(int(exponent)) > _LARGEST_EXPONENT:
            raise ProofError(f"the exponent of {text[:40]!r} is too large")
        return Fraction(f"{digits}e{exponent}" if exponent else digits)
    except ValueError:
        raise ProofError(f"{text[:40]!r} is not a number") from None


def _operator(name: str, sides: tuple[Node, ...]) -> Node:
    """Fold the quotient of two numbers, so that 5/4 is one number."""
    match sides:
        case (Number(value=x), Number(value=y)) if name == "/" and y:
            return Number(x / y)
    return Apply(name, sides)


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below."""
    match node:
        case Apply(arguments=arguments, named=named):
            return (*arguments, *(value for _, value in named))
        case Fold(low=low, high=high, term=term):
            return (low, high, term)
        case Entries(items=items):
            return items
    return ()


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def bounded(node: Node) -> Node:
    """Return a node; raise ProofError where it has so many parts that a look at all takes long."""
    waiting, count = [node], 0
    while waiting:
        count += 1
        if count > _MOST_PARTS:
            raise ProofError("an expression is too large")
        waiting += children(waiting.pop())
    return node


def free(node: Node) -> frozenset[str]:
    """Return the names of the free variables."""
    match node:
        case Name(name=name):
            return frozenset([name])
        case Fold(index=index, low=low, high=high, term=term):
            return free(low) | free(high) | (free(term) - {index})
    return frozenset().union(*(free(child) for child in children(node)))


def _inside(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a node with a change of what is directly below it, outside of sums."""
    match node:
        case Apply(name=name, arguments=arguments, named=named):
            kept = tuple((key, change(value)) for key, value in named)
            return Apply(name, tuple(map(change, arguments)), kept)
        case Entries(items=items):
            return Entries(tuple(map(change, items)))
    return node


def substitute(node: Node, values: Mapping[str, Node]) -> Node:
    """Replace free variables by nodes."""
    if not values:
        return node
    match node:
        case Name(name=name):
            return values.get(name, node)
        case Fold(name=name, index=index, low=low, high=high, term=term):
            inner = {key: value for key, value in values.items() if key != index}
            if any(index in free(value) for key, value in inner.items() if key in free(term)):
                raise ProofError(f"the index {index.split('#')[0]} would be captured")
            ends = substitute(low, values), substitute(high, values)
            return Fold(name, index, *ends, substitute(term, inner))
    return _inside(node, lambda part: substitute(part, values))


def replace(node: Node, values: Mapping[Node, Node]) -> Node:
    """Replace whole nodes by others that are equal to them, outside of sums."""
    return values[node] if node in values else _inside(node, lambda part: replace(part, values))


_RANK: Final = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 4}


def show(node: Node, rank: int = 0) -> str:
    """Write a node in the language, with as few parentheses as are sure to be right."""
    match node:
        case Number(value=value):
            text = str(value)
            own = 5 if value >= 0 and value.denominator == 1 else 0
            return text if own > rank or rank == 0 else f"({text})"
        case Name(name=name):
            return name.split("#")[0]
        case Text(value=value):
            return repr(value)
        case Entries(items=items):
            return f"[{', '.join(map(show, items))}]"
        case Fold(name=name, index=index, low=low, high=high, term=term):
            inner = ", ".join(map(show, (low, high, term)))
            return f"{name}({index.split('#')[0]}, {inner})"
        case Apply(name=name, arguments=(left, right)) if name in _RANK:
            own = _RANK[name]
            if left == Number(Fraction(-1)) and name == "*":
                text = f"-{show(right, 3)}"
                return text if rank == 0 else f"({text})"
            left_text = show(left, own if name == "**" else own - 1)
            text = f"{left_text}{name if own > 1 else f' {name} '}{show(right, own)}"
            return text if own > rank else f"({text})"
        case Apply(name=name, arguments=arguments, named=named):
            values = [*map(show, arguments), *(f"{key}={show(value)}" for key, value in named)]
            return f"{name}({', '.join(values)})"


def show_comparison(found: Comparison) -> str:
    """Write a comparison in the language."""
    return f"{show(found.left)} {found.relation} {show(found.right)}"
