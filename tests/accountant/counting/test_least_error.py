"""The lower bound over all factorisations of prefix sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant.budget.target import EpsilonDelta, Mu, Rho, Target
from dpassay.accountant.counting.best_counter import best_counter, least_units
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.exact import Number


def both_ends(steps: int, rounds: int = 40) -> tuple[float, float]:
    """Return the bound and the error of the factorisation by weights w² ∝ diag((WA'AW)^{1/2})."""
    prefix, w = np.tril(np.ones((steps, steps))), np.ones(steps)
    for _ in range(rounds):
        _, values, axes = np.linalg.svd(prefix * w, full_matrices=False)
        w = np.sqrt(np.einsum("k,kt->t", values, axes**2))
        w *= math.sqrt(steps) / np.linalg.norm(w)
    _, values, axes = np.linalg.svd(prefix * w, full_matrices=False)
    columns = np.einsum("k,kt->t", values, (axes / w) ** 2)
    return (values.sum() / steps) ** 2, float(values.sum() * columns.max() / steps)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7, 10, 33])
def test_it_is_near_the_optimum_and_below_a_factorisation(steps: int) -> None:
    """The singular values of whole matrices, to within the rounding of doubles."""
    low, high = both_ends(steps)
    assert high < 1.002 * low
    near = 0.994 if steps >= 10 else 0.985
    assert near * low < float(least_units(steps)) < high * (1 + 1e-9)


@pytest.mark.slow
def test_it_is_above_the_bound_by_hand_and_below_the_square_root() -> None:
    """(2 + ln((2n + 1)/3))²/π², with equal weights and 1/sin x ≥ 1/x."""
    roots = {3: 9.6239, 4: 14.7, 5: 20.9, 6: 28.1, 7: 36.4, 8: 45.8, 9: 56.3}
    for power, root in roots.items():
        steps = 10**power
        found = float(least_units(steps))
        assert ((2 + math.log((2 * steps + 1) / 3)) / math.pi) ** 2 < found
        assert 1.05 < root / found < 1.11


@given(st.integers(1, 300), st.integers(1, 400))
def test_it_grows_with_the_contributions(steps: int, times: int) -> None:
    one, many = least_units(steps), least_units(steps, times)
    assert one <= many <= times * one
    assert many <= steps * one  # no more positions than steps


@pytest.mark.parametrize("steps", [1, 2, 9, 1000])
@pytest.mark.parametrize("budget", [1, Mu(2), Rho("1/8"), EpsilonDelta(1, "1e-6")])
@pytest.mark.parametrize("contributions", [1, 3])
def test_no_counter_is_below(steps: int, budget: Target | Number, contributions: int) -> None:
    found = best_counter(steps, budget, contributions=contributions)
    assert found.bound_law == ("Laplace" if budget == 1 else "Gaussian")
    for counter, error in [(found.mechanism, found.error), *found.others]:
        if (counter.mu is None) == (found.bound_law == "Laplace"):
            assert found.bound.lower <= error.upper
    if budget == 1:
        twice = 2 * float(least_units(steps, contributions))
        assert math.isclose(float(found.bound.lower), twice, rel_tol=1e-12)


def test_what_the_answer_says() -> None:
    """Bounds are rounded down, and how far the best is from them up."""
    said: dict[str, Target | Number] = {
        "less than 8.684; this has at most 10.83 % more": Mu(1),
        "less than 17.36; this has at most 6.783 times that": 1,
        "Every factorisation with Gaussian noise has at least 3.170": EpsilonDelta(1, "1e-12"),
    }
    for words, budget in said.items():
        assert words in best_counter(1000, budget).reason
    with pytest.raises(InvalidInputError, match="steps=0 ≥ 1"):
        least_units(0)
