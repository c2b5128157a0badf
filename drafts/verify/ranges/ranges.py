"""Intervals of real numbers whose ends may be ±∞, open or closed, rounded outward.

A range contains every value of an expression over a piece of the domain. Ends are exact binary
numbers or ±∞; an infinite end is always open, since values are finite. An open end is never a
value, so that 1/x is defined for x in (0, 1], and x > 0 gives e^x > 1 strictly. An operation that
is not defined for every value raises ProofError.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from flint import arb, fmpq

from dpassay.verifier.ranges.expressions import ProofError

INFINITY: Final = arb.pos_inf()
_MOST_EXPONENT: Final = 100_000


@final
@dataclass(frozen=True, slots=True)
class Range:
    """The values from low to high."""

    low: arb
    high: arb
    low_open: bool = False
    high_open: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no interval, and open infinite ends."""
        if not self.low <= self.high:
            raise ProofError("an expression has no finite enclosure")
        object.__setattr__(self, "low_open", self.low_open or not self.low.is_finite())
        object.__setattr__(self, "high_open", self.high_open or not self.high.is_finite())

    @staticmethod
    def exact(value: Fraction | int) -> Range:
        """Return the range of one number."""
        return Range.ball(ball(value))

    @staticmethod
    def ball(value: arb) -> Range:
        """Return the values of a finite ball."""
        if not value.is_finite():
            raise ProofError("a value is not finite")
        return Range(value.lower(), value.upper())

    def is_point(self) -> bool:
        """Whether there is one value only."""
        return bool(self.low == self.high)

    def contains_zero(self) -> bool:
        """Whether 0 may be a value."""
        below = self.low < 0 or (self.low == 0 and not self.low_open)
        above = self.high > 0 or (self.high == 0 and not self.high_open)
        return bool(below and above)

    def sign(self) -> tuple[int, bool] | None:
        """Return (1, strict) for values > 0 or ≥ 0, (−1, strict) below, (0, False) for 0."""
        if self.low == 0 and self.high == 0:
            return (0, False)
        if self.low >= 0:
            return (1, bool(self.low > 0 or self.low_open))
        if self.high <= 0:
            return (-1, bool(self.high < 0 or self.high_open))
        return None

    def __add__(self, y: Range) -> Range:
        """Return x + y."""
        return Range(
            _end(self.low, y.low, -1),
            _end(self.high, y.high, 1),
            self.low_open or y.low_open,
            self.high_open or y.high_open,
        )

    def __neg__(self) -> Range:
        """Return −x."""
        return Range(-self.high, -self.low, self.high_open, self.low_open)

    def __sub__(self, y: Range) -> Range:
        """Return x − y."""
        return self + -y

    def __mul__(self, y: Range) -> Range:
        """Return xy; a finite 0 times values without a bound is 0, as these are finite."""
        lows, highs = [], []
        for a, a_open in ((self.low, self.low_open), (self.high, self.high_open)):
            for b, b_open in ((y.low, y.low_open), (y.high, y.high_open)):
                zero = (a == 0 and not a_open) or (b == 0 and not b_open)
                missed = (a_open or b_open) and not zero
                low, high = _product(a, b)
                lows.append((low, missed))
                highs.append((high, missed))
        low, low_open = _least(lows)
        high, high_open = _most(highs)
        return Range(low, high, low_open, high_open)

    def inverse(self) -> Range:
        """Return 1/x; x must not be 0."""
        if self.contains_zero():
            raise ProofError("a divisor was not shown to differ from 0")
        positive = self.high > 0
        return Range(
            _reciprocal(self.high, positive).lower(),
            _reciprocal(self.low, positive).upper(),
            self.high_open,
            self.low_open,
        )

    def __pow__(self, exponent: int) -> Range:
        """Return x**n for an integer n."""
        if abs(exponent) > _MOST_EXPONENT:
            raise ProofError(f"the exponent {exponent} is too large")
        if exponent < 0:
            return self.inverse() ** -exponent
        if exponent == 0:
            return Range.exact(1)
        base = self if exponent % 2 else abs(self)
        return monotone(lambda end: end**exponent, base, INFINITY, -INFINITY)

    def __abs__(self) -> Range:
        """Return |x|."""
        if self.low >= 0:
            return self
        if self.high <= 0:
            return -self
        high, high_open = _most([(self.high, self.high_open), (-self.low, self.low_open)])
        return Range(arb(0), high, False, high_open)


REALS: Final = Range(-INFINITY, INFINITY)


def ball(value: Fraction | int) -> arb:
    """Return a ball around a rational number."""
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def fraction(end: arb) -> Fraction:
    """Return a finite exact end as a fraction."""
    mantissa, exponent = end.man_exp()
    if abs(int(exponent)) > _MOST_EXPONENT:
        raise ProofError("a number is too large or too small")
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _least(ends: list[tuple[arb, bool]]) -> tuple[arb, bool]:
    best, is_open = ends[0]
    for value, flag in ends[1:]:
        if value < best:
            best, is_open = value, flag
        elif value == best:
            is_open = is_open and flag
    return best, is_open


def _most(ends: list[tuple[arb, bool]]) -> tuple[arb, bool]:
    low, is_open = _least([(-value, flag) for value, flag in ends])
    return -low, is_open


def _end(a: arb, b: arb, side: int) -> arb:
    if a.is_finite() and b.is_finite():
        total = a + b
        return total.lower() if side < 0 else total.upper()
    return side * INFINITY  # a lower end is never +∞, nor an upper one −∞


def _product(a: arb, b: arb) -> tuple[arb, arb]:
    if a == 0 or b == 0:
        return arb(0), arb(0)
    if a.is_finite() and b.is_finite():
        product = a * b
        return product.lower(), product.upper()
    infinite = INFINITY if (a > 0) == (b > 0) else -INFINITY
    return infinite, infinite


def _reciprocal(end: arb, positive: bool) -> arb:
    if end == 0:
        return INFINITY if positive else -INFINITY
    return 1 / end if end.is_finite() else arb(0)


def monotone(
    function: Callable[[arb], arb], x: Range, at_infinity: arb | None, at_minus: arb | None = None
) -> Range:
    """Return the values of a strictly increasing function, given its limits at ±∞."""
    low = _value(function, x.low, at_infinity, at_minus)
    high = _value(function, x.high, at_infinity, at_minus)
    return Range(
        low.lower() if low.is_finite() or low.is_exact() else -INFINITY,
        high.upper() if high.is_finite() or high.is_exact() else INFINITY,
        x.low_open,
        x.high_open,
    )


def falling(
    function: Callable[[arb], arb], x: Range, at_infinity: arb | None, at_minus: arb | None = None
) -> Range:
    """Return the values of a strictly decreasing function, given its limits at ±∞."""
    up = monotone(lambda end: -function(end), x, _minus(at_infinity), _minus(at_minus))
    return -up


def _minus(limit: arb | None) -> arb | None:
    return None if limit is None else -limit


def _value(
    function: Callable[[arb], arb], end: arb, at_infinity: arb | None, at_minus: arb | None
) -> arb:
    if end.is_finite():
        value = function(end)
    else:
        limit = at_infinity if end > 0 else at_minus
        if limit is None:
            raise ProofError("a function is not defined so far")
        value = limit
    if value.is_nan():
        raise ProofError("a value is not defined")
    return value


def smaller(x: Range, y: Range) -> bool:
    """Whether every value of x is < every value of y."""
    return bool(x.high < y.low or (x.high == y.low and (x.high_open or y.low_open)))


def related(x: Range, relation: str, y: Range) -> bool:
    """Whether a comparison holds between all values of two ranges."""
    match relation:
        case "<":
            return smaller(x, y)
        case ">":
            return smaller(y, x)
        case "<=":
            return bool(x.high <= y.low)
        case ">=":
            return bool(y.high <= x.low)
        case "!=":
            return smaller(x, y) or smaller(y, x)
    return bool(x.low == x.high == y.low == y.high)


def minimum(x: Range, y: Range) -> Range:
    """Return min(x, y)."""
    low, low_open = _least([(x.low, x.low_open), (y.low, y.low_open)])
    if x.high == y.high:
        return Range(low, x.high, low_open, x.high_open or y.high_open)
    end = x if x.high < y.high else y
    return Range(low, end.high, low_open, end.high_open)


def maximum(x: Range, y: Range) -> Range:
    """Return max(x, y)."""
    return -minimum(-x, -y)


def intersection(x: Range, y: Range) -> Range | None:
    """Return what two ranges share, None for nothing."""
    low, low_open = (x.low, x.low_open) if x.low > y.low else (y.low, y.low_open)
    if x.low == y.low:
        low_open = x.low_open or y.low_open
    high, high_open = (x.high, x.high_open) if x.high < y.high else (y.high, y.high_open)
    if x.high == y.high:
        high_open = x.high_open or y.high_open
    if not low <= high or (low == high and (low_open or high_open)):
        return None
    return Range(low, high, low_open, high_open)


def united(x: Range, y: Range) -> Range:
    """Return the least range with both."""
    low, low_open = _least([(x.low, x.low_open), (y.low, y.low_open)])
    high, high_open = _most([(x.high, x.high_open), (y.high, y.high_open)])
    return Range(low, high, low_open, high_open)
