"""Derivatives of expressions, formed by the rules of calculus."""

from __future__ import annotations

from typing import Final

from dpassay.verifier.ranges.expressions import (
    ONE,
    ZERO,
    Apply,
    Fold,
    Name,
    Node,
    Number,
    ProofError,
    free,
    number,
    show,
)


def _call(name: str, *arguments: Node) -> Node:
    return Apply(name, arguments)


def _slope(name: str, x: Node) -> Node:
    """Return the derivative of a function of one argument at x."""
    match name:
        case "exp" | "expm1":
            return _call("exp", x)
        case "sqrt":
            return 1 / (2 * _call("sqrt", x))
        case "log":
            return 1 / x
        case "log2":
            return 1 / (x * _call("log", number(2)))
        case "log1p":
            return 1 / (1 + x)
        case "sin":
            return _call("cos", x)
        case "cos":
            return -_call("sin", x)
        case "tanh":
            return 1 - _call("tanh", x) * _call("tanh", x)
        case "Phi":
            return _call("exp", -(x * x) / 2) / _call("sqrt", 2 * _call("pi"))
        case "erf":
            return 2 * _call("exp", -(x * x)) / _call("sqrt", _call("pi"))
        case "erfc":
            return -_slope("erf", x)
        case "mills":
            return x * _call("mills", x) - 1
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
            return differentiate(left, name) + differentiate(right, name)
        case Apply(name="-", arguments=(left, right)):
            return differentiate(left, name) - differentiate(right, name)
        case Apply(name="*", arguments=(left, right)):
            if name not in free(left):
                return left * differentiate(right, name)
            if name not in free(right):
                return differentiate(left, name) * right
            return differentiate(left, name) * right + left * differentiate(right, name)
        case Apply(name="/", arguments=(left, right)):
            above = differentiate(left, name)
            if name not in free(right):
                return above / right
            return above / right - left * differentiate(right, name) / (right * right)
        case Apply(name="**", arguments=(base, exponent)):
            return _power(node, base, exponent, name)
        case Apply(name=function, arguments=(x,), named=()):
            return _slope(function, x) * differentiate(x, name)
        case Fold(name="sum", index=index, low=low, high=high, term=term):
            if name in free(low) | free(high):
                raise ProofError("a sum whose ends depend on the variable of a derivative")
            return Fold("sum", index, low, high, differentiate(term, name))
    raise ProofError(f"the kernel has no derivative of {show(node)[:60]}")


def _power(node: Node, base: Node, exponent: Node, name: str) -> Node:
    if name not in free(exponent):
        if isinstance(exponent, Number):
            lower = base if exponent.value == 2 else base ** (exponent.value - 1)
        else:
            lower = base ** (exponent - 1)
        return exponent * lower * differentiate(base, name)
    slope = differentiate(exponent, name) * _call("log", base)
    if name in free(base):
        slope = slope + exponent * differentiate(base, name) / base
    return node * slope


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
