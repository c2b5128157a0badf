"""`dpassay compare` end to end: flags, files, outputs, the page, bad input."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from dpassay.figures.comparison.cli import COMMAND
from dpassay.verifier.cli import main

COUNT = ["--epsilon", "1", "--delta", "1e-6", "--workload", "Count()"]


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


@pytest.mark.parametrize(
    "command", [["verify"], ["compare"], ["optimal", "gaussian-shape"]], ids=lambda words: words[0]
)
@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"x = " + b"[" * 3000, "brackets are nested too deeply"),
        (b"\xff\xfe", "is not UTF-8 text: byte 0."),
        (b"x = " + b"9" * 5000, "is not a TOML file: "),
        (None, "Cannot read "),
    ],
    ids=["nested", "bytes", "digits", "missing"],
)
def test_commands_refuse_a_bad_file_in_the_same_words(
    command: list[str],
    written: bytes | None,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "input.toml"
    if written is not None:
        path.write_bytes(written)
    assert main([*command, str(path)], commands=[COMMAND]) == 2
    assert said in capsys.readouterr().err


def test_a_file_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "budget.toml"
    text = 'schema_version = 1\nworkload = "Count()"\nbudget = { epsilon = "1", delta = "1e-6" }\n'
    file.write_text(text, "utf-8-sig")
    assert run(file, "--only", "Gaussian").returncode == 0


def test_json_has_enclosures_and_verdicts() -> None:
    found = run(*COUNT, "--only", "Laplace", "--json", "--metric", "variance", "--metric", "rmse")
    data = json.loads(found.stdout)
    assert data["complete"] is True
    first = data["rows"][0]
    assert first["verdict"] == "HOLDS"
    assert float(first["variance"]["lower"]) <= float(first["variance"]["upper"])
    assert set(data["metrics"]) == {"variance", "rmse"}
    assert data["best"]["variance"] == ["discrete Laplace"]
    assert data["rows"][1]["ratio"]["variance"] == pytest.approx(1.086, rel=1e-3, abs=0)


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
"""
    )
    from_file = run(file, "--json")
    assert from_file.returncode == 0, from_file.stderr
    by_flags = run(
        *("--mu", "0.5", "--adjacency", "replace-one", "--metric", "variance"),
        *("--workload", "Counts(dimension=20, sparsity=20)", "--only", "Gaussian"),
        "--json",
    )
    first, second = json.loads(from_file.stdout), json.loads(by_flags.stdout)
    for data in (first, second):
        del data["seconds"]
    assert first == second


def test_certificates_of_a_comparison_are_valid(tmp_path: Path) -> None:
    certificate = tmp_path / "c.json"
    assert run(*COUNT, "--only", "aplace", "--certificate", certificate).returncode == 0
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(["check", str(certificate)]) == 0
    assert out.getvalue().count("VALID") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schema_version = 2\nworkload = 'Count()'\n[budget]\nmu = 1\n", "schema_version=2"),
        ("schema_version = 1\nworkload = 'Count()'\ncolour = 1\n[budget]\nmu = 1\n", "colour"),
        (
            "schema_version = 1\nworkload = 'Count()'\n[budget]\nmu = [1]\n",
            "budget.mu: expected a text or a number, not a list. Write mu = ",
        ),
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
        *("--workload", "VectorSum(dimension=5, l2_sensitivity=1)"),
        "--published",
    )
    assert found.returncode == 0, found.stderr
    return page


@pytest.mark.slow
def test_the_report_is_whole_in_itself(tmp_path: Path) -> None:
    text = report(tmp_path).read_text("utf-8")
    assert "R1SMG" in text
    assert 'class="struck"' in text
    assert text.count("<svg") == 1
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    assert "<script" not in text
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(re.findall(r'\bid="([^"]+)"', text))
    assert "dpassay verify" in text
