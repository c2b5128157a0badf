"""What other libraries describe, as candidates of a comparison; the table on the command line."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from dp_accounting import dp_event

from accountant.budget.target import EpsilonDelta
from accountant.errors import InvalidInputError
from accountant.geometry.workload import Count
from verify.cli import main
from verify.compare import Budget, compare
from verify.verdict import Verdict


def test_an_event_is_a_candidate() -> None:
    found = compare(
        Budget(EpsilonDelta(1, "1e-5"), "replace-one"),
        Count(2),
        candidates=[dp_event.GaussianDpEvent(7.5), dp_event.GaussianDpEvent(3.75)],
        only=["Laplace"],
        metrics=["variance"],
        simulated=False,
    )
    verdicts = {row.candidate.name: row.verdict for row in found.rows}
    assert verdicts["Gaussian(standard_deviation='7.5', l2_sensitivity=2)"] is Verdict.HOLDS
    assert verdicts["Gaussian(standard_deviation='3.75', l2_sensitivity=2)"] is Verdict.REFUTED
    with pytest.raises(InvalidInputError, match="dp-accounting event"):
        compare(found.budget, Count(), candidates=["noise"])


def test_the_command_writes_the_table(tmp_path: Path) -> None:
    file = tmp_path / "profile.csv"
    arguments = ["profile", "Laplace(scale=2)", "--quiet", "--epsilon", "0"]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert main([*arguments, "--export", str(file), "--epsilons", "0:1:3"]) == 0
    lines = file.read_text("utf-8").splitlines()
    assert lines[0] == "epsilon,delta_lower,delta_upper"
    assert [line.split(",")[0] for line in lines[1:]] == ["0", "0.5", "1"]
    for wrong in (
        ["--export", str(file)],
        ["--epsilons", "0:1:3"],
        ["--export", str(tmp_path / "no" / "p.csv"), "--epsilons", "0:1:3"],
        ["--export", str(file), "--epsilons", "0:1"],
    ):
        with redirect_stdout(out), redirect_stderr(err):
            assert main([*arguments, *wrong]) == 2
    assert "--epsilons A:B:N together" in err.getvalue()
    assert "A:B:N of N" in err.getvalue()
