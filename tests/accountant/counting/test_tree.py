"""Trees for continual counting: counts, walks, factorisations, and the best counter."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpassay
from dpassay.accountant.budget.target import EpsilonDelta, Mu, Rho, Target
from dpassay.accountant.counting.best_counter import best_arities, best_counter, named_counter
from dpassay.accountant.counting.grids import Digits, Grids, Tree, factorisation, parent
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import BridgedTree
from dpassay.accountant.numbers.exact import ExactReal, Number
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


def test_budgets_in_mu_and_rho() -> None:
    """ρ = μ²/2 is one budget in two names, kept exactly."""
    by_mu, by_rho = best_counter(1000, Mu("1/2")), best_counter(1000, Rho("1/8"))
    assert by_mu == by_rho
    assert by_mu.mechanism.exact_gaussian_mu(None) == ExactReal.of_rational(Fraction(1, 2))
    beyond = best_counter(10**8, Mu("1/2"))
    assert isinstance(beyond.mechanism, BridgedTree)
    assert "stores all its noise" in beyond.reason


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


def test_public_name_and_bad_arguments() -> None:
    """Errors name the argument."""
    assert dpassay.best_counter(10, 1).mechanism == BridgedTree(10, [10], epsilon=1)
    cases: list[tuple[tuple[int, Target | Number], str]] = [
        ((0, 1), "steps=0 ≥ 1"),
        ((10, 0), "epsilon=0 > 0"),
        ((10, "-1"), "epsilon='-1' > 0"),
        ((10, EpsilonDelta(0, "1e-6")), "epsilon=.* > 0"),
    ]
    for arguments, message in cases:
        with pytest.raises(InvalidInputError, match=message):
            best_counter(*arguments)
