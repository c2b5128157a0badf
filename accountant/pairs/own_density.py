"""The dominating pair of additive noise with a unimodal density, for two answers at distance t.

The set {L > ε} is a finite union of intervals whose ends are enclosed
(`dpassay.accountant.density.loss`), and H(ε) = P(L > ε) − e^ε Q(L > ε) follows from their masses.
An interval I on which the sign of L − ε is not decided contributes between 0 and
P(I)·(1 − e^{ε − l})⁺, where l is the largest loss on I. Next to a crossing L = ε this is of second
order in the width of I.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.core.pair import Known, Pair, Tails
from dpassay.accountant.density.law import Law, law, negligible
from dpassay.accountant.density.loss import ABOVE, BELOW, OPEN, Stretch, losses
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx

_DOUBLINGS = (0, 2, 4, 6, 9, 12, 16, 20, 25, 30, 40, 50, 60, 80, 100, 130, 160, 200)
"""Numbers of doublings of the range of noise, tried in turn while a tail still matters."""
_ENOUGH_BITS = 20
"""Accuracy of the largest loss, in bits, above which the search stops as soon as a wider range adds
no accuracy."""
_WIDE_BITS = 60
"""Accuracy of the largest loss, in bits, at which the search stops; the usual width needs less."""


@final
@dataclass(frozen=True)
class OwnDensityPair(Pair):
    """P = law of X + t, Q = law of X, where X (or −X, if mirrored) has the density f and t > 0."""

    law_name = "own-density"

    density: str
    distance: Fraction
    mirrored: bool

    def _law(self) -> Law:
        found = law(self.density, "density")
        return found.mirrored if self.mirrored else found

    @property
    def known(self) -> Known:
        """Return the quantities with closed forms, and the usual width of answers."""
        return Known(
            refusal="Rényi divergences of a density that is a formula are not enclosed. Ask for "
            "delta, epsilon or beta.",
            # the integrals of the density get slow at finer widths
            width=lambda: Fraction(1, 10**12),
            max_loss=self._exact_max_loss,
            finite_loss=lambda: losses(self._law(), self.distance, _DOUBLINGS[-1] // 2).most(
                finite=True
            ),
        )

    def _exact_max_loss(self) -> ExactReal | None:
        """Return st if −(ln f)′ ≤ s everywhere and tends to s in the right tail, else None."""
        steepest = self._law().steepest
        return None if steepest is None else ExactReal.of_rational(steepest * self.distance)

    def reverse(self) -> OwnDensityPair:
        """Return (Q, P): up to a translation and a reflection, t − X against −X."""
        return OwnDensityPair(self.density, self.distance, not self.mirrored)

    def _masses(self, parts: Sequence[Stretch]) -> tuple[arb, arb]:
        """Return the total masses of some intervals under P and under Q."""
        found = self._law()
        whole = found.total()
        p, q = arb(0), arb(0)
        for part in parts:
            p += found.mass(_moved(part.low, self.distance), _moved(part.high, self.distance))
            q += found.mass(part.low, part.high)
        return p / whole, q / whole

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return ∫ (p − e^ε q)⁺."""
        e = epsilon.ball()
        known = self.known.max_loss()
        if known is not None and epsilon >= known:
            return arb(0)
        for doublings in _DOUBLINGS:
            parts = losses(self._law(), self.distance, doublings).against(e, epsilon.sign)
            if all(part.side == ABOVE for part in parts):
                return -e.expm1()
            if all(part.side == BELOW for part in parts):
                return arb(0)
            p, q = self._masses(joined(parts, ABOVE))
            value = p - e.exp() * q
            near, far = arb(0), arb(0)
            for part in parts:
                if part.side == OPEN and (most := self._most(part, e)) > 0:
                    inside = part.low is not None and part.high is not None
                    near, far = (near + most, far) if inside else (near, far + most)
            least = (value.lower() + near).max(negligible() ** 4)
            if far <= least * negligible():
                break
        return (value + arb(0).union(near + far)).max(arb(0))

    def _most(self, part: Stretch, epsilon: arb) -> arb:
        """Return an upper bound of ∫ (p − e^ε q)⁺ over an undecided interval."""
        share = arb(1) if part.most is None else -(epsilon - part.most).expm1()
        if not share > 0 and share.upper() <= 0:
            return arb(0)
        return self._at_most(part, self.distance) * share.upper().min(arb(1))

    def _at_most(self, part: Stretch, shift: Fraction) -> arb:
        """Return an upper bound of the mass of an interval under the noise moved by `shift`."""
        found = self._law()
        return found.at_most(_moved(part.low, shift), _moved(part.high, shift)) / found.total()

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the masses of {L > ε} and {L ≤ ε}, each summed over its intervals."""
        known, other = self.known.max_loss(), self.reverse().known.max_loss()
        if known is not None and epsilon >= known:
            return Tails(arb(0), arb(1), arb(0), arb(1))
        if other is not None and epsilon < -other:
            return Tails(arb(1), arb(0), arb(1), arb(0))
        for doublings in _DOUBLINGS:
            found = losses(self._law(), self.distance, doublings)
            parts = found.against(epsilon.ball(), epsilon.sign)
            p_open, q_open = (
                sum((self._at_most(part, shift) for part in joined(parts, OPEN)), start=arb(0))
                for shift in (self.distance, Fraction(0))
            )
            (p_above, q_above), (p_below, q_below) = (
                self._masses(joined(parts, side)) for side in (ABOVE, BELOW)
            )
            if not any(part.side == OPEN and None in (part.low, part.high) for part in parts):
                break
            least = [side.lower().max(negligible() ** 4) for side in (p_above, q_below)]
            if p_open <= least[0] * negligible() and q_open <= least[1] * negligible():
                break
        p, q = (arb(0).union(each.upper()) for each in (p_open, q_open))
        sides = {part.side for part in parts}
        if len(sides) == 1 and OPEN not in sides:
            one, none = (arb(1), arb(0)) if ABOVE in sides else (arb(0), arb(1))
            return Tails(one, none, one, none)
        return Tails(p_above + p, p_below + p, q_above + q, q_below + q)

    def max_loss(self) -> arb:
        """Return the supremum of L; +∞ if the slope of ln f is unbounded in the right tail."""
        known = self.known.max_loss()
        if known is not None:
            return known.ball()
        value, bits = arb(0).union(arb.pos_inf()), 0
        for doublings in _DOUBLINGS:
            found = losses(self._law(), self.distance, doublings).most()
            if not found.is_finite():
                return value if found.is_nan() else found
            # Every `found` contains the supremum. A wider range may give a wider ball, since far
            # out L is a difference of large logarithms; hence the intersection.
            value = value.intersection(found) if value.is_finite() else found
            last, bits = bits, found.rel_accuracy_bits()
            if bits > min(_WIDE_BITS, ctx.prec // 2) or (_ENOUGH_BITS < bits <= last + 1):
                break
        return value

    def infinity_mass(self) -> arb:
        """Return the P-mass of the set where the density of Q is 0."""
        found = losses(self._law(), self.distance, 0)
        return self._masses(joined(found.missed(), ABOVE))[0]

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe {L > ε} as a union of intervals, with ends to six digits."""
        found = losses(self._law(), self.distance, 2).against(epsilon.ball(), epsilon.sign)
        shown = ", ".join(
            f"({_shown(part.low, '-∞')}, {_shown(part.high, '∞')})" for part in joined(found, ABOVE)
        )
        side = "lower" if self.mirrored else "higher"
        return (
            f"noise in {shown or 'no interval'} of the true answer under Q, in units of the "
            f"density{', mirrored' if self.mirrored else ''}; the answer under P is "
            f"{ExactReal.of_rational(self.distance)} {side}"
        )


def joined(parts: Sequence[Stretch], side: int) -> list[Stretch]:
    """Return the intervals on one side of ε, with adjacent ones merged."""
    found: list[Stretch] = []
    for part in parts:
        if part.side != side:
            continue
        if found and found[-1].high is not None and found[-1].high == part.low:
            found[-1] = Stretch(found[-1].low, part.high, side)
        else:
            found.append(part)
    return found


def _moved(end: Fraction | None, shift: Fraction) -> Fraction | None:
    return None if end is None else end - shift


def _shown(end: Fraction | None, infinite: str) -> str:
    return infinite if end is None else f"{float(end):.6g}"
