"""Write the tables of verdicts: README.md (counts) and docs/verdicts.md (every statement).

    python docs/make_verdicts.py

The tables are made from a run of all ledgers, never by hand; a test holds them to a run.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from verify.argument import conclude
from verify.batch import decide_all
from verify.document import Document, every_paper
from verify.verdict import Finding, Verdict

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- verdicts:begin -->", "<!-- verdicts:end -->"


def decide(document: Document) -> list[Finding]:
    """Decide every claim of a ledger, in its order."""
    found: dict[int, Finding] = {}
    for index, outcome in decide_all(document.claims, jobs=2):
        if outcome.finding is None:
            raise SystemExit(f"{document.name}: {outcome.error}")
        found[index] = outcome.finding
    return conclude(document.claims, [found[index] for index in range(len(document.claims))])


def counts_table(ledgers: list[tuple[Document, list[Finding]]]) -> str:
    """Return the table of counts, one row for each paper."""
    names = [verdict.value for verdict in Verdict]
    lines = ["| paper | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    total: Counter[str] = Counter()
    for document, findings in ledgers:
        counts = Counter(finding.verdict.value for finding in findings)
        total += counts
        cells = " | ".join(str(counts[name]) for name in names)
        lines.append(f"| `{document.name}` | {cells} |")
    lines.append("| all | " + " | ".join(str(total[name]) for name in names) + " |")
    return "\n".join(lines)


def details(ledgers: list[tuple[Document, list[Finding]]]) -> str:
    """Return the page that lists every statement with its verdict and reason."""
    parts = [
        "# Every statement, decided\n\nMade by `python docs/make_verdicts.py` from a run of all "
        "ledgers. Each row is a claim in `verify/papers/`."
    ]
    for document, findings in ledgers:
        parts.append(f"## {document.name}\n\n{document.authors}: {document.title}\n")
        rows = ["| claim | in words | place | verdict | reason |", "|---|---|---|---|---|"]
        rows += [
            f"| `{f.id}`: {_cell(f.formal)} | “{_cell(f.statement)}” {_cell(f.note)} "
            f"| {_cell(f.source)} | {f.verdict.value} | {_cell(f.reason)} |"
            for f in findings
        ]
        parts.append("\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def in_readme(readme: str, table: str) -> str:
    """Return README's text with the table between the two marks."""
    head, rest = readme.split(BEGIN)
    _, tail = rest.split(END)
    return f"{head}{BEGIN}\n{table}\n{END}{tail}"


def main() -> None:
    """Run all ledgers and write both tables."""
    ledgers = [(document, decide(document)) for document in every_paper()]
    readme = ROOT / "README.md"
    readme.write_text(in_readme(readme.read_text("utf-8"), counts_table(ledgers)), "utf-8")
    (ROOT / "docs" / "verdicts.md").write_text(details(ledgers), "utf-8")


if __name__ == "__main__":
    main()
