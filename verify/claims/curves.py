"""Claims that are proved by more than one number: curves δ(ε) and β(α), μ-GDP, ρ-zCDP, Rényi DP."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from flint import arb

from dpassay.accountant.composition.product import is_numerical
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.core.validate import rational
from dpassay.accountant.errors import (
    BetweenError,
    InvalidInputError,
    NotApplicableError,
    UndecidedError,
    expected,
)
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import (
    RELATIVE_WIDTH,
    START_PRECISION,
    Interval,
    ball,
    enclose,
)
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.invert import hockey_stick, most, to_width
from dpassay.accountant.questions import guarantees, tradeoff
from dpassay.accountant.questions.least_mu import bounds, exact_mu, limiting_mu, needed
from dpassay.verifier.claims import Decision, Scope, compare, verdict_of
from dpassay.verifier.claims.privacy import (
    EXCEEDS,
    SEARCH_WIDTH,
    VERDICT_WIDTH,
    PrivacyClaim,
    bounded,
    by_ends,
    ends_of,
    first_width,
    in_brackets,
    margin,
    reached,
)
from dpassay.verifier.expression import Expression
from dpassay.verifier.verdict import Verdict

# --- Interval sweeps: an inequality between monotone functions proved on a whole half-line --------

_PRECISION = 192
"""Bits of both sides on a piece of the range."""
_MAX_PIECES = 20_000
"""Pieces of a range that are bounded before it is left undecided."""
_FINEST = 1 << 64
"""A piece that is the range over this number is not halved again: the sides are left undecided."""
_POINTS, _STEP = 256, Fraction(1, 32)
"""Points of the grid, and their distance, at which a range without an end is tried."""


@dataclass(frozen=True)
class Bound:
    """A monotone function of one exact variable, with values in balls."""

    at: Callable[[ExactReal], arb]
    falling: bool = True
    over: Callable[[arb], arb] | None = None
    """The values over a ball. If it is given, that the function is monotone is not used."""

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
    """Decide value ≤ limit on [start, end], start ≤ end.

    A piece of the range is proved if the largest value on it is at most the smallest limit; else
    it is halved. A point at which the value certainly exceeds the limit refutes. The value must be
    0 beyond `end` where that is a finite ball. Where it is infinite only a refutation is tried: at
    the points that `hints` returns, with `at_hints` in place of the value if it is given; or, where
    `hints` returns None, at the points of a grid.
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
    """Look for a point where the value certainly exceeds the limit."""
    for count, point in enumerate(map(ExactReal.of_rational, points), 1):
        if value(point) > limit.at(point):
            return Swept(False, count, point)
    return Swept(None, len(points))


def _finite_end(ball: arb) -> Fraction | None:
    """Return a rational just above a finite ball, None for an infinite one."""
    if not ball.is_finite():
        return None
    return Fraction(Interval.of_ball(ball, 20).upper)


class CurveClaim(PrivacyClaim, frozen=True, kw_only=True):
    """Shared by bounds on curves: `bound` is an expression, `low` and `high` its range."""

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
        """Return the claimed curve as a function of balls.

        A curve that asks a mechanism, which takes exact numbers only, is evaluated at the ends of
        pieces: it must not increase, and an increase that shows is an error.
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
    """A curve that must not increase; an increase between two points raises an error."""

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

    def event_at(self, scope: Scope, decision: Decision) -> ExactReal | None:
        """Return the ε at which the profile is too large."""
        return exact(decision.witness["epsilon"])


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


_RHO_WIDTHS = (Fraction(1, 10**4), Fraction(1, 10**8))


@final
class RenyiDP(PrivacyClaim, frozen=True, kw_only=True, tag="renyi-dp"):
    """The Rényi divergence of the given order, in both directions, is at most ε."""

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
        except UndecidedError as refusal:
            value = ends_of(refusal)
        truth = by_ends(value, claimed)
        rho = mechanism.exact_rho(self.relation())
        if rho is not None and rho * order <= claimed:  # D_a ≤ ρ a: met with equality
            truth = True
        reason = f"The exact epsilon {EXCEEDS[truth]} the claimed one."
        return bounded("epsilon", truth, value, {"epsilon": claimed, "order": order}, reason)


@final
class ZeroConcentratedDP(PrivacyClaim, frozen=True, kw_only=True, tag="zcdp"):
    """The mechanism is ρ-zCDP: D_a ≤ ρ·a for every order a > 1, in both directions."""

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
            except UndecidedError as refusal:
                value = ends_of(refusal)
                break
            if by_ends(value, claimed) is not None:
                break
        truth = by_ends(value, claimed)
        known = mechanism.exact_rho(self.relation())
        if known is not None:  # decides a claim that is met with equality
            truth = known <= claimed
        reason = f"The exact rho {EXCEEDS[truth]} the claimed one."
        return bounded("rho", truth, value, {"rho": claimed}, reason)


# --- μ-Gaussian differential privacy --------------------------------------------------------------

_HINTS = 20
"""Estimates are compared at ε from 2^{-_HINTS/2} to 2^{_HINTS}, in steps of about √2."""
_MOST_HINTS = 5
"""Points at which a refutation is tried; each costs an enclosure."""
_CLEAR = 1e-3
"""By how much the estimate of ln δ must exceed that of ln δ_μ at such a point."""
_HINT_BITS = 128
"""Bits of these estimates where they are not floats."""
_MOST_DENOMINATOR = 1 << 40
"""Largest denominator of a point."""
_GRID, _REFINED, _PARTS = 32, 3, 8
"""Points of a grid, how often it is refined, and into how many parts."""
_WIDTHS = (Fraction(1, 10**6), Fraction(1, 10**8))
"""Relative widths of the least μ, compared with a claim."""
_ROUGH = Fraction(1, 1000)
"""Relative width of a δ that is compared at such a point."""


@final
class GaussianDP(PrivacyClaim, frozen=True, kw_only=True, tag="gaussian-dp"):
    """Every pair of neighbours is at least as hard to distinguish as N(μ, 1) from N(0, 1)."""

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
            value = ends_of(refusal)
        own = mechanism.exact_gaussian_mu(self.relation())
        if own is not None:  # decides a claim that is met with equality
            truth: bool | None = own <= claimed
        else:
            truth = compare(lambda: mechanism.gaussian_mu(self.relation()), "<=", claimed.ball)
        reason = f"The mechanism is exactly mu-GDP, and its mu {EXCEEDS[truth]} the claimed one."
        route, at = "the exact mu, in balls", {"epsilon": "0"} if truth is False else {}
        return bounded("mu", truth, value, {"mu": claimed}, reason, route=route, witness=at)

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
            words = words if more else "could not be distinguished from the claimed one"
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

    def event_at(self, scope: Scope, decision: Decision) -> ExactReal | None:
        """Return the ε of the sweep; by the exact μ, 0."""
        return exact(decision.witness["epsilon"])


def _least_mu(pairs: Sequence[Pair], claimed: ExactReal) -> tuple[Interval | None, bool, bool]:
    """Return the least μ, whether it is at most the claimed one, and whether a limit decides it.

    Of some losses only bounds are known, and of others nothing: then it is None.
    """
    own = exact_mu(pairs)
    if own is not None:  # decides a claim that is met with equality
        return enclose(own.ball), own <= claimed, True
    in_the_limit, value = limiting_mu(pairs) is not None, None
    for width in _WIDTHS:
        try:
            value = bounds(pairs, width)
        except (NotApplicableError, UndecidedError):
            break
        truth = by_ends(value, claimed)
        if truth:
            return value, True, in_the_limit
        if truth is False or (value.relative_width or 0) > width:
            break
    return value, False, in_the_limit


def _standard(mu: ExactReal) -> Gaussian:
    return Gaussian(standard_deviation=1, l2_sensitivity=mu)


def hints(
    pairs: Sequence[Pair], target: Pair, *, where: ExactReal | None = None
) -> list[Fraction] | None:
    """Return ε at which estimates of δ exceed δ_μ, in increasing order; None without estimates.

    The range is wide, as samples of Gaussian releases exceed δ_μ at large ε only. `where` is a μ
    that is known to be exceeded somewhere: if the estimates show no such ε, the answer is an ε at
    which δ needs nearly the largest μ.
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
    return max(points, key=need).limit_denominator(_MOST_DENOMINATOR)
