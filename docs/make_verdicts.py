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
PROOF = "proof by "
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


def _cases_first(name: str) -> tuple[bool, str]:
    return name != "its cases", name


def details(ledgers: list[tuple[Document, list[Finding]]]) -> str:
    """Return the page that lists every statement with its verdict and reason."""
    parts = [
        "# Every statement, decided\n\nMade by `python docs/make_verdicts.py` from a run of all "
        "ledgers. Each row is a claim in `verify/papers/`: what was decided, and what its author "
        "says, in quotes.",
        "How the claims that hold were proved: each of their cases, or by a method over whole "
        "domains ([rigour](rigour.md)).\n\n" + methods_table(ledgers),
    ]
    for document, findings in ledgers:
        parts.append(f"## {document.name}\n\n{document.authors}: {document.title}\n")
        rows = ["| claim | in words | place | verdict | reason |", "|---|---|---|---|---|"]
        rows += [
            f"| `{f.id}` {_cell(f.formal)} | “{_cell(f.statement)}” {_cell(f.note)} "
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
