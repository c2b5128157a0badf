"""Claims about how a quantity behaves: monotone in, converges to, is least at."""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction
from functools import partial
from typing import ClassVar, Literal, final

from flint import arb

from accountant.errors import InvalidInputError
from accountant.interval import Interval, enclose
from accountant.number import ExactReal, exact
from verify.claim import Claim, Decision, Scope, compare
from verify.claims.privacy import VERDICT_WIDTH
from verify.domain import Range, Scalar
from verify.expression import Expression
from verify.verdict import Verdict


class Behaviour(Claim, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Shared by claims about `expression` as a function of `variable`, looked at `at` points."""

    expression: str
    variable: str
    at: list[Scalar]
    """Where it is looked at."""
    over: Range | None = None
    """What the variable ranges over."""

    def expressions(self) -> dict[str, str]:
        """Return the named sub-expressions (`expression` has its own free variable)."""
        return super().expressions()

    def points(self) -> list[Fraction]:
        """Return the points, which must be increasing rationals."""
        points = [exact(value, f"at[{i}]").rational for i, value in enumerate(self.at)]
        rational = [point for point in points if point is not None]
        if len(rational) != len(points) or rational != sorted(set(rational)) or len(points) < 2:
            raise InvalidInputError("Expected at: two or more increasing rational numbers.")
        return rational

    def value_at(self, scope: Scope, point: Fraction) -> arb:
        """Evaluate at one point, at flint's current precision."""
        inner = Scope({**scope.variables, self.variable: point}, self.let)
        return Expression(self.expression).ball(inner)

    def enclosed(self, scope: Scope, point: Fraction) -> Interval:
        """Enclose the value at one point."""
        return enclose(lambda: self.value_at(scope, point), relative_width=VERDICT_WIDTH)

    def fact(self, scope: Scope, name: str, point: Fraction) -> dict[str, object]:
        """Return the value at one point as checkable evidence."""
        return {
            "fact": "expression",
            "name": name,
            "expression": self.expression,
            "variables": {self.variable: str(ExactReal.of_rational(point))},
            "value": self.enclosed(scope, point).to_json(),
        }


@final
class Monotone(
    Behaviour, frozen=True, kw_only=True, tag="monotone", omit_defaults=True,
    forbid_unknown_fields=True,
):  # fmt: skip
    """The expression is (strictly) decreasing or increasing in its variable.

    One pair of points in the wrong order refutes; the listed points alone only support.
    """

    kind: ClassVar[str] = "monotone"
    direction: Literal["decreasing", "increasing"]

    def decide(self, scope: Scope) -> Decision:
        """Compare the values at consecutive points."""
        points = self.points()
        relation = ">" if self.direction == "decreasing" else "<"
        verdict, worst = Verdict.SUPPORTED, (points[0], points[1])
        for low, high in itertools.pairwise(points):
            truth = compare(
                partial(self.value_at, scope, low),
                relation,
                partial(self.value_at, scope, high),
            )
            if truth is not True:
                worst = (low, high)
                verdict = Verdict.UNDECIDED if truth is None else Verdict.REFUTED
                break
        words = {
            Verdict.REFUTED: f"It is not {self.direction} between the two points of the witness.",
            Verdict.UNDECIDED: "The values at the two points could not be told apart.",
        }
        return Decision(
            verdict=verdict,
            true={f"value at {_text(point)}": self.enclosed(scope, point) for point in worst},
            claimed={"behaviour": f"{self.direction} in {self.variable}"},
            witness={"low": _text(worst[0]), "high": _text(worst[1])},
            reason=words.get(
                verdict,
                f"It is {self.direction} over all {len(points)} listed points, from "
                f"{_text(points[0])} to {_text(points[-1])}.",
            ),
        )

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add the values at the two points."""
        low, high = (exact(decision.witness[k]).rational or Fraction(0) for k in ("low", "high"))
        right_way = ">" if self.direction == "decreasing" else "<"
        wrong_way = "<=" if self.direction == "decreasing" else ">="
        refuted = decision.verdict is Verdict.REFUTED
        return dataclasses.replace(
            decision,
            evidence=[self.fact(scope, "low", low), self.fact(scope, "high", high)],
            conclusion=f"low {wrong_way if refuted else right_way} high",
        )


@final
class Limit(
    Behaviour, frozen=True, kw_only=True, tag="limit", omit_defaults=True,
    forbid_unknown_fields=True,
):  # fmt: skip
    """The expression converges to `limit` as its variable runs through `at` and beyond.

    `rate`, an expression in the variable that tends to 0, bounds |expression − limit| if the
    claim is true; a point where the bound fails refutes the claim with that rate. Points alone
    never prove a limit.
    """

    kind: ClassVar[str] = "limit"
    limit: str
    rate: str

    def decide(self, scope: Scope) -> Decision:
        """Compare the distance from the limit with the rate at every point."""
        points = self.points()
        verdict, shown = Verdict.SUPPORTED, points[-1]
        for point in points:
            truth = compare(
                partial(self._distance, scope, point),
                "<=",
                partial(self._at, self.rate, scope, point),
            )
            if truth is not True:
                verdict = Verdict.UNDECIDED if truth is None else Verdict.REFUTED
                shown = point
                break
        value = self.enclosed(scope, shown)
        words = {
            Verdict.SUPPORTED: f"|value − limit| ≤ {self.rate} at all {len(points)} points.",
            Verdict.REFUTED: f"|value − limit| > {self.rate} at the point of the witness.",
            Verdict.UNDECIDED: "The distance from the limit and the rate could not be told apart.",
        }
        return Decision(
            verdict=verdict,
            true={f"value at {_text(shown)}": value},
            claimed={"limit": self.limit, "rate": self.rate},
            witness={self.variable: _text(shown)},
            reason=words[verdict],
        )

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add the value at the point, the limit and the rate."""
        point = exact(decision.witness[self.variable]).rational or Fraction(0)
        relation = ">" if decision.verdict is Verdict.REFUTED else "<="
        where = {self.variable: _text(point)}
        facts = [self.fact(scope, "value", point)]
        for name, text in (("limit", self.limit), ("rate", self.rate)):
            found = enclose(
                partial(self._at, text, scope, point),
                relative_width=VERDICT_WIDTH,
            )
            facts.append(
                {
                    "fact": "expression",
                    "name": name,
                    "expression": text,
                    "variables": where,
                    "value": found.to_json(),
                }
            )
        return dataclasses.replace(
            decision, evidence=facts, conclusion=f"abs(value - limit) {relation} rate"
        )

    def _at(self, text: str, scope: Scope, point: Fraction) -> arb:
        return Expression(text).ball(Scope({**scope.variables, self.variable: point}, self.let))

    def _distance(self, scope: Scope, point: Fraction) -> arb:
        return abs(self.value_at(scope, point) - self._at(self.limit, scope, point))


@final
class Minimiser(
    Behaviour, frozen=True, kw_only=True, tag="minimiser", omit_defaults=True,
    forbid_unknown_fields=True,
):  # fmt: skip
    """The expression is least at `claimed` among the points `at`.

    The claim is exactly about the listed points, unless `tail` says (with a reason) that it
    ranges over more; then it is only supported.
    """

    kind: ClassVar[str] = "minimiser"
    claimed: str
    tail: str = ""

    def decide(self, scope: Scope) -> Decision:
        """Compare the value at the claimed point with all the others."""
        best = exact(self.claimed, "claimed").rational
        points = self.points()
        if best not in points:
            raise InvalidInputError(f"Expected claimed={self.claimed} to be one of the points.")
        verdict = Verdict.SUPPORTED if self.tail else Verdict.HOLDS
        rival = _least(self, scope, [point for point in points if point != best])
        truth = compare(
            lambda: self.value_at(scope, best), "<=", lambda: self.value_at(scope, rival)
        )
        if truth is not True:
            verdict = Verdict.UNDECIDED if truth is None else Verdict.REFUTED
        return Decision(
            verdict=verdict,
            true={
                f"value at {_text(best)}": self.enclosed(scope, best),
                f"value at {_text(rival)}": self.enclosed(scope, rival),
            },
            claimed={"minimiser": f"{self.variable} = {self.claimed}"},
            witness={"claimed": _text(best), "rival": _text(rival)},
            reason=f"Among {len(points)} points, {_text(best)} "
            f"{'is least' if truth else 'is not certainly least'}; the best other one is "
            f"{_text(rival)}." + (f" Beyond them: {self.tail}" if self.tail else ""),
        )

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add both values."""
        best, rival = (
            exact(decision.witness[key]).rational or Fraction(0) for key in ("claimed", "rival")
        )
        relation = ">" if decision.verdict is Verdict.REFUTED else "<="
        return dataclasses.replace(
            decision,
            evidence=[self.fact(scope, "best", best), self.fact(scope, "rival", rival)],
            conclusion=f"best {relation} rival",
        )


def _least(claim: Behaviour, scope: Scope, points: list[Fraction]) -> Fraction:
    """Return the point with the least value (by the middle of its enclosure)."""
    return min(points, key=lambda point: claim.enclosed(scope, point).lower)


def _text(point: Fraction) -> str:
    return str(ExactReal.of_rational(point))


@final
class Optimality(
    Claim, frozen=True, kw_only=True, tag="optimality", omit_defaults=True,
    forbid_unknown_fields=True,
):  # fmt: skip
    """No rival does better than `value`: `lower_bound` is proved for every rival.

    HOLDS when the certified lower bound reaches the value within `tolerance` (relative, 0 for
    exactly); REFUTED when `competitor`, a rival's value, is smaller.
    """

    kind: ClassVar[str] = "optimality"
    value: str
    lower_bound: str = ""
    competitor: str = ""
    tolerance: str = "0"

    def __post_init__(self) -> None:
        """Require something to compare with."""
        super().__post_init__()
        if not self.lower_bound and not self.competitor:
            raise InvalidInputError("Expected lower_bound or competitor to be given.")

    def expressions(self) -> dict[str, str]:
        """Return the value and what it is compared with."""
        named = {"lower_bound": self.lower_bound, "competitor": self.competitor}
        return {
            **super().expressions(),
            "value": self.value,
            **{name: text for name, text in named.items() if text},
        }

    def decide(self, scope: Scope) -> Decision:
        """Look for a better rival, then for the matching bound."""
        value = Expression(self.value)
        name = "competitor" if self.competitor else "lower_bound"
        other = Expression(self.competitor or self.lower_bound)
        slack = 1 + exact(self.tolerance, "tolerance").ball()
        if self.competitor:
            beaten = compare(lambda: other.ball(scope), "<", lambda: value.ball(scope))
            verdict = Verdict.REFUTED if beaten else Verdict.UNDECIDED
            reason = f"The rival {'does' if beaten else 'does not certainly do'} better."
        else:
            reached = compare(
                lambda: value.ball(scope), "<=", lambda: slack * other.ball(scope), 1 << 11
            )
            verdict = Verdict.HOLDS if reached else Verdict.UNDECIDED
            reason = f"The certified lower bound {'reaches' if reached else 'misses'} the value."
        return Decision(
            verdict=verdict,
            true={
                "value": enclose(lambda: value.ball(scope), relative_width=VERDICT_WIDTH),
                name: enclose(lambda: other.ball(scope), relative_width=VERDICT_WIDTH),
            },
            claimed={"optimal": self.value},
            reason=reason,
        )

    def explain(self, scope: Scope, decision: Decision) -> Decision:
        """Add both numbers as facts."""
        facts = [
            {
                "fact": "expression",
                "name": name,
                "expression": self.expressions()[name],
                "value": interval.to_json(),
            }
            for name, interval in decision.true.items()
        ]
        conclusion = (
            "competitor < value"
            if self.competitor
            else f"value <= lower_bound*(1 + {self.tolerance})"
        )
        return dataclasses.replace(
            decision,
            witness={name: str(interval) for name, interval in decision.true.items()},
            evidence=facts,
            conclusion=conclusion,
        )
