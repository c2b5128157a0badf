"""The lower bound over all factorisations of prefix sums."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat, ctx, fmpq
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


def mean_of_partitions(steps: int) -> list[list[Fraction]]:
    """Return a Gram matrix with diagonal 1 that is a mean of those of partitions into intervals.

    It is the best one for Gaussian noise, (WA'AW)^{1/2} with a diagonal of ones, in multiples of
    2⁻⁴⁰. A partition has the probability of its cells; [a, b] is a cell with the probability
    G_ab − G_{a−1,b} − G_{a,b+1} + G_{a−1,b+1} ≥ 0, and as many cells end at b as begin at b + 1.
    """
    prefix, x = np.tril(np.ones((steps, steps))), (np.arange(steps) + 0.5) / steps
    w = np.log(6 * steps / np.tan(np.pi * x / 2))
    _, values, axes = np.linalg.svd(prefix * w, full_matrices=False)
    gram = (axes.T * values) @ axes
    gram /= np.sqrt(np.outer(np.diag(gram), np.diag(gram)))
    unit = 1 << 40
    whole = np.rint((gram + gram.T) / 2 * unit).astype(np.int64)
    np.fill_diagonal(whole, unit)
    framed = np.zeros((steps + 2, steps + 2), dtype=np.int64)
    framed[1:-1, 1:-1] = whole
    cells = framed[1:-1, 1:-1] - framed[:-2, 1:-1] - framed[1:-1, 2:] + framed[:-2, 2:]
    assert (cells[np.triu_indices(steps)] > 0).all()
    return [[Fraction(int(entry), unit) for entry in row] for row in whole]


@pytest.mark.parametrize(
    "steps",
    [
        2,
        10,
        60,
        pytest.param(300, marks=pytest.mark.slow),
    ],
)
def test_no_mean_of_gram_matrices_gives_a_larger_bound(steps: int) -> None:
    """The indicators of the cells of a partition are columns of ℓ1 norm 1.

    So every bound of tr(A'AG⁻¹)/n that holds for the means G of Gram matrices of Laplace
    factorisations is at most that of this G, which is near the bound for Gaussian noise.
    """
    gram = arb_mat(
        [[arb(fmpq(c.numerator, c.denominator)) for c in row] for row in mean_of_partitions(steps)]
    )
    prefix = arb_mat([[arb(j <= i) for j in range(steps)] for i in range(steps)])
    with ctx.workprec(128):
        product = gram.solve(prefix.transpose() * prefix)
        found = sum((product[i, i] for i in range(steps)), start=arb(0)) / steps
        assert found < float(least_units(steps)) * (1.011 if steps < 10 else 1.006)


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
