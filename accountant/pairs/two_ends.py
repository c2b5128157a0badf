"""The ε of a pair of which two bounds of δ(ε) are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval

Bound: TypeAlias = Callable[[ExactReal], arb]
_ENDS = Fraction(1, 10**6)
"""Relative width of each end of an ε: the ends differ by far more."""
_LEAST = Decimal("1e-9")
"""An ε that is smaller has a width relative to this one: else none is narrow at 0."""


def inverse_between(
    bounds: tuple[Bound, Bound],
    delta: ExactReal,
    step: Fraction,
    relative_width: Fraction,
    why: str,
) -> Interval:
    """Enclose ε(δ) by where a lower and an upper bound pass δ, looked for in steps from 0.

    Raises UndecidedError, with both ends and `why` they differ, where they are too far apart.
    """
    one, other = (passes(bound, delta, step) for bound in bounds)
    return narrow_enough(one.hull(other), relative_width, why)


def passes(
    bound: Bound, delta: ExactReal, step: Fraction, relative_width: Fraction = _ENDS
) -> Interval:
    """Enclose where a bound passes δ, looked for in steps from 0."""

    def excess(epsilon: ExactReal) -> arb:
        value = bound(epsilon)
        nothing = not value > 0 and value < delta.ball()
        return arb.neg_inf() if nothing else (value / delta.ball()).log()

    between = solve.bracket(excess, step)
    try:
        return solve.root(excess, between, relative_width=relative_width)
    except UndecidedError as refusal:  # it says where this end is, which is no answer
        if refusal.interval is None:
            raise
        return Interval(refusal.interval.lower, refusal.interval.upper)


def narrow_enough(found: Interval, relative_width: Fraction, why: str) -> Interval:
    """Return an enclosure of ε(δ); UndecidedError, with it and `why`, where it is too wide."""
    width = math.inf
    if found.lower.is_finite() and found.upper.is_finite():
        size = max(min(abs(found.lower), abs(found.upper)), _LEAST)
        width = float((found.upper - found.lower) / size)
    if width <= relative_width:
        return found
    raise UndecidedError(
        f"Reached epsilon in {found}: {why}. Ask for a larger relative_width.",
        reached=width,
        interval=found,
    )
