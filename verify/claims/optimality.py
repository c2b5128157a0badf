"""Claims that nothing of a family does better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import msgspec

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import enclose
from dpassay.verifier.claim import Claim, Decision, Scope, holds, truth
from dpassay.verifier.claims.privacy import VERDICT_WIDTH, in_brackets
from dpassay.verifier.expression import Expression
from dpassay.verifier.verdict import Verdict

if TYPE_CHECKING:
    from dpassay.verifier import rivals

_MAX_PRECISION = 1 << 11
"""Bits after which a comparison is left undecided."""


@final
class Optimality(Claim, frozen=True, kw_only=True, tag="optimality"):
    """No rival does better than `value`, or than value/(1 + tolerance).

    `among` says who the rivals are, as in `dpassay.verifier.rivals`. The claim holds by a
    `dual`, a law on the space whose bound for all rivals reaches the value; a `rival` of the family
    that does better refutes it. A `lower_bound` or `competitor` that is only typed proves nothing:
    the claim is then at best argued.
    """

    value: str
    among: dict[str, Any] = msgspec.field(default_factory=dict)
    dual: dict[str, Any] = msgspec.field(default_factory=dict)
    rival: dict[str, Any] = msgspec.field(default_factory=dict)
    lower_bound: str = ""
    competitor: str = ""
    tolerance: str = "0"

    def __post_init__(self) -> None:
        super().__post_init__()
        compared = ("dual", "rival", "lower_bound", "competitor")
        given = [name for name in compared if getattr(self, name)]
        if len(given) != 1:
            raise InvalidInputError(
                "Expected one of dual, rival, lower_bound and competitor to be given."
            )
        if given[0] in ("dual", "rival") and not self.among:
            raise InvalidInputError(f"Expected among, the family of rivals, with {given[0]}.")
        self._compared()
        if exact(self.tolerance, "tolerance").sign < 0:
            raise InvalidInputError(f"Expected tolerance={self.tolerance} ≥ 0.")

    def expressions(self) -> dict[str, str]:
        """Return the value and what it is compared with."""
        named = {"lower_bound": self.lower_bound, "competitor": self.competitor}
        return {
            **super().expressions(),
            "value": self.value,
            **{name: text for name, text in named.items() if text},
        }

    def assertion(self) -> str:
        """Say which rivals have no smaller number."""
        if exact(self.tolerance).sign == 0:
            return f"{self._family()} below {self.value}"
        factor = f"1 + {self.tolerance}"
        return (
            f"{self._family()} below ({self.value})/({factor}): the value is within a factor "
            f"{factor} of optimal"
        )

    def _family(self) -> str:
        match self.among:
            case {"type": "Gaussian", "space": space, "mu": mu, "objective": objective}:
                inner = ", ".join(f"{k}={_text(v)}" for k, v in space.items() if k != "type")
                return (
                    f"no noise N(0, Σ) that is {in_brackets(str(mu))}-GDP over the space "
                    f"{space['type']}({inner}) has a {objective} variance"
                )
            case {"type": "IntegerNoise", "E": ratio, "eta": eta, "support": support}:
                return (
                    f"no law of integer noise on −{support}..{support} with P(0) = {eta} has a "
                    f"delta at exp(epsilon) = {ratio}"
                )
        return "no rival (who they are is said in words only) has a number"

    def decide(self, scope: Scope) -> Decision:
        """Look for a better rival, or for the matching bound."""
        other, value = self._other(scope), Expression(self.value)
        if self._is_against:
            beaten = truth(self._raised(other), "<", value, scope)
            verdict = Verdict.REFUTED if beaten else Verdict.UNDECIDED
            reason = f"The rival {'does' if beaten else 'does not certainly do'} better."
            if self.competitor:
                verdict = Verdict.UNDECIDED
                reason = "The competitor is typed: nothing shows that it is a rival's number."
        elif not self._reaches(value, other, scope):
            verdict = Verdict.UNDECIDED
            reason = "The lower bound is not shown to reach the value."
        elif self.dual:
            verdict = Verdict.HOLDS
            reason = "The bound of the dual, for every rival, reaches the value."
        else:
            verdict = Verdict.SUPPORTED if self.argument.strip() else Verdict.UNDECIDED
            reason = "The value meets the typed lower bound, but nothing proves that bound."
        return Decision(
            verdict=verdict,
            true={
                "value": enclose(lambda: value.ball(scope), relative_width=VERDICT_WIDTH),
                self._name: enclose(lambda: other.ball(scope), relative_width=VERDICT_WIDTH),
            },
            claimed={"optimal": self.value},
            reason=reason,
        )

    def _reaches(self, value: Expression, bound: Expression, scope: Scope) -> bool | None:
        """Decide value ≤ (1 + tolerance)·bound, exactly where both are exact."""
        met = truth(value, "<=", bound, scope, _MAX_PRECISION)
        if met or exact(self.tolerance).sign == 0:
            return met
        return truth(value, "<=", self._raised(bound), scope, _MAX_PRECISION)

    def _raised(self, bound: Expression) -> Expression:
        """Return (1 + tolerance) times a number."""
        if exact(self.tolerance).sign == 0:
            return bound
        return Expression(f"({bound.text})*(1 + {self.tolerance})")

    def _other(self, scope: Scope) -> Expression:
        """Return what the value is compared with; its conditions must hold."""
        found = self._compared()
        for condition in found.conditions:
            if not holds(condition, scope):
                raise InvalidInputError(f"Expected {condition} for the optimum to be checked.")
        return Expression(found.text)

    def _compared(self) -> rivals.Bound:
        from dpassay.verifier import rivals

        try:
            return rivals.compared(msgspec.to_builtins(self))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise InvalidInputError(f"The optimum cannot be checked: {error}.") from error

    @property
    def _is_against(self) -> bool:
        return bool(self.rival or self.competitor)

    @property
    def _name(self) -> str:
        return "competitor" if self._is_against else "lower_bound"


def _text(value: Any) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
