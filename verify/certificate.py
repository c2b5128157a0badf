"""Certificates: a verdict as plain data that a second program can check.

Their shape, seal and files are in `dpassay.verifier.seal`, the second program in
`dpassay.verifier.checker`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpassay.verifier.claim import Claim, Decision, Scope
from dpassay.verifier.exact import verify_with_evidence
from dpassay.verifier.proof import plain, reachable
from dpassay.verifier.seal import SCHEMA_VERSION, read, seal, write
from dpassay.verifier.verdict import Finding, Verdict

__all__ = ["SCHEMA_VERSION", "argued", "certificate", "certify", "read", "seal", "write"]

DECIDED = (Verdict.HOLDS, Verdict.REFUTED, Verdict.SUPPORTED)


def certify(claim: Claim, lemmas: Sequence[Claim] = ()) -> tuple[Finding, dict[str, Any] | None]:
    """Decide a claim; return the finding and its certificate (None where nothing was decided)."""
    finding, (scope, decision), claim = verify_with_evidence(claim, lemmas)
    if finding.verdict not in DECIDED or not decision.evidence:
        return finding, None
    return finding, certificate(claim, scope, decision, finding, lemmas)


def argued(data: dict[str, Any]) -> dict[str, Any]:
    """Return the certificate of a claim that is argued; text and lemmas are in its claim."""
    data = {key: value for key, value in data.items() if key != "seal"}
    data["verdict"] = Verdict.ARGUED.value
    return {**data, "seal": seal(data)}


def certificate(
    claim: Claim,
    scope: Scope,
    decision: Decision,
    finding: Finding,
    lemmas: Sequence[Claim] = (),
) -> dict[str, Any]:
    """Put a certificate together from a decision, its evidence, and what its proof names."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "claim": plain(claim),
        "lemmas": [plain(lemma) for lemma in reachable(claim, lemmas)],
        "case": scope.to_json(),
        "verdict": finding.verdict.value,
        "claimed": dict(decision.claimed),
        "worst_case": str(decision.witness.get("worst_case", "")),
        "mechanism": str(decision.witness.get("mechanism", "")),
        "route": decision.route,
        "facts": decision.evidence,
        "conclusion": decision.conclusion,
    }
    return {**data, "seal": seal(data)}
