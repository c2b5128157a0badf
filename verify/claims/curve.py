"""Claims about whole curves: a bound on the profile δ(ε), or on the trade-off function β(α)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

from flint import arb

from dpassay.accountant.core.validate import rational
from dpassay.accountant.errors import BetweenError, InvalidInputError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import START_PRECISION, Interval, ball, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.invert import hockey_stick, to_width
from dpassay.accountant.questions import tradeoff
from dpassay.verifier.claim import Decision, Scope, verdict_of
from dpassay.verifier.claims.privacy import (
    SEARCH_WIDTH,
    VERDICT_WIDTH,
    PrivacyClaim,
    event,
    margin,
    worst_at,
)
from dpassay.verifier.expression import Expression
from dpassay.verifier.verdict import Verdict

"""Interval sweeps: an inequality between monotone functions proved on a whole half-line."""

_PRECISION = 192
"""Bits of both sides on a piece of the range."""
_MAX_PIECES = 20_000
"""Pieces of a range that are bounded before it is left undecided."""
_FINEST = 1 << 64
"""Of a range that is cut into so small pieces, one is where the two curves are not told apart."""
_POINTS, _STEP = 256, Fraction(1, 32)
"""Where a refutation is looked for on a range without an end."""


@dataclass(frozen=True)
class Bound:
    """A monotone function of one exact variable, with values in balls."""

    at: Callable[[ExactReal], arb]
    falling: bool = True
    over: Callable[[arb], arb] | None = None
    """The values over a whole ball: with it, nothing is taken from the function being monotone."""

    def largest(self, low: Fraction, high: Fraction) -> arb:
        """Return its largest value on [low, high], or a ball around all its values there."""
        if self.over is not None:
            return self.over(ball(low).union(ball(high)))
        return self.at(ExactReal.of_rational(low if self.falling else high))

    def smallest(self, low: Fraction, high: Fraction) -> arb:
        """Return its smallest value on [low, high], or a ball around all its values there."""
        if self.over is not None:
            return self.over(ball(low).union(ball(high)))
        return self.at(ExactReal.of_rational(high if self.falling else low))


@final
@dataclass(frozen=True)
class Swept:
    """What a sweep found."""

    truth: bool | None
    pieces: int
    point: ExactReal | None = None
    """Where the inequality certainly fails."""

    def reason(self, bound: str) -> str:
        """Say what was found."""
        if self.truth:
            return f"The value stays below {bound} on every piece of the range."
        if self.truth is False:
            return f"The value exceeds {bound} at {self.point}."
        return f"The sweep did not separate the value from {bound} within {self.pieces} pieces."


def prove_below(
    value: Bound,
    limit: Bound,
    *,
    start: Fraction = Fraction(0),
    end: Callable[[], arb] | Fraction,
    hints: Callable[[], Sequence[Fraction] | None] = lambda: None,
    at_hints: Callable[[ExactReal], arb] | None = None,
) -> Swept:
    """Decide value ≤ limit on [start, end]; beyond a finite ball `end`, value is 0.

    Each piece [a, b] is proved by value's largest against limit's smallest value on it, else
    halved; one point where value certainly exceeds limit refutes. `start` is at most
    `end`. Without a finite end only a refutation is looked for: at the `hints` where there are some
    (none of them: estimates speak for the claim), else (None) at points of a grid. At hints the
    value may be a rougher one.
    """
    with ctx.workprec(_PRECISION):
        stop = end if isinstance(end, Fraction) else _finite_end(end())
        if stop is None:
            points = hints()
            if points is not None:
                with ctx.workprec(START_PRECISION):
                    return _refute(at_hints or value.at, limit, points)
            return _refute(value.at, limit, [start + i * _STEP for i in range(_POINTS)])
        pieces = [(start, stop)]
        for count in range(1, _MAX_PIECES + 1):
            if not pieces:
                return Swept(True, count - 1)
            low, high = pieces.pop()
            if value.largest(low, high) <= limit.smallest(low, high):
                continue
            middle = (low + high) / 2
            point = ExactReal.of_rational(middle)
            if value.at(point) > limit.at(point):
                return Swept(False, count, point)
            if high - low <= (stop - start) / _FINEST:
                return Swept(None, count)
            pieces += [(middle, high), (low, middle)]
    return Swept(None, _MAX_PIECES)


def _refute(value: Callable[[ExactReal], arb], limit: Bound, points: Sequence[Fraction]) -> Swept:
    """Look for a point where value certainly exceeds limit: nothing else is known."""
    for count, point in enumerate(map(ExactReal.of_rational, points), 1):
        if value(point) > limit.at(point):
            return Swept(False, count, point)
    return Swept(None, len(points))


def _finite_end(ball: arb) -> Fraction | None:
    """Return a rational just above a finite ball, None for an infinite one."""
    if not ball.is_finite():
        return None
    return Fraction(Interval.of_ball(ball, 20).upper)


_HALVINGS = 24
"""The two tests of a refuted trade-off bound are 2^-24 apart, in ε."""


class CurveClaim(PrivacyClaim, frozen=True, kw_only=True):
    """Shared by bounds on curves: `bound` is an expression, `low` and `high` its range."""

    written: ClassVar = ("mechanism", "low", "high")
    bound: str
    low: str
    high: str

    def has_range(self) -> bool:
        """Return True: the claim is about a whole curve."""
        return True

    def ranging(
        self, kind: str, variable: str, verdict: Verdict, asked: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return what a certificate states, with the variable of the curve between the ends."""
        data = super().certified(verdict)
        ranges = {**data.get("for_all", {}), variable: {"low": self.low, "high": self.high}}
        return {**data, "kind": kind, "for_all": ranges, **asked}

    def span(self, scope: Scope) -> tuple[Fraction, Fraction]:
        """Return the ends of the range, rational and in order."""
        low = rational("low", Expression(self.low).exact(scope))
        high = rational("high", Expression(self.high).exact(scope))
        if low > high:
            raise InvalidInputError(f"Expected low={low} ≤ high={high}. Give a range of points.")
        return low, high

    def limit(self, scope: Scope, variable: str) -> Bound:
        """Return the claimed curve, by its values over balls of its variable.

        A curve with no such values (it asks a mechanism at an exact point) must not increase,
        and is asked for at the ends of each piece; an increase that is met is an error.
        """
        expression = Expression(self.bound)

        def at(point: ExactReal | arb) -> arb:
            return expression.ball(Scope({**scope.variables, variable: point}, self.let))

        low, high = self.span(scope)
        try:
            at(ball(low).union(ball(high)))
        except InvalidInputError:
            return Falling(at)
        return Bound(at, over=at)


@final
class Falling(Bound):
    """A curve that is claimed not to increase, and watched for it."""

    def smallest(self, low: Fraction, high: Fraction) -> arb:
        """Return the value at the upper end, which must not exceed the one at the lower end."""
        return self._watched(low, high)[1]

    def largest(self, low: Fraction, high: Fraction) -> arb:
        """Return the value at the lower end, which must not fall short of the one at the upper."""
        return self._watched(low, high)[0]

    def _watched(self, low: Fraction, high: Fraction) -> tuple[arb, arb]:
        first, last = (self.at(ExactReal.of_rational(end)) for end in (low, high))
        if first < last:
            raise InvalidInputError(
                f"Expected a bound that does not increase; it does between {float(low):.6g} and "
                f"{float(high):.6g}. Claim it on ranges where it does not."
            )
        return first, last


@final
class ProfileBound(CurveClaim, frozen=True, kw_only=True, tag="profile"):
    """δ(ε) ≤ bound(ε) for every ε in [low, high]."""

    def assertion(self) -> str:
        """Say what the profile is bounded by."""
        return (
            f"delta(epsilon) of {self.mechanism} is at most {self.bound} for every epsilon in "
            f"[{self.low}, {self.high}]"
        )

    def certified(self, verdict: Verdict) -> dict[str, Any]:
        """Say it as (epsilon, bound)-DP for every epsilon."""
        asked = {"epsilon": "epsilon", "delta": self.bound}
        return self.ranging("approximate-dp", "epsilon", verdict, asked)

    def refuted_at(self, witness: Mapping[str, Any]) -> dict[str, str]:
        """Return the epsilon."""
        return {"epsilon": str(witness.get("epsilon", ""))}

    def decide(self, scope: Scope) -> Decision:
        """Prove or refute by an interval sweep."""
        pairs = self.worst(scope).pairs(None)
        limit = self.limit(scope, "epsilon")
        low, high = self.span(scope)
        profile = Bound(lambda eps: hockey_stick(pairs, eps), falling=True)
        asked = to_width(pairs, VERDICT_WIDTH)
        shown = Bound(lambda eps: hockey_stick(asked, eps), falling=True)
        return _decision(prove_below(profile, limit, start=low, end=high), shown, limit, self)

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add why the pair is worst, and to a refutation the event at its ε."""
        if decision.verdict is not Verdict.REFUTED:
            return dataclasses.replace(decision, witness=self.witness(scope, decision.witness))
        eps = Expression(str(decision.witness["epsilon"])).exact(scope)
        pair = worst_at(self.worst(scope).pairs(None), eps)
        shown = event(pair, eps)
        return dataclasses.replace(decision, witness=self.witness(scope, shown, epsilon=str(eps)))


@final
class TradeoffBound(CurveClaim, frozen=True, kw_only=True, tag="tradeoff"):
    """β(α) ≥ bound(α) for every α in [low, high]."""

    def assertion(self) -> str:
        """Say what the trade-off function is bounded by."""
        return (
            f"beta(alpha) of {self.mechanism} is at least {self.bound} for every alpha in "
            f"[{self.low}, {self.high}]"
        )

    def certified(self, verdict: Verdict) -> dict[str, Any]:
        """Say it as a comparison of errors for every alpha."""
        claim = {"claim": f"beta({self.mechanism}, alpha) >= {self.bound}"}
        return self.ranging("relation", "alpha", verdict, claim)

    def refuted_at(self, witness: Mapping[str, Any]) -> dict[str, str]:
        """Return the alpha."""
        return {"alpha": str(witness.get("alpha", ""))}

    def decide(self, scope: Scope) -> Decision:
        """Prove or refute by an interval sweep: the claimed bound must stay below β."""
        mechanism, relation = self.built(scope), self.relation()

        def beta(level: ExactReal) -> arb:
            try:
                return tradeoff.beta(
                    mechanism, level, adjacency=relation, relative_width=SEARCH_WIDTH
                ).ball()
            except BetweenError as bounds:
                return Interval(bounds.lower, bounds.upper).ball()

        claimed = self.limit(scope, "alpha")
        curve = Bound(beta, falling=True)
        low, high = self.span(scope)
        return _decision(prove_below(claimed, curve, start=low, end=high), curve, claimed, self)

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add why the pair is worst."""
        return dataclasses.replace(decision, witness=self.witness(scope, decision.witness))


def _decision(swept: Swept, curve: Bound, limit: Bound, claim: CurveClaim) -> Decision:
    """Turn a sweep into a decision; at the failing point, give both values."""
    name, value = ("epsilon", "delta") if claim.kind == "profile" else ("alpha", "beta")
    width = VERDICT_WIDTH if claim.kind == "profile" else SEARCH_WIDTH
    true, differences, witness = {}, {}, {}
    if swept.point is not None:
        point = swept.point
        true[value] = enclose(lambda: curve.at(point), relative_width=width)
        bound = enclose(lambda: limit.at(point), relative_width=VERDICT_WIDTH)
        true["bound"] = bound
        differences = margin(true[value], ExactReal.of_rational(Fraction(bound.lower)))
        witness = {name: str(point)}
    return Decision(
        verdict=verdict_of(swept.truth),
        true=true,
        claimed={"bound": claim.bound, name: f"[{claim.low}, {claim.high}]"},
        margin=differences,
        witness=witness,
        reason=swept.reason("the claimed curve" if value == "delta" else "the true curve"),
        route=f"interval sweep, {swept.pieces} pieces",
    )
