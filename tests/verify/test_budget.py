"""What one call may spend is watched from a second thread, also under a profiler."""

from __future__ import annotations

import contextlib
import cProfile
import time

import pytest

import dpassay
from dpassay.verifier import budget


def test_a_claim_is_decided_under_a_profiler() -> None:
    profiler = cProfile.Profile()
    found = profiler.runcall(dpassay.verify, "Gaussian(3) is (1, 1e-5)-DP")
    assert str(found.verdict) == "REFUTED"


def test_a_call_that_spends_too_much_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "SECONDS", 0.2)

    def forever() -> None:
        while True:
            pass

    with pytest.raises(budget.SpentError, match=r"more than 0\.2 s of processor time"):
        budget.within_budget(forever)
    assert budget.within_budget(time.sleep, 0) is None


def test_what_ends_as_the_budget_does_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "SECONDS", 0.0)

    def nearly() -> None:
        end = time.thread_time() + 0.051
        while time.thread_time() < end:
            pass

    for _ in range(20):
        with contextlib.suppress(budget.SpentError):
            budget.within_budget(nearly)
    monkeypatch.setattr(budget, "SECONDS", 300)
    assert budget.within_budget(sum, range(10**6)) == 499999500000
