"""The zoo: every broken mechanism is found, no private one is accused; and features of bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpassay.verifier.audit import features as bits
from dpassay.verifier.audit.auditor import audit
from tests.verify.audit import zoo

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


NAIVE = [case for case in zoo.cases(broken=True) if case.name.startswith("float")]
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


# Features of bits: what they compute, what they find, and that they leave private noise alone.


@pytest.mark.parametrize(
    ("case", "pair"),
    [
        pytest.param(
            case,
            (0.0, 1.0) if place % 2 else (0.1, 1.1),  # what is added has few bits, or many
            marks=[pytest.mark.slow] * (place % 3 > 0 or "shared" in case.name),
            id=case.name,
        )
        for place, case in enumerate(NAIVE)
    ],
)
def test_naive_noise_is_found_in_ten_thousand_runs(
    case: zoo.Case, pair: tuple[float, float]
) -> None:
    found = audit(
        case, case.claim, pairs=[pair], samples=10_000, significance=LEVEL, seed=2, bits=True
    )
    assert found.refuted


def test_shared_draws_show_in_differences() -> None:
    def release(dataset: float, size: int, rng: np.random.Generator) -> Any:
        shared = rng.integers(-(2**20), 2**20, (size, 1)) * 2.0**-10
        return np.array([dataset, 0.0]) + shared

    found = audit(
        release, 1, pairs=[(1.0, 1.25)], samples=2000, significance=LEVEL, seed=5, bits=True
    )
    assert found.refuted
    assert found.bits is not None
    assert "output[1] - output[0]" in str(found.bits.rule.feature.name)


def test_rare_atoms_are_found() -> None:
    """One run in fifty without noise, in 20 000 runs."""

    def release(dataset: float, size: int, rng: np.random.Generator) -> Any:
        noise = zoo.case("laplace").sample(0, size, rng)
        return dataset + np.where(rng.random(size) < 0.02, 0.0, noise)

    found = audit(
        release,
        1,
        pairs=[(5 + 2.0**-20, 6 + 2.0**-20)],
        samples=20_000,
        significance=LEVEL,
        seed=8,
        bits=True,
    )
    assert found.refuted
    atoms = bits.Feature("atoms", "", {"view": bits.View(0), "values": np.array([1.0, 2.0])})
    assert atoms(np.array([[2.0], [3.0]])).tolist() == [1, -1]


def test_the_number_of_entries_has_no_bits() -> None:
    """A histogram of the keys that are present: its length is a value, its counts have bits."""

    def release(dataset: list[str], rng: np.random.Generator) -> Any:
        return {key: dataset.count(key) + rng.laplace(0, 1) for key in sorted(set(dataset))}

    found = audit(release, 1, pairs=[(["a"], ["a", "b"])], samples=2000, significance=LEVEL, seed=1)
    assert found.refuted
    assert found.bits is not None
    assert "number of entries" not in found.bits.rule.name
