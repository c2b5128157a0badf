"""Numbers a + b√r with rational a, b and an integer r ≥ 0: sums, quotients and signs are exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from verify.checker.reals import sqrt

Rational = Fraction | int


@final
@dataclass(frozen=True)
class Surd:
    """a + b√r; where r is a square, b is 0."""

    a: Fraction
    b: Fraction
    r: int

    @staticmethod
    def of(a: Rational, b: Rational = 0, r: int = 0) -> Surd:
        """Return the number, in the form with b = 0 where it is rational."""
        whole = math.isqrt(r)
        if whole * whole == r:
            return Surd(Fraction(a) + b * whole, Fraction(0), r)
        return Surd(Fraction(a), Fraction(b), r)

    def value(self) -> Any:
        """Return the number: a Fraction where it is rational."""
        return self.a + self.b * sqrt(Fraction(self.r)) if self.b else self.a

    def sign(self) -> int:
        """Return −1, 0 or 1: a and b√r of different signs are compared by their squares."""
        if self.a * self.b >= 0:
            total = self.a + self.b
            return (total > 0) - (total < 0)
        excess = self.a**2 - self.b**2 * self.r
        return ((excess > 0) - (excess < 0)) * (1 if self.a > 0 else -1)

    def __add__(self, other: Surd | Rational) -> Surd:
        other, r = self._with(other)
        return Surd.of(self.a + other.a, self.b + other.b, r)

    def __sub__(self, other: Surd | Rational) -> Surd:
        other, _ = self._with(other)
        return self + other * -1

    def __mul__(self, other: Surd | Rational) -> Surd:
        other, r = self._with(other)
        cross = self.a * other.b + self.b * other.a
        return Surd.of(self.a * other.a + self.b * other.b * r, cross, r)

    def __truediv__(self, other: Surd | Rational) -> Surd:
        other, r = self._with(other)
        norm = other.a**2 - other.b**2 * r
        return self * Surd(other.a / norm, -other.b / norm, r)

    def __lt__(self, other: Surd | Rational) -> bool:
        return (self - other).sign() < 0

    def _with(self, other: Surd | Rational) -> tuple[Surd, int]:
        """Return the other number as a Surd, and the common r."""
        if not isinstance(other, Surd):
            return Surd(Fraction(other), Fraction(0), self.r), self.r
        if self.b and other.b and self.r != other.r:
            raise ValueError("two different roots")
        return other, other.r if other.b else self.r
