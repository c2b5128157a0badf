"""What a reader does with two bounds: certain digits, a format, a float, a comparison.

The functions take the ends of an enclosure. They say only what is true of every number between
the ends; where that does not settle it they raise UndecidedError, which names both.
"""

from __future__ import annotations

import math
import re
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

from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.numbers.exact import ExactReal, Number, exact

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


def certain_digits(width: Fraction | None) -> float:
    """Return how many significant digits a relative width leaves certain; +∞ for an exact number.

    That is ⌊−log₁₀ width⌋, and 0 where the enclosure contains 0 or has an infinite end.
    """
    if width is None or width >= 1:
        return 0
    if width == 0:
        return math.inf
    # The quotient's count of digits is exact where a logarithm of a float might not be.
    return len(str(width.denominator // width.numerator)) - 1


def written(end: Decimal) -> str:
    """Return an end in full, its exponent as claims write it.

    >>> written(Decimal("1.75E-8")), written(Decimal("2E+9")), written(Decimal("Infinity"))
    ('1.75e-8', '2e9', 'Infinity')
    """
    return str(end).replace("E+", "e").replace("E", "e")


def text(lower: Decimal, upper: Decimal) -> str:
    """Return the digits that both ends share, three to twelve, or both ends if they share fewer."""
    if lower == upper:
        if lower.is_finite() and lower == lower.to_integral() and lower.adjusted() < _SHOWN_DIGITS:
            return f"{lower:.0f}"
        return f"{lower.normalize():g}" if lower.is_finite() else str(lower)
    for digits in range(_SHOWN_DIGITS, 2, -1):
        low, high = f"{lower:.{digits - 1}e}", f"{upper:.{digits - 1}e}"
        if low == high:
            return f"{Decimal(low):.{digits}g}"
    spec = f".{_ENDS_DIGITS}g"
    return f"[{_rounded(lower, spec, ROUND_FLOOR)}, {_rounded(upper, spec, ROUND_CEILING)}]"


def formatted(lower: Decimal, upper: Decimal, spec: str) -> str:
    """Format as a number where both ends give the same text, else as [lower, upper].

    The ends of a pair are rounded outward. A width and an alignment are those of the whole text.
    """
    parts = _SPEC.fullmatch(spec)
    if parts is None:
        raise _bad_format(spec)
    place, group, precision, kind = parts.groups()
    if not (precision or kind):
        return format(text(lower, upper), place)
    number = f"{group}{precision or _DEFAULT_PRECISION}{kind or 'g'}"
    low, high = _rounded(lower, number, ROUND_HALF_EVEN), _rounded(upper, number, ROUND_HALF_EVEN)
    if low == high:
        return _rounded(lower, place + number, ROUND_HALF_EVEN)
    ends = f"[{_rounded(lower, number, ROUND_FLOOR)}, {_rounded(upper, number, ROUND_CEILING)}]"
    align, width = _PLACE.fullmatch(place).groups()  # type: ignore[union-attr]  # matches all
    return format(ends, f"{align or '>'}{width}")


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


def as_float(lower: Decimal, upper: Decimal, width: Fraction | None) -> float:
    """Return the float nearest to the middle; for an estimate, no bound.

    Raises UndecidedError where no digit is certain, unless both ends are the same float.
    """
    low, high = float(lower), float(upper)
    if low == high:
        return low
    if width is None or width > _LEAST_DIGITS:
        raise UndecidedError(
            f"No digit of this number is certain: it lies in [{lower:.6g}, {upper:.6g}]. Take a "
            "bound, float(x.lower) or float(x.upper), or ask for a smaller relative_width."
        )
    with localcontext(Context(prec=_MIDDLE_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        return float((lower + upper) / 2)


def rounded(lower: Decimal, upper: Decimal, places: int) -> Decimal:
    """Return the number rounded to so many decimal places, where both ends agree on it."""
    low, high = _quantized(lower, places), _quantized(upper, places)
    if low is None or high is None or low != high:
        raise UndecidedError(
            f"The number lies in [{lower:.6g}, {upper:.6g}], whose ends do not round to the same "
            f"number of {places} places. Round to fewer, or ask for a smaller relative_width."
        )
    return low


def _quantized(value: Decimal, places: int) -> Decimal | None:
    """Round half to even; None for an infinite or enormous number."""
    digits = max(1, value.adjusted() + places + 2) if value.is_finite() else MAX_PREC
    if digits > _MOST_PLACES:
        return None
    context = Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return value.quantize(Decimal((0, (1,), -places)), ROUND_HALF_EVEN, context)


def is_number(value: object) -> bool:
    """Whether an enclosure can be compared with this."""
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def side(lower: Decimal, upper: Decimal, number: Number) -> tuple[int, int]:
    """Return the signs of lower − number and of upper − number, compared exactly."""
    if isinstance(number, (int, float, Decimal)):
        number = Decimal(number)
        if number.is_nan():
            raise InvalidInputError("Expected a number to compare with, not NaN.")
        return _sign(lower, number), _sign(upper, number)
    against = exact(number, "number")
    return _against(lower, against), _against(upper, against)


def _sign(left: Decimal, right: Decimal) -> int:
    return (left > right) - (left < right)


def _against(end: Decimal, number: ExactReal) -> int:
    if end.is_infinite():
        return 1 if end > 0 else -1
    left = ExactReal.of_rational(Fraction(end))
    return (left > number) - (left < number)


def undecided(lower: Decimal, upper: Decimal, number: object) -> UndecidedError:
    """Return the error of a comparison that an enclosure does not settle."""
    return UndecidedError(
        f"The number lies in [{lower:.12g}, {upper:.12g}], which contains {number}: which of the "
        "two is larger is not known. Ask for a smaller relative_width, or compare x.lower or "
        "x.upper."
    )


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
