"""The zoo: every broken mechanism is found, no private one is accused."""

from __future__ import annotations

import pytest

from dpassay.verifier.audit.auditor import audit
from tests.verify.audit import zoo
from tests.verify.audit.test_bits import NAIVE

LEVEL = 1e-6
"""A control is accused with probability at most this, 25 of them with at most 2.5e-5."""

FAST = [
    "laplace",
    "randomized-response-many",
    "noisy-max",
    "tie-break-by-truth",
    "subsampled-first-records",
    "gaussian-variance-for-deviation",
]


def decide(case: zoo.Case) -> bool:
    samples = case.samples if case.broken else case.samples // 4
    found = audit(
        case, case.claim, pairs=case.pairs, samples=samples, significance=LEVEL, seed=1, bits=True
    )
    return found.refuted


@pytest.mark.parametrize("name", FAST)
def test_some_cases(name: str) -> None:
    case = zoo.case(name)
    assert decide(case) == case.broken


ELSEWHERE = {*FAST, *(case.name for case in NAIVE)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [c for c in zoo.cases() if c.name not in ELSEWHERE], ids=lambda case: case.name
)
def test_every_other_case(case: zoo.Case) -> None:
    assert decide(case) == case.broken


@pytest.mark.slow
def test_few_runs_of_mixed_outputs() -> None:
    """Scores of few values leave a fit nothing to tell apart: it is left out."""
    case = zoo.case("histogram-low-threshold")
    for seed in (1, 2, 3):
        audit(
            case,
            case.claim,
            pairs=case.pairs[:1],
            samples=500,
            significance=LEVEL,
            seed=seed,
            bits=True,
        )
