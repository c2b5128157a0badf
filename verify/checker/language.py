"""The expression language a second time: rationals stay exact, all else is a ball.

Part of the independent checker: no code is shared with `verify.expression` or `verify.functions`.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from verify.checker.arithmetic import UnknownError, compare, settle
from verify.checker.functions import FUNCTIONS, QUESTIONS, recomputed
from verify.checker.mechanisms import Noise, build, under
from verify.checker.reals import Real, ball, power, short

_MAX_EXPONENT = 100_000
"""Of a number that is written with a power of ten."""
_MAX_TERMS = 1_000_000
"""Of all sums and products of an expression together."""
_MAX_WORK = 10_000_000
"""Terms and names of a claim, at all precisions together."""
_MAX_LENGTH = 100_000
"""Characters of one expression."""
_MAX_DEPTH = 60
"""Brackets within brackets: the parser's own stack is finite."""
_EXACT_TERMS = 2000
"""Terms that are added up as fractions."""
_LITERAL = re.compile(r"[\d_]*\.?[\d_]*(?:[eE]([+-]?[\d_]+))?")
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class Variables(dict[str, Any]):
    """Values by name; a name of `let` is evaluated when it is asked for, at the precision then."""

    def __init__(
        self, values: Mapping[str, Any], let: Mapping[str, str], work: list[int] | None = None
    ) -> None:
        super().__init__(values)
        self.let = let
        self.work = [0] if work is None else work
        """How many terms and names were evaluated, in all scopes that come from one."""
        self._asked: set[str] = set()

    def __missing__(self, name: str) -> Any:
        if name not in self.let:
            raise ValueError(f"unknown variable {name!r}")
        if name in self._asked:
            raise ValueError(f"{name!r} is defined by itself")
        self.count()
        self._asked.add(name)
        try:
            return evaluate(self.let[name], self)
        finally:
            self._asked.remove(name)

    def but(self, **values: Any) -> Variables:
        """Return the same variables with some values of their own."""
        scope = Variables({**self, **values}, self.let, self.work)
        scope._asked |= self._asked
        return scope

    def count(self) -> None:
        """Raise ValueError where a claim takes too much work."""
        self.work[0] += 1
        if self.work[0] > _MAX_WORK:
            raise ValueError(f"expressions of more than {_MAX_WORK} terms")


def evaluate(text: str, variables: Variables | None = None) -> Any:
    """Evaluate an expression at flint's precision; raise ValueError where it is malformed."""
    tree = _parsed(text)
    scope = Variables({}, {}) if variables is None else variables
    return _Evaluation(text.strip()).value(tree, scope)


def _parsed(text: str) -> ast.expr:
    if not isinstance(text, str):
        raise ValueError(f"expected a text, not {text!r}")
    if not text.isascii():  # Python's parser would read some letters as others
        raise ValueError(f"{ascii(text)[:60]} has letters that are not ASCII")
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"an expression of over {_MAX_LENGTH} characters")
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


class _Evaluation:
    """One expression; it counts the terms of its sums and how deep it is nested."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lines = re.split(r"\r\n|\r|\n", source)
        self._terms = 0
        self._depth = 0

    def value(self, node: ast.expr, variables: Variables) -> Any:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError(f"an expression nested over {_MAX_DEPTH} deep")
        try:
            return self._value(node, variables)
        finally:
            self._depth -= 1

    def _value(self, node: ast.expr, variables: Variables) -> Any:
        match node:
            case ast.Constant(value=bool() | None | str()):
                return node.value
            case ast.Constant(value=int() | float()):
                line = self._lines[node.lineno - 1]  # of ASCII characters, one byte each
                return _literal(line[node.col_offset : node.end_col_offset])
            case ast.Name(id=name):
                return variables[name]
            case ast.List(elts=entries):
                return [self.value(entry, variables) for entry in entries]
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                value = number(self.value(operand, variables))
                return -value if isinstance(node.op, ast.USub) else value
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Pow()):
                return self._operation(node, variables)
            case ast.Call(
                func=ast.Name(id="sum" | "product" as name),
                args=[ast.Name(id=index), low, high, term],
            ):
                ends = (number(self.value(end, variables)) for end in (low, high))
                return self._series(name, index, tuple(ends), (term, variables))
            case ast.Call(func=ast.Name(id=name)):
                values = [self.value(argument, variables) for argument in node.args]
                named = [(k.arg, self.value(k.value, variables)) for k in node.keywords]
                return _call(name, values, named)
        raise ValueError(f"{ast.unparse(node)[:60]!r} is not in the language")

    def _operation(self, node: ast.BinOp, variables: Variables) -> Any:
        """Apply an operator; a chain of them to the left is no nesting."""
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp) and not isinstance(chain[-1].op, ast.Pow):
            chain.append(chain[-1].left)
        result = number(self.value(chain[-1].left, variables))
        for step in reversed(chain):
            right = number(self.value(step.right, variables))
            if isinstance(step.op, ast.Pow):
                result = power(result, right)
            elif type(step.op) in _OPERATORS:
                result = _OPERATORS[type(step.op)](result, right)
            else:
                raise ValueError(f"{ast.unparse(step)[:60]!r} is not in the language")
            result = short(result)
        return result

    def _series(
        self, name: str, index: str, ends: tuple[Any, ...], inner: tuple[ast.expr, Variables]
    ) -> Any:
        """Add or multiply terms: exactly if there are few of them."""
        if not all(isinstance(end, Fraction) and end.denominator == 1 for end in ends):
            raise ValueError(f"expected integers as ends of a {name}")
        first, last = (int(end) for end in ends)
        self._terms += max(last - first + 1, 0)
        if self._terms > _MAX_TERMS:
            raise ValueError(f"expected at most {_MAX_TERMS} terms of sums and products")
        operation = operator.add if name == "sum" else operator.mul
        result: Any = Fraction(0 if name == "sum" else 1)
        exact, (term, variables) = last - first < _EXACT_TERMS, inner
        scope = variables.but()
        for i in range(first, last + 1):
            variables.count()
            scope[index] = Fraction(i)
            value = number(self.value(term, scope))
            result = short(operation(result, value if exact else Real(ball(value))))
        return result


def _literal(text: str) -> Fraction:
    """Read a number that is written out."""
    found = _LITERAL.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:60]!r} is no number of the language")
    if abs(int(found.group(1) or 0)) > _MAX_EXPONENT:
        raise ValueError(f"a number with an exponent beyond {_MAX_EXPONENT}")
    return Fraction(text)


def _call(name: str, values: list[Any], named: list[tuple[str | None, Any]]) -> Any:
    """Evaluate a function, or name a mechanism."""
    if name in QUESTIONS and values and isinstance(values[0], Noise):
        asked = under(values[0], _relation(name, named))
        return QUESTIONS[name](asked, *map(number, values[1:]))
    if name[:1].isupper() and name not in FUNCTIONS:
        return build(name, values, named)
    if named:
        raise ValueError(f"{name} has no argument {named[0][0]!r}")
    if name in FUNCTIONS:
        return FUNCTIONS[name](*map(number, values))
    if not recomputed(name):
        raise UnknownError(f"{name}(…)")
    raise ValueError(f"unknown function {name!r}")


def _relation(name: str, named: list[tuple[str | None, Any]]) -> str | None:
    """Return the relation that a question is about, its only argument with a name."""
    if not named:
        return None
    (key, value), *more = named
    if more or key != "adjacency" or value not in ("add-remove", "replace-one"):
        raise ValueError(f"{name} with an argument {str(key)!r} that it does not have")
    return str(value)


def sides(text: str, row: Variables) -> tuple[Any, str, Any]:
    """Evaluate both sides of a comparison."""
    left, relation, right = split(text)
    return number(evaluate(left, row)), relation, number(evaluate(right, row))


def holds(text: str, scope: Variables) -> bool:
    """Whether a comparison is true; raise UnknownError where no number of digits decides it."""
    left, relation, right = split(text)

    def decided(found: list[Any]) -> bool:
        return compare(found[0], relation, found[1]) is not None

    one, other = settle(lambda: [number(evaluate(side, scope)) for side in (left, right)], decided)
    truth = compare(one, relation, other)
    if truth is None:
        raise UnknownError(f"whether {text}")
    return truth
