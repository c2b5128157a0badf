"""Real numbers of the checker: what is known of them exactly, and balls around them.

A number is a Fraction, or a `Real`: a sum of exact terms (`dpassay.verifier.checker.monomials`), or
only a ball of Arb. So √2·√2 is 2 and e^{1/3}·e^{−1/3} is 1, exactly.

A ball is made at flint's precision when it is asked for, and contains the number. A comparison that
the balls do not decide raises `FewDigitsError`, unless both sides are found to be identical.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias, final

from flint import acb, arb, fmpq, fmpz

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.monomials import (
    ONE,
    Monomial,
    Terms,
    factors,
    normal,
    product,
    vanish,
)
from dpassay.verifier.checker.special import EVALUATED, rising

_MOST_MONOMIALS = 40
"""Terms of a number that is kept as a sum of exact ones; others are balls alone."""
_MOST_BITS = 1 << 20
"""Of a rational number that is kept exactly."""
_LARGEST_POWER = 100_000
"""Largest exponent that is multiplied out exactly."""


class UnknownError(Exception):
    """A quantity that the checker cannot recompute; the message names it."""


class FewDigitsError(UnknownError):
    """A quantity that takes numbers of more digits than there are."""

    def __init__(self, message: str = "a comparison that no number of digits decides") -> None:
        super().__init__(message)


def _ordered(relation: str) -> Callable[[Any, Any], bool]:
    return lambda one, other: _decided(one, relation, other)


@final
class Real:
    """A real number, known exactly or by a ball."""

    __slots__ = ("_ball", "_precision", "ends", "terms")

    def __init__(
        self,
        around: arb | None,
        terms: Terms | None = None,
        ends: tuple[Number, Number] | None = None,
    ) -> None:
        self.terms = terms
        """Rational multiples of monomials; None where only the ball is known."""
        self.ends = ends
        """Numbers that it lies between, which may say more than the ball."""
        self._ball = around
        self._precision = 0

    @property
    def ball(self) -> arb:
        """A ball that contains the number: at flint's precision, or a narrower one made before."""
        if self._ball is None or (self.terms is not None and self._precision < ctx.prec):
            total = arb(0)
            for monomial, coefficient in (self.terms or {}).items():
                total += _rational(coefficient) * _monomial_ball(monomial)
            self._ball, self._precision = total, ctx.prec
        return self._ball

    def __add__(self, other: Any) -> Any:
        if not _is_number(other):
            return NotImplemented
        one, two = _terms(self), _terms(other)
        if one is None or two is None:
            return Real(ball(self) + ball(other))
        total = dict(one)
        for monomial, coefficient in two.items():
            total[monomial] = total.get(monomial, Fraction(0)) + coefficient
        return _number(total)

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self * Fraction(-1)

    def __pos__(self) -> Any:
        return self

    def __sub__(self, other: Any) -> Any:
        return self + -other if _is_number(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if _is_number(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if not _is_number(other):
            return NotImplemented
        if not isinstance(other, Real) and other == 0 and self.ball.is_finite():
            return Fraction(0)
        one, two = _terms(self), _terms(other)
        if one is None or two is None or len(one) * len(two) > _MOST_MONOMIALS:
            return Real(ball(self) * ball(other))
        return _number(product(one, two))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if not _is_number(other):
            return NotImplemented
        inverse = _inverse(other)
        if isinstance(other, Real) and other.terms is not None and other.terms == self.terms:
            return Fraction(1)
        return self * inverse

    def __rtruediv__(self, other: Any) -> Any:
        return _inverse(self) * other if _is_number(other) else NotImplemented

    def __pow__(self, other: Any) -> Any:
        return power(self, other) if _is_number(other) else NotImplemented

    def __rpow__(self, other: Any) -> Any:
        return power(other, self) if _is_number(other) else NotImplemented

    def __abs__(self) -> Any:
        truth = compare(self, ">=", Fraction(0))
        if truth is None:
            return Real(abs(self.ball))
        return self if truth else -self

    __lt__, __le__ = _ordered("<"), _ordered("<=")
    __gt__, __ge__ = _ordered(">"), _ordered(">=")

    def __eq__(self, other: object) -> bool:
        """Whether both are proved to be one number."""
        return _is_number(other) and compare(self, "==", other) is True

    def __hash__(self) -> int:
        return id(self) if self.terms is None else hash(frozenset(self.terms.items()))

    def __bool__(self) -> bool:
        return _decided(self, "!=", Fraction(0))

    def __float__(self) -> float:
        return float(self.ball)

    def __repr__(self) -> str:
        return f"Real({self.ball.str(20)})"


Number: TypeAlias = Fraction | Real


def _is_number(value: Any) -> bool:
    return isinstance(value, (Real, Fraction, int)) and not isinstance(value, bool)


def _terms(value: Any) -> Terms | None:
    if isinstance(value, Real):
        return value.terms
    return {ONE: Fraction(value)} if value else {}


def _number(terms: Terms) -> Number:
    """Return the sum of terms: a Fraction where it is one, a ball where it becomes long."""
    kept = {monomial: c for monomial, c in terms.items() if c}
    if not kept.keys() - {ONE}:
        return kept.get(ONE, Fraction(0))
    result = Real(None, kept)
    if len(kept) > _MOST_MONOMIALS or any(map(_long, kept.values())):
        return Real(result.ball)
    return result


def _long(value: Fraction) -> bool:
    return value.numerator.bit_length() + value.denominator.bit_length() > _MOST_BITS


def short(value: Any) -> Any:
    """Return a number, a rational one of very many digits as a ball."""
    return Real(ball(value)) if isinstance(value, Fraction) and _long(value) else value


def ball(value: Any) -> arb:
    """Return a ball that contains a number."""
    if isinstance(value, Real):
        return value.ball
    if isinstance(value, (Fraction, int)):
        return _rational(Fraction(value))
    raise TypeError(f"{value!r} is no number with a ball")


def _rational(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def hull(low: Any, high: Any) -> Any:
    """Return a number of which it is known that it lies between two others."""
    return low if low == high else Real(ball(low).union(ball(high)), ends=(low, high))


INFINITE = Real(arb.pos_inf())


def compare(left: Any, relation: str, right: Any) -> bool | None:
    """Decide a comparison; None where the two sides cannot be told apart.

    Balls are made at flint's precision, or at that at which one of the sides was asked for.
    """
    known = [value._precision for value in (left, right) if isinstance(value, Real)]
    with ctx.workprec(max(ctx.prec, *known) if known else ctx.prec):
        low, high = _signs(left, right)
    yes, no = {
        "<": (high < 0, low >= 0),
        "<=": (high <= 0, low > 0),
        ">": (low > 0, high <= 0),
        ">=": (low >= 0, high < 0),
        "==": (low == high == 0, low > 0 or high < 0),
        "!=": (low > 0 or high < 0, low == high == 0),
    }[relation]
    return True if yes else False if no else None


def _signs(left: Any, right: Any) -> tuple[int, int]:
    """Return −1, 0 or 1 below and above the sign of left − right."""
    if left is right:  # of two infinities there is no difference
        return 0, 0
    if isinstance(left, Real) and left.ends is not None:
        return _sign(left.ends[0] - right)[0], _sign(left.ends[1] - right)[1]
    if isinstance(right, Real) and right.ends is not None:
        return _sign(left - right.ends[1])[0], _sign(left - right.ends[0])[1]
    return _sign(left - right)


def _sign(value: Any) -> tuple[int, int]:
    """Return −1, 0 or 1 below and above the sign of a number."""
    if not isinstance(value, Real):
        sign = (value > 0) - (value < 0)
        return sign, sign
    around = value.ball
    low = 1 if around > 0 else 0 if around >= 0 else -1
    high = -1 if around < 0 else 0 if around <= 0 else 1
    return (0, 0) if low <= 0 <= high and vanish(value.terms) else (low, high)


def _decided(left: Any, relation: str, right: Any) -> bool:
    if not _is_number(right):
        raise TypeError(f"{right!r} is no number")
    truth = compare(left, relation, right)
    if truth is None:
        raise FewDigitsError
    return truth


# Exact arithmetic.


def _inverse(value: Any) -> Any:
    if not isinstance(value, Real):
        return 1 / Fraction(value)
    if vanish(value.terms):
        raise ZeroDivisionError("a division by 0")
    if value.terms is not None and not (value.ball > 0 or value.ball < 0):
        raise FewDigitsError("a division by what may be 0")
    if value.terms is None:
        return Real(1 / value.ball)
    if len(value.terms) == 1:
        return power(value, Fraction(-1))
    if len(value.terms) == 2:  # 1/(x + y) = (x − y)/(x² − y²), where that is rational: of roots
        (one, c), (other, d) = value.terms.items()
        conjugate = _number({one: c, other: -d})
        norm = value * conjugate
        if isinstance(norm, Fraction) and norm:
            return conjugate * (1 / norm)
    first = min(value.terms, key=lambda monomial: sorted(map(repr, monomial)))
    scale = value.terms[first]
    whole = frozenset((monomial, c / scale) for monomial, c in value.terms.items())
    return _number({frozenset([(("sum", whole), Fraction(-1))]): 1 / scale})


def power(base: Any, exponent: Any) -> Any:
    """Return base^exponent; ValueError for a root of a negative number."""
    if isinstance(exponent, int):
        exponent = Fraction(exponent)
    if isinstance(exponent, Fraction) and exponent.denominator == 1:
        return _whole_power(base, int(exponent))
    if isinstance(exponent, Fraction):
        found = _fractional_power(base, exponent)
        if found is not None:
            return found
    if not isinstance(base, Real) and base == 0 and exponent > 0:
        return Fraction(0)
    if ball(base) < 0:
        raise ValueError("a power of a negative number that is no integer")
    if isinstance(exponent, Real):
        return exp(exponent * log(base))
    return Real(ball(base) ** ball(exponent))


def _whole_power(base: Any, n: int) -> Any:
    if not isinstance(base, Real):
        size = base.numerator.bit_length() + base.denominator.bit_length()
        if base and size * abs(n) <= _MOST_BITS:
            return Fraction(base) ** n
        if not base:
            return Fraction(0) ** n
    elif base.terms is not None:
        terms = base.terms
        if n < 0 and not (base.ball > 0 or base.ball < 0):
            raise FewDigitsError("a division by what may be 0")
        if len(terms) == 1 and abs(n) <= _LARGEST_POWER:
            ((monomial, coefficient),) = terms.items()
            size = coefficient.numerator.bit_length() + coefficient.denominator.bit_length()
            if size * abs(n) <= _MOST_BITS:
                raised, scale = normal({atom: e * n for atom, e in monomial})
                return _number({raised: coefficient**n * scale})
        if n in (0, 1, 2, 3):
            return math.prod([base] * n, start=Fraction(1))
    return Real(_integer_power(ball(base), n))


def _integer_power(base: arb, n: int) -> arb:
    """Return base^n also where the ball contains 0, which Arb's power of reals does not allow."""
    found = (acb(base) ** n).real
    return found if n % 2 else found.nonnegative_part()


def _fractional_power(base: Any, exponent: Fraction) -> Any:
    """Return a root exactly: of one monomial of positive factors; else None."""
    terms = _terms(base)
    if terms is None or len(terms) != 1 or abs(exponent) > _LARGEST_POWER:
        return None
    ((monomial, coefficient),) = terms.items()
    if coefficient <= 0 or not all(_positive(atom) for atom, _ in monomial):
        return None
    exponents = {atom: e * exponent for atom, e in monomial}
    for whole, sign in ((coefficient.numerator, 1), (coefficient.denominator, -1)):
        for factor, times in factors(whole, exponent.denominator):
            atom = ("integer", factor)
            exponents[atom] = exponents.get(atom, Fraction(0)) + sign * times * exponent
    if any(atom[0] == "integer" and abs(e) * atom[1].bit_length() > _MOST_BITS
           for atom, e in exponents.items()):  # fmt: skip
        return None
    raised, scale = normal(exponents)
    return _number({raised: scale})


def _positive(atom: tuple[Any, ...]) -> bool:
    return bool(_monomial_ball(frozenset([(atom, Fraction(1))])) > 0)


# Functions.


def exp(x: Any) -> Any:
    """Return e^x: exactly a product of powers, where x is known exactly."""
    terms = _terms(x)
    if terms is None:
        return Real(rising(arb.exp, x.ball))
    exponents: dict[tuple[Any, ...], Fraction] = {}
    for monomial, coefficient in terms.items():
        atom: tuple[Any, ...] = ("exp", frozenset([(monomial, Fraction(1))]))
        if monomial == ONE:
            atom = ("e",)
        elif len(monomial) == 1:
            (((inner, exponent),)) = monomial
            if inner[0] == "log" and exponent == 1 and _positive(_inside(inner)):
                atom = _inside(inner)
        exponents[atom] = exponents.get(atom, Fraction(0)) + coefficient
    if any(
        abs(e) * a[1].bit_length() > _MOST_BITS for a, e in exponents.items() if a[0] == "integer"
    ):
        return Real(rising(arb.exp, ball(x)))
    monomial, scale = normal(exponents)
    return _number({monomial: scale})


def _inside(atom: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the atom of which another one is the logarithm."""
    inner = atom[1]
    if isinstance(inner, Fraction):
        return ("integer", int(inner))
    if len(inner) > 1:
        return ("sum", inner)
    ((monomial, _),) = inner
    (((found, _),)) = monomial
    return found  # type: ignore[no-any-return]  # an atom is a tuple of anything


def log(x: Any) -> Any:
    """Return ln x: exactly a sum, where x is a product of positive factors."""
    if not isinstance(x, Real) and x <= 0:
        raise ValueError("a logarithm of a number that is not positive")
    terms = _terms(x)
    if terms is None:
        return Real(rising(arb.log, x.ball))
    if len(terms) > 1:
        return apply("log", x)
    ((monomial, coefficient),) = terms.items()
    if coefficient <= 0 or not all(_positive(atom) for atom, _ in monomial):
        return Real(ball(x).log())
    total: Any = Fraction(0)
    for whole, sign in ((coefficient.numerator, 1), (coefficient.denominator, -1)):
        for factor, times in factors(whole, 2):
            total += sign * times * _logarithm(("integer", factor))
    for atom, exponent in monomial:
        total += exponent * _logarithm(atom)
    return total


def _logarithm(atom: tuple[Any, ...]) -> Any:
    match atom[0]:
        case "e":
            return Fraction(1)
        case "exp":
            return _number(dict(atom[1]))
        case "integer":
            key: Any = Fraction(atom[1])
        case _:
            key = frozenset([(frozenset([(atom, Fraction(1))]), Fraction(1))])
    return Real(None, {frozenset([(("log", key), Fraction(1))]): Fraction(1)})


def sqrt(x: Any) -> Any:
    """Return √x for x ≥ 0: a Fraction where it is rational."""
    if not isinstance(x, Real) and x < 0:
        raise ValueError("a square root of a negative number")
    if isinstance(x, Real) and x.terms is None:
        return Real(rising(arb.sqrt, x.ball))
    found = _fractional_power(x, Fraction(1, 2)) if x else Fraction(0)
    return Real(ball(x).sqrt()) if found is None else found


PI = Real(None, {frozenset([(("pi",), Fraction(1))]): Fraction(1)})


def apply(name: str, *values: Any) -> Number:
    """Return a function of `EVALUATED`, as an atom where its arguments are known exactly.

    What is no finite number is only a ball, so that nothing cancels there.
    """
    if any(isinstance(value, Real) and value.terms is None for value in values):
        return Real(EVALUATED[name](*map(ball, values)))
    keys = (
        frozenset((value.terms or {}).items()) if isinstance(value, Real) else Fraction(value)
        for value in values
    )
    found = Real(None, {frozenset([((name, *keys), Fraction(1))]): Fraction(1)})
    return found if found.ball.is_finite() else Real(found.ball)


def _monomial_ball(monomial: Monomial) -> arb:
    result = arb(1)
    for atom, exponent in monomial:
        result *= _atom_ball(atom, exponent)
    return result


def _atom_ball(atom: tuple[Any, ...], exponent: Fraction) -> arb:
    match atom:
        case ("e",):
            return _rational(exponent).exp()
        case ("exp", inside):
            return (_rational(exponent) * _key_ball(inside)).exp()
        case ("pi",):
            base = arb.pi()
        case ("integer", whole):
            base = arb(fmpz(whole))
        case ("sum", inside):
            base = _key_ball(inside)
        case (name, *keys):
            base = EVALUATED[name](*map(_key_ball, keys))
    if exponent.denominator == 1:
        return _integer_power(base, exponent.numerator)
    return base ** _rational(exponent)


def _key_ball(key: Any) -> arb:
    return _rational(key) if isinstance(key, Fraction) else Real(None, dict(key)).ball
