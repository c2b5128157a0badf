"""The ledger of the field: each claim has a source, a verdict and an accepted certificate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mpmath import exp, log, mp, mpf, ncdf

from dpassay.verifier import kernel as checker
from dpassay.verifier.batch import Outcome
from dpassay.verifier.document import FIELD, Document, every_paper, papers, read_paper
from dpassay.verifier.proof import corrected_by
from dpassay.verifier.prover import decided as certify
from dpassay.verifier.verdict import Finding, Verdict
from tests.scripts import script

ROOT = Path(__file__).resolve().parents[3]
REFUTED = {
    "replace-one/rdp",
    "replace-one/without-replacement",
    "dp-sgd/pld-1e-10",
    "dp-sgd/gdp",
    "optimistic/discrete-gaussian",
    "optimistic/laplace",
    "classic/beyond-one",
    "analytic/one/wording",
    "permute-and-flip/rho",
    "google/laplace-threshold-large-delta",
    "opendp/laplace-threshold",
    "opendp/gaussian-threshold",
    "google/gaussian-sigma-root/wording",
    "autodp/gaussian-densities",
    "composition/optimal",
    "sparse-vector/roth",
    "sparse-vector/lee-clifton",
    "sparse-vector/stoddard",
    "sparse-vector/chen",
    "gdp/noise-1.06",
    "gdp/noise-0.638",
    "diffprivlib/snapping",
    "diffprivlib/bounded-laplace-effective/wording",
    "redrawn-laplace",
}
QUICK = [
    "permute-and-flip/rho",
    "permute-and-flip/pure",
    "opendp/noisy-max-rho",
    "google/laplace-threshold-large-delta",
    "opendp/laplace-threshold",
    "opendp/laplace-threshold-corrected",
    "opendp/gaussian-threshold",
    "tumult/partition-selection-printed",
    "classic/below-one",
    "autodp/gaussian-densities",
    "discrete-gaussian/rho",
    "pure/rho",
    "laplace/delta-least",
    "composition/optimal",
    "opendp/randomised-response",
    "rappor/permanent",
    "sparse-vector/lyu",
    "sparse-vector/dwork-roth",
    "sparse-vector/roth",
    "sparse-vector/stoddard",
    "sparse-vector/chen",
    "noisy-max/exponential",
    "subset-selection/pure",
    "odometer/pure",
    "odometer/filter",
    "snapping/mironov",
    "diffprivlib/snapping",
]
"""Claims of the default suite: every kind of error that is not about training runs."""


@pytest.fixture(scope="module")
def ledger() -> Document:
    return read_paper(FIELD)


def test_the_field_is_not_one_of_the_papers() -> None:
    assert FIELD not in papers()
    assert len(papers()) == len(list(every_paper())) == 5


def test_every_claim_says_where_it_stands(ledger: Document) -> None:
    assert len(ledger.claims) >= 60
    assert all(claim.source and claim.statement for claim in ledger.claims)
    ids = {claim.id for claim in ledger.claims}
    assert set(QUICK) | REFUTED <= ids
    for claim in ledger.claims:
        if claim.id in REFUTED and not claim.id.endswith("/wording"):
            assert claim.cause, claim.id


@pytest.mark.parametrize("name", QUICK)
def test_verdicts_and_certificates(name: str, ledger: Document) -> None:
    (claim,) = [each for each in ledger.claims if each.id == name]
    finding, certificate = certify(claim, ledger.claims)
    assert finding.verdict is (Verdict.REFUTED if name in REFUTED else Verdict.HOLDS)
    assert certificate is not None
    assert checker.check(certificate).outcome in (
        checker.Outcome.VALID,
        checker.Outcome.CONDITIONAL,
    )


@pytest.mark.slow
def test_every_verdict(decided: Callable[[str], dict[str, Finding]], ledger: Document) -> None:
    findings = decided(FIELD)
    assert {name for name, f in findings.items() if f.verdict is Verdict.REFUTED} == REFUTED
    assert {f.verdict for f in findings.values()} == {Verdict.HOLDS, Verdict.REFUTED}
    for claim in ledger.claims:
        if claim.id in REFUTED:
            for other in corrected_by(claim, set(findings) - {claim.id}):
                assert findings[other].verdict is Verdict.HOLDS


@pytest.mark.slow
def test_every_certificate_is_accepted(
    outcomes: Callable[[str], dict[str, Outcome]], ledger: Document
) -> None:
    assert [*outcomes(FIELD)] == [claim.id for claim in ledger.claims]
    for name, outcome in outcomes(FIELD).items():
        assert outcome.certificate is not None, name
        found = checker.check(outcome.certificate)
        assert found.outcome in (checker.Outcome.VALID, checker.Outcome.CONDITIONAL), found


@pytest.mark.slow
def test_the_page_is_that_of_a_run(decided: Callable[[str], dict[str, Finding]]) -> None:
    tables = script("docs/make_verdicts.py")
    findings = [*decided(FIELD).values()]
    page = (ROOT / "docs" / "field.md").read_text("utf-8")
    assert tables.with_table(page, tables.counts(findings)) == page
    listed = (ROOT / "docs" / "verdicts.md").read_text("utf-8")
    assert listed.endswith(tables.section(read_paper(FIELD), findings) + "\n")
    assert all(f"`{name}`" in page.split("## All claims")[0] for name in REFUTED)


def test_what_the_page_says_by_hand() -> None:
    """The numbers of docs/field.md, by a route of their own."""
    with mp.workdps(30):
        appears = exp(-2) / (1 + exp(-1))
        assert 0.0989 < appears < 0.099
        share = 1 - (1 - mpf("0.6")) ** mpf("0.5")
        threshold = 1 + 2 * log(2 * (1 - share))
        alone = exp(-(threshold - 1) / 2) / 2
        assert abs(1 - (1 - alone) ** 2 - mpf("0.6343")) < 5e-5
        worse = exp(-2) / 2
        assert abs(log(mpf("0.25") / (1 - worse) + mpf("0.25") / worse) - mpf("1.377")) < 5e-4
        gap = ncdf(mpf("-1.36")) - exp(mpf("4.7285")) * ncdf(mpf("-3.36"))
        assert abs(gap - mpf("0.0428")) < 1e-3
