"""README and the documents: their code runs, their links lead on, their tables are current."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpassay.verifier import document
from dpassay.verifier.ask import verify
from dpassay.verifier.verdict import Finding
from tests.scripts import script

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


LONG = ("audits.md", "local.md", "lp.md", "streams.md")
"""Pages whose examples take several seconds."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] * (page.name in LONG), id=page.name)
        for page in PAGES
        if blocks(page, "python")
    ],
)
def test_every_python_block_runs(page: Path) -> None:
    names: dict[str, Any] = {}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    for target in re.findall(
        r"\]\(([^)#\s]+\.(?:md|py|toml|json|png|svg))[#)]", page.read_text("utf-8")
    ):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_claim_file_of_the_documentation_is_valid_and_decided() -> None:
    (text,) = blocks(ROOT / "docs" / "claims.md", "toml")
    verdicts = [verify(claim).verdict.value for claim in document.read_text(text).claims]
    assert verdicts == ["HOLDS", "SUPPORTED"]


def test_the_documented_kinds_are_the_kinds() -> None:
    from dpassay.verifier.claims import KINDS

    text = (ROOT / "docs" / "claims.md").read_text("utf-8")
    section = text.split("## Kinds")[1].split("##")[0]
    assert set(re.findall(r"^\| `([a-z-]+)` \|", section, re.M)) == set(KINDS)


def made_tables(name: str = "make_verdicts") -> Any:
    return script(f"docs/{name}.py")


def test_every_numbered_statement_of_a_paper_is_in_its_ledger() -> None:
    statements = made_tables().statements
    assert statements("Definitions 2.1 to 2.3; Lemma D.1, proof") == {
        "Definition 2.1", "Definition 2.2", "Definition 2.3", "Lemma D.1",
    }  # fmt: skip
    for ledger in document.every_paper():
        assert ledger.numbered
        assert set(ledger.numbered) <= set().union(*(statements(c.source) for c in ledger.claims))


@pytest.mark.slow
@pytest.mark.parametrize("page", ["training.md", "matrix.md"])
def test_the_tables_of_samplings_are_those_of_a_run(page: str) -> None:
    found, wanted = made_tables("make_schemes").written(page)
    assert found == wanted


@pytest.mark.slow
def test_the_tables_of_verdicts_are_those_of_a_run(
    decided: Callable[[str], dict[str, Finding]],
) -> None:
    tables = made_tables()
    ledgers = [(ledger, [*decided(ledger.name).values()]) for ledger in document.every_paper()]
    counts = (ROOT / "docs" / "findings.md").read_text("utf-8")
    assert tables.with_table(counts, tables.counts_table(ledgers)) == counts
    page = (ROOT / "docs" / "verdicts.md").read_text("utf-8")
    for ledger, findings in ledgers:
        section = page.split(f"## {ledger.name}\n")[1].split("\n## ")[0]
        rows = [row for row in section.splitlines() if row.startswith("| `")]
        assert len(rows) == len(findings)
        for row, finding in zip(rows, findings, strict=True):
            assert row.startswith(f"| `{finding.id}` ")
            assert f"| {finding.verdict.value} |" in row


def test_every_file_that_is_named_exists() -> None:
    """Files of other libraries are left out: the ledger of the field names some."""
    folders = ("accountant", "lp", "verify", "figures", "tests", "benchmarks", "docs", "examples")
    paths = [*ROOT.glob("*.py"), *(p for name in folders for p in (ROOT / name).rglob("*.py"))]
    files = [path.as_posix() for path in paths]
    for page in PAGES:
        if page.name != "field.md":
            own = page.read_text("utf-8").split("\n## field\n")[0]
            named = re.findall(r"(?<!\w)((?:\w+/)+\w+\.py|(?<=`)\w+\.py(?=`))", own)
            assert not [name for name in named if not any(f.endswith(f"/{name}") for f in files)]
