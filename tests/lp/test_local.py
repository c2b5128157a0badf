from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.accountant.errors import InvalidInputError
from dpassay.lp.local import optimal_local
from dpassay.verifier.cli import main

SHARES = [None, "0", "1/10", "1/2", "1"]


def least_variance(table: Any, share: float) -> float:
    """Return the least V of a table of k rows: for every category, a quadratic program."""
    k = len(table)
    total = 0.0
    for j in range(k):
        others = (table.sum(axis=0) - table[j]) / (k - 1)
        weights = share * table[j] + (1 - share) * others
        gram = (table / weights) @ table.T
        total += float(np.linalg.inv(gram)[j, j]) - share
    return total / k


def staircases(k: int, epsilon: float) -> Any:
    """Return all columns with two values that differ by e^epsilon."""
    patterns = [p for p in itertools.product([0, 1], repeat=k) if 0 < sum(p) < k]
    return np.exp(epsilon * np.array(patterns)).T


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize(("k", "epsilon"), [(2, 1.0), (4, 0.3), (5, 2.5)])
def test_the_value_is_that_of_its_table(k: int, epsilon: float, share: str | None) -> None:
    found = optimal_local(k, epsilon, share)
    size = found.mechanism.size
    columns = staircases(k, epsilon)
    table = columns[:, (columns > 1).sum(axis=0) == size]
    table = table / table.sum(axis=1, keepdims=True)
    known = least_variance(table, 1 / k if share is None else float(Fraction(share)))
    assert math.isclose(float(found.value.lower), known, rel_tol=1e-9)


@given(st.integers(2, 4), st.floats(0.1, 3.0), st.sampled_from(SHARES), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_no_mixture_of_extremal_columns_has_less(
    k: int, epsilon: float, share: str | None, seed: int
) -> None:
    """Every table with losses up to epsilon is one of these, with outcomes merged."""
    columns = staircases(k, epsilon)
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(columns.shape[1], 0.5)) + 1e-6
    # moved to rows of sum 1 by columns of one category against all
    missing = 1 - (columns * weights).sum(axis=1)
    single = np.exp(epsilon * np.eye(k))
    weights = np.append(weights, np.linalg.solve(single, missing - missing.min() + 0.1))
    table = np.hstack([columns, single]) * weights
    if (weights < 0).any():
        return
    table = table / table.sum(axis=1)[0]
    assert np.allclose(table.sum(axis=1), 1)
    found = optimal_local(k, epsilon, share)
    least = least_variance(table, 1 / k if share is None else float(Fraction(share)))
    assert least >= float(found.value.lower) * (1 - 1e-6)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((1, 1), "candidates"),
        ((20_000, 1), "10000"),
        ((5, 0), "> 0"),
        ((5, "nan"), "epsilon"),
        ((5, 1, "-1/2"), "share"),
        ((5, 1, 2), "share"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        optimal_local(*arguments)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    given_options = ["optimal", "local", "--candidates", "10", "--epsilon", "1"]
    assert main([*given_options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mechanism"] == "SubsetSelection(epsilon=1, categories=10, size=3)"
    assert found["objective"]["lower"] <= found["objective"]["upper"]
    assert main([*given_options, "--quiet"]) == 0
    assert capsys.readouterr().out == "SubsetSelection(epsilon=1, categories=10, size=3)\n"
    assert main(given_options) == 0
    assert "dual" in capsys.readouterr().out
    assert main([*given_options, "--share", "2"]) == 2
