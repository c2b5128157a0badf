"""Claims in Rényi divergences: (order, ε)-Rényi DP and ρ-zCDP."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import ClassVar, final

from dpassay.accountant.errors import BetweenError, UndecidedError, expected
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import RELATIVE_WIDTH, Interval
from dpassay.accountant.questions import guarantees
from dpassay.verifier.claim import Decision, Scope, compare
from dpassay.verifier.claims.privacy import EXCEEDS, PrivacyClaim, bounded, in_brackets
from dpassay.verifier.expression import Expression

_RHO_WIDTHS = (Fraction(1, 10**4), Fraction(1, 10**8))


class DivergenceClaim(PrivacyClaim, frozen=True, kw_only=True):
    """Shared by the claims that bound a number above."""

    def against(
        self, name: str, truth: bool | None, value: Interval, claimed: dict[str, ExactReal]
    ) -> Decision:
        """Return the decision that `name` is at most its claimed value."""
        reason = f"The exact {name} {EXCEEDS[truth]} the claimed one."
        return bounded(name, truth, value, claimed, reason)

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add the mechanism, and why its pairs are worst."""
        return dataclasses.replace(decision, witness=self.witness(scope, {}))


def _bounded(bounds: UndecidedError, claimed: ExactReal) -> tuple[Interval, bool | None]:
    """Return the bounds that were reached, and what both of them say about a claim.

    Raises the error itself where they say nothing and closer ones may be known.
    """
    if bounds.interval is None:
        raise bounds
    found = Interval(bounds.interval.lower, bounds.interval.upper)
    if found.upper.is_finite() and ExactReal.of_rational(Fraction(found.upper)) <= claimed:
        return found, True
    if found.lower.is_finite() and ExactReal.of_rational(Fraction(found.lower)) > claimed:
        return found, False
    if not isinstance(bounds, BetweenError):
        raise bounds
    return found, None


@final
class RenyiDP(DivergenceClaim, frozen=True, kw_only=True, tag="renyi-dp"):
    """The Rényi divergence of the given order, in both directions, is at most ε."""

    written: ClassVar = ("mechanism", "order", "epsilon")
    order: str
    epsilon: str

    def assertion(self) -> str:
        """Say what the Rényi divergence is bounded by."""
        return (
            f"the Rényi divergence of {self.mechanism} of order {self.order} is at most "
            f"{self.epsilon}"
        )

    def decide(self, scope: Scope) -> Decision:
        """Compare the exact divergence with ε."""
        order, claimed = Expression(self.order).exact(scope), Expression(self.epsilon).exact(scope)
        if order < ExactReal.of_rational(1):
            remedy = "A claim is of an order from 1 on; dpassay.renyi answers for orders below."
            raise expected("order", order, "≥ 1", remedy)
        mechanism = self.built(scope)
        try:
            value = guarantees.renyi(
                mechanism, order, adjacency=self.relation(), relative_width=RELATIVE_WIDTH
            )
            truth = compare(value.ball, "<=", claimed.ball)
        except UndecidedError as bounds:
            value, truth = _bounded(bounds, claimed)
        rho = mechanism.exact_rho(self.relation())
        if rho is not None and rho * order <= claimed:  # D_a ≤ ρ a: met with equality
            truth = True
        return self.against("epsilon", truth, value, {"epsilon": claimed, "order": order})


@final
class ZeroConcentratedDP(DivergenceClaim, frozen=True, kw_only=True, tag="zcdp"):
    """The mechanism is ρ-zCDP: D_a ≤ ρ·a for every order a > 1, in both directions."""

    written: ClassVar = ("mechanism", "rho")
    rho: str

    def assertion(self) -> str:
        """Say ρ-zCDP of the mechanism."""
        return f"{self.mechanism} is {in_brackets(self.rho)}-zCDP"

    def decide(self, scope: Scope) -> Decision:
        """Compare the least ρ with the claimed one, more sharply if it is near."""
        claimed = Expression(self.rho).exact(scope)
        mechanism = self.built(scope)
        for width in _RHO_WIDTHS:
            try:
                value = guarantees.rho(mechanism, adjacency=self.relation(), relative_width=width)
                truth = compare(value.ball, "<=", claimed.ball, max_precision=512)
            except UndecidedError as bounds:
                value, truth = _bounded(bounds, claimed)
                break
            if truth is not None:
                break
        known = mechanism.exact_rho(self.relation())
        if known is not None:  # decides a claim that is met with equality
            truth = known <= claimed
        return self.against("rho", truth, value, {"rho": claimed})
