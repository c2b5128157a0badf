"""Rare outcomes: found by a small part of the significance, at the level of the whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify import checker
from verify.audit import audit
from verify.audit.binomial import at_least
from verify.audit.guarantee import guarantee
from verify.audit.learn import choose
from verify.seal import seal


def answers(rate: float) -> Any:
    """Randomised response of ε = 1 that says 2 now and then, of the first dataset alone."""

    def answer(dataset: int, size: int, rng: np.random.Generator) -> Any:
        told = np.where(rng.random(size) < math.e / (1 + math.e), dataset, 1 - dataset)
        return np.where((rng.random(size) < rate) & (dataset == 1), 2, told)

    return answer


@pytest.mark.parametrize("seed", range(2))
def test_a_rare_outcome_is_found(seed: int) -> None:
    found = audit(answers(1e-3), 1, pairs=[(1, 0)], samples=70_000, seed=seed)
    assert found.refuted
    assert found.counts.misses == 0
    assert 0 < found.rule.share < 0.05
    assert not checker.check(found.certificate()).problems
    data = {key: value for key, value in found.certificate().items() if key != "seal"}
    forged = {**data, "share": found.rule.share / 2}
    assert [path for path, _ in checker.check({**forged, "seal": seal(forged)}).problems]


def test_a_private_mechanism_is_not_accused() -> None:
    least = min(
        audit(answers(0), 1, pairs=[(1, 0)], samples=4000, seed=seed).p_value for seed in range(5)
    )
    assert least > 2e-7  # five audits: a false alarm with probability at most 1e-6


@given(st.integers(0, 3))
def test_shares_of_the_significance_add_up_to_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 50, (2, 400, 1))
    rule = choose(first, second, guarantee(1), runs=1000, significance=0.05)
    assert math.isclose(sum(each.share for each in rule.rules), 1, rel_tol=1e-15)
    assert len(rule.rules) <= 5


def test_what_a_rare_event_needs() -> None:
    # a twentieth shared by four events: 24 runs to none instead of 10, at ε = 1 and 5 %
    chance = math.e / (1 + math.e)
    assert at_least(24, 24, chance) <= 0.05 / 80 < at_least(23, 23, chance)
