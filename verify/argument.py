"""Proofs by argument: a supported claim holds when every lemma it names was proved."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from verify.claim import Claim
from verify.verdict import Finding, Verdict


def conclude(claims: Sequence[Claim], findings: Sequence[Finding]) -> list[Finding]:
    """Turn SUPPORTED into HOLDS where a claim's argument rests on lemmas that all hold.

    Parameters
    ----------
    claims, findings
        The claims of one file and their findings, in the same order. A lemma may itself rest on
        an argument; claims that rest on each other in a circle are never accepted.

    Returns
    -------
    list of Finding
        The same findings, the accepted ones with the argument and its lemmas in their reason.
    """
    result = list(findings)
    proved = {f.id for f in result if f.verdict is Verdict.HOLDS}
    waiting = [
        index
        for index, claim in enumerate(claims)
        if claim.lemmas and result[index].verdict is Verdict.SUPPORTED
    ]
    changed = True
    while changed:
        changed = False
        for index in list(waiting):
            claim = claims[index]
            if all(lemma in proved for lemma in claim.lemmas):
                result[index] = _accepted(claim, result[index])
                proved.add(result[index].id)
                waiting.remove(index)
                changed = True
    return result


def _accepted(claim: Claim, finding: Finding) -> Finding:
    return msgspec.structs.replace(
        finding,
        verdict=Verdict.HOLDS,
        reason=f"{claim.argument} Proved here: {', '.join(claim.lemmas)}. {finding.reason}",
        route=f"argument from {len(claim.lemmas)} proved claims; {finding.route}",
    )
