"""What writes certificates: for a finding, its theorem and the hints that let the kernel prove it.

Nothing here is trusted. A certificate is put to the kernel before it is handed out, which tells the
lemmas that it rests on, and that it is as good as it will be found elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpassay.verifier.kernel import VERSION, canonical
from dpassay.verifier.kernel.check import prove
from dpassay.verifier.kernel.numbers import Budget, NotProved
from dpassay.verifier.kernel.schema import KINDS, require
from dpassay.verifier.verdict import Verdict

if TYPE_CHECKING:
    from dpassay.verifier.claim import Claim, Decision, Scope
    from dpassay.verifier.verdict import Finding

__all__ = ["argued", "certify", "completed", "decided", "write"]

_DECIDED = (Verdict.HOLDS, Verdict.REFUTED, Verdict.SUPPORTED)


def decided(claim: Claim, lemmas: Sequence[Claim] = ()) -> tuple[Finding, dict[str, Any] | None]:
    """Decide a claim; return the finding and its certificate (None where there is none)."""
    from dpassay.verifier.exact import verify_with_evidence

    finding, (scope, decision), claim = verify_with_evidence(claim, lemmas)
    return finding, certify(claim, finding, scope, decision, lemmas)


def _home(claim: Claim) -> str:
    return "releases" if hasattr(claim, "mechanism") else "statements"


def certify(
    claim: Claim,
    finding: Finding,
    scope: Scope,
    decision: Decision,
    lemmas: Iterable[Claim] = (),
) -> dict[str, Any] | None:
    """Return the certificate of a finding; None where nothing was decided.

    `scope` and `decision` are the case that is reported and what was decided in it; `lemmas` are
    the claims that a proof may name.
    """
    from dpassay.verifier.proof import plain, reachable

    if finding.verdict not in _DECIDED or claim.kind not in KINDS:
        return None
    fields = plain(claim)
    theorem = {
        name: _text(fields[name]) for name in KINDS[claim.kind][0]["properties"] if name in fields
    }
    theorem |= {"kind": claim.kind, "verdict": finding.verdict.value}
    written = import_module(f"dpassay.verifier.prover.{_home(claim)}").certificate
    named = [plain(lemma) for lemma in reachable(claim, lemmas)]
    found = written(fields, finding, scope, decision, named)
    if found is None:
        return None
    witness, rows = found
    return completed(theorem, witness, rows)


def _text(value: Any) -> Any:
    """Return nested data without floats and empty defaults: numbers with a point stand as texts."""
    if isinstance(value, Mapping):
        return {str(key): _text(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_text(entry) for entry in value]
    return value if isinstance(value, (str, bool)) or value is None else str(value)


def completed(
    theorem: Mapping[str, Any], witness: Mapping[str, Any], rows: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a certificate with the rows of lemmas that the kernel names; else those given."""
    data = {"version": VERSION, "theorem": theorem, "lemmas": [*rows], "witness": witness}
    whole = require(data)
    try:
        proof = prove(whole["theorem"], whole["witness"], Budget())
    except NotProved:
        return data
    return {**data, "lemmas": sorted(proof.lemmas)}


def argued(data: dict[str, Any]) -> dict[str, Any]:
    """Return the certificate of a claim that is argued; text and lemmas are in its theorem."""
    return {**data, "theorem": {**data["theorem"], "verdict": Verdict.ARGUED.value}}


def write(path: Path, certificates: Sequence[Mapping[str, Any]]) -> None:
    """Write one certificate, or several as a list, in canonical form."""
    data = certificates[0] if len(certificates) == 1 else [*certificates]
    path.write_bytes(canonical(data) + b"\n")
