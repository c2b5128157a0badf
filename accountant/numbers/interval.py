"""Enclosures: two decimals that a real number provably lies between."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import (
    MAX_EMAX,
    MAX_PREC,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    localcontext,
)
from fractions import Fraction
from typing import final, overload

from flint import arb, fmpq

from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.precision import ctx

_SPEC = re.compile(r"((?:.?[<>=^])?[-+ ]?z?#?0?[0-9]*)([,_]?)((?:\.[0-9]+)?)([a-zA-Z%]?)")
_PLACE = re.compile(r"((?:.?[<>=^])?)[-+ ]?z?#?0?([0-9]*)")
_DEFAULT_PRECISION = ".6"
"""What a format without a precision means, as for floats."""
_SHOWN_DIGITS = 12
"""Digits that are printed unless a format asks for more; JSON has all of them."""
_ENDS_DIGITS = 6
"""Digits of an end, where both ends are printed."""
_MIDDLE_DIGITS = 60
"""Of the middle of an enclosure, before it is rounded to a float."""
_MOST_PLACES = 10_000
"""Digits of a rounded number: more are nobody's question."""
_NUMBERS = (ExactReal, Fraction, Decimal, int, float)
_LEAST_DIGITS = Fraction(1, 10)
"""A float stands for an enclosure of at most this relative width: one digit is certain."""

_NEARLY_ONE = (Decimal("0.999"), Decimal("1.001"))
"""Ratios between these are printed to two digits of their distance from 1."""
_HARDLY_BESIDE = Decimal("1e-12")
"""Nearer to 1 than this a ratio is 1 and its distance: nobody counts more digits."""
_IN_FULL = 1000000
"""Ratios from here on are printed with an exponent."""


def _rounded(value: Decimal, spec: str, rounding: str) -> str:
    """Format a decimal, rounded to the nearest or in a direction."""
    with localcontext(Context(Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=rounding, traps=[])):
        try:
            return format(value, spec)
        except ValueError:
            raise _bad_format(spec) from None


def _bad_format(spec: str) -> InvalidInputError:
    return InvalidInputError(
        f"Expected a format such as '.3g', '.6f', '.2e' or '.1%', not {spec!r}."
    )


def _quantized(value: Decimal, places: int) -> Decimal | None:
    """Round half to even; None for an infinite or enormous number."""
    digits = max(1, value.adjusted() + places + 2) if value.is_finite() else MAX_PREC
    if digits > _MOST_PLACES:
        return None
    context = Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return value.quantize(Decimal((0, (1,), -places)), ROUND_HALF_EVEN, context)


def _is_number(value: object) -> bool:
    """Whether an enclosure can be compared with this."""
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def _sides(interval: Interval, number: Number) -> tuple[int, int]:
    """Return the signs of lower − number and of upper − number, compared exactly."""
    if isinstance(number, (int, float, Decimal)):
        limit = Decimal(number)
        if limit.is_nan():
            raise InvalidInputError("Expected a number to compare with, not NaN.")
        low, high = ((end > limit) - (end < limit) for end in interval)
        return low, high
    against = exact(number, "number")
    low, high = (
        (1 if end > 0 else -1) if end.is_infinite() else _sign(exact(end), against)
        for end in interval
    )
    return low, high


def _sign(left: ExactReal, right: ExactReal) -> int:
    return (left > right) - (left < right)


def few(value: Decimal | Fraction | float | str, digits: int = 6, *, sign: str = "") -> str:
    """Return a number to the nearest in few digits, its exponent as people write it.

    With the sign "+" what is positive has it.

    >>> few(1e-5), few("0.0000014", 2), few(2.5e6, 2), few(0.25, sign="+")
    ('1e-5', '1.4e-6', '2.5e6', '+0.25')
    """
    return re.sub(r"e\+?(-?)0*", r"e\1", f"{float(value):{sign}.{digits}g}")


def ratio(value: Decimal) -> str:
    """Print four digits of a ratio, near 1 two of its distance; nothing for what is not finite.

    >>> ratio(Decimal("20704.1")), ratio(Decimal("1.3244e7")), ratio(Decimal("1.00000214"))
    ('20700', '1.324e7', '1.0000021')
    >>> ratio(Decimal("0.999668")), ratio(1 - Decimal("5.55e-17"))
    ('0.99967', '1-5.6e-17')
    """
    if not value.is_finite():
        return ""
    if _NEARLY_ONE[0] < value < _NEARLY_ONE[1] and value != 1:
        beside = Decimal(f"{value - 1:+.2g}")
        return f"{1 + beside:f}" if abs(beside) >= _HARDLY_BESIDE else f"1{beside:+.2g}"
    rounded = f"{value:.4g}"
    return f"{Decimal(rounded):.0f}" if 10000 <= value < _IN_FULL else rounded.replace("e+", "e")


RELATIVE_WIDTH = Fraction(1, 10**30)
"""Relative width that closed forms are enclosed to unless asked otherwise."""

GRID_WIDTH = Fraction(1, 10**6)
"""Relative width of answers from grids for which none is named."""
COMPOSED_WIDTH = Fraction(1, 10**9)
"""Relative width that every engine of a composition is first asked for."""

START_PRECISION = 128
"""Bits of a first evaluation: the default answers have no more digits."""
MAX_PRECISION = 1 << 15
"""Bits after which a value is given up: 10,000 digits, and minutes."""
_GUARD_DIGITS = 6
"""Digits of the decimals beyond those of the ball, so that rounding outward does not show."""
_MOST_BITS = 110
"""Accuracy of a ball that is written out where less was asked for."""
_TOLD = 12
"""Bits from which on an accuracy that twice the precision leaves as it is is not rounding."""
_STALLS = 2
"""Doublings of the precision that add nothing before an evaluation gives up."""
_ARITHMETIC_DIGITS = 45
"""Of sums and products of enclosures: some more than most ends have."""
_ZERO = Decimal(0)
_LARGEST_POWER = MAX_EMAX // 2
_LONGEST_EXPANSION = 1 << 15  # bits of a magnitude that are written out exactly


@functools.cache
def decimal_context(digits: int, rounding: str) -> Context:
    """Return the arithmetic of decimals of so many digits, of any size."""
    return Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def _round(endpoint: arb, digits: int, rounding: str) -> Decimal:
    """Round an exact ball to `digits` decimal digits in the given direction."""
    if not endpoint.is_finite():
        return Decimal("Infinity") if endpoint > 0 else Decimal("-Infinity")
    mantissa, exponent = (int(part) for part in endpoint.man_exp())
    if abs(exponent + mantissa.bit_length()) > _LONGEST_EXPANSION:
        return _round_far(endpoint, digits, rounding)
    context = decimal_context(digits, rounding)
    if exponent >= 0:
        return context.create_decimal(mantissa << exponent)
    return context.divide(Decimal(mantissa), Decimal(1 << -exponent))


def _round_far(endpoint: arb, digits: int, rounding: str) -> Decimal:
    """Round a number whose exact expansion is too long to write: scale it by a power of ten."""
    size = int(endpoint.man_exp()[1]).bit_length()
    with ctx.workprec(4 * digits + 2 * size + 64):
        whole, shift = (abs(endpoint).log() / arb(10).log()).mid().floor().man_exp()
        power = int(whole) << int(shift)
        scaled = endpoint / arb(10) ** power
        end = scaled.lower() if rounding == ROUND_FLOOR else scaled.upper()
        near_one = _round(end, digits, rounding)
    if abs(power) > _LARGEST_POWER:  # no decimal is that small or large
        away = (near_one > 0) == (rounding == ROUND_CEILING)
        extreme = Decimal((0, (1,), _LARGEST_POWER if power > 0 else -_LARGEST_POWER))
        if power > 0:
            return (Decimal("Infinity") if away else extreme).copy_sign(near_one)
        return (extreme if away else Decimal(0)).copy_sign(near_one)
    return near_one.scaleb(power, decimal_context(digits, rounding))


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Interval:
    """The closed interval [lower, upper]: an enclosure of one real number.

    Both ends are exact decimals, rounded outward when the interval was made, so what is
    printed is what was proved. An end may be infinite; no end is ever NaN.
    """

    lower: Decimal
    upper: Decimal

    def __post_init__(self) -> None:
        if self.lower.is_nan() or self.upper.is_nan() or not self.lower <= self.upper:
            raise InvalidInputError(
                f"Expected lower={self.lower} ≤ upper={self.upper}, neither of them NaN."
            )

    @staticmethod
    def of_ball(ball: arb, digits: int = 40) -> Interval:
        """Return the outward decimal rounding of a ball.

        Raises UndecidedError if the ball is NaN (nothing is known about the number).
        """
        if ball.is_nan():
            raise UndecidedError("The computation gave no enclosure (NaN ball).")
        return Interval(
            _round(ball.lower(), digits, ROUND_FLOOR), _round(ball.upper(), digits, ROUND_CEILING)
        )

    @staticmethod
    def between(lower: arb, upper: arb, digits: int = 40) -> Interval:
        """Return the interval from the lower end of one ball to the upper end of another."""
        return Interval(
            Interval.of_ball(lower, digits).lower, Interval.of_ball(upper, digits).upper
        )

    @staticmethod
    def of_exact(value: Fraction | int, digits: int = 40) -> Interval:
        """Return the narrowest interval with ends of `digits` digits around a rational."""
        value = Fraction(value)
        n, d = Decimal(value.numerator), Decimal(value.denominator)
        return Interval(
            decimal_context(digits, ROUND_FLOOR).divide(n, d),
            decimal_context(digits, ROUND_CEILING).divide(n, d),
        )

    def ball(self) -> arb:
        """Return a ball that contains the interval, at flint's current precision."""
        return _decimal_ball(self.lower).union(_decimal_ball(self.upper))

    @property
    def relative_width(self) -> Fraction | None:
        """(upper − lower)/min(|lower|, |upper|); 0 for a point; None if it is unbounded."""
        if self.lower == self.upper:
            return Fraction(0)
        if not (self.lower.is_finite() and self.upper.is_finite()) or self.lower <= 0 <= self.upper:
            return None
        places = -self.lower.adjusted()  # a common power of ten, lest 1e-1000000000 be written out
        lower, upper = _shifted(self.lower, places), _shifted(self.upper, places)
        return (upper - lower) / min(abs(lower), abs(upper))

    def __contains__(self, value: object) -> bool:
        """Whether a number lies in the interval; a float is the binary number that it is."""
        if not _is_number(value):
            raise TypeError(f"Expected a number, not {type(value).__name__}.")
        low, high = _sides(self, value)  # type: ignore[arg-type]  # a number
        return low <= 0 <= high

    def __iter__(self) -> Iterator[Decimal]:
        """Go through both ends: `lower, upper = interval`."""
        return iter((self.lower, self.upper))

    def overlaps(self, other: Interval) -> bool:
        """Whether the two intervals share a point."""
        return self.lower <= other.upper and other.lower <= self.upper

    def hull(self, other: Interval) -> Interval:
        """Return the smallest interval that contains both."""
        return Interval(min(self.lower, other.lower), max(self.upper, other.upper))

    def to_json(self) -> dict[str, str]:
        """Return {"lower": "…", "upper": "…"}, with every digit, exponents as claims write them.

        >>> Interval(Decimal("1.75E-8"), Decimal("2E+9")).to_json()
        {'lower': '1.75e-8', 'upper': '2e9'}
        """
        lower, upper = (str(end).replace("E+", "e").replace("E", "e") for end in self)
        return {"lower": lower, "upper": upper}

    @staticmethod
    def of_json(data: Mapping[str, str]) -> Interval:
        """Return the enclosure that `to_json` gives as plain data."""
        return Interval(Decimal(data["lower"]), Decimal(data["upper"]))

    def to_dict(self) -> dict[str, str]:
        """Return the same: plain data with every digit."""
        return self.to_json()

    @property
    def digits(self) -> float:
        """How many significant digits are certain: ⌊−log₁₀ width⌋, or +∞ for an exact number.

        0 where the enclosure contains 0 or has an infinite end.
        """
        width = self.relative_width
        if width is None or width >= 1:
            return 0
        # the quotient's count of digits is exact where a logarithm of a float might not be
        return len(str(width.denominator // width.numerator)) - 1 if width else math.inf

    def __float__(self) -> float:
        """Return the float nearest to the middle; for an estimate, no bound.

        Raises UndecidedError where no digit is certain, unless both ends are the same float.
        """
        low, high, width = float(self.lower), float(self.upper), self.relative_width
        if low == high:
            return low
        if width is None or width > _LEAST_DIGITS:
            raise UndecidedError(
                f"No digit of this number is certain: it lies in [{self.lower:.6g}, "
                f"{self.upper:.6g}]. Take a bound, float(x.lower) or float(x.upper), or ask for a "
                "smaller relative_width."
            )
        with localcontext(Context(prec=_MIDDLE_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN)):
            return float((self.lower + self.upper) / 2)

    @overload
    def __round__(self) -> int: ...

    @overload
    def __round__(self, places: int) -> Decimal: ...

    def __round__(self, places: int | None = None) -> int | Decimal:
        """Return the rounded number; UndecidedError where the ends round to different ones."""
        low, high = (_quantized(end, places or 0) for end in self)
        if low is None or high is None or low != high:
            raise UndecidedError(
                f"The number lies in [{self.lower:.6g}, {self.upper:.6g}], whose ends do not round "
                f"to the same number of {places or 0} places. Round to fewer, or ask for a smaller "
                "relative_width."
            )
        return int(low) if places is None else low

    def __format__(self, spec: str) -> str:
        """Format as a number where both ends have the same text, else as [lower, upper].

        The ends of a pair are rounded outward. A width and an alignment are those of the whole
        text.

        Examples
        --------
        >>> third = Interval.of_exact(Fraction(1, 3))
        >>> f"{third:.3g} {third:.1%}"
        '0.333 33.3%'
        >>> f"{Interval(Decimal('0.124'), Decimal('0.126')):.2g}"
        '[0.12, 0.13]'
        """
        parts = _SPEC.fullmatch(spec)
        if parts is None:
            raise _bad_format(spec)
        place, group, precision, kind = parts.groups()
        if not (precision or kind):
            return format(str(self), place)
        number = f"{group}{precision or _DEFAULT_PRECISION}{kind or 'g'}"
        low, high = (_rounded(end, number, ROUND_HALF_EVEN) for end in self)
        if low == high:
            return _rounded(self.lower, place + number, ROUND_HALF_EVEN)
        align, width = _PLACE.fullmatch(place).groups()  # type: ignore[union-attr]  # matches all
        return format(self._both(number), f"{align or '>'}{width}")

    def _both(self, spec: str) -> str:
        """Return both ends, rounded outward."""
        low = _rounded(self.lower, spec, ROUND_FLOOR)
        return f"[{low}, {_rounded(self.upper, spec, ROUND_CEILING)}]"

    def __neg__(self) -> Interval:
        """Enclose the negative of the number."""
        return Interval(self.upper.copy_negate() or _ZERO, self.lower.copy_negate() or _ZERO)

    def __add__(self, other: Interval | Number) -> Interval:
        """Enclose the sum with a number or with what another interval encloses."""
        found = _read(other)
        if found is None:
            return NotImplemented
        lower, upper = _DOWN.add(self.lower, found.lower), _UP.add(self.upper, found.upper)
        return Interval(
            _unless_nan(lower, Decimal("-Infinity")), _unless_nan(upper, Decimal("Infinity"))
        )

    def __sub__(self, other: Interval | Number) -> Interval:
        """Enclose the difference; x − x is not 0, for the two need not be one number."""
        found = _read(other)
        return NotImplemented if found is None else self + (-found)

    def __mul__(self, other: Interval | Number) -> Interval:
        """Enclose the product; 0 times an unbounded number is 0."""
        found = _read(other)
        if found is None:
            return NotImplemented
        corners = [(x, y) for x in (self.lower, self.upper) for y in (found.lower, found.upper)]
        return Interval(
            min(_unless_nan(_DOWN.multiply(x, y), _ZERO) for x, y in corners),
            max(_unless_nan(_UP.multiply(x, y), _ZERO) for x, y in corners),
        )

    def __truediv__(self, other: Interval | Number) -> Interval:
        """Enclose the quotient; UndecidedError where the divisor may be 0."""
        found = _read(other)
        if found is None:
            return NotImplemented
        if found.lower <= 0 <= found.upper:
            raise UndecidedError(f"The divisor may be 0: it lies in {found}.")
        one = Decimal(1)
        return self * Interval(_DOWN.divide(one, found.upper), _UP.divide(one, found.lower))

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Number) -> Interval:
        """Enclose a number less this one."""
        return -self + other

    def __rtruediv__(self, other: Number) -> Interval:
        """Enclose a number divided by this one; UndecidedError where this one may be 0."""
        found = _read(other)
        return NotImplemented if found is None else found / self

    def __eq__(self, other: object) -> bool:
        """Compare the ends with another interval's; a number is equal to an exact interval only.

        Raises UndecidedError for a number that lies in an interval which is no point.
        """
        if isinstance(other, Interval):
            return self.lower == other.lower and self.upper == other.upper
        if not _is_number(other):
            return NotImplemented
        low, high = _sides(self, other)  # type: ignore[arg-type]  # a number
        if low > 0 or high < 0:
            return False
        if low == high == 0:
            return True
        raise self._undecided(other)

    def __hash__(self) -> int:
        """Hash the ends; a point hashes like its number, to which it is equal."""
        return hash(self.lower if self.lower == self.upper else (self.lower, self.upper))

    def __lt__(self, other: Interval | Number) -> bool:
        """Whether the number is below another; UndecidedError where the ends do not tell."""
        return self._compared(other, below=True, or_equal=False)

    def __le__(self, other: Interval | Number) -> bool:
        """Whether the number is at most another; UndecidedError where the ends do not tell."""
        return self._compared(other, below=True, or_equal=True)

    def __gt__(self, other: Interval | Number) -> bool:
        """Whether the number is above another; UndecidedError where the ends do not tell."""
        return self._compared(other, below=False, or_equal=False)

    def __ge__(self, other: Interval | Number) -> bool:
        """Whether the number is at least another; UndecidedError where the ends do not tell."""
        return self._compared(other, below=False, or_equal=True)

    def _compared(self, other: object, *, below: bool, or_equal: bool) -> bool:
        """Decide x < y, x ≤ y, x > y or x ≥ y for every x and y in the two intervals."""
        if isinstance(other, Interval):
            least, most = other.lower, other.upper
            low = (self.lower > most) - (self.lower < most)  # of the least difference
            high = (self.upper > least) - (self.upper < least)  # of the largest
        elif _is_number(other) or isinstance(other, str):
            low, high = _sides(self, other)  # type: ignore[arg-type]  # a number or text
        else:
            raise TypeError(f"Expected a number to compare with, not {type(other).__name__}.")
        if not below:
            low, high = -high, -low
        if high < 0 or (or_equal and high == 0):
            return True
        if low > 0 or (not or_equal and low == 0):
            return False
        raise self._undecided(other)

    def _undecided(self, number: object) -> UndecidedError:
        return UndecidedError(
            f"The number lies in [{self.lower:.12g}, {self.upper:.12g}], which contains {number}: "
            "which of the two is larger is not known. Ask for a smaller relative_width, or compare "
            "x.lower or x.upper."
        )

    def __str__(self) -> str:
        """Print the digits that both ends share, three to twelve, or both ends if they share fewer.

        An exact number is printed in full.
        """
        end = self.lower
        if end == self.upper:
            if end.is_finite() and end == end.to_integral() and end.adjusted() < _SHOWN_DIGITS:
                return f"{end:.0f}"
            return f"{end.normalize():g}" if end.is_finite() else str(end)
        for digits in range(_SHOWN_DIGITS, 2, -1):
            low, high = (f"{end:.{digits - 1}e}" for end in self)
            if low == high:
                return f"{Decimal(low):.{digits}g}"
        return self._both(f".{_ENDS_DIGITS}g")

    def __repr__(self) -> str:
        """Print the same, with how many digits are certain; `.lower` and `.upper` have them all."""
        if self.lower == self.upper:
            return f"Interval({self}, exact)"
        if not self.digits or str(self).startswith("["):
            return f"Interval({self})"
        return f"Interval({self}, {self.digits} digits certain)"

    def _repr_html_(self) -> str:
        """Return the shared digits and both ends, for notebooks."""
        return f"<strong>{self}</strong> <small>in {self._ends()}</small>"

    def _repr_markdown_(self) -> str:
        """Return the same as Markdown."""
        return f"**{self}** in {self._ends()}"

    def html_cells(self) -> dict[str, str]:
        """Return the shared digits and how many are certain, as HTML: see `dpassay.Results`."""
        certain = "exact" if self.lower == self.upper else f"{self.digits} digits"
        return {"answer": f"<strong>{self}</strong>", "certain": certain}

    def _ends(self) -> str:
        return "[{lower}, {upper}]".format(**self.to_json())


_DOWN, _UP = (decimal_context(_ARITHMETIC_DIGITS, way) for way in (ROUND_FLOOR, ROUND_CEILING))


def _read(value: object) -> Interval | None:
    """Return an enclosure of a number to reckon with; None for what is none."""
    if isinstance(value, Interval):
        return value
    if not (isinstance(value, str) or _is_number(value)):
        return None
    number = exact(value, "number")  # type: ignore[arg-type]  # it is a number
    if number.rational is not None:
        return Interval.of_exact(number.rational, _ARITHMETIC_DIGITS)
    return enclose(number.ball)


def _unless_nan(end: Decimal, unknown: Decimal) -> Decimal:
    """Return an end, or the value for ∞ − ∞ or 0·∞; a zero without its exponent."""
    return unknown if end.is_nan() else end or _ZERO


def ball(value: Fraction | int) -> arb:
    """Return a ball around a rational number, at flint's current precision."""
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def nonnegative(value: arb) -> arb:
    """Return the part of a ball that is at least 0: of a number that is known to be."""
    if not value.is_finite() or value.lower() >= 0:
        return value
    half = arb(0, value.upper() / 2)
    return half.rad() + half  # its lower end is 0, which the ball of [0, upper] misses


def _shifted(value: Decimal, places: int) -> Fraction:
    """Return value·10^places of a finite decimal."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return Fraction(Decimal((sign, digits, exponent + places)))


def _decimal_ball(value: Decimal) -> arb:
    if value.is_infinite():
        return arb.pos_inf() if value > 0 else arb.neg_inf()
    sign, digits, exponent = value.as_tuple()
    if isinstance(exponent, int) and abs(exponent) > _LONGEST_EXPANSION:
        mantissa = ball(Fraction(Decimal((sign, digits, 0))))
        return mantissa * arb(10) ** exponent
    return ball(Fraction(value))


@contextmanager
def within() -> Iterator[None]:
    """Take the enclosures from refusals within: they are not of the number that is asked for."""
    try:
        yield
    except UndecidedError as refusal:
        refusal.interval = None
        raise


def enclose(compute: Callable[[], arb], *, relative_width: Fraction = RELATIVE_WIDTH) -> Interval:
    """Evaluate a ball-valued function up a ladder of precisions until it is narrow.

    Parameters
    ----------
    compute
        Called with flint's precision set; returns a ball that contains the number.
    relative_width
        The width asked for, relative to the magnitude. An exact ball is always narrow enough.

    Returns
    -------
    Interval
        An enclosure of relative width at most `relative_width`.

    Raises
    ------
    UndecidedError
        If the last rung is still wider, or refused, or the precision adds nothing to an accuracy of
        some digits; the error carries the enclosure that was reached.
    """
    bits = bits_of(relative_width)
    precision = max(START_PRECISION, bits + 32)
    last, stalled, ball = None, 0, arb.nan()
    while True:
        with ctx.workprec(precision):
            try:
                with within():
                    ball = compute()
            except UndecidedError as refusal:  # what fewer bits have found stays known
                if ball.is_finite():
                    refusal.say_interval(Interval.of_ball(ball, _digits(bits, 0)))
                raise
            accuracy = ball.rel_accuracy_bits()
            if (ball.is_exact() and not ball.is_nan()) or abs(ball).lower() == arb.pos_inf():
                return Interval.of_ball(ball, _digits(bits, _MOST_BITS))
            if ball.is_finite() and (accuracy > bits or _narrow(ball, relative_width)):
                return Interval.of_ball(ball, _digits(bits, accuracy))
        stalled = stalled + 1 if last is not None and _TOLD < accuracy <= last + 1 else 0
        if precision >= MAX_PRECISION or stalled == _STALLS:
            break
        precision, last = min(2 * precision, MAX_PRECISION), accuracy
    found = None if ball.is_nan() else Interval.of_ball(ball, _digits(bits, accuracy))
    raise UndecidedError(
        f"Relative width {float(relative_width):.1e} was not reached at {precision} bits; "
        f"reached {found or 'no enclosure'}. Ask for a larger relative_width.",
        reached=math.inf if ball.contains(0) else float(2 * ball.rad() / abs(ball).lower()),
        interval=found,
    )


def _digits(bits: int, accuracy: int) -> int:
    """Return the decimal digits for a width of so many bits, or for a narrower ball."""
    return int(max(bits, min(accuracy, _MOST_BITS)) * 0.30103) + _GUARD_DIGITS


def _narrow(value: arb, relative_width: Fraction) -> bool:
    """Whether a ball is narrow enough, with room for rounding its ends outward."""
    slack = ball(relative_width) * arb("0.999")
    return bool(2 * arb(value.rad()) < slack * abs(value).lower())


def sign(compute: Callable[[], arb], *, max_precision: int = MAX_PRECISION) -> int | None:
    """Return the sign of a number, or None if the last rung does not decide it."""
    precision = START_PRECISION
    while True:
        with ctx.workprec(precision):
            ball = compute()
            if ball > 0:
                return 1
            if ball < 0:
                return -1
            if ball.is_zero():
                return 0
        if precision >= max_precision:
            return None
        precision = min(4 * precision, max_precision)


def bits_of(relative_width: Fraction) -> int:
    """Bits of relative accuracy that make a ball narrower than `relative_width`."""
    if not 0 < relative_width < 1:
        raise InvalidInputError(
            f"Expected relative_width={relative_width} in (0, 1). Give a width such as 1e-30."
        )
    return (relative_width.denominator // relative_width.numerator).bit_length() + 2
