"""Write the tables of verdicts: docs/findings.md, field.md, deployments.md, verdicts.md.

The first have counts; docs/verdicts.md has all statements, and what `dpassay check` says of the
certificates.

    python docs/make_verdicts.py

The tables are made from a run of all ledgers, never by hand; a test holds them to a run. Some ten
minutes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpassay.verifier import kernel
from dpassay.verifier.batch import concluded, decide_all
from dpassay.verifier.document import DEPLOYMENTS, FIELD, Document, every_paper, read_paper
from dpassay.verifier.kernel import Checked
from dpassay.verifier.verdict import Finding, Verdict, distinct_errors

ROOT = Path(__file__).resolve().parent.parent
PROOF = "proof by "
ASPECTS = ("unit", "parameters", "mechanism", "composition", "side-channels")
"""What is asked of a deployment, in the order of NIST SP 800-226."""
SAID = "there is nothing to decide"
"""The formal claim of what is only said."""
BEGIN, END = "<!-- verdicts:begin -->", "<!-- verdicts:end -->"
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


def decide(document: Document) -> list[Finding]:
    """Decide every claim of a ledger, in its order."""
    return run(document)[0]


def run(document: Document) -> tuple[list[Finding], list[dict[str, Any]]]:
    """Decide every claim of a ledger; also return the certificates."""
    outcomes = concluded(document.claims, dict(decide_all(document.claims, jobs=2))).values()
    findings = [outcome.finding for outcome in outcomes if outcome.finding is not None]
    if len(findings) < len(document.claims):
        raise SystemExit(f"{document.name}: {next(o.error for o in outcomes if o.error)}")
    return findings, [o.certificate for o in outcomes if o.certificate is not None]


def counts_table(ledgers: list[tuple[Document, list[Finding]]]) -> str:
    """Return the table of counts, one row for each paper."""
    counted = [(f"`{document.name}`", tally(document, found)) for document, found in ledgers]
    total = sum((each for _, each in counted), Counter())
    lines = [_row(["paper", *HEAD]), "|---|" + "---|" * len(HEAD)]
    return "\n".join(lines + [_row([name, *cells(c)]) for name, c in [*counted, ("all", total)]])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def errors_table(findings: list[Finding]) -> str:
    """Return the distinct errors of a paper, each with the statements that it makes false."""
    rows = [
        _row([name, ", ".join(f"`{finding.id}`" for finding in fallen)])
        for name, fallen in distinct_errors(findings).items()
    ]
    if not rows:
        return "No distinct error."
    return "\n".join(["| distinct error | statements that it makes false |", "|---|---|", *rows])


def method(finding: Finding) -> str:
    """Return how a claim that holds was proved."""
    if finding.route.startswith(PROOF):
        return finding.route.removeprefix(PROOF).split(",")[0]
    return "dual" if finding.kind == "optimality" else "its cases"


def methods_table(ledgers: list[tuple[Document, list[Finding]]]) -> str:
    """Return how many claims hold by what, one row for each paper."""
    held = {
        document.name: Counter(method(f) for f in findings if f.verdict is Verdict.HOLDS)
        for document, findings in ledgers
    }
    names = sorted({name for counts in held.values() for name in counts}, key=_cases_first)
    lines = ["| paper | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for paper, counts in held.items():
        cells = " | ".join(str(counts[name]) for name in names)
        lines.append(f"| `{paper}` | {cells} |")
    return "\n".join(lines)


def certificates_table(ledgers: list[tuple[Document, list[Checked]]]) -> str:
    """Return what the kernel says of the certificates of each paper."""
    names = [outcome.value for outcome in kernel.Outcome]
    lines = ["| paper | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for document, checked in ledgers:
        counts = Counter(each.outcome.value for each in checked)
        cells = " | ".join(str(counts[name]) for name in names)
        lines.append(f"| `{document.name}` | {cells} |")
    return "\n".join(lines)


def conditions_table(ledgers: list[tuple[Document, list[Checked]]]) -> str:
    """Return what conditional certificates rest on, by how many in each paper."""
    reasons = {
        document.name: Counter(reason for each in checked for reason in _reasons(each))
        for document, checked in ledgers
    }
    names = sorted({name for counts in reasons.values() for name in counts})
    lines = ["| rests on | " + " | ".join(f"`{paper}`" for paper in reasons) + " |"]
    lines.append("|---|" + "---|" * len(reasons))
    for name in names:
        cells = " | ".join(str(counts[name] or "") for counts in reasons.values())
        lines.append(f"| {_cell(name)} | {cells} |")
    return "\n".join(lines)


def _reasons(checked: Checked) -> set[str]:
    """Return what a certificate rests on, without the names that differ from claim to claim."""
    return {
        re.sub(r'\s*"[^"]*"|(?<=not proved here): .*', "", each) for each in checked.assumptions
    }


def _cases_first(name: str) -> tuple[bool, str]:
    return name != "its cases", name


def details(
    ledgers: list[tuple[Document, list[Finding]]],
    checked: list[tuple[Document, list[Checked]]],
    field: tuple[Document, list[Finding]],
) -> str:
    """Return the page that lists every statement with its verdict and reason."""
    parts = [
        "# Every statement, decided\n\nMade by `python docs/make_verdicts.py` from a run of all "
        "ledgers. Each row is a claim in `verify/papers/`: what was decided, and what its author "
        "says, in quotes.",
        "How the claims that hold were proved: each of their cases, or by a method over whole "
        "domains ([proofs](proofs.md)).\n\n" + methods_table(ledgers),
        "What `dpassay check` says of their certificates, and what CONDITIONAL ones rest on:\n\n"
        + certificates_table(checked),
        conditions_table(checked),
    ]
    parts += [section(document, findings) for document, findings in [*ledgers, field]]
    return "\n\n".join(parts) + "\n"


def section(document: Document, findings: list[Finding]) -> str:
    """Return the statements of one ledger."""
    rows = ["| claim | in words | place | verdict | reason |", "|---|---|---|---|---|"]
    rows += [
        f"| `{f.id}` {_cell(f.formal)} | “{_cell(f.statement)}” {_cell(f.note)} "
        f"| {_cell(f.source)} | {f.verdict.value} | {_cell(f.reason)} |"
        for f in findings
    ]
    head = f"## {document.name}\n\n{document.authors}: {document.title}\n"
    return "\n\n".join([head, errors_table(findings), "\n".join(rows)])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def deployments(findings: list[Finding]) -> str:
    """Return what was decided of each deployment: a table, what does not fit, and all of it."""
    found: dict[str, dict[str, list[Finding]]] = {}
    for finding in findings:
        name, aspect, *_ = finding.id.split("/")
        found.setdefault(name, {each: [] for each in ASPECTS})[aspect].append(finding)
    rows = [["deployment", *ASPECTS], ["---"] * (1 + len(ASPECTS))]
    rows += [
        [f"[{name}](#{name})", *(_verdicts(each) for each in aspects.values())]
        for name, aspects in found.items()
    ]
    false = [
        f"- `{f.id}`: “{f.statement}”\n  - **May be meant.** {f.cause}\n"
        f"  - **As worded.** {f.verdict.value}. {f.correction}"
        for f in findings
        if f.verdict.is_false
    ]
    parts = [
        counts([f for f in findings if f.formal != SAID]),
        "\n".join(map(_row, rows)),
        "## What does not fit as it is written",
        "\n".join(false),
    ]
    for name, aspects in found.items():
        source = next(f.source for each in aspects.values() for f in each)
        lines = [
            f"- **{aspect}.** {' '.join(map(_in_words, each))}"
            for aspect, each in aspects.items()
            if each
        ]
        parts += [f"## {name}", f"<{source}>", "\n".join(lines)]
    return "\n\n".join(parts)


def _verdicts(findings: list[Finding]) -> str:
    """Return the different verdicts, the decided ones first; "said" where none is wanted."""
    words = sorted({f.verdict for f in findings if f.formal != SAID}, key=[*Verdict].index)
    return ", ".join(word.value for word in words) or ("said" if findings else "—")


def _in_words(finding: Finding) -> str:
    """Return what is said of a deployment, and what was decided or is asked."""
    if finding.formal == SAID:
        return finding.statement
    asked = f": {finding.reason.removeprefix('Needs an answer: ')}"
    end = asked if finding.verdict is Verdict.PENDING else "."
    return f"{finding.statement} {finding.verdict.value}{end}"


def counts(findings: list[Finding]) -> str:
    """Return how many claims have each verdict."""
    found = Counter(f.verdict.value for f in findings)
    listed = ", ".join(f"{found[v.value]} {v.value}" for v in Verdict if found[v.value])
    return f"{len(findings)} claims: {listed}."


def with_table(text: str, table: str) -> str:
    """Return a page's text with the table between the two marks."""
    head, rest = text.split(BEGIN)
    _, tail = rest.split(END)
    return f"{head}{BEGIN}\n{table}\n{END}{tail}"


def main() -> None:
    """Run all ledgers and write both tables."""
    ledgers, checked = [], []
    for document in every_paper():
        findings, certificates = run(document)
        ledgers.append((document, findings))
        checked.append((document, [kernel.check(data) for data in certificates]))
    _write(ROOT / "docs" / "findings.md", counts_table(ledgers))
    field = read_paper(FIELD)
    found = decide(field)
    _write(ROOT / "docs" / "field.md", counts(found))
    _write(ROOT / "docs" / "deployments.md", deployments(decide(read_paper(DEPLOYMENTS))))
    page = details(ledgers, checked, (field, found))
    (ROOT / "docs" / "verdicts.md").write_text(page, "utf-8")


def _write(page: Path, table: str) -> None:
    """Put a table between the marks of a page."""
    page.write_text(with_table(page.read_text("utf-8"), table), "utf-8")


if __name__ == "__main__":
    main()
