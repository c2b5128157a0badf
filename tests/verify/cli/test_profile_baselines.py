"""`dpassay profile --baselines` and `--tpr-at-fpr`."""

from __future__ import annotations

import json

import pytest

from verify.cli import main


def test_baselines_stand_beside_the_exact_value(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["profile", "Composed(Laplace(scale=10), count=20)", "--delta", "1e-5"]
    assert main([*arguments, "--baselines", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in result["baselines"]}
    exact = float(result["epsilon"]["lower"])
    assert float(rows["exact"]["epsilon"]["upper"]) >= exact
    for row in rows.values():
        assert not row["is_bound"] or float(row["epsilon"]["upper"]) >= exact
    assert main([*arguments, "--baselines"]) == 0
    assert "kairouz-oh-viswanath" in capsys.readouterr().out


def test_baselines_need_a_delta(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "Laplace(scale=10)", "--baselines"]) == 2
    assert "--delta" in capsys.readouterr().err


def test_true_positive_rate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "Laplace(scale=1)", "--tpr-at-fpr", "1e-300", "--json"]) == 0
    rate = json.loads(capsys.readouterr().out)["true_positive_rate"]
    assert rate["lower"].startswith("2.71828182845904")


def test_fewer_digits_where_no_more_are_reached(capsys: pytest.CaptureFixture[str]) -> None:
    mixed = "Composed([Laplace(scale=5), Gaussian(standard_deviation=4)], count=2)"
    assert main(["profile", mixed, "--epsilon", "1", "--json"]) == 0
    delta = json.loads(capsys.readouterr().out)["delta"]
    assert 0 < float(delta["lower"]) <= float(delta["upper"]) < 1.01 * float(delta["lower"])
