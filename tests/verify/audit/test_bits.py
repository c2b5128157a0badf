"""Features of bits: what they compute, what they find, and that they leave private noise alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpassay.accountant.mechanisms import Laplace
from dpassay.verifier.audit.kinds.auditor import audit
from dpassay.verifier.audit.learning import bit_features, bits, boosted
from dpassay.verifier.audit.learning.bit_features import NOTHING
from tests.quick import quick
from tests.verify.audit import zoo

LEVEL = 1e-6


def test_sums_of_one_grid_tell_all_the_same() -> None:
    """20·U^(1/3) is nearly always above 16, where both sums have one grid; a product rounds."""

    def release(dataset: float, size: int, rng: np.random.Generator) -> Any:
        return dataset + 20 * rng.power(3, size)

    delta = 1 - (19 / 20) ** 3  # what both real laws differ by, for every ε at most
    found = audit(
        release,
        lambda _: delta + 1e-9,
        pairs=[(0.1, 1.1)],
        samples=10_000,
        significance=LEVEL,
        seed=6,
        bits=True,
    )
    assert found.refuted


NAIVE = [
    case
    for case in zoo.cases(broken=True)
    if case.name.startswith("float") and case.name != "float-noisy-then-copied"  # of vectors only
]


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


@pytest.mark.parametrize(
    "name", quick(["lattice-laplace", "lattice-normal", "rounded-laplace", "snapping"], 0)
)
def test_private_noise_is_not_accused(name: str) -> None:
    case = zoo.case(name)
    for pair in ((0.0, 1.0), (1e6 + 0.1, 1e6 + 1.1)):
        found = audit(
            case,
            case.claim,
            pairs=[pair],
            samples=5000,
            significance=LEVEL,
            seed=3,
            bits=True,
        )
        assert not found.refuted


def test_shared_draws_show_in_differences() -> None:
    def release(dataset: float, size: int, rng: np.random.Generator) -> Any:
        shared = rng.integers(-(2**20), 2**20, (size, 1)) * 2.0**-10
        return np.array([dataset, 0.0]) + shared

    found = audit(
        release,
        1,
        pairs=[(1.0, 1.25)],
        samples=2000,
        significance=LEVEL,
        seed=5,
        bits=True,
    )
    assert found.refuted
    assert found.bits is not None
    assert "output[1] - output[0]" in str(found.bits.rule.feature.name)


def test_a_constant_of_its_own_does_not_hide_a_sum() -> None:
    """(3.7 + x + noise)/37: nothing but the right factor shows what the bits tell."""

    def release(dataset: float, size: int, rng: np.random.Generator) -> Any:
        return (3.7 + dataset + rng.laplace(0, 1, size)) / 37

    found = audit(
        release, 1, pairs=[(0.0, 1.0)], samples=60_000, significance=LEVEL, seed=1, bits=True
    )
    assert found.refuted
    assert found.bits is not None
    assert "37·output[0]" in found.bits.rule.feature.name


HIDDEN = {"mean-of-naive-sum": "7·output[0]", "noise-in-two-steps": "last bits"}


@pytest.mark.parametrize(("name", "view"), quick(HIDDEN.items(), 1))
def test_hidden_sums_are_found(name: str, view: str) -> None:
    case = zoo.case(name)
    found = audit(
        case,
        case.claim,
        pairs=case.pairs[:1],
        samples=20_000,
        significance=LEVEL,
        seed=10,
        bits=True,
    )
    assert found.refuted
    assert found.bits is not None
    assert view in found.bits.rule.feature.name


def test_nothing_is_learned_from_the_bits_of_a_lattice() -> None:
    rng = np.random.default_rng(12)
    first, second = Laplace(1).lattice_sampler().release([0.1], 2000, rng=rng).reshape(2, -1, 1)
    assert not any(isinstance(f, boosted.Boosted) for f in bits.propose(first, second))
    naive = [side + rng.normal(size=side.shape) for side in (first, second)]
    assert any(isinstance(f, boosted.Boosted) for f in bits.propose(*naive))


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
    assert bit_features.Atoms(bit_features.View(0), np.array([1.0, 2.0]))(
        np.array([[2.0], [3.0]])
    ).tolist() == [1, -1]


# ------------------------------------------------------------ all entries together

SHARED = zoo.case("float-shared-then-own")
"""No entry of it tells much: (x + η) + z with one η for all of a hundred."""


def _separated(case: zoo.Case, runs: int) -> tuple[int, int]:
    """Learn the joint score on some runs; return the right and the wrong guesses on others."""
    rng = np.random.default_rng(5)
    first, second = case.pairs[0]
    taught = [np.asarray(case.sample(data, runs, rng)) for data in (first, second)]
    (score,) = boosted.fineness(taught[0], taught[1], NOTHING)
    fresh = [np.asarray(case.sample(data, runs, rng)) for data in (first, second)]
    guesses = [score(side) > 0 for side in fresh]
    right = int(guesses[0].sum() + (~guesses[1]).sum())
    return right, 2 * runs - right


def test_joint_fineness_tells_what_no_entry_tells() -> None:
    """Under 1-GDP right guesses are at most Φ(1/2) of all; false alarm 1e-6."""
    right, wrong = _separated(SHARED, 5000)
    assert stats.binom.sf(right - 1, right + wrong, stats.norm.cdf(0.5)) < LEVEL


def test_the_number_of_entries_has_no_bits() -> None:
    """A histogram of the keys that are present: its length is a value, its counts have bits."""

    def release(dataset: list[str], rng: np.random.Generator) -> Any:
        return {key: dataset.count(key) + rng.laplace(0, 1) for key in sorted(set(dataset))}

    found = audit(release, 1, pairs=[(["a"], ["a", "b"])], samples=2000, significance=LEVEL, seed=1)
    assert found.refuted
    assert found.bits is not None
    assert "number of entries" not in found.bits.rule.name
