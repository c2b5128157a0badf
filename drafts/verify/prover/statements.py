"""Witnesses of statements: the case that refutes, or the proof of the claim with its lemmas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpassay.verifier.verdict import Verdict

if TYPE_CHECKING:
    from dpassay.verifier.claim import Decision, Scope
    from dpassay.verifier.verdict import Finding

_LEMMA = ("id", "claim", "let", "where", "for_all", "assume", "adjacency", "proof")


def certificate(
    claim: Mapping[str, Any],
    finding: Finding,
    scope: Scope,
    decision: Decision,
    lemmas: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, Any], list[str]] | None:
    """Return the witness of a finding; the kernel names the rows of lemmas itself."""
    witness: dict[str, Any] = {}
    if finding.verdict is Verdict.REFUTED:
        witness["case"] = scope.to_json()
        shown = {
            k: str(decision.witness[k]) for k in ("low", "high", "rival") if k in decision.witness
        }
        witness |= shown if claim["kind"] in ("monotone", "minimiser") else {}
    proof = dict(claim.get("proof") or {})
    if finding.verdict is Verdict.REFUTED and claim["kind"] == "limit":
        witness["limit"] = str(proof.pop("limit", ""))
    if proof:
        witness["proof"] = _plain(proof)
    if lemmas:
        witness["lemmas"] = [_plain({k: x[k] for k in _LEMMA if x.get(k)}) for x in lemmas]
    return witness, []


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value if isinstance(value, (str, bool, int)) or value is None else str(value)
