"""The tilted law of a sum of losses on a grid, as the coefficients of a polynomial in balls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb, arb_poly

from accountant.chernoff import log_peak
from accountant.interval import ball
from accountant.number import ExactReal


@final
@dataclass(frozen=True)
class TiltedSum:
    """The tilted law of the sum of the losses."""

    tilt: arb
    log_moment: arb
    """ln M(s), of the finite losses."""
    step: Fraction
    origin: Fraction
    """The loss of the first mass, without the shift."""
    shift: arb
    masses: tuple[arb, ...]
    dropped: arb
    """What the tilted masses lack of 1."""
    infinity: arb

    def hockey_stick(self, epsilon: ExactReal, *, dropped: bool = True) -> arb:
        """Return P(L = ∞) + E[(1 − e^{ε−L})⁺], with what was cut off at its largest or least."""
        s, eps = self.tilt, epsilon.ball()
        start = ball(self.origin) + self.shift - eps
        index = max(0, int(float((-start / ball(self.step)).floor())))
        while index > 0 and start + index * ball(self.step) > 0:
            index -= 1
        while index < len(self.masses) and start + index * ball(self.step) < 0:
            index += 1  # a loss that is not told from ε stays: its ball holds 0
        value = arb(0)
        if index < len(self.masses):
            rest = arb_poly(list(self.masses[index:]))
            nearest = start + index * ball(self.step)  # the loss minus ε
            h = ball(self.step)
            first = (-s * nearest).exp() * rest((-s * h).exp())
            second = (-(s + 1) * nearest).exp() * rest((-(s + 1) * h).exp())
            value = (first - second) * (self.log_moment - s * eps).exp()
        if dropped:
            value += self.dropped * (self.log_moment - s * eps + log_peak(s)).exp()
        return self.infinity + value


@final
@dataclass(frozen=True)
class Piece:
    """The tilted masses of a partial sum; coefficient i stands for the index first + i."""

    first: int
    polynomial: arb_poly

    def times(self, other: Piece) -> Piece:
        """Return the piece of the sum of both."""
        return Piece(self.first + other.first, self.polynomial * other.polynomial)

    def cut(self, low: float, high: float) -> Piece:
        """Keep the indices from low to high."""
        left = max(0, math.floor(low) - self.first)
        right = min(self.polynomial.degree(), math.ceil(high) - self.first)
        if left == 0 and right == self.polynomial.degree():
            return self
        return Piece(self.first + left, arb_poly(self.polynomial.coeffs()[left : right + 1]))
