"""Audits until refuted that are interrupted, continued, and drawn by a device."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accountant import notation
from accountant.errors import InvalidInputError
from verify import checker
from verify.audit import (
    MechanismError,
    Outcome,
    SequentialResult,
    audit_until_refuted,
    blocks,
    features,
)
from verify.cli import main

PLAIN = (features.plain,)
ROOT = Path(__file__).parents[3]


class Noisy:
    """Laplace noise at most `calls` times, then nothing but an error."""

    def __init__(self, calls: float) -> None:
        self.calls = calls
        self.runs = 0

    def sample(self, dataset: float, size: int, rng: np.random.Generator) -> Any:
        self.calls -= 1
        if self.calls < 0:
            raise RuntimeError("no more")
        self.runs += size
        return dataset + rng.laplace(0, 0.8, size)


def run(target: Noisy, path: Path | None, *, seed: int | None = 3) -> SequentialResult:
    return audit_until_refuted(
        target,
        1,
        pairs=[(0.0, 1.0)],
        samples=4000,
        significance=1e-6,
        seed=seed,
        proposers=PLAIN,
        checkpoint=path,
    )


@pytest.mark.parametrize("calls", [8, *(pytest.param(n, marks=pytest.mark.slow) for n in (25, 40))])
def test_what_was_drawn_is_kept(tmp_path: Path, calls: int) -> None:
    whole = Noisy(np.inf)
    alone = run(whole, None)
    path = tmp_path / "kept.json"
    first = Noisy(calls)
    with pytest.raises(MechanismError, match=r"pairs of runs\) were drawn and are in .*kept\.json"):
        run(first, path)
    again = Noisy(np.inf)
    resumed = run(again, path)
    assert resumed.rounds == alone.rounds
    assert (resumed.evidence, resumed.outcome) == (alone.evidence, Outcome.REFUTED)
    # the runs of the probe are made once, and at most the side of a round that raised is redrawn
    redrawn = first.runs + again.runs - whole.runs
    assert 0 <= redrawn <= max(entry.runs for entry in alone.rounds)
    assert run(Noisy(0), path).evidence == alone.evidence  # nothing is left to draw


def test_without_a_checkpoint_the_message_says_how_to_keep_runs() -> None:
    with pytest.raises(MechanismError, match=r"were discarded \(name a checkpoint= to keep them\)"):
        run(Noisy(20), None)


@pytest.mark.slow
def test_a_checkpoint_keeps_the_seed(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    with pytest.raises(MechanismError):
        run(Noisy(20), path, seed=None)
    resumed = run(Noisy(np.inf), path, seed=None)
    assert resumed.seed == blocks.kept_seed(path)
    assert resumed.rounds == run(Noisy(np.inf), None, seed=resumed.seed).rounds


def test_other_checkpoints_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    with pytest.raises(MechanismError):
        run(Noisy(20), path)
    with pytest.raises(InvalidInputError, match="belongs to another audit"):
        run(Noisy(np.inf), path, seed=4)
    outputs = tmp_path / "kept.json.round-1.npz"
    outputs.write_bytes(outputs.read_bytes()[:200])  # a disk that was full
    with pytest.raises(InvalidInputError, match=r"round-1\.npz.* cannot be read"):
        run(Noisy(np.inf), path)
    outputs.unlink()
    with pytest.raises(InvalidInputError, match=r"round-1\.npz.* cannot be read"):
        run(Noisy(np.inf), path)
    path.write_text("{}")
    with pytest.raises(InvalidInputError, match="no checkpoint of an audit until refuted"):
        run(Noisy(np.inf), path)


_KILLED = """
import os, signal, sys
from accountant.mechanisms import Laplace
from verify.audit import audit_until_refuted, features

def progress(pairs, evidence):
    if pairs >= int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

result = audit_until_refuted(
    Laplace("0.8"), 1, samples=4000, significance=1e-6, seed=3, proposers=(features.plain,),
    checkpoint=sys.argv[1] or None, progress=progress,
)
print(result.evidence, len(result.rounds))
"""


@pytest.mark.slow
def test_a_killed_audit_goes_on(tmp_path: Path) -> None:
    def program(path: str, stop: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", _KILLED, path, str(stop)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    path = str(tmp_path / "kept.json")
    assert program(path, 200).returncode == -signal.SIGKILL
    resumed, alone = program(path, 10**9), program("", 10**9)
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout == alone.stdout


@pytest.mark.parametrize("text", ['Laplace(scale="0.8")', 'DiscreteLaplace(scale="0.8")'])
def test_a_device_knows_the_event(tmp_path: Path, text: str) -> None:
    """The event is the best one from the first run on, and never changes."""
    mechanism = notation.parse(text)
    arguments: dict[str, Any] = {"samples": 10_000, "significance": 1e-6, "seed": 2}
    found = audit_until_refuted(mechanism, 1, device="numpy", **arguments)
    assert found.refuted
    assert "drawn by" in found.notes[0]
    assert len({entry.event for entry in found.rounds}) == 1
    assert checker.check(found.certificate()).problems == []
    path = tmp_path / "kept.json"
    audit_until_refuted(mechanism, 1, device="numpy", checkpoint=path, **arguments)
    again = audit_until_refuted(mechanism, 1, device="numpy", checkpoint=path, **arguments)
    assert again.rounds == found.rounds


@pytest.mark.slow
def test_a_device_seldom_accuses() -> None:
    """Ville: at most 5 % of the audits; P(Bin(40, 0.05) > 11) < 1e-6."""
    mechanism = notation.parse("DiscreteLaplace(scale=1)")
    results = [
        audit_until_refuted(mechanism, 1, samples=2000, seed=seed, device="numpy")
        for seed in range(40)
    ]
    assert sum(result.refuted for result in results) <= 11
    assert {result.samples for result in results if not result.refuted} == {2000}


def test_a_device_draws_nothing_but_our_own() -> None:
    with pytest.raises(InvalidInputError, match="a device draws mechanisms of this package only"):
        audit_until_refuted(Noisy(9), 1, pairs=[(0.0, 1.0)], seed=1, device="numpy")


def test_the_command_line_keeps_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kept.json"
    command = ["audit", "Laplace(scale=1)", "--claim", "0.5", "--until-refuted"]
    command += ["--samples", "5000", "--checkpoint", str(path), "--device", "numpy"]
    assert main(command) == 1
    assert main(command) == 1  # with the seed that was kept
    shown = capsys.readouterr().out.splitlines()
    assert shown[: len(shown) // 2] == shown[len(shown) // 2 :]
    assert path.exists()
