"""The ledger of the note on elliptical noise: every verdict, and its numbers a second time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mpmath import exp, log, mp, mpf, ncdf, sqrt

from verify.document import Document, read_paper
from verify.verdict import Finding, Verdict

VERDICTS = {
    "definition-1.2/norm": Verdict.HOLDS,
    "definition-1.2/exists/wording": Verdict.REFUTED,
    "section-3/box": Verdict.HOLDS,
    "section-3/box-attained": Verdict.HOLDS,
    "theorem-1": Verdict.HOLDS,
    "theorem-1/range": Verdict.HOLDS,
    "theorem-1/smaller": Verdict.HOLDS,
    "section-2/same-variance": Verdict.HOLDS,
    "elliptical/guarantee": Verdict.HOLDS,
    "elliptical/optimal": Verdict.HOLDS,
    "elliptical/improvement": Verdict.HOLDS,
    "elliptical/improvement/most": Verdict.HOLDS,
    "title/multivariate-normal": Verdict.PENDING,
}


@pytest.fixture(scope="module")
def ledger() -> Document:
    return read_paper("elliptical-gaussian")


@pytest.fixture(scope="module")
def findings(decided: Callable[[str], dict[str, Finding]]) -> dict[str, Finding]:
    return decided("elliptical-gaussian")


def test_the_table_names_every_claim(ledger: Document) -> None:
    assert {claim.id for claim in ledger.claims} == set(VERDICTS)


def test_verdicts(findings: dict[str, Finding]) -> None:
    assert {name: finding.verdict for name, finding in findings.items()} == VERDICTS
    assert all(each.source and each.statement and each.reason for each in findings.values())


@pytest.mark.parametrize("epsilon", ["0.001", "0.5", "0.999"])
@pytest.mark.parametrize("delta", ["1e-100", "1e-5", "0.5", "0.999"])
def test_the_classic_theorem_without_its_second_term(epsilon: str, delta: str) -> None:
    """δ(ε) ≤ Φ(−x) ≤ 0.6 e^{−x²/2} ≤ δ with x = c − ε/(2c), c = √(2 ln(1.25/δ))."""
    with mp.workdps(140):
        eps, claimed = mpf(epsilon), mpf(delta)
        c = sqrt(2 * log(mpf("1.25") / claimed))
        x = c - eps / (2 * c)
        true = ncdf(-x) - exp(eps) * ncdf(-eps / (2 * c) - c)
        steps = [true, ncdf(-x), mpf("0.6") * exp(-(x**2) / 2), claimed]
        assert x >= mpf("-0.1")
        assert steps == sorted(steps)
