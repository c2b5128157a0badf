"""Integrals over the line, and the slope, of a density that is written as a formula.

Panels end where pieces do and at distances that double. If −v′/v ≥ λ > 0 beyond R, the integral of
v there is at most v(R)/λ; if −x v′/v ≥ α > 1, at most v(R)R/(α − 1). Where a sign matters intervals
are halved until it is known, but on tiny ones.

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

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.declared.formula import Cut, Known, Piece, known, pieces
from dpassay.verifier.checker.kernel.expressions import (
    ZERO,
    Apply,
    Budget,
    Name,
    Node,
    Number,
    ProofError,
)
from dpassay.verifier.checker.kernel.ranges import INFINITY, Range, ball, fraction, united
from dpassay.verifier.checker.reals import UnknownError

_STEPS = 1_000_000
"""Of the evaluation of ranges: some seconds."""
_STARTS = tuple(2**n for n in range(17))
"""Where tails are tried to begin."""
_HALVINGS = 16
"""Of an interval on which a sign is not known."""
_BITS = 64
"""To which integrals are computed, and below which share of them a tail is left."""
_PRECISION, _FLOOR = 256, arb(2) ** -140
"""Bits of an integrand, and the value below which an integral is not told from 0."""
_MOST_PANELS = 300
"""Doublings: 2^−300 is left of a tail like 1/x²."""
_MOST_CELLS = 256
"""Intervals of unknown sign at once: more are no crossing but a function that is nearly 0."""
_SHARES = (Fraction(1, 2), Fraction(3, 8))
"""Where an interval is cut: at another point where the first one is the root."""
_MOST_VALUES = 20_000
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
        around = arb(0, arb(0) if size <= 0 else (ball(r) * size.log()).exp().upper())
        return acb(around, around)
    return (ball(r) * base.log(analytic=analytic)).exp()


def _sizes(node: Node, low: arb, high: arb) -> Known:
    try:
        return known(node, Range(low, high, low_open=True, high_open=True), Budget(steps=_STEPS))
    except ProofError:
        return Known(None, None, None, None)


def beyond(piece: Piece, start: Fraction) -> arb | None:
    """Return an upper bound of ∫ |f| from a point ≥ 0 on, None where none is known."""
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
    return (found.lower() * arb(2) ** -_BITS).max(_FLOOR)


def _tail(panel: Panel, tail: Piece, last: Fraction, sign: int, before: arb) -> arb:
    low, found, rest = last, arb(0), None
    for _ in range(_MOST_PANELS):
        enough = _enough(before + found)
        nothing = panel(low, None, enough) if sign > 0 else panel(None, -low, enough)
        if nothing is not None and nothing.is_zero():
            return found
        rest = beyond(tail, low) if low > 0 else None
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


def smooth(f: Integrand, low: Fraction, high: Fraction, enough: arb) -> arb:
    """Return the integral of what is analytic between two points."""
    found = acb.integral(
        f, acb(ball(low)), acb(ball(high)),
        rel_tol=arb(2) ** -_BITS, abs_tol=enough, eval_limit=_MOST_VALUES,
    ).real  # fmt: skip
    if not found.is_finite():
        raise UnknownError("the integrals of a density that is written as a formula")
    return found


def stretches(
    f: Callable[[arb], arb], slope: Callable[[arb], arb], low: Fraction, high: Fraction
) -> list[tuple[Fraction, Fraction, int]]:
    """Return intervals on which the sign of f is known, neighbours as one; 0 on others.

    Where the slope has one sign, signs at points say where f changes its own.
    """
    done: list[tuple[Fraction, Fraction, int]] = []
    cells = [(low, high)]
    for _ in range(_BITS):
        halves = []
        for a, b in cells:
            cell = around(a, b)
            if sign := _sign_of(f(cell)):
                done.append((a, b, sign))
            elif _sign_of(slope(cell)):
                done += _monotone(f, a, b)
            else:
                halves += [(a, (a + b) / 2), ((a + b) / 2, b)]
        cells = halves
        if len(cells) > _MOST_CELLS:
            break
    found: list[tuple[Fraction, Fraction, int]] = []
    for a, b, sign in sorted([*done, *((a, b, 0) for a, b in cells)]):
        start = found.pop()[0] if found and found[-1][2] == sign else a
        found.append((start, b, sign))
    return found


def _monotone(
    f: Callable[[arb], arb], low: Fraction, high: Fraction
) -> list[tuple[Fraction, Fraction, int]]:
    """Return the parts of an interval, on which f is monotone, by halving."""
    first, last = (_sign_of(f(ball(end))) for end in (low, high))
    if first == last != 0:
        return [(low, high, first)]
    first, last = first or -last, last or -first  # at an end that is a root, on either side of it
    a, b = low, high
    for _ in range(_BITS if first else 0):
        for share in _SHARES:
            middle = a + (b - a) * share
            if sign := _sign_of(f(ball(middle))):
                break
        else:
            break
        a, b = (middle, b) if sign == first else (a, middle)
    parts = (low, a, first), (a, b, 0), (b, high, last)
    return [part for part in parts if part[0] < part[1]]


def _sign_of(value: arb) -> int:
    return 1 if value > 0 else -1 if value <= 0 else 0


def slope(formula: Node, x: arb) -> arb:
    """Return a ball that contains the derivative on a ball."""
    return _series(formula, arb_series([x, 1], prec=2))[1]


def around(low: Fraction, high: Fraction) -> arb:
    """Return a ball that contains an interval."""
    return ball((low + high) / 2) + arb(0, ball((high - low) / 2).upper())


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


def losses(parts: Sequence[Piece], low: Cut, high: Cut) -> tuple[Cut, Cut]:
    """Return bounds of −(ln f)′ on an interval where f is continuous and > 0; None is infinite."""
    within = [
        part for part in parts
        if (part.low is None or high is None or part.low < high)
        and (part.high is None or low is None or low < part.high)
    ]  # fmt: skip
    with ctx.workprec(_PRECISION):  # of which all ends of ranges are
        found = [_loss(part, low, high) for part in within if part.formula != ZERO]
        if len(found) < len(within) or None in found or not all(map(_joined, within, within[1:])):
            return None, None
        ranges = reduce(united, (one for one in found if one is not None))
        return _exact(ranges.low), _exact(ranges.high)


def _exact(end: arb) -> Cut:
    try:
        return fraction(end) if end.is_finite() else None
    except ProofError:  # of too many digits
        return None


def _loss(part: Piece, low: Cut, high: Cut) -> Range | None:
    """Return the range of −(ln f)′ on what of an interval lies in a piece, on one side of 0."""
    a = part.low if low is None or (part.low is not None and part.low > low) else low
    b = part.high if high is None or (part.high is not None and part.high < high) else high
    turned = a is None or a < 0
    if turned:
        part = part.mirrored()
        a, b = (None if end is None else -end for end in (b, a))
    assert a is not None
    last = INFINITY if b is None else ball(b).upper()
    ratio = _sizes(part.formula, ball(a).lower(), last).ratio
    return ratio if turned or ratio is None else -ratio


def mass(parts: Sequence[Piece]) -> arb:
    """Return ∫ f."""

    def panel(low: Cut, high: Cut, enough: arb) -> arb | None:
        formula = at(parts, low, high).formula
        if formula == ZERO:
            return arb(0)
        if low is None or high is None:
            return None
        return smooth(compiled(formula), low, high, enough)

    return integral(panel, cuts(parts), tails(parts))


@lru_cache(maxsize=64)
def one_mode(text: str) -> bool:
    """Whether a density is proved to rise, then to fall."""
    shown, last = "", None
    with ctx.workprec(_PRECISION):
        for part in pieces(text):
            if last is not None and part.low is not None and not _joined(last, part):
                shown += _jump(last, part, part.low)
            shown += "|" + "".join(_signs(part))
            last = part
    return re.fullmatch(r"[+0|]*(n*|j)[-0|]*", shown) is not None


def _jump(before: Piece, after: Piece, x: Fraction) -> str:
    one, other = (compiled(part.formula)(acb(ball(x)), False).real for part in (before, after))
    return "+" if other > one else "-" if other < one else "0" if other == one else "j"


def _joined(before: Piece, after: Piece) -> bool:
    """Whether two pieces have the same limit where they meet: not if a formula is undefined."""
    x = after.low
    assert x is not None
    return after.joined and all(_defined(part.formula, x) for part in (before, after))


@lru_cache(maxsize=1024)
def _defined(formula: Node, x: Fraction) -> bool:
    """Whether a formula has a value, and so is continuous: 1/(1 + e^{1/x}) jumps where not."""
    with ctx.workprec(_PRECISION):
        value = compiled(formula)(acb(ball(x)), False)
    return bool(value.is_finite())


def _signs(part: Piece) -> list[str]:
    """Return the signs of the slope in order: +, − or 0; n is concave, j may jump, ? is open."""
    if part.low is None or part.low < 0:
        turned = {"+": "-", "-": "+"}
        return [turned.get(sign, sign) for sign in _signs(part.mirrored())[::-1]]
    low, high, far = part.low, part.high, []
    if high is None:
        for start in _STARTS:
            if start > low and (sign := _sign(part.formula, ball(Fraction(start)), INFINITY)):
                high = Fraction(start)
                far = [*_gap(part.formula, high), sign]
                break
        else:
            return ["?"]
    signs = []
    for sign in _within(part.formula, low, high, _HALVINGS):
        signs.append(sign)
        if sign == "?":  # nothing is proved, whatever the others are
            break
    return [*signs, *far]


def _within(node: Node, low: Fraction, high: Fraction, halvings: int) -> Iterator[str]:
    sign = _sign(node, ball(low), ball(high))
    if sign:
        yield sign
    elif not halvings:
        yield "n" if _concave(node, low, high) else "?"
    else:
        middle = (low + high) / 2
        yield from _within(node, low, middle, halvings - 1)
        yield from _gap(node, middle)
        yield from _within(node, middle, high, halvings - 1)


def _gap(node: Node, x: Fraction) -> str:
    return "" if _defined(node, x) else "j"


def _sign(node: Node, low: arb, high: arb) -> str:
    slope = _sizes(node, low.lower(), high.upper()).slope
    if slope is None:
        return ""
    rises, falls = slope.low >= 0, slope.high <= 0
    return "0" if rises and falls else "+" if rises else "-" if falls else ""


def nowhere_negative(piece: Piece) -> bool:
    """Whether a piece is proved to be ≥ 0."""
    if piece.low is None or piece.low < 0:
        return nowhere_negative(piece.mirrored())
    waiting, size = [(piece.low, piece.high, _HALVINGS)], Fraction(1)
    while waiting:
        low, high, left = waiting.pop()
        end = INFINITY if high is None else ball(high).upper()
        value = _sizes(piece.formula, ball(low).lower(), end).value
        if value is not None and value.low >= 0:
            continue
        if not left:
            return False
        size *= 2
        middle = max(size, 2 * low) if high is None else (low + high) / 2
        waiting += [(low, middle, left - 1), (middle, high, left - 1)]
    return True


def falls(piece: Piece, start: Fraction) -> bool:
    """Whether a last piece is proved to fall from a point > 0 on."""
    return _sign(piece.formula, ball(start), INFINITY) in {"-", "0"}


def _concave(node: Node, low: Fraction, high: Fraction) -> bool:
    """Whether f″ < 0 on an interval."""
    with ctx.workprec(_PRECISION):
        found = _series(node, arb_series([around(low, high), 1], prec=3))
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
