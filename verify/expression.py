"""A small language for the numbers in claims: parsed, never evaluated by Python.

Arithmetic (+ − * / **), comparisons, named variables, functions of a fixed table, and
mechanisms in the one notation whose arguments may themselves be expressions:
`delta(Gaussian(standard_deviation=sigma), epsilon) <= delta`. Rational arithmetic stays exact;
anything else becomes a ball at flint's current precision. A mechanism needs exact arguments:
`round_up(x)` and `round_down(x)` turn a ball into a rational on a stated side of it.
"""

from __future__ import annotations

import ast
import functools
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from flint import arb

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, UndecidedError, suggestion
from dpassay.accountant.mechanisms import DESCRIPTIONS
from dpassay.accountant.notation import build
from dpassay.accountant.numbers.exact import ExactReal, computed
from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.budget import MOST_BITS
from dpassay.verifier.functions import FUNCTIONS, QUESTIONS
from dpassay.verifier.rules import LONGEST
from dpassay.verifier.value import RealValue, Value, number, to_ball, to_exact, to_integer

Environment: TypeAlias = Mapping[str, Value]

RELATIONS: dict[type[ast.cmpop], str] = {
    ast.LtE: "<=",
    ast.Lt: "<",
    ast.GtE: ">=",
    ast.Gt: ">",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_ROUNDINGS = ("round_up", "round_down")
_ROUNDING_PRECISION = 1024
"""Their arguments are evaluated at no less, so that the result does not depend on the precision."""
_MAX_EXPONENT = 100_000
"""Largest exponent, and bits of a power, that are multiplied out exactly."""
_MAX_TERMS = 1_000_000
"""Terms of a sum."""


@final
@dataclass(frozen=True)
class Expression:
    """A parsed expression; `text` reads back as the same one."""

    text: str

    def __post_init__(self) -> None:
        """Refuse anything outside the grammar, before anything is computed."""
        _checked(self.text)

    def tree(self) -> ast.expr:
        """Return the syntax tree."""
        return _parse(self.text)

    def names(self) -> set[str]:
        """Return the variables that occur."""
        tree = self.tree()
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        return {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and id(node) not in called
        }

    def value(self, variables: Environment) -> Value:
        """Evaluate at flint's current precision.

        Raises
        ------
        InvalidInputError
            If a variable is missing, or a mechanism's argument is not exact.
        """
        return _evaluate(self.tree(), variables, self.text.strip())

    def ball(self, variables: Environment) -> arb:
        """Evaluate to a ball."""
        return to_ball(self.value(variables), self.text)

    def exact(self, variables: Environment) -> ExactReal:
        """Evaluate to an exact number, or raise InvalidInputError."""
        value = _exactly(self.tree(), self.value(variables), variables, self.text.strip())
        return to_exact(value, self.text)

    def mechanism(self, variables: Environment) -> Mechanism:
        """Evaluate to a mechanism, or raise InvalidInputError."""
        value = self.value(variables)
        if not isinstance(value, Mechanism):
            raise InvalidInputError(f"Expected {self.text!r} to be a mechanism.")
        return value


@functools.lru_cache(maxsize=4096)
def _checked(text: str) -> None:
    """Refuse a text outside the grammar."""
    _check(_parse(text), text)


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise InvalidInputError(f"Expected at most {LONGEST} characters, not {len(text)}.")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidInputError(
            f"Expected an expression, not {text[:80]!r}. Write for example 2*log(1.25/delta)."
        ) from None


def split_relation(text: str) -> tuple[str, str, str]:
    """Split "left <= right" into its sides and the relation.

    Raises InvalidInputError unless there is exactly one of <= < >= > == !=.
    """
    tree = _parse(text)
    if (
        not isinstance(tree, ast.Compare)
        or len(tree.ops) != 1
        or type(tree.ops[0]) not in RELATIONS
    ):
        raise InvalidInputError(
            f"Expected one comparison such as 'left <= right', not {text[:80]!r}."
        )
    source = text.strip()
    return (
        _text(tree.left, source),
        RELATIONS[type(tree.ops[0])],
        _text(tree.comparators[0], source),
    )


def _text(node: ast.expr, source: str) -> str:
    return ast.get_source_segment(source, node) or ast.unparse(node)


def _check(tree: ast.expr, source: str) -> None:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                if name not in FUNCTIONS and name not in DESCRIPTIONS and name not in FORMS:
                    raise InvalidInputError(
                        f"Unknown function {name!r} in {source[:80]!r}. "
                        f"{suggestion(name, [*FUNCTIONS, *DESCRIPTIONS, *FORMS])}"
                    )
            case ast.Constant(value=complex() | bytes()):
                raise _refused(node, source)
            case (
                ast.Name() | ast.Constant() | ast.BinOp() | ast.UnaryOp() | ast.List()
                | ast.keyword() | ast.expr_context() | ast.Add() | ast.Sub() | ast.Mult()
                | ast.Div() | ast.Pow() | ast.USub() | ast.UAdd()
            ):  # fmt: skip
                pass
            case _:
                raise _refused(node, source)


def _refused(node: ast.AST, source: str) -> InvalidInputError:
    shown = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
    return InvalidInputError(
        f"Expected arithmetic, a function of the table or a mechanism, not {shown[:60]!r} in "
        f"{source[:80]!r}. Expressions are parsed, never evaluated by Python."
    )


def _evaluate(node: ast.expr, variables: Environment, source: str) -> Value:
    match node:
        case ast.Constant(value=bool() | None):
            return node.value
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant():
            return Fraction(_text(node, source))  # the decimal as written
        case ast.Name(id=name):
            if name not in variables:
                raise InvalidInputError(
                    f"Unknown variable {name!r} in {source[:80]!r}. "
                    f"{suggestion(name, variables) if variables else 'No variables are given.'}"
                )
            return variables[name]
        case ast.List(elts=entries):
            return [_evaluate(entry, variables, source) for entry in entries]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = number(_evaluate(operand, variables, source), source)
            return -value
        case ast.UnaryOp(operand=operand):
            return _evaluate(operand, variables, source)
        case ast.BinOp():
            left = number(_evaluate(node.left, variables, source), source)
            right = number(_evaluate(node.right, variables, source), source)
            return _arithmetic(node.op, left, right, source)
        case ast.Call(func=ast.Name(id=name)):
            return _call(name, node, variables, source)
    raise _refused(node, source)


def _call(name: str, node: ast.Call, variables: Environment, source: str) -> Value:
    if name in FORMS:
        return FORMS[name](node, variables, source)
    if name in _ROUNDINGS and ctx.prec < _ROUNDING_PRECISION:
        with ctx.workprec(_ROUNDING_PRECISION):
            return _call(name, node, variables, source)
    to_value = _evaluate if name in FUNCTIONS and name not in QUESTIONS else _exact_argument
    positional = [to_value(argument, variables, source) for argument in node.args]
    named = {
        keyword.arg: to_value(keyword.value, variables, source)
        for keyword in node.keywords
        if keyword.arg is not None
    }
    if name in FUNCTIONS:
        try:
            return FUNCTIONS[name](*positional, **named)
        except TypeError as error:
            raise InvalidInputError(f"{name} in {source[:80]!r}: {error}.") from None
    return build(
        name,
        {key: _argument(value, f"{name}.{key}") for key, value in named.items()},
        [_argument(value, f"{name}[{index}]") for index, value in enumerate(positional)],
    )


def _exact_argument(node: ast.expr, variables: Environment, source: str) -> Value:
    """Evaluate what has to be exact, where it is."""
    if isinstance(node, ast.List):
        return [_exact_argument(entry, variables, source) for entry in node.elts]
    return _exactly(node, _evaluate(node, variables, source), variables, source)


def _exactly(node: ast.expr, value: Value, variables: Environment, source: str) -> Value:
    """Return the number whose ball is given exactly, where it is a formula of exact numbers."""
    if not isinstance(value, arb):
        return value
    try:
        return computed(node, source, variables)
    except (SyntaxError, ArithmeticError, UndecidedError):
        return value


def _argument(value: Value, name: str) -> object:
    """Turn a value into what a mechanism accepts."""
    if isinstance(value, arb):
        raise InvalidInputError(
            f"Expected {name} to be exact, not a ball. Wrap it in round_up(…) or round_down(…)."
        )
    if isinstance(value, list):
        return [_argument(entry, name) for entry in value]
    return value


def _fold(
    start: Value, op: ast.operator, node: ast.Call, variables: Environment, source: str
) -> Value:
    """Evaluate sum(i, low, high, term), or a product: for integer i from low to high."""
    match node.args:
        case [ast.Name(id=name), low, high, term]:
            first = to_integer(_evaluate(low, variables, source), source)
            last = to_integer(_evaluate(high, variables, source), source)
            if last - first > _MAX_TERMS:
                raise InvalidInputError(
                    f"Expected at most {_MAX_TERMS} terms, not {last - first + 1}, in "
                    f"{source[:80]!r}."
                )
        case _:
            raise InvalidInputError(f"Expected sum(i, low, high, term) in {source[:80]!r}.")
    total = start
    for index in range(first, last + 1):
        inner = ChainMap({name: Fraction(index)}, variables)  # type: ignore[arg-type]  # never written
        value = _evaluate(term, inner, source)
        total = _arithmetic(op, number(total, source), number(value, source), source)
    return total


FORMS = {
    "sum": functools.partial(_fold, Fraction(0), ast.Add()),
    "product": functools.partial(_fold, Fraction(1), ast.Mult()),
}
"""Forms that bind a variable."""


def _arithmetic(op: ast.operator, left: RealValue, right: RealValue, source: str) -> RealValue:
    """Stay exact where both sides are, else go on in balls."""
    if isinstance(op, ast.Pow):
        return _power(left, right, source)
    if isinstance(op, ast.Div) and isinstance(right, Fraction) and right == 0:
        raise InvalidInputError(f"Division by zero in {source[:80]!r}.")
    if isinstance(left, Fraction) and isinstance(right, Fraction) and not _long(left, right):
        match op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case _:
                return left / right
    irrational = isinstance(left, ExactReal) or isinstance(right, ExactReal)
    if irrational and not isinstance(left, arb) and not isinstance(right, arb):
        one, other = to_exact(left, source), to_exact(right, source)
        a, b = one.signed_square, other.signed_square
        if a is not None and b is not None and not _long(a, b):
            if isinstance(op, ast.Mult):
                return number(one * other, source)
            if isinstance(op, ast.Div):
                return number(one / other, source)
    x, y = to_ball(left, source), to_ball(right, source)
    match op:
        case ast.Add():
            return x + y
        case ast.Sub():
            return x - y
        case ast.Mult():
            return x * y
        case _:
            return x / y


def _long(left: Fraction, right: Fraction) -> bool:
    """Whether a sum or product of two fractions may have more digits than are kept."""
    ends = (left.numerator, left.denominator, right.numerator, right.denominator)
    return sum(end.bit_length() for end in ends) > MOST_BITS


def _power(left: RealValue, right: RealValue, source: str) -> RealValue:
    if isinstance(right, Fraction) and right.denominator == 1 and abs(right) <= _MAX_EXPONENT:
        if isinstance(left, Fraction):
            if left == 0 and right < 0:
                raise InvalidInputError(f"Division by zero in {source[:80]!r}.")
            size = max(left.numerator.bit_length(), left.denominator.bit_length())
            if size * abs(right) <= _MAX_EXPONENT:
                return left**right.numerator
        return to_ball(left, source) ** int(right)
    if isinstance(left, Fraction) and isinstance(right, Fraction) and right == Fraction(1, 2):
        if left < 0:
            raise InvalidInputError(f"Root of a negative number in {source[:80]!r}.")
        return number(ExactReal.of_root(left), source)
    return to_ball(left, source) ** to_ball(right, source)
