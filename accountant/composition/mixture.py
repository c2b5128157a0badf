"""Products of one pair of any kind with finitely many values of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from flint import arb

from accountant.composition.apart import apart
from accountant.composition.argument import ends, exact_sum, hockey_stick_at, tails_at
from accountant.composition.contour import ContourPair
from accountant.composition.convolution import ConvolvedPair, Value
from accountant.composition.joint import Factor, JointPair
from accountant.composition.line import guess_epsilon
from accountant.composition.rough import rough_root
from accountant.errors import NotApplicableError, UndecidedError
from accountant.interval import asked_width, ball, narrowed
from accountant.number import ExactReal
from accountant.pair import Pair, Tails

if TYPE_CHECKING:
    from accountant.reference import Reference

MAX_VALUES = 1 << 12
"""Most values of the finite loss: the other pair is asked once for each."""
_ENOUGH = 2
_ROUGH_WIDTH = Fraction(1, 10**7)
_CLOSE = 1e-4
_NEAR_ONE = -0.5


@final
@dataclass(frozen=True)
class MixedPair(JointPair):
    """P = P₁ ⊗ P₂, Q = Q₁ ⊗ Q₂, where the loss of the second pair has finitely many values.

    Conditionally on the value l_j of the second loss, of masses p_j and q_j = p_j e^{−l_j},

        H(ε) = P₂(L₂ = ∞) + Σ_j p_j H₁(ε − l_j),

    and every tail is a sum over the values in the same way. Where H₁ is a contour integral, and a
    width is asked for, terms that are small beside the sum so far are asked for less, or bounded.
    """

    first: Pair
    second: ConvolvedPair

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The first pair, and those of the second."""
        return (self.first, 1), *self.second.factors

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return the sum over the values of the second loss."""
        asked = asked_width.get()
        if asked is not None and isinstance(self.first, ContourPair):
            return self._sparingly(epsilon, asked)
        total = self.second.infinity_mass()
        for value in self._values():
            total += value.p * self._at(_difference(epsilon, value))
        return total

    def _at(self, rest: ExactReal | arb) -> arb:
        if isinstance(rest, ExactReal):
            return self.first.hockey_stick(rest)
        return hockey_stick_at(self.first, rest)

    def _sparingly(self, epsilon: ExactReal, asked: Fraction) -> arb:
        """Return the sum, the terms with the largest bounds first.

        Of n terms, one below a share x of the sum so far gets the relative width `asked`/(nx).
        """
        terms = []
        for value in self._values():
            rest = _difference(epsilon, value)
            most = value.p * self._bound_at(rest)
            terms.append((most.upper(), value.p, rest))
        total, number = self.second.infinity_mass(), len(terms)
        for most, p, rest in sorted(terms, key=lambda term: -float(term[0])):
            room = total.lower() * ball(asked) / number
            if most.is_zero() or most <= room / _ENOUGH:
                total += arb(0).union(most)
                continue
            width = max(asked, Fraction(float((room / most).mid())))
            with narrowed(width):
                total += p * self._at(rest)
        return total

    def _bound_at(self, rest: ExactReal | arb) -> arb:
        return self.first.bound(ends(rest)[0] if isinstance(rest, arb) else rest).min(arb(1))

    def bound(self, epsilon: ExactReal) -> arb:
        """Return the sum of bounds of the first pair; 1 where it knows none."""
        total = self.second.infinity_mass()
        for value in self._values():
            total += value.p * self._bound_at(_difference(epsilon, value))
        return total.upper().min(arb(1))

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return ε with ln H(ε) = log_delta by Newton's method on rough enclosures.

        Only where H₁ is a contour integral; else values are found faster.
        """
        if not isinstance(self.first, ContourPair) or log_delta >= _NEAR_ONE:
            return None
        try:
            start = guess_epsilon(apart(self.factors), log_delta)
            return rough_root(self.hockey_stick, log_delta, start, _ROUGH_WIDTH, _CLOSE)
        except (UndecidedError, ArithmeticError):
            return None

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the sums over the values of the second loss, each on its own."""
        p_above, p_below = self.second.infinity_mass(), arb(0)
        q_above, q_below = arb(0), self.second.reverse().infinity_mass()
        for value in self._values():
            rest = _difference(epsilon, value)
            inner = (
                self.first.tails(rest)
                if isinstance(rest, ExactReal)
                else tails_at(self.first, rest)
            )
            p_above += value.p * inner.p_above
            p_below += value.p * inner.p_below
            q_above += value.q * inner.q_above
            q_below += value.q * inner.q_below
        return Tails(p_above, p_below, q_above, q_below)

    def _values(self) -> list[Value]:
        """Return the values of the second loss; raise NotApplicableError if they are many."""
        values = self.second.values()
        if len(values) > MAX_VALUES:
            raise NotApplicableError(
                f"The finite losses of this composition have {len(values)} values, more than the "
                f"{MAX_VALUES} that can be combined with another loss. Compose fewer releases of "
                "finite laws."
            )
        return values

    def reverse(self) -> MixedPair:
        """Return the product of the reversed pairs."""
        return MixedPair(self.first.reverse(), self.second.reverse())

    def reference(self) -> Reference:
        """Return the sum over the multisets of outcomes of the second pair, in mpmath."""
        from accountant.composition.reference import Mixed

        return Mixed(self.first.reference(), self.second.reference())


def _difference(epsilon: ExactReal, value: Value) -> ExactReal | arb:
    """Return ε − l, exactly where l is exact and the difference is the root of a rational."""
    if value.exact is not None:
        difference = exact_sum([epsilon, -value.exact])
        if difference is not None:
            return difference
    return epsilon.ball() - value.loss
