"""How narrow an answer is: as narrow as comes soon, or to a width that is named.

A question is asked as a function of the width: it returns an enclosure of at most that relative
width, or raises UndecidedError. Without a width the answer is the first of the widths that its
pairs usually reach (`Known.width`) and coarser ones, and at last bounds that need no engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction

from flint import arb

from dpassay.accountant.core.pair import Pair
from dpassay.accountant.core.validate import rational
from dpassay.accountant.errors import BetweenError, UndecidedError
from dpassay.accountant.numbers.exact import Number
from dpassay.accountant.numbers.interval import COMPOSED_WIDTH, Interval, enclose
from dpassay.accountant.pairs.invert import to_width

COARSEST = Fraction(1, 2)
"""Engines are asked for no more: a wider answer is one of these too."""
COARSER = (Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 10**4), Fraction(1, 100), COARSEST)
"""Relative widths that are tried in turn where an engine refuses a finer one."""
_NEAR = 1.5
"""An engine that refuses is asked for no less than this times what it said it had reached."""

Ask = Callable[[Fraction], Interval]


PROBABILITIES = Interval(Decimal(0), Decimal(1))
NONNEGATIVE = Interval(Decimal(0), Decimal("Infinity"))
"""Ranges of numbers: an answer that is as wide says nothing."""


def answer(
    ask: Ask,
    relative_width: Number | None,
    finest: Fraction,
    bounds: Callable[[], Interval],
    *,
    whole: Interval,
) -> Interval:
    """Return the answer of a width, or the best that comes soon where none is named.

    Parameters
    ----------
    ask
        Encloses the answer to a relative width below 1, or raises UndecidedError. An `interval`
        that the error carries encloses the answer too.
    relative_width
        Any number > 0, or None.
    finest
        What is asked for first where no width is named.
    bounds
        Encloses the answer without an engine, however widely.
    whole
        What every such number lies in, whatever it is of.

    Raises
    ------
    UndecidedError
        If a width is named and not reached; `interval` is the best enclosure. With or without a
        width, if nothing is known but that the answer lies in `whole`.
    """
    if relative_width is None:
        return best(ask, finest, bounds, whole)
    width = rational("relative_width", relative_width, least=0, strict=True)
    try:
        return ask(min(width, COARSEST))
    except UndecidedError as refusal:
        known = reached(refusal)
        if known is None or not known.upper.is_finite():
            known = _first(ask, _wider(width, refusal.reached), bounds, whole, refusal)
            refusal.say_interval(known)
        if known.relative_width is not None and known.relative_width <= width:
            return known
        raise


def enclosed(
    compute: Callable[[Sequence[Pair]], arb],
    relative_width: Number | None,
    pairs: Sequence[Pair],
    bounds: Callable[[], Interval],
    whole: Interval,
    *,
    finest: Fraction | None = None,
) -> Interval:
    """Return the answer that is the value of a ball-valued function of some pairs."""

    def ask(width: Fraction) -> Interval:
        asked = to_width(pairs, width)
        return enclose(lambda: compute(asked), relative_width=width)

    return answer(ask, relative_width, finest or usual(pairs), bounds, whole=whole)


def usual(pairs: Sequence[Pair]) -> Fraction:
    """Return the width that answers about all of some pairs usually have."""
    return max(pair.known.width() for pair in pairs)


def best(ask: Ask, finest: Fraction, bounds: Callable[[], Interval], whole: Interval) -> Interval:
    """Return the first answer of a width from the finest on, and bounds where there is none.

    Where engines have twice refused and do not say what they reached the coarsest width is next.
    """
    return _first(ask, [finest, *(width for width in COARSER if width > finest)], bounds, whole)


def _wider(width: Fraction, known: float) -> list[Fraction]:
    """Return the widths that may do after the refusal of another, none where that would be long."""
    if math.isfinite(known):
        near = min(Fraction(_NEAR * known), COARSEST)
        return [near, *(coarser for coarser in COARSER if coarser > near)]
    return [COMPOSED_WIDTH] if width < COMPOSED_WIDTH else []


def _first(
    ask: Ask,
    widths: Sequence[Fraction],
    bounds: Callable[[], Interval],
    whole: Interval,
    refused: UndecidedError | None = None,
) -> Interval:
    """Return the first answer; refuse, as an engine did first, one that says nothing."""
    least, unknown = 0.0, 0
    known = None if refused is None else reached(refused)
    for width in widths:
        if width < least or (unknown > 1 and width < widths[-1]):
            continue
        if known is not None and known.relative_width is not None and known.relative_width <= width:
            return known
        try:
            return ask(width)
        except UndecidedError as refusal:
            refused = refused or refusal
            known = narrower(known, reached(refusal))
            if math.isfinite(refusal.reached):
                least = max(least, _NEAR * refusal.reached)
            else:
                unknown += 1
            if isinstance(refusal, BetweenError):
                break
    widest = bounds()
    known = narrower(known, widest) or widest
    if known.lower < known.upper and narrower(known, whole) == whole:
        why = str(refused or "It is not known.").partition(" Reached [")[0]
        raise UndecidedError(f"{why} It is only known that the answer lies in {whole}.")
    return known


def reached(refusal: UndecidedError) -> Interval | None:
    """Return the enclosure that a refusal carries."""
    found = refusal.interval
    return None if found is None else Interval(found.lower, found.upper)


def narrower(one: Interval | None, other: Interval | None) -> Interval | None:
    """Return what both of two enclosures of one number leave; None where neither is known."""
    if one is None or other is None:
        return one or other
    return Interval(max(one.lower, other.lower), min(one.upper, other.upper))


def joined(
    asks: Sequence[Callable[[], Interval]], join: Callable[[Sequence[Interval]], Interval]
) -> Interval:
    """Return what several answers come to; where some are refused, refuse with what is known."""
    found: list[Interval] = []
    refusals: list[UndecidedError] = []
    for ask in asks:
        try:
            found.append(ask())
        except UndecidedError as refusal:
            known = reached(refusal)
            if known is None:
                raise
            found.append(known)
            refusals.append(refusal)
    whole = join(found)
    if not refusals:
        return whole
    width = whole.relative_width
    raise UndecidedError(
        str(refusals[0]), reached=math.inf if width is None else float(width), interval=whole
    )


def largest(answers: Sequence[Interval]) -> Interval:
    """Enclose the largest of some numbers."""
    return Interval(max(each.lower for each in answers), max(each.upper for each in answers))


def smallest(answers: Sequence[Interval]) -> Interval:
    """Enclose the smallest of some numbers."""
    return Interval(min(each.lower for each in answers), min(each.upper for each in answers))


def share(found: Interval) -> Interval:
    """Return the part of an enclosure that lies in [0, 1], as the number that it encloses does."""
    return Interval(max(found.lower, Decimal(0)), min(found.upper, Decimal(1)))
