"""Evaluate expressions over ranges of their variables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from flint import arb

from dpassay.verifier.ranges.expressions import (
    ONE,
    Apply,
    Budget,
    Fold,
    Name,
    Node,
    Number,
    ProofError,
    show,
)
from dpassay.verifier.ranges.ranges import (
    INFINITY,
    Range,
    ball,
    falling,
    fraction,
    maximum,
    minimum,
    monotone,
)

Box = Mapping[str, Range]
_MOST_TERMS: Final = 10_000
_LEAST_OF_GAMMA: Final = Fraction(14616, 10_000)
"""Below it Γ falls, above it + 1/1000 it grows (its minimum is at 1.46163…)."""


def evaluate(node: Node, box: Box, budget: Budget) -> Range:
    """Return a range that contains every value; raise ProofError where one may be undefined."""
    budget.spend()
    match node:
        case Number(value=value):
            return Range.exact(value)
        case Name(name=name):
            if name not in box:
                raise ProofError(f"{name} has no range")
            return box[name]
        case Apply(name="+", arguments=(left, right)):
            return evaluate(left, box, budget) + evaluate(right, box, budget)
        case Apply(
            name="-",
            arguments=(Apply(name="*", arguments=(x, Apply(name="mills", arguments=(y,)))), right),
        ) if x == y and right == ONE:
            return _mills_slope(evaluate(x, box, budget))
        case Apply(name="-", arguments=(left, right)):
            return evaluate(left, box, budget) - evaluate(right, box, budget)
        case Apply(name="*", arguments=(left, right)):
            if left == right:
                return evaluate(left, box, budget) ** 2
            return evaluate(left, box, budget) * evaluate(right, box, budget)
        case Apply(name="/", arguments=(left, right)):
            return evaluate(left, box, budget) * evaluate(right, box, budget).inverse()
        case Apply(name="**", arguments=(base, exponent)):
            return raised(evaluate(base, box, budget), evaluate(exponent, box, budget))
        case Apply(name=name, arguments=arguments, named=()) if name in FUNCTIONS:
            return FUNCTIONS[name](*(evaluate(argument, box, budget) for argument in arguments))
        case Fold():
            return _fold(node, box, budget)
    raise ProofError(f"{show(node)[:60]} has no enclosure")


def raised(base: Range, exponent: Range) -> Range:
    """Return base**exponent: for an integer exponent, a root, or a base > 0."""
    if exponent.is_point():
        value = fraction(exponent.low)
        if value.denominator == 1:
            return base ** int(value)
        if value == Fraction(1, 2):
            return _root(base)
    if base.low > 0 or (base.low == 0 and base.low_open):
        return MONOTONE["exp"](exponent * _log(base))
    raise ProofError("a power of a number that was not shown to be > 0")


def _fold(node: Fold, box: Box, budget: Budget) -> Range:
    low, high = (evaluate(end, box, budget) for end in (node.low, node.high))
    if not (low.is_point() and high.is_point()):
        raise ProofError("a sum whose ends are not single numbers")
    first, last = fraction(low.low), fraction(high.low)
    if first.denominator != 1 or last.denominator != 1 or last - first > _MOST_TERMS:
        raise ProofError("a sum whose ends are no integers, or which is too long")
    total = Range.exact(0 if node.name == "sum" else 1)
    for index in range(int(first), int(last) + 1):
        term = evaluate(node.term, {**box, node.index: Range.exact(index)}, budget)
        total = total + term if node.name == "sum" else total * term
    return total


def _taking(count: int, function: Callable[..., Range]) -> Callable[..., Range]:
    def applied(*arguments: Range) -> Range:
        if len(arguments) != count:
            raise ProofError("a function has the wrong number of arguments")
        return function(*arguments)

    return applied


def _log(x: Range) -> Range:
    if x.low < 0 or (x.low == 0 and not x.low_open):
        raise ProofError("the logarithm of a number that was not shown to be > 0")
    return monotone(lambda end: -INFINITY if end == 0 else end.log(), x, INFINITY)


def _log1p(x: Range) -> Range:
    if x.low < -1 or (x.low == -1 and not x.low_open):
        raise ProofError("the logarithm of a number that was not shown to be > 0")
    return monotone(lambda end: -INFINITY if end == -1 else end.log1p(), x, INFINITY)


def _root(x: Range) -> Range:
    if x.low < 0:
        raise ProofError("the root of a number that was not shown to be >= 0")
    return monotone(arb.sqrt, x, INFINITY)


def _quantile(p: Range) -> Range:
    if p.low < 0 or p.high > 1:
        raise ProofError("Phi_inverse of a number that was not shown to be in (0, 1)")
    if (p.low == 0 and not p.low_open) or (p.high == 1 and not p.high_open):
        raise ProofError("Phi_inverse of a number that was not shown to be in (0, 1)")

    def at(end: arb) -> arb:
        if end in (0, 1):
            return INFINITY if end == 1 else -INFINITY
        return -arb(2).sqrt() * (2 * end).erfcinv()

    return monotone(at, p, None)


def mills_ball(x: arb) -> arb:
    """Return Φ(−x)/φ(x) = √(π/2) e^{x²/2} erfc(x/√2) of a ball."""
    half = x * x / 2
    if x > 1:  # U(1/2, 1/2, x²/2)/√2, which neither overflows nor cancels
        scaled = half.hypgeom_u(arb(1) / 2, arb(1) / 2) / arb(2).sqrt()
        if scaled.is_finite():
            return scaled
        return (1 / x).union(x / (x * x + 1))
    return (arb.pi() / 2).sqrt() * half.exp() * (x / arb(2).sqrt()).erfc()


@final
@dataclass(frozen=True, slots=True)
class Monotone:
    """A strictly monotone function of the real numbers; its limits at ±∞ are no values."""

    function: Callable[[arb], arb]
    at_minus_infinity: arb
    at_infinity: arb

    @property
    def falls(self) -> bool:
        """Whether the function decreases."""
        return bool(self.at_infinity < self.at_minus_infinity)

    def __call__(self, x: Range) -> Range:
        """Return the values over a range."""
        turned = falling if self.falls else monotone
        found = turned(self.function, x, self.at_infinity, self.at_minus_infinity)
        low, high = sorted((self.at_minus_infinity, self.at_infinity))
        return Range(
            found.low if found.low > low else low,
            found.high if found.high < high else high,
            found.low_open or not found.low > low,
            found.high_open or not found.high < high,
        )


MONOTONE: Final[dict[str, Monotone]] = {
    "exp": Monotone(arb.exp, arb(0), INFINITY),
    "expm1": Monotone(arb.expm1, arb(-1), INFINITY),
    "tanh": Monotone(arb.tanh, arb(-1), arb(1)),
    "erf": Monotone(arb.erf, arb(-1), arb(1)),
    "erfc": Monotone(arb.erfc, arb(2), arb(0)),
    "Phi": Monotone(lambda x: (-x / arb(2).sqrt()).erfc() / 2, arb(0), arb(1)),
    "mills": Monotone(mills_ball, INFINITY, arb(0)),
}
"""Function → how it encloses, and where it tends to."""


def _mills_slope(x: Range) -> Range:
    """x·m(x) − 1, the derivative of the convex, decreasing m = Φ(−x)/φ(x): it grows to 0."""
    found = monotone(lambda end: end * mills_ball(end) - 1, x, arb(0), -INFINITY)
    if found.high < 0:
        return found
    return Range(found.low, arb(0), found.low_open, True)


def _gamma(x: Range, function: Callable[[arb], arb] = arb.gamma) -> Range:
    if x.low <= 0:
        raise ProofError("gamma of a number that was not shown to be > 0")
    least = ball(_LEAST_OF_GAMMA)
    above = least + ball(Fraction(1, 1000))
    if x.low >= above:
        return monotone(function, x, INFINITY)
    if not x.high.is_finite():
        raise ProofError("gamma of a range around its minimum")
    return Range.ball(function(x.low.union(x.high)))


def _trigonometric(function: Callable[[arb], arb]) -> Callable[[Range], Range]:
    def applied(x: Range) -> Range:
        if not (x.low.is_finite() and x.high.is_finite()):
            return Range(arb(-1), arb(1))
        found = Range.ball(function(x.low.union(x.high)))
        return Range(found.low.max(arb(-1)), found.high.min(arb(1)))

    return applied


def _floor(x: Range) -> Range:
    low = x.low.floor().lower() if x.low.is_finite() else x.low
    high = x.high.floor().upper() if x.high.is_finite() else x.high
    return Range(low, high)


def _folded(choose: Callable[[Range, Range], Range]) -> Callable[..., Range]:
    def applied(*arguments: Range) -> Range:
        if not arguments:
            raise ProofError("min and max need an argument")
        return functools.reduce(choose, arguments)

    return applied


FUNCTIONS: Final[dict[str, Callable[..., Range]]] = {
    **{name: _taking(1, function) for name, function in MONOTONE.items()},
    "sqrt": _taking(1, _root),
    "log": _taking(1, _log),
    "log1p": _taking(1, _log1p),
    "log2": _taking(1, lambda x: _log(x) * _log(Range.exact(2)).inverse()),
    "sin": _taking(1, _trigonometric(arb.sin)),
    "cos": _taking(1, _trigonometric(arb.cos)),
    "Phi_inverse": _taking(1, _quantile),
    "gamma": _taking(1, _gamma),
    "lgamma": _taking(1, lambda x: _gamma(x, arb.lgamma)),
    "abs": _taking(1, abs),
    "floor": _taking(1, _floor),
    "ceil": _taking(1, lambda x: -_floor(-x)),
    "min": _folded(minimum),
    "max": _folded(maximum),
    "pi": _taking(0, lambda: Range.ball(arb.pi())),
}
"""Name → function of ranges."""
