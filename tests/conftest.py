"""Shared settings of the tests."""

from __future__ import annotations

import fcntl
import functools
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from dpassay.verifier.batch import Outcome
    from dpassay.verifier.verdict import Finding

# Derandomised: a run is a function of the code alone.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")

# What starts the tests in the background may ignore interrupts, and every program of theirs would.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes minutes, so that no core waits for it at the end.

    Tests that share a ledger follow one another: one process decides it, and none waits for that.
    """

    def is_short(item: pytest.Item) -> bool:
        fixtures: list[str] = getattr(item, "fixturenames", [])
        long = (item.get_closest_marker(name) for name in ("browser", "coq"))
        return "outcomes" not in fixtures and not any(long)

    items.sort(key=is_short)


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Outcome]]:
    """Return what became of the claims of a ledger by id; each is decided once in a run.

    What one process of the run has decided, the others read: the first to lock a file does it.
    Certificates are made for the ledger of the field alone.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    @functools.cache
    def of(name: str) -> dict[str, Outcome]:
        from dpassay.verifier.batch import Outcome, concluded, decide_all
        from dpassay.verifier.document import FIELD, read_paper

        kept = folder / f"{name}.json"
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                claims = read_paper(name).claims
                found = concluded(claims, dict(decide_all(claims, certified=name == FIELD)))
                kept.write_bytes(msgspec.json.encode([*found.values()]))
        read = msgspec.json.decode(kept.read_bytes(), type=list[Outcome])
        return {outcome.finding.id: outcome for outcome in read if outcome.finding is not None}

    return of


@pytest.fixture(scope="session")
def decided(outcomes: Callable[[str], dict[str, Outcome]]) -> Callable[[str], dict[str, Finding]]:
    """Return the findings of a paper's ledger by id."""
    return lambda name: {
        key: o.finding for key, o in outcomes(name).items() if o.finding is not None
    }
