"""Witnesses of statements: the case that refutes, or the proof of the claim with its lemmas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dpassay.verifier.proof import witness_of
from dpassay.verifier.verdict import Verdict

if TYPE_CHECKING:
    from dpassay.verifier.claim import Claim, Decision, Scope
    from dpassay.verifier.verdict import Finding


def witness(
    claim: Claim, finding: Finding, scope: Scope, decision: Decision, lemmas: Iterable[Claim]
) -> dict[str, Any]:
    """Return the witness of a finding."""
    found = witness_of(claim, lemmas)
    if finding.verdict is not Verdict.REFUTED:
        return found
    found["case"] = scope.to_json()
    if claim.kind in ("monotone", "minimiser"):
        points = {key: decision.witness.get(key) for key in ("low", "high", "rival")}
        found |= {key: str(point) for key, point in points.items() if point is not None}
    if claim.kind == "limit":
        other = found.get("proof", {}).pop("limit", None)
        point = decision.witness.get(getattr(claim, "variable", ""), "")
        where = {"limit": other} if other else {"at": point}
        found |= {key: str(text) for key, text in where.items()}
    return found
