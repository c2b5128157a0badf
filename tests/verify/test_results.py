"""What results show in notebooks and to readers, and that none of them is true or false."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from enum import StrEnum
from html.parser import HTMLParser
from typing import Any

import pytest

import dpassay
from dpassay.accountant.errors import DpassayError
from dpassay.verifier import report
from dpassay.verifier.audit.guarantees import Outcome as AuditOutcome
from dpassay.verifier.audit.result import AuditResult
from dpassay.verifier.compare.comparison import Row
from dpassay.verifier.kernel import Checked
from dpassay.verifier.kernel import Outcome as CheckOutcome
from dpassay.verifier.refutation import by_hand
from dpassay.verifier.verdict import Rigour, Verdict
from tests.accountant.mechanisms.laws import LAWS, Law

VOID = {"br"}


class Whole(HTMLParser):
    """Fails on a tag that is not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(thing: Any) -> str:
    parser = Whole()
    parser.feed(thing._repr_html_())
    parser.close()
    assert parser.open == []
    return parser.text


def finding(epsilon: str) -> dpassay.Finding:
    claim = dpassay.ApproximateDP(
        id="x", source="s", statement="a < b & c", mechanism="Laplace(scale=2)",
        epsilon=epsilon, delta="1e-5",
    )  # fmt: skip
    return dpassay.verify(claim)


def test_a_mechanism_shows_its_notation_and_law() -> None:
    noise = dpassay.Gaussian(standard_deviation="sqrt(2)")
    assert "Gaussian(standard_deviation='sqrt(2)')" in shown(noise)
    assert "N(0, σ²)" in shown(noise)
    assert noise._repr_markdown_().startswith("`Gaussian(")
    assert "Box(bounds=[1, 2])" in shown(dpassay.Box(bounds=[1, 2]))


def test_an_interval_shows_both_ends() -> None:
    answer = dpassay.delta(dpassay.Gaussian(standard_deviation=1), epsilon=1)
    text = shown(answer)
    assert text.startswith("0.126936737507 in [")
    assert str(answer.lower) in text
    assert str(answer.upper) in text
    assert answer._repr_markdown_().startswith("**0.126936737507**")


@pytest.mark.parametrize(("epsilon", "verdict"), [("0.5", "HOLDS"), ("0.49", "REFUTED")])
def test_a_finding_shows_its_verdict(epsilon: str, verdict: str) -> None:
    found = finding(epsilon)
    text = shown(found)
    assert verdict in text
    assert ("event" in text) is (verdict == "REFUTED")
    assert "a < b & c" in text  # escaped in the source, whole on the page
    assert "a &lt; b &amp; c" in found._repr_html_()
    formal = f"Laplace(scale=2) is ({epsilon}, 1e-5)-DP"
    assert formal in text


def test_a_list_of_answers_is_a_list_and_shows_a_table() -> None:
    answers = dpassay.delta("Gaussian(1)", [1, "2"])
    assert answers == [dpassay.delta("Gaussian(1)", 1), dpassay.delta("Gaussian(1)", 2)]
    assert shown(answers).startswith("epsilonanswercertain10.12693673750737 digits20.0209")
    findings = dpassay.verify(["Gaussian(3) is (1, 1e-5)-DP", "Laplace(2) is 0.5-DP"])
    assert [found.verdict for found in findings] == ["REFUTED", "HOLDS"]
    assert "HOLDSLaplace(scale=2) is 0.5-DPepsilon 0.5, delta 0" in shown(findings)
    audits = dpassay.Results([dpassay.audit("Laplace(1)", samples=2000, seed=1)])
    assert "ESTIMATELaplace(scale=1)epsilon(0) ≥ 0." in shown(audits)
    assert shown(dpassay.Results(["a < b", 2])) == "answera < b2"


def test_a_file_of_claims_is_decided_as_a_whole() -> None:
    document = dpassay.read_paper("elliptical-gaussian")
    few = [claim for claim in document.claims if claim.kind == "printed-number"][:2]
    assert len(dpassay.verify(few)) == len(few)


def test_a_comparison_shows_its_table() -> None:
    found = dpassay.compare(
        dpassay.Budget(dpassay.EpsilonDelta(1, "1e-6")),
        dpassay.Count(),
        only=["Laplace"],
        candidates=[dpassay.Laplace(scale="1/2")],
        metrics=["variance"],
    )
    text = shown(found)
    assert "discrete Laplace" in text
    assert "line-through" in found._repr_html_()


def test_an_audit_and_a_check_show_what_they_print() -> None:
    audited = dpassay.audit("Laplace(1)", epsilon="0.5", samples=2000, seed=1)
    _, certificate = dpassay.certify("Laplace(2)", epsilon="0.5")
    assert certificate is not None
    for shown in (audited, dpassay.check(certificate)):
        assert repr(shown) == str(shown)
        assert repr(shown).startswith(("REFUTED", "VALID"))


# What has no truth value says so; words of verdicts are strings.


def test_a_refuted_claim_fails_an_assertion_of_its_verdict() -> None:
    finding = dpassay.verify("Gaussian(1) is (1, 1e-5)-DP")
    assert finding.verdict == "REFUTED"
    assert not finding.holds
    with pytest.raises(DpassayError, match=r"\.verdict: HOLDS, ARGUED and SUPPORTED are different"):
        assert finding


@pytest.mark.parametrize("words", [Verdict, Rigour, AuditOutcome, CheckOutcome])
def test_words_are_strings(words: type[StrEnum]) -> None:
    for word in words:
        assert word == word.value
        assert f"{word}" == str(word) == word.value


@pytest.mark.parametrize("kind", [AuditResult, Checked, Row])
def test_no_result_with_several_outcomes_is_true(kind: type) -> None:
    with pytest.raises((DpassayError, TypeError), match="is neither true nor false: compare"):
        bool(object.__new__(kind))
    if dataclasses.is_dataclass(kind):
        assert "compare" not in {field.name for field in dataclasses.fields(kind)}


# What a refutation says to a reader, and its program of the standard library.


CLAIMS = {
    "Gaussian(3) is (1, 1e-5)-DP": "the published value is above 9.5",
    "Gaussian(1) is (6, 1e-13)-DP": "the published value is above 6.5",
    "Gaussian(3) is 0.1-GDP": "the published value is above 0.5",
    "Gaussian(3, 2) is 1-DP": "the published value is above 5.5",
    "Composed(Gaussian(3), 10) is (1, 1e-5)-DP": "the mean of the 10 published values is above 1.4",
    "Composed([Gaussian(3), Gaussian(4)]) is (0.5, 1e-5)-DP": "the release, along",
    "PoissonSubsampled(Gaussian(1), 0.1) is (0.5, 1e-5)-DP under add-remove": "above 2.5131",
    "Laplace(1) is 0.5-DP": "the published value is above 0.75",
    "Laplace(2, 3) is (0.5, 1e-3)-DP": "the published value is above 2",
    "Laplace(1) is 0.5-GDP": "the published value is above 0.75",
    "Logistic(1) is 0.5-DP": "the published value is above 1.6193",
    "DiscreteLaplace(2) is 0.2-DP": "the published value is at least 1",
    "DiscreteGaussian(4) is (0.5, 1e-5)-DP": "the published value is at least 3",
    "RandomizedResponse(2) is 1-DP": "the output is the true category under P",
    "BoundedCountNoise(epsilon=2.2, eta='0.01', support=8) is (2.2, 1.4e-6)-DP": "in {0, 2, 3",
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_program_prints_what_is_proved_without_dpassay(claim: str) -> None:
    """To 1e-9: the cut has 15 digits, and no probability here is steeper than e^40."""
    found = by_hand(dpassay.verify(claim))
    assert found is not None
    assert CLAIMS[claim] in found.event
    assert max(map(len, found.program)) <= 80
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "\n".join(found.program)],
        capture_output=True,
        text=True,
        check=True,
    )
    p, q, left, sign, right = run.stdout.split()
    assert sign == ">"
    assert float(left) > float(right)
    assert float(p) == pytest.approx(float(found.p), rel=1e-9, abs=0)
    assert float(q) == pytest.approx(float(found.q), rel=1e-9, abs=0)
    less, _, more = found.inequality.partition(" > ")
    told = (less.rpartition(" = ")[2], more.split(",")[0])
    assert float(left) == pytest.approx(float(told[0]), rel=1e-6, abs=0)
    assert float(right) == pytest.approx(float(told[1]), rel=1e-6, abs=0)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
def test_a_refutation_has_a_program_for_each_law_that_names_one(law: Law) -> None:
    relation = f" under {law.adjacency}" if law.adjacency else ""
    found = by_hand(dpassay.verify(f"{law.text} is (1/10, 1e-4)-DP{relation}"))
    assert found is not None
    assert bool(found.program) == law.program


@pytest.mark.parametrize(
    "claim",
    [
        "Gaussian(3) is 1e400-DP",
        "Gaussian('1e300', '1e301') is 1-DP",
        "Gaussian(1) is (60, 1e-900)-DP",
        "Gaussian(3) is 1000-DP",
    ],
)
def test_where_floats_do_not_tell_there_is_no_program(claim: str) -> None:
    found = by_hand(dpassay.verify(claim))
    assert found is not None
    assert found.program == ()
    assert found.event


def test_a_refutation_beyond_floats_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    for claim in ("Gaussian(3) is 1e400-DP", "Laplace('1e-400') is 1-DP"):
        report.show(dpassay.verify(claim), sys.stdout)
        assert capsys.readouterr().out.startswith("REFUTED")


def test_what_has_no_event_has_none() -> None:
    assert by_hand(dpassay.verify("Gaussian(3) is 0.01-zCDP")) is None
    assert by_hand(dpassay.verify("Gaussian(3) is 1-GDP")) is None
