"""Claims in Rényi divergences: (order, ε)-Rényi DP and ρ-zCDP."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import inf
from typing import ClassVar, final

from flint import arb

from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import BetweenError, NotApplicableError, UndecidedError, expected
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import RELATIVE_WIDTH, Interval, ball, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.questions import guarantees
from dpassay.verifier.claim import Decision, Scope, compare
from dpassay.verifier.claims.privacy import (
    EXCEEDS,
    FACT_WIDTH,
    VERDICT_WIDTH,
    PrivacyClaim,
    bounded,
    in_brackets,
    law,
)
from dpassay.verifier.expression import Expression
from dpassay.verifier.verdict import Verdict

_RHO_WIDTHS = (Fraction(1, 10**4), Fraction(1, 10**8))
_SEARCH_PRECISION = 96
"""Bits of divergences that only choose an order."""
_SEARCH_STEPS = 30
"""Thirds that are cut off a range of orders: the best one is known to 1e-5 of it."""
_LARGE_ORDERS = tuple(Fraction(2) ** power for power in range(11, 61))


class DivergenceClaim(PrivacyClaim, frozen=True, kw_only=True):
    """Shared by the claims that bound a number above."""

    def against(
        self, name: str, truth: bool | None, value: Interval, claimed: dict[str, ExactReal]
    ) -> Decision:
        """Return the decision that `name` is at most its claimed value."""
        reason = f"The exact {name} {EXCEEDS[truth]} the claimed one."
        return bounded(name, truth, value, claimed, reason)

    def with_divergence(self, scope: Scope, decision: Decision, order: ExactReal) -> Decision:
        """Add why the pair is worst, and its divergence at one order."""
        pair = max(self.worst(scope).pairs(None), key=lambda pair: _size(pair, order))
        value = enclose(_divergence(pair, order), relative_width=FACT_WIDTH)
        shown = {"fact": "renyi", "law": law(pair), "order": str(order), "value": value.to_json()}
        return dataclasses.replace(decision, witness=self.witness(scope, shown))


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


def _divergence(pair: Pair, order: ExactReal) -> Callable[[], arb]:
    return lambda: pair.renyi(order.ball())


def _size(pair: Pair, order: ExactReal) -> Fraction:
    lower = enclose(_divergence(pair, order), relative_width=VERDICT_WIDTH).lower
    return Fraction(lower) if lower.is_finite() else Fraction(10) ** 1000


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
        if rho is not None and rho * order <= claimed:  # D_a ≤ ρ a: settles a claim just met
            truth = True
        return self.against("epsilon", truth, value, {"epsilon": claimed, "order": order})

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add the divergence."""
        order = Expression(self.order).exact(scope)
        return self.with_divergence(scope, decision, order)


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
        if known is not None:  # settles a claim that is just met
            truth = known <= claimed
        return self.against("rho", truth, value, {"rho": claimed})

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add the divergence at the order where D_a/a is largest, as far as a search finds it.

        D_a/a is the same at every order of a Gaussian pair. A supremum that is the limit at large
        orders is exceeded there, or hardly so: a refutation looks on, at orders that double.
        """
        mu = self.built(scope).exact_gaussian_mu(self.relation())
        found = _steepest(self.worst(scope).pairs(None)) if mu is None else Fraction(2)
        if decision.verdict is not Verdict.REFUTED:
            with contextlib.suppress(UndecidedError):  # of bounds alone there is no digit to show
                order = ExactReal.of_rational(found)
                return self.with_divergence(scope, decision, order)
            return decision
        claimed = Expression(self.rho).exact(scope)
        explained = decision
        for order in map(ExactReal.of_rational, (found, *_LARGE_ORDERS)):
            try:
                explained = self.with_divergence(scope, decision, order)
            except (UndecidedError, NotApplicableError):
                continue
            lower = Decimal(explained.witness["value"]["lower"])
            if lower == inf or ball(Fraction(lower)) > (claimed * order).ball():
                return explained
        return explained


def _steepest(pairs: Sequence[Pair]) -> Fraction:
    """Return an order near the largest D_a/a; the first one that is infinite, from above.

    Orders that the engines refuse are passed over.
    """

    def steepness(order: Fraction) -> float:
        with ctx.workprec(_SEARCH_PRECISION):
            try:
                values = [pair.renyi(ball(order)) / ball(order) for pair in pairs]
            except UndecidedError:
                return -inf
            return max(float(value.mid()) if value.is_finite() else inf for value in values)

    orders: list[Fraction] = [1 + Fraction(2) ** power for power in (*range(10, -11, -1), -20, -40)]
    best, found = 0, -inf
    for index, order in enumerate(orders):
        value = steepness(order)
        if value > found:
            best, found = index, value
        if found == inf:
            return order
    high, low = orders[max(best - 1, 0)], orders[min(best + 1, len(orders) - 1)]
    for _ in range(_SEARCH_STEPS):  # D_a/a has one maximum between two neighbours of the best
        third = (high - low) / 3
        if steepness(low + third) < steepness(high - third):
            low += third
        else:
            high -= third
    return (low + high).limit_denominator(1 << 40) / 2
