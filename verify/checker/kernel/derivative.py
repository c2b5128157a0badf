"""Derivatives of expressions, formed by the rules of calculus."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from verify.checker.kernel.expressions import (
    ONE,
    ZERO,
    Apply,
    Fold,
    Name,
    Node,
    Number,
    ProofError,
    free,
    minus,
    number,
    plus,
    show,
    times,
)

_TWO: Final = number(2)
_ROOT_TWO_PI: Final = Apply("sqrt", (times(_TWO, Apply("pi", ())),))


def _quotient(left: Node, right: Node) -> Node:
    return Apply("/", (left, right))


def _call(name: str, argument: Node) -> Node:
    return Apply(name, (argument,))


def _gauss(x: Node, scale: Node) -> Node:
    """Return e^{−x²/scale}."""
    return _call("exp", _quotient(times(number(-1), times(x, x)), scale))


def _slope(name: str, x: Node) -> Node:
    """Return the derivative of a function of one argument at x."""
    match name:
        case "exp" | "expm1":
            return _call("exp", x)
        case "sqrt":
            return _quotient(ONE, times(_TWO, _call("sqrt", x)))
        case "log":
            return _quotient(ONE, x)
        case "log2":
            return _quotient(ONE, times(x, _call("log", _TWO)))
        case "log1p":
            return _quotient(ONE, plus(ONE, x))
        case "sin":
            return _call("cos", x)
        case "cos":
            return times(number(-1), _call("sin", x))
        case "tanh":
            square = _call("tanh", x)
            return minus(ONE, times(square, square))
        case "Phi":
            return _quotient(_gauss(x, _TWO), _ROOT_TWO_PI)
        case "erf":
            return _quotient(times(_TWO, _gauss(x, ONE)), _call("sqrt", Apply("pi", ())))
        case "erfc":
            return times(number(-1), _slope("erf", x))
        case "mills":
            return minus(times(x, _call("mills", x)), ONE)
    raise ProofError(f"the kernel has no derivative of {name}")


def differentiate(node: Node, name: str) -> Node:
    """Return the derivative in a variable; raise ProofError where there is no rule.

    Wherever the derivative can be evaluated over a range, the expression is differentiable there
    if it is defined at one point: nothing that depends on the variable is dropped.
    """
    if name not in free(node):
        return ZERO
    match node:
        case Name():
            return ONE
        case Apply(name="+", arguments=(left, right)):
            return _plus(differentiate(left, name), differentiate(right, name))
        case Apply(name="-", arguments=(left, right)):
            return minus(differentiate(left, name), differentiate(right, name))
        case Apply(name="*", arguments=(left, right)):
            if name not in free(left):
                return _times(left, differentiate(right, name))
            if name not in free(right):
                return _times(differentiate(left, name), right)
            return _plus(
                _times(differentiate(left, name), right), _times(left, differentiate(right, name))
            )
        case Apply(name="/", arguments=(left, right)):
            above = differentiate(left, name)
            if name not in free(right):
                return _quotient(above, right)
            below = _times(left, differentiate(right, name))
            return minus(_quotient(above, right), _quotient(below, times(right, right)))
        case Apply(name="**", arguments=(base, exponent)):
            return _power(node, base, exponent, name)
        case Apply(name=function, arguments=(x,), named=()):
            return _times(_slope(function, x), differentiate(x, name))
        case Fold(name="sum", index=index, low=low, high=high, term=term):
            if name in free(low) | free(high):
                raise ProofError("a sum whose ends depend on the variable of a derivative")
            return Fold("sum", index, low, high, differentiate(term, name))
    raise ProofError(f"the kernel has no derivative of {show(node)[:60]}")


def _plus(left: Node, right: Node) -> Node:
    if left == ZERO:
        return right
    return left if right == ZERO else Apply("+", (left, right))


def _times(left: Node, right: Node) -> Node:
    if left == ONE:
        return right
    return left if right == ONE else times(left, right)


def _power(node: Node, base: Node, exponent: Node, name: str) -> Node:
    if name not in free(exponent):
        if isinstance(exponent, Number) and exponent.value == 2:
            lower: Node = base
        elif isinstance(exponent, Number):
            lower = Apply("**", (base, Number(exponent.value - Fraction(1))))
        else:
            lower = Apply("**", (base, minus(exponent, ONE)))
        return _times(_times(exponent, lower), differentiate(base, name))
    slope = _times(differentiate(exponent, name), _call("log", base))
    if name in free(base):
        slope = plus(slope, _quotient(_times(exponent, differentiate(base, name)), base))
    return times(node, slope)


def is_smooth(node: Node, name: str) -> bool:
    """Whether the kernel knows an expression to be continuous in a variable where it is defined."""
    if name not in free(node):
        return True
    match node:
        case Name():
            return True
        case Fold(low=low, high=high, term=term):
            return name not in free(low) | free(high) and is_smooth(term, name)
        case Apply(name=function, arguments=arguments, named=()):
            return function in _CONTINUOUS and all(is_smooth(a, name) for a in arguments)
    return False


_CONTINUOUS: Final = frozenset([
    "+", "-", "*", "/", "**", "sqrt", "exp", "expm1", "log", "log1p", "log2", "sin", "cos", "tanh",
    "Phi", "erf", "erfc", "mills", "Phi_inverse", "abs", "min", "max", "gamma", "lgamma", "pi",
])  # fmt: skip
