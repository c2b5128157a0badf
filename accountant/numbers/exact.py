"""Exact real numbers: rationals, square roots of rationals, and formulas with exp and log."""

from __future__ import annotations

import ast
import functools
import math
import numbers
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, Never, TypeAlias, final

from flint import arb, fmpq, fmpq_mat, fmpz

from dpassay.accountant.errors import TOO_LARGE, InvalidInputError, UndecidedError, expected
from dpassay.accountant.numbers import formula
from dpassay.accountant.numbers.formula import Formula, Quotient
from dpassay.accountant.numbers.precision import ctx

_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,5})?")
_LONG_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_RATIO = re.compile(r"\s*N\s*(?:/\s*N\s*)?".replace("N", _LONG_DECIMAL.pattern))
_FLOAT = re.compile(r"\s*float\(([^()]*)\)\s*")
_LONG_BINARY = re.compile(r"'?(?<![\w.])([0-9]+\.[0-9]{20,1074})(?![\w.])'?")
"""A decimal so long that it comes from a float, with any quotation marks around the argument."""
_WRAPPED = re.compile(r"(?<!\w)float\((-?[0-9.]+(?:e[+-]?[0-9]+)?)\)")
_POWER_OF_TEN = re.compile(r"(?:([0-9.]+)[·×*])?10(?:\^|\*\*)\{?(-?[0-9]+)\}?")
_LOGARITHM = re.compile(
    r"(?:(?P<times>N)\s*[*·×]?\s*)?(?:ln|log)\s*(?:\((?P<of>N)\)|(?P<of_bare>N))"
    r"(?:\s*/\s*(?P<over>N))?".replace("N", r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
)
_EXPONENT = re.compile(r"[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_UNITS = {"%": -2, "k": 3, "K": 3, "M": 6}
"""Suffixes of a number and the powers of ten that they stand for."""
_UNIT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([%kKM])")
_PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
"""Superscripts and minus signs, as papers print them, in ASCII."""
_MAX_LENGTH = 20_000
"""Most characters of one number; longer ones take seconds to read."""
_FORMULA = re.compile(
    r"(?:[0-9.\s(),+*/-]|[eE](?=[+-]?[0-9])|pi|(?:exp|float|ln|log|sqrt)(?=\s*\())+"
)
"""The characters and words that a formula may contain."""
_LONGEST_FORMULA = 1000
"""Most characters of a formula."""
_MOST_BITS = 400_000
"""Most bits of the numerator and denominator of a computed number; 10^±99999 is allowed."""
_TOO_LONG = "to have fewer digits"
_FLOAT_BITS = 128
"""Bits at which formulas are rounded to floats and first compared."""
_FAR = 1 << 20
"""Bound on powers of 2, beyond those of floats."""
_SPARE_BITS = 32
"""Bits beyond mpmath's precision, so that the conversion adds no visible rounding error."""
_LARGEST_EXPONENT = 10**400
"""Largest |x| for which e^x is computed; the ball of a larger power is too long."""
_SHOWN_DIGITS = 40
"""Most digits of a decimal that is written in full; others are fractions or powers of ten."""
_FEW_DIGITS = 4
"""Decimals of at most this many digits, and more zeros after the point, get an exponent."""
_REMEDY = 'Write a number such as 3, "0.1", "1e-300", "256/60000", "sqrt(2)" or "log(3)".'


@final
@functools.total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class ExactReal:
    """A real number without rounding error.

    A rational number has both `rational` and `signed_square`. The root of a rational,
    sign(s)·√|s|, has only `signed_square` s. Any other number has only its `formula`. Sums,
    products, quotients, powers, exp and log of exact numbers are exact numbers.
    """

    rational: Fraction | None
    signed_square: Fraction | None
    formula: Formula | None = None

    def __hash__(self) -> int:
        """Hash the terms of the signed square, which is faster than hashing a fraction."""
        if self.signed_square is None:
            return hash(self.formula)
        return hash(self.signed_square.as_integer_ratio())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactReal):
            return NotImplemented
        if self.formula is None and other.formula is None:
            return self.signed_square == other.signed_square
        return not self._side(other)

    def __call__(self, *_: object, **__: object) -> Never:
        """Raise what to write instead, for mechanism.epsilon(δ) if epsilon is an argument."""
        raise InvalidInputError(
            "This is an argument of the mechanism, a number. Ask dpassay.epsilon(mechanism, delta)."
        )

    @staticmethod
    def of_rational(value: Fraction | int) -> ExactReal:
        """Return the exact number with this rational value."""
        value = Fraction(value)
        return ExactReal(value, value * abs(value))

    @staticmethod
    def of_root(signed_square: Fraction) -> ExactReal:
        """Return sign(s)·√|s|, in rational form if |s| is the square of a rational."""
        n, d = abs(signed_square.numerator), signed_square.denominator
        root_n, root_d = math.isqrt(n), math.isqrt(d)
        if root_n * root_n == n and root_d * root_d == d:
            return ExactReal.of_rational(
                Fraction(root_n if signed_square >= 0 else -root_n, root_d)
            )
        return ExactReal(None, signed_square)

    @staticmethod
    def of_quotient(value: Quotient, text: str = "") -> ExactReal:
        """Return the number in its simplest form; `text` is the formula as it was written.

        Raises UndecidedError if it cannot be decided whether the number is 0.
        """
        value = formula.simpler(value)
        if (rational := formula.as_fraction(value)) is not None:
            return ExactReal.of_rational(rational)
        found = Formula(text or formula.text_of(value), *value)
        if not found.sign:
            return ExactReal.of_rational(0)
        if (square := formula.as_square(value)) is not None:
            return ExactReal.of_root(square * found.sign)
        return ExactReal(None, None, found)

    def quotient(self) -> Quotient:
        """Return the number as a quotient of two sums (see `formula`)."""
        if self.formula is not None:
            return self.formula.quotient
        if self.rational is not None:
            return formula.of_fraction(self.rational)
        return formula.of_root(self._signed_square)

    @property
    def _signed_square(self) -> Fraction:
        if self.signed_square is None:
            raise InvalidInputError(
                f"Expected a number whose square is rational, not {self}: here the square is taken "
                'exactly. Write a number such as "0.7" or "sqrt(1/2)" on the safe side of it.'
            )
        return self.signed_square

    @property
    def square(self) -> Fraction:
        """The exact square, a rational number; InvalidInputError if it is irrational."""
        return abs(self._signed_square)

    @property
    def squared(self) -> ExactReal:
        """The exact square, rational or not."""
        return self * self

    @property
    def sign(self) -> int:
        """The sign: −1, 0 or 1."""
        if self.signed_square is None:
            assert self.formula is not None
            return self.formula.sign
        return (self.signed_square > 0) - (self.signed_square < 0)

    def ball(self) -> arb:
        """Return a ball that contains the number, at flint's current precision."""
        if self.rational is not None:
            return arb(fmpq(self.rational.numerator, self.rational.denominator))
        if self.formula is not None:
            return self.formula.ball()
        root = arb(fmpq(self.square.numerator, self.square.denominator)).sqrt()
        return root if self.sign >= 0 else -root

    def mpf(self) -> Any:
        """Return the number as an mpmath real, at mpmath's current precision."""
        import mpmath

        if self.rational is not None:
            return mpmath.mpf(self.rational.numerator) / self.rational.denominator
        if self.formula is not None:
            with ctx.workprec(mpmath.mp.prec + _SPARE_BITS):
                return mpmath.mpf(self.ball().mid().str(mpmath.mp.dps + 8, radius=False))
        square = mpmath.mpf(self.square.numerator) / self.square.denominator
        return self.sign * mpmath.sqrt(square)

    def __float__(self) -> float:
        """Return the nearest float, for samplers and plots, never for a verdict.

        Raises UndecidedError above the largest float.
        """
        try:
            if self.rational is not None:
                return float(self.rational)
            if self.formula is not None:
                with ctx.workprec(_FLOAT_BITS):
                    return _of_mantissa(*self.ball().mid().man_exp())
            return self.sign * math.sqrt(self.square)
        except OverflowError:
            raise UndecidedError(TOO_LARGE) from None

    def __floor__(self) -> int:
        """Return the largest integer ≤ the number."""
        if self.rational is not None:
            return math.floor(self.rational)
        if self.formula is not None:
            return self.formula.floor()
        root = math.isqrt(self.square.numerator // self.square.denominator)
        return root if self.sign > 0 else -root - 1  # an irrational number is not an integer

    def __lt__(self, other: ExactReal) -> bool:
        if not isinstance(other, ExactReal):  # Interval implements comparisons with exact numbers
            return NotImplemented
        if self.signed_square is None or other.signed_square is None:
            return self._side(other) < 0
        return self.signed_square < other.signed_square

    def _side(self, other: ExactReal) -> int:
        """Return the sign of self − other; balls are tried first."""
        with ctx.workprec(_FLOAT_BITS):
            less = self.ball() - other.ball()
        if less > 0 or less < 0:
            return 1 if less > 0 else -1
        return (self - other).sign

    def __neg__(self) -> ExactReal:
        if self.signed_square is None:
            return ExactReal.of_rational(-1) * self
        rational = None if self.rational is None else -self.rational
        return ExactReal(rational, -self.signed_square)

    def __add__(self, other: ExactReal) -> ExactReal:
        if self.rational is not None and other.rational is not None:
            return ExactReal.of_rational(self.rational + other.rational)
        return ExactReal.of_quotient(formula.add(self.quotient(), other.quotient()))

    def __sub__(self, other: ExactReal) -> ExactReal:
        return self + -other

    def __mul__(self, other: ExactReal) -> ExactReal:
        if self.rational is not None and other.rational is not None:
            return ExactReal.of_rational(self.rational * other.rational)
        if self.signed_square is None or other.signed_square is None:
            return ExactReal.of_quotient(formula.times(self.quotient(), other.quotient()))
        return ExactReal.of_root(self.signed_square * other.signed_square)

    def times(self, factor: Fraction | int) -> ExactReal:
        """Return the product with a rational number."""
        return ExactReal.of_rational(factor) * self

    def __truediv__(self, other: ExactReal) -> ExactReal:
        if self.rational is not None and other.rational is not None:
            return ExactReal.of_rational(self.rational / other.rational)
        if self.signed_square is None or other.signed_square is None:
            inverse = formula.inverse(other.quotient())
            return ExactReal.of_quotient(formula.times(self.quotient(), inverse))
        return ExactReal.of_root(self.signed_square / other.signed_square)

    def power(self, exponent: ExactReal) -> ExactReal:
        """Return self^exponent for self ≥ 0, or for an integer exponent.

        Raises ArithmeticError if the power is undefined or too long.
        """
        whole = exponent.rational
        if self.sign == 0 and exponent.sign < 0:
            raise ZeroDivisionError
        if self.sign == 0 or exponent.sign == 0:
            return ExactReal.of_rational(exponent.sign == 0)
        if whole is not None and whole.denominator == 1 and self.signed_square is not None:
            n = whole.numerator
            if _bits(self.signed_square) * abs(n) > _MOST_BITS:
                raise ArithmeticError(_TOO_LONG)
            sign = -1 if self.sign < 0 and n % 2 else 1
            return ExactReal.of_root(sign * self.square**n)
        if self.sign < 0 and (whole is None or whole.denominator > 1):
            raise ArithmeticError("to be the root of a number ≥ 0")
        if whole is not None and whole.denominator == 2 and self.rational is not None:
            return self.power(exponent * ExactReal.of_rational(2)).root()
        if whole is not None:
            return ExactReal.of_quotient(formula.power(self.quotient(), whole))
        return (self.log() * exponent).exp()

    def root(self) -> ExactReal:
        """Return √self for self ≥ 0."""
        if self.rational is not None and self.rational >= 0:
            return ExactReal.of_root(self.rational)
        return self.power(ExactReal.of_rational(Fraction(1, 2)))

    def exp(self) -> ExactReal:
        """Return e^self; ArithmeticError if it is too long, or if |self| > 10^400."""
        if abs(self.ball()) > _LARGEST_EXPONENT:
            raise ArithmeticError("to be nearer to 1")
        return ExactReal.of_quotient(formula.exp(self.quotient()))

    def log(self) -> ExactReal:
        """Return ln(self) for self > 0."""
        if self.sign <= 0:
            raise ArithmeticError("to be the logarithm of a number > 0")
        return ExactReal.of_quotient(formula.log(self.quotient()))

    def __str__(self) -> str:
        """Return a text that reads back as the same number."""
        if self.formula is not None:
            return self.formula.text
        if self.rational is None:
            return f"{'-' * (self.sign < 0)}sqrt({_rational_text(self.square)})"
        return _rational_text(self.rational)

    def __repr__(self) -> str:
        """Return an int literal or a quoted string, as in the notation of mechanisms."""
        text = str(self)
        return text if text.lstrip("-").isdigit() else repr(text)


Number: TypeAlias = ExactReal | Fraction | Decimal | str | int | float
"""The types that a caller may pass for a real number. A float means its exact binary value."""


def floats_in_short(text: str) -> str:
    """Write floats in Python's short form, for people; data keep all digits.

    >>> floats_in_short(f"It is ({exact(0.1)}, {exact('0.00001')})-DP.")
    'It is (0.1, 1e-5)-DP.'
    """
    return _WRAPPED.sub(r"\1", as_floats(text))


def as_floats(text: str) -> str:
    """Write each long decimal that is exactly a float as float(…), a shorter form of that number.

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
    """Return the short text of a number of any accepted type."""
    return floats_in_short(str(exact(value)))


def _rational_text(value: Fraction) -> str:
    """Write an integer or terminating decimal if the value is one, else p/q."""
    twos = (value.denominator & -value.denominator).bit_length() - 1
    fives = _exponent_of_five(value.denominator >> twos)
    if fives is None:
        return f"{_integer_text(value.numerator)}/{_integer_text(value.denominator)}"
    places = max(twos, fives)
    digits = _digits(abs(value.numerator) * (10**places // value.denominator))
    sign = "-" * (value < 0)
    if len(digits) <= _FEW_DIGITS < places - len(digits) + 1:  # e.g. a δ: 1e-5
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
    """Write digits·10^exponent; a long number gets its trailing zeros in the exponent."""
    if exponent == 0 and len(digits) <= _SHOWN_DIGITS:
        return digits
    mantissa = digits.rstrip("0")
    exponent += len(digits) - len(mantissa)
    return f"{mantissa}e{exponent}" if exponent else mantissa


def _digits(value: int) -> str:
    """Return the decimal digits of an integer ≥ 0, without Python's limit on their number."""
    return str(fmpz(value))


def exact(value: Number, argument: str = "number") -> ExactReal:
    """Convert a number to an exact one.

    Parameters
    ----------
    value
        An int, Fraction, Decimal, float (its exact binary value), a NumPy number, or a string. A
        string is an integer, a decimal ("0.1", "1e-300"), a formula of these with + - * / **, sqrt,
        exp, log and pi ("256/60000", "1/sqrt(1/1.44 + 0.01)", "log(3)", "2**0.5"), computed
        exactly, or "float(0.1)", the binary number nearest to 0.1, as reports print floats.
    argument
        The argument's name, for the error.

    Raises
    ------
    InvalidInputError
        If the value is not such a number, or is a bool, NaN or infinite.
    """
    if isinstance(value, ExactReal):
        return value
    if isinstance(value, bool):
        raise expected(argument, value, "to be a number, not a truth value", _REMEDY)
    if isinstance(value, str):
        return _read(value, argument)
    if isinstance(value, (Fraction, int)):
        return ExactReal.of_rational(value)
    if isinstance(value, numbers.Real) and hasattr(value, "item"):
        value = value.item()  # numpy.float32 is not a subclass of float
    if isinstance(value, (float, Decimal)):
        finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
        if not finite:  # a finite Decimal may exceed every float
            raise expected(argument, value, "to be finite", _REMEDY)
        return ExactReal.of_rational(Fraction(value))
    try:
        return ExactReal.of_rational(operator.index(value))
    except TypeError:
        raise expected(
            argument, value, f"to be a number, not {type(value).__name__}", _REMEDY
        ) from None


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
    """Compute a formula; return None if the text is not a formula."""
    text = re.sub(r"\bln(?=\s*\()", "log", " ".join(text.split()))
    if len(text) > _LONGEST_FORMULA or not _FORMULA.fullmatch(text):
        return None
    try:
        found = computed(ast.parse(text, mode="eval").body, text, {})
    except (SyntaxError, RecursionError, MemoryError):
        return None
    except ZeroDivisionError:
        raise expected(argument, text, "to have no denominator 0", _REMEDY) from None
    except ArithmeticError as error:
        raise expected(argument, text, str(error), _REMEDY) from None
    except UndecidedError as error:
        raise expected(argument, text, "to have a simpler form", str(error)) from None
    if found.formula is None:
        return found
    return ExactReal(None, None, Formula(text, *found.formula.quotient))


def computed(node: ast.expr, text: str, variables: Mapping[str, object]) -> ExactReal:
    """Compute a formula of numbers and of variables that are exact numbers, without rounding.

    Raises ArithmeticError if the result is undefined or too long, SyntaxError if the node is not a
    formula.
    """
    match node:
        case ast.Constant(value=int() | float()):
            written = ast.get_source_segment(text, node) or ""
            if not _DECIMAL.fullmatch(written):
                raise SyntaxError
            return _bounded(ExactReal.of_rational(Fraction(Decimal(written))))
        case ast.Name(id=name) if isinstance(variables.get(name), (Fraction, ExactReal)):
            return exact(variables[name])  # type: ignore[arg-type]  # it is a number
        case ast.Name(id="pi") | ast.Call(func=ast.Name(id="pi"), args=[], keywords=[]):
            return ExactReal.of_quotient(formula.PI)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -computed(operand, text, variables)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return computed(operand, text, variables)
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant() as of], keywords=[]):
            return exact(float(computed(of, text, variables)))
        case ast.Call(func=ast.Name(id="log"), args=[of, base], keywords=[]):
            return computed(of, text, variables).log() / computed(base, text, variables).log()
        case ast.Call(func=ast.Name(id=name), args=[of], keywords=[]) if name in _FUNCTIONS:
            return _bounded(_FUNCTIONS[name](computed(of, text, variables)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            one, other = (computed(side, text, variables) for side in (left, right))
            return _bounded(_OPERATIONS[type(op)](one, other))
    raise SyntaxError


_FUNCTIONS: dict[str, Callable[[ExactReal], ExactReal]] = {
    "sqrt": ExactReal.root,
    "exp": ExactReal.exp,
    "log": ExactReal.log,
}
_OPERATIONS: dict[type[ast.operator], Callable[[ExactReal, ExactReal], ExactReal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: ExactReal.power,
}


def _bounded(value: ExactReal) -> ExactReal:
    if value.signed_square is not None and _bits(value.signed_square) > 2 * _MOST_BITS:
        raise ArithmeticError(_TOO_LONG)
    return value


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _of_mantissa(mantissa: fmpz, exponent: fmpz) -> float:
    """Return mantissa·2^exponent as a float; OverflowError if it is too large."""
    more = max(0, int(mantissa).bit_length() - _FLOAT_BITS)
    place = min(max(int(exponent) + more, -_FAR), _FAR)
    return math.ldexp(int(mantissa) >> more, place)


def _nearest_float(value: Fraction) -> float:
    """Return the nearest float, or +∞ above the largest one."""
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
    # through Decimal: Python converts at most 4300 digits to an int directly
    numerator, denominator = Fraction(Decimal(parts[0])), Fraction(Decimal([*parts, "1"][1]))
    if denominator == 0:
        raise expected(argument, whole, "to have a denominator other than 0", _REMEDY)
    return numerator / denominator


def meant(text: str) -> str:
    """Return "Did you mean …? " for a number in a paper's notation, else an empty string.

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


def to_fmpq(value: Fraction) -> fmpq:
    """Convert a rational number to flint's type."""
    return fmpq(value.numerator, value.denominator)


# --- Exact quadratic forms: LDL' factors, least eigenvalue, and maxima over vertices --------------

Rows: TypeAlias = tuple[tuple[Fraction, ...], ...]

MAX_VERTICES = 1 << 20
"""Most vertices that are enumerated."""


@final
@dataclass(frozen=True, slots=True)
class Factors:
    """Σ = L D L' for a positive semidefinite rational matrix Σ; L is unit lower triangular."""

    lower: Rows
    pivots: tuple[Fraction, ...]

    def whiten(self, vector: Sequence[Fraction]) -> tuple[Fraction, ...] | None:
        """Return y = L⁻¹v, for which v'Σ⁺v = Σ y_i²/D_i; None if v is not in the range of Σ."""
        y: list[Fraction] = []
        for row, entry, pivot in zip(self.lower, vector, self.pivots, strict=True):
            value = entry - sum((a * b for a, b in zip(row, y, strict=False)), Fraction(0))
            if pivot == 0 and value != 0:
                return None
            y.append(value)
        return tuple(y)

    def product(self, left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
        """Return Σ l_i r_i/D_i for two whitened vectors l and r, over the i with D_i > 0."""
        terms = zip(left, right, self.pivots, strict=True)
        return sum((a * b / pivot for a, b, pivot in terms if pivot), Fraction(0))


@functools.lru_cache(maxsize=64)
def factor(rows: Rows) -> Factors:
    """Factor a symmetric rational matrix as L D L' with D ≥ 0.

    Raises
    ------
    InvalidInputError
        If it is not positive semidefinite: a pivot is negative, or a pivot is 0 and its column is
        not.
    """
    size = len(rows)
    work = [list(row) for row in rows]
    lower = [[Fraction(i == j) for j in range(size)] for i in range(size)]
    pivots = []
    for k in range(size):
        pivot = work[k][k]
        column = [work[i][k] for i in range(k + 1, size)]
        if pivot < 0 or (pivot == 0 and any(column)):
            raise InvalidInputError(
                "Expected a positive semidefinite matrix. The leading minor of order "
                f"{k + 1 if pivot < 0 else k + 2 + next(i for i, c in enumerate(column) if c)} "
                "shows a direction of negative variance."
            )
        pivots.append(pivot)
        if pivot == 0:
            continue
        for i in range(k + 1, size):
            ratio = work[i][k] / pivot
            lower[i][k] = ratio
            if ratio:
                for j in range(k + 1, i + 1):
                    work[i][j] -= ratio * work[j][k]
                    work[j][i] = work[i][j]
    return Factors(tuple(map(tuple, lower)), tuple(pivots))


def least_eigenvalue(rows: Rows) -> arb:
    """Enclose the least eigenvalue of a symmetric rational matrix, at flint's current precision.

    The roots of the exact characteristic polynomial are isolated.
    """
    polynomial = flint_matrix(rows).charpoly().numer()
    roots: Any = polynomial.complex_roots()  # pairs (root, multiplicity); all roots are real
    least: arb = functools.reduce(arb.min, (root.real for root, _ in roots))
    return least


def inverse(rows: Rows) -> Rows:
    """Return the exact inverse of an invertible rational matrix."""
    inverted = flint_matrix(rows).inv()
    size = len(rows)
    return tuple(
        tuple(Fraction(int(inverted[i, j].p), int(inverted[i, j].q)) for j in range(size))
        for i in range(size)
    )


def flint_matrix(rows: Rows) -> fmpq_mat:
    """Convert a rational matrix to flint's type."""
    return fmpq_mat([[fmpq(entry.numerator, entry.denominator) for entry in row] for row in rows])


def vertex_count(dimension: int, sparsity: int, *, signed: bool) -> int:
    """Return the number of vertices that `largest_value` enumerates."""
    if signed:
        return math.comb(dimension, sparsity) << (sparsity - 1)
    return sum(math.comb(dimension, ones) for ones in range(1, sparsity + 1))


def largest_value(form: Rows, sparsity: int, *, signed: bool) -> Fraction:
    """Return the maximum of x'Wx over vectors x with at most k non-zero entries.

    Parameters
    ----------
    form
        W, an exact positive semidefinite matrix.
    sparsity
        k, between 1 and the size of W.
    signed
        Whether the entries of x lie in [−1, 1] rather than [0, 1]. As the form is convex, vertices
        suffice: k entries ±1, or at most k entries 1.

    Raises
    ------
    InvalidInputError
        If there are more than `MAX_VERTICES` vertices.
    """
    count = vertex_count(len(form), sparsity, signed=signed)
    if count > MAX_VERTICES:
        raise InvalidInputError(
            f"Expected at most {MAX_VERTICES} vertices, not {count} (dimension {len(form)}, "
            f"{sparsity} non-zero entries). Give a Diagonal or Exchangeable covariance, for "
            "which there is a closed form, or fewer dimensions."
        )
    scale = math.lcm(*(entry.denominator for row in form for entry in row))
    integers = [[int(entry * scale) for entry in row] for row in form]
    zero = [0] * len(form)
    return Fraction(_largest(integers, 0, zero, 0, sparsity, signed=signed), scale)


def _largest(
    form: list[list[int]], start: int, gradient: list[int], value: int, left: int, *, signed: bool
) -> int:
    """Return the maximum over x plus at most `left` more entries 1, or ±1, from `start` on.

    `value` is x'Wx and `gradient[i]` is (Wx)_{start+i} for the entries x chosen so far. Since x and
    −x have the same value, the sign of the first entry is not varied.
    """
    best = value
    for offset, slope in enumerate(gradient):
        row = form[start + offset]
        position = start + offset + 1
        for sign in (1, -1) if signed and value else (1,):
            reached = value + 2 * sign * slope + row[position - 1]
            if left > 1 and position < len(form):
                pairs = zip(gradient[offset + 1 :], row[position:], strict=True)
                moved = [a + sign * b for a, b in pairs]
                reached = _largest(form, position, moved, reached, left - 1, signed=signed)
            best = max(best, reached)
    return best
