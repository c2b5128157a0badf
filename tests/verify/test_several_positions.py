"""Claims about a person in several positions of a stream, with their certificates."""

from __future__ import annotations

from pathlib import Path

import pytest

from verify.cli import main

TREE = "BridgedTree(steps=12, arities=[3, 2, 2], {}, contributions=3)"
LAPLACE, GAUSSIAN = TREE.format("epsilon=2"), TREE.format("mu=1")
ROOT = "SquareRootFactorization(steps=40, mu=1, contributions=4)"


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (f"{LAPLACE} is 2-DP", "HOLDS"),
        (f"{LAPLACE} is 1.99-DP", "REFUTED"),
        (f"{LAPLACE} is (1, 0.6)-DP", "HOLDS"),  # randomised response of 2 has 0.557
        (f"{LAPLACE} is (1, 0.07)-DP", "REFUTED"),  # the first three positions have 0.0738
        (f"{GAUSSIAN} is 0.8-GDP", "HOLDS"),  # √(17/27): 3·1 + 2² + 1² + 3², over 3·3²
        (f"{GAUSSIAN} is 0.79-GDP", "REFUTED"),
        (f"{ROOT} is 0.86-GDP", "HOLDS"),
        (f"{ROOT} is 0.85-GDP", "REFUTED"),
    ],
)
def test_claims_are_decided_and_certified(
    claim: str, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.json"
    main(["verify", claim, "--certificate", str(path)])
    assert capsys.readouterr().out.startswith(verdict)
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"VALID  {verdict}")


def test_between_both_ends_nothing_is_decided(capsys: pytest.CaptureFixture[str]) -> None:
    main(["verify", f"{LAPLACE} is (1, 0.2)-DP"])
    assert capsys.readouterr().out.startswith("UNDECIDED")


def test_the_remedy_names_the_noise_of_a_counter(capsys: pytest.CaptureFixture[str]) -> None:
    """Of both kinds of noise that it may have, the one that it has."""
    main(["verify", "BridgedTree(steps=12, arities=[3, 2, 2], mu=1) is 0.75-GDP"])
    assert "needs mu ≤ 0.75" in capsys.readouterr().out
