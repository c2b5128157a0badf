"""A claim over a whole domain that is false at a small value is refuted, with a certificate."""

from __future__ import annotations

from typing import Any

import pytest

from dpassay.verifier import kernel as checker
from dpassay.verifier.ask import verify
from dpassay.verifier.claim import Claim, Domain, Range
from dpassay.verifier.claims.behaviour import Minimiser, Monotone
from dpassay.verifier.claims.relation import Relation
from dpassay.verifier.counterexample import counterexample
from dpassay.verifier.prover import decided as certify


def relation(text: str, let: dict[str, str] | None = None, **domains: dict[str, Any]) -> Relation:
    for_all = {name: Domain(**{"grid": [3], **given}) for name, given in domains.items()}
    return Relation(id="r", statement="s", claim=text, for_all=for_all, let=let or {})


COUNT = {"low": "1", "integer": True}
FALSE: list[Claim] = [
    relation("d**2 <= 100", d=COUNT),
    relation("n**3 <= 26000 + n", n=COUNT),
    relation("n**2 + n + 41 <= 200000", n=COUNT),
    relation("(x - 2000)**2 > 0", x={"low": "0", "integer": True}),
    relation("x < 10**12", x={"low": "0"}),
    relation("x**2 - x >= 0", x={"low": "0", "grid": [2]}),
    relation("x*(1 - x) < 1/4", x={"low": "0", "high": "1", "grid": ["1/3"]}),
    relation("log(n) <= 5", n=COUNT),
    relation("2**n >= n**10", n={**COUNT, "grid": [1]}),
    relation("a*b <= 30", a=COUNT, b={"low": "a", "integer": True}),
    relation("m <= 50", let={"m": "n*(n - 1)/2"}, n=COUNT),
    relation("x >= -10", x={"above": "-inf", "grid": [0]}),
    relation("x <= 1", x={"above": "0", "below": "1.0001", "grid": ["1/2"]}),
    Monotone(
        id="m",
        expression="x*(20 - x)",
        variable="x",
        at=[1, 2, 3],
        direction="increasing",
        over=Range(low="0", integer=True),
    ),
    Monotone(
        id="m",
        expression="abs(x - 10)",
        variable="x",
        at=[1, 2, 3],
        direction="decreasing",
        over=Range(low="0"),
    ),
    Minimiser(
        id="m",
        expression="(x - 500)**2",
        variable="x",
        at=[1, 2, 3],
        claimed="3",
        over=Range(low="0", integer=True),
    ),
]


@pytest.mark.parametrize("claim", FALSE)
def test_a_false_claim_is_refuted_and_its_certificate_is_valid(claim: Claim) -> None:
    finding, certificate = certify(claim)
    assert finding.verdict == "REFUTED"
    assert "found by a search" in finding.reason
    assert certificate is not None
    checked = checker.check(certificate)
    assert checked.outcome == "VALID", str(checked)
    assert checked.theorem is not None
    assert checked.theorem.verdict.startswith("REFUTED")


TRUE: list[Claim] = [
    relation("d**2 >= d", d=COUNT),
    relation("exp(x) >= 1 + x", x={"low": "0"}),
    relation("(x - 1)**2 >= 0", x={"above": "-inf"}),
    relation("x < 1", x={"above": "0", "below": "1", "grid": ["1/2"]}),
    relation("a <= b", a=COUNT, b={"low": "a", "integer": True}),
    relation("1/x > 0", x={"above": "0"}),
    relation("(n - 1/2)**2 >= 1/4", n={"low": "0", "integer": True}),
    Monotone(
        id="m",
        expression="x**2",
        variable="x",
        at=[1, 2],
        direction="increasing",
        over=Range(low="0"),
    ),
    Minimiser(
        id="m",
        expression="(x - 2)**2",
        variable="x",
        at=[1, 2],
        claimed="2",
        over=Range(low="0"),
    ),
]


@pytest.mark.parametrize("claim", TRUE)
def test_nothing_is_found_against_a_true_claim(claim: Claim) -> None:
    assert counterexample(claim) is None
    assert verify(claim).verdict == "SUPPORTED"


def test_only_what_the_assumptions_leave_counts() -> None:
    claim = Relation(
        id="r",
        claim="n <= 10",
        for_all={"n": Domain(grid=[3], low="1", integer=True)},
        assume=["n <= 10"],
    )
    assert verify(claim).verdict == "SUPPORTED"


def test_a_range_in_words_alone_is_not_searched() -> None:
    claim = Relation(id="r", claim="n <= 10", for_all={"n": Domain(grid=[3], statement="small n")})
    assert verify(claim).verdict == "SUPPORTED"


def test_listed_cases_are_searched_one_by_one() -> None:
    claim = Relation(
        id="r",
        claim="n <= c",
        where={"c": [10**12, 500]},
        for_all={"n": Domain(grid=[3], low="1", high="1000", integer=True)},
    )
    finding, certificate = certify(claim)
    assert finding.verdict == "REFUTED"
    assert certificate is not None
    assert checker.check(certificate).outcome == "VALID"


@pytest.mark.parametrize(
    "text",
    ["n**n**n >= 0", "((((n**9)**9)**9)**9)**9 >= 0", "exp(exp(exp(n))) > 0", "2**(2**n) > n"],
)
def test_enormous_values_are_left_alone(text: str) -> None:
    assert counterexample(relation(text, n=COUNT)) is None
