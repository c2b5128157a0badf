"""The binary tree mechanism for continual counting."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accountant.core.validate import Integer, OptionalPositive
from accountant.counting.tree import Digits, Tree
from accountant.counting.tree_walk import factorisation
from accountant.mechanisms.counting.linear_counter import MOST_LISTED, LinearCounter, Rows
from accountant.numbers.exact import ExactReal


@final
@dataclass(frozen=True, repr=False)
class BinaryTree(LinearCounter):
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

    @property
    def distances(self) -> tuple[ExactReal, ...]:
        """One in each level: the first input lies below one used vertex of each."""
        return (ExactReal.of_rational(1),) * self.tree.height

    def units(self) -> Fraction:
        """Return the number of ones in 1, …, n in binary."""
        return Fraction(self.tree.vertices())

    def output_units(self) -> list[Fraction]:
        """Return the number of ones of every step."""
        self.require(MOST_LISTED, "to list every output")
        return [Fraction(step.bit_count()) for step in range(1, self.steps + 1)]

    def factorisation(self) -> tuple[Rows, Rows]:
        """Return L and R, with entries 0 and 1."""
        self.require_entries(self.steps)
        left, right = factorisation(self.tree)
        return [list(map(Fraction, row)) for row in left], [
            list(map(Fraction, row)) for row in right
        ]
