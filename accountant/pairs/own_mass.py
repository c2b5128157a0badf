"""Noise on the integers, of masses that are written as a formula, at a shift k.

Finitely many masses are a table (`FinitePair`). Else the masses up to where the formula falls
smoothly are listed, and of both tails the sums are enclosed; on a tail the loss is the integral of
−(ln f)′ over a stretch of length k, which `Decay` bounds. Where that leaves open whether the loss
exceeds ε, the tail adds between 0 and its mass times (1 − e^{ε − l})⁺, l the largest loss.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from flint import arb

from dpassay.accountant.core.pair import ProfileOnly, Tails
from dpassay.accountant.density.integers import IntegerLaw, integer_law
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, Fractions


@final
@dataclass(frozen=True)
class MassTable(FiniteLaws):
    """The pairs of finitely many masses: Z + index against Z."""

    mass: str

    def _law(self) -> IntegerLaw:
        return integer_law(self.mass)

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the released values for true answers 0 and `index`."""
        found = self._law()
        return range(found.low, found.high + index + 1)

    def rational_masses(self, index: int) -> tuple[Fractions, Fractions] | None:
        """Return the laws of Z + index and of Z where all masses are rational."""
        found = self._law()
        listed = [found.rational(z) for z in range(found.low, found.high + 1)]
        known = [mass for mass in listed if mass is not None]
        if len(known) < len(listed):
            return None
        whole = sum(known, start=Fraction(0))
        masses, padding = [mass / whole for mass in known], [Fraction(0)] * index
        return padding + masses, masses + padding

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the same in balls."""
        found, zero = self._law(), arb(0)
        whole = found.total()
        listed = [
            zero if found.is_zero(z) else found.value(z) / whole
            for z in range(found.low, found.high + 1)
        ]
        return [zero] * index + listed, listed + [zero] * index


@final
@dataclass(frozen=True)
class OwnMassPair(ProfileOnly):
    """The laws of k + Z and Z (mirrored: of −Z), of infinitely many masses."""

    law_name = "own-mass"

    mass: str
    shift: int
    mirrored: bool

    usual_width: ClassVar = Fraction(1, 10**12)
    """1e-12: sums of tails take longer for more."""

    def rows(self) -> list[tuple[arb, arb]]:
        """Return the masses of P and Q at the integers that are listed."""
        found, way = integer_law(self.mass), -1 if self.mirrored else 1
        low, high = self._ends()
        whole = found.total()
        q = [found.value(way * z) / whole for z in range(low - self.shift, high + self.shift + 1)]
        return [(p, q) for p, q in zip(q, q[self.shift :], strict=False)]

    def _ends(self) -> tuple[int, int]:
        found = integer_law(self.mass)
        return (-found.high, -found.low) if self.mirrored else (found.low, found.high)

    def tails_beyond(self) -> list[tuple[arb, arb, arb, arb]]:
        """Return P, Q, and bounds of the loss of what lies below and above the listed integers."""
        found, way = integer_law(self.mass), -1 if self.mirrored else 1
        (low, high), k, whole = self._ends(), self.shift, found.total()
        law = found.law.mirrored if self.mirrored else found.law
        left, right = law.mirrored.decay_from(Fraction(-low)), law.decay_from(Fraction(high))
        below = found.above(-low + k, -way) / whole, found.above(-low, -way) / whole
        above = found.above(high, way) / whole, found.above(high + k, way) / whole
        zero = arb(0)
        first = (zero, zero) if left is None else left.drift(arb(-low), arb(k))
        last = (zero, zero) if right is None else right.drift(arb(high), arb(k))
        return [(*below, -first[1], -first[0]), (*above, *last)]

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return Σ (p − e^ε q)⁺."""
        known = self.exact_max_loss()
        if known is not None and epsilon >= known:
            return arb(0)
        e = epsilon.ball()
        c = e.exp()
        value = arb(0)
        for p, q in self.rows():
            value += (p - c * q).max(arb(0))
        for p, q, least, most in self.tails_beyond():
            if least > e:
                value += p - c * q
            elif not most <= e:
                share = -(e - most).expm1() if most.is_finite() else arb(1)
                value += arb(0).union(p * share.max(arb(0)).upper())
        return value

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the masses above and below ε."""
        e = epsilon.ball()
        sums = [[arb(0), arb(0)], [arb(0), arb(0)]]
        known = [(p, q, *[_loss(p, q)] * 2) for p, q in self.rows()]
        for p, q, least, most in [*known, *self.tails_beyond()]:
            for side, here in enumerate((least > e, most <= e)):
                other = most <= e if side == 0 else least > e
                for i, mass in enumerate((p, q)):
                    sums[side][i] += mass if here else arb(0) if other else arb(0).union(mass)
        return Tails(sums[0][0], sums[1][0], sums[0][1], sums[1][1])

    refusal = (
        "Rényi divergences of infinitely many masses that are a formula are not known. Cut them "
        "off, as in 'exp(-abs(x)) if abs(x) < 50 else 0'."
    )

    def exact_max_loss(self) -> ExactReal | None:
        """Return sk where −(ln f)′ is at most s, and tends to it on the right; else None."""
        found = integer_law(self.mass).law
        steepest = (found.mirrored if self.mirrored else found).steepest
        return None if steepest is None else ExactReal.of_rational(steepest * self.shift)

    def max_loss(self) -> arb:
        """Return the supremum of the loss."""
        known = self.exact_max_loss()
        if known is not None:
            return known.ball()
        if self.infinity_mass() > 0:
            return arb.pos_inf()
        losses = [(p / q).log() for p, q in self.rows() if p > 0]
        most = functools.reduce(lambda a, b: a.max(b), losses)
        for _, _, _, last in self.tails_beyond():
            if not last.is_finite():
                return arb.pos_inf()
            if not last <= most:
                most = most.union(last)
        return most

    def infinity_mass(self) -> arb:
        """Return the mass of P where Q has none."""
        return sum((p for p, q in self.rows() if q.is_zero()), start=arb(0))

    def reverse(self) -> OwnMassPair:
        """Return Z against k + Z: up to a shift, −Z moved by k against −Z."""
        return OwnMassPair(self.mass, self.shift, not self.mirrored)


def _loss(p: arb, q: arb) -> arb:
    """Return ln(p/q) of two masses; what neither has does not count."""
    if q.is_zero() or p.is_zero():
        return arb.pos_inf() if q.is_zero() else arb.neg_inf()
    return (p / q).log()
