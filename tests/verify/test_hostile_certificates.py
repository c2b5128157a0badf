"""Certificates that strangers write: every field is known, everything ends, nothing is printed raw.

Every certificate here is sealed by the product's own sealer, as a forger would.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from dpassay.verifier import checker, document, seal
from dpassay.verifier.certificate import certify
from dpassay.verifier.checker import Outcome, apart, schema
from dpassay.verifier.checker.outcome import quoted, safe
from dpassay.verifier.claims import KINDS
from dpassay.verifier.cli import main
from tests.quick import quick
from tests.verify.forge import Data, certified, decided, put, sealed


def check(name: str, *changes: Callable[[Data], None]) -> checker.Checked:
    data = certified(name)
    for change in changes:
        change(data)
    return checker.check(sealed(data))


# ------------------------------------------------------------ shapes


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pending"])
def test_the_checker_describes_every_kind_of_claim_as_it_is(kind: str) -> None:
    own = set(schema.CLAIMS[kind].__struct_fields__)
    assert {field.name for field in fields(KINDS[kind])} <= own


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("relation/equal", "claim.left", "0"),
        ("relation/equal", "claim.right", "1"),
        ("relation/equal", "claim.opposite", "!="),
        ("printed-number/refuted", "claim.half_unit", "1"),
        ("monotone/supported", "claim.direction", "Decreasing"),
        ("monotone/supported", "claim.right_way", "<"),
        ("optimality/holds", "claim.better", "9"),
        ("optimality/holds", "claim.rival", "competitor"),
        ("approximate-dp/holds", "claim.relation", "<"),
        ("approximate-dp/holds", "facts.0.law.mu", "1"),
        ("approximate-dp/holds", "facts.0.note", "1"),
        ("approximate-dp/holds", "claimed.half_unit", "1"),
        ("approximate-dp/holds", "schema_version", True),
        ("approximate-dp/holds", "schema_version", 1.0),
        ("approximate-dp/holds", "claim.adjacency", "anything"),
        ("approximate-dp/supported", "claim.for_all.x.note", "1"),
        ("count-noise", "theorem.note", "1"),
        ("count-noise", "witness.laws.0.note", "1"),
        ("count-noise", "verdict", "OPTIMAL"),
        ("audit", "theorem.tested.note", 1),
        ("audit", "witness.note", 1),
        ("audit", "schema_version", None),
        ("sequential-audit", "witness.rounds.0.note", 1),
        ("sequential-audit", "schema_version", "1"),
    ],
)
def test_an_unknown_field_or_version_is_named(name: str, path: str, value: object) -> None:
    assert check(name).problems == []
    found = check(name, put(path, value))
    assert found.outcome is Outcome.INVALID
    assert path.startswith(found.problems[0][0].partition("[")[0].partition(".")[0])


@pytest.mark.parametrize(
    ("name", "path", "value", "said"),
    [
        ("relation/equal", "schema_version", 2, "version 2"),
        ("audit", "version", 3, "version 3"),
        ("integer-noise", "version", 3, "version 3"),
        ("relation/equal", "kind", "count-noise", "make it again"),
        ("approximate-dp/holds", "facts.0.law", {"law": "several-positions"}, "several-positions"),
        (
            "approximate-dp/holds",
            "facts.0.law",
            {"law": "between", "factors": ['{"law": "wish"}']},
            "'wish'",
        ),
        (
            "approximate-dp/holds",
            "facts.0.law",
            {"law": "noisy-maxima", "candidates": 2, "distance": "1", "gaussian": False},
            "'noisy-maxima'",
        ),
    ],
)
def test_what_another_version_wrote_is_not_called_wrong(
    name: str, path: str, value: object, said: str
) -> None:
    found = check(name, put(path, value))
    assert found.outcome is Outcome.NOT_CHECKED
    assert said in found.not_checked


@pytest.mark.parametrize("name", ["relation/equal", "audit", "sequential-audit", "count-noise"])
def test_no_field_may_be_missing(name: str) -> None:
    data = certified(name)
    for field in data:
        if field not in ("seal", "replay", "lemmas"):
            less = {key: value for key, value in data.items() if key != field}
            assert not checker.check(sealed(less)).valid, field


@pytest.mark.parametrize(
    ("mechanism", "delta"),
    [
        ("RandomAllocation(Gaussian(standard_deviation=2), steps=5)", "0.02"),
        pytest.param(
            "RandomAllocation(Gaussian(standard_deviation=2), steps=6, participations=2)",
            "1e-6",
            marks=pytest.mark.slow,
        ),
        ("Shuffled(RandomizedResponse(epsilon=1, categories=3), users=200)", "0.3"),
    ],
)
def test_a_law_has_the_fields_of_its_kind(mechanism: str, delta: str) -> None:
    adjacency = "add-remove" if "Allocation" in mechanism else "replace-one"
    _, data = decided(
        f'kind = "approximate-dp"\nmechanism = "{mechanism}"\nepsilon = "1/2"\n'
        f'delta = "{delta}"\nadjacency = "{adjacency}"'
    )
    assert checker.check(data).problems == []
    for fact in data["facts"]:
        fact["law"]["note"] = "mu=0"
    assert checker.check(sealed(data)).problems == [
        ("facts[0].law.note", "is no field of this law")
    ]


@pytest.mark.parametrize("name", ["\ud800", "verdict\x00", "\u202everdict"])
def test_a_field_of_a_name_that_is_no_text_is_refused(name: str) -> None:
    checked = checker.check(sealed({**certified("relation/equal"), name: 1}))
    assert checked.problems == [("", "has a field with a name that cannot be printed")]


def test_a_field_that_stands_twice_is_named(tmp_path: Path) -> None:
    data = certified("relation/equal")
    text = json.dumps(data)
    assert '"claim": "1/3 + 1/6 == 1/2"' in text
    path = tmp_path / "twice.json"
    path.write_text(
        text.replace(
            '"claim": "1/3 + 1/6 == 1/2"', '"claim": "1 == 2", "claim": "1/3 + 1/6 == 1/2"'
        )
    )
    (found,) = checker.check_file(path)
    assert found.problems == [("claim.claim", "stands twice")]


# ------------------------------------------------------------ optima and audits


def test_an_optimum_between_zero_and_a_billion_is_none() -> None:
    wide = put("theorem.lower", "0"), put("theorem.upper", "1000000000")
    found = check("count-noise", *wide)
    assert [field for field, _ in found.problems] == ["theorem.lower"]


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("sequential-audit", "theorem.significance", "100"),
        ("sequential-audit", "theorem.significance", "1"),
        ("sequential-audit", "theorem.significance", float("nan")),
        ("sequential-audit", "theorem.evidence", float("inf")),
        ("sequential-audit", "theorem.evidence", "1e300"),
        ("sequential-audit", "theorem.evidence", "-1"),
        ("sequential-audit", "witness.rounds.0.pair", 7),
        ("audit", "theorem.significance", "100"),
        ("audit", "theorem.p_value", float("nan")),
        ("audit", "theorem.p_value", 0.01),
        ("audit", "theorem.epsilon_lower_bound", float("inf")),
        ("audit", "theorem.epsilon_lower_bound", "inf"),
        ("audit", "theorem.epsilon_lower_bound", "701"),
        ("audit", "theorem.claim.parameter", "1"),
    ],
)
def test_what_no_audit_says(name: str, path: str, value: object) -> None:
    assert check(name, put(path, value)).outcome is Outcome.INVALID


def test_the_headline_of_an_audit_is_what_was_tested() -> None:
    theorem = str(check("audit", put("witness.event", {"description": "It is 0.001-DP."})).theorem)
    assert theorem.startswith("REFUTED at significance 0.05")
    assert theorem.endswith(': "Laplace(scale=1)" is (0.8, 0)-DP')
    assert "0.001-DP" not in theorem


# ------------------------------------------------------------ what is printed

FOREIGN = "x\nVALID  Laplace(scale=1) is (0, 0)-DP: HOLDS\x1b[2J\u202e\r\x00"


def test_foreign_texts_are_printed_on_one_line_between_quotes() -> None:
    assert all(character.isprintable() for character in safe(FOREIGN))
    assert quoted('a" b').count('"') == 2
    assert len(safe("a" * 10_000)) < 300


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize(
    ("name", "path"),
    quick(
        [
            ("relation/equal", "claim.id"),
            ("relation/equal", "claim.statement"),
            ("relation/equal", "claim.kind"),
            ("relation/equal", "verdict"),
            ("relation/equal", "conclusion"),
            ("relation/equal", FOREIGN),
            ("approximate-dp/supported", "claim.for_all.x.statement"),
            ("approximate-dp/holds", "claim.mechanism"),
            ("audit", "theorem.target"),
            ("audit", "theorem.claim.description"),
            ("audit", "theorem.kind"),
        ],
        1,
        5,
        8,
    ),
)
def test_no_text_forges_a_line(
    form: list[str], name: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = certified(name)
    put(path, FOREIGN)(data)
    file = tmp_path / "forged.json"
    seal.write(file, [sealed(data)])
    main(["check", str(file), *form])
    out, err = capsys.readouterr()
    printed = out + err
    assert not any(line.startswith("VALID  Laplace") for line in printed.splitlines())
    assert all(character.isprintable() or character == "\n" for character in printed)


def test_the_theorem_is_said_with_its_range(capsys: pytest.CaptureFixture[str]) -> None:
    cases = {
        "approximate-dp/refuted": "REFUTED at s = 3: ",
        "pure-dp/holds": "HOLDS: DiscreteLaplace(scale=3, sensitivity=2) is (2/3, 0)-DP",
        "relation/swept": "for every d >= 1e-10 and <= 1, for every e >= 1e-10 and <= 0.6",
        "approximate-dp/supported": "nothing is proved beyond",
        "minimiser/holds": "is least at k = 20 over k >= 17 and <= 23 (integer)",
    }
    for name, words in cases.items():
        assert words in str(check(name).theorem)


# ------------------------------------------------------------ outcomes


def test_an_argument_is_a_condition() -> None:
    def argue(data: Data) -> None:
        data["verdict"] = "ARGUED"
        data["claim"] |= {"argument": "It is clear.", "lemmas": ["lemma-1"]}

    found = check("approximate-dp/supported", argue)
    assert found.outcome is Outcome.CONDITIONAL
    assert found.taken_as_given == [
        'the argument of its author: "It is clear."',
        'the lemma "lemma-1"',
    ]
    assert check("approximate-dp/supported", put("verdict", "ARGUED")).problems


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["relation/equal"], 0),
        (["relation/equal", "audit"], 3),
        (["audit", "relation/equal", "relation/forged"], 1),
    ],
)
def test_a_file_ends_with_the_worst(names: list[str], code: int, tmp_path: Path) -> None:
    entries = [certified(name.replace("forged", "equal")) for name in names]
    if "relation/forged" in names:
        entries[-1]["claim"]["claim"] = "1 == 2"
    path = tmp_path / "many.json"
    seal.write(path, entries)
    assert main(["check", str(path), "--quiet"]) == code


# ------------------------------------------------------------ limits


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        (b'{"schema_version": 1, "claim": {"ki', 2, "is not a JSON certificate"),
        (b"3", 2, "expected an object or a list"),
        (b"[]", 2, "expected an object or a list"),
        (b'["a"]', 2, "expected an object or a list"),
        (b"[" * 1_000_000, 2, "is not a JSON certificate: it is nested too deeply"),
        (b'{"schema_version": 1, "x": ' + b"[" * 200 + b"]" * 200 + b"}", 3, "nested more than"),
        (b'{"schema_version": 1, "x": NaN}', 1, "x: is nan, which is no number"),
        (b'{"schema_version": 1, "x": 1e999}', 1, "x: is inf, which is no number"),
        (b'{"schema_version": 2}', 3, "it is of version 2, and version 1 is known here"),
        (b'{"x": ' + b"9" * 5000 + b"}", 2, "is not a JSON certificate"),
        (b'{"x": "' + b"9" * 300_000 + b'"}', 3, "x is longer than"),
        (b"\xff\xfe\x00", 2, "is not a JSON certificate"),
        (b" " * 40_000_000, 3, "is longer than 32 MB"),
        pytest.param(
            b"[" + b"[]," * 5_000_000 + b"[]]", 3, "million entries", marks=pytest.mark.slow
        ),
    ],
    ids=[
        "cut",
        "number",
        "none",
        "list",
        "deep",
        "nested",
        "nan",
        "inf",
        "version",
        "digits",
        "text",
        "bytes",
        "size",
        "[]",
    ],
)
def test_bad_input_is_one_line(
    content: bytes, code: int, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert main(["check", str(path)]) == code
    out, err = capsys.readouterr()
    assert line in out + err
    assert len((out + err).splitlines()) <= 3


def test_a_pipe_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.dumps(certified("relation/equal")).encode()
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(content)))
    assert main(["check", "-"]) == 0
    assert capsys.readouterr().out.startswith("VALID  HOLDS: 1/3 + 1/6 == 1/2")


@pytest.mark.parametrize(
    "text", ["1e99999999", "1e-99999999", "0x1e_999_999", "1.e+999999", "1 # VALID", "1\\\n", "а"]
)
@pytest.mark.parametrize(
    "path", ["claim.epsilon", "claim.mechanism", "claim.let", "facts.0.epsilon"]
)
def test_a_text_that_is_evaluated_is_plain(path: str, text: str) -> None:
    value = {"y": text} if path == "claim.let" else text
    assert check("approximate-dp/holds", put(path, value)).outcome is Outcome.INVALID


def _spin(_: object) -> None:
    while True:
        pass


def _fill(_: object) -> list[bytes]:
    return [bytes(10**8) for _ in range(100)]


def _fail(_: object) -> None:
    raise OverflowError("too large")


@pytest.mark.parametrize(
    ("function", "why"), quick([(_spin, "1 s"), (_fill, "200 MB"), (_fail, "Overf")], 0)
)
def test_what_takes_too_long_or_too_much_ends(function: Callable[[Any], Any], why: str) -> None:
    with apart.Apart(function, seconds=1, memory=2 * 10**8) as calls:
        found, said = calls.call(1)
        assert found is None
        assert why in said


@pytest.mark.slow
def test_one_that_is_not_checked_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    endless = certified("relation/equal")
    endless["claim"]["claim"] = "sum(i, 1, 900000, exp(sqrt(i))) == 1"
    entries = [sealed(endless), certified("relation/equal")]
    found = list(apart.check_all(entries, seconds=2))
    assert [entry.outcome for entry in found] == [Outcome.NOT_CHECKED, Outcome.VALID]


# ------------------------------------------------------------ proofs and replays


def _proved(data: Data) -> None:
    data["verdict"] = "HOLDS"
    data["claim"]["proof"] = {"method": "positive"}


def test_a_proof_is_proved_again(tmp_path: Path) -> None:
    text = (
        'schema_version = 1\n[[claims]]\nkind = "relation"\nid = "p"\n'
        'claim = "(sqrt(d) + 1)/2 < sqrt(d)"\n[claims.for_all.d]\nstatement = "d"\n'
        'grid = [2, 3]\nlow = "2"'
    )
    data = json.loads(json.dumps(certify(document.read_text(text).claims[0])[1]))
    assert data["verdict"] == "SUPPORTED"
    _proved(data)
    found = checker.check(sealed(data))
    assert found.valid
    assert str(found.theorem) == "HOLDS: (sqrt(d) + 1)/2 < sqrt(d), for every d >= 2"
    data["claim"]["for_all"]["d"]["low"] = "1"
    assert [field for field, _ in checker.check(sealed(data)).problems] == ["claim.proof"]


@pytest.fixture
def audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    (tmp_path / "releases_here.py").write_text(
        "def noisy(dataset, rng):\n    return dataset + rng.laplace()\n"
    )
    monkeypatch.chdir(tmp_path)

    def write(*arguments: str) -> Path:
        path = tmp_path / "audit.json"
        common = ["--samples", "4e3", "--seed", "3", "--certificate", str(path), "--quiet"]
        assert main(["audit", *arguments, *common]) == 1
        return path

    return write


@pytest.mark.slow
def test_a_mechanism_of_this_package_is_replayed(
    audited: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = audited("Laplace(scale=1)", "--claim", "0.3")
    assert main(["check", str(path)]) == 3
    assert "epsilon(0) >=" in capsys.readouterr().out
    assert main(["check", "--replay", str(path)]) == 0
    said = capsys.readouterr().out
    assert "8000 runs were drawn again and counted: the same" in said
    assert "epsilon(0) >=" not in said  # one seed in twenty gives a bound that is too large
    assert "its bound of epsilon is left out" in said
    data = json.loads(path.read_text())
    data["witness"]["seed"] = "4"
    seal.write(path, [sealed(data)])
    assert main(["check", str(path)]) == 3
    assert main(["check", "--replay", str(path)]) == 1
    assert "is not what the seed gives" in capsys.readouterr().out


@pytest.mark.slow
def test_foreign_code_runs_only_when_it_is_asked_for(
    audited: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = audited("releases_here:noisy", "--claim", "0.3", "--pair", "0", "1")
    assert main(["check", "--replay", str(path)]) == 3
    assert "is code that the certificate names, which --replay-code runs" in capsys.readouterr().out
    assert main(["check", "--replay-code", str(path)]) == 3
    said = capsys.readouterr().out
    assert "drawn again and counted: the same" in said
    assert "are neighbours under the claim" in said


@pytest.mark.slow
def test_what_cannot_be_replayed_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.json"
    seal.write(path, [certified("audit")])
    assert main(["check", "--replay", str(path)]) == 3
    assert "not replayed: the certificate does not say how" in capsys.readouterr().out
