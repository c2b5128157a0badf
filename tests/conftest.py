"""Shared settings of the tests."""

from __future__ import annotations

import fcntl
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from verify.verdict import Finding

# Derandomised: a run is a function of the code alone.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Finding]]:
    """Return the findings of a paper's ledger by id; each ledger is decided once in a run.

    What one process of the run has decided, the others read: the first to lock a file does it.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    @functools.cache
    def of(name: str) -> dict[str, Finding]:
        from verify.argument import conclude
        from verify.document import read_paper
        from verify.exact import verify
        from verify.verdict import Finding

        kept = folder / f"{name}.json"
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                claims = read_paper(name).claims
                found = conclude(claims, [verify(claim, lemmas=claims) for claim in claims])
                kept.write_bytes(msgspec.json.encode(found))
        findings = msgspec.json.decode(kept.read_bytes(), type=list[Finding])
        return {finding.id: finding for finding in findings}

    return of
