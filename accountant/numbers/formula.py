"""Real numbers as quotients of sums, closed under arithmetic, roots, exp and log.

A term of a sum is c·√m·e^x·ln(a)^k·…, where c is rational, m is a square-free integer, x is a sum
again, and each a is a prime, π or a sum. Powers are written with e^x: 2^(1/3) is e^(ln(2)/3).
Numbers that are equal by these rules have the same sums. For algebraic numbers `_least_size` also
decides whether a sum is 0. If neither this nor more digits decide it, UndecidedError is raised.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import NamedTuple, TypeAlias, final

from flint import arb, fmpq, fmpz

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.precision import cached_property, ctx

Key: TypeAlias = "frozenset[tuple[Monomial, Fraction]]"
"""A sum in hashable form, a key of dictionaries."""
Atom: TypeAlias = "int | str | Key"
"""The argument of a logarithm: a prime, "pi" or a sum."""
Factor: TypeAlias = "Atom | tuple[Key, ...]"
"""ln of an atom, or a quotient of two sums treated as one number; () is π."""


class Monomial(NamedTuple):
    """√root·e^exponent times powers of factors: logarithms and other numbers."""

    exponent: Key
    root: int
    factors: frozenset[tuple[Factor, int]]
    """Each factor with its power, > 0."""


Sum: TypeAlias = dict[Monomial, Fraction]
Quotient: TypeAlias = tuple[Sum, Sum]

ONE = Monomial(frozenset(), 1, frozenset())
_UNIT: Sum = {ONE: Fraction(1)}
PI: Quotient = ({Monomial(frozenset(), 1, frozenset({((), 1)})): Fraction(1)}, _UNIT)
_MOST_TERMS, _MOST_PRODUCTS = 1000, 20_000
"""Most terms of a sum, and most pairs of terms in a product; more take seconds."""
_TOO_MANY = "to have fewer terms"
_MOST_BITS = 400_000
"""Most bits of a coefficient."""
_LARGEST_POWER = 256
"""Largest power of a sum that is expanded."""
_LARGEST_FLOOR = 1 << 20
"""Most bits of the integer part that `floor` computes."""
_TRIED_PRIMES = 1000
"""Number of primes tried as divisors of an integer; the remaining cofactor is kept whole."""
_FEW_TERMS = 8
"""Most terms in a number whose square is tested for being rational."""
_SPARE_BITS, _LOST = (0, 256, 4096), 16
"""Extra bits tried for sums that nearly cancel, and the largest loss of accuracy accepted."""
_SIGN_BITS = (128, 1024, 8192, 1 << 15)
"""Precisions in bits at which a sign is determined."""
_HASHED = 1 << 20
"""The hash of a number is that of the integer part of this multiple of it."""
_SHOWN = 60
"""Most characters of a number in an error message."""


@final
@dataclass(frozen=True, eq=False)
class Formula:
    """A number above/below that is neither rational nor the square root of a rational."""

    text: str
    above: Sum
    below: Sum

    @property
    def quotient(self) -> Quotient:
        """The numerator and denominator."""
        return self.above, self.below

    def ball(self) -> arb:
        """Return a ball that contains the number, at flint's current precision or better.

        Sums that nearly cancel are evaluated with more bits; otherwise 1/below could be unbounded.
        """
        if ctx.prec not in self._kept:
            for spare in _SPARE_BITS:
                with ctx.workprec(ctx.prec + spare):
                    found = sum_ball(self.above) / sum_ball(self.below)
                if found.rel_accuracy_bits() >= ctx.prec - _LOST:
                    break
            self._kept[ctx.prec] = found
        return self._kept[ctx.prec]

    @cached_property
    def sign(self) -> int:
        """The sign: −1, 0 or 1; UndecidedError if it cannot be determined."""
        return side(self.above) * side(self.below)

    @cached_property
    def _kept(self) -> dict[int, arb]:
        """Balls that were computed, by precision."""
        return {}

    def floor(self, factor: int = 1) -> int:
        """Return ⌊factor·number⌋."""
        with ctx.workprec(_SIGN_BITS[0]):
            size = _binary_size(self.ball()) + factor.bit_length()
        if size > _LARGEST_FLOOR:
            raise UndecidedError(f"The whole part of {self._shown} has too many digits.")
        with ctx.workprec(_SIGN_BITS[0] + max(0, size)):
            near = (factor * self.ball() + arb(1) / 2).mid().floor().unique_fmpz()
        assert near is not None  # its size is bounded above
        whole = of_fraction(Fraction(-int(near)))
        above, below = add(times(self.quotient, of_fraction(Fraction(factor))), whole)
        return int(near) - (side(above) * side(below) < 0)

    @property
    def _shown(self) -> str:
        return self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}…"

    def __hash__(self) -> int:
        with ctx.workprec(_SIGN_BITS[0]):
            size = _binary_size(self.ball())
        return hash(self.floor(_HASHED) if size < _SIGN_BITS[0] else size)

    def __reduce__(self) -> tuple[type[Formula], tuple[str, Sum, Sum]]:
        return Formula, (self.text, self.above, self.below)  # the cached balls are not pickled


def side(terms: Sum) -> int:
    """Return the sign of a sum; UndecidedError if it cannot be determined."""
    known = None
    for bits in _SIGN_BITS:
        with ctx.workprec(bits):
            ball = sum_ball(terms)
            if ball > 0:
                return 1
            if ball < 0:
                return -1
            if ball.is_zero():
                return 0
            known = _least_size(terms) if known is None else known
            if ball.is_finite() and abs(ball) < known:  # false if `known` is NaN
                return 0
    text = text_of((terms, _UNIT))
    raise UndecidedError(
        f"Whether {text if len(text) <= _SHOWN else f'{text[:_SHOWN]}…'} is 0 is not decided by "
        f"{_SIGN_BITS[-1] * 3 // 10} digits. Write it in a simpler form."
    )


def _least_size(terms: Sum) -> arb:
    """Return a lower bound on |s| for an algebraic sum s ≠ 0; NaN for other sums.

    Multiply s by its common denominator: the product is an algebraic integer, because the sums
    under the roots have integer coefficients. Its degree d is at most the product of the degrees of
    the roots. Its conjugates are at most u in absolute value, where u adds the sizes of the terms
    with each root at its largest conjugate. If s ≠ 0, the norm is at least 1, so the product is at
    least u^{1−d}. For two square roots x and y, perhaps of integers with unknown factors, the
    squares give |x + y| ≥ |x² − y²|/(|x| + |y|).
    """
    if len(terms) == 2 and not any(key.exponent or key.factors for key in terms):
        x, y = (c * c * key.root for key, c in terms.items())
        roots = _rational(x).sqrt() + _rational(y).sqrt()
        return _rational(abs(x - y)) / roots if x != y else arb.pos_inf()
    degrees: dict[object, int] = {}
    try:
        size = _largest_conjugate(terms, degrees)
    except ArithmeticError:
        return arb.nan()
    shared = math.lcm(*(c.denominator for c in terms.values()))
    return (shared * size + 1) ** (1 - math.prod(degrees.values())) / shared


def _largest_conjugate(terms: Sum, degrees: dict[object, int]) -> arb:
    """Bound the conjugates of an algebraic sum; add the degrees of its roots to `degrees`.

    Raises ArithmeticError if the sum is not of this kind.
    """
    total = arb(0)
    for monomial, c in terms.items():
        if monomial.factors:
            raise ArithmeticError
        size = _rational(abs(c)) * arb(monomial.root).sqrt()
        degrees.update(((p, "root"), 2) for p, _ in _factors(monomial.root))
        for key, exponent in monomial.exponent:
            atom = _single_log(key)
            if atom is None or isinstance(atom, str):
                raise ArithmeticError
            degrees[atom] = math.lcm(degrees.get(atom, 1), exponent.denominator)
            inner = arb(atom) if isinstance(atom, int) else _largest_conjugate(dict(atom), degrees)
            size *= inner ** _rational(exponent)
        total += size
    return total


def of_fraction(value: Fraction) -> Quotient:
    """Convert a rational number."""
    return ({ONE: value} if value else {}), _UNIT


def of_root(square: Fraction) -> Quotient:
    """Return sign(s)·√|s|."""
    whole = abs(square.numerator) * square.denominator
    odd = math.prod(p for p, n in _factors(whole) if n % 2)
    value = Fraction(math.isqrt(whole // odd), square.denominator)
    sign = -1 if square < 0 else 1
    return {Monomial(frozenset(), odd, frozenset()): sign * value}, _UNIT


@functools.lru_cache(maxsize=256)
def _factors(number: int) -> list[tuple[int, int]]:
    """Return factors of an integer > 0 and their powers; all but the largest are primes."""
    found = [(int(p), int(n)) for p, n in fmpz(number).factor(trial_limit=_TRIED_PRIMES)]
    return [(root, 2 * n) if (root := math.isqrt(p)) ** 2 == p else (p, n) for p, n in found]


def add(one: Quotient, other: Quotient) -> Quotient:
    """Return the sum of two numbers."""
    (a, b), (c, d) = one, other
    if b == d:
        return _sum(a, c), b
    return _sum(_product(a, d), _product(c, b)), _product(b, d)


def times(one: Quotient, other: Quotient) -> Quotient:
    """Return the product of two numbers."""
    return _product(one[0], other[0]), _product(one[1], other[1])


def inverse(value: Quotient) -> Quotient:
    """Return 1/value for a number ≠ 0."""
    return value[1], value[0]


def power(base: Quotient, exponent: Fraction) -> Quotient:
    """Return base^exponent for a base > 0, or for a base ≠ 0 and an integer exponent."""
    if exponent.denominator == 1 and abs(exponent) <= _LARGEST_POWER:
        above, below = base if exponent >= 0 else inverse(base)
        n = abs(exponent.numerator)
        return _raised(above, n), _raised(below, n)
    return exp(times(log(base), of_fraction(exponent)))


def _raised(base: Sum, n: int) -> Sum:
    if n < 2:
        return base if n else _UNIT
    half = _raised(base, n // 2)
    square = _product(half, half)
    return _product(square, base) if n % 2 else square


def exp(value: Quotient) -> Quotient:
    """Return e^value."""
    above, below = simpler(value)
    if list(below) != [ONE]:
        whole: Factor = (frozenset(above.items()), frozenset(below.items()))
        return _of_exponent({Monomial(frozenset(), 1, frozenset({(whole, 1)})): Fraction(1)})
    return _of_exponent(_scaled(above, 1 / below[ONE]))


def simpler(value: Quotient) -> Quotient:
    """Divide by a denominator of a single term, as far as its factors divide the numerator."""
    above, below = value
    if len(below) != 1 or ONE in below:
        return value
    ((monomial, c),) = below.items()
    least = dict(monomial.factors)
    for term in above:
        there = dict(term.factors)
        least = {factor: min(n, there.get(factor, 0)) for factor, n in least.items()}
    divided = {_without(term, least): d for term, d in above.items()}
    rest = _without(monomial, least)
    over, under = _of_exponent({key: -n for key, n in rest.exponent})
    over = _product(over, {Monomial(frozenset(), rest.root, frozenset()): 1 / (c * rest.root)})
    left = {Monomial(frozenset(), 1, rest.factors): Fraction(1)}
    return _product(divided, over), _product(left, under)


def _without(monomial: Monomial, factors: Mapping[Factor, int]) -> Monomial:
    left = {factor: n - factors.get(factor, 0) for factor, n in monomial.factors}
    kept = frozenset((factor, n) for factor, n in left.items() if n)
    return Monomial(monomial.exponent, monomial.root, kept)


def _of_exponent(exponent: Sum) -> Quotient:
    """Return e^x, where a term n·ln(a) of x becomes the factor aⁿ for the integer part of n."""
    rest: Sum = {}
    root, found = 1, (_UNIT, _UNIT)
    for monomial, c in exponent.items():
        atom = _single_log(monomial)
        if atom is None:
            rest[monomial] = c
            continue
        whole = math.floor(c)
        left = c - whole
        if whole:
            found = times(found, _whole_power(atom, whole))
        if isinstance(atom, int) and left >= Fraction(1, 2):
            root *= atom
            left -= Fraction(1, 2)
        if left:
            rest[monomial] = left
    made = {Monomial(frozenset(rest.items()), root, frozenset()): Fraction(1)}
    return _product(made, found[0]), found[1]


def _whole_power(atom: Atom, whole: int) -> Quotient:
    if isinstance(atom, int):
        if atom.bit_length() * abs(whole) > _MOST_BITS:
            raise ArithmeticError("to have fewer digits")
        return of_fraction(Fraction(atom) ** whole)
    if abs(whole) > _LARGEST_POWER:
        raise ArithmeticError(f"to have powers of sums of at most {_LARGEST_POWER}")
    return power(PI if isinstance(atom, str) else (dict(atom), _UNIT), Fraction(whole))


def _single_log(monomial: Monomial) -> Atom | None:
    """Return a if the monomial is ln(a), else None."""
    if monomial.exponent or monomial.root != 1 or len(monomial.factors) != 1:
        return None
    ((atom, power_of),) = monomial.factors
    return None if isinstance(atom, tuple) or power_of != 1 else atom


def log(value: Quotient) -> Quotient:
    """Return ln of a number > 0."""
    above, below = value
    if side(above) < 0:
        above, below = _scaled(above, Fraction(-1)), _scaled(below, Fraction(-1))
    return _sum(_log_of_sum(above), _scaled(_log_of_sum(below), Fraction(-1))), _UNIT


def algebraic_log(value: Quotient) -> Quotient | None:
    """Return x = ln(value) for a number > 0 that is e^x with x a sum of roots, else None.

    Numerator and denominator then differ by the factor e^x alone, so x is the difference of their
    largest exponents.
    """
    first, second = (
        max((key.exponent for key in terms), key=lambda x: sum_ball(x).mid()) for terms in value
    )
    exponent = _sum(dict(first), _scaled(dict(second), Fraction(-1)))
    if any(key.exponent or key.factors for key in exponent):
        return None
    shifted = _product(_of_exponent(exponent)[0], value[1])
    return (exponent, _UNIT) if shifted == value[0] else None


def _log_of_sum(terms: Sum) -> Sum:
    """Return ln of a sum > 0; for a single term, the sum of the logarithms of its factors."""
    if len(terms) == 1:
        ((monomial, c),) = terms.items()
        if c > 0 and all(isinstance(factor, int) or factor == () for factor, _ in monomial.factors):
            found = _sum(_log_of_fraction(c), dict(monomial.exponent))
            found = _sum(found, _scaled(_log_of_fraction(Fraction(monomial.root)), Fraction(1, 2)))
            for factor, n in monomial.factors:  # all factors are > 0
                inner = frozenset(_log_of(factor).items()) if isinstance(factor, int) else "pi"
                found = _sum(found, _scaled(_log_of(inner), Fraction(n)))
            return found
    content = _content(terms)
    key = frozenset(_scaled(terms, 1 / content).items())
    return _sum(_log_of_fraction(content), _log_of(key))


def _content(terms: Sum) -> Fraction:
    """Return the largest c > 0 such that every coefficient is an integer multiple of c."""
    shared = math.lcm(*(c.denominator for c in terms.values()))
    return Fraction(math.gcd(*(int(c * shared) for c in terms.values())), shared)


def _log_of(atom: Atom) -> Sum:
    return {Monomial(frozenset(), 1, frozenset({(atom, 1)})): Fraction(1)}


def _log_of_fraction(value: Fraction) -> Sum:
    found: Sum = {}
    for number, sign in ((value.numerator, 1), (value.denominator, -1)):
        for p, n in _factors(number):
            found = _sum(found, _scaled(_log_of(p), Fraction(sign * n)))
    return found


def _scaled(terms: Sum, factor: Fraction) -> Sum:
    return {key: c * factor for key, c in terms.items()}


def _sum(one: Mapping[Monomial, Fraction], other: Mapping[Monomial, Fraction]) -> Sum:
    found = dict(one)
    for key, c in other.items():
        found[key] = found.get(key, Fraction(0)) + c
    return {key: c for key, c in found.items() if c}


def _product(one: Sum, other: Sum) -> Sum:
    if len(one) * len(other) > _MOST_PRODUCTS:
        raise ArithmeticError(_TOO_MANY)
    found: Sum = {}
    for (x, c), (y, d) in product(one.items(), other.items()):
        if not x.exponent and not y.exponent and not x.factors and not y.factors:  # the usual case
            common = math.gcd(x.root, y.root)
            key = Monomial(x.exponent, x.root * y.root // common**2, x.factors)
            found[key] = found.get(key, Fraction(0)) + c * d * common
            continue
        for key, factor in _merged(x, y).items():
            found[key] = found.get(key, Fraction(0)) + c * d * factor
    if len(found) > _MOST_TERMS:
        raise ArithmeticError(_TOO_MANY)
    return {key: _short(c) for key, c in found.items() if c}


def _merged(x: Monomial, y: Monomial) -> Sum:
    """Return the product of two monomials, which may be a sum of several."""
    common = math.gcd(x.root, y.root)
    root, factor = x.root * y.root // common**2, Fraction(common)
    logs: dict[Factor, int] = dict(x.factors)
    for atom, n in y.factors:
        logs[atom] = logs.get(atom, 0) + n
    kept = frozenset(logs.items())
    if not x.exponent or not y.exponent:
        return {Monomial(x.exponent or y.exponent, root, kept): factor}
    exponent = _sum(dict(x.exponent), dict(y.exponent))
    plain = {key: c for key, c in exponent.items() if _single_log(key) is None}
    if len(plain) == len(exponent):
        return {Monomial(frozenset(exponent.items()), root, kept): factor}
    above, below = _of_exponent(exponent)
    assert list(below) == [ONE]  # exponents of atoms lie in [0, 1), so their sums are not negative
    rest = {Monomial(frozenset(), root, kept): factor / below[ONE]}
    return _product(rest, above)


def _short(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MOST_BITS:
        raise ArithmeticError("to have fewer digits")
    return value


def as_fraction(value: Quotient) -> Fraction | None:
    """Return the rational number if the numerator is a multiple of the denominator, else None."""
    above, below = value
    if not below:
        raise ZeroDivisionError
    key = next(iter(below))
    ratio = above.get(key, Fraction(0)) / below[key]
    same = above == (_scaled(below, ratio) if ratio else {})
    return ratio if same else None


def as_square(value: Quotient) -> Fraction | None:
    """Return the square of an irrational number if it is found to be rational, else None."""
    parts = [*value[0], *value[1]]
    if len(parts) > _FEW_TERMS or any(part.exponent or part.factors for part in parts):
        return None
    return as_fraction(times(value, value))


def _binary_size(ball: arb) -> int:
    mantissa, exponent = ball.mid().man_exp()
    return int(mantissa).bit_length() + int(exponent)


def sum_ball(terms: Iterable[tuple[Monomial, Fraction]] | Sum) -> arb:
    """Return a ball that contains the sum, at flint's current precision."""
    found = arb(0)
    for monomial, c in dict(terms).items():
        value = _rational(c)
        if monomial.root != 1:
            value *= arb(monomial.root).sqrt()
        if monomial.exponent:
            value *= sum_ball(monomial.exponent).exp()
        for atom, n in monomial.factors:
            value *= _factor_ball(atom) ** n
        found += value
    return found


def _factor_ball(atom: Factor) -> arb:
    if isinstance(atom, tuple):
        return sum_ball(atom[0]) / sum_ball(atom[1]) if atom else arb.pi()
    if isinstance(atom, frozenset):
        return sum_ball(atom).log()
    return (arb(atom) if isinstance(atom, int) else arb.pi()).log()


def _rational(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def text_of(value: Quotient) -> str:
    """Write a number as text that reads back as the same number."""
    above, below = value
    if list(below) == [ONE]:
        return _sum_text(_scaled(above, 1 / below[ONE]))
    return f"({_sum_text(above)})/({_sum_text(below)})"


def _sum_text(terms: Sum) -> str:
    listed = sorted(terms.items(), key=lambda term: _term_text(term[0], Fraction(1)))
    written = " + ".join(_term_text(monomial, c) for monomial, c in listed)
    return written.replace("+ -", "- ") or "0"


def _term_text(monomial: Monomial, c: Fraction) -> str:
    parts = [f"sqrt({monomial.root})"] if monomial.root != 1 else []
    if monomial.exponent:
        parts.append(f"exp({_sum_text(dict(monomial.exponent))})")
    parts += sorted(_factor_text(factor) + f"**{n}" * (n > 1) for factor, n in monomial.factors)
    sign = "-" * (c < 0)
    number, below = str(fmpz(abs(c.numerator))), str(fmpz(c.denominator))
    if number != "1" or not parts:
        parts.insert(0, number)
    return f"{sign}{'*'.join(parts)}" + f"/{below}" * (below != "1")


def _factor_text(factor: Factor) -> str:
    if isinstance(factor, tuple):
        return f"({'/'.join(f'({_sum_text(dict(each))})' for each in factor)})" if factor else "pi"
    if isinstance(factor, frozenset):
        return f"log({_sum_text(dict(factor))})"
    return f"log({fmpz(factor) if isinstance(factor, int) else factor})"
