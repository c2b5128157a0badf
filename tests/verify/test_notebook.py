"""What notebooks show: whole HTML, nothing unescaped."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

import dpassay

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
    with pytest.raises(dpassay.InvalidInputError, match="state their own numbers"):
        dpassay.verify(["Laplace(2) is 0.5-DP"], epsilon=1)  # type: ignore[call-overload]
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
