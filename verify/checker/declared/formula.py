"""A density that is written as a formula in x: its pieces, its slope and its integrals.

Branches, of `if`, comparisons, abs, min, max and tables, end where a function that is affine on the
piece is 0: at rational numbers, so that every piece is one formula without branches, analytic
inside. What is known of it on an interval, which may reach to ∞, is four ranges: of the value v, of
the derivative v′, of l = v′/v and of e = x v′/v. Of a sum l is the mean of both with the weights of
their shares b/(a + b) = 1/(1 + a/b); of a product the sum; of a power a multiple; of e^a it is a′.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial, reduce
from itertools import pairwise
from operator import add, mul, sub
from typing import TypeAlias, final

from dpassay.verifier.checker.kernel.expressions import (
    ONE,
    ZERO,
    Apply,
    Budget,
    Name,
    Node,
    Number,
    ProofError,
    number,
    replace,
    walk,
)
from dpassay.verifier.checker.kernel.extended import FUNCTIONS, evaluate, raised
from dpassay.verifier.checker.kernel.ranges import Range, intersection, united
from dpassay.verifier.checker.reals import UnknownError

LONGEST = 2000
"""Characters of a formula, as its mechanism allows: longer ones are no density one reads."""
_MOST_POINTS = 200
"""Of a table, as its mechanism allows."""
_MOST_BITS = 1 << 20
"""Of a power of a number that is multiplied out."""
_X = Name("x")
Cut: TypeAlias = Fraction | None
"""An end of a piece; None is infinite."""


@final
@dataclass(frozen=True)
class Piece:
    """A formula between two points, and whether it is joined to the piece before."""

    low: Cut
    high: Cut
    formula: Node
    joined: bool = True

    def mirrored(self, *, joined: bool = False) -> Piece:
        """Return the piece as a function of −x."""
        low, high = (None if end is None else -end for end in (self.high, self.low))
        return Piece(low, high, replace(self.formula, {_X: -_X}), joined)

    def moved(self, by: Fraction) -> Piece:
        """Return the piece as a function of x − t."""
        low, high = (None if end is None else end + by for end in (self.low, self.high))
        formula = replace(self.formula, {_X: _X + -by})
        return Piece(low, high, formula, self.joined)

    def at(self, x: Fraction) -> Node:
        """Return the formula at a point."""
        return _without_zeros(replace(self.formula, {_X: Number(x)}))


def mirrored(parts: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Return the pieces of f(−x)."""
    after = [part.joined for part in (*parts[1:], parts[0])]
    return tuple(p.mirrored(joined=j) for p, j in zip(parts, after, strict=True))[::-1]


@lru_cache(maxsize=64)
def pieces(text: str) -> tuple[Piece, ...]:
    """Read a formula; 0 is always an end. Raises ValueError, or UnknownError for other ends."""
    cut = _cut(_whole(text), None, None, joined=True)
    found = [cut[0], *(_met(*ends) for ends in pairwise(cut))]
    return tuple(part for piece in found for part in _at_zero(piece))


@lru_cache(maxsize=64)
def _whole(text: str) -> Node:
    if len(text) > LONGEST:
        raise ValueError("a formula in x of at most 2000 characters")
    try:
        return _read(ast.parse(text.strip(), mode="eval").body, text.strip())
    except (SyntaxError, ProofError, RecursionError, MemoryError, ZeroDivisionError):
        raise ValueError("a formula in x") from None


def at_point(text: str, x: int | Fraction) -> Node:
    """Return the formula that holds at a point, without branches."""
    return _without_zeros(_settled(_whole(text), Number(Fraction(x))))


def _settled(node: Node, x: Number) -> Node:
    match node:
        case Apply(name="where" | "joined", arguments=(test, yes, no)):
            _, value = _affine(_settled(test, x))
            return _settled(yes if value > 0 else no, x)
        case Apply(name=name, arguments=arguments):
            return Apply(name, tuple(_settled(one, x) for one in arguments))
    return x if node == _X else node


def rational(node: Node) -> Fraction | None:
    """Return the value of a formula without x where it is rational by its form."""
    match node:
        case Number(value=value):
            return value
        case Apply(name="+" | "*" as name, arguments=arguments):
            values = [rational(one) for one in arguments]
            known = [value for value in values if value is not None]
            if len(known) == len(values):
                return (
                    sum(known, Fraction(0)) if name == "+" else math.prod(known, start=Fraction(1))
                )
        case Apply(name="**", arguments=(inner, Number(value=r))) if r.denominator == 1:
            base = rational(inner)
            return base ** int(r) if base is not None and _short(base, r) else None
    return None


def _met(before: Piece, after: Piece) -> Piece:
    """Return a piece, joined to the one before where both have one exact value, or one formula."""
    assert after.low is not None
    if before.formula == after.formula:
        return Piece(after.low, after.high, after.formula)
    try:
        x = {"x": Range.exact(after.low)}
        one, other = (evaluate(part.formula, x, Budget()) for part in (before, after))
    except ProofError:
        return after
    meets = one.low == one.high == other.low == other.high
    return Piece(after.low, after.high, after.formula, after.joined or bool(meets))


def _at_zero(piece: Piece) -> Iterator[Piece]:
    if (piece.low is None or piece.low < 0) and (piece.high is None or piece.high > 0):
        yield Piece(piece.low, Fraction(0), piece.formula, piece.joined)
        yield Piece(Fraction(0), piece.high, piece.formula)
    else:
        yield piece


def _read(node: ast.expr, source: str) -> Node:
    read = partial(_read, source=source)
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return Number(Fraction((ast.get_source_segment(source, node) or "").replace("_", "")))
        case ast.Name(id="x"):
            return _X
        case ast.Name(id="r"):
            return _function("abs", [_X])
        case ast.Name(id="pi"):
            return Apply("pi", ())
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return product(number(-1), read(inner))
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return read(inner)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = read(left), read(right)
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return _less(a, b)
                case ast.Mult():
                    return product(a, b)
                case ast.Div():
                    return product(a, power(b, Fraction(-1)))
                case ast.Pow():
                    if isinstance(b, Number):
                        return power(a, b.value)
                    return Apply("exp", (product(b, Apply("log", (a,))),))
        case ast.IfExp(test=test, body=body, orelse=other):
            return _where(test, read(body), read(other), source)
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return _where(node, ONE, ZERO, source)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name in ("steps", "linear", "loglinear"):
                return _table(name, [_point(one, source) for one in arguments])
            return _function(name, [read(one) for one in arguments])
    raise ValueError("a formula in x")


def product(a: Node, b: Node) -> Node:
    """Return a product, of numbers as a number."""
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(a.value * b.value)
    return a * b


def _less(a: Node, b: Node) -> Node:
    return a + product(number(-1), b)


def power(a: Node, r: Fraction) -> Node:
    """Return a power, of a number as a number."""
    if isinstance(a, Number) and r.denominator == 1 and (not a.value or _short(a.value, r)):
        return Number(a.value ** int(r))
    return Apply("**", (a, Number(r)))


def _short(base: Fraction, r: Fraction) -> bool:
    """Whether an integer power of a number has few bits, and is none by 0."""
    size = base.numerator.bit_length() + base.denominator.bit_length()
    return bool(base or r >= 0) and size * abs(r) <= _MOST_BITS


def _function(name: str, values: list[Node]) -> Node:
    """Return a function in +, ∗, powers, exp, log and branches."""
    if name in ("min", "max") and len(values) >= 2:
        return reduce(lambda a, b: _larger(a, b) if name == "max" else _larger(b, a, least=True),
                      values)  # fmt: skip
    (a,) = values
    grows, falls = Apply("exp", (a,)), Apply("exp", (product(number(-1), a),))
    match name:
        case "abs":
            return Apply("joined", (a, a, product(number(-1), a)))
        case "exp" | "log":
            return Apply(name, (a,))
        case "sqrt":
            return power(a, Fraction(1, 2))
        case "cosh":
            return Fraction(1, 2) * (grows + falls)
        case "sinh":
            return product(number(Fraction(1, 2)), _less(grows, falls))
        case "tanh":
            return product(_less(grows, falls), power(grows + falls, Fraction(-1)))
    raise ValueError("a formula in x")


def _larger(a: Node, b: Node, *, least: bool = False) -> Node:
    """Return the larger of two, or the smaller one."""
    return Apply("joined", (_less(a, b), b, a) if least else (_less(a, b), a, b))


def _where(test: ast.expr, yes: Node, no: Node, source: str) -> Node:
    """Return a branch: `yes` where a test is > 0."""
    match test:
        case ast.BoolOp(op=ast.And(), values=tests):
            return reduce(lambda inner, one: _where(one, inner, no, source), tests[::-1], yes)
        case ast.BoolOp(op=ast.Or(), values=tests):
            return reduce(lambda inner, one: _where(one, yes, inner, source), tests[::-1], no)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _where(inner, no, yes, source)
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [_read(side, source) for side in (left, *others)]
            found = yes
            for op, a, b in zip(ops, sides, sides[1:], strict=False):
                if not isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
                    raise ValueError("a formula in x")
                more, less = (b, a) if isinstance(op, (ast.Lt, ast.LtE)) else (a, b)
                strict = isinstance(op, (ast.Lt, ast.Gt))  # else it is not less > more
                branch = (
                    (_less(more, less), found, no) if strict else (_less(less, more), no, found)
                )
                found = Apply("where", branch)
            return found
    raise ValueError("a formula in x")


def _point(node: ast.expr, source: str) -> tuple[Fraction, Fraction]:
    if isinstance(node, ast.Tuple) and len(node.elts) == 2:
        x, f = (_read(each, source) for each in node.elts)
        if isinstance(x, Number) and isinstance(f, Number):
            return x.value, f.value
    raise ValueError("a point of a table")


def _table(name: str, points: list[tuple[Fraction, Fraction]]) -> Node:
    """Return the branches of a table, 0 outside."""
    if not 2 <= len(points) <= _MOST_POINTS or any(a >= b for (a, _), (b, _) in pairwise(points)):
        raise ValueError("a table of 2 to 200 points in increasing order")
    if name == "steps" and points[-1][1]:
        raise ValueError("a table of steps that ends with 0: its last value holds from there on")
    found: Node = ZERO
    for index, ((a, f), (b, g)) in reversed(list(enumerate(pairwise(points)))):
        share = 1 / (b - a) * (_X + -a)
        if name == "steps" or f == g:
            between: Node = number(f)
        elif name == "linear":
            between = f + (g - f) * share
        else:
            rate = product(Apply("log", (number(g / f),)), share)
            between = product(number(f), Apply("exp", (rate,)))
        if index == len(points) - 2 and name != "steps":  # which holds at the last point
            found = Apply("where", (_X + -b, ZERO, between))
        else:
            found = Apply("where" if name == "steps" else "joined", (b + -_X, between, found))
    return Apply("where", (points[0][0] + -_X, ZERO, found))


def _cut(node: Node, low: Cut, high: Cut, *, joined: bool) -> list[Piece]:
    """Return the pieces of a formula between two points."""
    branches = [
        one for one in walk(node)
        if isinstance(one, Apply) and one.name in ("where", "joined")
        and not any(isinstance(part, Apply) and part.name in ("where", "joined")
                    for part in walk(one.arguments[0]))
    ]  # fmt: skip
    if not branches:
        return [Piece(low, high, _without_zeros(node), joined)]
    chosen = max(branches, key=lambda one: one.name)  # what jumps first: others may meet it there
    test, yes, no = chosen.arguments
    rise, start = _affine(test)
    root = -start / rise if rise else None
    if root is not None and (low is None or low < root) and (high is None or root < high):
        smooth = not any(isinstance(one, Apply) and one.name == "where" for one in walk(node))
        first, second = (no, yes) if rise > 0 else (yes, no)
        before = _cut(replace(node, {chosen: first}), low, root, joined=joined)
        return before + _cut(replace(node, {chosen: second}), root, high, joined=smooth)
    inside = _inside(low, high)
    side = yes if rise * inside + start > 0 else no
    return _cut(replace(node, {chosen: side}), low, high, joined=joined)


def _without_zeros(node: Node) -> Node:
    """Return a formula in which 0 times what is finite at every x is 0, and a sum has no 0."""
    match node:
        case Apply(name="*" | "+" as name, arguments=(left, right)):
            a, b = _without_zeros(left), _without_zeros(right)
            if ZERO in (a, b):
                other = b if a == ZERO else a
                if name == "+":
                    return other
                if _finite(other):
                    return ZERO
            return Apply(name, (a, b))
    return node


def _finite(node: Node) -> bool:
    """Whether a formula has a value at every x for the reason that no part of it lacks one."""
    match node:
        case Name() | Number():
            return True
        case Apply(name="**", arguments=(inner, Number(value=r))):
            return r >= 0 and r.denominator == 1 and _finite(inner)
        case Apply(name="+" | "*" | "exp" | "pi", arguments=arguments):
            return all(map(_finite, arguments))
    return False


def _inside(low: Cut, high: Cut) -> Fraction:
    if low is None:
        return Fraction(0) if high is None else high - 1
    return low + 1 if high is None else (low + high) / 2


def _affine(node: Node) -> tuple[Fraction, Fraction]:
    """Return a and b of ax + b."""
    match node:
        case Number(value=value):
            return Fraction(0), value
        case Name():
            return Fraction(1), Fraction(0)
        case Apply(name="+", arguments=(left, right)):
            (a, b), (c, d) = _affine(left), _affine(right)
            return a + c, b + d
        case Apply(name="*", arguments=(left, right)):
            (a, b), (c, d) = _affine(left), _affine(right)
            if not a or not c:
                return a * d + b * c, b * d
    raise UnknownError("the pieces of a density whose ends are no rational numbers")


@final
@dataclass(frozen=True)
class Known:
    """Ranges of v, v′, l = v′/v and e = x v′/v on an interval; None where one is not known."""

    value: Range | None
    slope: Range | None
    ratio: Range | None
    power: Range | None


def _try(operation: Callable[..., Range], *parts: Range | None) -> Range | None:
    try:
        return None if None in parts else operation(*parts)
    except ProofError:
        return None


def _meet(*found: Range | None) -> Range | None:
    """Return the intersection of what is known."""
    result: Range | None = None
    for one in found:
        if one is not None:
            result = one if result is None else intersection(result, one)
    return result


def known(node: Node, x: Range, budget: Budget) -> Known:
    """Return what is known of a formula without branches for x > 0 in a range."""
    budget.spend()
    none = Range.exact(0)
    match node:
        case Name():
            return Known(x, Range.exact(1), _try(Range.inverse, x), Range.exact(1))
        case Number() | Apply(name="pi"):
            sign = node != ZERO
            return Known(evaluate(node, {}, budget), none, *([none, none] if sign else [None] * 2))
    assert isinstance(node, Apply)
    parts = [known(part, x, budget) for part in node.arguments]
    a = parts[0]
    match node.name:
        case "+":
            found = _sum(a, parts[1])
        case "*":
            b = parts[1]
            cross = (_try(mul, a.slope, b.value), _try(mul, a.value, b.slope))
            value = _try(mul, a.value, b.value)
            ratios = (_try(add, a.ratio, b.ratio), _try(add, a.power, b.power))
            found = Known(value, _try(add, *cross), *ratios)
        case "**":
            found = _raised(a, node.arguments[1])
        case "exp":
            powers = _try(mul, x, a.slope), _try(mul, a.power, a.value)
            found = Known(_try(FUNCTIONS["exp"], a.value), None, a.slope, _meet(*powers))
        case _:
            found = Known(_try(FUNCTIONS["log"], a.value), a.ratio, None, None)
    slope = _meet(found.slope, _try(mul, found.ratio, found.value))
    inverse = _try(Range.inverse, found.value)
    ratio = _meet(found.ratio, _try(mul, slope, inverse))
    power = _meet(found.power, _try(mul, x, ratio))
    return Known(found.value, slope, ratio, power)


def _sum(a: Known, b: Known) -> Known:
    value, slope = _try(add, a.value, b.value), _try(add, a.slope, b.slope)
    quotient = _try(mul, a.value, _try(Range.inverse, b.value))
    share = _try(Range.inverse, _try(add, Range.exact(1), quotient))
    alike = quotient is not None and quotient.low >= 0
    means = []
    for one, other in ((a.ratio, b.ratio), (a.power, b.power)):
        weighted = _try(add, one, _try(mul, _try(sub, other, one), share))
        hull = _try(united, one, other) if alike else None
        means.append(_meet(weighted, hull))
    return Known(value, slope, *means)


def _raised(a: Known, exponent: Node) -> Known:
    assert isinstance(exponent, Number)
    r, one = Range.exact(exponent.value), Range.exact(exponent.value - 1)
    value = _try(lambda base: raised(base, r), a.value)
    below = _try(lambda base: raised(base, one), a.value)
    slope = _try(mul, _try(mul, r, below), a.slope)
    return Known(value, slope, _try(mul, r, a.ratio), _try(mul, r, a.power))
