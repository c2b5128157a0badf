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

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from dpassay.accountant.counting.tree import Tree

Rows: TypeAlias = list[list[Fraction]]


def parent(tree: Tree, node: int) -> int:
    """Return the number before the last step on the way from 0 to `node` ≥ 1."""
    k, unit = tree.arity, 1
    while node % (unit * k) == 0:
        unit *= k
    digit = (node // unit + tree.lowest) % k - tree.lowest
    return node - unit if digit > 0 else node + unit


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


def factorisation(tree: Tree) -> tuple[Rows, Rows]:
    """Return L and R of a tree; their columns and rows follow `nodes`."""
    return written_out(tree.steps, {node: parent(tree, node) for node in nodes(tree)})


def written_out(steps: int, parents: Mapping[int, int]) -> tuple[Rows, Rows]:
    """Return (L, R) with L R = A, where A x are the n prefix sums, for a tree with the root 0.

    The mechanism releases L (R x + Z) with independent noise Z. A row of R is the signed sum of
    the inputs between a node and its parent, with entries 0 and ±1; a row of L tells with 0 and 1
    which of them an output adds.
    """
    place = {node: index for index, node in enumerate(parents)}
    one, zero = Fraction(1), Fraction(0)
    left = [[zero] * len(place) for _ in range(steps)]
    for step, row in enumerate(left, 1):
        node = step
        while node:
            row[place[node]] = one
            node = parents[node]
    right = []
    for node, before in parents.items():
        low, high, sign = (before, node, one) if before < node else (node, before, -one)
        right.append([sign if low < step <= high else zero for step in range(1, steps + 1)])
    return left, right
