"""`dpassay calibrate --find`: how much fits into a budget; what is refused."""

from __future__ import annotations

import json

import pytest

from verify.cli import main

BUDGET = ["--epsilon", "1", "--delta", "1e-5"]
STEP = "PoissonSubsampled(mechanism=Gaussian(standard_deviation=1), sampling_prob=0.01)"


def test_the_most_releases(capsys: pytest.CaptureFixture[str]) -> None:
    whole = ["calibrate", "Gaussian(standard_deviation=100)", "--find", "count", *BUDGET]
    assert main(whole) == 0
    assert capsys.readouterr().out == "most releases  718\n"
    both = ["--adjacency", "add-remove"]
    assert main(["calibrate", STEP, "--find", "count", *BUDGET, *both, "--json"]) == 0
    count = json.loads(capsys.readouterr().out)["count"]
    for more, code in ((0, 0), (1, 1)):  # proved on both sides
        claim = ["verify", f"Composed(mechanism={STEP}, count={count + more})", *BUDGET, *both]
        assert main([*claim, "--quiet"]) == code
    capsys.readouterr()


def test_releases_below_a_profile(capsys: pytest.CaptureFixture[str]) -> None:
    below = ["--profile", "Gaussian(standard_deviation=2)", "--quiet"]
    assert main(["calibrate", "Laplace(scale=6)", "--find", "count", *below]) == 0
    count = int(capsys.readouterr().out)
    assert 5 < count < 12  # the mu of a composition is near sqrt(count)/6


def test_the_largest_rate(capsys: pytest.CaptureFixture[str]) -> None:
    whole = ["calibrate", "Gaussian(standard_deviation=2)", "--find", "sampling-prob"]
    assert main([*whole, "--count", "2000", *BUDGET, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    safe, largest = found["sampling_prob"], found["largest_sampling_prob"]
    assert 0 < float(largest["upper"]) - float(largest["lower"]) < 1e-12 * float(safe)
    assert float(safe) <= float(largest["lower"])
    step = f"PoissonSubsampled(mechanism=Gaussian(standard_deviation=2), sampling_prob={safe})"
    claim = ["verify", f"Composed(mechanism={step}, count=2000)", *BUDGET]
    assert main([*claim, "--adjacency", "add-remove", "--quiet"]) == 0
    capsys.readouterr()


def test_equal_shares(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["calibrate", "--find", "epsilon", "--count", "10", "--epsilon", "1"]
    assert main([*arguments, "--delta", "1e-6", "--quiet"]) == 0
    share = float(capsys.readouterr().out)
    assert 0.1 < share < 0.11
    assert main([*arguments, "--quiet"]) == 0  # pure: basic composition
    assert capsys.readouterr().out == "0.1\n"


@pytest.mark.slow
def test_shares_in_proportion(capsys: pytest.CaptureFixture[str]) -> None:
    find = ["calibrate", "--find", "epsilon"]
    assert main([*find, "--shares", "1,2,1/2", *BUDGET, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    first, second, third = (float(share) for share in found["epsilon"])
    assert (second / first, third / first) == pytest.approx((2, 1 / 2), rel=1e-14, abs=0)
    assert 1 < first + second + third < 1.001  # a little above basic composition
    assert main([*find, "--count", "10", "--mu", "1", "--quiet"]) == 0
    assert float(capsys.readouterr().out) == pytest.approx(0.309271855216, rel=1e-11, abs=0)
    assert main([*find, "--shares", "1,1", "--mu", "1"]) == 0
    assert capsys.readouterr().out.startswith("epsilon in proportion 1, 1  0.")
