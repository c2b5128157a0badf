"""Both neighbours with the same noise: draws, arguments and outputs that differ."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.audit import PerRun, audit, same_noise, target

PAIR = ([1.0, 2.0], [1.0, 2.0, 4.0])


def total(records: Any, rng: np.random.Generator) -> float:
    return float(sum(records) + rng.laplace(0, 1))


@given(st.lists(st.integers(-1000, 1000), min_size=3, max_size=3), st.integers(0, 2**32))
def test_an_answer_plus_noise_differs_by_the_change_of_the_answer(
    change: list[int], seed: int
) -> None:
    pair = np.zeros(3), np.array(change, dtype=float)
    found = same_noise(lambda v, rng: v + rng.normal(0, 5, 3), [pair], runs=5, seed=seed)
    for norm, order in (("l1", 1), ("l2", 2), ("linf", np.inf)):
        shown = found.sensitivity(norm)
        # two sums below 2048 in each of three entries, and a norm, are rounded
        assert shown is not None
        assert abs(shown - np.linalg.norm(change, order)) <= 16 * np.spacing(2047.0)
    assert not found.pairs[0].draws_differ
    assert found.pairs[0].values_drawn == (3, 3)


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda records, rng: sum(records) + rng.normal(),
        lambda records, rng: rng.laplace(sum(records), 2),
        lambda records, size, rng: sum(records) + rng.normal(size=size),
        lambda records, rng: sum(records) + rng.spawn(1)[0].normal(),
        lambda records, rng: sum(records) + stats.laplace.rvs(random_state=rng),
        lambda records, rng: sum(records) + 1000 * rng.standard_cauchy(),
    ],
)
def test_any_way_to_draw(mechanism: Any) -> None:
    found = same_noise(mechanism, [PAIR], runs=20, seed=1)
    assert found.sensitivity("l1") == pytest.approx(4.0, rel=1e-9)
    assert "same amount in every run: l1 4," in str(found)


def test_noise_that_the_data_scale_is_no_sensitivity() -> None:
    found = same_noise(lambda r, rng: sum(r) + rng.laplace(0, 1 / len(r)), [PAIR], runs=7, seed=1)
    (pair,) = found.pairs
    assert (pair.draws_differ, pair.arguments_differ, pair.constant) == (0, 7, False)
    assert pair.example == "laplace(0, 0.5) against laplace(0, 0.3333333333333333)"
    assert found.sensitivity("l2") is None
    assert "depends on the noise" in str(found)


def test_draws_that_depend_on_the_data() -> None:
    found = same_noise(lambda r, rng: sum(x + rng.normal() for x in r), [PAIR], runs=7, seed=1)
    (pair,) = found.pairs
    assert (pair.draws_differ, pair.values_drawn, pair.constant) == (7, (2, 3), False)
    assert "other draws in 7 of 7 runs (nothing against normal())" in str(found)


def test_rounded_answers_are_no_sensitivity() -> None:
    found = same_noise(lambda v, rng: round(v + rng.normal()), [(0.0, 0.5)], runs=50, seed=1)
    assert found.sensitivity("l1") is None
    assert found.pairs[0].l1 == 1


def test_outputs_that_are_no_numbers_are_counted() -> None:
    def answer(value: int, rng: np.random.Generator) -> str:
        return "yes" if value + rng.normal() > 0 else "no"

    (pair,) = same_noise(answer, [(0, 50)], runs=40, seed=1).pairs
    assert 0 < pair.incomparable < 40
    assert not pair.constant


def test_several_pairs_as_plain_data() -> None:
    found = same_noise(total, [PAIR, ([], [9.0])], runs=3, seed=1)
    assert found.sensitivity("linf") == pytest.approx(9.0, rel=1e-14)
    plain = json.loads(json.dumps(found.to_json()))
    assert plain["status"] == "TESTED"
    assert [pair["runs"] for pair in plain["pairs"]] == [3, 3]
    with pytest.raises(InvalidInputError, match="l1, l2 or linf"):
        found.sensitivity("l3")


def self_seeded(records: Any, rng: np.random.Generator) -> float:
    return float(sum(records) + np.random.default_rng().normal())


def silent(records: Any, rng: np.random.Generator) -> float:
    return float(sum(records))


def seeded(records: Any, seed: int) -> float:
    return float(sum(records) + seed)


@pytest.mark.parametrize(
    ("mechanism", "options", "message"),
    [
        (self_seeded, {}, "does not follow the rng"),
        (silent, {}, "asked for nothing"),
        (seeded, {}, "to take a generator"),
        (total, {"runs": 1}, "runs"),
        (total, {"pairs": []}, "at least one pair"),
    ],
)
def test_what_has_no_answer(mechanism: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        same_noise(mechanism, **{"pairs": [PAIR], "seed": 1, **options})


def test_a_target_is_taken_as_it_is() -> None:
    aim = target(total)
    assert isinstance(aim, PerRun)
    assert same_noise(aim, [PAIR], runs=2, seed=1).name == "total"


class Table(list[float]):
    def __repr__(self) -> str:
        return "\n".join(["   value", *map(str, self)])


def test_a_table_of_several_lines_is_shown_in_one() -> None:
    found = same_noise(total, [(Table([1.0]), Table([1.0, 2.0]))], runs=2, seed=1)
    assert found.pairs[0].datasets == ("value 1.0", "value 1.0 2.0")
    result = audit(total, 1, pairs=[(Table([1.0]), Table([1.0, 2.0]))], samples=1000, seed=1)
    assert "neighbours   value 1.0 and value 1.0 2.0\n" in str(result)
