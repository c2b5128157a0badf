"""Comparisons of two expressions, and printed numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, final

from flint import arb

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.interval import START_PRECISION, Interval, ball, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.claims import Claim, Decision, Scope, compare, truth, verdict_of
from dpassay.verifier.claims.privacy import LAW_PRECISION, VERDICT_WIDTH
from dpassay.verifier.expression import Expression, number, split_relation
from dpassay.verifier.proof import identical
from dpassay.verifier.verdict import Rigour, Verdict

# --- Statements that are not about one release, kept in the ledger with the reason ----------------


@final
class Pending(Claim, frozen=True, kw_only=True, tag="pending"):
    """A statement that is kept in a ledger undecided: `needs` says what it takes, `reason` why.

    "nothing" is needed where there is nothing to decide: a question, a convention, the literature.
    An "answer" is needed where the author did not say what the claim depends on; then `reason` is
    the question.
    """

    needs: Literal[
        "lp", "composition", "audit", "stream", "data", "training", "proof", "answer", "nothing"
    ]
    reason: str

    def assertion(self) -> str:
        """Say that nothing is decided, and what is needed."""
        if self.needs == "nothing":
            return "there is nothing to decide"
        return f"nothing is decided: it needs {self._needed}"

    @property
    def _needed(self) -> str:
        return "an answer" if self.needs == "answer" else self.needs

    def decide(self, scope: Scope) -> Decision:
        """Return PENDING with the reason."""
        return Decision(
            verdict=Verdict.PENDING,
            claimed={},
            reason=self.reason
            if self.needs == "nothing"
            else f"Needs {self._needed}: {self.reason}",
            route="",
            rigour=Rigour.NONE,
        )


_MARGIN_DIGITS = 20
"""Digits of a margin."""
_MARGIN_BITS = 72
"""Bits that have these digits."""
_ROUNDS = {True: "rounds", False: "does not round", None: "may or may not round"}


@final
class Relation(Claim, frozen=True, kw_only=True, tag="relation"):
    """`left <= right` (or <, >=, >, ==, !=) between two expressions.

    Exact sides (rationals and their roots) are compared exactly. Balls can refute an equality but
    never prove it; that takes an identity, which the kernel proves.
    """

    claim: str

    def __post_init__(self) -> None:
        super().__post_init__()
        split_relation(self.claim)

    def assertion(self) -> str:
        """Say the comparison."""
        return self.claim

    def decide(self, scope: Scope) -> Decision:
        """Compare both sides up the ladder of precisions."""
        left_text, relation, right_text = split_relation(self.claim)
        left, right = Expression(left_text), Expression(right_text)
        known = truth(left, relation, right, scope, 1 << (10 if relation == "==" else 14))
        reason, route = _reason(known, relation), "exact rationals and balls"
        if known is None and identical(left_text, right_text, scope):
            known = relation in ("==", "<=", ">=")
            reason, route = "Both sides are the same number, by an identity.", "proof by identity"
        true = {"left": _enclosed(left, scope), "right": _enclosed(right, scope)}
        return Decision(
            verdict=verdict_of(known),
            true=true,
            witness={name: str(interval) for name, interval in true.items()},
            claimed={"relation": self.claim},
            margin=_margin(left, right, relation, scope),
            reason=reason,
            route=route,
        )


def _enclosed(expression: Expression, scope: Scope) -> Interval:
    """Enclose a side narrowly; one that balls cannot narrow, such as √0, at one precision."""
    try:
        return enclose(lambda: expression.ball(scope), relative_width=VERDICT_WIDTH)
    except UndecidedError:
        with ctx.workprec(1 << 12):
            return Interval.of_ball(expression.ball(scope))


def _margin(
    left: Expression, right: Expression, relation: str, scope: Scope
) -> dict[str, Interval]:
    """Return how far the left side exceeds the right one, or for > and >= falls short of it.

    The precision of the comparison, whose values are kept, is tried first.
    """
    for precision in (START_PRECISION, LAW_PRECISION):
        with ctx.workprec(precision):
            x, y = left.ball(scope), right.ball(scope)
            if relation in (">", ">="):
                x, y = y, x
            difference = abs(x - y) if relation == "==" else x - y
            factor = x / y
            if difference.rel_accuracy_bits() > _MARGIN_BITS:
                break
    result = {}
    if difference.is_finite():
        result["difference"] = Interval.of_ball(difference, _MARGIN_DIGITS)
    if factor.is_finite() and (x > 0) and (y > 0):
        result["factor"] = Interval.of_ball(factor, _MARGIN_DIGITS)
    return result


def _reason(truth: bool | None, relation: str) -> str:
    if truth is None and relation == "==":
        return "Both sides agree to many digits, which does not prove that they are equal."
    return {
        True: "The comparison was proved.",
        False: "The opposite of the comparison was proved.",
        None: "The two sides could not be distinguished.",
    }[truth]


@final
class PrintedNumber(Claim, frozen=True, kw_only=True, tag="printed-number"):
    """A printed decimal is the value of an expression, rounded to the digits that are printed."""

    expression: str
    printed: str

    def certified(self, verdict: Verdict) -> dict[str, Any]:
        """Say it as a distance of at most half a unit of the last digit."""
        data = super().certified(verdict)
        expression, printed = data.pop("expression"), data.pop("printed")
        half = int(Decimal(printed).as_tuple().exponent) - 1
        claim = f"abs({expression} - ({printed})) <= 5e{half}"
        return {**data, "kind": "relation", "claim": claim}

    def assertion(self) -> str:
        """Say the printed decimal."""
        return f"{self.expression} rounds to {self.printed}"

    def decide(self, scope: Scope) -> Decision:
        """Compare the distance with half a unit of the last printed digit."""
        printed = Decimal(self.printed)
        exponent = printed.as_tuple().exponent
        half = Fraction(10) ** int(exponent) / 2
        expression = Expression(self.expression)

        def distance() -> arb:
            return abs(expression.ball(scope) - ball(Fraction(printed)))

        exact = number(expression.value(scope), self.expression)
        if isinstance(exact, Fraction):  # decides a value halfway between two decimals
            known: bool | None = abs(exact - Fraction(printed)) <= half
        else:
            known = compare(distance, "<=", lambda: ball(half))
        value = _enclosed(expression, scope)
        with ctx.workprec(LAW_PRECISION):
            differences = {"difference": Interval.of_ball(distance(), 12)}
        rounded = f"{(value.lower + value.upper) / 2:.12g}"
        return Decision(
            verdict=verdict_of(known),
            true={"value": value},
            witness={"value": str(value)},
            claimed={"printed": self.printed},
            margin=differences,
            reason=f"The value is {rounded}, which {_ROUNDS[known]} to the printed {self.printed}.",
            route="balls",
        )
