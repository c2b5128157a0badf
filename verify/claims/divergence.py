"""Claims in Rényi divergences: (order, ε)-Rényi DP and ρ-zCDP."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar, final

from flint import arb

from accountant import guarantees
from accountant.interval import Interval, enclose
from accountant.number import ExactReal, exact
from accountant.pair import Pair
from verify.claim import Decision, Scope, compare, verdict_of
from verify.claims.privacy import (
    FACT_WIDTH,
    VERDICT_WIDTH,
    PrivacyClaim,
    describe_factor,
    law,
    margin,
    shown,
)
from verify.expression import Expression
from verify.verdict import Verdict

_RHO_WIDTHS = (Fraction(1, 10**4), Fraction(1, 10**8))
_ORDERS = ("1.0001", "1.1", "1.5", "2", "4", "16", "64")


class DivergenceClaim(
    PrivacyClaim, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Shared by the claims that bound a number above."""

    def against(
        self, name: str, truth: bool | None, value: Interval, claimed: dict[str, ExactReal]
    ) -> Decision:
        """Return the decision that `name` is at most its claimed value."""
        differences = margin(value, claimed[name])
        words = {True: "does not exceed", False: "exceeds", None: "could not be told apart from"}
        return Decision(
            verdict=verdict_of(truth),
            true={name: value},
            claimed={key: str(number) for key, number in claimed.items()},
            margin=differences,
            reason=f"The exact {name} {words[truth]} the claimed one."
            + describe_factor(differences.get("factor"), name),
        )

    def with_divergence(
        self, scope: Scope, decision: Decision, order: ExactReal, bound: str
    ) -> Decision:
        """Add the divergence at one order as evidence."""
        worst = self.worst(scope)
        pairs = worst.pairs(None)
        if decision.verdict is Verdict.REFUTED:
            pairs = (max(pairs, key=lambda pair: _size(pair, order)),)
        evidence = [
            {
                "fact": "renyi",
                "name": "value",
                "law": law(pair),
                "order": str(order),
                "value": enclose(_divergence(pair, order), relative_width=FACT_WIDTH).to_json(),
            }
            for pair in pairs
        ]
        relation = ">" if decision.verdict is Verdict.REFUTED else "<="
        return dataclasses.replace(
            decision,
            witness={
                "mechanism": repr(self.built(scope)),
                "worst_case": worst.reason,
                **shown(evidence[0]),
            },
            evidence=evidence,
            conclusion=f"value {relation} {bound}",
        )


def _divergence(pair: Pair, order: ExactReal) -> Callable[[], arb]:
    if order.rational == 1:
        return pair.kullback_leibler
    return lambda: pair.renyi(order.ball())


def _size(pair: Pair, order: ExactReal) -> Fraction:
    lower = enclose(_divergence(pair, order), relative_width=VERDICT_WIDTH).lower
    return Fraction(lower) if lower.is_finite() else Fraction(10) ** 1000


@final
class RenyiDP(
    DivergenceClaim, frozen=True, kw_only=True, tag="renyi-dp", omit_defaults=True,
    forbid_unknown_fields=True,
):  # fmt: skip
    """The Rényi divergence of the given order, in both directions, is at most ε."""

    kind: ClassVar[str] = "renyi-dp"
    order: str
    epsilon: str

    def expressions(self) -> dict[str, str]:
        """Return order, ε and the mechanism."""
        return {**super().expressions(), "order": self.order, "epsilon": self.epsilon}

    def decide(self, scope: Scope) -> Decision:
        """Compare the exact divergence with ε."""
        order, claimed = Expression(self.order).exact(scope), Expression(self.epsilon).exact(scope)
        mechanism = self.built(scope)
        value = guarantees.renyi(mechanism, order, adjacency=self.relation())
        truth = compare(value.ball, "<=", claimed.ball)
        rho = mechanism.exact_rho(self.relation())
        if rho is not None:  # D_a = ρ a: settles a claim that is just met
            truth = rho * order <= claimed
        return self.against("epsilon", truth, value, {"epsilon": claimed, "order": order})

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add the divergence as evidence."""
        order = Expression(self.order).exact(scope)
        return self.with_divergence(scope, decision, order, "epsilon")


@final
class ZeroConcentratedDP(
    DivergenceClaim, frozen=True, kw_only=True, tag="zcdp", omit_defaults=True,
    forbid_unknown_fields=True,
):  # fmt: skip
    """The mechanism is ρ-zCDP: D_a ≤ ρ·a for every order a > 1, in both directions."""

    kind: ClassVar[str] = "zcdp"
    rho: str

    def expressions(self) -> dict[str, str]:
        """Return ρ and the mechanism."""
        return {**super().expressions(), "rho": self.rho}

    def decide(self, scope: Scope) -> Decision:
        """Compare the least ρ with the claimed one, more sharply if it is near."""
        claimed = Expression(self.rho).exact(scope)
        mechanism = self.built(scope)
        for width in _RHO_WIDTHS:
            value = guarantees.rho(mechanism, adjacency=self.relation(), relative_width=width)
            truth = compare(value.ball, "<=", claimed.ball, max_precision=512)
            if truth is not None:
                break
        known = mechanism.exact_rho(self.relation())
        if known is not None:  # settles a claim that is just met
            truth = known <= claimed
        return self.against("rho", truth, value, {"rho": claimed})

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add the divergence at the order where D_a/a is largest among a few."""
        pairs = self.worst(scope).pairs(None)
        orders = [exact(order) for order in _ORDERS]
        best = max(orders, key=lambda a: max(_size(pair, a) for pair in pairs) / _rational(a))
        return self.with_divergence(scope, decision, best, "rho*order")


def _rational(order: ExactReal) -> Fraction:
    return order.rational or Fraction(1)
