"""`dpassay convert`: every guarantee, every question, as text and JSON, and what is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from scipy.stats import norm

from verify.cli import main


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
        "--order", "2", "--baselines",
    )  # fmt: skip
    assert result["given"] == {"renyi": ["16", "0.7"]}
    low, high = ends(result["epsilon"])
    assert high - low < 1e-15
    improved = {row["name"]: float(row["epsilon"]["lower"]) for row in result["baselines"]}
    assert high < improved["improved"] < improved["classic"]
    assert abs(improved["classic"] - (0.7 + math.log(1e6) / 15)) < 1e-12
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


def test_text_and_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--mu", "0.5", "--rho"]) == 0
    assert capsys.readouterr().out.split() == [
        "mu-Gaussian", "DP,", "M", "=", "0.5", "rho", "0.125",
    ]  # fmt: skip
    assert main(["convert", "--mu", "0.5", "--rho", "--order", "8", "--quiet"]) == 0
    assert capsys.readouterr().out.split() == ["1", "0.125"]
