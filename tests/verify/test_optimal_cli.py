"""`dpassay optimal count-noise` and `integer-noise` end to end: answers, errors, and cvxpy."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpassay
from dpassay.accountant import notation
from dpassay.accountant.questions import profile
from dpassay.lp import count_noise
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.problem import CountNoiseProblem
from dpassay.verifier.cli import main
from tests.quick import slow

COUNT = ["optimal", "count-noise"]
INTEGER = ["optimal", "integer-noise"]
EXACT = [*COUNT, "--ratio", "3", "--eta", "1/2", "--support", "4"]


def printed(capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    return data


def test_count_noise_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    data = printed(capsys, EXACT)
    assert data["exact"] == "1/232"
    assert Fraction(data["delta"]["lower"]) <= Fraction(1, 232) <= Fraction(data["delta"]["upper"])
    assert [law["from"] for law in data["law"]] == [4]
    assert data["seconds"] >= 0


@pytest.mark.parametrize("objective", ["singular", "true-delta"])
def test_one_law_is_a_mechanism(capsys: pytest.CaptureFixture[str], objective: str) -> None:
    data = printed(capsys, [*EXACT, "--objective", objective, "--data-independent"])
    law = [Fraction(text) for text in data["law"][0]["probabilities"]]
    mechanism, zero = notation.parse(data["mechanism"]), Fraction(0)
    true = profile.delta(mechanism, "1.0986122886681098", adjacency=None)
    reached = sum(max(p - 3 * q, zero) for p, q in zip(law, [zero, *law], strict=False))
    assert abs(float(true.lower) / float(reached) - 1) < 1e-12
    if objective == "true-delta":
        assert reached == Fraction(data["exact"])
    else:
        assert reached > Fraction(data["exact"])


def test_a_wide_enclosure_is_no_certificate_of_an_optimum(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_noise, "answers", lambda *_, **__: iter(()))
    path = tmp_path / "noise.json"
    asked = [*EXACT, "--max-count", "10"]
    assert main(asked) == 0
    assert "[0, 0.25]" in capsys.readouterr().out
    assert main([*asked, "--certificate", str(path)]) == 3
    assert "[0, 0.25]" in capsys.readouterr().err
    assert not path.exists()


def test_laws_that_are_left_out_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    words = "optimal count-noise --epsilon 1 --eta 1/2 --support 7 --max-count 1000"
    assert main(words.split()) == 0
    out = capsys.readouterr().out
    assert out.count("  law of ") == 6
    assert "  2 laws in between are left out (--json has all)\n  law of n ≥ 8\n" in out


def test_count_noise_text_and_certificate(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "noise.json"
    command = [*EXACT, "--max-count", "100000", "--certificate", str(path)]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert re.search(r"exactly +1/53\n", out)
    assert "law of n = 1\n" in out
    assert "law of n ≥ 5\n" in out
    assert "left out" not in out
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out.startswith("VALID  OPTIMAL: the least delta at ")
    path.write_text(path.read_text("utf-8").replace('"upper":"1/53"', '"upper":"1/54"'), "utf-8")
    assert main(["check", str(path), "--json"]) == 1
    checked = json.loads(capsys.readouterr().out)["certificates"][0]
    assert [problem["field"] for problem in checked["problems"]] == ["theorem.lower"]
    assert main([*EXACT, "--quiet"]) == 0
    assert capsys.readouterr().out == "0.00431034482759\n"


def test_missing_solver(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpassay.lp.solve.find_spec", lambda _: None)
    assert main([*EXACT, "--max-count", "9"]) == 2
    assert "Install highspy" in capsys.readouterr().err
    assert main([*INTEGER, "--epsilon", "1", "--delta", "0.1"]) == 2
    assert "Install highspy" in capsys.readouterr().err


def test_free_support_and_monotone(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--ratio", "2", "--delta", "1e-3", "--sensitivity", "2"]
    free = printed(capsys, [*INTEGER, *options, "--support", "free"])
    assert free["every_support"]
    wide = printed(capsys, [*INTEGER, *options, "--support", "40"])
    assert free["exact"] == wide["exact"]
    law = [Fraction(text) for text in free["law"]["probabilities"]]
    assert sum(law) == 1
    fixed = ["--ratio", "2", "--delta", "0.01", "--sensitivity", "2", "--error-free", "1/20"]
    fixed += ["--support", "20"]
    loose = printed(capsys, [*INTEGER, *fixed])
    falling = printed(capsys, [*INTEGER, *fixed, "--monotone"])
    assert Fraction(falling["exact"]) > Fraction(loose["exact"])
    law = [Fraction(text) for text in falling["law"]["probabilities"]][20:]
    assert law == sorted(law, reverse=True)


@pytest.mark.parametrize("suffix", [".png", slow(".pdf"), slow(".svg")])
def test_plots(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"law{suffix}"
    assert main([*EXACT, "--max-count", "20", "--plot", str(path)]) == 0
    assert path.stat().st_size > 1000
    path.unlink()
    assert main([*INTEGER, "--epsilon", "1", "--delta", "1e-3", "--plot", str(path)]) == 0
    assert path.stat().st_size > 1000


# `optimal count-noise`: both δ, decimals of the α's, cvxpy beside the proof.


ONE_LAW = CountNoiseProblem(ratio=3, eta="1/2", support=4)
BY_COUNT = CountNoiseProblem(ratio=2, eta="1/2", support=2, max_count=6)


def test_both_deltas_of_the_law_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    reached = optimal_count_noise(ONE_LAW).reached
    assert Fraction(1, 232) in reached["singular"]
    assert Fraction(1, 58) in reached["true-delta"]
    mechanism = dpassay.BoundedCountNoise(epsilon="1.1", eta="1/2", support=6)
    true = profile.delta(mechanism, "1.1", adjacency="add-remove")
    problem = CountNoiseProblem(epsilon="1.1", eta="1/2", support=6)
    assert optimal_count_noise(problem).reached["true-delta"].overlaps(true)
    assert main(EXACT) == 0
    assert "as (ε, δ)-DP     δ = 0.0172413793103, of all events" in capsys.readouterr().out
    assert main([*EXACT, "--objective", "true-delta"]) == 0
    assert "single outcomes  δ = " in capsys.readouterr().out


def test_laws_by_count_have_the_delta_of_their_worst_neighbours() -> None:
    found = optimal_count_noise(BY_COUNT)
    worst = max(
        profile.delta(found.neighbours(n), "0.693147180559945309417232121458").upper
        for n in range(1, 6)
    )
    assert abs(float(worst) / float(found.reached["true-delta"].upper) - 1) < 1e-12


def test_alphas_have_decimals_beside_their_fractions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EXACT, "--json"]) == 0
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    pairs = list(zip(data["alpha_star"], data["alpha_star_decimal"], strict=True))
    pairs += [(each["alpha"], each["decimal"]) for each in data["alphas"]]
    for fraction, decimal in pairs:
        assert abs(Fraction(decimal) - Fraction(fraction)) <= Fraction(fraction) / 10**14
    assert data["solver"] is None
    assert set(data["reached"]) == {"singular", "true-delta"}


@pytest.mark.parametrize(("solver", "near"), [("cvxpy:HIGHS", 1e-9), ("cvxpy:clarabel", 1e-6)])
def test_cvxpy_finds_the_alphas_that_are_proved(solver: str, near: float) -> None:
    found = optimal_count_noise(ONE_LAW, solver=solver).solver_answer
    proved = optimal_count_noise(ONE_LAW).alpha_star
    assert found is not None
    assert found.alpha_star is not None
    assert proved is not None
    assert found.delta_off <= near
    differences = [abs(a - float(b)) for a, b in zip(found.alpha_star, proved, strict=True)]
    assert max(differences) == found.alpha_off <= near


def test_cvxpy_gives_a_law_of_each_count(capsys: pytest.CaptureFixture[str]) -> None:
    answer = optimal_count_noise(BY_COUNT, solver="cvxpy").solver_answer
    assert answer is not None
    assert answer.delta_off < 1e-6
    for alphas in answer.alphas.values():
        assert abs(sum(alphas.values()) - 1) < 1e-6
    assert main([*EXACT, "--solver", "cvxpy:HIGHS", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["solver"]["name"] == "HIGHS"
