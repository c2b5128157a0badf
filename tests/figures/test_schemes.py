"""The picture of ε against epochs."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpassay
from dpassay.figures import schemes
from dpassay.verifier.cli import main


@pytest.mark.slow
def test_epsilon_against_epochs_is_what_each_run_has(tmp_path: Path) -> None:
    table = dpassay.training_schemes(10, 40, epochs=3, noise_multiplier=4, delta="1e-5")
    drawn = schemes.compute(table)
    assert drawn.epochs[0] == 1
    assert drawn.epochs[-1] == 10
    for _, epsilons in drawn.rows:
        lower = [epsilon.lower for epsilon in epsilons]
        assert lower == sorted(lower)
    again = dpassay.dpsgd(4, 10, 40, epochs=10, delta="1e-5", sampling="shuffle")
    assert drawn.rows[2][1][-1] == again.epsilon
    figure = table.plot(tmp_path / "epochs.svg")
    assert len(figure.axes[0].get_legend().get_texts()) == len(table.runs)
    assert "batches of 10 of 40, noise multiplier 4" in figure.axes[0].get_title(loc="left")


WORDS = ["training", "--noise-multiplier", "4", "--batch", "10", "--size", "20"]
WORDS += ["--epochs", "1", "--delta", "1e-5"]


def test_schemes_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--plot", str(tmp_path / "epochs.png")]) == 2
    assert "Expected --schemes with --plot" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_draws(tmp_path: Path) -> None:
    file = tmp_path / "epochs.png"
    assert main([*WORDS, "--schemes", "--plot", str(file)]) == 0
    assert file.stat().st_size > 1000
