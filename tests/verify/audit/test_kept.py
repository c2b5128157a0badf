"""Audits that are interrupted, killed and continued: nothing is lost, nothing counted twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.audit import (
    AuditResult,
    MechanismError,
    Outcome,
    SequentialResult,
    audit,
    audit_until_refuted,
)
from dpassay.verifier.audit.runs import disk
from dpassay.verifier.cli import main
from tests.quick import quick

SAMPLES = 200_000
PAIRS = [(0.0, 1.0), (0.0, 2.0)]


class Noisy:
    """Laplace noise that counts its runs, and fails at one of its calls."""

    def __init__(
        self, fails_at: float = np.inf, error: type[BaseException] = ValueError, scale: float = 1
    ) -> None:
        self.fails_at, self.error, self.scale = fails_at, error, scale
        self.calls = self.runs = 0

    def sample(self, dataset: float, size: int, rng: Generator) -> Any:
        self.calls += 1
        if self.calls == self.fails_at:
            raise self.error("no more")
        self.runs += size
        return dataset + rng.laplace(0, self.scale, size)


def run(mechanism: Any, path: Path | None, seed: int | None = 3) -> AuditResult:
    return audit(
        mechanism, 1, pairs=PAIRS, samples=SAMPLES, seed=seed, checkpoint=path,
        bits=False,
    )  # fmt: skip


def same(first: AuditResult, second: AuditResult) -> bool:
    return {**first.to_json(), "seconds": 0} == {**second.to_json(), "seconds": 0}


@pytest.mark.parametrize("fails_at", quick([21, 100, 200], 0))
def test_training_that_is_killed_goes_on_where_it_was(fails_at: int, tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    whole = Noisy()
    expected = run(whole, None)
    killed, resumed = Noisy(fails_at, KeyboardInterrupt), Noisy()
    with pytest.raises(KeyboardInterrupt):
        run(killed, path)
    assert same(run(resumed, path), expected)
    # Done again, to learn the form of an output and whether runs follow the rng.
    probing = 16 * len(PAIRS) * 2 + 3 * 64 * len(PAIRS)
    assert killed.runs + resumed.runs <= whole.runs + probing


def test_a_seed_that_nobody_named_is_kept_from_the_first_training_run(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    with pytest.raises(KeyboardInterrupt):
        run(Noisy(30, KeyboardInterrupt), path, seed=None)
    resumed = Noisy()
    found = run(resumed, path, seed=None)
    whole = Noisy()
    assert same(found, run(whole, None, seed=found.seed))
    assert resumed.calls < whole.calls - 15


def test_a_file_that_was_cut_short_is_drawn_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    expected = run(Noisy(), path)
    path.unlink()
    for kept in tmp_path.glob("kept.json.training-*"):
        kept.write_bytes(kept.read_bytes()[:200])
    assert same(run(Noisy(), path), expected)


def test_a_mechanism_that_fails_in_training_says_what_is_kept(tmp_path: Path) -> None:
    def audited(path: Path | None) -> AuditResult:
        return audit(Noisy(30), 1, pairs=PAIRS[:1], samples=SAMPLES, seed=3, checkpoint=path)

    path = tmp_path / "kept.json"
    with pytest.raises(MechanismError, match=rf"\d+ training runs .* are beside {path}; the same"):
        audited(path)
    with pytest.raises(MechanismError, match=r"\d+ training runs .* were discarded \(name a check"):
        audited(None)


def test_counts_of_one_event_are_not_continued_with_another(tmp_path: Path) -> None:
    """A mechanism with a generator of its own trains to other events each time."""

    class Careless(Noisy):
        def sample(self, dataset: float, size: int, rng: Generator) -> Any:
            return super().sample(dataset, size, np.random.default_rng())

    path = tmp_path / "kept.json"
    with pytest.raises(KeyboardInterrupt):
        run(Careless(290, KeyboardInterrupt), path)
    for kept in tmp_path.glob("kept.json.training-*"):
        kept.unlink()
    with pytest.raises(InvalidInputError, match="another event"):
        run(Careless(), path)


def scarce(calls: float) -> Noisy:
    """Return noise that is too little for the claim, so many times."""
    return Noisy(calls + 1, RuntimeError, 0.8)


def bet(target: Noisy, path: Path | None, *, seed: int | None = 3) -> SequentialResult:
    return audit_until_refuted(
        target,
        1,
        pairs=[(0.0, 1.0)],
        samples=4000,
        significance=1e-6,
        seed=seed,
        bits=False,
        checkpoint=path,
    )


@pytest.mark.parametrize("calls", [8, *(pytest.param(n, marks=pytest.mark.slow) for n in (25, 40))])
def test_what_was_drawn_is_kept(tmp_path: Path, calls: int) -> None:
    whole = scarce(np.inf)
    alone = bet(whole, None)
    path = tmp_path / "kept.json"
    first = scarce(calls)
    with pytest.raises(MechanismError, match=r"pairs of runs\) were drawn and are in .*kept\.json"):
        bet(first, path)
    again = scarce(np.inf)
    resumed = bet(again, path)
    assert resumed.rounds == alone.rounds
    assert (resumed.evidence, resumed.outcome) == (alone.evidence, Outcome.REFUTED)
    # the runs of the probe are made once, and at most the side of a round that raised is redrawn
    redrawn = first.runs + again.runs - whole.runs
    assert 0 <= redrawn <= max(entry.runs for entry in alone.rounds)
    assert bet(scarce(0), path).evidence == alone.evidence  # nothing is left to draw


def test_without_a_checkpoint_the_message_says_how_to_keep_runs() -> None:
    with pytest.raises(MechanismError, match=r"were discarded \(name a checkpoint= to keep them\)"):
        bet(scarce(20), None)


@pytest.mark.slow
def test_a_checkpoint_keeps_the_seed(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    with pytest.raises(MechanismError):
        bet(scarce(20), path, seed=None)
    resumed = bet(scarce(np.inf), path, seed=None)
    assert resumed.seed == disk.kept_seed(path)
    assert resumed.rounds == bet(scarce(np.inf), None, seed=resumed.seed).rounds


def test_other_checkpoints_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    with pytest.raises(MechanismError):
        bet(scarce(20), path)
    with pytest.raises(InvalidInputError, match="belongs to another audit"):
        bet(scarce(np.inf), path, seed=4)
    outputs = tmp_path / "kept.json.round-1.npz"
    outputs.write_bytes(outputs.read_bytes()[:200])  # a disk that was full
    with pytest.raises(InvalidInputError, match=r"round-1\.npz.* cannot be read"):
        bet(scarce(np.inf), path)
    outputs.unlink()
    with pytest.raises(InvalidInputError, match=r"round-1\.npz.* cannot be read"):
        bet(scarce(np.inf), path)
    path.write_text("{}")
    with pytest.raises(InvalidInputError, match="no checkpoint of an audit"):
        bet(scarce(np.inf), path)


def test_the_command_line_keeps_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kept.json"
    command = ["audit", "Laplace(scale=1)", "--claim", "0.5", "--until-refuted"]
    command += ["--samples", "5000", "--checkpoint", str(path)]
    assert main(command) == 1
    assert main(command) == 1  # with the seed that was kept
    shown = capsys.readouterr().out.splitlines()
    assert shown[: len(shown) // 2] == shown[len(shown) // 2 :]
    assert path.exists()
