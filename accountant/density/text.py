"""A density as text: read into a tree, never evaluated.

Numbers as written, x, r for abs(x), pi, + − * / **, abs, exp, log, sqrt, cosh, sinh, tanh, min,
max; pieces as `a if x < 1 else b`, or by a comparison in parentheses as a factor 0 or 1. Conditions
are joined by and, or, not. Tables: `steps((x, f), …)` has the value f from x on up to the next
point, `linear((x, f), …)` and `loglinear((x, f), …)` join the points by straight lines of f, or of
ln f; they are 0 outside.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise

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
"""Characters: a longer text makes trees that take minutes."""
_PARAMETERS = "abcd"
"""Names of parameters, in their order."""
_MOST_NODES = 400
"""Operations of the text, for the same reason."""
_LARGEST_EXPONENT = 1000
"""Of a written power: a larger one makes coefficients of as many digits."""
_TABLES = ("steps", "linear", "loglinear")
_MOST_POINTS = 200
"""Of a table: each is a piece, which every question goes through."""
FUNCTIONS = ("abs", "cosh", "exp", "log", "max", "min", "sinh", "sqrt", "tanh")
_REMEDY = "Write it in x with numbers, + - * / **, abs, exp, log, sqrt, cosh, min, max, and pieces "
_PIECES = '"a if x < 1 else b".'


def formula(name: str, value: str) -> str:
    """Return the text of an argument, of which nothing else is known yet."""
    if not isinstance(value, str) or value.isspace():
        raise expected(name, value, "to be a text such as 'exp(-abs(x)**3)'")
    return value.strip()


def read(text: str, argument: str) -> Node:
    """Return the tree of a text, or raise InvalidInputError that names what is not read."""
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
        if name in _TABLES:
            return self._table(name, [self._point(argument) for argument in arguments])
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

    def _point(self, node: ast.expr) -> tuple[Fraction, Fraction]:
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            found = [self.value(each) for each in node.elts]
            if found[0].op == found[1].op == "num":
                return found[0].number, found[1].number
        raise self._refused(
            f"the point {self._shown(node)}", "A table has points (x, f): two numbers."
        )

    def _table(self, name: str, points: list[tuple[Fraction, Fraction]]) -> Node:
        """Return pieces between the points, chosen by halves."""
        if not 2 <= len(points) <= _MOST_POINTS:
            raise InvalidInputError(
                f"Expected a table of 2 to {_MOST_POINTS} points in {self._argument}, "
                f"not {len(points)}."
            )
        for (a, _), (b, _) in pairwise(points):
            if not a < b:
                raise InvalidInputError(
                    f"Expected the points of a table in {self._argument} in increasing order: "
                    f"x = {float(b):.6g} follows {float(a):.6g}."
                )
        if (least := min(f for _, f in points)) < 0 or (name == "loglinear" and least == 0):
            raise InvalidInputError(
                f"Expected the values of {name} in {self._argument} to be "
                f"{'> 0' if name == 'loglinear' else '≥ 0'}, not {float(least):.6g}."
            )
        if name == "steps" and points[-1][1]:
            raise InvalidInputError(
                f"Expected the last value of steps in {self._argument} to be 0: it holds for all "
                "larger x. Add the end of the last step."
            )
        parts = [_between(name, *ends) for ends in pairwise(points)]
        places = [x for x, _ in points]

        def chosen(low: int, high: int) -> Node:
            if high - low == 1:
                return ZERO if low < 0 or high > len(parts) else parts[low]
            middle = (low + high) // 2
            joined = name != "steps" and 0 < middle < len(parts)
            before, after = chosen(low, middle), chosen(middle, high)
            if (
                middle == len(parts) and name != "steps"
            ):  # the last point belongs to what is before it
                return branch(less(X, num(places[middle])), after, before)
            return branch(less(num(places[middle]), X), before, after, joined=joined)

        return chosen(-1, len(parts) + 1)

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
                    else:  # unless the smaller one is larger
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


def _between(name: str, start: tuple[Fraction, Fraction], stop: tuple[Fraction, Fraction]) -> Node:
    """Return the formula of a table between two points."""
    (a, f), (b, g) = start, stop
    if name == "steps" or f == g:
        return num(f)
    if name == "linear":
        rise = (g - f) / (b - a)
        return add(num(f - rise * a), mul(num(rise), X))
    share = mul(num(1 / (b - a)), less(X, num(a)))
    return exp(add(log(num(f)), mul(log(num(g / f)), share)))


def with_parameters(text: str, values: Sequence[Fraction]) -> str:
    """Write numbers in the place of the names a, b, c, d; all have to occur, and no others."""
    if len(values) > len(_PARAMETERS):
        raise expected(
            "parameters", [str(v) for v in values], f"to be at most {len(_PARAMETERS)} numbers"
        )
    for name, value in zip(_PARAMETERS, values, strict=False):
        text, found = re.subn(rf"\b{name}\b", f"({value})", text)
        if not found:
            raise InvalidInputError(f"The formula does not have the name {name!r} of a parameter.")
    return text
