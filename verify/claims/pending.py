"""Statements that are not about one release, kept in the ledger with the reason."""

from __future__ import annotations

from typing import Literal, final

from dpassay.verifier.claim import Claim, Decision, Scope
from dpassay.verifier.verdict import Rigour, Verdict


@final
class Pending(Claim, frozen=True, kw_only=True, tag="pending"):
    """A statement that needs more than one release; `needs` says what, `reason` why.

    It needs "nothing" where nothing is to decide: a question, a convention, the literature.
    """

    needs: Literal["lp", "composition", "audit", "stream", "data", "training", "proof", "nothing"]
    reason: str

    def assertion(self) -> str:
        """Say that nothing is."""
        if self.needs == "nothing":
            return "there is nothing to decide"
        return f"nothing is decided: it needs {self.needs}"

    def decide(self, scope: Scope) -> Decision:
        """Return PENDING with the reason."""
        return Decision(
            verdict=Verdict.PENDING,
            claimed={},
            reason=self.reason if self.needs == "nothing" else f"Needs {self.needs}: {self.reason}",
            route="",
            rigour=Rigour.NONE,
        )
