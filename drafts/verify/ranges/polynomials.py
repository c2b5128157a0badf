"""Rational functions over Q in numbered atoms, exact, with flint's multivariate polynomials."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias, final

from flint import Ordering, fmpq, fmpq_mpoly, fmpq_mpoly_ctx

from dpassay.verifier.ranges.expressions import ProofError

ATOMS: Final = 64
"""How many atoms, and slacks of domains, a proof may have at once."""
_MOST_TERMS: Final = 5_000
_MOST_PRODUCTS: Final = 1_000_000
_HIGHEST_DEGREE: Final = 200
_MOST_FACTORED: Final = 1_000
"""Terms of a polynomial that is split into factors; a larger one stays whole."""
_MOST_BITS: Final = 1_000_000
_CONTEXT: Final = fmpq_mpoly_ctx.get([f"a{i}" for i in range(ATOMS)], Ordering.degrevlex)
GENERATORS: Final = _CONTEXT.gens()
Polynomial: TypeAlias = fmpq_mpoly


def constant(value: Fraction | int) -> Polynomial:
    """Return a constant polynomial."""
    value = Fraction(value)
    return _CONTEXT.constant(fmpq(value.numerator, value.denominator))


def rational(value: fmpq) -> Fraction:
    """Return a coefficient as a fraction."""
    return Fraction(int(value.p), int(value.q))


def value_of(polynomial: Polynomial) -> Fraction:
    """Return the value of a constant polynomial."""
    return rational(polynomial.leading_coefficient()) if not polynomial.is_zero() else Fraction(0)


def bounded(polynomial: Polynomial) -> Polynomial:
    """Return the polynomial; raise ProofError where it is too large to go on with."""
    if len(polynomial) > _MOST_TERMS or polynomial.total_degree() > _HIGHEST_DEGREE:
        raise ProofError("a polynomial has too many terms, or too high a degree")
    return polynomial


def multiplied(left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the product; raise ProofError where it would take long."""
    if len(left) * len(right) > _MOST_PRODUCTS:
        raise ProofError("a product of polynomials has too many terms")
    return bounded(left * right)


def used(polynomial: Polynomial) -> list[int]:
    """Return the numbers of the atoms that occur."""
    return [i for i, degree in enumerate(polynomial.degrees()) if degree > 0]


def coefficients(polynomial: Polynomial, atom: int) -> list[Polynomial]:
    """Return the coefficients of the powers 0, 1, … of an atom."""
    degree = int(polynomial.degrees()[atom])
    parts: list[dict[tuple[int, ...], fmpq]] = [{} for _ in range(max(degree, 0) + 1)]
    for monomial, coefficient in polynomial.terms():
        rest = list(monomial)
        power, rest[atom] = int(rest[atom]), 0
        parts[power][tuple(rest)] = coefficient
    return [_CONTEXT.from_dict(part) for part in parts]


def factors(polynomial: Polynomial) -> tuple[Fraction, list[tuple[Polynomial, int]]]:
    """Return a constant and irreducible factors with their powers."""
    if len(polynomial) > _MOST_FACTORED:
        return Fraction(1), [(polynomial, 1)]
    unit, parts = polynomial.factor()
    return rational(fmpq(unit)), [(part, int(power)) for part, power in parts]


@final
@dataclass(frozen=True, slots=True)
class Ratio:
    """A quotient of polynomials without a common factor; the divisor has leading coefficient 1."""

    top: Polynomial
    bottom: Polynomial

    @staticmethod
    def of(top: Polynomial, bottom: Polynomial) -> Ratio:
        """Cancel what the two have in common."""
        if bottom.is_zero():
            raise ProofError("a division by 0")
        if bottom.is_constant():
            return Ratio(bounded(top) / bottom.leading_coefficient(), ONE)
        common = top.gcd(bottom)
        if not common.is_constant():
            top, bottom = top / common, bottom / common
        lead = bottom.leading_coefficient()
        return Ratio(bounded(top / lead), bounded(bottom / lead))

    @staticmethod
    def number(value: Fraction | int) -> Ratio:
        """Return a constant."""
        return Ratio(constant(value), ONE)

    @staticmethod
    def atom(index: int) -> Ratio:
        """Return an atom."""
        return Ratio(GENERATORS[index], ONE)

    def value(self) -> Fraction | None:
        """Return the number that this is, if it is one."""
        if self.top.is_constant() and self.bottom.is_constant():
            return value_of(self.top)
        return None

    def is_zero(self) -> bool:
        """Whether this is 0 as a rational function."""
        return bool(self.top.is_zero())

    def __add__(self, other: Ratio | Fraction | int) -> Ratio:
        """Return the sum."""
        other = _ratio(other)
        if self.bottom == other.bottom:
            return Ratio.of(self.top + other.top, self.bottom)
        top = multiplied(self.top, other.bottom) + multiplied(other.top, self.bottom)
        return Ratio.of(top, multiplied(self.bottom, other.bottom))

    def __neg__(self) -> Ratio:
        """Return the negative."""
        return Ratio(-self.top, self.bottom)

    def __sub__(self, other: Ratio | Fraction | int) -> Ratio:
        """Return the difference."""
        return self + -_ratio(other)

    def __mul__(self, other: Ratio | Fraction | int) -> Ratio:
        """Return the product."""
        other = _ratio(other)
        return Ratio.of(multiplied(self.top, other.top), multiplied(self.bottom, other.bottom))

    def __truediv__(self, other: Ratio | Fraction | int) -> Ratio:
        """Return the quotient."""
        other = _ratio(other)
        return Ratio.of(multiplied(self.top, other.bottom), multiplied(self.bottom, other.top))

    def __pow__(self, exponent: int) -> Ratio:
        """Return an integer power."""
        if exponent < 0:
            return (Ratio.number(1) / self) ** -exponent
        known = self.value()
        if known is not None:
            bits = max(known.numerator.bit_length(), known.denominator.bit_length())
            if bits * exponent > _MOST_BITS:
                raise ProofError("a power is too large")
            return Ratio.number(known**exponent)
        size = max(self.top.total_degree(), self.bottom.total_degree()) * exponent
        terms = max(len(self.top), len(self.bottom))
        if size > _HIGHEST_DEGREE or terms ** min(exponent, 20) > _MOST_TERMS**3:
            raise ProofError("a power has too high a degree")
        return Ratio(bounded(self.top**exponent), bounded(self.bottom**exponent))

    def atoms(self) -> set[int]:
        """Return the numbers of the atoms that occur."""
        return {*used(self.top), *used(self.bottom)}


def _ratio(value: Ratio | Fraction | int) -> Ratio:
    return value if isinstance(value, Ratio) else Ratio.number(value)


ONE: Final = constant(1)


def homogeneous(parts: list[Polynomial], top: Polynomial, bottom: Polynomial) -> Polynomial:
    """Return Σ c_k t^k b^(n−k), by Horner's rule."""
    result, scale = constant(0), ONE
    for part in reversed(parts):
        result = multiplied(result, top) + multiplied(part, scale)
        scale = multiplied(scale, bottom)
    return result


def evaluated(polynomial: Polynomial, atom: int, value: Ratio) -> Ratio:
    """Return the polynomial with a ratio in the place of an atom."""
    parts = coefficients(polynomial, atom)
    top = homogeneous(parts, value.top, value.bottom)
    return Ratio.of(top, value.bottom ** (len(parts) - 1))


def replaced(ratio: Ratio, atom: int, value: Ratio) -> Ratio:
    """Return a ratio with another one in the place of an atom."""
    return evaluated(ratio.top, atom, value) / evaluated(ratio.bottom, atom, value)
