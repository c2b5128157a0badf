"""Random allocation of matrix mechanisms: against integrals, simulated ratios and other names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

import dpassay
from dpassay.accountant.mechanisms import Composed, Gaussian, MatrixMechanism, RandomAllocation

RELATION = "add-remove"


def allocated(strategy: Any, sigma: Any, n: int, b: int, **more: Any) -> MatrixMechanism:
    return MatrixMechanism(strategy, sigma, n, "random-allocation", separation=b, **more)


def means(made: MatrixMechanism) -> NDArray[np.float64]:
    """Return the sums of the columns of each first step, in units of σ."""
    rows = made.matrix.floats()
    c = np.array([[*row[: i + 1][::-1]] + [0.0] * (made.steps - i - 1) for i, row in
                  enumerate((row + [0.0] * made.steps)[: made.steps] for row in rows)])  # fmt: skip
    b = min(made.schema.separation, made.steps)
    return np.array([c[:, j::b].sum(axis=1) for j in range(b)]) / float(made.noise_multiplier)


def of_two(m: NDArray[np.float64], epsilon: float, *, remove: bool) -> float:
    """Return H(ε) of two first steps, in the plane of their means, by midpoints."""
    basis, _ = np.linalg.qr(m.T)
    flat, edges = m @ basis, np.linspace(-14, 14, 1401)
    each = [[np.diff(ndtr(edges - x)) for x in point] for point in (*flat, np.zeros(2))]
    one, other, none = (np.outer(*masses) for masses in each)
    p, q = (one + other) / 2, none
    first, second = (p, q) if remove else (q, p)
    return float(np.maximum(first - np.exp(epsilon) * second, 0).sum())


TWO = [
    allocated([1, "1/2"], "3/2", 4, 2),
    allocated("square-root", 2, 6, 2),
    allocated([[1, 0, 0], ["1/4", 2, 0], [0, 1, 1]], 2, 3, 2),
]


@pytest.mark.parametrize("made", TWO)
@pytest.mark.parametrize("direction", list(dpassay.Direction))
def test_two_first_steps_are_between_the_ends(
    made: MatrixMechanism, direction: dpassay.Direction
) -> None:
    """Midpoints are off by less than a thousandth of δ."""
    for epsilon in (0.1, 0.7):
        found = dpassay.delta(made, epsilon, adjacency=RELATION, direction=direction)
        wanted = of_two(means(made), epsilon, remove=direction is dpassay.Direction.REMOVE)
        assert float(found.lower) <= wanted * 1.001
        assert float(found.upper) >= wanted * 0.999
        assert float(found.upper) < 3 * wanted


def test_columns_of_one_length_are_exact_and_composed() -> None:
    """(3, 4) and (0, 5) have squares 25 and the inner product 20."""
    made = allocated([[3, 0], [4, 5]], 5, 2, 2)
    same = Composed([Gaussian(5, "sqrt(20)"), RandomAllocation(Gaussian(5, "sqrt(5)"), 2)])
    for direction in dpassay.Direction:
        found, wanted = (
            dpassay.delta(each, "1/2", adjacency=RELATION, direction=direction)
            for each in (made, same)
        )
        assert found == wanted
        exact = of_two(means(made), 0.5, remove=direction is dpassay.Direction.REMOVE)
        assert float(found.lower) == pytest.approx(exact, rel=1e-3, abs=0)
    twice = (
        dpassay.epsilon(Composed(each, 2), "1e-5", adjacency=RELATION) for each in (made, same)
    )
    assert next(twice).overlaps(next(twice))


def test_uncorrelated_noise_is_one_random_allocation_of_all_epochs() -> None:
    made = allocated("identity", 2, 60, 20)
    same = RandomAllocation(Gaussian(2, "sqrt(3)"), 20)
    for direction in dpassay.Direction:
        found, wanted = (
            dpassay.epsilon(each, "1e-6", adjacency=RELATION, direction=direction)
            for each in (made, same)
        )
        assert found == wanted


def test_one_first_step_is_no_chance() -> None:
    always = allocated("square-root", 2, 12, 1)
    cyclic = MatrixMechanism("square-root", 2, 12, "cyclic", separation=1)
    assert dpassay.epsilon(always, "1e-5", adjacency=RELATION).overlaps(
        dpassay.epsilon(cyclic, "1e-5")
    )


def test_simulated_ratios_of_a_banded_strategy_are_between_the_ends() -> None:
    """10⁵ draws under P: five standard deviations, false alarm below 1e-6."""
    made = allocated("square-root", 2, 60, 20, bands=4)
    m, rng, runs = means(made), np.random.default_rng(3), 100_000
    y = rng.standard_normal((runs, made.steps)) + m[rng.integers(0, len(m), runs)]
    ratio = np.exp(y @ m.T - (m**2).sum(axis=1) / 2).mean(axis=1)
    gain = np.maximum(1 - np.exp(0.5) / ratio, 0)
    found = dpassay.delta(made, "1/2", adjacency=RELATION, direction=dpassay.Direction.REMOVE)
    error = 5 * gain.std() / np.sqrt(runs)
    assert float(found.lower) <= gain.mean() + error
    assert float(found.upper) >= gain.mean() - error


@pytest.mark.parametrize("bands", [1, 3, 20])
def test_it_is_no_worse_than_a_first_step_that_is_known(bands: int) -> None:
    made = allocated("square-root", 2, 40, 20, bands=bands)
    known = MatrixMechanism("square-root", 2, 40, "cyclic", separation=20, bands=bands)
    found = dpassay.epsilon(made, "1e-5", adjacency=RELATION)
    assert found.upper < dpassay.epsilon(known, "1e-5").lower


def test_outputs_have_one_first_step_each() -> None:
    made = allocated("identity", "1e-6", 6, 3)
    runs = made.outputs(made.worst_shift(), 200, rng=np.random.default_rng(1))
    inputs = np.round(np.diff(runs, axis=1, prepend=0)).astype(int)
    assert {tuple(row) for row in inputs} == {
        tuple(int(t % 3 == j) for t in range(6)) for j in range(3)
    }


def test_what_is_refused() -> None:
    made = allocated("square-root", 2, 40, 20)
    with pytest.raises(dpassay.AdjacencyError, match="add-remove"):
        dpassay.epsilon(made, "1e-5", adjacency="replace-one")
    with pytest.raises(dpassay.NotApplicableError, match="Ask about"):
        Composed(made, 2)
    with pytest.raises(dpassay.NotApplicableError, match="negative inner products"):
        dpassay.epsilon(allocated([1, "-1/2"], 1, 8, 4), "1e-5", adjacency=RELATION)
    with pytest.raises(dpassay.InvalidInputError, match="participations to be left out"):
        allocated("identity", 1, 8, 4, participations=2)
    with pytest.raises(dpassay.InvalidInputError, match="separation="):
        MatrixMechanism("identity", 1, 8, "random-allocation")
    with pytest.raises(dpassay.InvalidInputError, match="separation=9 ≤ steps=8"):
        allocated("identity", 1, 8, 9)
