"""Executors: the same counts with all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.scripts import importable

HERE = Path(__file__).parent


executed: Any = importable("executed", HERE)


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
