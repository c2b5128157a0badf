"""Whole runs of `dpassay figures`: interrupted ones, and checks of the stored tables."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dpassay
from accountant.errors import NotApplicableError
from figures import production, registry
from figures.cli import COMMAND
from figures.description import Settings, Size
from verify.cli import main

ROOT = Path(dpassay.__file__).parent
FAST = Settings(size=Size.FAST)
QUICK = [name for name in registry.FIGURES if not registry.load(name).DESCRIPTION.needs]


@pytest.mark.slow
def test_an_interrupted_run_keeps_what_is_finished(tmp_path: Path) -> None:
    paper = "count-on-your-elders"
    command = [sys.executable, str(ROOT / "dpassay.py"), "figures", "--paper", paper, "--fast"]
    run = subprocess.Popen(
        [*command, "--jobs", "1", "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.rglob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    for _ in range(10):  # Python drops an interrupt that falls into a destructor
        run.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            _, err = run.communicate(timeout=2)
            break
    assert run.returncode == 130
    assert "run the same command again" in err
    names = [name for name in registry.FIGURES if registry.paper(name) == paper]
    finished = [name for name in names if production.provenance(name, tmp_path)]
    assert 0 < len(finished) < len(names)
    again = [production.make(name, FAST, tmp_path) for name in finished]
    assert all(made.kept for made in again)


@pytest.mark.slow
@pytest.mark.parametrize("size", [[], ["--fast"]])
def test_every_stored_table_is_found_again(size: list[str]) -> None:
    only = [part for name in QUICK for part in ("--only", name)]
    assert main(["figures", "--check", "--quiet", *size, *only], commands=[COMMAND]) == 0


def test_a_process_that_is_killed_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every worker dies as it starts, as under a limit on memory."""
    monkeypatch.setattr(production, "work_for", os._exit)
    names = ["better-gaussian/1", "better-gaussian/2"]
    with pytest.raises(NotApplicableError, match="--jobs 1"):
        list(production.make_all(names, FAST, tmp_path, jobs=2))
