"""What a verdict owes to other claims: ARGUED to its lemmas, SLIP to its correction."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import msgspec

from dpassay.verifier.claim import Claim
from dpassay.verifier.verdict import Finding, Rigour, Verdict

_ENOUGH = (Verdict.HOLDS, Verdict.ARGUED)


def conclude(claims: Sequence[Claim], findings: Sequence[Finding]) -> list[Finding]:
    """Turn SUPPORTED into ARGUED, and REFUTED into SLIP, where other claims allow it.

    A claim with an argument is ARGUED if all of its lemmas stand. A text is never a proof: the
    verdict is not HOLDS, whatever the lemmas are. A slip is REFUTED unless its correction names
    a claim that HOLDS.

    Claims and findings are those of one file, in the same order. A lemma may itself be argued;
    claims that rest on each other in a circle are never accepted.
    """
    result = list(findings)
    standing = {f.id for f in result if f.verdict in _ENOUGH}
    waiting = [
        index
        for index, claim in enumerate(claims)
        if claim.argument.strip() and result[index].verdict is Verdict.SUPPORTED
    ]
    changed = True
    while changed:
        changed = False
        for index in list(waiting):
            if all(lemma in standing for lemma in claims[index].lemmas):
                result[index] = _argued(claims[index], result[index])
                standing.add(result[index].id)
                waiting.remove(index)
                changed = True
    holding = {f.id for f in result if f.verdict is Verdict.HOLDS}
    for index, claim in enumerate(claims):
        refuted = result[index].verdict is Verdict.REFUTED
        if claim.slip and refuted and not holding.isdisjoint(corrected_by(claim, holding)):
            result[index] = msgspec.structs.replace(result[index], verdict=Verdict.SLIP)
    return result


def corrected_by(claim: Claim, ids: Collection[str]) -> list[str]:
    """Return the ids that the correction of a claim names, with or without a paper in front."""
    words = re.findall(r"[\w./-]*\w", claim.correction)
    return [each for each in ids if any(f"/{each}".endswith(f"/{word}") for word in words)]


def _argued(claim: Claim, finding: Finding) -> Finding:
    lemmas = f" It rests on {', '.join(claim.lemmas)}." if claim.lemmas else " It names no lemma."
    return msgspec.structs.replace(
        finding,
        verdict=Verdict.ARGUED,
        rigour=Rigour.ARGUED,
        reason=f"Argued by a person, not proved here: “{claim.argument.strip()}”{lemmas} "
        f"{finding.reason}",
        route=f"argument from {len(claim.lemmas)} lemmas; {finding.route}",
    )
