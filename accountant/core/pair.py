"""Dominating pairs: the two laws that a privacy question is about."""

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

    Each is computed directly, never as one minus another, so that small ones keep their relative
    accuracy.
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
        """Those at −ε of a pair that is its own reverse, where no loss is −ε."""
        return Tails(self.q_below, self.q_above, self.p_below, self.p_above)


def _unknown(*_: object) -> None:
    return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What may be known of a pair besides its methods: functions, of None where it is not known.

    Questions are answered without it, later or less exactly. `log_delta` and `epsilon` are floats
    without proof, everything else is proved.
    """

    refusal: str = "Only delta, epsilon and beta of this mechanism are known. Ask for one of these."
    """Why its tails or divergences are not known, where they are not, and what to ask."""
    to_width: Callable[[Fraction | None], Pair] | None = None
    """Returns the same pair, with H and the tails to another relative width (None: to flint's
    precision). None of what follows flint's precision alone: engines that refine a grid, or
    lengthen a contour, do no more than is asked for."""
    asked: Fraction | None = None
    """The relative width that such a pair is asked for."""
    width: Callable[[], Fraction] = lambda: RELATIVE_WIDTH
    """Relative width of answers for which none is named: closed forms have the finest."""
    max_loss: Callable[[], ExactReal | None] = _unknown
    """The essential supremum of L under P, exactly."""
    finite_loss: Callable[[], arb] | None = None
    """The same where L is finite, for pairs with infinity mass."""
    infinity_mass: Callable[[], ExactReal | None] = _unknown
    """P(L = +∞), exactly."""
    exact: Callable[[ExactReal], ExactReal | None] = _unknown
    """An exact number that H(ε) does not exceed: it decides a claim that is met with equality."""
    upper: Callable[[ExactReal], arb] | None = None
    """An upper bound of H(ε), where it is nearer than the upper end of the ball of H."""
    attained: Callable[[ExactReal], Pair] | None = None
    """Where only two bounds of H are known, a pair that shows the lower one.

    No loss has the `tails` of such a pair, which are of one event: that of this pair at ε.
    """
    bound: Callable[[ExactReal], arb] = lambda _: arb(1)
    """An upper bound of H(ε) that takes little time."""
    inverse: Callable[[ExactReal, Fraction], Interval | None] = _unknown
    """The ε with H(ε) = δ to a relative width, faster than by bisection, for δ > P(L = +∞)."""
    fallback: Callable[[ExactReal, Fraction], Interval | None] = _unknown
    """The same, asked where values of H are refused near that ε."""
    log_delta: Callable[[float], float | None] = _unknown
    """ln H(ε)."""
    epsilon: Callable[[float], float | None] = _unknown
    """The ε with ln H(ε) = log_delta."""
    rho: Callable[[], arb | None] = _unknown
    """The supremum of D_a/a over a > 1 where it is the limit at large orders; may be +∞."""
    rho_bound: Callable[[], arb] | None = None
    """An upper bound of the same."""


class Pair(ABC):
    """An ordered pair of laws (P, Q) with privacy loss L = ln dP/dQ.

    Every method works at flint's current precision and returns a ball that contains the exact
    value, however wide. Where P has mass and Q has none, L = +∞; the other way round, L = −∞.
    """

    law_name: ClassVar[str]
    """The name in `law`, where that is the default."""

    @abstractmethod
    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε) = sup_S P(S) − e^ε Q(S) = E_P[(1 − e^{ε−L})⁺], for any real ε."""

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the probabilities of {L > ε} and {L ≤ ε} under P and Q.

        Raises NotApplicableError where the profile alone is known, or bounds of it.
        """
        raise NotApplicableError(self.known.refusal)

    def renyi(self, order: arb) -> arb:
        """Return the Rényi divergence D_order(P‖Q) for 1 or a ball inside (1, ∞); may be +∞.

        Of order 1 it is the Kullback–Leibler divergence E_P[L]. Raises NotApplicableError where no
        form is known.
        """
        raise NotApplicableError(self.known.refusal)

    @abstractmethod
    def max_loss(self) -> arb:
        """Return the essential supremum of L under P, +∞ where there is none."""

    def infinity_mass(self) -> arb:
        """Return P(L = +∞), the mass that P gives to outcomes that Q cannot produce."""
        return arb(0)

    @property
    def known(self) -> Known:
        """Return closed forms, and where a search may start."""
        return Known()

    @abstractmethod
    def reverse(self) -> Pair:
        """Return the pair (Q, P)."""

    def law(self) -> dict[str, object]:
        """Return the pair as plain data (strings, ints, lists), for the witness of a finding.

        The key "law" is the name of its kind, by default `law_name`; the fields follow by their
        names, numbers as exact texts. The pair of one release is "pair", a JSON text; "mixture" is
        which law is mixed, "P" or "Q".
        """
        found: dict[str, object] = {"law": self.law_name}
        for field in fields(self):  # type: ignore[arg-type]  # those with a `law_name` are dataclasses
            if not field.compare:  # how it is asked is no part of the law
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
        """Say in words which outcomes make up the worst event {L > ε}."""
        return f"the outcomes with ln(dP/dQ) > {epsilon}"


class MirroredPair(Pair):
    """A pair that is its own reverse, and says H for ε ≥ 0: H(ε) = 1 − e^ε + e^ε H(−ε).

    For P(S) − e^ε Q(S) = 1 − e^ε + e^ε (Q(Sᶜ) − e^{−ε} P(Sᶜ)), and (Q, P) has the H of (P, Q). Its
    largest loss is known exactly, or +∞. The docstring of each says what exchanges P and Q.
    """

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε), 0 from the largest loss on."""
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
        """Return the largest loss, or +∞."""
        known = self.known.max_loss()
        return arb.pos_inf() if known is None else known.ball()

    def reverse(self) -> Self:
        """Return the pair itself."""
        return self


@final
@dataclass(frozen=True, slots=True)
class WorstCase:
    """The dominating pairs of a mechanism, by direction.

    The profile of the mechanism is, in each direction, the maximum over the pairs listed
    there: usually one; several where no single pair is worst at every ε.
    """

    remove: tuple[Pair, ...]
    add: tuple[Pair, ...]
    reason: str
    """Why these are worst."""
    enveloped: bool = False
    """Whether neighbours are dominated only by the maximum of the profiles of all pairs.

    Which pair is largest may then depend on ε. The profile is still the maximum over the pairs; a
    divergence or trade-off function of one pair is attained, and a bound on one side only.
    """

    @staticmethod
    def symmetric(pair: Pair, reason: str) -> WorstCase:
        """Both directions have the same law of the loss, so one pair is enough for both."""
        return WorstCase((pair,), (pair,), reason)

    def pairs(self, direction: Direction | None) -> tuple[Pair, ...]:
        """Return the distinct pairs of one direction, or of both."""
        if direction is Direction.REMOVE:
            return self.remove
        if direction is Direction.ADD:
            return self.add
        return self.remove + tuple(pair for pair in self.add if pair not in self.remove)


def refined(pair: Pair, relative_width: Fraction | None) -> Pair:
    """Return the same pair, with H and the tails to a relative width."""
    to_width = pair.known.to_width
    return pair if to_width is None else to_width(relative_width)


def asked_width(pair: Pair) -> Fraction | None:
    """Return the relative width that H is asked for; None for flint's precision."""
    return pair.known.asked


def only_bounded(pair: Pair) -> bool:
    """Whether only two bounds of H are known."""
    return pair.known.attained is not None


def attained(pair: Pair, epsilon: ExactReal) -> Pair:
    """Return a pair of two datasets that shows H at ε: itself, where it is not only bounded."""
    return pair if (shown := pair.known.attained) is None else shown(epsilon)


def upper_bound(pair: Pair, epsilon: ExactReal) -> arb:
    """Return an upper bound of H(ε), as near as it is known."""
    bound = pair.known.upper
    return pair.hockey_stick(epsilon).upper() if bound is None else bound(epsilon)


def exact_infinity_mass(pair: Pair) -> ExactReal | None:
    """Return P(L = +∞) where it is known as an exact number, else None."""
    known = pair.known.infinity_mass()
    if known is not None:
        return known
    return ExactReal.of_rational(0) if pair.infinity_mass().is_zero() else None


def max_finite_loss(pair: Pair) -> arb:
    """Return the essential supremum of L under P where L is finite.

    Raises NotApplicableError where a pair with infinity mass does not know it.
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
    """Return an upper bound of sup D_a/a in closed form, +∞ for an unbounded loss.

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
    """Return an upper bound of D_a/a for all a ≥ order > 1, from D_a ≤ max L."""
    return (pair.max_loss() / order).min(rho_bound(pair))


def loss_tails(pair: Pair, epsilon: ExactReal) -> Tails:
    """Return the tails of a loss; NotApplicableError where only bounds of H are known."""
    if only_bounded(pair):
        raise NotApplicableError(
            "Only bounds of delta, epsilon and beta are known of this mechanism, not the law of "
            "its privacy loss. Ask for one of these."
        )
    return pair.tails(epsilon)
