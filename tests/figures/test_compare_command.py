"""`dpassay compare` end to end: flags, files, outputs, the page, bad input."""

from __future__ import annotations

import csv
import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from dpassay.figures.comparison.cli import COMMAND
from dpassay.verifier.cli import main

COUNT = ["--epsilon", "1", "--delta", "1e-6", "--workload", "Count()", "--no-simulation"]


class Result(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str | Path) -> Result:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["compare", *map(str, arguments)], commands=[COMMAND])
    return Result(code, out.getvalue(), err.getvalue())


def test_the_table_marks_the_best_and_says_why_others_are_left_out() -> None:
    found = run(*COUNT, "--only", "laplace", "--only", "Gaussian")
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert lines[0].startswith("Use `DiscreteLaplace(scale='0.999998632122')`: typical error ±1.4")
    assert "budget    epsilon=1, delta=1e-6 under add-remove" in lines
    (best,) = (line for line in lines if line.startswith("discrete Laplace "))
    assert best.split()[2:6] == ["HOLDS", "scale", "=", "1"]
    assert "1.357*" in best
    assert found.stdout.splitlines()[-1].startswith("left out: bounded count noise")
    details = run(*COUNT, "--only", "laplace", "--only", "Gaussian", "--details")
    assert "left out: bounded count noise (Sadeghi et al.): a budget does not" in details.stdout


def test_json_has_enclosures_and_verdicts() -> None:
    found = run(*COUNT, "--only", "Laplace", "--json", "--metric", "variance", "--metric", "rmse")
    data = json.loads(found.stdout)
    assert data["complete"] is True
    first = data["rows"][0]
    assert first["verdict"] == "HOLDS"
    assert float(first["variance"]["lower"]) <= float(first["variance"]["upper"])
    assert set(data["metrics"]) == {"variance", "rmse"}
    assert data["best"]["variance"] == ["discrete Laplace"]
    assert data["rows"][1]["ratio"]["variance"] == pytest.approx(1.086, rel=1e-3)


def test_a_refuted_candidate_sets_the_exit_code() -> None:
    found = run(*COUNT, "--only", "Laplace", "--candidate", "Laplace(scale='0.9')")
    assert found.returncode == 1
    assert "struck out" in found.stdout


def test_a_file_says_the_same_as_the_flags(tmp_path: Path) -> None:
    file = tmp_path / "budget.toml"
    file.write_text(
        """
schema_version = 1
workload = "Counts(dimension=20, sparsity=20)"
metrics = ["variance"]
only = ["Gaussian"]
[budget]
mu = 0.5
adjacency = "replace-one"
[[sweep]]
parameter = "mu"
values = [0.5, 1]
"""
    )
    from_file = run(file, "--json", "--no-simulation")
    assert from_file.returncode == 0, from_file.stderr
    by_flags = run(
        *("--mu", "0.5", "--adjacency", "replace-one", "--metric", "variance"),
        *("--workload", "Counts(dimension=20, sparsity=20)", "--only", "Gaussian"),
        *("--sweep", "mu=0.5,1", "--json", "--no-simulation"),
    )
    first, second = json.loads(from_file.stdout), json.loads(by_flags.stdout)
    for data in (first, second):
        del data["seconds"]
    assert first == second
    assert first["sweeps"][0]["values"] == ["0.5", "1"]


def test_tables_for_papers_and_spreadsheets(tmp_path: Path) -> None:
    tex, table, certificate = tmp_path / "t.tex", tmp_path / "t.csv", tmp_path / "c.json"
    outputs = ("--latex", tex, "--csv", table, "--certificate", certificate)
    found = run(*COUNT, "--only", "aplace", *outputs)
    assert found.returncode == 0, found.stderr
    assert r"\textbf{1.8413}" in tex.read_text()
    assert tex.read_text().count("\\\\") == 3
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {row["name"] for row in rows} == {"Laplace", "discrete Laplace"}
    assert all(float(row["variance_lower"]) <= float(row["variance_upper"]) for row in rows)
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(["check", str(certificate)]) == 0
    assert out.getvalue().count("VALID") == 2


def test_errors_on_the_users_own_records(tmp_path: Path) -> None:
    data = tmp_path / "records.csv"
    data.write_text("a,b,c\n" + "1,0,1\n" * 50 + "0,1,0\n" * 50)
    found = run(
        *("--mu", "1", "--workload", "Counts(dimension=3, sparsity=2)", "--only", "Gaussian"),
        *("--data", data, "--json", "--no-simulation"),
    )
    assert found.returncode == 0, found.stderr
    known = json.loads(found.stdout)["data"]["Gaussian"]
    assert known["rmse"] == pytest.approx(2**0.5, rel=0.2)  # 600 numbers: 7 standard errors
    assert known["relative"] == pytest.approx(known["rmse"] / 50, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,c\n1,0,1\n1,1,1\n", "1 of 2 rows are outside.*line 3: 3 ones, at most 2"),
        ("a,b,c\n1,0,1\n1,,1\n", "1 of 2 rows cannot be used: line 3: column 'b' is missing"),
        ("a,b,c\n1,0,x\n", "line 2: column 'c' is 'x'"),
        ("", "header"),
        ("a,b,c\n2,0,0\n", "neither 0 nor 1"),
    ],
)
def test_wrong_records_are_named(tmp_path: Path, text: str, message: str) -> None:
    data = tmp_path / "records.csv"
    data.write_text(text)
    found = run("--mu", "1", "--workload", "Counts(dimension=3, sparsity=2)", "--data", data)
    assert found.returncode == 2
    assert re.search(message, found.stderr), found.stderr
    assert found.stdout == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schema_version = 2\nworkload = 'Count()'\n[budget]\nmu = 1\n", "schema_version=2"),
        ("schema_version = 1\nworkload = 'Count()'\ncolour = 1\n[budget]\nmu = 1\n", "colour"),
        ("schema_version = 1\nworkload = \n", "line 2"),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "budget.toml"
    file.write_text(text)
    found = run(file)
    assert found.returncode == 2
    assert str(file) in found.stderr
    assert message in found.stderr


def report(tmp_path: Path) -> Path:
    page = tmp_path / "report.html"
    found = run(
        *("--epsilon", "1", "--delta", "1e-6", "--html", page),
        *("--workload", "VectorSum(dimension=5, l2_sensitivity=1)", "--sweep", "delta=1e-9,1e-3"),
        "--published",
    )
    assert found.returncode == 0, found.stderr
    return page


@pytest.mark.slow
def test_the_report_is_whole_in_itself(tmp_path: Path) -> None:
    text = report(tmp_path).read_text("utf-8")
    assert "R1SMG" in text
    assert 'class="struck"' in text
    assert text.count("<svg") == 2
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    assert "<script" not in text
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(re.findall(r'\bid="([^"]+)"', text))
    assert "dpassay verify" in text
