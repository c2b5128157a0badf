"""Continual counting with a tree whose levels are interpolated between those above."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from dpassay.accountant.core.description import declared
from dpassay.accountant.core.validate import Integer, Integers, OneOf, OptionalPositive
from dpassay.accountant.counting import shown
from dpassay.accountant.counting.bridge import Grids
from dpassay.accountant.counting.tree_walk import Rows
from dpassay.accountant.mechanisms.counting.partly_shown import PartlyShown
from dpassay.accountant.numbers.exact import ExactReal

_MOST_CELLS = 10_000
"""Cells with a position of a person that are listed."""


@declared
class BridgedTree(PartlyShown):
    """Count with grids that refine each other; the cells of a parent also measure the parent.

    Every cell of every level is measured. Where the sum of a parent's cells differs from the
    parent, the difference is spread evenly over the cells: at each level the noise is a bridge
    between two known ends (see `dpassay.accountant.counting.bridge`, which proves L R = A). For
    equal arities k the mean squared error is (1 + o(1)) (k − 1)/(3 lg³k) lg³n/ε², least at k = 17
    with the constant 0.0781; that of Algorithm 2 of "Count on Your Elders" is 0.1236, and
    Honaker's is 0.5.

    Parameters
    ----------
    steps
        n ≥ 1, the number of inputs and outputs.
    arities
        How many cells each level cuts a cell of the level above into, the first level first;
        their product is at least n.
    epsilon, mu, contributions
        As in `LinearCounter`: exactly one of the first two.
    pooled
        r ≥ 0: a cell is estimated from its own measurement and those of r generations of cells in
        it, which takes no budget. r = 1 has nearly all of the gain, about a share 1/(k + 1) of the
        error, and a stream stores about k² numbers for each level; r = h − 1 is least squares on
        all measurements, and stores n.
    released
        What counts as released: the "outputs", or the "measurements", all measured sums.
    """

    example = "BridgedTree(steps=16, arities=[4, 4], mu=1)"

    steps: Integer = Integer(least=1)
    arities: Integers = Integers(least=1)
    epsilon: OptionalPositive = OptionalPositive()
    mu: OptionalPositive = OptionalPositive()
    contributions: Integer = Integer(1, least=1)
    pooled: Integer = Integer(0, least=0)
    released: OneOf = OneOf("outputs", "measurements", default="outputs")

    def __post_init__(self) -> None:
        super().__post_init__()
        Grids(self.arities, self.steps)

    @property
    def grids(self) -> Grids:
        """The grids above the inputs."""
        return Grids(self.arities, self.steps, self.pooled)

    @property
    def distances(self) -> tuple[ExactReal, ...]:
        """One in each level: an input lies in one cell of each."""
        return (ExactReal.of_rational(1),) * self.grids.height

    def worst_positions(self) -> tuple[Fraction, ...] | None:
        """Return how many of the first c positions each cell holds.

        Each grid has as many full cells as c positions can fill, and one with the rest: no others
        have a larger sum of squares in any grid, and all have c in each.
        """
        c = min(self.contributions, self.steps)
        if c * self.grids.height > _MOST_CELLS:
            return None
        return tuple(count for level in self._moved(c) for count in level)

    def _moved(self, positions: int) -> list[list[Fraction]]:
        """Return how many of the first positions each cell holds, level by level."""
        return [
            [Fraction(c) for c in [size] * (positions // size) + [positions % size] if c]
            for size in self.grids.cell_sizes()
        ]

    def shown(self) -> list[Fraction | arb]:
        """Return the square for the worst positions, the first ones; at least that of a part.

        The outputs show a cell of the first level if it ends before they do.
        """
        grids = self.grids
        size, c = grids.cell_sizes()[0], min(self.contributions, self.steps)
        seen = min(c, self.steps // size * size)
        high = shown.bridged(grids, self._moved(c))
        if -(-c // size) * size <= self.steps:
            return [high]
        low = shown.bridged(grids, self._moved(seen)) if seen else shown.bridged_at_least(grids)
        return [low, high]

    @property
    def _shows_first_cell(self) -> bool:
        return self.steps >= self.grids.cell_sizes()[0]

    @property
    def alone(self) -> int:
        """The first cell of the first level, where nothing is pooled into it."""
        return int(self._shows_first_cell and (not self.pooled or self.grids.height == 1))

    @property
    def shows_largest_loss(self) -> bool:
        """Whether the first cell is seen, of one input (`dpassay.accountant.counting.shown`)."""
        return self._shows_first_cell and self.contributions == 1

    def units(self) -> Fraction:
        """Return the units of all outputs, by summing powers."""
        return self.grids.units()

    def output_units(self) -> list[Fraction]:
        """Return the units of every output."""
        grids = self.grids
        return [grids.output_units(step) for step in range(1, self.steps + 1)]

    def factorisation(self) -> tuple[Rows, Rows]:
        """Return L, with the weights of the cells, and R, the cells; both as `Grids.cells`."""
        grids = self.grids
        cells = list(grids.cells())
        self.require_entries(len(cells))
        steps = range(1, self.steps + 1)
        left = [
            [grids.coefficient(step, level, first) for level, first, _ in cells] for step in steps
        ]
        right = [[Fraction(low < step <= high) for step in steps] for _, low, high in cells]
        return left, right
