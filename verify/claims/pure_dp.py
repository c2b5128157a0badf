"""Pure ε-differential privacy."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, final

from flint import arb

from dpassay.accountant.composition.invert import hockey_stick, most
from dpassay.accountant.core.pair import Pair, only_bounded
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.verifier.claim import Decision, Scope, compare
from dpassay.verifier.claims.privacy import (
    PrivacyClaim,
    bounded,
    event,
    first_width,
    in_brackets,
    reached,
    shown_excess,
    worst_at,
)
from dpassay.verifier.expression import Expression
from dpassay.verifier.verdict import Verdict


@final
class PureDP(PrivacyClaim, frozen=True, kw_only=True, tag="pure-dp"):
    """The mechanism is ε-DP: the privacy loss never exceeds ε. The δ of the claim is 0."""

    written: ClassVar = ("mechanism", "epsilon")
    epsilon: str

    def assertion(self) -> str:
        """Say ε-DP of the mechanism."""
        return f"{self.mechanism} is {in_brackets(self.epsilon)}-DP"

    def decide(self, scope: Scope) -> Decision:
        """Compare the largest privacy loss with ε."""
        claimed = Expression(self.epsilon).exact(scope)
        pairs = self.worst(scope).pairs(None)

        def true(pairs: Sequence[Pair]) -> arb:
            return most([pair.max_loss() for pair in pairs])

        truth = compare(lambda: true(pairs), "<=", claimed.ball)
        if truth is None:  # balls never prove that two numbers are equal
            known = [pair.known.max_loss() for pair in pairs]
            truth = all(loss <= claimed for loss in known if loss) if all(known) else None
        if truth is None:  # of two ends the upper one may be met
            bounds = [pair.known.exact(claimed) for pair in pairs]
            truth = all(bound is not None and not bound.sign for bound in bounds) or None
        value = reached(true, pairs)
        if truth is False and any(only_bounded(pair) for pair in pairs):
            truth = False if shown_excess(pairs, claimed, lambda: arb(0)) else None
        numbers = {"epsilon": claimed, "delta": ExactReal.of_rational(0)}
        reason = _reason(truth, value, claimed)
        return bounded("epsilon", truth, value, numbers, reason)

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add the true δ, why the pair is worst, and to a refutation an event of a larger loss."""
        claimed = Expression(self.epsilon).exact(scope)
        pairs = self.worst(scope).pairs(None)
        shown = {}
        if decision.verdict is Verdict.REFUTED:
            shown = event(worst_at(pairs, claimed), claimed, lambda: arb(0))
        true = dict(decision.true)
        true["delta"] = reached(
            lambda asked: hockey_stick(asked, claimed), pairs, first_width(pairs)
        )
        return dataclasses.replace(
            decision,
            true=true,
            witness=self.witness(scope, shown),
        )


def _reason(truth: bool | None, value: Interval, claimed: ExactReal) -> str:
    """Say what is known of the largest loss: a number, or the two ends that it lies between."""
    shown = f"{value:.6g}"
    above = value.lower.is_finite() and exact(value.lower) > claimed
    if shown.startswith("["):
        known = {
            True: "does not exceed the claimed epsilon.",
            False: "exceeds the claimed epsilon.",
            None: "exceeds the claimed epsilon, but no event is known that shows it."
            if above
            else "may be on either side of the claimed epsilon.",
        }[truth]
        return f"The largest privacy loss lies in {shown} and {known}"
    if truth is None and above:
        return (
            f"The privacy loss comes as near to {value} as you like, but no event is known that "
            "shows more than the claimed epsilon."
        )
    if truth is None:
        return "The largest privacy loss and the claimed epsilon could not be told apart."
    if truth:
        return f"The privacy loss never exceeds {value}."
    if not value.upper.is_finite():
        return "The privacy loss has no bound."
    return f"The privacy loss reaches {value}."
