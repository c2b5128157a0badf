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

from verify.checker_laws import (
    Law,
    Noise,
    UnknownError,
    hockey_stick,
    least_epsilon,
    mean_squared_error,
    pairs,
    renyi,
    tails,
    trade_off,
    variance,
)

_MAX_EXPONENT = 100_000
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
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"{text[:60]!r} is not an expression") from None
    return _evaluate(tree, Variables({}, {}) if variables is None else variables, text.strip())


def split(text: str) -> tuple[str, str, str]:
    """Split "left <= right" into its sides and the relation."""
    tree = ast.parse(text.strip(), mode="eval").body
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


def interval(value: Any) -> Any:
    """Return an interval around a number: exact for a rational, 38 digits wide otherwise."""
    if isinstance(value, Fraction):
        return iv.mpf(value.numerator) / iv.mpf(value.denominator)
    return value if isinstance(value, iv.mpf) else iv.mpf(value) * (1 + iv.mpf([-1, 1]) / 10**38)


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
            inner = (variables.but(**{index: Fraction(i)}) for i in range(first, last + 1))
            terms = (number(_evaluate(term, scope, source)) for scope in inner)
            return sum(terms, Fraction(0)) if name == "sum" else math.prod(terms, start=Fraction(1))
        case ast.Call(func=ast.Name(id=name)):
            values = [_evaluate(argument, variables, source) for argument in node.args]
            named = {str(k.arg): _evaluate(k.value, variables, source) for k in node.keywords}
            if name in QUESTIONS and isinstance(values[0], Noise):
                return QUESTIONS[name](values[0], *map(number, values[1:]))
            if name in FUNCTIONS:
                numbers = [number(value) for value in values]
                if any(isinstance(value, iv.mpf) for value in numbers):
                    return _over_intervals(name, *numbers)
                return FUNCTIONS[name](*numbers)
            if not name[0].isupper():
                raise UnknownError(f"{name}(…)")
            return Noise(name, {key: _argument(value) for key, value in named.items()})
    raise ValueError(f"{ast.unparse(node)[:60]!r} is not in the language")


def _argument(value: Any) -> Any:
    """Read the texts among a mechanism's arguments that are numbers."""
    if isinstance(value, list):
        return [_argument(entry) for entry in value]
    try:
        return number(value)
    except ValueError:
        return value


def _power(x: Any, y: Any) -> Any:
    if isinstance(y, Fraction) and y.denominator == 1 and abs(y) <= _MAX_EXPONENT:
        return x ** int(y)
    if isinstance(x, iv.mpf) or isinstance(y, iv.mpf):
        return interval(x) ** interval(y)
    return _root(x) if y == Fraction(1, 2) else mp.power(x, y)


def _root(x: Any) -> Any:
    """Return √x, a Fraction where it is rational."""
    if isinstance(x, Fraction) and x >= 0:
        root = Fraction(math.isqrt(x.numerator), math.isqrt(x.denominator))
        return root if root**2 == x else mp.sqrt(x)
    return mp.sqrt(x)


def _over_intervals(name: str, *values: Any) -> Any:
    """Evaluate a function over intervals: in mpmath's own form, or at the ends if monotone."""
    if name in ("exp", "log", "sqrt", "sin", "cos", "gamma", "expm1", "log1p") and not values[1:]:
        return getattr(iv, name)(values[0])
    if name == "lgamma":
        return iv.loggamma(values[0])
    if name == "abs":
        return abs(values[0])
    if name in ("erf", "erfc", "tanh", "Phi", "Phi_inverse"):
        ends = [interval(FUNCTIONS[name](mp.mpf(end))) for end in (values[0].a, values[0].b)]
        return iv.mpf([min(end.a for end in ends), max(end.b for end in ends)])
    raise UnknownError(f"{name} over an interval")


def _rounded(x: Any, digits: Any, up: int) -> Fraction:
    """Round to significant digits, up for up = 1; what is not dyadic lies inside a ball."""
    with mp.workdps(max(mp.dps, int(digits) + 40)):
        exact = isinstance(x, Fraction) and x.denominator & (x.denominator - 1) == 0
        nudged = mp.mpf(x) * (1 + (0 if exact else up * mp.sign(x) * mp.mpf(10) ** -(digits + 30)))
        unit = Fraction(10) ** (int(mp.floor(mp.log10(abs(nudged)))) + 1 - int(digits))
        return up * int(mp.ceil(up * nudged / unit)) * unit


def _whole(x: Any, rounding: Callable[[Any], Any]) -> Fraction:
    if not isinstance(x, Fraction) and abs(x - mp.nint(x)) < mp.mpf(10) ** (-mp.dps // 2):
        raise UnknownError("the integer part of a number too near an integer")
    return Fraction(int(rounding(x)))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(mp, name) for name in ("exp", "expm1", "log1p", "sin", "cos", "gamma")},
    **{name: getattr(mp, name) for name in ("tanh", "erf", "erfc")},
    "sqrt": _root,
    "log": lambda x, base=None: mp.log(x) if base is None else mp.log(x) / mp.log(base),
    "log2": lambda x: mp.log(x) / mp.log(2),
    "lgamma": mp.loggamma,
    "Phi": mp.ncdf,
    "Phi_inverse": lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1),
    "gamma_upper": lambda shape, x: mp.gammainc(shape, x, regularized=True),
    "beta_lower": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
    "lambert_w": mp.lambertw,
    "pi": lambda: +mp.pi,
    "abs": abs,
    "min": min,
    "max": max,
    "floor": lambda x: _whole(x, math.floor if isinstance(x, Fraction) else mp.floor),
    "ceil": lambda x: _whole(x, math.ceil if isinstance(x, Fraction) else mp.ceil),
    "round_up": lambda x, digits=40: _rounded(x, digits, 1),
    "round_down": lambda x, digits=40: _rounded(x, digits, -1),
    "binomial": lambda n, k: Fraction(math.comb(int(n), int(k))),
    "harmonic": lambda n, order=1: mp.fsum(mp.mpf(i) ** -order for i in range(1, int(n) + 1)),
}


def _mu(law: Law) -> Any:
    if law["law"] != "gaussian":
        raise UnknownError(f"mu of the law {law['law']!r}")
    return law["mu"]


def _largest(answer: Callable[..., Any]) -> Callable[..., Any]:
    """Ask a question about each pair of a mechanism; the largest answer counts."""
    return lambda noise, *at: max(answer(law, *at) for law in pairs(noise))


QUESTIONS: dict[str, Callable[..., Any]] = {
    "delta": _largest(hockey_stick),
    "renyi": _largest(renyi),
    "mu": _largest(_mu),
    "rho": _largest(lambda law: _mu(law) ** 2 / 2),
    "loss_above": _largest(lambda law, loss: tails(law, loss)[0]),
    "total_variation": _largest(lambda law: hockey_stick(law, Fraction(0))),
    "beta": lambda noise, alpha: min(trade_off(law, alpha) for law in pairs(noise)),
    "epsilon": lambda noise, delta: least_epsilon(pairs(noise), delta),
    "variance": variance,
    "mse": mean_squared_error,
}
"""Questions about a mechanism."""
