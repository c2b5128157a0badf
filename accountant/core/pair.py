"""Dominating pairs: two laws P and Q whose privacy loss bounds that of a mechanism."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar, Self, final

from flint import arb

from dpassay.accountant.core.adjacency import Direction
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import RELATIVE_WIDTH, Interval


@final
@dataclass(frozen=True, slots=True)
class Tails:
    """The probabilities of {L > ε} and {L ≤ ε} under both laws.

    Each is computed directly, never as one minus another, so that small probabilities keep their
    relative accuracy.
    """

    p_above: arb
    """P(L > ε)"""
    p_below: arb
    """P(L ≤ ε)"""
    q_above: arb
    """Q(L > ε)"""
    q_below: arb
    """Q(L ≤ ε)"""

    @property
    def reflected(self) -> Tails:
        """The tails at −ε of a pair that is its own reverse, provided that L ≠ −ε almost surely."""
        return Tails(self.q_below, self.q_above, self.p_below, self.p_above)


def _unknown(*_: object) -> None:
    return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Optional knowledge of a pair: functions, which return None if the value is not known.

    Without it questions are answered more slowly or less exactly. `log_delta` and `epsilon` are
    floats without proof; everything else is proved.
    """

    refusal: str = "Only delta, epsilon and beta of this mechanism are known. Ask for one of these."
    """If tails or divergences are not known: why, and which question to ask instead."""
    to_width: Callable[[Fraction | None], Pair] | None = None
    """Returns the same pair with H and tails to another relative width; None as the argument means
    flint's precision. The attribute is None for a pair that depends on flint's precision alone.
    Engines that refine a grid or lengthen a contour use the width to do no more than necessary."""
    asked: Fraction | None = None
    """The relative width requested by `to_width`."""
    width: Callable[[], Fraction] = lambda: RELATIVE_WIDTH
    """Default relative width of answers; closed forms have the smallest."""
    max_loss: Callable[[], ExactReal | None] = _unknown
    """The essential supremum of L under P, exactly."""
    finite_loss: Callable[[], arb] | None = None
    """The essential supremum of L under P where L is finite, for pairs with infinity mass."""
    infinity_mass: Callable[[], ExactReal | None] = _unknown
    """P(L = +∞), exactly."""
    exact: Callable[[ExactReal], ExactReal | None] = _unknown
    """An exact upper bound on H(ε); it decides a claim that is met with equality."""
    upper: Callable[[ExactReal], arb] | None = None
    """An upper bound on H(ε), if one is tighter than the upper end of the ball of H."""
    attained: Callable[[ExactReal], Pair] | None = None
    """If only bounds on H are known: a pair that attains the lower bound at ε.

    The `tails` of such a pair are the probabilities of a single event, that of this pair at ε; they
    are not those of a privacy loss.
    """
    bound: Callable[[ExactReal], arb] = lambda _: arb(1)
    """A quickly computed upper bound on H(ε)."""
    closed_bound: Callable[[ExactReal], arb] = lambda _: arb(1)
    """One in closed form, which is larger but takes hardly any time."""
    inverse: Callable[[ExactReal, Fraction], Interval | None] = _unknown
    """Encloses the ε with H(ε) = δ > P(L = +∞) to a relative width, faster than by bisection."""
    fallback: Callable[[ExactReal, Fraction], Interval | None] = _unknown
    """The same as `inverse`; it is used if H cannot be evaluated near that ε."""
    log_delta: Callable[[float], float | None] = _unknown
    """ln H(ε), approximately."""
    epsilon: Callable[[float], float | None] = _unknown
    """The ε with ln H(ε) = log_delta, approximately."""
    rho: Callable[[], arb | None] = _unknown
    """sup D_a/a over orders a > 1 if it is the limit at large orders; it may be +∞."""
    rho_bound: Callable[[], arb] | None = None
    """An upper bound on sup D_a/a over orders a > 1."""


class Pair(ABC):
    """An ordered pair of laws (P, Q) with privacy loss L = ln dP/dQ.

    Every method works at flint's current precision and returns a ball, perhaps a wide one, that
    contains the exact value. L = +∞ where P has mass and Q has none, and −∞ in the opposite case.
    """

    law_name: ClassVar[str]
    """The default of the name that `law` returns."""

    @abstractmethod
    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε) = sup_S P(S) − e^ε Q(S) = E_P[(1 − e^{ε−L})⁺], for any real ε."""

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the probabilities of {L > ε} and {L ≤ ε} under P and Q.

        Raises NotApplicableError if only the profile, or bounds on it, are known.
        """
        raise NotApplicableError(self.known.refusal)

    def renyi(self, order: arb) -> arb:
        """Return the Rényi divergence D_order(P‖Q), for order 1 or a ball in (1, ∞); may be +∞.

        Order 1 is the Kullback–Leibler divergence E_P[L]. Raises NotApplicableError if no formula
        is known.
        """
        raise NotApplicableError(self.known.refusal)

    @abstractmethod
    def max_loss(self) -> arb:
        """Return the essential supremum of L under P, perhaps +∞."""

    def infinity_mass(self) -> arb:
        """Return P(L = +∞), the mass of P on outcomes that are impossible under Q."""
        return arb(0)

    @property
    def known(self) -> Known:
        """Closed forms, bounds, and starting points of searches."""
        return Known()

    @abstractmethod
    def reverse(self) -> Pair:
        """Return the pair (Q, P)."""

    def law(self) -> dict[str, object]:
        """Return the pair as plain data (strings, ints, lists), for the witness of a finding.

        "law" is the name of the kind, by default `law_name`. The fields follow under their names,
        numbers as exact texts. "pair" is the pair of a single release, as a JSON text; "mixture"
        names the mixed law, "P" or "Q".
        """
        found: dict[str, object] = {"law": self.law_name}
        for field in fields(self):  # type: ignore[arg-type]  # those with a `law_name` are dataclasses
            if not field.compare:  # settings of the computation are not part of the law
                continue
            value = getattr(self, field.name)
            if isinstance(value, Pair):
                found["pair"] = json.dumps(value.law())
            elif field.name == "mixed_first":
                found["mixture"] = "P" if value else "Q"
            else:
                number = ExactReal.of_rational(value) if isinstance(value, Fraction) else value
                found[field.name] = number if isinstance(number, (str, int)) else str(number)
        return found

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the outcomes that make up the worst event {L > ε}."""
        return f"the outcomes with ln(dP/dQ) > {epsilon}"


class MirroredPair(Pair):
    """A pair that is its own reverse, defined by H at ε ≥ 0: H(ε) = 1 − e^ε + e^ε H(−ε).

    The identity holds since P(S) − e^ε Q(S) = 1 − e^ε + e^ε (Q(Sᶜ) − e^{−ε} P(Sᶜ)), and (Q, P) has
    the same H as (P, Q). The largest loss is known exactly, or is +∞. The docstring of a subclass
    names the map that exchanges P and Q.
    """

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε); it is 0 from the largest loss on."""
        if epsilon.sign < 0:
            e = epsilon.ball()
            return -e.expm1() + e.exp() * self.hockey_stick(-epsilon)
        known = self.known.max_loss()
        return arb(0) if known is not None and epsilon >= known else self.excess(epsilon)

    def excess(self, epsilon: ExactReal) -> arb:
        """Return H(ε) for ε ≥ 0 below the largest loss, by default from the tails."""
        tails = self.tails(epsilon)
        return tails.p_above - epsilon.ball().exp() * tails.q_above

    def max_loss(self) -> arb:
        """Return the largest loss, perhaps +∞."""
        known = self.known.max_loss()
        return arb.pos_inf() if known is None else known.ball()

    def reverse(self) -> Self:
        """Return the pair itself."""
        return self


@final
@dataclass(frozen=True, slots=True)
class WorstCase:
    """The dominating pairs of a mechanism, by direction.

    In each direction, the profile of the mechanism is the maximum over the pairs listed: usually
    one, or several if no single pair is worst at every ε.
    """

    remove: tuple[Pair, ...]
    add: tuple[Pair, ...]
    reason: str
    """Why these pairs are worst."""
    enveloped: bool = False
    """Whether only the maximum of the profiles of all pairs dominates the neighbours.

    The largest pair may then depend on ε. The profile is still the maximum over the pairs. A
    divergence or trade-off function of one pair is attained, but bounds the mechanism's on one side
    only.
    """

    @staticmethod
    def symmetric(pair: Pair, reason: str) -> WorstCase:
        """Use one pair for both directions, in which the loss has the same law."""
        return WorstCase((pair,), (pair,), reason)

    def pairs(self, direction: Direction | None) -> tuple[Pair, ...]:
        """Return the distinct pairs of one direction, or of both."""
        if direction is Direction.REMOVE:
            return self.remove
        if direction is Direction.ADD:
            return self.add
        return self.remove + tuple(pair for pair in self.add if pair not in self.remove)


def refined(pair: Pair, relative_width: Fraction | None) -> Pair:
    """Return the same pair with H and tails to a relative width (None: flint's precision)."""
    to_width = pair.known.to_width
    return pair if to_width is None else to_width(relative_width)


def asked_width(pair: Pair) -> Fraction | None:
    """Return the relative width requested of H, or None for flint's precision."""
    return pair.known.asked


def only_bounded(pair: Pair) -> bool:
    """Whether only bounds on H are known, not H itself."""
    return pair.known.attained is not None


def attained(pair: Pair, epsilon: ExactReal) -> Pair:
    """Return a pair of laws of two neighbours that attains the lower bound on H at ε.

    This is the pair itself, unless only bounds on its H are known.
    """
    return pair if (shown := pair.known.attained) is None else shown(epsilon)


def upper_bound(pair: Pair, epsilon: ExactReal) -> arb:
    """Return the tightest known upper bound on H(ε)."""
    bound = pair.known.upper
    return pair.hockey_stick(epsilon).upper() if bound is None else bound(epsilon)


def exact_infinity_mass(pair: Pair) -> ExactReal | None:
    """Return P(L = +∞) if it is known as an exact number, else None."""
    known = pair.known.infinity_mass()
    if known is not None:
        return known
    return ExactReal.of_rational(0) if pair.infinity_mass().is_zero() else None


def max_finite_loss(pair: Pair) -> arb:
    """Return the essential supremum of L under P where L is finite.

    Raises NotApplicableError if the pair has infinity mass and this supremum is not known.
    """
    if (finite := pair.known.finite_loss) is not None:
        return finite()
    if not pair.infinity_mass().is_zero():
        raise NotApplicableError(
            f"The largest finite loss of {type(pair).__name__} is not known. Ask for epsilon at a "
            "positive delta."
        )
    return pair.max_loss()


def rho_bound(pair: Pair) -> arb:
    """Return a closed-form upper bound on sup D_a/a over orders a > 1; +∞ for an unbounded loss.

    A loss in [−l, l] has D_a ≤ a l²/2 (Bun and Steinke 2016, Proposition 3.3).
    """
    if (bound := pair.known.rho_bound) is not None:
        return bound()
    known = pair.known.rho()
    if known is not None:
        return known
    largest: arb = pair.max_loss().max(pair.reverse().max_loss())
    return largest**2 / 2


def rho_beyond(pair: Pair, order: arb) -> arb:
    """Return an upper bound on D_a/a for all a ≥ order > 1, using D_a ≤ max L."""
    return (pair.max_loss() / order).min(rho_bound(pair))


def loss_tails(pair: Pair, epsilon: ExactReal) -> Tails:
    """Return the tails of the loss; NotApplicableError if only bounds on H are known."""
    if only_bounded(pair):
        raise NotApplicableError(
            "Only bounds of delta, epsilon and beta are known of this mechanism, not the law of "
            "its privacy loss. Ask for one of these."
        )
    return pair.tails(epsilon)
