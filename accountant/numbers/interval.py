"""Enclosures: intervals with decimal ends that provably contain a real number."""

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
"""The precision of a format that names none, as for floats."""
_SHOWN_DIGITS = 12
"""Digits printed unless a format asks for more. JSON has all digits."""
_ENDS_DIGITS = 6
"""Digits of each end when both ends are printed."""
_MIDDLE_DIGITS = 60
"""Digits of the midpoint of an enclosure before it is rounded to a float."""
_MOST_PLACES = 10_000
"""Most digits of a rounded number; rounding to more is refused."""
_NUMBERS = (ExactReal, Fraction, Decimal, int, float)
_LEAST_DIGITS = Fraction(1, 10)
"""Largest relative width of an enclosure that `float` accepts: one digit is certain."""

_NEARLY_ONE = (Decimal("0.999"), Decimal("1.001"))
"""Between these, a ratio is printed to two significant digits of its distance from 1."""
_LEAST_DISTANCE = Decimal("1e-12")
"""Nearer to 1 than this, a ratio is printed as 1 plus or minus its distance, such as 1-5.6e-17."""
_IN_FULL = 1000000
"""Ratios from this value on are printed with an exponent."""


def _rounded(value: Decimal, spec: str, rounding: str) -> str:
    """Format a decimal with the given rounding mode."""
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
    """Round half to even; return None for an infinite or very long number."""
    digits = max(1, value.adjusted() + places + 2) if value.is_finite() else MAX_PREC
    if digits > _MOST_PLACES:
        return None
    context = Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return value.quantize(Decimal((0, (1,), -places)), ROUND_HALF_EVEN, context)


def _is_number(value: object) -> bool:
    """Whether the value is a number that an enclosure can be compared with."""
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
    """Format a number to a few digits, its exponent in the short form 1e-5.

    With sign="+" a positive number gets a sign.

    >>> few(1e-5), few("0.0000014", 2), few(2.5e6, 2), few(0.25, sign="+")
    ('1e-5', '1.4e-6', '2.5e6', '+0.25')
    """
    return re.sub(r"e\+?(-?)0*", r"e\1", f"{float(value):{sign}.{digits}g}")


def ratio(value: Decimal) -> str:
    """Format a ratio to four digits, or near 1 to two digits of its distance from 1.

    The text is empty for a ratio that is not finite.

    >>> ratio(Decimal("20704.1")), ratio(Decimal("1.3244e7")), ratio(Decimal("1.00000214"))
    ('20700', '1.324e7', '1.0000021')
    >>> ratio(Decimal("0.999668")), ratio(1 - Decimal("5.55e-17"))
    ('0.99967', '1-5.6e-17')
    """
    if not value.is_finite():
        return ""
    if _NEARLY_ONE[0] < value < _NEARLY_ONE[1] and value != 1:
        distance = Decimal(f"{value - 1:+.2g}")
        return f"{1 + distance:f}" if abs(distance) >= _LEAST_DISTANCE else f"1{distance:+.2g}"
    rounded = f"{value:.4g}"
    return f"{Decimal(rounded):.0f}" if 10000 <= value < _IN_FULL else rounded.replace("e+", "e")


RELATIVE_WIDTH = Fraction(1, 10**30)
"""Default relative width of the enclosure of a closed form."""

GRID_WIDTH = Fraction(1, 10**6)
"""Default relative width of answers computed on grids."""
COMPOSED_WIDTH = Fraction(1, 10**9)
"""Relative width that each composition engine is first asked to reach."""

START_PRECISION = 128
"""Bits of precision of the first evaluation; enough for the default widths."""
MAX_PRECISION = 1 << 15
"""Largest precision in bits, about 10,000 digits; an evaluation there takes minutes."""
_GUARD_DIGITS = 6
"""Decimal digits beyond those of the ball, so that outward rounding adds almost nothing."""
_MOST_BITS = 110
"""Accuracy in bits up to which a ball is written out even if less was asked for."""
_STALLED_ABOVE = 12
"""An accuracy above this many bits that twice the precision does not improve is not limited by
rounding errors."""
_STALLS = 2
"""Consecutive doublings of the precision without progress before an evaluation fails."""
_ARITHMETIC_DIGITS = 45
"""Digits of sums and products of enclosures; most ends have a few less."""
_ZERO = Decimal(0)
_LARGEST_POWER = MAX_EMAX // 2
LONGEST_EXPANSION = 1 << 15  # larger binary exponents are not expanded to decimals exactly


@functools.cache
def decimal_context(digits: int, rounding: str) -> Context:
    """Return a decimal context of this many digits, without limits on the exponent."""
    return Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def _round(endpoint: arb, digits: int, rounding: str) -> Decimal:
    """Round an exact ball to `digits` decimal digits in the given direction."""
    if not endpoint.is_finite():
        return Decimal("Infinity") if endpoint > 0 else Decimal("-Infinity")
    mantissa, exponent = (int(part) for part in endpoint.man_exp())
    if abs(exponent + mantissa.bit_length()) > LONGEST_EXPANSION:
        return _round_far(endpoint, digits, rounding)
    context = decimal_context(digits, rounding)
    if exponent >= 0:
        return context.create_decimal(mantissa << exponent)
    return context.divide(Decimal(mantissa), Decimal(1 << -exponent))


def _round_far(endpoint: arb, digits: int, rounding: str) -> Decimal:
    """Round a number whose exact decimal expansion is too long: scale it by a power of ten."""
    size = int(endpoint.man_exp()[1]).bit_length()
    with ctx.workprec(4 * digits + 2 * size + 64):
        whole, shift = (abs(endpoint).log() / arb(10).log()).mid().floor().man_exp()
        power = int(whole) << int(shift)
        scaled = endpoint / arb(10) ** power
        end = scaled.lower() if rounding == ROUND_FLOOR else scaled.upper()
        near_one = _round(end, digits, rounding)
    if abs(power) > _LARGEST_POWER:  # outside the exponent range of decimals
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

    Both ends are exact decimals that were rounded outward when the interval was made, so the
    printed bounds are proved bounds. An end may be infinite; it is never NaN.
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
        """Return the interval of a ball, with ends rounded outward to `digits` digits.

        Raises UndecidedError if the ball is NaN: nothing is known about the number.
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
        """Return the narrowest interval around a rational whose ends have `digits` digits."""
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
        """(upper − lower)/min(|lower|, |upper|); 0 for a point.

        None if an end is infinite, or if the interval is not a point and contains 0.
        """
        if self.lower == self.upper:
            return Fraction(0)
        if not (self.lower.is_finite() and self.upper.is_finite()) or self.lower <= 0 <= self.upper:
            return None
        places = -self.lower.adjusted()  # a common power of ten, so that 1e-1000000000 stays short
        lower, upper = _shifted(self.lower, places), _shifted(self.upper, places)
        return (upper - lower) / min(abs(lower), abs(upper))

    def __contains__(self, value: object) -> bool:
        """Whether a number lies in the interval. A float stands for its exact binary value."""
        if not _is_number(value):
            raise TypeError(f"Expected a number, not {type(value).__name__}.")
        low, high = _sides(self, value)  # type: ignore[arg-type]  # a number
        return low <= 0 <= high

    def __iter__(self) -> Iterator[Decimal]:
        """Iterate over the two ends: `lower, upper = interval`."""
        return iter((self.lower, self.upper))

    def overlaps(self, other: Interval) -> bool:
        """Whether the two intervals share a point."""
        return self.lower <= other.upper and other.lower <= self.upper

    def hull(self, other: Interval) -> Interval:
        """Return the smallest interval that contains both."""
        return Interval(min(self.lower, other.lower), max(self.upper, other.upper))

    def to_json(self) -> dict[str, str]:
        """Return {"lower": "…", "upper": "…"}, with all digits and exponents as in claims.

        >>> Interval(Decimal("1.75E-8"), Decimal("2E+9")).to_json()
        {'lower': '1.75e-8', 'upper': '2e9'}
        """
        lower, upper = (str(end).replace("E+", "e").replace("E", "e") for end in self)
        return {"lower": lower, "upper": upper}

    @staticmethod
    def of_json(data: Mapping[str, str]) -> Interval:
        """Return the interval that `to_json` wrote."""
        return Interval(Decimal(data["lower"]), Decimal(data["upper"]))

    def to_dict(self) -> dict[str, str]:
        """Return the same as `to_json`."""
        return self.to_json()

    @property
    def digits(self) -> float:
        """The number of certain significant digits: ⌊−log₁₀ width⌋, or +∞ for an exact number.

        It is 0 if the enclosure contains 0 or has an infinite end.
        """
        width = self.relative_width
        if width is None or width >= 1:
            return 0
        # The number of digits of the quotient is exact; a logarithm in floats might not be.
        return Decimal(width.denominator // width.numerator).adjusted() if width else math.inf

    def __float__(self) -> float:
        """Return the float nearest to the midpoint: an estimate, not a bound.

        Raises UndecidedError if no digit is certain, unless both ends round to the same float.
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
        """Return the rounded number; UndecidedError if the two ends round differently."""
        low, high = (_quantized(end, places or 0) for end in self)
        if low is None or high is None or low != high:
            raise UndecidedError(
                f"The number lies in [{self.lower:.6g}, {self.upper:.6g}], whose ends do not round "
                f"to the same number of {places or 0} places. Round to fewer, or ask for a smaller "
                "relative_width."
            )
        return int(low) if places is None else low

    def __format__(self, spec: str) -> str:
        """Format as a number if both ends give the same text, else as [lower, upper].

        The printed ends are rounded outward. A width and an alignment apply to the whole text.

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
        """Return both ends as text, rounded outward."""
        low = _rounded(self.lower, spec, ROUND_FLOOR)
        return f"[{low}, {_rounded(self.upper, spec, ROUND_CEILING)}]"

    def __neg__(self) -> Interval:
        """Enclose the negative of the number."""
        return Interval(self.upper.copy_negate() or _ZERO, self.lower.copy_negate() or _ZERO)

    def __add__(self, other: Interval | Number) -> Interval:
        """Enclose the sum with a number, or with the number in another interval."""
        found = _read(other)
        if found is None:
            return NotImplemented
        lower, upper = _DOWN.add(self.lower, found.lower), _UP.add(self.upper, found.upper)
        return Interval(
            _unless_nan(lower, Decimal("-Infinity")), _unless_nan(upper, Decimal("Infinity"))
        )

    def __sub__(self, other: Interval | Number) -> Interval:
        """Enclose the difference. The operands are taken as two numbers, so x − x is not 0."""
        found = _read(other)
        return NotImplemented if found is None else self + (-found)

    def __mul__(self, other: Interval | Number) -> Interval:
        """Enclose the product, with 0·∞ = 0."""
        found = _read(other)
        if found is None:
            return NotImplemented
        corners = [(x, y) for x in (self.lower, self.upper) for y in (found.lower, found.upper)]
        return Interval(
            min(_unless_nan(_DOWN.multiply(x, y), _ZERO) for x, y in corners),
            max(_unless_nan(_UP.multiply(x, y), _ZERO) for x, y in corners),
        )

    def __truediv__(self, other: Interval | Number) -> Interval:
        """Enclose the quotient; UndecidedError if the divisor may be 0."""
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
        """Enclose the difference of a number and this one."""
        return -self + other

    def __rtruediv__(self, other: Number) -> Interval:
        """Enclose a number divided by this one; UndecidedError if this one may be 0."""
        found = _read(other)
        return NotImplemented if found is None else found / self

    def __eq__(self, other: object) -> bool:
        """Whether two intervals have the same ends, or the enclosed number equals another.

        Raises UndecidedError for a number inside an interval that is not a single point.
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
        """Hash the two ends; a point hashes like the number that it equals."""
        return hash(self.lower if self.lower == self.upper else (self.lower, self.upper))

    def __lt__(self, other: Interval | Number) -> bool:
        """Whether the number is less than another; UndecidedError if the ends do not decide it."""
        return self._compared(other, below=True, or_equal=False)

    def __le__(self, other: Interval | Number) -> bool:
        """Whether the number is at most another; UndecidedError if the ends do not decide it."""
        return self._compared(other, below=True, or_equal=True)

    def __gt__(self, other: Interval | Number) -> bool:
        """Whether the number exceeds another; UndecidedError if the ends do not decide it."""
        return self._compared(other, below=False, or_equal=False)

    def __ge__(self, other: Interval | Number) -> bool:
        """Whether the number is at least another; UndecidedError if the ends do not decide it."""
        return self._compared(other, below=False, or_equal=True)

    def _compared(self, other: object, *, below: bool, or_equal: bool) -> bool:
        """Decide x < y, x ≤ y, x > y or x ≥ y for all x and y in the two intervals."""
        if isinstance(other, Interval):
            least, most = other.lower, other.upper
            low = (self.lower > most) - (self.lower < most)  # sign of the least difference
            high = (self.upper > least) - (self.upper < least)  # sign of the largest difference
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
        """Return the digits that both ends share, 3 to 12 of them; if they share fewer, both ends.

        An exact number is written in full.
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
        """Return `str` and the number of certain digits. `.lower` and `.upper` have all digits."""
        if self.lower == self.upper:
            return f"Interval({self}, exact)"
        if not self.digits or str(self).startswith("["):
            return f"Interval({self})"
        return f"Interval({self}, {self.digits} digits certain)"

    def _repr_html_(self) -> str:
        """Return the shared digits and both ends as HTML, for notebooks."""
        return f"<strong>{self}</strong> <small>in {self._ends()}</small>"

    def _repr_markdown_(self) -> str:
        """Return the shared digits and both ends as Markdown."""
        return f"**{self}** in {self._ends()}"

    def html_cells(self) -> dict[str, str]:
        """Return the shared digits and how many are certain as HTML cells of `dpassay.Results`."""
        certain = "exact" if self.lower == self.upper else f"{self.digits} digits"
        return {"answer": f"<strong>{self}</strong>", "certain": certain}

    def _ends(self) -> str:
        return "[{lower}, {upper}]".format(**self.to_json())


_DOWN, _UP = (decimal_context(_ARITHMETIC_DIGITS, way) for way in (ROUND_FLOOR, ROUND_CEILING))


def _read(value: object) -> Interval | None:
    """Convert a number to an enclosure; None for anything else."""
    if isinstance(value, Interval):
        return value
    if not (isinstance(value, str) or _is_number(value)):
        return None
    number = exact(value, "number")  # type: ignore[arg-type]  # it is a number
    if number.rational is not None:
        return Interval.of_exact(number.rational, _ARITHMETIC_DIGITS)
    return enclose(number.ball)


def _unless_nan(end: Decimal, unknown: Decimal) -> Decimal:
    """Replace NaN, from ∞ − ∞ or 0·∞, by a given value; drop the exponent of a zero."""
    return unknown if end.is_nan() else end or _ZERO


def ball(value: Fraction | int) -> arb:
    """Return a ball that contains a rational number, at flint's current precision."""
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def nonnegative(value: arb) -> arb:
    """Return the part ≥ 0 of the ball of a number that is known to be ≥ 0."""
    if not value.is_finite() or value.lower() >= 0:
        return value
    half = arb(0, value.upper() / 2)
    return half.rad() + half  # lower end exactly 0; arb's ball of [0, upper] may go below


def _shifted(value: Decimal, places: int) -> Fraction:
    """Return value·10^places for a finite decimal."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return Fraction(Decimal((sign, digits, exponent + places)))


def _decimal_ball(value: Decimal) -> arb:
    if value.is_infinite():
        return arb.pos_inf() if value > 0 else arb.neg_inf()
    sign, digits, exponent = value.as_tuple()
    if isinstance(exponent, int) and abs(exponent) > LONGEST_EXPANSION:
        mantissa = ball(Fraction(Decimal((sign, digits, 0))))
        return mantissa * arb(10) ** exponent
    return ball(Fraction(value))


@contextmanager
def within() -> Iterator[None]:
    """Drop the enclosure from an UndecidedError raised inside: it is of an intermediate number."""
    try:
        yield
    except UndecidedError as refusal:
        refusal.interval = None
        raise


def enclose(compute: Callable[[], arb], *, relative_width: Fraction = RELATIVE_WIDTH) -> Interval:
    """Evaluate a ball-valued function at growing precision until the ball is narrow enough.

    Parameters
    ----------
    compute
        Called with flint's precision set. Returns a ball that contains the number.
    relative_width
        The width to reach, relative to the number's magnitude. An exact ball is always accepted.

    Returns
    -------
    Interval
        An enclosure of relative width at most `relative_width`.

    Raises
    ------
    UndecidedError
        If the ball at the highest precision is wider, if `compute` raises UndecidedError, or if
        more precision no longer improves the ball. The error carries the enclosure reached, if any.
    """
    bits = bits_of(relative_width)
    precision = max(START_PRECISION, bits + 32)
    last, stalled, ball = None, 0, arb.nan()
    while True:
        with ctx.workprec(precision):
            try:
                with within():
                    ball = compute()
            except UndecidedError as refusal:  # the enclosure found at lower precision still holds
                if ball.is_finite():
                    refusal.say_interval(Interval.of_ball(ball, _digits(bits, 0)))
                raise
            accuracy = ball.rel_accuracy_bits()
            if (ball.is_exact() and not ball.is_nan()) or abs(ball).lower() == arb.pos_inf():
                return Interval.of_ball(ball, _digits(bits, _MOST_BITS))
            if ball.is_finite() and (accuracy > bits or _narrow(ball, relative_width)):
                return Interval.of_ball(ball, _digits(bits, accuracy))
        stalled = stalled + 1 if last is not None and _STALLED_ABOVE < accuracy <= last + 1 else 0
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
    """Return the decimal digits for the requested bits, or for those of a more accurate ball."""
    return int(max(bits, min(accuracy, _MOST_BITS)) * 0.30103) + _GUARD_DIGITS


def _narrow(value: arb, relative_width: Fraction) -> bool:
    """Whether a ball is narrow enough, with room to round its ends outward."""
    slack = ball(relative_width) * arb("0.999")
    return bool(2 * arb(value.rad()) < slack * abs(value).lower())


def sign(compute: Callable[[], arb], *, max_precision: int = MAX_PRECISION) -> int | None:
    """Return the sign of a number, or None if it is undecided at the highest precision."""
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
    """Return the bits of relative accuracy that make a ball narrower than `relative_width`."""
    if not 0 < relative_width < 1:
        raise InvalidInputError(
            f"Expected relative_width={relative_width} in (0, 1). Give a width such as 1e-30."
        )
    return (relative_width.denominator // relative_width.numerator).bit_length() + 2
