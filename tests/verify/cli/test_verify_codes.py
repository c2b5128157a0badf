"""`dpassay verify FILE`: its exit codes, its last line, and the certificates of argued claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verify.cli import main

TRUE = 'kind = "relation"\nclaim = "1 < 2"'
FALSE = 'kind = "relation"\nclaim = "2 < 1"'
EXPECTED = '\nexpected = "REFUTED"'
GRID = 'kind = "relation"\nclaim = "x > 0"\nfor_all.x = {low = 1, grid = [1, 2]}'
ARGUED = f'{GRID}\nargument = "One is positive."'
OPEN = 'kind = "relation"\nclaim = "gamma(1/3)*gamma(2/3) == 2*pi()/sqrt(3)"'
PENDING = 'kind = "pending"\nneeds = "audit"\nreason = "runs are needed"'


def written(folder: Path, *claims: str) -> str:
    path = folder / "claims.toml"
    tables = [f'[[claims]]\nid = "c{index}"\n{claim}\n' for index, claim in enumerate(claims)]
    path.write_text("schema_version = 1\n" + "".join(tables), "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ([TRUE], 0),
        ([TRUE, PENDING], 0),
        ([TRUE, FALSE + EXPECTED], 0),
        ([FALSE + EXPECTED], 0),
        ([FALSE], 1),
        ([FALSE, OPEN, ARGUED], 1),
        ([TRUE + EXPECTED], 1),
        ([ARGUED], 3),
        ([GRID], 3),
        ([TRUE, FALSE + EXPECTED, GRID], 3),
        ([OPEN], 3),
        ([PENDING], 3),
        ([TRUE, 'kind = "relation"\nclaim = "y < 1"'], 2),
        ([FALSE, 'kind = "relation"\nclaim = "y < 1"'], 2),
    ],
)
def test_exit_codes(tmp_path: Path, claims: list[str], code: int) -> None:
    assert main(["verify", written(tmp_path, *claims), "--quiet"]) == code


def test_every_verdict_is_counted_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["verify", written(tmp_path, TRUE, ARGUED, GRID, FALSE, OPEN, PENDING)])
    last = capsys.readouterr().out.splitlines()[-1]
    counts = "1 HOLDS, 1 ARGUED, 1 SUPPORTED, 1 REFUTED, 1 UNDECIDED, 1 PENDING"
    assert last == f"6 claims: {counts}"


def test_the_formal_claim_is_the_headline_and_the_words_are_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = 'statement = "Every number is positive."\n'
    listed = 'kind = "relation"\nclaim = "x > 0"\nwhere.x = [1, 2]'
    assert main(["verify", written(tmp_path, words + listed)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split(maxsplit=1) == ["claim", "in the cases x in {1, 2}: x > 0"]
    assert "“Every number is positive.”" in lines[2]
    assert lines[3].endswith("more than was decided: only the listed cases.")


def test_the_certificate_of_an_argued_claim_says_so(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    claims = written(tmp_path, ARGUED)
    assert main(["verify", claims, "--certificate", str(path), "--quiet"]) == 3
    data = json.loads(path.read_text("utf-8"))
    assert data["verdict"] == "ARGUED"
    assert data["claim"]["argument"] == "One is positive."
