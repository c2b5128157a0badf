"""Products of one pair of any kind with finitely many values of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from flint import arb

from accountant.composition.argument import exact_sum, hockey_stick_at, tails_at
from accountant.composition.convolution import ConvolvedPair, Value
from accountant.composition.joint import Factor, JointPair
from accountant.errors import NotApplicableError
from accountant.number import ExactReal
from accountant.pair import Pair, Tails

if TYPE_CHECKING:
    from accountant.reference import Reference

MAX_VALUES = 1 << 12
"""Most values of the finite loss: the other pair is asked once for each."""


@final
@dataclass(frozen=True)
class MixedPair(JointPair):
    """P = P₁ ⊗ P₂, Q = Q₁ ⊗ Q₂, where the loss of the second pair has finitely many values.

    Conditionally on the value l_j of the second loss, of masses p_j and q_j = p_j e^{−l_j},

        H(ε) = P₂(L₂ = ∞) + Σ_j p_j H₁(ε − l_j),

    and every tail is a sum over the values in the same way.
    """

    first: Pair
    second: ConvolvedPair

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The first pair, and those of the second."""
        return (self.first, 1), *self.second.factors

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return the sum over the values of the second loss."""
        total = self.second.infinity_mass()
        for value in self._values():
            rest = _difference(epsilon, value)
            inner = (
                self.first.hockey_stick(rest)
                if isinstance(rest, ExactReal)
                else hockey_stick_at(self.first, rest)
            )
            total += value.p * inner
        return total

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
