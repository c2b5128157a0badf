"""The expression language a second time, in mpmath: rationals stay exact, all else is rounded.

Part of the independent checker: no code is shared with `verify.expression` or `verify.functions`.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from mpmath import iv, mp

from verify.checker.arithmetic import UnknownError, compare, interval, settle
from verify.checker.functions import FUNCTIONS, QUESTIONS, over_intervals, recomputed, root
from verify.checker.mechanisms import Noise, build, under

_MAX_EXPONENT = 100_000
_MAX_TERMS = 1_000_000
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class Variables(dict[str, Any]):
    """Values by name; a name of `let` is evaluated when it is asked for, at the precision then."""

    def __init__(self, values: Mapping[str, Any], let: Mapping[str, str]) -> None:
        super().__init__(values)
        self.let = let

    def __missing__(self, name: str) -> Any:
        if name not in self.let:
            raise ValueError(f"unknown variable {name!r}")
        return evaluate(self.let[name], self)

    def but(self, **values: Any) -> Variables:
        """Return the same variables with some values of their own."""
        return Variables({**self, **values}, self.let)


def evaluate(text: str, variables: Variables | None = None) -> Any:
    """Evaluate an expression at mpmath's precision; raise ValueError where it is malformed."""
    return _evaluate(
        _parsed(text), Variables({}, {}) if variables is None else variables, text.strip()
    )


def _parsed(text: str) -> ast.expr:
    if not isinstance(text, str):
        raise ValueError(f"expected a text, not {text!r}")
    if not text.isascii():  # Python's parser would read some letters as others
        raise ValueError(f"{ascii(text)[:60]} has letters that are not ASCII")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"{text[:60]!r} is not an expression") from None


def split(text: str) -> tuple[str, str, str]:
    """Split "left <= right" into its sides and the relation."""
    tree = _parsed(text)
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        raise ValueError(f"{text[:60]!r} is not one comparison")
    sides = [ast.get_source_segment(text.strip(), n) or "" for n in (tree.left, *tree.comparators)]
    names = {ast.LtE: "<=", ast.Lt: "<", ast.GtE: ">=", ast.Gt: ">", ast.Eq: "==", ast.NotEq: "!="}
    return sides[0], names[type(tree.ops[0])], sides[1]


def number(value: Any) -> Any:
    """Return a number: a text is read as one."""
    if isinstance(value, str):
        return number(evaluate(value))
    if isinstance(value, (list, Noise, bool)) or value is None:
        raise ValueError(f"expected a number, not {value!r}")
    return Fraction(value) if isinstance(value, int) else value


def _evaluate(node: ast.expr, variables: Variables, source: str) -> Any:
    match node:
        case ast.Constant(value=bool() | None | str()):
            return node.value
        case ast.Constant(value=int() | float()):
            return Fraction(ast.get_source_segment(source, node) or "")
        case ast.Name(id=name):
            return variables[name]
        case ast.List(elts=entries):
            return [_evaluate(entry, variables, source) for entry in entries]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            value = number(_evaluate(operand, variables, source))
            return -value if isinstance(node.op, ast.USub) else value
        case ast.BinOp(left=one, op=op, right=other):
            x, y = (number(_evaluate(side, variables, source)) for side in (one, other))
            if isinstance(op, ast.Pow):
                return _power(x, y)
            if isinstance(x, iv.mpf) or isinstance(y, iv.mpf):
                x, y = interval(x), interval(y)
            return _OPERATORS[type(op)](x, y)
        case ast.Call(
            func=ast.Name(id="sum" | "product" as name), args=[ast.Name(id=index), low, high, term]
        ):
            first, last = (int(number(_evaluate(n, variables, source))) for n in (low, high))
            if last - first > _MAX_TERMS:
                raise ValueError(f"expected at most {_MAX_TERMS} terms of a {name}")
            inner = (variables.but(**{index: Fraction(i)}) for i in range(first, last + 1))
            terms = (number(_evaluate(term, scope, source)) for scope in inner)
            return sum(terms, Fraction(0)) if name == "sum" else math.prod(terms, start=Fraction(1))
        case ast.Call(func=ast.Name(id=name)):
            values = [_evaluate(argument, variables, source) for argument in node.args]
            named = [(k.arg, _evaluate(k.value, variables, source)) for k in node.keywords]
            if name in QUESTIONS and any(isinstance(value, iv.mpf) for value in values):
                raise UnknownError(f"{name} over an interval")
            if name in QUESTIONS and values and isinstance(values[0], Noise):
                asked = under(values[0], _relation(name, named))
                return QUESTIONS[name](asked, *map(number, values[1:]))
            if name[:1].isupper() and name not in FUNCTIONS:
                return build(name, values, named)
            if named:
                raise ValueError(f"{name} has no argument {named[0][0]!r}")
            if name in FUNCTIONS:
                numbers = [number(value) for value in values]
                if any(isinstance(value, iv.mpf) for value in numbers):
                    return over_intervals(name, *numbers)
                return FUNCTIONS[name](*numbers)
            if not recomputed(name):
                raise UnknownError(f"{name}(…)")
            raise ValueError(f"unknown function {name!r}")
    raise ValueError(f"{ast.unparse(node)[:60]!r} is not in the language")


def _relation(name: str, named: list[tuple[str | None, Any]]) -> str | None:
    """Return the relation that a question is about, its only argument with a name."""
    if not named:
        return None
    (key, value), *more = named
    if more or key != "adjacency" or value not in ("add-remove", "replace-one"):
        raise ValueError(f"{name} with an argument {str(key)!r} that it does not have")
    return str(value)


def _power(x: Any, y: Any) -> Any:
    if isinstance(y, Fraction) and y.denominator == 1 and abs(y) <= _MAX_EXPONENT:
        return x ** int(y)
    if isinstance(x, iv.mpf) or isinstance(y, iv.mpf):
        return interval(x) ** interval(y)
    return root(x) if y == Fraction(1, 2) else mp.power(x, y)


def sides(text: str, row: Variables) -> tuple[Any, str, Any]:
    """Evaluate both sides of a comparison."""
    left, relation, right = split(text)
    return number(evaluate(left, row)), relation, number(evaluate(right, row))


def holds(text: str, scope: Variables) -> bool:
    """Whether a comparison is true, two numbers that agree to 38 digits counting as equal."""
    left, relation, right = split(text)
    one, other = settle(lambda: [number(evaluate(side, scope)) for side in (left, right)])
    truth = compare(one, relation, other)
    return relation in ("<=", ">=", "==") if truth is None else truth
