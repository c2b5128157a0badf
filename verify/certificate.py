"""Certificates: a verdict as plain data that a second program can check.

A certificate holds the claim, the case, the facts with their enclosures, and the comparison
between them that gives the verdict. Every leaf is sealed: `seal` maps the path of each leaf to a
digest, so that a changed digit is reported by the field it stands in. The seal guards against
accidents; the mathematics guards against mistakes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from accountant.errors import InvalidInputError
from verify.claim import Claim, Decision, Scope
from verify.exact import verify_with_evidence
from verify.verdict import Finding, Verdict

SCHEMA_VERSION = 1
DECIDED = (Verdict.HOLDS, Verdict.REFUTED, Verdict.SUPPORTED)


def certify(claim: Claim) -> tuple[Finding, dict[str, Any] | None]:
    """Decide a claim; return the finding and its certificate (None where nothing was decided)."""
    finding, (scope, decision) = verify_with_evidence(claim)
    if finding.verdict not in DECIDED or not decision.evidence:
        return finding, None
    return finding, certificate(claim, scope, decision, finding)


def certificate(claim: Claim, scope: Scope, decision: Decision, finding: Finding) -> dict[str, Any]:
    """Put a certificate together from a decision and its evidence."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "claim": msgspec.to_builtins(claim),
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


def seal(data: dict[str, Any]) -> dict[str, str]:
    """Return the digest of every leaf by its path."""
    return {path: _digest(path, leaf) for path, leaf in leaves(data)}


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every leaf of nested data with its path, such as `facts[0].p.lower`."""
    if isinstance(value, dict) and value:
        for key, entry in value.items():
            yield from leaves(entry, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for index, entry in enumerate(value):
            yield from leaves(entry, f"{path}[{index}]")
    else:
        yield path, value


def _digest(path: str, leaf: object) -> str:
    text = json.dumps([path, leaf], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write(path: Path, certificates: list[dict[str, Any]]) -> None:
    """Write one certificate, or several as a list."""
    data = certificates[0] if len(certificates) == 1 else certificates
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf-8")


def read(path: Path) -> list[dict[str, Any]]:
    """Read a certificate file, or raise InvalidInputError."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidInputError(f"Cannot read {path}: {error.strerror or error}.") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InvalidInputError(f"{path} is not a JSON certificate: {error}.") from None
    entries = data if isinstance(data, list) else [data]
    if not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidInputError(f"{path} is not a certificate: expected an object or a list.")
    return entries
