"""(ε, δ)-differential privacy."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, final

from dpassay.accountant.composition import invert
from dpassay.accountant.core.pair import Pair, upper_bound
from dpassay.accountant.core.validate import probability
from dpassay.accountant.numbers.exact import ExactReal, floats_in_short
from dpassay.accountant.questions import profile
from dpassay.accountant.questions.answer import share
from dpassay.verifier.claim import Decision, Scope, compare
from dpassay.verifier.claims.privacy import (
    SHOWN_WIDTH,
    PrivacyClaim,
    at_most,
    bounded,
    event,
    first_width,
    shown_excess,
    unless_undecided,
    worst_at,
)
from dpassay.verifier.expression import Expression
from dpassay.verifier.verdict import Verdict

_APART = 1000
"""A δ this many times an ε is more likely to be an ε that came second."""

_BELOW_ZERO = (
    " Epsilon is below 0: this is a point of the privacy profile, P(S) ≤ e^epsilon Q(S) + delta "
    "with a factor below 1. It says more than (0, delta)-DP, and delta is at least 1 - e^epsilon."
)


@final
class ApproximateDP(PrivacyClaim, frozen=True, kw_only=True, tag="approximate-dp"):
    """The mechanism is (ε, δ)-DP: P(S) ≤ e^ε Q(S) + δ for every neighbouring pair and event S."""

    written: ClassVar = ("mechanism", "epsilon", "delta")
    epsilon: str
    delta: str

    def numbers(self, scope: Scope) -> tuple[ExactReal, ExactReal]:
        """Return ε and δ of a case, exactly."""
        eps = Expression(self.epsilon).exact(scope)
        return eps, probability("delta", Expression(self.delta).exact(scope))

    def assertion(self) -> str:
        """Say (ε, δ)-DP of the mechanism."""
        return f"{self.mechanism} is ({self.epsilon}, {self.delta})-DP"

    def decide(self, scope: Scope) -> Decision:
        """Compare the exact profile at ε with δ."""
        eps, claimed = self.numbers(scope)
        pairs = self.worst(scope).pairs(None)

        value, truth = at_most(lambda asked: invert.hockey_stick(asked, eps), claimed, pairs)
        value = share(value)
        if truth is None and all(_met(pair, eps, claimed) for pair in pairs):
            truth = True
        if truth is None and shown_excess(pairs, eps, claimed.ball):
            truth = False
        numbers = {"epsilon": eps, "delta": claimed}
        because = _reason(truth)
        if truth and eps.sign > 0 and eps * ExactReal.of_rational(_APART) <= claimed:
            other = floats_in_short(f"({claimed}, {eps})-DP")
            because += f" Epsilon comes first: if they are swapped, claim {other}."
        if eps.sign < 0:
            because += _BELOW_ZERO
        return bounded("delta", truth, value, numbers, because)

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add the true ε at the claimed δ, why the pair is worst, and to a refutation the event."""
        eps, claimed = self.numbers(scope)
        pairs = self.worst(scope).pairs(None)
        mechanism = self.built(scope)
        ask = profile.epsilon if eps.sign >= 0 else profile.signed_epsilon
        inverse = unless_undecided(
            lambda: ask(
                mechanism,
                claimed,
                adjacency=self.relation(),
                relative_width=max(SHOWN_WIDTH, first_width(pairs)),
            )
        )
        true = dict(decision.true)
        if inverse is not None:
            true["epsilon"] = inverse
        shown = {}
        if decision.verdict is Verdict.REFUTED:
            shown = event(worst_at(pairs, eps), eps, claimed.ball)
        return dataclasses.replace(
            decision,
            true=true,
            witness=self.witness(scope, shown),
        )


def _met(pair: Pair, epsilon: ExactReal, claimed: ExactReal) -> bool:
    """Whether H(ε) is at most the claimed number: by what is known of it exactly, or in balls."""
    known = pair.known.exact(epsilon)
    if known is not None and known <= claimed:
        return True
    return compare(lambda: upper_bound(pair, epsilon), "<=", claimed.ball) is True


def _reason(truth: bool | None) -> str:
    if truth is None:
        return "The claimed delta lies between the bounds of the exact one that were reached."
    if truth:
        return "The exact delta at the claimed epsilon does not exceed the claimed delta."
    return "An explicit event has P(S) > e^epsilon Q(S) + delta."
