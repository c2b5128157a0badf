"""Memory, kills and resumption of long audits, in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
_MEMORY = """
import resource, sys
from accountant.mechanisms import DiscreteLaplace
from verify.audit import audit

audit(DiscreteLaplace(1), "0.99", samples=int(sys.argv[1]), seed=1, device="numpy")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
_KILLED = """
import json, os, signal, sys
from concurrent.futures import ProcessPoolExecutor
from accountant.mechanisms import DiscreteLaplace
from verify.audit import audit
from verify.workers import end_with

path, stop, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def progress(done, total):
    if done == stop:
        os.kill(os.getpid(), signal.SIGKILL)

def run(executor):
    return audit(
        DiscreteLaplace(1), "0.98", samples=40_000_000, seed=4, device="numpy",
        checkpoint=path or None, progress=progress, executor=executor,
    )

if __name__ == "__main__":
    if workers:
        with ProcessPoolExecutor(workers, initializer=end_with, initargs=(os.getpid(),)) as pool:
            result = run(pool)
    else:
        result = run(None)
    data = result.certificate()
    print(json.dumps([data["histogram"], data["p_value"], data["epsilon_lower_bound"]]))
"""


def program(text: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.slow
def test_memory_does_not_grow_with_the_runs() -> None:
    """The event is fixed: 10⁶ and 10⁸ runs a side within 4 MB of each other."""
    peaks = {}
    for samples in (10**6, 10**7, 10**8):
        done = program(_MEMORY, samples)
        assert done.returncode == 0, done.stderr
        peaks[samples] = int(done.stdout)  # in kB
    assert max(peaks.values()) - min(peaks.values()) < 4096, peaks


def finished(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_killed_audit_of_processes_ends_the_same(tmp_path: Path) -> None:
    """Blocks that other processes were running are lost, and no others; nor do workers remain.

    The program below returns when nobody holds its output any more, workers included.
    """
    kept = tmp_path / "kept.json"
    killed = program(_KILLED, kept, 7, 2)
    assert killed.returncode == -signal.SIGKILL
    data = json.loads(kept.read_text())
    assert data["done_below"] + len(data["done_beyond"]) == 7
    assert finished(program(_KILLED, kept, -1, 2)) == finished(program(_KILLED, "", -1, 0))
