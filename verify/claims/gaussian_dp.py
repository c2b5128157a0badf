"""μ-Gaussian differential privacy."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, final

from dpassay.accountant.composition.product import is_numerical
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import NotApplicableError, UndecidedError, expected
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.invert import hockey_stick, most, to_width
from dpassay.accountant.questions.least_mu import bounds, exact_mu, limiting_mu, needed
from dpassay.verifier.claim import Decision, Scope, compare, verdict_of
from dpassay.verifier.claims.curve import Bound, prove_below
from dpassay.verifier.claims.privacy import (
    EXCEEDS,
    PrivacyClaim,
    bounded,
    event,
    first_width,
    in_brackets,
    reached,
    worst_at,
)
from dpassay.verifier.expression import Expression
from dpassay.verifier.verdict import Verdict

_HINTS = 20
"""Halvings and half as many doublings of an epsilon of 1 at which estimates are compared."""
_MOST_HINTS = 5
"""Points at which a refutation is tried: each takes an enclosure."""
_CLEAR = 1e-3
"""How far above a claim floats must be for one to be tried."""
_HINT_BITS = 128
"""Bits of those values."""
_FINEST = 1 << 40
"""Largest denominator of a point."""
_GRID, _REFINED, _PARTS = 32, 3, 8
"""Points of a grid, how often it is refined, and into how many parts."""
_WIDTHS = (Fraction(1, 10**6), Fraction(1, 10**8))
"""Relative widths of the least μ, compared with a claim."""
_ROUGH = Fraction(1, 1000)
"""Relative width of a δ where estimates say that it differs from the limit."""


@final
class GaussianDP(PrivacyClaim, frozen=True, kw_only=True, tag="gaussian-dp"):
    """Every pair of neighbours is at least as hard to tell apart as N(μ, 1) from N(0, 1)."""

    written: ClassVar = ("mechanism", "mu")
    mu: str

    def assertion(self) -> str:
        """Say μ-GDP of the mechanism."""
        return f"{self.mechanism} is {in_brackets(self.mu)}-GDP"

    def decide(self, scope: Scope) -> Decision:
        """Compare the exact μ, or the whole profile, with that of N(μ, 1) against N(0, 1)."""
        claimed = Expression(self.mu).exact(scope)
        if claimed.sign <= 0:
            raise expected("mu", claimed, "> 0", "Give a positive number.")
        mechanism = self.built(scope)
        try:
            value = enclose(lambda: mechanism.gaussian_mu(self.relation()))
        except NotApplicableError:
            return self._by_least_mu(scope, claimed)
        except UndecidedError as refusal:  # both ends of what is proved may do
            if refusal.interval is None:
                raise
            value = Interval(refusal.interval.lower, refusal.interval.upper)
        own = mechanism.exact_gaussian_mu(self.relation())
        if own is not None:  # decides a claim that is met with equality
            truth: bool | None = own <= claimed
        else:
            truth = compare(lambda: mechanism.gaussian_mu(self.relation()), "<=", claimed.ball)
        reason = f"The mechanism is exactly mu-GDP, and its mu {EXCEEDS[truth]} the claimed one."
        route = "the exact mu, in balls"
        return bounded("mu", truth, value, {"mu": claimed}, reason, route=route)

    def _by_least_mu(self, scope: Scope, claimed: ExactReal) -> Decision:
        """Decide that the claim holds by the least μ of an unbounded loss; else by the profile."""
        pairs = self.worst(scope).pairs(None)
        if most([pair.max_loss() for pair in pairs]).is_finite():
            return self._by_profile(scope, claimed)
        value, enough, in_the_limit = _least_mu(pairs, claimed)
        if value is None or not enough:
            more = value is not None and claimed < ExactReal.of_rational(Fraction(value.lower))
            found = self._by_profile(scope, claimed, refuted=more and not in_the_limit)
            if value is None:
                return found
            if found.verdict is not Verdict.UNDECIDED:
                return dataclasses.replace(found, true={"mu": value, **found.true})
            words = "exceeds the claimed one, but no epsilon was found at which that shows"
            words = words if more else "was not told from the claimed one"
            reason = f"The least mu, {value}, {words}."
            return dataclasses.replace(found, true={"mu": value}, reason=reason)
        return bounded(
            "mu",
            True,
            value,
            {"mu": claimed},
            "The least mu, to which tests of small levels tend or which they are proved not to "
            "exceed, does not exceed the claimed one.",
            route="the least mu, with a bound for tests of small levels, in balls",
        )

    def _by_profile(self, scope: Scope, claimed: ExactReal, *, refuted: bool = False) -> Decision:
        """Compare δ(ε) with the Gaussian profile at every ε ≥ 0 by a sweep.

        `refuted` says that it is known to be above it somewhere.
        """
        pairs = self.worst(scope).pairs(None)
        target = _standard(claimed).worst_case(None).remove
        rough = to_width(pairs, _ROUGH)
        swept = prove_below(
            Bound(lambda eps: hockey_stick(pairs, eps), falling=True),
            Bound(lambda eps: hockey_stick(target, eps), falling=True),
            end=lambda: most([pair.max_loss() for pair in pairs]),
            hints=lambda: hints(pairs, target[0], where=claimed if refuted else None),
            at_hints=lambda eps: hockey_stick(rough, eps),
        )
        truth = swept.truth
        witness = {} if swept.point is None else {"epsilon": str(swept.point)}
        true: dict[str, Interval] = {}
        if swept.point is not None:
            at = swept.point
            true["delta"] = reached(
                lambda asked: hockey_stick(asked, at), pairs, first_width(pairs)
            )
            limit = reached(lambda asked: hockey_stick(asked, at), target)
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
        )

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add why the pair is worst, and to a refutation the event at the ε of the witness."""
        if decision.verdict is not Verdict.REFUTED:
            return dataclasses.replace(decision, witness=self.witness(scope, decision.witness))
        pairs = self.worst(scope).pairs(None)
        eps = Expression(str(decision.witness.get("epsilon", "0"))).exact(scope)
        shown = event(worst_at(pairs, eps), eps)
        return dataclasses.replace(decision, witness=self.witness(scope, shown, epsilon=str(eps)))


def _least_mu(pairs: Sequence[Pair], claimed: ExactReal) -> tuple[Interval | None, bool, bool]:
    """Return what is known of the least μ, whether it is enough, and whether the limit is it."""
    own = exact_mu(pairs)
    if own is not None:  # decides a claim that is met with equality
        return enclose(own.ball), own <= claimed, True
    in_the_limit, value = limiting_mu(pairs) is not None, None
    for width in _WIDTHS:
        try:
            value = bounds(pairs, width)
        except (NotApplicableError, UndecidedError):
            break
        lower, upper = (ExactReal.of_rational(Fraction(end)) for end in (value.lower, value.upper))
        if upper <= claimed:
            return value, True, in_the_limit
        if claimed < lower or (value.relative_width or 0) > width:
            break
    return value, False, in_the_limit


def _standard(mu: ExactReal) -> Gaussian:
    return Gaussian(standard_deviation=1, l2_sensitivity=mu)


def hints(
    pairs: Sequence[Pair], target: Pair, *, where: ExactReal | None = None
) -> list[Fraction] | None:
    """Return ε where estimates of δ exceed δ_μ, the least first; None where none are known.

    They go far out: Gaussian releases of a larger μ, sampled, show it at large ε alone. Where none
    is found, but some ε is known to show more than a μ, one is that needs nearly the largest.
    """
    found = _estimated(pairs, target)
    return [_neediest(pairs, where)] if not found and where is not None else found


def _estimated(pairs: Sequence[Pair], target: Pair) -> list[Fraction] | None:
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
    estimate = pair.known.log_delta(float(epsilon))
    if estimate is not None or is_numerical(pair):
        return estimate
    with ctx.workprec(_HINT_BITS):
        value = pair.hockey_stick(ExactReal.of_rational(epsilon))
        return float(value.log().mid()) if value > 0 else None


def _neediest(pairs: Sequence[Pair], mu: ExactReal) -> Fraction:
    """Return an ε at which δ needs nearly the largest μ', from a grid that is refined."""

    def need(at: Fraction) -> Fraction:
        with contextlib.suppress(UndecidedError), ctx.workprec(_HINT_BITS):
            value = hockey_stick(pairs, ExactReal.of_rational(at))
            return needed(value, at) if value > 0 else Fraction(0)
        return Fraction(0)

    step = Fraction(float(mu)) / 16
    points = [Fraction(0), *(step * Fraction(5**i, 4**i) for i in range(_GRID))]
    for _ in range(_REFINED):
        values = [need(at) for at in points]
        best = values.index(max(values))
        low, high = points[max(best - 1, 0)], points[min(best + 1, len(points) - 1)]
        points = [low + (high - low) * i / _PARTS for i in range(_PARTS + 1)]
    return max(points, key=need).limit_denominator(_FINEST)
