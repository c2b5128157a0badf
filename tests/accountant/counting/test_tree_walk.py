"""The walk beside the tree of intervals, and the factorisation that both are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from accountant.counting.tree import Digits, Tree
from accountant.counting.tree_walk import factorisation, path

SMALL = [(k, digits) for digits in Digits for k in (2, 3, 4, 5, 6, 7, 10, 19, 20)]


@pytest.mark.parametrize(("arity", "digits"), SMALL)
def test_factorisation(arity: int, digits: Digits) -> None:
    for steps in (*range(1, 30), 62, 80):
        tree = Tree(arity, steps, digits)
        left, right = (np.array(matrix) for matrix in factorisation(tree))
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
                length += len(path(tree, steps))  # a longer stream leaves a path as it is
                expected = Fraction(2 * tree.height**2 * length, steps)
                assert tree.mean_squared_error() == expected
