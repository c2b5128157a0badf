"""Dominating pairs: the two laws that a privacy question is about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from flint import arb

from accountant.adjacency import Direction
from accountant.errors import NotApplicableError
from accountant.number import ExactReal

if TYPE_CHECKING:
    from accountant.interval import Interval
    from accountant.reference import Reference


@final
@dataclass(frozen=True, slots=True)
class Tails:
    """Both sides of a cut of the privacy loss L, under both laws, each computed on its own.

    No entry is one minus another one, so that each keeps its relative accuracy.
    """

    p_above: arb
    """P(L > ε)"""
    p_below: arb
    """P(L ≤ ε)"""
    q_above: arb
    """Q(L > ε)"""
    q_below: arb
    """Q(L ≤ ε)"""


class Pair(ABC):
    """An ordered pair of laws (P, Q) with privacy loss L = ln dP/dQ.

    Every method works at flint's current precision and returns a ball that contains the exact
    value; a wide ball is honest, a wrong one never. Where P gives mass to a set that Q does not
    charge, L = +∞ there, and −∞ the other way round.
    """

    @abstractmethod
    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε) = sup_S P(S) − e^ε Q(S) = E_P[(1 − e^{ε−L})⁺], for any real ε."""

    @abstractmethod
    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the probabilities of {L > ε} and {L ≤ ε} under P and Q."""

    @abstractmethod
    def renyi(self, order: arb) -> arb:
        """Return the Rényi divergence D_order(P‖Q) for a ball inside (1, ∞); may be +∞."""

    @abstractmethod
    def kullback_leibler(self) -> arb:
        """Return E_P[L], the Rényi divergence at order 1; may be +∞."""

    @abstractmethod
    def max_loss(self) -> arb:
        """Return the essential supremum of L under P, +∞ where there is none."""

    def exact_max_loss(self) -> ExactReal | None:
        """Return the essential supremum of L where it is known as an exact number, else None."""
        return None

    def infinity_mass(self) -> arb:
        """Return P(L = +∞), the mass that P gives to outcomes that Q cannot produce."""
        return arb(0)

    def exact_infinity_mass(self) -> ExactReal | None:
        """Return P(L = +∞) where it is known as an exact number, else None."""
        return ExactReal.of_rational(0) if self.infinity_mass().is_zero() else None

    def max_finite_loss(self) -> arb:
        """Return the essential supremum of L under P where L is finite.

        Raises NotApplicableError where a pair with infinity mass does not know it.
        """
        if not self.infinity_mass().is_zero():
            raise NotApplicableError(
                f"{type(self).__name__} does not know its largest finite loss."
            )
        return self.max_loss()

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval | None:
        """Enclose the ε with H(ε) = δ, or return None: it is then searched by values of H.

        For pairs that know H in a way that a search by signs would make poor use of; asked only
        where δ > 0 exceeds the mass at infinity.
        """
        return None

    def closed_rho(self) -> arb | None:
        """Return sup over a > 1 of D_a/a where it is known to be the limit at large orders.

        It may be +∞. None where it is searched, as of bounded losses.
        """
        return None

    def rho_bound(self) -> arb:
        """Return an upper bound of sup D_a/a that is known in closed form, +∞ where none is."""
        known = self.closed_rho()
        return arb.pos_inf() if known is None else known

    def estimate_log_delta(self, epsilon: float) -> float | None:
        """Return ln H(ε) in floats, without proof, where a fast way to it is known; else None."""
        return None

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return the ε with ln H(ε) = log_delta in floats, without proof; None where unknown."""
        return None

    def bound(self, epsilon: ExactReal) -> arb:
        """Return an upper bound of H(ε) that is found fast, with its proof; 1 where none is."""
        return arb(1)

    def attained(self, epsilon: ExactReal) -> Pair:
        """Return a pair of two datasets that shows H at ε, where this one only bounds them."""
        return self

    @abstractmethod
    def reverse(self) -> Pair:
        """Return the pair (Q, P)."""

    @abstractmethod
    def law(self) -> dict[str, object]:
        """Return the pair as plain data (strings, ints, lists): what a certificate names.

        The key "law" is the name under which the independent checker knows the pair.
        """

    @abstractmethod
    def reference(self) -> Reference:
        """Return the densities or masses for the independent mpmath route."""

    def describe_event(self, epsilon: ExactReal) -> str:
        """Say in words which outcomes make up the worst event {L > ε}."""
        return f"the outcomes with ln(dP/dQ) > {epsilon}"


@final
@dataclass(frozen=True, slots=True)
class WorstCase:
    """The pairs that no other neighbouring pair of a mechanism exceeds, by direction.

    The profile of the mechanism is, in each direction, the maximum over the pairs listed
    there: usually one; several where no single pair is worst at every ε.
    """

    remove: tuple[Pair, ...]
    add: tuple[Pair, ...]
    reason: str
    """Why these are worst."""
    enveloped: bool = False
    """Whether a pair of neighbours need not be dominated by any one of the pairs, but only by the
    largest of all their profiles, at each ε by another one.

    Then only the profile is the maximum over the pairs. A divergence or a trade-off function of the
    pairs is attained, and bounds that of the mechanism on one side.
    """

    @staticmethod
    def symmetric(pair: Pair, reason: str) -> WorstCase:
        """Both directions have the same law of the loss, so one pair serves for both."""
        return WorstCase((pair,), (pair,), reason)

    def pairs(self, direction: Direction | None) -> tuple[Pair, ...]:
        """Return the distinct pairs of one direction, or of both."""
        if direction is Direction.REMOVE:
            return self.remove
        if direction is Direction.ADD:
            return self.add
        return self.remove + tuple(pair for pair in self.add if pair not in self.remove)
