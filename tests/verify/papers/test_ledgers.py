"""The ledgers of the papers: every verdict with its reason, and the page that reports it.

What each ledger says is in `verdicts.toml`; a ledger is decided once in a run. The numbers of a
paper are found a second time in a file of its own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpassay.verifier.document import Document, read_paper
from dpassay.verifier.verdict import STRICTER, Finding, Verdict

TABLE: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "verdicts.toml").read_text("utf-8")
)
PAGES = Path(__file__).parents[3] / "docs" / "findings"
SHORT = ("elliptical-gaussian",)
"""What the default suite decides; the others take from six seconds to a minute."""
STANDS = {Verdict.HOLDS, Verdict.ARGUED}
REFUTED = {Verdict.REFUTED, Verdict.SLIP}

Decided = Callable[[str], dict[str, Finding]]
each_paper = pytest.mark.parametrize("paper", TABLE)
each_ledger = pytest.mark.parametrize(
    "paper",
    [pytest.param(paper, marks=[pytest.mark.slow] * (paper not in SHORT)) for paper in TABLE],
)


def expected(paper: str) -> dict[str, Verdict]:
    return {
        name: Verdict.PENDING if key.startswith("pending-") else Verdict(key)
        for key, names in TABLE[paper].items()
        if key != "worst"
        for name in names.split()
    }


def claims(paper: str) -> Document:
    return read_paper(paper)


@each_paper
def test_the_table_names_every_claim(paper: str) -> None:
    assert [claim.id for claim in claims(paper).claims if claim.id not in expected(paper)] == []
    assert len(claims(paper).claims) == len(expected(paper))


@each_paper
def test_the_page_points_to_claims_of_the_ledger(paper: str) -> None:
    """Every refutation is on it, and what is called a correction stands, or cannot be decided."""
    text, verdicts = (PAGES / f"{paper}.md").read_text("utf-8"), expected(paper)
    named = set(re.findall(r"`([a-z0-9-]+(?:/[A-Za-z0-9./-]+)?)`", text))
    assert named - {f"verify/papers/{paper}.toml"} <= set(verdicts)
    refuted = [name for name, verdict in verdicts.items() if verdict in REFUTED]
    assert [name for name in refuted if f"`{name}`" not in text] == []
    for entry in re.findall(r"^- Corrected:(.*?)(?=^- |^#|\Z)", text, re.MULTILINE | re.DOTALL):
        corrections = {verdicts[name] for name in re.findall(r"`([a-z0-9-]+/?[\w./-]*)`", entry)}
        assert corrections & {*STANDS, Verdict.PENDING}, entry


@each_paper
def test_every_refuted_statement_stands_under_its_grade(paper: str) -> None:
    """An error with what it makes false, a slip, or a strict reading; errors say what an author may
    answer."""
    text = (PAGES / f"{paper}.md").read_text("utf-8")
    sections = re.split(r"^##+ ", text, flags=re.MULTILINE)
    slips = "".join(part for part in re.split(r"^## ", text, flags=re.MULTILINE)
                    if part.startswith("Slips"))  # fmt: skip
    strict = "".join(part for part in sections if part.startswith(("Taken at", "At finite")))
    errors = [part for part in sections if "Makes false:" in part]
    falsified = "".join(re.findall(r"Makes false:.*?\n\n", "\n".join(errors), re.DOTALL))
    assert all("How an author may answer:" in part for part in errors)
    for name, verdict in expected(paper).items():
        if verdict in REFUTED:
            stricter = name.endswith(STRICTER)
            where = slips if verdict is Verdict.SLIP else strict if stricter else falsified
            assert f"`{name}`" in where, name


@each_ledger
def test_verdicts(paper: str, decided: Decided) -> None:
    findings = decided(paper)
    assert {name: finding.verdict for name, finding in findings.items()} == expected(paper)
    assert all(each.source and each.statement and each.reason for each in findings.values())


@each_ledger
def test_a_refutation_names_its_cause_and_its_correction(paper: str, decided: Decided) -> None:
    for finding in decided(paper).values():
        if finding.verdict in REFUTED:
            assert finding.cause, finding.id
            assert finding.correction, finding.id
            named = re.findall(r"[a-z][A-Za-z0-9./-]*[A-Za-z0-9]", finding.correction)
            found = {expected(paper)[name] for name in named if name in expected(paper)}
            assert found & STANDS or paper == "less-is-more", finding.correction


@each_ledger
def test_what_is_argued_rests_on_lemmas_that_stand(paper: str, decided: Decided) -> None:
    findings = decided(paper)
    for claim in claims(paper).claims:
        if findings[claim.id].verdict is Verdict.ARGUED:
            assert {findings[lemma].verdict for lemma in claim.lemmas} <= STANDS
            assert claim.argument.strip() in findings[claim.id].reason


@each_ledger
def test_every_proof_is_accepted(paper: str, decided: Decided) -> None:
    for claim in claims(paper).claims:
        if claim.proof:
            route = decided(paper)[claim.id].route
            assert route.startswith(f"proof by {claim.proof['method']}"), claim.id


@each_ledger
def test_pending_says_what_it_needs(paper: str, decided: Decided) -> None:
    for key, names in TABLE[paper].items():
        needs = key.removeprefix("pending-")
        for name in names.split() if needs != key else []:
            said = decided(paper)[name].reason
            assert said.startswith(f"Needs {needs}: ") or needs == "nothing", said


@each_ledger
def test_the_worst_counterexamples(paper: str, decided: Decided) -> None:
    """A part of the case that is reported, and how bad it is at least, or how both sides begin."""
    for row in TABLE[paper].get("worst", []):
        finding = decided(paper)[row["id"]]
        assert row["case"].items() <= finding.witness.get("case", {}).items(), row
        for key in {"factor", "difference"} & set(row):
            assert Fraction(finding.margin[key]["lower"]) >= Fraction(row[key]), row
        for key in {"left", "right"} & set(row):
            assert finding.witness[key].startswith(row[key]), row
