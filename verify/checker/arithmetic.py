"""Numbers of the checker at rising precision: enclosures that are narrow enough for a question.

A number is a Fraction or a `Real` (`dpassay.verifier.checker.reals`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.monomials import vanish
from dpassay.verifier.checker.reals import FewDigitsError, Real, ball, compare

Numbers = TypeVar("Numbers", list[Any], dict[str, Any])
AGREEMENT = Fraction(1, 10**38)
"""Relative distance below which a written number counts as the one that is meant."""

_PRECISIONS = (192, 448, 1200, 3600)
"""Bits; the second one is enough for the digits that products of laws take."""
_ENOUGH_BITS = 128
"""Bits, 38 digits, to which a number must be known to be compared with a written one."""
_AGREEMENT_BITS = 448
"""Bits of that comparison, so that its own rounding does not count."""
_FEW = 40
"""Terms of a sum that is kept as a sum: of more than that it is a ball."""
_SHARES = (Fraction(1, 2), Fraction(3, 8), Fraction(3, 4))
_NO_PROGRESS = 0.5
"""A radius that more bits make smaller than this does no better with more of them."""


def settle(
    compute: Callable[[], Numbers], enough: Callable[[Numbers], bool] = lambda _: False
) -> Numbers:
    """Enclose numbers at rising precision, until all are narrow or they are `enough`.

    What does not become narrow is returned as wide as it is: a difference of equal numbers, say.
    """
    values, failure = None, None
    widths: list[float] = []
    for bits in _PRECISIONS:
        with ctx.workprec(bits):
            try:
                values = compute()
            except FewDigitsError as error:
                failure = error
                continue
            flat = list(values.values() if isinstance(values, dict) else values)
            wide = [value for value in flat if not narrow(value)]
            if not wide or enough(values):
                return values
            before, widths = widths, [float(ball(value).rad()) for value in wide]
            if len(before) == len(widths) and all(
                _NO_PROGRESS * then < now < math.inf
                for now, then in zip(widths, before, strict=True)
            ):
                return values
    if values is None:
        raise failure or FewDigitsError
    return values


def narrow(value: Any) -> bool:
    """Whether a number is known to 38 digits, or is infinite."""
    if not isinstance(value, Real):
        return True
    around = value.ball
    return bool(
        around.rel_accuracy_bits() >= _ENOUGH_BITS
        or (not around.is_finite() and (around > 0 or around < 0))
        or vanish(value.terms)
    )


def agree(one: Any, other: Any) -> bool:
    """Whether a written number is the one that is meant: equal to 38 digits. It proves nothing."""
    with ctx.workprec(_AGREEMENT_BITS):
        left, right = ball(one), ball(other)
        if not left.is_finite() or not right.is_finite():
            return bool((left > 0 and right > 0) or (left < 0 and right < 0))
        return not abs(left - right) > ball(AGREEMENT) * abs(left).max(abs(right))


def total(values: Sequence[Any]) -> Any:
    """Return a sum: exactly where there are few numbers, or where all are rational."""
    if len(values) <= _FEW or all(isinstance(value, Fraction) for value in values):
        return sum(values, start=Fraction(0))
    return Real(sum(map(ball, values), start=arb(0)))


def largest(values: Sequence[Any]) -> Any:
    """Return the maximum: one of the numbers where that is decided, else a ball."""
    result = values[0]
    for value in values[1:]:
        truth = compare(value, ">", result)
        if truth is None:
            one, other = ball(value), ball(result)
            low, high = one.lower().max(other.lower()), one.upper().max(other.upper())
            result = Real(low.union(high))
        elif truth:
            result = value
    return result


def least(values: Sequence[Any]) -> Any:
    """Return the minimum."""
    return -largest([-value for value in values])


def crossing(
    falling: Callable[[Fraction], Any], low: Fraction, high: Fraction, bits: int
) -> tuple[Fraction, Fraction]:
    """Enclose the place where a falling function, > 0 at `low` and ≤ 0 at `high`, is first ≤ 0.

    An interval is divided so often, or until the sign inside it cannot be told.
    """
    for _ in range(bits):
        for share in _SHARES:  # the middle may be the place itself
            inside = low + share * (high - low)
            truth = compare(falling(inside), ">", Fraction(0))
            if truth is not None:
                break
        else:
            break
        low, high = (inside, high) if truth else (low, inside)
    return low, high
