"""The text of a density, parsed into a tree; it is never evaluated as code.

A formula may contain numbers, x, r for abs(x), pi, + − * / **, and abs, exp, log, sqrt, cosh, sinh,
tanh, min, max. Pieces are written as `a if x < 1 else b`, or with a comparison in parentheses as a
factor 0 or 1. Conditions may be combined with and, or, not.
"""

from __future__ import annotations

import ast
import re
from fractions import Fraction
from functools import reduce

from dpassay.accountant.density.tree import (
    ONE,
    PI,
    ZERO,
    Node,
    X,
    add,
    branch,
    exp,
    is_positive,
    less,
    log,
    mul,
    negative,
    num,
    power,
    sigmoid,
)
from dpassay.accountant.errors import InvalidInputError, expected, suggestion
from dpassay.accountant.numbers.exact import exact

LONGEST = 2000
"""Most characters of a text; a longer one makes trees that take minutes."""
_MOST_NODES = 400
"""Most nodes of the parsed text, for the same reason."""
_LARGEST_EXPONENT = 1000
"""Largest exponent that may be written; a larger one makes coefficients with that many digits."""
FUNCTIONS = ("abs", "cosh", "exp", "log", "max", "min", "sinh", "sqrt", "tanh")
_REMEDY = "Write it in x with numbers, + - * / **, abs, exp, log, sqrt, cosh, min, max, and pieces "
_PIECES = '"a if x < 1 else b".'


def formula(name: str, value: str) -> str:
    """Return the text of an argument without surrounding space; it is parsed later."""
    if not isinstance(value, str) or value.isspace():
        raise expected(name, value, "to be a text such as 'exp(-abs(x)**3)'")
    return value.strip()


def read(text: str, argument: str) -> Node:
    """Parse a text into a tree; raise InvalidInputError, which names the part that is refused."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError(
            f"Expected {argument} to be a text such as 'exp(-abs(x)**3)', not {text!r}."
        )
    if len(text) > LONGEST:
        raise InvalidInputError(
            f"Expected {argument} of at most {LONGEST} characters, not {len(text)}."
        )
    source = text.strip()
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        plain = re.sub(r"\|([^|]+)\|", r"abs(\1)", source).replace("^", "**")
        near = "" if plain == source else f"Did you mean {plain!r}? "
        raise InvalidInputError(
            f"Expected {argument}={source!r} to be a formula in x. {near}{_REMEDY}{_PIECES}"
        ) from None
    if sum(1 for _ in ast.walk(tree)) > _MOST_NODES:
        raise InvalidInputError(f"Expected {argument} of at most {_MOST_NODES} operations.")
    return _Reader(source, argument).value(tree)


class _Reader:
    def __init__(self, source: str, argument: str) -> None:
        self._source, self._argument = source, argument

    def value(self, node: ast.expr) -> Node:
        match node:
            case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
                return num(self._number(node))
            case ast.Name(id="x"):
                return X
            case ast.Name(id="r"):
                return branch(X, X, negative(X), joined=True)
            case ast.Name(id="pi"):
                return PI
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return negative(self.value(inner))
            case ast.UnaryOp(op=ast.UAdd(), operand=inner):
                return self.value(inner)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(node, self.value(left), op, self.value(right))
            case ast.IfExp(test=test, body=body, orelse=other):
                return self._where(test, self.value(body), self.value(other))
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return self._where(node, ONE, ZERO)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._call(node, name, arguments)
            case ast.Name(id=name):
                raise self._refused(f"the name {name!r}", "The variable is x, and r is abs(x).")
        raise self._refused(repr(self._shown(node)), _REMEDY + _PIECES)

    def _number(self, node: ast.expr) -> Fraction:
        number = exact(self._shown(node).replace("_", ""), self._argument).rational
        assert number is not None
        return number

    def _binary(self, node: ast.expr, a: Node, op: ast.operator, b: Node) -> Node:
        match op:
            case ast.Add():
                return add(a, b)
            case ast.Sub():
                return less(a, b)
            case ast.Mult():
                return mul(a, b)
            case ast.Div():
                if b == ZERO:
                    raise self._refused(repr(self._shown(node)), "It divides by 0.")
                return mul(a, power(b, Fraction(-1)))
            case ast.Pow():
                return self._power(node, a, b)
            case ast.BitXor():
                raise self._refused(repr(self._shown(node)), "Write a power as x**2.")
        raise self._refused(repr(self._shown(node)), _REMEDY + _PIECES)

    def _power(self, node: ast.expr, a: Node, b: Node) -> Node:
        if b.op == "num":
            if abs(b.number) > _LARGEST_EXPONENT:
                raise self._refused(
                    repr(self._shown(node)), f"Exponents are at most {_LARGEST_EXPONENT}."
                )
            if a == ZERO and b.number <= 0:
                raise self._refused(repr(self._shown(node)), "It divides by 0.")
            return power(a, b.number)
        if not is_positive(a):
            raise self._refused(
                repr(self._shown(node)), "Only a positive base has an exponent that varies with x."
            )
        return exp(mul(b, log(a)))

    def _call(self, node: ast.expr, name: str, arguments: list[ast.expr]) -> Node:
        if name not in FUNCTIONS:
            raise self._refused(f"the function {name!r}", suggestion(name, FUNCTIONS))
        values = [self.value(argument) for argument in arguments]
        if name in ("min", "max") and len(values) >= 2:
            return reduce(_larger if name == "max" else _smaller, values)
        if len(values) != 1 or name in ("min", "max"):
            wanted = "two or more arguments" if name in ("min", "max") else "one argument"
            raise self._refused(repr(self._shown(node)), f"{name} takes {wanted}.")
        (a,) = values
        grows, falls = exp(a), exp(negative(a))
        match name:
            case "abs":
                return a if is_positive(a) else branch(a, a, negative(a), joined=True)
            case "exp":
                return grows
            case "log":
                return log(a)
            case "sqrt":
                return power(a, Fraction(1, 2))
            case "cosh":
                return mul(num(Fraction(1, 2)), add(grows, falls))
            case "sinh":
                return mul(num(Fraction(1, 2)), less(grows, falls))
        return less(ONE, mul(num(2), sigmoid(mul(num(-2), a))))  # tanh

    def _where(self, test: ast.expr, yes: Node, no: Node) -> Node:
        match test:
            case ast.BoolOp(op=ast.And(), values=tests):
                return reduce(lambda inner, one: self._where(one, inner, no), tests[::-1], yes)
            case ast.BoolOp(op=ast.Or(), values=tests):
                return reduce(lambda inner, one: self._where(one, yes, inner), tests[::-1], no)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return self._where(inner, no, yes)
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [self.value(left), *map(self.value, others)]
                found = yes
                for op, a, b in zip(ops, sides, sides[1:], strict=False):
                    if not isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
                        raise self._refused(repr(self._shown(test)), "Compare by <, <=, > or >=.")
                    larger, smaller = (b, a) if isinstance(op, (ast.Lt, ast.LtE)) else (a, b)
                    if isinstance(op, (ast.Lt, ast.Gt)):
                        found = branch(less(larger, smaller), found, no)
                    else:  # a non-strict comparison: not (smaller > larger)
                        found = branch(less(smaller, larger), no, found)
                return found
        raise self._refused(
            f"the condition {self._shown(test)!r}", "Write a comparison such as x < 1."
        )

    def _shown(self, node: ast.AST) -> str:
        return ast.get_source_segment(self._source, node) or ast.unparse(node)

    def _refused(self, what: str, remedy: str) -> InvalidInputError:
        return InvalidInputError(f"{self._argument} is a formula in x without {what}. {remedy}")


def _larger(a: Node, b: Node) -> Node:
    return branch(less(a, b), a, b, joined=True)


def _smaller(a: Node, b: Node) -> Node:
    return branch(less(b, a), a, b, joined=True)
