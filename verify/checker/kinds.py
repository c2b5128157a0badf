"""What each kind of claim needs to be concluded: plain data for the independent checker.

`{name}` in a template stands for a field of the claim as it is written. In a conclusion, a bare
name is a fact, or a number that the claim states; in a requirement, `at_name` is the point (ε,
order or value of the variable) that the fact of that name is about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, final

from dpassay.verifier import seal
from dpassay.verifier.checker import optimum
from dpassay.verifier.checker.arithmetic import largest, least
from dpassay.verifier.checker.facts import mechanism
from dpassay.verifier.checker.language import Variables, evaluate, number, split
from dpassay.verifier.checker.laws import (
    Law,
    enveloped_renyi,
    enveloped_trade_off,
    hockey_stick,
    renyi,
    trade_off,
)
from dpassay.verifier.checker.mechanisms.neighbours import curves_between, enveloped, under
from dpassay.verifier.checker.mechanisms.pairs import pairs
from dpassay.verifier.checker.reals import UnknownError, compare
from dpassay.verifier.checker.suprema import bounded_rho, least_mu

OPPOSITE = {"<=": ">", "<": ">=", ">=": "<", ">": "<=", "==": "!=", "!=": "=="}


@final
@dataclass(frozen=True)
class Kind:
    """What must be shown for one kind of claim, when it is refuted and when it holds."""

    refuted: str
    holds: str
    refuting: Mapping[str, type] = field(default_factory=dict)
    """Facts by name, for a refutation."""
    confirming: Mapping[str, type] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    """Comparisons without which the conclusion says nothing about the claim."""
    to_refute: tuple[str, ...] = ()
    """More of them, for a refutation."""
    numbers: tuple[str, ...] = ()
    """Fields of the claim that are numbers and are stated in `claimed`."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """Texts in `claimed`."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The expressions that expression facts are about."""
    by_sweep_alone: bool = False
    """Whether a confirmation has no facts but the pieces of a sweep."""

    def wanted(self, claim: Mapping[str, Any], refuted: bool) -> Mapping[str, type]:
        """Return the type of each fact by its name."""
        expressions = dict.fromkeys(self.expressions(claim), seal.ExpressionFact)
        return {**expressions, **(self.refuting if refuted else self.confirming)}

    def expressions(self, claim: Mapping[str, Any]) -> dict[str, str]:
        """Return the expressions that facts are about, by the names of the facts."""
        return {
            name.format_map(claim): str(text.format_map(claim))
            for name, text in self.texts.items()
            if name.format_map(claim)
        }


def described(claim: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a claim, with defaults, and what follows from their text."""
    given: dict[str, Any] = {"tolerance": "0", "tail": "", "rate": "", "assume": [], "lemmas": []}
    given |= {name: {} for name in ("let", "where", "for_all")}
    more: dict[str, Any] = {}
    match claim["kind"]:
        case "relation":
            left, relation, right = split(claim["claim"])
            opposite = OPPOSITE[relation]
            more |= {"left": left, "relation": relation, "right": right, "opposite": opposite}
        case "printed-number":
            exponent = int(Decimal(claim["printed"]).as_tuple().exponent)
            more["half_unit"] = str(Fraction(10) ** exponent / 2)
        case "limit":
            other = claim.get("proof", {}).get("limit", "")
            more["third"] = "other" if other else "rate" if claim.get("rate") else ""
            more["third_text"] = other or claim.get("rate", "")
            more["within"] = "abs(value - limit) <= rate" if more["third"] == "rate" else ""
            more["beyond"] = "limit != other" if other else "abs(value - limit) > rate"
        case "monotone":
            falling = claim["direction"] == "decreasing"
            more |= {"right_way": ">" if falling else "<", "wrong_way": "<=" if falling else ">="}
        case "optimality":
            against = claim.get("competitor") or claim.get("rival")
            more["beside"] = "competitor" if against else "lower_bound"
            more["better"] = optimum.compared(claim).text
            slack = number(claim.get("tolerance", "0"))  # a conclusion is written with it
            more["raised"] = f"competitor*(1 + {claim['tolerance']})" if slack else "competitor"
    return {**given, **claim, **more}


_EVENT: dict[str, type] = {"event": seal.Event}
_HOCKEY: dict[str, type] = {"value": seal.HockeyStick}
_RENYI: dict[str, type] = {"value": seal.Renyi}
_GAUSSIAN: dict[str, type] = {"gaussian_delta": seal.HockeyStick}
_SWEEP: dict[str, type] = {"cuts": seal.Sweep}
_LOSS = "p - exp(epsilon)*q > "

KINDS: dict[str, Kind] = {
    "approximate-dp": Kind(
        f"{_LOSS}delta", "value <= delta", _EVENT, _HOCKEY,
        ("at == {epsilon}",), numbers=("epsilon", "delta"),
    ),
    "pure-dp": Kind(
        f"{_LOSS}0", "value <= 0", _EVENT, _HOCKEY,
        ("at == {epsilon}",), numbers=("epsilon",), shown={"delta": "0"},
    ),
    "gaussian-dp": Kind(
        f"{_LOSS}gaussian_delta", "value <= mu",
        {**_EVENT, **_GAUSSIAN}, {"value": seal.GaussianMu},
        to_refute=("at == at_gaussian_delta",), numbers=("mu",),
    ),
    "gaussian-dp by sweep": Kind(
        "", "value <= gaussian_delta", {}, {**_HOCKEY, **_GAUSSIAN, **_SWEEP},
        ("at == at_gaussian_delta",), numbers=("mu",),
    ),
    "renyi-dp": Kind(
        "value > epsilon", "value <= epsilon", _RENYI, _RENYI,
        ("at == {order}",), numbers=("order", "epsilon"),
    ),
    "zcdp": Kind(
        "value > rho*order", "value <= rho*order", _RENYI, _RENYI, ("at > 1",), numbers=("rho",)
    ),
    "profile": Kind(
        f"{_LOSS}bound", "value <= bound", _EVENT, {**_HOCKEY, **_SWEEP},
        ("at >= {low}", "at <= {high}"),
        shown={"bound": "{bound}", "epsilon": "[{low}, {high}]"},
    ),
    "tradeoff": Kind(
        "1 - p - (alpha - q)*(p_wide - p)/(q_wide - q) < bound", "bound <= beta",
        {**_EVENT, "wide": seal.Event, "alpha": seal.Point}, _SWEEP,
        to_refute=("alpha >= {low}", "alpha <= {high}", "q <= alpha", "alpha < q_wide"),
        shown={"bound": "{bound}", "alpha": "[{low}, {high}]"}, by_sweep_alone=True,
    ),
    "relation": Kind(
        "left {opposite} right", "left {relation} right",
        shown={"relation": "{claim}"}, texts={"left": "{left}", "right": "{right}"},
    ),
    "printed-number": Kind(
        "abs(value - {printed}) > {half_unit}", "abs(value - {printed}) <= {half_unit}",
        shown={"printed": "{printed}"}, texts={"value": "{expression}"},
    ),
    "monotone": Kind(
        "low {wrong_way} high", "low {right_way} high", requires=("at_low < at_high",),
        shown={"behaviour": "{direction} in {variable}"},
        texts=dict.fromkeys(("low", "high"), "{expression}"),
    ),
    "limit": Kind(
        "{beyond}", "{within}",
        requires=("at == at_limit", "at_limit == at_rate", "at_limit == at_other"),
        shown={"limit": "{limit}", "rate": "{rate}"},
        texts={"value": "{expression}", "limit": "{limit}", "{third}": "{third_text}"},
    ),
    "minimiser": Kind(
        "best > rival", "best <= rival", requires=("at_best == {claimed}",),
        shown={"minimiser": "{variable} = {claimed}"},
        texts=dict.fromkeys(("best", "rival"), "{expression}"),
    ),
    "optimality": Kind(
        "{raised} < value", "value <= lower_bound*(1 + {tolerance})",
        shown={"optimal": "{value}"}, texts={"value": "{value}", "{beside}": "{better}"},
    ),
}  # fmt: skip
"""A claim of Gaussian DP has two forms: by the exact μ, and by a sweep over ε."""


def needed(
    kind: Kind, claim: Mapping[str, Any], scope: Variables, cuts: Sequence[Any]
) -> list[dict[str, Any]]:
    """Return the rows of facts that a confirmation needs, recomputed from the claim alone.

    What lies below another law needs nothing of its own. Evaluated at flint's precision. Raises
    UnknownError where the checker does not know the law.
    """

    def given(name: str) -> Any:
        return number(evaluate(claim[name], scope))

    noise = None
    if "mechanism" in claim:
        noise = under(mechanism(claim["mechanism"], scope), claim.get("adjacency"))
    laws = [] if noise is None else pairs(noise)
    below = [low for law in laws if law["law"] == "between" for low in law["factors"][:-1]]
    laws = [law for law in laws if not any(law is low for low in below)]
    together = noise is not None and enveloped(noise)
    if together and claim["kind"] == "zcdp":
        raise ValueError("no pair of this mechanism has the largest divergence")
    match claim["kind"]:
        case "renyi-dp" if together:
            return [{"value": enveloped_renyi(laws, given("order"))}]
        case "tradeoff" if cuts and noise is not None and curves_between(noise):
            return _swept(claim, laws, cuts, given, enveloped_trade_off)
        case "gaussian-dp" | "profile" | "tradeoff" if cuts:
            return _swept(claim, laws, cuts, given)
        case "approximate-dp" | "pure-dp":
            return [{"value": hockey_stick(law, given("epsilon"))} for law in laws]
        case "gaussian-dp":
            return [{"value": least_mu(law, given("mu"))} for law in laws]
        case "renyi-dp":
            return [{"value": renyi(law, given("order"))} for law in laws]
        case "zcdp":
            bounds = [bounded_rho(law, given("rho")) for law in laws]
            return [{"value": bound, "order": Fraction(1)} for bound in bounds]
    expressions = kind.expressions(claim)
    if "at" not in claim:
        return [{name: number(evaluate(text, scope)) for name, text in expressions.items()}]
    points = [number(point) for point in claim["at"]]
    rows: list[dict[str, Any]]
    match claim["kind"]:
        case "monotone":
            rows = [{"low": low, "high": high} for low, high in pairwise(points)]
        case "minimiser":
            best = given("claimed")
            rows = [{"best": best, "rival": point} for point in points if point != best]
        case _:
            rows = [dict.fromkeys(expressions, point) for point in points]
    return [
        {
            name: number(evaluate(expressions[name], scope.but(**{claim["variable"]: point})))
            for name, point in row.items()
        }
        for row in rows
    ]


def refuting(
    claim: Mapping[str, Any],
    scope: Variables,
    row: Mapping[str, Any],
    index: int,
    chosen: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what a refutation of a claim about a mechanism needs, recomputed from the claim alone.

    `row` has the point of the facts: a loss ε, a level α or an order, where the claim names none.
    The pair with that index is enough, at the event that is chosen where it has several. H(ε) takes
    the place of P(L > ε) − e^ε Q(L > ε).
    """
    kind = claim["kind"]
    if "mechanism" not in claim:
        return {}
    noise = under(mechanism(claim["mechanism"], scope), claim.get("adjacency"))
    law = {**pairs(noise)[index], **chosen}
    if kind in ("renyi-dp", "zcdp"):
        order = number(evaluate(claim["order"], scope)) if kind == "renyi-dp" else row["order"]
        return {"value": renyi(law, order)}
    if kind == "tradeoff":
        alpha = row["alpha"]
        power = 1 - trade_off(law, alpha)
        return {"p": power, "q": alpha, "p_wide": power, "q_wide": alpha + 1}
    named = kind in ("approximate-dp", "pure-dp")
    epsilon = number(evaluate(claim["epsilon"], scope)) if named else row["epsilon"]
    found = {"p": hockey_stick(law, epsilon), "q": Fraction(0)}
    if kind == "gaussian-dp":
        target = {"law": "gaussian", "mu": number(evaluate(claim["mu"], scope))}
        found["gaussian_delta"] = hockey_stick(target, epsilon)
    return found


def _swept(
    claim: Mapping[str, Any],
    laws: list[Law],
    cuts: Sequence[Any],
    given: Callable[[str], Any],
    beta: Callable[[list[Law], Any], Any] | None = None,
) -> list[dict[str, Any]]:
    """Return a row for each piece of a sweep: each curve at the end where it is worse."""
    beta = beta or (lambda laws, alpha: least([trade_off(law, alpha) for law in laws]))

    def delta(epsilon: Any) -> Any:
        return largest([hockey_stick(law, epsilon) for law in laws])

    pieces = list(pairwise(cuts)) or [(cuts[0], cuts[0])]
    if claim["kind"] == "gaussian-dp":
        left = delta(cuts[-1])
        if compare(left, "==", Fraction(0)) is None:
            raise UnknownError("that no loss is beyond the last point")
        whole = cuts[0] == 0 and left == 0
        target = {"law": "gaussian", "mu": given("mu")}
        rows = [{"value": delta(a), "gaussian_delta": hockey_stick(target, b)} for a, b in pieces]
    else:
        whole = (cuts[0], cuts[-1]) == (given("low"), given("high"))
        if claim["kind"] == "profile":
            rows = [{"value": delta(a), "epsilon": b} for a, b in pieces]
        else:
            rows = [{"alpha": a, "beta": beta(laws, b)} for a, b in pieces]
    if not whole or list(cuts) != sorted(cuts):
        raise ValueError("the sweep does not cover the range")
    return rows
