"""The noise of a counting tree as a walk: every output is an earlier one plus one noise variable.

Algorithm 2 of "Count on Your Elders" reaches the time step t from p = 0 by adding sign(d_i)·kⁱ as
often as the digits of t say, the most significant first, and adds one noise variable Z_p at each
p > 0 on the way. The number before the last step is the `parent` of t, so that

    noise(t) = noise(parent(t)) + Z_t,    noise(0) = 0:

the time steps are the nodes of a rooted tree, and the noise is a sum of independent variables
along a path. Z_p stands for the vertex between parent(p) and p of the tree of intervals
(Proposition 4.3); both forms give the same sums.
"""

from __future__ import annotations

from accountant.counting.tree import Tree
from accountant.errors import expected

_MOST_ENTRIES = 10_000_000
"""Entries of a matrix that is written out: 80 MB."""


def parent(tree: Tree, node: int) -> int:
    """Return the number before the last step on the way from 0 to `node` ≥ 1."""
    k, unit = tree.arity, 1
    while node % (unit * k) == 0:
        unit *= k
    digit = (node // unit + tree.lowest) % k - tree.lowest
    return node - unit if digit > 0 else node + unit


def path(tree: Tree, step: int) -> list[int]:
    """Return the nodes from `step` to the child of 0, whose noise variables the output adds."""
    found = []
    while step:
        found.append(step)
        step = parent(tree, step)
    return found


def nodes(tree: Tree) -> list[int]:
    """Return every node that some output uses, each after its parent."""
    known = {0}
    order: list[int] = []
    for step in range(1, tree.steps + 1):
        node, fresh = step, []
        while node not in known:
            fresh.append(node)
            known.add(node)
            node = parent(tree, node)
        order += reversed(fresh)
    return order


def factorisation(tree: Tree) -> tuple[list[list[int]], list[list[int]]]:
    """Return integer matrices (L, R) with L R = A, where A x are the n prefix sums.

    The mechanism releases L (R x + Z) with independent noise Z. A row of R is the signed sum of
    the inputs of one vertex, with entries 0 and ±1; a row of L tells with 0 and 1 which of them
    an output adds. The columns of L and the rows of R follow `nodes`.

    Raises InvalidInputError where the matrices have more than ten million entries.
    """
    order = nodes(tree)
    if tree.steps * len(order) > _MOST_ENTRIES:
        raise expected("steps", tree.steps, f"to need at most {_MOST_ENTRIES} matrix entries")
    place = {node: index for index, node in enumerate(order)}
    left = [[0] * len(order) for _ in range(tree.steps)]
    for step, row in enumerate(left, 1):
        for node in path(tree, step):
            row[place[node]] = 1
    right = []
    for node in order:
        before = parent(tree, node)
        sign, low, high = (1, before, node) if before < node else (-1, node, before)
        right.append([sign if low < step <= high else 0 for step in range(1, tree.steps + 1)])
    return left, right
