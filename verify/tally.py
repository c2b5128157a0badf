"""How many statements of a paper its ledger has, and how they were decided."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from dpassay.verifier.document import Document
from dpassay.verifier.report import counts
from dpassay.verifier.verdict import Finding, Verdict, distinct_errors

_NUMBER = r"[A-Z]?\.?\d+(?:\.\d+)?"
_NAMED = re.compile(
    "(Theorem|Lemma|Proposition|Corollary|Corollarie|Claim|Remark|Property|Propertie|Definition|"
    f"Algorithm|Example)s? ({_NUMBER}(?:(?:, | and | to ){_NUMBER})*)"
)
_VERDICTS = [verdict.value for verdict in Verdict if verdict is not Verdict.REFUTED]
HEAD = (
    "numbered statements in the ledger",
    "claims",
    "distinct errors (refuted statements)",
    "refuted only as worded, at finite n, or cited",
    *_VERDICTS,
)
"""What `cells` has."""


def statements(source: str) -> set[str]:
    """Return the numbered statements that a source names.

    >>> sorted(statements("Lemmas 4.12 and 4.14; Definitions 2.1 to 2.3, proof"))
    ['Definition 2.1', 'Definition 2.2', 'Definition 2.3', 'Lemma 4.12', 'Lemma 4.14']
    """
    found = set()
    for kind, listed in _NAMED.findall(source):
        name = {"Propertie": "Property", "Corollarie": "Corollary"}.get(kind, kind)
        ends = re.split(r", | and | to ", listed)
        if " to " in listed:
            head, dot, first = ends[0].rpartition(".")
            last = ends[1].rpartition(".")[2]
            ends = [f"{head}{dot}{number}" for number in range(int(first), int(last) + 1)]
        found |= {f"{name} {end}" for end in ends}
    return found


def tally(document: Document, findings: Sequence[Finding]) -> Counter[str]:
    """Count the statements of a paper, and the claims of its ledger by their verdicts."""
    found = Counter(finding.verdict.value for finding in findings)
    errors = distinct_errors(findings)
    found["claims"], found["errors"] = len(findings), len(errors)
    found["refuted"] = sum(map(len, errors.values()))
    named = set().union(*(statements(claim.source) for claim in document.claims))
    found["numbered"] = len(document.numbered)
    found["decided"] = len(named & set(document.numbered))
    return found


def cells(tallied: Counter[str]) -> list[str]:
    """Return the row of a paper, below `HEAD`."""
    refuted = tallied["refuted"]
    numbered = f"{tallied['decided']} of {tallied['numbered']}"
    errors = f"{tallied['errors']} ({refuted})"
    stricter = tallied[Verdict.REFUTED.value] - refuted
    return [numbered, *map(str, (tallied["claims"], errors, stricter)),
            *(str(tallied[name]) for name in _VERDICTS)]  # fmt: skip


def lines(ledgers: Sequence[tuple[Document, Sequence[Finding]]]) -> list[str]:
    """Say how many numbered statements each ledger has; of several, also what was decided."""
    found = []
    for document, findings in ledgers:
        counted = tally(document, findings)
        said = f"{counted['decided']} of {counted['numbered']} numbered statements in the ledger"
        also = f"; {counts(findings)}" if len(ledgers) > 1 else ""
        found.append(f"{document.name}  {said}{also}")
    return found
