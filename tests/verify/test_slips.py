"""SLIP, distinct errors and stricter readings: what a ledger counts, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from accountant.errors import InvalidInputError
from verify import batch, checker, document, report
from verify.cli import main
from verify.verdict import Finding, Verdict, distinct_errors

HEAD = "schema_version = 1\n"
PRINTED = (
    '[[claims]]\nkind = "printed-number"\nid = "factor"\nexpression = "920/90"\nprinted = "8"\n'
)
FACTOR = PRINTED + 'slip = true\ncorrection = "It is 10.2: factor/corrected."\n'


def corrected(printed: str) -> str:
    return PRINTED.replace('"factor"', '"factor/corrected"').replace('"8"', f'"{printed}"')


def false(name: str, error: str = "") -> str:
    return f'[[claims]]\nkind = "relation"\nid = "{name}"\nclaim = "1 < 0"\nerror = "{error}"\n'


def run(text: str) -> list[batch.Outcome]:
    claims = document.read_text(HEAD + text).claims
    return [*batch.concluded(claims, dict(batch.decide_all(claims))).values()]


def findings(text: str) -> list[Finding]:
    return [outcome.finding for outcome in run(text) if outcome.finding is not None]


def test_a_misprint_whose_correction_holds_is_a_slip() -> None:
    slip, right = run(FACTOR + corrected("10.2"))
    assert slip.finding is not None
    assert right.finding is not None
    assert [slip.finding.verdict, right.finding.verdict] == [Verdict.SLIP, Verdict.HOLDS]
    assert slip.certificate is not None
    checked = checker.check(slip.certificate)
    assert checked.outcome is checker.Outcome.VALID
    assert slip.certificate["verdict"] == "REFUTED"


def test_without_a_correction_that_holds_it_stays_refuted() -> None:
    assert findings(FACTOR + corrected("11"))[0].verdict is Verdict.REFUTED


def test_what_holds_is_no_slip() -> None:
    true = FACTOR.replace('"8"', '"10.2"')
    assert findings(true + corrected("10.2"))[0].verdict is Verdict.HOLDS


@pytest.mark.parametrize("correction", ["", "It is 10.2.", "factor", "factor/other"])
def test_a_slip_names_its_correction(correction: str) -> None:
    text = FACTOR.replace("It is 10.2: factor/corrected.", correction)
    with pytest.raises(InvalidInputError, match=r"factor\.slip: its correction names no other"):
        document.read_text(HEAD + text + corrected("10.2"))


def test_statements_that_fall_with_one_error_are_counted_once() -> None:
    text = "".join(
        [false("a", "one"), false("b", "one"), false("c"), false("d/wording"), false("e/finite")]
    )
    found = findings(text + FACTOR + corrected("10.2"))
    errors = {name: [f.id for f in fallen] for name, fallen in distinct_errors(found).items()}
    assert errors == {"one": ["a", "b"], "c": ["c"]}
    assert report.counts(found) == (
        "7 claims: 1 HOLDS, 5 REFUTED, 1 SLIP. REFUTED: 2 distinct errors; 2 only read more "
        "strictly than meant, or cited"
    )


def test_one_slip_alone_is_decided_with_its_correction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(HEAD + FACTOR + corrected("10.2"), "utf-8")
    assert main(["verify", str(path), "--only", "factor", "--quiet"]) == 1
    assert capsys.readouterr().out.split() == ["SLIP"]
