"""The tree of DP-FTRL as a strategy: brute force, and the counters of the same name."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dpassay
from dpassay.accountant.counting.matrix import restarted_tree
from dpassay.accountant.mechanisms import BinaryTree, Composed, MatrixMechanism


def tree(
    n: int, period: int, schema: str = "single", sigma: int = 1, **more: int
) -> MatrixMechanism:
    return MatrixMechanism("tree", sigma, n, schema, bands=period, **more)


@pytest.mark.parametrize(("n", "period"), [(1, 1), (7, 3), (15, 15), (12, 4), (6, 10), (30, 10)])
def test_outputs_add_up_to_prefix_sums(n: int, period: int) -> None:
    made = restarted_tree(n, min(period, n))
    assert made.outputs is not None
    assert (np.array(made.outputs) @ np.array(made.integers) == np.tri(n)).all()


@pytest.mark.parametrize(("n", "period"), [(12, 4), (12, 12), (11, 5)])
@pytest.mark.parametrize("separation", [1, 3, 4])
def test_sensitivities_are_those_of_all_patterns(n: int, period: int, separation: int) -> None:
    c = np.array(restarted_tree(n, period).integers)
    worst = 0
    for most in (1, 2, 3):
        for steps in itertools.combinations(range(n), most):
            if all(b - a >= separation for a, b in itertools.pairwise(steps)):
                worst = max(worst, int((c[:, list(steps)].sum(axis=1) ** 2).sum()))
    room = -(-n // separation)
    made = tree(n, period, "min-separation", separation=separation, participations=min(3, room))
    assert made.column_sensitivity.exact == worst


def test_it_is_the_composition_of_trees() -> None:
    made = tree(45, 15, "cyclic", separation=15)
    same = Composed(BinaryTree(15, mu=1), 3)
    assert float(made.sensitivity().upper) == pytest.approx(12**0.5, rel=1e-12, abs=0)
    one = MatrixMechanism("tree", 2, 15, "single")  # four levels: mu = 1 at sigma 2
    assert dpassay.mean_squared_error(one) == dpassay.mean_squared_error(BinaryTree(15, mu=1))
    three = MatrixMechanism("tree", 2, 45, "cyclic", separation=15, bands=15)
    assert dpassay.epsilon(three, "1e-5").overlaps(dpassay.epsilon(same, "1e-5"))


def test_noise_has_the_variances_of_the_outputs() -> None:
    """4000 runs: five standard errors of a variance, √(2/4000) each."""
    made = tree(10, 4, sigma=2)
    drawn = made.sample(4000, rng=np.random.default_rng(5))
    wanted = [float(v) for v in made.variances()]
    assert np.all(np.abs(drawn.var(axis=0) / wanted - 1) < 5 * (2 / 4000) ** 0.5)
    assert wanted == [4.0 * ones for ones in (1, 1, 2, 1, 2, 2, 3, 2, 3, 3)]
    covariance = np.array([[float(x) for x in row] for row in made.covariance_matrix()])
    assert (covariance.diagonal() == wanted).all()
    released = made.release([1, 0, 1, 1, 0, 0, 1, 0, 1, 1])
    assert len(np.ravel(released)) == 10


def test_samples_are_more_private() -> None:
    sampled = MatrixMechanism(
        "tree", 4, 30, "cyclic", separation=10, bands=10, step_sampling_prob="1/2"
    )
    known = tree(30, 10, "cyclic", sigma=4, separation=10)
    most = dpassay.epsilon(known, "1e-5")
    assert dpassay.epsilon(sampled, "1e-5", adjacency="add-remove").upper < most.lower


def test_too_many_steps_are_refused() -> None:
    with pytest.raises(dpassay.InvalidInputError, match=r"steps=2000 at most 1024.*'tree'"):
        tree(2000, 10).variances()
