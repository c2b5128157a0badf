"""Probabilities of tables, a second time: numbers, or formulas without names."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from dpassay.verifier.checker.kernel.expressions import Apply, Node, Number, ProofError, parse
from dpassay.verifier.checker.notation import not_negative, number
from dpassay.verifier.checker.reals import UnknownError, compare, exp, power, sqrt

_OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": power,
    "exp": exp,
    "sqrt": sqrt,
}
_ZERO, _ONE = Fraction(0), Fraction(1)


def entry(value: Any) -> Any:
    """Require a number ≥ 0, or a formula of one."""
    try:
        value = number(value)
    except ValueError:
        if not isinstance(value, str) or not value.isascii():
            raise
        try:
            value = _value(parse(value))
        except (ProofError, ArithmeticError):
            raise ValueError("a number") from None
    return not_negative(value)


def _value(node: Node) -> Any:
    match node:
        case Number(value=value):
            return value
        case Apply(name=name, arguments=parts, named=()) if name in _OPERATIONS:
            if len(parts) == (1 if name in ("exp", "sqrt") else 2):
                return _OPERATIONS[name](*map(_value, parts))
    raise ValueError("a number")


def misfit(row: list[Any]) -> str:
    """Say what is wrong with the sum of a row; empty if it is 1, or may be."""
    found = compare(sum(row, _ZERO), "==", _ONE)
    if found is None:
        raise UnknownError("whether a row of these formulas adds up to 1")
    return "" if found else "a row of a sum other than 1"
