"""Claims about a mechanism's privacy: what they share, pure and approximate DP."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, TypeAlias, final

from flint import arb

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import (
    Pair,
    WorstCase,
    attained,
    only_bounded,
    refined,
    upper_bound,
)
from dpassay.accountant.core.validate import probability
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal, exact, floats_in_short
from dpassay.accountant.numbers.interval import (
    RELATIVE_WIDTH,
    START_PRECISION,
    Interval,
    enclose,
    ratio,
)
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs import invert
from dpassay.accountant.pairs.invert import hockey_stick, most, to_width
from dpassay.accountant.questions import profile
from dpassay.accountant.questions.profile import share
from dpassay.verifier.claims import Claim, Decision, Scope, compare, verdict_of
from dpassay.verifier.expression import Expression
from dpassay.verifier.verdict import Verdict

# --- Shared pieces of the claims about a mechanism's privacy --------------------------------------

Question: TypeAlias = Callable[[Sequence[Pair]], arb]
"""A function of some pairs, each of which answers to the width that it was asked for."""

VERDICT_WIDTH = Fraction(1, 10**15)
WIDTHS = tuple(Fraction(1, 10**digits) for digits in (6, 9, 15, 30))
"""Widths that are tried in turn, until a claim is decided, where digits take time."""
_COARSE = Fraction(1, 10**3)
"""A width that compositions on long grids reach where they do not reach the first of these."""
SHOWN_WIDTH = Fraction(1, 10**13)
"""Width of a number that is only shown: twelve digits."""
SEARCH_WIDTH = Fraction(1, 10**9)
LAW_PRECISION = 256
"""Bits of the laws that a witness is made of."""
_LINE = Interval(Decimal("-Infinity"), Decimal("Infinity"))
_LAST_PRECISION = 512
"""Bits of the last comparison before a claim is left undecided."""
EXCEEDS = {True: "does not exceed", False: "exceeds", None: "could not be distinguished from"}
"""What a true number does to the claimed one, by whether the claim holds."""
_WIDE = Context(prec=28, Emax=MAX_EMAX, Emin=MIN_EMIN)
_DOWN = Context(prec=4, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)
_SAME_DIGITS = 4
"""Digits to which a true number agrees with the claimed one before it is said to be equal."""


class PrivacyClaim(Claim, frozen=True, kw_only=True):
    """A claim about one mechanism; `mechanism` is its notation, with expressions as arguments."""

    mechanism: str

    def built(self, scope: Scope) -> Mechanism:
        """Return the mechanism of a case."""
        return scope.once("mechanism", lambda: Expression(self.mechanism).mechanism(scope))

    def worst(self, scope: Scope) -> WorstCase:
        """Return its worst pairs under the claimed adjacency."""
        return scope.once("worst", lambda: self.built(scope).worst_case(self.relation()))

    def event_at(self, scope: Scope, decision: Decision) -> ExactReal | None:
        """Return the ε of the event that shows a refutation; None where none is shown."""
        return None

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add the mechanism, why its pairs are worst, and to a refutation its event."""
        worst, shown = self.worst(scope), decision.witness
        at = self.event_at(scope, decision) if decision.verdict is Verdict.REFUTED else None
        if at is not None:
            shown = {**shown, **event(worst_at(worst.pairs(None), at), at)}
        about = {"mechanism": str(self.built(scope)), "worst_case": worst.reason}
        return dataclasses.replace(decision, witness={**about, **shown})


def reached(number: Question, pairs: Sequence[Pair], first: Fraction = VERDICT_WIDTH) -> Interval:
    """Enclose a number that is shown, as narrowly as the engines of the pairs allow.

    The verdict does not rest on it.
    """

    def widely() -> Interval:
        with ctx.workprec(_LAST_PRECISION):
            return Interval.of_ball(number(pairs))

    return profile.best(lambda width: _enclosed(number, pairs, width), first, widely, _LINE)


def _enclosed(number: Question, pairs: Sequence[Pair], width: Fraction) -> Interval:
    asked = to_width(pairs, width)
    return enclose(lambda: number(asked), relative_width=width)


def is_costly(pair: Pair) -> bool:
    """Whether digits of this pair take time, so that few are asked for first."""
    return pair.known.width() > RELATIVE_WIDTH


def first_width(pairs: Sequence[Pair]) -> Fraction:
    """Return the width to ask for where only the digits that are shown depend on it."""
    return WIDTHS[0] if any(is_costly(pair) for pair in pairs) else VERDICT_WIDTH


def at_most(
    number: Question, claimed: ExactReal, pairs: Sequence[Pair]
) -> tuple[Interval, bool | None]:
    """Enclose a number, and decide whether it is at most the claimed one.

    Where digits take time, more are asked for only while the claim is undecided.
    """
    if not any(is_costly(pair) for pair in pairs):
        return reached(number, pairs), compare(lambda: number(pairs), "<=", claimed.ball)
    value = reached(number, pairs, WIDTHS[0])
    known = value.relative_width
    wider = () if known is not None and known <= _COARSE else (_COARSE,)
    for width in (*wider, *WIDTHS[1:]):
        decided = by_ends(value, claimed)
        if decided is not None:
            return value, decided
        try:
            value = _enclosed(number, pairs, width)
        except UndecidedError:
            if width != _COARSE:
                break
    decided = by_ends(value, claimed)
    return value, compare(lambda: number(pairs), "<=", claimed.ball) if decided is None else decided


def by_ends(value: Interval, claimed: ExactReal) -> bool | None:
    """Whether every number of an enclosure is at most the claimed one; None if only some are."""
    with ctx.workprec(LAW_PRECISION):
        found, limit = value.ball(), claimed.ball()
        if found > limit:
            return False
    met = found <= limit or (value.upper.is_finite() and exact(value.upper) <= claimed)
    return True if met else None


def ends_of(refusal: UndecidedError) -> Interval:
    """Return the enclosure that a refusal carries; raise the refusal where it has none."""
    known = profile.reached(refusal)
    if known is None:
        raise refusal
    return known


def worst_at(pairs: Sequence[Pair], epsilon: ExactReal) -> Pair:
    """Return the attained pair with the largest H(ε), as far as balls can distinguish them."""
    best, *others = (attained(refined(pair, None), epsilon) for pair in pairs)
    for pair in others:
        found, most = (
            reached(lambda asked: hockey_stick(asked, epsilon), [each], WIDTHS[0])
            for each in (pair, best)
        )
        if found.lower > most.upper:
            best = pair
    return best


def law(pair: Pair) -> dict[str, object]:
    """Return the pair as plain data, its parameters enclosed to many digits."""
    with ctx.workprec(LAW_PRECISION):
        return pair.law()


def event_exceeds(pairs: Sequence[Pair], epsilon: ExactReal, over: Callable[[], arb]) -> bool:
    """Whether an event shows P(S) − e^ε Q(S) > `over` where the divergence H(ε) is only bounded.

    A ball that contains both bounds of H(ε) may not decide it.
    """
    if not any(only_bounded(pair) for pair in pairs):
        return False

    def excess() -> arb:
        tails = worst_at(pairs, epsilon).tails(epsilon)
        return tails.p_above - epsilon.ball().exp() * tails.q_above

    return compare(excess, "<=", over) is False


def event(pair: Pair, epsilon: ExactReal) -> dict[str, Any]:
    """Return the worst event {L > ε} with its law and both of its probabilities."""
    return {
        "fact": "event",
        "law": law(pair),
        "loss_above": str(epsilon),
        "description": pair.describe_event(epsilon),
        "p": _tail(lambda asked: asked.tails(epsilon).p_above, pair).to_json(),
        "q": _tail(lambda asked: asked.tails(epsilon).q_above, pair).to_json(),
    }


def _tail(tail: Callable[[Pair], arb], pair: Pair) -> Interval:
    """Enclose a tail that is shown; a slope of the profile is known less well than the profile."""

    def ask(width: Fraction) -> Interval:
        with contextlib.suppress(UndecidedError):
            return _enclosed(lambda asked: tail(asked[0]), [pair], width)
        with ctx.workprec(START_PRECISION):
            return Interval.of_ball(tail(refined(pair, width)))

    return profile.best(ask, first_width([pair]), lambda: profile.PROBABILITIES, _LINE)


def margin(true: Interval, claimed: ExactReal) -> dict[str, Interval]:
    """Return true/claimed and true − claimed."""
    known = claimed.rational
    if known is not None and true.lower == true.upper and true.lower.is_finite():
        exactly = Fraction(true.lower)
        result = {"difference": Interval.of_exact(exactly - known, 20)}
        if known > 0:
            result["factor"] = Interval.of_exact(exactly / known, 20)
        return result
    with ctx.workprec(LAW_PRECISION):
        value, bound = true.ball(), claimed.ball()
        result = {"difference": Interval.of_ball(value - bound, 20)}
        if claimed.sign > 0 and value.is_finite():
            factor = Interval.of_ball(value / bound, 20)
            least = factor.lower if true.lower < 0 else max(factor.lower, Decimal(0))
            result["factor"] = Interval(least, factor.upper)
    return result


def bounded(
    name: str,
    truth: bool | None,
    true: Interval,
    claimed: Mapping[str, ExactReal],
    reason: str,
    **more: Any,
) -> Decision:
    """Return the decision on whether a number, enclosed by `true`, is at most the claimed one.

    The reason ends with how far the claim is from tight, or from true.
    """
    differences = margin(true, claimed[name])
    return Decision(
        verdict=verdict_of(truth),
        true={name: true},
        claimed={key: str(number) for key, number in claimed.items()},
        margin=differences,
        reason=reason + describe_factor(differences.get("factor"), name),
        **more,
    )


def in_brackets(text: str) -> str:
    """Put brackets around an expression that is no single number or name."""
    return text if re.fullmatch(r"[\w.]+", text) else f"({text})"


def describe_factor(factor: Interval | None, what: str) -> str:
    """Say how far a true bound is from tight, or a false one from true."""
    if factor is None:
        return ""
    low, high = factor.lower, factor.upper
    if low == high == 1:
        return f" The claim is exact: a smaller {what} would be false."
    if low > 1:
        return f" The true {what} is {_short(factor)} times the claimed one."
    if high <= 0:
        return f" The true {what} is 0."
    if low <= 1 <= high and factor.digits >= _SAME_DIGITS:
        return f" The true {what} is the claimed one, to {int(factor.digits)} digits."
    if high < Decimal("1e-3"):
        loose = Interval.of_ball(1 / factor.ball(), 12) if low > 0 else None
        least = ratio(_DOWN.divide(Decimal(1), high))
        size = _short(loose) if loose is not None else f"more than {least}"
        return f" The claim is true but loose: it exceeds the true {what} by a factor of {size}."
    return f" The true {what} is {_short(factor)} of the claimed one."


def _short(value: Interval) -> str:
    if value.upper.is_finite() and _WIDE.compare(
        value.upper, _WIDE.multiply(value.lower, Decimal("1.01"))
    ) == Decimal(1):
        ends = (f"{end:.4g}".replace("e+", "e") for end in (value.lower, value.upper))
        return f"between {' and '.join(ends)}"
    middle = _WIDE.divide(_WIDE.add(value.lower, value.upper), Decimal(2))
    return ratio(middle) if middle.is_finite() else "∞"


# --- Pure ε-differential privacy ------------------------------------------------------------------


@final
class PureDP(PrivacyClaim, frozen=True, kw_only=True, tag="pure-dp"):
    """The mechanism is ε-DP: the privacy loss never exceeds ε. The δ of the claim is 0."""

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
        value = profile.decimal_max_loss(pairs) or reached(true, pairs)
        if truth is False and any(only_bounded(pair) for pair in pairs):
            truth = False if event_exceeds(pairs, claimed, lambda: arb(0)) else None
        numbers = {"epsilon": claimed, "delta": ExactReal.of_rational(0)}
        reason = _reason(truth, value, claimed)
        return bounded("epsilon", truth, value, numbers, reason)

    def event_at(self, scope: Scope, decision: Decision) -> ExactReal | None:
        """Return the claimed ε: the event is that of larger losses."""
        return Expression(self.epsilon).exact(scope)

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add the true δ."""
        found = super().explain(scope, decision)
        claimed, pairs = Expression(self.epsilon).exact(scope), self.worst(scope).pairs(None)
        delta = reached(lambda asked: hockey_stick(asked, claimed), pairs, first_width(pairs))
        return dataclasses.replace(found, true={**found.true, "delta": delta})


def _reason(truth: bool | None, value: Interval, claimed: ExactReal) -> str:
    """Say what is known of the largest privacy loss: its value, or two bounds."""
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
            f"The privacy loss comes arbitrarily close to {value}, but no event is known that "
            "shows more than the claimed epsilon."
        )
    if truth is None:
        return "The largest privacy loss could not be distinguished from the claimed epsilon."
    if truth:
        return f"The privacy loss never exceeds {value}."
    if not value.upper.is_finite():
        return "The privacy loss has no bound."
    return f"The privacy loss reaches {value}."


# --- (ε, δ)-differential privacy ------------------------------------------------------------------

_SWAPPED = 1000
"""If δ is this many times ε, the two are probably swapped."""

_BELOW_ZERO = (
    " Epsilon is below 0: this is a point of the privacy profile, P(S) ≤ e^epsilon Q(S) + delta "
    "with a factor below 1. It says more than (0, delta)-DP, and delta is at least 1 - e^epsilon."
)


@final
class ApproximateDP(PrivacyClaim, frozen=True, kw_only=True, tag="approximate-dp"):
    """The mechanism is (ε, δ)-DP: P(S) ≤ e^ε Q(S) + δ for every neighbouring pair and event S."""

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
        if truth is None and event_exceeds(pairs, eps, claimed.ball):
            truth = False
        numbers = {"epsilon": eps, "delta": claimed}
        because = _approximate_dp_reason(truth)
        if truth and eps.sign > 0 and eps * ExactReal.of_rational(_SWAPPED) <= claimed:
            other = floats_in_short(f"({claimed}, {eps})-DP")
            because += f" Epsilon comes first: if they are swapped, claim {other}."
        if eps.sign < 0:
            because += _BELOW_ZERO
        return bounded("delta", truth, value, numbers, because)

    def event_at(self, scope: Scope, decision: Decision) -> ExactReal | None:
        """Return the claimed ε."""
        return self.numbers(scope)[0]

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add the true ε at the claimed δ."""
        eps, claimed = self.numbers(scope)
        ask = profile.epsilon if eps.sign >= 0 else profile.signed_epsilon
        width = max(SHOWN_WIDTH, first_width(self.worst(scope).pairs(None)))
        true = dict(decision.true)
        with contextlib.suppress(UndecidedError):
            true["epsilon"] = ask(
                self.built(scope), claimed, adjacency=self.relation(), relative_width=width
            )
        return super().explain(scope, dataclasses.replace(decision, true=true))


def _met(pair: Pair, epsilon: ExactReal, claimed: ExactReal) -> bool:
    """Whether H(ε) is at most the claimed number: by what is known of it exactly, or in balls."""
    known = pair.known.exact(epsilon)
    if known is not None and known <= claimed:
        return True
    return compare(lambda: upper_bound(pair, epsilon), "<=", claimed.ball) is True


def _approximate_dp_reason(truth: bool | None) -> str:
    if truth is None:
        return "The claimed delta lies between the bounds of the exact one that were reached."
    if truth:
        return "The exact delta at the claimed epsilon does not exceed the claimed delta."
    return "An explicit event has P(S) > e^epsilon Q(S) + delta."
