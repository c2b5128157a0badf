"""Mechanisms that raise, hang, die, change their shape: what the auditor says; and executors."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.audit import Command, MechanismError, audit
from dpassay.verifier.audit import runs as blocks
from tests.quick import quick
from tests.scripts import importable

bad: Any = importable("bad", Path(__file__).parent)


def at_work() -> None:
    """Tell a mechanism that it is run by a worker."""
    os.environ["DPASSAY_TEST_WORKER"] = "1"


@contextmanager
def pool(kind: str) -> Iterator[Executor | None]:
    if kind == "none":
        yield None
    elif kind == "threads":
        with ThreadPoolExecutor(2) as executor:
            yield executor
    else:
        with ProcessPoolExecutor(2, initializer=at_work) as executor:
            yield executor


def run(mechanism: Any, executor: Executor | None = None, **arguments: Any) -> Any:
    given: dict[str, Any] = {"pairs": [(0, 1)], "samples": 10_000, "seed": 1, **arguments}
    return audit(mechanism, 3, executor=executor, **given)


POOLS = ["none", "threads", "processes"]


@pytest.mark.parametrize("kind", POOLS)
def test_a_mechanism_that_raises_in_a_block_is_named(kind: str) -> None:
    message = r"sometimes_raises raised ValueError: lost the connection \(dataset [01]\)\."
    with pool(kind) as executor, pytest.raises(MechanismError, match=message):
        run(bad.sometimes_raises, executor)


def test_a_mechanism_that_always_raises_is_named() -> None:
    with pytest.raises(MechanismError, match="raises raised ZeroDivisionError: no such record"):
        audit(bad.raises, 1, pairs=[(0, 1)], seed=1)


@pytest.mark.parametrize("kind", quick(POOLS, 0))
def test_a_hanging_block_is_ended(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an alarm in a main thread; threads cannot be ended, but the audit does not wait."""
    monkeypatch.setattr(blocks, "START_SECONDS", 0.0)
    message = {
        "threads": r"No block ended within 1\.5 s\. Give it more time",
        "none": r"A block of 2[0-9][0-9] runs of hangs_later did not end within 0\.5 s",
        "processes": r"A block of 2[0-9][0-9] runs of hangs_later did not end within 0\.5 s",
    }[kind]
    with pool(kind) as executor, pytest.raises(MechanismError, match=message):
        run(bad.hangs_later, executor, timeout=0.5)


def test_a_mechanism_that_always_hangs_is_ended() -> None:
    with pytest.raises(MechanismError, match=r"^8 runs of hangs did not end within 0\.2 s"):
        audit(bad.hangs, 1, pairs=[(0, 1)], seed=1, timeout=0.2)


def test_a_worker_that_dies_is_named() -> None:
    with (
        pool("processes") as executor,
        pytest.raises(MechanismError, match=r"A worker of ProcessPoolExecutor died"),
    ):
        run(bad.dies, executor)


def test_what_processes_cannot_be_sent_is_named() -> None:
    with (
        pool("processes") as executor,
        pytest.raises(InvalidInputError, match=r"top of a module, or use a ThreadPoolExecutor"),
    ):
        run(lambda dataset, size, rng: dataset + rng.integers(0, 10, size), executor)


@pytest.mark.parametrize("kind", quick(POOLS, 0))
@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("changes_shape", "outputs have 3 different lengths, 1 to 3"),
        ("returns_nan", "of the training outputs contain NaN"),
        ("ignores_rng", "does not follow the rng it is given"),
        ("is_deterministic", "64 runs gave one output"),
        ("is_deterministic_and_leaks", "64 runs gave one output"),
    ],
)
def test_odd_mechanisms_are_audited_with_a_note(name: str, note: str, kind: str) -> None:
    with pool(kind) as executor:
        result = run(getattr(bad, name), executor, samples=2_000)
    assert any(note in entry for entry in result.notes)
    assert result.refuted == (name not in ("returns_nan", "is_deterministic"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("reseeds", "returned the same outputs for different random generators"),
        ("returns_too_few", "returned 7 outputs where 8 runs"),
        ("returns_one_number", "returned no list of outputs where 8 runs"),
    ],
)
def test_what_gives_no_independent_outputs_is_refused(name: str, message: str) -> None:
    with pytest.raises(MechanismError, match=f"{name} {message}"):
        run(getattr(bad, name))


@pytest.mark.parametrize("name", ["HasGenerator", "uses_global_state"])
def test_copies_of_a_generator_in_other_processes_are_refused(name: str) -> None:
    """Counted as independent runs they refuted a private mechanism at 3e-11."""
    found = getattr(bad, name)
    mechanism = found() if isinstance(found, type) else found
    assert not run(mechanism).refuted
    forked = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork"))
    with forked as executor, pytest.raises(MechanismError, match="the same outputs in two blocks"):
        run(mechanism, executor)


def test_blocks_that_are_seeded_alike_in_the_test_alone_are_refused() -> None:
    with pytest.raises(MechanismError, match="the same outputs in two blocks of runs"):
        run(bad.SeedsSometimes())


def test_outputs_that_are_written_over_are_kept() -> None:
    """All runs of a block were the last one: a dozen runs, counted as 2700."""
    plain: dict[str, Any] = {"samples": 3_000, "significance": 1e-6, "seed": 1}
    assert not audit(bad.reuses_its_output, 1, pairs=[(0, 1)], **plain).refuted


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("adds_in_place", (np.zeros(1), np.ones(1))),
        ("takes_a_record", ([0.0] * 20, [0.0] * 21)),
        ("adds_to_features", ((np.zeros(1), 1), (np.ones(1), 1))),
    ],
)
def test_a_changed_dataset_is_refused(name: str, pair: Any) -> None:
    """Noise that was added in place was refuted at 3e-11, though each run is private."""
    with pytest.raises(MechanismError, match=f"{name} changes the dataset .* Give it a copy"):
        audit(getattr(bad, name), 1, pairs=[pair], samples=10_000, seed=1)


@pytest.mark.parametrize("dataset", [bad.OnAnotherDevice(), np.array([lambda: 1], object)])
def test_a_dataset_that_cannot_be_compared_is_no_traceback(dataset: Any) -> None:
    assert not audit(bad.ignores_data, 1, pairs=[(dataset, dataset)], samples=500, seed=1).refuted


def test_outputs_that_cannot_be_copied_are_taken_as_they_are() -> None:
    assert not audit(bad.returns_an_object, 1, pairs=[(0, 1)], samples=500, seed=1).refuted


def test_blocks_that_begin_alike_by_chance_are_counted() -> None:
    assert not run(bad.is_rarely_one).refuted


@pytest.mark.parametrize("seed", [222, 740, 2467])
def test_a_rare_answer_that_meets_by_chance_is_no_copy(seed: int) -> None:
    """Two tries of 64 runs with the same answers, one of them rare: 1 in 800 audits."""
    assert not run(bad.is_rarely_one, seed=seed).refuted


@pytest.mark.parametrize("rare", [0.5, 0.01])
def test_one_seed_for_all_runs_is_refused_where_answers_are_rare_too(rare: float) -> None:
    with pytest.raises(MechanismError, match="the same outputs"):
        run(bad.Reseeds(rare))


def program(tmp_path: Path, body: str) -> Command:
    path = tmp_path / "program.py"
    path.write_text(
        "import sys, time\nfrom random import Random\n"
        "d, n, seed = (int(part) for part in sys.argv[1:])\nr = Random(seed)\n" + body + "\n"
    )
    return Command(f"{sys.executable} {path} {{dataset}} {{size}} {{seed}}")


def test_commands_are_run_by_workers(tmp_path: Path) -> None:
    noisy = program(tmp_path, "[print(d + r.randint(0, 9)) for _ in range(n)]")
    alone = run(noisy, samples=400)
    with pool("processes") as executor:
        assert run(noisy, executor, samples=400).counts == alone.counts


# Executors: the same counts with all of them.


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
