"""Whoever runs the blocks, the counts, the p-value and the certificate are the same."""

from __future__ import annotations

import importlib.util
import json
import os
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
ROOT = HERE.parents[2]


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
    return {case: executed.evidence(case, None) for case in executed.CASES}


def same(case: str, executor: Executor, alone: dict[str, Any]) -> None:
    assert json.dumps(executed.evidence(case, executor)) == json.dumps(alone[case])


@pytest.mark.parametrize("case", executed.CASES)
@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_threads_and_processes(case: str, pool: Any, alone: dict[str, Any]) -> None:
    with pool(2) as executor:
        same(case, executor, alone)


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
        for case in executed.CASES:
            same(case, executor, alone)


@pytest.mark.slow
def test_mpi(alone: dict[str, Any]) -> None:
    """Two workers and the process that gives them blocks."""
    mpiexec = Path(sys.executable).with_name("mpiexec")
    done = subprocess.run(
        [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", HERE / "executed.py"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    workers, *found = json.loads(done.stdout)
    assert workers == 2
    assert found == json.loads(json.dumps([alone[case] for case in executed.CASES]))
