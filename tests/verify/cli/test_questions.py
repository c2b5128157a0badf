"""`dpassay profile`, `convert` and `calibrate --find`: answers, engines, estimates, baselines."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from scipy.stats import norm

import dpassay
from dpassay.accountant.budget.allotment import most_releases
from dpassay.accountant.budget.target import EpsilonDelta
from dpassay.accountant.mechanisms import Gaussian, PoissonSubsampled
from dpassay.verifier.cli import main

BUDGET = ["--epsilon", "1", "--delta", "1e-5"]
STEP = "PoissonSubsampled(mechanism=Gaussian(standard_deviation=1), sampling_prob=0.01)"


def test_the_most_releases(capsys: pytest.CaptureFixture[str]) -> None:
    both = ["--adjacency", "add-remove"]
    assert main(["calibrate", STEP, "--find", "count", *BUDGET, *both, "--json"]) == 0
    step = PoissonSubsampled(Gaussian(1), "0.01")
    count = most_releases(step, EpsilonDelta(1, "1e-5"), adjacency="add-remove")
    assert json.loads(capsys.readouterr().out)["count"] == count


def test_the_largest_rate(capsys: pytest.CaptureFixture[str]) -> None:
    whole = ["calibrate", "Gaussian(standard_deviation=2)", "--find", "sampling-prob"]
    assert main([*whole, "--count", "2000", *BUDGET, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    safe, largest = found["sampling_prob"], found["largest_sampling_prob"]
    assert 0 < float(largest["upper"]) - float(largest["lower"]) < 1e-8 * float(safe)
    assert float(safe) <= float(largest["lower"])


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["convert", *arguments, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert result["schema_version"] == 1
    return result


def ends(value: dict[str, str]) -> tuple[float, float]:
    assert isinstance(value["lower"], str)
    low, high = float(value["lower"]), float(value["upper"])
    assert low <= high
    return low, high


def test_one_renyi_divergence(capsys: pytest.CaptureFixture[str]) -> None:
    result = asked(
        capsys, "--renyi", "16,0.7", "--delta", "1e-6", "--epsilon", "1", "--fpr", "1e-300",
        "--order", "2",
    )  # fmt: skip
    assert result["given"] == {"renyi": ["16", "0.7"]}
    low, high = ends(result["epsilon"])
    assert high - low < 1e-15
    assert high < 0.7 + math.log(1e6) / 15  # the classic conversion
    assert ends(result["true_positive_rate"])[1] < math.exp(15 / 16 * (0.7 - 300 * math.log(10)))
    assert result["renyi"] == {"lower": "0.7", "upper": "0.7"}


def test_gaussian_dp_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    result = asked(
        capsys, "--mu", "1", "--epsilon", "1", "--alpha", "0.05", "--fpr", "1e-300", "--order",
        "3", "--rho", "--to-mu", "--delta", "1e-5",
    )  # fmt: skip
    delta = norm.cdf(-0.5) - math.e * norm.cdf(-1.5)
    assert abs(ends(result["delta"])[0] - delta) < 1e-15
    assert abs(ends(result["beta"])[0] - norm.cdf(norm.isf(0.05) - 1)) < 1e-14
    rate = norm.sf(norm.isf(1e-300) - 1)
    assert abs(ends(result["true_positive_rate"])[0] / rate - 1) < 1e-9
    assert (result["renyi"]["upper"], result["rho"]["upper"]) == ("1.5", "0.5")
    assert result["mu"] == {"lower": "1", "upper": "1"}


def test_zcdp_is_enclosed_between_two_mechanisms(capsys: pytest.CaptureFixture[str]) -> None:
    result = asked(
        capsys, "--zcdp", "0.1", "--delta", "1e-5", "--epsilon", "1", "--fpr", "1e-300",
        "--alpha", "0.5", "--order", "7", "--rho",
    )  # fmt: skip
    low, high = ends(result["epsilon"])
    assert low < high < 0.1 + 2 * math.sqrt(0.1 * math.log(1e5))
    assert result["renyi"] == {"lower": "0.7", "upper": "0.7"}
    power, beta = ends(result["true_positive_rate"]), ends(result["beta"])
    assert 0 < power[0] < power[1] < 1e-290
    assert 0 <= beta[0] < beta[1] <= 0.5


def test_pure_and_approximate_dp(capsys: pytest.CaptureFixture[str]) -> None:
    pure = asked(capsys, "--pure", "1", "--epsilon", "0", "--order", "2", "--rho", "--to-mu")
    assert abs(ends(pure["delta"])[0] - math.tanh(0.5)) < 1e-15
    assert abs(ends(pure["rho"])[0] - math.tanh(0.5)) < 1e-6
    assert abs(ends(pure["mu"])[0] - 2 * norm.ppf(math.e / (1 + math.e))) < 2e-6
    both = asked(capsys, "--approximate", "1,0.01", "--alpha", "0.25", "--alpha", "0.5")
    values = [float(row["upper"]) for row in both["beta"]]
    for alpha, beta in zip((0.25, 0.5), values, strict=True):
        expected = max(1 - 0.01 - math.e * alpha, math.exp(-1) * (1 - 0.01 - alpha))
        assert abs(beta - expected) < 1e-14
    assert [row["alpha"] for row in both["beta"]] == ["0.25", "0.5"]


def test_fewer_digits_where_no_more_are_reached(capsys: pytest.CaptureFixture[str]) -> None:
    mixed = "Composed([Laplace(scale=5), Gaussian(standard_deviation=4)], count=2)"
    assert main(["profile", mixed, "--epsilon", "1", "--json"]) == 0
    delta = json.loads(capsys.readouterr().out)["delta"]
    assert 0 < float(delta["lower"]) <= float(delta["upper"]) < 1.01 * float(delta["lower"])


def test_the_best_mu_where_none_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "RandomizedResponse(epsilon=1)", "--mu", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["mu"]
    assert list(found) == ["lower", "upper", "best_upper"]
    assert {end: found[end] for end in ("lower", "upper")} == found["best_upper"]
    assert dpassay.mu("RandomizedResponse(1)").to_json() == found["best_upper"]
    assert abs(float(found["best_upper"]["upper"]) - 1.232035) < 1e-5  # 2Φ(μ/2) − 1 = tanh(1/2)


def test_a_mu_is_refused_where_the_width_asked_for_is_not_reached(
    capsys: pytest.CaptureFixture[str],
) -> None:
    two = ["profile", "Composed([DiscreteGaussian(2), Gaussian(5)])", "--mu"]
    assert main([*two, "--relative-width", "1e-6"]) == 3
    assert "Reached the least mu in [0.73" in capsys.readouterr().err


def test_a_refusal_does_not_take_the_other_answers(capsys: pytest.CaptureFixture[str]) -> None:
    shown_values = "AboveThreshold(2, 4, variant='noisy-values')"
    assert main(["profile", shown_values, "--epsilon", "0.5", "--mu", "--json"]) == 2
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert "mu" not in found
    assert float(found["delta"]["lower"]) > 0
    assert shown.err.startswith("dpassay: error: No mu is known")


def test_errors_and_losses(capsys: pytest.CaptureFixture[str]) -> None:
    """Laplace noise Z of scale 2: P(|Z| > t) = e^{−t/2}; its loss is at most 0.2 for Z ≥ 0.3."""
    asked = ["--mean-absolute-error", "--absolute-quantile", "0.95", "--quantile", "0.9"]
    assert main(["profile", "Laplace(2)", *asked, "--loss-cdf", "0.2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = {
        "mean_absolute_error": 2,
        "absolute_quantile": 2 * math.log(20),
        "quantile": 2 * math.log(5),
        "loss_cdf": math.exp(-0.15) / 2,
    }
    for key, value in expected.items():
        assert float(found[key]["lower"]) == pytest.approx(value, rel=1e-9, abs=0)
        assert float(found[key]["upper"]) == pytest.approx(value, rel=1e-9, abs=0)
