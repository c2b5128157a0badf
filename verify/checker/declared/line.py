"""Integrals over the line, and the slope, of a density that is written as a formula.

Panels end where pieces do and at distances that double. If −v′/v ≥ λ > 0 beyond R, the integral of
v there is at most v(R)/λ; if −x v′/v ≥ α > 1, at most v(R)R/(α − 1).

A density whose slope, with its jumps, is first ≥ 0 and then ≤ 0 has level sets that are intervals.
Between, where no sign is known, f″ < 0 serves: the slope changes its sign once there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import pairwise

from flint import acb, arb, arb_series

from accountant.numbers.precision import ctx
from verify.checker.declared.formula import Cut, Known, Piece, known, pieces
from verify.checker.kernel.expressions import ZERO, Apply, Budget, Name, Node, Number, ProofError
from verify.checker.kernel.ranges import INFINITY, Range, ball
from verify.checker.reals import UnknownError

_STEPS = 1_000_000
"""Of the evaluation of ranges: some seconds."""
_STARTS = tuple(2**n for n in range(17))
"""Where tails are tried to begin."""
_HALVINGS = 16
"""Of an interval on which a sign is not known."""
BITS = 64
"""To which integrals are computed, and below which share of them a tail is left."""
_PRECISION, _FLOOR = 256, arb(2) ** -140
"""Bits of an integrand, and the value below which an integral is not told from 0."""
_MOST_PANELS = 300
"""Doublings: 2^−300 is left of a tail like 1/x²."""
_MOST_VALUES = 50_000
"""Of an integrand on one interval: a second or two."""

Integrand = Callable[[acb, bool], acb]
Panel = Callable[[Cut, Cut, arb], arb | None]
"""The integral over an interval, as narrow as stated; None where that is not known."""


def compiled(node: Node) -> Integrand:
    """Return a formula without branches as an integrand, NaN where it is not analytic."""
    match node:
        case Name():
            return lambda x, analytic: x
        case Number(value=value):
            number = acb(ball(value))
            return lambda x, analytic: number
        case Apply(name="pi"):
            return lambda x, analytic: acb(arb.pi())
        case Apply(name="**", arguments=(inner, Number(value=r))):
            base = compiled(inner)
            return lambda x, analytic: _power(base(x, analytic), r, analytic)
    assert isinstance(node, Apply)
    parts = [compiled(part) for part in node.arguments]
    a, b = parts[0], parts[-1]
    match node.name:
        case "+":
            return lambda x, analytic: a(x, analytic) + b(x, analytic)
        case "*":
            return lambda x, analytic: a(x, analytic) * b(x, analytic)
        case "exp":
            return lambda x, analytic: a(x, analytic).exp()
    return lambda x, analytic: a(x, analytic).log(analytic=analytic)


def _power(base: acb, r: Fraction, analytic: bool) -> acb:
    if r.denominator == 1:
        value: acb = base ** int(r)
        return value
    if r > 0 and not analytic and base.contains(acb(0)):
        size = abs(base).upper()
        around = arb(0, (ball(r) * size.log()).exp().upper() if size > 0 else arb(0))
        return acb(around, around)
    return (ball(r) * base.log(analytic=analytic)).exp()


def _sizes(node: Node, low: arb, high: arb) -> Known:
    try:
        return known(node, Range(low, high, low_open=True, high_open=True), Budget(steps=_STEPS))
    except ProofError:
        return Known(None, None, None, None)


def _beyond(piece: Piece, start: Fraction) -> arb | None:
    """Return an upper bound of ∫ |f| from x ≥ 0 on, None where none is known."""
    if piece.formula == ZERO:
        return arb(0)
    found, at = _sizes(piece.formula, ball(start).lower(), INFINITY), ball(start)
    size = abs(compiled(piece.formula)(acb(at), False)).upper()
    bounds = []
    if found.ratio is not None and found.ratio.high < 0:
        bounds.append(size / -found.ratio.high)
    if found.power is not None and found.power.high < -1:
        bounds.append(size * at / (-found.power.high - 1))
    return min((bound.upper() for bound in bounds if bound.is_finite()), default=None)


def integral(panel: Panel, ends: Sequence[Fraction], tails: Sequence[Piece]) -> arb:
    """Return an integral over the line.

    Parameters
    ----------
    panel
        Returns the integral over an interval in which there is no end; 0 exactly where it is 0, for
        an infinite interval too.
    ends
        Where it is not analytic.
    tails
        On the right and, mirrored, on the left: what bounds its size there.
    """
    with ctx.workprec(_PRECISION):
        whole = arb(0)
        edges = sorted({Fraction(0), *ends})
        for a, b in pairwise(edges):
            whole += panel(a, b, _enough(whole)) or 0
        for sign, tail, last in ((1, tails[0], edges[-1]), (-1, tails[1], -edges[0])):
            whole += _tail(panel, tail, last, sign, whole)
        return whole


def _enough(found: arb) -> arb:
    return (found.lower() * arb(2) ** -BITS).max(_FLOOR)


def _tail(panel: Panel, tail: Piece, last: Fraction, sign: int, before: arb) -> arb:
    low, found, rest = last, arb(0), None
    for _ in range(_MOST_PANELS):
        enough = _enough(before + found)
        nothing = panel(low, None, enough) if sign > 0 else panel(None, -low, enough)
        if nothing is not None and nothing.is_zero():
            return found
        rest = _beyond(tail, low) if low > 0 else None
        if rest is not None and rest <= enough:
            break
        if rest is None and low > _STARTS[-1]:
            raise UnknownError("the tails of a density that is written as a formula")
        high = Fraction(1)
        while high <= low:
            high *= 2
        a, b = (low, high) if sign > 0 else (-high, -low)
        found += panel(a, b, enough) or 0
        low = high
    return found + arb(0, rest or arb(0))


def between(f: Integrand, low: Fraction, high: Fraction, enough: arb, bits: int = BITS) -> arb:
    """Return the integral of what is analytic between two points, but at a few."""
    found = acb.integral(
        f, acb(ball(low)), acb(ball(high)), rel_tol=arb(2) ** -bits,
        abs_tol=enough * arb(2) ** (BITS - bits), eval_limit=_MOST_VALUES,
    ).real  # fmt: skip
    if not found.is_finite():
        raise UnknownError("the integrals of a density that is written as a formula")
    return found


def at(parts: Sequence[Piece], low: Cut, high: Cut) -> Piece:
    """Return the piece on an interval without an end inside."""
    for part in parts:
        after = part.low is None or (low is not None and part.low <= low)
        if after and (part.high is None or (high is not None and high <= part.high)):
            return part
    raise UnknownError("the pieces of a density that is written as a formula")


def tails(parts: Sequence[Piece]) -> tuple[Piece, Piece]:
    """Return the last piece and, mirrored, the first one."""
    return parts[-1], parts[0].mirrored()


def cuts(parts: Sequence[Piece]) -> list[Fraction]:
    """Return the finite ends."""
    return [part.low for part in parts if part.low is not None]


def steepest(parts: Sequence[Piece], low: Cut, high: Cut) -> arb:
    """Return a bound of −(ln f)′ on an interval where f is continuous and > 0, else ∞."""
    within = [
        part for part in parts
        if (part.low is None or high is None or part.low < high)
        and (part.high is None or low is None or low < part.high)
    ]  # fmt: skip
    if not all(part.joined for part in within[1:]):
        return INFINITY
    return max(_fall(part, low, high) for part in within)


def _fall(part: Piece, low: Cut, high: Cut) -> arb:
    """Bound −(ln f)′ on what of an interval lies in a piece, on one side of 0."""
    a = part.low if low is None or (part.low is not None and part.low > low) else low
    b = part.high if high is None or (part.high is not None and part.high < high) else high
    turned = a is None or a < 0
    if turned:
        part = part.mirrored()
        a, b = (None if end is None else -end for end in (b, a))
    assert a is not None
    with ctx.workprec(_PRECISION):
        last = INFINITY if b is None else ball(b).upper()
        ratio = _sizes(part.formula, ball(a).lower(), last).ratio
    if part.formula == ZERO or ratio is None:
        return INFINITY
    return ratio.high if turned else -ratio.low


def mass(parts: Sequence[Piece]) -> arb:
    """Return ∫ f."""

    def panel(low: Cut, high: Cut, enough: arb) -> arb | None:
        formula = at(parts, low, high).formula
        if formula == ZERO:
            return arb(0)
        if low is None or high is None:
            return None
        return between(compiled(formula), low, high, enough)

    return integral(panel, cuts(parts), tails(parts))


@lru_cache(maxsize=64)
def one_mode(text: str) -> bool:
    """Whether a density is proved to rise, then to fall."""
    shown, last = "", None
    with ctx.workprec(_PRECISION):
        for part in pieces(text):
            if last is not None and part.low is not None and not part.joined:
                shown += _jump(last, part, part.low)
            shown += "|" + "".join(_signs(part))
            last = part
    return re.fullmatch(r"[+0|]*n*[-0|]*", shown) is not None


def _jump(before: Piece, after: Piece, x: Fraction) -> str:
    one, other = (compiled(part.formula)(acb(ball(x)), False).real for part in (before, after))
    return "+" if other > one else "-" if other < one else "0" if other == one else "?"


def _signs(part: Piece) -> list[str]:
    """Return the signs of the slope in order: +, − or 0; n is concave; ? is open."""
    if part.low is None or part.low < 0:
        turned = {"+": "-", "-": "+"}
        return [turned.get(sign, sign) for sign in _signs(part.mirrored())[::-1]]
    low, high, far = part.low, part.high, []
    if high is None:
        for start in _STARTS:
            if start > low and (sign := _sign(part.formula, ball(Fraction(start)), INFINITY)):
                high, far = Fraction(start), [sign]
                break
        else:
            return ["?"]
    return [*_within(part.formula, low, high, _HALVINGS), *far]


def _within(node: Node, low: Fraction, high: Fraction, halvings: int) -> Iterator[str]:
    sign = _sign(node, ball(low), ball(high))
    if sign:
        yield sign
    elif not halvings:
        yield "n" if _concave(node, low, high) else "?"
    else:
        middle = (low + high) / 2
        yield from _within(node, low, middle, halvings - 1)
        yield from _within(node, middle, high, halvings - 1)


def _sign(node: Node, low: arb, high: arb) -> str:
    slope = _sizes(node, low.lower(), high.upper()).slope
    if slope is None:
        return ""
    rises, falls = slope.low >= 0, slope.high <= 0
    return "0" if rises and falls else "+" if rises else "-" if falls else ""


def _concave(node: Node, low: Fraction, high: Fraction) -> bool:
    """Whether f″ < 0 on an interval."""
    with ctx.workprec(_PRECISION):
        cell = ball((low + high) / 2) + arb(0, ball((high - low) / 2).upper())
        found = _series(node, arb_series([cell, 1], prec=3))
    return bool(found[2] < 0)


def _series(node: Node, x: arb_series) -> arb_series:
    match node:
        case Name():
            return x
        case Number(value=value):
            return arb_series([ball(value)], prec=x.prec)
        case Apply(name="pi"):
            return arb_series([arb.pi()], prec=x.prec)
        case Apply(name="**", arguments=(inner, Number(value=r))):
            base = _series(inner, x)
            if r.denominator == 1 and r > 0:
                return reduce(lambda found, _: found * base, range(int(r) - 1), base)
            return (arb_series([ball(r)], prec=x.prec) * base.log()).exp()
    assert isinstance(node, Apply)
    parts = [_series(part, x) for part in node.arguments]
    match node.name:
        case "+":
            return parts[0] + parts[1]
        case "*":
            return parts[0] * parts[1]
        case "exp":
            return parts[0].exp()
    return parts[0].log()
