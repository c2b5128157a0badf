"""Exact real numbers as arguments: rationals and square roots of rationals."""

from __future__ import annotations

import ast
import functools
import math
import numbers
import operator
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, TypeAlias, final

from flint import arb, fmpq, fmpz

from dpassay.accountant.errors import UndecidedError, expected

_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,5})?")
_LONG_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_RATIO = re.compile(r"\s*N\s*(?:/\s*N\s*)?".replace("N", _LONG_DECIMAL.pattern))
_FLOAT = re.compile(r"\s*float\((.*)\)\s*")
_LONG_BINARY = re.compile(r"'?(?<![\w.])([0-9]+\.[0-9]{20,})(?![\w.])'?")
"""A decimal as long as only a float has, with the quotation marks of an argument."""
_WRAPPED = re.compile(r"(?<!\w)float\((-?[0-9.]+(?:e[+-]?[0-9]+)?)\)")
_POWER_OF_TEN = re.compile(r"(?:([0-9.]+)[·×*])?10(?:\^|\*\*)\{?(-?[0-9]+)\}?")
_LOGARITHM = re.compile(
    r"(?:(?P<times>N)\s*[*·×]?\s*)?(?:ln|log)\s*(?:\((?P<of>N)\)|(?P<of_bare>N))"
    r"(?:\s*/\s*(?P<over>N))?".replace("N", r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
)
_EXPONENT = re.compile(r"[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_UNITS = {"%": -2, "k": 3, "K": 3, "M": 6}
"""Powers of ten that stand behind a number."""
_UNIT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([%kKM])")
_PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
"""Exponents and minus signs as papers print them, in ASCII."""
_MAX_LENGTH = 20_000
"""Characters of one number: longer ones take seconds to read."""
_FORMULA = re.compile(r"(?:[0-9.\s()+*/-]|[eE](?=[+-]?[0-9])|sqrt(?=\s*\())+")
"""What a formula is made of."""
_LONGEST_FORMULA = 1000
"""Characters of a formula."""
_MOST_BITS = 400_000
"""Of the numerator and denominator of a number that is computed: 10^±99999 is one."""
_NO_ROOT = "to be a rational number or a square root of one, times a rational"
_TOO_LONG = "to have fewer digits"
_SHOWN_DIGITS = 40
"""Digits up to which a decimal is written out; others are fractions or powers of ten."""
_FEW_DIGITS = 4
"""Digits up to which a decimal with as many zeros after the point has an exponent."""
_REMEDY = 'Write a number such as 3, "0.1", "1e-300", "256/60000" or "sqrt(2)".'


@final
@functools.total_ordering
@dataclass(frozen=True, slots=True)
class ExactReal:
    """The number sign(signed_square)·√|signed_square| or the rational itself, without rounding.

    Exactly one of the two forms is stored: a rational number keeps `rational`; an irrational
    square root keeps `signed_square` (the square, with the sign of the number) and
    `rational=None`. These numbers are closed under products and quotients; sums are formed on
    balls, at the precision of the question, never here.
    """

    rational: Fraction | None
    signed_square: Fraction

    def __hash__(self) -> int:
        """Hash the terms of the square, which tell equal numbers: faster than fractions hash."""
        return hash(self.signed_square.as_integer_ratio())

    @staticmethod
    def of_rational(value: Fraction | int) -> ExactReal:
        """Return the exact number with this rational value."""
        value = Fraction(value)
        return ExactReal(value, value * abs(value))

    @staticmethod
    def of_root(signed_square: Fraction) -> ExactReal:
        """Return sign(s)·√|s|, in rational form when s is a perfect square."""
        n, d = abs(signed_square.numerator), signed_square.denominator
        root_n, root_d = math.isqrt(n), math.isqrt(d)
        if root_n * root_n == n and root_d * root_d == d:
            return ExactReal.of_rational(
                Fraction(root_n if signed_square >= 0 else -root_n, root_d)
            )
        return ExactReal(None, signed_square)

    @property
    def square(self) -> Fraction:
        """The exact square."""
        return abs(self.signed_square)

    @property
    def sign(self) -> int:
        """−1, 0 or 1."""
        return (self.signed_square > 0) - (self.signed_square < 0)

    def ball(self) -> arb:
        """Return a ball that contains the number, at flint's current precision."""
        if self.rational is not None:
            return arb(fmpq(self.rational.numerator, self.rational.denominator))
        root = arb(fmpq(self.square.numerator, self.square.denominator)).sqrt()
        return root if self.sign >= 0 else -root

    def mpf(self) -> Any:
        """Return the number as an mpmath real at mpmath's current precision."""
        import mpmath

        if self.rational is not None:
            return mpmath.mpf(self.rational.numerator) / self.rational.denominator
        square = mpmath.mpf(self.square.numerator) / self.square.denominator
        return self.sign * mpmath.sqrt(square)

    def __float__(self) -> float:
        """Round to the nearest float (for samplers and plots, never for a verdict).

        Raises UndecidedError beyond the largest float.
        """
        try:
            if self.rational is not None:
                return float(self.rational)
            return self.sign * math.sqrt(self.square)
        except OverflowError:
            raise UndecidedError(
                "A number beyond 1.8e308 was met where floats choose how to compute. Give a "
                "smaller one."
            ) from None

    def __floor__(self) -> int:
        """Return the largest integer ≤ the number."""
        if self.rational is not None:
            return math.floor(self.rational)
        root = math.isqrt(self.square.numerator // self.square.denominator)
        return root if self.sign > 0 else -root - 1  # an irrational number is no integer

    def __lt__(self, other: ExactReal) -> bool:
        if not isinstance(other, ExactReal):  # an enclosure compares itself with exact numbers
            return NotImplemented
        return self.signed_square < other.signed_square

    def __neg__(self) -> ExactReal:
        rational = None if self.rational is None else -self.rational
        return ExactReal(rational, -self.signed_square)

    def __mul__(self, other: ExactReal) -> ExactReal:
        return ExactReal.of_root(self.signed_square * other.signed_square)

    def __truediv__(self, other: ExactReal) -> ExactReal:
        return ExactReal.of_root(self.signed_square / other.signed_square)

    def __str__(self) -> str:
        """Return the notation that reads back as the same number."""
        if self.rational is None:
            return f"{'-' * (self.sign < 0)}sqrt({_rational_text(self.square)})"
        return _rational_text(self.rational)

    def __repr__(self) -> str:
        """Return an int literal or a quoted string, as the notation prints arguments."""
        text = str(self)
        return text if text.lstrip("-").isdigit() else repr(text)


Number: TypeAlias = ExactReal | Fraction | Decimal | str | int | float
"""What a caller may pass for a real number. A float is the binary number that it is."""


def floats_in_short(text: str) -> str:
    """Write floats as Python does, for people: data keep all of their digits.

    >>> floats_in_short(f"It is ({exact(0.1)}, {exact('0.00001')})-DP.")
    'It is (0.1, 1e-5)-DP.'
    """
    return _WRAPPED.sub(r"\1", as_floats(text))


def as_floats(text: str) -> str:
    """Write the long decimals that are floats as float(…): short, and the same number.

    >>> as_floats("Gaussian(standard_deviation='0.1000000000000000055511151231257827')")
    "Gaussian(standard_deviation='0.1000000000000000055511151231257827')"
    >>> as_floats(f"Gaussian({exact(0.1)!r})")
    'Gaussian(float(0.1))'
    """

    def short(found: re.Match[str]) -> str:
        digits = found[1]
        nearest = float(digits)
        return f"float({nearest!r})" if Fraction(digits) == nearest else found[0]

    return _LONG_BINARY.sub(short, text)


def in_short(value: Number) -> str:
    """Return how a number that was given is printed, whatever its type."""
    return floats_in_short(str(exact(value)))


def _rational_text(value: Fraction) -> str:
    """Print as an integer or terminating decimal when there is one, else as p/q."""
    twos = (value.denominator & -value.denominator).bit_length() - 1
    fives = _exponent_of_five(value.denominator >> twos)
    if fives is None:
        return f"{_integer_text(value.numerator)}/{_integer_text(value.denominator)}"
    places = max(twos, fives)
    digits = _digits(abs(value.numerator) * (10**places // value.denominator))
    sign = "-" * (value < 0)
    if len(digits) <= _FEW_DIGITS < places - len(digits) + 1:  # the δ of a claim: 1e-5
        return f"{sign}{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{len(digits) - 1 - places}"
    if places <= _SHOWN_DIGITS or len(digits) > _SHOWN_DIGITS:
        digits = digits.rjust(places + 1, "0")
        whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
        return f"{sign}{whole}.{part}" if part else f"{sign}{_shortened(whole)}"
    return f"{sign}{_shortened(digits, -places)}"


def _exponent_of_five(odd: int) -> int | None:
    """Return n with 5ⁿ = odd, or None."""
    n = round((odd.bit_length() - 1) / math.log2(5))
    return next((k for k in (n - 1, n, n + 1) if k >= 0 and 5**k == odd), None)


def _integer_text(value: int) -> str:
    return "-" * (value < 0) + _shortened(_digits(abs(value)))


def _shortened(digits: str, exponent: int = 0) -> str:
    """Write digits·10^exponent, with the trailing zeros of a long number in the exponent."""
    if exponent == 0 and len(digits) <= _SHOWN_DIGITS:
        return digits
    mantissa = digits.rstrip("0")
    exponent += len(digits) - len(mantissa)
    return f"{mantissa}e{exponent}" if exponent else mantissa


def _digits(value: int) -> str:
    """Return the decimal digits of an integer ≥ 0, beyond Python's limit on conversions too."""
    return str(fmpz(value))


def exact(value: Number, argument: str = "number") -> ExactReal:
    """Read a number exactly.

    Parameters
    ----------
    value
        int, Fraction, Decimal, float (the binary number that it is), a number of numpy, or a
        string: an integer, a decimal ("0.1", "1e-300"), a formula of them that is a rational number
        or the root of one ("256/60000", "sqrt(2)/10", "2**0.5", "1/sqrt(1/1.44 + 0.01)"), which is
        parsed and computed exactly, or "float(0.1)", the binary number nearest to one, as reports
        print the floats of Python.
    argument
        The name used in the error.

    Raises
    ------
    InvalidInputError
        If the value is not such a number, is a bool, NaN or infinite.
    """
    if isinstance(value, ExactReal):
        return value
    if isinstance(value, bool):
        raise expected(argument, value, "to be a number, not a truth value", _REMEDY)
    if isinstance(value, str):
        return _read(value, argument)
    if isinstance(value, (Fraction, int)):
        return ExactReal.of_rational(value)
    if isinstance(value, numbers.Real) and isinstance(single := _item(value), float):
        value = single  # numpy.float32 is no float of Python
    if isinstance(value, (float, Decimal)):
        if not math.isfinite(value):
            raise expected(argument, value, "to be finite", _REMEDY)
        return ExactReal.of_rational(Fraction(value))
    try:
        return ExactReal.of_rational(operator.index(value))
    except TypeError:
        raise expected(
            argument, value, f"to be a number, not {type(value).__name__}", _REMEDY
        ) from None


def _item(value: object) -> object:
    """Return the number of Python that a number of numpy is, exactly; None for others."""
    return value.item() if hasattr(value, "item") else None


def _read(text: str, argument: str) -> ExactReal:
    if len(text) > _MAX_LENGTH:
        raise expected(argument, text, f"to have at most {_MAX_LENGTH} characters", _REMEDY)
    if binary := _FLOAT.fullmatch(text):
        return exact(_nearest_float(_ratio(binary[1], argument, text)), argument)
    if _RATIO.fullmatch(text):
        return ExactReal.of_rational(_ratio(text, argument, text))
    found = _formula(text, argument)
    return ExactReal.of_rational(_ratio(text, argument, text)) if found is None else found


def _formula(text: str, argument: str) -> ExactReal | None:
    """Read a formula of numbers and roots; None where the text is none, and is to be refused."""
    if len(text) > _LONGEST_FORMULA or not _FORMULA.fullmatch(text):
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return _computed(tree, text.strip())
    except (SyntaxError, RecursionError, MemoryError):
        return None
    except ZeroDivisionError:
        raise expected(argument, text, "to have no denominator 0", _REMEDY) from None
    except ArithmeticError as error:
        raise expected(argument, text, str(error), _REMEDY) from None


def _computed(node: ast.expr, text: str) -> ExactReal:
    """Compute a formula without rounding.

    Raises ArithmeticError for what is no rational number and no root of one, or is too long;
    SyntaxError for what is no formula.
    """
    match node:
        case ast.Constant(value=int() | float()):
            written = ast.get_source_segment(text, node) or ""
            if not _DECIMAL.fullmatch(written):
                raise SyntaxError
            return _bounded(ExactReal.of_rational(Fraction(Decimal(written))))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_computed(operand, text)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _computed(operand, text)
        case ast.Call(func=ast.Name(id="sqrt"), args=[radicand], keywords=[]):
            return _power(_computed(radicand, text), Fraction(1, 2))
        case ast.BinOp(left=left, op=op, right=right):
            one, other = _computed(left, text), _computed(right, text)
            return _bounded(_combined(op, one, other))
    raise SyntaxError


def _combined(op: ast.operator, one: ExactReal, other: ExactReal) -> ExactReal:
    match op:
        case ast.Add():
            return _sum(one, other)
        case ast.Sub():
            return _sum(one, -other)
        case ast.Mult():
            return one * other
        case ast.Div():
            return one / other
        case ast.Pow() if other.rational is not None:
            return _power(one, other.rational)
    raise SyntaxError


def _sum(one: ExactReal, other: ExactReal) -> ExactReal:
    """Add two numbers whose sum is a rational or a root of one: rationals, or multiples."""
    if one.sign == 0 or other.sign == 0:
        return other if one.sign == 0 else one
    ratio = (one / other).rational
    if ratio is None:
        raise ArithmeticError(_NO_ROOT)
    return other * ExactReal.of_rational(1 + ratio)


def _power(base: ExactReal, exponent: Fraction) -> ExactReal:
    """Return a power whose exponent is a multiple of 1/2."""
    if exponent.denominator > 2 or (exponent.denominator == 2 and base.rational is None):
        raise ArithmeticError(_NO_ROOT)
    if exponent.denominator == 2 and base.sign < 0:
        raise ArithmeticError("to be the root of a number ≥ 0")
    square = base.signed_square if exponent.denominator == 1 else base.rational
    assert square is not None
    whole = exponent.numerator
    if whole and _bits(square) * abs(whole) > _MOST_BITS:
        raise ArithmeticError(_TOO_LONG)
    sign = -1 if square < 0 and whole % 2 else 1
    return _bounded(ExactReal.of_root(sign * abs(square) ** whole))


def _bounded(value: ExactReal) -> ExactReal:
    if _bits(value.signed_square) > 2 * _MOST_BITS:
        raise ArithmeticError(_TOO_LONG)
    return value


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _nearest_float(value: Fraction) -> float:
    """Return the nearest binary number, infinite beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _ratio(text: str, argument: str, whole: str) -> Fraction:
    parts = [part.strip() for part in text.split("/")]
    if len(parts) > 2 or not all(_DECIMAL.fullmatch(part) for part in parts):
        known = len(parts) <= 2 and all(map(_LONG_DECIMAL.fullmatch, parts))
        long = "to have exponents of at most five digits" if known else "to be a number"
        raise expected(argument, whole, long, f"{meant(whole)}{_REMEDY}")
    # through Decimal: Python converts no more than 4300 digits to an int directly
    numerator, denominator = Fraction(Decimal(parts[0])), Fraction(Decimal([*parts, "1"][1]))
    if denominator == 0:
        raise expected(argument, whole, "to have a denominator other than 0", _REMEDY)
    return numerator / denominator


def meant(text: str) -> str:
    """Return "Did you mean …? " for a number in the notation of papers, else nothing.

    >>> meant("10⁻⁵"), meant("1%"), meant("60,000"), meant("one")
    ("Did you mean '1e-5'? ", "Did you mean '1/100'? ", "Did you mean '60000'? ", '')
    >>> meant("0,5")[:24], meant("1,2,3")[:24]
    ('A decimal has a point; s', 'A decimal has a point; s')
    >>> meant("0.001%"), meant("60k")
    ("Did you mean '0.00001'? ", "Did you mean '60000'? ")
    >>> meant("ln(3)")
    "Did you mean '1.098612288669', which is ln(3) rounded up? "
    >>> meant("2 ln 3")
    "Did you mean '2.197224577337', which is 2 ln 3 rounded up? "
    """
    if natural := _LOGARITHM.fullmatch(text):
        times, of, over = (
            Decimal(next((natural[name] for name in names if natural[name]), "1"))
            for names in (("times",), ("of", "of_bare"), ("over",))
        )
        if of == 0 or over == 0:
            return ""
        long = Context(prec=_SHOWN_DIGITS)
        value = long.divide(long.multiply(times, long.ln(of)), over)
        above = Context(prec=13, rounding=ROUND_CEILING).plus(value)
        return f"Did you mean '{above}', which is {text} rounded up? "
    plain = _EXPONENT.sub(r"^\g<0>", "".join(text.split())).translate(_PLAIN)
    plain = re.sub(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))", "", plain)
    plain = re.sub(r"^([0-9]+)%$", r"\1/100", plain)
    if unit := _UNIT.fullmatch(plain):
        plain = f"{Decimal(unit[1]).scaleb(_UNITS[unit[2]]):f}"
    if power := _POWER_OF_TEN.fullmatch(plain):
        plain = f"{power[1] or 1}e{power[2]}"
    parts = plain.split("/")
    fits = len(parts) <= 2 and all(_DECIMAL.fullmatch(part) for part in parts)
    if "," in plain and all(_DECIMAL.fullmatch(part) for part in plain.split(",")):
        return (
            "A decimal has a point; several numbers are a list in Python, the option again on the "
            "command line. "
        )
    return f"Did you mean {plain!r}? " if fits and len(plain) < _SHOWN_DIGITS else ""
