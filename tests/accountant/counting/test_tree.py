"""Trees for continual counting: counts, walks, factorisations, the best counter, and bounds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant.budget.target import EpsilonDelta, Mu, Rho, Target
from dpassay.accountant.counting.best_counter import (
    best_arities,
    best_counter,
    least_units,
    named_counter,
)
from dpassay.accountant.counting.grids import Digits, Grids, Tree, factorisation, parent
from dpassay.accountant.counting.matrix import restarted_tree
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import MatrixMechanism
from dpassay.accountant.numbers.exact import Number
from dpassay.accountant.questions import profile


@given(arity=st.integers(2, 30), steps=st.integers(1, 200), digits=st.sampled_from(list(Digits)))
def test_counting_digits_is_summing_them(arity: int, steps: int, digits: Digits) -> None:
    tree = Tree(arity, steps, digits)
    written = [tree.written(t) for t in range(1, steps + 1)]
    for step, found in enumerate(written, 1):
        assert step == sum(digit * arity**level for level, digit in enumerate(found))
        assert all(-tree.lowest <= digit <= arity - 1 - tree.lowest for digit in found)
    assert tree.vertices() == sum(abs(digit) for found in written for digit in found)
    assert tree.capacity(tree.height) >= steps
    assert tree.height == 1 or tree.capacity(tree.height - 1) < steps


def test_ranges() -> None:
    with pytest.raises(InvalidInputError, match="arity=1"):
        Tree(1, 5, Digits.PLAIN)
    with pytest.raises(InvalidInputError, match="steps=0"):
        Tree(2, 0, Digits.PLAIN)
    with pytest.raises(InvalidInputError, match="steps=10000000"):
        Tree(2, 10**7, Digits.SIGNED).noise_variables()


SMALL = [(k, digits) for digits in Digits for k in (2, 3, 4, 5, 6, 7, 10, 19, 20)]


@pytest.mark.parametrize(("arity", "digits"), SMALL)
def test_factorisation(arity: int, digits: Digits) -> None:
    for steps in (*range(1, 30), 62, 80):
        tree = Tree(arity, steps, digits)
        left, right = (np.array(matrix, dtype=int) for matrix in factorisation(tree))
        assert np.array_equal(left @ right, np.tri(steps, dtype=int))
        assert set(left.ravel()) <= {0, 1}
        assert set(right.ravel()) <= {-1, 0, 1}
        # the first input lies under the vertices of 1, k, k², …: the l1 sensitivity is h, exactly
        assert np.abs(right).sum(axis=0).max() == np.abs(right[:, 0]).sum() == tree.height


def test_mean_squared_error_is_brute_force_for_all_small_trees() -> None:
    for digits in Digits:
        for arity in range(2, 12):
            length = 0
            for steps in range(1, 130):
                tree = Tree(arity, steps, digits)
                node = steps
                while node:  # a longer stream leaves the path to 0 as it is
                    node, length = parent(tree, node), length + 1
                expected = Fraction(2 * tree.height**2 * length, steps)
                assert tree.mean_squared_error() == expected


@pytest.mark.parametrize("steps", [1, 2, 7, 30, 57])
def test_arities_are_the_best_of_all_for_short_streams(steps: int) -> None:
    """No choice of up to three arities with room for the stream, and none to spare, is better."""

    def error(arities: tuple[int, ...]) -> Fraction:
        return len(arities) ** 2 * Grids(arities, steps, pooled=1).units()

    inner = [()] + [(k,) for k in range(2, 30)] + list(itertools.product(range(2, 30), repeat=2))
    every = [(-(-steps // math.prod(rest)), *rest) for rest in inner]
    assert error(best_arities(steps)) == min(map(error, every))


def test_counters_by_name() -> None:
    """A name takes the best of its structure; Gaussian noise where there is a δ."""
    pure, approximate = EpsilonDelta(1), EpsilonDelta(1, "1e-9")
    assert repr(named_counter("KaryTree", 10**6, pure)) == (
        "KaryTree(steps=1000000, arity=18, epsilon=1)"
    )
    assert named_counter("BridgedTree", 1000, pure) == best_counter(1000, 1).mechanism
    for name in ("BinaryTree", "BridgedTree", "SquareRootFactorization"):
        counter = named_counter(name, 100, approximate)
        assert profile.delta(counter, 1).upper <= Fraction(1, 10**9)
        assert type(counter).__name__ == name
    with pytest.raises(InvalidInputError, match="delta"):
        named_counter("KaryTree", 100, approximate)
    with pytest.raises(InvalidInputError, match="Known: BinaryTree"):
        named_counter("Gaussian", 100, pure)


# The tree of DP-FTRL as a strategy: brute force, and the counters of the same name.


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


# The lower bound over all factorisations of prefix sums.


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
