"""Audits from runs to verdict: what is found, what is not accused, what does not depend on whom."""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from dpassay.accountant import notation
from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.audit import Outcome, audit, audit_until_refuted
from tests.quick import slow

Generator = np.random.Generator
COUNTS = [(0.0, 1.0)]


def laplace(dataset: float, size: int, rng: Generator) -> Any:
    return dataset + rng.laplace(0, 1, size)


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("Laplace(scale=1)", 1),
        ("DiscreteLaplace(scale=1)", 1),
        slow("Gaussian(standard_deviation=4)", {"mu": "0.25"}),
        ("RandomizedResponse(epsilon=1)", 1),
        slow(
            "PoissonSubsampled(mechanism=Gaussian(standard_deviation=2), sampling_prob=0.1)",
            (1, "0.001"),
        ),
    ],
)
def test_private_mechanisms_are_not_accused_and_their_worst_is_nearly_reached(
    text: str, claim: Any
) -> None:
    """At significance 1e-6 each; a bound above the claim would be an accusation."""
    result = audit(notation.parse(text), claim, samples=40_000, significance=1e-6, seed=5)
    assert result.outcome is Outcome.NOT_REFUTED, str(result)
    if claim == 1:
        assert 0.8 < result.epsilon < 1


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        slow("Laplace(scale=1)", "0.9"),
        ("DiscreteLaplace(scale=1)", "0.9"),
        slow("Gaussian(standard_deviation=2)", {"mu": "0.4"}),
        ("RandomizedResponse(epsilon=2, categories=5)", "1.8"),
        slow("LaplaceVector(scale=2, shifts=[1, 1])", "0.7"),
    ],
)
def test_false_claims_are_refuted(text: str, claim: Any) -> None:
    result = audit(notation.parse(text), claim, samples=40_000, significance=1e-6, seed=5)
    assert result.refuted, str(result)
    assert result.p_value <= 1e-6
    assert "at most 1e-6" in result.advice
    data = json.loads(json.dumps(result.to_json()))
    assert data["verdict"] == "REFUTED"
    assert data["seed"] == "5"


def test_an_event_of_numbers_is_a_range_of_them() -> None:
    result = audit(notation.parse("Laplace(scale=1)"), "1/2", samples=20_000, seed=1)
    low = re.search(r"event +output\[0\] ≥ (-?[0-9.]+) \(", str(result))
    high = re.search(r"opposite +output\[0\] < (-?[0-9.]+)\n", str(result))
    assert low is not None
    assert high is not None
    assert float(high[1]) <= float(low[1])


def test_an_accusation_at_five_percent_is_called_a_hint() -> None:
    plain: dict[str, Any] = {"pairs": COUNTS, "seed": 1, "bits": False}
    result = audit(laplace, "0.8", samples=2000, **plain)
    assert result.refuted
    assert result.p_value > 1e-6
    assert "Only a hint" in result.advice
    assert "another seed" in str(result)
    clear = audit(laplace, "0.5", samples=20_000, **plain)
    assert clear.p_value < 1e-9
    assert "Only a hint" not in clear.advice


def test_the_audit_that_refutes_is_as_small_as_it_can_be() -> None:
    """Each of the audits has its part of the significance, and can be replayed by itself."""
    plain: dict[str, Any] = {"pairs": COUNTS, "samples": 200_000, "seed": 3, "bits": False}
    wrong = audit_until_refuted(laplace, "0.5", **plain)
    assert wrong.refuted
    assert wrong.training + wrong.samples <= 200_000 / 64
    assert wrong.significance == 0.05 / 4
    assert "of growing size" in wrong.notes[-1]
    right = audit_until_refuted(laplace, 1, **plain)
    assert not right.refuted
    assert right.training + right.samples == 200_000


@pytest.mark.parametrize(("seeds", "most"), [(1, 1), pytest.param(24, 8, marks=pytest.mark.slow)])
def test_private_mechanisms_are_seldom_accused_by_any_size(seeds: int, most: int) -> None:
    """At most 5 % of the audits: P(Bin(seeds, 0.05) > most) < 1e-5 for the many."""
    plain: dict[str, Any] = {"pairs": COUNTS, "samples": 5000, "bits": False}
    accused = (audit_until_refuted(laplace, 1, seed=seed, **plain) for seed in range(seeds))
    assert sum(found.refuted for found in accused) <= most


@pytest.mark.slow
def test_rare_events_are_learned_from_a_fitted_ratio() -> None:
    """Noise that is (1, 1e-5)-DP exactly: the best event promises 0.67, counts alone 0.58."""

    def gaussian(dataset: float, size: int, rng: Generator) -> Any:
        return dataset + rng.normal(0, 3.7304, size)

    found = [
        audit(gaussian, ("0.1", "1e-5"), pairs=COUNTS, samples=100_000, seed=seed, bits=False)
        for seed in range(5)
    ]
    assert np.median([each.epsilon for each in found]) >= 0.6


@pytest.mark.slow
def test_a_rare_shape_does_not_touch_its_neighbours_in_the_block() -> None:
    """A private mechanism that sometimes returns nothing, however the runs are cut into blocks."""

    def rare_shapes(dataset: int, rng: Generator) -> Any:
        noise = int(rng.geometric(1 - np.exp(-1)) - rng.geometric(1 - np.exp(-1)))
        return None if rng.random() < 1e-3 else [dataset + noise, 0]

    result = audit(rare_shapes, 1, pairs=[(0, 1)], samples=20_000, significance=1e-6, seed=0)
    assert not result.refuted
    assert result.epsilon > 0.7


def test_too_few_samples_are_counted_beforehand() -> None:
    with pytest.raises(InvalidInputError, match=r"only with \d+ runs or more on each side"):
        audit(laplace, 8, pairs=COUNTS, samples=1000, significance=1e-6)
    few = audit(laplace, (1, "1e-7"), pairs=COUNTS, samples=1000, seed=1)
    assert any("200000000 runs" in note for note in few.notes)
    bad: tuple[dict[str, Any], ...] = (
        {"samples": 3},
        {"significance": 1.0},
        {"pairs": []},
        {"pairs": None},
    )
    for changed in bad:
        arguments: dict[str, Any] = {"pairs": COUNTS, **changed}
        with pytest.raises(InvalidInputError):
            audit(laplace, 1, **arguments)


@pytest.mark.parametrize("pairs", [None, [], "count", 3, [1, 2], [[0], [0, 1]], ([0], [0, 1])])
def test_what_is_no_list_of_pairs_gets_the_search_that_can_be_called(pairs: Any) -> None:
    with pytest.raises(InvalidInputError, match="Expected pairs of neighbouring datasets") as told:
        audit(laplace, 1, pairs=pairs, samples=1000, seed=1)
    (call,) = re.findall(r"pairs=(dpassay[\w.]+)\(\"(\w+)\"\)", str(told.value))
    module, _, name = call[0].rpartition(".")
    assert getattr(import_module(module), name)(call[1])


def test_the_best_pair_is_found_among_many() -> None:
    """A clamp that depends on the data shows on one of eight pairs only."""

    def clamped(dataset: int, size: int, rng: Generator) -> Any:
        return rng.laplace(0, 1, size) + (3.0 if dataset == 15 else dataset % 2)

    pairs = [(2 * i, 2 * i + 1) for i in range(8)]
    result = audit(
        clamped,
        1,
        pairs=pairs,
        samples=20_000,
        significance=1e-6,
        seed=1,
        bits=False,  # the bits of numpy's noise leak on every pair
    )
    assert result.refuted
    assert result.pair == (14, 15)
    assert result.pairs == 8
