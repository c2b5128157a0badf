"""Executors: the same counts with all of them, and after a kill."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent


def _program() -> ModuleType:
    """Import the program beside this file under a name that processes can import too."""
    sys.path.insert(0, str(HERE))
    try:
        return importlib.import_module("executed")
    finally:
        sys.path.remove(str(HERE))


executed = _program()


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    found: dict[str, Any] = executed.evidence(None)
    return found


def same(executor: Executor, alone: dict[str, Any]) -> None:
    assert json.dumps(executed.evidence(executor)) == json.dumps(alone)


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_threads_and_processes(pool: Any, alone: dict[str, Any]) -> None:
    with pool(2) as executor:
        same(executor, alone)


@contextmanager
def dask(*, processes: bool) -> Iterator[Executor]:
    """A cluster of two workers on this machine, with its warnings as they are."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from distributed import Client

        with Client(
            n_workers=2,
            threads_per_worker=1,
            processes=processes,
            dashboard_address=None,
            silence_logs=50,
        ) as client:
            yield client.get_executor()


@pytest.mark.slow
@pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])
def test_dask(processes: bool, alone: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)  # workers import what they run
    with dask(processes=processes) as executor:
        same(executor, alone)


TOP = Path(__file__).parents[3]
_KILLED = """
import json, os, signal, sys
from concurrent.futures import ProcessPoolExecutor
from dpassay.accountant.mechanisms import DiscreteLaplace
from dpassay.verifier.audit import audit
from dpassay.verifier.workers import end_with

path, stop, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def progress(done, total):
    if done == stop:
        os.kill(os.getpid(), signal.SIGKILL)

def run(executor):
    return audit(
        DiscreteLaplace(1), "0.98", samples=4_000_000, seed=4,
        checkpoint=path or None, progress=progress, executor=executor,
    )

if __name__ == "__main__":
    if workers:
        with ProcessPoolExecutor(workers, initializer=end_with, initargs=(os.getpid(),)) as pool:
            result = run(pool)
    else:
        result = run(None)
    data = result.certificate()
    bounds = [data["theorem"][name] for name in ("p_value", "epsilon_lower_bound")]
    print(json.dumps([data["witness"]["histogram"], *bounds]))
"""


def program(text: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
        env={**os.environ, "PYTHONPATH": str(TOP)},
    )


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
