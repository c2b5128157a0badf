"""μ-Gaussian differential privacy."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, final

from flint import arb, ctx

from accountant.composition.joint import JointPair
from accountant.errors import NotApplicableError, expected
from accountant.interval import Interval, enclose
from accountant.least_mu import limiting_mu
from accountant.mechanisms.gaussian import Gaussian
from accountant.number import ExactReal
from accountant.pair import Pair
from accountant.profile import hockey_stick, most
from verify.claim import Decision, Scope, compare, verdict_of
from verify.claims.privacy import (
    PrivacyClaim,
    describe_factor,
    event,
    hockey,
    law,
    margin,
    reached,
    shown,
    worst_at,
)
from verify.claims.sweep import Bound, prove_below
from verify.expression import Expression
from verify.verdict import Verdict

_HINTS = 20
"""Halvings and half as many doublings of an epsilon of 1 at which estimates are compared."""
_MOST_HINTS = 5
_CLEAR = 1e-3
_HINT_BITS = 128


@final
class GaussianDP(
    PrivacyClaim, frozen=True, kw_only=True, tag="gaussian-dp", omit_defaults=True,
    forbid_unknown_fields=True,
):  # fmt: skip
    """Every pair of neighbours is at least as hard to tell apart as N(μ, 1) from N(0, 1)."""

    kind: ClassVar[str] = "gaussian-dp"
    mu: str

    def expressions(self) -> dict[str, str]:
        """Return μ and the mechanism."""
        return {**super().expressions(), "mu": self.mu}

    def decide(self, scope: Scope) -> Decision:
        """Compare the exact μ, or the whole profile, with that of N(μ, 1) against N(0, 1)."""
        claimed = Expression(self.mu).exact(scope)
        if claimed.sign <= 0:
            raise expected("mu", claimed, "> 0", "Give a positive number.")
        mechanism = self.built(scope)
        try:
            value = enclose(lambda: mechanism.gaussian_mu(self.relation()))
        except NotApplicableError:
            return self._by_small_levels(scope, claimed) or self._by_profile(scope, claimed)
        known = mechanism.exact_gaussian_mu(self.relation())
        if known is not None:  # settles a claim that is just met
            truth: bool | None = known <= claimed
        else:
            truth = compare(lambda: mechanism.gaussian_mu(self.relation()), "<=", claimed.ball)
        differences = margin(value, claimed)
        words = {True: "does not exceed", False: "exceeds", None: "could not be told apart from"}
        return Decision(
            verdict=verdict_of(truth),
            true={"mu": value},
            claimed={"mu": str(claimed)},
            margin=differences,
            reason=f"The mechanism is exactly mu-GDP, and its mu {words[truth]} the claimed one."
            + describe_factor(differences.get("factor"), "mu"),
            route="the exact mu, in balls",
        )

    def _by_small_levels(self, scope: Scope, claimed: ExactReal) -> Decision | None:
        """Decide that the claim holds by the least μ where small levels alone decide it."""
        pairs = self.worst(scope).pairs(None)
        if limiting_mu(pairs) is None:
            return None

        def least() -> arb:
            found = limiting_mu(pairs)
            assert found is not None
            return found

        if compare(least, "<=", claimed.ball) is not True:
            return None
        value = enclose(least)
        differences = margin(value, claimed)
        return Decision(
            verdict=Verdict.HOLDS,
            true={"mu": value},
            claimed={"mu": str(claimed)},
            margin=differences,
            reason="The least mu is that of the same Gaussian releases of every record, whatever "
            "the sampling rates, and does not exceed the claimed one."
            + describe_factor(differences.get("factor"), "mu"),
            route="the least mu, from tests of small levels, in balls",
        )

    def _by_profile(self, scope: Scope, claimed: ExactReal) -> Decision:
        """Compare δ(ε) with the Gaussian profile at every ε ≥ 0 by a sweep."""
        pairs = self.worst(scope).pairs(None)
        target = _standard(claimed).worst_case(None).remove
        swept = prove_below(
            Bound(lambda eps: hockey_stick(pairs, eps), falling=True),
            Bound(lambda eps: hockey_stick(target, eps), falling=True),
            end=lambda: most([pair.max_loss() for pair in pairs]),
            hints=lambda: _hints(pairs, target[0]),
        )
        truth = swept.truth
        witness = {} if swept.point is None else {"epsilon": str(swept.point)}
        true: dict[str, Interval] = {}
        if swept.point is not None:
            at = swept.point
            true["delta"] = reached(lambda: hockey_stick(pairs, at))
            limit = reached(lambda: hockey_stick(target, at))
            true["gaussian_delta"] = limit
            with_margin = compare(true["delta"].ball, ">", limit.ball)
            truth = False if with_margin else None
        return Decision(
            verdict=verdict_of(truth),
            true=true,
            claimed={"mu": str(claimed)},
            witness=witness,
            reason=swept.reason("delta(epsilon) of N(mu, 1) against N(0, 1)"),
            route=f"interval sweep over epsilon ≥ 0, {swept.pieces} pieces",
            evidence=[swept.fact()] if truth else [],
        )

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add the pair, and its μ, or the event or divergence at the ε of the witness, else 0."""
        worst = self.worst(scope)
        pairs = worst.pairs(None)
        eps = Expression(str(decision.witness.get("epsilon", "0"))).exact(scope)
        claimed = Expression(self.mu).exact(scope)
        target = _standard(claimed).worst_case(None).remove[0]
        limit = hockey(target, eps, "gaussian_delta")
        if decision.verdict is Verdict.REFUTED:
            facts = [event(worst_at(pairs, eps), eps), limit]
            conclusion = "p - exp(epsilon)*q > gaussian_delta"
        elif "mu" not in decision.true:
            facts = [*(hockey(pair, eps) for pair in pairs), limit, *decision.evidence]
            conclusion = "value <= gaussian_delta"
        else:
            facts = [_least(pair, decision.true["mu"]) for pair in pairs]
            conclusion = "value <= mu"
        return dataclasses.replace(
            decision,
            witness={
                "mechanism": repr(self.built(scope)),
                "worst_case": worst.reason,
                "epsilon": str(eps),
                **shown(facts[0]),
            },
            evidence=facts,
            conclusion=conclusion,
        )


def _hints(pairs: Sequence[Pair], target: Pair) -> list[Fraction] | None:
    """Return ε where estimates of δ exceed δ_μ, the least first; None where none are known.

    They go far out: Gaussian releases of a larger μ, sampled, show it at large ε alone.
    """
    found: list[tuple[float, Fraction]] = []
    for exponent in range(-_HINTS, 2 * _HINTS):
        point = Fraction(2) ** (exponent // 2) * (1 + Fraction(exponent % 2, 2))
        known = [_estimated_log_delta(pair, point) for pair in pairs]
        values = [value for value in known if value is not None]
        limit = _estimated_log_delta(target, point)
        if values and limit is not None:
            found.append((max(values) - limit, point))
    if not found:
        return None
    return [point for excess, point in found if excess > _CLEAR][:_MOST_HINTS]


def _estimated_log_delta(pair: Pair, epsilon: Fraction) -> float | None:
    """Return about ln H(ε), −∞ for none; None where it takes long."""
    estimate = pair.estimate_log_delta(float(epsilon))
    if estimate is not None or isinstance(pair, JointPair):
        return estimate
    with ctx.workprec(_HINT_BITS):
        value = pair.hockey_stick(ExactReal.of_rational(epsilon))
        return float(value.log().mid()) if value > 0 else None


def _least(pair: Pair, found: Interval) -> dict[str, Any]:
    """Return the least μ of a pair as a checkable fact; `found` where its law has no own."""
    own = limiting_mu([pair])
    value = found if own is None else enclose(lambda: _least_of(pair))
    return {"fact": "gaussian-mu", "name": "value", "law": law(pair), "value": value.to_json()}


def _least_of(pair: Pair) -> arb:
    found = limiting_mu([pair])
    assert found is not None
    return found


def _standard(mu: ExactReal) -> Gaussian:
    return Gaussian(standard_deviation=1, l2_sensitivity=mu)
