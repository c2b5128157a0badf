"""The walk beside the tree of intervals, and the factorisation that both are."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from accountant.counting.tree import Digits, Tree
from accountant.counting.tree_walk import factorisation, nodes, parent, path
from accountant.errors import InvalidInputError

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


@pytest.mark.parametrize(("arity", "digits"), SMALL)
def test_the_walk_and_the_tree_use_the_same_noise(arity: int, digits: Digits) -> None:
    """Algorithms 2 and 3: each noise variable is in the same outputs, and over the same inputs."""
    for steps in (1, 2, 3, 8, 27, 62, 100):
        tree = Tree(arity, steps, digits)
        users: dict[int, list[int]] = {}
        for step in range(1, steps + 1):
            for node in path(tree, step):
                users.setdefault(node, []).append(step)
        walk = Counter(
            (*sorted((parent(tree, node), node)), tuple(steps)) for node, steps in users.items()
        )
        assert walk == Counter((v.first, v.last, v.outputs) for v in tree.noise_variables())


def test_mean_squared_error_is_brute_force_for_all_small_trees() -> None:
    for digits in Digits:
        for arity in range(2, 12):
            length = 0
            for steps in range(1, 130):
                tree = Tree(arity, steps, digits)
                length += len(path(tree, steps))  # a longer stream leaves a path as it is
                expected = Fraction(2 * tree.height**2 * length, steps)
                assert tree.mean_squared_error() == expected


def test_nodes_follow_their_parents() -> None:
    tree = Tree(5, 90, Digits.SIGNED)
    order = nodes(tree)
    place = {0: -1, **{node: index for index, node in enumerate(order)}}
    assert len(place) == len(order) + 1
    assert all(place[parent(tree, node)] < place[node] for node in order)


def test_large_matrices_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="steps=5000 to need at most"):
        factorisation(Tree(3, 5000, Digits.PLAIN))
