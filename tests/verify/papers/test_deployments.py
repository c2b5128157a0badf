"""The ledger of public deployments: each has a source, a verdict or a question, and fair words."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest
from mpmath import exp, log, mp, mpf

from dpassay.accountant.questions.convert import convert
from dpassay.verifier import kernel
from dpassay.verifier.claims import Claim
from dpassay.verifier.claims.relation import Pending
from dpassay.verifier.document import DEPLOYMENTS, papers, read_paper
from dpassay.verifier.prover import decided as certify
from dpassay.verifier.verdict import Finding, Verdict
from tests.scripts import script

ROOT = Path(__file__).resolve().parents[3]
CLAIMS = read_paper(DEPLOYMENTS).claims
FALSE = {
    "apple-scenes/parameters": Verdict.REFUTED,
    "recurve/parameters/paper": Verdict.REFUTED,
    "apple-emoji/mechanism/hashes": Verdict.SLIP,
    "google-symptoms/composition/normalisation": Verdict.SLIP,
    "census-dhc/composition": Verdict.SLIP,
    "wikimedia-russia/mechanism/step-4": Verdict.SLIP,
}
ORDER = ("unit", "parameters", "mechanism", "composition", "side-channels")


def test_it_is_no_paper() -> None:
    assert DEPLOYMENTS not in papers()


def test_every_deployment_has_a_source_and_the_order_of_the_guidelines() -> None:
    places: dict[str, list[int]] = {}
    for claim in CLAIMS:
        name, aspect, *_ = claim.id.split("/")
        places.setdefault(name, []).append(ORDER.index(aspect))
        assert claim.source.startswith("https://")
    assert len(places) >= 25
    assert [name for name, found in places.items() if found != sorted(found)] == []


def test_what_is_pending_is_a_question_and_what_is_false_has_a_charitable_reading() -> None:
    for claim in CLAIMS:
        if isinstance(claim, Pending):
            assert ("?" in claim.reason) == (claim.needs == "answer"), claim.id
        assert bool(claim.cause) == (claim.id in FALSE), claim.id


def test_every_verdict_and_the_page(decided: Callable[[str], dict[str, Finding]]) -> None:
    findings = decided(DEPLOYMENTS)
    for claim in CLAIMS:
        otherwise = Verdict.PENDING if isinstance(claim, Pending) else Verdict.HOLDS
        assert findings[claim.id].verdict is FALSE.get(claim.id, otherwise), claim.id
    tables = script("docs/make_verdicts.py")
    page = (ROOT / "docs" / "deployments.md").read_text("utf-8")
    assert tables.with_table(page, tables.deployments([*findings.values()])) == page


@pytest.mark.parametrize(
    "claim", [c for c in CLAIMS if not isinstance(c, Pending)], ids=lambda claim: claim.id
)
def test_every_certificate_is_accepted(claim: Claim) -> None:
    _, certificate = certify(claim, CLAIMS)
    assert certificate is not None
    found = kernel.check(certificate)
    assert found.outcome in (kernel.Outcome.VALID, kernel.Outcome.CONDITIONAL), found


def test_conversions_agree_with_the_accountant() -> None:
    """What is said to follow from ρ lies above the upper end of `convert`, or next to it."""
    seen = 0
    for claim in CLAIMS:
        if "rho" in claim.let:
            delta = re.sub(".* <= ", "", claim.plain()["claim"])
            upper = convert(zcdp=claim.let["rho"], delta=delta).upper
            assert float(claim.let["epsilon"]) > float(upper) * (1 - 2e-3), claim.id
            seen += 1
    assert seen >= 10


def test_numbers_of_the_words_by_hand() -> None:
    with mp.workdps(30):
        assert abs(log(1 + mpf("0.124") * (exp(mpf("6.8")) - 1)) - mpf("4.7204")) < 5e-5
        assert abs(exp(-mpf("0.01") * log(10**6) ** 2) - mpf("0.148")) < 5e-4
    assert (date(2022, 10, 15) - date(2020, 1, 1)).days + 1 == 1019
    totals = {"50.4": "1.68", "60": "2", "0.45": "0.015", "240": "8"}
    assert all(Fraction(total) == 30 * Fraction(one) for total, one in totals.items())
    assert Fraction("6.688") == 4 * Fraction("1.672")
    assert sum(map(Fraction, ("15.29", "19.776", "17.79", "2.515"))) == Fraction("55.371")
