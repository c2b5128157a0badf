"""Claims about how a quantity behaves: monotone in, converges to, is least at."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Literal, final

import msgspec
from flint import arb

from dpassay.accountant.errors import DpassayError, InvalidInputError
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.verifier.claims import (
    Claim,
    Decision,
    Range,
    Scalar,
    Scope,
    compare,
    compare_values,
    is_outside,
    require_inside,
    truth,
)
from dpassay.verifier.claims.privacy import VERDICT_WIDTH
from dpassay.verifier.expression import Expression, free, renamed
from dpassay.verifier.proof import in_case, proved
from dpassay.verifier.verdict import Verdict


class Behaviour(Claim, frozen=True, kw_only=True):
    """A claim about `expression` as a function of `variable`, examined at the points `at`."""

    expression: str
    variable: str
    at: list[Scalar]
    """Where it is examined."""
    over: Range | None = None
    """What the variable ranges over."""

    def has_range(self) -> bool:
        """Return True: the claim is about every value of its variable."""
        return True

    def ranging(self) -> str:
        """Say what the variable ranges over."""
        if self.over is None:
            return f"{self.variable} (no range is given)"
        return self.over.words(self.variable)

    def points(self, scope: Scope) -> list[Fraction]:
        """Return the points, which must be increasing rationals of the range."""
        points = [exact(value, f"at[{i}]").rational for i, value in enumerate(self.at)]
        rational = [point for point in points if point is not None]
        if len(rational) != len(points) or rational != sorted(set(rational)) or len(points) < 2:
            raise InvalidInputError("Expected at: two or more increasing rational numbers.")
        if self.over is not None:
            for point in rational:
                require_inside("at", self.over, self.variable, self.inner(scope, point))
        return rational

    def is_exhausted(self, scope: Scope, points: Sequence[Fraction]) -> bool:
        """Whether the points are the whole range: all integers between its two ends."""
        over = self.over
        if over is None or not over.integer:
            return False
        below, above = (self.inner(scope, end) for end in (points[0] - 1, points[-1] + 1))
        consecutive = all(high - low == 1 for low, high in itertools.pairwise(points))
        return (
            consecutive
            and is_outside(over, self.variable, below, (">=", ">"))
            and is_outside(over, self.variable, above, ("<=", "<"))
        )

    def is_whole(self) -> bool:
        """Whether the points are the whole range in every case."""
        alone = Scope({}, self.let)
        try:
            return not self.for_all and self.is_exhausted(alone, self.points(alone))
        except DpassayError:  # an end is another variable
            return False

    def at_value(self, value: str) -> tuple[str, dict[str, str]]:
        """Return the expression at another value of the variable, and the `let` that it needs."""
        moving, size = {self.variable}, 0
        while len(moving) > size:
            size = len(moving)
            moving |= {name for name, text in self.let.items() if moving & free(text)[0]}
        put = {name: f"{name}_there" for name in moving} | {self.variable: value}
        let = {put[name]: renamed(text, put) for name, text in self.let.items() if name in moving}
        return renamed(self.expression, put), let

    def related(self, claim: str, let: Mapping[str, str], **domains: Any) -> dict[str, Any]:
        """Return a comparison for a certificate, with further names and variables."""
        kept = {"id", "statement", "source", "adjacency", "where", "argument", "lemmas", "assume"}
        data = {name: entry for name, entry in self.plain().items() if name in kept}
        found = {**data, "kind": "relation", "claim": claim, "let": {**self.let, **let}}
        whole = self.plain().get("for_all", {})
        found["for_all"] = {**whole, **{k: v for k, v in domains.items() if isinstance(v, dict)}}
        found["where"] = {**data.get("where", {})}
        found["where"] |= {k: v for k, v in domains.items() if isinstance(v, list)}
        return found

    def looked_at(self, verdict: Verdict) -> Any:
        """Return what the variable ranges over in a certificate: the range, or the points.

        A claim holds over its whole range only; without a range it cannot be proved.
        """
        holds = verdict is Verdict.HOLDS
        if holds and self.over is None:
            return {"statement": "no range is given"}
        if self.over is None or (holds and self.is_whole()):
            return [*self.at]
        grid = {"grid": [*self.at]} if verdict is Verdict.SUPPORTED else {}
        return {**msgspec.to_builtins(self.over), **grid}

    def inner(self, scope: Scope, point: Fraction) -> Scope:
        """Return the scope in which the variable has a value."""
        return Scope({**scope.variables, self.variable: point}, self.let)

    def compared(self, scope: Scope, one: Fraction, relation: str, other: Fraction) -> bool | None:
        """Compare the values at two points: exactly where both are exact, else in balls."""
        expression = Expression(self.expression)
        return compare_values(
            lambda: expression.value(self.inner(scope, one)),
            relation,
            lambda: expression.value(self.inner(scope, other)),
        )

    def value_at(self, scope: Scope, point: Fraction) -> arb:
        """Evaluate at one point, at flint's current precision."""
        return Expression(self.expression).ball(self.inner(scope, point))

    def enclosed(self, scope: Scope, point: Fraction) -> Interval:
        """Enclose the value at one point."""
        return enclose(lambda: self.value_at(scope, point), relative_width=VERDICT_WIDTH)


@final
class Monotone(Behaviour, frozen=True, kw_only=True, tag="monotone"):
    """The expression is (strictly) decreasing or increasing in its variable over its range.

    Two points with values in the wrong order refute it. Points prove it if they are the whole
    range (all integers between two ends); otherwise they support it, and it takes a proof.
    """

    direction: Literal["decreasing", "increasing"]

    def assertion(self) -> str:
        """Say in which direction and over what."""
        return f"{self.expression} is strictly {self.direction} in {self.ranging()}"

    def certified(self, verdict: Verdict) -> dict[str, Any]:
        """Compare the values at n and n + 1 for integers, else at any two points of the range."""
        sign = ">" if self.direction == "decreasing" else "<"
        name, later, domain = self.variable, f"{self.variable}_after", self.looked_at(verdict)
        holds = verdict is Verdict.HOLDS
        if holds and self.over is not None and self.over.integer:
            if isinstance(domain, list):
                domain = domain[:-1]
            for end in ("high", "below"):
                if isinstance(domain, dict) and end in domain and domain[end] != "inf":
                    domain[end] = f"({domain[end]}) - 1"
            after, let = self.at_value(f"({name} + 1)")
            return self.related(f"{self.expression} {sign} {after}", let, **{name: domain})
        after, let = self.at_value(later)
        claim = f"{self.expression} {sign} {after}"
        if verdict is Verdict.SUPPORTED or isinstance(domain, list):
            found = self.related(claim, let, **{name: domain, later: domain})
            return {**found, "assume": [*self.assume, f"{name} < {later}"]}
        ends = {key: end for key, end in domain.items() if key not in ("low", "above")}
        before = {{"high": "below"}.get(key, key): end for key, end in domain.items()}
        return self.related(claim, let, **{name: before, later: {**ends, "above": name}})

    def refuted_at(self, witness: Mapping[str, Any]) -> dict[str, str]:
        """Return the two points."""
        return {self.variable: str(witness["low"]), f"{self.variable}_after": str(witness["high"])}

    def decide(self, scope: Scope) -> Decision:
        """Compare the values at consecutive points."""
        points = self.points(scope)
        relation = ">" if self.direction == "decreasing" else "<"
        verdict, worst = Verdict.SUPPORTED, (points[0], points[1])
        if self.is_exhausted(scope, points):
            verdict = Verdict.HOLDS
        for low, high in itertools.pairwise(points):
            truth = self.compared(scope, low, relation, high)
            if truth is not True:
                worst = (low, high)
                verdict = Verdict.UNDECIDED if truth is None else Verdict.REFUTED
                break
        listed = f"It is {self.direction} over all {len(points)} listed points, from "
        listed += f"{_text(points[0])} to {_text(points[-1])}"
        words = {
            Verdict.HOLDS: f"{listed}, which are the whole range.",
            Verdict.SUPPORTED: f"{listed}.",
            Verdict.REFUTED: f"It is not {self.direction} between the two points of the witness.",
            Verdict.UNDECIDED: "The values at the two points could not be distinguished.",
        }
        return Decision(
            verdict=verdict,
            true={f"value at {_text(point)}": self.enclosed(scope, point) for point in worst},
            claimed={"behaviour": f"{self.direction} in {self.variable}"},
            witness={"low": _text(worst[0]), "high": _text(worst[1])},
            reason=words[verdict],
        )


@final
class Limit(Behaviour, frozen=True, kw_only=True, tag="limit"):
    """The expression converges to `limit` as its variable tends to the upper end of its range.

    That end is ∞ where none is given. A `rate`, an expression in the variable, adds the claim that
    |expression − limit| ≤ rate over the whole range. Points never prove a limit. A point at which
    the rate fails refutes the claim, and so does a proof that names another `limit`.
    """

    limit: str
    rate: str = ""

    def assertion(self) -> str:
        """Say what tends to what."""
        upper = None if self.over is None else self.over.upper
        rate = f", and is off by at most {self.rate} on the way" if self.rate else ""
        return (
            f"{self.expression} tends to {self.limit} as {self.variable} tends to "
            f"{upper or '∞'}{rate}"
        )

    def certified(self, verdict: Verdict) -> dict[str, Any]:
        """Return the claim; where it is decided at points, a bound of their distance from it."""
        if verdict is Verdict.HOLDS or not self.rate or "limit" in self.proof:
            return super().certified(verdict)
        claim = f"abs({self.expression} - ({self.limit})) <= {self.rate}"
        return self.related(claim, {}, **{self.variable: self.looked_at(verdict)})

    def refuted_at(self, witness: Mapping[str, Any]) -> dict[str, str]:
        """Return the point at which the rate fails."""
        return {} if "limit" in self.proof else {self.variable: str(witness[self.variable])}

    def decide(self, scope: Scope) -> Decision:
        """Compare the distance from the limit with the rate at every point."""
        points = self.points(scope)
        if "limit" in self.proof:
            return self._against_another(scope, points[-1])
        verdict, shown = Verdict.SUPPORTED, points[-1]
        reason = f"|value − limit| ≤ {self.rate} at all {len(points)} points."
        if not self.rate:
            verdict, reason = Verdict.UNDECIDED, "Points alone say nothing about a limit."
        for point in points if self.rate else ():
            truth = compare(
                partial(self._distance, scope, point),
                "<=",
                partial(self._at, self.rate, scope, point),
            )
            if truth is not True:
                shown = point
                verdict = Verdict.REFUTED if truth is False else Verdict.UNDECIDED
                fails = (
                    "fails" if truth is False else "could not be distinguished from the distance"
                )
                reason = (
                    f"The rate {self.rate} {fails} at {self.variable} = {_text(point)}; the limit "
                    "itself may be right. Correct the rate, or leave it out."
                )
                break
        claimed = {"limit": self.limit, "rate": self.rate}
        return Decision(
            verdict=verdict,
            true={f"value at {_text(shown)}": self.enclosed(scope, shown)},
            claimed={name: text for name, text in claimed.items() if text},
            witness={self.variable: _text(shown)},
            reason=reason,
        )

    def _against_another(self, scope: Scope, point: Fraction) -> Decision:
        """Refute the claim if the other limit, which the proof names, is proved."""
        other = str(self.proof["limit"])
        proof = {key: value for key, value in self.proof.items() if key != "limit"}
        differ = truth(Expression(self.limit), "!=", Expression(other), scope)
        theorem, objection = "", "it could not be distinguished from the claimed one."
        if differ:
            theorem, objection = proved(in_case(self, scope, limit=other, proof=proof), ())
        said = f"It tends to {other}, which is another number."
        return Decision(
            verdict=Verdict.REFUTED if theorem else Verdict.UNDECIDED,
            true={f"value at {_text(point)}": self.enclosed(scope, point)},
            claimed={"limit": self.limit},
            witness={self.variable: _text(point)},
            reason=said if theorem else f"The limit {other} was not proved: {objection}",
            route=f"proof by {proof.get('method', 'limit')}" if theorem else "",
        )

    def _at(self, text: str, scope: Scope, point: Fraction) -> arb:
        return Expression(text).ball(self.inner(scope, point))

    def _distance(self, scope: Scope, point: Fraction) -> arb:
        return abs(self.value_at(scope, point) - self._at(self.limit, scope, point))


@final
class Minimiser(Behaviour, frozen=True, kw_only=True, tag="minimiser"):
    """The expression is least at `claimed` over its range.

    A point of the range with a smaller value refutes it. Points prove it if they are the whole
    range (all integers between two ends); otherwise they support it, and it takes a proof.
    """

    claimed: str
    tail: str = ""
    """What is known beyond the points, in words."""

    def assertion(self) -> str:
        """Say where it is least, and over what."""
        return (
            f"{self.expression} is least at {self.variable} = {self.claimed} over {self.ranging()}"
        )

    def certified(self, verdict: Verdict) -> dict[str, Any]:
        """Compare the value at the claimed point with that at any other one."""
        plain = self.claimed.replace(".", "").isalnum()
        best, let = self.at_value(self.claimed if plain else f"({self.claimed})")
        domain = {self.variable: self.looked_at(verdict)}
        return self.related(f"{best} <= {self.expression}", let, **domain)

    def refuted_at(self, witness: Mapping[str, Any]) -> dict[str, str]:
        """Return the better point."""
        return {self.variable: str(witness["rival"])}

    def decide(self, scope: Scope) -> Decision:
        """Compare the value at the claimed point with all the others."""
        best = exact(self.claimed, "claimed").rational
        points = self.points(scope)
        if best not in points:
            raise InvalidInputError(f"Expected claimed={self.claimed} to be one of the points.")
        whole = self.is_exhausted(scope, points)
        verdict = Verdict.HOLDS if whole else Verdict.SUPPORTED
        others = [point for point in points if point != best]
        rival = min(others, key=lambda point: self.enclosed(scope, point).lower)
        for point in (rival, *others):
            truth = self.compared(scope, best, "<=", point)
            if truth is not True:
                verdict, rival = Verdict.UNDECIDED if truth is None else Verdict.REFUTED, point
                break
        words = {Verdict.REFUTED: "is not least", Verdict.UNDECIDED: "is not certainly least"}
        return Decision(
            verdict=verdict,
            true={
                f"value at {_text(best)}": self.enclosed(scope, best),
                f"value at {_text(rival)}": self.enclosed(scope, rival),
            },
            claimed={"minimiser": f"{self.variable} = {self.claimed}"},
            witness={"claimed": _text(best), "rival": _text(rival)},
            reason=f"Among {len(points)} points{', the whole range,' if whole else ''} "
            f"{_text(best)} {words.get(verdict, 'is least')}; the best other one is "
            f"{_text(rival)}." + (f" Beyond them: {self.tail}" if self.tail else ""),
        )


def _text(point: Fraction) -> str:
    return str(ExactReal.of_rational(point))
