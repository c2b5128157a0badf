"""What writes certificates: for a finding, its theorem and the hints that let the kernel prove it.

Nothing here is trusted. A certificate is put to the kernel before it is handed out, which tells the
lemmas that it rests on, and that it is as good as it will be found elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpassay.verifier.decide import Decided, decide
from dpassay.verifier.kernel import VERSION
from dpassay.verifier.kernel.check import prove
from dpassay.verifier.kernel.numbers import Budget, NotProved, Wrong
from dpassay.verifier.kernel.schema import KINDS, require
from dpassay.verifier.verdict import Verdict

if TYPE_CHECKING:
    from dpassay.verifier.claims import Claim
    from dpassay.verifier.verdict import Finding

__all__ = ["argued", "canonical", "certify", "completed", "decided", "write"]

_SECONDS = 12
"""Of processor time that writing may take for its proof: a check may take four times as much."""
_DECIDED = (Verdict.HOLDS, Verdict.REFUTED, Verdict.SUPPORTED)


def decided(claim: Claim, lemmas: Sequence[Claim] = ()) -> tuple[Finding, dict[str, Any] | None]:
    """Decide a claim; return the finding and its certificate (None where there is none)."""
    found = decide(claim, lemmas)
    return found.finding, certify(found, lemmas)


def certify(found: Decided, lemmas: Iterable[Claim] = ()) -> dict[str, Any] | None:
    """Return the certificate of a finding; None where nothing was decided.

    `lemmas` are the claims that a proof may name.
    """
    from dpassay.verifier.proof import theorem_of

    finding, _, _, claim = found
    if finding.verdict not in _DECIDED:
        return None
    theorem = theorem_of(claim, finding.verdict.value)
    if theorem.get("kind") not in KINDS:
        return None
    try:
        if "mechanism" in theorem:
            from dpassay.verifier.prover import releases

            witness = releases.witness(found, theorem, lemmas)
        else:
            witness = _of_statement(found, lemmas)
        return completed(theorem, witness)
    except Wrong:  # the kernel's language has no such text
        return None


def _of_statement(found: Decided, lemmas: Iterable[Claim]) -> dict[str, Any]:
    """Return the case that refutes a statement, or its proof with the lemmas that it names."""
    from dpassay.verifier.proof import witness_of

    finding, scope, decision, claim = found
    witness = witness_of(claim, lemmas)
    if finding.verdict is not Verdict.REFUTED:
        return witness
    witness["case"] = scope.to_json() | claim.refuted_at(decision.witness)
    if other := witness.get("proof", {}).pop("limit", None):
        witness["limit"] = str(other)
    return witness


def completed(theorem: Mapping[str, Any], witness: Mapping[str, Any]) -> dict[str, Any]:
    """Return a certificate with the rows of lemmas that its proof uses, if it is found in time."""
    data = {"version": VERSION, "theorem": theorem, "lemmas": [], "witness": witness}
    whole = require(data)
    try:
        proof = prove(whole["theorem"], whole["witness"], Budget(seconds=_SECONDS))
    except NotProved:
        return data
    return {**data, "lemmas": sorted(proof.lemmas)}


def argued(data: dict[str, Any]) -> dict[str, Any]:
    """Return the certificate of a claim that is argued; text and lemmas are in its theorem."""
    return {**data, "theorem": {**data["theorem"], "verdict": Verdict.ARGUED.value}}


def write(path: Path, certificates: Sequence[Mapping[str, Any]]) -> None:
    """Write one certificate, or several as a list, in canonical form."""
    path.write_bytes(canonical(certificates[0] if len(certificates) == 1 else [*certificates]))


def canonical(data: object) -> bytes:
    """Return plain data in canonical form (RFC 8785; keys are ASCII), with an end of line."""
    text = json.dumps(
        data, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return text.encode("utf-8") + b"\n"
