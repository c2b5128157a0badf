"""`dpassay profile`: engines by name, and estimates that are said to be estimates."""

from __future__ import annotations

import json
import math

import pytest

from verify.cli import main

TRAINING = (
    "Composed(PoissonSubsampled(Gaussian(standard_deviation='1.1'), sampling_prob='256/60000'), "
    "count=7032)"
)
MIXED = "Composed([Laplace(scale=5), Gaussian(standard_deviation=4)], count=2)"
BOTH = ["--adjacency", "add-remove"]


@pytest.mark.slow
def test_two_engines_enclose_the_same_delta(capsys: pytest.CaptureFixture[str]) -> None:
    ends = []
    for method in ("auto", "fourier", "grid"):
        assert main(["profile", MIXED, "--epsilon", "1", "--method", method, "--json"]) == 0
        delta = json.loads(capsys.readouterr().out)["delta"]
        ends.append((float(delta["lower"]), float(delta["upper"])))
    assert max(low for low, _ in ends) <= min(high for _, high in ends)


def test_estimates_have_keys_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    questions = ["--delta", "1e-5", "--delta", "1e-400", "--epsilon", "1", "--fpr", "1e-9"]
    assert main(["profile", TRAINING, *questions, *BOTH, "--estimate", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["rigour"] == "estimate"
    assert not {"delta", "epsilon", "true_positive_rate"} & set(result)
    first, second = result["epsilon_estimate"]
    assert (first["delta"], second["delta"]) == ("1e-5", "1e-400")
    assert math.isclose(first["estimate"], 1.63621224927068, rel_tol=1e-12)
    assert set(result["delta_estimate"]) == {"epsilon", "estimate", "error"}
    assert set(result["true_positive_rate_estimate"]) == {"tpr_at_fpr", "estimate", "error"}
    assert main(["profile", TRAINING, "--delta", "1e-5", *BOTH, "--estimate"]) == 0
    assert "estimate 1.63621224927" in capsys.readouterr().out
    assert main(["profile", "Laplace(scale=1)", "--delta", "0", "--estimate", "--quiet"]) == 0
    assert capsys.readouterr().out == "1\n"
