"""The smooth binary mechanism for continual counting."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from flint import arb

from dpassay.accountant.core.description import declared
from dpassay.accountant.core.validate import Integer, OneOf, OptionalPositive
from dpassay.accountant.counting import shown
from dpassay.accountant.counting.tree_walk import Rows
from dpassay.accountant.mechanisms.counting.partly_shown import PartlyShown
from dpassay.accountant.numbers.exact import ExactReal


@declared
class SmoothBinary(PartlyShown):
    """Count with the balanced leaves of a binary tree: all outputs have the same error.

    Andersson and Pagh, "A Smooth Binary Mechanism for Efficient Private Continual Observation"
    (2023). Of a binary tree of even height h, with C(h, h/2) ≥ n + 1, only the leaves whose h
    binary digits have h/2 ones hold inputs, in order. A prefix ends before a leaf, and adds the
    left sibling of each 1 on the way to it: h/2 vertices. An input is in the vertices of the
    zeros on the way to its own leaf: h/2. The first input is in most of those that some output
    uses: in all h/2 if n ≥ C(h, h/2)/2, in fewer for smaller n, and the noise is for just these.

    Parameters
    ----------
    steps
        n ≥ 1, the number of inputs and outputs.
    epsilon, mu, contributions
        As in `LinearCounter`: exactly one of the first two.
    released
        What counts as released: the "outputs", or the "measurements", all measured sums.
    """

    example = "SmoothBinary(steps=19, mu=1)"

    steps: Integer = Integer(least=1)
    epsilon: OptionalPositive = OptionalPositive()
    mu: OptionalPositive = OptionalPositive()
    contributions: Integer = Integer(1, least=1)
    released: OneOf = OneOf("outputs", "measurements", default="outputs")

    @property
    def ones(self) -> int:
        """h/2, the vertices in each output."""
        half = 1
        while math.comb(2 * half, half) < self.steps + 1:
            half += 1
        return half

    @property
    def distances(self) -> tuple[ExactReal, ...]:
        """One for each vertex of the first leaf, of 0^i for i ≥ 1, that some output uses.

        It is used where a leaf beyond it is: where at most n leaves begin with 0^i, which are
        C(h − i, h/2). No later leaf has more such vertices: those of its first zeros up to a 1
        are among these, and behind its first 1 it has as many zeros fewer than the first leaf.
        """
        half = self.ones
        used = sum(math.comb(2 * half - i, half) <= self.steps for i in range(1, half + 1))
        return (ExactReal.of_rational(1),) * used

    def shown(self) -> list[Fraction | arb]:
        """Return the largest square over the inputs."""
        return [shown.smooth(self.steps, self.ones)]

    @property
    def alone(self) -> int:
        """The sum of a single input, and none of more."""
        return int(self.steps == 1)

    @property
    def shows_largest_loss(self) -> bool:
        """True: an output for each vertex of the first leaf shares none with another of these."""
        return True

    def units(self) -> Fraction:
        """Return n h/2."""
        return Fraction(self.steps * self.ones)

    def output_units(self) -> list[Fraction]:
        """Return h/2 for every step."""
        self.require(1_000_000, "to list every output")
        return [Fraction(self.ones)] * self.steps

    def leaves(self) -> Iterator[tuple[int, ...]]:
        """Yield the digits of the leaves 1, …, n + 1: the inputs', and one behind them."""
        half = self.ones
        word = (1 << half) - 1
        for _ in range(self.steps + 1):
            yield tuple(word >> place & 1 for place in reversed(range(2 * half)))
            low = word & -word
            carried = word + low
            word = (word ^ carried) // (low << 2) | carried

    def factorisation(self) -> tuple[Rows, Rows]:
        """Return L and R, with entries 0 and 1, over the vertices in the order of first use."""
        leaves = list(self.leaves())
        paths = [[leaf[:place] for place, digit in enumerate(leaf) if digit] for leaf in leaves[1:]]
        place = {v: i for i, v in enumerate(dict.fromkeys(v for path in paths for v in path))}
        self.require_entries(len(place))
        one, zero = Fraction(1), Fraction(0)
        left = [[zero] * len(place) for _ in paths]
        for row, path in zip(left, paths, strict=True):
            for vertex in path:
                row[place[vertex]] = one
        right = [
            [one if leaf[: len(v) + 1] == (*v, 0) else zero for leaf in leaves[:-1]] for v in place
        ]
        return left, right
