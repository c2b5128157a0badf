"""Exact arithmetic with numbers a + b√r: the axes of ellipses."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Final, TypeAlias, final

from flint import arb, fmpq

from dpassay.accountant.errors import InvalidInputError

Rational: TypeAlias = fmpq | int

_ZERO: Final = fmpq(0)


@final
@dataclass(frozen=True, slots=True)
class Surd:
    """The real number rational + coefficient·√radicand, exactly.

    Build with `Surd.of`, which keeps coefficient = radicand = 0 for a rational number, so that
    an irrational one has a radicand that is no square. Sums are formed within one field Q(√r).
    """

    rational: fmpq
    coefficient: fmpq
    radicand: fmpq

    @staticmethod
    def of(rational: Rational, coefficient: Rational = 0, radicand: Rational = 0) -> Surd:
        """Return rational + coefficient·√radicand.

        Raises
        ------
        InvalidInputError
            If the radicand is negative.
        """
        rational, coefficient, radicand = fmpq(rational), fmpq(coefficient), fmpq(radicand)
        if radicand < 0:
            raise InvalidInputError(f"Expected radicand={radicand} ≥ 0.")
        if coefficient == 0 or radicand == 0:
            return Surd(rational, _ZERO, _ZERO)
        root = _rational_root(radicand)
        if root is not None:
            return Surd(rational + coefficient * root, _ZERO, _ZERO)
        return Surd(rational, coefficient, radicand)

    def __add__(self, other: Surd) -> Surd:
        return Surd.of(
            self.rational + other.rational,
            self.coefficient + other.coefficient,
            self._common_radicand(other),
        )

    def __sub__(self, other: Surd) -> Surd:
        return self + other.times(-1)

    def times(self, factor: Rational) -> Surd:
        """Return the product with a rational number."""
        factor = fmpq(factor)
        return Surd.of(self.rational * factor, self.coefficient * factor, self.radicand)

    def reciprocal(self) -> Surd:
        """Return 1/self. Raises ZeroDivisionError at 0."""
        norm = self.rational * self.rational - self.coefficient**2 * self.radicand
        if norm == 0:  # only for 0: the norm of an irrational number is not zero
            raise ZeroDivisionError("Expected a number other than 0.")
        return Surd.of(self.rational / norm, -self.coefficient / norm, self.radicand)

    def sign(self) -> int:
        """Return −1, 0 or 1, decided in rational arithmetic."""
        first, second = _sign(self.rational), _sign(self.coefficient)
        if second in (first, 0):
            return first
        if first == 0:
            return second
        return first * _sign(self.rational**2 - self.coefficient**2 * self.radicand)

    def equals(self, other: Surd) -> bool:
        """Decide equality, whatever the radicands."""
        return (
            self.rational == other.rational
            and _sign(self.coefficient) == _sign(other.coefficient)
            and self.coefficient**2 * self.radicand == other.coefficient**2 * other.radicand
        )

    def ball(self) -> arb:
        """Return a ball that contains the number, at flint's current precision."""
        return arb(self.rational) + arb(self.coefficient) * arb(self.radicand).sqrt()

    def __str__(self) -> str:
        """Print as a + b·sqrt(r)."""
        if self.coefficient == 0:
            return str(self.rational)
        return f"{self.rational} + {self.coefficient}*sqrt({self.radicand})"

    def _common_radicand(self, other: Surd) -> fmpq:
        if self.coefficient == 0:
            return other.radicand
        if other.coefficient == 0 or self.radicand == other.radicand:
            return self.radicand
        raise InvalidInputError(
            f"Expected one radicand, not {self.radicand} and {other.radicand}: the sum lies in no "
            "quadratic field. Add balls instead."
        )


def to_fmpq(value: Fraction) -> fmpq:
    """Return the same rational number as flint holds it."""
    return fmpq(value.numerator, value.denominator)


def _sign(value: fmpq) -> int:
    return int(value > 0) - int(value < 0)


def _rational_root(value: fmpq) -> fmpq | None:
    """Return the square root of value ≥ 0 if it is rational (value is in lowest terms)."""
    root = fmpq(isqrt(int(value.p)), isqrt(int(value.q)))
    return root if root * root == value else None
