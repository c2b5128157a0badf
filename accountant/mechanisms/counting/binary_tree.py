"""The binary tree mechanism for continual counting."""

from __future__ import annotations

from accountant.core.description import declared
from accountant.core.validate import Integer, OptionalPositive
from accountant.counting.tree import Digits, Tree
from accountant.mechanisms.counting.kary_tree import TreeCounter


@declared
class BinaryTree(TreeCounter):
    """Count with the binary tree of Dwork, Naor, Pitassi and Rothblum, and Chan, Shi and Song.

    Every vertex below the root, of height h = ⌈lg(n + 1)⌉, is measured; an output adds those of
    the ones in the binary digits of its time step. With Laplace noise it is
    `KaryTree(steps, 2, epsilon, subtraction=False)`; here the noise may be Gaussian too.

    Parameters
    ----------
    steps
        n ≥ 1, the number of inputs and outputs.
    epsilon, mu, contributions
        As in `LinearCounter`: exactly one of the first two.
    """

    example = "BinaryTree(steps=15, epsilon=1)"

    steps: Integer = Integer(least=1)
    epsilon: OptionalPositive = OptionalPositive()
    mu: OptionalPositive = OptionalPositive()
    contributions: Integer = Integer(1, least=1)

    @property
    def tree(self) -> Tree:
        """The tree above the inputs."""
        return Tree(2, self.steps, Digits.PLAIN)
