"""Entries of the registry of deployments: what follows, what is asked, and what is refused."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpassay
from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.cli import main
from dpassay.verifier.document import read_file, read_registry
from dpassay.verifier.verdict import Finding, Verdict

COMPLETE = r"""
url_slug: library-visits
status: Draft
tier: 3
deployment:
  basic:
    name: Visits of a library
    data_curators: [The library]
    description: Visits per week.
    publication_date: '2020-01-01'
  dp_variant:
    variant_name: Pure DP
  privacy_loss:
    privacy_unit: Reader
    privacy_unit_details: Neighbours differ by one reader, who is added or removed.
    privacy_parameters:
      epsilon: 0.5
    privacy_parameters_details: |
      - \\(\epsilon_0\\) = 0.2 for the branches
      - \\(\epsilon_1 = 0.3\\) for the whole
  accounting:
    composition: "Each branch costs twice: 2 * 0.1 = 0.2."
  implementation:
    mechanisms: Laplace noise of scale 2, sensitivity = 1
  administrative:
    sources: "Page: https://library.example/visits, and a paper"
    registry_authors: [Somebody]
"""


def entry(variant: str, parameters: str, **more: str) -> str:
    """Return an entry with these parameters; `more` are further lines of its parts."""
    parts = {"dp_variant": f"variant_name: {variant}", **more}
    loss = parts.pop("privacy_loss", "privacy_unit: Person")
    lines = [f"  {part}:\n    {text}\n" for part, text in parts.items()]
    return (
        "deployment:\n  basic:\n    name: Counts\n"
        + "".join(lines)
        + f"  privacy_loss:\n    {loss}\n    privacy_parameters: {{{parameters}}}\n"
    )


def decided(text: str) -> dict[str, Finding]:
    return {finding.id: finding for finding in dpassay.verify(read_registry(text))}


def asked(text: str, name: str) -> str:
    finding = decided(text)[name]
    assert finding.verdict is Verdict.PENDING
    assert finding.reason.startswith("Needs an answer: ")
    return finding.reason


def test_a_complete_entry() -> None:
    document = read_registry(COMPLETE)
    assert (document.name, document.title) == ("library-visits", "Visits of a library")
    found = decided(COMPLETE)
    assert {name: finding.verdict.value for name, finding in found.items()} == {
        "mechanism": "HOLDS",
        "composition/sum-1": "HOLDS",
        "composition/epsilon": "HOLDS",
        "side-channels": "PENDING",
    }
    assert {finding.source for finding in found.values()} == {"https://library.example/visits"}
    assert found["mechanism"].formal == "Laplace(scale=2, l1_sensitivity=1) is 0.5-DP"


def test_noise_that_is_too_small_is_refuted_with_the_charitable_reading() -> None:
    finding = decided(COMPLETE.replace("of scale 2", "of scale 1"))["mechanism"]
    assert finding.verdict is Verdict.REFUTED
    assert finding.cause.startswith("The scale may be of one of several queries")


@pytest.mark.parametrize(
    ("variant", "parameters", "question"),
    [
        ("Approximate DP", "epsilon: 1", "Which δ?"),
        ("Approximate DP", "", "Which ε and δ?"),
        ("Approximate DP", "epsilon: 1, delta: 1/n^2", "Which number is δ"),
        ("Pure DP", "delta: 0", "Which ε?"),
        ("Zero-concentrated DP", "epsilon: 1, delta: 1e-6", "Which ρ?"),
        ("Renyi DP", "epsilon: 1", "Which orders"),
        ("Custom", "epsilon: 1", "Which definition?"),
        ("''", "", "Which variant"),
    ],
)
def test_a_number_that_is_lacking_is_asked_for(
    variant: str, parameters: str, question: str
) -> None:
    assert question in asked(entry(variant, parameters), "parameters")


def test_pure_beside_a_delta_is_an_inconsistency() -> None:
    finding = decided(entry("Pure DP", "epsilon: 1.0, delta: 1.5e-7"))["parameters"]
    assert finding.verdict is Verdict.REFUTED
    assert finding.statement == "Pure DP: ε = 1.0, δ = 1.5e-7"
    assert finding.cause.startswith("Both may be right")
    assert "(1.0, 1.5e-7)-DP" in finding.correction
    assert "parameters" not in decided(entry("Pure DP", "epsilon: 1, delta: 0.0"))


def test_rho_implies_epsilon_and_delta_or_is_asked_about() -> None:
    """Of 0.015-zCDP follows ε = 0.86 at 1e-7; a Gaussian with this ρ has 0.7997."""
    variant = "Zero-concentrated DP"
    name = "parameters/conversion"
    for epsilon in ("1", "0.87"):
        found = decided(entry(variant, f"epsilon: {epsilon}, delta: 1e-7, rho: 0.015"))
        assert found[name].verdict is Verdict.HOLDS
    for parameters in ("epsilon: 0.79, delta: 1e-7, rho: 0.015", "epsilon: 1, rho: 0.015"):
        assert asked(entry(variant, parameters), name)
    assert asked(entry(variant, "epsilon: 1e999, delta: 1e-999, rho: 1e-999"), name)


def test_a_unit_of_a_day_is_asked_about_with_the_number() -> None:
    daily = entry("Pure DP", "epsilon: 1.672", privacy_loss="privacy_unit: User-day-level")
    assert "50.16-DP" in asked(daily, "unit/over-time")
    assert "replaced" in asked(daily, "unit/neighbours")


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        ("0.1 + 0.2 = 0.3", ["HOLDS"]),
        ("Level 0: 0.11 * 2 + 0.22 = 0.44, all told", ["HOLDS"]),
        ("Visits cost 4 × 0.44 = 1.67", ["REFUTED"]),
        ("a third of it, 1 + 1 = 2 (twice)", []),  # what follows the sum may belong to it
        ("2^3 + 4 = 12; x/3 + 4 = 5; 3 + 4 = 7 + y; 1 + 1 = 2.0.1", []),
    ],
)
def test_sums_that_are_written_out(text: str, verdicts: list[str]) -> None:
    found = decided(entry("Pure DP", "epsilon: 1", accounting=f"composition: '{text}'"))
    sums = [each.verdict.value for name, each in found.items() if "/sum" in name]
    assert sums == verdicts


def test_text_about_two_noises_is_not_read_as_one() -> None:
    both = COMPLETE.replace("Laplace noise", "Gaussian noise of sigma 3, Laplace noise")
    assert "Which noise" in asked(both, "mechanism")


def test_numbers_that_yaml_writes_otherwise() -> None:
    document = read_registry(entry("Pure DP", "epsilon: 0, delta: .5"))
    assert [claim.statement for claim in document.claims if claim.id == "parameters"] == [
        "Pure DP: ε = 0, δ = 0.5"
    ]


def test_the_source_is_the_first_address() -> None:
    for written, read in {
        "[page](https://a.example/x_(1)), b": "https://a.example/x_(1)",
        "[page](https://a.example/x), b": "https://a.example/x",
        "A paper": "Visits of a library",
    }.items():
        found = read_registry(COMPLETE.replace("Page: https://library.example/visits", written))
        assert {claim.source for claim in found.claims} == {read}


def test_parts_that_do_not_add_up_are_asked_about() -> None:
    found = COMPLETE.replace("0.3", "0.31")
    assert "They add up to 0.51" in asked(found, "composition/epsilon")


def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(InvalidInputError, match="Did you mean 'epsilon'"):
        read_registry(entry("Pure DP", "epsilom: 1"))
    with pytest.raises(InvalidInputError, match="Did you mean 'Pure DP'"):
        read_registry(entry("Pure DPP", "epsilon: 1"))


def nested(depth: int) -> str:
    return "deployment: " + "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file: expected a table"),
        ("- 1", "the file: expected a table"),
        ("deployment: 3", "deployment: expected a table"),
        ("deployment: {basic: {name: [a]}}", "basic.name: expected a text"),
        ("deployment: {basic: {}}", "basic.name: expected a text"),
        ("deployment: {", "is not a YAML file, line 1"),
        ("a: 1\n---\nb: 2", "is not a YAML file"),
        ("deployment: \x00", "unreadable character"),
        ("a: &x [1]\nb: *x", "an alias"),
        ("a: &x {y: *x}", "an alias"),
        ("a: 1\na: 2", "is given twice: 'a'"),
        ("[1]: 2", "a key is no text"),
        (nested(5000), "nested too deeply"),
        ("a: " + "b" * 100_000, "at most 100000 characters"),
        (entry("Pure DP", "epsilon: -1"), "privacy_parameters.epsilon: expected a number ≥ 0"),
        (entry("Pure DP", "epsilon: .nan"), "expected a number ≥ 0, not '.nan'"),
        (entry("Pure DP", "epsilon: " + "9" * 99), "expected a number ≥ 0"),
        (entry("Approximate DP", "epsilon: 1, delta: 2"), "expected a number in [0, 1), not '2'"),
        (entry("Pure DP", "rho: 1", accounting="composition: '" + "1 + 1 = 2, " * 9 + "'"), ""),
    ],
)
def test_what_is_no_entry_is_refused(text: str, says: str) -> None:
    if not says:  # the same sum again and again is one claim
        assert sum("sum" in claim.id for claim in read_registry(text).claims) == 1
        return
    with pytest.raises(InvalidInputError) as error:
        read_registry(text, "it.yaml")
    assert says in str(error.value)
    assert str(error.value).isprintable()


def test_a_bomb_of_aliases_and_long_runs_take_no_time() -> None:
    started = time.process_time()
    levels = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30))
    with pytest.raises(InvalidInputError, match="alias"):
        read_registry(f"a0: &a0 [x]\n{levels}")
    for run in ("epsilon", "1 + ", "x 1 ", "a: 1 + 1 = ", "sensitivity ", "1" * 30, "scale is "):
        text = (run * 100_000)[:90_000]
        for part in ("accounting=composition", "implementation=mechanisms"):
            where, _, field = part.partition("=")
            more = {where: f"{field}: '{text}'"}
            details = f"privacy_unit: Person\n    privacy_parameters_details: '{text[:4000]}'"
            read_registry(entry("Pure DP", "epsilon: 1", privacy_loss=details, **more))
    assert time.process_time() - started < 20


def test_tags_run_nothing() -> None:
    with pytest.raises(InvalidInputError, match="expected a text"):
        read_registry(entry("Pure DP", "epsilon: !!python/object/apply:os._exit [3]"))


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_read_or_refused(name: str, more: str) -> None:
    """A text of the entry is printable wherever it is shown, or the entry is refused."""
    quoted = [f"'{each.replace(chr(39), '')}'" for each in (name, more)]
    text = entry("Pure DP", "epsilon: 1", implementation=f"mechanisms: {quoted[1]}")
    try:
        document = read_registry(text.replace("Counts", quoted[0]))
    except InvalidInputError:
        return
    for claim in document.claims:
        assert " ".join(claim.statement.split()).isprintable()


def test_the_command_reads_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[Any]) -> None:
    path = tmp_path / "entry.yaml"
    path.write_text(COMPLETE, encoding="utf-8")
    assert read_file(path) == read_registry(COMPLETE, str(path))
    assert main(["verify", str(path), "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("HOLDS  mechanism\n")
    path.write_text(entry("Pure DP", "epsilon: 1, delta: 1e-6"), encoding="utf-8")
    assert main(["verify", str(path), "--quiet"]) == 1
    path.write_text(entry("Pure DP", "epsilon: 1"), encoding="utf-8")
    assert main(["verify", str(path), "--quiet"]) == 3
    path.write_text("deployment: {", encoding="utf-8")
    assert main(["verify", str(path)]) == 2
    assert "is not a YAML file" in capsys.readouterr().err
