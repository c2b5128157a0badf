"""Continual counting with Honaker's online estimates of the binary tree."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from dpassay.accountant.core.description import declared
from dpassay.accountant.core.validate import Integer, OneOf, OptionalPositive
from dpassay.accountant.counting import shown
from dpassay.accountant.counting.tree import (
    Digits,
    Tree,
    honaker_mean_squared_error,
    level_units,
    own_weight,
)
from dpassay.accountant.counting.tree_walk import Rows
from dpassay.accountant.mechanisms.counting.linear_counter import MOST_LISTED
from dpassay.accountant.mechanisms.counting.partly_shown import PartlyShown
from dpassay.accountant.numbers.exact import ExactReal


@declared
class HonakerTree(PartlyShown):
    """Count with the binary tree, each vertex estimated from all that is measured below it.

    Honaker, "Efficient Use of Differentially Private Binary Trees" (2015), estimation from below:
    the estimate of a vertex of level i averages its own measured sum and the sum of the estimates
    of its two children, with the weights of least variance; with v_0 = 1 and
    v_i = 1/(1 + 1/(2v_{i−1})) = 2ⁱ/(2ⁱ⁺¹ − 1) it has v_i units. All of it has arrived when the
    vertex ends. An output adds the estimates of the ones in the binary digits of its time step.

    Parameters
    ----------
    steps
        n ≥ 1, the number of inputs and outputs.
    epsilon, mu, contributions
        As in `LinearCounter`: exactly one of the first two.
    released
        What counts as released: the "outputs", or the "measurements", all measured sums.
    """

    example = "HonakerTree(steps=15, mu=1)"

    steps: Integer = Integer(least=1)
    epsilon: OptionalPositive = OptionalPositive()
    mu: OptionalPositive = OptionalPositive()
    contributions: Integer = Integer(1, least=1)
    released: OneOf = OneOf("outputs", "measurements", default="outputs")

    @property
    def height(self) -> int:
        """The number of levels below the unused root, h = ⌈lg(n + 1)⌉."""
        return Tree(2, self.steps, Digits.PLAIN).height

    @property
    def distances(self) -> tuple[ExactReal, ...]:
        """One in each level: the first vertex of each ends within the stream."""
        return (ExactReal.of_rational(1),) * self.height

    def shown(self) -> list[Fraction | arb]:
        """Return the largest square over the inputs, exactly."""
        return [shown.honaker(self.height)]

    @property
    def alone(self) -> int:
        """1: the first output is the first input with its noise."""
        return 1

    @property
    def shows_largest_loss(self) -> bool:
        """True: the first vertex of every level ends at an output (`counting.shown`)."""
        return True

    def units(self) -> Fraction:
        """Return the units of all outputs, by counting the ones of each level."""
        total = honaker_mean_squared_error(self.steps) * self.steps
        return total / (2 * self.height**2)

    def output_units(self) -> list[Fraction]:
        """Return Σ v_i over the ones of every step."""
        self.require(MOST_LISTED, "to list every output")
        return [
            sum((level_units(i) for i in range(self.height) if step >> i & 1), Fraction(0))
            for step in range(1, self.steps + 1)
        ]

    def factorisation(self) -> tuple[Rows, Rows]:
        """Return L and R; the vertices level by level, those that end within the stream."""
        vertices = [
            (level, end)
            for level in range(self.height)
            for end in range(1 << level, self.steps + 1, 1 << level)
        ]
        self.require_entries(len(vertices))
        place = {vertex: index for index, vertex in enumerate(vertices)}
        steps = range(1, self.steps + 1)
        left = [[Fraction(0)] * len(vertices) for _ in steps]

        def add(row: list[Fraction], level: int, end: int, weight: Fraction) -> None:
            own = own_weight(level)
            row[place[level, end]] += weight * own
            if level:
                below = weight * (1 - own)
                add(row, level - 1, end, below)
                add(row, level - 1, end - (1 << level - 1), below)

        for step, row in zip(steps, left, strict=True):
            for level in range(self.height):
                if step >> level & 1:
                    add(row, level, step >> level << level, Fraction(1))
        right = [[Fraction(end - (1 << i) < t <= end) for t in steps] for i, end in vertices]
        return left, right
