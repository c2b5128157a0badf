"""`dpassay profile`: baselines, the best μ, and attacks at a small false positive rate."""

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


def test_true_positive_rate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "Laplace(scale=1)", "--tpr-at-fpr", "1e-300", "--json"]) == 0
    rate = json.loads(capsys.readouterr().out)["true_positive_rate"]
    assert rate["lower"].startswith("2.71828182845904")


def test_fewer_digits_where_no_more_are_reached(capsys: pytest.CaptureFixture[str]) -> None:
    mixed = "Composed([Laplace(scale=5), Gaussian(standard_deviation=4)], count=2)"
    assert main(["profile", mixed, "--epsilon", "1", "--json"]) == 0
    delta = json.loads(capsys.readouterr().out)["delta"]
    assert 0 < float(delta["lower"]) <= float(delta["upper"]) < 1.01 * float(delta["lower"])


def test_the_best_mu_where_none_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "RandomizedResponse(epsilon=1)", "--mu", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["mu"]
    assert list(found) == ["best_upper", "best_lower", "regret"]
    ends = {name: float(value["upper"]) for name, value in found.items()}
    assert 0 < ends["best_lower"] < ends["best_upper"]
    assert abs(ends["best_upper"] - 1.232035) < 1e-5  # 2Φ(μ/2) − 1 = tanh(1/2)
    assert 0 < ends["regret"] < 0.1
    assert main(["profile", "RandomizedResponse(epsilon=1)", "--mu"]) == 0
    assert "mu best upper" in capsys.readouterr().out
    assert main(["profile", "RandomizedResponse(epsilon=1)", "--mu", "--quiet"]) == 0
    assert len(capsys.readouterr().out.split()) == 3


def test_attacks_at_the_least_false_positive_rates(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "Laplace(scale=1)", "--fpr", "1e-300", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["true_positive_rate"]
    assert abs(float(found["lower"]) / 2.718281828459045e-300 - 1) < 1e-12


def test_the_best_mu_of_a_sample_under_replace_one(capsys: pytest.CaptureFixture[str]) -> None:
    step = "PoissonSubsampled(Gaussian(standard_deviation=2), sampling_prob='1/10')"
    assert main(["profile", step, "--mu", "--json", "--adjacency", "replace-one"]) == 0
    found = json.loads(capsys.readouterr().out)["mu"]
    assert found["best_upper"] == {"lower": "0.5", "upper": "0.5"}
