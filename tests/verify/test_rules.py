"""What a claim may say: the same for a file, for Python and for a certificate."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from jinja2 import DictLoader

import dpassay
from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.figures.pages.template import environment
from dpassay.verifier import report
from dpassay.verifier.claims import Claim
from dpassay.verifier.claims import errors as errors_of
from dpassay.verifier.cli.shell import say, say_json
from dpassay.verifier.document import read_file, read_text
from dpassay.verifier.kernel import check
from tests.tables import rows

MOVING = {
    "monotone": {"expression": "x*(7-x)", "direction": "increasing", "at": ["2", "3"]},
    "minimiser": {"expression": "(x-2)**2", "claimed": "2", "at": ["2", "3"]},
    "limit": {"expression": "1/x", "limit": "0", "rate": "1/x", "at": ["2", "3"]},
}
"""A claim of each kind that has a variable of its own."""
CUTS_AWAY = "3 + 10**9*max(0, x - 5)"
"""An end of the range of x that leaves 2, 3, 6, 7, …"""
RELATION = {"kind": "relation", "claim": "a >= 0"}


def moving(kind: str, **fields: Any) -> dict[str, Any]:
    """Return a claim about x over the integers from 2 to 3."""
    over = {"low": "2", "high": "3", "integer": True}
    return {"kind": kind, "id": "c", "variable": "x", "over": over, **MOVING[kind], **fields}


def ending(kind: str, end: str, text: str, **fields: Any) -> dict[str, Any]:
    """Return the same with another end."""
    over = {"low": "2", "high": "3", "integer": True}
    over.pop({"above": "low", "below": "high"}.get(end, end))
    return moving(kind, over={**over, end: text}, **fields)


WRONG: list[tuple[dict[str, Any], str, str]] = [
    (json.loads(claim), path, words)
    for claim, path, words in rows(Path(__file__).with_name("rules.txt"))
]
WRONG += [({**RELATION, "where": {"a": ["1"] * 1000, "b": ["1"] * 1000}}, "", "1000000 cases")]


@pytest.mark.parametrize(("claim", "path", "words"), WRONG)
def test_refuses(claim: dict[str, Any], path: str, words: str) -> None:
    """Nothing that bounds a variable depends on it, and names are those of variables."""
    found = errors_of(claim)
    assert any(where == path and words in what for where, what in found), found


def toml(claim: dict[str, Any]) -> str:
    """Return a claim file with one claim."""

    def text(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k} = {text(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(text, value)) + "]"
        return str(value).lower() if isinstance(value, bool) else f'"{value}"'

    rows = "\n".join(f"{key} = {text(value)}" for key, value in claim.items())
    return f"schema_version = 1\n[[claims]]\n{rows}\n"


def claim_of(data: dict[str, Any]) -> Claim:
    """Return the claim of a file."""
    return read_text(toml(data)).claims[0]


def certificate(data: dict[str, Any]) -> dict[str, Any]:
    """Return the certificate of a true claim."""
    _, found = dpassay.certify(claim_of(data))
    assert found is not None
    return found


def forged(found: dict[str, Any], **fields: Any) -> str:
    """Return the outcome of a certificate whose claim has other fields."""
    return check({**found, "theorem": {**found["theorem"], **fields}}).outcome.value


@pytest.mark.parametrize("kind", ["monotone", "minimiser"])
@pytest.mark.parametrize(("end", "let"), [(CUTS_AWAY, {}), ("b", {"b": CUTS_AWAY})])
def test_a_range_that_depends_on_its_variable(kind: str, end: str, let: dict[str, str]) -> None:
    """The file is refused, and so is the certificate of what it would have said."""
    wrong = ending(kind, "high", end, **({"let": let} if let else {}))
    with pytest.raises(InvalidInputError, match=r"over\.high"):
        read_text(toml(wrong))
    good = certificate(moving(kind))
    assert check(good).outcome.value == "VALID"
    assert forged(good, over=wrong["over"], let=let) == "INVALID"


CONTINUITY = {"method": "continuity"}
TENDS = {"kind": "limit", "id": "c", "variable": "x", "at": ["1", "10"], "over": {"low": "1"}}


def test_a_limit_that_moves() -> None:
    """1/x does not tend to 1/(2x), by a rate or by another limit."""
    for wrong in (
        {"limit": "1/(2*x)", "rate": "1/x", "proof": {"method": "rate"}},
        {"limit": "0", "proof": {**CONTINUITY, "limit": "1/(2*x)"}},
    ):
        with pytest.raises(InvalidInputError, match="depend on the variable 'x'"):
            read_text(toml({**TENDS, "expression": "1/x", **wrong}))


def test_a_stated_rate_is_part_of_the_claim() -> None:
    """A limit with a false rate is refuted; one with a true rate holds together with it."""
    told = {**TENDS, "expression": "1/x", "limit": "0", "proof": CONTINUITY}
    false = claim_of({**told, "rate": "1/(2*x)"})
    finding, found = dpassay.certify(false)
    assert finding.verdict.value == "REFUTED"
    assert found is not None
    assert check(found).outcome.value == "VALID"
    true = certificate({**told, "rate": "2/x"})
    assert true["theorem"]["verdict"] == "HOLDS"
    assert "off by at most 2/x" in str(check(true))
    assert forged(true, rate="1/(2*x)") != "VALID"
    open_ = dpassay.verify(claim_of({**told, "expression": "1/x + 1/x**2", "rate": "2/x"}))
    assert open_.verdict.value == "HOLDS"
    late = {**told, "expression": "1/x + 9/x**2", "at": ["99", "100"], "rate": "2/x"}
    assert dpassay.verify(claim_of(late)).verdict.value == "SUPPORTED"


UP = "IntegerNoise(['1/2', '3/10', '1/5'], lowest=0)"
MOST_AT_0 = "IntegerNoise(['1/25', '17/25', '7/25'], lowest=0)"


def test_a_record_may_raise_or_lower_a_count() -> None:
    """Asymmetric integer noise has the δ of the worse of both shifts, sampled and composed."""
    sampled = f"PoissonSubsampled({UP}, '1/2')"
    finding, found = dpassay.certify(f"{sampled} is (1, 0.1)-DP", adjacency="add-remove")
    assert finding.verdict.value == "REFUTED"
    assert found is not None
    assert check(found).outcome.value == "VALID"
    assert str(dpassay.delta(sampled, 1, adjacency="add-remove")) == "0.25"
    # one query up and one down, by hand: Σ (p − e² q)⁺ over the nine pairs of outcomes
    twice = dpassay.delta(f"Composed({MOST_AT_0}, 2)", 2, adjacency="add-remove")
    assert float(twice.lower) > 0.688
    assert str(dpassay.delta(UP, 1)) == "0.5"


EVIL = "a\r\x1b[2KHOLDS\u202e\nVALID\x9b\ud800"


@pytest.mark.parametrize("field", ["id", "statement", "source", "cause", "correction", "argument"])
def test_words_that_a_terminal_obeys_are_refused(field: str) -> None:
    """No word of a claim rewrites a line, turns its direction or begins another one."""
    words: dict[str, Any] = {field: EVIL}
    claim = dpassay.Relation(**{"id": "c", "claim": "2 <= 1", **words})
    with pytest.raises(InvalidInputError, match=field) as refused:
        dpassay.verify(claim)
    assert str(refused.value).isprintable()


def test_foreign_words_stand_on_lines_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Words of a file never look like a verdict: as text, table, JSON, page or error."""
    words = "x\nHOLDS: y <script>"
    claim = dpassay.Relation(id="HOLDS all", claim="2 <= 1", statement=words, source=words)
    finding = dpassay.verify(claim)
    report.show(finding, sys.stdout)
    for shown in (str(finding), capsys.readouterr().out, repr(finding)):
        assert not any(line.startswith(("HOLDS", "VALID")) for line in shown.splitlines())
    report.show_table([finding, finding], sys.stdout)
    shown = capsys.readouterr().out
    assert "'HOLDS all'" in shown
    assert not any(line.startswith("HOLDS") for line in shown.splitlines())
    assert "<script>" not in finding._repr_html_()
    say_json({"id": EVIL})
    told = capsys.readouterr().out
    assert all(line.isprintable() for line in told.splitlines())
    assert json.loads(told) == {"id": EVIL}
    say(EVIL)
    assert "\x1b" not in capsys.readouterr().out
    assert "\x1b" not in str(InvalidInputError(EVIL))
    path = tmp_path / "evil.toml"
    path.write_text('schema_version = 1\n[[claims]]\nkind = "relation"\n"a\\u001b\\nb" = 1\n')
    with pytest.raises(InvalidInputError) as refused:
        read_file(path)
    assert all(line.isprintable() for line in str(refused.value).splitlines())
    assert not any(line.startswith("b") for line in str(refused.value).splitlines())
    assert "\u202e" not in environment(DictLoader({"t": "{{ x }}"})).get_template("t").render(
        x=EVIL
    )


def test_a_claim_that_takes_too_long_is_undecided_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nested = "sum(i, 1, 1000, sum(j, 1, 1000, sum(k, 1, 1000, 1))) >= 1"
    with monkeypatch.context() as patch:
        patch.setattr("dpassay.verifier.decide.SECONDS", 0.2)
        with pytest.raises(UndecidedError, match=r"takes more than 0\.2 s of processor time"):
            dpassay.verify(dpassay.Relation(id="c", claim=nested))
    assert dpassay.verify("Laplace(1) is 1-DP").verdict.value == "HOLDS"


@pytest.mark.parametrize("start", ["3", "1.0000001", "sqrt(2)"])
def test_numbers_that_grow_without_end(start: str) -> None:
    """Sixty nested cubes are balls long before they fill the memory."""
    let = {"a0": start, **{f"a{i + 1}": f"a{i}*a{i}*a{i}" for i in range(60)}}
    claim = dpassay.Relation(id="c", claim="a60 >= 1", let=let)
    finding, found = dpassay.certify(claim)
    assert finding.verdict.value == "HOLDS"
    assert found is None or check(found).outcome.value in ("VALID", "CONDITIONAL")


def test_a_tower_of_powers() -> None:
    """10**10**10 is larger than 1, said at once."""
    _, found = dpassay.certify(dpassay.Relation(id="c", claim="10**10**10 >= 1"))
    assert found is not None
    assert check(found).outcome.value in ("VALID", "CONDITIONAL")
