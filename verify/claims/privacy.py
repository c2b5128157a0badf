"""Shared pieces of the claims about a mechanism's privacy."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any

from flint import arb

from accountant.composition.saddle_pair import SmoothPair
from accountant.errors import UndecidedError
from accountant.interval import START_PRECISION, Interval, enclose, narrowed
from accountant.mechanism import Mechanism
from accountant.number import ExactReal
from accountant.pair import Pair, WorstCase
from accountant.precision import ctx
from accountant.profile import hockey_stick
from verify.claim import Claim, Scope
from verify.expression import Expression

VERDICT_WIDTH = Fraction(1, 10**15)
_WIDER = tuple(Fraction(1, 10**digits) for digits in (9, 6, 3, 1))
_FLOATS_WIDTH = Fraction(1, 10**11)
"""A width that sums in floats reach as a rule."""
FACT_WIDTH = Fraction(1, 10**30)
"""Width of what a certificate states: enough to decide a claim that is nearly met."""
_FEW = 100
SEARCH_WIDTH = Fraction(1, 10**9)
LAW_PRECISION = 256
_LAST_PRECISION = 512
_WIDE = Context(prec=12, Emax=MAX_EMAX, Emin=MIN_EMIN)


class PrivacyClaim(
    Claim, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A claim about one mechanism; `mechanism` is its notation, with expressions as arguments."""

    mechanism: str

    def expressions(self) -> dict[str, str]:
        """Return the mechanism and the named sub-expressions."""
        return {"mechanism": self.mechanism, **super().expressions()}

    def built(self, scope: Scope) -> Mechanism:
        """Return the mechanism of a case."""
        return Expression(self.mechanism).mechanism(scope)

    def worst(self, scope: Scope) -> WorstCase:
        """Return its worst pairs under the claimed adjacency."""
        return self.built(scope).worst_case(self.relation())


def reached(compute: Callable[[], arb], first: Fraction = VERDICT_WIDTH) -> Interval:
    """Enclose a number that is shown, as narrow as its engine reaches.

    The verdict is decided apart, by signs: a wide enclosure may decide it too.
    """
    for width in (first, *_WIDER):
        try:
            return enclose(compute, relative_width=width)
        except UndecidedError:
            continue
    with ctx.workprec(_LAST_PRECISION):
        return Interval.of_ball(compute())


def worst_at(pairs: Sequence[Pair], epsilon: ExactReal) -> Pair:
    """Return the pair with the largest H(ε), as far as balls can tell them apart."""
    best = pairs[0]
    for pair in pairs[1:]:
        if hockey_stick([pair], epsilon) > hockey_stick([best], epsilon):
            best = pair
    return best.attained(epsilon)


def law(pair: Pair) -> dict[str, object]:
    """Return the pair as plain data, its parameters enclosed to many digits."""
    with ctx.workprec(LAW_PRECISION):
        return pair.law()


def event(pair: Pair, epsilon: ExactReal) -> dict[str, Any]:
    """Return the worst event {L > ε} with both probabilities: a checkable fact.

    They are enclosed as narrowly as the engine of the pair reaches.
    """
    width = _fact_width(pair)
    p = _tail(lambda: pair.tails(epsilon).p_above, width)
    q = _tail(lambda: pair.tails(epsilon).q_above, width)
    return {
        "fact": "event",
        "name": "event",
        "law": law(pair),
        "loss_above": str(epsilon),
        "description": pair.describe_event(epsilon),
        "p": p.to_json(),
        "q": q.to_json(),
    }


def _fact_width(pair: Pair) -> Fraction:
    """Return the width to ask for: few subsampled releases take minutes for thirty digits."""
    if isinstance(pair, SmoothPair) and pair.is_mixed():
        few = sum(count for _, count in pair.factors) <= _FEW
        return VERDICT_WIDTH if few else FACT_WIDTH
    return FACT_WIDTH


def _tail(compute: Callable[[], arb], width: Fraction) -> Interval:
    """Enclose a tail that is shown; one from slopes is wider than the profile that it is from."""
    try:
        return enclose(compute, relative_width=width)
    except UndecidedError as error:
        refusal = error
    for wider in (_FLOATS_WIDTH, *_WIDER):
        with ctx.workprec(START_PRECISION), narrowed(wider):
            try:
                return Interval.of_ball(compute())
            except UndecidedError as error:
                refusal = error
    raise refusal


def hockey(pair: Pair, epsilon: ExactReal, name: str = "value") -> dict[str, Any]:
    """Return H(ε) of a pair, enclosed as narrowly as its engine reaches: a checkable fact."""
    value = reached(lambda: pair.hockey_stick(epsilon), _fact_width(pair))
    return {
        "fact": "hockey-stick",
        "name": name,
        "law": law(pair),
        "epsilon": str(epsilon),
        "value": value.to_json(),
    }


def shown(fact: dict[str, Any]) -> dict[str, Any]:
    """Return a fact as a witness shows it, without the name that only a certificate uses."""
    return {key: value for key, value in fact.items() if key != "name"}


def margin(true: Interval, claimed: ExactReal) -> dict[str, Interval]:
    """Return true/claimed and true − claimed."""
    with ctx.workprec(LAW_PRECISION):
        value, bound = true.ball(), claimed.ball()
        result = {"difference": Interval.of_ball(value - bound, 20)}
        if claimed.sign > 0 and value.is_finite():
            result["factor"] = Interval.of_ball(value / bound, 20)
    return result


def in_brackets(text: str) -> str:
    """Put an expression of more than one number or name in brackets, to stand before a hyphen."""
    return text if re.fullmatch(r"[\w.]+", text) else f"({text})"


def describe_factor(factor: Interval | None, what: str) -> str:
    """Say how far a true bound is from tight, or a false one from true."""
    if factor is None:
        return ""
    low, high = factor.lower, factor.upper
    if low > 1:
        return f" The true {what} is {_short(factor)} times the claimed one."
    if high <= 0:
        return f" The true {what} is 0."
    if high < Decimal("1e-3"):
        loose = Interval.of_ball(1 / factor.ball(), 12) if low > 0 else None
        least = _WIDE.divide(Decimal(1), high)
        size = _short(loose) if loose is not None else f"more than {least:.3g}"
        return f" The claim is true but loose: it exceeds the true {what} by a factor of {size}."
    return f" The true {what} is {_short(factor)} of the claimed one."


def _short(value: Interval) -> str:
    if value.upper.is_finite() and _WIDE.compare(
        value.upper, _WIDE.multiply(value.lower, Decimal("1.01"))
    ) == Decimal(1):
        return f"between {value.lower:.4g} and {value.upper:.4g}"
    middle = _WIDE.divide(_WIDE.add(value.lower, value.upper), Decimal(2))
    return f"{middle:.4g}" if middle.is_finite() else "∞"


def unless_undecided(compute: Any) -> Interval | None:
    """Return an enclosure, or None where the ladder does not reach it (reported as absent)."""
    try:
        result: Interval = compute()
    except UndecidedError:
        return None
    return result
