"""Formulas without x as exact numbers: quotients of sums of c·√m·e^x.

Here c is rational, m a whole number without square factors, and x a sum of such c·√m. Square roots
of different m are linearly independent over the rationals, and the e^x of different algebraic x
over the algebraic numbers (Lindemann and Weierstrass): a sum is 0 only if it has no terms, so that
equality is always decided.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TypeAlias, TypeVar, final

from flint import arb, fmpz

from dpassay.accountant.density.text import read
from dpassay.accountant.density.tree import MOST_BITS, Node, bits
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import cached_property, ctx

Exponent: TypeAlias = frozenset[tuple[int, Fraction]]
"""The rational factor of each √m, without those that are 0."""
Sum: TypeAlias = dict[tuple[Exponent, int], Fraction]
Key = TypeVar("Key")
Terms: TypeAlias = Mapping[Key, Fraction] | Iterable[tuple[Key, Fraction]]
_UNIT: tuple[Exponent, int] = (frozenset(), 1)
_WRITTEN = re.compile(r"(?:exp|sqrt|[0-9.][eE]|[-+*/(). 0-9])+")
"""Letters of a formula: densities know more."""
_MOST_TERMS = 2000
"""Of a sum: products of longer ones take seconds."""
_LARGEST_POWER, _LARGEST_RADICAND = 64, 1 << 80
"""Larger powers are long, and larger numbers take long to factor."""
_SPARE_BITS, _CERTAIN = (0, 256, 4096), 32
"""Of sums that nearly cancel, until so many bits of their quotient are known."""
_NEAR_BITS = 128
"""At which numbers that may be equal are looked for."""
_REMEDY = (
    'Write numbers with + - * / **, exp and sqrt, such as "exp(1)/(exp(1)+1)"; of other numbers an '
    "interval [lower, upper]."
)


@final
@dataclass(frozen=True, eq=False)
class ClosedForm:
    """A number that is not rational, as it was written; above/below is its value."""

    text: str
    above: Sum
    below: Sum

    def ball(self) -> arb:
        """Return a ball that contains the number, to flint's current precision or more.

        Sums that nearly cancel take more: else nothing is known of 1/below, or of the ratio of two.
        """
        if ctx.prec not in self._kept:
            for spare in _SPARE_BITS:
                with ctx.workprec(ctx.prec + spare):
                    found = _ball(self.above) / _ball(self.below)
                if found.rel_accuracy_bits() >= _CERTAIN:
                    break
            self._kept[ctx.prec] = found
        return self._kept[ctx.prec]

    @cached_property
    def _kept(self) -> dict[int, arb]:
        """The balls at each precision: every pair of rows asks."""
        return {}

    def __eq__(self, other: object) -> bool:
        """Whether both are one number, which of long formulas only equal sums show."""
        if not isinstance(other, ClosedForm):
            return False
        try:
            return _times(self.above, other.below) == _times(other.above, self.below)
        except ArithmeticError:
            return (self.above, self.below) == (other.above, other.below)

    def __hash__(self) -> int:
        with ctx.workprec(_NEAR_BITS):
            return hash(f"{float(self.ball()):.9e}")

    def __reduce__(self) -> tuple[type[ClosedForm], tuple[str, Sum, Sum]]:
        return ClosedForm, (self.text, self.above, self.below)  # balls are not pickled

    def __repr__(self) -> str:
        """Return the text in quotes, as the notation prints arguments."""
        return repr(self.text)


Known: TypeAlias = Fraction | ClosedForm


def closed(text: str, argument: str) -> Known:
    """Read a formula without x; InvalidInputError where it is no number of this kind."""
    text = " ".join(text.split())
    try:
        if not _WRITTEN.fullmatch(text):
            raise ArithmeticError
        return _number(text, *_value(read(text, argument)))
    except (InvalidInputError, ArithmeticError):
        raise expected(
            argument, text, "to be a number that a short formula gives", _REMEDY
        ) from None


def ball_of(value: Known) -> arb:
    """Return a ball that contains a number."""
    return ball(value) if isinstance(value, Fraction) else value.ball()


def total(values: Sequence[Known]) -> Known:
    """Return the sum; ArithmeticError where it has too many terms."""
    parts: dict[frozenset[object], tuple[Sum, Sum]] = {}
    for value in map(_parts, values):  # those of one denominator first
        key = frozenset(value[1].items())
        parts[key] = _add(parts[key], value) if key in parts else value
    return _number("a sum", *functools.reduce(_add, parts.values()))


@functools.lru_cache(maxsize=4096)
def log_ratio(p: Known, q: Known) -> ExactReal | None:
    """Return ln(p/q) of two numbers ≥ 0 where it is an exact number; else, or if too long, None.

    p/q = e^x for an exact x where the sums are equal but for the factor e^x, which their largest
    exponents then differ by.
    """
    if p == 0 or q == 0:
        return None
    (a, b), (c, d) = _parts(p), _parts(q)
    try:
        left, right = _times(a, d), _times(c, b)
    except ArithmeticError:
        return None
    first, second = (
        max((exponent for exponent, _ in sides), key=lambda x: _power(x).mid())
        for sides in (left, right)
    )
    terms = list(_sum(first, second, -1).items())
    if len(terms) > 1 or left != _times({(frozenset(terms), 1): Fraction(1)}, right):
        return None
    root, factor = terms[0] if terms else (1, Fraction(0))
    return ExactReal.of_root(root * factor * abs(factor))


def _number(text: str, above: Sum, below: Sum) -> Known:
    """Return above/below: a Fraction where one sum is a multiple of the other."""
    if not below:
        raise ZeroDivisionError
    key = next(iter(below))
    ratio = above.get(key, Fraction(0)) / below[key]
    same = above == ({k: ratio * c for k, c in below.items()} if ratio else {})
    return ratio if same else ClosedForm(text, above, below)


def _parts(value: Known) -> tuple[Sum, Sum]:
    if isinstance(value, ClosedForm):
        return value.above, value.below
    return ({_UNIT: value} if value else {}), {_UNIT: Fraction(1)}


def _value(node: Node) -> tuple[Sum, Sum]:
    match node.op:
        case "num":
            return _parts(_short(node.number))
        case "add":
            return _add(*map(_value, node.parts))
        case "mul":
            (a, b), (c, d) = map(_value, node.parts)
            return _times(a, c), _times(b, d)
        case "exp":
            above, below = _value(node.parts[0])
            if list(below) == [_UNIT] and all(not exponent for exponent, _ in above):
                exponent = frozenset((root, c / below[_UNIT]) for (_, root), c in above.items())
                return {(exponent, 1): Fraction(1)}, {_UNIT: Fraction(1)}
        case "pow" if abs(node.number) <= _LARGEST_POWER and node.number.denominator < 3:
            above, below = _value(node.parts[0])
            if node.number < 0:
                above, below = below, above
            if node.number.denominator == 2:
                above, below = _square_root(_number("", above, below))
            n = abs(node.number.numerator)
            raised = [functools.reduce(_times, [part] * n) for part in (above, below)]
            return raised[0], raised[1]
    raise ArithmeticError(node.op)


def _square_root(square: Known) -> tuple[Sum, Sum]:
    """Return √square of a rational square ≥ 0."""
    if isinstance(square, ClosedForm) or square < 0:
        raise ArithmeticError
    whole = square.numerator * square.denominator
    if not 0 < whole <= _LARGEST_RADICAND:
        raise ArithmeticError
    odd = math.prod(int(p) for p, n in fmpz(whole).factor() if n % 2)
    value = Fraction(math.isqrt(whole // odd), square.denominator)
    return {(frozenset(), odd): value}, {_UNIT: Fraction(1)}


def _add(one: tuple[Sum, Sum], other: tuple[Sum, Sum]) -> tuple[Sum, Sum]:
    (a, b), (c, d) = one, other
    if b == d:
        return _sum(a, c), b
    return _sum(_times(a, d), _times(c, b)), _times(b, d)


def _sum(one: Terms[Key], other: Terms[Key], sign: int = 1) -> dict[Key, Fraction]:
    """Return one + sign·other of the coefficients of any terms, without those that are 0."""
    found = dict(one)
    for key, c in dict(other).items():
        found[key] = found.get(key, Fraction(0)) + sign * c
    return {key: c for key, c in found.items() if c}


def _times(one: Sum, other: Sum) -> Sum:
    found: Sum = {}
    for ((x, m), c), ((y, n), d) in product(one.items(), other.items()):
        common = math.gcd(m, n)
        key = frozenset(_sum(x, y).items()), m * n // common**2
        found[key] = found.get(key, Fraction(0)) + c * d * common
    if len(found) > _MOST_TERMS:
        raise ArithmeticError("too many terms")
    return {key: _short(c) for key, c in found.items() if c}


def _short(value: Fraction) -> Fraction:
    if bits(value) > MOST_BITS:
        raise ArithmeticError("too long")
    return value


def _power(exponent: Exponent) -> arb:
    return sum((ball(factor) * arb(root).sqrt() for root, factor in exponent), start=arb(0))


def _ball(terms: Sum) -> arb:
    found = arb(0)
    for (exponent, root), c in terms.items():
        found += ball(c) * arb(root).sqrt() * _power(exponent).exp()
    return found
